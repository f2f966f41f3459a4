/* controller_counts.c - see controller_counts.h. */
#include "controller/controller_counts.h"

#include <stdlib.h>

#include "controller/controller_private.h"

static int64_t now_ns(const struct controller *c)
{
    return clock_mono_ns(c->o.ex->clock);
}

static uint64_t us_since(const struct job *j, int64_t now)
{
    return now > j->since_ns ? (uint64_t)(now - j->since_ns) / 1000 : 0;
}

void count_begun(struct job *j)
{
    struct controller_counts *n = &j->c->counts;
    int64_t now = now_ns(j->c);
    histogram_add(&n->waited_us, us_since(j, now));
    j->since_ns = now;
    atomic_store(&n->working_on, (int)j->kind->work);
}

/* The event for one topic is the same as that for all. */
static enum controller_work work_of(const struct job *j)
{
    return j->kind == &event_unclean && j->topic.len > 0 ? CONTROLLER_TOPIC_UNCLEAN_ENABLE
                                                         : j->kind->work;
}

void count_over(const struct job *j)
{
    struct controller_counts *n = &j->c->counts;
    histogram_add(&n->took_us[work_of(j)], us_since(j, now_ns(j->c)));
    atomic_store(&n->working_on, CONTROLLER_IDLE);
}

const struct controller_counts *controller_counts(const struct controller *c)
{
    return &c->counts;
}

/* ---- a look ---- */

static void look_at_topic(struct controller_look *l, const struct ctl_topic *t)
{
    if (!t->deleting)
        return;
    l->topics_to_delete++;
    l->topics_ineligible += t->ineligible;
    if (t->ineligible) /* those that were tried again are offline until their broker is back */
        l->replicas_ineligible +=
            t->replicas_in[REPLICA_DELETION_INELIGIBLE] + t->replicas_in[REPLICA_OFFLINE];
    for (int s = 0; s < REPLICA_STATES; s++)
        if (s != REPLICA_DELETION_SUCCESSFUL)
            l->replicas_to_delete += t->replicas_in[s];
}

static void look_at_broker(struct controller_queue *q, const struct ctl_broker *b)
{
    const struct histogram *waited = NULL;
    q->broker = b->id;
    if (b->channel && b->channel->waiting)
        q->waiting = b->channel->waiting(b->channel, &waited);
    if (waited)
        tally_add(&q->waited, waited);
}

static void look(struct task *t)
{
    struct controller_look *l = container_of(t, struct controller_look, task);
    const struct context *x = &l->c->ctx;
    list_each (at, &l->c->queue)
        l->events++;
    hmap_each (node, &x->topics)
        look_at_topic(l, hmap_entry(node, struct ctl_topic, node));
    l->queues = x->brokers_n ? calloc((size_t)x->brokers_n, sizeof(*l->queues)) : NULL;
    l->queues_n = l->queues ? x->brokers_n : 0;
    for (int i = 0; i < l->queues_n; i++)
        look_at_broker(&l->queues[i], x->brokers[i]);
    l->done(l);
}

void controller_look(struct controller *c, struct controller_look *l)
{
    *l = (struct controller_look){.done = l->done, .c = c};
    task_init(&l->task, look);
    executor_post(c->o.ex, &l->task);
}
