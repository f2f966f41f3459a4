/* compression_zstd.c - Zstandard frames. One is written, with its content size; several are read.
 *
 * A frame may ask for a window of at most 128 MiB (what level 22 uses) and may not claim more
 * content than the cap. */
#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "protocol/compression_private.h"

enum { WINDOW_LOG_MAX = 27, LEVEL_MIN = -131072, LEVEL_MAX = 22, LEVEL_DEFAULT = 3 };
/* Contexts that grew past this are freed after use. Levels 1 to 9 stay below. */
static const size_t ctx_keep = (size_t)16 << 20;

static int zstd_compress(int level, int magic, const void *p, size_t n, struct buf *out)
{
    ZSTD_CCtx *c = codec_ctx_take(CODEC_CTX_ZSTD_ENCODE);
    if (!c)
        return -ENOMEM;
    int rc = -ENOMEM;
    size_t bound = ZSTD_compressBound(n);
    ZSTD_CCtx_reset(c, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
    if (buf_reserve(out, bound)) {
        size_t len = ZSTD_compress2(c, out->p + out->len, bound, p, n);
        if (!ZSTD_isError(len)) {
            out->len += len;
            rc = 0;
        }
    }
    (ZSTD_sizeof_CCtx(c) > ctx_keep ? codec_ctx_drop : codec_ctx_give)(CODEC_CTX_ZSTD_ENCODE, c);
    return rc;
}

static int zstd_open(struct codec_stream *s)
{
    size_t n = codec_stream_in_left(s);
    if (n == 0)
        return -EBADMSG;
    unsigned long long claimed = ZSTD_getFrameContentSize(s->in, n);
    if (claimed == ZSTD_CONTENTSIZE_ERROR)
        return -EBADMSG;
    if (claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed > s->left)
        return -EFBIG;
    s->ctx = codec_ctx_take(CODEC_CTX_ZSTD_DECODE);
    if (!s->ctx)
        return -ENOMEM;
    ZSTD_DCtx_reset(s->ctx, ZSTD_reset_session_and_parameters);
    ZSTD_DCtx_setParameter(s->ctx, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    return 0;
}

static ssize_t zstd_read(struct codec_stream *s, void *p, size_t n)
{
    ZSTD_outBuffer out = {p, n, 0};
    ZSTD_inBuffer in = {s->in, codec_stream_in_left(s), 0};
    while (out.pos == 0 && !(s->at_end && in.pos == in.size)) {
        size_t before = in.pos;
        size_t rc = ZSTD_decompressStream(s->ctx, &out, &in);
        if (ZSTD_isError(rc))
            return ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
        s->at_end = rc == 0; /* between frames */
        if (rc != 0 && in.pos == before && out.pos == 0)
            return -EBADMSG; /* cut short */
    }
    s->in += in.pos;
    return (ssize_t)out.pos;
}

static void zstd_close(struct codec_stream *s)
{
    if (s->ctx && ZSTD_sizeof_DCtx(s->ctx) > ctx_keep)
        codec_ctx_drop(CODEC_CTX_ZSTD_DECODE, s->ctx);
    else
        codec_ctx_give(CODEC_CTX_ZSTD_DECODE, s->ctx);
}

const struct codec_row codec_row_zstd = {
    .name = "zstd",
    .level_min = LEVEL_MIN,
    .level_max = LEVEL_MAX,
    .level_default = LEVEL_DEFAULT,
    .compress = zstd_compress,
    .open = zstd_open,
    .read = zstd_read,
    .close = zstd_close,
};
