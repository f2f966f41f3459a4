/* ACLs in the tree: what nodes hold byte by byte, what changes them, and who hears of it. */
#include <errno.h>

#include "acl/acl_store.h"
#include "metadata/store_test.h"

#include "acl_test.h"

struct world {
    struct store *s, *other; /* two sessions on one tree */
    struct arena a;
};

static int begin(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    w->s = open_in_memory(NULL);
    assert_int_equal(embedded_store_attach(w->s, &w->other), 0);
    arena_init(&w->a, 0);
    assert_int_equal(acl_store_paths(w->s), 0);
    *state = w;
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;
    store_close(w->other);
    store_close(w->s);
    arena_free(&w->a);
    free(w);
    return 0;
}

static int add(struct world *w, struct acl_binding b)
{
    int error = 1;
    assert_int_equal(acl_store_add(w->s, &b, 1, &error, &w->a, NULL), 0);
    return error;
}

static int children(struct world *w, const char *path)
{
    struct store_stat st;
    return stat_of(w->s, path, &st) == 0 ? st.children_n : -1;
}

#define ACL(who, perm, op)                                  \
    "{\"principal\":\"" who "\",\"permissionType\":\"" perm \
    "\",\"host\":\"*\",\"operation\":\"" op "\"}"
#define NODE(acls) "{\"acls\":[" acls "],\"version\":1}"

static void nodes_are_as_kafkas(void **state)
{
    struct world *w = *state;
    assert_int_equal(add(w, binding("topic:t", ACL_ALLOW, "User:a", "read")), 0);
    assert_int_equal(add(w, binding("topic:t", ACL_DENY, "User:b", "describe-configs")), 0);
    assert_int_equal(add(w, binding("+transactional-id:t:", ACL_ALLOW, "User:a", "all")), 0);
    assert_true(
        holds(w->s, "/kafka-acl/Topic/t",
              NODE(ACL("User:a", "Allow", "Read") "," ACL("User:b", "Deny", "DescribeConfigs"))));
    assert_true(holds(w->s, "/kafka-acl-extended/prefixed/TransactionalId/t:",
                      NODE(ACL("User:a", "Allow", "All"))));
    assert_true(holds(w->s, "/kafka-acl-changes/acl_changes_0000000000", "TOPIC:t"));
    assert_true(holds(w->s, "/kafka-acl-changes/acl_changes_0000000001", "TOPIC:t"));
    assert_true(holds(w->s, "/kafka-acl-extended-changes/acl_changes_0000000000",
                      "{\"version\":1,\"resourceType\":\"TRANSACTIONAL_ID\",\"name\":\"t:\","
                      "\"patternType\":\"PREFIXED\"}"));
    static const char *const types[] = {"Topic",           "Group",           "Cluster",
                                        "TransactionalId", "DelegationToken", "User"};
    for (int i = 0; i < 6; i++) {
        char path[80];
        snprintf(path, sizeof(path), "/kafka-acl/%s", types[i]);
        assert_int_not_equal(children(w, path), -1);
        snprintf(path, sizeof(path), "/kafka-acl-extended/prefixed/%s", types[i]);
        assert_int_not_equal(children(w, path), -1);
    }
}

static void what_is_there_is_not_written_again(void **state)
{
    struct world *w = *state;
    struct store_stat st;
    struct acl_binding twice[2] = {binding("topic:t", ACL_ALLOW, "User:a", "read"),
                                   binding("topic:t", ACL_ALLOW, "User:a", "read")};
    int errors[2];
    struct acl_changed changed;
    assert_int_equal(acl_store_add(w->s, twice, 2, errors, &w->a, &changed), 0);
    assert_int_equal(changed.n, 1);
    assert_int_equal(errors[0] | errors[1], 0);
    assert_int_equal(acl_store_add(w->s, twice, 2, errors, &w->a, &changed), 0);
    assert_int_equal(changed.n, 0);
    assert_int_equal(errors[0] | errors[1], 0);
    assert_int_equal(stat_of(w->s, "/kafka-acl/Topic/t", &st), 0);
    assert_int_equal(st.version, 0);
    assert_int_equal(children(w, PATH_ACL_CHANGES), 1);
    assert_true(holds(w->s, "/kafka-acl/Topic/t", NODE(ACL("User:a", "Allow", "Read"))));
}

static void folders_that_are_missing_are_made(void **state)
{
    struct world *w = *state;
    assert_int_equal(store_delete_tree(w->s, PATH_ACL), 0);
    assert_int_equal(store_delete_tree(w->s, PATH_ACL_CHANGES), 0);
    assert_int_equal(add(w, binding("group:g", ACL_ALLOW, "User:a", "read")), 0);
    assert_true(holds(w->s, "/kafka-acl/Group/g", NODE(ACL("User:a", "Allow", "Read"))));
    assert_int_equal(children(w, PATH_ACL_CHANGES), 1);
}

static struct acl_filter filter(enum acl_pattern_type kind, const char *name, const char *principal)
{
    struct acl_filter f = ACL_FILTER_ALL;
    f.type = ACL_TOPIC;
    f.kind = kind;
    f.name = str_of(name);
    f.principal = str_of(principal);
    return f;
}

static void deleting(void **state)
{
    struct world *w = *state;
    struct acl_deleted *gone;
    struct acl_changed changed;
    int n;
    add(w, binding("topic:t", ACL_ALLOW, "User:a", "read"));
    add(w, binding("topic:t", ACL_ALLOW, "User:b", "read"));
    add(w, binding("topic:*", ACL_ALLOW, "User:a", "read"));
    add(w, binding("+topic:t", ACL_ALLOW, "User:a", "read"));
    add(w, binding("group:t", ACL_ALLOW, "User:a", "read"));
    /* the first filter takes what both fit */
    struct acl_filter two[2] = {filter(ACL_LITERAL, "t", "User:a"),
                                filter(ACL_PATTERN_MATCH, "t", NULL)};
    assert_int_equal(acl_store_delete(w->s, two, 2, &w->a, &gone, &n, &changed), 0);
    assert_int_equal(n, 4);
    assert_int_equal(changed.n, 3);
    int by_filter[2] = {0, 0};
    for (int i = 0; i < n; i++) {
        assert_int_equal(gone[i].error, 0);
        by_filter[gone[i].filter]++;
    }
    assert_int_equal(by_filter[0], 1);
    assert_int_equal(by_filter[1], 3);
    assert_int_equal(children(w, "/kafka-acl/Topic"), 0); /* no empty nodes */
    assert_int_equal(children(w, "/kafka-acl-extended/prefixed/Topic"), 0);
    assert_int_equal(children(w, "/kafka-acl/Group"), 1);
    int notices = children(w, PATH_ACL_CHANGES);
    assert_int_equal(acl_store_delete(w->s, two, 2, &w->a, &gone, &n, &changed), 0);
    assert_int_equal(n, 0);
    assert_int_equal(acl_store_delete(w->s, two, 1, &w->a, &gone, &n, &changed), 0);
    assert_int_equal(n, 0);
    assert_int_equal(children(w, PATH_ACL_CHANGES), notices);
}

/* Whichever they are, and however many: each binding goes by the first filter that fits it. */
static void many_filters_in_order(void **state)
{
    enum { ROUNDS = 40, FILTERS = 80 };
    static const char *const names[] = {"t", "tt", "u", "*"};
    static const char *const resources[] = {"topic:t", "topic:tt", "topic:*", "+topic:t",
                                            "+topic:u"};
    static const char *const users[] = {"User:a", "User:b"};
    struct world *w = *state;
    unsigned seed = 7;
    for (int round = 0; round < ROUNDS; round++) {
        struct acl_filter f[FILTERS];
        struct acl_deleted *gone;
        struct acl_binding all[10];
        int n, all_n = 0, fit_n = 0;
        for (int i = 0; i < 10; i++) {
            all[all_n] = binding(resources[i % 5], ACL_ALLOW, users[i / 5], "read");
            add(w, all[all_n++]);
        }
        for (int i = 0; i < FILTERS; i++) {
            seed = seed * 1103515245 + 12345;
            f[i] = filter((enum acl_pattern_type)(ACL_PATTERN_ANY + (seed >> 8) % 4),
                          names[(seed >> 12) % 4], i % 3 ? "User:none" : users[(seed >> 16) % 2]);
            if ((seed >> 20) % 5 == 0)
                f[i].type = ACL_GROUP;
        }
        int filters_n = round % 2 ? FILTERS : 12; /* patterns are looked for, or named */
        assert_int_equal(acl_store_delete(w->s, f, filters_n, &w->a, &gone, &n, NULL), 0);
        for (int i = 0; i < all_n; i++) {
            int first = 0, at = 0;
            while (first < filters_n && !(acl_filter_matches_pattern(&f[first], &all[i].pattern) &&
                                          acl_filter_matches_entry(&f[first], &all[i].entry)))
                first++;
            while (at < n && !(acl_pattern_eq(&gone[at].binding.pattern, &all[i].pattern) &&
                               acl_entry_eq(&gone[at].binding.entry, &all[i].entry)))
                at++;
            fit_n += first < filters_n;
            assert_int_equal(at < n ? gone[at].filter : filters_n, first);
        }
        assert_int_equal(n, fit_n);
    }
}

/* A filter may name what no resource can be named: nothing fits it, least of all the resource whose
 * path begins like its name, and the filters beside it do what they say. */
static void names_that_no_resource_has_delete_nothing(void **state)
{
    static const struct str names[] = {
        STR_LIT("t\0x"), STR_LIT("t\0"), STR_LIT("\0t"),   STR_LIT("."),    STR_LIT(".."),
        STR_LIT(""),     STR_LIT("/"),   STR_LIT("t/"),    STR_LIT("/t"),   STR_LIT("../Topic/t"),
        STR_LIT("\xff"), STR_LIT("\n"),  STR_LIT("t\x7f"), STR_LIT("t\x01")};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct acl_filter two[2] = {filter(ACL_LITERAL, "", NULL), filter(ACL_LITERAL, "u", NULL)};
        for (int kind = ACL_PATTERN_ANY; kind < ACL_PATTERNS; kind++) {
            struct acl_deleted *gone;
            struct acl_changed changed;
            int n;
            add(w, binding("topic:t", ACL_DENY, "User:a", "read"));
            add(w, binding("+topic:t", ACL_DENY, "User:a", "read"));
            add(w, binding("topic:u", ACL_ALLOW, "User:a", "read"));
            two[0].name = names[i];
            two[0].kind = (enum acl_pattern_type)kind;
            two[0].principal = kind == ACL_PATTERN_MATCH ? STR_LIT("User:b") : STR_NULL;
            assert_int_equal(acl_store_delete(w->s, two, 2, &w->a, &gone, &n, &changed), 0);
            assert_int_equal(n, 1);
            assert_int_equal(gone->filter, 1);
            assert_int_equal(changed.n, 1);
            assert_int_equal(children(w, "/kafka-acl/Topic"), 1);
            assert_int_equal(children(w, "/kafka-acl-extended/prefixed/Topic"), 1);
        }
    }
}

static void finding(void **state)
{
    struct world *w = *state;
    struct acl_binding *found;
    int n;
    add(w, binding("topic:t", ACL_ALLOW, "User:a", "read"));
    add(w, binding("topic:t", ACL_ALLOW, "User:b", "read"));
    add(w, binding("+topic:t", ACL_ALLOW, "User:a", "read"));
    struct acl_filter f = filter(ACL_PATTERN_MATCH, "tt", "User:a");
    assert_int_equal(acl_store_find(w->other, &f, &w->a, &found, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(found[0].pattern.kind, ACL_PREFIXED);
    f = ACL_FILTER_ALL;
    assert_int_equal(acl_store_find(w->other, &f, &w->a, &found, &n), 0);
    assert_int_equal(n, 3);
}

/* A store in which somebody deletes a folder between its being named and its being listed. */
struct racy {
    struct store store;
    struct store *real;
    const char *path;
};

static void submit_late(struct store *s, struct list *requests)
{
    struct racy *r = container_of(s, struct racy, store);
    const struct store_request *first =
        container_of(list_entry(requests->next, struct task, link), struct store_request, task);
    if (strcmp(first->ops[0].path, r->path) == 0) {
        struct store_op op = store_op_delete(r->path, STORE_ANY_VERSION);
        struct store_request gone = {.ops = &op, .ops_n = 1};
        assert_int_equal(store_run(r->real, &gone), 0);
    }
    r->real->ops->submit(r->real, requests);
}

static void drive_real(struct store *s)
{
    struct racy *r = container_of(s, struct racy, store);
    if (r->real->ops->drive)
        r->real->ops->drive(r->real);
}

static void a_folder_that_goes_hides_no_other(void **state)
{
    static const struct store_ops ops = {.submit = submit_late, .drive = drive_real};
    struct world *w = *state;
    struct racy racy = {{&ops}, w->s, "/kafka-acl/DelegationToken"};
    struct acl_stored *all;
    int n;
    add(w, binding("topic:t", ACL_DENY, "User:a", "read"));
    add(w, binding("cluster:kafka-cluster", ACL_DENY, "User:a", "all"));
    assert_int_equal(acl_store_load(&racy.store, &w->a, &all, &n), 0);
    assert_int_equal(children(w, "/kafka-acl/DelegationToken"), -1);
    assert_int_equal(n, 2);
}

/* ---- what others wrote ---- */

static void strange_nodes_do_no_harm(void **state)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "{\"version\":2,\"acls\":[]}",
                                      "{\"version\":1}",
                                      "{\"acls\":[]}",
                                      "\xff",
                                      "{\"version\":\"1\",\"acls\":[]}",
                                      "{\"version\":1,\"acls\":{}}"};
    struct world *w = *state;
    struct acl_stored *all;
    int n;
    create(w->s, "/kafka-acl/Planet", NULL, 0);
    create(w->s, "/kafka-acl/Planet/mars", "{}", 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char path[64];
        snprintf(path, sizeof(path), "/kafka-acl/Topic/bad%zu", i);
        assert_int_equal(create(w->s, path, bad[i], 0), 0);
    }
    add(w, binding("topic:good", ACL_ALLOW, "User:a", "read"));
    assert_int_equal(acl_store_load(w->s, &w->a, &all, &n), 0);
    assert_int_equal(n, (int)(sizeof(bad) / sizeof(*bad)) + 1);
    for (int i = 0; i < n; i++) {
        bool empty = str_eqz(all[i].pattern.name, "bad0"),
             good = str_eqz(all[i].pattern.name, "good");
        assert_int_equal(all[i].status, empty || good ? 0 : -EBADMSG);
        assert_int_equal(all[i].node.n, good);
    }
    /* it is not overwritten: nobody knows what it forbids */
    assert_int_equal(add(w, binding("topic:bad1", ACL_ALLOW, "User:a", "read")), -EBADMSG);
    assert_true(holds(w->s, "/kafka-acl/Topic/bad1", "{"));
    assert_int_equal(add(w, binding("topic:bad0", ACL_ALLOW, "User:a", "read")), 0);
}

static void entries_that_are_not_known_stay(void **state)
{
    static const char strange[] = "{\"principal\":\"User:x\",\"permissionType\":\"Allow\","
                                  "\"operation\":\"Fly\",\"host\":\"*\"}";
    struct world *w = *state;
    struct acl_stored one;
    char text[600], after[600];
    struct acl_pattern p = pattern("topic:t");
    snprintf(text, sizeof(text), "{\"acls\":[%s,17,%s,%s],\"version\":1,\"more\":[]}", strange,
             ACL("User:a", "Allow", "Read"), ACL("User:a", "Allow", "Read"));
    create(w->s, "/kafka-acl/Topic/t", text, 0);
    assert_int_equal(acl_store_read(w->s, &p, &w->a, &one), 0);
    assert_int_equal(one.node.n, 1); /* each once */
    assert_int_equal(one.node.strange_n, 2);
    assert_int_equal(add(w, binding("topic:t", ACL_ALLOW, "User:b", "write")), 0);
    snprintf(after, sizeof(after), NODE("%s,%s,%s,17"), ACL("User:a", "Allow", "Read"),
             ACL("User:b", "Allow", "Write"), strange);
    assert_true(holds(w->s, "/kafka-acl/Topic/t", after));
    struct acl_filter f = ACL_FILTER_ALL;
    struct acl_deleted *gone;
    int n;
    assert_int_equal(acl_store_delete(w->s, &f, 1, &w->a, &gone, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(children(w, "/kafka-acl/Topic"), 1); /* the node is not empty */
}

static void texts_of_all_kinds_come_back(void **state)
{
    struct world *w = *state;
    struct acl_stored one;
    struct acl_binding b =
        binding("group:g\xc3\xa4 \"x\"", ACL_ALLOW, "User:CN=\"\\a:\xe2\x82\xac", "read");
    b.entry.host = STR_LIT("0:0:0:0:0:0:0:1");
    assert_int_equal(add(w, b), 0);
    assert_int_equal(acl_store_read(w->s, &b.pattern, &w->a, &one), 0);
    assert_int_equal(one.node.n, 1);
    assert_true(acl_entry_eq(&one.node.entries[0], &b.entry));
}

/* ---- conflicts ---- */

struct meddler {
    struct world *w;
    int times, calls;
};

/* Another broker is always a little faster. */
static int meddled_edit(void *arg, const struct acl_pattern *p, struct acl_node *node,
                        struct arena *a)
{
    struct meddler *m = arg;
    if (m->calls++ < m->times) {
        char who[32];
        struct arena own;
        int error;
        snprintf(who, sizeof(who), "User:m%d", m->calls);
        struct acl_binding b = {*p, entry(ACL_ALLOW, who, "read", "*")};
        arena_init(&own, 0);
        assert_int_equal(acl_store_add(m->w->other, &b, 1, &error, &own, NULL), 0);
        assert_int_equal(error, 0);
        arena_free(&own);
    }
    struct acl_entry *more = arena_array(a, struct acl_entry, (size_t)node->n + 1);
    if (node->n)
        memcpy(more, node->entries, (size_t)node->n * sizeof(*more));
    more[node->n++] = entry(ACL_ALLOW, "User:mine", "read", "*");
    node->entries = more;
    return 1;
}

static void others_at_the_same_time(void **state)
{
    struct world *w = *state;
    struct acl_stored one;
    struct acl_pattern p = pattern("topic:t");
    struct meddler m = {.w = w, .times = 3};
    assert_int_equal(acl_store_update(w->s, &p, meddled_edit, &m, &w->a), 1);
    assert_int_equal(m.calls, 4);
    assert_int_equal(acl_store_read(w->s, &p, &w->a, &one), 0);
    assert_int_equal(one.node.n, 4); /* nobody's is lost */
    struct meddler always = {.w = w, .times = 1000};
    p = pattern("topic:u");
    assert_int_equal(acl_store_update(w->s, &p, meddled_edit, &always, &w->a), -EAGAIN);
}

/* ---- paths and notices ---- */

static void paths_lead_back(void **state)
{
    static const char *const bad[] = {"/kafka-acl/Topic",
                                      "/kafka-acl/Topic/",
                                      "/kafka-acl/topic/t",
                                      "/kafka-acl/Topic/a/b",
                                      "/kafka-aclTopic/t",
                                      "/x",
                                      ""};
    struct world *w = *state;
    struct acl_pattern p = pattern("+delegation-token:x"), back;
    char *path = acl_node_path(&p, &w->a);
    assert_string_equal(path, "/kafka-acl-extended/prefixed/DelegationToken/x");
    assert_true(acl_node_path_parse(str_of(path), &back));
    assert_true(acl_pattern_eq(&p, &back));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(acl_node_path_parse(str_of(bad[i]), &back));
}

static void notices_of_all_forms(void **state)
{
    static const struct {
        const char *data, *means;
    } literal[] = {{"TOPIC:t", "topic:t"},
                   {"Topic:t", "topic:t"},
                   {"topic:a:b", "topic:a:b"},
                   {"TRANSACTIONAL_ID:x", "transactional-id:x"},
                   {"TransactionalId:x", "transactional-id:x"}};
    static const char *const bad[] = {"TOPIC", "TOPIC:", "X:t", ":t", "", "ANY:t", "TOPIC:a/b"};
    static const char *const bad_json[] = {
        "TOPIC:t", "{}",
        "{\"version\":2,\"resourceType\":\"TOPIC\",\"name\":\"t\",\"patternType\":\"PREFIXED\"}",
        "{\"version\":1,\"resourceType\":\"TOPIC\",\"name\":\"t\",\"patternType\":\"MATCH\"}",
        "{\"version\":1,\"resourceType\":\"TOPIC\",\"patternType\":\"PREFIXED\"}"};
    struct world *w = *state;
    struct acl_pattern p, means;
    for (size_t i = 0; i < sizeof(literal) / sizeof(*literal); i++) {
        means = pattern(literal[i].means);
        assert_int_equal(acl_notice_decode(text(literal[i].data), ACL_LITERAL, &w->a, &p), 0);
        assert_true(acl_pattern_eq(&p, &means));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(acl_notice_decode(text(bad[i]), ACL_LITERAL, &w->a, &p), -EBADMSG);
    assert_int_equal(acl_notice_decode(BYTES_NULL, ACL_LITERAL, &w->a, &p), -EBADMSG);
    for (size_t i = 0; i < sizeof(bad_json) / sizeof(*bad_json); i++)
        assert_int_equal(acl_notice_decode(text(bad_json[i]), ACL_PREFIXED, &w->a, &p), -EBADMSG);
    means = pattern("+group:p");
    assert_int_equal(acl_notice_decode(acl_notice_encode(&means, &w->a), ACL_PREFIXED, &w->a, &p),
                     0);
    assert_true(acl_pattern_eq(&p, &means));
}

#define in_world(f) cmocka_unit_test_setup_teardown(f, begin, end)
UNIT_MAIN(in_world(nodes_are_as_kafkas), in_world(what_is_there_is_not_written_again),
          in_world(folders_that_are_missing_are_made), in_world(deleting),
          in_world(many_filters_in_order), in_world(names_that_no_resource_has_delete_nothing),
          in_world(finding), in_world(a_folder_that_goes_hides_no_other),
          in_world(strange_nodes_do_no_harm), in_world(entries_that_are_not_known_stay),
          in_world(texts_of_all_kinds_come_back), in_world(others_at_the_same_time),
          in_world(paths_lead_back), in_world(notices_of_all_forms))
