/* led_partitions.h - the partitions of one internal topic as this broker wins and loses them, told
 * to their coordinator on the executor of each; and the loads that it asks for, on workers.
 *
 * NEWS     of a partition wait in its slot until its executor takes them: that it was deleted, that
 *          it was resigned, that it is led, whatever came last in the end. A resignation is never
 *          forgotten over a later election: another broker may have written in between.
 * LOADS    at most one a partition at a time, and loads_at_once in all. What is asked for while an
 *          older load of the partition still reads begins after it.
 * HELD     what a load has read is given to the coordinator only when the whole ISR has it, in the
 *          same term (partition_check_held: also below min.insync.replicas, when the high watermark
 *          stands still for as long as that lasts). A coordinator that answered from what others
 *          do not have yet would have told what its successor does not know: an offset, an
 *          assignment, a partition of a transaction, which then never got its marker. While one
 *          replica of the ISR stands still this takes up to replica.lag.time.max.ms.
 * THREADS  partition p belongs to executors[p % shards]; the callbacks come there. */
#ifndef COORDINATOR_LED_PARTITIONS_H
#define COORDINATOR_LED_PARTITIONS_H

#include "base/workers.h"
#include "replica/replica_manager.h"

struct led_partitions;

enum { LOAD_NOBODYS = 0 }; /* numbers of loads that are asked for are greater */

/* What a load has read; end 0: nothing that must be committed. */
struct load_reach {
    int64_t end;
    uint32_t term;
};

struct led_partitions_options {
    struct str topic; /* static text */
    int32_t partitions_n;
    struct executor *const *executors; /* one a shard; copied */
    int shards;
    struct replica_manager *replicas;
    struct workers *workers;
    int loads_at_once; /* >= 1 */
    void (*elected)(void *arg, int32_t partition, int32_t leader_epoch);
    /* leader_epoch -1: the replica here was deleted. */
    void (*resigned)(void *arg, int32_t partition, int32_t leader_epoch);
    /* Reads the partition, on a worker: what it returns goes to `loaded`. */
    void *(*load)(void *arg, int32_t partition, int32_t leader_epoch, struct load_reach *reach);
    /* number LOAD_NOBODYS: it is not wanted any more, only to be freed. */
    void (*loaded)(void *arg, int32_t partition, uint64_t number, void *result);
    void *arg;
};

/* Listens to the replica manager from now on, so before its first control request; to be freed
 * after the replica manager. 0 or -ENOMEM. */
int led_partitions_new(const struct led_partitions_options *o, struct led_partitions **out);
/* Have the partition read: `loaded` follows with that number, unless a newer load of the partition
 * is asked for before, or all is shut down. @thread the partition's */
void led_partitions_load(struct led_partitions *l, int32_t partition, int32_t leader_epoch,
                         uint64_t number);
/* No load begins any more. */
void led_partitions_shut_down(struct led_partitions *l);
int led_partitions_loading(struct led_partitions *l); /* those that wait for replicas, too */
/* Until none runs. @blocks; the workers and executors must still run */
void led_partitions_await(struct led_partitions *l);
/* After the executors have run what was posted to them. NULL is fine. */
void led_partitions_free(struct led_partitions *l);

#endif
