/* Batches as written: exact bytes of the worked examples, random round trips for every codec and
 * magic, compaction's options, and limits. */
#include <errno.h>

#include "records_util.h"

static void check_hex(const struct buf *b, const char *hex)
{
    assert_int_equal(b->len * 2, strlen(hex));
    for (size_t i = 0; i < b->len; i++) {
        char text[3];
        snprintf(text, sizeof(text), "%02x", b->p[i]);
        assert_memory_equal(text, hex + 2 * i, 2);
    }
}

static void writes_the_worked_examples(void **state)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct buf out = BUF_INIT;
    o.leader_epoch = 7;
    struct batch_builder *b = batch_builder_new(&o);
    const uint8_t value[] = {1, 2};
    struct record_header h = {STR_LIT("h1"), {value, 2}};
    assert_int_equal(batch_builder_add(b, 123, T0, bytes_of("k1"), bytes_of("hello"), &h, 1), 0);
    assert_int_equal(batch_builder_add(b, 124, T0 + 5, BYTES_NULL, bytes_of("world"), NULL, 0), 0);
    assert_int_equal(batch_builder_count(b), 2);
    assert_int_equal(batch_builder_size(b), 93);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    assert_int_equal(batch_builder_count(b), 0);
    check_hex(&out,
              "000000000000007b00000051000000070282fe0de40000000000010000018bcfe568000000018bcfe5"
              "6805ffffffffffffffffffffffffffff0000000226000000046b310a68656c6c6f02046831040102"
              "16000a02010a776f726c6400");

    out.len = 0;
    o = BATCH_OPTIONS_DEFAULT;
    o.leader_epoch = 0;
    o.transactional = true;
    batch_builder_reset(b, &o);
    batch_builder_set_producer(b, 4000, 3, 17);
    assert_int_equal(batch_builder_add(b, 0, T0, bytes_of("a"), bytes_of("1"), NULL, 0), 0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    check_hex(&out,
              "00000000000000000000003a00000000024d3347ab0010000000000000018bcfe568000000018bcfe5"
              "68000000000000000fa000030000001100000001100000000261023100");

    out.len = 0;
    assert_int_equal(batch_build_marker(true, 1, T0 + 1, 0, 4000, 3, 9, &out), 0);
    check_hex(&out,
              "0000000000000001000000420000000002690aff870030000000000000018bcfe568010000018bcfe5"
              "68010000000000000fa00003ffffffff000000012000000008000000010c00000000000900");

    out.len = 0;
    o = BATCH_OPTIONS_DEFAULT;
    o.leader_epoch = 1;
    o.base_offset = 50;
    o.last_offset = 53;
    o.delete_horizon = T0 + 86400000;
    batch_builder_reset(b, &o);
    assert_int_equal(batch_builder_add(b, 52, T0, bytes_of("gone"), BYTES_NULL, NULL, 0), 0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    check_hex(&out,
              "00000000000000320000003f00000001029aad57ce0040000000030000018bd50bc4000000018bcfe5"
              "6800ffffffffffffffffffffffffffff000000011a00ffefb2520408676f6e650100");

    struct batch five = {.leader_epoch = 2,
                         .attributes = CODEC_ZSTD | BATCH_DELETE_HORIZON,
                         .base_offset = 10,
                         .last_offset = 14,
                         .max_timestamp = T0,
                         .producer_id = 4000,
                         .producer_epoch = 3,
                         .base_sequence = 20,
                         .record_count = 5};
    out.len = 0;
    assert_int_equal(batch_build_empty(&five, &out), 0);
    check_hex(&out,
              "000000000000000a0000003100000002022589ffee000000000004ffffffffffffffff0000018bcfe5"
              "68000000000000000fa000030000001400000000");

    out.len = 0;
    o = BATCH_OPTIONS_DEFAULT;
    o.magic = 1;
    batch_builder_reset(b, &o);
    batch_builder_add(b, 42, T0, bytes_of("key"), bytes_of("value"), NULL, 0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    check_hex(&out,
              "000000000000002a0000001e6ad05db801000000018bcfe56800000000036b65790000000576616c75"
              "65");

    out.len = 0;
    o.magic = 0;
    batch_builder_reset(b, &o);
    batch_builder_add(b, 7, T0, BYTES_NULL, bytes_of("abc"), NULL, 0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    check_hex(&out, "00000000000000070000001143dc3faf0000ffffffff00000003616263");
    batch_builder_free(b);
    buf_free(&out);
}

/* ---- random round trips ---- */

struct made {
    int64_t offset, timestamp;
    struct bytes key, value;
    struct record_header headers[3];
    int headers_n;
};

static struct bytes random_bytes(uint32_t most)
{
    if (random_u32() % 6 == 0)
        return BYTES_NULL;
    int n = (int)(random_u32() % (random_u32() % 4 == 0 ? most : 40));
    uint8_t *p = malloc((size_t)n + 1);
    for (int i = 0; i < n; i++)
        p[i] = (uint8_t)(random_u32() % 3 ? (uint32_t)i : random_u32());
    return (struct bytes){p, n};
}

static void free_made(struct made *m, int n)
{
    for (int i = 0; i < n; i++) {
        free((void *)(uintptr_t)m[i].key.p);
        free((void *)(uintptr_t)m[i].value.p);
        for (int h = 0; h < m[i].headers_n; h++) {
            free((void *)(uintptr_t)m[i].headers[h].key.p);
            free((void *)(uintptr_t)m[i].headers[h].value.p);
        }
    }
}

static int make(struct made *m, int64_t *offset)
{
    int n = 1 + (int)(random_u32() % 20);
    for (int i = 0; i < n; i++) {
        m[i].offset = *offset;
        *offset += 1 + (random_u32() % 5 == 0 ? (int)(random_u32() % 1000) : 0);
        m[i].timestamp = random_u32() % 9 == 0 ? -1 : T0 + (int64_t)(random_u32() % 100000) - 50000;
        m[i].key = random_bytes(300);
        m[i].value = random_bytes(40000);
        m[i].headers_n = (int)(random_u32() % 4);
        for (int h = 0; h < m[i].headers_n; h++) {
            struct bytes key = random_bytes(100);
            m[i].headers[h].key = (struct str){key.len < 0 ? strdup("") : (const char *)key.p,
                                               key.len < 0 ? 0 : key.len};
            m[i].headers[h].value = random_bytes(100);
        }
    }
    return n;
}

static void check_made(const struct record *r, const struct made *m, int magic)
{
    assert_int_equal(r->offset, m->offset);
    assert_int_equal(r->timestamp, magic == 0 ? -1 : m->timestamp);
    assert_true(bytes_equal(r->key, m->key));
    assert_true(bytes_equal(r->value, m->value));
    struct reader at = reader_of(r->headers.p, (size_t)r->headers.len);
    struct record_header h;
    int n = magic < 2 ? 0 : m->headers_n;
    assert_int_equal(r->headers_n, n);
    for (int i = 0; i < n; i++) {
        assert_true(record_header_next(&at, &h));
        assert_true(str_eq(h.key, m->headers[i].key));
        assert_true(bytes_equal(h.value, m->headers[i].value));
    }
    assert_false(record_header_next(&at, &h));
}

static void check_all(const struct buf *out, const struct made *m, int n, int magic)
{
    size_t at = 0;
    int seen = 0;
    int64_t max = INT64_MIN;
    while (at < out->len) {
        struct batch b = decode(out->p + at, out->len - at);
        struct record_iter *it;
        struct record r;
        int rc;
        assert_true(batch_crc_ok(&b));
        assert_int_equal(record_iter_open(&b, &it), 0);
        while ((rc = record_iter_next(it, &r)) > 0) {
            assert_true(seen < n);
            check_made(&r, &m[seen++], magic);
            if (r.timestamp > max)
                max = r.timestamp;
        }
        assert_int_equal(rc, 0);
        record_iter_close(it);
        at += b.size;
        if (b.codec != CODEC_NONE || magic == 2) {
            assert_int_equal(b.max_timestamp, max);
            assert_int_equal(b.last_offset, m[n - 1].offset);
        }
    }
    assert_int_equal(seen, n);
}

static void random_batches_round_trip(void **state)
{
    static struct made m[32];
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b = batch_builder_new(&o);
    for (int round = 0; round < 300; round++) {
        o.magic = (int8_t)(round % 3);
        o.codec = (enum codec)(random_u32() % (o.magic == 2 ? CODECS : CODEC_ZSTD));
        int64_t offset = random_u32();
        int n = make(m, &offset);
        batch_builder_reset(b, &o);
        size_t most = batch_builder_size(b);
        for (int i = 0; i < n; i++) {
            most +=
                batch_builder_record_size(&o, m[i].key, m[i].value, m[i].headers, m[i].headers_n);
            assert_int_equal(batch_builder_add(b, m[i].offset, m[i].timestamp, m[i].key, m[i].value,
                                               m[i].headers, m[i].headers_n),
                             0);
        }
        size_t size = batch_builder_size(b);
        assert_true(size <= most);
        struct buf out = BUF_INIT;
        assert_int_equal(batch_builder_finish(b, &out), 0);
        if (o.codec == CODEC_NONE)
            assert_int_equal(out.len, size);
        check_all(&out, m, n, o.magic);
        buf_free(&out);
        free_made(m, n);
    }
    batch_builder_free(b);
}

static void inner_offsets_are_relative_in_magic_1_only(void **state)
{
    for (int magic = 0; magic <= 1; magic++) {
        struct batch_options o = BATCH_OPTIONS_DEFAULT;
        o.magic = (int8_t)magic;
        o.codec = CODEC_GZIP;
        struct batch_builder *b = batch_builder_new(&o);
        static const int64_t offsets[] = {1000, 1001, 1005};
        for (int i = 0; i < 3; i++)
            batch_builder_add(b, offsets[i], T0, BYTES_NULL, bytes_of("v"), NULL, 0);
        struct buf out = BUF_INIT, inner = BUF_INIT;
        assert_int_equal(batch_builder_finish(b, &out), 0);
        struct batch w = decode(out.p, out.len);
        assert_int_equal(w.base_offset, 1005);
        size_t head = magic == 0 ? 26 : 34;
        assert_int_equal(get_be32(out.p + head - 4), out.len - head);
        assert_int_equal(
            codec_decompress(CODEC_GZIP, magic, out.p + head, out.len - head, 1000, &inner), 0);
        size_t at = 0;
        for (int i = 0; i < 3; i++) {
            struct batch in = decode(inner.p + at, inner.len - at);
            assert_true(batch_crc_ok(&in));
            assert_int_equal(in.base_offset, magic == 0 ? offsets[i] : offsets[i] - 1000);
            at += in.size;
        }
        batch_builder_free(b);
        buf_free(&out);
        buf_free(&inner);
    }
}

static void refuses_what_a_batch_cannot_hold(void **state)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b = batch_builder_new(&o);
    struct buf out = BUF_INIT;
    struct bytes v = bytes_of("v");
    assert_int_equal(batch_builder_finish(b, &out), 0);
    assert_int_equal(out.len, 0);
    assert_int_equal(batch_builder_add(b, -1, T0, v, v, NULL, 0), -EINVAL);
    assert_int_equal(batch_builder_add(b, 10, T0, v, v, NULL, 0), 0);
    assert_int_equal(batch_builder_add(b, 10, T0, v, v, NULL, 0), -EINVAL);
    assert_int_equal(batch_builder_add(b, 9, T0, v, v, NULL, 0), -EINVAL);
    assert_int_equal(batch_builder_add(b, INT64_C(11) + INT32_MAX, T0, v, v, NULL, 0), -EINVAL);
    assert_int_equal(batch_builder_add(b, INT64_MAX, T0, v, v, NULL, 0), -EINVAL);
    assert_int_equal(batch_builder_add(b, INT64_C(10) + INT32_MAX, T0, v, v, NULL, 0), 0);
    /* 2^31 - 1 bytes that are never looked at */
    struct bytes huge = {v.p, INT32_MAX};
    assert_int_equal(batch_builder_add(b, INT64_C(11) + INT32_MAX, T0, v, huge, NULL, 0), -EINVAL);
    assert_int_equal(batch_builder_count(b), 2);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    struct batch head = decode(out.p, out.len);
    assert_int_equal(head.last_offset - head.base_offset, INT32_MAX);
    assert_int_equal(batch_builder_add(b, 1, T0, v, huge, NULL, 0), -EMSGSIZE);
    o.magic = 1;
    batch_builder_reset(b, &o);
    assert_int_equal(batch_builder_add(b, 1, T0, v, huge, NULL, 0), -EMSGSIZE);
    /* codec and level are seen at the end; the records stay for another try */
    o.codec = CODEC_ZSTD;
    batch_builder_reset(b, &o);
    size_t before = out.len;
    assert_int_equal(batch_builder_add(b, 1, T0, v, v, NULL, 0), 0);
    assert_int_equal(batch_builder_finish(b, &out), -EINVAL);
    assert_int_equal(batch_builder_count(b), 1);
    assert_int_equal(out.len, before);
    o.magic = 2;
    o.level = 99;
    batch_builder_reset(b, &o);
    assert_int_equal(batch_builder_add(b, 1, T0, v, v, NULL, 0), 0);
    assert_int_equal(batch_builder_finish(b, &out), -EINVAL);
    assert_int_equal(out.len, before);
    batch_builder_free(b);
    batch_builder_free(NULL);
    buf_free(&out);
}

static void timestamps_far_apart_survive(void **state)
{
    static const int64_t times[] = {-1, INT64_MAX, 0, INT64_MAX - 1, 5};
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b = batch_builder_new(&o);
    struct buf out = BUF_INIT;
    for (int i = 0; i < 5; i++)
        assert_int_equal(batch_builder_add(b, i, times[i], BYTES_NULL, BYTES_NULL, NULL, 0), 0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    struct batch head = decode(out.p, out.len);
    assert_int_equal(head.max_timestamp, INT64_MAX);
    struct record_iter *it;
    struct record r;
    assert_int_equal(record_iter_open(&head, &it), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(record_iter_next(it, &r), 1);
        assert_int_equal(r.timestamp, times[i]);
    }
    record_iter_close(it);
    batch_builder_free(b);
    buf_free(&out);
}

/* What the cleaner does: records of a batch, some left out, in the same range. */
static void records_can_be_carried_over(void **state)
{
    struct buf in = build(2, CODEC_LZ4, 10), out = BUF_INIT;
    struct batch head = decode(in.p, in.len);
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.codec = CODEC_LZ4;
    o.base_offset = head.base_offset;
    o.last_offset = head.last_offset;
    struct batch_builder *b = batch_builder_new(&o);
    struct record_iter *it;
    struct record r;
    assert_int_equal(record_iter_open(&head, &it), 0);
    while (record_iter_next(it, &r) > 0)
        if (r.offset == 3 || r.offset == 6)
            assert_int_equal(batch_builder_add_record(b, r.offset, &r), 0);
    record_iter_close(it);
    assert_int_equal(batch_builder_add(b, 10, T0, BYTES_NULL, BYTES_NULL, NULL, 0), -EINVAL);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    struct batch kept = decode(out.p, out.len);
    assert_int_equal(kept.base_offset, 0);
    assert_int_equal(kept.last_offset, 9);
    assert_int_equal(kept.record_count, 2);
    assert_int_equal(kept.base_timestamp, T0 + 3);
    assert_int_equal(kept.max_timestamp, T0 + 6);
    assert_int_equal(record_iter_open(&kept, &it), 0);
    for (int i = 3; i <= 6; i += 3) {
        assert_int_equal(record_iter_next(it, &r), 1);
        assert_int_equal(r.offset, i);
        assert_int_equal(r.timestamp, T0 + i);
        assert_int_equal(r.headers_n, i % 2);
    }
    record_iter_close(it);
    batch_builder_free(b);
    buf_free(&in);
    buf_free(&out);
}

UNIT_MAIN(unit_test(writes_the_worked_examples), unit_test(random_batches_round_trip),
          unit_test(inner_offsets_are_relative_in_magic_1_only),
          unit_test(refuses_what_a_batch_cannot_hold), unit_test(timestamps_far_apart_survive),
          unit_test(records_can_be_carried_over))
