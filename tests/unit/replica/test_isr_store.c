/* ISR changes that the leader writes to the store itself (below 2.7-IV2). */
#include "bench.h"

#include "base/logline.h"
#include "metadata/paths.h"
#include "metadata/store_test.h"
#include "metadata/znode.h"
#include "replica/isr_store.h"

#define STATE "/brokers/topics/t/partitions/0/state"

/* The store as the ISR store sees it: so many of its answers to writes and reads get an error, and
 * what was asked happens all the same, or does not. */
struct flaky {
    struct store store;
    struct store *under;
    int writes, reads, status;
    bool happens;
    struct store_request *hurt; /* on its way with the error; one at a time */
    void (*done)(struct store_request *r);
    struct task task;
};

struct rig {
    struct bench b;
    struct flaky flaky;
    struct store *store;
    struct isr_store *s;
    struct partition *p;
};

static struct flaky *the_flaky;

static void answer_with_error(struct store_request *r)
{
    r->status = the_flaky->status;
    the_flaky->hurt = NULL;
    the_flaky->done(r);
}

static void did_not_happen(struct task *t)
{
    struct flaky *f = container_of(t, struct flaky, task);
    answer_with_error(f->hurt);
}

static void flaky_submit(struct store *s, struct list *requests)
{
    struct flaky *f = container_of(s, struct flaky, store);
    struct store_request *r = list_entry(requests->next, struct store_request, task.link);
    int *left = r->ops->type == STORE_SET ? &f->writes : &f->reads;
    bool spared = r->ops->type != STORE_SET && r->ops->type != STORE_GET;
    if (spared || *left == 0) {
        f->under->ops->submit(f->under, requests);
        return;
    }
    --*left;
    assert_null(f->hurt);
    f->hurt = r;
    f->done = r->done;
    if (f->happens) {
        r->done = answer_with_error;
        f->under->ops->submit(f->under, requests);
    } else {
        task_init(&f->task, did_not_happen);
        executor_post(r->done_on, &f->task);
    }
}

static const struct store_ops flaky_ops = {.submit = flaky_submit};

static void rig_open(struct rig *g)
{
    memset(g, 0, sizeof(*g));
    logline_set_level(LOGLINE_FATAL);
    g->b.id = 1;
    bench_open_as(&g->b, 1);
    g->store = open_in_memory(sim_executor_ex(g->b.sim));
    g->flaky = (struct flaky){.store = {&flaky_ops}, .under = g->store};
    the_flaky = &g->flaky;
    struct isr_store_options o = {
        .broker_id = 1, .store = &g->flaky.store, .ex = sim_executor_ex(g->b.sim)};
    g->s = isr_store_new(&o);
    bench_stop_logs(&g->b);
    g->b.isr_writer = isr_store_writer(g->s);
    bench_open_logs(&g->b);
    assert_int_equal(store_create_path(g->store, STATE,
                                       text("{\"controller_epoch\":0,\"leader\":1,\"version\":1,"
                                            "\"leader_epoch\":0,\"isr\":[1]}"),
                                       NULL),
                     0);
    assert_int_equal(store_create_path(g->store, "/isr_change_notification", BYTES_NULL, NULL), 0);
    static const int32_t all[] = {1, 2, 3};
    assert_int_equal(bench_lead(&g->b, "t", 0,
                                (struct lead){.leader = 1,
                                              .isr = all,
                                              .isr_n = 1,
                                              .replicas = all,
                                              .replicas_n = 3,
                                              .is_new = true,
                                              .controller_epoch = 7}),
                     KERR_NONE);
    enum kerr why;
    g->p = replica_manager_find(g->b.m, bench_tp("t", 0), &why);
}

static void rig_close(struct rig *g)
{
    isr_store_stop(g->s);
    partition_unref(g->p);
    sim_executor_drain(g->b.sim);
    store_close(g->store);
    sim_executor_drain(g->b.sim);
    isr_store_free(g->s);
    bench_close(&g->b);
}

static int isr_size(struct rig *g)
{
    int32_t ids[4];
    struct isr_view v = {ids, 4, 0, false};
    partition_isr(g->p, &v);
    return v.pending ? -v.n : v.n;
}

static void state_is(struct rig *g, int32_t version, const char *want)
{
    struct bytes data;
    struct store_stat stat;
    assert_int_equal(store_get(g->store, STATE, &data, &stat), 0);
    assert_int_equal(stat.version, version);
    assert_int_equal(data.len, strlen(want));
    assert_memory_equal(data.p, want, data.len);
    free((void *)data.p);
}

static int notices(struct rig *g)
{
    struct store_op list = store_op_children("/isr_change_notification", false);
    assert_int_equal(run_op(g->store, &list), 0);
    free(list.names);
    return list.names_n;
}

static void a_change_is_written_and_told_when_it_is_quiet(void **state)
{
    struct rig g;
    rig_open(&g);
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    sim_executor_drain(g.b.sim);
    state_is(
        &g, 1,
        "{\"controller_epoch\":0,\"leader\":1,\"version\":1,\"leader_epoch\":0,\"isr\":[1,2]}");
    assert_int_equal(isr_size(&g), 2);
    sim_executor_advance(g.b.sim, 4000);
    assert_int_equal(notices(&g), 0);
    bench_fetch(&g.b, g.p, 3, 0, NULL);
    sim_executor_drain(g.b.sim);
    assert_int_equal(isr_size(&g), 3);
    sim_executor_advance(g.b.sim, 4000);
    assert_int_equal(notices(&g), 0); /* one more came */
    sim_executor_advance(g.b.sim, 4000);
    assert_int_equal(notices(&g), 1);
    sim_executor_advance(g.b.sim, 100000);
    assert_int_equal(notices(&g), 1);
    rig_close(&g);
}

static void a_state_that_the_controller_changed_stays_as_it_is(void **state)
{
    struct rig g;
    rig_open(&g);
    static const char changed[] =
        "{\"controller_epoch\":8,\"leader\":2,\"version\":1,\"leader_epoch\":1,\"isr\":[2]}";
    struct store_op op = store_op_set(STATE, text(changed), 0);
    assert_int_equal(run_op(g.store, &op), 0);
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    sim_executor_drain(g.b.sim);
    state_is(&g, 1, changed);
    assert_int_equal(isr_size(&g), -1); /* pending until the LeaderAndIsr */
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    sim_executor_drain(g.b.sim);
    state_is(&g, 1, changed);
    rig_close(&g);
}

/* The answer to a first write had got lost: the state is what we want it to be. */
static void what_is_there_already_is_a_success(void **state)
{
    struct rig g;
    rig_open(&g);
    static const char ours[] =
        "{\"controller_epoch\":0,\"leader\":1,\"version\":1,\"leader_epoch\":0,\"isr\":[1,2]}";
    struct store_op op = store_op_set(STATE, text(ours), 0);
    assert_int_equal(run_op(g.store, &op), 0);
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    sim_executor_drain(g.b.sim);
    state_is(&g, 1, ours);
    assert_int_equal(isr_size(&g), 2);
    rig_close(&g);
}

static void a_topic_that_is_gone_changes_nothing(void **state)
{
    struct rig g;
    rig_open(&g);
    assert_int_equal(store_delete_tree(g.store, "/brokers/topics/t"), 0);
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    sim_executor_drain(g.b.sim);
    assert_int_equal(isr_size(&g), -1);
    rig_close(&g);
}

static void a_stop_with_a_change_on_its_way(void **state)
{
    struct rig g;
    rig_open(&g);
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    rig_close(&g);
}

static const int passing[] = {-EIO, -ENOMEM, -ETIMEDOUT, -EINVAL, -ESTALE};

/* Nothing has changed in the store, so no LeaderAndIsr comes: the change is taken back, and the
 * next fetch makes it anew. */
static void a_write_that_did_not_happen_is_taken_back(void **state)
{
    for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++) {
        struct rig g;
        rig_open(&g);
        g.flaky.writes = 1;
        g.flaky.reads = 2; /* nor can it be seen at once */
        g.flaky.status = passing[i];
        bench_fetch(&g.b, g.p, 2, 0, NULL);
        sim_executor_drain(g.b.sim);
        assert_int_equal(isr_size(&g), -1);
        assert_int_equal(g.flaky.reads, 2); /* not in circles */
        sim_executor_advance(g.b.sim, 2500);
        assert_int_equal(g.flaky.reads, 0);
        assert_int_equal(isr_size(&g), -1);
        sim_executor_advance(g.b.sim, 1000);
        assert_int_equal(isr_size(&g), 1);
        bench_fetch(&g.b, g.p, 2, 0, NULL);
        sim_executor_drain(g.b.sim);
        assert_int_equal(isr_size(&g), 2);
        rig_close(&g);
    }
}

static void a_write_whose_answer_was_an_error_is_found(void **state)
{
    for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++) {
        struct rig g;
        rig_open(&g);
        g.flaky.writes = 1;
        g.flaky.happens = true;
        g.flaky.status = passing[i];
        bench_fetch(&g.b, g.p, 2, 0, NULL);
        sim_executor_drain(g.b.sim);
        assert_int_equal(isr_size(&g), -1);
        sim_executor_advance(g.b.sim, 1000);
        assert_int_equal(isr_size(&g), 2);
        rig_close(&g);
    }
}

static void a_stop_before_another_look(void **state)
{
    struct rig g;
    rig_open(&g);
    g.flaky.writes = 1;
    g.flaky.status = -EIO;
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    sim_executor_drain(g.b.sim);
    rig_close(&g);
}

UNIT_MAIN(unit_test(a_change_is_written_and_told_when_it_is_quiet),
          unit_test(a_state_that_the_controller_changed_stays_as_it_is),
          unit_test(what_is_there_already_is_a_success),
          unit_test(a_topic_that_is_gone_changes_nothing),
          unit_test(a_stop_with_a_change_on_its_way),
          unit_test(a_write_that_did_not_happen_is_taken_back),
          unit_test(a_write_whose_answer_was_an_error_is_found),
          unit_test(a_stop_before_another_look))
