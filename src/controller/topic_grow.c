/* topic_grow.c - CreatePartitions: reads the topic's node, checks, and writes it back with the new
 * partitions behind the old ones, provided that nobody changed it meanwhile; else once more. */
#include <stdlib.h>

#include "controller/topic_admin_private.h"
#include "metadata/paths.h"

struct growth {
    struct topic_growth *topic;
    bool over;
    bool permitted; /* by topic->permit */
    int marked;     /* status of the delete mark */
};

struct grow_call {
    struct admin_call call;
    int n;
    struct growth growths[];
};

static struct grow_call *grow_of(struct flow *f)
{
    return container_of(call_of(f), struct grow_call, call);
}

#define refuse(t, code, ...) admin_refuse(&(t)->error, &(t)->message, (code), __VA_ARGS__)

static void ask_store(struct flow *f)
{
    struct grow_call *call = grow_of(f);
    for (int i = 0; i < call->n; i++) {
        struct growth *g = &call->growths[i];
        if (g->topic->error && !g->over)
            g->over = true;
        if (!g->over && topic_name_problem(g->topic->name)) {
            refuse(g->topic, KERR_UNKNOWN_TOPIC_OR_PARTITION, "The topic '%.*s' does not exist.",
                   STR_ARG(g->topic->name));
            g->over = true;
        }
        if (g->over)
            continue;
        char *mark = path_delete_topic(&f->arena, g->topic->name);
        char *node = path_topic(&f->arena, g->topic->name);
        struct store_request *m =
            mark ? store_batch_add(flow_ask(f), store_op_exists(mark, false)) : NULL;
        struct store_request *t =
            node ? store_batch_add(flow_ask(f), store_op_get(node, false)) : NULL;
        if (!m || !t) {
            flow_fail(f, -ENOMEM);
            return;
        }
        m->user = t->user = g;
    }
    if (!flow_ask(f)->n)
        flow_end(f);
}

static bool being_reassigned(const struct topic_node *node)
{
    for (int i = 0; i < node->partitions_n; i++)
        if (node->partitions[i].adding.n || node->partitions[i].removing.n)
            return true;
    return false;
}

static bool known_broker(const struct assign_broker *brokers, int n, int32_t id)
{
    for (int i = 0; i < n; i++)
        if (brokers[i].id == id)
            return true;
    return false;
}

static void check_count(struct topic_growth *t, const struct topic_node *node)
{
    int have = node->partitions_n;
    if (being_reassigned(node))
        refuse(t, KERR_REASSIGNMENT_IN_PROGRESS,
               "A partition reassignment is in progress for the topic '%.*s'.", STR_ARG(t->name));
    if (t->count < have)
        refuse(t, KERR_INVALID_PARTITIONS,
               "Topic currently has %d partitions, which is higher than the requested %d.", have,
               t->count);
    if (t->count == have)
        refuse(t, KERR_INVALID_PARTITIONS, "Topic already has %d partitions.", have);
    if (t->count > TOPIC_PARTITIONS_MAX)
        refuse(t, KERR_INVALID_PARTITIONS, "Number of partitions must not be larger than %d.",
               TOPIC_PARTITIONS_MAX);
    if (!have || node->partitions[0].partition != 0 || !node->partitions[0].replicas.n)
        refuse(t, KERR_UNKNOWN_SERVER_ERROR, "The topic's node has no partition 0.");
    if (!t->error && t->assignments && t->assignments_n != t->count - have)
        refuse(t, KERR_INVALID_REPLICA_ASSIGNMENT,
               "Increasing the number of partitions by %d but %d assignments provided.",
               t->count - have, t->assignments_n);
}

static void check_assignment(struct topic_growth *t, const struct manual_assignment *m, int want,
                             const struct assign_broker *brokers, int brokers_n)
{
    if (m->brokers_n != want)
        refuse(t, KERR_INVALID_REPLICA_ASSIGNMENT,
               "Inconsistent replication factor between partitions: partition 0 has %d replicas, "
               "an added one %d.",
               want, m->brokers_n);
    for (int i = 0; i < m->brokers_n && !t->error; i++) {
        if (!known_broker(brokers, brokers_n, m->brokers[i]))
            refuse(t, KERR_INVALID_REPLICA_ASSIGNMENT,
                   "Unknown broker(s) in replica assignment: %d.", m->brokers[i]);
        for (int k = 0; k < i; k++)
            if (m->brokers[k] == m->brokers[i])
                refuse(t, KERR_INVALID_REPLICA_ASSIGNMENT,
                       "Duplicate brokers not allowed in replica assignment: %d.", m->brokers[i]);
    }
}

/* Ids of the added partitions, one after another; NULL on error. */
static const int32_t *draw(struct topic_growth *t, const struct topic_node *node,
                           const struct assign_broker *brokers, int brokers_n, struct arena *a)
{
    int replication = node->partitions[0].replicas.n;
    enum assign_racks racks = assign_racks(brokers, brokers_n);
    if (replication > brokers_n)
        refuse(t, KERR_INVALID_REPLICATION_FACTOR,
               "Replication factor: %d larger than available brokers: %d.", replication, brokers_n);
    if (racks == ASSIGN_SOME_RACKS)
        refuse(t, KERR_UNKNOWN_SERVER_ERROR,
               "Not all brokers have rack information for replica rack aware assignment.");
    if (t->error)
        return NULL;
    int start = assign_start_of(brokers, brokers_n, node->partitions[0].replicas.v[0]);
    struct assign_args args = {.brokers = brokers,
                               .brokers_n = brokers_n,
                               .use_racks = racks == ASSIGN_ALL_RACKS,
                               .first = node->partitions_n,
                               .partitions = t->count - node->partitions_n,
                               .replication = replication,
                               .start = start,
                               .shift = start};
    const int32_t *ids = assign_replicas(&args, a);
    if (!ids)
        refuse(t, KERR_UNKNOWN_SERVER_ERROR, "no memory");
    return ids;
}

/* Puts the added partitions behind those of the node. */
static void extend(struct topic_admin *admin, struct topic_growth *t, struct topic_node *node,
                   struct arena *a)
{
    int n, have = node->partitions_n;
    struct assign_broker *brokers = admin_brokers(admin, a, &n);
    if (!brokers)
        refuse(t, KERR_UNKNOWN_SERVER_ERROR, "no memory");
    check_count(t, node);
    if (t->error)
        return;
    int replication = node->partitions[0].replicas.n;
    for (int i = 0; t->assignments && i < t->assignments_n; i++)
        check_assignment(t, &t->assignments[i], replication, brokers, n);
    const int32_t *ids = t->assignments || t->error ? NULL : draw(t, node, brokers, n, a);
    struct partition_assignment *p =
        t->error ? NULL : arena_array(a, struct partition_assignment, (size_t)t->count);
    if (!p)
        refuse(t, KERR_UNKNOWN_SERVER_ERROR, "no memory");
    if (t->error)
        return;
    memcpy(p, node->partitions, (size_t)have * sizeof(*p));
    for (int i = have; i < t->count; i++) {
        const int32_t *v = t->assignments ? t->assignments[i - have].brokers
                                          : ids + (size_t)(i - have) * (size_t)replication;
        p[i] =
            (struct partition_assignment){.partition = i, .replicas = {(int32_t *)v, replication}};
    }
    node->partitions = p;
    node->partitions_n = t->count;
}

static void take_node(struct flow *f, struct growth *g, const struct store_request *r)
{
    struct grow_call *call = grow_of(f);
    struct topic_growth *t = g->topic;
    struct topic_node node;
    if (r->status == -ENOENT)
        refuse(t, KERR_UNKNOWN_TOPIC_OR_PARTITION, "The topic '%.*s' does not exist.",
               STR_ARG(t->name));
    if (g->marked == 0)
        refuse(t, KERR_INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.");
    if (!t->error && znode_topic_decode(r->ops[0].result, &f->arena, &node))
        refuse(t, KERR_UNKNOWN_SERVER_ERROR, "The topic's node is malformed.");
    int32_t had = t->error ? 0 : node.partitions_n;
    if (!t->error)
        extend(call->call.admin, t, &node, &f->arena);
    if (!t->error && !call->call.validate_only &&
        !admin_permitted(t->permit, &g->permitted, t->count - had))
        t->error = KERR_THROTTLING_QUOTA_EXCEEDED;
    g->over = t->error || call->call.validate_only;
    if (g->over)
        return;
    struct bytes data = znode_topic_encode(&node, &f->arena);
    struct store_request *w =
        data.p ? store_batch_add(flow_ask(f),
                                 store_op_set(r->ops[0].path, data, r->ops[0].stat.version))
               : NULL;
    if (w)
        w->user = g;
    else
        flow_fail(f, -ENOMEM);
}

static void decide(struct flow *f)
{
    store_batch_each (r, flow_answers(f)) {
        struct growth *g = r->user;
        if (r->status && r->status != -ENOENT) {
            flow_fail(f, r->status);
            return;
        }
        if (r->ops[0].type == STORE_EXISTS)
            g->marked = r->status;
        else
            take_node(f, g, r);
    }
}

static void look_at_write(struct flow *f)
{
    bool again = false;
    store_batch_each (r, flow_answers(f)) {
        struct growth *g = r->user;
        bool conflict = r->status == STORE_BAD_VERSION || r->status == -ENOENT;
        if (r->status && !conflict)
            g->topic->error = admin_store_error(r->status);
        g->over = !conflict;
        again |= conflict;
    }
    if (again)
        flow_goto(f, ask_store);
}

static const flow_step steps[] = {ask_store, decide, look_at_write, NULL};

static void no_store(struct admin_call *c, enum kerr error)
{
    struct grow_call *call = container_of(c, struct grow_call, call);
    for (int i = 0; i < call->n; i++)
        if (!call->growths[i].over && !call->growths[i].topic->error)
            call->growths[i].topic->error = error;
}

void topic_admin_grow(struct topic_admin *t, struct topic_growth *topics, int n, bool validate_only,
                      struct executor *done_on, void (*done)(void *arg), void *arg)
{
    struct grow_call *call = calloc(1, sizeof(*call) + (size_t)n * sizeof(struct growth));
    for (int i = 0; !call && i < n; i++)
        if (!topics[i].error)
            topics[i].error = KERR_UNKNOWN_SERVER_ERROR;
    if (!call) {
        done(arg);
        return;
    }
    call->call = (struct admin_call){.validate_only = validate_only,
                                     .done_on = done_on,
                                     .done = done,
                                     .arg = arg,
                                     .no_store = no_store};
    call->n = n;
    for (int i = 0; i < n; i++)
        call->growths[i].topic = &topics[i];
    admin_call_start(t, &call->call, steps);
}
