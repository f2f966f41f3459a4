/* compression_gzip.c - RFC 1952 members. One is written; any number behind each other is read, and
 * what comes behind the last member and does not begin another is ignored, as Java's reader does.
 */
#include <errno.h>
#include <zlib.h>

#include "protocol/compression_private.h"

static int gzip_compress(int level, int magic, const void *p, size_t n, struct buf *out)
{
    if (level == 0) /* stored: the library's level, not one of Kafka's */
        return -EINVAL;
    z_stream *z = codec_ctx_take(CODEC_CTX_DEFLATE);
    if (!z)
        return -ENOMEM;
    int rc = -ENOMEM;
    if (deflateReset(z) != Z_OK || deflateParams(z, level, Z_DEFAULT_STRATEGY) != Z_OK)
        goto done;
    size_t bound = deflateBound(z, n);
    if (!buf_reserve(out, bound))
        goto done;
    z->next_in = (Bytef *)(uintptr_t)p;
    z->avail_in = (uInt)n;
    z->next_out = out->p + out->len;
    z->avail_out = (uInt)bound;
    if (deflate(z, Z_FINISH) == Z_STREAM_END) {
        out->len += z->total_out;
        rc = 0;
    }
done:
    codec_ctx_give(CODEC_CTX_DEFLATE, z);
    return rc;
}

static int gzip_open(struct codec_stream *s)
{
    s->ctx = codec_ctx_take(CODEC_CTX_INFLATE);
    return s->ctx && inflateReset(s->ctx) == Z_OK ? 0 : -ENOMEM;
}

static bool another_member(const struct codec_stream *s)
{
    return codec_stream_in_left(s) >= 2 && s->in[0] == 0x1f && s->in[1] == 0x8b;
}

static ssize_t gzip_read(struct codec_stream *s, void *p, size_t n)
{
    z_stream *z = s->ctx;
    if (n > INT32_MAX)
        n = INT32_MAX;
    z->next_out = p;
    z->avail_out = (uInt)n;
    while (!s->at_end && z->avail_out == n) {
        z->next_in = (Bytef *)(uintptr_t)s->in;
        z->avail_in = (uInt)codec_stream_in_left(s);
        int rc = inflate(z, Z_NO_FLUSH);
        s->in = z->next_in;
        if (rc == Z_STREAM_END) {
            if (!another_member(s))
                s->at_end = true;
            else if (inflateReset(z) != Z_OK)
                return -EBADMSG;
        } else if (rc != Z_OK) { /* Z_BUF_ERROR: cut short */
            return rc == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
        }
    }
    return (ssize_t)(n - z->avail_out);
}

static void gzip_close(struct codec_stream *s)
{
    codec_ctx_give(CODEC_CTX_INFLATE, s->ctx);
}

const struct codec_row codec_row_gzip = {
    .name = "gzip",
    .level_min = -1,
    .level_max = 9,
    .level_default = Z_DEFAULT_COMPRESSION,
    .compress = gzip_compress,
    .open = gzip_open,
    .read = gzip_read,
    .close = gzip_close,
};
