/* Who follows hears of each change by another session, of his own on demand, and of all again when
 * his session was lost. */
#include <errno.h>
#include <pthread.h>

#include "acl/acl_follow.h"
#include "base/uv_executor.h"
#include "metadata/store_test.h"

#include "acl_test.h"

enum { MOST = 16 };

/* Follows with two sessions on one tree. */
struct world {
    struct store *s, *other;
    struct uv_executor *ex;
    struct acl_follow *f;
    struct arena a;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct { /* the picture */
        char name[32];
        enum acl_pattern_type kind;
        int entries; /* -1: cannot be read */
    } seen[MOST];
    int seen_n, rounds, fail_next;
    bool closed;
};

static int now(void *arg, const struct acl_stored *one)
{
    struct world *w = arg;
    int at = 0, rc = 0;
    pthread_mutex_lock(&w->lock);
    if (w->fail_next > 0) {
        w->fail_next--;
        rc = -ENOMEM;
    }
    while (at < w->seen_n &&
           (!str_eqz(one->pattern.name, w->seen[at].name) || one->pattern.kind != w->seen[at].kind))
        at++;
    if (!rc && one->status == -ENOENT) {
        if (at < w->seen_n)
            w->seen[at] = w->seen[--w->seen_n];
    } else if (!rc) {
        snprintf(w->seen[at].name, sizeof(w->seen[at].name), "%.*s", STR_ARG(one->pattern.name));
        w->seen[at].kind = one->pattern.kind;
        w->seen[at].entries = one->status ? -1 : one->node.n;
        w->seen_n += at == w->seen_n;
    }
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static int told(void *arg)
{
    struct world *w = arg;
    pthread_mutex_lock(&w->lock);
    w->rounds++;
    pthread_cond_broadcast(&w->cond);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static int known(void *arg, struct arena *a, struct acl_pattern **out, int *n)
{
    struct world *w = arg;
    *out = arena_array(a, struct acl_pattern, MOST);
    pthread_mutex_lock(&w->lock);
    for (*n = 0; *n < w->seen_n; ++*n)
        (*out)[*n] = (struct acl_pattern){ACL_TOPIC, w->seen[*n].kind,
                                          arena_str(a, str_of(w->seen[*n].name))};
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static void closed(void *arg)
{
    struct world *w = arg;
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    pthread_cond_broadcast(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

/* The lock is held. -2: not there. */
static int entries_of(const struct world *w, const char *name, enum acl_pattern_type kind)
{
    for (int i = 0; i < w->seen_n; i++)
        if (strcmp(w->seen[i].name, name) == 0 && w->seen[i].kind == kind)
            return w->seen[i].entries;
    return -2;
}

static void await_entries(struct world *w, const char *name, enum acl_pattern_type kind, int n)
{
    pthread_mutex_lock(&w->lock);
    while (entries_of(w, name, kind) != n)
        pthread_cond_wait(&w->cond, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static int begin_at(void **state, const struct clock *clock)
{
    struct world *w = calloc(1, sizeof(*w));
    struct acl_follow_options o = {.now = now, .told = told, .known = known, .closed = closed};
    w->s = open_in_memory(NULL);
    assert_int_equal(embedded_store_attach(w->s, &w->other), 0);
    assert_int_equal(uv_executor_start("test", &w->ex), 0);
    arena_init(&w->a, 0);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->cond, NULL);
    assert_int_equal(acl_store_paths(w->s), 0);
    o.store = w->s;
    o.ex = uv_executor_ex(w->ex);
    o.clock = clock;
    o.arg = w;
    assert_int_equal(acl_follow_new(&o, &w->f), 0);
    *state = w;
    return 0;
}

static int begin(void **state)
{
    return begin_at(state, clock_real());
}

struct closing {
    struct task task;
    struct world *w;
};

static void close_follow(struct task *t)
{
    acl_follow_close(container_of(t, struct closing, task)->w->f);
}

static int end(void **state)
{
    struct world *w = *state;
    struct closing c = {.w = w};
    task_init(&c.task, close_follow);
    executor_post(uv_executor_ex(w->ex), &c.task);
    pthread_mutex_lock(&w->lock);
    while (!w->closed)
        pthread_cond_wait(&w->cond, &w->lock);
    pthread_mutex_unlock(&w->lock);
    store_close(w->other);
    store_close(w->s);
    uv_executor_stop(w->ex);
    arena_free(&w->a);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->cond);
    free(w);
    return 0;
}

static void add(struct world *w, struct store *by, const char *text, const char *who)
{
    int error = 1;
    struct acl_binding b = binding(text, ACL_ALLOW, who, "read");
    assert_int_equal(acl_store_add(by, &b, 1, &error, &w->a, NULL), 0);
    assert_int_equal(error, 0);
}

static void delete_all(struct world *w, struct store *by)
{
    struct acl_filter f = ACL_FILTER_ALL;
    struct acl_deleted *gone;
    int n;
    assert_int_equal(acl_store_delete(by, &f, 1, &w->a, &gone, &n, NULL), 0);
}

static void changes_by_others(void **state)
{
    struct world *w = *state;
    add(w, w->other, "topic:before", "User:a"); /* its notice is there at the start */
    acl_follow_start(w->f);
    await_entries(w, "before", ACL_LITERAL, 1);
    add(w, w->other, "topic:t", "User:a");
    await_entries(w, "t", ACL_LITERAL, 1);
    add(w, w->other, "topic:t", "User:b");
    await_entries(w, "t", ACL_LITERAL, 2);
    add(w, w->other, "+topic:t", "User:b");
    await_entries(w, "t", ACL_PREFIXED, 1);
    delete_all(w, w->other);
    await_entries(w, "t", ACL_PREFIXED, -2);
    await_entries(w, "t", ACL_LITERAL, -2);
    await_entries(w, "before", ACL_LITERAL, -2);
}

static void a_node_that_cannot_be_read(void **state)
{
    struct world *w = *state;
    acl_follow_start(w->f);
    create(w->other, "/kafka-acl/Topic/t", "nonsense", 0);
    create(w->other, "/kafka-acl-changes/acl_changes_", "what?", STORE_SEQUENTIAL);
    create(w->other, "/kafka-acl-changes/acl_changes_", "Topic:t", STORE_SEQUENTIAL);
    await_entries(w, "t", ACL_LITERAL, -1);
    set(w->other, "/kafka-acl/Topic/t", "{\"version\":1,\"acls\":[]}", STORE_ANY_VERSION);
    create(w->other, "/kafka-acl-changes/acl_changes_", "TOPIC:t", STORE_SEQUENTIAL);
    await_entries(w, "t", ACL_LITERAL, 0);
}

static void own_changes_on_demand(void **state)
{
    struct world *w = *state;
    struct acl_pattern two[2] = {pattern("topic:t"), pattern("topic:none")};
    acl_follow_start(w->f);
    for (int i = 0; i < 20; i++) {
        char who[32];
        snprintf(who, sizeof(who), "User:%d", i);
        add(w, w->s, "topic:t", who);
        acl_follow_refresh(w->f, two, 2);
        pthread_mutex_lock(&w->lock);
        assert_int_equal(entries_of(w, "t", ACL_LITERAL), i + 1);
        pthread_mutex_unlock(&w->lock);
    }
    acl_follow_refresh(w->f, NULL, 0);
}

static void what_was_missed_with_the_session(void **state)
{
    struct world *w = *state;
    acl_follow_start(w->f);
    add(w, w->other, "topic:stays", "User:a");
    add(w, w->other, "topic:goes", "User:a");
    await_entries(w, "stays", ACL_LITERAL, 1);
    await_entries(w, "goes", ACL_LITERAL, 1);
    /* as if notices had come and gone meanwhile: the nodes change without any */
    del(w->other, "/kafka-acl/Topic/goes", STORE_ANY_VERSION);
    create(w->other, "/kafka-acl/Topic/comes", "{\"version\":1,\"acls\":[]}", 0);
    embedded_store_expire_session(w->s);
    await_entries(w, "goes", ACL_LITERAL, -2);
    await_entries(w, "comes", ACL_LITERAL, 0);
    await_entries(w, "stays", ACL_LITERAL, 1);
    add(w, w->other, "topic:comes", "User:a"); /* and it goes on */
    await_entries(w, "comes", ACL_LITERAL, 1);
}

static void what_could_not_be_taken_comes_again(void **state)
{
    struct world *w = *state;
    acl_follow_start(w->f);
    pthread_mutex_lock(&w->lock);
    w->fail_next = 1;
    pthread_mutex_unlock(&w->lock);
    add(w, w->other, "topic:t", "User:a");
    await_entries(w, "t", ACL_LITERAL, 1);
    pthread_mutex_lock(&w->lock);
    assert_int_equal(w->fail_next, 0);
    pthread_mutex_unlock(&w->lock);
}

static int64_t much_later(const struct clock *c)
{
    (void)c;
    return clock_wall_ms(clock_real()) + 16 * 60 * 1000;
}
static int64_t real_mono(const struct clock *c)
{
    (void)c;
    return clock_mono_ns(clock_real());
}
static const struct clock later_clock = {much_later, real_mono};

static int begin_later(void **state)
{
    return begin_at(state, &later_clock);
}

static void old_notices_go(void **state)
{
    struct world *w = *state;
    struct store_stat st[2];
    /* by the reader's clock they are sixteen minutes old */
    add(w, w->other, "topic:t", "User:a");
    add(w, w->other, "+topic:t", "User:a");
    acl_follow_start(w->f);
    await_entries(w, "t", ACL_LITERAL, 1);
    await_entries(w, "t", ACL_PREFIXED, 1);
    do { /* they are removed right behind, by another thread */
        assert_int_equal(stat_of(w->other, PATH_ACL_CHANGES, &st[0]), 0);
        assert_int_equal(stat_of(w->other, PATH_ACL_PREFIXED_CHANGES, &st[1]), 0);
    } while (st[0].children_n || st[1].children_n);
    assert_true(
        holds(w->other, "/kafka-acl/Topic/t",
              "{\"acls\":[{\"principal\":\"User:a\",\"permissionType\":\"Allow\",\"host\":\"*\","
              "\"operation\":\"Read\"}],\"version\":1}"));
}

static void closed_at_any_moment(void **state)
{
    struct world *w = *state; /* the teardown closes while all that is under way */
    for (int i = 0; i < 20; i++) {
        char who[32];
        snprintf(who, sizeof(who), "User:%d", i);
        add(w, w->other, "topic:t", who);
    }
    acl_follow_start(w->f);
    embedded_store_expire_session(w->s);
}

#define in_world(f) cmocka_unit_test_setup_teardown(f, begin, end)
UNIT_MAIN(in_world(changes_by_others), in_world(a_node_that_cannot_be_read),
          in_world(own_changes_on_demand), in_world(what_was_missed_with_the_session),
          in_world(what_could_not_be_taken_comes_again), in_world(closed_at_any_moment),
          cmocka_unit_test_setup_teardown(old_notices_go, begin_later, end))
