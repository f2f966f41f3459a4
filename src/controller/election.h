/* election.h - who leads a partition: pure choices from the assignment, who is online, and the
 * in-sync replicas. */
#ifndef CONTROLLER_ELECTION_H
#define CONTROLLER_ELECTION_H

#include "metadata/znode.h"

struct election {
    struct id_list assignment; /* in order of preference */
    const bool *online;        /* for each of the assignment */
    struct id_list isr;
    bool unclean; /* may a replica outside the ISR lead when nobody in it can? */
};
struct elected {
    int32_t leader;
    int32_t *isr; /* the caller's memory, room for assignment and ISR */
    int isr_n;
    bool unclean; /* the leader was not in the ISR */
};

/* The very first: all online replicas are in sync, the first of them leads. false: nobody. */
bool election_first(const struct election *e, struct elected *out);
/* The leader is gone: the first replica that is online and in sync; what is not online leaves the
 * ISR. Failing that, if allowed, the first online one alone. false: nobody. */
bool election_offline(const struct election *e, struct elected *out);

#endif
