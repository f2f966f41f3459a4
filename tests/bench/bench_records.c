/* bench_records.c - what the append check costs beside the checksum alone, which no broker can do
 * without. Prints GB/s of bytes as sent (and, for codecs, of what is inside); asserts nothing.
 *
 * Each figure is the best of many short runs, to see past what else the machine does. "memory":
 * batches lie in 64 MiB that no cache holds, as after a large read; "cache": one batch, hot. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/checksum.h"
#include "protocol/batch_builder.h"
#include "protocol/records_append.h"

enum { ROUNDS = 100 };
static const size_t far = (size_t)64 << 20, round_bytes = (size_t)16 << 20;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct buf make(enum codec c, size_t record, size_t total, size_t *plain)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.codec = c;
    struct batch_builder *b = batch_builder_new(&o);
    struct buf out = BUF_INIT;
    uint8_t *v = malloc(record);
    for (size_t i = 0; i < record; i++)
        v[i] = (uint8_t) "the quick brown fox jumps over the lazy dog"[(rand() >> 4) % 43];
    for (size_t i = 0; i < total / record; i++)
        if (batch_builder_add(b, (int64_t)i, INT64_C(1700000000000) + (int64_t)i / 7, BYTES_NULL,
                              (struct bytes){v, (int32_t)record}, NULL, 0))
            abort();
    *plain = batch_builder_size(b);
    if (batch_builder_finish(b, &out))
        abort();
    batch_builder_free(b);
    free(v);
    return out;
}

static void check(uint8_t *p, size_t n, struct arena *a)
{
    const struct append_policy policy = {.origin = APPEND_CLIENT,
                                         .produce_version = 9,
                                         .max_message_bytes = 64 << 20,
                                         .compression = COMPRESSION_PRODUCER,
                                         .level = CODEC_LEVEL_DEFAULT,
                                         .before_max_ms = INT64_MAX,
                                         .after_max_ms = INT64_MAX,
                                         .now_ms = INT64_C(1700000000000)};
    struct prepared pr;
    if (records_prepare(&policy, p, n, a, &pr) != KERR_NONE)
        abort();
    prepared_free(&pr);
    arena_reset(a);
}

/* Best seconds a batch of n bytes, over `copies` of it. */
static double best(uint8_t *p, size_t n, size_t copies, bool whole_check)
{
    struct arena a;
    arena_init(&a, 0);
    double least = 1e9;
    volatile uint32_t sink = 0;
    size_t repeat = round_bytes / (n * copies) + 1;
    for (int r = 0; r < ROUNDS; r++) {
        double start = now();
        for (size_t k = 0; k < repeat; k++)
            for (size_t i = 0; i < copies; i++)
                if (whole_check)
                    check(p + i * n, n, &a);
                else
                    sink += crc32c(p + i * n + BATCH_AT_ATTRIBUTES, n - BATCH_AT_ATTRIBUTES);
        double took = (now() - start) / (double)(repeat * copies);
        if (took < least)
            least = took;
    }
    arena_free(&a);
    (void)sink;
    return least;
}

static void run(enum codec c, size_t record, size_t total)
{
    size_t plain;
    struct buf one = make(c, record, total, &plain);
    for (int hot = 0, last = c == CODEC_NONE; hot <= last; hot++) {
        size_t copies = hot || c != CODEC_NONE ? 1 : far / one.len + 1;
        uint8_t *all = malloc(one.len * copies);
        for (size_t i = 0; i < copies; i++)
            memcpy(all + i * one.len, one.p, one.len);
        double crc = best(all, one.len, copies, false), full = best(all, one.len, copies, true);
        printf("%-7s %6zu %9zu  %-6s %8.2f %8.2f %8.2f %+8.1f%%\n", codec_name(c), record, one.len,
               copies > 1 ? "memory" : "cache", (double)one.len / crc / 1e9,
               (double)one.len / full / 1e9, (double)plain / full / 1e9, (full / crc - 1) * 100);
        free(all);
    }
    buf_free(&one);
}

int main(void)
{
    printf("codec   record     batch  lies in     crc    check   inside   over crc\n");
    run(CODEC_NONE, 1024, 1 << 20);
    run(CODEC_NONE, 1024, 1 << 16);
    run(CODEC_NONE, 100, 1 << 16);
    run(CODEC_NONE, 10, 1 << 16);
    for (enum codec c = CODEC_GZIP; c < CODECS; c++)
        run(c, 1024, 1 << 16);
    return 0;
}
