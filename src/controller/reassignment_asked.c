/* reassignment_asked.c - who asks for moves, and of them: AlterPartitionReassignments,
 * ListPartitionReassignments, and the node that old tools write. */
#include <stdlib.h>
#include <string.h>

#include "controller/reassignment.h"
#include "protocol/msg/alter_partition_reassignments.h"
#include "protocol/msg/list_partition_reassignments.h"

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
    if ((*why = move_target_problem(c, p, target, live && !cancel, &f->arena)))
        return KERR_INVALID_REPLICA_ASSIGNMENT;
    if (!same_assignment(p, target))
        move_add(moves, n, p, target);
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
        moves_begin(f, moves, n);
}

static const flow_step reassign_steps[] = {take_request, call_answer, NULL};
const struct event_kind event_reassign = {"ApiPartitionReassignment", reassign_steps, true, false,
                                          CONTROLLER_REASSIGNMENT};

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
    size_t asked_n =
        asked && asked->partition_indexes.n > 0 ? (size_t)asked->partition_indexes.n : 0;
    int32_t *numbers = arena_array(a, int32_t, asked_n);
    if (numbers && asked_n) {
        memcpy(numbers, asked->partition_indexes.v, asked_n * sizeof(*numbers));
        qsort(numbers, asked_n, sizeof(*numbers), id_compare);
    }
    for (int i = 0; numbers && out->partitions.v && i < t->partitions_n; i++) {
        bool wanted = !asked || bsearch(&t->partitions[i]->number, numbers, asked_n,
                                        sizeof(*numbers), id_compare);
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
const struct event_kind event_list_moves = {"ListPartitionReassignments", list_steps, true, false,
                                            CONTROLLER_LIST_REASSIGNMENTS};

/* ---- the node of tools: /admin/reassign_partitions ---- */

/* The node of tools names only what is still to be done. */
void moves_read_asked(struct flow *f)
{
    job_ask(f, store_op_get(PATH_REASSIGN, false));
}

void moves_shrink_asked(struct flow *f)
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

void moves_asked_written(struct flow *f)
{
    job_answered(f);
}

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
    moves_begin(f, moves, n);
}

static const flow_step node_steps[] = {read_node,          take_node,           moves_read_asked,
                                       moves_shrink_asked, moves_asked_written, NULL};
const struct event_kind event_reassign_node = {"ZkPartitionReassignment", node_steps, true, true,
                                               CONTROLLER_REASSIGNMENT};

/* Moves went with their topics. */
static const flow_step given_up_steps[] = {moves_read_asked, moves_shrink_asked,
                                           moves_asked_written, NULL};
const struct event_kind event_moves_given_up = {"MovesGivenUp", given_up_steps, true, true,
                                                CONTROLLER_REASSIGNMENT};
