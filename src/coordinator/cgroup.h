/* cgroup.h - a group of the new protocol (KIP-848), the part of a struct group that is there when
 * it is one: who its members are, who shall read what, who reads what. The broker assigns; members
 * only say what they read and what they have let go, in heartbeats that are answered at once.
 *
 *                 first member joins              everyone has what it shall have
 *   [new] -> Empty -------------> Reconciling --------------------> Stable
 *              ^ |    (also at once Stable)  ^ |                        | |
 *              | |                           | +-----------+------------+ |
 *              | |            new assignment |             | join, leave, expiry, topics
 *              | |                           |             v              |
 *              | |                           +-------- Assigning          |
 *              | +--> Dead                                 |              |
 *              +------- last member is gone ---------------+--------------+
 *
 *   Empty        no members
 *   Assigning    the epoch has grown; the next heartbeat makes an assignment for it
 *   Reconciling  some member is not yet at the assignment's epoch, or lacks partitions
 *   Stable       all are, none does
 *   Dead         deleted, converted or unloaded
 *
 * The state follows from epochs and members after each step. A member goes its own way to its
 * target, so that no partition is read by two: what it shall not have it gives up first, what it
 * shall have it gets when its former owner has let it go.
 *
 *              target is another, and it has too much
 *   Stable ------------------------------------------> Unrevoked  (its epoch stands still)
 *      ^ \                                                  | it has given up
 *      |  \ something is another's still                    v
 *      |   +-----------------------> Unreleased <-----------+
 *      +--- all is free ----------------+ (epoch: the target's)
 *
 * INVARIANTS  (C1) no partition is owned (assigned, or to be given up) by two members; owners says
 *                  by whom, with that member's epoch.
 *             (C2) the group's epoch, the assignment's and a member's never go down, but for a
 *                  static member that is away (-2) or back (0).
 *             (C3) assignment epoch <= epoch; a member's epoch <= assignment epoch.
 *             (C4) Stable: each member has exactly its target, at the assignment's epoch.
 *             (C5) names counts the members that read each name; instances holds the static ones.
 *             (C6) each member has a session timer; Unrevoked ones a rebalance timer too.
 * CRASH       all that was answered is in the log: one step's records go out in order, so that any
 *             beginning of them is a sound state. A step that cannot be written makes the shard
 *             load the partition again.
 *
 * CLASSIC     members that came with an upgrade, or join through JoinGroup, live in it under the
 *             same rules: their JoinGroup and Heartbeat stand for heartbeats of the new kind.
 *
 * BOUNDS      who says more than fits into a record is refused (CMEMBER_SAYS_MAX); what a list of a
 *             client costs is bounded by what the group has, not by the list's length.
 *
 * THREADS     the executor's. */
#ifndef COORDINATOR_CGROUP_H
#define COORDINATOR_CGROUP_H

#include "coordinator/assignor.h"
#include "coordinator/group_call.h"
#include "coordinator/group_records.h"

enum cgroup_state {
    CGROUP_EMPTY,
    CGROUP_ASSIGNING,
    CGROUP_RECONCILING,
    CGROUP_STABLE,
    CGROUP_DEAD,
    CGROUP_STATES
};

enum { CGROUP_ASSIGNORS_MAX = 8, CGROUP_EPOCH_LEAVE = -1, CGROUP_EPOCH_AWAY = -2 };

struct cgroup_config {
    bool on;
    int32_t session_ms, heartbeat_ms;
    int32_t max_size;
    bool upgrade, downgrade;                                /* of groups with members */
    const struct assignor *assignors[CGROUP_ASSIGNORS_MAX]; /* the first is the default */
    int assignors_n;
};

struct group;
struct cgroup;

/* ---- life ---- */
/* Makes g one of the new protocol, without members. 0 or -ENOMEM. */
int cgroup_attach(struct group *g);
/* The group is one of the classic protocol, or of none, from now on. No records are written. */
void cgroup_detach(struct group *g);
/* Ends timers and members; what waits for a write is answered when that ends. */
void cgroup_unload(struct group *g);

/* ---- requests: each answers its call now or later ---- */
/* Is a ConsumerGroupHeartbeat one that may be sent at all? If not it is answered. */
bool cgroup_heartbeat_sound(const struct cgroup_config *config, struct group_call *c);
void cgroup_heartbeat(struct group *g, struct group_call *c);
void cgroup_join(struct group *g, struct group_call *c); /* JoinGroup */
void cgroup_sync(struct group *g, struct group_call *c); /* SyncGroup */
void cgroup_classic_heartbeat(struct group *g, struct group_call *c);
/* The members of a LeaveGroup, in one step; each is told. */
struct cleaving {
    struct str member, instance;
    int16_t *error;
};
void cgroup_leave(struct group *g, const struct cleaving *v, int n);

/* May this member commit, or fetch, at this epoch? `version`: of an OffsetCommit, else -1. */
enum kerr cgroup_check_epoch(const struct group *g, struct str member, int32_t epoch, int version);

/* ---- other groups become one, and back ---- */
/* Makes a group without members one of the new protocol; a record of the classic one is buried. 0
 * or -ENOMEM. */
int cgroup_replace_empty(struct group *g);
/* May the members of this classic group become members of the new kind? */
bool cgroup_can_upgrade(const struct group *g);
/* Makes them so. 0, -ENOMEM, or -EBADMSG when what they said cannot be read: nothing is changed. */
int cgroup_upgrade(struct group *g);
/* The other way: the group, which has no members, is of no protocol. Tombstones are written. */
void cgroup_end(struct group *g);

/* ---- looking ---- */
enum cgroup_state cgroup_state(const struct cgroup *cg);
const char *cgroup_state_name(enum cgroup_state s);
int cgroup_members_n(const struct cgroup *cg);
int32_t cgroup_epoch(const struct cgroup *cg);
bool cgroup_subscribed(const struct cgroup *cg, struct str topic);
/* The keys of all its records, in the order of their tombstones. */
void cgroup_each_key(const struct cgroup *cg,
                     void (*each)(void *arg, enum cgroup_key kind, struct str member), void *arg);
struct consumer_group_describe_response_group; /* generated */
void cgroup_describe(const struct group *g, struct arena *a,
                     struct consumer_group_describe_response_group *out);

/* ---- load ---- */
struct cgroup_saved; /* what the log says of one group */
struct cgroup_saved *cgroup_saved_new(void);
void cgroup_saved_free(struct cgroup_saved *s); /* NULL is fine */
/* The next record; value null = tombstone. 0; -EBADMSG, -ENOTSUP: cannot be read, nothing changed;
 * or -ENOMEM. */
int cgroup_saved_add(struct cgroup_saved *s, const struct group_key *k, struct bytes value,
                     struct arena *scratch);
/* Nothing is left of it? */
bool cgroup_saved_empty(const struct cgroup_saved *s);
/* Is there such a group? Else there are but scraps. */
bool cgroup_saved_exists(const struct cgroup_saved *s);
/* Makes g what was saved; 0 or -ENOMEM. Timers start with cgroup_resume. */
int cgroup_restore(struct group *g, const struct cgroup_saved *s, struct arena *scratch);
void cgroup_resume(struct group *g);

/* NULL, or which invariant does not hold. */
const char *cgroup_check(const struct cgroup *cg);

#endif
