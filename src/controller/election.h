/* election.h - who leads a partition: pure choices from the assignment, who is online, and the
 * in-sync replicas.
 * THREADS  any; nothing is shared. */
#ifndef CONTROLLER_ELECTION_H
#define CONTROLLER_ELECTION_H

#include "metadata/znode.h"

enum election_strategy {
    ELECT_OFFLINE, /* the leader is gone: the first that is online and in sync; those offline leave
                      the ISR. Failing that, if allowed, the first online one alone */
    ELECT_UNCLEAN, /* the same, and it is allowed */
    ELECT_TAKEN_OVER, /* the same, but a leader that is online and in sync stays */
    ELECT_REASSIGNED, /* the first of the target that is online and in sync; the ISR stays */
    ELECT_PREFERRED,  /* the head of the assignment if it is online and in sync; the ISR stays */
    ELECT_SHUTDOWN,   /* brokers are about to stop: the first in sync that is not; they leave the
                         ISR */
    ELECT_KEEP, /* nobody is elected: the same leader and ISR, in a new epoch, so that all take
                   notice of a new assignment */
};

struct election_replica {
    int32_t broker;
    bool online;   /* live, and its dir too */
    bool stopping; /* live, in controlled shutdown */
    bool leaving;  /* not in the reassignment's target */
};
struct election {
    const struct election_replica *assignment; /* in order of preference */
    int n;
    struct id_list isr;
    int32_t leader; /* of now */
    bool unclean;   /* may a replica outside the ISR lead when nobody in it can? */
};
struct elected {
    int32_t leader;
    int32_t *isr; /* the caller's memory, room for assignment and ISR */
    int isr_n;
    bool unclean; /* the leader was not in the ISR */
};

/* The very first: all online replicas are in sync, the first of them leads. false: nobody. */
bool election_first(const struct election *e, struct elected *out);
/* false: nobody. */
bool election_run(const struct election *e, enum election_strategy strategy, struct elected *out);

#endif
