/* store_rules.c - see store_rules.h. */
#include "metadata/store_rules.h"

#include <pthread.h>

#include "metadata/store_batch.h"

#include "metadata/store_test.h"

static struct store *store_under_rules(void **state)
{
    return ((struct store_rules *)*state)->s;
}

static void nodes_need_a_parent_and_are_made_once(void **state)
{
    struct store *s = store_under_rules(state);
    assert_int_equal(create(s, "/a/b", "x", 0), -ENOENT);
    assert_int_equal(create(s, "/a", NULL, 0), 0);
    assert_int_equal(create(s, "/a/b", "x", 0), 0);
    assert_int_equal(create(s, "/a/b", "y", 0), -EEXIST);
    assert_true(holds(s, "/a/b", "x"));
    assert_true(holds(s, "/a", NULL));
    assert_int_equal(create(s, "/", "y", 0), -EEXIST);
}

static void bad_paths_are_refused(void **state)
{
    struct store *s = store_under_rules(state);
    char longest[1030];
    memset(longest, 'x', sizeof(longest));
    longest[0] = '/';
    longest[sizeof(longest) - 1] = 0;
    const char *bad[] = {"", "a", "//", "/a/", "/a//b", "/.", "/../x", "/a\x01", longest};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(create(s, bad[i], NULL, 0), -EINVAL);
        assert_int_equal(set(s, bad[i], NULL, -1), -EINVAL);
        assert_int_equal(del(s, bad[i], -1), -EINVAL);
        struct store_op op = store_op_get(bad[i], false);
        assert_int_equal(run_op(s, &op), -EINVAL);
    }
    assert_int_equal(del(s, "/", -1), -EINVAL);
    longest[1024] = 0;
    assert_int_equal(create(s, longest, NULL, 0), 0);
    assert_int_equal(create(s, "/.a", NULL, 0), 0);
}

static void versions_count_sets_and_guard_them(void **state)
{
    struct store *s = store_under_rules(state);
    struct store_stat st, first;
    create(s, "/n", "0", 0);
    assert_int_equal(stat_of(s, "/n", &first), 0);
    assert_int_equal(first.version, 0);
    assert_int_equal(first.czxid, first.mzxid);
    assert_int_equal(set(s, "/n", "1", 0), 0);
    assert_int_equal(set(s, "/n", "2", 0), STORE_BAD_VERSION);
    assert_int_equal(set(s, "/n", "2", STORE_ANY_VERSION), 0);
    assert_int_equal(stat_of(s, "/n", &st), 0);
    assert_int_equal(st.version, 2);
    assert_int_equal(st.czxid, first.czxid);
    assert_true(st.mzxid > first.mzxid);
    assert_int_equal(set(s, "/gone", "2", STORE_ANY_VERSION), -ENOENT);
    assert_int_equal(del(s, "/n", 1), STORE_BAD_VERSION);
    assert_int_equal(del(s, "/n", 2), 0);
    assert_int_equal(del(s, "/n", STORE_ANY_VERSION), -ENOENT);
    create(s, "/n", "again", 0);
    assert_int_equal(stat_of(s, "/n", &st), 0);
    assert_int_equal(st.version, 0);
    assert_true(st.czxid > first.czxid);
}

static void null_and_empty_data_are_two_values(void **state)
{
    struct store *s = store_under_rules(state);
    create(s, "/n", "", 0);
    assert_true(holds(s, "/n", ""));
    set(s, "/n", NULL, -1);
    assert_true(holds(s, "/n", NULL));
}

static void only_empty_nodes_go(void **state)
{
    struct store *s = store_under_rules(state);
    struct store_stat st;
    create(s, "/a", NULL, 0);
    create(s, "/a/b", NULL, 0);
    assert_int_equal(stat_of(s, "/a", &st), 0);
    assert_int_equal(st.children_n, 1);
    assert_int_equal(del(s, "/a", -1), -ENOTEMPTY);
    assert_int_equal(del(s, "/a/b", -1), 0);
    assert_int_equal(del(s, "/a", -1), 0);
}

static void sequence_numbers_have_ten_digits_and_are_never_given_twice(void **state)
{
    struct store *s = store_under_rules(state);
    create(s, "/q", NULL, 0);
    static const char *want[] = {"/q/n_0000000000", "/q/n_0000000001", "/q/0000000002"};
    for (int i = 0; i < 3; i++) {
        struct store_op op = store_op_create(i < 2 ? "/q/n_" : "/q/", text("d"), STORE_SEQUENTIAL);
        assert_int_equal(run_op(s, &op), 0);
        assert_string_equal((const char *)op.result.p, want[i]);
        free((void *)op.result.p);
        assert_int_equal(del(s, want[i], -1), 0);
    }
    create(s, "/q/plain", NULL, 0); /* counts, as in ZooKeeper */
    struct store_op op = store_op_create("/q/n_", text("d"), STORE_SEQUENTIAL);
    assert_int_equal(run_op(s, &op), 0);
    assert_string_equal((const char *)op.result.p, "/q/n_0000000004");
    free((void *)op.result.p);
}

static void ephemeral_nodes_have_an_owner_and_no_children(void **state)
{
    struct store *s = store_under_rules(state);
    struct store_stat st;
    assert_int_equal(create(s, "/e", "x", STORE_EPHEMERAL), 0);
    assert_int_equal(create(s, "/e/c", NULL, 0), -EINVAL);
    assert_int_equal(stat_of(s, "/e", &st), 0);
    assert_true(st.ephemeral);
    assert_int_equal(st.owner, store_session_id(s));
}

static void a_multi_is_all_or_nothing(void **state)
{
    struct store *s = store_under_rules(state);
    struct store_stat before, after;
    create(s, "/a", "1", 0);
    create(s, "/a/kid", "k", 0);
    create(s, "/last", "l", 0);
    stat_of(s, "/a", &before);
    struct store_op ops[] = {
        store_op_check("/a", 0),
        store_op_set("/a", text("2"), 0),
        store_op_create("/b", text("b"), 0),
        store_op_delete("/a/kid", 0),
        store_op_create("/a/new_", text("n"), STORE_SEQUENTIAL),
        store_op_set("/a", text("3"), 0), /* version is 1 by now */
        store_op_delete("/last", -1),
    };
    struct store_request r = {.ops = ops, .ops_n = 7, .multi = true};
    assert_int_equal(store_run(s, &r), STORE_BAD_VERSION);
    for (int i = 0; i < 7; i++)
        assert_int_equal(ops[i].status, i == 5 ? STORE_BAD_VERSION : -ECANCELED);
    store_request_clear(&r);
    stat_of(s, "/a", &after);
    assert_memory_equal(&before, &after, sizeof(before));
    assert_true(holds(s, "/a", "1"));
    assert_true(holds(s, "/a/kid", "k"));
    assert_int_equal(stat_of(s, "/b", &after), -ENOENT);

    ops[5].version = 1;
    assert_int_equal(store_run(s, &r), 0);
    assert_string_equal((const char *)ops[4].result.p, "/a/new_0000000001");
    assert_int_equal(ops[1].stat.version, 1);
    assert_int_equal(ops[5].stat.version, 2);
    store_request_clear(&r);
    stat_of(s, "/b", &after);
    assert_int_equal(after.czxid, ops[5].stat.mzxid); /* one transaction */
    assert_true(holds(s, "/a", "3"));
    assert_int_equal(stat_of(s, "/a/kid", &after), -ENOENT);
    assert_int_equal(stat_of(s, "/last", &after), -ENOENT);
}

static void malformed_requests_are_refused(void **state)
{
    struct store *s = store_under_rules(state);
    struct store_op ops[] = {store_op_get("/", false), store_op_create("/x", text("x"), 0)};
    struct store_request multi_read = {.ops = ops, .ops_n = 2, .multi = true};
    struct store_request two_plain = {.ops = ops, .ops_n = 2};
    struct store_request none = {.ops = ops, .ops_n = 0, .multi = true};
    assert_int_equal(store_run(s, &multi_read), -EINVAL);
    assert_int_equal(store_run(s, &two_plain), -EINVAL);
    assert_int_equal(store_run(s, &none), -EINVAL);
    struct store_stat st;
    assert_int_equal(stat_of(s, "/x", &st), -ENOENT);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void children_are_listed_wholly_or_only_the_new_ones(void **state)
{
    struct store *s = store_under_rules(state);
    create(s, "/p", NULL, 0);
    create(s, "/p/one", NULL, 0);
    create(s, "/p/two", NULL, 0);
    struct store_op all = store_op_children("/p", false);
    assert_int_equal(run_op(s, &all), 0);
    assert_int_equal(all.names_n, 2);
    qsort(all.names, 2, sizeof(char *), by_text);
    assert_string_equal(all.names[0], "one");
    assert_string_equal(all.names[1], "two");
    assert_false(all.partial);
    free(all.names);

    create(s, "/other", NULL, 0);
    create(s, "/p/three", NULL, 0);
    del(s, "/p/one", -1);
    struct store_op news = store_op_children("/p", false);
    news.newer_than = all.as_of;
    assert_int_equal(run_op(s, &news), 0);
    assert_int_equal(news.names_n, news.partial ? 1 : 2); /* newer_than is a hint */
    bool three = false;
    for (int i = 0; i < news.names_n; i++)
        three |= strcmp(news.names[i], "three") == 0;
    assert_true(three);
    assert_int_equal(news.stat.children_n, 2); /* tells that something went */
    assert_true(news.as_of > all.as_of);
    free(news.names);
}

struct counted {
    struct store_watch w;
    int fired;
};

static void count_fired(struct store_watch *w)
{
    container_of(w, struct counted, w)->fired++;
}

static struct counted watch_on(struct executor *ex, const char *path, bool children)
{
    return (struct counted){
        .w = {.path = path, .children = children, .on = ex, .fired = count_fired}};
}

static void arm(struct store *s, enum store_op_type type, const char *path)
{
    struct store_op op = {.type = type, .path = path, .watch = true};
    run_op(s, &op);
    free((void *)op.result.p);
    free(op.names);
}

static void watches_fire_once_for_what_they_watch(void **state)
{
    struct store_rules *t = *state;
    struct store *s = t->s;
    struct counted node = watch_on(t->ex, "/a", false), kids = watch_on(t->ex, "/a", true);
    store_watch(s, &node.w);
    store_watch(s, &kids.w);
    arm(s, STORE_GET, "/a"); /* absent: arms nothing */
    arm(s, STORE_CHILDREN, "/a");
    create(s, "/a", NULL, 0);
    t->settle(t);
    assert_int_equal(node.fired, 0);
    del(s, "/a", -1);
    arm(s, STORE_EXISTS, "/a"); /* absent: armed for its creation */
    create(s, "/a", NULL, 0);
    t->settle(t);
    assert_int_equal(node.fired, 1);
    set(s, "/a", "x", -1); /* not armed again */
    t->settle(t);
    assert_int_equal(node.fired, 1);
    arm(s, STORE_GET, "/a");
    arm(s, STORE_CHILDREN, "/a");
    create(s, "/a/b", NULL, 0);
    t->settle(t);
    assert_int_equal(node.fired, 1); /* a child is no change of the node */
    assert_int_equal(kids.fired, 1);
    set(s, "/a", "y", -1);
    t->settle(t);
    assert_int_equal(node.fired, 2);
    arm(s, STORE_CHILDREN, "/a");
    set(s, "/a/b", "z", -1); /* a child's data is no change of the list */
    t->settle(t);
    assert_int_equal(kids.fired, 1);
    del(s, "/a/b", -1);
    t->settle(t);
    assert_int_equal(kids.fired, 2);
    arm(s, STORE_GET, "/a");
    arm(s, STORE_CHILDREN, "/a");
    del(s, "/a", -1); /* tells both */
    t->settle(t);
    assert_int_equal(node.fired, 3);
    assert_int_equal(kids.fired, 3);
    store_unwatch(s, &node.w);
    store_unwatch(s, &kids.w);
    store_unwatch(s, &kids.w); /* harmless */
}

static void a_failed_multi_and_a_read_without_watch_tell_nobody(void **state)
{
    struct store_rules *t = *state;
    struct counted node = watch_on(t->ex, "/a", false);
    create(t->s, "/a", NULL, 0);
    store_watch(t->s, &node.w);
    struct store_stat st;
    stat_of(t->s, "/a", &st);
    set(t->s, "/a", "x", -1);
    arm(t->s, STORE_GET, "/a");
    struct store_op ops[] = {store_op_set("/a", text("y"), -1), store_op_check("/nil", -1)};
    struct store_request r = {.ops = ops, .ops_n = 2, .multi = true};
    assert_int_equal(store_run(t->s, &r), -ENOENT);
    t->settle(t);
    assert_int_equal(node.fired, 0);
    store_unwatch(t->s, &node.w);
}

static void a_watch_taken_off_does_not_fire_though_it_was_told(void **state)
{
    struct store_rules *t = *state;
    struct counted *node = malloc(sizeof(*node));
    *node = watch_on(t->ex, "/a", false);
    store_watch(t->s, &node->w);
    arm(t->s, STORE_EXISTS, "/a");
    t->hold(t);
    create(t->s, "/a", NULL, 0); /* posted, not run */
    store_unwatch(t->s, &node->w);
    assert_int_equal(node->fired, 0);
    free(node);
    t->settle(t);
}

static void several_watches_on_one_path_all_fire(void **state)
{
    struct store_rules *t = *state;
    static struct counted w[3]; /* left registered: the store's end drops them */
    for (int i = 0; i < 3; i++) {
        w[i] = watch_on(t->ex, "/a", false);
        store_watch(t->s, &w[i].w);
    }
    arm(t->s, STORE_EXISTS, "/a");
    create(t->s, "/a", NULL, 0);
    t->settle(t);
    for (int i = 0; i < 3; i++)
        assert_int_equal(w[i].fired, 1);
}

struct heard {
    enum store_session states[8];
    int n;
};

static void hear(void *arg, enum store_session state)
{
    struct heard *h = arg;
    h->states[h->n++] = state;
}

static void an_expired_session_loses_its_nodes_and_watches_and_begins_anew(void **state)
{
    struct store_rules *t = *state;
    struct store *other;
    struct store_stat st;
    struct heard heard = {0};
    other = t->attach(t);
    struct counted mine = watch_on(t->ex, "/p", false), theirs = watch_on(t->ex, "/e", false);
    create(t->s, "/p", NULL, 0);
    create(t->s, "/e", NULL, STORE_EPHEMERAL);
    create(other, "/o", NULL, STORE_EPHEMERAL);
    store_watch(t->s, &mine.w);
    store_watch(other, &theirs.w);
    arm(t->s, STORE_GET, "/p");
    arm(other, STORE_GET, "/e");
    store_on_session(t->s, t->ex, hear, &heard);
    store_on_session(t->s, t->ex, hear, &heard);
    int64_t before = store_session_id(t->s);

    t->hold(t);
    t->expire(t, t->s);
    struct store_op exists = store_op_exists("/p", false);
    assert_int_equal(run_op(t->s, &exists), -ESTALE); /* until the listeners ran */
    assert_int_equal(stat_of(other, "/e", &st), -ENOENT);
    assert_int_equal(stat_of(other, "/o", &st), 0);
    t->settle(t);
    assert_int_equal(heard.n, 4);
    assert_int_equal(heard.states[0], STORE_EXPIRED);
    assert_int_equal(heard.states[1], STORE_EXPIRED);
    assert_int_equal(heard.states[2], STORE_CONNECTED);
    assert_int_equal(heard.states[3], STORE_CONNECTED);
    assert_int_equal(theirs.fired, 1);
    assert_int_not_equal(store_session_id(t->s), before);
    set(other, "/p", "x", -1);
    t->settle(t);
    assert_int_equal(mine.fired, 0); /* was armed by the old session */
    arm(t->s, STORE_GET, "/p");
    set(other, "/p", "y", -1);
    t->settle(t);
    assert_int_equal(mine.fired, 1);
    store_close(other);
    int gone = 0; /* once the store has heard of it, which may take it some round trips */
    for (int i = 0; i < 100000 && !gone; i++)
        gone = stat_of(t->s, "/o", &st);
    assert_int_equal(gone, -ENOENT);
    store_off_session(t->s, hear, &heard);
    store_off_session(t->s, hear, &heard);
    store_unwatch(t->s, &mine.w);
}

static void whole_paths_are_made_and_removed(void **state)
{
    struct store *s = store_under_rules(state);
    bool created;
    struct store_stat st;
    assert_int_equal(store_create_path(s, "/x/y/z", text("d"), &created), 0);
    assert_true(created);
    assert_true(holds(s, "/x/y/z", "d"));
    assert_true(holds(s, "/x/y", NULL));
    assert_int_equal(store_create_path(s, "/x/y/z", text("e"), &created), 0);
    assert_false(created);
    assert_true(holds(s, "/x/y/z", "d"));
    assert_int_equal(store_create_path(s, "/x/y2", text("d"), NULL), 0);
    assert_int_equal(store_delete_tree(s, "/x"), 0);
    assert_int_equal(stat_of(s, "/x", &st), -ENOENT);
    assert_int_equal(store_delete_tree(s, "/x"), 0);
}

struct batch_done {
    struct store_batch b;
    int done;
};

static void batch_is_done(struct store_batch *b)
{
    container_of(b, struct batch_done, b)->done++;
}

static void a_batch_is_answered_once_as_a_whole(void **state)
{
    struct store_rules *t = *state;
    struct arena a;
    struct batch_done d = {.done = 0};
    arena_init(&a, 0);
    store_batch_init(&d.b, &a);
    t->hold(t);
    store_batch_submit(&d.b, t->s, t->ex, batch_is_done);
    assert_int_equal(d.done, 0); /* never before submit returns */
    t->settle(t);
    assert_int_equal(d.done, 1);
    struct store_request *r[3];
    r[0] = store_batch_add(&d.b, store_op_create("/a", text("1"), 0));
    r[1] =
        store_batch_add_checked(&d.b, store_op_check("/a", 1), store_op_set("/a", text("2"), -1));
    r[2] = store_batch_add(&d.b, store_op_get("/a", false));
    store_batch_submit(&d.b, t->s, t->ex, batch_is_done);
    t->settle(t);
    assert_int_equal(d.done, 2);
    assert_int_equal(r[0]->status, 0);
    assert_int_equal(r[1]->status, STORE_BAD_VERSION);
    assert_int_equal(r[2]->status, 0);
    assert_int_equal(r[2]->ops[0].result.p[0], '1');
    store_batch_clear(&d.b);
    arena_free(&a);

    arena_init(&a, 600); /* too small for the second */
    store_batch_init(&d.b, &a);
    r[0] = store_batch_add(&d.b, store_op_create("/b", text("1"), 0));
    while (store_batch_add(&d.b, store_op_create("/c", text("1"), 0)))
        ;
    assert_int_equal(store_batch_run(&d.b, t->s), -ENOMEM);
    assert_int_equal(r[0]->status, -ENOMEM);
    struct store_stat st;
    assert_int_equal(stat_of(t->s, "/b", &st), -ENOENT); /* nothing was sent */
    arena_free(&a);
}

enum { WRITERS = 4, ROUNDS = 300 };

struct writer_arg {
    struct store *s;
    int i;
};

static void *write_many(void *p)
{
    struct writer_arg *a = p;
    char path[32];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(path, sizeof(path), "/w%d-%d", a->i, i);
        assert_int_equal(create(a->s, path, "x", 0), 0);
        /* everyone counts one node up; a lost race is tried again */
        int err;
        do {
            struct store_stat st;
            stat_of(a->s, "/count", &st);
            err = set(a->s, "/count", "x", st.version);
        } while (err == STORE_BAD_VERSION);
        assert_int_equal(err, 0);
    }
    return NULL;
}

static void writers_on_many_threads_are_served_one_by_one(void **state)
{
    struct store_rules *rules = *state;
    if (rules->simulated)
        skip();
    struct store *s = rules->s;
    struct counted kids = watch_on(rules->ex, "/", true);
    store_watch(s, &kids.w);
    arm(s, STORE_CHILDREN, "/");
    create(s, "/count", NULL, 0);
    pthread_t t[WRITERS];
    struct writer_arg args[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        args[i] = (struct writer_arg){s, i};
        pthread_create(&t[i], NULL, write_many, &args[i]);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(t[i], NULL);
    struct store_stat st;
    stat_of(s, "/count", &st);
    assert_int_equal(st.version, WRITERS * ROUNDS);
    stat_of(s, "/", &st);
    assert_int_equal(st.children_n, WRITERS * ROUNDS + 1);
    rules->settle(rules);
    assert_int_equal(kids.fired, 1);
    store_unwatch(s, &kids.w);
}

const struct store_rule store_rules[] = {
    {"nodes_need_a_parent_and_are_made_once", nodes_need_a_parent_and_are_made_once},
    {"bad_paths_are_refused", bad_paths_are_refused},
    {"versions_count_sets_and_guard_them", versions_count_sets_and_guard_them},
    {"null_and_empty_data_are_two_values", null_and_empty_data_are_two_values},
    {"only_empty_nodes_go", only_empty_nodes_go},
    {"sequence_numbers_have_ten_digits_and_are_never_given_twice",
     sequence_numbers_have_ten_digits_and_are_never_given_twice},
    {"ephemeral_nodes_have_an_owner_and_no_children",
     ephemeral_nodes_have_an_owner_and_no_children},
    {"a_multi_is_all_or_nothing", a_multi_is_all_or_nothing},
    {"malformed_requests_are_refused", malformed_requests_are_refused},
    {"children_are_listed_wholly_or_only_the_new_ones",
     children_are_listed_wholly_or_only_the_new_ones},
    {"watches_fire_once_for_what_they_watch", watches_fire_once_for_what_they_watch},
    {"a_failed_multi_and_a_read_without_watch_tell_nobody",
     a_failed_multi_and_a_read_without_watch_tell_nobody},
    {"a_watch_taken_off_does_not_fire_though_it_was_told",
     a_watch_taken_off_does_not_fire_though_it_was_told},
    {"several_watches_on_one_path_all_fire", several_watches_on_one_path_all_fire},
    {"an_expired_session_loses_its_nodes_and_watches_and_begins_anew",
     an_expired_session_loses_its_nodes_and_watches_and_begins_anew},
    {"whole_paths_are_made_and_removed", whole_paths_are_made_and_removed},
    {"a_batch_is_answered_once_as_a_whole", a_batch_is_answered_once_as_a_whole},
    {"writers_on_many_threads_are_served_one_by_one",
     writers_on_many_threads_are_served_one_by_one},
};
const size_t store_rules_n = sizeof(store_rules) / sizeof(store_rules[0]);

int store_rules_run(const char *pattern, int (*setup)(void **state), int (*teardown)(void **state))
{
    struct CMUnitTest *tests = calloc(store_rules_n, sizeof(*tests));
    if (!tests)
        return 1;
    for (size_t i = 0; i < store_rules_n; i++)
        tests[i] = (struct CMUnitTest){.name = store_rules[i].name,
                                       .test_func = store_rules[i].test,
                                       .setup_func = setup,
                                       .teardown_func = teardown};
    if (pattern)
        cmocka_set_test_filter(pattern);
    int failed = _cmocka_run_group_tests("store rules", tests, store_rules_n, NULL, NULL);
    free(tests);
    return failed;
}
