/* test_txn_manager.c - transactional ids on real logs: writes that wait for replicas, loads,
 * partitions that are won and lost, stops. Broker 1 of 3, on a simulated clock. */
#include "coordinator/txn_manager.h"

#include "coordinator/key_partition.h"
#include "replica/bench.h"

#define STATE_TOPIC "__transaction_state"

enum { PARTITIONS = 5 };

static const int32_t only_1[] = {1}, both[] = {1, 2};

struct rig {
    struct bench b;
    struct txn_manager *m;
    int64_t next_producer;
};

static int producer_id(void *arg, int64_t *id)
{
    *id = ((struct rig *)arg)->next_producer++;
    return 0;
}

static struct remote *open_none(void *arg, struct str host, int port, const char *client_id,
                                int64_t timeout_ms)
{
    (void)arg;
    (void)host;
    (void)port;
    (void)client_id;
    (void)timeout_ms;
    return NULL;
}

static void make_manager(struct rig *r)
{
    struct txn_manager_options o = {.ex = sim_executor_ex(r->b.sim),
                                    .replicas = r->b.m,
                                    .workers = r->b.workers,
                                    .clock = &r->b.clock.clock,
                                    .metadata = r->b.metadata,
                                    .config = {900000, 604800000, 10000, 3600000},
                                    .partitions_n = PARTITIONS,
                                    .load_buffer_size = 100, /* less than many batches */
                                    .loads_at_once = 1,
                                    .listener = STR_LIT("PLAINTEXT"),
                                    .opener = {open_none, NULL},
                                    .client_id = "1",
                                    .request_timeout_ms = 30000,
                                    .producer_id = producer_id,
                                    .arg = r};
    assert_int_equal(txn_manager_new(&o, &r->m), 0);
}

static void rig_open(struct rig *r)
{
    *r = (struct rig){.next_producer = 7};
    bench_open(&r->b);
    r->b.config.cleanup_policy = CLEANUP_COMPACT;
    make_manager(r);
}

static void stop_manager(struct rig *r)
{
    txn_manager_begin_shut_down(r->m);
    sim_executor_advance(r->b.sim, 10);
    assert_true(txn_manager_is_down(r->m));
}

static void rig_close(struct rig *r)
{
    stop_manager(r);
    struct txn_manager *m = r->m;
    bench_close(&r->b);
    txn_manager_free(m);
}

static void rig_restart(struct rig *r)
{
    stop_manager(r);
    bench_stop_logs(&r->b);
    txn_manager_free(r->m);
    bench_open_logs(&r->b);
    assert_int_equal(bench_metadata(&r->b, 3, "t"), KERR_NONE);
    make_manager(r);
}

static void lead(struct rig *r, int32_t number, int32_t leader, int32_t epoch, const int32_t *isr,
                 int32_t n)
{
    struct lead l = {.leader = leader,
                     .leader_epoch = epoch,
                     .partition_epoch = epoch,
                     .isr = isr,
                     .isr_n = n,
                     .replicas = isr,
                     .replicas_n = n,
                     .is_new = true};
    assert_int_equal(bench_lead(&r->b, STATE_TOPIC, number, l), KERR_NONE);
    sim_executor_drain(r->b.sim);
}

struct call {
    struct txn_call c;
    struct txn_call_partition p;
    bool done;
};

static void call_done(struct txn_call *c)
{
    struct call *call = container_of(c, struct call, c);
    assert_false(call->done);
    call->done = true;
}

static void begin(struct rig *r, struct call *c, enum txn_api api, const char *id, int64_t producer,
                  int16_t epoch)
{
    *c = (struct call){.c = {.api = api,
                             .id = str_of(id),
                             .producer_id = producer,
                             .epoch = epoch,
                             .timeout_ms = 60000,
                             .done = call_done},
                       .p = {.topic = STR_LIT("t"), .partition = 0}};
    c->c.partitions = &c->p;
    c->c.partitions_n = 1;
    txn_manager_submit(r->m, &c->c);
    sim_executor_drain(r->b.sim);
}

static enum kerr init(struct rig *r, struct call *c, const char *id)
{
    begin(r, c, TXN_CALL_INIT, id, -1, -1);
    assert_true(c->done);
    return c->c.error;
}

static void ids_outlive_a_restart(void **state)
{
    (void)state;
    struct rig r;
    struct call c;
    char id[16];
    rig_open(&r);
    for (int32_t p = 0; p < PARTITIONS; p++)
        lead(&r, p, 1, 1, only_1, 1);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 50; i++) {
            snprintf(id, sizeof(id), "id-%d", i);
            assert_int_equal(init(&r, &c, id), KERR_NONE);
            assert_int_equal(c.c.epoch, round);
        }
    begin(&r, &c, TXN_CALL_ADD, "id-3", 10, 1);
    assert_int_equal(c.c.error, KERR_NONE);
    rig_restart(&r);
    assert_int_equal(init(&r, &c, "id-1"), KERR_NOT_COORDINATOR);
    for (int32_t p = 0; p < PARTITIONS; p++)
        lead(&r, p, 1, 2, only_1, 1);
    for (int i = 4; i < 50; i++) {
        snprintf(id, sizeof(id), "id-%d", i);
        assert_int_equal(init(&r, &c, id), KERR_NONE);
        assert_int_equal(c.c.producer_id, 7 + i);
        assert_int_equal(c.c.epoch, 2);
    }
    begin(&r, &c, TXN_CALL_VERIFY, "id-3", 10, 1); /* its transaction goes on */
    assert_int_equal(c.c.error, KERR_NONE);
    assert_int_equal(c.p.error, KERR_NONE);
    rig_close(&r);
}

static void nothing_is_told_before_the_replicas_have_it(void **state)
{
    (void)state;
    struct rig r;
    struct call c, other;
    int32_t home = key_partition(STR_LIT("x"), PARTITIONS);
    rig_open(&r);
    lead(&r, home, 1, 1, both, 2);
    begin(&r, &c, TXN_CALL_INIT, "x", -1, -1);
    assert_false(c.done);
    begin(&r, &other, TXN_CALL_INIT, "x", -1, -1);
    assert_int_equal(other.c.error, KERR_CONCURRENT_TRANSACTIONS);
    sim_executor_advance(r.b.sim, 59000);
    assert_false(c.done);
    sim_executor_advance(r.b.sim, 2000); /* longer than a transaction may take */
    assert_true(c.done);
    assert_int_equal(c.c.error, KERR_COORDINATOR_NOT_AVAILABLE);
    begin(&r, &c, TXN_CALL_INIT, "x", -1, -1);
    assert_false(c.done);
    lead(&r, home, 2, 2, both, 2); /* another broker leads */
    assert_true(c.done);
    assert_int_equal(c.c.error, KERR_NOT_COORDINATOR);
    rig_close(&r);
}

static void a_stop_ends_what_waits(void **state)
{
    (void)state;
    struct rig r;
    struct call c, later;
    int32_t home = key_partition(STR_LIT("x"), PARTITIONS);
    rig_open(&r);
    lead(&r, home, 1, 1, both, 2);
    begin(&r, &c, TXN_CALL_INIT, "x", -1, -1);
    assert_false(c.done);
    txn_manager_begin_shut_down(r.m);
    sim_executor_advance(r.b.sim, 10);
    assert_true(txn_manager_is_down(r.m));
    assert_true(c.done);
    assert_int_equal(c.c.error, KERR_NOT_COORDINATOR);
    begin(&r, &later, TXN_CALL_INIT, "x", -1, -1);
    assert_int_equal(later.c.error, KERR_COORDINATOR_NOT_AVAILABLE);
    struct txn_manager *m = r.m;
    bench_close(&r.b);
    txn_manager_free(m);
}

static void a_partition_that_is_won_back_is_read_again(void **state)
{
    (void)state;
    struct rig r;
    struct call c;
    int32_t home = key_partition(STR_LIT("x"), PARTITIONS);
    rig_open(&r);
    lead(&r, home, 1, 1, only_1, 1);
    assert_int_equal(init(&r, &c, "x"), KERR_NONE);
    lead(&r, home, 2, 2, both, 2);
    assert_int_equal(init(&r, &c, "x"), KERR_NOT_COORDINATOR);
    lead(&r, home, 1, 3, only_1, 1);
    assert_int_equal(init(&r, &c, "x"), KERR_NONE);
    assert_int_equal(c.c.epoch, 1);
    rig_close(&r);
}

/* With an id that only this broker has; it has just been elected. */
static struct partition *elected_with_a_tail(struct rig *r, int32_t home)
{
    struct call c;
    enum kerr why;
    lead(r, home, 1, 1, both, 2);
    begin(r, &c, TXN_CALL_INIT, "x", -1, -1);
    assert_false(c.done);
    lead(r, home, 2, 2, both, 2);
    assert_true(c.done);
    lead(r, home, 1, 3, both, 2);
    struct partition *p = replica_manager_find(r->b.m, bench_tp(STATE_TOPIC, home), &why);
    assert_non_null(p);
    assert_int_equal(bench_hw(p), 0);
    assert_int_equal(init(r, &c, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
    return p;
}

/* Who comes next may not have it: what was answered from it would be forgotten. */
static void what_only_this_broker_has_is_not_told(void **state)
{
    (void)state;
    struct rig r;
    struct call c;
    int32_t home = key_partition(STR_LIT("x"), PARTITIONS);
    rig_open(&r);
    struct partition *p = elected_with_a_tail(&r, home);
    sim_executor_advance(r.b.sim, 20000);
    assert_int_equal(init(&r, &c, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
    bench_fetch(&r.b, p, 2, 0, NULL);
    assert_int_equal(init(&r, &c, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
    bench_fetch(&r.b, p, 2, 1, NULL);
    sim_executor_drain(r.b.sim);
    begin(&r, &c, TXN_CALL_INIT, "x", -1, -1);
    assert_false(c.done); /* writes the next epoch */
    bench_fetch(&r.b, p, 2, 2, NULL);
    sim_executor_drain(r.b.sim);
    assert_true(c.done);
    assert_int_equal(c.c.error, KERR_NONE);
    assert_int_equal(c.c.epoch, 1);
    partition_unref(p);
    rig_close(&r);
}

static void a_smaller_isr_ends_the_wait(void **state)
{
    (void)state;
    struct rig r;
    struct call c;
    int32_t home = key_partition(STR_LIT("x"), PARTITIONS);
    rig_open(&r);
    struct partition *p = elected_with_a_tail(&r, home);
    struct lead alone = {.leader = 1,
                         .leader_epoch = 4,
                         .partition_epoch = 4,
                         .isr = only_1,
                         .isr_n = 1,
                         .replicas = both,
                         .replicas_n = 2};
    assert_int_equal(bench_lead(&r.b, STATE_TOPIC, home, alone), KERR_NONE);
    sim_executor_drain(r.b.sim);
    assert_int_equal(init(&r, &c, "x"), KERR_NONE);
    assert_int_equal(c.c.epoch, 1);
    partition_unref(p);
    rig_close(&r);
}

/* min.insync.replicas stops what is written, and the high watermark with it; what can be known is
 * told all the same: here, that nothing can be written. */
static void too_small_an_isr_does_not_hold_a_load(void **state)
{
    static const int32_t all[] = {1, 2, 3};
    (void)state;
    for (int32_t isr_n = 1; isr_n <= 2; isr_n++) {
        struct rig r;
        struct call c;
        int32_t home = key_partition(STR_LIT("x"), PARTITIONS);
        rig_open(&r);
        r.b.config.min_insync_replicas = 3;
        struct partition *p = elected_with_a_tail(&r, home);
        struct lead few = {.leader = 1,
                           .leader_epoch = 4,
                           .partition_epoch = 4,
                           .isr = both,
                           .isr_n = isr_n,
                           .replicas = all,
                           .replicas_n = 3};
        assert_int_equal(bench_lead(&r.b, STATE_TOPIC, home, few), KERR_NONE);
        sim_executor_drain(r.b.sim);
        if (isr_n == 2) { /* the other one does not have it yet */
            assert_int_equal(init(&r, &c, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
            bench_fetch(&r.b, p, 2, 0, NULL);
            assert_int_equal(init(&r, &c, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
            bench_fetch(&r.b, p, 2, 1, NULL);
            sim_executor_drain(r.b.sim);
        }
        assert_int_equal(bench_hw(p), 0);
        assert_int_equal(init(&r, &c, "x"), KERR_COORDINATOR_NOT_AVAILABLE);
        partition_unref(p);
        rig_close(&r);
    }
}

static void who_is_deposed_while_it_waits(void **state)
{
    (void)state;
    struct rig r;
    struct call c;
    int32_t home = key_partition(STR_LIT("x"), PARTITIONS);
    rig_open(&r);
    struct partition *p = elected_with_a_tail(&r, home);
    lead(&r, home, 2, 4, both, 2);
    assert_int_equal(init(&r, &c, "x"), KERR_NOT_COORDINATOR);
    /* again, and this time faster than the news are taken: that wait is not for this election */
    struct lead l = {.leader = 1,
                     .leader_epoch = 5,
                     .partition_epoch = 5,
                     .isr = both,
                     .isr_n = 2,
                     .replicas = both,
                     .replicas_n = 2};
    assert_int_equal(bench_lead(&r.b, STATE_TOPIC, home, l), KERR_NONE);
    sim_executor_drain(r.b.sim);
    assert_int_equal(init(&r, &c, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
    l.leader = 2;
    l.leader_epoch = l.partition_epoch = 6;
    assert_int_equal(bench_lead(&r.b, STATE_TOPIC, home, l), KERR_NONE);
    l.leader = 1;
    l.leader_epoch = l.partition_epoch = 7;
    assert_int_equal(bench_lead(&r.b, STATE_TOPIC, home, l), KERR_NONE);
    sim_executor_drain(r.b.sim);
    assert_int_equal(init(&r, &c, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
    bench_fetch(&r.b, p, 2, 0, NULL);
    bench_fetch(&r.b, p, 2, 1, NULL);
    sim_executor_drain(r.b.sim);
    begin(&r, &c, TXN_CALL_INIT, "x", -1, -1);
    assert_false(c.done);
    partition_unref(p);
    rig_close(&r);
    assert_true(c.done);
}

static void a_stop_while_it_waits(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r);
    partition_unref(elected_with_a_tail(&r, key_partition(STR_LIT("x"), PARTITIONS)));
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_outlive_a_restart),
        cmocka_unit_test(nothing_is_told_before_the_replicas_have_it),
        cmocka_unit_test(a_stop_ends_what_waits),
        cmocka_unit_test(a_partition_that_is_won_back_is_read_again),
        cmocka_unit_test(what_only_this_broker_has_is_not_told),
        cmocka_unit_test(a_smaller_isr_ends_the_wait),
        cmocka_unit_test(too_small_an_isr_does_not_hold_a_load),
        cmocka_unit_test(who_is_deposed_while_it_waits),
        cmocka_unit_test(a_stop_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
