/* assignment.h - which brokers get the replicas of new partitions: spread round robin, with
 * shifting followers; alternating over racks where all brokers have one.
 *
 * Pure: the caller draws start and shift at random for a new topic, and derives both from the first
 * partition for added ones (assign_start_of). THREADS any. */
#ifndef METADATA_ASSIGNMENT_H
#define METADATA_ASSIGNMENT_H

#include "base/arena.h"

struct assign_broker {
    int32_t id;
    struct str rack; /* null = none */
};

enum assign_racks { ASSIGN_NO_RACKS, ASSIGN_ALL_RACKS, ASSIGN_SOME_RACKS };
enum assign_racks assign_racks(const struct assign_broker *brokers, int n);

struct assign_args {
    const struct assign_broker *brokers; /* ascending ids */
    int brokers_n;
    bool use_racks; /* only with ASSIGN_ALL_RACKS */
    int first;      /* number of the first partition to assign; 0 for a new topic */
    int partitions;
    int replication;  /* 1 .. brokers_n */
    int start, shift; /* 0 .. brokers_n - 1 */
};
/* Partition first + p gets out[p * replication] .. [+ replication - 1], the preferred leader first.
 * NULL without memory; in the arena. */
int32_t *assign_replicas(const struct assign_args *args, struct arena *a);
/* start and shift for partitions added to a topic whose partition 0 has this first replica. */
int assign_start_of(const struct assign_broker *brokers, int n, int32_t first_replica);

#endif
