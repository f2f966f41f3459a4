/* compression_snappy.c - snappy blocks, in the framing of the xerial library or bare.
 *
 * FORMAT  16-byte head: 82 'S' 'N' 'A' 'P' 'P' 'Y' 00, version, lowest compatible version (int32
 *         each, 1); then chunks: int32 length and one snappy block. A head may come again between
 *         chunks. Data without the 8 magic bytes is one bare block.
 *
 * A block says its size in front. It is believed only up to what its bytes could make: no element
 * turns 3 bytes into more than 64. */
#include <errno.h>
#include <snappy-c.h>
#include <stdlib.h>

#include "protocol/compression_private.h"

static const uint8_t head[16] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1};
enum { MAGIC_LEN = 8, CHUNK_HEAD = 4 };
static const size_t block_size = (size_t)32 << 10;

static int snappy_compress_framed(int level, int magic, const void *data, size_t n, struct buf *out)
{
    const char *p = data;
    buf_put(out, head, sizeof(head));
    while (n > 0) {
        size_t take = n < block_size ? n : block_size;
        size_t len = snappy_max_compressed_length(take);
        if (!buf_reserve(out, CHUNK_HEAD + len))
            break;
        uint8_t *at = out->p + out->len;
        snappy_compress(p, take, (char *)at + CHUNK_HEAD, &len); /* cannot fail: there is room */
        put_be32(at, (uint32_t)len);
        out->len += CHUNK_HEAD + len;
        p += take;
        n -= take;
    }
    return out->failed ? -ENOMEM : 0;
}

static bool skip_head(struct codec_stream *s)
{
    if (codec_stream_in_left(s) < sizeof(head) || memcmp(s->in, head, MAGIC_LEN) != 0)
        return false;
    s->in += sizeof(head);
    return true;
}

static int snappy_open(struct codec_stream *s)
{
    s->framed = skip_head(s);
    return !s->framed && codec_stream_in_left(s) == 0 ? -EBADMSG : 0;
}

/* The next block and past it; false when the framing is broken. *n is 0 at the end. */
static bool next_block(struct codec_stream *s, const char **block, size_t *n)
{
    if (s->framed)
        while (skip_head(s))
            ;
    *n = codec_stream_in_left(s);
    if (s->framed && *n > 0) {
        if (*n < CHUNK_HEAD)
            return false;
        uint32_t len = get_be32(s->in);
        s->in += CHUNK_HEAD;
        if (len == 0 || len > codec_stream_in_left(s))
            return false;
        *n = len;
    }
    *block = (const char *)s->in;
    s->in += *n;
    return true;
}

static ssize_t give_rest(struct codec_stream *s, void *p, size_t n)
{
    size_t rest = s->block_len - s->block_at;
    if (n > rest)
        n = rest;
    memcpy(p, s->block + s->block_at, n);
    s->block_at += n;
    if (s->block_at == s->block_len) {
        free(s->block);
        s->block = NULL;
    }
    return (ssize_t)n;
}

static ssize_t snappy_read(struct codec_stream *s, void *p, size_t n)
{
    if (s->block)
        return give_rest(s, p, n);
    const char *block;
    size_t len, size;
    do {
        if (!next_block(s, &block, &len))
            return -EBADMSG;
        if (len == 0)
            return 0;
        if (snappy_uncompressed_length(block, len, &size) != SNAPPY_OK || size / 64 > len / 3 + 1)
            return -EBADMSG;
        if (size > s->left)
            return -EFBIG;
        if (size > n) {
            s->block = malloc(size);
            if (!s->block)
                return -ENOMEM;
            s->block_at = 0;
            s->block_len = size;
        }
        if (snappy_uncompress(block, len, s->block ? (char *)s->block : p, &size) != SNAPPY_OK)
            return -EBADMSG;
    } while (size == 0);
    return s->block ? give_rest(s, p, n) : (ssize_t)size;
}

static void snappy_close(struct codec_stream *s)
{
    free(s->block);
}

const struct codec_row codec_row_snappy = {
    .name = "snappy",
    .level_min = 1,
    .level_max = 0,
    .compress = snappy_compress_framed,
    .open = snappy_open,
    .read = snappy_read,
    .close = snappy_close,
};
