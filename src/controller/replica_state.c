/* replica_state.c - states of replicas.
 *
 *   NON_EXISTENT -> NEW -> ONLINE <-> OFFLINE -> DELETION_STARTED -> DELETION_SUCCESSFUL
 *        ^                   ^          |  ^            |                     |
 *        |                   |          v  |            v                     |
 *        |                   +--- DELETION_INELIGIBLE <-+                     |
 *        +--------------------------------------------------------------------+
 *
 * NEW                  assigned; told only if the partition has a leader already.
 * ONLINE               leads or follows, as told by LeaderAndIsr.
 * OFFLINE              was told to stop (if it can hear) and is out of the ISR, unless alone in it.
 * DELETION_STARTED     was told to delete; its answer decides between the next two.
 * DELETION_SUCCESSFUL  its folder is gone.
 * DELETION_INELIGIBLE  its broker is gone or could not delete; its topic waits.
 * NON_EXISTENT         not assigned any more.
 *
 * An illegal move is logged and skipped, for that replica only. */
#include <stdlib.h>

#include "controller/controller_private.h"
#include "controller/state_items.h"

#define BIT(s) (1u << (s))

static const uint8_t legal_from[REPLICA_STATES] = {
    [REPLICA_NEW] = BIT(REPLICA_NON_EXISTENT),
    [REPLICA_ONLINE] = BIT(REPLICA_NEW) | BIT(REPLICA_ONLINE) | BIT(REPLICA_OFFLINE) |
                       BIT(REPLICA_DELETION_INELIGIBLE),
    [REPLICA_OFFLINE] = BIT(REPLICA_NEW) | BIT(REPLICA_ONLINE) | BIT(REPLICA_OFFLINE) |
                        BIT(REPLICA_DELETION_INELIGIBLE),
    [REPLICA_DELETION_STARTED] = BIT(REPLICA_OFFLINE),
    [REPLICA_DELETION_SUCCESSFUL] = BIT(REPLICA_DELETION_STARTED),
    [REPLICA_DELETION_INELIGIBLE] = BIT(REPLICA_OFFLINE) | BIT(REPLICA_DELETION_STARTED),
    [REPLICA_NON_EXISTENT] = BIT(REPLICA_DELETION_SUCCESSFUL),
};

static bool may_move(struct controller *c, struct ctl_replica_ref r, enum replica_state to)
{
    if (legal_from[to] & BIT(r.replica->state))
        return true;
    say_error(c->component, "replica %d of partition %.*s-%d cannot go from %s to %s",
              r.replica->broker, STR_ARG(r.partition->topic->name), r.partition->number,
              replica_state_name(r.replica->state), replica_state_name(to));
    return false;
}

static void set_state(struct controller *c, struct ctl_replica_ref r, enum replica_state to)
{
    if (logline_enabled(LOGLINE_DEBUG))
        say_debug(c->component, "replica %d of partition %.*s-%d %s -> %s", r.replica->broker,
                  STR_ARG(r.partition->topic->name), r.partition->number,
                  replica_state_name(r.replica->state), replica_state_name(to));
    context_set_replica(r.partition, r.replica, to);
}

/* false: the move is not to be made. */
static bool act(struct controller *c, struct ctl_replica_ref r, enum replica_state to)
{
    struct ctl_partition *p = r.partition;
    int32_t id = r.replica->broker;
    switch (to) {
    case REPLICA_NEW:
        if (p->known && p->leader == id) {
            say_error(c->component, "replica %d of %.*s-%d cannot be new: it leads", id,
                      STR_ARG(p->topic->name), p->number);
            return false;
        }
        if (p->known)
            batch_leader_and_isr(c, id, p, true);
        return true;
    case REPLICA_ONLINE:
        if (r.replica->state != REPLICA_NEW && p->known)
            batch_leader_and_isr(c, id, p, false);
        return true;
    case REPLICA_DELETION_STARTED:
        batch_stop(c, id, p, true);
        return true;
    default:
        return true;
    }
}

void replicas_move(struct controller *c, const struct replica_list *l, enum replica_state to)
{
    for (int i = 0; i < l->n; i++)
        if (may_move(c, l->v[i], to) && act(c, l->v[i], to))
            set_state(c, l->v[i], to);
    batch_send(c);
}

/* Going offline: broker by broker, since taking two replicas out of one ISR takes two writes. Each
 * replica is an item (state_items.h) that is decided by what is known of its partition; a conflict,
 * or nothing to write, reads it (again). */

static struct state_item *items_of(struct flow *f)
{
    return job_of(f)->items;
}

static int by_broker(const void *a, const void *b)
{
    const struct state_item *x = a, *y = b;
    int32_t i = x->replica->broker, k = y->replica->broker;
    if (i != k)
        return i < k ? -1 : 1;
    const struct ctl_partition *p = x->partition, *q = y->partition;
    if (p->topic != q->topic)
        return p->topic->order < q->topic->order ? -1 : 1;
    return (p->number > q->number) - (p->number < q->number);
}

static void sort_out(struct flow *f)
{
    struct job *j = job_of(f);
    struct state_item *items = arena_array(&f->arena, struct state_item, (size_t)j->replicas.n);
    if (!items) {
        flow_fail(f, -ENOMEM);
        return;
    }
    for (int i = 0; i < j->replicas.n; i++)
        if (may_move(j->c, j->replicas.v[i], REPLICA_OFFLINE))
            items[j->items_n++] = (struct state_item){.partition = j->replicas.v[i].partition,
                                                      .replica = j->replicas.v[i].replica,
                                                      .phase = STATE_KNOWN};
    if (j->items_n)
        qsort(items, (size_t)j->items_n, sizeof(*items), by_broker);
    j->items = items;
    j->at = 0;
}

/* End of the items of the broker that is worked on. */
static int group_end(struct flow *f)
{
    struct job *j = job_of(f);
    int end = j->at;
    while (end < j->items_n &&
           items_of(f)[end].replica->broker == items_of(f)[j->at].replica->broker)
        end++;
    return end;
}

static void stop_them(struct flow *f)
{
    struct job *j = job_of(f);
    for (int i = 0; i < j->items_n; i++)
        batch_stop(j->c, items_of(f)[i].replica->broker, items_of(f)[i].partition, false);
}

/* All brokers are told what the store holds, who has one of the other replicas only if that is
 * news: the others know it, or will. */
static void tell_others(struct flow *f, struct state_item *it, const struct partition_node *node,
                        int32_t epoch, bool written)
{
    struct controller *c = controller_of(f);
    struct ctl_partition *p = it->partition;
    it->phase = STATE_OVER;
    if (context_set_known(p, node, epoch)) {
        flow_fail(f, -ENOMEM);
        return;
    }
    if (p->topic->deleting)
        return;
    batch_metadata(c, p); /* also when there are no others */
    for (int i = 0; i < p->replicas_n && written; i++)
        if (p->replicas[i].broker != it->replica->broker)
            batch_leader_and_isr(c, p->replicas[i].broker, p, false);
}

/* Out of the ISR, unless it would be empty; nobody leads if it did. */
static void take_out(struct flow *f, struct state_item *it, const struct partition_node *now,
                     int32_t epoch)
{
    int32_t id = it->replica->broker;
    struct partition_node node = *now;
    node.controller_epoch = controller_of(f)->epoch;
    node.leader_epoch++;
    if (now->leader == id)
        node.leader = -1;
    if (now->isr.n > 1) {
        int32_t *left = arena_array(&f->arena, int32_t, (size_t)now->isr.n);
        node.isr = (struct id_list){left, 0};
        for (int i = 0; left && i < now->isr.n; i++)
            if (now->isr.v[i] != id)
                left[node.isr.n++] = now->isr.v[i];
        if (!left)
            flow_fail(f, -ENOMEM);
    }
    state_write(it, node, epoch);
}

static void decide_by_what_is_known(struct flow *f, struct state_item *it)
{
    const struct controller *c = controller_of(f);
    struct ctl_partition *p = it->partition;
    struct partition_node now = state_known(p);
    bool gone = !context_broker(&c->ctx, it->replica->broker);
    if (!p->known) {
        batch_metadata(job_of(f)->c, p);
        it->phase = STATE_OVER;
    } else if (id_list_has(p->isr, it->replica->broker)) {
        take_out(f, it, &now, p->epoch);
    } else if (gone && p->controller_epoch == c->epoch) {
        tell_others(f, it, &now, p->epoch, false); /* taken out by an election of ours */
    } else {                                       /* its leader may have taken it in */
        it->phase = STATE_READ;
    }
}

/* An epoch that is news was written by us, and the answer lost: nobody has been told of it yet. */
static void decide_by_what_was_read(struct flow *f, struct state_item *it,
                                    const struct partition_node *now, int32_t epoch)
{
    if (id_list_has(now->isr, it->replica->broker))
        take_out(f, it, now, epoch);
    else
        tell_others(f, it, now, epoch, now->leader_epoch > it->partition->leader_epoch);
}

static void out_is_written(struct flow *f, struct state_item *it, int32_t epoch)
{
    tell_others(f, it, &it->node, epoch, true);
}

static void begin_group(struct flow *f)
{
    int end = group_end(f);
    for (int i = job_of(f)->at; i < end && !f->error; i++)
        decide_by_what_is_known(f, &items_of(f)[i]);
}

static void decide(struct flow *f)
{
    static const struct state_answers answers = {decide_by_what_was_read, out_is_written};
    state_take(f, &answers);
}

/* Again, until all of the group are over; then the next. */
static void ask_states(struct flow *f)
{
    struct job *j = job_of(f);
    int end = group_end(f);
    if (state_ask(f, items_of(f) + j->at, end - j->at)) {
        flow_goto(f, decide);
        return;
    }
    for (int i = j->at; i < end; i++) {
        const struct state_item *it = &items_of(f)[i];
        set_state(j->c, (struct ctl_replica_ref){it->partition, it->replica}, REPLICA_OFFLINE);
    }
    j->at = end;
    if (j->at < j->items_n)
        flow_goto(f, begin_group);
}

static void send(struct flow *f)
{
    batch_send(controller_of(f));
}

static const flow_step offline_steps[] = {sort_out,   stop_them, begin_group, decide,
                                          ask_states, send,      NULL};

void replicas_go_offline(struct flow *f, struct replica_list l)
{
    struct job *j = l.n ? job_new(f) : NULL;
    if (!j)
        return;
    j->replicas = l;
    job_call(f, j, offline_steps);
}
