/* cgroup_private.h - the insides of a group of the new protocol, for the cgroup_*.c files.
 *
 *   cgroup.c            life, states, facts, descriptions
 *   cgroup_members.c    members: made, removed, what they read and own
 *   cgroup_topics.c     the topics that are read, as the cluster has them; the assignment
 *   cgroup_reconcile.c  one member's next move towards its target
 *   cgroup_owned.c      what a member says that it owns
 *   cgroup_heartbeat.c  ConsumerGroupHeartbeat;  cgroup_leave.c  leaving, fencing, timers
 *   cgroup_classic.c    members that speak the classic protocol
 *   cgroup_convert.c    upgrade and downgrade
 *   cgroup_step.c       one step's records on their way into the log, and answers behind them
 *   cgroup_records.c    the records;  cgroup_restore.c  load */
#ifndef COORDINATOR_CGROUP_PRIVATE_H
#define COORDINATOR_CGROUP_PRIVATE_H

#include "coordinator/cgroup.h"
#include "coordinator/group_private.h"
#include "coordinator/topic_regex.h"
#include "metadata/metadata_cache.h"

/* What a member says of itself goes into one record, which must fit into a batch of
 * __consumer_offsets (1 MiB unless set otherwise): who says more is refused before anything has
 * changed, since a change that cannot be written costs a load of the whole partition. */
enum { CMEMBER_SAYS_MAX = 900 << 10 };

/* Names in order, each once. Owned, in one block. */
struct cnames {
    struct str *v;
    int n;
};

enum cmember_state { /* as the record has it */
                     CMEMBER_STABLE = 0,
                     CMEMBER_UNREVOKED = 1,
                     CMEMBER_UNRELEASED = 2,
                     CMEMBER_UNKNOWN = 127,
};

struct cmember {
    struct hnode by_id, by_instance;
    struct list link; /* in order of id, as Java has it */
    struct cgroup *cg;
    /* Owned; null when there is none. */
    struct str id, instance, rack, client_id, client_host, assignor, regex;
    struct cnames names;    /* that it subscribes to one by one */
    struct cregex *pattern; /* of regex; NULL = none */
    struct cnames reads;    /* both together; counted in the group's names */
    int32_t rebalance_ms;
    int32_t epoch, previous_epoch;
    enum cmember_state state;
    struct part_set assigned, revoking, target;
    struct timer session, rebalance;
    int32_t rebalance_epoch; /* at which the rebalance timer was started */
    uint64_t rights;         /* group_call's, when the assignment was told last */
    /* Of members that speak the classic protocol. */
    bool classic;
    int32_t session_ms;
    struct member_protocol *protocols; /* one block with their bytes */
    int protocols_n;
    struct timer join, sync; /* how long its JoinGroup, its SyncGroup may take */
};

struct cregex { /* a pattern that some members subscribe to */
    struct hnode node;
    struct str text; /* behind the struct */
    struct topic_regex *compiled;
    struct cnames matched;
    int members;
    bool changed; /* by the last look */
};

struct cname { /* a name that some members read */
    struct hnode node;
    struct str name; /* behind the struct */
    int members;
    int place; /* in topics; -1 = no such topic */
};

enum { COWNER_PARTITIONS = 64 };
struct cowner { /* who owns these partitions of a topic, some of which are owned */
    struct hnode node;
    struct part page;                  /* topic, and partition / COWNER_PARTITIONS */
    int32_t epochs[COWNER_PARTITIONS]; /* -1 = free */
    int owned;
};

struct ctopics {            /* those of the names that exist; in order of name */
    struct assign_topic *v; /* names behind the array */
    int n;
    const struct assign_topic **ids; /* in order of id */
    struct buf record;               /* the same as record 4 has it, racks too */
};

struct cgroup {
    struct group *g;
    enum cgroup_state state;
    int32_t epoch, assignment_epoch;
    struct hmap members, instances;
    struct list member_list;
    int classic_n;
    struct hmap protocols; /* protocol_counts.h: what the classic ones offer */
    struct hmap names;     /* of struct cname */
    struct hmap regexes;   /* of struct cregex */
    struct hmap owners;    /* of struct cowner */
    struct ctopics topics;
    unsigned long long metadata_seen; /* env's metadata_version at the last look */
    bool refresh;                     /* look at the next heartbeat, whatever the version */
    struct list writes;               /* of struct cwrite, oldest first */
};

static inline const struct cgroup_config *cgroup_config(const struct cgroup *cg)
{
    return &cg->g->env->config->consumers;
}

/* ---- cgroup_step.c ---- */
/* The records of one step, gathered while it is made. */
struct cstep {
    struct cgroup *cg;
    struct buf bytes; /* keys and values, one behind the other */
    struct buf ends;  /* struct cstep_end each */
    int n;
    bool failed;    /* memory, or something that has no record */
    bool downgrade; /* only members of the classic protocol are left: it becomes theirs */
};
struct cstep_end {
    size_t key, value; /* ends in bytes; equal = tombstone */
};
void cstep_begin(struct cstep *s, struct cgroup *cg);
/* Notes the state that came of it, writes the records and answers the call (NULL = none) when they,
 * and those of earlier steps, are in the log: with its response as it stands, or with an error. */
void cstep_end(struct cstep *s, struct group_call *c);

/* ---- cgroup_records.c ---- */
void cstep_put_epoch(struct cstep *s);
/* Of more topics than fit into a record it is written without any: they are looked up anew after a
 * load, which costs an epoch. */
enum { CTOPICS_RECORD_MAX = 900 << 10 };
void cstep_put_topics(struct cstep *s);
void cstep_put_member(struct cstep *s, const struct cmember *m);
void cstep_put_target_epoch(struct cstep *s);
void cstep_put_target(struct cstep *s, const struct cmember *m);
void cstep_put_current(struct cstep *s, const struct cmember *m);
/* Tombstones of current assignment, target and member. */
void cstep_bury_member(struct cstep *s, struct str id);
void cstep_bury(struct cstep *s, enum cgroup_key kind, struct str member);
/* Of the group's record of the classic protocol; and that record. */
void cstep_bury_classic(struct cstep *s);
void cstep_put_classic(struct cstep *s, const struct group *g);

/* ---- cgroup.c ---- */
/* Finds the state anew. The only writer of state, but for its end. */
void cgroup_settle(struct cgroup *cg, const char *why);
void cgroup_set_state(struct cgroup *cg, enum cgroup_state to, const char *why);

/* ---- cgroup_members.c ---- */
void cnames_free(struct cnames *n);
/* Copies, in order, each once. 0 or -ENOMEM. */
int cnames_make(struct cnames *out, const struct str *v, int n);
bool cnames_equal(const struct cnames *a, const struct cnames *b);
/* A new value for an owned text; 0 or -ENOMEM. */
int cgroup_set_str(struct str *at, struct str s);

struct cmember *cgroup_find(const struct cgroup *cg, struct str id);
struct cmember *cgroup_find_instance(const struct cgroup *cg, struct str instance);
/* At epoch 0, reads and owns nothing. Copies. NULL without memory. */
struct cmember *cgroup_add(struct cgroup *cg, struct str id, struct str instance);
/* Out of the group and freed; no records. */
void cgroup_drop(struct cgroup *cg, struct cmember *m);
/* Takes *names in any case. 0 or -ENOMEM. */
int cmember_set_names(struct cmember *m, struct cnames *names);
/* The pattern must be sound; null or empty = none. What it matches is seen by the next look. 0 or
 * -ENOMEM. */
int cmember_set_regex(struct cmember *m, struct str regex);
/* Reckons anew what the member reads. 1 = something else than before, 0, -ENOMEM. */
int cmember_read(struct cmember *m);
/* Takes the protocols (one block) in any case; NULL: it speaks the new protocol. 0 or -ENOMEM: then
 * it is as before. */
int cmember_set_classic(struct cmember *m, struct member_protocol *protocols, int n,
                        int32_t session_ms);
/* Takes both sets; m->epoch must be right already. 0 or -ENOMEM: then owners are not right. */
int cmember_own(struct cmember *m, struct part_set *assigned, struct part_set *revoking);
/* Epoch of the owner, -1 = free. */
int32_t cgroup_owner(const struct cgroup *cg, const struct part *p);
/* The member under another id, at epoch 0. NULL without memory. */
struct cmember *cgroup_replace(struct cgroup *cg, struct cmember *old, struct str id);
const struct cname *cgroup_find_name(const struct cgroup *cg, struct str name);

/* ---- cgroup_topics.c ---- */
void ctopics_free(struct ctopics *t);
/* NULL: the group knows no such topic. */
const struct assign_topic *ctopics_find(const struct ctopics *t, struct uuid id);
/* Looks the names up in the cluster's metadata. 1 = something is different now, 0, -ENOMEM. */
int cgroup_look_up(struct cgroup *cg);
/* Must it be done before the next assignment? */
bool cgroup_is_stale(const struct cgroup *cg);
/* Takes over topics as a record has them; puts v in order. 0 or -ENOMEM. */
struct consumer_group_partition_metadata_value; /* generated */
int ctopics_take(struct cgroup *cg, struct consumer_group_partition_metadata_value *v);
/* Makes targets for the epoch that is. 0 or -ENOMEM. */
int cgroup_assign(struct cgroup *cg, struct cstep *s);
const struct assignor *cgroup_assignor(const struct cgroup *cg);

/* ---- cgroup_reconcile.c ---- */
/* One move of m towards its target; `owned`: what it says it has, NULL = nothing said.
 * 1 = moved, 0 = not, -ENOMEM. */
int cmember_reconcile(struct cmember *m, const struct part_set *owned);

/* ---- cgroup_owned.c ---- */
/* What a member says that it owns, as far as it is its own: gathered from a list of any length, in
 * steps that its own partitions bound. */
struct cowned {
    const struct cmember *m;
    struct part_set parts; /* of those assigned to it or to be given up */
    bool *has;             /* by place among the assigned, then those to be given up */
    int left;              /* how many more it may name, before it is taken to have them all */
    bool strange;          /* it named something else, or something twice */
    int looks;             /* partitions that were looked for */
};
/* 0 or -ENOMEM; to be freed in both cases. */
int cowned_begin(struct cowned *o, const struct cmember *m);
/* It has these too. false: it has named more than it can own, there is no need to go on. */
bool cowned_say(struct cowned *o, struct uuid topic, const int32_t *partitions, int32_t n);
/* All is said: `parts` is right now. 0 or -ENOMEM. */
int cowned_end(struct cowned *o);
void cowned_free(struct cowned *o);

/* ---- cgroup_heartbeat.c ---- */
/* What a join or a heartbeat of either kind has to say, and what becomes of it. */
struct cbeat {
    struct cmember *m;
    const struct part_set *owned; /* NULL = nothing said */
    bool joined;                  /* m is new in the group */
    bool changed;                 /* its record is to be written */
    bool resubscribed;            /* it reads something else */
};
struct cbeat_said { /* null, -1: as before */
    struct str client_id, client_host, rack, assignor, regex;
    int32_t rebalance_ms;
    const struct str *names;
    int names_n;
};
/* Takes over what a member says. 0 or -ENOMEM. */
int cbeat_say(struct cbeat *b, const struct cbeat_said *said);
/* A static member is another process, under another id. NONE, or an error and the step has failed.
 */
enum kerr cgroup_take_over(struct cgroup *cg, struct cstep *s, struct cmember *m, struct str id);
/* From the change of a member to its next move: topics, epoch, assignment, reconciliation. 0 or
 * -ENOMEM. */
int cgroup_advance(struct cgroup *cg, struct cstep *s, struct cbeat *b);

/* ---- cgroup_leave.c ---- */
void cmember_init_timers(struct cmember *m);
void cmember_stop_timers(struct cmember *m);
void cmember_touch(struct cmember *m);
/* The rebalance timer as the member's state wants it. */
void cmember_watch(struct cmember *m);
void cmember_expect_join(struct cmember *m); /* unless it is expected already */
void cmember_expect_sync(struct cmember *m);
void cmember_expect_nothing(struct cmember *m); /* of the two */
/* Takes the member out: records, epoch, and perhaps the downgrade. */
void cgroup_remove(struct cgroup *cg, struct cstep *s, struct cmember *m, const char *why);
/* The same of several in one step: of each its records, and when all are out what follows from it.
 * was_new: one of them spoke the new protocol. */
void cgroup_take_out(struct cgroup *cg, struct cstep *s, struct cmember *m, const char *why);
void cgroup_taken_out(struct cgroup *cg, struct cstep *s, bool was_new);
/* A static member goes for a while (-2). */
void cgroup_part(struct cgroup *cg, struct cstep *s, struct cmember *m);

/* ---- cgroup_classic.c ---- */
/* Reads a member's subscription. 0, -EBADMSG, -ENOMEM. What it gives is in the arena. */
struct consumer_protocol_subscription;
int csubscription_decode(struct bytes b, struct arena *a,
                         struct consumer_protocol_subscription *out, int *version);
/* Bytes of a member's assignment as the classic protocol has them, in the arena; null without
 * memory. */
struct bytes cassignment_encode(const struct cgroup *cg, const struct part_set *parts, int version,
                                struct arena *a);
int cmember_protocol_version(const struct cmember *m);

/* ---- cgroup_convert.c ---- */
/* Would the group be of classic members only, and may it become one of theirs? */
bool cgroup_can_downgrade(const struct cgroup *cg);
/* Makes the classic members beside the new ones, and the records of the change. */
void cgroup_downgrade(struct cgroup *cg, struct cstep *s);
/* The records are on their way: g->consumers goes, and the members are asked to join again. */
void cgroup_downgraded(struct group *g);

#endif
