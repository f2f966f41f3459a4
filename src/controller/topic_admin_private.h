/* topic_admin_private.h - what the three calls of topic_admin.h share.
 * THREADS  the executor's. */
#ifndef CONTROLLER_TOPIC_ADMIN_PRIVATE_H
#define CONTROLLER_TOPIC_ADMIN_PRIVATE_H

#include "controller/topic_admin.h"
#include "controller/topic_names.h"
#include "metadata/assignment.h"
#include "metadata/flow.h"

struct topic_admin {
    struct topic_admin_options o;
    /* The executor's. */
    struct topic_names names;
    uint64_t random; /* state of the generator */
};

/* One call under way; head of each kind's own struct, which is one malloc'ed block. */
struct admin_call {
    struct flow flow;
    struct topic_admin *admin;
    bool validate_only;
    struct task done_task;
    struct executor *done_on;
    void (*done)(void *arg);
    void *arg;
    /* The flow failed: sets the error where there is none. */
    void (*no_store)(struct admin_call *c, enum kerr error);
};
static inline struct admin_call *call_of(struct flow *f)
{
    return container_of(f, struct admin_call, flow);
}

/* `c` was calloc'ed; done, done_on, arg, no_store are set. Posts done after the last step. */
void admin_call_start(struct topic_admin *t, struct admin_call *c, const flow_step *steps);
/* What a failure at the store is to a client. */
enum kerr admin_store_error(int status);
/* Once a topic: *permitted says whether it was asked. */
bool admin_permitted(const struct topic_permit *permit, bool *permitted, int32_t partitions);
/* 0 .. n-1 */
int admin_random(struct topic_admin *t, int n);
/* Sets *error, and *message (malloc'ed; left NULL without memory) unless there is one already. */
void admin_refuse(enum kerr *error, char **message, enum kerr code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The live brokers, by id. NULL without memory; texts are copied. */
struct assign_broker *admin_brokers(struct topic_admin *t, struct arena *a, int *n);

#endif
