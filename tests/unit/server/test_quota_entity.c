/* Whom a quota is for, and the paths of that. */
#include "server/quota_entity.h"

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

/* "" = not given, "<default>" = the default. */
static struct quota_entity entity(const char *user, const char *client, const char *ip)
{
    const char *names[] = {user, client, ip};
    struct quota_entity e = {0};
    for (int i = 0; i < QUOTA_PARTS; i++) {
        e.part[i].given = names[i] != NULL;
        e.part[i].name = names[i] && strcmp(names[i], "<default>") ? str_of(names[i]) : STR_NULL;
    }
    return e;
}

static const struct {
    const char *user, *client, *ip, *path;
} cases[] = {
    {"alice", NULL, NULL, "users/alice"},
    {"<default>", NULL, NULL, "users/<default>"},
    {NULL, "app-1", NULL, "clients/app-1"},
    {NULL, "<default>", NULL, "clients/<default>"},
    {"alice", "app", NULL, "users/alice/clients/app"},
    {"<default>", "<default>", NULL, "users/<default>/clients/<default>"},
    {"CN=a b,O=c/d*e~f", "x%y", NULL, "users/CN%3Da%20b%2CO%3Dc%2Fd%2Ae%7Ef/clients/x%25y"},
    {"\xc3\xa9", NULL, NULL, "users/%C3%A9"},
    {NULL, NULL, "10.0.0.1", "ips/10.0.0.1"},
    {NULL, NULL, "::1", "ips/::1"},
    {NULL, NULL, "<default>", "ips/<default>"},
};

static void paths_go_there_and_back(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct quota_entity e = entity(cases[i].user, cases[i].client, cases[i].ip), back;
        assert_true(quota_entity_valid(&e));
        assert_string_equal(quota_entity_path(&e, &mem), cases[i].path);
        assert_true(quota_entity_parse(str_of(cases[i].path), &mem, &back));
        for (int k = 0; k < QUOTA_PARTS; k++) {
            assert_int_equal(back.part[k].given, e.part[k].given);
            if (e.part[k].given)
                assert_true(str_eq(back.part[k].name, e.part[k].name));
        }
    }
}

static void other_paths_are_no_entities(void **state)
{
    static const char *const bad[] = {"",
                                      "users",
                                      "users/",
                                      "users//clients/a",
                                      "topics/t",
                                      "brokers/1",
                                      "clients/a/users/b",
                                      "users/a/users/b",
                                      "users/a/ips/b",
                                      "users/a/clients",
                                      "ips/1.2.3.4/clients/a"};
    struct quota_entity e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (quota_entity_parse(str_of(bad[i]), &mem, &e))
            fail_msg("%s", bad[i]);
}

static void empty_and_mixed_entities_are_refused(void **state)
{
    struct quota_entity none = entity(NULL, NULL, NULL), empty = entity("", NULL, NULL),
                        mixed = entity("u", NULL, "1.2.3.4"), all = entity("u", "c", "1.2.3.4"),
                        half = entity("u", "", NULL);
    assert_false(quota_entity_valid(&none));
    assert_false(quota_entity_valid(&empty));
    assert_false(quota_entity_valid(&mixed));
    assert_false(quota_entity_valid(&all));
    assert_false(quota_entity_valid(&half));
}

static void a_user_named_like_the_default_is_a_user(void **state)
{
    struct quota_entity e = entity(NULL, NULL, NULL), back;
    e.part[QUOTA_USER].given = true;
    e.part[QUOTA_USER].name = STR_LIT("<default>");
    char *path = quota_entity_path(&e, &mem);
    assert_string_equal(path, "users/%3Cdefault%3E");
    assert_true(quota_entity_parse(str_of(path), &mem, &back));
    assert_true(str_eqz(back.part[QUOTA_USER].name, "<default>"));
}

static void the_protocols_names_are_found(void **state)
{
    enum quota_part p;
    for (int i = 0; i < QUOTA_PARTS; i++) {
        assert_true(quota_part_find(str_of(quota_part_name((enum quota_part)i)), &p));
        assert_int_equal(p, i);
    }
    assert_false(quota_part_find(STR_LIT("users"), &p));
    assert_false(quota_part_find(STR_LIT(""), &p));
}

#define with_arena(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

UNIT_MAIN(with_arena(paths_go_there_and_back), with_arena(other_paths_are_no_entities),
          with_arena(empty_and_mixed_entities_are_refused),
          with_arena(a_user_named_like_the_default_is_a_user),
          with_arena(the_protocols_names_are_found))
