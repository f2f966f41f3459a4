/* replica_manager.c - the map of partitions hosted here, and what concerns all of them. */
#include "replica/replica_manager_private.h"

#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "protocol/msg/update_metadata.h"
#include "replica/fetchers.h"

#define REPLICA_LAG_DEFAULT_MS 30000

int replica_manager_new(const struct replica_manager_options *o, struct replica_manager **out)
{
    *out = NULL;
    struct replica_manager *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->o = *o;
    m->env = (struct partition_env){
        .broker_id = o->broker_id,
        .clock = o->clock,
        .metadata = o->metadata,
        .workers = o->workers,
        .isr_writer = o->isr_writer,
        .counts = &m->counts,
        .replica_lag_ms = o->replica_lag_ms > 0 ? o->replica_lag_ms : REPLICA_LAG_DEFAULT_MS};
    atomic_init(&m->broker_epoch, -1);
    m->controller_epoch = -1;
    atomic_init(&m->some_await, false);
    pthread_rwlock_init(&m->map_lock, NULL);
    pthread_mutex_init(&m->control, NULL);
    hmap_init(&m->map);
    hmap_init(&m->topics);
    *out = m;
    return 0;
}

void replica_manager_free(struct replica_manager *m)
{
    if (!m)
        return;
    for (struct hnode *n = hmap_first(&m->map), *next; n; n = next) {
        next = hmap_next(&m->map, n);
        topic_counts_leave(&m->topics, hmap_entry(n, struct partition, node)->counts);
        partition_unref(hmap_entry(n, struct partition, node));
    }
    hmap_free(&m->map);
    hmap_free(&m->topics);
    pthread_rwlock_destroy(&m->map_lock);
    pthread_mutex_destroy(&m->control);
    free(m);
}

/* ---- the map ---- */

static bool is_partition(const struct hnode *node, const void *key)
{
    return topic_partition_eq(partition_tp(hmap_entry(node, struct partition, node)),
                              *(const struct topic_partition *)key);
}

struct partition *replica_manager_lookup(struct replica_manager *m, struct topic_partition tp)
{
    if (str_is_null(tp.topic))
        return NULL;
    uint64_t hash = topic_partition_hash(tp);
    pthread_rwlock_rdlock(&m->map_lock);
    struct hnode *n = hmap_find(&m->map, hash, is_partition, &tp);
    struct partition *p = n ? partition_ref(hmap_entry(n, struct partition, node)) : NULL;
    pthread_rwlock_unlock(&m->map_lock);
    return p;
}

struct partition *replica_manager_lookup_or_make(struct replica_manager *m,
                                                 struct topic_partition tp)
{
    struct partition *p = replica_manager_lookup(m, tp);
    if (p)
        return p;
    p = partition_new(&m->env, tp);
    if (!p)
        return NULL;
    pthread_rwlock_wrlock(&m->map_lock);
    int r = hmap_put(&m->map, &p->node, topic_partition_hash(tp));
    if (!r && m->o.count_topics)
        p->counts = topic_counts_enter(&m->topics, tp.topic);
    pthread_rwlock_unlock(&m->map_lock);
    if (r) {
        partition_unref(p);
        return NULL;
    }
    return partition_ref(p);
}

void replica_manager_unfollow(struct replica_manager *m, struct partition *p)
{
    if (m->o.fetchers)
        fetchers_unfollow(m->o.fetchers, p);
}

void replica_manager_forget(struct replica_manager *m, struct partition *p)
{
    pthread_rwlock_wrlock(&m->map_lock);
    hmap_remove(&m->map, &p->node);
    topic_counts_leave(&m->topics, p->counts);
    pthread_rwlock_unlock(&m->map_lock);
    partition_unref(p);
}

static bool metadata_knows(struct replica_manager *m, struct topic_partition tp)
{
    const struct metadata_snapshot *s = metadata_acquire(m->o.metadata);
    bool known = metadata_partition(s, tp.topic, tp.partition) != NULL;
    metadata_release(s);
    return known;
}

struct partition *replica_manager_find(struct replica_manager *m, struct topic_partition tp,
                                       enum kerr *why)
{
    struct partition *p = replica_manager_lookup(m, tp);
    if (p && atomic_load(&p->role) != PARTITION_OFFLINE) {
        *why = KERR_NONE;
        return p;
    }
    if (p)
        *why = KERR_KAFKA_STORAGE_ERROR;
    else
        *why =
            metadata_knows(m, tp) ? KERR_NOT_LEADER_OR_FOLLOWER : KERR_UNKNOWN_TOPIC_OR_PARTITION;
    partition_unref(p);
    return NULL;
}

int replica_manager_count(struct replica_manager *m)
{
    pthread_rwlock_rdlock(&m->map_lock);
    int n = (int)m->map.n;
    pthread_rwlock_unlock(&m->map_lock);
    return n;
}

void replica_manager_each(struct replica_manager *m, void (*each)(void *arg, struct partition *p),
                          void *arg)
{
    pthread_rwlock_rdlock(&m->map_lock);
    size_t n = 0;
    struct partition **all = calloc(m->map.n + 1, sizeof(struct partition *));
    if (all)
        hmap_each (node, &m->map)
            all[n++] = partition_ref(hmap_entry(node, struct partition, node));
    pthread_rwlock_unlock(&m->map_lock);
    if (!all)
        say_error("ReplicaManager", "no memory to walk the partitions");
    for (size_t i = 0; i < n; i++) {
        each(arg, all[i]);
        partition_unref(all[i]);
    }
    free(all);
}

void replica_manager_each_topic(struct replica_manager *m,
                                void (*each)(void *arg, const struct topic_counts *c), void *arg)
{
    pthread_rwlock_rdlock(&m->map_lock);
    size_t n = 0;
    struct topic_counts **all = calloc(m->topics.n + 1, sizeof(struct topic_counts *));
    if (all)
        hmap_each (node, &m->topics)
            all[n++] = topic_counts_ref(hmap_entry(node, struct topic_counts, node));
    pthread_rwlock_unlock(&m->map_lock);
    if (!all)
        say_error("ReplicaManager", "no memory to walk the topics");
    for (size_t i = 0; i < n; i++) {
        each(arg, all[i]);
        topic_counts_unref(all[i]);
    }
    free(all);
}

void replica_manager_isr_changes(const struct replica_manager *m, uint64_t *shrinks,
                                 uint64_t *expands, uint64_t *refused)
{
    *shrinks = metric_read(&m->counts.shrinks);
    *expands = metric_read(&m->counts.expands);
    *refused = metric_read(&m->counts.refused);
}

uint64_t replica_manager_bytes_in(const struct replica_manager *m)
{
    return metric_spread_read(&m->counts.bytes_in);
}

uint64_t replica_manager_moved_in(const struct replica_manager *m)
{
    return metric_spread_read(&m->counts.moved_in);
}

static void note_led(void *arg, struct partition *p)
{
    bool *any = arg;
    *any |= partition_leads_for_others(p);
}

bool replica_manager_leads_for_others(struct replica_manager *m)
{
    bool any = false;
    replica_manager_each(m, note_led, &any);
    return any;
}

static void shrink(void *arg, struct partition *p)
{
    (void)arg;
    partition_shrink_isr(p);
}

void replica_manager_shrink_isrs(struct replica_manager *m)
{
    replica_manager_each(m, shrink, NULL);
}

/* ---- control ---- */

void replica_manager_set_broker_epoch(struct replica_manager *m, int64_t epoch)
{
    atomic_store(&m->broker_epoch, epoch);
}

enum kerr replica_manager_check_epochs(struct replica_manager *m, int64_t broker_epoch,
                                       int32_t controller_epoch)
{
    int64_t own = atomic_load(&m->broker_epoch);
    if (broker_epoch != -1 && broker_epoch < own) {
        say_warn("ReplicaManager",
                 "control request refused: it is for broker epoch %lld, ours is %lld",
                 (long long)broker_epoch, (long long)own);
        return KERR_STALE_BROKER_EPOCH;
    }
    if (controller_epoch < m->controller_epoch) {
        say_warn("ReplicaManager", "control request refused: controller epoch %d is older than %d",
                 (int)controller_epoch, (int)m->controller_epoch);
        return KERR_STALE_CONTROLLER_EPOCH;
    }
    m->controller_epoch = controller_epoch;
    return KERR_NONE;
}

const struct endpoint *replica_manager_endpoint(const struct replica_manager *m,
                                                const struct broker_info *b)
{
    if (b && m->o.inter_broker_listener.len <= 0)
        return b->endpoints_n ? &b->endpoints[0] : NULL;
    return b ? broker_endpoint(b, m->o.inter_broker_listener) : NULL;
}

/* Fetchers follow their brokers to where they are now. */
static void tell_addresses(struct replica_manager *m)
{
    if (!m->o.fetchers)
        return;
    const struct broker_info *brokers;
    const struct metadata_snapshot *s = metadata_acquire(m->o.metadata);
    int n = metadata_brokers(s, &brokers);
    for (int i = 0; i < n; i++) {
        const struct endpoint *e = replica_manager_endpoint(m, &brokers[i]);
        if (e)
            fetchers_see_broker(m->o.fetchers, brokers[i].id, e->host, e->port);
    }
    metadata_release(s);
}

/* A broker that was away while a partition moved on without it is told nothing of that: neither
 * does the controller of today know that it has a replica, nor does a LeaderAndIsr name what is not
 * assigned. It would lead, or be read from, for ever. What all brokers are told says enough. */
static void look_if_left_behind(struct replica_manager *m, struct str topic, struct uuid id,
                                const struct update_metadata_request_partition_state *s)
{
    struct partition *p =
        replica_manager_lookup(m, (struct topic_partition){topic, s->partition_index});
    if (!p)
        return;
    int role = atomic_load(&p->role), epoch = atomic_load(&p->leader_epoch);
    bool assigned = is_among(s->replicas.v, s->replicas.n, m->o.broker_id);
    struct uuid own = partition_topic_id(p);
    bool same = uuid_is_zero(id) || uuid_is_zero(own) || uuid_eq(id, own);
    bool left = role == PARTITION_LEADER     ? s->leader != m->o.broker_id
                : role == PARTITION_FOLLOWER ? !assigned
                                             : false;
    if (same && left && s->leader_epoch > epoch) {
        say_info("ReplicaManager", "%s-%d: broker %d leads it in epoch %d, here was epoch %d%s",
                 p->topic, (int)p->number, (int)s->leader, (int)s->leader_epoch, epoch,
                 assigned ? "" : "; there is no replica here any more");
        replica_manager_unfollow(m, p);
        partition_step_down(p, s->leader_epoch);
    }
    partition_unref(p);
}

static void step_down(struct replica_manager *m, const struct update_metadata_request *r)
{
    for (int32_t i = 0; i < r->ungrouped_partition_states.n; i++)
        look_if_left_behind(m, r->ungrouped_partition_states.v[i].topic_name, UUID_ZERO,
                            &r->ungrouped_partition_states.v[i]);
    for (int32_t t = 0; t < r->topic_states.n; t++)
        for (int32_t i = 0; i < r->topic_states.v[t].partition_states.n; i++)
            look_if_left_behind(m, r->topic_states.v[t].topic_name, r->topic_states.v[t].topic_id,
                                &r->topic_states.v[t].partition_states.v[i]);
}

enum kerr replica_manager_update_metadata(struct replica_manager *m,
                                          const struct update_metadata_request *req)
{
    pthread_mutex_lock(&m->control);
    enum kerr e = replica_manager_check_epochs(m, req->broker_epoch, req->controller_epoch);
    if (e == KERR_NONE && metadata_cache_update(m->o.metadata, req) < 0)
        e = KERR_UNKNOWN_SERVER_ERROR;
    if (e == KERR_NONE) {
        tell_addresses(m);
        step_down(m, req);
        replica_manager_follow_awaited(m);
        replica_listeners_deleted(m, req);
    }
    pthread_mutex_unlock(&m->control);
    return e;
}

/* ---- log dirs and settings ---- */

struct dir_failure {
    struct job job;
    struct replica_manager *m;
    struct log_dir *dir;
};

static void offline_if_in_dir(void *arg, struct partition *p)
{
    struct dir_failure *f = arg;
    struct log *log = partition_log(p);
    if (!log)
        return;
    if (log_dir_of(log) == f->dir) {
        replica_manager_unfollow(f->m, p);
        partition_make_offline(p);
    }
    log_unref(log);
}

static void handle_dir_failure(struct job *job)
{
    struct dir_failure *f = container_of(job, struct dir_failure, job);
    pthread_mutex_lock(&f->m->control);
    replica_manager_each(f->m, offline_if_in_dir, f);
    pthread_mutex_unlock(&f->m->control);
    say_error("ReplicaManager", "log dir %s failed: its partitions are offline until restart",
              log_dir_path(f->dir));
    if (f->m->o.dir_lost)
        f->m->o.dir_lost(f->m->o.arg);
    free(f);
}

void replica_manager_dir_failed(struct replica_manager *m, struct log_dir *d)
{
    struct dir_failure *f = calloc(1, sizeof *f);
    if (!f) { /* its logs answer with the error all the same */
        say_error("ReplicaManager", "no memory to take the partitions of %s offline",
                  log_dir_path(d));
        return;
    }
    f->m = m;
    f->dir = d;
    f->job.work = handle_dir_failure;
    workers_submit(m->o.workers, &f->job);
}

struct config_change {
    struct str topic;
    struct log_config config;
};

static void configure_if_of_topic(void *arg, struct partition *p)
{
    const struct config_change *c = arg;
    if (str_eq(partition_tp(p).topic, c->topic))
        partition_set_config(p, &c->config);
}

void replica_manager_topic_config_changed(struct replica_manager *m, struct str topic)
{
    struct config_change c = {topic, log_config_default()};
    m->o.topic_config(m->o.arg, topic, &c.config);
    replica_manager_each(m, configure_if_of_topic, &c);
}
