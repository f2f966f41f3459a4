/* Old clients: Produce of magic 0 and 1 into a magic 2 log (trap C26), and Fetch of magic 2 as
 * magic 1 and 0 (invariant 43). */
#include <errno.h>

#include "protocol/legacy_message.h"
#include "protocol/records_convert.h"
#include "records_util.h"

/* ---- produce ---- */

struct upload {
    struct append_policy policy;
    struct arena arena;
    struct prepared pr;
    struct buf bytes;
};

static enum kerr upload(struct upload *u, const struct buf *in)
{
    u->bytes = BUF_INIT;
    buf_put(&u->bytes, in->p, in->len);
    arena_init(&u->arena, 1 << 20);
    return records_prepare(&u->policy, u->bytes.p, u->bytes.len, &u->arena, &u->pr);
}

static void upload_free(struct upload *u)
{
    prepared_free(&u->pr);
    arena_free(&u->arena);
    buf_free(&u->bytes);
}

static struct append_policy old_policy(void)
{
    struct append_policy policy = default_policy();
    policy.produce_version = 2;
    return policy;
}

static enum kerr verdict(const struct append_policy *policy, const struct buf *in)
{
    struct upload u = {.policy = *policy};
    enum kerr code = upload(&u, in);
    assert_true(code == KERR_NONE || u.pr.message);
    upload_free(&u);
    return code;
}

static void check_stored(struct upload *u, int n, int magic, bool append_time)
{
    assert_int_equal(u->pr.batches_n, 1);
    assert_int_equal(u->pr.offsets_n, n);
    records_assign(&u->pr, 50, 4);
    struct batch b = decode(u->pr.p, u->pr.len);
    assert_int_equal(b.magic, 2);
    assert_true(batch_crc_ok(&b));
    assert_int_equal(b.base_offset, 50);
    assert_int_equal(b.last_offset, 50 + n - 1);
    assert_int_equal(b.leader_epoch, 4);
    assert_int_equal(b.producer_id, NO_PRODUCER_ID);
    assert_int_equal(b.base_sequence, NO_SEQUENCE);
    assert_int_equal(b.base_timestamp, magic == 0 ? -1 : T0);
    int64_t max = append_time ? u->policy.now_ms : magic == 0 ? -1 : T0 + n - 1;
    assert_int_equal(b.max_timestamp, max);
    assert_int_equal(u->pr.max_timestamp, max);
    assert_int_equal(u->pr.max_timestamp_delta, max < 0 ? 0 : n - 1);
    struct record_iter *it;
    struct record r;
    assert_int_equal(record_iter_open(&b, &it), 0);
    for (int i = 0; i < n; i++) {
        char key[32];
        snprintf(key, sizeof(key), "key %d", i);
        assert_int_equal(record_iter_next(it, &r), 1);
        assert_int_equal(r.offset, 50 + i);
        assert_true(bytes_equal(r.key, bytes_of(key)));
        assert_int_equal(r.timestamp, append_time ? max : magic == 0 ? -1 : T0 + i);
    }
    assert_int_equal(record_iter_next(it, &r), 0);
    record_iter_close(it);
}

static void old_sets_become_one_batch_c26(void **state)
{
    for (int magic = 0; magic <= 1; magic++) {
        for (enum codec from = CODEC_NONE; from < CODEC_ZSTD; from++) {
            struct buf in = build(magic, from, 3);
            for (int to = COMPRESSION_PRODUCER; to < CODECS; to++) {
                for (int append_time = 0; append_time <= 1; append_time++) {
                    struct upload u = {.policy = old_policy()};
                    u.policy.compression = to;
                    u.policy.log_append_time = append_time;
                    assert_int_equal(upload(&u, &in), KERR_NONE);
                    enum codec target = to == COMPRESSION_PRODUCER ? from : (enum codec)to;
                    assert_int_equal(u.pr.batches[0].head.codec, target);
                    check_stored(&u, 3, magic, append_time);
                    upload_free(&u);
                }
            }
            buf_free(&in);
        }
    }
}

/* An lz4 wrapper of three messages with this header check in its frame; the wrapper's own codec and
 * checksum are set afterwards (set_codec). */
static struct buf lz4_wrapper_with_check(int magic, uint8_t check)
{
    struct buf in = build(magic, CODEC_LZ4, 3);
    size_t frame = magic == 0 ? 26 : 34;
    in.p[frame + 6] = check;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.magic = (int8_t)magic;
    struct batch_builder *b = batch_builder_new(&o);
    struct buf out = BUF_INIT;
    batch_builder_add(b, 2, T0 + 2, BYTES_NULL,
                      (struct bytes){in.p + frame, (int32_t)(in.len - frame)}, NULL, 0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    batch_builder_free(b);
    buf_free(&in);
    return out;
}

static void set_codec(struct buf *message, enum codec c)
{
    message->p[17] = (uint8_t)((message->p[17] & ~7) | (int)c);
    put_be32(message->p + 12, legacy_crc(message->p, (uint32_t)message->len));
}

static void old_lz4_header_checks_c26(void **state)
{
    static const struct {
        int magic;
        uint8_t check;
        enum kerr code;
    } cases[] = {{0, 0x1a, KERR_NONE},           {0, 0x82, KERR_NONE},
                 {0, 0x55, KERR_NONE},           {1, 0x82, KERR_NONE},
                 {1, 0x1a, KERR_INVALID_RECORD}, {1, 0x55, KERR_INVALID_RECORD}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buf in = lz4_wrapper_with_check(cases[i].magic, cases[i].check);
        set_codec(&in, CODEC_LZ4);
        struct append_policy policy = old_policy();
        assert_int_equal(verdict(&policy, &in), cases[i].code);
        buf_free(&in);
    }
}

static void sets_have_rules(void **state)
{
    struct append_policy policy = old_policy();
    struct buf plain = build(1, CODEC_NONE, 2), wrapped = build(1, CODEC_GZIP, 2);
    struct buf v0 = build(0, CODEC_NONE, 2), v2 = build(2, CODEC_NONE, 2);
    const struct {
        const struct buf *a, *b;
        enum kerr code;
    } cases[] = {
        {&plain, NULL, KERR_NONE},
        {&plain, &plain, KERR_NONE},
        {&wrapped, NULL, KERR_NONE},
        {&wrapped, &wrapped, KERR_INVALID_RECORD}, /* compressed data comes alone */
        {&wrapped, &plain, KERR_INVALID_RECORD},
        {&plain, &wrapped, KERR_INVALID_RECORD},
        {&plain, &v0, KERR_INVALID_RECORD}, /* one magic for all */
        {&v0, &plain, KERR_INVALID_RECORD},
        {&plain, &v2, KERR_INVALID_RECORD},
        {&v2, &plain, KERR_INVALID_RECORD},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buf in = BUF_INIT;
        buf_put(&in, cases[i].a->p, cases[i].a->len);
        if (cases[i].b)
            buf_put(&in, cases[i].b->p, cases[i].b->len);
        assert_int_equal(verdict(&policy, &in), cases[i].code);
        buf_free(&in);
    }
    buf_free(&plain);
    buf_free(&wrapped);
    buf_free(&v0);
    buf_free(&v2);
}

static void no_zstd_in_old_sets(void **state)
{
    struct append_policy policy = old_policy();
    for (int magic = 0; magic <= 1; magic++) {
        struct buf in = build(magic, CODEC_NONE, 1);
        for (int codec = CODEC_ZSTD; codec <= 7; codec++) {
            set_codec(&in, (enum codec)codec);
            assert_int_equal(verdict(&policy, &in), KERR_INVALID_RECORD);
        }
        buf_free(&in);
    }
}

/* A gzip wrapper of magic 1 around these bytes. */
static struct buf wrap(const struct buf *inner)
{
    struct buf packed = BUF_INIT, out = BUF_INIT;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.magic = 1;
    assert_int_equal(codec_compress(CODEC_GZIP, 1, 1, inner->p, inner->len, &packed), 0);
    struct batch_builder *b = batch_builder_new(&o);
    batch_builder_add(b, 0, T0, BYTES_NULL, (struct bytes){packed.p, (int32_t)packed.len}, NULL, 0);
    batch_builder_finish(b, &out);
    batch_builder_free(b);
    buf_free(&packed);
    set_codec(&out, CODEC_GZIP);
    return out;
}

static void inner_checksums_are_verified(void **state)
{
    struct append_policy policy = old_policy();
    struct buf inner = build(1, CODEC_NONE, 3);
    struct buf good = wrap(&inner);
    assert_int_equal(verdict(&policy, &good), KERR_NONE);
    inner.p[inner.len - 1] ^= 1;
    struct buf bad = wrap(&inner);
    assert_int_equal(verdict(&policy, &bad), KERR_CORRUPT_MESSAGE);
    buf_free(&inner);
    buf_free(&good);
    buf_free(&bad);
    inner = build(1, CODEC_GZIP, 3); /* compressed twice */
    bad = wrap(&inner);
    assert_int_equal(verdict(&policy, &bad), KERR_INVALID_RECORD);
    buf_free(&inner);
    buf_free(&bad);
    inner = build(0, CODEC_NONE, 3); /* another magic inside */
    bad = wrap(&inner);
    assert_int_equal(verdict(&policy, &bad), KERR_INVALID_RECORD);
    buf_free(&inner);
    buf_free(&bad);
}

static void old_records_meet_the_topics_rules(void **state)
{
    for (int magic = 0; magic <= 1; magic++) {
        struct batch_options o = BATCH_OPTIONS_DEFAULT;
        o.magic = (int8_t)magic;
        struct batch_builder *b = batch_builder_new(&o);
        struct buf in = BUF_INIT;
        for (int i = 0; i < 4; i++)
            batch_builder_add(b, i, T0 - i * 1000, i % 2 ? BYTES_NULL : bytes_of("k"),
                              bytes_of("v"), NULL, 0);
        assert_int_equal(batch_builder_finish(b, &in), 0);
        batch_builder_free(b);
        struct upload u = {.policy = old_policy()};
        u.policy.keys_required = true;
        assert_int_equal(upload(&u, &in), KERR_INVALID_RECORD);
        assert_int_equal(u.pr.errors_n, 2);
        assert_int_equal(u.pr.errors[0].batch_index, 1);
        assert_int_equal(u.pr.errors[1].batch_index, 3);
        upload_free(&u);
        u.policy = old_policy();
        u.policy.now_ms = T0;
        u.policy.before_max_ms = 2000;
        assert_int_equal(upload(&u, &in), magic == 0 ? KERR_NONE : KERR_INVALID_TIMESTAMP);
        assert_int_equal(u.pr.errors_n, magic);
        upload_free(&u);
        buf_free(&in);
    }
    struct batch_options o = BATCH_OPTIONS_DEFAULT; /* the producer says LogAppendTime */
    o.magic = 1;
    o.codec = CODEC_GZIP;
    o.log_append_time = true;
    o.log_append_timestamp = T0;
    struct buf in = build_with(&o, 2);
    struct append_policy policy = old_policy();
    policy.log_append_time = true;
    assert_int_equal(verdict(&policy, &in), KERR_INVALID_TIMESTAMP);
    buf_free(&in);
}

static void old_sets_must_fit_before_and_after(void **state)
{
    struct buf in = build(1, CODEC_GZIP, 200);
    struct append_policy policy = old_policy();
    policy.max_message_bytes = (int32_t)in.len - 1;
    assert_int_equal(verdict(&policy, &in), KERR_MESSAGE_TOO_LARGE);
    policy.max_message_bytes = (int32_t)in.len;
    policy.compression = CODEC_NONE;
    assert_int_equal(verdict(&policy, &in), KERR_MESSAGE_TOO_LARGE);
    policy.max_message_bytes = 1 << 20;
    assert_int_equal(verdict(&policy, &in), KERR_NONE);
    buf_free(&in);
}

/* ---- fetch ---- */

static void converted_sets_are_what_old_clients_know_43(void **state)
{
    for (enum codec c = CODEC_NONE; c < CODEC_ZSTD; c++) {
        for (int magic = 0; magic <= 1; magic++) {
            struct buf in = BUF_INIT, out = BUF_INIT, one = build(2, c, 5);
            put_be64(one.p, 1000);
            buf_put(&in, one.p, one.len);
            batch_build_marker(true, 1005, T0, 1, 7, 1, 1, &in);
            put_be64(one.p, 1006);
            buf_put(&in, one.p, one.len);
            size_t used;
            assert_int_equal(records_down_convert(in.p, in.len, magic, 0, &out, &used), KERR_NONE);
            assert_int_equal(used, in.len);
            int seen = 0, entries = 0;
            for (size_t at = 0; at < out.len; entries++) {
                struct batch b = decode(out.p + at, out.len - at);
                at += b.size;
                assert_int_equal(b.magic, magic);
                assert_int_equal(b.codec, c);
                assert_true(batch_crc_ok(&b));
                struct record_iter *it;
                struct record r;
                assert_int_equal(record_iter_open(&b, &it), 0);
                while (record_iter_next(it, &r) > 0) {
                    assert_int_equal(r.offset, seen < 5 ? 1000 + seen : 1006 + seen - 5);
                    assert_int_equal(r.timestamp, magic == 0 ? -1 : T0 + seen % 5);
                    assert_int_equal(r.headers_n, 0);
                    seen++;
                }
                record_iter_close(it);
            }
            assert_int_equal(seen, 10);
            assert_int_equal(entries, c == CODEC_NONE ? 10 : 2);
            buf_free(&in);
            buf_free(&out);
            buf_free(&one);
        }
    }
}

static int count_records(const struct buf *b)
{
    int n = 0;
    for (size_t at = 0; at < b->len;) {
        struct batch one = decode(b->p + at, b->len - at);
        n += iterate(&one);
        at += one.size;
    }
    return n;
}

static void plain_records_before_the_fetch_offset_are_left_out(void **state)
{
    for (int from_magic = 1; from_magic <= 2; from_magic++) {
        for (int magic = 0; magic < from_magic; magic++) {
            struct buf plain = build(from_magic, CODEC_NONE, 5), out = BUF_INIT;
            struct buf packed = build(from_magic, CODEC_GZIP, 5);
            size_t used;
            assert_int_equal(records_down_convert(plain.p, plain.len, magic, 3, &out, &used),
                             KERR_NONE);
            assert_int_equal(used, plain.len);
            assert_int_equal(count_records(&out), 2);
            out.len = 0;
            assert_int_equal(records_down_convert(plain.p, plain.len, magic, 9, &out, &used),
                             KERR_NONE);
            assert_int_equal(out.len, 0);
            assert_int_equal(records_down_convert(packed.p, packed.len, magic, 3, &out, &used),
                             KERR_NONE);
            assert_int_equal(count_records(&out), 5);
            buf_free(&plain);
            buf_free(&packed);
            buf_free(&out);
        }
    }
}

static void entries_that_are_old_already_pass_as_they_are(void **state)
{
    for (enum codec c = CODEC_NONE; c < CODEC_ZSTD; c++) {
        struct buf in = build(1, c, 3), v0 = build(0, c, 2), out = BUF_INIT;
        buf_put(&in, v0.p, v0.len);
        size_t used;
        assert_int_equal(records_down_convert(in.p, in.len, 1, 2, &out, &used), KERR_NONE);
        assert_int_equal(out.len, in.len);
        assert_memory_equal(out.p, in.p, in.len);
        buf_free(&in);
        buf_free(&v0);
        buf_free(&out);
    }
}

static void log_append_time_is_kept(void **state)
{
    for (enum codec c = CODEC_NONE; c < CODEC_ZSTD; c++) {
        struct batch_options o = BATCH_OPTIONS_DEFAULT;
        o.codec = c;
        o.log_append_time = true;
        o.log_append_timestamp = T0 + 777;
        struct buf in = build_with(&o, 3), out = BUF_INIT;
        size_t used;
        assert_int_equal(records_down_convert(in.p, in.len, 1, 0, &out, &used), KERR_NONE);
        for (size_t at = 0; at < out.len;) {
            struct batch b = decode(out.p + at, out.len - at);
            struct record_iter *it;
            struct record r;
            assert_int_equal(b.max_timestamp, T0 + 777);
            assert_int_equal(record_iter_open(&b, &it), 0);
            while (record_iter_next(it, &r) > 0) {
                assert_true(r.log_append_time);
                assert_int_equal(r.timestamp, T0 + 777);
            }
            record_iter_close(it);
            at += b.size;
        }
        buf_free(&in);
        buf_free(&out);
    }
}

static void conversion_stops_in_front_of_what_it_cannot_do(void **state)
{
    struct buf good = build(2, CODEC_GZIP, 3), zstd = build(2, CODEC_ZSTD, 3);
    struct buf broken = build(2, CODEC_GZIP, 3);
    broken.p[BATCH_HEAD] ^= 0xff;
    const struct {
        const struct buf *bad;
        enum kerr code;
    } cases[] = {{&zstd, KERR_UNSUPPORTED_COMPRESSION_TYPE}, {&broken, KERR_CORRUPT_MESSAGE}};
    for (int i = 0; i < 2; i++) {
        struct buf in = BUF_INIT, out = BUF_INIT;
        size_t used;
        buf_put(&in, good.p, good.len);
        buf_put(&in, cases[i].bad->p, cases[i].bad->len);
        assert_int_equal(records_down_convert(in.p, in.len, 1, 0, &out, &used), KERR_NONE);
        assert_int_equal(used, good.len);
        assert_int_equal(count_records(&out), 3);
        size_t before = out.len;
        assert_int_equal(records_down_convert(in.p + used, in.len - used, 1, 0, &out, &used),
                         cases[i].code);
        assert_int_equal(used, 0);
        assert_int_equal(out.len, before);
        buf_free(&in);
        buf_free(&out);
    }
    struct buf out = BUF_INIT; /* a partial entry is nothing */
    size_t used;
    assert_int_equal(records_down_convert(good.p, good.len - 1, 1, 0, &out, &used), KERR_NONE);
    assert_int_equal(used, 0);
    put_be32(good.p + 8, 3);
    assert_int_equal(records_down_convert(good.p, good.len, 1, 0, &out, &used),
                     KERR_CORRUPT_MESSAGE);
    buf_free(&out);
    buf_free(&good);
    buf_free(&zstd);
    buf_free(&broken);
}

static void fillers_are_skipped_by_every_reader(void **state)
{
    static const size_t owed[] = {12, 13, 17, 18, 60, 61, 62, 1000, 100000};
    for (size_t i = 0; i < sizeof(owed) / sizeof(*owed); i++) {
        struct buf out = BUF_INIT;
        buf_put(&out, "x", 1);
        assert_int_equal(records_filler(owed[i], &out), 0);
        assert_int_equal(out.len, owed[i] + 1);
        assert_int_equal((int64_t)get_be64(out.p + 1), -1);
        assert_int_equal(get_be32(out.p + 9), owed[i] + 1 > 61 ? owed[i] + 1 : 61);
        for (size_t k = 13; k < out.len; k++)
            assert_int_equal(out.p[k], 0);
        struct batch b;
        assert_int_equal(batch_decode(out.p + 1, owed[i], owed[i], &b), BATCH_END);
        buf_free(&out);
    }
    struct buf out = BUF_INIT;
    for (size_t n = 0; n < 12; n++)
        assert_int_equal(records_filler(n, &out), -EINVAL);
    assert_int_equal(out.len, 0);
}

UNIT_MAIN(unit_test(old_sets_become_one_batch_c26), unit_test(old_lz4_header_checks_c26),
          unit_test(sets_have_rules), unit_test(no_zstd_in_old_sets),
          unit_test(inner_checksums_are_verified), unit_test(old_records_meet_the_topics_rules),
          unit_test(old_sets_must_fit_before_and_after),
          unit_test(converted_sets_are_what_old_clients_know_43),
          unit_test(plain_records_before_the_fetch_offset_are_left_out),
          unit_test(entries_that_are_old_already_pass_as_they_are),
          unit_test(log_append_time_is_kept),
          unit_test(conversion_stops_in_front_of_what_it_cannot_do),
          unit_test(fillers_are_skipped_by_every_reader))
