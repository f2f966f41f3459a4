/* broker_change.c - brokers that come, go, come back with a new epoch, or change their endpoints.
 */
#include <stdlib.h>

#include "controller/controller_private.h"

static void read_node_later(struct controller *c, const struct ctl_broker *b)
{
    struct job *j = controller_event(c, &event_broker_modified);
    if (j)
        j->broker = b->id;
}

static void node_changed(struct store_watch *w)
{
    struct ctl_broker *b = container_of(w, struct ctl_broker, watch);
    read_node_later(b->owner, b);
}

void broker_begin(struct controller *c, struct ctl_broker *b)
{
    b->owner = c;
    b->channel = c->o.channel(c->o.arg, &b->info);
    if (!b->channel)
        say_error(c->component, "broker %d cannot be reached", b->id);
    controller_watch_on(c, &b->watch, b->path, false, node_changed);
    b->watched = true;
    read_node_later(c, b); /* arms the watch, and finds what has changed since it was read */
}

void broker_end(struct controller *c, struct ctl_broker *b)
{
    if (b->watched)
        store_unwatch(c->o.store, &b->watch);
    if (b->channel)
        b->channel->close(b->channel);
    context_remove_broker(&c->ctx, b);
}

/* Brokers that came: they learn everything, the others learn of them; their replicas go online, and
 * partitions nobody could lead are tried again. job.ids */

static bool is_one_of(const struct job *j, int32_t broker)
{
    for (int i = 0; i < j->ids_n; i++)
        if (j->ids[i] == broker)
            return true;
    return false;
}

/* What was known of their log dirs belongs to their last life. */
static void forget_dirs(struct job *j)
{
    hmap_each (h, &j->c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n; i++)
            for (int k = 0; k < t->partitions[i]->replicas_n; k++)
                if (is_one_of(j, t->partitions[i]->replicas[k].broker))
                    t->partitions[i]->replicas[k].dead_dir = false;
    }
}

static void gather(struct flow *f)
{
    struct job *j = job_of(f);
    forget_dirs(j);
    hmap_each (h, &j->c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        bool here = false;
        for (int i = 0; i < t->partitions_n; i++)
            for (int k = 0; k < t->partitions[i]->replicas_n; k++)
                if (is_one_of(j, t->partitions[i]->replicas[k].broker)) {
                    here = true;
                    if (!t->deleting)
                        job_add_replica(f, &j->replicas, t->partitions[i],
                                        &t->partitions[i]->replicas[k]);
                }
        if (here && t->deleting)
            job_add_topic(f, &j->topics, t);
    }
}

static void tell_of_arrival(struct flow *f)
{
    struct job *j = job_of(f);
    struct controller *c = j->c;
    for (int i = 0; i < c->ctx.brokers_n; i++) /* those that were there only need the broker list */
        if (!is_one_of(j, c->ctx.brokers[i]->id))
            batch_metadata_to(c, c->ctx.brokers[i]->id);
    batch_send(c);
    hmap_each (h, &c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n; i++)
            batch_metadata(c, t->partitions[i]);
    }
    c->metadata_to_all = false;
    for (int i = 0; i < j->ids_n; i++)
        batch_metadata_to(c, j->ids[i]);
    batch_send(c);
    c->asks_dirs = true; /* it may enter an ISR whose others have bounced (bounced.c) */
    replicas_move(c, &j->replicas, REPLICA_ONLINE);
    c->asks_dirs = false;
}

static void elect_leaderless(struct flow *f)
{
    struct job *j = job_of(f);
    hmap_each (h, &j->c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n && !t->deleting; i++) {
            struct ctl_partition *p = t->partitions[i];
            if (p->state == PARTITION_NEW || p->state == PARTITION_OFFLINE)
                job_add_partition(f, &j->partitions, p);
        }
    }
    partitions_elect(f, j->partitions, ELECT_OFFLINE);
}

/* A target that waited for one of them may be in sync. */
static void complete_moves(struct flow *f)
{
    struct partition_list l = {NULL, 0, 0};
    hmap_each (h, &job_of(f)->c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n && t->moving; i++)
            job_add_partition(f, &l, t->partitions[i]);
    }
    moves_complete(f, &l);
}

static void resume_deletions(struct flow *f)
{
    struct job *j = job_of(f);
    for (int i = 0; i < j->topics.n; i++)
        j->topics.v[i]->ineligible = false;
    struct job *resume = j->topics.n ? job_new(f) : NULL;
    if (!resume)
        return;
    resume->topics = j->topics;
    job_call(f, resume, deletion_resume_steps);
}

static const flow_step startup_steps[] = {gather,         tell_of_arrival,  elect_leaderless,
                                          complete_moves, resume_deletions, NULL};

/* Replicas that went: what they led is elected anew, they leave the ISRs. job.replicas */

static void sort_lost(struct flow *f)
{
    struct job *j = job_of(f);
    struct replica_list deleting = {NULL, 0, 0}, lost = {NULL, 0, 0};
    for (int i = 0; i < j->replicas.n; i++) {
        struct ctl_replica_ref r = j->replicas.v[i];
        struct ctl_partition *p = r.partition;
        job_add_replica(f, p->topic->deleting ? &deleting : &lost, p, r.replica);
        if (!p->topic->deleting && p->state == PARTITION_ONLINE &&
            !replica_is_online(j->c, p, p->leader))
            job_add_partition(f, &j->partitions, p);
    }
    j->replicas = lost;
    partitions_move(j->c, &j->partitions, PARTITION_OFFLINE);
    j->partitions = (struct partition_list){NULL, 0, 0};
    deletion_fail_replicas(j->c, &deleting, "its broker or log dir is gone");
}

static void lose_replicas(struct flow *f)
{
    replicas_go_offline(f, job_of(f)->replicas);
}

/* Everyone learns at least that the broker is gone. */
static void tell_of_loss(struct flow *f)
{
    struct controller *c = controller_of(f);
    batch_metadata_to_all(c);
    batch_send(c);
}

static const flow_step lost_steps[] = {sort_lost, elect_leaderless, lose_replicas, tell_of_loss,
                                       NULL};

void replicas_lost(struct flow *f, struct replica_list l)
{
    struct job *j = job_new(f);
    if (!j)
        return;
    j->replicas = l;
    job_call(f, j, lost_steps);
}

/* Brokers that went. job.ids */
static void gather_lost(struct flow *f)
{
    struct job *j = job_of(f);
    forget_dirs(j);
    hmap_each (h, &j->c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n; i++) {
            struct ctl_partition *p = t->partitions[i];
            for (int k = 0; k < p->replicas_n; k++)
                if (is_one_of(j, p->replicas[k].broker))
                    job_add_replica(f, &j->replicas, p, &p->replicas[k]);
        }
    }
    replicas_lost(f, j->replicas);
}

static const flow_step failure_steps[] = {gather_lost, NULL};

static void call_with_ids(struct flow *f, const flow_step *steps, const int32_t *ids, int n)
{
    struct job *part = n ? job_new(f) : NULL;
    if (!part)
        return;
    part->ids = (int32_t *)ids;
    part->ids_n = n;
    job_call(f, part, steps);
}

/* Event: the children of /brokers/ids. What is read is compared with what is known. */

struct comer {
    struct broker_info info; /* in the flow's arena */
    int64_t epoch;
    bool bounced; /* died and is back before we looked */
};

struct change {
    struct comer *comers;
    int32_t *bounced, *gone;
    int comers_n, bounced_n, gone_n;
};

static struct change *change_of(struct flow *f)
{
    return job_of(f)->items;
}

static void list_brokers(struct flow *f)
{
    job_ask(f, store_op_children(PATH_BROKER_IDS, true));
}

static void read_brokers(struct flow *f)
{
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_first(flow_answers(f));
    if (r->status) {
        flow_fail(f, r->status);
        return;
    }
    for (int i = 0; i < r->ops[0].names_n; i++)
        job_ask(f, store_op_get(path_broker(&f->arena, atoi(r->ops[0].names[i])), false));
}

bool broker_in_answer(struct flow *f, const struct store_request *r, struct broker_info *info)
{
    int32_t id = atoi(strrchr(r->ops[0].path, '/') + 1);
    if (r->status == 0 && !znode_broker_decode(r->ops[0].result, id, &f->arena, info))
        return true;
    if (r->status != -ENOENT) /* gone meanwhile: another event follows */
        say_error(controller_of(f)->component, "%s is malformed: broker ignored", r->ops[0].path);
    return false;
}

static struct change *new_change(struct flow *f, int read, int known)
{
    struct change *d = arena_new(&f->arena, struct change);
    struct comer *comers = arena_array(&f->arena, struct comer, (size_t)read);
    int32_t *ids = arena_array(&f->arena, int32_t, (size_t)(read + known));
    if (!d || !comers || !ids) {
        flow_fail(f, -ENOMEM);
        return NULL;
    }
    *d = (struct change){.comers = comers, .bounced = ids, .gone = ids + read};
    return d;
}

static void compare(struct flow *f)
{
    struct job *j = job_of(f);
    struct context *x = &j->c->ctx;
    if (!job_answered(f))
        return;
    struct change *d = j->items = new_change(f, flow_answers(f)->n, x->brokers_n);
    bool *seen = arena_array(&f->arena, bool, (size_t)x->brokers_n);
    if (!d || !seen) {
        flow_fail(f, -ENOMEM);
        return;
    }
    store_batch_each (r, flow_answers(f)) {
        struct broker_info info;
        if (!broker_in_answer(f, r, &info))
            continue;
        struct ctl_broker *b = context_broker(x, info.id);
        for (int i = 0; i < x->brokers_n; i++)
            seen[i] |= x->brokers[i] == b;
        int64_t epoch = r->ops[0].stat.czxid;
        if (!b || b->epoch != epoch)
            d->comers[d->comers_n++] = (struct comer){info, epoch, b != NULL};
        if (b && b->epoch != epoch)
            d->bounced[d->bounced_n++] = info.id;
    }
    for (int i = 0; i < x->brokers_n; i++)
        if (!seen[i])
            d->gone[d->gone_n++] = x->brokers[i]->id;
}

static void drop(struct controller *c, const int32_t *ids, int n, const char *why)
{
    for (int i = 0; i < n; i++) {
        say_info(c->component, "broker %d %s", ids[i], why);
        broker_end(c, context_broker(&c->ctx, ids[i]));
    }
}

/* Those that are gone must not be elected while the others are dealt with. */
static void drop_gone(struct flow *f)
{
    struct change *d = change_of(f);
    drop(controller_of(f), d->gone, d->gone_n, "is gone");
}

static void add(struct flow *f, bool bounced)
{
    struct job *j = job_of(f);
    struct change *d = change_of(f);
    int32_t *ids = arena_array(&f->arena, int32_t, (size_t)d->comers_n);
    int n = 0;
    for (int i = 0; ids && i < d->comers_n; i++) {
        struct comer *it = &d->comers[i];
        if (it->bounced != bounced)
            continue;
        struct ctl_broker *b = context_add_broker(&j->c->ctx, &it->info, it->epoch);
        if (!b) {
            flow_fail(f, -ENOMEM);
            return;
        }
        broker_begin(j->c, b);
        ids[n++] = b->id;
        say_info(j->c->component, "broker %d came, epoch %lld", b->id, (long long)b->epoch);
    }
    call_with_ids(f, startup_steps, ids, n);
}

static void start_new(struct flow *f)
{
    add(f, false);
}

static void fail_bounced(struct flow *f)
{
    struct change *d = change_of(f);
    drop(controller_of(f), d->bounced, d->bounced_n, "was gone for a moment");
    call_with_ids(f, failure_steps, d->bounced, d->bounced_n);
}

static void start_bounced(struct flow *f)
{
    add(f, true);
}

static void fail_gone(struct flow *f)
{
    call_with_ids(f, failure_steps, change_of(f)->gone, change_of(f)->gone_n);
}

static void look_at_waiting(struct flow *f)
{
    bounced_look(controller_of(f), -1, -1);
}

static const flow_step change_steps[] = {list_brokers,    read_brokers, compare,       drop_gone,
                                         start_new,       fail_bounced, start_bounced, fail_gone,
                                         look_at_waiting, NULL};
const struct event_kind event_broker_change = {"BrokerChange", change_steps, true, true,
                                               CONTROLLER_BROKER_CHANGE};

/* Event: the data of a broker's node. job.broker */

static void read_one(struct flow *f)
{
    struct job *j = job_of(f);
    if (context_broker(&j->c->ctx, j->broker))
        job_ask(f, store_op_get(path_broker(&f->arena, j->broker), true));
    else
        flow_end(f);
}

static bool same_endpoints(const struct broker_info *a, const struct broker_info *b)
{
    bool same = a->endpoints_n == b->endpoints_n && str_eq(a->rack, b->rack);
    for (int i = 0; same && i < a->endpoints_n; i++)
        same = a->endpoints[i].port == b->endpoints[i].port &&
               a->endpoints[i].security_protocol == b->endpoints[i].security_protocol &&
               str_eq(a->endpoints[i].host, b->endpoints[i].host) &&
               str_eq(a->endpoints[i].listener, b->endpoints[i].listener);
    return same;
}

static void take_over(struct flow *f)
{
    struct job *j = job_of(f);
    struct broker_info info;
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_first(flow_answers(f));
    struct ctl_broker *b = context_broker(&j->c->ctx, j->broker);
    if (r->ops[0].stat.czxid != b->epoch || !broker_in_answer(f, r, &info) ||
        same_endpoints(&b->info, &info))
        return;
    if (context_update_broker(b, &info)) {
        flow_fail(f, -ENOMEM);
        return;
    }
    batch_metadata_to_all(j->c);
    batch_send(j->c);
}

static const flow_step modified_steps[] = {read_one, take_over, NULL};
const struct event_kind event_broker_modified = {"BrokerModifications", modified_steps, true, false,
                                                 CONTROLLER_BROKER_CHANGE};
