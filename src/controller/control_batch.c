/* control_batch.c - a round of control requests: what the state machines decide, gathered per
 * broker and partition, and sent as LeaderAndIsr, then UpdateMetadata, then StopReplica.
 *
 * An entry only names the partition; the state that is in force when the round is sent is what goes
 * out, so the last decision wins. "New" and "delete" stick.
 * MEMORY   all requests of a round, and what they point at, lie in one arena, which goes with the
 *          last answer; nothing in it points into the context, which may change before the requests
 *          are on their way. */
#include <stdlib.h>

#include "controller/control_answers.h"
#include "controller/controller_private.h"
#include "protocol/api.h"
#include "protocol/msg/leader_and_isr.h"
#include "protocol/msg/stop_replica.h"
#include "protocol/msg/update_metadata.h"

enum { ENTRY_LEADER = 1, ENTRY_NEW = 2, ENTRY_STOP = 4, ENTRY_DELETE = 8 };
enum { LEADER_DURING_DELETE = -2, EPOCH_DURING_DELETE = -2, NO_EPOCH = -1 };
enum { FIRST_STOP_BY_PARTITION = 3 }; /* earlier StopReplicas delete all they name, or nothing */

typedef struct leader_and_isr_request lisr_request;
typedef struct leader_and_isr_request_topic_state lisr_topic;
typedef struct leader_and_isr_request_partition_state lisr_partition;
typedef struct update_metadata_request umr_request;
typedef struct update_metadata_request_topic_state umr_topic;
typedef struct update_metadata_request_partition_state umr_partition;
typedef struct stop_replica_request sr_request;
typedef struct stop_replica_request_topic_state sr_topic;
typedef struct stop_replica_request_partition_state sr_partition;

/* Gathering. */

static void *grown(void *v, int n, int *cap, size_t size)
{
    if (n < *cap)
        return v;
    int more = *cap ? *cap * 2 : 64;
    void *bigger = realloc(v, (size_t)more * size);
    if (bigger)
        *cap = more;
    return bigger;
}

/* A broker that is told half of a round would follow a leader that was never told to lead. */
static void out_of_memory(struct controller *c)
{
    controller_fatal(c, "no memory for control requests");
}

static void add_entry(struct controller *c, int32_t broker, struct ctl_partition *p, uint8_t flags)
{
    struct ctl_broker *b = context_broker(&c->ctx, broker);
    if (!b)
        return;
    struct ctl_entry *v = grown(b->outbox.v, b->outbox.n, &b->outbox.cap, sizeof(*v));
    if (!v) {
        out_of_memory(c);
        return;
    }
    b->outbox.v = v;
    v[b->outbox.n++] = (struct ctl_entry){p, flags};
}

void batch_leader_and_isr(struct controller *c, int32_t broker, struct ctl_partition *p,
                          bool is_new)
{
    add_entry(c, broker, p, ENTRY_LEADER | (is_new ? ENTRY_NEW : 0));
    batch_metadata(c, p);
}

void batch_stop(struct controller *c, int32_t broker, struct ctl_partition *p, bool del)
{
    add_entry(c, broker, p, ENTRY_STOP | (del ? ENTRY_DELETE : 0));
}

void batch_metadata(struct controller *c, struct ctl_partition *p)
{
    struct ctl_partition **v = grown(c->metadata, c->metadata_n, &c->metadata_cap, sizeof(*v));
    if (!v) {
        out_of_memory(c);
        return;
    }
    c->metadata = v;
    v[c->metadata_n++] = p;
    c->metadata_to_all = true;
}

void batch_metadata_to_all(struct controller *c)
{
    c->metadata_to_all = true;
}

void batch_metadata_to(struct controller *c, int32_t broker)
{
    struct ctl_broker *b = context_broker(&c->ctx, broker);
    if (b)
        b->outbox.metadata = true;
}

void batch_clear(struct controller *c)
{
    for (int i = 0; i < c->ctx.brokers_n; i++) {
        c->ctx.brokers[i]->outbox.n = 0;
        c->ctx.brokers[i]->outbox.metadata = false;
    }
    c->metadata_n = 0;
    c->metadata_to_all = false;
}

/* Order and duplicates. */

static int compare(const struct ctl_partition *a, const struct ctl_partition *b)
{
    if (a->topic != b->topic)
        return a->topic->order < b->topic->order ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int by_entry(const void *a, const void *b)
{
    return compare(((const struct ctl_entry *)a)->partition,
                   ((const struct ctl_entry *)b)->partition);
}

static int by_partition(const void *a, const void *b)
{
    return compare(*(struct ctl_partition *const *)a, *(struct ctl_partition *const *)b);
}

static void merge_entries(struct ctl_outbox *o)
{
    int n = 0;
    if (o->n)
        qsort(o->v, (size_t)o->n, sizeof(*o->v), by_entry);
    for (int i = 0; i < o->n; i++) {
        if (n && o->v[n - 1].partition == o->v[i].partition)
            o->v[n - 1].flags |= o->v[i].flags;
        else
            o->v[n++] = o->v[i];
    }
    o->n = n;
}

static void merge_metadata(struct controller *c)
{
    int n = 0;
    if (c->metadata_n)
        qsort(c->metadata, (size_t)c->metadata_n, sizeof(*c->metadata), by_partition);
    for (int i = 0; i < c->metadata_n; i++)
        if (!n || c->metadata[n - 1] != c->metadata[i])
            c->metadata[n++] = c->metadata[i];
    c->metadata_n = n;
}

/* Building. Without memory the arena tells, and is asked once at the end. */

static int32_t *copy_ids(struct arena *a, const int32_t *v, int n)
{
    int32_t *copy = arena_array(a, int32_t, (size_t)n);
    if (copy && n)
        memcpy(copy, v, (size_t)n * sizeof(*v));
    return copy;
}

static int32_t *replica_ids(struct arena *a, const struct ctl_partition *p)
{
    int32_t *ids = arena_array(a, int32_t, (size_t)p->replicas_n);
    for (int i = 0; ids && i < p->replicas_n; i++)
        ids[i] = p->replicas[i].broker;
    return ids;
}

/* Where the topic's name lies in the round's arena: copied once for all requests. */
struct round_builder {
    struct controller *c;
    struct arena *a;
    struct ctl_topic *topic; /* the one of `name` */
    struct str name;
};

static struct str topic_name(struct round_builder *b, struct ctl_topic *t)
{
    if (b->topic != t)
        b->name = arena_str(b->a, t->name);
    b->topic = t;
    return b->name;
}

static const struct endpoint *inter_broker_endpoint(const struct controller *c,
                                                    const struct broker_info *b)
{
    if (str_is_null(c->o.listener))
        return b->endpoints_n ? &b->endpoints[0] : NULL;
    return broker_endpoint(b, c->o.listener);
}

static void fill_lisr_partition(struct arena *a, const struct ctl_entry *e, int ibp,
                                lisr_partition *out)
{
    const struct ctl_partition *p = e->partition;
    out->partition_index = p->number;
    out->controller_epoch = p->controller_epoch;
    out->leader = p->leader;
    out->leader_epoch = p->leader_epoch;
    out->isr.v = copy_ids(a, p->isr.v, p->isr.n);
    out->isr.n = p->isr.n;
    out->partition_epoch = p->epoch;
    out->replicas.v = replica_ids(a, p);
    out->replicas.n = p->replicas_n;
    out->adding_replicas.v = arena_array(a, int32_t, (size_t)p->replicas_n);
    out->removing_replicas.v = arena_array(a, int32_t, (size_t)p->replicas_n);
    out->adding_replicas.n = out->removing_replicas.n = 0;
    for (int i = 0; i < p->replicas_n; i++) {
        if (p->replicas[i].adding && out->adding_replicas.v)
            out->adding_replicas.v[out->adding_replicas.n++] = p->replicas[i].broker;
        if (p->replicas[i].removing && out->removing_replicas.v)
            out->removing_replicas.v[out->removing_replicas.n++] = p->replicas[i].broker;
    }
    out->is_new = e->flags & ENTRY_NEW;
    out->leader_recovery_state = p->recovering && ibp_has_recovery_state(ibp);
}

/* The brokers that lead something in the request, with their addresses. */
static void fill_live_leaders(struct round_builder *b, const struct ctl_outbox *o, lisr_request *r)
{
    struct context *x = &b->c->ctx;
    bool *leads = arena_array(b->a, bool, (size_t)x->brokers_n);
    r->live_leaders.v = leader_and_isr_request_live_leader_new(b->a, x->brokers_n);
    r->live_leaders.n = 0;
    if (!leads || !r->live_leaders.v)
        return;
    for (int i = 0; i < x->brokers_n; i++)
        for (int k = 0; k < o->n && !leads[i]; k++)
            leads[i] =
                o->v[k].flags & ENTRY_LEADER && o->v[k].partition->leader == x->brokers[i]->id;
    for (int i = 0; i < x->brokers_n; i++) {
        const struct endpoint *e = inter_broker_endpoint(b->c, &x->brokers[i]->info);
        if (!leads[i] || !e)
            continue;
        struct leader_and_isr_request_live_leader *l = &r->live_leaders.v[r->live_leaders.n++];
        l->broker_id = x->brokers[i]->id;
        l->host_name = arena_str(b->a, e->host);
        l->port = e->port;
    }
}

static lisr_request *build_lisr(struct round_builder *b, const struct ctl_broker *to, int entries)
{
    const struct ctl_outbox *o = &to->outbox;
    lisr_request *r = arena_new(b->a, lisr_request);
    lisr_topic *topics = leader_and_isr_request_topic_state_new(b->a, entries);
    lisr_partition *parts = leader_and_isr_request_partition_state_new(b->a, entries);
    if (!r || !topics || !parts)
        return NULL;
    leader_and_isr_request_init(r);
    r->controller_id = b->c->o.broker_id;
    r->controller_epoch = b->c->epoch;
    r->broker_epoch = to->epoch;
    r->topic_states.v = topics;
    const struct ctl_topic *last = NULL;
    for (int i = 0; i < o->n; i++) {
        struct ctl_topic *t = o->v[i].partition->topic;
        if (!(o->v[i].flags & ENTRY_LEADER))
            continue;
        if (t != last) {
            lisr_topic *ts = &topics[r->topic_states.n++];
            ts->topic_name = topic_name(b, t);
            ts->topic_id = t->id;
            ts->partition_states.v = parts;
        }
        last = t;
        fill_lisr_partition(b->a, &o->v[i], b->c->o.ibp, parts++);
        topics[r->topic_states.n - 1].partition_states.n++;
    }
    fill_live_leaders(b, o, r);
    return r;
}

static void fill_umr_partition(struct round_builder *b, const struct ctl_partition *p,
                               umr_partition *out)
{
    bool deleting = p->topic->deleting;
    out->partition_index = p->number;
    out->controller_epoch = p->controller_epoch;
    out->leader = deleting ? LEADER_DURING_DELETE : p->leader;
    out->leader_epoch = deleting ? 0 : p->leader_epoch;
    out->isr.v = copy_ids(b->a, p->isr.v, p->isr.n);
    out->isr.n = p->isr.n;
    out->zk_version = deleting ? 0 : p->epoch;
    out->replicas.v = replica_ids(b->a, p);
    out->replicas.n = p->replicas_n;
    out->offline_replicas.v = arena_array(b->a, int32_t, (size_t)p->replicas_n);
    out->offline_replicas.n = 0;
    for (int i = 0; out->offline_replicas.v && i < p->replicas_n; i++)
        if (!replica_is_online(b->c, p, p->replicas[i].broker))
            out->offline_replicas.v[out->offline_replicas.n++] = p->replicas[i].broker;
}

static void fill_live_brokers(struct round_builder *b, umr_request *r)
{
    struct context *x = &b->c->ctx;
    r->live_brokers.v = update_metadata_request_live_broker_new(b->a, x->brokers_n);
    r->live_brokers.n = x->brokers_n;
    for (int i = 0; r->live_brokers.v && i < x->brokers_n; i++) {
        const struct broker_info *info = &x->brokers[i]->info;
        struct update_metadata_request_live_broker *out = &r->live_brokers.v[i];
        out->id = info->id;
        out->rack = arena_str(b->a, info->rack);
        out->endpoints.v = update_metadata_request_endpoint_new(b->a, info->endpoints_n);
        out->endpoints.n = info->endpoints_n;
        for (int k = 0; out->endpoints.v && k < info->endpoints_n; k++) {
            out->endpoints.v[k].listener = arena_str(b->a, info->endpoints[k].listener);
            out->endpoints.v[k].host = arena_str(b->a, info->endpoints[k].host);
            out->endpoints.v[k].port = info->endpoints[k].port;
            out->endpoints.v[k].security_protocol = info->endpoints[k].security_protocol;
        }
    }
}

/* The same for all brokers but for the epoch of the one it goes to. */
static umr_request *build_umr(struct round_builder *b)
{
    struct controller *c = b->c;
    umr_request *r = arena_new(b->a, umr_request);
    umr_topic *topics = update_metadata_request_topic_state_new(b->a, c->metadata_n);
    umr_partition *parts = update_metadata_request_partition_state_new(b->a, c->metadata_n);
    if (!r || !topics || !parts)
        return NULL;
    update_metadata_request_init(r);
    r->controller_id = c->o.broker_id;
    r->controller_epoch = c->epoch;
    r->topic_states.v = topics;
    const struct ctl_topic *last = NULL;
    for (int i = 0; i < c->metadata_n; i++) {
        struct ctl_partition *p = c->metadata[i];
        if (!p->known) /* nobody has led it yet */
            continue;
        if (p->topic != last) {
            umr_topic *ts = &topics[r->topic_states.n++];
            ts->topic_name = topic_name(b, p->topic);
            ts->topic_id = p->topic->id;
            ts->partition_states.v = parts;
        }
        last = p->topic;
        fill_umr_partition(b, p, parts++);
        topics[r->topic_states.n - 1].partition_states.n++;
    }
    fill_live_brokers(b, r);
    return r;
}

static sr_request *new_sr(struct round_builder *b, const struct ctl_broker *to)
{
    sr_request *r = arena_new(b->a, sr_request);
    if (!r)
        return NULL;
    stop_replica_request_init(r);
    r->controller_id = b->c->o.broker_id;
    r->controller_epoch = b->c->epoch;
    r->broker_epoch = to->epoch;
    return r;
}

static sr_request *build_sr(struct round_builder *b, const struct ctl_broker *to, int entries)
{
    const struct ctl_outbox *o = &to->outbox;
    sr_request *r = new_sr(b, to);
    sr_topic *topics = stop_replica_request_topic_state_new(b->a, entries);
    sr_partition *parts = stop_replica_request_partition_state_new(b->a, entries);
    if (!r || !topics || !parts)
        return NULL;
    r->topic_states.v = topics;
    const struct ctl_topic *last = NULL;
    for (int i = 0; i < o->n; i++) {
        struct ctl_partition *p = o->v[i].partition;
        if (!(o->v[i].flags & ENTRY_STOP))
            continue;
        if (p->topic != last) {
            sr_topic *ts = &topics[r->topic_states.n++];
            ts->topic_name = topic_name(b, p->topic);
            ts->partition_states.v = parts;
        }
        last = p->topic;
        parts->partition_index = p->number;
        parts->leader_epoch = p->topic->deleting ? EPOCH_DURING_DELETE
                              : p->known         ? p->leader_epoch
                                                 : NO_EPOCH;
        parts->delete_partition = o->v[i].flags & ENTRY_DELETE;
        parts++;
        topics[r->topic_states.n - 1].partition_states.n++;
    }
    return r;
}

/* The old form, for the entries that are deleted, or for those that are not. */
static sr_request *build_old_sr(struct round_builder *b, const struct ctl_broker *to, int entries,
                                bool del)
{
    const struct ctl_outbox *o = &to->outbox;
    sr_request *r = new_sr(b, to);
    struct stop_replica_request_topic_v1 *topics = stop_replica_request_topic_v1_new(b->a, entries);
    int32_t *numbers = arena_array(b->a, int32_t, (size_t)entries);
    if (!r || !topics || !numbers)
        return NULL;
    r->delete_partitions = del;
    r->topics.v = topics;
    const struct ctl_topic *last = NULL;
    for (int i = 0; i < o->n; i++) {
        struct ctl_partition *p = o->v[i].partition;
        if (!(o->v[i].flags & ENTRY_STOP) || !(o->v[i].flags & ENTRY_DELETE) == del)
            continue;
        if (p->topic != last) {
            struct stop_replica_request_topic_v1 *t = &topics[r->topics.n++];
            t->name = topic_name(b, p->topic);
            t->partition_indexes.v = numbers;
        }
        last = p->topic;
        *numbers++ = p->number;
        topics[r->topics.n - 1].partition_indexes.n++;
    }
    return r;
}

/* Sending. */

static int count_flag(const struct ctl_outbox *o, uint8_t flag)
{
    int n = 0;
    for (int i = 0; i < o->n; i++)
        n += (o->v[i].flags & flag) != 0;
    return n;
}

static void send_lisr(struct round_builder *b, struct control_round *round, struct ctl_broker *to)
{
    int n = count_flag(&to->outbox, ENTRY_LEADER);
    if (n)
        control_send(round, to, API_LEADER_AND_ISR, ibp_leader_and_isr_version(b->c->o.ibp),
                     build_lisr(b, to, n));
}

static void send_umr(struct round_builder *b, struct control_round *round, struct ctl_broker *to,
                     const umr_request *shared)
{
    if (!b->c->metadata_to_all && !to->outbox.metadata)
        return;
    umr_request *r = shared ? arena_new(b->a, umr_request) : NULL;
    if (r) {
        *r = *shared;
        r->broker_epoch = to->epoch;
    }
    control_send(round, to, API_UPDATE_METADATA, ibp_update_metadata_version(b->c->o.ibp), r);
}

static void send_sr(struct round_builder *b, struct control_round *round, struct ctl_broker *to)
{
    int n = count_flag(&to->outbox, ENTRY_STOP), deleted = count_flag(&to->outbox, ENTRY_DELETE);
    int version = ibp_stop_replica_version(b->c->o.ibp);
    if (version >= FIRST_STOP_BY_PARTITION) {
        if (n)
            control_send(round, to, API_STOP_REPLICA, version, build_sr(b, to, n));
        return;
    }
    if (deleted)
        control_send(round, to, API_STOP_REPLICA, version, build_old_sr(b, to, deleted, true));
    if (n > deleted)
        control_send(round, to, API_STOP_REPLICA, version, build_old_sr(b, to, n - deleted, false));
}

static bool anything_to_send(const struct controller *c)
{
    bool any = c->metadata_to_all;
    for (int i = 0; i < c->ctx.brokers_n; i++)
        any |= c->ctx.brokers[i]->outbox.n || c->ctx.brokers[i]->outbox.metadata;
    return any;
}

void batch_send(struct controller *c)
{
    if (!anything_to_send(c))
        return;
    struct control_round *round = control_round_new(c);
    if (!round) {
        out_of_memory(c);
        batch_clear(c);
        return;
    }
    struct round_builder b = {.c = c, .a = control_round_arena(round)};
    struct context *x = &c->ctx;
    merge_metadata(c);
    for (int i = 0; i < x->brokers_n; i++) {
        merge_entries(&x->brokers[i]->outbox);
        send_lisr(&b, round, x->brokers[i]);
    }
    umr_request *shared = build_umr(&b);
    for (int i = 0; i < x->brokers_n; i++)
        send_umr(&b, round, x->brokers[i], shared);
    for (int i = 0; i < x->brokers_n; i++)
        send_sr(&b, round, x->brokers[i]);
    if (!control_round_go(round))
        out_of_memory(c);
    batch_clear(c);
}
