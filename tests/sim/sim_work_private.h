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
    int generation; /* changes when its name comes to stand for another topic */
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
/* Fibers: arg is nothing, or the group's number. */
void *work_administer(void *arg);
void *work_commit(void *arg);
/* The error that the answer names. */
int work_create_topic(struct client *c, struct topic *t, int broker);

#endif
