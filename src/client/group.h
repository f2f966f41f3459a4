/* group.h - a consumer as a member of a group: classic protocol, or group.protocol=consumer.
 *
 *            poll: commit, revoke            answer; leader: assign       answer
 *   OUT ------------------------> JOINING ------------------> SYNCING -----------> ASSIGNED
 *    ^                             ^                    (leader: ASSIGNING first)     | poll:
 * assign | put out, left               | poll: rebalance, commit, revoke                  v
 *    +-----------------------------+------------------------------------------------ STABLE
 *
 * STATES   OUT: no member, or one that must begin anew; what is still assigned is lost. JOINING:
 *          JoinGroup due or under way. ASSIGNING: this member leads and waits for the metadata of
 *          the group's topics. SYNCING: SyncGroup under way. ASSIGNED: the new assignment waits for
 *          poll. STABLE: poll has applied it.
 *
 * WHO      What calls the application (revoke, assign) happens in poll, on the user's thread; the
 *          network's side, heartbeats and assignors run on the background thread (group_run), so
 *          that a member stays alive while its application works, for max.poll.interval.ms.
 *
 * STALE    `round` rises with each JoinGroup and whenever the membership is given up; an answer to
 *          a request of another round changes nothing.
 *
 * LOCK     the consumer's, for everything but what is marked. */
#ifndef CLIENT_GROUP_H
#define CLIENT_GROUP_H

#include "base/arena.h"
#include "client/assignor.h"
#include "client/coordinator.h"

struct kafka_consumer;

enum group_state {
    GROUP_OUT,
    GROUP_JOINING,
    GROUP_ASSIGNING,
    GROUP_SYNCING,
    GROUP_ASSIGNED,
    GROUP_STABLE,
};

struct group_round { /* what the leader works on, background thread; the user reads none of it */
    struct arena mem;
    kafka_group_member_t *members;
    size_t members_n;
    const char **topics; /* of all members, sorted */
    size_t topics_n;
    bool skip; /* the group has its assignment: only watch the topics */
};

struct id_partition {
    struct uuid topic;
    int32_t partition;
};

struct watched_topic {
    char *name;
    int32_t partitions;
    uint64_t racks; /* of its replicas, when this member has one; else 0 */
};

struct group {
    struct kafka_consumer *c;
    /* settings */
    const char *id, *instance_id;
    int32_t session_timeout_ms;
    int64_t heartbeat_ms, max_poll_ms, auto_commit_ms;
    bool auto_commit, leave_on_close, cooperative;
    bool modern;                 /* group.protocol=consumer */
    const char *remote_assignor; /* NULL: the broker's default */
    kafka_assignor_t *assignors; /* in the order of preference */
    size_t assignors_n;

    /* background thread */
    struct coordinator coordinator;
    struct timer timer;
    struct task task;
    struct group_round leading;
    bool beating;        /* a heartbeat is under way */
    bool joining;        /* a JoinGroup or SyncGroup is */
    int64_t beat_due_ms; /* next heartbeat */
    int64_t beat_ok_ms;  /* when the last good answer came */
    int64_t retry_at_ms; /* no request before */
    int attempts;
    bool closing;

    enum group_state state;
    uint64_t round;
    char *member_id; /* never NULL; "" without one */
    int32_t generation;
    const kafka_assignor_t *chosen; /* of this generation */
    bool leader;
    struct watched_topic *watched; /* leader: what the assignment was made from */
    size_t watched_n;
    bool rejoin;       /* the next poll begins a rebalance */
    char reason[128];  /* why, for the broker's log */
    kafka_err_t fatal; /* for the next poll */
    char fatal_text[256];
    kafka_partition_list_t *next; /* ASSIGNED: what this member got */
    uint64_t next_number;         /* rises with each */
    kafka_partition_list_t *had;  /* sticky: the last assignment, and its generation */
    int32_t had_generation;
    bool run_posted;
    bool in_poll;
    int64_t last_poll_ms;

    /* consumer protocol */
    bool say_all; /* the next heartbeat names everything */
    bool say_now; /* and does not wait for its time */
    bool say_owned;
    struct arena target_mem;
    struct id_partition *target; /* as the broker gave it; NULL: none that waits for topic names */
    size_t target_n;

    /* the rebalance that poll prepares */
    bool preparing;                /* partitions are about to be revoked: they are at rest */
    struct commit *prepare_commit; /* under way */
    int64_t auto_commit_due_ms;
    bool forget_coordinator; /* it has been silent for too long */
    int leaving;             /* LeaveGroups under way */
    struct list commits;     /* struct commit, in the order of the calls */
};

const char *group_state_name(enum group_state state);

/* group.c */
/* NULL with a line in err. Needs the consumer's conf and cluster. */
struct group *group_new(struct kafka_consumer *c, char *err, size_t err_n);
/* After the background thread has ended. NULL is fine. */
void group_free(struct group *g);
/* The only writer of `state`. Lock held. */
void group_set_state(struct group *g, enum group_state state);
/* Let the background thread look. Lock held. */
void group_wake(struct group *g);
/* The membership is over: generation, and the member id unless keep_id, are gone. Lock held. */
void group_reset(struct group *g, bool keep_id);
void group_want_rejoin(struct group *g, const char *reason);
/* The next poll returns this. Lock held. */
void group_fail(struct group *g, kafka_err_t err, const char *what);
/* Is it a member with a generation, so that it may commit? Lock held. */
bool group_is_member(const struct group *g);

/* group_run.c: the background thread. */
void group_init_background(struct group *g);
void group_run(struct group *g);         /* lock held; sends what is due */
void group_on_metadata(struct group *g); /* lock held */
void group_stop(struct group *g);
/* LeaveGroup, not waited for. @thread any, lock held */
void group_leave(struct group *g, const char *reason);

/* group_modern.c: background thread, lock held. */
/* Sends the heartbeat that is due; when to look again. */
int64_t group_modern_run(struct group *g, int64_t now_ms);
/* Names of topics may have come. */
void group_modern_resolve(struct group *g);
/* @thread any: the heartbeat that leaves; false: nothing to leave, or no memory. */
bool group_modern_leave(struct group *g);
void group_left(struct group *g); /* one of group.leaving has ended; takes the lock */

/* group_join.c: background thread, lock held. */
void group_join(struct group *g);
void group_try_assign(struct group *g);
/* group_join_metadata.c: what this member tells each assignor. */
struct join_group_request;
bool group_fill_join(struct group *g, struct arena *a, struct join_group_request *req);
/* What the leader was told. */
struct join_group_response;
bool group_begin_leading(struct group *g, const struct join_group_response *m);
/* group_assign.c: the leader's assignment as SyncGroup carries it. */
struct sync_group_request;
bool group_topics_known(struct group *g);
kafka_err_t group_fill_assignments(struct group *g, struct arena *a,
                                   struct sync_group_request *req);
bool group_watched_changed(struct group *g);

/* group_poll.c: the user's thread, lock held (let go around callbacks). */
kafka_err_t group_poll(struct kafka_consumer *c);
/* When poll has something to do by itself, at the latest. */
int64_t group_due_ms(struct kafka_consumer *c);
/* Gives all up: listener, LeaveGroup. */
void group_give_up(struct kafka_consumer *c, const char *reason);

/* commit.c */
/* Runs callbacks of commits that are done, in their order. User's thread, lock held. */
void commits_run_callbacks(struct kafka_consumer *c);
/* Commits all positions; NULL when there are none, or without memory. Lock held. */
struct commit *commit_positions(struct kafka_consumer *c, int64_t timeout_ms, bool once);
/* Of the automatic kind: what went wrong becomes a log line. */
void commit_auto(struct kafka_consumer *c);
/* Its outcome is its caller's, who drops it in the end. */
void commit_hold(struct commit *m);
bool commit_is_done(const struct commit *m, kafka_err_t *err);
/* No longer looked at by its caller. */
void commit_drop(struct kafka_consumer *c, struct commit *m);
/* Waits for it until then; drops it. Lock held. */
kafka_err_t commit_await(struct kafka_consumer *c, struct commit *m, int64_t deadline_ms);
void commits_await_all(struct kafka_consumer *c, int64_t deadline_ms);
void commits_free(struct group *g);

#endif
