/* compression_cache.c - one library context of a kind per thread.
 *
 * The pointer is a thread-local for speed; the pthread key exists only for its destructor, which
 * frees the cache when the thread ends (also one that is made anew by a later destructor). */
#include <lz4frame.h>
#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "protocol/compression_private.h"

struct cache {
    void *slots[CODEC_CTXS];
};

static _Thread_local struct cache *cache;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

enum { ZLIB_GZIP = 15 + 16 }; /* largest window, gzip header and trailer */

static void *inflate_new(void)
{
    z_stream *z = calloc(1, sizeof(*z));
    if (z && inflateInit2(z, ZLIB_GZIP) != Z_OK) {
        free(z);
        z = NULL;
    }
    return z;
}

static void inflate_free(void *z)
{
    inflateEnd(z);
    free(z);
}

static void *deflate_new(void)
{
    z_stream *z = calloc(1, sizeof(*z));
    if (z && deflateInit2(z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, ZLIB_GZIP, 8, Z_DEFAULT_STRATEGY) !=
                 Z_OK) {
        free(z);
        z = NULL;
    }
    return z;
}

static void deflate_free(void *z)
{
    deflateEnd(z);
    free(z);
}

static void *lz4_new(void)
{
    LZ4F_dctx *d = NULL;
    return LZ4F_isError(LZ4F_createDecompressionContext(&d, LZ4F_VERSION)) ? NULL : d;
}

static void lz4_free(void *d)
{
    LZ4F_freeDecompressionContext(d);
}

static void *zstd_decode_new(void)
{
    return ZSTD_createDCtx();
}

static void zstd_decode_free(void *d)
{
    ZSTD_freeDCtx(d);
}

static void *zstd_encode_new(void)
{
    return ZSTD_createCCtx();
}

static void zstd_encode_free(void *c)
{
    ZSTD_freeCCtx(c);
}

static void *window_new(void)
{
    return malloc(CODEC_WINDOW);
}

static const struct {
    void *(*make)(void);
    void (*destroy)(void *);
} kinds[CODEC_CTXS] = {
    [CODEC_CTX_INFLATE] = {inflate_new, inflate_free},
    [CODEC_CTX_DEFLATE] = {deflate_new, deflate_free},
    [CODEC_CTX_LZ4] = {lz4_new, lz4_free},
    [CODEC_CTX_ZSTD_DECODE] = {zstd_decode_new, zstd_decode_free},
    [CODEC_CTX_ZSTD_ENCODE] = {zstd_encode_new, zstd_encode_free},
    [CODEC_CTX_WINDOW] = {window_new, free},
};

static void cache_free(void *arg)
{
    struct cache *c = arg;
    for (int k = 0; k < CODEC_CTXS; k++)
        if (c->slots[k])
            kinds[k].destroy(c->slots[k]);
    free(c);
    cache = NULL;
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, cache_free) == 0;
}

/* NULL when nothing can be cached: then every context is made and freed by its user. */
static struct cache *cache_of_thread(void)
{
    if (cache)
        return cache;
    pthread_once(&once, make_key);
    struct cache *c = key_made ? calloc(1, sizeof(*c)) : NULL;
    if (c && pthread_setspecific(key, c) != 0) {
        free(c);
        c = NULL;
    }
    return cache = c;
}

void *codec_ctx_take(enum codec_ctx kind)
{
    if (cache && cache->slots[kind]) {
        void *ctx = cache->slots[kind];
        cache->slots[kind] = NULL;
        return ctx;
    }
    return kinds[kind].make();
}

void codec_ctx_give(enum codec_ctx kind, void *ctx)
{
    if (!ctx)
        return;
    struct cache *c = cache_of_thread();
    if (c && !c->slots[kind])
        c->slots[kind] = ctx;
    else
        kinds[kind].destroy(ctx);
}

void codec_ctx_drop(enum codec_ctx kind, void *ctx)
{
    if (ctx)
        kinds[kind].destroy(ctx);
}
