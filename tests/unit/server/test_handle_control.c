/* Control requests: over the wire, from the controller in this process, and their order. */
#include "handler_bench.h"
#include "metadata/paths.h"
#include "metadata/store_test.h"
#include "server/local_channel.h"

static const int32_t self[] = {1};

static void fill_lead(struct leader_and_isr_request *req,
                      struct leader_and_isr_request_topic_state *topic,
                      struct leader_and_isr_request_partition_state *p, int32_t epoch)
{
    leader_and_isr_request_init(req);
    leader_and_isr_request_topic_state_init(topic);
    leader_and_isr_request_partition_state_init(p);
    req->topic_states.v = topic;
    req->topic_states.n = 1;
    topic->topic_name = STR_LIT("t");
    topic->partition_states.v = p;
    topic->partition_states.n = 1;
    p->leader = 1;
    p->leader_epoch = epoch;
    p->isr.v = p->replicas.v = (int32_t *)self;
    p->isr.n = p->replicas.n = 1;
    p->is_new = true;
}

static void fill_stop(struct stop_replica_request *req,
                      struct stop_replica_request_topic_state *topic,
                      struct stop_replica_request_partition_state *p)
{
    stop_replica_request_init(req);
    stop_replica_request_topic_state_init(topic);
    stop_replica_request_partition_state_init(p);
    req->topic_states.v = topic;
    req->topic_states.n = 1;
    topic->topic_name = STR_LIT("t");
    topic->partition_states.v = p;
    topic->partition_states.n = 1;
    p->leader_epoch = -2;
    p->delete_partition = true;
}

static void wire_requests_are_applied_on_a_worker(void **state)
{
    struct broker b;
    struct call c;
    struct leader_and_isr_request lead;
    struct leader_and_isr_request_topic_state topic;
    struct leader_and_isr_request_partition_state p;
    struct stop_replica_request stop;
    struct stop_replica_request_topic_state stop_topic;
    struct stop_replica_request_partition_state stop_p;
    struct update_metadata_request update;
    broker_open(&b);

    fill_lead(&lead, &topic, &p, 0);
    call(&b, &c, API_LEADER_AND_ISR, 4, handle_leader_and_isr, &lead, "1");
    assert_int_equal(c.how, WAITING);
    drain(&b);
    assert_int_equal(c.how, ANSWERED);
    const struct leader_and_isr_response *l = c.answer;
    assert_int_equal(l->error_code, KERR_NONE);
    assert_int_equal(l->partition_errors.n, 1);
    assert_int_equal(l->partition_errors.v[0].error_code, KERR_NONE);
    call_free(&c);
    assert_int_equal(replica_manager_count(b.bench.m), 1);

    update_metadata_request_init(&update);
    update.controller_epoch = 3;
    call(&b, &c, API_UPDATE_METADATA, 8, handle_update_metadata, &update, "1");
    drain(&b);
    assert_int_equal(((const struct update_metadata_response *)c.answer)->error_code, KERR_NONE);
    call_free(&c);

    fill_stop(&stop, &stop_topic, &stop_p); /* from the controller before */
    call(&b, &c, API_STOP_REPLICA, 4, handle_stop_replica, &stop, "1");
    drain(&b);
    assert_int_equal(((const struct stop_replica_response *)c.answer)->error_code,
                     KERR_STALE_CONTROLLER_EPOCH);
    call_free(&c);
    stop.controller_epoch = 3;
    call(&b, &c, API_STOP_REPLICA, 4, handle_stop_replica, &stop, "1");
    drain(&b);
    const struct stop_replica_response *s = c.answer;
    assert_int_equal(s->error_code, KERR_NONE);
    assert_int_equal(s->partition_errors.v[0].error_code, KERR_NONE);
    assert_true(str_eqz(s->partition_errors.v[0].topic_name, "t"));
    call_free(&c);
    assert_int_equal(replica_manager_count(b.bench.m), 0);
    broker_close(&b);
}

/* Asks with UpdateMetadata; the error. */
static enum kerr order_of_epoch(struct broker *b, int32_t epoch)
{
    struct call c;
    struct update_metadata_request update;
    update_metadata_request_init(&update);
    update.controller_epoch = epoch;
    call(b, &c, API_UPDATE_METADATA, 8, handle_update_metadata, &update, "1");
    drain(b);
    assert_int_equal(c.how, ANSWERED);
    enum kerr e = (enum kerr)((const struct update_metadata_response *)c.answer)->error_code;
    call_free(&c);
    return e;
}

/* Or no real controller would be obeyed any more. */
static void epochs_that_were_never_reached_are_refused(void **state)
{
    struct broker b;
    broker_open(&b);
    struct store *store = open_in_memory(request_executor(&(struct request){.broker = &b}));
    control_gate_init(&b.gate, store);
    assert_int_equal(order_of_epoch(&b, 1), KERR_STALE_CONTROLLER_EPOCH); /* there is no node yet */
    assert_int_equal(create(store, PATH_CONTROLLER_EPOCH, "5", 0), 0);
    assert_int_equal(order_of_epoch(&b, INT32_MAX), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(order_of_epoch(&b, 6), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(order_of_epoch(&b, 5), KERR_NONE);
    assert_int_equal(order_of_epoch(&b, 4), KERR_STALE_CONTROLLER_EPOCH); /* deposed */
    assert_int_equal(set(store, PATH_CONTROLLER_EPOCH, "6", STORE_ANY_VERSION), 0);
    assert_int_equal(order_of_epoch(&b, 7), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(order_of_epoch(&b, 6), KERR_NONE);

    /* Likewise the others; nothing has happened. */
    struct call c;
    struct leader_and_isr_request lead;
    struct leader_and_isr_request_topic_state topic;
    struct leader_and_isr_request_partition_state p;
    fill_lead(&lead, &topic, &p, 0);
    lead.controller_epoch = 7;
    call(&b, &c, API_LEADER_AND_ISR, 7, handle_leader_and_isr, &lead, "1");
    drain(&b);
    assert_int_equal(((const struct leader_and_isr_response *)c.answer)->error_code,
                     KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(replica_manager_count(b.bench.m), 0);
    call_free(&c);
    lead.controller_epoch = 6;
    call(&b, &c, API_LEADER_AND_ISR, 7, handle_leader_and_isr, &lead, "1");
    drain(&b);
    assert_int_equal(replica_manager_count(b.bench.m), 1);
    call_free(&c);
    struct stop_replica_request stop;
    struct stop_replica_request_topic_state stop_topic;
    struct stop_replica_request_partition_state stop_p;
    fill_stop(&stop, &stop_topic, &stop_p);
    stop.controller_epoch = 7;
    call(&b, &c, API_STOP_REPLICA, 4, handle_stop_replica, &stop, "1");
    drain(&b);
    assert_int_equal(((const struct stop_replica_response *)c.answer)->error_code,
                     KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(replica_manager_count(b.bench.m), 1);
    call_free(&c);

    store_close(store);
    broker_close(&b);
}

static void every_version_of_leader_and_isr_is_answered(void **state)
{
    struct broker b;
    broker_open(&b);
    for (int version = 0; version <= 7; version++) {
        struct call c;
        struct leader_and_isr_request lead;
        struct leader_and_isr_request_topic_state topic;
        struct leader_and_isr_request_partition_state p;
        fill_lead(&lead, &topic, &p, version);
        if (version >= 5)
            topic.topic_id.b[0] = 9;
        if (version < 1)
            p.is_new = false;
        if (version < 2) {
            p.topic_name = STR_LIT("t");
            lead.topic_states.n = 0;
            lead.ungrouped_partition_states.v = &p;
            lead.ungrouped_partition_states.n = 1;
        }
        call(&b, &c, API_LEADER_AND_ISR, version, handle_leader_and_isr, &lead, "1");
        drain(&b);
        assert_int_equal(c.how, ANSWERED);
        const struct leader_and_isr_response *r = c.answer;
        const struct leader_and_isr_response_partition_error *e =
            version < 5 ? r->partition_errors.v : r->topics.v[0].partition_errors.v;
        assert_int_equal(r->error_code, KERR_NONE);
        assert_int_equal(e->error_code, KERR_NONE);
        if (version < 5)
            assert_true(str_eqz(e->topic_name, "t"));
        else
            assert_int_equal(r->topics.v[0].topic_id.b[0], 9);
        call_free(&c);
    }
    broker_close(&b);
}

static void older_stop_requests_name_partitions_otherwise(void **state)
{
    for (int version = 0; version <= 2; version++) {
        struct broker b;
        struct call c;
        struct stop_replica_request stop;
        struct stop_replica_request_partition_v0 p0 = {STR_LIT("t"), 0};
        int32_t zero = 0;
        struct stop_replica_request_topic_v1 t1 = {.name = STR_LIT("t"),
                                                   .partition_indexes = {&zero, 1}};
        for (int delete = 0; delete <= 1; delete ++) {
            broker_open(&b);
            partition_unref(bench_leader(&b.bench, NUMBERS(1)));
            stop_replica_request_init(&stop);
            stop.delete_partitions = delete;
            if (version == 0) {
                stop.ungrouped_partitions.v = &p0;
                stop.ungrouped_partitions.n = 1;
            } else {
                stop.topics.v = &t1;
                stop.topics.n = 1;
            }
            call(&b, &c, API_STOP_REPLICA, version, handle_stop_replica, &stop, "1");
            drain(&b);
            const struct stop_replica_response *s = c.answer;
            assert_int_equal(s->error_code, KERR_NONE);
            assert_int_equal(s->partition_errors.n, 1);
            assert_int_equal(s->partition_errors.v[0].error_code, KERR_NONE);
            assert_int_equal(replica_manager_count(b.bench.m), !delete);
            call_free(&c);
            broker_close(&b);
        }
    }
}

/* ---- the local channel ---- */

struct told {
    int n;
    struct {
        int status;
        int16_t code;
    } all[8];
};

static void tell_lead(void *arg, int status, const void *response)
{
    struct told *t = arg;
    const struct leader_and_isr_response *r = response;
    t->all[t->n].status = status;
    t->all[t->n++].code = r ? r->topics.v[0].partition_errors.v[0].error_code : 0;
}

static void tell_stop(void *arg, int status, const void *response)
{
    struct told *t = arg;
    const struct stop_replica_response *r = response;
    t->all[t->n].status = status;
    t->all[t->n++].code = r ? r->partition_errors.v[0].error_code : 0;
}

static void local_requests_keep_their_order(void **state)
{
    struct broker b;
    struct told told = {0};
    struct leader_and_isr_request lead[2];
    struct leader_and_isr_request_topic_state topic[2];
    struct leader_and_isr_request_partition_state p[2];
    struct stop_replica_request stop;
    struct stop_replica_request_topic_state stop_topic;
    struct stop_replica_request_partition_state stop_p;
    broker_open(&b);
    struct broker_channel *c =
        local_channel_new(b.control, b.bench.m, 1, sim_executor_ex(b.bench.sim));
    assert_int_equal(c->broker_id, 1);
    for (int i = 0; i < 2; i++)
        fill_lead(&lead[i], &topic[i], &p[i], 0);
    fill_stop(&stop, &stop_topic, &stop_p);
    c->send(c, API_LEADER_AND_ISR, 7, &lead[0], tell_lead, &told);
    c->send(c, API_LEADER_AND_ISR, 7, &lead[1], tell_lead, &told);
    c->send(c, API_STOP_REPLICA, 4, &stop, tell_stop, &told);
    c->send(c, API_LEADER_AND_ISR, 7, &lead[0], tell_lead, &told);
    c->send(c, API_PRODUCE, 7, &lead[0], tell_lead, &told);
    assert_int_equal(told.n, 0); /* never before send returns */
    drain(&b);
    assert_int_equal(told.n, 5);
    assert_int_equal(told.all[0].code, KERR_NONE);
    assert_int_equal(told.all[1].code, KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(told.all[2].code, KERR_NONE);
    assert_int_equal(told.all[3].code, KERR_NONE); /* made anew */
    assert_int_equal(told.all[4].status, -ENOTSUP);
    assert_int_equal(replica_manager_count(b.bench.m), 1);
    c->close(c);
    broker_close(&b);
}

static void closed_channel_ends_what_has_not_begun(void **state)
{
    struct broker b;
    struct told told = {0};
    struct leader_and_isr_request lead;
    struct leader_and_isr_request_topic_state topic;
    struct leader_and_isr_request_partition_state p;
    broker_open(&b);
    struct broker_channel *c =
        local_channel_new(b.control, b.bench.m, 1, sim_executor_ex(b.bench.sim));
    fill_lead(&lead, &topic, &p, 0);
    c->send(c, API_LEADER_AND_ISR, 7, &lead, tell_lead, &told);
    c->send(c, API_LEADER_AND_ISR, 7, &lead, tell_lead, &told);
    c->close(c); /* frees itself after the second answer */
    drain(&b);
    assert_int_equal(told.n, 2);
    assert_int_equal(told.all[0].status, -ECANCELED);
    assert_int_equal(told.all[1].status, -ECANCELED);
    assert_int_equal(replica_manager_count(b.bench.m), 0);
    broker_close(&b);
}

/* ---- the queue, with threads ---- */

struct counted {
    struct control_op op;
    struct crowd *crowd;
    int at;
};

struct crowd {
    struct counted ops[2000];
    atomic_int busy, next;
    int done; /* on the executor */
    bool wrong;
};

static void counted_work(struct control_op *op)
{
    struct counted *c = container_of(op, struct counted, op);
    if (atomic_fetch_add(&c->crowd->busy, 1) != 0 || atomic_fetch_add(&c->crowd->next, 1) != c->at)
        c->crowd->wrong = true;
    atomic_fetch_sub(&c->crowd->busy, 1);
}

static void counted_done(struct control_op *op)
{
    struct counted *c = container_of(op, struct counted, op);
    if (c->crowd->done++ != c->at)
        c->crowd->wrong = true;
}

static void one_at_a_time_in_order_on_many_workers(void **state)
{
    static struct crowd crowd;
    struct workers *w;
    struct control_queue *q;
    struct sim_clock clock;
    sim_clock_init(&clock, 0);
    struct sim_executor *sim = sim_executor_new(&clock);
    assert_int_equal(workers_start("w", 4, &w), 0);
    assert_int_equal(control_queue_new(w, &q), 0);
    for (int i = 0; i < 2000; i++) {
        crowd.ops[i] = (struct counted){
            .op = {.work = counted_work, .done = counted_done, .done_on = sim_executor_ex(sim)},
            .crowd = &crowd,
            .at = i};
        control_queue_submit(q, &crowd.ops[i].op);
        if (i % 10 == 0)
            sched_yield(); /* so that the queue runs dry now and then */
    }
    workers_stop(w);
    sim_executor_drain(sim);
    assert_int_equal(crowd.done, 2000);
    assert_false(crowd.wrong);
    control_queue_free(q);
    sim_executor_free(sim);
}

UNIT_MAIN(unit_test(wire_requests_are_applied_on_a_worker),
          unit_test(epochs_that_were_never_reached_are_refused),
          unit_test(every_version_of_leader_and_isr_is_answered),
          unit_test(older_stop_requests_name_partitions_otherwise),
          unit_test(local_requests_keep_their_order),
          unit_test(closed_channel_ends_what_has_not_begun),
          unit_test(one_at_a_time_in_order_on_many_workers))
