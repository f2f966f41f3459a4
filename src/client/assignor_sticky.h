/* assignor_sticky.h - the inside of sticky and cooperative-sticky.
 *
 * Partitions are numbered topic by topic, members in the order of their ids: that order decides
 * ties, so that every leader comes to the same result.
 *
 * THREADS  any: all of it belongs to one assignment. */
#ifndef CLIENT_ASSIGNOR_STICKY_H
#define CLIENT_ASSIGNOR_STICKY_H

#include "client/assignor.h"

struct sticky_claim {
    int32_t part;
    int member;
    int32_t generation;
};

struct sticky {
    const kafka_group_member_t *given;
    const kafka_topic_size_t *topics;
    int members_n, topics_n, parts_n;
    int *order;       /* member number -> index in given */
    int *first;       /* of each topic: number of its partition 0; [topics_n]: parts_n. Topics that
                nobody wants have none */
    int *topic_of;    /* by partition */
    bool *wants;      /* [member * topics_n + topic] */
    int *subscribers; /* by topic */
    bool equal;       /* all members want the same topics */
    struct sticky_claim *claims; /* in the order of the members */
    int claims_n, claims_cap;
    int32_t newest;        /* highest generation of the claims' members */
    int *owner;            /* whose claim stands; -1 */
    int *owner_generation; /* of the best claim, also one that does not stand */
    bool *doubly;          /* two of one generation claimed it */
    int *result;           /* member, -1: nobody */
    bool *transferred;     /* equal: changes hands */
    bool racks;            /* they decide (KIP-881) */
    struct arena mem;
};

static inline bool sticky_wants(const struct sticky *s, int member, int topic)
{
    return s->wants[member * s->topics_n + topic];
}
static inline int sticky_partition(const struct sticky *s, int part)
{
    return part - s->first[s->topic_of[part]];
}

/* Has the partition a replica in the member's rack? */
bool sticky_is_near(const struct sticky *s, int member, int part);
/* Members near to it that want it. */
int sticky_count_near(const struct sticky *s, int part);
/* Racks decide, the member is not near to the partition, and some other is: then the member does
 * not keep it. (Apache Kafka takes it away also where nobody is near; then such partitions wander
 * between members at each rebalance, to no end.) */
bool sticky_is_misplaced(const struct sticky *s, int member, int part);
/* n numbers, all `value`; NULL without memory. */
int *sticky_filled(struct sticky *s, int n, int value);

/* Fills result and transferred. false without memory. */
bool sticky_equal(struct sticky *s);
/* Fills result. */
bool sticky_uneven(struct sticky *s);

#endif
