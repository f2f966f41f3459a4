/* frame_pool.c - size classes, growth and trimming of frame buffers.
 *
 * Buffers of 64 KiB and more are mappings of their own: they grow by mremap, which moves page
 * tables and not bytes, and never stay behind as holes in malloc's arenas. Smaller ones come from
 * malloc and never grow (they are as large as their frame). */
#include "net/frame_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    CLASS_MIN = 512,
    FIRST = 64 * 1024, /* at most this much before anything has arrived; from here on mappings */
    PAGE = 4096,
    TRIM_MS = 1000,
};
static const size_t lent_max = 8 << 20;

#if defined(__SANITIZE_ADDRESS__)
#define POOL_EXACT true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_EXACT true
#endif
#endif
#ifndef POOL_EXACT
#define POOL_EXACT false
#endif

static void on_trim(struct timer *t);

void frame_pool_init(struct frame_pool *fp, size_t kept_max, struct executor *ex)
{
    *fp = (struct frame_pool){
        .kept_max = kept_max, .lent_max = lent_max, .exact = POOL_EXACT, .ex = ex};
    timer_init(&fp->trim, on_trim);
}

/* ---- sizes ---- */

/* The smallest class that holds n; FRAME_CLASSES when none does. */
static int class_of(size_t n)
{
    if (n <= CLASS_MIN)
        return 0;
    int bits = 64 - __builtin_clzll((unsigned long long)n - 1);
    int c = bits - 9; /* CLASS_MIN = 1 << 9 */
    return c < FRAME_CLASSES ? c : FRAME_CLASSES;
}

static size_t cap_for(const struct frame_pool *fp, size_t n)
{
    if (fp->exact)
        return n ? n : 1;
    int c = class_of(n);
    return c < FRAME_CLASSES ? (size_t)CLASS_MIN << c : (n + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static bool is_mapping(size_t cap)
{
    return !POOL_EXACT && cap >= FIRST;
}

/* ---- system memory ---- */

static uint8_t *system_get(size_t cap)
{
    if (!is_mapping(cap))
        return malloc(cap);
    void *p = mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void system_put(uint8_t *p, size_t cap)
{
    if (is_mapping(cap))
        munmap(p, cap);
    else
        free(p);
}

static uint8_t *system_grow(uint8_t *p, size_t old_cap, size_t cap)
{
    if (!is_mapping(old_cap))
        return realloc(p, cap); /* only in exact mode: others are whole from the start */
    void *q = mremap(p, old_cap, cap, MREMAP_MAYMOVE);
    return q == MAP_FAILED ? NULL : q;
}

void frame_mem_free(struct frame_mem *m)
{
    if (m->p)
        system_put(m->p, m->cap);
    *m = (struct frame_mem){0};
}

/* ---- kept buffers ---- */

static uint8_t *class_pop(struct frame_pool *fp, int c)
{
    if (c >= FRAME_CLASSES || !fp->classes[c].free)
        return NULL;
    struct frame_class *k = &fp->classes[c];
    uint8_t *p = k->free;
    memcpy(&k->free, p, sizeof(k->free));
    k->n--;
    if (k->n < k->low)
        k->low = k->n;
    fp->kept -= (size_t)CLASS_MIN << c;
    return p;
}

static void class_push(struct frame_pool *fp, int c, uint8_t *p)
{
    struct frame_class *k = &fp->classes[c];
    memcpy(p, &k->free, sizeof(k->free));
    k->free = p;
    k->n++;
    fp->kept += (size_t)CLASS_MIN << c;
}

void frame_pool_trim(struct frame_pool *fp)
{
    for (int c = 0; c < FRAME_CLASSES; c++) {
        struct frame_class *k = &fp->classes[c];
        for (uint32_t unused = k->low; unused > 0; unused--)
            system_put(class_pop(fp, c), (size_t)CLASS_MIN << c);
        k->low = k->n;
    }
}

static void on_trim(struct timer *t)
{
    struct frame_pool *fp = container_of(t, struct frame_pool, trim);
    frame_pool_trim(fp);
    if (fp->kept > 0)
        executor_timer_start(fp->ex, &fp->trim, TRIM_MS);
}

void frame_pool_free(struct frame_pool *fp)
{
    if (fp->ex)
        executor_timer_stop(fp->ex, &fp->trim);
    for (int c = 0; c < FRAME_CLASSES; c++) {
        uint8_t *p;
        while ((p = class_pop(fp, c)))
            system_put(p, (size_t)CLASS_MIN << c);
    }
}

/* ---- frames ---- */

/* A kept buffer for a whole frame that is larger than what is given on trust. */
static uint8_t *lend(struct frame_pool *fp, size_t cap)
{
    return fp->lent + cap <= fp->lent_max ? class_pop(fp, class_of(cap)) : NULL;
}

int frame_pool_get(struct frame_pool *fp, size_t len, struct frame_mem *out)
{
    size_t cap = cap_for(fp, len);
    *out = (struct frame_mem){0};
    if (cap > FIRST) {
        uint8_t *p = lend(fp, cap);
        if (p) {
            fp->lent += cap;
            *out = (struct frame_mem){p, cap, true};
            return 0;
        }
        cap = FIRST;
    }
    uint8_t *p = fp->exact ? NULL : class_pop(fp, class_of(cap));
    if (!p && !(p = system_get(cap)))
        return -ENOMEM;
    *out = (struct frame_mem){p, cap, false};
    return 0;
}

int frame_pool_grow(struct frame_pool *fp, size_t len, struct frame_mem *m)
{
    size_t whole = cap_for(fp, len);
    size_t cap = m->cap * 2 < whole ? m->cap * 2 : whole;
    uint8_t *p = system_grow(m->p, m->cap, cap);
    if (!p)
        return -ENOMEM;
    m->p = p;
    m->cap = cap;
    return 0;
}

void frame_pool_arrived(struct frame_pool *fp, struct frame_mem *m)
{
    if (m->lent)
        fp->lent -= m->cap;
    m->lent = false;
}

void frame_pool_put(struct frame_pool *fp, struct frame_mem *m)
{
    if (!m->p)
        return;
    frame_pool_arrived(fp, m);
    int c = class_of(m->cap);
    if (fp->exact || c == FRAME_CLASSES || m->cap != (size_t)CLASS_MIN << c ||
        fp->kept + m->cap > fp->kept_max) {
        frame_mem_free(m);
        return;
    }
    class_push(fp, c, m->p);
    *m = (struct frame_mem){0};
    if (fp->ex && !timer_armed(&fp->trim))
        executor_timer_start(fp->ex, &fp->trim, TRIM_MS);
}
