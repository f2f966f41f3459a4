/* txn_manager.c - see txn_manager.h. */
#include "coordinator/txn_manager.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/led_partitions.h"
#include "coordinator/offsets_log.h"
#include "coordinator/partition_loader.h"
#include "coordinator/txn_loading.h"

#define MANAGER_TAG "TransactionStateManager"

enum { IDLE_POLL_MS = 1, APPEND_TIMEOUT_MS = 30000 };

struct txn_manager {
    struct txn_manager_options o;
    struct metadata_listener metadata_listener;
    bool listening;
    atomic_bool metadata_posted;
    struct task start, stop, metadata_task;
    struct timer idle;
    struct offsets_log *log;
    struct txn_coordinator *coordinator;
    struct txn_verifier *verifier;
    struct led_partitions *led;
    pthread_mutex_t lock;
    pthread_cond_t cond;         /* the coordinator has stopped */
    bool shutting_down, stopped; /* under the lock */
};

int32_t txn_manager_partitions(const struct txn_manager *m)
{
    return m->o.partitions_n;
}

/* ---- partitions and loads ---- */

struct load {
    struct txn **ids;
    int n, error;
};

static int add(void *loading, const struct batch *b)
{
    return txn_loading_add(loading, b);
}

static void report(const struct partition_load *p, const struct load *l, int64_t records,
                   int64_t ms)
{
    int number = (int)p->partition, epoch = (int)p->leader_epoch;
    if (l->error == -ECANCELED)
        say_info(MANAGER_TAG,
                 "__transaction_state-%d: load of epoch %d given up, another broker leads", number,
                 epoch);
    else if (l->error)
        say_error(MANAGER_TAG, "__transaction_state-%d: load of epoch %d failed at offset %lld: %s",
                  number, epoch, (long long)p->offset, strerror(-l->error));
    else
        logline(l->n ? LOGLINE_INFO : LOGLINE_DEBUG, MANAGER_TAG,
                "__transaction_state-%d: loaded %d ids of epoch %d from %lld records in %lld ms",
                number, l->n, epoch, (long long)records, (long long)ms);
}

/* NULL without memory. */
static void *load(void *arg, int32_t partition, int32_t leader_epoch, struct load_reach *reach)
{
    struct txn_manager *m = arg;
    struct load *l = calloc(1, sizeof(*l));
    struct txn_loading *loading = l ? txn_loading_new(partition) : NULL;
    int64_t begun = clock_mono_ms(m->o.clock);
    struct partition_load p = {.replicas = m->o.replicas,
                               .topic = STR_LIT("__transaction_state"),
                               .partition = partition,
                               .leader_epoch = leader_epoch,
                               .buffer_size = m->o.load_buffer_size,
                               .add = add,
                               .arg = loading};
    if (!loading) {
        free(l);
        return NULL;
    }
    l->error = partition_load_run(&p);
    if (!l->error)
        l->error = txn_loading_take(loading, &l->ids, &l->n);
    if (!l->error)
        *reach = (struct load_reach){p.offset, p.term};
    report(&p, l, txn_loading_records(loading), clock_mono_ms(m->o.clock) - begun);
    txn_loading_free(loading);
    return l;
}

static void loaded(void *arg, int32_t partition, uint64_t number, void *result)
{
    struct txn_manager *m = arg;
    struct load none = {.error = -ENOMEM}, *l = result ? result : &none;
    txn_coordinator_loaded(m->coordinator, partition, number, l->ids, l->n, l->error);
    free(l->ids);
    free(result);
}

static void want_load(void *arg, int32_t partition, int32_t leader_epoch, uint64_t number)
{
    struct txn_manager *m = arg;
    led_partitions_load(m->led, partition, leader_epoch, number);
}

static void elected(void *arg, int32_t partition, int32_t leader_epoch)
{
    struct txn_manager *m = arg;
    txn_coordinator_elected(m->coordinator, partition, leader_epoch);
}

static void resigned(void *arg, int32_t partition, int32_t leader_epoch)
{
    struct txn_manager *m = arg;
    txn_coordinator_resigned(m->coordinator, partition, leader_epoch);
}

static int next_producer_id(void *arg, int64_t *id)
{
    struct txn_manager *m = arg;
    return m->o.producer_id(m->o.arg, id);
}

/* ---- news of the cluster ---- */

static void on_metadata(struct task *t)
{
    struct txn_manager *m = container_of(t, struct txn_manager, metadata_task);
    atomic_store(&m->metadata_posted, false);
    txn_coordinator_metadata_changed(m->coordinator);
}

static void metadata_updated(struct metadata_listener *l)
{
    struct txn_manager *m = container_of(l, struct txn_manager, metadata_listener);
    if (!atomic_exchange(&m->metadata_posted, true))
        executor_post(m->o.ex, &m->metadata_task);
}

static void stop_listening(struct txn_manager *m)
{
    if (m->listening)
        metadata_cache_unlisten(m->o.metadata, &m->metadata_listener);
    m->listening = false;
}

/* ---- requests ---- */

static void run_call(struct task *t)
{
    struct txn_call *c = container_of(t, struct txn_call, task);
    txn_coordinator_handle(c->coordinator, c);
}

void txn_manager_submit(struct txn_manager *m, struct txn_call *c)
{
    c->coordinator = m->coordinator;
    c->no_memory = false;
    task_init(&c->task, run_call);
    executor_post(m->o.ex, &c->task);
}

void txn_manager_ask(struct txn_manager *m, struct txn_question *q)
{
    txn_verifier_ask(m->verifier, q);
}

/* ---- counting ---- */

struct counting {
    struct task task;
    struct txn_manager *manager;
    struct txn_counts *counts;
    bool over; /* under the manager's lock */
};

static void run_count(struct task *t)
{
    struct counting *c = container_of(t, struct counting, task);
    struct txn_manager *m = c->manager;
    txn_coordinator_look(m->coordinator, c->counts);
    pthread_mutex_lock(&m->lock);
    c->over = true;
    pthread_cond_broadcast(&m->cond);
    pthread_mutex_unlock(&m->lock);
}

void txn_manager_count(struct txn_manager *m, struct txn_counts *out)
{
    struct counting c = {.manager = m, .counts = out};
    task_init(&c.task, run_count);
    executor_post(m->o.ex, &c.task);
    pthread_mutex_lock(&m->lock);
    while (!c.over)
        pthread_cond_wait(&m->cond, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

const struct txn_verifier_counts *txn_manager_verifier_counts(const struct txn_manager *m)
{
    return txn_verifier_counts(m->verifier);
}

/* ---- life ---- */

static void start(struct task *t)
{
    txn_coordinator_start(container_of(t, struct txn_manager, start)->coordinator);
}

static void stop_when_idle(struct timer *t)
{
    struct txn_manager *m = container_of(t, struct txn_manager, idle);
    if (offsets_log_busy(m->log) > 0) {
        executor_timer_start(m->o.ex, &m->idle, IDLE_POLL_MS);
        return;
    }
    pthread_mutex_lock(&m->lock);
    m->stopped = true;
    pthread_cond_broadcast(&m->cond);
    pthread_mutex_unlock(&m->lock);
}

static void stop(struct task *t)
{
    struct txn_manager *m = container_of(t, struct txn_manager, stop);
    txn_coordinator_shut_down(m->coordinator);
    txn_verifier_stop(m->verifier);
    offsets_log_stop(m->log);
    stop_when_idle(&m->idle);
}

static int make_log(struct txn_manager *m)
{
    struct offsets_log_options o = {.topic = STR_LIT("__transaction_state"),
                                    .ex = m->o.ex,
                                    .replicas = m->o.replicas,
                                    .workers = m->o.workers,
                                    .partitions_n = m->o.partitions_n,
                                    .codec = CODEC_NONE,
                                    .required_acks = -1,
                                    .timeout_ms = APPEND_TIMEOUT_MS};
    return offsets_log_new(&o, &m->log);
}

static int make_coordinator(struct txn_manager *m)
{
    struct txn_coordinator_options o = {.ex = m->o.ex,
                                        .log = offsets_log_of(m->log),
                                        .partitions_n = m->o.partitions_n,
                                        .config = m->o.config,
                                        .markers = {.ex = m->o.ex,
                                                    .metadata = m->o.metadata,
                                                    .listener = m->o.listener,
                                                    .opener = m->o.opener,
                                                    .client_id = m->o.client_id,
                                                    .timeout_ms = m->o.request_timeout_ms},
                                        .producer_id = next_producer_id,
                                        .load = want_load,
                                        .arg = m};
    return txn_coordinator_new(&o, &m->coordinator);
}

static int make_verifier(struct txn_manager *m)
{
    struct txn_verifier_options o = {.ex = m->o.ex,
                                     .metadata = m->o.metadata,
                                     .partitions_n = m->o.partitions_n,
                                     .listener = m->o.listener,
                                     .opener = m->o.opener,
                                     .client_id = m->o.client_id,
                                     .timeout_ms = m->o.request_timeout_ms};
    m->verifier = txn_verifier_new(&o);
    return m->verifier ? 0 : -ENOMEM;
}

static int follow_partitions(struct txn_manager *m)
{
    struct led_partitions_options o = {.topic = STR_LIT("__transaction_state"),
                                       .partitions_n = m->o.partitions_n,
                                       .executors = &m->o.ex,
                                       .shards = 1,
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

int txn_manager_new(const struct txn_manager_options *o, struct txn_manager **out)
{
    struct txn_manager *m = *out = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    m->o = *o;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->cond, NULL);
    task_init(&m->start, start);
    task_init(&m->stop, stop);
    task_init(&m->metadata_task, on_metadata);
    timer_init(&m->idle, stop_when_idle);
    int rc = make_log(m);
    if (!rc)
        rc = make_coordinator(m);
    if (!rc)
        rc = make_verifier(m);
    if (!rc)
        rc = follow_partitions(m);
    if (rc) {
        txn_manager_free(m);
        *out = NULL;
        return rc;
    }
    m->metadata_listener.updated = metadata_updated;
    metadata_cache_listen(o->metadata, &m->metadata_listener);
    m->listening = true;
    executor_post(o->ex, &m->start);
    return 0;
}

void txn_manager_begin_shut_down(struct txn_manager *m)
{
    stop_listening(m);
    pthread_mutex_lock(&m->lock);
    m->shutting_down = true;
    pthread_mutex_unlock(&m->lock);
    led_partitions_shut_down(m->led);
    executor_post(m->o.ex, &m->stop);
}

bool txn_manager_is_down(struct txn_manager *m)
{
    pthread_mutex_lock(&m->lock);
    bool down = m->shutting_down && m->stopped;
    pthread_mutex_unlock(&m->lock);
    return down && led_partitions_loading(m->led) == 0;
}

void txn_manager_shut_down(struct txn_manager *m)
{
    txn_manager_begin_shut_down(m);
    pthread_mutex_lock(&m->lock);
    while (!m->stopped)
        pthread_cond_wait(&m->cond, &m->lock);
    pthread_mutex_unlock(&m->lock);
    led_partitions_await(m->led);
}

void txn_manager_free(struct txn_manager *m)
{
    if (!m)
        return;
    stop_listening(m);
    txn_coordinator_free(m->coordinator);
    txn_verifier_free(m->verifier);
    offsets_log_free(m->log);
    led_partitions_free(m->led);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->cond);
    free(m);
}
