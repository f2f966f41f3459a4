/* The embedded store without a disk: ZooKeeper's rules for nodes, multis, watches and sessions, on
 * the simulated executor and, where threads matter, on a thread of its own. */
#include "base/sim_executor.h"
#include "base/uv_executor.h"
#include "metadata/store_batch.h"

#include "metadata/store_test.h"

struct sim {
    struct sim_clock clock;
    struct sim_executor *e;
    struct executor *ex;
    struct store *s;
};

static int sim_start(void **state)
{
    static struct sim sim;
    sim_clock_init(&sim.clock, 1000);
    sim.e = sim_executor_new(&sim.clock);
    sim.ex = sim_executor_ex(sim.e);
    sim.s = open_in_memory(sim.ex);
    *state = &sim;
    return 0;
}

static int sim_stop(void **state)
{
    struct sim *sim = *state;
    store_close(sim->s);
    sim_executor_drain(sim->e);
    sim_executor_free(sim->e);
    return 0;
}

static struct store *store_of(void **state)
{
    return ((struct sim *)*state)->s;
}

static void nodes_need_a_parent_and_are_made_once(void **state)
{
    struct store *s = store_of(state);
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
    struct store *s = store_of(state);
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
    struct store *s = store_of(state);
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
    assert_int_equal(st.mzxid, first.czxid + 2);
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
    struct store *s = store_of(state);
    create(s, "/n", "", 0);
    assert_true(holds(s, "/n", ""));
    set(s, "/n", NULL, -1);
    assert_true(holds(s, "/n", NULL));
}

static void only_empty_nodes_go(void **state)
{
    struct store *s = store_of(state);
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
    struct store *s = store_of(state);
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
    struct store *s = store_of(state);
    struct store_stat st;
    assert_int_equal(create(s, "/e", "x", STORE_EPHEMERAL), 0);
    assert_int_equal(create(s, "/e/c", NULL, 0), -EINVAL);
    assert_int_equal(stat_of(s, "/e", &st), 0);
    assert_true(st.ephemeral);
    assert_int_equal(st.owner, store_session_id(s));
}

static void a_multi_is_all_or_nothing(void **state)
{
    struct store *s = store_of(state);
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
    assert_int_equal(ops[2].stat.czxid, ops[5].stat.mzxid); /* one transaction */
    store_request_clear(&r);
    assert_true(holds(s, "/a", "3"));
    assert_int_equal(stat_of(s, "/a/kid", &after), -ENOENT);
    assert_int_equal(stat_of(s, "/last", &after), -ENOENT);
}

static void malformed_requests_are_refused(void **state)
{
    struct store *s = store_of(state);
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
    struct store *s = store_of(state);
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
    assert_true(news.partial);
    assert_int_equal(news.names_n, 1);
    assert_string_equal(news.names[0], "three");
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
    struct sim *sim = *state;
    struct store *s = sim->s;
    struct counted node = watch_on(sim->ex, "/a", false), kids = watch_on(sim->ex, "/a", true);
    store_watch(s, &node.w);
    store_watch(s, &kids.w);
    arm(s, STORE_GET, "/a"); /* absent: arms nothing */
    arm(s, STORE_CHILDREN, "/a");
    create(s, "/a", NULL, 0);
    sim_executor_drain(sim->e);
    assert_int_equal(node.fired, 0);
    del(s, "/a", -1);
    arm(s, STORE_EXISTS, "/a"); /* absent: armed for its creation */
    create(s, "/a", NULL, 0);
    sim_executor_drain(sim->e);
    assert_int_equal(node.fired, 1);
    set(s, "/a", "x", -1); /* not armed again */
    sim_executor_drain(sim->e);
    assert_int_equal(node.fired, 1);
    arm(s, STORE_GET, "/a");
    arm(s, STORE_CHILDREN, "/a");
    create(s, "/a/b", NULL, 0);
    sim_executor_drain(sim->e);
    assert_int_equal(node.fired, 1); /* a child is no change of the node */
    assert_int_equal(kids.fired, 1);
    set(s, "/a", "y", -1);
    sim_executor_drain(sim->e);
    assert_int_equal(node.fired, 2);
    arm(s, STORE_CHILDREN, "/a");
    set(s, "/a/b", "z", -1); /* a child's data is no change of the list */
    sim_executor_drain(sim->e);
    assert_int_equal(kids.fired, 1);
    del(s, "/a/b", -1);
    sim_executor_drain(sim->e);
    assert_int_equal(kids.fired, 2);
    arm(s, STORE_GET, "/a");
    arm(s, STORE_CHILDREN, "/a");
    del(s, "/a", -1); /* tells both */
    sim_executor_drain(sim->e);
    assert_int_equal(node.fired, 3);
    assert_int_equal(kids.fired, 3);
    store_unwatch(s, &node.w);
    store_unwatch(s, &kids.w);
    store_unwatch(s, &kids.w); /* harmless */
}

static void a_failed_multi_and_a_read_without_watch_tell_nobody(void **state)
{
    struct sim *sim = *state;
    struct counted node = watch_on(sim->ex, "/a", false);
    create(sim->s, "/a", NULL, 0);
    store_watch(sim->s, &node.w);
    struct store_stat st;
    stat_of(sim->s, "/a", &st);
    set(sim->s, "/a", "x", -1);
    arm(sim->s, STORE_GET, "/a");
    struct store_op ops[] = {store_op_set("/a", text("y"), -1), store_op_check("/nil", -1)};
    struct store_request r = {.ops = ops, .ops_n = 2, .multi = true};
    assert_int_equal(store_run(sim->s, &r), -ENOENT);
    sim_executor_drain(sim->e);
    assert_int_equal(node.fired, 0);
    store_unwatch(sim->s, &node.w);
}

static void a_watch_taken_off_does_not_fire_though_it_was_told(void **state)
{
    struct sim *sim = *state;
    struct counted *node = malloc(sizeof(*node));
    *node = watch_on(sim->ex, "/a", false);
    store_watch(sim->s, &node->w);
    arm(sim->s, STORE_EXISTS, "/a");
    create(sim->s, "/a", NULL, 0); /* posted, not run */
    store_unwatch(sim->s, &node->w);
    assert_int_equal(node->fired, 0);
    free(node);
    sim_executor_drain(sim->e);
}

static void several_watches_on_one_path_all_fire(void **state)
{
    struct sim *sim = *state;
    static struct counted w[3]; /* left registered: the store's end drops them */
    for (int i = 0; i < 3; i++) {
        w[i] = watch_on(sim->ex, "/a", false);
        store_watch(sim->s, &w[i].w);
    }
    arm(sim->s, STORE_EXISTS, "/a");
    create(sim->s, "/a", NULL, 0);
    sim_executor_drain(sim->e);
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
    struct sim *sim = *state;
    struct store *other;
    struct store_stat st;
    struct heard heard = {0};
    assert_int_equal(embedded_store_attach(sim->s, &other), 0);
    struct counted mine = watch_on(sim->ex, "/p", false), theirs = watch_on(sim->ex, "/e", false);
    create(sim->s, "/p", NULL, 0);
    create(sim->s, "/e", NULL, STORE_EPHEMERAL);
    create(other, "/o", NULL, STORE_EPHEMERAL);
    store_watch(sim->s, &mine.w);
    store_watch(other, &theirs.w);
    arm(sim->s, STORE_GET, "/p");
    arm(other, STORE_GET, "/e");
    store_on_session(sim->s, sim->ex, hear, &heard);
    store_on_session(sim->s, sim->ex, hear, &heard);
    int64_t before = store_session_id(sim->s);

    embedded_store_expire_session(sim->s);
    struct store_op exists = store_op_exists("/p", false);
    assert_int_equal(run_op(sim->s, &exists), -ESTALE); /* until the listeners ran */
    assert_int_equal(stat_of(other, "/e", &st), -ENOENT);
    assert_int_equal(stat_of(other, "/o", &st), 0);
    sim_executor_drain(sim->e);
    assert_int_equal(heard.n, 4);
    assert_int_equal(heard.states[0], STORE_EXPIRED);
    assert_int_equal(heard.states[1], STORE_EXPIRED);
    assert_int_equal(heard.states[2], STORE_CONNECTED);
    assert_int_equal(heard.states[3], STORE_CONNECTED);
    assert_int_equal(theirs.fired, 1);
    assert_int_not_equal(store_session_id(sim->s), before);
    set(other, "/p", "x", -1);
    sim_executor_drain(sim->e);
    assert_int_equal(mine.fired, 0); /* was armed by the old session */
    arm(sim->s, STORE_GET, "/p");
    set(other, "/p", "y", -1);
    sim_executor_drain(sim->e);
    assert_int_equal(mine.fired, 1);
    store_close(other);
    assert_int_equal(stat_of(sim->s, "/o", &st), -ENOENT);
    store_unwatch(sim->s, &mine.w);
}

static void whole_paths_are_made_and_removed(void **state)
{
    struct store *s = store_of(state);
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
    struct sim *sim = *state;
    struct arena a;
    struct batch_done d = {.done = 0};
    arena_init(&a, 0);
    store_batch_init(&d.b, &a);
    store_batch_submit(&d.b, sim->s, sim->ex, batch_is_done);
    assert_int_equal(d.done, 0); /* never before submit returns */
    sim_executor_drain(sim->e);
    assert_int_equal(d.done, 1);
    struct store_request *r[3];
    r[0] = store_batch_add(&d.b, store_op_create("/a", text("1"), 0));
    r[1] =
        store_batch_add_checked(&d.b, store_op_check("/a", 1), store_op_set("/a", text("2"), -1));
    r[2] = store_batch_add(&d.b, store_op_get("/a", false));
    store_batch_submit(&d.b, sim->s, sim->ex, batch_is_done);
    sim_executor_drain(sim->e);
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
    assert_int_equal(store_batch_run(&d.b, sim->s), -ENOMEM);
    assert_int_equal(r[0]->status, -ENOMEM);
    struct store_stat st;
    assert_int_equal(stat_of(sim->s, "/b", &st), -ENOENT); /* nothing was sent */
    arena_free(&a);
}

/* With threads. */

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
    struct store *s = open_in_memory(NULL);
    struct uv_executor *e;
    assert_int_equal(uv_executor_start("watcher", &e), 0);
    struct counted *kids = calloc(1, sizeof(*kids));
    *kids = watch_on(uv_executor_ex(e), "/", true);
    store_watch(s, &kids->w);
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
    store_close(s);
    uv_executor_stop(e);
    assert_int_equal(kids->fired, 1);
    free(kids);
}

struct waited {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct heard heard;
};

static void hear_and_signal(void *arg, enum store_session state)
{
    struct waited *w = arg;
    pthread_mutex_lock(&w->lock);
    hear(&w->heard, state);
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static void a_session_expires_on_its_own_thread(void **state)
{
    struct store *s = open_in_memory(NULL);
    struct uv_executor *e;
    struct waited w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {{0}, 0}};
    assert_int_equal(uv_executor_start("listener", &e), 0);
    store_on_session(s, uv_executor_ex(e), hear_and_signal, &w);
    create(s, "/e", NULL, STORE_EPHEMERAL);
    embedded_store_expire_session(s);
    pthread_mutex_lock(&w.lock);
    while (w.heard.n < 2)
        pthread_cond_wait(&w.cond, &w.lock);
    pthread_mutex_unlock(&w.lock);
    struct store_stat st;
    assert_int_equal(stat_of(s, "/e", &st), -ENOENT);
    store_close(s);
    uv_executor_stop(e);
}

#define sim_test(f) cmocka_unit_test_setup_teardown(f, sim_start, sim_stop)

UNIT_MAIN(sim_test(nodes_need_a_parent_and_are_made_once), sim_test(bad_paths_are_refused),
          sim_test(versions_count_sets_and_guard_them),
          sim_test(null_and_empty_data_are_two_values), sim_test(only_empty_nodes_go),
          sim_test(sequence_numbers_have_ten_digits_and_are_never_given_twice),
          sim_test(ephemeral_nodes_have_an_owner_and_no_children),
          sim_test(a_multi_is_all_or_nothing), sim_test(malformed_requests_are_refused),
          sim_test(children_are_listed_wholly_or_only_the_new_ones),
          sim_test(watches_fire_once_for_what_they_watch),
          sim_test(a_failed_multi_and_a_read_without_watch_tell_nobody),
          sim_test(a_watch_taken_off_does_not_fire_though_it_was_told),
          sim_test(several_watches_on_one_path_all_fire),
          sim_test(an_expired_session_loses_its_nodes_and_watches_and_begins_anew),
          sim_test(whole_paths_are_made_and_removed), sim_test(a_batch_is_answered_once_as_a_whole),
          unit_test(writers_on_many_threads_are_served_one_by_one),
          unit_test(a_session_expires_on_its_own_thread))
