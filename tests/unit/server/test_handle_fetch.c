/* Fetch: sizes, waiting, errors, sessions through the handler, old formats. */
#include "protocol/msg/fetch.h"

#include "handler_bench.h"

/* ---- requests ---- */

struct fetch {
    struct fetch_request body;
    struct fetch_request_topic topics[8];
    struct fetch_request_partition parts[8];
    int version;
};

static void fetch_init(struct fetch *f, int version)
{
    memset(f, 0, sizeof *f);
    fetch_request_init(&f->body);
    f->version = version;
    f->body.min_bytes = 1;
    f->body.max_bytes = version >= 3 ? 1 << 20 : INT32_MAX;
    f->body.topics.v = f->topics;
}

static struct fetch_request_partition *want(struct fetch *f, const char *topic, int32_t number,
                                            int64_t offset)
{
    int n = f->body.topics.n++;
    fetch_request_topic_init(&f->topics[n]);
    fetch_request_partition_init(&f->parts[n]);
    if (f->version < 13)
        f->topics[n].topic = str_of(topic);
    else
        f->topics[n].topic_id.b[0] = (uint8_t)*topic;
    f->topics[n].partitions.v = &f->parts[n];
    f->topics[n].partitions.n = 1;
    f->parts[n].partition = number;
    f->parts[n].fetch_offset = offset;
    f->parts[n].partition_max_bytes = 1 << 20;
    return &f->parts[n];
}

static void send_fetch(struct broker *b, struct call *c, struct fetch *f)
{
    call(b, c, API_FETCH, f->version, handle_fetch, &f->body, "client");
}

static const struct fetch_response *response_of(struct call *c)
{
    assert_int_equal(c->how, ANSWERED);
    return c->answer;
}

/* The i-th partition of the answer, counted over all topics; NULL past the end. */
static const struct fetch_response_partition *part(struct call *c, int i)
{
    const struct fetch_response *r = response_of(c);
    for (int t = 0; t < r->responses.n; t++) {
        if (i < r->responses.v[t].partitions.n)
            return &r->responses.v[t].partitions.v[i];
        i -= r->responses.v[t].partitions.n;
    }
    return NULL;
}

/* Offsets of the records in a partition's answer, as "3 4 5"; checks each CRC. */
static const char *offsets(const struct fetch_response_partition *p, char *text)
{
    *text = '\0';
    for (int32_t at = 0; at < p->records.len;) {
        struct batch batch;
        struct record r;
        struct record_iter *it;
        size_t left = (size_t)(p->records.len - at);
        if (batch_decode(p->records.p + at, left, left, &batch) != BATCH_OK) {
            strcat(text, "..");
            break;
        }
        assert_true(batch_crc_ok(&batch));
        assert_int_equal(record_iter_open(&batch, &it), 0);
        while (record_iter_next(it, &r) == 1)
            sprintf(text + strlen(text), "%s%d", *text ? " " : "", (int)r.offset);
        record_iter_close(it);
        at += (int32_t)batch.size;
    }
    return text;
}

static void expect_offsets(struct call *c, int i, const char *list)
{
    char text[4096];
    const struct fetch_response_partition *p = part(c, i);
    assert_non_null(p);
    assert_int_equal(p->error_code, KERR_NONE);
    assert_string_equal(offsets(p, text), list);
}

static void broker_with_t(struct broker *b)
{
    broker_open(b);
    partition_unref(bench_leader(&b->bench, NUMBERS(1)));
}

/* n batches of one record to a partition led here. */
static void fill(struct broker *b, const char *topic, int32_t number, int n)
{
    enum kerr why;
    struct partition *p = replica_manager_find(b->bench.m, bench_tp(topic, number), &why);
    assert_non_null(p);
    for (int i = 0; i < n; i++)
        assert_int_equal(bench_append(&b->bench, p, 1, 1, NULL), KERR_NONE);
    partition_unref(p);
}

static void lead_also(struct broker *b, const char *topic, int32_t number)
{
    struct lead l = {.leader = 1,
                     .isr = (int32_t[]){1},
                     .isr_n = 1,
                     .replicas = (int32_t[]){1},
                     .replicas_n = 1,
                     .is_new = true};
    assert_int_equal(bench_lead(&b->bench, topic, number, l), KERR_NONE);
}

#define BATCH_SIZE 170 /* one record of 100 bytes; asserted below */

/* ---- records ---- */

static void every_version_reads(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    bench_metadata_ids(&b.bench, "t", 't');
    fill(&b, "t", 0, 3);
    for (int version = 0; version <= 17; version++) {
        fetch_init(&f, version);
        want(&f, "t", 0, 1);
        send_fetch(&b, &c, &f);
        drain(&b);
        expect_offsets(&c, 0, "1 2");
        const struct fetch_response_partition *p = part(&c, 0);
        assert_int_equal(p->high_watermark, 3);
        assert_int_equal(p->last_stable_offset, version >= 4 ? 3 : -1);
        assert_int_equal(p->log_start_offset, version >= 5 ? 0 : -1);
        assert_int_equal(p->records.p[16], version <= 1 ? 0 : version <= 3 ? 1 : 2);
        assert_int_equal(p->aborted_transactions.n, version >= 4 ? -1 : 0);
        if (version >= 4)
            assert_int_equal(p->records.len, 2 * BATCH_SIZE);
        call_free(&c);
    }
    broker_close(&b);
}

static void read_committed_lists_aborted_transactions(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    fill(&b, "t", 0, 1);
    fetch_init(&f, 4);
    f.body.isolation_level = 1;
    want(&f, "t", 0, 0);
    send_fetch(&b, &c, &f);
    expect_offsets(&c, 0, "0");
    assert_int_equal(part(&c, 0)->aborted_transactions.n, 0); /* a list, not null */
    call_free(&c);
    broker_close(&b);
}

/* ---- limits (KIP-74) ---- */

static void limits_let_one_batch_through_and_no_more(void **state)
{
    struct {
        int32_t max_bytes, part_max[2];
        const char *first, *second;
    } t[] = {
        {10000, {10000, 10000}, "0 1 2", "0 1 2"},
        {1, {10000, 10000}, "0", ""},
        {10000, {1, 10000}, "0", "0 1 2"},
        {10000, {1, 1}, "0", ""}, /* the second is no longer exempt */
        {10000, {0, 0}, "0", ""},
        {2 * BATCH_SIZE, {10000, 10000}, "0 1", ""},
        {4 * BATCH_SIZE, {10000, 10000}, "0 1 2", "0"},
        {10000, {2 * BATCH_SIZE, 2 * BATCH_SIZE}, "0 1", "0 1"},
    };
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    lead_also(&b, "t", 1);
    fill(&b, "t", 0, 3);
    fill(&b, "t", 1, 3);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        fetch_init(&f, 11);
        f.body.max_bytes = t[i].max_bytes;
        for (int k = 0; k < 2; k++)
            want(&f, "t", k, 0)->partition_max_bytes = t[i].part_max[k];
        send_fetch(&b, &c, &f);
        expect_offsets(&c, 0, t[i].first);
        expect_offsets(&c, 1, t[i].second);
        call_free(&c);
    }
    /* The broker's own limit counts, too. */
    b.fetch_max_bytes = BATCH_SIZE;
    fetch_init(&f, 11);
    want(&f, "t", 0, 0);
    send_fetch(&b, &c, &f);
    expect_offsets(&c, 0, "0");
    call_free(&c);
    broker_close(&b);
}

static void old_versions_cut_inside_the_first_batch(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    fill(&b, "t", 0, 2);
    for (int version = 0; version <= 2; version++) {
        fetch_init(&f, version);
        want(&f, "t", 0, 0)->partition_max_bytes = 50;
        send_fetch(&b, &c, &f);
        drain(&b);
        const struct fetch_response_partition *p = part(&c, 0);
        assert_int_equal(p->error_code, KERR_NONE);
        /* An entry that says it is longer than what is here: the client grows its buffer. */
        assert_int_equal(p->records.len, 12);
        assert_true((int32_t)get_be32(p->records.p + 8) > 0);
        call_free(&c);
    }
    broker_close(&b);
}

/* ---- waiting ---- */

static void waits_for_min_bytes(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    fetch_init(&f, 11);
    f.body.max_wait_ms = 500;
    f.body.min_bytes = 2 * BATCH_SIZE;
    want(&f, "t", 0, 0);
    send_fetch(&b, &c, &f);
    fill(&b, "t", 0, 1);
    drain(&b);
    assert_int_equal(c.how, WAITING);
    fill(&b, "t", 0, 1);
    drain(&b);
    expect_offsets(&c, 0, "0 1");
    call_free(&c);
    broker_close(&b);
}

static void min_bytes_is_summed_over_partitions_each_within_its_limit(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    lead_also(&b, "t", 1);
    fetch_init(&f, 11);
    f.body.max_wait_ms = 500;
    f.body.min_bytes = 2 * BATCH_SIZE;
    want(&f, "t", 0, 0)->partition_max_bytes = BATCH_SIZE;
    want(&f, "t", 1, 0);
    send_fetch(&b, &c, &f);
    fill(&b, "t", 0, 3); /* as much as one is allowed to count */
    drain(&b);
    assert_int_equal(c.how, WAITING);
    fill(&b, "t", 1, 1);
    drain(&b);
    expect_offsets(&c, 0, "0");
    expect_offsets(&c, 1, "0");
    call_free(&c);
    broker_close(&b);
}

static void answer_has_all_that_came_before_it(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    for (int before = 0; before < 2; before++) {
        broker_with_t(&b);
        lead_also(&b, "t", 1);
        fetch_init(&f, 11);
        f.body.max_wait_ms = 500;
        want(&f, "t", 0, 0);
        want(&f, "t", 1, 0);
        send_fetch(&b, &c, &f);
        for (int32_t i = 0; i < 2; i++) /* both, before the waiting one gets to run */
            fill(&b, "t", before ? i : 1 - i, 1 + i);
        drain(&b);
        expect_offsets(&c, 0, before ? "0" : "0 1");
        expect_offsets(&c, 1, before ? "0 1" : "0");
        assert_int_equal(part(&c, 0)->high_watermark, before ? 1 : 2);
        call_free(&c);
        broker_close(&b);
    }
}

static void max_wait_ends_with_what_there_is(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    fetch_init(&f, 11);
    f.body.max_wait_ms = 500;
    f.body.min_bytes = 10 * BATCH_SIZE;
    want(&f, "t", 0, 0);
    send_fetch(&b, &c, &f);
    fill(&b, "t", 0, 1);
    sim_executor_advance(b.bench.sim, 499);
    assert_int_equal(c.how, WAITING);
    sim_executor_advance(b.bench.sim, 1);
    expect_offsets(&c, 0, "0");
    call_free(&c);
    broker_close(&b);
}

static void end_of_an_older_segment_is_not_waited_at(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_open(&b);
    b.bench.config.segment_bytes = 3 * BATCH_SIZE;
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    fill(&b, "t", 0, 1);
    fetch_init(&f, 11);
    f.body.max_wait_ms = 500;
    f.body.min_bytes = 10 * BATCH_SIZE;
    want(&f, "t", 0, 1);
    send_fetch(&b, &c, &f);
    fill(&b, "t", 0, 2); /* the segment is full */
    drain(&b);
    assert_int_equal(c.how, WAITING);
    fill(&b, "t", 0, 1); /* and another is begun: ours can give no more than it has */
    drain(&b);
    expect_offsets(&c, 0, "1 2");
    call_free(&c);
    broker_close(&b);
}

static void answered_at_once(void **state)
{
    struct {
        const char *why, *topic;
        int32_t number, max_wait, min_bytes, max_bytes, epoch, last_epoch;
        int64_t offset;
        enum kerr error;
    } t[] = {
        {"no wait", "t", 0, 0, 1, 1000, -1, -1, 2, KERR_NONE},
        {"nothing wanted", "t", 0, 500, 0, 1000, -1, -1, 2, KERR_NONE},
        {"nothing allowed", "t", 0, 500, 1, 0, -1, -1, 2, KERR_NONE},
        {"not here", "t", 1, 500, 1, 1000, -1, -1, 2, KERR_NOT_LEADER_OR_FOLLOWER},
        {"only unknown", "u", 0, 500, 1, 1000, -1, -1, 2, KERR_UNKNOWN_TOPIC_OR_PARTITION},
        {"beyond the end", "t", 0, 500, 1, 1000, -1, -1, 3, KERR_OFFSET_OUT_OF_RANGE},
        {"before the start", "t", 0, 500, 1, 1000, -1, -1, -1, KERR_OFFSET_OUT_OF_RANGE},
        {"newer epoch", "t", 0, 500, 1, 1000, 1, -1, 2, KERR_UNKNOWN_LEADER_EPOCH},
        {"unknown last epoch", "t", 0, 500, 1, 1000, 0, 9, 2, KERR_OFFSET_OUT_OF_RANGE},
    };
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    fill(&b, "t", 0, 2);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        fetch_init(&f, 12);
        f.body.max_wait_ms = t[i].max_wait;
        f.body.min_bytes = t[i].min_bytes;
        f.body.max_bytes = t[i].max_bytes;
        struct fetch_request_partition *p = want(&f, t[i].topic, t[i].number, t[i].offset);
        p->current_leader_epoch = t[i].epoch;
        p->last_fetched_epoch = t[i].last_epoch;
        send_fetch(&b, &c, &f);
        if (c.how == WAITING)
            fail_msg("waited: %s", t[i].why);
        assert_int_equal(part(&c, 0)->error_code, t[i].error);
        assert_int_equal(part(&c, 0)->high_watermark, t[i].error ? -1 : 2);
        assert_int_equal(part(&c, 0)->records.len, 0); /* empty, not null */
        call_free(&c);
    }
    broker_close(&b);
}

static void unknown_partition_beside_an_idle_one_does_not_hurry(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    fetch_init(&f, 11);
    f.body.max_wait_ms = 500;
    want(&f, "u", 0, 0);
    want(&f, "t", 0, 0);
    send_fetch(&b, &c, &f);
    drain(&b);
    assert_int_equal(c.how, WAITING);
    fill(&b, "t", 0, 1);
    drain(&b);
    assert_int_equal(part(&c, 0)->error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    expect_offsets(&c, 1, "0");
    call_free(&c);
    broker_close(&b);
}

static void role_change_ends_the_wait(void **state)
{
    for (int how = 0; how < 3; how++) {
        struct broker b;
        struct fetch f;
        struct call c;
        int32_t both[] = {1, 2};
        broker_with_t(&b);
        fetch_init(&f, 10); /* must be served by the leader */
        f.body.max_wait_ms = 500;
        want(&f, "t", 0, 0)->current_leader_epoch = how == 2 ? 0 : -1;
        send_fetch(&b, &c, &f);
        drain(&b);
        assert_int_equal(c.how, WAITING);
        struct lead l = {.leader = how == 2 ? 1 : 2,
                         .leader_epoch = 1,
                         .isr = both,
                         .isr_n = 2,
                         .replicas = both,
                         .replicas_n = 2};
        if (how == 0)
            bench_stop(&b.bench, "t", 0, -2, true);
        else
            bench_lead(&b.bench, "t", 0, l);
        drain(&b);
        assert_int_equal(part(&c, 0)->error_code,
                         how == 2 ? KERR_FENCED_LEADER_EPOCH : KERR_NOT_LEADER_OR_FOLLOWER);
        call_free(&c);
        broker_close(&b);
    }
}

static void follower_waits_for_the_log_end(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c, consumer;
    broker_open(&b);
    partition_unref(bench_leader(&b.bench, NUMBERS(1, 2)));
    for (int version = 11; version <= 17; version += 6) {
        int64_t at = version == 11 ? 0 : 1;
        bench_metadata_ids(&b.bench, "t", 't');
        fetch_init(&f, version);
        f.body.max_wait_ms = 500;
        want(&f, "t", 0, at);
        send_fetch(&b, &consumer, &f);
        if (version < 15)
            f.body.replica_id = 2;
        else
            f.body.replica_state.replica_id = 2;
        send_fetch(&b, &c, &f);
        drain(&b);
        assert_int_equal(c.how, WAITING);
        fill(&b, "t", 0, 1); /* not committed */
        drain(&b);
        expect_offsets(&c, 0, version == 11 ? "0" : "1");
        assert_int_equal(consumer.how, WAITING);
        call_free(&c);
        f.body.max_wait_ms = 0;
        f.parts[0].fetch_offset = at + 1;
        send_fetch(&b, &c, &f); /* commits it */
        drain(&b);
        expect_offsets(&c, 0, "");
        expect_offsets(&consumer, 0, version == 11 ? "0" : "1");
        call_free(&c);
        call_free(&consumer);
    }
    broker_close(&b);
}

/* What there is is told at once, be it less than what was asked for. */
static void client_that_ended_its_side_is_answered(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    fetch_init(&f, 11);
    f.body.max_wait_ms = 500000;
    f.body.min_bytes = 1 << 20;
    want(&f, "t", 0, 0);
    for (int there = 0; there < 3; there++) {
        static const char *const offsets_then[] = {"", "0", "0 1"};
        send_fetch(&b, &c, &f);
        assert_int_equal(c.how, WAITING);
        end_side(&c);
        drain(&b);
        expect_offsets(&c, 0, offsets_then[there]);
        call_free(&c);
        fill(&b, "t", 0, 1);
    }
    send_fetch(&b, &c, &f);
    fill(&b, "t", 0, 1); /* woken, and ended before it could look */
    end_side(&c);
    drain(&b);
    expect_offsets(&c, 0, "0 1 2 3");
    call_free(&c);
    broker_close(&b);
}

static void client_that_left_is_not_waited_for(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    fetch_init(&f, 11);
    f.body.max_wait_ms = 500000;
    want(&f, "t", 0, 0);
    send_fetch(&b, &c, &f);
    disconnect(&c);
    assert_int_equal(c.how, NO_ANSWER);
    call_free(&c);
    send_fetch(&b, &c, &f);
    fill(&b, "t", 0, 1); /* woken, and left before it could look */
    disconnect(&c);
    assert_int_equal(c.how, WAITING);
    drain(&b);
    assert_int_equal(c.how, NO_ANSWER);
    call_free(&c);
    enum kerr why;
    struct partition *p = replica_manager_find(b.bench.m, bench_tp("t", 0), &why);
    assert_int_equal(atomic_load(&p->waiters_n), 0);
    partition_unref(p);
    broker_close(&b);
}

/* ---- partitions ---- */

static void shuffled_topics_are_answered_each_under_its_own(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    lead_also(&b, "t", 1);
    bench_metadata(&b.bench, 3, "v");
    lead_also(&b, "v", 0);
    fill(&b, "t", 0, 1);
    fill(&b, "v", 0, 2);
    for (int version = 4; version <= 11; version += 7) {
        fetch_init(&f, version);
        want(&f, "t", 0, 0);
        want(&f, "v", 0, 0);
        want(&f, "u", 5, 0);
        want(&f, "t", 1, 0);
        want(&f, "t", 0, 0); /* again */
        send_fetch(&b, &c, &f);
        const struct fetch_response *r = response_of(&c);
        const struct {
            const char *topic;
            int32_t number;
            enum kerr error;
            int records;
        } expected[] = {{"t", 0, KERR_NONE, 1},
                        {"v", 0, KERR_NONE, 2},
                        {"u", 5, KERR_UNKNOWN_TOPIC_OR_PARTITION, 0},
                        {"t", 1, KERR_NONE, 0}};
        assert_int_equal(r->responses.n, 4);
        for (int i = 0; i < 4; i++) {
            const struct fetch_response_partition *p = &r->responses.v[i].partitions.v[0];
            assert_true(str_eqz(r->responses.v[i].topic, expected[i].topic));
            assert_int_equal(r->responses.v[i].partitions.n, 1);
            assert_int_equal(p->partition_index, expected[i].number);
            assert_int_equal(p->error_code, expected[i].error);
            assert_int_equal(p->records.len, expected[i].records * BATCH_SIZE);
        }
        call_free(&c);
    }
    broker_close(&b);
}

static void neighbours_of_one_topic_share_its_head(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    lead_also(&b, "t", 1);
    fetch_init(&f, 11);
    want(&f, "t", 1, 0);
    want(&f, "t", 0, 0);
    send_fetch(&b, &c, &f);
    assert_int_equal(response_of(&c)->responses.n, 1);
    assert_int_equal(part(&c, 0)->partition_index, 1);
    assert_int_equal(part(&c, 1)->partition_index, 0);
    call_free(&c);
    broker_close(&b);
}

static void topic_ids(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_open(&b);
    struct lead l = {.leader = 1,
                     .isr = (int32_t[]){1},
                     .isr_n = 1,
                     .replicas = (int32_t[]){1},
                     .replicas_n = 1,
                     .is_new = true,
                     .id = {{'x'}}};
    assert_int_equal(bench_lead(&b.bench, "t", 0, l), KERR_NONE);
    fill(&b, "t", 0, 1);
    fetch_init(&f, 13);
    want(&f, "x", 0, 0);
    send_fetch(&b, &c, &f); /* the metadata does not know it yet */
    assert_int_equal(part(&c, 0)->error_code, KERR_UNKNOWN_TOPIC_ID);
    assert_int_equal(response_of(&c)->responses.v[0].topic_id.b[0], 'x');
    call_free(&c);
    bench_metadata_ids(&b.bench, "t", 'x');
    send_fetch(&b, &c, &f);
    expect_offsets(&c, 0, "0");
    call_free(&c);
    bench_metadata_ids(&b.bench, "t", 'y'); /* made anew elsewhere; our log is the old one's */
    fetch_init(&f, 13);
    want(&f, "y", 0, 0);
    send_fetch(&b, &c, &f);
    assert_int_equal(part(&c, 0)->error_code, KERR_INCONSISTENT_TOPIC_ID);
    assert_int_equal(part(&c, 0)->records.len, 0);
    call_free(&c);
    fetch_init(&f, 12); /* by name nobody asks */
    want(&f, "t", 0, 0);
    send_fetch(&b, &c, &f);
    expect_offsets(&c, 0, "0");
    call_free(&c);
    broker_close(&b);
}

static void storage_error_has_an_older_name_for_older_clients(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    fs_fault_add(
        b.bench.fault,
        (struct fs_fault_rule){
            .call = FS_PWRITEV, .path = "*.log", .times = 1, .error = EIO, .write_bytes = -1});
    enum kerr why;
    struct partition *p = replica_manager_find(b.bench.m, bench_tp("t", 0), &why);
    assert_int_equal(bench_append(&b.bench, p, 1, 1, NULL), KERR_KAFKA_STORAGE_ERROR);
    partition_unref(p);
    drain(&b);
    for (int version = 4; version <= 7; version++) {
        fetch_init(&f, version);
        f.body.max_wait_ms = 500;
        want(&f, "t", 0, 0);
        send_fetch(&b, &c, &f);
        assert_int_equal(part(&c, 0)->error_code,
                         version < 6 ? KERR_NOT_LEADER_OR_FOLLOWER : KERR_KAFKA_STORAGE_ERROR);
        call_free(&c);
    }
    broker_close(&b);
}

static void new_leader_is_named(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    int32_t both[] = {1, 2};
    broker_with_t(&b);
    struct lead l = {
        .leader = 2, .leader_epoch = 4, .isr = both, .isr_n = 2, .replicas = both, .replicas_n = 2};
    assert_int_equal(bench_lead(&b.bench, "t", 0, l), KERR_NONE);
    bench_metadata_ids(&b.bench, "t", 't');
    for (int version = 15; version <= 17; version++) {
        fetch_init(&f, version);
        want(&f, "t", 0, 0)->current_leader_epoch = 3;
        send_fetch(&b, &c, &f);
        assert_int_equal(part(&c, 0)->error_code, KERR_FENCED_LEADER_EPOCH);
        assert_int_equal(part(&c, 0)->current_leader.leader_id, version >= 16 ? 2 : -1);
        assert_int_equal(part(&c, 0)->current_leader.leader_epoch, version >= 16 ? 4 : -1);
        assert_int_equal(response_of(&c)->node_endpoints.n, version >= 16);
        if (version >= 16)
            assert_int_equal(response_of(&c)->node_endpoints.v[0].port, 9002);
        call_free(&c);
    }
    broker_close(&b);
}

static void divergence_is_answered_at_once(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    fill(&b, "t", 0, 5);
    struct lead l = {.leader = 1,
                     .leader_epoch = 3,
                     .isr = (int32_t[]){1},
                     .isr_n = 1,
                     .replicas = (int32_t[]){1},
                     .replicas_n = 1};
    assert_int_equal(bench_lead(&b.bench, "t", 0, l), KERR_NONE);
    fetch_init(&f, 12);
    f.body.max_wait_ms = 500;
    want(&f, "t", 0, 9)->last_fetched_epoch = 0;
    send_fetch(&b, &c, &f);
    assert_int_equal(part(&c, 0)->error_code, KERR_NONE);
    assert_int_equal(part(&c, 0)->diverging_epoch.epoch, 0);
    assert_int_equal(part(&c, 0)->diverging_epoch.end_offset, 5);
    assert_int_equal(part(&c, 0)->high_watermark, 5);
    assert_int_equal(part(&c, 0)->records.len, 0);
    call_free(&c);
    broker_close(&b);
}

/* ---- followers ---- */

/* A follower that lags gets nothing while the rate is too high, and waits as for records; one in
 * sync gets all. */
static void lagging_followers_are_held_back(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    struct lead l = {.leader = 1,
                     .leader_epoch = 1,
                     .isr = (int32_t[]){1, 2},
                     .isr_n = 2,
                     .replicas = (int32_t[]){1, 2, 3},
                     .replicas_n = 3};
    assert_int_equal(bench_lead(&b.bench, "t", 0, l), KERR_NONE);
    fill(&b, "t", 0, 5);
    b.hold_followers = true;
    fetch_init(&f, 12);
    f.body.replica_id = 3;
    f.body.max_wait_ms = 500;
    want(&f, "t", 0, 0);
    send_fetch(&b, &c, &f);
    drain(&b);
    assert_int_equal(c.how, WAITING);
    fill(&b, "t", 0, 5);
    drain(&b);
    assert_int_equal(c.how, WAITING); /* more of what is held back wakes nobody */
    sim_executor_advance(b.bench.sim, 500);
    assert_int_equal(part(&c, 0)->error_code, KERR_NONE);
    assert_int_equal(part(&c, 0)->records.len, 0);
    call_free(&c);
    f.body.replica_id = 2;
    send_fetch(&b, &c, &f);
    assert_true(part(&c, 0)->records.len > 0);
    call_free(&c);
    b.hold_followers = false;
    f.body.replica_id = 3;
    send_fetch(&b, &c, &f);
    assert_true(part(&c, 0)->records.len > 0);
    call_free(&c);
    broker_close(&b);
}

/* ---- formats ---- */

static void zstd_topics_need_version_10(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_open(&b);
    b.bench.config.compression = CODEC_ZSTD;
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    fill(&b, "t", 0, 1);
    for (int version = 0; version <= 11; version++) {
        fetch_init(&f, version);
        want(&f, "t", 0, 0);
        send_fetch(&b, &c, &f);
        drain(&b);
        assert_int_equal(part(&c, 0)->error_code,
                         version < 10 ? KERR_UNSUPPORTED_COMPRESSION_TYPE : KERR_NONE);
        call_free(&c);
    }
    broker_close(&b);
}

static void down_conversion_can_be_forbidden(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_open(&b);
    b.bench.config.down_conversion = false;
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    fill(&b, "t", 0, 1);
    for (int version = 2; version <= 4; version++) {
        fetch_init(&f, version);
        want(&f, "t", 0, 0);
        send_fetch(&b, &c, &f);
        drain(&b);
        assert_int_equal(part(&c, 0)->error_code, version < 4 ? KERR_UNSUPPORTED_VERSION : 0);
        call_free(&c);
    }
    broker_close(&b);
}

static void conversion_of_much_is_cut_and_goes_on(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    enum kerr why;
    broker_with_t(&b);
    struct partition *p = replica_manager_find(b.bench.m, bench_tp("t", 0), &why);
    for (int i = 0; i < 60; i++) /* 6 MB */
        assert_int_equal(bench_append(&b.bench, p, 1000, 1, NULL), KERR_NONE);
    partition_unref(p);
    int64_t next = 0;
    int rounds = 0;
    while (next < 60000) {
        fetch_init(&f, 3);
        f.body.max_bytes = 50000000;
        want(&f, "t", 0, next)->partition_max_bytes = 50000000;
        send_fetch(&b, &c, &f);
        drain(&b);
        const struct fetch_response_partition *a = part(&c, 0);
        assert_int_equal(a->error_code, KERR_NONE);
        assert_true(a->records.len < 8 << 20);
        for (int32_t at = 0; at < a->records.len;) {
            struct batch e;
            size_t left = (size_t)(a->records.len - at);
            assert_int_equal(batch_decode(a->records.p + at, left, left, &e), BATCH_OK);
            assert_int_equal(e.magic, 1);
            assert_int_equal(e.base_offset, next++);
            at += (int32_t)e.size;
        }
        assert_true(++rounds < 10);
        call_free(&c);
    }
    assert_true(rounds > 1);
    broker_close(&b);
}

/* ---- sessions through the handler ---- */

static void incremental_session_end_to_end(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    broker_with_t(&b);
    lead_also(&b, "t", 1);
    fill(&b, "t", 1, 1);
    fetch_init(&f, 12);
    f.body.session_epoch = 0;
    want(&f, "t", 0, 0);
    want(&f, "t", 1, 0);
    send_fetch(&b, &c, &f);
    int32_t id = response_of(&c)->session_id;
    assert_true(id > 0);
    expect_offsets(&c, 0, "");
    expect_offsets(&c, 1, "0");
    call_free(&c);

    fetch_init(&f, 12); /* t-1 goes on; only news comes back */
    f.body.session_id = id;
    f.body.session_epoch = 1;
    f.body.max_wait_ms = 500;
    want(&f, "t", 1, 1);
    send_fetch(&b, &c, &f);
    drain(&b);
    assert_int_equal(c.how, WAITING);
    fill(&b, "t", 0, 2);
    drain(&b);
    assert_int_equal(response_of(&c)->session_id, id);
    assert_int_equal(part(&c, 0)->partition_index, 0);
    expect_offsets(&c, 0, "0 1");
    assert_null(part(&c, 1));
    call_free(&c);

    send_fetch(&b, &c, &f); /* the same epoch again */
    assert_int_equal(response_of(&c)->error_code, KERR_INVALID_FETCH_SESSION_EPOCH);
    assert_int_equal(response_of(&c)->session_id, 0);
    assert_int_equal(response_of(&c)->responses.n, 0);
    call_free(&c);

    f.body.session_id = id ^ 1;
    send_fetch(&b, &c, &f);
    assert_int_equal(response_of(&c)->error_code, KERR_FETCH_SESSION_ID_NOT_FOUND);
    call_free(&c);
    broker_close(&b);
}

/* A session delivers the same records as fetches without, under a limit that lets one partition
 * through at a time. */
static void session_is_fair_and_loses_nothing(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    int64_t next[2] = {0};
    int32_t id = 0;
    broker_with_t(&b);
    lead_also(&b, "t", 1);
    for (int32_t i = 0; i < 2; i++)
        fill(&b, "t", i, 4);
    for (int round = 0; round < 8; round++) {
        fetch_init(&f, 12);
        f.body.session_id = id;
        f.body.session_epoch = round;
        f.body.max_bytes = 1;
        for (int32_t i = 0; i < 2; i++)
            want(&f, "t", i, next[i]);
        send_fetch(&b, &c, &f);
        id = response_of(&c)->session_id;
        int with_records = 0;
        const struct fetch_response_partition *p;
        for (int i = 0; (p = part(&c, i)) != NULL; i++) {
            if (p->records.len == 0)
                continue;
            with_records++;
            assert_int_equal(get_be64(p->records.p), next[p->partition_index]++);
        }
        assert_int_equal(with_records, 1);
        assert_true(next[0] - next[1] <= 2 && next[1] - next[0] <= 2); /* they take turns */
        call_free(&c);
    }
    assert_int_equal(next[0] + next[1], 8);
    broker_close(&b);
}

/* ---- records that are not in memory ---- */

/* What happened, in order: "r" cold partition t-0 was read from the disk. */
static char events[256];

static void on_disk_read(void *arg)
{
    strcat(events, "r");
}

/* From now on nothing of t-0 is in memory for the next `times` looks (-1: ever). */
static void make_cold(struct broker *b, int times)
{
    events[0] = '\0';
    fs_fault_add(b->bench.fault,
                 (struct fs_fault_rule){
                     .call = FS_PREAD_NOW, .path = "*/t-0/*", .times = times, .error = EAGAIN});
    fs_fault_add(b->bench.fault,
                 (struct fs_fault_rule){
                     .call = FS_PREAD, .path = "*/t-0/*.log", .times = -1, .before = on_disk_read});
}

static void two_partitions(struct broker *b)
{
    broker_with_t(b);
    lead_also(b, "t", 1);
    fill(b, "t", 0, 3);
    fill(b, "t", 1, 3);
}

static void send_for(struct broker *b, struct call *c, struct fetch *f, int32_t number,
                     int64_t offset)
{
    fetch_init(f, 11);
    want(f, "t", number, offset);
    send_fetch(b, c, f);
}

/* However slow the disk is for one: those who come meanwhile for records in memory are served. */
static void cold_records_hold_up_nobody_else(void **state)
{
    struct broker b;
    struct fetch f;
    struct call cold, hot;
    two_partitions(&b);
    make_cold(&b, 1);
    send_for(&b, &cold, &f, 0, 1);
    assert_int_equal(cold.how, WAITING); /* a worker has it */
    assert_string_equal(events, "");     /* and the reactor did not touch the disk */
    for (int i = 0; i < 3; i++) {
        send_for(&b, &hot, &f, 1, i);
        assert_int_equal(hot.how, ANSWERED);
        call_free(&hot);
        fill(&b, "t", 1, 1);
        assert_int_equal(cold.how, WAITING);
        assert_string_equal(events, "");
    }
    drain(&b);
    assert_true(events[0] == 'r');
    expect_offsets(&cold, 0, "1 2");
    call_free(&cold);
    send_for(&b, &cold, &f, 0, 0); /* warm now */
    expect_offsets(&cold, 0, "0 1 2");
    call_free(&cold);
    broker_close(&b);
}

/* The end of a wait comes from its client's end: one that began after it would last max_wait_ms. */
static void nobody_waits_for_a_client_that_left_while_it_was_read_for(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    two_partitions(&b);
    make_cold(&b, 1);
    fetch_init(&f, 11);
    f.body.max_wait_ms = INT32_MAX;
    f.body.min_bytes = 1 << 20;
    want(&f, "t", 0, 0);
    send_fetch(&b, &c, &f);
    assert_int_equal(c.how, WAITING);
    disconnect(&c);
    assert_int_equal(c.how, WAITING); /* a worker may be at it */
    drain(&b);
    assert_int_equal(c.how, NO_ANSWER);
    assert_string_equal(events, ""); /* it had not begun, and does not */
    call_free(&c);
    broker_close(&b);
}

/* Pages that do not stay are waited for in the end. */
static void records_that_stay_cold_are_answered_too(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    two_partitions(&b);
    make_cold(&b, -1);
    fetch_init(&f, 11);
    want(&f, "t", 1, 1);
    want(&f, "t", 0, 1);
    send_fetch(&b, &c, &f);
    assert_int_equal(c.how, WAITING);
    drain(&b);
    expect_offsets(&c, 0, "1 2");
    expect_offsets(&c, 1, "1 2");
    call_free(&c);
    broker_close(&b);
}

/* Each look that a fetch takes at a page may find it gone. */
static void any_page_may_be_cold(void **state)
{
    for (int version = 4; version <= 11; version += 7)
        for (int isolation = 0; isolation < 2; isolation++)
            for (int skip = 0; skip < 8; skip++) {
                struct broker b;
                struct fetch f;
                struct call c;
                broker_open(&b);
                b.bench.config.segment_bytes = 3 * BATCH_SIZE;
                b.bench.config.index_interval_bytes = 100;
                partition_unref(bench_leader(&b.bench, NUMBERS(1)));
                fill(&b, "t", 0, 8);
                fs_fault_add(b.bench.fault, (struct fs_fault_rule){.call = FS_PREAD_NOW,
                                                                   .path = "*/t-0/*",
                                                                   .skip = skip,
                                                                   .times = 2,
                                                                   .error = EAGAIN});
                fetch_init(&f, version);
                f.body.isolation_level = (int8_t)isolation;
                want(&f, "t", 0, 4);
                send_fetch(&b, &c, &f);
                drain(&b);
                expect_offsets(&c, 0, "4 5");
                call_free(&c);
                broker_close(&b);
            }
}

static void a_fetch_that_waited_finds_cold_records(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    for (int min_bytes = 1; min_bytes < 3 * BATCH_SIZE; min_bytes += BATCH_SIZE) {
        broker_with_t(&b);
        fetch_init(&f, 11);
        f.body.max_wait_ms = 500;
        f.body.min_bytes = min_bytes;
        want(&f, "t", 0, 0);
        send_fetch(&b, &c, &f);
        make_cold(&b, 2);
        fill(&b, "t", 0, 3);
        drain(&b);
        expect_offsets(&c, 0, "0 1 2");
        call_free(&c);
        broker_close(&b);
    }
}

/* After a start nothing is open: opening is work for workers, too. */
static void closed_files_are_cold(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    two_partitions(&b);
    bench_stop_logs(&b.bench);
    bench_open_logs(&b.bench);
    assert_int_equal(bench_metadata(&b.bench, 3, "t"), KERR_NONE);
    partition_unref(bench_leader(&b.bench, NUMBERS(1)));
    make_cold(&b, 0);
    uint64_t opened = fs_fault_count(b.bench.fault, FS_OPEN);
    send_for(&b, &c, &f, 0, 0);
    assert_int_equal(fs_fault_count(b.bench.fault, FS_OPEN), opened);
    assert_int_equal(c.how, WAITING);
    drain(&b);
    expect_offsets(&c, 0, "0 1 2");
    call_free(&c);
    broker_close(&b);
}

/* A disk that fails is not one that is slow. */
static void a_read_error_is_told(void **state)
{
    struct broker b;
    struct fetch f;
    struct call c;
    two_partitions(&b);
    fs_fault_add(b.bench.fault,
                 (struct fs_fault_rule){
                     .call = FS_PREAD_NOW, .path = "*/t-0/*", .times = 1, .error = EAGAIN});
    fs_fault_add(
        b.bench.fault,
        (struct fs_fault_rule){.call = FS_PREAD, .path = "*/t-0/*.log", .times = -1, .error = EIO});
    send_for(&b, &c, &f, 0, 0);
    drain(&b);
    assert_int_equal(part(&c, 0)->error_code, KERR_KAFKA_STORAGE_ERROR);
    call_free(&c);
    broker_close(&b);
}

UNIT_MAIN(unit_test(every_version_reads), unit_test(read_committed_lists_aborted_transactions),
          unit_test(limits_let_one_batch_through_and_no_more),
          unit_test(old_versions_cut_inside_the_first_batch), unit_test(waits_for_min_bytes),
          unit_test(min_bytes_is_summed_over_partitions_each_within_its_limit),
          unit_test(answer_has_all_that_came_before_it),
          unit_test(max_wait_ends_with_what_there_is), unit_test(answered_at_once),
          unit_test(end_of_an_older_segment_is_not_waited_at),
          unit_test(unknown_partition_beside_an_idle_one_does_not_hurry),
          unit_test(role_change_ends_the_wait), unit_test(follower_waits_for_the_log_end),
          unit_test(client_that_left_is_not_waited_for),
          unit_test(client_that_ended_its_side_is_answered),
          unit_test(shuffled_topics_are_answered_each_under_its_own),
          unit_test(neighbours_of_one_topic_share_its_head), unit_test(topic_ids),
          unit_test(storage_error_has_an_older_name_for_older_clients),
          unit_test(new_leader_is_named), unit_test(divergence_is_answered_at_once),
          unit_test(lagging_followers_are_held_back), unit_test(zstd_topics_need_version_10),
          unit_test(down_conversion_can_be_forbidden),
          unit_test(conversion_of_much_is_cut_and_goes_on),
          unit_test(incremental_session_end_to_end), unit_test(session_is_fair_and_loses_nothing),
          unit_test(cold_records_hold_up_nobody_else),
          unit_test(nobody_waits_for_a_client_that_left_while_it_was_read_for),
          unit_test(records_that_stay_cold_are_answered_too), unit_test(any_page_may_be_cold),
          unit_test(a_fetch_that_waited_finds_cold_records), unit_test(closed_files_are_cold),
          unit_test(a_read_error_is_told))
