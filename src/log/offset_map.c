#include "log/offset_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/siphash.h"

enum { KEEP_BYTES = 1 << 20, SLOTS_MIN = 64 };

struct slot {
    struct offset_key key;
    int64_t offset;
};

struct offset_map {
    struct slot *slots;
    size_t mapped, slots_max, keys_max;
    size_t slots_n, limit; /* in use now: slots, and how many keys they may hold */
    size_t n;
    struct siphash_key hash_key;
};

int offset_map_new(size_t bytes, double load_factor, struct offset_map **out)
{
    *out = NULL;
    struct offset_map *m = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    m->slots_max = bytes / sizeof(struct slot);
    load_factor = load_factor < 0 ? 0 : load_factor > 1 ? 1 : load_factor;
    m->keys_max = (size_t)((double)m->slots_max * load_factor);
    if (m->keys_max == m->slots_max && m->keys_max)
        m->keys_max--; /* a search must find a free slot */
    if (m->keys_max < 2) {
        free(m);
        return -EINVAL;
    }
    m->mapped = m->slots_max * sizeof(struct slot);
    void *p = mmap(NULL, m->mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        free(m);
        return -ENOMEM;
    }
    (void)madvise(p, m->mapped, MADV_HUGEPAGE); /* look-ups go anywhere in it */
    m->slots = p;
    m->slots_n = m->slots_max;
    m->limit = m->keys_max;
    m->hash_key = siphash_random_key();
    *out = m;
    return 0;
}

void offset_map_free(struct offset_map *m)
{
    if (!m)
        return;
    munmap(m->slots, m->mapped);
    free(m);
}

void offset_map_reset(struct offset_map *m, int64_t expected)
{
    size_t used = m->slots_n * sizeof(struct slot);
    /* fresh pages are zeros; a few are sooner cleared than taken anew */
    if (m->n && (used <= KEEP_BYTES || madvise(m->slots, m->mapped, MADV_DONTNEED)))
        memset(m->slots, 0, used);
    m->n = 0;
    m->slots_n = m->slots_max;
    m->limit = m->keys_max;
    if (expected < 0 || (uint64_t)expected >= m->keys_max)
        return;
    /* half full at most: searches are short, and memory is no concern at this size */
    size_t slots = (size_t)expected * 2 < SLOTS_MIN ? SLOTS_MIN : (size_t)expected * 2;
    if (slots < m->slots_max) {
        m->slots_n = slots;
        m->limit = (size_t)expected > 0 ? (size_t)expected : 1;
    }
}

bool offset_map_full(const struct offset_map *m)
{
    return m->n >= m->limit;
}

size_t offset_map_count(const struct offset_map *m)
{
    return m->n;
}

size_t offset_map_capacity(const struct offset_map *m)
{
    return m->keys_max;
}

static size_t home(const struct offset_map *m, struct offset_key key)
{
    return (size_t)(((unsigned __int128)key.hash[0] * m->slots_n) >> 64);
}

struct offset_key offset_map_hash(const struct offset_map *m, struct bytes key)
{
    struct offset_key k = {{0, 0}};
    siphash128(&m->hash_key, key.p, key.len > 0 ? (size_t)key.len : 0, k.hash);
    if (k.hash[0] == 0 && k.hash[1] == 0)
        k.hash[1] = 1; /* zeros mean free */
    __builtin_prefetch(&m->slots[home(m, k)]);
    return k;
}

static bool is_free(const struct slot *s)
{
    return (s->key.hash[0] | s->key.hash[1]) == 0;
}

/* The key's slot, or the free one where it belongs. */
static struct slot *find(const struct offset_map *m, struct offset_key key)
{
    for (size_t i = home(m, key);;) {
        struct slot *s = &m->slots[i];
        if ((s->key.hash[0] == key.hash[0] && s->key.hash[1] == key.hash[1]) || is_free(s))
            return s;
        if (++i == m->slots_n)
            i = 0;
    }
}

void offset_map_put(struct offset_map *m, struct offset_key key, int64_t offset)
{
    struct slot *s = find(m, key);
    m->n += is_free(s);
    *s = (struct slot){key, offset};
}

int64_t offset_map_get(const struct offset_map *m, struct offset_key key)
{
    const struct slot *s = find(m, key);
    return is_free(s) ? -1 : s->offset;
}
