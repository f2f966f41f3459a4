/* offset_map.h - the newest offset of each key, for compaction, in memory of a fixed size.
 *
 * FORMAT   Open addressing; a slot is a hash of a key (16 bytes) and an offset (8). Keys themselves
 *          are not kept: two with one hash would be taken for one. So the hash is a keyed one of
 *          128 bits, which nobody who writes to a topic can make collide. A slot of zeros is free.
 *
 * MEMORY   `bytes` of address space; pages are taken as slots are used, and go back when the map is
 *          emptied. A map that is told to expect few records spreads over few slots.
 *
 * LIMIT    At most slots * load_factor keys.
 *
 * SPEED    A look-up mostly waits for memory. Hash a few keys ahead: that fetches their slots.
 *
 * THREADS  One at a time. */
#ifndef LOG_OFFSET_MAP_H
#define LOG_OFFSET_MAP_H

#include "base/str.h"

struct offset_map;
struct offset_key {
    uint64_t hash[2];
};

/* 0; -EINVAL when fewer than two keys would fit; -ENOMEM. */
int offset_map_new(size_t bytes, double load_factor, struct offset_map **out);
void offset_map_free(struct offset_map *m); /* NULL is fine */
/* Empties it, for at most `expected` records to come. Keys that were hashed are void. */
void offset_map_reset(struct offset_map *m, int64_t expected);
bool offset_map_full(const struct offset_map *m);
/* The key for the calls below; its slot is on its way from memory. */
struct offset_key offset_map_hash(const struct offset_map *m, struct bytes key);
/* The key's offset from now on; it must not be full. */
void offset_map_put(struct offset_map *m, struct offset_key key, int64_t offset);
/* -1 when the key is not there. */
int64_t offset_map_get(const struct offset_map *m, struct offset_key key);
size_t offset_map_count(const struct offset_map *m);
/* How many keys fit at all, whatever is expected. */
size_t offset_map_capacity(const struct offset_map *m);

#endif
