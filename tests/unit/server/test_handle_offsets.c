/* ListOffsets and OffsetForLeaderEpoch through their handlers. */
#include "protocol/msg/list_offsets.h"
#include "protocol/msg/offset_for_leader_epoch.h"

#include "handler_bench.h"

struct query {
    struct list_offsets_request body;
    struct list_offsets_request_topic topics[8];
    struct list_offsets_request_partition parts[8];
};

static void query_init(struct query *l)
{
    memset(l, 0, sizeof *l);
    list_offsets_request_init(&l->body);
    l->body.replica_id = -1;
    l->body.topics.v = l->topics;
}

static struct list_offsets_request_partition *ask(struct query *l, const char *topic,
                                                  int32_t number, int64_t timestamp)
{
    int n = l->body.topics.n++;
    list_offsets_request_topic_init(&l->topics[n]);
    list_offsets_request_partition_init(&l->parts[n]);
    l->topics[n].name = str_of(topic);
    l->topics[n].partitions.v = &l->parts[n];
    l->topics[n].partitions.n = 1;
    l->parts[n].partition_index = number;
    l->parts[n].timestamp = timestamp;
    return &l->parts[n];
}

static const struct list_offsets_response_partition *answer(struct call *c, int topic)
{
    assert_int_equal(c->how, ANSWERED);
    const struct list_offsets_response *r = c->answer;
    assert_true(topic < r->topics.n);
    return &r->topics.v[topic].partitions.v[0];
}

/* One partition's answer: the error, or offset and timestamp. */
static void expect(struct broker *b, int version, int64_t timestamp, enum kerr error,
                   int64_t offset, int64_t found)
{
    struct query l;
    struct call c;
    query_init(&l);
    ask(&l, "t", 0, timestamp);
    call(b, &c, API_LIST_OFFSETS, version, handle_list_offsets, &l.body, "client");
    drain(b);
    assert_int_equal(answer(&c, 0)->error_code, error);
    assert_int_equal(answer(&c, 0)->offset, offset);
    assert_int_equal(answer(&c, 0)->timestamp, found);
    call_free(&c);
}

/* One batch with these timestamps. */
static void append_times(struct broker *b, struct partition *p, enum codec codec, int n,
                         const int64_t *times)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.codec = codec;
    struct batch_builder *batch = batch_builder_new(&o);
    struct buf bytes = BUF_INIT;
    struct prepared pr;
    struct partition_append done;
    for (int i = 0; i < n; i++)
        batch_builder_add(batch, i, times[i], BYTES_NULL, (struct bytes){(uint8_t *)"v", 1}, NULL,
                          0);
    batch_builder_finish(batch, &bytes);
    batch_builder_free(batch);
    struct append_policy policy = {.produce_version = 9,
                                   .max_message_bytes = 1 << 20,
                                   .compression = COMPRESSION_PRODUCER,
                                   .level = CODEC_LEVEL_DEFAULT,
                                   .before_max_ms = INT64_MAX,
                                   .after_max_ms = INT64_MAX,
                                   .now_ms = times[0]};
    assert_int_equal(records_prepare(&policy, bytes.p, bytes.len, &b->bench.a, &pr), KERR_NONE);
    assert_int_equal(partition_append(p, &pr, APPEND_CLIENT, 1, &done), KERR_NONE);
    prepared_free(&pr);
    buf_free(&bytes);
}

#define T 1700000000000

static void places_and_times_in_every_version(void **state)
{
    struct broker b;
    broker_open(&b);
    struct partition *p = bench_leader(&b.bench, NUMBERS(1));
    append_times(&b, p, CODEC_NONE, 3, (int64_t[]){T + 5, T + 9, T + 9});
    append_times(&b, p, CODEC_GZIP, 2, (int64_t[]){T + 2, T + 7});
    for (int v = 1; v <= 9; v++) {
        expect(&b, v, LIST_LATEST, KERR_NONE, 5, -1);
        expect(&b, v, LIST_EARLIEST, KERR_NONE, 0, -1);
        expect(&b, v, T + 9, KERR_NONE, 1, T + 9);
        expect(&b, v, T + 6, KERR_NONE, 1, T + 9);
        expect(&b, v, 0, KERR_NONE, 0, T + 5);
        expect(&b, v, T + 10, KERR_NONE, -1, -1);
        expect(&b, v, -3, v >= 7 ? KERR_NONE : KERR_UNSUPPORTED_VERSION, v >= 7 ? 1 : -1,
               v >= 7 ? T + 9 : -1);
        expect(&b, v, -4, v >= 8 ? KERR_NONE : KERR_UNSUPPORTED_VERSION, v >= 8 ? 0 : -1, -1);
        expect(&b, v, -5, v >= 9 ? KERR_NONE : KERR_UNSUPPORTED_VERSION, -1, -1);
        expect(&b, v, -6, KERR_UNSUPPORTED_VERSION, -1, -1);
        expect(&b, v, INT64_MIN, KERR_UNSUPPORTED_VERSION, -1, -1);
    }
    partition_unref(p);
    broker_close(&b);
}

static void empty_log_has_no_times(void **state)
{
    struct broker b;
    broker_open(&b);
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    expect(&b, 7, LIST_LATEST, KERR_NONE, 0, -1);
    expect(&b, 7, LIST_EARLIEST, KERR_NONE, 0, -1);
    expect(&b, 7, LIST_MAX_TIMESTAMP, KERR_NONE, -1, -1);
    expect(&b, 7, T, KERR_NONE, -1, -1);
    broker_close(&b);
}

static void partitions_in_error_and_named_twice(void **state)
{
    struct broker b;
    struct query l;
    struct call c;
    broker_open(&b);
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    for (int v = 1; v <= 9; v++) {
        query_init(&l);
        ask(&l, "t", 0, LIST_LATEST);
        ask(&l, "u", 0, LIST_LATEST);
        ask(&l, "t", 1, LIST_LATEST);
        ask(&l, "u", 0, LIST_EARLIEST);
        ask(&l, "t", 0, T)->current_leader_epoch = -1;
        call(&b, &c, API_LIST_OFFSETS, v, handle_list_offsets, &l.body, "client");
        drain(&b);
        assert_int_equal(answer(&c, 0)->error_code, KERR_INVALID_REQUEST);
        assert_int_equal(answer(&c, 1)->error_code, KERR_INVALID_REQUEST);
        assert_int_equal(answer(&c, 2)->error_code, KERR_NOT_LEADER_OR_FOLLOWER);
        assert_int_equal(answer(&c, 3)->error_code, KERR_INVALID_REQUEST);
        assert_int_equal(answer(&c, 4)->error_code, KERR_INVALID_REQUEST);
        call_free(&c);
    }
    query_init(&l);
    ask(&l, "u", 0, LIST_LATEST);
    call(&b, &c, API_LIST_OFFSETS, 5, handle_list_offsets, &l.body, "client");
    assert_int_equal(c.how, ANSWERED); /* no file is read for the ends of logs */
    assert_int_equal(answer(&c, 0)->error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(answer(&c, 0)->offset, -1);
    call_free(&c);
    broker_close(&b);
}

static void epochs_are_checked_and_told(void **state)
{
    struct broker b;
    struct query l;
    struct call c;
    broker_open(&b);
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    struct lead lead = {.leader = 1,
                        .leader_epoch = 6,
                        .isr = (int32_t[]){1},
                        .isr_n = 1,
                        .replicas = (int32_t[]){1},
                        .replicas_n = 1};
    assert_int_equal(bench_lead(&b.bench, "t", 0, lead), KERR_NONE);
    for (int v = 3; v <= 4; v++) {
        for (int32_t epoch = v == 3 ? -1 : 5; epoch <= (v == 3 ? -1 : 7); epoch++) {
            query_init(&l);
            ask(&l, "t", 0, LIST_LATEST)->current_leader_epoch = epoch;
            call(&b, &c, API_LIST_OFFSETS, v, handle_list_offsets, &l.body, "client");
            assert_int_equal(answer(&c, 0)->error_code, epoch == 5   ? KERR_FENCED_LEADER_EPOCH
                                                        : epoch == 7 ? KERR_UNKNOWN_LEADER_EPOCH
                                                                     : KERR_NONE);
            assert_int_equal(answer(&c, 0)->leader_epoch, epoch == 6 ? 6 : -1);
            call_free(&c);
        }
    }
    broker_close(&b);
}

static void not_available_has_an_older_name_for_older_clients(void **state)
{
    struct broker b;
    int32_t both[] = {1, 2};
    broker_open(&b);
    struct partition *p = bench_leader(&b.bench, NUMBERS(1, 2));
    append_times(&b, p, CODEC_NONE, 1, (int64_t[]){T});
    struct lead lead = {
        .leader = 1, .leader_epoch = 1, .isr = both, .isr_n = 2, .replicas = both, .replicas_n = 2};
    assert_int_equal(bench_lead(&b.bench, "t", 0, lead), KERR_NONE);
    for (int v = 1; v <= 9; v++) {
        enum kerr e = v < 5 ? KERR_LEADER_NOT_AVAILABLE : KERR_OFFSET_NOT_AVAILABLE;
        expect(&b, v, LIST_LATEST, e, -1, -1);
        expect(&b, v, T, e, -1, -1);
        expect(&b, v, LIST_EARLIEST, KERR_NONE, 0, -1);
    }
    partition_unref(p);
    broker_close(&b);
}

static void isolation_and_replicas_decide_what_latest_is(void **state)
{
    struct broker b;
    struct query l;
    struct call c;
    broker_open(&b);
    struct partition *p = bench_leader(&b.bench, NUMBERS(1, 2));
    append_times(&b, p, CODEC_NONE, 3, (int64_t[]){T, T, T});
    bench_fetch(&b.bench, p, 2, 1, NULL);
    struct {
        int32_t replica;
        int8_t isolation;
        int64_t latest;
    } t[] = {{-1, 0, 1}, {-1, 1, 1}, {2, 0, 3}, {-2, 0, 3}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        query_init(&l);
        l.body.replica_id = t[i].replica;
        l.body.isolation_level = t[i].isolation;
        ask(&l, "t", 0, LIST_LATEST);
        call(&b, &c, API_LIST_OFFSETS, 4, handle_list_offsets, &l.body, "client");
        assert_int_equal(answer(&c, 0)->offset, t[i].latest);
        call_free(&c);
    }
    partition_unref(p);
    broker_close(&b);
}

/* v0: a list of segment starts. */
static void version_0_lists_segments(void **state)
{
    struct broker b;
    struct query l;
    struct call c;
    broker_open(&b);
    b.bench.config.segment_bytes = 300;
    b.bench.config.segment_index_bytes = 1024;
    struct partition *p = bench_leader(&b.bench, NUMBERS(1));
    for (int i = 0; i < 6; i++) /* 170 bytes each: one segment each */
        bench_append(&b.bench, p, 1, 1, NULL);
    struct {
        int64_t timestamp;
        int32_t max;
        int64_t offsets[8];
        int n;
    } t[] = {
        {LIST_LATEST, 10, {6, 5, 4, 3, 2, 1, 0}, 7},
        {LIST_LATEST, 1, {6}, 1},
        {LIST_LATEST, 3, {6, 5, 4}, 3},
        {LIST_EARLIEST, 10, {0}, 1},
        {LIST_LATEST, 0, {0}, 0},
        {0, 10, {0}, 0},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        query_init(&l);
        ask(&l, "t", 0, t[i].timestamp)->max_num_offsets = t[i].max;
        call(&b, &c, API_LIST_OFFSETS, 0, handle_list_offsets, &l.body, "client");
        drain(&b);
        const struct list_offsets_response_partition *a = answer(&c, 0);
        assert_int_equal(a->error_code, KERR_NONE);
        assert_int_equal(a->old_style_offsets.n, t[i].n);
        for (int k = 0; k < t[i].n; k++)
            assert_int_equal(a->old_style_offsets.v[k], t[i].offsets[k]);
        call_free(&c);
    }
    query_init(&l);
    ask(&l, "u", 0, LIST_LATEST);
    call(&b, &c, API_LIST_OFFSETS, 0, handle_list_offsets, &l.body, "client");
    drain(&b);
    assert_int_equal(answer(&c, 0)->error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(answer(&c, 0)->old_style_offsets.n, 0);
    call_free(&c);
    partition_unref(p);
    broker_close(&b);
}

/* ---- OffsetForLeaderEpoch ---- */

static void ends_of_epochs(void **state)
{
    struct broker b;
    broker_open(&b);
    struct partition *p = bench_leader(&b.bench, NUMBERS(1));
    bench_append(&b.bench, p, 4, 1, NULL);
    struct lead lead = {.leader = 1,
                        .leader_epoch = 2,
                        .isr = (int32_t[]){1},
                        .isr_n = 1,
                        .replicas = (int32_t[]){1},
                        .replicas_n = 1};
    assert_int_equal(bench_lead(&b.bench, "t", 0, lead), KERR_NONE);
    bench_append(&b.bench, p, 1, 1, NULL);
    struct {
        const char *topic;
        int32_t number, current, epoch;
        enum kerr error;
        int32_t found;
        int64_t end;
    } t[] = {
        {"t", 0, -1, 0, KERR_NONE, 0, 4},
        {"t", 0, -1, 1, KERR_NONE, 0, 4},
        {"t", 0, -1, 2, KERR_NONE, 2, 5}, /* the log end, never less than what was read */
        {"t", 0, -1, 3, KERR_NONE, -1, -1},
        {"t", 0, 2, 2, KERR_NONE, 2, 5},
        {"t", 0, 1, 2, KERR_FENCED_LEADER_EPOCH, -1, -1},
        {"t", 0, 3, 2, KERR_UNKNOWN_LEADER_EPOCH, -1, -1},
        {"t", 1, -1, 0, KERR_NOT_LEADER_OR_FOLLOWER, -1, -1},
        {"u", 0, -1, 0, KERR_UNKNOWN_TOPIC_OR_PARTITION, -1, -1},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        for (int v = 0; v <= 4; v++) {
            if (t[i].current >= 0 && v < 2)
                continue;
            struct offset_for_leader_epoch_request body;
            struct offset_for_leader_epoch_request_topic topic;
            struct offset_for_leader_epoch_request_partition part;
            struct call c;
            offset_for_leader_epoch_request_init(&body);
            offset_for_leader_epoch_request_topic_init(&topic);
            offset_for_leader_epoch_request_partition_init(&part);
            body.topics.v = &topic;
            body.topics.n = 1;
            topic.topic = str_of(t[i].topic);
            topic.partitions.v = &part;
            topic.partitions.n = 1;
            part.partition = t[i].number;
            part.current_leader_epoch = t[i].current;
            part.leader_epoch = t[i].epoch;
            call(&b, &c, API_OFFSET_FOR_LEADER_EPOCH, v, handle_offset_for_leader_epoch, &body,
                 "client");
            assert_int_equal(c.how, ANSWERED);
            const struct offset_for_leader_epoch_response *r = c.answer;
            assert_int_equal(r->topics.v[0].partitions.v[0].error_code, t[i].error);
            assert_int_equal(r->topics.v[0].partitions.v[0].partition, t[i].number);
            assert_int_equal(r->topics.v[0].partitions.v[0].leader_epoch, v >= 1 ? t[i].found : -1);
            assert_int_equal(r->topics.v[0].partitions.v[0].end_offset, t[i].end);
            call_free(&c);
        }
    }
    partition_unref(p);
    broker_close(&b);
}

UNIT_MAIN(unit_test(places_and_times_in_every_version), unit_test(empty_log_has_no_times),
          unit_test(partitions_in_error_and_named_twice), unit_test(epochs_are_checked_and_told),
          unit_test(not_available_has_an_older_name_for_older_clients),
          unit_test(isolation_and_replicas_decide_what_latest_is),
          unit_test(version_0_lists_segments), unit_test(ends_of_epochs))
