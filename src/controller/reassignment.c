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
 * neither are deleted at once. Cancelling is a move back to O. */
#include <stdlib.h>

#include "controller/controller_private.h"
#include "protocol/msg/alter_partition_reassignments.h"
#include "protocol/msg/list_partition_reassignments.h"

struct move {
    struct ctl_partition *p;
    struct id_list target;
};

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
 * tells it later, and it is as good as any other beginning of a copy. */
static void delete_dropped(struct controller *c, const struct replica_list *l)
{
    replicas_move(c, l, REPLICA_DELETION_STARTED);
    replicas_move(c, l, REPLICA_DELETION_SUCCESSFUL);
    replicas_move(c, l, REPLICA_NON_EXISTENT);
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

/* ---- completing. job.partitions: ready; job.at: the one that is worked on; job.ids: its origin
 * ---- */

static struct ctl_partition *current(struct flow *f)
{
    struct job *j = job_of(f);
    return j->partitions.v[j->at];
}

static void put_online(struct flow *f)
{
    struct job *j = job_of(f);
    struct ctl_partition *p = current(f);
    struct replica_list added = {NULL, 0, 0};
    struct partition_list one = {NULL, 0, 0};
    for (int i = 0; i < p->replicas_n; i++)
        if (p->replicas[i].adding && p->replicas[i].state == REPLICA_NEW)
            job_add_replica(f, &added, p, &p->replicas[i]);
    replicas_move(j->c, &added, REPLICA_ONLINE);
    struct id_list target = context_target(p, &f->arena), origin = context_origin(p, &f->arena);
    if (!target.v || !origin.v || context_reassign(p, target, target)) {
        flow_fail(f, -ENOMEM);
        return;
    }
    j->ids = origin.v;
    j->ids_n = origin.n;
    bool stays = id_list_has(target, p->leader) && replica_is_online(j->c, p, p->leader);
    job_add_partition(f, &one, p);
    partitions_elect(f, one, stays ? ELECT_KEEP : ELECT_REASSIGNED);
}

/* The next one, if there is one. */
static bool goes_on(struct flow *f)
{
    struct job *j = job_of(f);
    if (++j->at == j->partitions.n)
        return false;
    flow_goto(f, put_online);
    return true;
}

static void read_asked(struct flow *f);

/* Nobody of the target leads: the ISR was another than was known (its leader may have written it
 * meanwhile), or none of them is online. Then those that are to go may be all that have the
 * records: the move goes on, and is looked at again when the ISR changes or a broker arrives. */
static void stop_removed(struct flow *f)
{
    struct job *j = job_of(f);
    struct ctl_partition *p = current(f);
    if (!p->elected) {
        say_warn(j->c->component, "partition %.*s-%d cannot end its move yet",
                 STR_ARG(p->topic->name), p->number);
        context_keep_dropped(p, (struct id_list){j->ids, j->ids_n});
        if (!goes_on(f))
            flow_goto(f, read_asked);
        return;
    }
    j->replicas = (struct replica_list){NULL, 0, 0};
    add_dropped(f, &j->replicas, current(f));
    replicas_go_offline(f, j->replicas);
}

static void delete_removed(struct flow *f)
{
    delete_dropped(job_of(f)->c, &job_of(f)->replicas);
    context_forget_dropped(current(f));
    ask_topic_node(f, current(f)->topic);
}

static void tell_end(struct flow *f)
{
    struct job *j = job_of(f);
    struct ctl_partition *p = current(f);
    if (!all_written(f))
        return;
    say_info(j->c->component, "partition %.*s-%d has moved", STR_ARG(p->topic->name), p->number);
    batch_metadata(j->c, p);
    batch_send(j->c);
    look_if_moving(p->topic);
    goes_on(f);
}

/* The node of tools names only what is still to be done. */
static void read_asked(struct flow *f)
{
    job_ask(f, store_op_get(PATH_REASSIGN, false));
}

static void shrink_asked(struct flow *f)
{
    struct context *x = &controller_of(f)->ctx;
    struct named_partitions l;
    int left = 0;
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_first(flow_answers(f));
    if (r->status)
        return;
    if (znode_reassign_decode(r->ops[0].result, &f->arena, &l))
        l.n = 0;
    for (int i = 0; i < l.n; i++) {
        struct ctl_topic *t = context_topic(x, l.v[i].topic);
        struct ctl_partition *p = t ? context_partition(t, l.v[i].partition) : NULL;
        if (p && context_is_moving(p))
            l.v[left++] = l.v[i];
    }
    if (left == l.n && left)
        return;
    l.n = left;
    job_ask_fenced(f, left ? store_op_set(PATH_REASSIGN, znode_reassign_encode(l, &f->arena),
                                          r->ops[0].stat.version)
                           : store_op_delete(PATH_REASSIGN, r->ops[0].stat.version));
}

static void asked_written(struct flow *f)
{
    job_answered(f);
}

static const flow_step complete_steps[] = {put_online, stop_removed, delete_removed, tell_end,
                                           read_asked, shrink_asked, asked_written,  NULL};

void moves_complete(struct flow *f, const struct partition_list *l)
{
    struct partition_list ready = {NULL, 0, 0};
    for (int i = 0; i < l->n; i++)
        if (context_is_moving(l->v[i]) && is_in_sync(l->v[i]) && !l->v[i]->topic->deleting)
            job_add_partition(f, &ready, l->v[i]);
    struct job *j = ready.n ? job_new(f) : NULL;
    if (!j)
        return;
    j->partitions = ready;
    job_call(f, j, complete_steps);
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
        bool first = true;
        for (int k = 0; k < j->topics.n; k++)
            first &= j->topics.v[k] != p->topic;
        if (first)
            job_add_topic(f, &j->topics, p->topic);
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

static void begin_moves(struct flow *f, struct move *moves, int n)
{
    struct job *j = n ? job_new(f) : NULL;
    if (!j)
        return;
    j->items = moves;
    j->items_n = n;
    job_call(f, j, begin_steps);
}

/* ---- AlterPartitionReassignments ---- */

static bool same_assignment(const struct ctl_partition *p, struct id_list target)
{
    bool same = target.n == p->replicas_n && !context_is_moving(p);
    for (int i = 0; same && i < target.n; i++)
        same = p->replicas[i].broker == target.v[i];
    return same;
}

/* Adds a move, or says why not. target.n < 0: back to where it came from. */
static enum kerr add_move(struct flow *f, struct str topic, int32_t partition,
                          struct id_list target, bool live, struct move *moves, int *n,
                          const char **why)
{
    struct controller *c = controller_of(f);
    struct ctl_topic *t = context_topic(&c->ctx, topic);
    struct ctl_partition *p = t && !t->deleting ? context_partition(t, partition) : NULL;
    bool cancel = target.n < 0;
    if (!p)
        return cancel ? KERR_NO_REASSIGNMENT_IN_PROGRESS : KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (cancel && !context_is_moving(p))
        return KERR_NO_REASSIGNMENT_IN_PROGRESS;
    if (cancel)
        target = context_origin(p, &f->arena);
    else if ((*why = move_target_problem(c, p, target, live, &f->arena)))
        return KERR_INVALID_REPLICA_ASSIGNMENT;
    for (int i = 0; i < *n; i++) /* named twice: the last counts */
        if (moves[i].p == p) {
            moves[i].target = target;
            return KERR_NONE;
        }
    if (!same_assignment(p, target))
        moves[(*n)++] = (struct move){p, target};
    return KERR_NONE;
}

static void take_request(struct flow *f)
{
    struct job *j = job_of(f);
    const struct alter_partition_reassignments_request *q = j->call->request;
    struct alter_partition_reassignments_response *r = j->call->response;
    struct arena *a = j->call->arena;
    int total = 0, n = 0;
    for (int t = 0; t < q->topics.n; t++)
        total += q->topics.v[t].partitions.n;
    struct move *moves = arena_array(&f->arena, struct move, (size_t)total);
    r->responses.v = alter_partition_reassignments_response_response_new(a, q->topics.n);
    for (int t = 0; moves && r->responses.v && t < q->topics.n; t++) {
        const struct alter_partition_reassignments_request_topic *in = &q->topics.v[t];
        struct alter_partition_reassignments_response_response *out =
            &r->responses.v[r->responses.n++];
        out->name = in->name;
        out->partitions.v =
            alter_partition_reassignments_response_partition_new(a, in->partitions.n);
        for (int i = 0; out->partitions.v && i < in->partitions.n; i++) {
            struct alter_partition_reassignments_response_partition *part =
                &out->partitions.v[out->partitions.n++];
            part->partition_index = in->partitions.v[i].partition_index;
            const char *why = NULL;
            part->error_code = (int16_t)add_move(
                f, in->name, part->partition_index,
                (struct id_list){in->partitions.v[i].replicas.v, in->partitions.v[i].replicas.n},
                true, moves, &n, &why);
            if (part->error_code)
                part->error_message =
                    why ? arena_str(a, str_of(why)) : str_of(kerr_text(part->error_code));
        }
    }
    if (!moves || a->exhausted)
        flow_fail(f, -ENOMEM);
    else
        begin_moves(f, moves, n);
}

static const flow_step reassign_steps[] = {take_request, call_answer, NULL};
const struct event_kind event_reassign = {"ApiPartitionReassignment", reassign_steps, true, false};

/* ---- ListPartitionReassignments ---- */

typedef struct list_partition_reassignments_response_partition listed_part;
typedef struct list_partition_reassignments_response_topic listed_topic;

static void list_one(const struct ctl_partition *p, struct arena *a, listed_part *out)
{
    int32_t *ids = arena_array(a, int32_t, 3 * (size_t)p->replicas_n);
    if (!ids)
        return;
    out->partition_index = p->number;
    out->replicas.v = ids;
    out->adding_replicas.v = ids + p->replicas_n;
    out->removing_replicas.v = ids + 2 * p->replicas_n;
    for (int i = 0; i < p->replicas_n; i++) {
        const struct ctl_replica *r = &p->replicas[i];
        out->replicas.v[out->replicas.n++] = r->broker;
        if (r->adding)
            out->adding_replicas.v[out->adding_replicas.n++] = r->broker;
        if (r->removing)
            out->removing_replicas.v[out->removing_replicas.n++] = r->broker;
    }
}

/* NULL asked: all partitions. */
static void list_topic(const struct ctl_topic *t,
                       const struct list_partition_reassignments_request_topic *asked,
                       struct arena *a, struct list_partition_reassignments_response *r)
{
    listed_topic *out = &r->topics.v[r->topics.n];
    out->name = arena_str(a, t->name);
    out->partitions.v = list_partition_reassignments_response_partition_new(a, t->partitions_n);
    out->partitions.n = 0;
    for (int i = 0; out->partitions.v && i < t->partitions_n; i++) {
        bool wanted = !asked;
        for (int k = 0; asked && k < asked->partition_indexes.n; k++)
            wanted |= asked->partition_indexes.v[k] == t->partitions[i]->number;
        if (wanted && context_is_moving(t->partitions[i]))
            list_one(t->partitions[i], a, &out->partitions.v[out->partitions.n++]);
    }
    r->topics.n += out->partitions.n > 0;
}

static void list_moves(struct flow *f)
{
    struct job *j = job_of(f);
    struct context *x = &j->c->ctx;
    const struct list_partition_reassignments_request *q = j->call->request;
    struct list_partition_reassignments_response *r = j->call->response;
    struct arena *a = j->call->arena;
    int n = q->topics.n < 0 ? (int)x->topics.n : q->topics.n;
    r->topics.v = list_partition_reassignments_response_topic_new(a, n);
    r->topics.n = 0;
    if (r->topics.v && q->topics.n < 0) {
        hmap_each (h, &x->topics) {
            struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
            if (t->moving)
                list_topic(t, NULL, a, r);
        }
    }
    for (int i = 0; r->topics.v && i < q->topics.n; i++) {
        const struct ctl_topic *t = context_topic(x, q->topics.v[i].name);
        if (t && t->moving)
            list_topic(t, &q->topics.v[i], a, r);
    }
    call_answer(f);
}

static const flow_step list_steps[] = {list_moves, NULL};
const struct event_kind event_list_moves = {"ListPartitionReassignments", list_steps, true, false};

/* ---- the node of tools: /admin/reassign_partitions ---- */

static void read_node(struct flow *f)
{
    job_ask(f, store_op_exists(PATH_REASSIGN, true));
    job_ask(f, store_op_get(PATH_REASSIGN, false));
}

static void take_node(struct flow *f)
{
    struct job *j = job_of(f);
    struct named_partitions l;
    int n = 0;
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_next(flow_answers(f), store_batch_first(flow_answers(f)));
    if (r->status == -ENOENT) {
        flow_end(f);
        return;
    }
    if (r->status || znode_reassign_decode(r->ops[0].result, &f->arena, &l)) {
        say_warn(j->c->component, "%s is malformed: it is taken as empty", PATH_REASSIGN);
        l.n = 0;
    }
    struct move *moves = arena_array(&f->arena, struct move, (size_t)l.n);
    if (!moves) {
        flow_fail(f, -ENOMEM);
        return;
    }
    for (int i = 0; i < l.n; i++) {
        const char *why = NULL;
        enum kerr e =
            add_move(f, l.v[i].topic, l.v[i].partition, l.v[i].replicas, false, moves, &n, &why);
        if (e != KERR_NONE)
            say_warn(j->c->component, "partition %.*s-%d cannot be moved: %s",
                     STR_ARG(l.v[i].topic), l.v[i].partition, why ? why : kerr_name((int16_t)e));
    }
    begin_moves(f, moves, n);
}

static const flow_step node_steps[] = {read_node,    take_node,     read_asked,
                                       shrink_asked, asked_written, NULL};
const struct event_kind event_reassign_node = {"ZkPartitionReassignment", node_steps, true, true};

/* Moves went with their topics. */
static const flow_step given_up_steps[] = {read_asked, shrink_asked, asked_written, NULL};
const struct event_kind event_moves_given_up = {"MovesGivenUp", given_up_steps, true, true};
