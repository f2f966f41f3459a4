/* group_manager.c - see group_manager.h.
 *
 * NEWS     of a partition wait in its slot until its shard takes them: that it was deleted, that it
 *          was resigned, that it is led, whatever came last in the end. A resignation is never
 *          forgotten over a later election: another broker may have written in between.
 * LOADS    at most one a partition at a time, and loads_at_once in all. What a shard asks for while
 *          an older load of the partition still reads begins after it. */
#include "coordinator/group_manager.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/group_loader.h"
#include "coordinator/key_partition.h"
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
    struct list news; /* of struct partition_slot; under the manager's lock */
    struct task news_task;
    bool news_posted; /* under lock */
};

struct partition_slot {
    struct group_manager *manager;
    int32_t number;
    /* Under lock. */
    struct list news_link;
    bool gone, resigned, led;
    int32_t resigned_epoch, led_epoch;
    struct list load_link; /* among those that wait for their turn */
    bool loading;          /* waits or runs */
    bool wanted;           /* asked for, and not begun */
    int32_t wanted_epoch;
    uint64_t wanted_number;
    /* Of the load that runs: its own. */
    struct job job;
    struct group_load load;
    uint64_t load_number;
};

struct group_manager {
    struct group_manager_options o;
    struct replica_listener listener;
    struct metadata_listener metadata_listener;
    bool listening;
    atomic_ullong metadata_version; /* grows with every update */
    struct shard_slot *shards;
    struct partition_slot *partitions;
    pthread_mutex_t lock;
    pthread_cond_t cond; /* a shard has stopped, a load has ended */
    /* Under lock. */
    struct list loads; /* that wait for their turn */
    int loads_running, shards_running;
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

/* ---- loads ---- */

static void load_work(struct job *job)
{
    group_load_run(&container_of(job, struct partition_slot, job)->load);
}

static void load_done(struct job *job);

static void begin_load(struct group_manager *m, struct partition_slot *p)
{
    m->loads_running++;
    p->wanted = false;
    p->load_number = p->wanted_number;
    p->load = (struct group_load){.replicas = m->o.replicas,
                                  .partition = p->number,
                                  .leader_epoch = p->wanted_epoch,
                                  .buffer_size = m->o.load_buffer_size,
                                  .env = group_shard_env(shard_of(m, p->number)->shard),
                                  .clock = m->o.clock};
    p->job =
        (struct job){.work = load_work, .done = load_done, .done_on = shard_of(m, p->number)->ex};
    workers_submit(m->o.workers, &p->job);
}

static void begin_loads_locked(struct group_manager *m)
{
    while (m->loads_running < m->o.loads_at_once && !m->shutting_down && !list_empty(&m->loads)) {
        struct list *l = list_pop(&m->loads);
        begin_load(m, list_entry(l, struct partition_slot, load_link));
    }
}

static void load_done(struct job *job)
{
    struct partition_slot *p = container_of(job, struct partition_slot, job);
    struct group_manager *m = p->manager;
    struct group_load load = p->load;
    uint64_t number = p->load_number;
    pthread_mutex_lock(&m->lock);
    p->loading = p->wanted;
    if (p->loading)
        list_push_back(&m->loads, &p->load_link);
    pthread_mutex_unlock(&m->lock);
    group_shard_loaded(shard_of(m, p->number)->shard, p->number, number, load.groups, load.n,
                       load.error);
    free(load.groups);
    pthread_mutex_lock(&m->lock);
    m->loads_running--;
    begin_loads_locked(m);
    pthread_cond_broadcast(&m->cond);
    pthread_mutex_unlock(&m->lock);
}

/* The shard asks. On its thread. */
static void want_load(void *arg, int32_t partition, int32_t leader_epoch, uint64_t number)
{
    struct group_manager *m = arg;
    struct partition_slot *p = &m->partitions[partition];
    pthread_mutex_lock(&m->lock);
    p->wanted = true;
    p->wanted_epoch = leader_epoch;
    p->wanted_number = number;
    if (!p->loading) {
        p->loading = true;
        list_push_back(&m->loads, &p->load_link);
    }
    begin_loads_locked(m);
    pthread_mutex_unlock(&m->lock);
}

/* ---- news of partitions ---- */

struct news {
    bool gone, resigned, led;
    int32_t resigned_epoch, led_epoch;
};

static struct partition_slot *take_news(struct shard_slot *s, struct news *n)
{
    struct group_manager *m = s->manager;
    pthread_mutex_lock(&m->lock);
    struct list *l = list_pop(&s->news);
    struct partition_slot *p = l ? list_entry(l, struct partition_slot, news_link) : NULL;
    if (p) {
        *n = (struct news){p->gone, p->resigned, p->led, p->resigned_epoch, p->led_epoch};
        p->gone = p->resigned = p->led = false;
    } else {
        s->news_posted = false;
    }
    pthread_mutex_unlock(&m->lock);
    return p;
}

static void on_news(struct task *t)
{
    struct shard_slot *s = container_of(t, struct shard_slot, news_task);
    struct partition_slot *p;
    struct news n;
    while ((p = take_news(s, &n)) != NULL) {
        if (n.gone)
            group_shard_resigned(s->shard, p->number, -1);
        if (n.resigned)
            group_shard_resigned(s->shard, p->number, n.resigned_epoch);
        if (n.led)
            group_shard_elected(s->shard, p->number, n.led_epoch);
    }
}

/* NULL: not a partition that matters here. With the lock taken otherwise. */
static struct partition_slot *lock_slot(struct group_manager *m, struct topic_partition tp)
{
    if (tp.partition < 0 || tp.partition >= m->o.partitions_n ||
        !str_eqz(tp.topic, "__consumer_offsets"))
        return NULL;
    pthread_mutex_lock(&m->lock);
    return &m->partitions[tp.partition];
}

static void unlock_slot(struct group_manager *m, struct partition_slot *p)
{
    struct shard_slot *s = shard_of(m, p->number);
    if (!list_linked(&p->news_link))
        list_push_back(&s->news, &p->news_link);
    if (!s->news_posted) {
        s->news_posted = true;
        executor_post(s->ex, &s->news_task);
    }
    pthread_mutex_unlock(&m->lock);
}

static void led(struct replica_listener *l, struct topic_partition tp, int32_t leader_epoch)
{
    struct group_manager *m = container_of(l, struct group_manager, listener);
    struct partition_slot *p = lock_slot(m, tp);
    if (!p)
        return;
    p->led = true;
    p->led_epoch = leader_epoch;
    unlock_slot(m, p);
}

static void resigned(struct replica_listener *l, struct topic_partition tp, int32_t leader_epoch)
{
    struct group_manager *m = container_of(l, struct group_manager, listener);
    struct partition_slot *p = lock_slot(m, tp);
    if (!p)
        return;
    p->led = false;
    if (leader_epoch < 0) {
        p->gone = true;
        p->resigned = false;
    } else {
        p->resigned = true;
        p->resigned_epoch = leader_epoch;
    }
    unlock_slot(m, p);
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
    list_init(&s->news);
    task_init(&s->news_task, on_news);
    task_init(&s->start, start_shard);
    task_init(&s->stop, stop_shard);
    timer_init(&s->idle, stop_when_idle);
    struct offsets_log_options l = {.ex = s->ex,
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

static int make_slots(struct group_manager *m)
{
    m->shards = calloc((size_t)m->o.shards, sizeof(*m->shards));
    m->partitions = calloc((size_t)m->o.partitions_n, sizeof(*m->partitions));
    if (!m->shards || !m->partitions)
        return -ENOMEM;
    for (int32_t i = 0; i < m->o.partitions_n; i++) {
        m->partitions[i].manager = m;
        m->partitions[i].number = i;
        list_init(&m->partitions[i].news_link);
        list_init(&m->partitions[i].load_link);
    }
    int rc = 0;
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
    list_init(&m->loads);
    atomic_init(&m->metadata_version, 1);
    m->shards_running = o->shards;
    int rc = make_slots(m);
    if (rc) {
        group_manager_free(m);
        *out = NULL;
        return rc;
    }
    m->listener = (struct replica_listener){.led = led, .resigned = resigned, .deleted = deleted};
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
    struct list *l;
    while ((l = list_pop(&m->loads)) != NULL)
        list_entry(l, struct partition_slot, load_link)->loading = false;
    pthread_mutex_unlock(&m->lock);
    for (int i = 0; i < m->o.shards; i++)
        executor_post(m->shards[i].ex, &m->shards[i].stop);
}

bool group_manager_is_down(struct group_manager *m)
{
    pthread_mutex_lock(&m->lock);
    bool down = m->shutting_down && m->shards_running == 0 && m->loads_running == 0;
    pthread_mutex_unlock(&m->lock);
    return down;
}

void group_manager_shut_down(struct group_manager *m)
{
    group_manager_begin_shut_down(m);
    pthread_mutex_lock(&m->lock);
    while (m->shards_running > 0 || m->loads_running > 0)
        pthread_cond_wait(&m->cond, &m->lock);
    pthread_mutex_unlock(&m->lock);
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
    free(m->partitions);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->cond);
    free(m);
}
