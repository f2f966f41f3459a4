/* Appends of magic 2 batches: every rule of the leader's path, what changes in place, what is
 * rebuilt, and what replication takes. Numbers in names are those of the storage invariants. */
#include <errno.h>

#include "records_util.h"

/* One append of a copy of `in`. */
struct append {
    struct append_policy policy;
    struct buf bytes; /* what the caller's memory holds afterwards */
    struct arena arena;
    struct prepared pr;
    enum kerr code;
};

static void append_run(struct append *t, const struct buf *in)
{
    t->bytes = BUF_INIT;
    buf_put(&t->bytes, in->p, in->len);
    arena_init(&t->arena, 1 << 20);
    t->code = records_prepare(&t->policy, t->bytes.p, t->bytes.len, &t->arena, &t->pr);
}

static void append_free(struct append *t)
{
    prepared_free(&t->pr);
    arena_free(&t->arena);
    buf_free(&t->bytes);
}

/* Expects `code`, and the caller's bytes untouched when it is an error (8). */
static void expect_code(const struct append_policy *policy, const struct buf *in, enum kerr code)
{
    struct append t = {.policy = *policy};
    append_run(&t, in);
    if (t.code != code)
        print_error("got %s (%s), not %s\n", kerr_name((int16_t)t.code),
                    t.pr.message ? t.pr.message : "-", kerr_name((int16_t)code));
    assert_int_equal(t.code, code);
    if (code != KERR_NONE) {
        assert_memory_equal(t.bytes.p, in->p, in->len);
        assert_non_null(t.pr.message);
    }
    append_free(&t);
}

/* ---- in place ---- */

static bool in_ranges(size_t i, bool also_time)
{
    return i < 8 || (i >= 12 && i < 16) ||
           (also_time && ((i >= 17 && i < 23) || (i >= 35 && i < 43)));
}

/* What was prepared says what the bytes say. */
static void check_same_head(const struct batch *a, const struct batch *b)
{
    assert_ptr_equal(a->p, b->p);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->attributes, b->attributes);
    assert_int_equal(a->leader_epoch, b->leader_epoch);
    assert_int_equal(a->crc, b->crc);
    assert_int_equal(a->base_offset, b->base_offset);
    assert_int_equal(a->last_offset, b->last_offset);
    assert_int_equal(a->max_timestamp, b->max_timestamp);
    assert_int_equal(a->record_count, b->record_count);
}

static void check_in_place(const struct append_policy *policy, const struct buf *in, int n,
                           int64_t max, bool time_changes)
{
    struct append t = {.policy = *policy};
    append_run(&t, in);
    assert_int_equal(t.code, KERR_NONE);
    assert_ptr_equal(t.pr.p, t.bytes.p);
    assert_int_equal(t.pr.len, in->len);
    assert_int_equal(t.pr.offsets_n, n);
    assert_int_equal(t.pr.max_timestamp, max);
    assert_int_equal(t.pr.max_timestamp_delta, n - 1);
    records_assign(&t.pr, 500, 7);
    assert_int_equal(t.pr.first_offset, 500);
    assert_int_equal(t.pr.last_offset, 500 + n - 1);
    for (size_t i = 0; i < in->len; i++)
        if (!in_ranges(i, time_changes))
            assert_int_equal(t.bytes.p[i], in->p[i]);
    struct batch b = decode(t.pr.p, t.pr.len);
    check_same_head(&b, &t.pr.batches[0].head);
    assert_true(batch_crc_ok(&b));
    assert_int_equal(b.base_offset, 500);
    assert_int_equal(b.leader_epoch, 7);
    assert_int_equal(b.max_timestamp, max);
    assert_int_equal(!!(b.attributes & BATCH_LOG_APPEND_TIME), policy->log_append_time);
    assert_int_equal(iterate(&b), n);
    append_free(&t);
}

static void only_offset_and_epoch_change_in_place_5_6_7(void **state)
{
    for (enum codec c = CODEC_NONE; c < CODECS; c++) {
        struct buf in = build(2, c, 5);
        struct append_policy policy = default_policy();
        check_in_place(&policy, &in, 5, T0 + 4, false);
        policy.compression = (int)c; /* the topic names the codec that the batch has */
        check_in_place(&policy, &in, 5, T0 + 4, false);
        policy.log_append_time = true;
        check_in_place(&policy, &in, 5, policy.now_ms, true);
        /* a level of its own is no reason */
        policy = default_policy();
        policy.compression = (int)c;
        policy.level = c == CODEC_NONE || c == CODEC_SNAPPY ? CODEC_LEVEL_DEFAULT : 5;
        check_in_place(&policy, &in, 5, T0 + 4, false);
        buf_free(&in);
    }
}

static void a_wrong_max_timestamp_is_corrected(void **state)
{
    static const int64_t wrong[] = {-1, 0, T0 + 3, T0 + 5, INT64_MAX, INT64_MIN};
    for (enum codec c = CODEC_NONE; c < CODECS; c++) {
        struct buf in = build(2, c, 5);
        for (int i = 0; i < 6; i++) {
            put_be64(in.p + BATCH_AT_MAX_TIMESTAMP, (uint64_t)wrong[i]);
            reseal(in.p, in.len);
            struct append_policy policy = default_policy();
            check_in_place(&policy, &in, 5, T0 + 4, true);
        }
        buf_free(&in);
    }
}

static void unknown_attributes_go_only_when_others_change(void **state)
{
    struct buf in = build(2, CODEC_NONE, 2);
    in.p[BATCH_AT_ATTRIBUTES] = 0x5a;
    reseal(in.p, in.len);
    struct append t = {.policy = default_policy()};
    append_run(&t, &in);
    assert_int_equal(t.code, KERR_NONE);
    assert_memory_equal(t.bytes.p, in.p, in.len);
    append_free(&t);
    t.policy.log_append_time = true;
    append_run(&t, &in);
    assert_int_equal(get_be16(t.bytes.p + BATCH_AT_ATTRIBUTES), BATCH_LOG_APPEND_TIME);
    append_free(&t);
    buf_free(&in);
}

static void a_clients_delete_horizon_bit_is_cleared(void **state)
{
    struct buf in = build(2, CODEC_NONE, 2);
    in.p[BATCH_AT_ATTRIBUTES + 1] |= BATCH_DELETE_HORIZON;
    reseal(in.p, in.len);
    struct append t = {.policy = default_policy()};
    append_run(&t, &in);
    assert_int_equal(t.code, KERR_NONE);
    struct batch b = decode(t.pr.p, t.pr.len);
    assert_true(batch_crc_ok(&b));
    assert_int_equal(b.attributes, 0);
    append_free(&t);
    buf_free(&in);
}

/* ---- the request ---- */

static void produce_versions_have_rules(void **state)
{
    struct buf none = BUF_INIT, one = build(2, CODEC_NONE, 2), zstd = build(2, CODEC_ZSTD, 2);
    struct buf old = build(1, CODEC_NONE, 1), two = build(2, CODEC_NONE, 1);
    buf_put(&two, one.p, one.len);
    buf_reserve(&none, 1);
    struct {
        const struct buf *in;
        int version;
        enum kerr code;
    } cases[] = {
        {&none, 3, KERR_INVALID_RECORD},
        {&none, 9, KERR_INVALID_RECORD},
        {&none, 2, KERR_NONE},
        {&none, -1, KERR_NONE},
        {&old, 3, KERR_INVALID_RECORD},
        {&old, 2, KERR_NONE},
        {&old, 0, KERR_NONE},
        {&two, 3, KERR_INVALID_RECORD},
        {&two, 2, KERR_INVALID_RECORD}, /* by the rule for magic 2 */
        {&zstd, 3, KERR_UNSUPPORTED_COMPRESSION_TYPE},
        {&zstd, 6, KERR_UNSUPPORTED_COMPRESSION_TYPE},
        {&zstd, 7, KERR_NONE},
        {&one, 0, KERR_NONE},
        {&one, 3, KERR_NONE},
        {&one, 11, KERR_NONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct append_policy policy = default_policy();
        policy.produce_version = cases[i].version;
        expect_code(&policy, cases[i].in, cases[i].code);
    }
    buf_free(&none);
    buf_free(&one);
    buf_free(&zstd);
    buf_free(&old);
    buf_free(&two);
}

static void a_partial_tail_is_cut(void **state)
{
    struct buf in = build(2, CODEC_GZIP, 3), more = build(2, CODEC_NONE, 30);
    size_t whole = in.len;
    for (size_t tail = 0; tail < more.len; tail++) {
        in.len = whole;
        buf_put(&in, more.p, tail);
        struct append t = {.policy = default_policy()};
        append_run(&t, &in);
        assert_int_equal(t.code, KERR_NONE);
        assert_int_equal(t.pr.len, whole);
        assert_int_equal(t.pr.batches_n, 1);
        append_free(&t);
    }
    in.len = whole - 1; /* nothing but a partial entry */
    struct append_policy policy = default_policy();
    expect_code(&policy, &in, KERR_INVALID_RECORD);
    policy.produce_version = -1;
    expect_code(&policy, &in, KERR_NONE);
    buf_free(&in);
    buf_free(&more);
}

/* ---- the batch ---- */

static void put16(uint8_t *p, int at, int v)
{
    put_be16(p + at, (uint16_t)v);
}

static void put32(uint8_t *p, int at, int v)
{
    put_be32(p + at, (uint32_t)v);
}

static void put64(uint8_t *p, int at, int v)
{
    put_be64(p + at, (uint64_t)v);
}

static void lying_heads_are_refused(void **state)
{
    static const struct {
        void (*put)(uint8_t *, int, int);
        int at, v;
        enum kerr code;
        bool stale_crc;
    } lies[] = {
        {put64, BATCH_AT_BASE_OFFSET, 1, KERR_INVALID_RECORD, false},
        {put64, BATCH_AT_BASE_OFFSET, -1, KERR_INVALID_RECORD, false},
        {put32, BATCH_AT_LAST_OFFSET_DELTA, -1, KERR_INVALID_RECORD, false},
        {put32, BATCH_AT_LAST_OFFSET_DELTA, 1, KERR_INVALID_RECORD, false},
        {put32, BATCH_AT_LAST_OFFSET_DELTA, 3, KERR_INVALID_RECORD, false},
        {put32, BATCH_AT_LAST_OFFSET_DELTA, INT32_MAX, KERR_INVALID_RECORD, false},
        {put32, BATCH_AT_RECORD_COUNT, 0, KERR_INVALID_RECORD, false},
        {put32, BATCH_AT_RECORD_COUNT, -1, KERR_INVALID_RECORD, false},
        {put32, BATCH_AT_RECORD_COUNT, 2, KERR_INVALID_RECORD, false},
        {put32, BATCH_AT_RECORD_COUNT, 4, KERR_INVALID_RECORD, false},
        {put16, BATCH_AT_ATTRIBUTES, 5, KERR_INVALID_RECORD, false},
        {put16, BATCH_AT_ATTRIBUTES, 7, KERR_INVALID_RECORD, false},
        {put16, BATCH_AT_ATTRIBUTES, CODEC_GZIP, KERR_INVALID_RECORD, false},
        {put16, BATCH_AT_ATTRIBUTES, BATCH_CONTROL, KERR_INVALID_RECORD, false},
        {put64, BATCH_AT_PRODUCER_ID, 9, KERR_INVALID_RECORD, false}, /* and no sequence */
        {put64, BATCH_AT_PRODUCER_ID, 9, KERR_CORRUPT_MESSAGE, true},
        {put32, BATCH_AT_CRC, 0, KERR_CORRUPT_MESSAGE, true},
        {put32, BATCH_AT_LENGTH, 13, KERR_CORRUPT_MESSAGE, false},
        {put32, BATCH_AT_LENGTH, 48, KERR_CORRUPT_MESSAGE, false},
        {put32, BATCH_AT_LENGTH, -1, KERR_CORRUPT_MESSAGE, false},
        {put16, BATCH_AT_MAGIC - 1, 3, KERR_CORRUPT_MESSAGE, true},
    };
    struct buf in = build(2, CODEC_NONE, 3);
    struct append_policy policy = default_policy();
    expect_code(&policy, &in, KERR_NONE);
    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        struct buf lie = BUF_INIT;
        buf_put(&lie, in.p, in.len);
        lies[i].put(lie.p, lies[i].at, lies[i].v);
        if (!lies[i].stale_crc)
            reseal(lie.p, lie.len);
        expect_code(&policy, &lie, lies[i].code);
        buf_free(&lie);
    }
    buf_free(&in);
}

/* Count and last offset agree, but the data cannot hold so many. */
static void a_count_beyond_the_data_is_refused(void **state)
{
    for (enum codec c = CODEC_NONE; c < CODECS; c++) {
        struct buf in = build(2, c, 3);
        static const int32_t counts[] = {2, 4, 1000, INT32_MAX};
        for (int i = 0; i < 4; i++) {
            put_be32(in.p + BATCH_AT_LAST_OFFSET_DELTA, (uint32_t)counts[i] - 1);
            put_be32(in.p + BATCH_AT_RECORD_COUNT, (uint32_t)counts[i]);
            reseal(in.p, in.len);
            struct append_policy policy = default_policy();
            expect_code(&policy, &in, KERR_INVALID_RECORD);
        }
        buf_free(&in);
    }
}

static void the_size_limit_is_for_the_batch_as_sent_c38(void **state)
{
    struct buf plain = build(2, CODEC_NONE, 60), packed = build(2, CODEC_GZIP, 60);
    assert_true(plain.len > 3000 && packed.len < 1000);
    struct append_policy policy = default_policy();
    policy.max_message_bytes = 2000;
    expect_code(&policy, &plain, KERR_MESSAGE_TOO_LARGE);
    expect_code(&policy, &packed, KERR_NONE);
    policy.max_message_bytes = (int32_t)plain.len;
    expect_code(&policy, &plain, KERR_NONE);
    policy.max_message_bytes = (int32_t)plain.len - 1;
    expect_code(&policy, &plain, KERR_MESSAGE_TOO_LARGE);
    buf_free(&plain);
    buf_free(&packed);
}

/* ---- the records ---- */

struct one {
    const char *key;
    int64_t timestamp;
};

static struct buf build_records(const struct one *r, int n, const struct batch_options *o)
{
    struct buf out = BUF_INIT;
    struct batch_builder *b = batch_builder_new(o);
    for (int i = 0; i < n; i++)
        assert_int_equal(
            batch_builder_add(b, i, r[i].timestamp, bytes_of(r[i].key), bytes_of("v"), NULL, 0), 0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    batch_builder_free(b);
    return out;
}

static void expect_errors(const struct append_policy *policy, const struct buf *in, enum kerr code,
                          const int *indexes, int n, const char *words)
{
    struct append t = {.policy = *policy};
    append_run(&t, in);
    assert_int_equal(t.code, code);
    assert_non_null(t.pr.message);
    assert_int_equal(t.pr.errors_n, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(t.pr.errors[i].batch_index, indexes[i]);
        assert_non_null(strstr(t.pr.errors[i].message, words));
    }
    if (strstr(words, "key"))
        assert_int_equal(t.pr.fault, FAULT_NO_KEY);
    if (strstr(words, "offset"))
        assert_int_equal(t.pr.fault, FAULT_OFFSET);
    assert_memory_equal(t.bytes.p, in->p, in->len);
    append_free(&t);
}

/* Runs the same expectation in place, rebuilt, and from each codec. */
static void expect_errors_everywhere(struct append_policy policy, const struct one *r, int n,
                                     enum kerr code, const int *indexes, int errors_n,
                                     const char *words)
{
    for (enum codec c = CODEC_NONE; c < CODECS; c++) {
        struct batch_options o = BATCH_OPTIONS_DEFAULT;
        o.codec = c;
        struct buf in = build_records(r, n, &o);
        for (int target = COMPRESSION_PRODUCER; target < CODECS; target++) {
            policy.compression = target;
            expect_errors(&policy, &in, code, indexes, errors_n, words);
        }
        buf_free(&in);
    }
}

static void compacted_topics_need_keys(void **state)
{
    static const struct one r[] = {{"a", T0}, {NULL, T0}, {"", T0}, {NULL, T0}, {"b", T0}};
    static const int bad[] = {1, 3};
    struct append_policy policy = default_policy();
    policy.keys_required = true;
    expect_errors_everywhere(policy, r, 5, KERR_INVALID_RECORD, bad, 2, "without key");
}

static void timestamps_must_be_near_now(void **state)
{
    static const struct one r[] = {
        {"a", T0}, {"b", T0 - 1001}, {"c", T0 - 1000}, {"d", T0 + 2000}, {"e", T0 + 2001},
        {"f", -1}, {"g", -2},        {"h", INT64_MAX}, {"i", INT64_MIN}, {"j", 0}};
    static const int bad[] = {1, 4, 6, 7, 8, 9};
    struct append_policy policy = default_policy();
    policy.now_ms = T0;
    policy.before_max_ms = 1000;
    policy.after_max_ms = 2000;
    expect_errors_everywhere(policy, r, 10, KERR_INVALID_TIMESTAMP, bad, 6, "out of range");
}

static void limits_do_not_overflow(void **state)
{
    static const struct {
        int64_t now, before, after, timestamp;
        bool good;
    } cases[] = {
        {T0, INT64_MAX, INT64_MAX, INT64_MAX, true},
        {T0, INT64_MAX, INT64_MAX, 0, true},
        {T0, INT64_MAX, INT64_MAX, -1, true},
        {T0, INT64_MAX, INT64_MAX, -2, false},
        {T0, INT64_MAX - 1, INT64_MAX - 1, INT64_MAX, true},
        {T0, INT64_MAX - 1, INT64_MAX - T0, INT64_MAX, true},
        {T0, INT64_MAX - 1, INT64_MAX - T0 - 1, INT64_MAX, false},
        {0, 0, 0, 0, true},
        {0, 0, 0, 1, false},
        {1, 0, 0, 0, false},
        {1, 1, 0, 0, true},
        {INT64_MAX, 0, INT64_MAX - 1, INT64_MAX, true},
        {INT64_MAX, INT64_MAX - 1, 0, 0, false},
        {T0, 0, 0, -1, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct append_policy policy = default_policy();
        policy.now_ms = cases[i].now;
        policy.before_max_ms = cases[i].before;
        policy.after_max_ms = cases[i].after;
        struct one r = {"k", cases[i].timestamp};
        struct buf in = build_records(&r, 1, &BATCH_OPTIONS_DEFAULT);
        expect_code(&policy, &in, cases[i].good ? KERR_NONE : KERR_INVALID_TIMESTAMP);
        policy.log_append_time = true; /* then nobody asks */
        expect_code(&policy, &in, KERR_NONE);
        buf_free(&in);
    }
}

static void a_timestamp_error_names_the_batch(void **state)
{
    static const struct one r[] = {{NULL, T0}, {NULL, T0 - 5000}, {"c", T0 - 5000}};
    static const int bad[] = {0, 1, 2};
    struct append_policy policy = default_policy();
    policy.before_max_ms = 1000;
    policy.keys_required = true;
    expect_errors_everywhere(policy, r, 3, KERR_INVALID_TIMESTAMP, bad, 3, "");
}

static void producers_must_not_say_log_append_time(void **state)
{
    static const struct one dated[] = {{"a", T0}, {"b", T0 + 1}},
                            undated[] = {{"a", -1}, {"b", T0}};
    static const int both[] = {0, 1}, first[] = {0};
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.log_append_time = true;
    o.log_append_timestamp = T0 + 77;
    struct append_policy policy = default_policy();
    /* a topic of LogAppendTime refuses each record */
    struct buf in = build_records(dated, 2, &o);
    policy.log_append_time = true;
    expect_errors(&policy, &in, KERR_INVALID_TIMESTAMP, both, 2, "LogAppendTime");
    /* one of CreateTime takes dated records, and the records' own times become the batch's */
    policy.log_append_time = false;
    check_in_place(&policy, &in, 2, T0 + 1, true);
    buf_free(&in);
    in = build_records(undated, 2, &o);
    expect_errors(&policy, &in, KERR_INVALID_TIMESTAMP, first, 1, "LogAppendTime");
    buf_free(&in);
}

static void all_errors_are_listed(void **state)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b = batch_builder_new(&o);
    struct buf in = BUF_INIT;
    for (int i = 0; i < 5000; i++)
        batch_builder_add(b, i, T0, BYTES_NULL, bytes_of("v"), NULL, 0);
    batch_builder_finish(b, &in);
    batch_builder_free(b);
    struct append t = {.policy = default_policy()};
    t.policy.keys_required = true;
    append_run(&t, &in);
    assert_int_equal(t.code, KERR_INVALID_RECORD);
    assert_int_equal(t.pr.errors_n, 5000);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(t.pr.errors[i].batch_index, i);
    assert_non_null(strstr(t.pr.message, "5000"));
    append_free(&t);
    /* as far as memory goes */
    for (size_t cap = 0; cap < 4000; cap += 100) {
        struct arena a;
        struct prepared pr;
        arena_init(&a, cap + 1);
        enum kerr code = records_prepare(&t.policy, in.p, in.len, &a, &pr);
        assert_true(code == KERR_INVALID_RECORD ||
                    (code == KERR_UNKNOWN_SERVER_ERROR && cap < 300));
        assert_true(pr.errors_n < 5000);
        prepared_free(&pr);
        arena_free(&a);
    }
    buf_free(&in);
}

/* ---- rebuilt ---- */

static struct batch_options idempotent(enum codec c)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.codec = c;
    o.transactional = true;
    o.producer_id = 4000;
    o.producer_epoch = 3;
    o.base_sequence = 17;
    return o;
}

static void check_rebuilt(const struct append_policy *policy, const struct buf *in, int n,
                          enum codec target, int64_t max)
{
    struct append t = {.policy = *policy};
    append_run(&t, in);
    assert_int_equal(t.code, KERR_NONE);
    assert_ptr_equal(t.pr.p, t.pr.rebuilt.p);
    assert_int_equal(t.pr.max_timestamp, max);
    assert_memory_equal(t.bytes.p, in->p, in->len);
    records_assign(&t.pr, 900, 2);
    struct batch b = decode(t.pr.p, t.pr.len);
    assert_int_equal(b.size, t.pr.len);
    assert_true(batch_crc_ok(&b));
    assert_int_equal(b.codec, target);
    assert_int_equal(b.attributes, (int)target | BATCH_TRANSACTIONAL |
                                       (policy->log_append_time ? BATCH_LOG_APPEND_TIME : 0));
    assert_int_equal(b.producer_id, 4000);
    assert_int_equal(b.producer_epoch, 3);
    assert_int_equal(b.base_sequence, 17);
    assert_int_equal(b.base_offset, 900);
    assert_int_equal(b.last_offset, 900 + n - 1);
    assert_int_equal(b.record_count, n);
    assert_int_equal(b.leader_epoch, 2);
    assert_int_equal(b.base_timestamp, T0);
    assert_int_equal(b.max_timestamp, max);
    struct record_iter *it;
    struct record r;
    assert_int_equal(record_iter_open(&b, &it), 0);
    for (int i = 0; i < n; i++) {
        char key[32];
        snprintf(key, sizeof(key), "key %d", i);
        assert_int_equal(record_iter_next(it, &r), 1);
        assert_int_equal(r.offset, 900 + i);
        assert_int_equal(r.sequence, 17 + i);
        assert_int_equal(r.timestamp, policy->log_append_time ? max : T0 + i);
        assert_true(bytes_equal(r.key, bytes_of(key)));
        assert_int_equal(r.headers_n, i % 2);
    }
    assert_int_equal(record_iter_next(it, &r), 0);
    record_iter_close(it);
    append_free(&t);
}

static void another_codec_is_a_rebuild(void **state)
{
    for (enum codec from = CODEC_NONE; from < CODECS; from++) {
        struct batch_options o = idempotent(from);
        struct buf in = build_with(&o, 40);
        for (enum codec to = CODEC_NONE; to < CODECS; to++) {
            if (to == from)
                continue;
            struct append_policy policy = default_policy();
            policy.compression = (int)to;
            check_rebuilt(&policy, &in, 40, to, T0 + 39);
            policy.log_append_time = true;
            check_rebuilt(&policy, &in, 40, to, policy.now_ms);
        }
        buf_free(&in);
    }
}

/* A batch whose offset deltas are 0, 2, 3, ...: the count says what offsets it takes. */
static struct buf build_sparse(enum codec c, int n)
{
    struct batch_options o = idempotent(c);
    struct buf out = BUF_INIT;
    struct batch_builder *b = batch_builder_new(&o);
    for (int i = 0; i < n; i++) {
        char key[32];
        snprintf(key, sizeof(key), "key %d", i);
        struct record_header h = {STR_LIT("header"), bytes_of("hv")};
        batch_builder_add(b, i + (i > 0), T0 + i, bytes_of(key), bytes_of("value"), &h, i % 2);
    }
    assert_int_equal(batch_builder_finish(b, &out), 0);
    batch_builder_free(b);
    put_be32(out.p + BATCH_AT_LAST_OFFSET_DELTA, (uint32_t)n - 1);
    reseal(out.p, out.len);
    return out;
}

static void wrong_offset_deltas_are_refused_plain_and_rebuilt_compressed(void **state)
{
    for (enum codec from = CODEC_NONE; from < CODECS; from++) {
        struct buf in = build_sparse(from, 4);
        for (int to = COMPRESSION_PRODUCER; to < CODECS; to++) {
            struct append_policy policy = default_policy();
            policy.compression = to;
            static const int bad[] = {1, 2, 3};
            if (from == CODEC_NONE)
                expect_errors(&policy, &in, KERR_INVALID_RECORD, bad, 3, "offset delta");
            else
                check_rebuilt(&policy, &in, 4, to == COMPRESSION_PRODUCER ? from : (enum codec)to,
                              T0 + 3);
        }
        buf_free(&in);
    }
}

/* The first record's time is the base of a rebuilt batch, whatever the producer took. */
static void a_rebuilt_batch_starts_at_its_first_timestamp(void **state)
{
    struct batch_options o = idempotent(CODEC_NONE);
    o.delete_horizon = T0 + 5000; /* a base of its own */
    struct buf in = build_with(&o, 10);
    in.p[BATCH_AT_ATTRIBUTES + 1] &= (uint8_t)~BATCH_DELETE_HORIZON;
    reseal(in.p, in.len);
    struct append_policy policy = default_policy();
    policy.compression = CODEC_ZSTD;
    check_rebuilt(&policy, &in, 10, CODEC_ZSTD, T0 + 9);
    buf_free(&in);
}

static void a_rebuilt_batch_must_fit(void **state)
{
    struct buf in = build(2, CODEC_GZIP, 500), plain = build(2, CODEC_NONE, 500);
    struct append_policy policy = default_policy();
    policy.compression = CODEC_NONE;
    policy.max_message_bytes = (int32_t)plain.len;
    expect_code(&policy, &in, KERR_NONE);
    policy.max_message_bytes--;
    expect_code(&policy, &in, KERR_MESSAGE_TOO_LARGE);
    policy.max_message_bytes = (int32_t)in.len;
    expect_code(&policy, &in, KERR_MESSAGE_TOO_LARGE);
    policy.compression = CODEC_SNAPPY; /* packs less well */
    expect_code(&policy, &in, KERR_MESSAGE_TOO_LARGE);
    buf_free(&in);
    buf_free(&plain);
}

static void the_topics_level_is_used(void **state)
{
    struct buf in = build(2, CODEC_NONE, 2000);
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        struct append t = {.policy = default_policy()};
        t.policy.compression = CODEC_GZIP;
        t.policy.level = i ? 9 : 1;
        append_run(&t, &in);
        assert_int_equal(t.code, KERR_NONE);
        sizes[i] = t.pr.len;
        append_free(&t);
    }
    assert_true(sizes[1] < sizes[0]);
    buf_free(&in);
}

/* ---- other origins ---- */

static void coordinators_write_markers_and_keyed_batches(void **state)
{
    struct buf marker = BUF_INIT;
    assert_int_equal(batch_build_marker(true, 0, T0, -1, 4000, 3, 9, &marker), 0);
    struct append_policy policy = default_policy();
    policy.origin = APPEND_COORDINATOR;
    policy.produce_version = -1;
    policy.keys_required = true;
    check_in_place(&policy, &marker, 1, T0, false);
    policy.compression = CODEC_ZSTD; /* markers are never compressed */
    check_in_place(&policy, &marker, 1, T0, false);
    policy.compression = COMPRESSION_PRODUCER;
    policy.log_append_time = true;
    check_in_place(&policy, &marker, 1, policy.now_ms, true);
    policy.origin = APPEND_CLIENT;
    expect_code(&policy, &marker, KERR_INVALID_RECORD);
    buf_free(&marker);
}

static void replication_takes_bytes_as_they_are(void **state)
{
    struct buf in = BUF_INIT, part;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    int64_t offset = 100;
    struct batch_builder *b = batch_builder_new(&o);
    for (int i = 0; i < 12; i++) {
        o.magic = (int8_t)(i % 3);
        o.codec = i % 2 ? CODEC_GZIP : CODEC_NONE;
        o.log_append_time = i == 5;
        o.log_append_timestamp = T0 + 999;
        batch_builder_reset(b, &o);
        batch_builder_add(b, offset, T0 + i, BYTES_NULL, bytes_of("v"), NULL, 0);
        batch_builder_add(b, offset + 3, T0 + i, BYTES_NULL, bytes_of("w"), NULL, 0);
        assert_int_equal(batch_builder_finish(b, &in), 0);
        offset += 10;
    }
    batch_builder_free(b);
    batch_build_marker(false, offset, T0, 3, 1, 1, 1, &in);
    struct append t = {.policy = default_policy()};
    t.policy.origin = APPEND_REPLICATION;
    t.policy.produce_version = -1;
    t.policy.max_message_bytes = 10; /* asks nobody */
    t.policy.keys_required = true;
    size_t whole = in.len;
    part = build(2, CODEC_NONE, 2);
    buf_put(&in, part.p, part.len - 1);
    append_run(&t, &in);
    assert_int_equal(t.code, KERR_NONE);
    assert_int_equal(t.pr.len, whole);
    assert_memory_equal(t.bytes.p, in.p, in.len);
    assert_int_equal(t.pr.batches_n, 4 * 3 + 1 + 4); /* plain old messages are two each */
    assert_int_equal(t.pr.last_offset, offset);
    assert_int_equal(t.pr.max_timestamp, T0 + 999);
    assert_int_equal(t.pr.batches[0].head.base_offset, 100);
    for (int i = 0; i < t.pr.batches_n; i++)
        assert_true(t.pr.batches[i].head.p == t.pr.p + t.pr.batches[i].at);
    append_free(&t);
    in.len = whole;
    in.p[whole - 1] ^= 1;
    expect_code(&t.policy, &in, KERR_CORRUPT_MESSAGE);
    buf_free(&in);
    buf_free(&part);
}

static void replication_demands_rising_offsets(void **state)
{
    static const struct {
        int64_t a, b;
        bool good;
    } cases[] = {{0, 1, true},  {5, 100, true}, {5, 5, false},       {5, 4, false},
                 {5, 3, false}, {-1, 5, false}, {5, INT64_MAX, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buf in = build(2, CODEC_NONE, 1), second = build(2, CODEC_NONE, 1);
        put_be64(in.p, (uint64_t)cases[i].a);
        put_be64(second.p, (uint64_t)cases[i].b);
        buf_put(&in, second.p, second.len);
        struct append_policy policy = default_policy();
        policy.origin = APPEND_REPLICATION;
        policy.produce_version = -1;
        expect_code(&policy, &in, cases[i].good ? KERR_NONE : KERR_CORRUPT_MESSAGE);
        /* a range that ends before it begins, or wraps */
        if (cases[i].b == INT64_MAX || i == 0) {
            put_be32(in.p + in.len / 2 + BATCH_AT_LAST_OFFSET_DELTA, i == 0 ? UINT32_MAX : 7);
            reseal(in.p + in.len / 2, in.len / 2);
            expect_code(&policy, &in, KERR_CORRUPT_MESSAGE);
        }
        buf_free(&in);
        buf_free(&second);
    }
}

static void nothing_is_nothing(void **state)
{
    struct append t = {.policy = default_policy()};
    struct buf in = BUF_INIT;
    t.policy.produce_version = -1;
    append_run(&t, &in);
    assert_int_equal(t.code, KERR_NONE);
    assert_int_equal(t.pr.batches_n, 0);
    assert_int_equal(t.pr.len, 0);
    assert_int_equal(t.pr.max_timestamp, -1);
    records_assign(&t.pr, 5, 1);
    append_free(&t);
}

UNIT_MAIN(unit_test(only_offset_and_epoch_change_in_place_5_6_7),
          unit_test(a_wrong_max_timestamp_is_corrected),
          unit_test(unknown_attributes_go_only_when_others_change),
          unit_test(a_clients_delete_horizon_bit_is_cleared),
          unit_test(produce_versions_have_rules), unit_test(a_partial_tail_is_cut),
          unit_test(lying_heads_are_refused), unit_test(a_count_beyond_the_data_is_refused),
          unit_test(the_size_limit_is_for_the_batch_as_sent_c38),
          unit_test(compacted_topics_need_keys), unit_test(timestamps_must_be_near_now),
          unit_test(limits_do_not_overflow), unit_test(a_timestamp_error_names_the_batch),
          unit_test(producers_must_not_say_log_append_time), unit_test(all_errors_are_listed),
          unit_test(another_codec_is_a_rebuild),
          unit_test(wrong_offset_deltas_are_refused_plain_and_rebuilt_compressed),
          unit_test(a_rebuilt_batch_starts_at_its_first_timestamp),
          unit_test(a_rebuilt_batch_must_fit), unit_test(the_topics_level_is_used),
          unit_test(coordinators_write_markers_and_keyed_batches),
          unit_test(replication_takes_bytes_as_they_are),
          unit_test(replication_demands_rising_offsets), unit_test(nothing_is_nothing))
