/* sim_member.h - what members of groups share, whichever protocol they speak in this life:
 *   sim_member.c          life, records, commits, moods, the end
 *   sim_member_classic.c  JoinGroup, SyncGroup, Heartbeat, LeaveGroup
 *   sim_member_modern.c   ConsumerGroupHeartbeat (KIP-848) */
#ifndef TESTS_SIM_SIM_MEMBER_H
#define TESTS_SIM_SIM_MEMBER_H

#include "sim_history.h"
#include "sim_tenure.h"
#include "sim_work_private.h"

enum { SESSION_MS = 6000, REBALANCE_MS = 4000 };
enum { GONE = -2 }; /* it crashed, or left */

struct share { /* a partition that it has */
    int32_t partition;
    bool leaving; /* it shall give it up */
    bool found;   /* knows where to begin */
    int64_t at, committed;
    uint64_t tenure;
};

/* What it would commit of a time that is over. */
struct late {
    char id[96];
    bool modern;
    int32_t generation; /* 0: nothing */
    uint64_t token;
    struct share share;
};

struct member {
    struct membership *g;
    struct client *c;
    int number;
    bool modern; /* in this life */
    char id[96], instance[32];
    int coordinator;    /* -1 unknown */
    int32_t generation; /* or its epoch; 0 or -1: none */
    struct share own[PARTITIONS_MAX];
    int n;
    int64_t beat; /* the last one's time */
    bool settled;
    struct late late;
    /* Of the last request to its coordinator: is its answer that of the coordinator in force, and
     * until when must what it has stay its own? */
    bool in_force;
    int64_t sure_until;
    /* Classic. */
    uint64_t token; /* of the leader's assignment; 0: the broker's */
    bool leads;
    int shared; /* partitions that were shared out */
    /* Modern. */
    int16_t version;
    bool says_all, moved; /* in its next heartbeat: all, what it has */
};

struct membership {
    char name[32];
    enum group_kind kind;
    struct topic *topic;
    struct history *history; /* of generations: in classic groups */
    struct tenures *tenures;
    struct member members[MEMBERS_MAX];
    int n, running;
    bool over;
};

struct str member_instance(const struct member *m);
/* A request to its coordinator. 0 and the answer in the arena, or -errno. */
int member_ask(struct member *m, int16_t api_key, int version, const void *request, struct arena *a,
               const void **answer);
/* How many partitions its topic has, by the store. */
int member_partitions(const struct member *m);
/* It has this one from now on, or goes on having what it is not to give up. */
void member_gain(struct member *m, int32_t partition);
void member_goes_on(struct member *m);
/* It lets go; keeps something to be said too late. */
void member_lose(struct member *m, int i);
void member_lose_all(struct member *m);
/* Committed offsets of what is new to it. The error; 0. */
int member_find_positions(struct member *m);
/* Processes some records, commits; may crash. The error, or GONE; 0. */
int member_turn(struct member *m);
/* Notes whether it has all that it can have, and takes a breath. */
void member_rest(struct member *m, int code);

/* One after another until something goes wrong, which they return; or until the group is over. */
int classic_life(struct member *m);
int modern_life(struct member *m);
void classic_leave(struct member *m);
void modern_leave(struct member *m);

#endif
