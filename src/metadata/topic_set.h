/* topic_set.h - a set of topics that is cheap to copy with changes: what the snapshots of
 * metadata_cache.h are made of. Inside metadata/ only.
 *
 * A table of shards, each a small array of topics; copies share shards, shards share topics, both
 * counted. A change copies the table of pointers and the one shard it touches, so one topic among
 * 10,000 costs some hundred counter steps, not 10,000 copies.
 * THREADS    a set that is being changed belongs to one thread; published ones only get read. */
#ifndef METADATA_TOPIC_SET_H
#define METADATA_TOPIC_SET_H

#include <stdatomic.h>

#include "metadata/metadata_cache.h"

/* One block of memory: name, partitions and all their lists lie behind it. */
struct topic_entry {
    atomic_int refs;
    struct topic_info info;
};
void topic_entry_unref(struct topic_entry *t);

enum topic_key { TOPIC_BY_NAME, TOPIC_BY_ID };

struct topic_shard;
struct topic_set {
    enum topic_key key;
    struct topic_shard **shards; /* NULL = empty shard */
    uint64_t mask;               /* shards - 1; all ones while there are none */
    int n;
};

void topic_set_init(struct topic_set *s, enum topic_key key);
void topic_set_free(struct topic_set *s);
/* `to` is overwritten. 0 or -ENOMEM (then `to` is empty). */
int topic_set_copy(const struct topic_set *from, struct topic_set *to);
/* Returns borrowed. */
struct topic_entry *topic_set_by_name(const struct topic_set *s, struct str name);
struct topic_entry *topic_set_by_id(const struct topic_set *s, struct uuid id);
/* Puts t in, in the place of one with the same key. Takes a reference of its own. 0 or -ENOMEM. */
int topic_set_put(struct topic_set *s, struct topic_entry *t);
/* The topic with t's key goes; none is fine. 0 or -ENOMEM. */
int topic_set_remove(struct topic_set *s, const struct topic_entry *t);
/* All, in no order, into out[0..n). */
void topic_set_list(const struct topic_set *s, const struct topic_info **out);

#endif
