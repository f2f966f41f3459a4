/* partition_private.h - the insides of a partition, for this room only.
 *
 * INVARIANTS  (P1) log is NULL exactly in the roles none, offline and gone.
 *             (P2) remotes are the assigned replicas but this broker, and only a leader has any.
 *             (P3) a leader's high watermark never goes down.
 *             (P4) leader_epoch and partition_epoch never go down.
 *             (P5) only a leader has an ISR; a remote is `joining` only while isr_state is
 *             ISR_EXPANDING, and then exactly one is. */
#ifndef REPLICA_PARTITION_PRIVATE_H
#define REPLICA_PARTITION_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/hmap.h"
#include "log/log_manager.h"
#include "metadata/metadata_cache.h"
#include "replica/partition.h"
#include "replica/partition_isr.h"
#include "replica/topic_counts.h"

struct replica_listener;
struct source_fetcher;

/* Of all partitions here: ISR changes of leaders, bytes of records that followers took. */
struct replica_counts {
    metric shrinks, expands, refused;
    struct metric_spread bytes_in, moved_in; /* moved: by a reassignment */
};

/* What all partitions of a broker share; owned by the replica manager. */
struct partition_env {
    int32_t broker_id;
    const struct clock *clock;
    struct metadata_cache *metadata;
    struct workers *workers; /* for flushes; NULL = nobody flushes early */
    int64_t replica_lag_ms;
    struct replica_listener *listeners; /* fixed once partitions exist */
    struct isr_writer *isr_writer;      /* the same; NULL: ISRs never change here (tests) */
    struct replica_counts *counts;
};

/* See partition_isr.h. */
enum isr_state { ISR_STABLE, ISR_EXPANDING, ISR_SHRINKING };

enum partition_role {
    PARTITION_NONE,     /* known, no log yet: a LeaderAndIsr was refused or is being applied */
    PARTITION_LEADER,   /* appends, serves everybody */
    PARTITION_FOLLOWER, /* copies the leader, serves consumers of Fetch v11+ */
    PARTITION_OFFLINE,  /* its log dir failed; until restart */
    PARTITION_GONE      /* deleted here; the object lives for those who hold it */
};

/* What a leader knows of a follower. Positions are -1 until its first fetch. Under marks. */
struct remote_replica {
    int32_t id;
    bool in_isr;  /* the committed one; under the partition's lock, like the next */
    bool joining; /* a change that adds it is on its way */
    bool adding;  /* a reassignment brings it here; under the partition's lock */
    int64_t log_end, log_start;
    int64_t last_fetch_ms;            /* monotonic, like the next; -1 = never */
    int64_t last_caught_up_ms;        /* -1 = never */
    int64_t leader_end_at_last_fetch; /* -1 unknown */
    int64_t refused_ms; /* when the controller last refused to let it join; -1 = never. It knows who
                           is about to stop */
};

/* What a LeaderAndIsr said whose leader was not known to live here: obeyed once it is. */
struct awaited_leader {
    int32_t leader; /* -1: none is awaited */
    int32_t controller_epoch, leader_epoch, partition_epoch, replicas_n;
    struct uuid topic_id, fetched_id;
};

struct partition {
    /* Fixed. */
    const struct partition_env *env;
    char *topic;
    int32_t topic_len;
    int32_t number;
    atomic_int refs;
    struct hnode node;             /* in the replica manager's map, under its lock */
    struct topic_counts *counts;   /* one reference; NULL: nobody counts. Fixed once in the map */
    struct awaited_leader awaited; /* under the replica manager's `control` */

    /* Under `lock`. Fields that are asked for one by one are atomic too. */
    pthread_rwlock_t lock;
    _Atomic int role; /* enum partition_role */
    _Atomic int32_t leader_id, leader_epoch;
    int32_t partition_epoch, controller_epoch;
    uint32_t term;       /* counts the roles other than leader that it took */
    int64_t epoch_start; /* leader: first offset of its epoch */
    struct uuid topic_id;
    struct log *log;    /* one reference */
    atomic_bool moving; /* is being reassigned */
    bool adding;        /* and this broker is new to it */
    int32_t replicas_n;
    int32_t *isr; /* committed; owned, NULL when it is empty */
    int32_t isr_n;
    enum isr_state isr_state;
    uint64_t isr_change;               /* counts the changes that were proposed */
    struct source_fetcher *fetched_by; /* fetchers.c's, under its lock; NULL: by none */
    struct uuid fetched_id;            /* the same; zero: by name */
    struct remote_replica *remotes;    /* the array is under `lock`, what it says under marks */
    int32_t remotes_n;

    /* Follower states and the leader's high watermark; taken with `lock` held. */
    pthread_mutex_t marks;

    /* Held, with `lock`, from a follower's look at its log to the change it makes for that: two
     * fetchers may have one partition for a moment, and `lock` is shared. */
    pthread_mutex_t following;
    _Atomic uint64_t cuts; /* by followers; changed while that is held */
    _Atomic int64_t lag;   /* follower: records behind its leader; -1: not known */

    /* Flushes asked for; the job runs while flush_running, with a reference on the partition. */
    pthread_mutex_t flush_lock;
    struct list flushes;
    struct job flush_job;
    struct workers *flush_workers; /* where it runs */
    bool flush_running, flush_again;

    pthread_mutex_t waiters_lock;
    struct list waiters;
    atomic_int waiters_n;
};

/* One entry of a LeaderAndIsr request. Arrays are borrowed. */
struct leadership {
    int32_t controller_epoch, leader, leader_epoch, partition_epoch;
    const int32_t *isr, *replicas, *adding;
    int32_t isr_n, replicas_n, adding_n;
    bool moving;          /* is being reassigned: some are added or removed */
    struct uuid topic_id; /* zero = none */
};

static inline bool is_among(const int32_t *ids, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Returns owned (one reference), NULL without memory. */
struct partition *partition_new(const struct partition_env *env, struct topic_partition tp);
/* Wakes all waiters. No lock held. */
void partition_wake(struct partition *p);

/* Role changes; the control queue is the only caller, one at a time. `log` is borrowed. They return
 * with the lock let go and the waiters woken. KERR_KAFKA_STORAGE_ERROR when the epoch could not be
 * written; KERR_UNKNOWN_SERVER_ERROR without memory. */
enum kerr partition_make_leader(struct partition *p, const struct leadership *l, struct log *log);
enum kerr partition_make_follower(struct partition *p, const struct leadership *l, struct log *log);
/* Does it lead, and another broker has a replica? */
bool partition_leads_for_others(struct partition *p);
void partition_make_offline(struct partition *p);
void partition_make_gone(struct partition *p);
/* No role any more, until a LeaderAndIsr: others lead since the epoch. The log stays. */
void partition_step_down(struct partition *p, int32_t leader_epoch);
/* The topic's settings changed: the log takes them over; the high watermark may move. */
void partition_set_config(struct partition *p, const struct log_config *c);
/* A topic id that came with an epoch known already. */
void partition_take_topic_id(struct partition *p, struct uuid id);

/* `lock` held, either way. */
enum kerr partition_check_epoch_locked(const struct partition *p, int32_t current_leader_epoch);
/* Role and epoch checks of a request: NONE, or the error in the order Kafka has. */
enum kerr partition_access_locked(const struct partition *p, int32_t current_leader_epoch,
                                  bool leader_only);
/* partition_isr.c; the lock is held for writing. 0 or -ENOMEM. */
int partition_set_isr_locked(struct partition *p, const int32_t *isr, int32_t n);
bool partition_broker_alive(const struct partition *p, int32_t id);
/* May a follower, by what is known of it, join the ISR? */
bool partition_may_join_locked(const struct partition *p, const struct remote_replica *r);
/* The follower looked as if it might: it is looked at again, and a change proposed. No lock held.
 */
void partition_grow_isr(struct partition *p, int32_t id);

/* Is the committed ISR as large as min.insync.replicas (at most the number of replicas) wants? */
bool partition_isr_enough_locked(const struct partition *p);
/* The same with the one that is joining: are records that are committed safe enough to confirm? */
bool partition_isr_enough_after_locked(const struct partition *p);
/* On this thread. @blocks */
enum kerr partition_flush_now(struct partition *p);
/* Moves the leader's high watermark if it may move. Did it? */
bool partition_advance_locked(struct partition *p);
struct remote_replica *partition_remote_locked(struct partition *p, int32_t id);

/* Notes a fetch of a follower at `offset`, when the leader's log ended at `end`. Under marks. */
void remote_replica_fetched(struct remote_replica *r, int64_t offset, int64_t log_start,
                            int64_t end, int64_t now_ms);
/* For a while nobody asks for it to join, nor waits for it. */
bool remote_replica_refused(const struct remote_replica *r, int64_t now_ms);
bool remote_replica_caught_up(const struct remote_replica *r, int64_t leader_end, int64_t now_ms,
                              int64_t lag_ms);

#endif
