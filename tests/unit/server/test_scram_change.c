/* Changes of SCRAM credentials, and the users that logins are checked against. */
#include "server/scram_change.h"

#include "server/scram_users.h"
#include "unit.h"

typedef struct alter_user_scram_credentials_request request;

static struct arena mem;
static struct scram_changes changes;

static int setup(void **state)
{
    arena_init(&mem, 0);
    changes = (struct scram_changes){0};
    return 0;
}

static int teardown(void **state)
{
    scram_changes_free(&changes);
    arena_free(&mem);
    return 0;
}

static uint8_t salted[SCRAM_HASH_MAX];

/* "+u1" = a credential of user u, mechanism 1; "-u2" = one that goes; "<" and ">" in front: too
 * few, too many iterations. */
static void read_all(const char *const *texts)
{
    request in = {0};
    in.deletions.v = alter_user_scram_credentials_request_deletion_new(&mem, 16);
    in.upsertions.v = alter_user_scram_credentials_request_upsertion_new(&mem, 16);
    for (; *texts; texts++) {
        const char *t = *texts;
        struct str name = {t + 1, (int32_t)strlen(t) - 2};
        int8_t mechanism = (int8_t)(t[strlen(t) - 1] - '0');
        if (*t == '-') {
            in.deletions.v[in.deletions.n].name = name;
            in.deletions.v[in.deletions.n++].mechanism = mechanism;
            continue;
        }
        struct alter_user_scram_credentials_request_upsertion *u =
            &in.upsertions.v[in.upsertions.n++];
        u->name = name;
        u->mechanism = mechanism;
        u->iterations = *t == '<' ? 4095 : *t == '>' ? 16385 : 8192;
        u->salt = (struct bytes){(const uint8_t *)"salt", 4};
        u->salted_password = (struct bytes){salted, mechanism == 2 ? 64 : 32};
    }
    assert_int_equal(scram_changes_read(&in, &mem, &changes), 0);
}

static struct scram_user_change *user(const char *name)
{
    list_each (at, &changes.users) {
        struct scram_user_change *u = list_entry(at, struct scram_user_change, link);
        if (str_eqz(u->user, name))
            return u;
    }
    fail_msg("no user %s", name);
    return NULL;
}

static void each_user_once_with_what_is_wrong(void **state)
{
    read_all((const char *[]){"+a1", "+a2", "-b1", "+b2", "+c1", "+c1", "-d2", "+d2", "<e1", ">f2",
                              "+g3", "-g0", "+1", "+h1", "<h2", "+i1", "+i1", ">i2", NULL});
    static const struct {
        const char *name;
        enum kerr error;
        const char *says;
    } v[] = {
        {"a", KERR_NONE, NULL},
        {"b", KERR_NONE, NULL},
        {"c", KERR_DUPLICATE_RESOURCE, "twice"},
        {"d", KERR_DUPLICATE_RESOURCE, "twice"},
        {"e", KERR_UNACCEPTABLE_CREDENTIAL, "Too few"},
        {"f", KERR_UNACCEPTABLE_CREDENTIAL, "Too many"},
        {"g", KERR_UNSUPPORTED_SASL_MECHANISM, "Unknown"},
        {"", KERR_UNACCEPTABLE_CREDENTIAL, "must not be empty"},
        {"h", KERR_UNACCEPTABLE_CREDENTIAL, "Too few"},
        {"i", KERR_UNACCEPTABLE_CREDENTIAL, "Too many"}, /* wins over twice */
    };
    assert_int_equal(changes.n, sizeof(v) / sizeof(*v));
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        struct scram_user_change *u = user(v[i].name);
        if (u->error != v[i].error || (v[i].says && !strstr(u->message, v[i].says)))
            fail_msg("%s: %d %s", v[i].name, u->error, u->message);
    }
}

static void the_settings_afterwards(void **state)
{
    struct config_pair v[] = {{STR_LIT("producer_byte_rate"), STR_LIT("5")},
                              {STR_LIT("SCRAM-SHA-256"), STR_LIT("old")},
                              {STR_LIT("SCRAM-SHA-512"), STR_LIT("old")}};
    struct config_list old = {v, 3}, new;
    read_all((const char *[]){"+a1", "-a2", "-b2", NULL});
    assert_int_equal(scram_change_make(user("a"), old, &mem, &new), KERR_NONE);
    assert_int_equal(new.n, 2);
    assert_true(str_eqz(new.v[0].name, "producer_byte_rate"));
    assert_true(str_eqz(new.v[1].name, "SCRAM-SHA-256"));
    struct scram_credential c;
    assert_true(scram_credential_parse(SASL_SCRAM_SHA_256, new.v[1].value, &mem, &c));
    assert_int_equal(c.iterations, 8192);
    assert_memory_equal(c.salt, "salt", 4);
    old.n = 2;
    assert_int_equal(scram_change_make(user("b"), old, &mem, &new), KERR_RESOURCE_NOT_FOUND);
}

static struct config_list settings_of(const char *mechanism, int iterations)
{
    enum sasl_mechanism m;
    struct scram_credential c;
    struct config_pair *v = arena_array(&mem, struct config_pair, 2);
    assert_true(sasl_mechanism_find(str_of(mechanism), &m));
    assert_true(scram_credential_make(m, STR_LIT("x"), iterations, &c));
    v[0] = (struct config_pair){str_of(mechanism), scram_credential_format(m, &c, &mem)};
    v[1] = (struct config_pair){STR_LIT("producer_byte_rate"), STR_LIT("1")};
    return (struct config_list){v, 2};
}

static void users_come_change_and_go(void **state)
{
    struct scram_users *users = scram_users_new();
    struct scram_credential c;
    for (int i = 0; i < 100; i++) {
        struct str name = str_of(arena_printf(&mem, "u%d", i));
        assert_int_equal(scram_users_set(users, name, settings_of("SCRAM-SHA-256", 1 + i)), 0);
    }
    assert_int_equal(scram_users_count(users), 100);
    assert_true(scram_users_find(users, SASL_SCRAM_SHA_256, STR_LIT("u42"), &c));
    assert_int_equal(c.iterations, 43);
    assert_false(scram_users_find(users, SASL_SCRAM_SHA_512, STR_LIT("u42"), &c));
    assert_false(scram_users_find(users, SASL_SCRAM_SHA_256, STR_LIT("u"), &c));
    assert_int_equal(scram_users_set(users, STR_LIT("u42"), settings_of("SCRAM-SHA-512", 7)), 0);
    assert_false(scram_users_find(users, SASL_SCRAM_SHA_256, STR_LIT("u42"), &c));
    assert_true(scram_users_find(users, SASL_SCRAM_SHA_512, STR_LIT("u42"), &c));
    /* malformed, and none at all: the user has no credential any more */
    struct config_pair bad = {STR_LIT("SCRAM-SHA-512"), STR_LIT("salt=x")};
    assert_int_equal(scram_users_set(users, STR_LIT("u42"), (struct config_list){&bad, 1}), 0);
    assert_int_equal(scram_users_set(users, STR_LIT("u1"), (struct config_list){NULL, 0}), 0);
    assert_int_equal(scram_users_set(users, STR_LIT("nobody"), (struct config_list){NULL, 0}), 0);
    assert_int_equal(scram_users_count(users), 98);
    assert_false(scram_users_find(users, SASL_SCRAM_SHA_512, STR_LIT("u42"), &c));
    scram_users_free(users);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
UNIT_MAIN(T(each_user_once_with_what_is_wrong), T(the_settings_afterwards),
          T(users_come_change_and_go))
