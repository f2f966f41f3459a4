/* isr_change.c - changes of ISRs: those that leaders ask for (AlterPartition), and those that
 * leaders below 2.7-IV2 wrote themselves and tell of by a node.
 *
 * A change is judged by what is known here, and written on the condition that the store still knows
 * the same. Leaders need no LeaderAndIsr: they have the answer. */
#include "controller/controller_private.h"
#include "protocol/msg/alter_partition.h"

typedef struct alter_partition_request_partition request_part;
typedef struct alter_partition_response_topic answer_topic;
typedef struct alter_partition_response_partition answer_part;

enum { FIRST_VERSION_IDS = 2, FIRST_VERSION_EPOCHS = 3, FIRST_VERSION_INELIGIBLE = 2 };

struct change {
    struct ctl_partition *partition; /* NULL: unknown */
    struct partition_node node;      /* what is written, if it is */
    answer_part *out;
    bool writes;
};

static struct change *changes_of(struct flow *f)
{
    return job_of(f)->items;
}

static const struct alter_partition_request *request_of(const struct job *j)
{
    return j->call->request;
}

static struct alter_partition_response *response_of(const struct job *j)
{
    return j->call->response;
}

static void fill_state(const struct ctl_partition *p, struct arena *a, answer_part *out)
{
    out->leader_id = p->leader;
    out->leader_epoch = p->leader_epoch;
    out->isr.v = arena_array(a, int32_t, (size_t)p->isr.n);
    out->isr.n = out->isr.v ? p->isr.n : 0;
    for (int i = 0; i < out->isr.n; i++)
        out->isr.v[i] = p->isr.v[i];
    out->leader_recovery_state = p->recovering;
    out->partition_epoch = p->epoch;
}

/* The ISR that is asked for, in whichever form. */
static struct id_list wanted_isr(struct flow *f, int version, const request_part *q)
{
    if (version < FIRST_VERSION_EPOCHS)
        return (struct id_list){q->new_isr.v, q->new_isr.n};
    struct id_list l = {arena_array(&f->arena, int32_t, (size_t)q->new_isr_with_epochs.n), 0};
    if (!l.v)
        flow_fail(f, -ENOMEM);
    for (int i = 0; l.v && i < q->new_isr_with_epochs.n; i++)
        l.v[l.n++] = q->new_isr_with_epochs.v[i].broker_id;
    return l;
}

static bool all_live(const struct controller *c, struct id_list isr)
{
    for (int i = 0; i < isr.n; i++)
        if (!context_is_live(&c->ctx, isr.v[i]))
            return false;
    return isr.n > 0;
}

/* NONE: to be written, or (*same) there already. */
static enum kerr judge(const struct job *j, const struct ctl_partition *p, const request_part *q,
                       struct id_list isr, bool *same)
{
    bool recovering = j->call->version >= 1 && q->leader_recovery_state == 1;
    int32_t requester = request_of(j)->broker_id;
    *same = false;
    if (!p || !p->known)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (q->partition_epoch > p->epoch || q->leader_epoch > p->leader_epoch)
        return KERR_NOT_CONTROLLER; /* we are outdated */
    if (q->leader_epoch < p->leader_epoch)
        return KERR_FENCED_LEADER_EPOCH;
    *same = p->leader == requester && id_list_eq(isr, p->isr) && recovering == p->recovering;
    if (*same)
        return KERR_NONE;
    if (q->partition_epoch < p->epoch)
        return KERR_INVALID_UPDATE_VERSION;
    if (recovering && (isr.n > 1 || !p->recovering))
        return KERR_INVALID_REQUEST;
    if (p->leader != requester)
        return KERR_INVALID_REQUEST; /* only its leader knows who is in sync */
    if (!all_live(j->c, isr))
        return j->call->version >= FIRST_VERSION_INELIGIBLE ? KERR_INELIGIBLE_REPLICA
                                                            : KERR_OPERATION_NOT_ATTEMPTED;
    return KERR_NONE;
}

static void ask_write(struct flow *f, struct change *ch, struct id_list isr, bool recovering)
{
    const struct ctl_partition *p = ch->partition;
    ch->writes = true;
    ch->node = (struct partition_node){.controller_epoch = controller_of(f)->epoch,
                                       .leader = p->leader,
                                       .leader_epoch = p->leader_epoch,
                                       .isr = isr,
                                       .recovering = recovering};
    struct store_request *r =
        job_ask_fenced(f, store_op_set(path_state(&f->arena, p->topic->name, p->number),
                                       znode_partition_encode(&ch->node, &f->arena), p->epoch));
    if (r)
        r->user = ch;
}

static void take_part(struct flow *f, struct ctl_topic *t, bool known_topic, const request_part *q,
                      answer_part *out)
{
    struct job *j = job_of(f);
    struct change *ch = &changes_of(f)[j->items_n++];
    bool same;
    out->partition_index = q->partition_index;
    *ch = (struct change){.partition = t ? context_partition(t, q->partition_index) : NULL,
                          .out = out};
    struct id_list isr = wanted_isr(f, j->call->version, q);
    enum kerr e = known_topic ? judge(j, ch->partition, q, isr, &same) : KERR_UNKNOWN_TOPIC_ID;
    out->error_code = (int16_t)e;
    if (e != KERR_NONE)
        return;
    if (same)
        fill_state(ch->partition, j->call->arena, out);
    else
        ask_write(f, ch, isr, j->call->version >= 1 && q->leader_recovery_state == 1);
}

/* Room for all answers, and for the work. */
static bool lay_out(struct flow *f)
{
    struct job *j = job_of(f);
    const struct alter_partition_request *q = request_of(j);
    struct alter_partition_response *r = response_of(j);
    int n = 0;
    r->topics.v = alter_partition_response_topic_new(j->call->arena, q->topics.n);
    r->topics.n = r->topics.v ? q->topics.n : 0;
    for (int t = 0; t < r->topics.n; t++) {
        answer_topic *out = &r->topics.v[t];
        out->topic_name = q->topics.v[t].topic_name;
        out->topic_id = q->topics.v[t].topic_id;
        out->partitions.v =
            alter_partition_response_partition_new(j->call->arena, q->topics.v[t].partitions.n);
        out->partitions.n = out->partitions.v ? q->topics.v[t].partitions.n : 0;
        n += out->partitions.n;
    }
    j->items = arena_array(&f->arena, struct change, (size_t)n);
    return j->items && !j->call->arena->exhausted;
}

static void take_request(struct flow *f)
{
    struct job *j = job_of(f);
    const struct alter_partition_request *q = request_of(j);
    struct alter_partition_response *r = response_of(j);
    if (!call_broker(j->c, q->broker_id, q->broker_epoch)) {
        r->error_code = KERR_STALE_BROKER_EPOCH;
        call_answer(f);
        flow_end(f);
        return;
    }
    if (!lay_out(f)) {
        flow_fail(f, -ENOMEM);
        return;
    }
    for (int t = 0; t < r->topics.n; t++) {
        bool by_id = j->call->version >= FIRST_VERSION_IDS;
        struct ctl_topic *topic = by_id ? context_topic_by_id(&j->c->ctx, q->topics.v[t].topic_id)
                                        : context_topic(&j->c->ctx, q->topics.v[t].topic_name);
        for (int i = 0; i < r->topics.v[t].partitions.n && !f->error; i++)
            take_part(f, topic, topic || !by_id, &q->topics.v[t].partitions.v[i],
                      &r->topics.v[t].partitions.v[i]);
    }
}

/* The store's word on one of them. */
static enum kerr written(int status)
{
    switch (status) {
    case 0:
        return KERR_NONE;
    case STORE_BAD_VERSION:
        return KERR_INVALID_UPDATE_VERSION;
    case -ENOENT:
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    default:
        return KERR_UNKNOWN_SERVER_ERROR;
    }
}

/* The store has another version than is known here. Only we write under our epoch: it may be this
 * very write, done before a connection was lost, and its answer lost with it. */
static void ask_conflicts(struct flow *f)
{
    struct job *j = job_of(f);
    for (int i = 0; i < j->items_n && !f->error; i++) {
        struct change *ch = &changes_of(f)[i];
        if (!ch->writes || ch->out->error_code != KERR_INVALID_UPDATE_VERSION)
            continue;
        const struct ctl_partition *p = ch->partition;
        struct store_request *r =
            job_ask(f, store_op_get(path_state(&f->arena, p->topic->name, p->number), false));
        if (r)
            r->user = ch;
    }
}

static void take_written(struct flow *f, struct change *ch, int32_t epoch)
{
    ch->out->error_code = KERR_NONE;
    if (context_set_known(ch->partition, &ch->node, epoch))
        flow_fail(f, -ENOMEM);
    else
        fill_state(ch->partition, job_of(f)->call->arena, ch->out);
}

static void take_results(struct flow *f)
{
    if (!job_answered(f))
        return;
    store_batch_each (r, flow_answers(f)) {
        struct change *ch = r->user;
        enum kerr e = written(job_status(r));
        ch->out->error_code = (int16_t)e;
        if (e == KERR_NONE)
            take_written(f, ch, job_op(r)->stat.version);
        if (f->error)
            return;
    }
    ask_conflicts(f);
}

static bool is_node(const struct partition_node *a, const struct partition_node *b)
{
    return a->controller_epoch == b->controller_epoch && a->leader == b->leader &&
           a->leader_epoch == b->leader_epoch && a->recovering == b->recovering &&
           id_list_eq(a->isr, b->isr);
}

static void take_conflicts(struct flow *f)
{
    struct job *j = job_of(f);
    if (!job_answered(f))
        return;
    store_batch_each (r, flow_answers(f)) {
        struct change *ch = r->user;
        struct partition_node now;
        if (!r->status && !znode_partition_decode(r->ops[0].result, &f->arena, &now) &&
            is_node(&now, &ch->node))
            take_written(f, ch, r->ops[0].stat.version);
        if (f->error)
            return;
    }
    for (int i = 0; i < j->items_n; i++)
        if (changes_of(f)[i].partition)
            batch_metadata(j->c, changes_of(f)[i].partition);
    batch_send(j->c);
    call_answer(f);
    for (int i = 0; i < j->items_n; i++)
        if (changes_of(f)[i].partition)
            job_add_partition(f, &j->partitions, changes_of(f)[i].partition);
    moves_complete(f, &j->partitions);
}

static const flow_step alter_steps[] = {take_request, take_results, take_conflicts, NULL};
const struct event_kind event_alter_partition = {"AlterPartition", alter_steps, true, false,
                                                 CONTROLLER_ISR_CHANGE};
