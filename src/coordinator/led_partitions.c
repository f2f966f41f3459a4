/* led_partitions.c - see led_partitions.h. */
#include "coordinator/led_partitions.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct shard_news {
    struct led_partitions *owner;
    struct executor *ex;
    struct list partitions; /* that have news; under the lock */
    struct task task;
    bool posted; /* under the lock */
};

struct slot {
    struct led_partitions *owner;
    int32_t number;
    /* Under the lock. */
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
    int32_t load_epoch;
    uint64_t load_number;
    void *result;
};

struct led_partitions {
    struct led_partitions_options o;
    struct replica_listener listener;
    struct shard_news *shards;
    struct slot *slots;
    pthread_mutex_t lock;
    pthread_cond_t cond; /* a load has ended */
    /* Under the lock. */
    struct list loads; /* that wait for their turn */
    int loads_running;
    bool shutting_down;
};

static struct shard_news *shard_of(const struct led_partitions *l, int32_t partition)
{
    return &l->shards[partition % l->o.shards];
}

/* ---- loads ---- */

static void load_work(struct job *job)
{
    struct slot *s = container_of(job, struct slot, job);
    s->result = s->owner->o.load(s->owner->o.arg, s->number, s->load_epoch);
}

static void load_done(struct job *job);

static void begin_load(struct led_partitions *l, struct slot *s)
{
    l->loads_running++;
    s->wanted = false;
    s->load_number = s->wanted_number;
    s->load_epoch = s->wanted_epoch;
    s->job =
        (struct job){.work = load_work, .done = load_done, .done_on = shard_of(l, s->number)->ex};
    workers_submit(l->o.workers, &s->job);
}

static void begin_loads_locked(struct led_partitions *l)
{
    while (l->loads_running < l->o.loads_at_once && !l->shutting_down && !list_empty(&l->loads)) {
        struct list *next = list_pop(&l->loads);
        begin_load(l, list_entry(next, struct slot, load_link));
    }
}

static void load_done(struct job *job)
{
    struct slot *s = container_of(job, struct slot, job);
    struct led_partitions *l = s->owner;
    void *result = s->result;
    uint64_t number = s->load_number;
    pthread_mutex_lock(&l->lock);
    s->loading = s->wanted;
    if (s->loading)
        list_push_back(&l->loads, &s->load_link);
    pthread_mutex_unlock(&l->lock);
    l->o.loaded(l->o.arg, s->number, number, result);
    pthread_mutex_lock(&l->lock);
    l->loads_running--;
    begin_loads_locked(l);
    pthread_cond_broadcast(&l->cond);
    pthread_mutex_unlock(&l->lock);
}

void led_partitions_load(struct led_partitions *l, int32_t partition, int32_t leader_epoch,
                         uint64_t number)
{
    struct slot *s = &l->slots[partition];
    pthread_mutex_lock(&l->lock);
    s->wanted = true;
    s->wanted_epoch = leader_epoch;
    s->wanted_number = number;
    if (!s->loading) {
        s->loading = true;
        list_push_back(&l->loads, &s->load_link);
    }
    begin_loads_locked(l);
    pthread_mutex_unlock(&l->lock);
}

/* ---- news ---- */

struct news {
    bool gone, resigned, led;
    int32_t resigned_epoch, led_epoch;
};

static struct slot *take_news(struct shard_news *n, struct news *out)
{
    struct led_partitions *l = n->owner;
    pthread_mutex_lock(&l->lock);
    struct list *first = list_pop(&n->partitions);
    struct slot *s = first ? list_entry(first, struct slot, news_link) : NULL;
    if (s) {
        *out = (struct news){s->gone, s->resigned, s->led, s->resigned_epoch, s->led_epoch};
        s->gone = s->resigned = s->led = false;
    } else {
        n->posted = false;
    }
    pthread_mutex_unlock(&l->lock);
    return s;
}

static void on_news(struct task *t)
{
    struct shard_news *shard = container_of(t, struct shard_news, task);
    const struct led_partitions_options *o = &shard->owner->o;
    struct slot *s;
    struct news n;
    while ((s = take_news(shard, &n)) != NULL) {
        if (n.gone)
            o->resigned(o->arg, s->number, -1);
        if (n.resigned)
            o->resigned(o->arg, s->number, n.resigned_epoch);
        if (n.led)
            o->elected(o->arg, s->number, n.led_epoch);
    }
}

/* NULL: not a partition that matters here. With the lock taken otherwise. */
static struct slot *lock_slot(struct led_partitions *l, struct topic_partition tp)
{
    if (tp.partition < 0 || tp.partition >= l->o.partitions_n || !str_eq(tp.topic, l->o.topic))
        return NULL;
    pthread_mutex_lock(&l->lock);
    return &l->slots[tp.partition];
}

static void unlock_slot(struct led_partitions *l, struct slot *s)
{
    struct shard_news *shard = shard_of(l, s->number);
    if (!list_linked(&s->news_link))
        list_push_back(&shard->partitions, &s->news_link);
    if (!shard->posted) {
        shard->posted = true;
        executor_post(shard->ex, &shard->task);
    }
    pthread_mutex_unlock(&l->lock);
}

static void led(struct replica_listener *listener, struct topic_partition tp, int32_t leader_epoch)
{
    struct led_partitions *l = container_of(listener, struct led_partitions, listener);
    struct slot *s = lock_slot(l, tp);
    if (!s)
        return;
    s->led = true;
    s->led_epoch = leader_epoch;
    unlock_slot(l, s);
}

static void resigned(struct replica_listener *listener, struct topic_partition tp,
                     int32_t leader_epoch)
{
    struct led_partitions *l = container_of(listener, struct led_partitions, listener);
    struct slot *s = lock_slot(l, tp);
    if (!s)
        return;
    s->led = false;
    if (leader_epoch < 0) {
        s->gone = true;
        s->resigned = false;
    } else {
        s->resigned = true;
        s->resigned_epoch = leader_epoch;
    }
    unlock_slot(l, s);
}

/* ---- life ---- */

int led_partitions_new(const struct led_partitions_options *o, struct led_partitions **out)
{
    struct led_partitions *l = *out = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    l->o = *o;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->cond, NULL);
    list_init(&l->loads);
    l->shards = calloc((size_t)o->shards, sizeof(*l->shards));
    l->slots = calloc((size_t)o->partitions_n, sizeof(*l->slots));
    if (!l->shards || !l->slots) {
        led_partitions_free(l);
        *out = NULL;
        return -ENOMEM;
    }
    for (int i = 0; i < o->shards; i++) {
        l->shards[i].owner = l;
        l->shards[i].ex = o->executors[i];
        list_init(&l->shards[i].partitions);
        task_init(&l->shards[i].task, on_news);
    }
    for (int32_t i = 0; i < o->partitions_n; i++) {
        l->slots[i].owner = l;
        l->slots[i].number = i;
        list_init(&l->slots[i].news_link);
        list_init(&l->slots[i].load_link);
    }
    l->listener = (struct replica_listener){.led = led, .resigned = resigned};
    replica_manager_listen(o->replicas, &l->listener);
    return 0;
}

void led_partitions_shut_down(struct led_partitions *l)
{
    pthread_mutex_lock(&l->lock);
    l->shutting_down = true;
    struct list *waits;
    while ((waits = list_pop(&l->loads)) != NULL)
        list_entry(waits, struct slot, load_link)->loading = false;
    pthread_mutex_unlock(&l->lock);
}

int led_partitions_loading(struct led_partitions *l)
{
    pthread_mutex_lock(&l->lock);
    int n = l->loads_running;
    pthread_mutex_unlock(&l->lock);
    return n;
}

void led_partitions_await(struct led_partitions *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->loads_running > 0)
        pthread_cond_wait(&l->cond, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

void led_partitions_free(struct led_partitions *l)
{
    if (!l)
        return;
    free(l->shards);
    free(l->slots);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->cond);
    free(l);
}
