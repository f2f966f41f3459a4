/* led_partitions.c - see led_partitions.h. */
#include "coordinator/led_partitions.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
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
    struct load_reach reach;
    /* While what it read waits for the ISR; the shard's executor's. */
    struct partition *partition; /* a reference; NULL: it does not wait */
    struct partition_waiter waiter;
    struct task look;
    atomic_bool look_posted;
};

struct led_partitions {
    struct led_partitions_options o;
    struct replica_listener listener;
    struct shard_news *shards;
    struct slot *slots;
    pthread_mutex_t lock;
    pthread_cond_t cond; /* a load has ended */
    /* Under the lock. */
    struct list loads;                /* that wait for their turn */
    int loads_running, loads_waiting; /* on workers; for the ISR */
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
    s->reach = (struct load_reach){0};
    s->result = s->owner->o.load(s->owner->o.arg, s->number, s->load_epoch, &s->reach);
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

/* On the shard's executor, as all of these. */
static void deliver(struct slot *s, uint64_t number)
{
    struct led_partitions *l = s->owner;
    void *result = s->result;
    pthread_mutex_lock(&l->lock);
    s->loading = s->wanted;
    if (s->loading)
        list_push_back(&l->loads, &s->load_link);
    pthread_mutex_unlock(&l->lock);
    l->o.loaded(l->o.arg, s->number, number, result);
}

static void ended_locked(struct led_partitions *l)
{
    begin_loads_locked(l);
    pthread_cond_broadcast(&l->cond);
}

static bool is_held(const struct slot *s)
{
    return partition_check_held(s->partition, s->reach.end, s->reach.term) == KERR_NONE;
}

static bool is_not_wanted(struct slot *s)
{
    struct led_partitions *l = s->owner;
    pthread_mutex_lock(&l->lock);
    bool yes = s->wanted || l->shutting_down;
    pthread_mutex_unlock(&l->lock);
    return yes;
}

static void wait_no_more(struct slot *s, uint64_t number)
{
    struct led_partitions *l = s->owner;
    partition_unwait(&s->waiter);
    partition_unref(s->partition);
    s->partition = NULL;
    deliver(s, number);
    pthread_mutex_lock(&l->lock);
    l->loads_waiting--;
    ended_locked(l);
    pthread_mutex_unlock(&l->lock);
}

/* Not when the partition is lost: its coordinator must hear of that first (on_news). */
static void look(struct task *t)
{
    struct slot *s = container_of(t, struct slot, look);
    atomic_store(&s->look_posted, false);
    if (!s->partition)
        return;
    if (is_not_wanted(s))
        wait_no_more(s, LOAD_NOBODYS);
    else if (is_held(s))
        wait_no_more(s, s->load_number);
}

static void look_soon(struct slot *s)
{
    if (!atomic_exchange(&s->look_posted, true))
        executor_post(shard_of(s->owner, s->number)->ex, &s->look);
}

static void moved(struct partition_waiter *w)
{
    look_soon(container_of(w, struct slot, waiter));
}

/* false: there is nothing to wait for. */
static bool wait_for_replicas(struct slot *s)
{
    struct led_partitions *l = s->owner;
    enum kerr why;
    if (s->reach.end <= 0)
        return false;
    s->partition =
        replica_manager_find(l->o.replicas, (struct topic_partition){l->o.topic, s->number}, &why);
    if (!s->partition)
        return false;
    if (is_held(s)) {
        partition_unref(s->partition);
        s->partition = NULL;
        return false;
    }
    pthread_mutex_lock(&l->lock);
    l->loads_waiting++;
    pthread_mutex_unlock(&l->lock);
    s->waiter.wake = moved;
    partition_wait(s->partition, &s->waiter);
    look_soon(s);
    return true;
}

static void load_done(struct job *job)
{
    struct slot *s = container_of(job, struct slot, job);
    struct led_partitions *l = s->owner;
    if (!wait_for_replicas(s))
        deliver(s, s->load_number);
    pthread_mutex_lock(&l->lock);
    l->loads_running--;
    ended_locked(l);
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
    if (s->partition)
        look_soon(s); /* which ends the older one */
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
        if ((n.gone || n.resigned) && s->partition)
            wait_no_more(s, LOAD_NOBODYS);
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
        task_init(&l->slots[i].look, look);
        atomic_init(&l->slots[i].look_posted, false);
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
    for (int32_t i = 0; l->loads_waiting && i < l->o.partitions_n; i++)
        look_soon(&l->slots[i]);
    pthread_mutex_unlock(&l->lock);
}

int led_partitions_loading(struct led_partitions *l)
{
    pthread_mutex_lock(&l->lock);
    int n = l->loads_running + l->loads_waiting;
    pthread_mutex_unlock(&l->lock);
    return n;
}

void led_partitions_await(struct led_partitions *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->loads_running + l->loads_waiting > 0)
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
