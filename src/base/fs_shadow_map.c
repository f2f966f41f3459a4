/* fs_shadow_map.c - mapped files. A copy of a mapping is kept; now and then (before a sync, before
 * the size changes, when the mapping goes, when the power is cut) the pages that differ from it are
 * recorded as so many writes, and the copy follows.
 *
 * The bytes are read here while other threads may store into the mapping, as the kernel does when
 * it writes a page back; so the copying is hidden from the thread sanitizer. */
#include <stdlib.h>
#include <string.h>

#include "base/fs_shadow_private.h"

enum { PAGE = 4096 };

#define NO_TSAN __attribute__((no_sanitize("thread"), noinline))

NO_TSAN static void copy_racing(uint8_t *to, const uint8_t *from, size_t n)
{
    volatile uint8_t *t = to;
    const volatile uint8_t *f = from;
    for (size_t i = 0; i < n; i++)
        t[i] = f[i];
}

NO_TSAN static bool differs_racing(const uint8_t *a, const uint8_t *b, size_t n)
{
    const volatile uint8_t *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i])
            return true;
    return false;
}

/* How much of the mapping lies inside the file: touching pages behind its end is a SIGBUS. */
static size_t backed(const struct shadow_map *m, int64_t *size)
{
    struct file_stat st;
    *size = file_stat(m->under, &st) ? 0 : st.size;
    return (uint64_t)*size < m->len ? (size_t)*size : m->len;
}

static struct shadow_map *map_at(const struct node *n, const void *p)
{
    list_each (it, &n->maps) {
        struct shadow_map *m = list_entry(it, struct shadow_map, link);
        if (m->p == p)
            return m;
    }
    return NULL;
}

void shadow_map_add(struct node *n, struct file *under, void *p, size_t len)
{
    struct shadow_map *m = shadow_alloc(sizeof(*m));
    *m = (struct shadow_map){.under = under, .p = p, .len = len};
    m->saved = shadow_alloc(len);
    int64_t size;
    size_t n_backed = backed(m, &size);
    copy_racing(m->saved, m->p, n_backed);
    memset(m->saved + n_backed, 0, len - n_backed);
    list_push_back(&n->maps, &m->link);
}

int64_t shadow_map_offset(const struct node *n, const void *p)
{
    uintptr_t at = (uintptr_t)p;
    list_each (it, &n->maps) {
        const struct shadow_map *m = list_entry(it, struct shadow_map, link);
        if (at >= (uintptr_t)m->p && at - (uintptr_t)m->p < m->len)
            return (int64_t)(at - (uintptr_t)m->p); /* all mappings begin at the file's begin */
    }
    return -1;
}

static void page_changed(struct shadow *s, struct node *n, struct shadow_map *m, size_t off,
                         size_t len, int64_t size)
{
    struct write_undo *w = shadow_alloc(sizeof(*w) + len);
    *w = (struct write_undo){.seq = ++s->seq,
                             .off = (int64_t)off,
                             .len = len,
                             .mapped = true,
                             .old_size = size,
                             .old_len = len};
    memcpy(w->old, m->saved + off, len);
    list_push_back(&n->writes, &w->link);
    copy_racing(m->saved + off, m->p + off, len);
}

static void fold(struct shadow *s, struct node *n, struct shadow_map *m)
{
    int64_t size;
    size_t end = backed(m, &size);
    for (size_t off = 0; off < end; off += PAGE) {
        size_t len = end - off < PAGE ? end - off : PAGE;
        if (differs_racing(m->saved + off, m->p + off, len))
            page_changed(s, n, m, off, len, size);
    }
}

void shadow_fold_maps(struct shadow *s, struct node *n)
{
    if (s->frozen)
        return;
    list_each (it, &n->maps)
        fold(s, n, list_entry(it, struct shadow_map, link));
}

void shadow_freeze(struct shadow *s)
{
    list_each (it, &s->nodes)
        shadow_fold_maps(s, list_entry(it, struct node, all));
    s->frozen = true;
}

void shadow_map_remove(struct shadow *s, struct node *n, void *p)
{
    struct shadow_map *m = map_at(n, p);
    if (!m)
        return;
    if (s->frozen) {
        int64_t size;
        copy_racing(m->p, m->saved, backed(m, &size));
    } else {
        fold(s, n, m);
    }
    list_remove(&m->link);
    free(m->saved);
    free(m);
}
