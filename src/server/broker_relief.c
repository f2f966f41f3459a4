/* broker_relief.c - the controlled shutdown of this broker: its part of it, while all else still
 * works. What is asked and when is in relief.c. */
#include "base/cond.h"
#include "base/logline.h"
#include "replica/fetchers.h"
#include "server/broker_cluster.h"
#include "server/broker_private.h"
#include "server/relief.h"

struct leaving {
    struct broker *b;
    struct relief relief;
    struct controller_link *link;
    struct task task;
    bool over, relieved; /* under the broker's lock */
};

static bool controller_known(void *arg)
{
    const struct leaving *l = arg;
    const struct metadata_snapshot *s = metadata_acquire(l->b->metadata);
    bool known = metadata_controller(s) >= 0;
    metadata_release(s);
    return known;
}

static void send_request(void *arg, struct controller_request *r)
{
    struct leaving *l = arg;
    controller_link_send(l->link, r);
}

/* Behind what is under way: the link must not go from inside its own callback. */
static void close_link(struct task *task)
{
    struct leaving *l = container_of(task, struct leaving, task);
    struct broker *b = l->b;
    controller_link_close(l->link);
    pthread_mutex_lock(&b->lock);
    l->over = true;
    pthread_cond_broadcast(&b->cond);
    pthread_mutex_unlock(&b->lock);
}

static void done(void *arg, bool relieved)
{
    struct leaving *l = arg;
    l->relieved = relieved;
    task_init(&l->task, close_link);
    executor_post(uv_executor_ex(l->b->background), &l->task);
}

/* Somebody who could lead in our place? */
static bool has_peers(const struct broker *b)
{
    const struct broker_info *brokers;
    const struct metadata_snapshot *s = metadata_acquire(b->metadata);
    int n = metadata_brokers(s, &brokers);
    metadata_release(s);
    return n > 1;
}

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void begin(struct task *task)
{
    struct leaving *l = container_of(task, struct leaving, task);
    const struct broker *b = l->b;
    const struct config *c = b->config;
    int attempts = (int)config_int(c, "controlled.shutdown.max.retries");
    if (attempts > 1 && store_cut_off(b->store))
        attempts = 1; /* the controller is, most likely, as helpless as we are */
    int64_t pause = config_int(c, "controlled.shutdown.retry.backoff.ms");
    l->link = broker_link_to_controller(l->b);
    struct relief_options o = {
        .ex = uv_executor_ex(b->background),
        .broker_id = b->id,
        .broker_epoch = broker_registrar_epoch(b->registrar),
        .version = broker_ibp(b) >= IBP(2, 4, 1) ? 3 : 2,
        .attempts = attempts,
        .pause_ms = pause,
        .limit_ms = shorter(config_int(c, "controller.socket.timeout.ms"), 2 * pause + 1000),
        .controller_known = controller_known,
        .send = send_request,
        .done = done,
        .arg = l};
    if (l->link)
        relief_ask(&l->relief, &o);
    else
        done(l, false);
}

/* The controller has moved what we led. Before our clients are cut off, they are told: by the
 * LeaderAndIsr that ends their waits, and the UpdateMetadata behind it, which says who leads now.
 */
struct farewell {
    struct metadata_listener listener;
    struct broker *b;
    bool news; /* under the broker's lock */
};

static void look_again(struct metadata_listener *l)
{
    struct farewell *f = container_of(l, struct farewell, listener);
    pthread_mutex_lock(&f->b->lock);
    f->news = true;
    pthread_cond_broadcast(&f->b->cond);
    pthread_mutex_unlock(&f->b->lock);
}

/* false: there was none until then. */
static bool await_news(struct farewell *f, int64_t until)
{
    bool in_time = true;
    pthread_mutex_lock(&f->b->lock);
    while (!f->news && in_time)
        in_time = cond_wait_until(&f->b->cond, &f->b->lock, until);
    f->news = false;
    pthread_mutex_unlock(&f->b->lock);
    return in_time;
}

static void await_successors(struct broker *b)
{
    enum { PATIENCE_MS = 1000 };
    struct farewell f = {.listener.updated = look_again, .b = b};
    int64_t until = clock_mono_ms(b->clock) + PATIENCE_MS;
    metadata_cache_listen(b->metadata, &f.listener);
    while (replica_manager_leads_for_others(b->replicas) && await_news(&f, until))
        ;
    metadata_cache_unlisten(b->metadata, &f.listener);
}

void broker_seek_relief(struct broker *b)
{
    if (!broker_on_zookeeper(b) || !config_bool(b->config, "controlled.shutdown.enable") ||
        b->dead || !has_peers(b))
        return;
    struct leaving l = {.b = b};
    int64_t start = clock_mono_ms(b->clock);
    fetchers_leave(b->fetchers);
    task_init(&l.task, begin);
    executor_post(uv_executor_ex(b->background), &l.task);
    pthread_mutex_lock(&b->lock);
    while (!l.over)
        pthread_cond_wait(&b->cond, &b->lock);
    pthread_mutex_unlock(&b->lock);
    if (l.relieved)
        await_successors(b);
    if (l.relieved)
        say_info("ControlledShutdown", "relieved of all partitions in %lld ms",
                 (long long)(clock_mono_ms(b->clock) - start));
}
