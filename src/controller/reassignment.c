/* reassignment.c - moving partitions to other brokers.
 *
 *   origin O, target T    assignment while it lasts: T, then those of O not in T
 *   1  the topic's node says so: from here on every controller knows of it
 *   2  the leader and the others hear of the new assignment in a new epoch; the added ones begin
 *   3  wait until all of T are in sync
 *   4  the assignment is T: a leader in T, told in a new epoch (if there can be none: back to 3);
 *      the removed ones leave the ISR, stop and delete
 *   5  the topic's node says T
 *
 * The node says T last, since it is the only lasting memory of O: whoever takes over in the middle
 * begins again at 2 or 4.
 *
 * A new target while one is being worked on replaces it, from the same O; replicas that are in
 * neither are deleted at once. Cancelling is a move back to O. Either is refused when nobody in
 * sync would stay: with who is dropped the records would go (Kafka takes it). */
#include "controller/reassignment.h"

static struct move *moves_of(struct flow *f)
{
    return job_of(f)->items;
}

static bool is_in_sync(const struct ctl_partition *p)
{
    for (int i = 0; i < p->replicas_n; i++)
        if (!p->replicas[i].removing && !id_list_has(p->isr, p->replicas[i].broker))
            return false;
    return p->known;
}

static void look_if_moving(struct ctl_topic *t)
{
    t->moving = false;
    for (int i = 0; i < t->partitions_n; i++)
        t->moving |= context_is_moving(t->partitions[i]);
}

/* The replicas that are not assigned any more. */
static void add_dropped(struct flow *f, struct replica_list *l, struct ctl_partition *p)
{
    for (int i = 0; i < p->dropped_n; i++)
        job_add_replica(f, l, p, &p->replicas[p->replicas_n + i]);
}

/* Their deletion is not waited for. A broker that is away keeps its folder, as with Kafka: nobody
 * tells it later, and it is as good as any other beginning of a copy. So does one that turns out to
 * be all that is in sync (its leader wrote the ISR meanwhile). */
static void delete_dropped(struct controller *c, const struct replica_list *l)
{
    struct replica_list going = {l->v, 0, l->cap};
    for (int i = 0; i < l->n; i++) {
        struct ctl_replica_ref r = l->v[i];
        if (!id_list_has(r.partition->isr, r.replica->broker)) { /* those that stay go behind */
            l->v[i] = going.v[going.n];
            going.v[going.n++] = r;
        } else {
            say_warn(c->component, "partition %.*s-%d: only broker %d, which goes, is in sync",
                     STR_ARG(r.partition->topic->name), r.partition->number, r.replica->broker);
        }
    }
    replicas_move(c, &going, REPLICA_DELETION_STARTED);
    replicas_move(c, &going, REPLICA_DELETION_SUCCESSFUL);
    replicas_move(c, &going, REPLICA_NON_EXISTENT);
    for (int i = 0; i < l->n; i++)
        context_forget_dropped(l->v[i].partition);
}

static void ask_topic_node(struct flow *f, struct ctl_topic *t)
{
    job_ask_fenced(
        f, store_op_set(path_topic(&f->arena, t->name), topic_node_of(f, t), STORE_ANY_VERSION));
}

static bool all_written(struct flow *f)
{
    if (!job_answered(f))
        return false;
    store_batch_each (r, flow_answers(f))
        if (job_status(r) && job_status(r) != -ENOENT) { /* -ENOENT: removed by hand */
            flow_fail(f, job_status(r));
            return false;
        }
    return true;
}

/* ---- completing. job.items: those that are ready, then those that end; job.partitions: those that
 * need another leader ---- */

static void put_online(struct flow *f)
{
    struct job *j = job_of(f);
    struct replica_list added = {NULL, 0, 0};
    struct partition_list keep = {NULL, 0, 0};
    for (int i = 0; i < j->items_n; i++) {
        struct ctl_partition *p = moves_of(f)[i].p;
        for (int k = 0; k < p->replicas_n; k++)
            if (p->replicas[k].adding && p->replicas[k].state == REPLICA_NEW)
                job_add_replica(f, &added, p, &p->replicas[k]);
    }
    replicas_move(j->c, &added, REPLICA_ONLINE);
    for (int i = 0; i < j->items_n && !f->error; i++) {
        struct move *m = &moves_of(f)[i];
        m->target = context_target(m->p, &f->arena);
        m->origin = context_origin(m->p, &f->arena);
        if (!m->target.v || !m->origin.v || context_reassign(m->p, m->target, m->target)) {
            flow_fail(f, -ENOMEM);
            return;
        }
        bool stays =
            id_list_has(m->target, m->p->leader) && replica_is_online(j->c, m->p, m->p->leader);
        job_add_partition(f, stays ? &keep : &j->partitions, m->p);
    }
    partitions_elect(f, keep, ELECT_KEEP);
}

static void lead_by_target(struct flow *f)
{
    partitions_elect(f, job_of(f)->partitions, ELECT_REASSIGNED);
}

/* Where nobody of the target leads, the ISR was another than was known (its leader may have written
 * it meanwhile), or none of them is online. Then those that are to go may be all that have the
 * records: the move goes on, and is looked at again when the ISR changes or a broker arrives. */
static void stop_removed(struct flow *f)
{
    struct job *j = job_of(f);
    struct move *moves = moves_of(f);
    int ending = 0;
    for (int i = 0; i < j->items_n; i++) {
        struct ctl_partition *p = moves[i].p;
        if (!p->elected) {
            say_warn(j->c->component, "partition %.*s-%d cannot end its move yet",
                     STR_ARG(p->topic->name), p->number);
            context_keep_dropped(p, moves[i].origin);
            continue;
        }
        add_dropped(f, &j->replicas, p);
        job_add_topic_once(f, &j->topics, p->topic);
        moves[ending++] = moves[i];
    }
    j->items_n = ending;
    replicas_go_offline(f, j->replicas);
}

static void delete_removed(struct flow *f)
{
    struct job *j = job_of(f);
    delete_dropped(j->c, &j->replicas);
    for (int i = 0; i < j->topics.n; i++)
        ask_topic_node(f, j->topics.v[i]);
}

static void tell_end(struct flow *f)
{
    struct job *j = job_of(f);
    if (!all_written(f))
        return;
    for (int i = 0; i < j->items_n; i++) {
        struct ctl_partition *p = moves_of(f)[i].p;
        say_info(j->c->component, "partition %.*s-%d has moved", STR_ARG(p->topic->name),
                 p->number);
        batch_metadata(j->c, p);
    }
    batch_send(j->c);
    for (int i = 0; i < j->topics.n; i++)
        look_if_moving(j->topics.v[i]);
}

static const flow_step complete_steps[] = {
    put_online, lead_by_target,   stop_removed,       delete_removed,
    tell_end,   moves_read_asked, moves_shrink_asked, moves_asked_written,
    NULL};

/* false: it is there already. A partition that is named twice does not end twice. */
static bool list_once(struct move *moves, int *n, struct move m)
{
    if (m.p->listed_at < *n && moves[m.p->listed_at].p == m.p)
        return false;
    m.p->listed_at = *n;
    moves[(*n)++] = m;
    return true;
}

void moves_complete(struct flow *f, const struct partition_list *l)
{
    struct move *ready = arena_array(&f->arena, struct move, (size_t)l->n);
    int n = 0;
    if (!ready) {
        flow_fail(f, -ENOMEM);
        return;
    }
    for (int i = 0; i < l->n; i++)
        if (context_is_moving(l->v[i]) && is_in_sync(l->v[i]) && !l->v[i]->topic->deleting)
            list_once(ready, &n, (struct move){.p = l->v[i]});
    struct job *j = n ? job_new(f) : NULL;
    if (!j)
        return;
    j->items = ready;
    j->items_n = n;
    job_call(f, j, complete_steps);
}

void move_add(struct move *moves, int *n, struct ctl_partition *p, struct id_list target)
{
    if (!list_once(moves, n, (struct move){.p = p, .target = target}))
        moves[p->listed_at].target = target;
}

/* ---- beginning. job.items: moves; job.call: who asked ---- */

/* The node of tools may name brokers that are not there, as in Kafka: the move waits for them. */
static void say_who_is_missing(const struct controller *c, const struct ctl_partition *p)
{
    for (int i = 0; i < p->replicas_n; i++)
        if (p->replicas[i].adding && !context_is_live(&c->ctx, p->replicas[i].broker))
            say_warn(c->component,
                     "the move of partition %.*s-%d waits for broker %d, which is not there",
                     STR_ARG(p->topic->name), p->number, p->replicas[i].broker);
}

/* In memory, and into the topics' nodes. */
static void assign(struct flow *f)
{
    struct job *j = job_of(f);
    for (int i = 0; i < j->items_n; i++) {
        struct ctl_partition *p = moves_of(f)[i].p;
        struct id_list origin = context_origin(p, &f->arena);
        if (!origin.v || context_reassign(p, moves_of(f)[i].target, origin)) {
            flow_fail(f, -ENOMEM);
            return;
        }
        say_info(j->c->component, "partition %.*s-%d is to move", STR_ARG(p->topic->name),
                 p->number);
        say_who_is_missing(j->c, p);
        add_dropped(f, &j->replicas, p);
        job_add_topic_once(f, &j->topics, p->topic);
    }
    for (int i = 0; i < j->topics.n; i++) {
        look_if_moving(j->topics.v[i]);
        ask_topic_node(f, j->topics.v[i]);
    }
}

static void stop_dropped(struct flow *f)
{
    if (all_written(f))
        replicas_go_offline(f, job_of(f)->replicas);
}

/* Has the leader been dropped by a move that was cancelled? */
static bool needs_leader(const struct controller *c, const struct ctl_partition *p)
{
    return !context_replica(p, p->leader) || !replica_is_online(c, p, p->leader);
}

/* Everyone takes notice of the assignment. (Those that are moving and whose target is in sync have
 * a new epoch at their end.) */
static void new_epochs(struct flow *f)
{
    struct job *j = job_of(f);
    struct partition_list keep = {NULL, 0, 0};
    delete_dropped(j->c, &j->replicas);
    for (int i = 0; i < j->items_n; i++) {
        struct ctl_partition *p = moves_of(f)[i].p;
        bool ends = !context_is_moving(p);
        if (p->known && ends && needs_leader(j->c, p))
            job_add_partition(f, &j->partitions, p);
        else if (p->known && (ends || !is_in_sync(p)))
            job_add_partition(f, &keep, p);
    }
    partitions_elect(f, keep, ELECT_KEEP);
}

/* Moves that were cancelled after one of the added had become the leader. */
static void new_leaders(struct flow *f)
{
    partitions_elect(f, job_of(f)->partitions, ELECT_REASSIGNED);
}

static void begin_added(struct flow *f)
{
    struct job *j = job_of(f);
    struct replica_list added = {NULL, 0, 0};
    for (int i = 0; i < j->items_n; i++) {
        struct ctl_partition *p = moves_of(f)[i].p;
        for (int k = 0; k < p->replicas_n; k++)
            if (p->replicas[k].adding && p->replicas[k].state == REPLICA_NON_EXISTENT)
                job_add_replica(f, &added, p, &p->replicas[k]);
    }
    replicas_move(j->c, &added, REPLICA_NEW);
    j->partitions = (struct partition_list){NULL, 0, 0};
    for (int i = 0; i < j->items_n; i++)
        job_add_partition(f, &j->partitions, moves_of(f)[i].p);
}

/* A permutation, or a cancelled move whose added ones had not begun, is complete at once. */
static void end_what_is_ready(struct flow *f)
{
    moves_complete(f, &job_of(f)->partitions);
}

static const flow_step begin_steps[] = {assign,      stop_dropped,      new_epochs, new_leaders,
                                        begin_added, end_what_is_ready, NULL};
/* The same, for what the nodes say already. */
static const flow_step resume_steps[] = {new_epochs, new_leaders, begin_added, end_what_is_ready,
                                         NULL};

void moves_resume(struct flow *f)
{
    struct controller *c = controller_of(f);
    struct partition_list l = {NULL, 0, 0};
    hmap_each (h, &c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n && t->moving && !t->deleting; i++)
            if (context_is_moving(t->partitions[i]))
                job_add_partition(f, &l, t->partitions[i]);
    }
    struct job *j = l.n ? job_new(f) : NULL;
    struct move *moves = arena_array(&f->arena, struct move, (size_t)l.n);
    if (!j || !moves)
        return;
    for (int i = 0; i < l.n; i++)
        moves[i].p = l.v[i];
    j->items = moves;
    j->items_n = l.n;
    job_call(f, j, resume_steps);
}

void moves_begin(struct flow *f, struct move *moves, int n)
{
    struct job *j = n ? job_new(f) : NULL;
    if (!j)
        return;
    j->items = moves;
    j->items_n = n;
    job_call(f, j, begin_steps);
}
