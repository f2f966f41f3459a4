/* What brokers ask of the controller: ISR changes, to be relieved, producer ids. */
#include "controller/sim_cluster.h"

#include "protocol/api.h"
#include "protocol/msg/allocate_producer_ids.h"
#include "protocol/msg/alter_partition.h"
#include "protocol/msg/controlled_shutdown.h"

static struct sim_cluster cluster;

struct call {
    struct controller_call call;
    bool done;
    union {
        struct alter_partition_response alter;
        struct controlled_shutdown_response shutdown;
        struct allocate_producer_ids_response ids;
    } response;
};

static void on_done(struct controller_call *call)
{
    container_of(call, struct call, call)->done = true;
}

static void begin(struct sim_cluster *c, int32_t broker, struct call *k, int16_t api, int version,
                  const void *request)
{
    memset(k, 0, sizeof(*k));
    msg_init(api_find(api)->response, &k->response);
    k->call = (struct controller_call){.api_key = api,
                                       .version = version,
                                       .request = request,
                                       .response = &k->response,
                                       .arena = &c->arena,
                                       .done_on = c->ex,
                                       .done = on_done};
    controller_call(c->brokers[broker].controller, &k->call);
}

static void finish(struct sim_cluster *c, struct call *k)
{
    sim_drain(c);
    assert_true(k->done);
}

static int64_t epoch_of(struct sim_cluster *c, int32_t broker)
{
    return broker_registrar_epoch(c->brokers[broker].registrar);
}

/* ---- AlterPartition ---- */

struct alter {
    int32_t broker;    /* who asks */
    int64_t epoch_off; /* added to its broker epoch */
    int32_t partition;
    int32_t leader_epoch, partition_epoch;
    const int32_t *isr;
    int32_t isr_n;
    bool recovering, other_id;
};

/* Sends it at a version; the error of the whole or of the partition. */
static int alter(struct sim_cluster *c, int version, struct alter a, struct call *k)
{
    static struct alter_partition_request_new_isr_with_epoch members[8];
    static struct alter_partition_request_partition p;
    static struct alter_partition_request_topic t;
    static struct alter_partition_request q;
    alter_partition_request_init(&q);
    alter_partition_request_topic_init(&t);
    alter_partition_request_partition_init(&p);
    q.broker_id = a.broker;
    q.broker_epoch = epoch_of(c, a.broker) + a.epoch_off;
    q.topics.v = &t;
    q.topics.n = 1;
    struct sim_broker *active = sim_active(c);
    const struct metadata_snapshot *s = metadata_acquire(active->cache);
    t.topic_id = metadata_topic(s, STR_LIT("t"))->id;
    metadata_release(s);
    t.topic_id.b[0] ^= a.other_id;
    t.topic_name = STR_LIT("t");
    t.partitions.v = &p;
    t.partitions.n = 1;
    p.partition_index = a.partition;
    p.leader_epoch = a.leader_epoch;
    p.partition_epoch = a.partition_epoch;
    p.leader_recovery_state = a.recovering;
    for (int32_t i = 0; i < a.isr_n && version >= 3; i++) {
        alter_partition_request_new_isr_with_epoch_init(&members[i]);
        members[i].broker_id = a.isr[i];
    }
    p.new_isr_with_epochs.v = members;
    p.new_isr_with_epochs.n = version >= 3 ? a.isr_n : 0;
    p.new_isr.v = (int32_t *)a.isr;
    p.new_isr.n = version < 3 ? a.isr_n : 0;
    begin(c, active->id, k, API_ALTER_PARTITION, version, &q);
    finish(c, k);
    assert_int_equal(k->call.refused, KERR_NONE);
    if (k->response.alter.error_code)
        return k->response.alter.error_code;
    assert_int_equal(k->response.alter.topics.n, 1);
    assert_int_equal(k->response.alter.topics.v[0].partitions.n, 1);
    return k->response.alter.topics.v[0].partitions.v[0].error_code;
}

static const int32_t replicas[] = {1, 0, 2};

/* t-0 on 1, 0, 2, led by 1. */
static void open_with_topic(struct sim_cluster *c)
{
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "t", replicas, 3), 0);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 1);
}

static void an_isr_is_written_told_and_answered(void **state)
{
    struct sim_cluster *c = &cluster;
    for (int version = 0; version <= 3; version++) {
        struct call k;
        int32_t epoch;
        open_with_topic(c);
        int lisr = c->brokers[1].lisr;
        struct alter a = {.broker = 1, .isr = (int32_t[]){1, 2}, .isr_n = 2};
        assert_int_equal(alter(c, version, a, &k), 0);
        struct partition_node p = sim_state(c, "t", 0, &epoch);
        assert_int_equal(epoch, 1);
        assert_int_equal(p.isr.n, 2);
        assert_int_equal(p.isr.v[1], 2);
        assert_int_equal(p.leader_epoch, 0); /* as it was */
        const struct alter_partition_response_partition *r =
            &k.response.alter.topics.v[0].partitions.v[0];
        assert_int_equal(r->partition_epoch, 1);
        assert_int_equal(r->leader_id, 1);
        assert_int_equal(r->isr.n, 2);
        for (int i = 0; i < 3; i++) {
            const struct metadata_snapshot *s = metadata_acquire(c->brokers[i].cache);
            assert_int_equal(metadata_partition(s, STR_LIT("t"), 0)->isr_n, 2);
            metadata_release(s);
        }
        assert_int_equal(c->brokers[1].lisr, lisr);
        assert_int_equal(alter(c, version, a, &k), 0); /* again: as done before */
        sim_state(c, "t", 0, &epoch);
        assert_int_equal(epoch, 1);
        a.partition_epoch = 1;
        a.isr = replicas;
        a.isr_n = 3;
        assert_int_equal(alter(c, version, a, &k), 0);
        sim_stop(c);
    }
}

/* The write was done, and its answer lost with the connection: asked for again it finds itself. */
static void a_write_whose_answer_was_lost_counts(void **state)
{
    struct sim_cluster *c = &cluster;
    for (int ours = 0; ours < 2; ours++) {
        struct call k;
        int32_t epoch;
        open_with_topic(c);
        struct partition_node p = sim_state(c, "t", 0, &epoch);
        p.isr = (struct id_list){(int32_t[]){1, 2}, 2};
        p.controller_epoch += !ours; /* else by nobody that we know */
        struct store_op op = store_op_set("/brokers/topics/t/partitions/0/state",
                                          znode_partition_encode(&p, &c->arena), epoch);
        assert_int_equal(run_op(c->base, &op), 0);
        struct alter a = {.broker = 1, .isr = (int32_t[]){1, 2}, .isr_n = 2};
        assert_int_equal(alter(c, 3, a, &k), ours ? KERR_NONE : KERR_INVALID_UPDATE_VERSION);
        if (ours)
            assert_int_equal(k.response.alter.topics.v[0].partitions.v[0].partition_epoch, 1);
        sim_state(c, "t", 0, &epoch);
        assert_int_equal(epoch, 1);
        if (ours) { /* and the next one goes on from there */
            a.partition_epoch = 1;
            a.isr = replicas;
            a.isr_n = 3;
            assert_int_equal(alter(c, 3, a, &k), 0);
        }
        sim_stop(c);
    }
}

static void each_reason_to_refuse_has_its_code(void **state)
{
    struct sim_cluster *c = &cluster;
    struct call k;
    open_with_topic(c);
    struct alter first = {.broker = 1, .isr = (int32_t[]){1, 2}, .isr_n = 2};
    assert_int_equal(alter(c, 3, first, &k), 0); /* partition epoch 1, ISR 1 2 */
    static const int32_t two[] = {1, 2}, all[] = {1, 0, 2}, dead[] = {1, 2, 4};
    struct {
        struct alter a;
        int error, error_v1;
    } t[] = {
        {{.broker = 1, .epoch_off = -1, .isr = two, .isr_n = 2}, KERR_STALE_BROKER_EPOCH, 0},
        {{.broker = 1, .epoch_off = 1, .isr = two, .isr_n = 2}, KERR_STALE_BROKER_EPOCH, 0},
        {{.broker = 1, .partition = 9, .isr = two, .isr_n = 2}, KERR_UNKNOWN_TOPIC_OR_PARTITION, 0},
        {{.broker = 1, .other_id = true, .isr = two, .isr_n = 2}, KERR_UNKNOWN_TOPIC_ID, -1},
        {{.broker = 1, .partition_epoch = 2, .isr = all, .isr_n = 3}, KERR_NOT_CONTROLLER, 0},
        {{.broker = 1, .leader_epoch = 1, .isr = all, .isr_n = 3}, KERR_NOT_CONTROLLER, 0},
        {{.broker = 1, .leader_epoch = -1, .partition_epoch = 1, .isr = all, .isr_n = 3},
         KERR_FENCED_LEADER_EPOCH,
         0},
        {{.broker = 1, .partition_epoch = 0, .isr = all, .isr_n = 3},
         KERR_INVALID_UPDATE_VERSION,
         0},
        {{.broker = 1, .partition_epoch = 1, .isr = all, .isr_n = 3, .recovering = true},
         KERR_INVALID_REQUEST,
         0},
        {{.broker = 1, .partition_epoch = 1, .isr = two, .isr_n = 1, .recovering = true},
         KERR_INVALID_REQUEST,
         0},
        {{.broker = 2, .partition_epoch = 1, .isr = all, .isr_n = 3}, KERR_INVALID_REQUEST, 0},
        {{.broker = 1, .partition_epoch = 1, .isr = dead, .isr_n = 3},
         KERR_INELIGIBLE_REPLICA,
         KERR_OPERATION_NOT_ATTEMPTED},
        {{.broker = 1, .partition_epoch = 1, .isr = two, .isr_n = 0},
         KERR_INELIGIBLE_REPLICA,
         KERR_OPERATION_NOT_ATTEMPTED},
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        int32_t epoch;
        assert_int_equal(alter(c, 3, t[i].a, &k), t[i].error);
        if (t[i].error_v1 >= 0)
            assert_int_equal(alter(c, 1, t[i].a, &k), t[i].error_v1 ? t[i].error_v1 : t[i].error);
        sim_state(c, "t", 0, &epoch);
        assert_int_equal(epoch, 1); /* nothing was written */
    }
    sim_stop(c);
}

static void who_is_not_the_controller_says_so(void **state)
{
    struct sim_cluster *c = &cluster;
    struct call k;
    static struct alter_partition_request q;
    static struct controlled_shutdown_request s;
    open_with_topic(c);
    alter_partition_request_init(&q);
    controlled_shutdown_request_init(&s);
    int32_t other = (sim_active(c)->id + 1) % 3;
    begin(c, other, &k, API_ALTER_PARTITION, 3, &q);
    finish(c, &k);
    assert_int_equal(k.call.refused, KERR_NOT_CONTROLLER);
    begin(c, other, &k, API_CONTROLLED_SHUTDOWN, 3, &s);
    finish(c, &k);
    assert_int_equal(k.call.refused, KERR_STALE_CONTROLLER_EPOCH);
    sim_stop(c);
}

/* The controller is deposed at every moment of an ISR change: the change is answered, and what the
 * answer says is what the store holds. */
static void a_change_meets_the_end_of_the_reign(void **state)
{
    struct sim_cluster *c = &cluster;
    for (int steps = 0; steps < 40; steps++) {
        struct call k;
        static struct alter_partition_request q;
        static struct alter_partition_request_topic t;
        static struct alter_partition_request_partition p;
        static struct alter_partition_request_new_isr_with_epoch member;
        open_with_topic(c);
        struct sim_broker *active = sim_active(c);
        const struct metadata_snapshot *s = metadata_acquire(active->cache);
        alter_partition_request_init(&q);
        alter_partition_request_topic_init(&t);
        alter_partition_request_partition_init(&p);
        alter_partition_request_new_isr_with_epoch_init(&member);
        t.topic_id = metadata_topic(s, STR_LIT("t"))->id;
        metadata_release(s);
        q.broker_id = 1;
        q.broker_epoch = epoch_of(c, 1);
        q.topics.v = &t;
        q.topics.n = 1;
        t.partitions.v = &p;
        t.partitions.n = 1;
        member.broker_id = 1;
        p.new_isr_with_epochs.v = &member;
        p.new_isr_with_epochs.n = 1;
        begin(c, active->id, &k, API_ALTER_PARTITION, 3, &q);
        for (int i = 0; i < steps; i++)
            sim_executor_step(c->e);
        embedded_store_expire_session(active->session);
        finish(c, &k);
        int32_t epoch;
        struct partition_node now = sim_state(c, "t", 0, &epoch);
        if (k.call.refused == KERR_NONE && !k.response.alter.error_code &&
            !k.response.alter.topics.v[0].partitions.v[0].error_code) {
            assert_int_equal(now.isr.n, 1);
            assert_true(epoch >= 1);
        }
        sim_check(c);
        sim_stop(c);
    }
}

/* ---- ControlledShutdown ---- */

static struct controlled_shutdown_request shutdown_of(struct sim_cluster *c, int32_t broker)
{
    struct controlled_shutdown_request q;
    controlled_shutdown_request_init(&q);
    q.broker_id = broker;
    q.broker_epoch = epoch_of(c, broker);
    return q;
}

static void a_broker_is_relieved_before_it_stops(void **state)
{
    struct sim_cluster *c = &cluster;
    struct call k;
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", 6, 3), 0);
    static const int32_t alone[] = {1};
    assert_int_equal(sim_create_assigned(c, "single", alone, 1), 0);
    struct controlled_shutdown_request q = shutdown_of(c, 1);
    begin(c, sim_active(c)->id, &k, API_CONTROLLED_SHUTDOWN, 3, &q);
    finish(c, &k);
    assert_int_equal(k.call.refused, KERR_NONE);
    assert_int_equal(k.response.shutdown.error_code, 0);
    assert_int_equal(k.response.shutdown.remaining_partitions.n, 0); /* "single" has no other */
    for (int i = 0; i < 6; i++) {
        struct partition_node p = sim_state(c, "t", i, NULL);
        assert_int_not_equal(p.leader, 1);
        assert_int_equal(p.isr.n, 2);
        assert_int_equal(p.leader_epoch, 1);
        assert_false(id_list_has(p.isr, 1));
        struct sim_replica *r = sim_replica(c, 1, "t", i);
        assert_int_equal(r->leader_epoch == 1 || r->stopped, 1);
    }
    assert_int_equal(sim_state(c, "single", 0, NULL).leader, 1);
    /* it joins no ISR, and is asked for nothing new */
    int32_t epoch;
    struct partition_node p = sim_state(c, "t", 0, &epoch);
    int32_t isr[] = {p.isr.v[0], p.isr.v[1], 1};
    struct alter a = {
        .broker = p.leader, .leader_epoch = 1, .partition_epoch = epoch, .isr = isr, .isr_n = 3};
    assert_int_equal(alter(c, 3, a, &k), KERR_INELIGIBLE_REPLICA);
    sim_broker_kill(c, 1, true);
    sim_check(c);
    assert_int_equal(sim_state(c, "single", 0, NULL).leader, -1);
    sim_broker_start(c, 1);
    sim_check(c);
    assert_int_equal(sim_state(c, "single", 0, NULL).leader, 1);
    sim_stop(c);
}

static void what_nobody_else_can_lead_remains(void **state)
{
    struct sim_cluster *c = &cluster;
    struct call k;
    open_with_topic(c);
    struct alter a = {.broker = 1, .isr = (int32_t[]){1}, .isr_n = 1};
    assert_int_equal(alter(c, 3, a, &k), 0);
    struct controlled_shutdown_request q = shutdown_of(c, 1);
    begin(c, sim_active(c)->id, &k, API_CONTROLLED_SHUTDOWN, 3, &q);
    finish(c, &k);
    assert_int_equal(k.response.shutdown.remaining_partitions.n, 1);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 1);
    sim_stop(c);
}

static void a_shutdown_of_the_wrong_life_is_refused(void **state)
{
    struct sim_cluster *c = &cluster;
    struct call k;
    open_with_topic(c);
    struct controlled_shutdown_request q = shutdown_of(c, 2);
    q.broker_epoch--;
    begin(c, sim_active(c)->id, &k, API_CONTROLLED_SHUTDOWN, 3, &q);
    finish(c, &k);
    assert_int_equal(k.response.shutdown.error_code, KERR_STALE_BROKER_EPOCH);
    q.broker_id = 4;
    begin(c, sim_active(c)->id, &k, API_CONTROLLED_SHUTDOWN, 3, &q);
    finish(c, &k);
    assert_int_equal(k.response.shutdown.error_code, KERR_BROKER_NOT_AVAILABLE);
    q.broker_id = 2;
    q.broker_epoch = -1; /* not known: never stale */
    begin(c, sim_active(c)->id, &k, API_CONTROLLED_SHUTDOWN, 3, &q);
    finish(c, &k);
    assert_int_equal(k.response.shutdown.error_code, 0);
    sim_stop(c);
}

/* ---- AllocateProducerIds ---- */

static void no_producer_id_is_given_twice(void **state)
{
    struct sim_cluster *c = &cluster;
    int64_t next = 0;
    sim_start(c, 3);
    for (int round = 0; round < 12; round++) {
        struct call k;
        struct allocate_producer_ids_request q;
        allocate_producer_ids_request_init(&q);
        q.broker_id = round % 3;
        q.broker_epoch = epoch_of(c, q.broker_id);
        struct sim_broker *active = sim_active(c);
        begin(c, active->id, &k, API_ALLOCATE_PRODUCER_IDS, 0, &q);
        for (int i = 0; i < round; i++)
            sim_executor_step(c->e);
        if (round % 4 == 3)
            embedded_store_expire_session(active->session);
        finish(c, &k);
        if (k.call.refused == KERR_NONE && !k.response.ids.error_code) {
            assert_int_equal(k.response.ids.producer_id_len, 1000);
            assert_true(k.response.ids.producer_id_start >= next);
            next = k.response.ids.producer_id_start + 1000;
        }
    }
    assert_true(next >= 8000);
    struct call k;
    struct allocate_producer_ids_request q = {.broker_id = 4};
    begin(c, sim_active(c)->id, &k, API_ALLOCATE_PRODUCER_IDS, 0, &q);
    finish(c, &k);
    assert_int_equal(k.response.ids.error_code, KERR_BROKER_ID_NOT_REGISTERED);
    q.broker_id = 1;
    begin(c, sim_active(c)->id, &k, API_ALLOCATE_PRODUCER_IDS, 0, &q);
    finish(c, &k);
    assert_int_equal(k.response.ids.error_code, KERR_STALE_BROKER_EPOCH);
    sim_stop(c);
}

/* One of those in sync bounced unseen and is told nothing until the others have answered; one that
 * came since, and entered the ISR, has answered as well. Seen by the simulator: it was waited for
 * for ever. */
static void who_comes_and_enters_the_isr_is_not_waited_for(void **state)
{
    struct sim_cluster *c = &cluster;
    struct call k;
    int32_t epoch;
    sim_start_under(c, 4, 3);
    assert_int_equal(sim_create_assigned(c, "t", replicas, 3), 0);
    sim_broker_kill(c, 0, false);
    sim_drain(c);
    sim_bounce(c, 2);
    c->brokers[1].hold = true;
    sim_broker_kill(c, 3, false);
    sim_drain(c);
    sim_broker_start(c, 0);
    sim_drain(c);
    struct partition_node now = sim_state(c, "t", 0, &epoch);
    assert_int_equal(now.leader, 1);
    struct alter a = {.broker = 1,
                      .leader_epoch = now.leader_epoch,
                      .partition_epoch = epoch,
                      .isr = (int32_t[]){1},
                      .isr_n = 1};
    assert_int_equal(alter(c, 3, a, &k), 0);
    a.isr = (int32_t[]){1, 0};
    a.isr_n = 2;
    a.partition_epoch++;
    assert_int_equal(alter(c, 3, a, &k), 0);
    int told = c->brokers[2].lisr_partitions;
    sim_release(c, 1);
    sim_drain(c);
    now = sim_state(c, "t", 0, NULL);
    assert_int_equal(now.leader, 1);
    assert_true(c->brokers[2].lisr_partitions > told);
    assert_int_equal(sim_replica(c, 2, "t", 0)->leader_epoch, now.leader_epoch);
    sim_check(c);
    sim_stop(c);
}

UNIT_MAIN(
    unit_test(who_comes_and_enters_the_isr_is_not_waited_for),
    unit_test(an_isr_is_written_told_and_answered), unit_test(a_write_whose_answer_was_lost_counts),
    unit_test(each_reason_to_refuse_has_its_code), unit_test(who_is_not_the_controller_says_so),
    unit_test(a_change_meets_the_end_of_the_reign), unit_test(a_broker_is_relieved_before_it_stops),
    unit_test(what_nobody_else_can_lead_remains),
    unit_test(a_shutdown_of_the_wrong_life_is_refused), unit_test(no_producer_id_is_given_twice))
