/* protocol_counts.h - lists of the protocols that members offer, and how many members of a group
 * offer each protocol: a map from name to count. A member's list may name one twice; it counts
 * once.
 *
 * OWNERSHIP  copies the names.
 *
 * THREADS    one. */
#ifndef COORDINATOR_PROTOCOL_COUNTS_H
#define COORDINATOR_PROTOCOL_COUNTS_H

#include "base/hmap.h"
#include "base/str.h"

struct member_protocol {
    struct str name;
    struct bytes metadata;
};

/* A list in one block with its names and metadata; free() ends it. NULL without memory. Returns
 * owned. */
struct member_protocol *member_protocols_copy(const struct member_protocol *v, int n);

struct protocol_count {
    struct hnode node;
    struct str name;        /* behind the struct */
    int32_t members, votes; /* votes: while a protocol is chosen */
    const void *by;         /* the list that was counted last, to pass over its duplicates */
};

/* Counts a member's list in: 0, or -ENOMEM and nothing is counted. And out. */
int protocol_counts_add(struct hmap *counts, const struct member_protocol *v, int n);
void protocol_counts_remove(struct hmap *counts, const struct member_protocol *v, int n);
/* NULL: nobody offers it. */
struct protocol_count *protocol_counts_find(const struct hmap *counts, struct str name);
/* How many offer it. */
int32_t protocol_counts_of(const struct hmap *counts, struct str name);
void protocol_counts_free(struct hmap *counts);

#endif
