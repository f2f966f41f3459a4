/* topic_counts.h - what clients did with a topic at this broker, for its metrics.
 *
 * All partitions of a topic that are here share one; it goes with the last of them. Each thread
 * that counts has a block of its own there (metrics.h: slots), made when it first counts: threads
 * do not pull a line from each other, and a topic takes memory for those only that serve it.
 *
 * OWNERSHIP  reference counted: the set holds one for as long as partitions are hosted, and each
 *            partition's object one.
 *
 * THREADS    counting and reading: any. The set: under its owner's lock. */
#ifndef REPLICA_TOPIC_COUNTS_H
#define REPLICA_TOPIC_COUNTS_H

#include "base/hmap.h"
#include "base/metrics.h"
#include "base/str.h"

enum topic_count {
    TOPIC_MESSAGES_IN,
    TOPIC_BYTES_IN,
    TOPIC_BYTES_OUT, /* to consumers */
    TOPIC_BYTES_REJECTED,
    TOPIC_PRODUCE_REQUESTS, /* one for each partition */
    TOPIC_FETCH_REQUESTS,   /* the same */
    TOPIC_FAILED_PRODUCE,
    TOPIC_FAILED_FETCH,
    TOPIC_PRODUCE_CONVERSIONS, /* records that another codec or format was made of */
    TOPIC_FETCH_CONVERSIONS,
    TOPIC_COUNTS
};

struct topic_counts {
    struct hnode node;
    atomic_int refs;
    int partitions;                                  /* hosted here; the set's */
    struct topic_slot *_Atomic slots[METRICS_SLOTS]; /* owned */
    int32_t len;
    char topic[];
};

/* Not counted without memory for the block. */
void topic_counts_add(struct topic_counts *c, enum topic_count what, uint64_t n);
uint64_t topic_counts_read(const struct topic_counts *c, enum topic_count what);

/* One more partition of the topic is here. Returns shared; NULL without memory (it is not counted
 * then). */
struct topic_counts *topic_counts_enter(struct hmap *set, struct str topic);
/* One less; with the last the topic leaves the set. NULL is fine. */
void topic_counts_leave(struct hmap *set, struct topic_counts *c);
struct topic_counts *topic_counts_ref(struct topic_counts *c);
void topic_counts_unref(struct topic_counts *c); /* NULL is fine */

static inline struct str topic_counts_topic(const struct topic_counts *c)
{
    return (struct str){c->topic, c->len};
}

#endif
