/* group_private.h - the insides of a group, for the group_*.c files.
 *
 *   group.c            life, states, the protocols that members offer, descriptions
 *   group_members.c    members and pending ids: added, removed, their timers and parked answers
 *   group_rebalance.c  the join phase from its start to the new generation, and the sync timer
 *   group_join.c       JoinGroup;  group_sync.c  SyncGroup and what it stores
 *   group_commit.c     commits;  group_cleanup.c  expiry and deletion;  group_restore.c  load */
#ifndef COORDINATOR_GROUP_PRIVATE_H
#define COORDINATOR_GROUP_PRIVATE_H

#include "coordinator/group.h"
#include "coordinator/protocol_counts.h"

#define GROUP_TAG "GroupCoordinator"

/* What a member said of itself in its last JoinGroup. All owned. */
struct member_profile {
    struct member_protocol *protocols; /* as given, duplicates too; one block with their bytes */
    int protocols_n;
    int32_t session_ms, rebalance_ms;
    struct str client_id, client_host;
};

struct member {
    struct hnode by_id, by_instance;
    struct list link; /* group.member_list, in order of joining */
    struct group *group;
    struct str id, instance; /* owned; instance null = dynamic */
    struct member_profile own;
    struct bytes assignment;        /* owned; len 0 = none */
    struct timer timer;             /* its session; of a new member: the wait of its JoinGroup */
    struct group_call *join, *sync; /* parked */
    bool is_new;                    /* its first JoinGroup is not answered yet */
    bool id_untold;    /* nor does it know its id: nobody but that JoinGroup's sender can be it */
    bool pending_sync; /* has not sent its SyncGroup of this generation */
};

/* An id that was handed out with MEMBER_ID_REQUIRED. */
struct pending_member {
    struct hnode node;
    struct list link; /* oldest first */
    struct group *group;
    struct timer timer;
    struct str id; /* behind the struct */
};

struct group {
    struct hnode node; /* these two are the shard's */
    struct list link;
    const struct group_env *env;
    int refs;
    struct str id; /* owned */
    int32_t partition;

    enum group_state state;
    int64_t state_ms; /* wall; -1 unknown (loaded from an old record) */
    int32_t generation;
    char *protocol_type; /* NULL: only keeps offsets */
    char *protocol_name; /* NULL: none chosen */

    struct hmap members, static_members;
    struct list member_list;
    struct member *leader; /* NULL without members */
    bool unshared;         /* its record names no leader: group_resume has it shared out */
    struct hmap pending;
    struct list pending_list;
    struct hmap protocols; /* protocol_counts.h */
    int awaiting_join, awaiting_sync, pending_sync;

    struct timer join_timer; /* PreparingRebalance */
    bool initial;            /* it is the delay of an empty group: no early end */
    bool member_added;       /* since that delay began */
    int64_t initial_ms, initial_left_ms;
    struct timer sync_timer; /* CompletingRebalance, Stable: while someone has not synced */
    bool storing;            /* the leader's assignment of this generation is being written */

    bool subscribed_known;
    struct group_topics subscribed;

    struct group_offsets offsets;

    struct cgroup *consumers; /* the part of the new protocol; NULL = it is none */
};

/* ---- group.c ---- */
/* The only writer of state. `why` is for the log. */
void group_set_state(struct group *g, enum group_state to, const char *why);
static inline bool group_is(const struct group *g, enum group_state s)
{
    return g->state == s;
}
static inline int64_t group_wall_ms(const struct group *g)
{
    return clock_wall_ms(g->env->ex->clock);
}
/* A new value for an owned text; 0 or -ENOMEM. */
int group_set_text(char **at, struct str s);
/* Counts a member's protocols in; on -ENOMEM nothing is counted. And out. */
int group_count_protocols(struct group *g, const struct member_profile *p);
void group_uncount_protocols(struct group *g, const struct member_profile *p);
/* Could someone with these protocols be a member? */
struct join_group_request_protocol;
bool group_supports(const struct group *g, struct str type,
                    const struct join_group_request_protocol *protocols, int32_t n);
/* Back to a group of no protocol: members are answered `error`, ids forgotten, no records. */
void group_dissolve(struct group *g, enum kerr error);
/* The same of a group without members: generation, protocol and ids. */
void group_forget_classic(struct group *g);
/* What the next generation would use; null without members. Borrowed from a member. */
struct str group_select_protocol(struct group *g);
void group_find_subscribed(struct group *g);
/* The member's metadata for the protocol in use; empty when it has none. */
struct bytes member_metadata(const struct member *m, struct str protocol);

/* ---- group_members.c ---- */
struct member *group_find_member(const struct group *g, struct str id);
struct member *group_find_instance(const struct group *g, struct str instance);
/* NONE, FENCED_INSTANCE_ID or UNKNOWN_MEMBER_ID, and the member. */
enum kerr group_identify(const struct group *g, struct str id, struct str instance,
                         struct member **out);
/* "<client or instance id>-<uuid>". Returns owned; null without memory. */
struct str group_make_member_id(struct str client_id, struct str instance);
struct join_group_request;
/* From a JoinGroup. 0 or -ENOMEM; to be freed in both cases. */
int member_profile_make(struct member_profile *p, const struct group_call *c);
void member_profile_free(struct member_profile *p);
/* Part of no group yet. Takes id and profile in any case. NULL without memory. */
struct member *member_new(struct str id, struct str instance, struct member_profile *p);
void member_free(struct member *m); /* NULL is fine */
/* Gives the member *p; *p is its former profile then. 0, or -ENOMEM and nothing has changed. */
int member_swap_profile(struct member *m, struct member_profile *p);
bool member_matches(const struct member *m, const struct join_group_request *in);
/* Puts m into the group, as its leader when it is the first. 0 or -ENOMEM. */
int group_put_member(struct group *g, struct member *m);
/* Takes m out, ends its timer, answers what is parked with `error`, frees it. Nothing follows from
 * it: group_remove_member is this and the consequences. */
void group_drop_member(struct group *g, struct member *m, enum kerr error);
void group_remove_member(struct group *g, struct member *m, const char *why);
/* Fixes the id after a static member was replaced by another instance. 0 or -ENOMEM. */
int group_rename_member(struct group *g, struct member *m, struct str id);
/* (Re)starts the time within which the member must be heard. */
void member_touch(struct member *m);
void group_set_leader(struct group *g, struct member *m);
/* The first by order of joining, of those with a parked JoinGroup; NULL = none. */
struct member *group_first_joined(const struct group *g);

void group_park_join(struct member *m, struct group_call *c);
void group_park_sync(struct member *m, struct group_call *c);
/* Takes the parked call off; NULL when there is none. */
struct group_call *group_unpark_join(struct member *m);
struct group_call *group_unpark_sync(struct member *m);
void group_synced(struct group *g, struct member *m);

struct pending_member *group_find_pending(const struct group *g, struct str id);
/* 0 or -ENOMEM. */
int group_add_pending(struct group *g, struct str id, int32_t session_ms);
void group_drop_pending(struct group *g, struct pending_member *p);

/* ---- answers ---- */
/* A JoinGroup's refusal; `id` is the member id that it tells. */
void group_answer_join_error(struct group_call *c, enum kerr error, struct str id);
/* The group's present generation, as `m` sees it. */
struct join_view {
    struct str leader;
    bool with_members, skip_assignment;
};
void group_answer_join(struct group_call *c, const struct group *g, const struct member *m,
                       const struct join_view *v);
/* with_members for the leader, the leader as it is. */
void group_answer_joined(struct group_call *c, const struct group *g, const struct member *m);
void group_answer_sync(struct group_call *c, const struct group *g, const struct member *m,
                       enum kerr error);

/* ---- group_rebalance.c ---- */
/* Starts a join phase when the state allows. */
void group_rebalance(struct group *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* PreparingRebalance: ends the join phase if nobody is missing. Elsewhere: nothing. */
void group_try_complete_join(struct group *g);
void group_init_timers(struct group *g);
/* Stops what runs in the background of a rebalance. */
void group_stop_timers(struct group *g);

/* ---- group_restore.c ---- */
/* A member as the call (protocols, timeouts, client) and the rest describe it, unless there is one
 * of that name. 0 or -ENOMEM. */
int group_restore_member(struct group *g, const struct group_call *c, struct str id,
                         struct str instance, struct bytes assignment);
/* The members are those of a Stable generation of "consumer"s. 0 or -ENOMEM. */
int group_restore_stable(struct group *g, int32_t generation);

/* ---- group_sync.c ---- */
/* The group's record. 0, -EINVAL when it does not fit the version, or -ENOMEM. */
int group_encode_record(const struct group *g, struct buf *key, struct buf *value);
/* Drops all assignments and answers the parked SyncGroups with the error. */
void group_fail_syncs(struct group *g, enum kerr error);
/* The group's record on its way into the log, as the group was when it was begun. */
struct group_store {
    struct group_append append;
    struct group *group; /* one reference */
    int32_t generation;
    /* Later, never from inside group_store; the error is mapped for clients. Frees s. */
    void (*stored)(struct group_store *s, enum kerr error);
};
/* Fill in `stored`. */
void group_store(struct group *g, struct group_store *s);
void group_store_end(struct group_store *s); /* for `stored`: lets go of the group */

#endif
