/* fuzz_record_batch.c - everything that is done to record data from outside: append checks by every
 * origin and policy, iteration, conversion for old clients.
 *
 * INPUT  byte 0: bits 0-1 origin, 2 LogAppendTime, 3 keys required, 4 near timestamps only, 5 make
 *        the checksums right. byte 1: Produce version. byte 2: codec of the topic. byte 3: size
 *        limit in KiB. Then the records.
 *
 * Rooms: protocol */
#include <stdlib.h>

#include "base/checksum.h"
#include "protocol/legacy_message.h"
#include "protocol/records_append.h"
#include "protocol/records_convert.h"

#include "fuzz.h"

enum { OPTIONS = 4 };

static void make_checksums_right(uint8_t *p, size_t n)
{
    struct batch b;
    for (size_t at = 0; batch_decode(p + at, n - at, n - at, &b) == BATCH_OK; at += b.size) {
        if (b.magic == 2)
            put_be32(p + at + BATCH_AT_CRC,
                     crc32c(p + at + BATCH_AT_ATTRIBUTES, b.size - BATCH_AT_ATTRIBUTES));
        else
            put_be32(p + at + LEGACY_AT_CRC, legacy_crc(p + at, b.size));
    }
}

static int iterate(const struct batch *b)
{
    struct record_iter *it;
    struct record r;
    int rc = record_iter_open(b, &it), n = 0;
    while (rc == 0 && (rc = record_iter_next(it, &r)) > 0) {
        struct reader at = reader_of(r.headers.p, (size_t)r.headers.len);
        struct record_header h;
        int headers = 0;
        while (record_header_next(&at, &h))
            headers++;
        must(headers == r.headers_n);
        rc = 0;
        n++;
    }
    record_iter_close(it);
    return rc ? rc : n;
}

static void append(const struct append_policy *policy, const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    struct arena a;
    struct prepared pr;
    memcpy(copy, p, n);
    arena_init(&a, 1 << 20);
    enum kerr code = records_prepare(policy, copy, n, &a, &pr);
    must(code == KERR_NONE || policy->origin == APPEND_REPLICATION || !memcmp(copy, p, n));
    if (code == KERR_NONE && pr.batches_n && policy->origin != APPEND_REPLICATION) {
        records_assign(&pr, 1000, 5);
        struct batch b;
        must(batch_decode(pr.p, pr.len, pr.len, &b) == BATCH_OK && b.size == pr.len);
        must(batch_crc_ok(&b) && b.magic == 2 && b.base_offset == 1000 && b.leader_epoch == 5);
        must(iterate(&b) == b.record_count && b.record_count == pr.offsets_n);
        must(b.last_offset == pr.last_offset && b.max_timestamp == pr.max_timestamp);
    }
    prepared_free(&pr);
    arena_free(&a);
    free(copy);
}

static void convert(const uint8_t *p, size_t n)
{
    for (int magic = 0; magic <= 1; magic++) {
        struct buf out = BUF_INIT;
        size_t used;
        enum kerr code = records_down_convert(p, n, magic, 1, &out, &used);
        must(used <= n && (code == KERR_NONE || used == 0));
        struct batch b;
        for (size_t at = 0; at < out.len; at += b.size)
            must(batch_decode(out.p + at, out.len - at, out.len - at, &b) == BATCH_OK &&
                 b.magic <= magic);
        buf_free(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n < OPTIONS)
        return 0;
    bool near = p[0] & 16;
    struct append_policy policy = {
        .origin = (enum append_origin)(p[0] % 4 % 3),
        .produce_version = (int8_t)p[1] % 12,
        .max_message_bytes = (p[3] + 1) * 1024,
        .compression = p[2] % 6 - 1,
        .level = CODEC_LEVEL_DEFAULT,
        .log_append_time = p[0] & 4,
        .keys_required = p[0] & 8,
        .before_max_ms = near ? 1000 : INT64_MAX,
        .after_max_ms = near ? 1000 : INT64_MAX,
        .now_ms = INT64_C(1700000000000),
    };
    uint8_t *copy = malloc(n);
    memcpy(copy, p + OPTIONS, n - OPTIONS);
    if (p[0] & 32)
        make_checksums_right(copy, n - OPTIONS);
    append(&policy, copy, n - OPTIONS);
    convert(copy, n - OPTIONS);
    struct batch b;
    for (size_t at = 0, left = n - OPTIONS;
         batch_decode(copy + at, left - at, left - at, &b) == BATCH_OK; at += b.size)
        iterate(&b);
    free(copy);
    return 0;
}
