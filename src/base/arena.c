/* arena.c - bump allocation in chunks that double from 4 KiB to 64 KiB.
 *
 * INVARIANTS  the head of `chunks` is the one that at..end points into. A large request gets a
 * chunk of its own behind the head, so that the head's free rest is not lost to it. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/wipe.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* bytes behind the header */
    _Alignas(max_align_t) char data[];
};

enum { ALIGN = _Alignof(max_align_t) };
static const size_t chunk_min = 4096 - sizeof(struct arena_chunk);
static const size_t chunk_max = 65536 - sizeof(struct arena_chunk);

void arena_init(struct arena *a, size_t cap)
{
    *a = (struct arena){.cap = cap};
}

static void chunk_free(struct arena_chunk *c, bool secret)
{
    ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
    if (secret)
        mem_wipe(c->data, c->size);
    free(c);
}

void arena_free(struct arena *a)
{
    for (struct arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        chunk_free(c, a->secret);
    }
    arena_init(a, a->cap);
}

void arena_reset(struct arena *a)
{
    struct arena_chunk *keep = a->chunks;
    if (keep && keep->size <= chunk_max) {
        a->chunks = keep->next;
        keep->next = NULL;
    } else {
        keep = NULL;
    }
    bool secret = a->secret;
    arena_free(a);
    if (keep) {
        ASAN_UNPOISON_MEMORY_REGION(keep->data, keep->size);
        if (secret)
            mem_wipe(keep->data, keep->size);
        a->chunks = keep;
        a->at = keep->data;
        a->end = keep->data + keep->size;
        ASAN_POISON_MEMORY_REGION(keep->data, keep->size);
    }
}

static void *refuse(struct arena *a)
{
    a->exhausted = true;
    return NULL;
}

static struct arena_chunk *chunk_new(size_t size)
{
    struct arena_chunk *c = malloc(sizeof(*c) + size);
    if (!c)
        return NULL;
    c->size = size;
    c->next = NULL;
    ASAN_POISON_MEMORY_REGION(c->data, size);
    return c;
}

/* A new chunk that holds `size`; returns where. */
static char *grow(struct arena *a, size_t size)
{
    struct arena_chunk *head = a->chunks;
    if (head && size > chunk_max / 4) { /* own chunk, the head stays */
        struct arena_chunk *c = chunk_new(size);
        if (!c)
            return NULL;
        c->next = head->next;
        head->next = c;
        return c->data;
    }
    size_t want = head ? head->size * 2 : chunk_min;
    if (want > chunk_max)
        want = chunk_max;
    if (a->cap && want > a->cap - a->used)
        want = a->cap - a->used;
    if (want < size)
        want = size;
    struct arena_chunk *c = chunk_new(want);
    if (!c)
        return NULL;
    c->next = head;
    a->chunks = c;
    a->at = c->data + size;
    a->end = c->data + want;
    return c->data;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX - sizeof(struct arena_chunk) - ALIGN)
        return refuse(a);
    size_t padded = size ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
    if (a->cap && padded > a->cap - a->used)
        return refuse(a);
    char *p = a->at;
    if (p && padded <= (size_t)(a->end - p))
        a->at = p + padded;
    else if (!(p = grow(a, padded)))
        return refuse(a);
    a->used += padded;
    ASAN_UNPOISON_MEMORY_REGION(p, size);
    return p;
}

void *arena_calloc(struct arena *a, size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        return refuse(a);
    void *p = arena_alloc(a, total);
    if (p)
        memset(p, 0, total);
    return p;
}

struct str arena_str(struct arena *a, struct str s)
{
    if (str_is_null(s))
        return s;
    char *p = arena_alloc(a, (size_t)s.len + 1);
    if (!p)
        return STR_NULL;
    if (s.len)
        memcpy(p, s.p, (size_t)s.len);
    p[s.len] = '\0';
    return (struct str){p, s.len};
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        return refuse(a);
    char *p = arena_alloc(a, (size_t)n + 1);
    if (!p)
        return NULL;
    va_start(args, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, args);
    va_end(args);
    return p;
}
