/* bounced.c - brokers that were killed and are back before anybody noticed, as a new controller
 * finds: they are in the ISRs, and lead, still, but what they had not flushed may be gone (a power
 * cut). Who was registered after the state had been written is such a one; it is passed over, and
 * leaves the ISR, while another in sync did not bounce.
 *
 * That other one must be able to lead: its log dir may have failed, which a new controller does not
 * know. So those that are in doubt are told nothing at first, lest they lead what they have lost;
 * the others are told what they know already, and their answers name the dirs that failed. Who has
 * answered so, or is gone, is waited for no longer. */
#include "controller/controller_private.h"

static bool has_bounced(const struct controller *c, int32_t broker, int64_t written)
{
    const struct ctl_broker *b = context_broker(&c->ctx, broker);
    return b && b->epoch > written;
}

void bounced_note(const struct controller *c, struct ctl_partition *p, int64_t written)
{
    bool other = false;
    for (int i = 0; i < p->isr.n; i++)
        other |= context_is_live(&c->ctx, p->isr.v[i]) && !has_bounced(c, p->isr.v[i], written);
    for (int i = 0; other && i < p->replicas_n; i++)
        p->replicas[i].bounced = id_list_has(p->isr, p->replicas[i].broker) &&
                                 has_bounced(c, p->replicas[i].broker, written);
}

bool bounced_any(const struct ctl_partition *p)
{
    bool any = false;
    for (int i = 0; i < p->replicas_n; i++)
        any |= p->replicas[i].bounced;
    return any;
}

void bounced_forget(struct ctl_partition *p)
{
    for (int i = 0; i < p->replicas_n; i++)
        p->replicas[i].bounced = false;
}

/* Is there one in sync that has not said yet whether it can lead? */
static bool waits(const struct controller *c, const struct ctl_partition *p)
{
    for (int i = 0; i < p->isr.n; i++) {
        const struct ctl_replica *r = context_replica(p, p->isr.v[i]);
        const struct ctl_broker *b = context_broker(&c->ctx, p->isr.v[i]);
        if (r && !r->bounced && b && b->channel && !b->dirs_known)
            return true;
    }
    return false;
}

/* job.broker: who has answered; -1: others may be gone */
static void settle(struct flow *f)
{
    struct job *j = job_of(f);
    struct controller *c = j->c;
    struct ctl_broker *b = context_broker(&c->ctx, j->broker);
    if (b && b->epoch == j->broker_epoch)
        b->dirs_known = true;
    c->some_bounced = false;
    hmap_each (h, &c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n && !t->deleting; i++) {
            struct ctl_partition *p = t->partitions[i];
            if (!bounced_any(p))
                continue;
            if (waits(c, p))
                c->some_bounced = true;
            else
                job_add_partition(f, &j->partitions, p);
        }
    }
    partitions_elect(f, j->partitions, ELECT_TAKEN_OVER);
}

static const flow_step bounced_steps[] = {settle, NULL};
const struct event_kind event_bounced = {"Bounced", bounced_steps, true, false,
                                         CONTROLLER_BROKER_CHANGE};

void bounced_look(struct controller *c, int32_t broker, int64_t broker_epoch)
{
    struct job *j = c->some_bounced ? controller_event(c, &event_bounced) : NULL;
    if (!j)
        return;
    j->broker = broker;
    j->broker_epoch = broker_epoch;
}
