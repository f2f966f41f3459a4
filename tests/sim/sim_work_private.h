/* sim_work_private.h - what the parts of the clients' work share. */
#ifndef TESTS_SIM_SIM_WORK_PRIVATE_H
#define TESTS_SIM_SIM_WORK_PRIVATE_H

#include "sim_client.h"
#include "sim_work.h"

enum { TOPICS_MAX = 6, PARTITIONS_MAX = 8, IDS_MAX = 4096 };

struct topic {
    char name[16];
    int partitions;
    bool there, deleting, unclean;
    bool transactional; /* written in transactions, too; never deleted */
    int generation;     /* changes when its name comes to stand for another topic */
};

struct work {
    struct topic topics[TOPICS_MAX];
    int topics_n;
    int64_t produce_ms;
    bool ending, may_delete;
    int running;
    struct sim_work_counts counts;
    int64_t ids[IDS_MAX];
    size_t ids_n;
};
extern struct work work;

struct topic *work_topic(void); /* any */
void work_pause(void);
bool work_is_retriable(int code);
/* Fibers: arg is nothing, the group's number, a struct member. */
void *work_administer(void *arg);
void *work_commit(void *arg);
void *work_member(void *arg);
/* The error that the answer names. */
int work_create_topic(struct client *c, struct topic *t, int broker);
/* Where the next fetch goes on; *code: the error, or -1 without an answer. */
int64_t work_fetch(struct client *c, int leader, const struct topic *t, int32_t partition,
                   int64_t from, int *code);
int work_coordinator(struct client *c, const char *group); /* -1: none known */
/* The same by what the key is: 0 a group, 1 a transactional id. */
int work_coordinator_of(struct client *c, const char *key, int8_t key_type);
/* Notes an id that was given out: it must be a new one. */
void work_note_producer_id(int64_t id);
void work_begin(const char *name, void *(*run)(void *), void *arg);
/* Committed offsets, -1 where there are none. The error, or -1 without an answer. */
int work_committed(struct client *c, int coordinator, const char *group, const char *topic,
                   const int32_t *partitions, int n, bool stable, int64_t *out);
/* Is this its coordinator by the store? The epoch; -1. One that was deposed and does not know it
 * yet may answer with what was committed before. */
int32_t work_coordinates(const char *group, int broker);

/* ---- groups with members (sim_member.c) ---- */
enum { MEMBERS_MAX = 4 };
struct membership;
enum group_kind { GROUP_CLASSIC, GROUP_MODERN /* KIP-848 */, GROUP_MIXED };
struct membership *membership_new(const char *group, int members, bool fixed, enum group_kind kind);
struct member *membership_member(struct membership *g, int number);

/* ---- transactions (sim_txn.c, sim_txn_reader.c) ---- */
/* Seats: transactional ids, whose producers write into this topic. */
void work_begin_transactions(int seats, struct topic *t);
int work_transactions_running(void);
void *work_read_committed(void *topic); /* a fiber: reads, and judges at the end */

#endif
