/* topic_admin.c - what the calls of topic_admin.h share, and deletion, which only leaves a mark.
 * Creation is in topic_create.c, growth in topic_grow.c. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/logline.h"
#include "controller/topic_admin_private.h"
#include "metadata/paths.h"

static const char component[] = "TopicAdmin";

int topic_admin_new(const struct topic_admin_options *o, struct topic_admin **out)
{
    struct topic_admin *t = *out = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->o = *o;
    t->random = o->seed;
    while (!t->random && getrandom(&t->random, sizeof(t->random), 0) < 0)
        ;
    topic_names_init(&t->names);
    return 0;
}

void topic_admin_free(struct topic_admin *t)
{
    if (!t)
        return;
    topic_names_free(&t->names);
    free(t);
}

bool admin_permitted(const struct topic_permit *permit, bool *permitted, int32_t partitions)
{
    if (permit && !*permitted)
        *permitted = permit->take(permit->arg, partitions);
    return !permit || *permitted;
}

/* splitmix64 */
int admin_random(struct topic_admin *t, int n)
{
    uint64_t z = t->random += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (int)((z ^ z >> 31) % (uint64_t)n);
}

void admin_refuse(enum kerr *error, char **message, enum kerr code, const char *fmt, ...)
{
    va_list ap;
    if (*error)
        return;
    *error = code;
    va_start(ap, fmt);
    if (vasprintf(message, fmt, ap) < 0)
        *message = NULL;
    va_end(ap);
}

struct assign_broker *admin_brokers(struct topic_admin *t, struct arena *a, int *n)
{
    const struct metadata_snapshot *s = metadata_acquire(t->o.metadata);
    const struct broker_info *b;
    *n = metadata_brokers(s, &b);
    struct assign_broker *out = arena_array(a, struct assign_broker, (size_t)*n);
    for (int i = 0; out && i < *n; i++)
        out[i] = (struct assign_broker){b[i].id, arena_str(a, b[i].rack)};
    metadata_release(s);
    return out;
}

enum kerr admin_store_error(int status)
{
    say_warn(component, "the metadata store answers: %s", strerror(-status));
    if (status == -ESTALE) /* and with the session its reign is over: try the next one */
        return KERR_NOT_CONTROLLER;
    return status == -ETIMEDOUT ? KERR_REQUEST_TIMED_OUT : KERR_UNKNOWN_SERVER_ERROR;
}

static void call_done(struct task *task)
{
    struct admin_call *c = container_of(task, struct admin_call, done_task);
    void (*done)(void *arg) = c->done;
    void *arg = c->arg;
    free(c);
    done(arg);
}

static void flow_over(struct flow *f)
{
    struct admin_call *c = call_of(f);
    if (f->error)
        c->no_store(c, admin_store_error(f->error));
    task_init(&c->done_task, call_done);
    executor_post(c->done_on, &c->done_task);
}

void admin_call_start(struct topic_admin *t, struct admin_call *c, const flow_step *steps)
{
    c->admin = t;
    c->flow.limit_ms = t->o.limit_ms;
    flow_start(&c->flow, t->o.store, t->o.ex, steps, flow_over);
}

/* Deletion. */

struct delete_call {
    struct admin_call call;
    struct topic_deletion *topics;
    int n;
};

static struct delete_call *delete_of(struct flow *f)
{
    return container_of(call_of(f), struct delete_call, call);
}

static void leave_marks(struct flow *f)
{
    struct delete_call *d = delete_of(f);
    const struct metadata_snapshot *s = metadata_acquire(d->call.admin->o.metadata);
    for (int i = 0; i < d->n; i++) {
        struct topic_deletion *t = &d->topics[i];
        if (t->error)
            continue;
        if (!metadata_topic(s, t->name)) {
            t->error = KERR_UNKNOWN_TOPIC_OR_PARTITION;
            continue;
        }
        char *path = path_delete_topic(&f->arena, t->name);
        struct store_request *r =
            path ? store_batch_add(flow_ask(f), store_op_create(path, BYTES_NULL, 0)) : NULL;
        if (r)
            r->user = t;
        else
            flow_fail(f, -ENOMEM);
    }
    metadata_release(s);
}

static void look_at_marks(struct flow *f)
{
    store_batch_each (r, flow_answers(f)) {
        struct topic_deletion *t = r->user;
        if (r->status && r->status != -EEXIST)
            t->error = admin_store_error(r->status);
    }
}

static const flow_step delete_steps[] = {leave_marks, look_at_marks, NULL};

static void refuse_deletions(struct topic_deletion *topics, int n, enum kerr error)
{
    for (int i = 0; i < n; i++)
        if (!topics[i].error)
            topics[i].error = error;
}

static void delete_no_store(struct admin_call *c, enum kerr error)
{
    struct delete_call *d = container_of(c, struct delete_call, call);
    refuse_deletions(d->topics, d->n, error);
}

void topic_admin_delete(struct topic_admin *t, struct topic_deletion *topics, int n,
                        struct executor *done_on, void (*done)(void *arg), void *arg)
{
    struct delete_call *d = calloc(1, sizeof(*d));
    if (!d) {
        refuse_deletions(topics, n, KERR_UNKNOWN_SERVER_ERROR);
        done(arg);
        return;
    }
    *d = (struct delete_call){
        .call = {.done_on = done_on, .done = done, .arg = arg, .no_store = delete_no_store},
        .topics = topics,
        .n = n};
    admin_call_start(t, &d->call, delete_steps);
}
