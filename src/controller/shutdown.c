/* shutdown.c - a broker asks to be relieved before it stops: what it leads gets other leaders,
 * where it follows it leaves the ISR. It stays registered and hears of everything until it is gone,
 * but is elected nowhere and joins no ISR. */
#include "controller/controller_private.h"
#include "protocol/msg/controlled_shutdown.h"

static const struct controlled_shutdown_request *request_of(const struct job *j)
{
    return j->call->request;
}

static void refuse(struct flow *f, enum kerr e)
{
    struct controlled_shutdown_response *r = job_of(f)->call->response;
    r->error_code = (int16_t)e;
    call_answer(f);
    flow_end(f);
}

/* Has it somebody to hand over to? */
static bool is_replicated(const struct ctl_partition *p)
{
    return p->known && p->replicas_n > 1 && !p->topic->deleting;
}

static void relieve(struct flow *f)
{
    struct job *j = job_of(f);
    int32_t id = request_of(j)->broker_id;
    int64_t epoch = request_of(j)->broker_epoch;
    struct ctl_broker *b = context_broker(&j->c->ctx, id);
    if (!b) {
        refuse(f, KERR_BROKER_NOT_AVAILABLE);
        return;
    }
    if (epoch != -1 && epoch < b->epoch) {
        refuse(f, KERR_STALE_BROKER_EPOCH);
        return;
    }
    say_info(j->c->component, "broker %d is about to stop", id);
    b->shutting_down = true;
    hmap_each (h, &j->c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n; i++) {
            struct ctl_partition *p = t->partitions[i];
            struct ctl_replica *r = context_replica(p, id);
            if (!r || !is_replicated(p))
                continue;
            if (p->leader == id)
                job_add_partition(f, &j->partitions, p);
            else
                job_add_replica(f, &j->replicas, p, r);
        }
    }
    partitions_elect(f, j->partitions, ELECT_SHUTDOWN);
}

static void stop_following(struct flow *f)
{
    replicas_go_offline(f, job_of(f)->replicas);
}

static void answer(struct flow *f)
{
    struct job *j = job_of(f);
    struct controlled_shutdown_response *r = j->call->response;
    r->remaining_partitions.v =
        controlled_shutdown_response_remaining_partition_new(j->call->arena, j->partitions.n);
    r->remaining_partitions.n = 0;
    for (int i = 0; r->remaining_partitions.v && i < j->partitions.n; i++) {
        const struct ctl_partition *p = j->partitions.v[i];
        if (p->leader != request_of(j)->broker_id)
            continue;
        struct controlled_shutdown_response_remaining_partition *out =
            &r->remaining_partitions.v[r->remaining_partitions.n++];
        out->topic_name = arena_str(j->call->arena, p->topic->name);
        out->partition_index = p->number;
    }
    call_answer(f);
}

static const flow_step shutdown_steps[] = {relieve, stop_following, answer, NULL};
const struct event_kind event_controlled_shutdown = {"ControlledShutdown", shutdown_steps, true,
                                                     false, CONTROLLER_CONTROLLED_SHUTDOWN};
