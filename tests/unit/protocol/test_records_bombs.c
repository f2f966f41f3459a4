/* Decompression bombs (invariant 41): refused, with memory that follows neither what was declared
 * nor what comes out. In a program of its own, since the peak of a process never falls. */
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

#include "protocol/records_convert.h"
#include "records_util.h"

static const size_t mib = (size_t)1 << 20;

static size_t peak_rss(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (size_t)u.ru_maxrss * 1024;
}

/* A well formed batch of one record with `size` zeros, its body in `pieces` compressed parts. */
static struct buf bomb(enum codec c, size_t size, size_t pieces)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b = batch_builder_new(&o);
    uint8_t *zeros = calloc(1, size);
    struct buf plain = BUF_INIT, out = BUF_INIT;
    assert_int_equal(
        batch_builder_add(b, 0, T0, BYTES_NULL, (struct bytes){zeros, (int32_t)size}, NULL, 0), 0);
    assert_int_equal(batch_builder_finish(b, &plain), 0);
    batch_builder_free(b);
    free(zeros);
    buf_put(&out, plain.p, BATCH_HEAD);
    size_t body = plain.len - BATCH_HEAD, step = body / pieces + 1;
    for (size_t at = 0; at < body; at += step)
        assert_int_equal(codec_compress(c, CODEC_LEVEL_DEFAULT, 2, plain.p + BATCH_HEAD + at,
                                        body - at < step ? body - at : step, &out),
                         0);
    buf_free(&plain);
    out.p = realloc(out.p, out.len);
    out.cap = out.len;
    put_be32(out.p + BATCH_AT_LENGTH, (uint32_t)out.len - 12);
    out.p[BATCH_AT_ATTRIBUTES + 1] |= (uint8_t)c;
    reseal(out.p, out.len);
    return out;
}

static enum kerr append(const struct buf *in, int compression)
{
    struct append_policy policy = default_policy();
    policy.max_message_bytes = 64 << 20;
    policy.compression = compression;
    struct arena a;
    struct prepared pr;
    arena_init(&a, 1 << 20);
    enum kerr code = records_prepare(&policy, in->p, in->len, &a, &pr);
    prepared_free(&pr);
    arena_free(&a);
    return code;
}

/* What the check added to the peak. Where /proc does not allow to reset it the test is only of the
 * verdict. */
static bool reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    bool reset = f && fputs("5", f) >= 0;
    if (f)
        reset = fclose(f) == 0 && reset;
    return reset;
}

static size_t growth_of(const struct buf *in, enum kerr expected)
{
    bool reset = reset_peak();
    size_t before = peak_rss();
    assert_int_equal(append(in, COMPRESSION_PRODUCER), expected);
    return reset ? peak_rss() - before : 0;
}

/* Only zstd packs so well that the ratio gives it away; of two frames the second one passes the cap
 * in mid-stream. */
static void bombs_are_refused_with_bounded_memory_41(void **state)
{
    for (size_t pieces = 1; pieces <= 2; pieces++) {
        struct buf in = bomb(CODEC_ZSTD, 100 * mib, pieces);
        assert_int_equal(codec_cap(in.len), 64 * mib);
        assert_true(growth_of(&in, KERR_INVALID_RECORD) < 16 * mib);
        struct batch b = decode(in.p, in.len);
        assert_int_equal(iterate(&b), -EBADMSG);
        struct buf out = BUF_INIT;
        size_t used;
        assert_int_equal(records_down_convert(in.p, in.len, 1, 0, &out, &used),
                         KERR_UNSUPPORTED_COMPRESSION_TYPE);
        assert_int_equal(append(&in, CODEC_GZIP), KERR_INVALID_RECORD);
        buf_free(&out);
        buf_free(&in);
    }
}

/* The other codecs cannot pass the ratio, and are checked without being kept. */
static void checking_takes_no_memory_for_what_comes_out(void **state)
{
    for (enum codec c = CODEC_GZIP; c < CODECS; c++) {
        struct buf in = bomb(c, (c == CODEC_ZSTD ? 60 : 100) * mib, 1);
        assert_true(growth_of(&in, KERR_NONE) < 16 * mib);
        buf_free(&in);
    }
}

/* Below the cap but far above what the topic takes: not even made when it is to be stored plain. */
static void what_will_be_too_large_is_not_made(void **state)
{
    struct buf in = bomb(CODEC_ZSTD, 60 * mib, 1);
    struct append_policy policy = default_policy();
    policy.compression = CODEC_NONE;
    struct arena a;
    struct prepared pr;
    arena_init(&a, 1 << 20);
    assert_int_equal(records_prepare(&policy, in.p, in.len, &a, &pr), KERR_MESSAGE_TOO_LARGE);
    prepared_free(&pr);
    arena_free(&a);
    buf_free(&in);
}

struct many {
    struct buf bomb;
    enum kerr code;
};

static void *take_bomb(void *arg)
{
    struct many *m = arg;
    m->code = append(&m->bomb, CODEC_LZ4);
    return NULL;
}

/* Many at once, which must be made anew with another codec: each legal by itself. */
static void many_bombs_at_once_take_the_memory_of_one(void **state)
{
    enum { THREADS = 6 };
    pthread_t t[THREADS];
    struct many m[THREADS];
    for (int i = 0; i < THREADS; i++)
        m[i] = (struct many){.bomb = bomb(CODEC_GZIP, 120 * mib, 1)};
    bool resets = reset_peak();
    size_t before = peak_rss();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, take_bomb, &m[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(m[i].code, KERR_NONE);
        buf_free(&m[i].bomb);
    }
#ifdef __SANITIZE_ADDRESS__ /* it keeps what is freed for a while */
    resets = false;
#endif
    if (resets) /* 64 MiB of each with room to grow, and one of 120 */
        assert_true(peak_rss() - before < (THREADS * 128 + 300) * mib);
}

UNIT_MAIN(unit_test(many_bombs_at_once_take_the_memory_of_one),
          unit_test(bombs_are_refused_with_bounded_memory_41),
          unit_test(checking_takes_no_memory_for_what_comes_out),
          unit_test(what_will_be_too_large_is_not_made))
