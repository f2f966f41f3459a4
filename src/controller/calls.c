/* calls.c - requests to the controller: from any thread into the queue, and the answer back. */
#include <stdlib.h>

#include "controller/controller_private.h"
#include "protocol/api.h"

static const struct {
    int16_t api_key;
    const struct event_kind *event;
    enum kerr refused; /* when there is no controller to ask */
} kinds[] = {
    {API_ALTER_PARTITION, &event_alter_partition, KERR_NOT_CONTROLLER},
    {API_CONTROLLED_SHUTDOWN, &event_controlled_shutdown, KERR_STALE_CONTROLLER_EPOCH},
    {API_ELECT_LEADERS, &event_elect_leaders, KERR_NOT_CONTROLLER},
    {API_ALTER_PARTITION_REASSIGNMENTS, &event_reassign, KERR_NOT_CONTROLLER},
    {API_LIST_PARTITION_REASSIGNMENTS, &event_list_moves, KERR_NOT_CONTROLLER},
    {API_ALLOCATE_PRODUCER_IDS, &event_allocate_producer_ids, KERR_NOT_CONTROLLER},
};
enum { KINDS_N = sizeof(kinds) / sizeof(*kinds) };

static int kind_of(const struct controller_call *call)
{
    for (int i = 0; i < KINDS_N; i++)
        if (kinds[i].api_key == call->api_key)
            return i;
    return -1;
}

static void done(struct task *t)
{
    struct controller_call *call = container_of(t, struct controller_call, task);
    call->done(call);
}

static void answer(struct controller_call *call)
{
    if (call->refused == KERR_NONE && call->arena->exhausted)
        call->refused = KERR_UNKNOWN_SERVER_ERROR;
    task_init(&call->task, done);
    executor_post(call->done_on, &call->task);
}

void call_answer(struct flow *f)
{
    struct job *j = job_of(f);
    struct controller_call *call = j->call;
    j->call = NULL;
    if (call)
        answer(call);
}

void call_refuse(struct job *j)
{
    struct controller_call *call = j->call;
    j->call = NULL;
    if (!call)
        return;
    int kind = kind_of(call);
    call->refused = kind < 0 ? KERR_UNKNOWN_SERVER_ERROR : kinds[kind].refused;
    answer(call);
}

static void begin(struct task *t)
{
    struct controller_call *call = container_of(t, struct controller_call, task);
    int kind = kind_of(call);
    struct job *j = kind < 0 ? NULL : controller_event(call->c, kinds[kind].event);
    struct job none = {.call = call};
    if (j)
        j->call = call;
    else
        call_refuse(&none);
}

void controller_call(struct controller *c, struct controller_call *call)
{
    call->c = c;
    call->refused = KERR_NONE;
    task_init(&call->task, begin);
    executor_post(c->o.ex, &call->task);
}

struct ctl_broker *call_broker(struct controller *c, int32_t id, int64_t epoch)
{
    struct ctl_broker *b = context_broker(&c->ctx, id);
    return b && b->epoch == epoch ? b : NULL;
}

/* ---- what needs no answer ---- */

struct unclean_notice {
    struct task task;
    struct controller *c;
    struct str topic; /* owned */
};

static void unclean_allowed(struct task *t)
{
    struct unclean_notice *n = container_of(t, struct unclean_notice, task);
    struct job *j = controller_event(n->c, &event_unclean);
    if (j)
        j->topic = arena_str(&j->inputs, n->topic);
    free((char *)n->topic.p);
    free(n);
}

void controller_unclean_allowed(struct controller *c, struct str topic)
{
    struct unclean_notice *n = calloc(1, sizeof(*n));
    if (!n)
        return; /* the next loss or return of a broker elects as well */
    n->c = c;
    n->topic = (struct str){str_dup(topic), topic.len};
    task_init(&n->task, unclean_allowed);
    executor_post(c->o.ex, &n->task);
}
