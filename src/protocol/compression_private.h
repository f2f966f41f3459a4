/* compression_private.h - what compression.c and the four codecs share: the table row of a codec,
 * the state of an open stream, and the per-thread cache of library contexts. */
#ifndef PROTOCOL_COMPRESSION_PRIVATE_H
#define PROTOCOL_COMPRESSION_PRIVATE_H

#include "protocol/compression.h"

/* An open stream. The codec consumes `in` and keeps its own state in `ctx` or the fields below. */
struct codec_stream {
    const struct codec_row *row;
    const uint8_t *in, *in_end; /* borrowed: compressed bytes not yet given to the library */
    size_t left;                /* bytes that may still come out */
    int error;                  /* sticky: what read answered, 0 while all is well */
    int magic;
    void *ctx;      /* of the library; from codec_ctx_take */
    bool at_end;    /* all frames are whole; nothing more may come */
    bool oversized; /* the context grew: do not cache it */
    bool framed;    /* snappy: xerial chunks, not one bare block */
    uint8_t *block; /* snappy: a decoded block larger than the reader's room; owned */
    size_t block_at, block_len;
    uint8_t head[7]; /* lz4: the frame header as the library gets it */
    uint8_t head_at;
};

struct codec_row {
    const char *name;
    int level_min, level_max; /* min > max: the codec has no levels and ignores them */
    int level_default;
    /* Appends to out. 0, -ENOMEM; -EINVAL for a level that is none. */
    int (*compress)(int level, int magic, const void *p, size_t n, struct buf *out);
    /* Checks the head of the frame and gets a context. 0, -EBADMSG, -EFBIG, -ENOMEM. */
    int (*open)(struct codec_stream *s);
    /* n >= 1, n <= max(1, s->left). Up to n bytes; 0 only at a proper end. */
    ssize_t (*read)(struct codec_stream *s, void *p, size_t n);
    void (*close)(struct codec_stream *s); /* also after a failed open */
};

extern const struct codec_row codec_row_none, codec_row_gzip, codec_row_snappy, codec_row_lz4,
    codec_row_zstd;

/* Library contexts are costly to make and cheap to reset, so each thread keeps one of a kind. Take
 * empties the thread's slot, so streams may nest; give fills it or, when it is full, frees. A
 * context may be given back on another thread. All go when their thread ends. */
enum codec_ctx {
    CODEC_CTX_INFLATE,
    CODEC_CTX_DEFLATE,
    CODEC_CTX_LZ4,
    CODEC_CTX_ZSTD_DECODE,
    CODEC_CTX_ZSTD_ENCODE,
    CODEC_CTX_WINDOW, /* CODEC_WINDOW bytes for reading a stream */
    CODEC_CTXS
};
/* NULL without memory. */
void *codec_ctx_take(enum codec_ctx kind);
/* NULL is fine. */
void codec_ctx_give(enum codec_ctx kind, void *ctx);
void codec_ctx_drop(enum codec_ctx kind, void *ctx); /* frees instead */

/* Larger than a common block, so that the libraries can decode right into it. */
#define CODEC_WINDOW ((size_t)128 << 10)

static inline size_t codec_stream_in_left(const struct codec_stream *s)
{
    return (size_t)(s->in_end - s->in);
}

#endif
