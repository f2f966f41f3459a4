/* Heads of entries, sequence arithmetic, and iteration over good and malformed batches. */
#include <errno.h>

#include "protocol/record_batch.h"
#include "records_util.h"

static void walk_stops_at_partial_entries(void **state)
{
    for (int magic = 0; magic <= 2; magic++) {
        struct buf one = build(magic, CODEC_NONE, 1);
        struct batch b;
        for (size_t n = 0; n < one.len; n++)
            assert_int_equal(batch_decode(one.p, n, n, &b), BATCH_END);
        assert_int_equal(batch_decode(one.p, one.len, one.len, &b), BATCH_OK);
        /* the head is enough of a longer entry */
        size_t head = magic == 2 ? BATCH_HEAD : magic == 1 ? 26 : 18;
        assert_int_equal(batch_decode(one.p, head, one.len, &b), BATCH_OK);
        assert_int_equal(b.size, one.len);
        assert_int_equal(batch_decode(one.p, head - 1, one.len, &b), BATCH_END);
        assert_int_equal(batch_decode(one.p, head, one.len - 1, &b), BATCH_END);
        buf_free(&one);
    }
}

static void walk_refuses_sizes_and_magics(void **state)
{
    struct buf one = build(2, CODEC_NONE, 1);
    struct batch b;
    static const int32_t lengths[] = {INT32_MIN, -1, 0, 13};
    for (int i = 0; i < 4; i++) {
        put_be32(one.p + 8, (uint32_t)lengths[i]);
        assert_int_equal(batch_decode(one.p, one.len, one.len, &b), BATCH_CORRUPT);
        assert_int_equal(batch_decode(one.p, 12, 12, &b), BATCH_CORRUPT);
    }
    put_be32(one.p + 8, INT32_MAX);
    assert_int_equal(batch_decode(one.p, one.len, one.len, &b), BATCH_END);
    assert_int_equal(batch_decode(one.p, one.len, UINT64_C(1) << 40, &b), BATCH_OK);
    assert_int_equal(b.size, (uint32_t)INT32_MAX + 12);
    for (int magic = 0; magic <= 2; magic++) { /* below the least size of its format */
        static const int least[] = {26, 34, 61};
        one.p[16] = (uint8_t)magic;
        put_be32(one.p + 8, (uint32_t)least[magic] - 13);
        assert_int_equal(batch_decode(one.p, one.len, one.len, &b), BATCH_CORRUPT);
        put_be32(one.p + 8, (uint32_t)least[magic] - 12);
        assert_int_equal(batch_decode(one.p, one.len, one.len, &b), BATCH_OK);
    }
    put_be32(one.p + 8, (uint32_t)one.len - 12);
    for (int magic = 3; magic < 256; magic++) {
        one.p[16] = (uint8_t)magic;
        assert_int_equal(batch_decode(one.p, one.len, one.len, &b), BATCH_CORRUPT);
    }
    buf_free(&one);
}

static void every_covered_bit_is_in_the_crc(void **state)
{
    for (int magic = 0; magic <= 2; magic++) {
        struct buf one = build(magic, CODEC_NONE, 1);
        assert_true((magic == 2 ? 21 : 16) < one.len);
        for (size_t i = 0; i < one.len; i++) {
            struct batch b = decode(one.p, one.len);
            one.p[i] ^= 0x10;
            bool decodes = batch_decode(one.p, one.len, one.len, &b) == BATCH_OK;
            bool covered = magic == 2 ? i >= 17 : i >= 12;
            bool framing = (i >= 8 && i < 12) || i == 16; /* then it is another entry */
            if (decodes && !framing)
                assert_int_equal(batch_crc_ok(&b), !covered);
            one.p[i] ^= 0x10;
        }
        buf_free(&one);
    }
}

static void sequences_wrap_to_zero(void **state)
{
    static const struct {
        int32_t s, n, sum;
    } cases[] = {{0, 0, 0},
                 {5, 7, 12},
                 {INT32_MAX, 0, INT32_MAX},
                 {INT32_MAX, 1, 0},
                 {INT32_MAX - 1, 3, 1},
                 {INT32_MAX, INT32_MAX, INT32_MAX - 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(sequence_add(cases[i].s, cases[i].n), cases[i].sum);
        assert_int_equal(sequence_sub(cases[i].sum, cases[i].n), cases[i].s);
    }
}

static void record_sequences_wrap_too(void **state)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.producer_id = 9;
    o.producer_epoch = 1;
    o.base_sequence = INT32_MAX - 1;
    struct buf out = build_with(&o, 4);
    struct batch b = decode(out.p, out.len);
    assert_int_equal(b.last_sequence, 1);
    static const int32_t expected[] = {INT32_MAX - 1, INT32_MAX, 0, 1};
    struct record_iter *it;
    struct record r;
    assert_int_equal(record_iter_open(&b, &it), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(record_iter_next(it, &r), 1);
        assert_int_equal(r.sequence, expected[i]);
    }
    assert_int_equal(record_iter_next(it, &r), 0);
    record_iter_close(it);
    buf_free(&out);
}

/* A magic 2 batch around `body`; 0 attributes but for the codec. */
static struct buf wrap_body(const void *body, size_t n, int32_t count, enum codec codec)
{
    struct buf out = build(2, CODEC_NONE, 1);
    out.len = BATCH_HEAD;
    assert_int_equal(codec_compress(codec, CODEC_LEVEL_DEFAULT, 2, body, n, &out), 0);
    put_be32(out.p + BATCH_AT_LENGTH, (uint32_t)out.len - 12);
    put_be16(out.p + BATCH_AT_ATTRIBUTES, (uint16_t)codec);
    put_be32(out.p + BATCH_AT_RECORD_COUNT, (uint32_t)count);
    put_be32(out.p + BATCH_AT_LAST_OFFSET_DELTA, (uint32_t)count - 1);
    reseal(out.p, out.len);
    return out;
}

struct body {
    int32_t count;
    int n;
    uint8_t p[40];
};

static const struct body good_bodies[] = {
    {0, 0, {0}},
    {1, 7, {0x0c, 0, 0, 0, 1, 1, 0}},                             /* null key, null value */
    {1, 7, {0x0c, 0, 0, 0, 0, 0, 0}},                             /* empty ones */
    {1, 8, {0x8c, 0x00, 0, 0, 0, 1, 1, 0}},                       /* padded length */
    {2, 14, {0x0c, 0, 0, 0, 1, 1, 0, 0x0c, 0xff, 1, 2, 1, 1, 0}}, /* attributes are ignored */
    {1, 10, {0x12, 0, 0, 0, 1, 1, 2, 2, 'h', 1}},                 /* header with null value */
    {1, 9, {0x10, 0, 0, 0, 1, 1, 2, 0, 0}},                       /* header, all empty */
    {1, 8, {0x0e, 0, 0, 0, 0x81, 0x00, 1, 0}},                    /* null key, padded */
    {1, 8, {0x0e, 0, 0x80, 0x00, 0, 1, 1, 0}},                    /* padded timestamp delta */
};

static const struct body bad_bodies[] = {
    {-1, 7, {0x0c, 0, 0, 0, 1, 1, 0}},                         /* negative count */
    {2, 7, {0x0c, 0, 0, 0, 1, 1, 0}},                          /* fewer records than told */
    {INT32_MAX, 7, {0x0c, 0, 0, 0, 1, 1, 0}},                  /* far fewer */
    {1, 8, {0x0c, 0, 0, 0, 1, 1, 0, 0}},                       /* bytes behind the last record */
    {1, 14, {0x0c, 0, 0, 0, 1, 1, 0, 0x0c, 0, 0, 2, 1, 1, 0}}, /* a record more */
    {1, 7, {0x0b, 0, 0, 0, 1, 1, 0}},                          /* negative length */
    {1, 7, {0x0e, 0, 0, 0, 1, 1, 0}},                          /* length beyond the data */
    {1, 7, {0x0a, 0, 0, 0, 1, 1, 0}},                          /* length too small for the fields */
    {1, 8, {0x0e, 0, 0, 0, 1, 1, 0, 0}},                       /* fields end before the length */
    {1, 7, {0x0c, 0, 0, 0, 3, 1, 0}},                          /* key length -2 */
    {1, 7, {0x0c, 0, 0, 0, 1, 3, 0}},                          /* value length -2 */
    {1, 7, {0x0c, 0, 0, 0, 6, 1, 0}},                          /* key beyond the record */
    {1, 7, {0x0c, 0, 0, 0, 1, 4, 0}},                          /* value beyond the record */
    {1, 7, {0x0c, 0, 0, 0, 1, 1, 1}},                          /* header count -1 */
    {1, 7, {0x0c, 0, 0, 0, 1, 1, 2}},                          /* a header that is not there */
    {1, 9, {0x10, 0, 0, 0, 1, 1, 4, 0, 0}},                    /* two headers, one there */
    {1, 9, {0x10, 0, 0, 0, 1, 1, 2, 1, 0}},                    /* header key null */
    {1, 10, {0x12, 0, 0, 0, 1, 1, 2, 0x81, 0x00, 0}},          /* the same, padded */
    {1, 8, {0x0e, 0, 0, 0, 0x83, 0x00, 1, 0}},                 /* key length -2, padded */
    {1, 9, {0x10, 0, 0, 0, 1, 1, 2, 0, 3}},                    /* header value length -2 */
    {1, 10, {0x12, 0, 0, 0, 1, 1, 2, 0, 0, 0}},                /* a byte behind the last header */
    {1, 11, {0x14, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f}},          /* 2^31 - 1 headers */
    {1, 13, {0x18, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 1, 1, 0}}, /* varint of 6 bytes */
    {1, 7, {0x0c, 0, 0, 1, 1, 1, 0}},                                      /* offset delta -1 */
    {1, 5, {0x80, 0x80, 0x80, 0x80, 0x80}}, /* a length that never ends */
};

static void iterates_well_formed_bodies(void **state)
{
    for (size_t i = 0; i < sizeof(good_bodies) / sizeof(*good_bodies); i++) {
        const struct body *g = &good_bodies[i];
        for (enum codec c = CODEC_NONE; c < CODECS; c++) {
            if (c != CODEC_NONE && g->count == 0)
                continue;
            struct buf out = wrap_body(g->p, (size_t)g->n, g->count, c);
            struct batch b = decode(out.p, out.len);
            assert_int_equal(iterate(&b), g->count);
            buf_free(&out);
        }
    }
}

static void refuses_malformed_bodies(void **state)
{
    for (size_t i = 0; i < sizeof(bad_bodies) / sizeof(*bad_bodies); i++) {
        const struct body *g = &bad_bodies[i];
        for (enum codec c = CODEC_NONE; c < CODECS; c++) {
            struct buf out = wrap_body(g->p, (size_t)g->n, g->count, c);
            struct batch b = decode(out.p, out.len);
            int rc = iterate(&b);
            if (rc != -EBADMSG)
                print_error("body %zu codec %d: %d\n", i, c, rc);
            assert_int_equal(rc, -EBADMSG);
            /* and an append refuses them for the same reason */
            struct append_policy policy = default_policy();
            struct arena a;
            struct prepared pr;
            arena_init(&a, 0);
            put_be64(out.p, 0);
            enum kerr code = records_prepare(&policy, out.p, out.len, &a, &pr);
            bool wrong_delta = g->count == 1 && g->p[3] == 1 && g->n == 7;
            if (wrong_delta && c != CODEC_NONE) { /* these the leader numbers anew */
                assert_int_equal(code, KERR_NONE);
            } else {
                assert_int_equal(code, KERR_INVALID_RECORD);
                assert_non_null(pr.message);
            }
            prepared_free(&pr);
            arena_free(&a);
            buf_free(&out);
        }
    }
}

static void codecs_5_to_7_do_not_exist(void **state)
{
    for (int magic = 0; magic <= 2; magic++) {
        for (int codec = magic == 2 ? 5 : 4; codec <= 7; codec++) {
            struct buf out = build(magic, CODEC_NONE, 1);
            out.p[magic == 2 ? BATCH_AT_ATTRIBUTES + 1 : 17] = (uint8_t)codec;
            struct batch b = decode(out.p, out.len);
            assert_int_equal(iterate(&b), -EBADMSG);
            buf_free(&out);
        }
    }
}

static void empty_batches_iterate_to_nothing(void **state)
{
    struct buf out = BUF_INIT, full = build(2, CODEC_ZSTD, 5);
    struct batch b = decode(full.p, full.len);
    assert_int_equal(batch_build_empty(&b, &out), 0);
    assert_int_equal(out.len, BATCH_HEAD);
    b = decode(out.p, out.len);
    assert_true(batch_crc_ok(&b));
    assert_int_equal(iterate(&b), 0);
    put_be16(out.p + BATCH_AT_ATTRIBUTES, CODEC_GZIP); /* as old cleaners leave the codec in */
    b = decode(out.p, out.len);
    assert_int_equal(iterate(&b), 0);
    buf_free(&out);
    buf_free(&full);
}

static void log_append_time_is_that_of_the_batch(void **state)
{
    for (int magic = 1; magic <= 2; magic++) {
        for (enum codec c = CODEC_NONE; c < CODEC_ZSTD; c++) {
            struct batch_options o = BATCH_OPTIONS_DEFAULT;
            o.magic = (int8_t)magic;
            o.codec = c;
            o.log_append_time = true;
            o.log_append_timestamp = 4711;
            struct buf out = build_with(&o, 3);
            const uint8_t *p = out.p;
            int seen = 0;
            while (p < out.p + out.len) {
                struct batch b = decode(p, (size_t)(out.p + out.len - p));
                assert_int_equal(b.max_timestamp, 4711);
                struct record_iter *it;
                struct record r;
                assert_int_equal(record_iter_open(&b, &it), 0);
                while (record_iter_next(it, &r) > 0) {
                    assert_int_equal(r.timestamp, 4711);
                    assert_true(r.log_append_time);
                    assert_int_equal(r.offset, seen++);
                }
                record_iter_close(it);
                p += b.size;
            }
            assert_int_equal(seen, 3);
            buf_free(&out);
        }
    }
}

static void markers_carry_key_and_value(void **state)
{
    for (int commit = 0; commit <= 1; commit++) {
        struct buf out = BUF_INIT;
        assert_int_equal(batch_build_marker(commit, 77, T0, 4, 4000, 3, 9, &out), 0);
        assert_int_equal(out.len, 78);
        struct batch b = decode(out.p, out.len);
        assert_true(batch_is_control(&b) && batch_is_transactional(&b));
        assert_int_equal(b.base_sequence, NO_SEQUENCE);
        assert_int_equal(b.leader_epoch, 4);
        struct record_iter *it;
        struct record r;
        assert_int_equal(record_iter_open(&b, &it), 0);
        assert_int_equal(record_iter_next(it, &r), 1);
        const uint8_t key[4] = {0, 0, 0, (uint8_t)commit}, value[6] = {0, 0, 0, 0, 0, 9};
        assert_true(bytes_equal(r.key, (struct bytes){key, 4}));
        assert_true(bytes_equal(r.value, (struct bytes){value, 6}));
        assert_int_equal(r.sequence, NO_SEQUENCE);
        assert_int_equal(record_iter_next(it, &r), 0);
        record_iter_close(it);
        buf_free(&out);
    }
}

/* ---- compressed sets of magic 0 and 1 ---- */

/* One wrapper around `inner` with the given offset, gzip. */
static struct buf wrapper(int magic, int64_t offset, const struct buf *inner)
{
    struct buf packed = BUF_INIT, out = BUF_INIT;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.magic = (int8_t)magic;
    assert_int_equal(
        codec_compress(CODEC_GZIP, CODEC_LEVEL_DEFAULT, magic, inner->p, inner->len, &packed), 0);
    struct batch_builder *b = batch_builder_new(&o);
    batch_builder_add(b, offset, T0, BYTES_NULL, (struct bytes){packed.p, (int32_t)packed.len},
                      NULL, 0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    batch_builder_free(b);
    out.p[17] |= CODEC_GZIP; /* the checksum is left wrong: iteration does not look */
    buf_free(&packed);
    return out;
}

static int iterate_wrapper(int magic, int64_t offset, const struct buf *inner, int64_t *first)
{
    struct buf out = wrapper(magic, offset, inner);
    struct batch b = decode(out.p, out.len);
    struct record_iter *it;
    struct record r;
    int rc = record_iter_open(&b, &it);
    if (rc == 0 && (rc = record_iter_next(it, &r)) > 0)
        *first = r.offset;
    record_iter_close(it);
    if (rc > 0)
        rc = iterate(&b);
    buf_free(&out);
    return rc;
}

static void wrapped_offsets(void **state)
{
    struct buf inner = build(1, CODEC_NONE, 3); /* 0, 1, 2 */
    int64_t first;
    assert_int_equal(iterate_wrapper(1, 1002, &inner, &first), 3);
    assert_int_equal(first, 1000);
    assert_int_equal(iterate_wrapper(1, 2, &inner, &first), 3);
    assert_int_equal(first, 0);
    assert_int_equal(iterate_wrapper(1, 0, &inner, &first), 3); /* librdkafka's 0 */
    assert_int_equal(first, 0);
    assert_int_equal(iterate_wrapper(1, 1, &inner, &first), -EBADMSG);
    buf_free(&inner);
    inner = build(0, CODEC_NONE, 3);
    assert_int_equal(iterate_wrapper(0, 1002, &inner, &first), 3); /* absolute as they are */
    assert_int_equal(first, 0);
    buf_free(&inner);
}

static void refuses_malformed_sets(void **state)
{
    int64_t first;
    struct buf none = BUF_INIT, two = build(1, CODEC_NONE, 2), nested = build(1, CODEC_GZIP, 2);
    struct buf mixed = build(1, CODEC_NONE, 1), old = build(0, CODEC_NONE, 1);
    buf_reserve(&none, 1);
    assert_int_equal(iterate_wrapper(1, 5, &none, &first), -EBADMSG);
    assert_int_equal(iterate_wrapper(0, 5, &none, &first), -EBADMSG);
    assert_int_equal(iterate_wrapper(1, 5, &nested, &first), -EBADMSG);
    assert_int_equal(iterate_wrapper(0, 5, &two, &first), -EBADMSG);
    buf_put(&mixed, old.p, old.len);
    assert_int_equal(iterate_wrapper(1, 5, &mixed, &first), -EBADMSG);
    for (two.len--; two.len > 0; two.len--) /* cut anywhere but between the messages */
        if (two.len != mixed.len - old.len)
            assert_int_equal(iterate_wrapper(1, 5, &two, &first), -EBADMSG);
    buf_free(&none);
    buf_free(&two);
    buf_free(&nested);
    buf_free(&mixed);
    buf_free(&old);
}

static void refuses_a_wrapper_with_null_value(void **state)
{
    for (int magic = 0; magic <= 1; magic++) {
        struct buf out = BUF_INIT;
        struct batch_options o = BATCH_OPTIONS_DEFAULT;
        o.magic = (int8_t)magic;
        struct batch_builder *b = batch_builder_new(&o);
        batch_builder_add(b, 0, T0, BYTES_NULL, BYTES_NULL, NULL, 0);
        batch_builder_finish(b, &out);
        batch_builder_free(b);
        out.p[17] |= CODEC_GZIP;
        struct batch head = decode(out.p, out.len);
        assert_int_equal(iterate(&head), -EBADMSG);
        buf_free(&out);
    }
}

UNIT_MAIN(unit_test(walk_stops_at_partial_entries), unit_test(walk_refuses_sizes_and_magics),
          unit_test(every_covered_bit_is_in_the_crc), unit_test(sequences_wrap_to_zero),
          unit_test(record_sequences_wrap_too), unit_test(iterates_well_formed_bodies),
          unit_test(refuses_malformed_bodies), unit_test(codecs_5_to_7_do_not_exist),
          unit_test(empty_batches_iterate_to_nothing),
          unit_test(log_append_time_is_that_of_the_batch), unit_test(markers_carry_key_and_value),
          unit_test(wrapped_offsets), unit_test(refuses_malformed_sets),
          unit_test(refuses_a_wrapper_with_null_value))
