/* hmap.h - intrusive hash map: the caller embeds a struct hnode, hashes its key and tests for
 * equality.
 *
 *   hmap_each_in_bucket is hidden behind hmap_find:
 *   struct hnode *n = hmap_find(&m, hash, topic_equals, &key);
 *
 * OWNERSHIP  values stay with the caller; hmap owns only its bucket array.
 *
 * THREADS    the caller's lock. */
#ifndef BASE_HMAP_H
#define BASE_HMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"

struct hnode {
    struct hnode *next;
    uint64_t hash;
};

struct hmap {
    struct hnode **buckets;
    size_t mask; /* bucket count - 1 */
    size_t n;
};

typedef bool (*hmap_eq_fn)(const struct hnode *node, const void *key);

void hmap_init(struct hmap *m); /* allocates nothing */
void hmap_free(struct hmap *m); /* frees the buckets only */
struct hnode *hmap_find(const struct hmap *m, uint64_t hash, hmap_eq_fn eq, const void *key);
/* The key must not be there yet. 0 or -ENOMEM. */
int hmap_put(struct hmap *m, struct hnode *node, uint64_t hash);
/* Takes the node off; it must be in the map. */
void hmap_remove(struct hmap *m, struct hnode *node);
/* Walk in no order: hmap_first, then hmap_next. The node just returned may be removed before
 * hmap_next only by asking for the next one first. */
struct hnode *hmap_first(const struct hmap *m);
struct hnode *hmap_next(const struct hmap *m, const struct hnode *node);

#define hmap_each(it, m) for (struct hnode *it = hmap_first(m); it; it = hmap_next((m), it))
#define hmap_entry(ptr, type, member) container_of(ptr, type, member)

/* Keyed with a per-process random seed, so that names from outside cannot be made to collide. */
uint64_t hash_bytes(const void *p, size_t n);
uint64_t hash_int(uint64_t v);
/* For the simulator and tests that replay: the same hashes, and so the same walks, in every run.
 * Call it before the first hash and before other threads start. */
void hash_fix_seed(uint64_t seed);
static inline uint64_t hash_str(struct str s)
{
    return hash_bytes(s.p, s.len < 0 ? 0 : (size_t)s.len);
}

#endif
