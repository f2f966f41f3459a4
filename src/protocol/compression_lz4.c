/* compression_lz4.c - one LZ4 frame.
 *
 * WRITTEN  version 1, independent blocks of 64 KiB, no checksums, no content size: 04 22 4D 18 60
 *          40 HC. HC is the second byte of xxHash32 over the descriptor (60 40).
 * QUIRK    old clients took that hash over the frame's magic bytes too. Message magic 0 is written
 *          that way and read without looking at HC; later magics are written and checked properly.
 * READ     as Kafka reads: content size and content checksum are not looked at, block checksums
 *          are; dictionaries are refused; what comes behind the frame is ignored. To that end the
 *          library is given a header of our own in front of the blocks as they are. */
#include <errno.h>
#include <lz4frame.h>

#include "protocol/compression_private.h"

static const uint8_t frame_magic[4] = {0x04, 0x22, 0x4d, 0x18};
enum {
    AT_FLG = 4,
    AT_BD = 5,
    AT_HC = 6,
    HEAD = 7, /* without a content size */
    CONTENT_SIZE = 8,
    FLG_RESERVED = 0x03, /* with the dictionary bit */
    FLG_CONTENT_CHECKSUM = 0x04,
    FLG_CONTENT_SIZE = 0x08,
    BD_LARGE = 0x60, /* blocks of 1 MiB and up */
    FAST_LEVEL = 9,  /* what Kafka's setting means by 9: the fast compressor */
    HC_LEVEL_MIN = 3 /* the library's lowest level of the high-compression one */
};

static uint32_t rotl(uint32_t v, int n)
{
    return v << n | v >> (32 - n);
}

/* xxHash32, seed 0, of fewer than 16 bytes; its second byte. */
static uint8_t header_check(const uint8_t *p, size_t n)
{
    const uint32_t p1 = 0x9e3779b1, p2 = 0x85ebca77, p3 = 0xc2b2ae3d, p4 = 0x27d4eb2f,
                   p5 = 0x165667b1;
    uint32_t h = p5 + (uint32_t)n;
    for (; n >= 4; n -= 4, p += 4) {
        uint32_t w =
            (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        h = rotl(h + w * p3, 17) * p4;
    }
    for (; n; n--, p++)
        h = rotl(h + *p * p5, 11) * p1;
    h = (h ^ h >> 15) * p2;
    h = (h ^ h >> 13) * p3;
    h ^= h >> 16;
    return (uint8_t)(h >> 8);
}

static int lz4_compress(int level, int magic, const void *p, size_t n, struct buf *out)
{
    LZ4F_preferences_t prefs = {
        .frameInfo = {.blockSizeID = LZ4F_max64KB, .blockMode = LZ4F_blockIndependent},
        .compressionLevel = level == FAST_LEVEL    ? 0
                            : level < HC_LEVEL_MIN ? HC_LEVEL_MIN
                                                   : level,
    };
    size_t bound = LZ4F_compressFrameBound(n, &prefs);
    if (!buf_reserve(out, bound))
        return -ENOMEM;
    uint8_t *at = out->p + out->len;
    size_t len = LZ4F_compressFrame(at, bound, p, n, &prefs);
    if (LZ4F_isError(len))
        return -ENOMEM; /* its only reason: there is room */
    if (magic == 0)
        at[AT_HC] = header_check(at, AT_HC);
    out->len += len;
    return 0;
}

static int lz4_open(struct codec_stream *s)
{
    if (codec_stream_in_left(s) < HEAD || memcmp(s->in, frame_magic, sizeof(frame_magic)) != 0)
        return -EBADMSG;
    uint8_t flg = s->in[AT_FLG];
    size_t at_hc = AT_HC + (flg & FLG_CONTENT_SIZE ? CONTENT_SIZE : 0);
    if (flg & FLG_RESERVED || codec_stream_in_left(s) <= at_hc)
        return -EBADMSG;
    if (s->magic != 0 && s->in[at_hc] != header_check(s->in + AT_FLG, at_hc - AT_FLG))
        return -EBADMSG;
    memcpy(s->head, s->in, HEAD);
    s->head[AT_FLG] = (uint8_t)(flg & ~(FLG_CONTENT_SIZE | FLG_CONTENT_CHECKSUM));
    s->head[AT_HC] = header_check(s->head + AT_FLG, AT_HC - AT_FLG);
    s->in += at_hc + 1;
    s->oversized = s->head[AT_BD] >= BD_LARGE;
    s->ctx = codec_ctx_take(CODEC_CTX_LZ4);
    if (!s->ctx)
        return -ENOMEM;
    LZ4F_resetDecompressionContext(s->ctx);
    return 0;
}

static ssize_t lz4_read(struct codec_stream *s, void *p, size_t n)
{
    while (!s->at_end) {
        bool from_head = s->head_at < HEAD;
        const uint8_t *in = from_head ? s->head + s->head_at : s->in;
        size_t used = from_head ? (size_t)(HEAD - s->head_at) : codec_stream_in_left(s);
        size_t got = n;
        size_t rc = LZ4F_decompress(s->ctx, p, &got, in, &used, NULL);
        if (LZ4F_isError(rc))
            return -EBADMSG;
        if (from_head)
            s->head_at += (uint8_t)used;
        else
            s->in += used;
        if (rc == 0)
            s->at_end = true;
        if (got > 0)
            return (ssize_t)got;
        if (rc != 0 && used == 0)
            return -EBADMSG; /* cut short */
    }
    return 0;
}

static void lz4_close(struct codec_stream *s)
{
    /* The library keeps buffers of the largest block seen: not worth keeping for large ones. */
    (s->oversized ? codec_ctx_drop : codec_ctx_give)(CODEC_CTX_LZ4, s->ctx);
}

const struct codec_row codec_row_lz4 = {
    .name = "lz4",
    .level_min = 1,
    .level_max = 17,
    .level_default = FAST_LEVEL,
    .compress = lz4_compress,
    .open = lz4_open,
    .read = lz4_read,
    .close = lz4_close,
};
