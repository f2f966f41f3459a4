/* Produce: every version, acks, errors of partitions, waiting for replicas and for flushes. */
#include "protocol/msg/produce.h"

#include "handler_bench.h"

/* ---- requests ---- */

struct produce {
    struct produce_request body;
    struct produce_request_topic_data topics[4];
    struct produce_request_partition_data parts[4];
    struct buf bytes[4];
    int version;
};

static void produce_init(struct produce *p, int version, int16_t acks)
{
    memset(p, 0, sizeof *p);
    produce_request_init(&p->body);
    p->version = version;
    p->body.acks = acks;
    p->body.timeout_ms = 1000;
    p->body.topic_data.v = p->topics;
}

static void produce_free(struct produce *p)
{
    for (int i = 0; i < 4; i++)
        buf_free(&p->bytes[i]);
}

/* Adds records of `size` bytes for a partition, in the format of the version. */
static void put(struct produce *p, const char *topic, int32_t number, int records, size_t size)
{
    int n = p->body.topic_data.n++;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.magic = p->version >= 3 ? 2 : 1;
    struct batch_builder *b = batch_builder_new(&o);
    uint8_t *value = calloc(1, size + 1);
    for (int i = 0; i < records; i++)
        batch_builder_add(b, i, 1700000000000, BYTES_NULL, (struct bytes){value, (int32_t)size},
                          NULL, 0);
    batch_builder_finish(b, &p->bytes[n]);
    batch_builder_free(b);
    free(value);
    p->topics[n].name = str_of(topic);
    p->topics[n].partition_data.v = &p->parts[n];
    p->topics[n].partition_data.n = 1;
    p->parts[n].index = number;
    p->parts[n].records = (struct records){.p = p->bytes[n].p, .len = (int32_t)p->bytes[n].len};
}

static void send_produce(struct broker *b, struct call *c, struct produce *p)
{
    call(b, c, API_PRODUCE, p->version, handle_produce, &p->body, "client");
}

static const struct produce_response_partition_response *answer_of(struct call *c, int topic)
{
    assert_int_equal(c->how, ANSWERED);
    const struct produce_response *r = c->answer;
    assert_true(topic < r->responses.n);
    assert_int_equal(r->responses.v[topic].partition_responses.n, 1);
    return &r->responses.v[topic].partition_responses.v[0];
}

static enum kerr code_of(struct call *c, int topic)
{
    return (enum kerr)answer_of(c, topic)->error_code;
}

/* One partition, one request, its code. */
static enum kerr produce_one(struct broker *b, int version, int16_t acks, const char *topic,
                             int32_t number)
{
    struct produce p;
    struct call c;
    produce_init(&p, version, acks);
    put(&p, topic, number, 1, 10);
    send_produce(b, &c, &p);
    drain(b);
    enum kerr e = code_of(&c, 0);
    call_free(&c);
    produce_free(&p);
    return e;
}

/* ---- tests ---- */

static void every_version_appends(void **state)
{
    struct broker b;
    broker_open(&b);
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    int64_t next = 0;
    for (int version = 0; version <= 11; version++) {
        for (int16_t acks = -1; acks <= 1; acks += 2) {
            struct produce p;
            struct call c;
            produce_init(&p, version, acks);
            put(&p, "t", 0, 3, 10);
            send_produce(&b, &c, &p);
            const struct produce_response_partition_response *a = answer_of(&c, 0);
            assert_int_equal(a->error_code, KERR_NONE);
            assert_int_equal(a->index, 0);
            assert_int_equal(a->base_offset, next);
            assert_int_equal(a->log_append_time_ms, -1);
            assert_int_equal(a->log_start_offset, version >= 5 ? 0 : -1);
            assert_int_equal(a->record_errors.n, 0);
            assert_true(str_is_null(a->error_message));
            next += 3;
            call_free(&c);
            produce_free(&p);
        }
    }
    broker_close(&b);
}

static void offsets_are_given_where_the_batch_lies(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    struct partition *t = bench_leader(&b.bench, NUMBERS(1));
    bench_append(&b.bench, t, 5, 1, NULL);
    produce_init(&p, 9, 1);
    put(&p, "t", 0, 2, 10);
    send_produce(&b, &c, &p);
    assert_int_equal(code_of(&c, 0), KERR_NONE);
    struct partition_read read;
    struct partition_read_args args = {.replica_id = -1,
                                       .offset = 5,
                                       .current_leader_epoch = -1,
                                       .last_fetched_epoch = -1,
                                       .max_bytes = 1000};
    assert_int_equal(partition_read(t, &args, NULL, &read), KERR_NONE);
    uint8_t got[1000];
    assert_int_equal(read.slice.len, p.bytes[0].len);
    file_pread(read.slice.file, got, read.slice.len, read.slice.pos);
    file_unref(read.slice.file);
    assert_int_equal(get_be64(got), 5);
    assert_int_equal(get_be32(got + 12), 0); /* leader epoch */
    memcpy(p.bytes[0].p, got, 16);           /* nothing else was touched */
    assert_memory_equal(got, p.bytes[0].p, read.slice.len);
    partition_unref(t);
    call_free(&c);
    produce_free(&p);
    broker_close(&b);
}

static void acks_0_is_never_answered(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    produce_init(&p, 9, 0);
    put(&p, "t", 0, 1, 10);
    send_produce(&b, &c, &p);
    assert_int_equal(c.how, NO_ANSWER);
    call_free(&c);
    put(&p, "unknown", 0, 1, 10); /* one partition in error is enough */
    send_produce(&b, &c, &p);
    assert_int_equal(c.how, CLOSED);
    assert_non_null(strstr(c.why, "unknown-0"));
    assert_non_null(strstr(c.why, "UNKNOWN_TOPIC_OR_PARTITION"));
    call_free(&c);
    produce_free(&p);
    broker_close(&b);
}

static void other_acks_append_nothing(void **state)
{
    struct broker b;
    broker_open(&b);
    struct partition *t = bench_leader(&b.bench, NUMBERS(1));
    int16_t bad[] = {2, -2, 32767, -32768};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(produce_one(&b, 9, bad[i], "t", 0), KERR_INVALID_REQUIRED_ACKS);
    assert_int_equal(bench_hw(t), 0);
    partition_unref(t);
    broker_close(&b);
}

static void partitions_do_not_affect_each_other(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    b.bench.config.max_message_bytes = 2000;
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    produce_init(&p, 7, 1);
    put(&p, "t", 0, 1, 5000);
    put(&p, "t", 0, 1, 10);
    put(&p, "t", 1, 1, 10); /* known, not here */
    put(&p, "u", 0, 1, 10);
    send_produce(&b, &c, &p);
    assert_int_equal(code_of(&c, 0), KERR_MESSAGE_TOO_LARGE);
    assert_int_equal(answer_of(&c, 0)->base_offset, -1);
    assert_int_equal(code_of(&c, 1), KERR_NONE);
    assert_int_equal(answer_of(&c, 1)->base_offset, 0);
    assert_int_equal(code_of(&c, 2), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(code_of(&c, 3), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    call_free(&c);
    produce_free(&p);
    broker_close(&b);
}

static void bad_records_are_told_one_by_one(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    b.bench.config.cleanup_policy = CLEANUP_COMPACT; /* every record needs a key */
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    for (int version = 7; version <= 8; version++) {
        produce_init(&p, version, 1);
        put(&p, "t", 0, 3, 10);
        send_produce(&b, &c, &p);
        const struct produce_response_partition_response *a = answer_of(&c, 0);
        assert_int_equal(a->error_code, KERR_INVALID_RECORD);
        assert_int_equal(a->base_offset, -1);
        assert_int_equal(a->log_start_offset, 0);
        assert_int_equal(a->record_errors.n, version >= 8 ? 3 : 0);
        for (int i = 0; i < a->record_errors.n; i++) {
            assert_int_equal(a->record_errors.v[i].batch_index, i);
            assert_true(a->record_errors.v[i].batch_index_error_message.len > 0);
        }
        call_free(&c);
        produce_free(&p);
    }
    broker_close(&b);
}

static void empty_and_torn_records(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    for (int version = 2; version <= 3; version++) { /* v3 wants a batch, v0-v2 take nothing */
        for (int cut = 0; cut <= 2; cut++) {
            produce_init(&p, version, 1);
            put(&p, "t", 0, 1, 10);
            p.parts[0].records.len = cut == 0 ? 0 : p.parts[0].records.len - 1;
            if (cut == 2)
                p.parts[0].records = RECORDS_NULL;
            send_produce(&b, &c, &p);
            assert_int_equal(code_of(&c, 0), version >= 3 ? KERR_INVALID_RECORD : KERR_NONE);
            assert_int_equal(answer_of(&c, 0)->base_offset, -1);
            call_free(&c);
            produce_free(&p);
        }
    }
    broker_close(&b);
}

static void internal_topics_are_closed_to_clients(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    bench_metadata(&b.bench, 3, "__consumer_offsets");
    struct lead l = {.leader = 1,
                     .isr = (int32_t[]){1},
                     .isr_n = 1,
                     .replicas = (int32_t[]){1},
                     .replicas_n = 1,
                     .is_new = true};
    assert_int_equal(bench_lead(&b.bench, "__consumer_offsets", 0, l), KERR_NONE);
    assert_int_equal(produce_one(&b, 9, 1, "__consumer_offsets", 0), KERR_INVALID_TOPIC_EXCEPTION);
    produce_init(&p, 9, 1);
    put(&p, "__consumer_offsets", 0, 1, 10);
    call(&b, &c, API_PRODUCE, 9, handle_produce, &p.body, "__admin_client");
    assert_int_equal(code_of(&c, 0), KERR_NONE);
    call_free(&c);
    produce_free(&p);
    broker_close(&b);
}

static void storage_error_has_an_older_name_for_older_clients(void **state)
{
    for (int version = 3; version <= 4; version++) {
        struct broker b;
        broker_open(&b);
        partition_unref(bench_leader(&b.bench, NUMBERS(1)));
        fs_fault_add(b.bench.fault, (struct fs_fault_rule){.call = FS_PWRITEV,
                                                           .path = "*.log",
                                                           .times = 1,
                                                           .error = ENOSPC,
                                                           .write_bytes = -1});
        for (int i = 0; i < 2; i++) /* when it happens, and ever after */
            assert_int_equal(produce_one(&b, version, 1, "t", 0),
                             version < 4 ? KERR_NOT_LEADER_OR_FOLLOWER : KERR_KAFKA_STORAGE_ERROR);
        broker_close(&b);
    }
}

static void new_leader_is_named(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    int32_t both[] = {1, 2};
    struct lead l = {.leader = 2,
                     .leader_epoch = 7,
                     .isr = both,
                     .isr_n = 2,
                     .replicas = both,
                     .replicas_n = 2,
                     .is_new = true};
    assert_int_equal(bench_lead(&b.bench, "t", 0, l), KERR_NONE);
    for (int version = 9; version <= 11; version++) {
        produce_init(&p, version, 1);
        put(&p, "t", 0, 1, 10);
        put(&p, "u", 0, 1, 10);
        send_produce(&b, &c, &p);
        assert_int_equal(code_of(&c, 0), KERR_NOT_LEADER_OR_FOLLOWER);
        assert_int_equal(answer_of(&c, 0)->current_leader.leader_id, version >= 10 ? 2 : -1);
        assert_int_equal(answer_of(&c, 0)->current_leader.leader_epoch, version >= 10 ? 7 : -1);
        assert_int_equal(answer_of(&c, 1)->current_leader.leader_id, -1);
        const struct produce_response *r = c.answer;
        assert_int_equal(r->node_endpoints.n, version >= 10 ? 1 : 0);
        if (version >= 10) {
            assert_int_equal(r->node_endpoints.v[0].node_id, 2);
            assert_int_equal(r->node_endpoints.v[0].port, 9002);
            assert_true(str_eqz(r->node_endpoints.v[0].host, "host2"));
        }
        call_free(&c);
        produce_free(&p);
    }
    broker_close(&b);
}

/* ---- acks=all ---- */

static void acks_all_waits_for_the_isr(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    struct partition *t = bench_leader(&b.bench, NUMBERS(1, 2));
    produce_init(&p, 9, -1);
    put(&p, "t", 0, 2, 10);
    put(&p, "u", 0, 2, 10);
    send_produce(&b, &c, &p);
    drain(&b);
    assert_int_equal(c.how, WAITING);
    bench_fetch(&b.bench, t, 2, 1, NULL); /* half of it */
    drain(&b);
    assert_int_equal(c.how, WAITING);
    bench_fetch(&b.bench, t, 2, 2, NULL);
    drain(&b);
    assert_int_equal(code_of(&c, 0), KERR_NONE);
    assert_int_equal(answer_of(&c, 0)->base_offset, 0);
    assert_int_equal(code_of(&c, 1), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    call_free(&c);
    produce_free(&p);
    partition_unref(t);
    broker_close(&b);
}

static void acks_all_times_out_with_the_data_in_place(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    struct partition *t = bench_leader(&b.bench, NUMBERS(1, 2));
    produce_init(&p, 9, -1);
    put(&p, "t", 0, 2, 10);
    send_produce(&b, &c, &p);
    sim_executor_advance(b.bench.sim, 999);
    assert_int_equal(c.how, WAITING);
    sim_executor_advance(b.bench.sim, 1);
    assert_int_equal(code_of(&c, 0), KERR_REQUEST_TIMED_OUT);
    call_free(&c);
    bench_fetch(&b.bench, t, 2, 2, NULL);
    assert_int_equal(bench_hw(t), 2);
    p.body.timeout_ms = 0;
    send_produce(&b, &c, &p);
    drain(&b);
    assert_int_equal(code_of(&c, 0), KERR_REQUEST_TIMED_OUT);
    call_free(&c);
    produce_free(&p);
    partition_unref(t);
    broker_close(&b);
}

static void acks_all_ends_when_leadership_or_isr_is_lost(void **state)
{
    struct {
        int32_t leader, isr_n;
        int16_t min_isr;
        enum kerr error;
    } t[] = {
        {2, 2, 1, KERR_NOT_LEADER_OR_FOLLOWER},
        {1, 1, 1, KERR_NONE},              /* the ISR shrank to us: it is committed */
        {1, 1, 2, KERR_REQUEST_TIMED_OUT}, /* too small: the high watermark stands still */
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct broker b;
        struct produce p;
        struct call c;
        int32_t both[] = {1, 2};
        broker_open(&b);
        b.bench.config.min_insync_replicas = t[i].min_isr;
        partition_unref(bench_leader(&b.bench, NUMBERS(1, 2)));
        produce_init(&p, 9, -1);
        put(&p, "t", 0, 2, 10);
        send_produce(&b, &c, &p);
        drain(&b);
        assert_int_equal(c.how, WAITING);
        struct lead l = {.leader = t[i].leader,
                         .leader_epoch = 1,
                         .isr = both,
                         .isr_n = t[i].isr_n,
                         .replicas = both,
                         .replicas_n = 2};
        assert_int_equal(bench_lead(&b.bench, "t", 0, l), KERR_NONE);
        sim_executor_advance(b.bench.sim, 1000);
        assert_int_equal(code_of(&c, 0), t[i].error);
        call_free(&c);
        produce_free(&p);
        broker_close(&b);
    }
}

/* Nothing of the answer comes from it: not the names, and not who leads now. */
static void the_frame_is_gone_while_replicas_are_waited_for(void **state)
{
    for (int version = 3; version <= 11; version++) {
        struct broker b;
        struct produce p;
        struct call c;
        broker_open(&b);
        partition_unref(bench_leader(&b.bench, NUMBERS(1, 2)));
        produce_init(&p, version, -1);
        put(&p, "unknown", 0, 1, 10);
        put(&p, "t", 0, 2, 10);
        send_produce(&b, &c, &p);
        assert_int_equal(c.how, WAITING);
        assert_null(c.net.frame);
        assert_true(str_eqz(c.req.header.client_id, "client"));
        int32_t both[] = {1, 2};
        struct lead l = {.leader = 2,
                         .leader_epoch = 7,
                         .isr = both,
                         .isr_n = 2,
                         .replicas = both,
                         .replicas_n = 2};
        assert_int_equal(bench_lead(&b.bench, "t", 0, l), KERR_NONE);
        drain(&b);
        assert_int_equal(code_of(&c, 0), KERR_UNKNOWN_TOPIC_OR_PARTITION);
        assert_int_equal(code_of(&c, 1), KERR_NOT_LEADER_OR_FOLLOWER);
        assert_int_equal(answer_of(&c, 1)->current_leader.leader_id, version >= 10 ? 2 : -1);
        const struct produce_response *r = c.answer;
        assert_true(str_eqz(r->responses.v[0].name, "unknown"));
        assert_true(str_eqz(r->responses.v[1].name, "t"));
        call_free(&c);
        produce_free(&p);
        broker_close(&b);
    }
}

static void too_small_an_isr_refuses_acks_all_only(void **state)
{
    struct broker b;
    broker_open(&b);
    b.bench.config.min_insync_replicas = 2;
    int32_t both[] = {1, 2};
    struct lead l = {
        .leader = 1, .isr = both, .isr_n = 1, .replicas = both, .replicas_n = 2, .is_new = true};
    assert_int_equal(bench_lead(&b.bench, "t", 0, l), KERR_NONE);
    assert_int_equal(produce_one(&b, 9, -1, "t", 0), KERR_NOT_ENOUGH_REPLICAS);
    assert_int_equal(produce_one(&b, 9, 1, "t", 0), KERR_NONE);
    broker_close(&b);
}

static void client_that_left_is_not_waited_for(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    struct partition *t = bench_leader(&b.bench, NUMBERS(1, 2));
    produce_init(&p, 9, -1);
    put(&p, "t", 0, 2, 10);
    send_produce(&b, &c, &p);
    disconnect(&c);
    assert_int_equal(c.how, NO_ANSWER);
    assert_int_equal(atomic_load(&t->waiters_n), 0);
    call_free(&c);
    produce_free(&p);
    partition_unref(t);
    broker_close(&b);
}

/* It left before the wait for replicas began: while its records were flushed. */
static void client_that_left_during_the_flush_is_not_waited_for(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    b.bench.config.flush_messages = 1;
    struct partition *t = bench_leader(&b.bench, NUMBERS(1, 2));
    produce_init(&p, 9, -1);
    p.body.timeout_ms = INT32_MAX;
    put(&p, "t", 0, 2, 10);
    send_produce(&b, &c, &p);
    disconnect(&c);
    assert_int_equal(c.how, WAITING);
    drain(&b);
    assert_int_equal(c.how, NO_ANSWER);
    assert_int_equal(atomic_load(&t->waiters_n), 0);
    call_free(&c);
    produce_free(&p);
    partition_unref(t);
    broker_close(&b);
}

/* ---- large compressed batches ---- */

/* One gzip batch of `size` random bytes for t-0. */
static void put_compressed(struct produce *p, size_t size)
{
    int n = p->body.topic_data.n++;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.codec = CODEC_GZIP;
    struct batch_builder *b = batch_builder_new(&o);
    uint8_t *value = malloc(size);
    for (size_t i = 0; i < size; i++)
        value[i] = (uint8_t)hash_int(i);
    batch_builder_add(b, 0, 1700000000000, BYTES_NULL, (struct bytes){value, (int32_t)size}, NULL,
                      0);
    batch_builder_finish(b, &p->bytes[n]);
    batch_builder_free(b);
    free(value);
    p->topics[n].name = STR_LIT("t");
    p->topics[n].partition_data.v = &p->parts[n];
    p->topics[n].partition_data.n = 1;
    p->parts[n].records = (struct records){.p = p->bytes[n].p, .len = (int32_t)p->bytes[n].len};
}

/* They go to a worker; what comes behind them on the connection keeps its place. */
static void order_of_a_connection_is_kept(void **state)
{
    struct broker b;
    struct produce light, heavy, small;
    struct conn conn = {NULL};
    struct call c[6], other;
    broker_open(&b);
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    produce_init(&light, 9, 1);
    put(&light, "t", 0, 1, 10);
    produce_init(&heavy, 9, 1);
    put_compressed(&heavy, 100000);
    produce_init(&small, 9, 1);
    put_compressed(&small, 1000);
    struct produce *order[] = {&light, &heavy, &light, &heavy, &light, &small};
    for (int i = 0; i < 6; i++)
        call_on(&b, &conn, &c[i], API_PRODUCE, 9, handle_produce, &order[i]->body, "client");
    assert_int_equal(c[0].how, ANSWERED);
    for (int i = 1; i < 6; i++)
        assert_int_equal(c[i].how, WAITING);
    send_produce(&b, &other, &light); /* another connection does not wait */
    assert_int_equal(answer_of(&other, 0)->base_offset, 1);
    call_free(&other);
    drain(&b);
    assert_int_equal(answer_of(&c[0], 0)->base_offset, 0);
    for (int i = 1; i < 6; i++) {
        assert_int_equal(code_of(&c[i], 0), KERR_NONE);
        assert_int_equal(answer_of(&c[i], 0)->base_offset, 1 + i);
    }
    assert_null(conn.user); /* and the line is gone */
    call_on(&b, &conn, &other, API_PRODUCE, 9, handle_produce, &light.body, "client");
    assert_int_equal(answer_of(&other, 0)->base_offset, 7);
    call_free(&other);
    for (int i = 0; i < 6; i++)
        call_free(&c[i]);
    produce_free(&light);
    produce_free(&heavy);
    produce_free(&small);
    broker_close(&b);
}

static void large_batches_wait_for_replicas_and_flushes_like_others(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    b.bench.config.flush_messages = 1;
    struct partition *t = bench_leader(&b.bench, NUMBERS(1, 2));
    struct log *log = partition_log(t);
    produce_init(&p, 9, -1);
    put_compressed(&p, 100000);
    send_produce(&b, &c, &p);
    drain(&b);
    assert_int_equal(log_recovery_point(log), 1);
    assert_int_equal(c.how, WAITING);
    bench_fetch(&b.bench, t, 2, 1, NULL);
    drain(&b);
    assert_int_equal(code_of(&c, 0), KERR_NONE);
    call_free(&c);
    produce_free(&p);
    log_unref(log);
    partition_unref(t);
    broker_close(&b);
}

/* ---- flush.messages ---- */

static void flush_comes_before_the_answer(void **state)
{
    for (int16_t acks = -1; acks <= 1; acks++) {
        struct broker b;
        struct produce p;
        struct call c[5];
        broker_open(&b);
        b.bench.config.flush_messages = 1;
        struct partition *t = bench_leader(&b.bench, NUMBERS(1));
        struct log *log = partition_log(t);
        produce_init(&p, 9, acks);
        put(&p, "t", 0, 1, 10);
        for (int i = 0; i < 5; i++) { /* all of them, not only the one that asked for the flush */
            send_produce(&b, &c[i], &p);
            assert_int_equal(c[i].how, WAITING);
        }
        drain(&b);
        assert_int_equal(log_recovery_point(log), 5);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(c[i].how, acks ? ANSWERED : NO_ANSWER);
            if (acks)
                assert_int_equal(code_of(&c[i], 0), KERR_NONE);
            call_free(&c[i]);
        }
        produce_free(&p);
        log_unref(log);
        partition_unref(t);
        broker_close(&b);
    }
}

static void fewer_than_flush_messages_may_be_at_risk(void **state)
{
    struct broker b;
    struct produce p;
    struct call c;
    broker_open(&b);
    b.bench.config.flush_messages = 10;
    struct partition *t = bench_leader(&b.bench, NUMBERS(1));
    struct log *log = partition_log(t);
    produce_init(&p, 9, 1);
    put(&p, "t", 0, 3, 10);
    for (int i = 0; i < 20; i++) {
        send_produce(&b, &c, &p);
        drain(&b);
        assert_int_equal(code_of(&c, 0), KERR_NONE);
        call_free(&c);
        assert_true(log_end_offset(log) - log_recovery_point(log) < 10);
    }
    assert_true(fs_fault_count(b.bench.fault, FS_SYNC) < 20 * 3); /* not a flush each time */
    produce_free(&p);
    log_unref(log);
    partition_unref(t);
    broker_close(&b);
}

static void failed_flush_is_a_failed_append(void **state)
{
    for (int16_t acks = -1; acks <= 1; acks++) {
        struct broker b;
        struct produce p;
        struct call c;
        broker_open(&b);
        b.bench.config.flush_messages = 1;
        partition_unref(bench_leader(&b.bench, NUMBERS(1)));
        fs_fault_add(
            b.bench.fault,
            (struct fs_fault_rule){
                .call = FS_SYNC, .path = "*.log", .times = 1, .error = EIO, .write_bytes = -1});
        produce_init(&p, 9, acks);
        put(&p, "t", 0, 1, 10);
        send_produce(&b, &c, &p);
        drain(&b);
        if (acks)
            assert_int_equal(code_of(&c, 0), KERR_KAFKA_STORAGE_ERROR);
        else
            assert_int_equal(c.how, CLOSED);
        call_free(&c);
        produce_free(&p);
        broker_close(&b);
    }
}

UNIT_MAIN(unit_test(every_version_appends), unit_test(offsets_are_given_where_the_batch_lies),
          unit_test(acks_0_is_never_answered), unit_test(other_acks_append_nothing),
          unit_test(partitions_do_not_affect_each_other),
          unit_test(bad_records_are_told_one_by_one), unit_test(empty_and_torn_records),
          unit_test(internal_topics_are_closed_to_clients),
          unit_test(storage_error_has_an_older_name_for_older_clients),
          unit_test(new_leader_is_named), unit_test(acks_all_waits_for_the_isr),
          unit_test(acks_all_times_out_with_the_data_in_place),
          unit_test(acks_all_ends_when_leadership_or_isr_is_lost),
          unit_test(the_frame_is_gone_while_replicas_are_waited_for),
          unit_test(too_small_an_isr_refuses_acks_all_only),
          unit_test(client_that_left_is_not_waited_for),
          unit_test(client_that_left_during_the_flush_is_not_waited_for),
          unit_test(order_of_a_connection_is_kept),
          unit_test(large_batches_wait_for_replicas_and_flushes_like_others),
          unit_test(flush_comes_before_the_answer),
          unit_test(fewer_than_flush_messages_may_be_at_risk),
          unit_test(failed_flush_is_a_failed_append))
