/* compression.c - the codec table, and what is the same for all codecs: levels, caps, growth. */
#include "protocol/compression.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "protocol/compression_private.h"

static const struct codec_row *const rows[CODECS] = {
    [CODEC_NONE] = &codec_row_none,     [CODEC_GZIP] = &codec_row_gzip,
    [CODEC_SNAPPY] = &codec_row_snappy, [CODEC_LZ4] = &codec_row_lz4,
    [CODEC_ZSTD] = &codec_row_zstd,
};

static const size_t stream_max = INT32_MAX; /* no batch is longer */

const char *codec_name(enum codec c)
{
    return rows[c]->name;
}

int codec_parse(struct str name, enum codec *out)
{
    for (enum codec c = CODEC_NONE; c < CODECS; c++) {
        if (str_eqz(name, rows[c]->name)) {
            *out = c;
            return 0;
        }
    }
    if (!str_eqz(name, "uncompressed"))
        return -EINVAL;
    *out = CODEC_NONE;
    return 0;
}

static pthread_mutex_t giant_turn = PTHREAD_MUTEX_INITIALIZER;

void codec_giant_begin(void)
{
    pthread_mutex_lock(&giant_turn);
}

void codec_giant_end(void)
{
    pthread_mutex_unlock(&giant_turn);
}

size_t codec_cap(size_t compressed)
{
    const size_t hard = (size_t)1 << 30, floor = (size_t)64 << 20, ratio = 1100;
    if (compressed >= hard / ratio)
        return hard;
    return compressed * ratio > floor ? compressed * ratio : floor;
}

int codec_compress(enum codec c, int level, int magic, const void *p, size_t n, struct buf *out)
{
    const struct codec_row *row = rows[c];
    if (row->level_min > row->level_max || level == CODEC_LEVEL_DEFAULT)
        level = row->level_default;
    else if (level < row->level_min || level > row->level_max)
        return -EINVAL;
    if (n > stream_max)
        return -EINVAL;
    return row->compress(level, magic, p, n, out);
}

int codec_stream_open(enum codec c, int magic, const void *p, size_t n, size_t cap,
                      struct codec_stream **out)
{
    *out = NULL;
    if ((unsigned)c >= CODECS)
        return -EBADMSG;
    if (n > stream_max)
        return -EFBIG;
    struct codec_stream *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->row = rows[c];
    s->in = p;
    s->in_end = s->in + n;
    s->left = cap;
    s->magic = magic;
    int rc = s->row->open(s);
    if (rc) {
        codec_stream_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

ssize_t codec_stream_read(struct codec_stream *s, void *p, size_t n)
{
    if (s->error)
        return s->error;
    if (n == 0)
        return 0;
    uint8_t probe;
    ssize_t got;
    if (s->left == 0) { /* exactly at the cap: fine if nothing more comes */
        got = s->row->read(s, &probe, 1);
        if (got > 0)
            got = -EFBIG;
    } else {
        got = s->row->read(s, p, n < s->left ? n : s->left);
    }
    if (got < 0)
        s->error = (int)got;
    else
        s->left -= (size_t)got;
    return got;
}

void codec_stream_close(struct codec_stream *s)
{
    if (!s)
        return;
    s->row->close(s);
    free(s);
}

int codec_decompress(enum codec c, int magic, const void *p, size_t n, size_t cap, struct buf *out)
{
    struct codec_stream *s;
    int rc = codec_stream_open(c, magic, p, n, cap, &s);
    if (rc)
        return rc;
    /* What is reserved follows what has come out, never what a header claims. */
    size_t start = out->len, step = n * 4;
    if (step < 1024)
        step = 1024;
    if (step > CODEC_WINDOW)
        step = CODEC_WINDOW;
    ssize_t got;
    for (;;) {
        if (out->cap - out->len < step / 4) {
            if (out->len - start > step)
                step = out->len - start;
            if (!buf_reserve(out, step)) {
                got = -ENOMEM;
                break;
            }
        }
        got = codec_stream_read(s, out->p + out->len, out->cap - out->len);
        if (got <= 0)
            break;
        out->len += (size_t)got;
    }
    codec_stream_close(s);
    return (int)got;
}

/* ---- none: the bytes themselves ---- */

static int none_compress(int level, int magic, const void *p, size_t n, struct buf *out)
{
    buf_put(out, p, n);
    return out->failed ? -ENOMEM : 0;
}

static int none_open(struct codec_stream *s)
{
    return 0;
}

static ssize_t none_read(struct codec_stream *s, void *p, size_t n)
{
    if (n > codec_stream_in_left(s))
        n = codec_stream_in_left(s);
    if (n)
        memcpy(p, s->in, n);
    s->in += n;
    return (ssize_t)n;
}

static void none_close(struct codec_stream *s)
{
}

const struct codec_row codec_row_none = {
    .name = "none",
    .level_min = 1,
    .level_max = 0,
    .compress = none_compress,
    .open = none_open,
    .read = none_read,
    .close = none_close,
};
