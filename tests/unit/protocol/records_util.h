/* records_util.h - what the tests of record batches share: small batches, policies, comparisons, a
 * repeatable random source. */
#ifndef TESTS_RECORDS_UTIL_H
#define TESTS_RECORDS_UTIL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "protocol/batch_builder.h"
#include "protocol/records_append.h"
#include "unit.h"

#define T0 INT64_C(1700000000000)
#define UNUSED_FN __attribute__((unused))

static const enum codec all_codecs[] UNUSED_FN = {CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4,
                                                  CODEC_ZSTD};

static uint64_t random_state UNUSED_FN = 0x9e3779b97f4a7c15;

UNUSED_FN static uint32_t random_u32(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}

UNUSED_FN static struct bytes bytes_of(const char *z)
{
    return z ? (struct bytes){(const uint8_t *)z, (int32_t)strlen(z)} : BYTES_NULL;
}

UNUSED_FN static bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len <= 0 || memcmp(a.p, b.p, (size_t)a.len) == 0);
}

UNUSED_FN static struct append_policy default_policy(void)
{
    return (struct append_policy){
        .origin = APPEND_CLIENT,
        .produce_version = 9,
        .max_message_bytes = 1 << 20,
        .compression = COMPRESSION_PRODUCER,
        .level = CODEC_LEVEL_DEFAULT,
        .before_max_ms = INT64_MAX,
        .after_max_ms = INT64_MAX,
        .now_ms = T0 + 1000,
    };
}

/* n records "key i" = "value i ..." at T0 + i from offset 0. */
UNUSED_FN static struct buf build_with(const struct batch_options *o, int n)
{
    struct buf out = BUF_INIT;
    struct batch_builder *b = batch_builder_new(o);
    assert_non_null(b);
    for (int i = 0; i < n; i++) {
        char key[32], value[80];
        snprintf(key, sizeof(key), "key %d", i);
        snprintf(value, sizeof(value), "value %d value value value value value", i);
        struct record_header h = {STR_LIT("header"), bytes_of("hv")};
        assert_int_equal(batch_builder_add(b, i, T0 + i, bytes_of(key), bytes_of(value), &h, i % 2),
                         0);
    }
    assert_int_equal(batch_builder_finish(b, &out), 0);
    batch_builder_free(b);
    return out;
}

UNUSED_FN static struct buf build(int magic, enum codec codec, int n)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.magic = (int8_t)magic;
    o.codec = codec;
    return build_with(&o, n);
}

UNUSED_FN static struct batch decode(const uint8_t *p, size_t n)
{
    struct batch b;
    assert_int_equal(batch_decode(p, n, n, &b), BATCH_OK);
    return b;
}

/* Makes the checksum of a magic 2 batch right again. */
UNUSED_FN static void reseal(uint8_t *p, size_t n)
{
    if (n > BATCH_AT_ATTRIBUTES)
        put_be32(p + BATCH_AT_CRC, crc32c(p + BATCH_AT_ATTRIBUTES, n - BATCH_AT_ATTRIBUTES));
}

/* Number of records, or the error of the iterator. */
UNUSED_FN static int iterate(const struct batch *b)
{
    struct record_iter *it;
    struct record r;
    int n = 0, rc = record_iter_open(b, &it);
    if (rc)
        return rc;
    while ((rc = record_iter_next(it, &r)) > 0) {
        struct reader at = reader_of(r.headers.p, (size_t)r.headers.len);
        struct record_header h;
        int headers = 0;
        while (record_header_next(&at, &h))
            headers++;
        assert_int_equal(headers, r.headers_n);
        n++;
    }
    record_iter_close(it);
    return rc ? rc : n;
}

#endif
