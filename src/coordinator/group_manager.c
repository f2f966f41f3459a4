/* group_manager.c - see group_manager.h. */
#include "coordinator/group_manager.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/group_loader.h"
#include "coordinator/key_partition.h"
#include "coordinator/led_partitions.h"
#include "coordinator/offsets_log.h"

#define MANAGER_TAG "GroupCoordinator"

enum { IDLE_POLL_MS = 1 /* while a shard that stops waits for a flush */ };

struct shard_slot {
    struct group_manager *manager;
    struct executor *ex;
    struct offsets_log *log;
    struct group_shard *shard;
    struct task start, stop;
    struct timer idle;
};

struct group_manager {
    struct group_manager_options o;
    struct replica_listener listener;
    struct metadata_listener metadata_listener;
    bool listening;
    atomic_ullong metadata_version; /* grows with every update */
    struct shard_slot *shards;
    struct led_partitions *led;
    pthread_mutex_t lock;
    pthread_cond_t cond; /* a shard has stopped */
    /* Under lock. */
    int shards_running;
    bool shutting_down;
};

static struct shard_slot *shard_of(const struct group_manager *m, int32_t partition)
{
    return &m->shards[partition % m->o.shards];
}

int32_t group_manager_partitions(const struct group_manager *m)
{
    return m->o.partitions_n;
}

/* ---- partitions and loads ---- */

/* NULL without memory. */
static void *load(void *arg, int32_t partition, int32_t leader_epoch, struct load_reach *reach)
{
    struct group_manager *m = arg;
    struct group_load *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    *l = (struct group_load){.replicas = m->o.replicas,
                             .partition = partition,
                             .leader_epoch = leader_epoch,
                             .buffer_size = m->o.load_buffer_size,
                             .env = group_shard_env(shard_of(m, partition)->shard),
                             .clock = m->o.clock};
    group_load_run(l);
    if (!l->error)
        *reach = (struct load_reach){l->end, l->term};
    return l;
}

static void loaded(void *arg, int32_t partition, uint64_t number, void *result)
{
    struct group_manager *m = arg;
    struct group_load none = {.error = -ENOMEM}, *l = result ? result : &none;
    group_shard_loaded(shard_of(m, partition)->shard, partition, number, l->groups, l->n, l->error);
    free(l->groups);
    free(result);
}

/* The shard asks. On its thread. */
static void want_load(void *arg, int32_t partition, int32_t leader_epoch, uint64_t number)
{
    struct group_manager *m = arg;
    led_partitions_load(m->led, partition, leader_epoch, number);
}

static void elected(void *arg, int32_t partition, int32_t leader_epoch)
{
    group_shard_elected(shard_of(arg, partition)->shard, partition, leader_epoch);
}

static void resigned(void *arg, int32_t partition, int32_t leader_epoch)
{
    group_shard_resigned(shard_of(arg, partition)->shard, partition, leader_epoch);
}

static int follow_partitions(struct group_manager *m)
{
    struct led_partitions_options o = {.topic = STR_LIT("__consumer_offsets"),
                                       .partitions_n = m->o.partitions_n,
                                       .executors = m->o.executors,
                                       .shards = m->o.shards,
                                       .replicas = m->o.replicas,
                                       .workers = m->o.workers,
                                       .loads_at_once = m->o.loads_at_once,
                                       .elected = elected,
                                       .resigned = resigned,
                                       .load = load,
                                       .loaded = loaded,
                                       .arg = m};
    return led_partitions_new(&o, &m->led);
}

/* ---- news of the cluster ---- */

/* Groups look when a member asks for them next. */
static void metadata_updated(struct metadata_listener *l)
{
    struct group_manager *m = container_of(l, struct group_manager, metadata_listener);
    atomic_fetch_add(&m->metadata_version, 1);
}

static void stop_listening(struct group_manager *m)
{
    if (m->listening)
        metadata_cache_unlisten(m->o.metadata, &m->metadata_listener);
    m->listening = false;
}

/* ---- counting ---- */

struct counting {
    struct task task;
    struct group_manager *manager;
    const struct group_shard *shard;
    struct group_counts *counts;
    bool over; /* under the manager's lock */
};

static void count_shard(struct task *t)
{
    struct counting *c = container_of(t, struct counting, task);
    struct group_manager *m = c->manager;
    group_shard_count(c->shard, c->counts);
    pthread_mutex_lock(&m->lock);
    c->over = true;
    pthread_cond_broadcast(&m->cond);
    pthread_mutex_unlock(&m->lock);
}

void group_manager_count(struct group_manager *m, struct group_counts *out)
{
    *out = (struct group_counts){0};
    for (int i = 0; i < m->o.shards; i++) {
        struct counting c = {.manager = m, .shard = m->shards[i].shard, .counts = out};
        task_init(&c.task, count_shard);
        executor_post(m->shards[i].ex, &c.task);
        pthread_mutex_lock(&m->lock);
        while (!c.over)
            pthread_cond_wait(&m->cond, &m->lock);
        pthread_mutex_unlock(&m->lock);
    }
}

/* ---- deleted topics, ended transactions ---- */

struct deletion {
    struct task task;
    struct shard_slot *shard;
    struct str topic; /* behind the partitions */
    int n;
    int32_t partitions[];
};

static void forget(struct task *t)
{
    struct deletion *d = container_of(t, struct deletion, task);
    group_shard_forget(d->shard->shard, d->topic, d->partitions, d->n);
    free(d);
}

static void forget_on(struct shard_slot *s, struct str topic, const int32_t *partitions, int n)
{
    size_t numbers = (size_t)n * sizeof(*partitions);
    struct deletion *d = malloc(sizeof(*d) + numbers + (size_t)topic.len);
    if (!d) { /* they go when they expire */
        say_error(MANAGER_TAG, "no memory to forget the offsets of deleted topic %.*s",
                  STR_ARG(topic));
        return;
    }
    d->shard = s;
    d->n = n;
    memcpy(d->partitions, partitions, numbers);
    d->topic = (struct str){(char *)d->partitions + numbers, topic.len};
    memcpy((char *)d->partitions + numbers, topic.p, (size_t)topic.len);
    task_init(&d->task, forget);
    executor_post(s->ex, &d->task);
}

static void deleted(struct replica_listener *l, struct str topic, const int32_t *partitions, int n)
{
    struct group_manager *m = container_of(l, struct group_manager, listener);
    for (int i = 0; i < m->o.shards; i++)
        forget_on(&m->shards[i], topic, partitions, n);
}

struct txn_end {
    struct task task;
    struct shard_slot *shard;
    int32_t partition;
    int64_t producer_id;
    bool commit;
};

static void end_txn(struct task *t)
{
    struct txn_end *e = container_of(t, struct txn_end, task);
    group_shard_txn_ended(e->shard->shard, e->partition, e->producer_id, e->commit);
    free(e);
}

void group_manager_txn_ended(struct group_manager *m, int32_t partition, int64_t producer_id,
                             bool commit)
{
    struct txn_end *e = partition < m->o.partitions_n ? malloc(sizeof(*e)) : NULL;
    if (!e) {
        say_error(MANAGER_TAG,
                  "the end of producer %lld's transaction on __consumer_offsets-%d is "
                  "not noted before the next load",
                  (long long)producer_id, (int)partition);
        return;
    }
    *e = (struct txn_end){.shard = shard_of(m, partition),
                          .partition = partition,
                          .producer_id = producer_id,
                          .commit = commit};
    task_init(&e->task, end_txn);
    executor_post(e->shard->ex, &e->task);
}

/* ---- requests ---- */

static void run_call(struct task *t)
{
    struct group_call *c = container_of(t, struct group_call, task);
    struct group_manager *m = c->manager;
    bool single = c->single; /* c may be gone after this: */
    group_shard_handle(m->shards[c->shard].shard, c);
    if (single)
        return;
    if (++c->shard == m->o.shards)
        group_call_end(c);
    else
        executor_post(m->shards[c->shard].ex, &c->task);
}

void group_manager_submit(struct group_manager *m, struct group_call *c)
{
    struct str id;
    c->manager = m;
    c->parked = NULL;
    c->no_memory = false;
    c->single = group_call_single(c, &id);
    c->shard = c->single ? key_partition(id, m->o.partitions_n) % m->o.shards : 0;
    task_init(&c->task, run_call);
    executor_post(m->shards[c->shard].ex, &c->task);
}

static void run_cancel(struct task *t)
{
    struct group_cancel *c = container_of(t, struct group_cancel, task);
    group_call_abandon(c->call);
    c->cancelled(c);
}

/* Requests for lists are never parked, wherever they are. */
void group_manager_cancel(struct group_manager *m, struct group_cancel *c)
{
    task_init(&c->task, run_cancel);
    executor_post(m->shards[c->call->single ? c->call->shard : 0].ex, &c->task);
}

/* ---- life ---- */

static void start_shard(struct task *t)
{
    group_shard_start(container_of(t, struct shard_slot, start)->shard);
}

static void stop_when_idle(struct timer *t)
{
    struct shard_slot *s = container_of(t, struct shard_slot, idle);
    struct group_manager *m = s->manager;
    if (offsets_log_busy(s->log) > 0) {
        executor_timer_start(s->ex, &s->idle, IDLE_POLL_MS);
        return;
    }
    pthread_mutex_lock(&m->lock);
    m->shards_running--;
    pthread_cond_broadcast(&m->cond);
    pthread_mutex_unlock(&m->lock);
}

static void stop_shard(struct task *t)
{
    struct shard_slot *s = container_of(t, struct shard_slot, stop);
    group_shard_shut_down(s->shard);
    offsets_log_stop(s->log);
    stop_when_idle(&s->idle);
}

static int make_shard(struct group_manager *m, int index)
{
    struct shard_slot *s = &m->shards[index];
    s->manager = m;
    s->ex = m->o.executors[index];
    task_init(&s->start, start_shard);
    task_init(&s->stop, stop_shard);
    timer_init(&s->idle, stop_when_idle);
    struct offsets_log_options l = {.topic = STR_LIT("__consumer_offsets"),
                                    .ex = s->ex,
                                    .replicas = m->o.replicas,
                                    .workers = m->o.workers,
                                    .partitions_n = m->o.partitions_n,
                                    .codec = m->o.codec,
                                    .required_acks = m->o.required_acks,
                                    .timeout_ms = m->o.append_timeout_ms};
    int rc = offsets_log_new(&l, &s->log);
    if (rc)
        return rc;
    struct group_shard_options o = {.env = {.ex = s->ex,
                                            .log = offsets_log_of(s->log),
                                            .config = &m->o.config,
                                            .metadata = m->o.metadata,
                                            .metadata_version = &m->metadata_version},
                                    .partitions_n = m->o.partitions_n,
                                    .index = index,
                                    .shards = m->o.shards,
                                    .check_interval_ms = m->o.check_interval_ms,
                                    .load = want_load,
                                    .arg = m};
    return group_shard_new(&o, &s->shard);
}

static int make_shards(struct group_manager *m)
{
    m->shards = calloc((size_t)m->o.shards, sizeof(*m->shards));
    int rc = m->shards ? 0 : -ENOMEM;
    for (int i = 0; !rc && i < m->o.shards; i++)
        rc = make_shard(m, i);
    return rc;
}

int group_manager_new(const struct group_manager_options *o, struct group_manager **out)
{
    struct group_manager *m = *out = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    m->o = *o;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->cond, NULL);
    atomic_init(&m->metadata_version, 1);
    m->shards_running = o->shards;
    int rc = make_shards(m);
    if (!rc)
        rc = follow_partitions(m);
    if (rc) {
        group_manager_free(m);
        *out = NULL;
        return rc;
    }
    m->listener = (struct replica_listener){.deleted = deleted};
    replica_manager_listen(o->replicas, &m->listener);
    if (o->metadata) {
        m->metadata_listener.updated = metadata_updated;
        metadata_cache_listen(o->metadata, &m->metadata_listener);
        m->listening = true;
    }
    for (int i = 0; i < o->shards; i++)
        executor_post(m->shards[i].ex, &m->shards[i].start);
    return 0;
}

void group_manager_begin_shut_down(struct group_manager *m)
{
    stop_listening(m);
    pthread_mutex_lock(&m->lock);
    m->shutting_down = true;
    pthread_mutex_unlock(&m->lock);
    led_partitions_shut_down(m->led);
    for (int i = 0; i < m->o.shards; i++)
        executor_post(m->shards[i].ex, &m->shards[i].stop);
}

bool group_manager_is_down(struct group_manager *m)
{
    pthread_mutex_lock(&m->lock);
    bool down = m->shutting_down && m->shards_running == 0;
    pthread_mutex_unlock(&m->lock);
    return down && led_partitions_loading(m->led) == 0;
}

void group_manager_shut_down(struct group_manager *m)
{
    group_manager_begin_shut_down(m);
    pthread_mutex_lock(&m->lock);
    while (m->shards_running > 0)
        pthread_cond_wait(&m->cond, &m->lock);
    pthread_mutex_unlock(&m->lock);
    led_partitions_await(m->led);
}

void group_manager_free(struct group_manager *m)
{
    if (!m)
        return;
    stop_listening(m);
    for (int i = 0; m->shards && i < m->o.shards; i++) {
        group_shard_free(m->shards[i].shard);
        offsets_log_free(m->shards[i].log);
    }
    free(m->shards);
    led_partitions_free(m->led);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->cond);
    free(m);
}
