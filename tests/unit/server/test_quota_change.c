/* Changes of quotas and filters over them. */
#include "server/quota_change.h"

#include <math.h>

#include "unit.h"

static struct arena mem;

static int setup(void **state)
{
    arena_init(&mem, 0);
    return 0;
}

static int teardown(void **state)
{
    arena_free(&mem);
    return 0;
}

typedef struct alter_client_quotas_request_entry entry_t;
typedef struct alter_client_quotas_request_op op_t;

static entry_t entry_of(const char *type1, const char *name1, const char *type2, const char *name2)
{
    entry_t e = {0};
    e.entity.v = alter_client_quotas_request_entity_new(&mem, 2);
    e.entity.v[0].entity_type = str_of(type1);
    e.entity.v[0].entity_name = str_of(name1);
    e.entity.n = 1;
    if (type2) {
        e.entity.v[1].entity_type = str_of(type2);
        e.entity.v[1].entity_name = str_of(name2);
        e.entity.n = 2;
    }
    return e;
}

static void entities_are_read(void **state)
{
    struct quota_entity out;
    const char *message = NULL;
    entry_t e = entry_of("user", "alice", "client-id", NULL);
    assert_int_equal(quota_change_entity(&e, &mem, &out, &message), KERR_NONE);
    assert_true(out.part[QUOTA_USER].given && out.part[QUOTA_CLIENT].given);
    assert_true(str_eqz(out.part[QUOTA_USER].name, "alice"));
    assert_true(str_is_null(out.part[QUOTA_CLIENT].name));
}

static void odd_entities_are_refused(void **state)
{
    static const char *const bad[][5] = {
        {"group", "g", NULL, NULL, "Unhandled client quota entity type: group"},
        {"user", "", NULL, NULL, "Empty user not supported"},
        {"user", "a", "user", "b", "Duplicate"},
        {"user", "a", "ip", "127.0.0.1", "combination"},
        {"client-id", "a", "ip", NULL, "combination"},
        {"", "a", NULL, NULL, "Unhandled"},
    };
    struct quota_entity out;
    const char *message = NULL;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        entry_t e = entry_of(bad[i][0], bad[i][1], bad[i][2], bad[i][3]);
        assert_int_equal(quota_change_entity(&e, &mem, &out, &message), KERR_INVALID_REQUEST);
        if (!strstr(message, bad[i][4]))
            fail_msg("%s", message);
    }
    entry_t none = {0};
    assert_int_equal(quota_change_entity(&none, &mem, &out, &message), KERR_INVALID_REQUEST);
}

static const struct quota_entity user = {.part[QUOTA_USER] = {true, {"u", 1}}};
static const struct quota_entity ip = {.part[QUOTA_IP] = {true, {"1.2.3.4", 7}}};

/* What is stored for a value; NULL when it is refused. */
static const char *stored(const struct quota_entity *e, const char *key, double v)
{
    op_t op = {.key = str_of(key), .value = v};
    entry_t entry = {.ops = {&op, 1}};
    struct config_list out;
    const char *message = NULL;
    enum kerr error =
        quota_change_make(&entry, e, (struct config_list){NULL, 0}, &mem, &out, &message);
    if (error == KERR_NONE)
        return out.v[0].value.p;
    assert_int_equal(error, KERR_INVALID_REQUEST);
    assert_non_null(message);
    return NULL;
}

static void values_are_stored_as_kafka_does(void **state)
{
    assert_string_equal(stored(&user, "producer_byte_rate", 1048576), "1048576");
    assert_string_equal(stored(&user, "consumer_byte_rate", 99.9999999), "100");
    assert_string_equal(stored(&user, "consumer_byte_rate", 9223372036854775807.0),
                        "9223372036854775807");
    assert_string_equal(stored(&user, "request_percentage", 200), "200.0");
    assert_string_equal(stored(&user, "request_percentage", 12.5), "12.5");
    assert_string_equal(stored(&user, "request_percentage", 0.1), "0.1");
    assert_string_equal(stored(&user, "controller_mutation_rate", 1e22), "1e+22");
    assert_string_equal(stored(&ip, "connection_creation_rate", 0), "0");
    assert_string_equal(stored(&ip, "connection_creation_rate", 2147483647), "2147483647");
}

static void values_that_mean_nothing_are_refused(void **state)
{
    assert_null(stored(&user, "producer_byte_rate", 0));
    assert_null(stored(&user, "producer_byte_rate", -1));
    assert_null(stored(&user, "producer_byte_rate", 1.5));
    assert_null(stored(&user, "producer_byte_rate", NAN));
    assert_null(stored(&user, "request_percentage", INFINITY));
    assert_null(stored(&user, "connection_creation_rate", 5));
    assert_null(stored(&user, "SCRAM-SHA-256", 5));
    assert_null(stored(&ip, "producer_byte_rate", 5));
    assert_null(stored(&ip, "connection_creation_rate", -1));
    assert_null(stored(&ip, "connection_creation_rate", 2147483648.0));
}

static void others_settings_stay(void **state)
{
    struct config_pair old[] = {{STR_LIT("SCRAM-SHA-256"), STR_LIT("salt=x")},
                                {STR_LIT("producer_byte_rate"), STR_LIT("5")},
                                {STR_LIT("consumer_byte_rate"), STR_LIT("6")}};
    op_t ops[] = {{.key = STR_LIT("producer_byte_rate"), .remove = true},
                  {.key = STR_LIT("SCRAM-SHA-256"), .remove = true},
                  {.key = STR_LIT("no.such"), .remove = true},
                  {.key = STR_LIT("request_percentage"), .value = 7}};
    entry_t entry = {.ops = {ops, 4}};
    struct config_list out;
    const char *message = NULL;
    assert_int_equal(
        quota_change_make(&entry, &user, (struct config_list){old, 3}, &mem, &out, &message),
        KERR_NONE);
    assert_int_equal(out.n, 3);
    assert_true(str_eqz(out.v[0].name, "SCRAM-SHA-256"));
    assert_true(str_eqz(out.v[1].name, "consumer_byte_rate"));
    assert_true(str_eqz(out.v[2].name, "request_percentage"));
    assert_true(str_eqz(out.v[2].value, "7.0"));
}

/* ---- filters ---- */

typedef struct describe_client_quotas_request_component component_t;

static enum kerr filter(const component_t *c, int n, bool strict, struct quota_filter *out)
{
    const char *message = NULL;
    struct describe_client_quotas_request req = {.strict = strict};
    req.components.v = (component_t *)c;
    req.components.n = n;
    enum kerr error = quota_filter_of(&req, &mem, out, &message);
    assert_true((error != KERR_NONE) == (message != NULL));
    return error;
}

static bool fits(const component_t *c, int n, bool strict, const char *path)
{
    struct quota_filter f;
    struct quota_entity e;
    assert_int_equal(filter(c, n, strict, &f), KERR_NONE);
    assert_true(quota_entity_parse(str_of(path), &mem, &e));
    return quota_filter_fits(&f, &e);
}

static void filters_choose_entities(void **state)
{
    component_t alice = {STR_LIT("user"), 0, STR_LIT("alice")},
                any_user = {STR_LIT("user"), 2, STR_NULL}, no_user = {STR_LIT("user"), 1, STR_NULL},
                any_client = {STR_LIT("client-id"), 2, STR_NULL},
                any_ip = {STR_LIT("ip"), 2, STR_NULL},
                one_ip = {STR_LIT("ip"), 0, STR_LIT("1.2.3.4")};
    component_t both[] = {alice, any_client};
    assert_true(fits(NULL, 0, false, "users/alice"));
    assert_true(fits(NULL, 0, false, "ips/1.2.3.4"));
    assert_false(fits(NULL, 0, true, "users/alice"));
    assert_false(fits(NULL, 0, true, "ips/1.2.3.4"));
    assert_true(fits(&alice, 1, false, "users/alice"));
    assert_true(fits(&alice, 1, false, "users/alice/clients/c"));
    assert_false(fits(&alice, 1, true, "users/alice/clients/c"));
    assert_false(fits(&alice, 1, false, "users/bob"));
    assert_false(fits(&alice, 1, false, "users/<default>"));
    assert_false(fits(&alice, 1, false, "ips/1.2.3.4"));
    assert_true(fits(&no_user, 1, false, "users/<default>"));
    assert_false(fits(&no_user, 1, false, "users/alice"));
    assert_true(fits(&any_user, 1, true, "users/alice"));
    assert_true(fits(&any_user, 1, true, "users/<default>"));
    assert_false(fits(&any_user, 1, false, "clients/c"));
    assert_true(fits(both, 2, true, "users/alice/clients/c"));
    assert_true(fits(both, 2, true, "users/alice/clients/<default>"));
    assert_false(fits(both, 2, false, "users/alice"));
    assert_true(fits(&any_ip, 1, true, "ips/1.2.3.4"));
    assert_true(fits(&any_ip, 1, true, "ips/<default>"));
    assert_true(fits(&one_ip, 1, true, "ips/1.2.3.4"));
    assert_false(fits(&one_ip, 1, true, "ips/<default>"));
    assert_false(fits(&any_ip, 1, false, "users/alice"));
}

static void odd_filters_are_refused(void **state)
{
    struct quota_filter f;
    component_t user_any = {STR_LIT("user"), 2, STR_NULL}, ip_any = {STR_LIT("ip"), 2, STR_NULL};
    component_t twice[] = {user_any, user_any}, mixed[] = {user_any, ip_any};
    component_t empty = {STR_LIT(""), 2, STR_NULL}, custom = {STR_LIT("group"), 2, STR_NULL},
                match = {STR_LIT("user"), 3, STR_NULL}, nameless = {STR_LIT("user"), 0, STR_NULL};
    assert_int_equal(filter(twice, 2, false, &f), KERR_INVALID_REQUEST);
    assert_int_equal(filter(mixed, 2, false, &f), KERR_INVALID_REQUEST);
    assert_int_equal(filter(&empty, 1, false, &f), KERR_INVALID_REQUEST);
    assert_int_equal(filter(&custom, 1, false, &f), KERR_UNSUPPORTED_VERSION);
    assert_int_equal(filter(&match, 1, false, &f), KERR_INVALID_REQUEST);
    assert_int_equal(filter(&nameless, 1, false, &f), KERR_INVALID_REQUEST);
}

static void only_quotas_are_values(void **state)
{
    struct config_pair good = {STR_LIT("request_percentage"), STR_LIT("12.5")},
                       scram = {STR_LIT("SCRAM-SHA-256"), STR_LIT("5")},
                       text = {STR_LIT("producer_byte_rate"), STR_LIT("5x")},
                       none = {STR_LIT("producer_byte_rate"), STR_LIT("")};
    double v;
    assert_true(quota_value(&user, &good, &v) && v == 12.5);
    assert_false(quota_value(&user, &scram, &v));
    assert_false(quota_value(&user, &text, &v));
    assert_false(quota_value(&user, &none, &v));
    assert_false(quota_value(&ip, &good, &v));
}

#define with_arena(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

UNIT_MAIN(with_arena(entities_are_read), with_arena(odd_entities_are_refused),
          with_arena(values_are_stored_as_kafka_does),
          with_arena(values_that_mean_nothing_are_refused), with_arena(others_settings_stay),
          with_arena(filters_choose_entities), with_arena(odd_filters_are_refused),
          with_arena(only_quotas_are_values))
