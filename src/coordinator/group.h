/* group.h - one group of the classic protocol: who its members are, what they agreed on, and the
 * offsets it has committed. Decides alone: time, timers, the log and the answers are handed in.
 *
 *                  first member                    all joined, or time over
 *   [new] -> Empty -------------> PreparingRebalance -------------------> CompletingRebalance
 *              ^ |                  ^   |       ^  ^                            |   |
 *              | |   nobody joined  |   |       |  +---- join, leave, expiry ---+   | leader's
 *              +-|------------------|---+       |                                   | assignment is
 *                |                  |           |  join, leave, expiry, no sync     | in the log
 *                |                  |           +------------------- Stable <-------+
 *                v                  v                                  |
 *              Dead <----------- (unload) <----------------------------+
 *
 * From each state with members an upgrade to the new protocol leads to Empty: they live in the part
 * of the group that is then there for it (cgroup.h), as all members of such a group do. A group of
 * the new protocol is Empty or Dead here. From Empty a downgrade leads to Stable.
 *
 *   Empty                no members; maybe offsets. Joins by new members only, commits by anybody.
 *   PreparingRebalance   waits for JoinGroups, which are parked. Commits of the old generation go
 *                        on.
 *   CompletingRebalance  all JoinGroups are answered with a new generation; SyncGroups are parked
 *                        until the leader's is in the log. No commits.
 *   Stable               everyone has an assignment.
 *   Dead                 deleted or unloaded; nothing changes any more.
 *
 * INVARIANTS  (G1) Empty and Dead have no members; Stable and CompletingRebalance have a leader
 *                  and a protocol.
 *             (G2) awaiting_join, awaiting_sync and pending_sync count the members that are so.
 *             (G3) JoinGroups are parked in PreparingRebalance (or while a replaced static
 *                  member is being written down), SyncGroups in CompletingRebalance only.
 *             (G4) protocols counts for each name the members that offer it; protocol_name is
 *                  offered by all in Stable and CompletingRebalance.
 *             (G5) static_members holds exactly the members with an instance id.
 *             (G6) the generation never goes down, and grows only when a join phase ends.
 *             (G7) every member that is not parked has a timer running.
 * CRASH       what was answered is in the log: commits, assignments, replaced static members. Who
 *             was joining is not; they join again.
 * THREADS     the executor's. */
#ifndef COORDINATOR_GROUP_H
#define COORDINATOR_GROUP_H

#include <stdatomic.h>

#include "base/executor.h"
#include "base/hmap.h"
#include "coordinator/cgroup.h"
#include "coordinator/coordinator_loads.h"
#include "coordinator/group_call.h"
#include "coordinator/group_log.h"
#include "coordinator/group_offsets.h"
#include "coordinator/group_topics.h"

enum group_state {
    GROUP_EMPTY,
    GROUP_PREPARING_REBALANCE,
    GROUP_COMPLETING_REBALANCE,
    GROUP_STABLE,
    GROUP_DEAD,
    GROUP_STATES
};

enum {
    GROUP_NEW_MEMBER_JOIN_MS = 300000, /* a new member's JoinGroup is parked for this long */
    GROUP_ID_MAX = 32767,              /* bytes of any string in a record */
    GROUP_PENDING_MAX = 100000,        /* ids handed out and not yet used; then the oldest goes */
};

struct group_config {
    int32_t min_session_ms, max_session_ms;
    int64_t initial_delay_ms;
    int32_t max_size;
    int32_t metadata_max; /* UTF-16 units of a commit's metadata */
    int64_t retention_ms;
    struct group_record_versions versions;
    struct cgroup_config consumers;
};

/* What all groups of one executor share. Borrowed by them. */
struct metadata_cache;
struct group_shard;
/* What happened, for metrics: since the start. The shard's thread has it. */
struct group_events {
    uint64_t committed, expired, deleted; /* offsets */
    uint64_t rebalances;                  /* generations that became stable */
    struct coordinator_loads loads;
};

struct group_env {
    struct executor *ex;
    struct group_log *log;
    const struct group_config *config;
    /* The cluster's topics, and a number that grows when they may have changed. For the new
     * protocol; else NULL. */
    struct metadata_cache *metadata;
    const atomic_ullong *metadata_version;
    struct group_shard *shard;   /* that has the groups; set by it, like the next */
    struct group_events *events; /* NULL: nobody counts (tests) */
};

struct group;

/* A new Empty group. Copies the id. NULL without memory. Returns owned (one reference). */
struct group *group_new(const struct group_env *env, struct str id, int32_t partition);
struct group *group_ref(struct group *g);
void group_unref(struct group *g); /* NULL is fine */

struct str group_id(const struct group *g);
enum group_state group_state(const struct group *g);
const char *group_state_name(enum group_state s);
int32_t group_generation(const struct group *g);
int group_members_n(const struct group *g);
int group_pending_n(const struct group *g); /* ids handed out */
/* The part of the new protocol; NULL = the group is not one of it. */
struct cgroup *group_consumers(const struct group *g);
/* Has it members, of either protocol? */
bool group_has_members(const struct group *g);
/* "" when the group only keeps offsets. */
struct str group_protocol_type(const struct group *g);
struct group_offsets *group_offsets(struct group *g);

/* ---- requests; each answers its call now or later ---- */
void group_join(struct group *g, struct group_call *c);
void group_sync(struct group *g, struct group_call *c);
/* These three fill in and return; the caller ends the call. */
enum kerr group_heartbeat(struct group *g, int32_t generation, struct str member,
                          struct str instance);
/* Removes one member. */
enum kerr group_leave(struct group *g, struct str member, struct str instance, struct str reason);
/* The connection of a parked call is gone. No effect when it is not parked. */
void group_call_abandon(struct group_call *c);

/* One partition of an OffsetCommit or TxnOffsetCommit. */
struct commit_item {
    struct str topic;
    int32_t partition;
    struct offset_value value;
    int16_t *error; /* in the response; nonzero already: not to be committed */
};
struct group_commit_request {
    int64_t producer_id; /* -1: not in a transaction */
    int16_t producer_epoch;
    uint64_t txn_guard;
    int version; /* of an OffsetCommit; -1 = not one */
    int32_t generation;
    struct str member, instance;
    struct commit_item *items; /* in the call's arena */
    int n;
};
void group_commit(struct group *g, struct group_call *c, const struct group_commit_request *r);
/* The producer's transaction on the group's partition ended. */
void group_txn_end(struct group *g, int64_t producer_id, bool commit);

/* ---- looking ---- */
/* NONE, or UNSTABLE_OFFSET_COMMIT. *value: borrowed until the next change; offset -1 when nothing
 * is committed. */
enum kerr group_fetch(const struct group *g, struct str topic, int32_t partition,
                      bool require_stable, struct offset_value *value);
struct describe_groups_response_group; /* generated */
/* Fills *out but for the id and the authorized operations. 0 or -ENOMEM. */
int group_describe(const struct group *g, struct arena *a,
                   struct describe_groups_response_group *out);
/* Is the topic, as far as the group knows, read by its members? true when not known. */
bool group_subscribed(const struct group *g, struct str topic);

/* ---- the end of offsets and groups; tombstones are written ---- */
/* DeleteGroups: NONE (then it is Dead), NON_EMPTY_GROUP, or GROUP_ID_NOT_FOUND for a Dead one. */
enum kerr group_delete(struct group *g);
/* OffsetDelete: the whole request's error; else each *error is set. */
struct offset_delete_item {
    struct str topic;
    int32_t partition;
    int16_t *error;
};
enum kerr group_delete_offsets(struct group *g, struct offset_delete_item *items, int n);
/* Takes away what has expired. The group is Dead afterwards when nothing of it is left. */
void group_expire_offsets(struct group *g, int64_t now_ms);
/* The partitions were deleted. As above. */
void group_forget_partitions(struct group *g, struct str topic, const int32_t *partitions, int n);

/* ---- load and unload ---- */
/* Makes the group as its record says; `g` must be new. Members without timers: group_resume starts
 * them. 0 or -ENOMEM. */
int group_restore(struct group *g, const struct group_metadata_value *v);
/* After all is loaded and the group is in force. */
void group_resume(struct group *g);
/* Another broker coordinates it now: answers all that is parked with NOT_COORDINATOR. */
void group_unload(struct group *g);

/* NULL, or which invariant does not hold. */
const char *group_check(const struct group *g);

#endif
