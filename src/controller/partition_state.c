/* partition_state.c - states of partitions.
 *
 *        NON_EXISTENT --> NEW --> ONLINE <--> OFFLINE --> NON_EXISTENT
 *                          |                    ^
 *                          +--------------------+
 *
 * NEW            its topic is known; no state node.
 * ONLINE         the state node names a leader that is live; that broker and the others were told.
 * OFFLINE        the leader is gone, nobody could be elected (yet), or it is about to be deleted.
 * NON_EXISTENT   nothing is left but an entry in memory.
 *
 * An illegal move is logged and skipped, for that partition only. */
#include "controller/controller_private.h"
#include "controller/election.h"
#include "controller/state_items.h"

#define BIT(s) (1u << (s))

static const uint8_t legal_from[PARTITION_STATES] = {
    [PARTITION_NEW] = BIT(PARTITION_NON_EXISTENT),
    [PARTITION_ONLINE] = BIT(PARTITION_NEW) | BIT(PARTITION_ONLINE) | BIT(PARTITION_OFFLINE),
    [PARTITION_OFFLINE] = BIT(PARTITION_NEW) | BIT(PARTITION_ONLINE) | BIT(PARTITION_OFFLINE),
    [PARTITION_NON_EXISTENT] = BIT(PARTITION_OFFLINE),
};

static bool may_move(struct controller *c, const struct ctl_partition *p, enum partition_state to)
{
    if (legal_from[to] & BIT(p->state))
        return true;
    say_error(c->component, "partition %.*s-%d cannot go from %s to %s", STR_ARG(p->topic->name),
              p->number, partition_state_name(p->state), partition_state_name(to));
    return false;
}

static void set_state(struct controller *c, struct ctl_partition *p, enum partition_state to)
{
    if (logline_enabled(LOGLINE_DEBUG))
        say_debug(c->component, "partition %.*s-%d %s -> %s", STR_ARG(p->topic->name), p->number,
                  partition_state_name(p->state), partition_state_name(to));
    p->state = (uint8_t)to;
}

void partitions_move(struct controller *c, const struct partition_list *l, enum partition_state to)
{
    for (int i = 0; i < l->n; i++)
        if (may_move(c, l->v[i], to))
            set_state(c, l->v[i], to);
}

bool replica_is_online(const struct controller *c, const struct ctl_partition *p, int32_t broker)
{
    const struct ctl_replica *r = context_replica(p, broker);
    return context_is_live(&c->ctx, broker) && !(r && r->dead_dir);
}

/* Electing: each partition is an item (state_items.h) that is decided by what is known of it; a
 * conflict, or nobody who could lead, reads it (again). */

static struct state_item *items_of(struct flow *f)
{
    return job_of(f)->items;
}

static void nobody(struct flow *f, struct state_item *it)
{
    const struct ctl_partition *p = it->partition;
    say_warn(controller_of(f)->component, "no replica of partition %.*s-%d can lead it",
             STR_ARG(p->topic->name), p->number);
    it->phase = STATE_OVER;
}

/* Fills what an election needs to know; the ISR is the caller's. */
static bool prepare(struct flow *f, const struct ctl_partition *p, struct election *e,
                    struct elected *out, int isr_n)
{
    int n = p->replicas_n;
    struct election_replica *r = arena_array(&f->arena, struct election_replica, (size_t)n);
    const struct controller *c = controller_of(f);
    out->isr = arena_array(&f->arena, int32_t, (size_t)(n + isr_n));
    if (!r || !out->isr) {
        flow_fail(f, -ENOMEM);
        return false;
    }
    for (int i = 0; i < n; i++) {
        const struct ctl_broker *b = context_broker(&c->ctx, p->replicas[i].broker);
        r[i] = (struct election_replica){.broker = p->replicas[i].broker,
                                         .online = !p->replicas[i].bounced &&
                                                   replica_is_online(c, p, p->replicas[i].broker),
                                         .stopping = b && b->shutting_down,
                                         .leaving = p->replicas[i].removing};
    }
    e->assignment = r;
    e->n = n;
    return true;
}

static void decide_first(struct flow *f, struct state_item *it)
{
    struct elected who;
    struct election e = {.unclean = false};
    if (!prepare(f, it->partition, &e, &who, 0))
        return;
    if (!election_first(&e, &who)) {
        nobody(f, it);
        return;
    }
    it->node = (struct partition_node){.controller_epoch = controller_of(f)->epoch,
                                       .leader = who.leader,
                                       .isr = {who.isr, who.isr_n}};
    it->phase = STATE_CREATE;
}

/* Whom an election concerns. (A broker that is not registered is told nothing in any case.) */
static bool is_told(const struct controller *c, const struct ctl_partition *p,
                    const struct ctl_replica *r, enum election_strategy how)
{
    switch (how) {
    case ELECT_REASSIGNED:
        return !r->removing;
    case ELECT_KEEP: /* those that are still to be added are told when they are */
        return !r->adding || r->state != REPLICA_NON_EXISTENT;
    case ELECT_PREFERRED:
        return true;
    case ELECT_SHUTDOWN:
        return !r->dead_dir;
    default:
        return replica_is_online(c, p, r->broker);
    }
}

/* A leader that may have lost records is not kept. */
static enum election_strategy strategy_for(struct flow *f, const struct ctl_partition *p)
{
    enum election_strategy how = job_of(f)->strategy;
    return how == ELECT_KEEP && bounced_any(p) ? ELECT_TAKEN_OVER : how;
}

/* The state is in the store: in memory now, and told to the brokers with the round. */
static void take_over(struct flow *f, struct state_item *it, int32_t epoch)
{
    struct controller *c = controller_of(f);
    struct ctl_partition *p = it->partition;
    bool is_new = p->state == PARTITION_NEW;
    enum election_strategy how = strategy_for(f, p);
    it->phase = STATE_OVER;
    if (context_set_known(p, &it->node, epoch)) {
        flow_fail(f, -ENOMEM);
        return;
    }
    if (how != ELECT_KEEP)
        set_state(c, p, PARTITION_ONLINE);
    metric_add(&c->counts.unclean, it->unclean);
    p->elected = true;
    bounced_forget(p);
    for (int i = 0; i < p->replicas_n; i++)
        if (is_new ? replica_is_online(c, p, p->replicas[i].broker)
                   : is_told(c, p, &p->replicas[i], how))
            batch_leader_and_isr(c, p->replicas[i].broker, p, is_new);
}

/* For a partition that has no leader, or may have lost it. */
static bool must_find(enum election_strategy how)
{
    return how == ELECT_OFFLINE || how == ELECT_UNCLEAN || how == ELECT_TAKEN_OVER;
}

/* sure: `now` was just read. */
static void elect(struct flow *f, struct state_item *it, const struct partition_node *now,
                  int32_t epoch, bool sure)
{
    struct controller *c = controller_of(f);
    struct ctl_partition *p = it->partition;
    struct elected who;
    struct election e = {.isr = now->isr, .leader = now->leader};
    if (!prepare(f, p, &e, &who, now->isr.n))
        return;
    enum election_strategy how = strategy_for(f, p);
    bool found = election_run(&e, how, &who);
    if (!found && !sure) { /* its leader may have written another ISR */
        it->phase = STATE_READ;
        return;
    }
    if (!found && bounced_any(p) && must_find(how)) {
        /* the others cannot, or left the ISR: then those will do */
        bounced_forget(p);
        found = prepare(f, p, &e, &who, now->isr.n) && election_run(&e, how, &who);
    }
    if (!found && must_find(how)) {
        e.unclean =
            how == ELECT_UNCLEAN || (c->o.unclean && c->o.unclean(c->o.arg, p->topic->name));
        found = e.unclean && election_run(&e, how, &who);
    }
    if (!found) {
        nobody(f, it);
        if (context_set_known(p, now, epoch)) /* what is told of it is at least what is written */
            flow_fail(f, -ENOMEM);
        return;
    }
    if (who.unclean)
        say_warn(c->component,
                 "partition %.*s-%d is led by %d, which was not in sync: data may be lost",
                 STR_ARG(p->topic->name), p->number, who.leader);
    struct partition_node node = {.controller_epoch = c->epoch,
                                  .leader = who.leader,
                                  .leader_epoch = now->leader_epoch + 1,
                                  .isr = {who.isr, who.isr_n},
                                  .recovering = now->recovering ||
                                                (who.unclean && ibp_has_recovery_state(c->o.ibp))};
    it->unclean = who.unclean;
    state_write(it, node, epoch);
}

static void elect_by_what_was_read(struct flow *f, struct state_item *it,
                                   const struct partition_node *now, int32_t epoch)
{
    elect(f, it, now, epoch, true);
}

static void sort_out(struct flow *f)
{
    struct job *j = job_of(f);
    struct state_item *items = arena_array(&f->arena, struct state_item, (size_t)j->partitions.n);
    if (!items) {
        flow_fail(f, -ENOMEM);
        return;
    }
    for (int i = 0; i < j->partitions.n && !f->error; i++) {
        struct ctl_partition *p = j->partitions.v[i];
        struct state_item *it = &items[i];
        it->partition = p;
        p->elected = false;
        if (!may_move(j->c, p, PARTITION_ONLINE))
            continue;
        if (p->state == PARTITION_NEW) {
            decide_first(f, it);
        } else if (p->known && p->controller_epoch <= j->c->epoch) {
            struct partition_node now = state_known(p);
            elect(f, it, &now, p->epoch, false);
        } else {
            it->phase = STATE_READ;
        }
    }
    j->items = items;
    j->items_n = j->partitions.n;
}

static void decide(struct flow *f)
{
    static const struct state_answers answers = {elect_by_what_was_read, take_over};
    state_take(f, &answers);
}

/* Again, until all are over. */
static void ask_states(struct flow *f)
{
    if (state_ask(f, items_of(f), job_of(f)->items_n))
        flow_goto(f, decide);
}

static void send(struct flow *f)
{
    batch_send(controller_of(f));
}

static const flow_step elect_steps[] = {sort_out, decide, ask_states, send, NULL};

void partitions_elect(struct flow *f, struct partition_list l, enum election_strategy strategy)
{
    struct job *j = l.n ? job_new(f) : NULL;
    if (!j)
        return;
    j->partitions = l;
    j->strategy = strategy;
    job_call(f, j, elect_steps);
}
