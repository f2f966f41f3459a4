/* index_set.h - finds duplicates among the items of a request: a hash set of their indexes, of a
 * size known beforehand, in the request's arena.
 *
 * Linear in the number of items, whatever they are (the hash is keyed), where comparing each with
 * each would let one request hold a reactor.
 *
 * THREADS  one. */
#ifndef SERVER_INDEX_SET_H
#define SERVER_INDEX_SET_H

#include "base/arena.h"
#include "base/hmap.h"

struct index_set {
    int32_t *slots; /* index + 1; 0 = free */
    uint32_t mask;
};

/* For at most n items; false without memory. */
static inline bool index_set_init(struct index_set *set, struct arena *a, int n)
{
    uint32_t size = 4;
    while (size < 2 * (uint32_t)n)
        size *= 2;
    set->mask = size - 1;
    set->slots = arena_array(a, int32_t, size);
    return set->slots != NULL;
}

/* The index of the item that `same` takes for equal, or -1: then `index` is put in. */
static inline int32_t index_set_put(struct index_set *set, uint64_t hash, int32_t index,
                                    bool (*same)(const void *arg, int32_t a, int32_t b),
                                    const void *arg)
{
    uint32_t at = (uint32_t)hash & set->mask;
    while (set->slots[at]) {
        if (same(arg, set->slots[at] - 1, index))
            return set->slots[at] - 1;
        at = (at + 1) & set->mask;
    }
    set->slots[at] = index + 1;
    return -1;
}

/* The same without putting it in. */
static inline int32_t index_set_find(const struct index_set *set, uint64_t hash, int32_t index,
                                     bool (*same)(const void *arg, int32_t a, int32_t b),
                                     const void *arg)
{
    for (uint32_t at = (uint32_t)hash & set->mask; set->slots[at]; at = (at + 1) & set->mask)
        if (same(arg, set->slots[at] - 1, index))
            return set->slots[at] - 1;
    return -1;
}

#endif
