/* Damaged batches: cut at every byte, every bit flipped, with the checksum as it was or made right
 * again, random changes to records. Nothing may crash, read out of bounds (run under the asan
 * preset) or take more memory than the caps allow; and what is accepted must be readable. */
#include <errno.h>

#include "protocol/legacy_message.h"
#include "protocol/records_convert.h"
#include "records_util.h"

/* Each buffer at its exact size, so that the sanitizer sees one byte too many. */
static uint8_t *exact_copy(const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, p, n);
    return copy;
}

static void try_append(const uint8_t *p, size_t n, const struct append_policy *policy)
{
    uint8_t *copy = exact_copy(p, n);
    struct arena a;
    struct prepared pr;
    arena_init(&a, 1 << 20);
    enum kerr code = records_prepare(policy, copy, n, &a, &pr);
    if (code == KERR_NONE && policy->origin != APPEND_REPLICATION && pr.batches_n) {
        records_assign(&pr, 1000, 3);
        struct batch b = decode(pr.p, pr.len);
        assert_true(batch_crc_ok(&b));
        assert_int_equal(iterate(&b), b.record_count);
    }
    prepared_free(&pr);
    arena_free(&a);
    free(copy);
}

static void try_all(const uint8_t *p, size_t n)
{
    struct append_policy policy = default_policy();
    policy.produce_version = 2;
    try_append(p, n, &policy);
    policy.compression = CODEC_NONE;
    policy.keys_required = true;
    try_append(p, n, &policy);
    policy.origin = APPEND_REPLICATION;
    try_append(p, n, &policy);

    uint8_t *copy = exact_copy(p, n);
    struct batch b;
    for (size_t at = 0; batch_decode(copy + at, n - at, n - at, &b) == BATCH_OK; at += b.size) {
        int rc = iterate(&b);
        assert_true(rc >= 0 || rc == -EBADMSG);
    }
    for (int magic = 0; magic <= 1; magic++) {
        struct buf out = BUF_INIT;
        size_t used;
        enum kerr code = records_down_convert(copy, n, magic, 1, &out, &used);
        assert_true(used <= n);
        assert_true(code == KERR_NONE || used == 0);
        buf_free(&out);
    }
    free(copy);
}

static void reseal_any(uint8_t *p, size_t n)
{
    struct batch b;
    for (size_t at = 0; batch_decode(p + at, n - at, n - at, &b) == BATCH_OK; at += b.size) {
        if (b.magic == 2)
            reseal(p + at, b.size);
        else
            put_be32(p + at + LEGACY_AT_CRC, legacy_crc(p + at, b.size));
    }
}

typedef void damage_fn(struct buf *in);

static void each_kind(damage_fn *damage)
{
    for (int magic = 0; magic <= 2; magic++) {
        for (enum codec c = CODEC_NONE; c < CODECS; c++) {
            if (magic < 2 && c == CODEC_ZSTD)
                continue;
            struct buf in = build(magic, c, 3);
            damage(&in);
            buf_free(&in);
        }
    }
}

static void cut_everywhere(struct buf *in)
{
    for (size_t n = 0; n < in->len; n++) {
        try_all(in->p, n);
        /* and told that this is all there is */
        uint8_t *copy = exact_copy(in->p, n);
        if (n > BATCH_HEAD) {
            put_be32(copy + BATCH_AT_LENGTH, (uint32_t)n - 12);
            reseal_any(copy, n);
            try_all(copy, n);
        }
        free(copy);
    }
}

static void flip_everywhere(struct buf *in)
{
    for (size_t i = 0; i < in->len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            uint8_t *copy = exact_copy(in->p, in->len);
            copy[i] ^= (uint8_t)(1 << bit);
            try_all(copy, in->len);
            reseal_any(copy, in->len);
            try_all(copy, in->len);
            free(copy);
        }
    }
}

static void survives_cuts(void **state)
{
    each_kind(cut_everywhere);
}

static void survives_flips(void **state)
{
    each_kind(flip_everywhere);
}

/* ---- the walk over a stream is the walk over plain bytes ---- */

static enum kerr verdict(const struct buf *in)
{
    struct append_policy policy = default_policy();
    policy.max_message_bytes = INT32_MAX;
    struct arena a;
    struct prepared pr;
    arena_init(&a, 0);
    uint8_t *copy = exact_copy(in->p, in->len);
    enum kerr code = records_prepare(&policy, copy, in->len, &a, &pr);
    prepared_free(&pr);
    arena_free(&a);
    free(copy);
    return code;
}

static struct buf with_codec(const struct buf *plain, enum codec c)
{
    struct buf out = BUF_INIT;
    buf_put(&out, plain->p, BATCH_HEAD);
    assert_int_equal(codec_compress(c, CODEC_LEVEL_DEFAULT, 2, plain->p + BATCH_HEAD,
                                    plain->len - BATCH_HEAD, &out),
                     0);
    put_be32(out.p + BATCH_AT_LENGTH, (uint32_t)out.len - 12);
    out.p[BATCH_AT_ATTRIBUTES + 1] |= (uint8_t)c;
    reseal(out.p, out.len);
    return out;
}

/* Records below, around and far above the window, with headers large and small. */
static struct buf build_sizes(void)
{
    static const int sizes[] = {10, 100000, 5, 131072 - 12, 131072, 300000, 70000, 131072 * 3, 1};
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b = batch_builder_new(&o);
    struct buf out = BUF_INIT;
    uint8_t *v = calloc(1, 131072 * 3);
    for (int i = 0; i < 9; i++) {
        struct bytes big = {v, sizes[i]}, small = bytes_of("small");
        struct record_header h[3] = {{STR_LIT("h"), i % 3 == 2 ? big : BYTES_NULL},
                                     {STR_LIT("g"), small},
                                     {STR_LIT(""), big}};
        assert_int_equal(batch_builder_add(b, i, T0 + i, i % 3 == 0 ? big : small,
                                           i % 3 == 1 ? big : BYTES_NULL, h, i % 4),
                         0);
    }
    assert_int_equal(batch_builder_finish(b, &out), 0);
    batch_builder_free(b);
    free(v);
    return out;
}

/* Where something other than the zeros of the values stands. */
static size_t pick_structure(const struct buf *in)
{
    size_t at;
    do
        at = BATCH_HEAD + random_u32() % (in->len - BATCH_HEAD);
    while (in->p[at] == 0 && in->p[at - 1] == 0 && in->p[at + (at + 1 < in->len)] == 0);
    return at;
}

static void stream_and_plain_walks_agree(void **state)
{
    struct buf in = build_sizes();
    for (int round = 0; round < 600; round++) {
        struct buf plain = BUF_INIT;
        buf_put(&plain, in.p, in.len);
        if (round) {
            size_t at = pick_structure(&plain);
            plain.p[at] = (uint8_t)(plain.p[at] + (random_u32() % 2 ? 2 : 1 + random_u32() % 255));
        }
        reseal(plain.p, plain.len);
        enum kerr expected = verdict(&plain);
        for (enum codec c = CODEC_SNAPPY; c <= CODEC_LZ4; c++) {
            struct buf packed = with_codec(&plain, c);
            enum kerr got = verdict(&packed);
            /* a wrong offset delta is refused plain, mended compressed; all else is alike */
            if (got != expected) {
                assert_int_equal(got, KERR_NONE);
                struct batch b = decode(plain.p, plain.len);
                assert_true(iterate(&b) >= 0 || expected == KERR_INVALID_RECORD);
            }
            buf_free(&packed);
        }
        if (!round)
            assert_int_equal(expected, KERR_NONE);
        buf_free(&plain);
    }
    buf_free(&in);
}

static void random_bytes_are_survived(void **state)
{
    uint8_t p[400];
    for (int round = 0; round < 20000; round++) {
        size_t n = random_u32() % sizeof(p);
        for (size_t i = 0; i < n; i++)
            p[i] = (uint8_t)(random_u32() % 3 ? 0 : random_u32());
        if (n > 17) {
            p[16] = (uint8_t)(random_u32() % 3);
            put_be32(p + 8, (uint32_t)(random_u32() % 2 ? n - 12 : random_u32() % 500));
            if (random_u32() % 2)
                reseal_any(p, n);
        }
        try_all(p, n);
    }
}

UNIT_MAIN(unit_test(survives_cuts), unit_test(survives_flips),
          unit_test(stream_and_plain_walks_agree), unit_test(random_bytes_are_survived))
