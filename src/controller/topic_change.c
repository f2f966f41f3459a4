/* topic_change.c - topics that appear, vanish, or get more partitions. */
#include <stdlib.h>

#include "controller/controller_private.h"

static void node_changed(struct store_watch *w)
{
    struct ctl_topic *t = container_of(w, struct ctl_topic, watch);
    struct job *j = controller_event(t->owner, &event_topic_modified);
    if (j)
        j->topic = arena_str(&j->inputs, t->name);
}

static void topic_watch(struct controller *c, struct ctl_topic *t)
{
    t->owner = c;
    controller_watch_on(c, &t->watch, t->path, false, node_changed);
    t->watched = true;
}

void topic_unwatch(struct controller *c, struct ctl_topic *t)
{
    if (t->watched)
        store_unwatch(c->o.store, &t->watch);
    t->watched = false;
}

void topic_forget(struct controller *c, struct ctl_topic *t)
{
    topic_unwatch(c, t);
    context_remove_topic(&c->ctx, t);
}

struct ctl_topic *topic_begin(struct flow *f, struct str name)
{
    struct controller *c = controller_of(f);
    struct ctl_topic *t = context_add_topic(&c->ctx, name, UUID_ZERO);
    if (!t) {
        flow_fail(f, -ENOMEM);
        return NULL;
    }
    topic_watch(c, t);
    /* the path is not t's own: t may go while the store still looks for it */
    struct store_request *r = job_ask(f, store_op_get(path_topic(&f->arena, t->name), true));
    if (r)
        r->user = t;
    return t;
}

/* Adds the partitions that the topic does not have yet. */
static int add_partitions(struct ctl_topic *t, const struct topic_node *node)
{
    for (int i = 0; i < node->partitions_n; i++) {
        const struct partition_assignment *a = &node->partitions[i];
        t->moving |= a->adding.n || a->removing.n;
        if (!context_partition(t, a->partition) && !context_add_partition(t, a))
            return -ENOMEM;
    }
    return 0;
}

bool topic_fill(struct flow *f, const struct store_request *r)
{
    struct controller *c = controller_of(f);
    struct ctl_topic *t = r->user;
    struct topic_node node;
    if (r->status == -ENOENT) { /* gone again */
        topic_forget(c, t);
        return false;
    }
    if (r->status || znode_topic_decode(r->ops[0].result, &f->arena, &node)) {
        say_error(c->component, "%s is malformed: topic ignored", t->path);
        topic_forget(c, t);
        c->ignored_topics++;
        return false;
    }
    if (context_set_topic_id(&c->ctx, t, node.id) || add_partitions(t, &node)) {
        flow_fail(f, -ENOMEM);
        return false;
    }
    return true;
}

/* Ids for topics made by tools or older brokers. */

struct bytes topic_node_of(struct flow *f, const struct ctl_topic *t)
{
    struct topic_node node = {.id = t->id, .partitions_n = t->partitions_n};
    node.partitions = arena_array(&f->arena, struct partition_assignment, (size_t)t->partitions_n);
    for (int i = 0; node.partitions && i < t->partitions_n; i++) {
        const struct ctl_partition *p = t->partitions[i];
        int32_t *ids = arena_array(&f->arena, int32_t, 3 * (size_t)p->replicas_n);
        if (!ids)
            return BYTES_NULL;
        struct partition_assignment *a = &node.partitions[i];
        *a = (struct partition_assignment){.partition = p->number,
                                           .replicas = {ids, p->replicas_n},
                                           .adding = {ids + p->replicas_n, 0},
                                           .removing = {ids + 2 * p->replicas_n, 0}};
        for (int k = 0; k < p->replicas_n; k++) {
            const struct ctl_replica *r = &p->replicas[k];
            ids[k] = r->broker;
            if (r->adding)
                a->adding.v[a->adding.n++] = r->broker;
            if (r->removing)
                a->removing.v[a->removing.n++] = r->broker;
        }
    }
    return node.partitions ? znode_topic_encode(&node, &f->arena) : BYTES_NULL;
}

void topic_ask_ids(struct flow *f, const struct topic_list *l)
{
    struct controller *c = controller_of(f);
    for (int i = 0; i < l->n && ibp_has_topic_ids(c->o.ibp); i++) {
        struct ctl_topic *t = l->v[i];
        if (!uuid_is_zero(t->id))
            continue;
        if (context_set_topic_id(&c->ctx, t, uuid_random()))
            flow_fail(f, -ENOMEM);
        job_ask_fenced(f, store_op_set(path_topic(&f->arena, t->name), topic_node_of(f, t),
                                       STORE_ANY_VERSION));
    }
}

bool topic_ids_given(struct flow *f)
{
    if (!job_answered(f))
        return false;
    store_batch_each (r, flow_answers(f)) {
        int status = job_status(r);
        if (status && status != -ENOENT) { /* -ENOENT: removed by hand, an event follows */
            flow_fail(f, status);
            return false;
        }
    }
    return true;
}

/* New partitions: all replicas that are online form the first ISR. job.partitions, job.replicas */

static void make_new(struct flow *f)
{
    struct job *j = job_of(f);
    partitions_move(j->c, &j->partitions, PARTITION_NEW);
    replicas_move(j->c, &j->replicas, REPLICA_NEW);
    partitions_elect(f, j->partitions, ELECT_OFFLINE);
}

static void make_online(struct flow *f)
{
    struct job *j = job_of(f);
    replicas_move(j->c, &j->replicas, REPLICA_ONLINE);
}

static const flow_step create_steps[] = {make_new, make_online, NULL};

static void call_create(struct flow *f)
{
    struct job *j = job_of(f);
    struct job *create = j->partitions.n ? job_new(f) : NULL;
    if (!create)
        return;
    create->partitions = j->partitions;
    create->replicas = j->replicas;
    job_call(f, create, create_steps);
}

/* Event: the children of /brokers/topics. */

static void list_topics(struct flow *f)
{
    struct store_op op = store_op_children(PATH_TOPICS, true);
    op.newer_than = controller_of(f)->topics_as_of;
    job_ask(f, op);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Topics that are gone though nobody asked for it; only after a listing in full. */
static void forget_vanished(struct controller *c, char **names, int n)
{
    if (n)
        qsort(names, (size_t)n, sizeof(char *), compare_names);
    for (struct hnode *h = hmap_first(&c->ctx.topics), *next; h; h = next) {
        next = hmap_next(&c->ctx.topics, h);
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        if (n && bsearch(&t->name.p, names, (size_t)n, sizeof(char *), compare_names))
            continue;
        say_warn(c->component, "topic %.*s has vanished", STR_ARG(t->name));
        topic_forget(c, t);
    }
}

static void read_new(struct flow *f)
{
    struct job *j = job_of(f);
    struct controller *c = j->c;
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_first(flow_answers(f));
    struct store_op *op = &r->ops[0];
    if (r->status) {
        flow_fail(f, r->status);
        return;
    }
    if (!op->partial) {
        c->ignored_topics = 0;
        forget_vanished(c, op->names, op->names_n);
    }
    for (int i = 0; i < op->names_n; i++)
        if (!context_topic(&c->ctx, str_of(op->names[i])))
            topic_begin(f, str_of(op->names[i]));
    c->topics_as_of = op->as_of;
    if (op->partial && (int)c->ctx.topics.n + c->ignored_topics != op->stat.children_n) {
        c->topics_as_of = 0; /* something went: list all of them after this */
        controller_event(c, &event_topic_change);
    }
}

static void learn_new(struct flow *f)
{
    struct job *j = job_of(f);
    if (!job_answered(f))
        return;
    store_batch_each (r, flow_answers(f))
        if (topic_fill(f, r))
            job_add_topic(f, &j->topics, r->user);
    topic_ask_ids(f, &j->topics);
}

static void create_new(struct flow *f)
{
    struct job *j = job_of(f);
    if (!topic_ids_given(f))
        return;
    for (int i = 0; i < j->topics.n; i++)
        job_add_all_of_topic(f, j->topics.v[i]);
    call_create(f);
}

static const flow_step change_steps[] = {list_topics, read_new, learn_new, create_new, NULL};
const struct event_kind event_topic_change = {"TopicChange", change_steps, true, true,
                                              CONTROLLER_TOPIC_CHANGE};

/* Event: the data of a topic's node. job.topic */

static struct ctl_topic *topic_of(struct job *j)
{
    return context_topic(&j->c->ctx, j->topic);
}

static void read_node(struct flow *f)
{
    struct ctl_topic *t = topic_of(job_of(f));
    if (t)
        job_ask(f, store_op_get(path_topic(&f->arena, t->name), true));
    else
        flow_end(f);
}

static bool has_more(const struct ctl_topic *t, const struct topic_node *node)
{
    for (int i = 0; i < node->partitions_n; i++)
        if (!context_partition(t, node->partitions[i].partition))
            return true;
    return false;
}

static void take_node(struct flow *f)
{
    struct job *j = job_of(f);
    struct ctl_topic *t = topic_of(j);
    struct topic_node node;
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_first(flow_answers(f));
    if (r->status == -ENOENT) /* the list of topics tells */
        return;
    if (r->status || znode_topic_decode(r->ops[0].result, &f->arena, &node)) {
        say_error(j->c->component, "%s is malformed: change ignored", t->path);
        return;
    }
    if (!has_more(t, &node))
        return;
    if (t->deleting) { /* a topic on its way out does not grow */
        job_ask_fenced(f, store_op_set(path_topic(&f->arena, t->name), topic_node_of(f, t),
                                       STORE_ANY_VERSION));
        return;
    }
    int before = t->partitions_n;
    if (add_partitions(t, &node)) {
        flow_fail(f, -ENOMEM);
        return;
    }
    say_info(j->c->component, "topic %.*s grows from %d to %d partitions", STR_ARG(t->name), before,
             t->partitions_n);
    for (int i = 0; i < t->partitions_n; i++) {
        struct ctl_partition *p = t->partitions[i];
        if (p->state != PARTITION_NON_EXISTENT)
            continue;
        job_add_partition(f, &j->partitions, p);
        for (int k = 0; k < p->replicas_n; k++)
            job_add_replica(f, &j->replicas, p, &p->replicas[k]);
    }
    call_create(f);
}

static void see_restored(struct flow *f)
{
    job_answered(f);
}

static const flow_step modified_steps[] = {read_node, take_node, see_restored, NULL};
const struct event_kind event_topic_modified = {"PartitionModifications", modified_steps, true,
                                                false, CONTROLLER_TOPIC_CHANGE};
