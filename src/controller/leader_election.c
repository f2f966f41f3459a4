/* leader_election.c - elections that are not forced by a loss: those that ElectLeaders or a node
 * asks for, and the balancing that comes round by itself. */
#include "controller/controller_private.h"
#include "protocol/msg/elect_leaders.h"

enum { TYPE_PREFERRED = 0, TYPE_UNCLEAN = 1 };

typedef struct elect_leaders_response_replica_election_result answer_topic;
typedef struct elect_leaders_response_partition_result answer_part;

/* ---- ElectLeaders ---- */

static const struct elect_leaders_request *request_of(const struct job *j)
{
    return j->call->request;
}

static bool is_unclean(const struct job *j)
{
    return j->call->version >= 1 && request_of(j)->election_type == TYPE_UNCLEAN;
}

/* May it be tried? */
static enum kerr judge(const struct job *j, const struct ctl_partition *p)
{
    if (!p || !p->known)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (p->topic->deleting)
        return KERR_INVALID_TOPIC_EXCEPTION;
    bool led = p->leader >= 0 && replica_is_online(j->c, p, p->leader);
    if (is_unclean(j) ? led : p->replicas_n > 0 && p->leader == p->replicas[0].broker && led)
        return KERR_ELECTION_NOT_NEEDED;
    return KERR_NONE;
}

/* One asked for, or (of all) one that needs it. */
static void consider(struct flow *f, struct ctl_partition *p, answer_part *out)
{
    struct job *j = job_of(f);
    out->error_code = (int16_t)judge(j, p);
    if (out->error_code == KERR_NONE)
        job_add_partition(f, &j->partitions, p);
}

static void consider_asked(struct flow *f)
{
    struct job *j = job_of(f);
    const struct elect_leaders_request *q = request_of(j);
    struct elect_leaders_response *r = j->call->response;
    struct arena *a = j->call->arena;
    r->replica_election_results.v =
        elect_leaders_response_replica_election_result_new(a, q->topic_partitions.n);
    for (int t = 0; r->replica_election_results.v && t < q->topic_partitions.n; t++) {
        const struct elect_leaders_request_topic_partition *asked = &q->topic_partitions.v[t];
        answer_topic *out = &r->replica_election_results.v[r->replica_election_results.n++];
        const struct ctl_topic *topic = context_topic(&j->c->ctx, asked->topic);
        out->topic = asked->topic;
        out->partition_result.v =
            elect_leaders_response_partition_result_new(a, asked->partitions.n);
        for (int i = 0; out->partition_result.v && i < asked->partitions.n; i++) {
            answer_part *part = &out->partition_result.v[out->partition_result.n++];
            part->partition_id = asked->partitions.v[i];
            consider(f, topic ? context_partition(topic, part->partition_id) : NULL, part);
        }
    }
}

/* All there are; those that need none are left out. */
static void consider_all(struct flow *f)
{
    struct job *j = job_of(f);
    struct elect_leaders_response *r = j->call->response;
    struct arena *a = j->call->arena;
    r->replica_election_results.v =
        elect_leaders_response_replica_election_result_new(a, (int32_t)j->c->ctx.topics.n);
    if (!r->replica_election_results.v)
        return;
    hmap_each (h, &j->c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        answer_topic *out = &r->replica_election_results.v[r->replica_election_results.n];
        int before = j->partitions.n;
        for (int i = 0; i < t->partitions_n; i++)
            if (judge(j, t->partitions[i]) == KERR_NONE)
                job_add_partition(f, &j->partitions, t->partitions[i]);
        int n = j->partitions.n - before;
        if (!n)
            continue;
        out->topic = arena_str(a, t->name);
        out->partition_result.v = elect_leaders_response_partition_result_new(a, n);
        out->partition_result.n = out->partition_result.v ? n : 0;
        for (int i = 0; i < out->partition_result.n; i++)
            out->partition_result.v[i].partition_id = j->partitions.v[before + i]->number;
        r->replica_election_results.n++;
    }
}

static void consider_request(struct flow *f)
{
    struct job *j = job_of(f);
    if (request_of(j)->topic_partitions.n < 0)
        consider_all(f);
    else
        consider_asked(f);
    if (j->call->arena->exhausted)
        flow_fail(f, -ENOMEM);
    else
        partitions_elect(f, j->partitions, is_unclean(j) ? ELECT_UNCLEAN : ELECT_PREFERRED);
}

static void answer(struct flow *f)
{
    struct job *j = job_of(f);
    struct elect_leaders_response *r = j->call->response;
    int at = 0; /* tried ones come in the order of the answer */
    for (int t = 0; t < r->replica_election_results.n; t++) {
        answer_topic *topic = &r->replica_election_results.v[t];
        for (int i = 0; i < topic->partition_result.n; i++) {
            answer_part *part = &topic->partition_result.v[i];
            if (part->error_code == KERR_NONE && !j->partitions.v[at++]->elected)
                part->error_code = is_unclean(j) ? KERR_ELIGIBLE_LEADERS_NOT_AVAILABLE
                                                 : KERR_PREFERRED_LEADER_NOT_AVAILABLE;
        }
    }
    call_answer(f);
}

static const flow_step elect_steps[] = {consider_request, answer, NULL};
const struct event_kind event_elect_leaders = {"ReplicaLeaderElection", elect_steps, true, false,
                                               CONTROLLER_MANUAL_BALANCE};

/* ---- the node: /admin/preferred_replica_election ---- */

static void read_node(struct flow *f)
{
    job_ask(f, store_op_exists(PATH_PREFERRED, true));
    job_ask(f, store_op_get(PATH_PREFERRED, false));
}

static void elect_named(struct flow *f)
{
    struct job *j = job_of(f);
    struct named_partitions l;
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_next(flow_answers(f), store_batch_first(flow_answers(f)));
    if (r->status == -ENOENT) {
        flow_end(f);
        return;
    }
    if (r->status || znode_partitions_decode(r->ops[0].result, &f->arena, &l))
        say_warn(j->c->component, "%s is malformed: it is removed", PATH_PREFERRED);
    for (int i = 0; !r->status && i < l.n; i++) {
        struct ctl_topic *t = context_topic(&j->c->ctx, l.v[i].topic);
        struct ctl_partition *p = t ? context_partition(t, l.v[i].partition) : NULL;
        if (p && p->known && !t->deleting && p->leader != p->replicas[0].broker)
            job_add_partition(f, &j->partitions, p);
    }
    partitions_elect(f, j->partitions, ELECT_PREFERRED);
}

/* Whatever came of it. */
static void remove_node(struct flow *f)
{
    job_ask_fenced(f, store_op_delete(PATH_PREFERRED, STORE_ANY_VERSION));
}

static void removed(struct flow *f)
{
    job_answered(f);
}

static const flow_step node_steps[] = {read_node, elect_named, remove_node, removed, NULL};
const struct event_kind event_preferred_node = {"PreferredReplicaElection", node_steps, true, true,
                                                CONTROLLER_MANUAL_BALANCE};

/* ---- balancing ---- */

/* Brokers by how many of the partitions they should lead are led by others. */
struct head {
    int32_t broker;
    int all, elsewhere;
};

static struct head *head_of(struct head *heads, int *n, int32_t broker)
{
    for (int i = 0; i < *n; i++)
        if (heads[i].broker == broker)
            return &heads[i];
    heads[*n] = (struct head){.broker = broker};
    return &heads[(*n)++];
}

static bool counts(const struct ctl_partition *p)
{
    return p->known && p->replicas_n > 0 && !p->topic->deleting;
}

static bool can_go_home(const struct controller *c, const struct ctl_partition *p)
{
    int32_t head = p->replicas[0].broker;
    return counts(p) && p->leader != head && !context_is_moving(p) &&
           replica_is_online(c, p, head) && id_list_has(p->isr, head);
}

static void look_at_balance(struct flow *f)
{
    struct job *j = job_of(f);
    struct controller *c = j->c;
    struct head *heads = arena_array(&f->arena, struct head, (size_t)c->ctx.brokers_n + 1);
    int n = 0;
    if (!heads) {
        flow_fail(f, -ENOMEM);
        return;
    }
    for (int i = 0; i < c->ctx.brokers_n; i++) /* the others can lead nothing anyway */
        head_of(heads, &n, c->ctx.brokers[i]->id);
    hmap_each (h, &c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n; i++) {
            struct ctl_partition *p = t->partitions[i];
            if (!counts(p) || !context_broker(&c->ctx, p->replicas[0].broker))
                continue;
            struct head *head = head_of(heads, &n, p->replicas[0].broker);
            head->all++;
            head->elsewhere += p->leader != head->broker;
        }
    }
    hmap_each (h, &c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n; i++) {
            struct ctl_partition *p = t->partitions[i];
            if (!p->replicas_n || !can_go_home(c, p))
                continue;
            struct head *head = head_of(heads, &n, p->replicas[0].broker);
            if (100.0 * head->elsewhere > (double)c->o.imbalance_percent * head->all)
                job_add_partition(f, &j->partitions, p);
        }
    }
    if (j->partitions.n)
        say_info(c->component, "%d partitions go back to their preferred leaders", j->partitions.n);
    partitions_elect(f, j->partitions, ELECT_PREFERRED);
}

static void again_later(struct flow *f)
{
    struct controller *c = controller_of(f);
    executor_timer_start(c->o.ex, &c->rebalance_timer, c->o.rebalance_ms);
}

static const flow_step balance_steps[] = {look_at_balance, again_later, NULL};
static const struct event_kind event_balance = {"AutoPreferredReplicaLeaderElection", balance_steps,
                                                true, true, CONTROLLER_AUTO_BALANCE};

void rebalance_due(struct timer *t)
{
    struct controller *c = container_of(t, struct controller, rebalance_timer);
    controller_event(c, &event_balance);
}

/* ---- unclean elections became allowed ---- */

/* job.topic: null = all. */
static void elect_unclean(struct flow *f)
{
    struct job *j = job_of(f);
    hmap_each (h, &j->c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        if (t->deleting || (j->topic.len > 0 && !str_eq(t->name, j->topic)))
            continue;
        for (int i = 0; i < t->partitions_n; i++)
            if (t->partitions[i]->state == PARTITION_OFFLINE)
                job_add_partition(f, &j->partitions, t->partitions[i]);
    }
    partitions_elect(f, j->partitions, ELECT_OFFLINE);
}

static const flow_step unclean_steps[] = {elect_unclean, NULL};
const struct event_kind event_unclean = {"UncleanLeaderElectionEnable", unclean_steps, true, false,
                                         CONTROLLER_UNCLEAN_ENABLE};
