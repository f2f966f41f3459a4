/* metadata_update.c - merging an UpdateMetadata request: the broker list replaces the old one,
 * partitions listed replace theirs, leader -2 takes a partition away, and a topic goes with its
 * last one. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "metadata/metadata_snapshot.h"
#include "protocol/msg/update_metadata.h"

typedef struct update_metadata_request_partition_state partition_state;
typedef struct update_metadata_request_topic_state topic_state;
typedef struct update_metadata_request_live_broker live_broker;

enum { LEADER_DELETED = -2, PARTITION_MAX = 1000000 };

struct metadata_snapshot *metadata_snapshot_new(void)
{
    struct metadata_snapshot *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->controller = -1;
    topic_set_init(&s->by_name, TOPIC_BY_NAME);
    topic_set_init(&s->by_id, TOPIC_BY_ID);
    return s;
}

void metadata_snapshot_free(struct metadata_snapshot *s)
{
    if (!s)
        return;
    topic_set_free(&s->by_name);
    topic_set_free(&s->by_id);
    free(s->brokers);
    free(atomic_load(&s->sorted));
    free(s);
}

/* Brokers. */

static const char *const protocol_names[] = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"};

/* Below v3 a listener has no name of its own: it is called as its protocol. */
static struct str listener_name(struct str name, int16_t protocol)
{
    if (name.len > 0 || protocol < 0 || protocol > 3)
        return name;
    return str_of(protocol_names[protocol]);
}

static size_t text_bytes(struct str s)
{
    return s.len > 0 ? (size_t)s.len : 0;
}

static struct str put_text(char **at, struct str s)
{
    if (str_is_null(s))
        return s;
    struct str copy = {*at, s.len};
    if (s.len)
        memcpy(*at, s.p, (size_t)s.len);
    *at += s.len;
    return copy;
}

static int endpoints_of(const live_broker *b)
{
    if (b->endpoints.n > 0)
        return b->endpoints.n;
    return b->v0_host.len > 0 ? 1 : 0;
}

static struct endpoint endpoint_of(const live_broker *b, int i)
{
    if (b->endpoints.n <= 0)
        return (struct endpoint){STR_LIT("PLAINTEXT"), b->v0_host, b->v0_port, 0};
    const struct update_metadata_request_endpoint *e = &b->endpoints.v[i];
    return (struct endpoint){listener_name(e->listener, e->security_protocol), e->host, e->port,
                             e->security_protocol};
}

static int broker_order(const void *a, const void *b)
{
    int32_t x = ((const struct broker_info *)a)->id, y = ((const struct broker_info *)b)->id;
    return (x > y) - (x < y);
}

static int update_brokers(struct metadata_snapshot *s, const struct update_metadata_request *req)
{
    int n = req->live_brokers.n < 0 ? 0 : req->live_brokers.n;
    size_t endpoints = 0, bytes = 0;
    for (int i = 0; i < n; i++) {
        const live_broker *b = &req->live_brokers.v[i];
        bytes += text_bytes(b->rack);
        for (int k = 0; k < endpoints_of(b); k++) {
            struct endpoint e = endpoint_of(b, k);
            endpoints++;
            bytes += text_bytes(e.listener) + text_bytes(e.host);
        }
    }
    struct broker_info *block =
        malloc((size_t)n * sizeof(*block) + endpoints * sizeof(struct endpoint) + bytes + 1);
    if (!block)
        return -ENOMEM;
    struct endpoint *e = (struct endpoint *)(block + n);
    char *at = (char *)(e + endpoints);
    for (int i = 0; i < n; i++) {
        const live_broker *b = &req->live_brokers.v[i];
        block[i] = (struct broker_info){b->id, put_text(&at, b->rack), e, endpoints_of(b)};
        for (int k = 0; k < endpoints_of(b); k++, e++) {
            *e = endpoint_of(b, k);
            e->listener = put_text(&at, e->listener);
            e->host = put_text(&at, e->host);
        }
    }
    qsort(block, (size_t)n, sizeof(*block), broker_order);
    s->brokers = block;
    s->brokers_n = n;
    return 0;
}

/* All brokers should have the same listeners; where they do not, clients of one listener will not
 * see all brokers. */
static void check_listeners(const struct metadata_snapshot *s)
{
    for (int i = 1; i < s->brokers_n; i++) {
        const struct broker_info *a = &s->brokers[0], *b = &s->brokers[i];
        bool same = a->endpoints_n == b->endpoints_n;
        for (int k = 0; same && k < a->endpoints_n; k++)
            same = broker_endpoint(b, a->endpoints[k].listener) != NULL;
        if (!same)
            say_error("MetadataCache", "brokers %d and %d have different listeners", a->id, b->id);
    }
}

/* Topics. */

/* What a partition is made of: the new state, or as it was, or (both NULL) a gap. */
struct source {
    const partition_state *now;
    const struct partition_info *was;
};

static size_t ints_of(const struct source *src)
{
    if (src->was)
        return (size_t)(src->was->replicas_n + src->was->isr_n + src->was->offline_n);
    if (!src->now)
        return 0;
    const partition_state *p = src->now;
    return (size_t)(p->replicas.n > 0 ? p->replicas.n : 0) + (size_t)(p->isr.n > 0 ? p->isr.n : 0) +
           (size_t)(p->offline_replicas.n > 0 ? p->offline_replicas.n : 0);
}

static const int32_t *put_ints(int32_t **at, const int32_t *v, int n)
{
    const int32_t *copy = *at;
    if (n > 0) {
        memcpy(*at, v, (size_t)n * sizeof(*v));
        *at += n;
    }
    return copy;
}

static struct partition_info make_partition(const struct source *src, int32_t **ints)
{
    struct partition_info p = {.leader = -1, .leader_epoch = -1};
    if (src->was) {
        p = *src->was;
    } else if (src->now) {
        const partition_state *s = src->now;
        p = (struct partition_info){.leader = s->leader,
                                    .leader_epoch = s->leader_epoch,
                                    .partition_epoch = s->zk_version,
                                    .controller_epoch = s->controller_epoch,
                                    .replicas = s->replicas.v,
                                    .replicas_n = s->replicas.n < 0 ? 0 : s->replicas.n,
                                    .isr = s->isr.v,
                                    .isr_n = s->isr.n < 0 ? 0 : s->isr.n,
                                    .offline = s->offline_replicas.v,
                                    .offline_n =
                                        s->offline_replicas.n < 0 ? 0 : s->offline_replicas.n};
    }
    p.replicas = put_ints(ints, p.replicas, p.replicas_n);
    p.isr = put_ints(ints, p.isr, p.isr_n);
    p.offline = put_ints(ints, p.offline, p.offline_n);
    return p;
}

static struct topic_entry *make_topic(struct str name, struct uuid id, const struct source *src,
                                      int n)
{
    size_t ints = 0;
    for (int i = 0; i < n; i++)
        ints += ints_of(&src[i]);
    size_t partitions_bytes = (size_t)n * sizeof(struct partition_info);
    struct topic_entry *t =
        malloc(sizeof(*t) + partitions_bytes + ints * sizeof(int32_t) + text_bytes(name) + 1);
    if (!t)
        return NULL;
    struct partition_info *partitions = (struct partition_info *)(t + 1);
    int32_t *at = (int32_t *)(partitions + n);
    for (int i = 0; i < n; i++)
        partitions[i] = make_partition(&src[i], &at);
    char *text = (char *)at;
    atomic_init(&t->refs, 1);
    t->info = (struct topic_info){.name = put_text(&text, name),
                                  .id = id,
                                  .internal = topic_is_internal(name),
                                  .partitions_n = n,
                                  .partitions = partitions};
    return t;
}

/* Number of partitions once the states are merged, gaps at the end cut off. */
static int lay_out(const topic_state *ts, const struct topic_info *old, struct source *src, int n)
{
    for (int i = 0; old && i < old->partitions_n; i++)
        if (old->partitions[i].replicas_n)
            src[i].was = &old->partitions[i];
    for (int i = 0; i < ts->partition_states.n; i++) {
        const partition_state *p = &ts->partition_states.v[i];
        src[p->partition_index] = (struct source){.now = p->leader == LEADER_DELETED ? NULL : p};
    }
    while (n > 0 && !src[n - 1].was && !src[n - 1].now)
        n--;
    return n;
}

/* *out NULL: the topic is no more. */
static int merge_topic(const topic_state *ts, const struct topic_info *old,
                       struct topic_entry **out)
{
    *out = NULL;
    int slots = old ? old->partitions_n : 0;
    for (int i = 0; i < ts->partition_states.n; i++) {
        int32_t index = ts->partition_states.v[i].partition_index;
        if (index < 0 || index >= PARTITION_MAX)
            return -EINVAL;
        if (index >= slots)
            slots = index + 1;
    }
    struct source *src = calloc((size_t)slots + 1, sizeof(*src));
    if (!src)
        return -ENOMEM;
    int n = lay_out(ts, old, src, slots);
    if (n)
        *out = make_topic(ts->topic_name, ts->topic_id, src, n);
    free(src);
    return n && !*out ? -ENOMEM : 0;
}

static int update_topic(struct metadata_snapshot *s, const topic_state *ts)
{
    struct topic_entry *now, *was = topic_set_by_name(&s->by_name, ts->topic_name);
    int err = merge_topic(ts, was ? &was->info : NULL, &now);
    if (err)
        return err;
    if (was && !uuid_is_zero(was->info.id) && (!now || !uuid_eq(was->info.id, now->info.id)))
        err = topic_set_remove(&s->by_id, was);
    if (!err && now && !uuid_is_zero(now->info.id))
        err = topic_set_put(&s->by_id, now);
    if (!err && now)
        err = topic_set_put(&s->by_name, now);
    else if (!err && was)
        err = topic_set_remove(&s->by_name, was); /* the last use of `was` */
    topic_entry_unref(now);
    return err;
}

/* Versions below 5 list partitions with the topic's name in each; neighbours go together. */
static int update_ungrouped(struct metadata_snapshot *s, const struct update_metadata_request *req)
{
    int n = req->ungrouped_partition_states.n;
    partition_state *all = req->ungrouped_partition_states.v;
    for (int from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && str_eq(all[to].topic_name, all[from].topic_name);)
            to++;
        topic_state ts = {.topic_name = all[from].topic_name};
        const struct topic_info *old = metadata_topic(s, ts.topic_name);
        ts.topic_id = old ? old->id : UUID_ZERO; /* says nothing about ids */
        ts.partition_states.v = all + from;
        ts.partition_states.n = to - from;
        int err = update_topic(s, &ts);
        if (err)
            return err;
    }
    return 0;
}

int metadata_snapshot_update(const struct metadata_snapshot *old,
                             const struct update_metadata_request *req,
                             struct metadata_snapshot **out)
{
    *out = NULL;
    struct metadata_snapshot *s = metadata_snapshot_new();
    if (!s)
        return -ENOMEM;
    s->controller = req->controller_id;
    int err = update_brokers(s, req);
    if (!err)
        err = topic_set_copy(&old->by_name, &s->by_name);
    if (!err)
        err = topic_set_copy(&old->by_id, &s->by_id);
    for (int i = 0; i < req->topic_states.n && !err; i++)
        err = update_topic(s, &req->topic_states.v[i]);
    if (!err)
        err = update_ungrouped(s, req);
    if (err) {
        metadata_snapshot_free(s);
        return err;
    }
    check_listeners(s);
    *out = s;
    return 0;
}
