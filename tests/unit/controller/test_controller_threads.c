/* The controller as it runs in a broker: on a thread of its own, with the journaled store on
 * another, requests applied on workers, topics made from the test's thread. For the sanitizers, and
 * for the order in which all of it is stopped. */
#include <pthread.h>

#include "base/logline.h"
#include "base/uv_executor.h"
#include "base/workers.h"
#include "controller/controller.h"
#include "controller/topic_admin.h"
#include "metadata/bootstrap.h"
#include "protocol/api.h"
#include "protocol/msg/leader_and_isr.h"
#include "protocol/msg/stop_replica.h"
#include "protocol/msg/update_metadata.h"

#include "metadata/store_test.h"

struct node {
    char dir[64];
    struct store *store;
    struct uv_executor *controller_ex, *admin_ex;
    struct workers *workers;
    struct metadata_cache *cache;
    struct broker_registrar *registrar;
    struct controller *controller;
    struct topic_admin *admin;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool ready;
    int updates;
    struct metadata_listener listener;
};

/* A channel that applies on a worker, one at a time, as the broker's own does. */

struct channel {
    struct broker_channel base;
    struct node *node;
    int outstanding;
    bool closed;
};

struct call {
    struct job job; /* base/workers.h */
    struct channel *channel;
    int16_t api_key;
    const void *request;
    channel_cb cb;
    void *arg;
    struct arena arena;
    union {
        struct leader_and_isr_response lisr;
        struct update_metadata_response umr;
        struct stop_replica_response sr;
    } response;
};

static void apply(struct job *j)
{
    struct call *call = container_of(j, struct call, job);
    if (call->api_key == API_UPDATE_METADATA) {
        update_metadata_response_init(&call->response.umr);
        assert_int_equal(metadata_cache_update(call->channel->node->cache, call->request), 0);
    } else if (call->api_key == API_STOP_REPLICA) {
        stop_replica_response_init(&call->response.sr);
    } else {
        leader_and_isr_response_init(&call->response.lisr);
    }
}

static void applied(struct job *j)
{
    struct call *call = container_of(j, struct call, job);
    struct channel *ch = call->channel;
    call->cb(call->arg, ch->closed ? -ECANCELED : 0, ch->closed ? NULL : &call->response);
    arena_free(&call->arena);
    free(call);
    if (--ch->outstanding == 0 && ch->closed)
        free(ch);
}

static void channel_send(struct broker_channel *base, int16_t api_key, int version,
                         const void *request, channel_cb cb, void *arg)
{
    struct channel *ch = container_of(base, struct channel, base);
    struct call *call = calloc(1, sizeof(*call));
    call->job.work = apply;
    call->job.done = applied;
    call->job.done_on = uv_executor_ex(ch->node->controller_ex);
    call->channel = ch;
    call->api_key = api_key;
    call->request = request;
    call->cb = cb;
    call->arg = arg;
    ch->outstanding++;
    workers_submit(ch->node->workers, &call->job);
}

static void channel_close(struct broker_channel *base)
{
    struct channel *ch = container_of(base, struct channel, base);
    ch->closed = true;
    if (!ch->outstanding)
        free(ch);
}

static struct broker_channel *open_channel(void *arg, const struct broker_info *broker)
{
    struct channel *ch = calloc(1, sizeof(*ch));
    ch->base = (struct broker_channel){broker->id, channel_send, channel_close, NULL};
    ch->node = arg;
    return &ch->base;
}

static void signal_node(struct node *n, bool *flag)
{
    pthread_mutex_lock(&n->lock);
    if (flag)
        *flag = true;
    n->updates++;
    pthread_cond_broadcast(&n->cond);
    pthread_mutex_unlock(&n->lock);
}

static void on_ready(void *arg)
{
    struct node *n = arg;
    signal_node(n, &n->ready);
}

static void on_fatal(void *arg, const char *why)
{
    fail_msg("%s", why);
}

static void on_update(struct metadata_listener *l)
{
    signal_node(container_of(l, struct node, listener), NULL);
}

static char *any_config(void *arg, struct str name, struct str value)
{
    return NULL;
}

static int32_t one_partition(void *arg)
{
    return 1;
}

static int16_t one_replica(void *arg)
{
    return 1;
}

static void node_start(struct node *n)
{
    char why[256];
    struct embedded_options so = {.clock = clock_real(), .dir = n->dir};
    assert_int_equal(embedded_store_open(&so, &n->store, why, sizeof(why)), 0);
    assert_int_equal(bootstrap_paths(n->store), 0);
    assert_int_equal(uv_executor_start("controller", &n->controller_ex), 0);
    assert_int_equal(uv_executor_start("admin", &n->admin_ex), 0);
    assert_int_equal(workers_start("worker", 1, &n->workers), 0);
    n->cache = metadata_cache_new();
    n->listener.updated = on_update;
    n->ready = false;
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->cond, NULL);
    metadata_cache_listen(n->cache, &n->listener);
    struct endpoint e = {STR_LIT("PLAINTEXT"), STR_LIT("localhost"), 9092, 0};
    struct broker_info self = {0, STR_NULL, &e, 1};
    struct broker_registrar_options ro = {.store = n->store,
                                          .ex = uv_executor_ex(n->controller_ex),
                                          .clock = clock_real(),
                                          .self = &self,
                                          .jmx_port = -1,
                                          .wait_ms = 1000};
    assert_int_equal(broker_registrar_new(&ro, &n->registrar), 0);
    assert_int_equal(broker_registrar_run(n->registrar, NULL), 0);
    struct topic_admin_options ao = {.store = n->store,
                                     .metadata = n->cache,
                                     .ex = uv_executor_ex(n->admin_ex),
                                     .topic_ids = true,
                                     .check_config = any_config,
                                     .default_partitions = one_partition,
                                     .default_replication = one_replica};
    assert_int_equal(topic_admin_new(&ao, &n->admin), 0);
    struct controller_options co = {.broker_id = 0,
                                    .store = n->store,
                                    .ex = uv_executor_ex(n->controller_ex),
                                    .registrar = n->registrar,
                                    .listener = STR_NULL,
                                    .delete_topics = true,
                                    .channel = open_channel,
                                    .fatal = on_fatal,
                                    .ready = on_ready,
                                    .arg = n};
    assert_int_equal(controller_start(&co, &n->controller), 0);
    pthread_mutex_lock(&n->lock);
    while (!n->ready)
        pthread_cond_wait(&n->cond, &n->lock);
    pthread_mutex_unlock(&n->lock);
}

struct stop_task {
    struct task task;
    struct node *node;
};

static void stop_on_thread(struct task *t)
{
    struct node *n = container_of(t, struct stop_task, task)->node;
    controller_stop(n->controller);
    broker_registrar_free(n->registrar);
    signal_node(n, &n->ready);
}

static void node_stop(struct node *n)
{
    struct stop_task stop = {.node = n};
    n->ready = false;
    task_init(&stop.task, stop_on_thread);
    executor_post(uv_executor_ex(n->controller_ex), &stop.task);
    pthread_mutex_lock(&n->lock);
    while (!n->ready)
        pthread_cond_wait(&n->cond, &n->lock);
    pthread_mutex_unlock(&n->lock);
    store_close(n->store);
    workers_stop(n->workers);
    uv_executor_stop(n->controller_ex);
    uv_executor_stop(n->admin_ex);
    topic_admin_free(n->admin);
    metadata_cache_unlisten(n->cache, &n->listener);
    metadata_cache_free(n->cache);
    pthread_mutex_destroy(&n->lock);
    pthread_cond_destroy(&n->cond);
}

struct waiting {
    struct node *node;
    bool done;
};

static void on_done(void *arg)
{
    struct waiting *w = arg;
    signal_node(w->node, &w->done);
}

static void wait_done(struct waiting *w)
{
    pthread_mutex_lock(&w->node->lock);
    while (!w->done)
        pthread_cond_wait(&w->node->cond, &w->node->lock);
    pthread_mutex_unlock(&w->node->lock);
}

static int topics_known(struct node *n)
{
    const struct metadata_snapshot *s = metadata_acquire(n->cache);
    int count = metadata_topics_n(s);
    metadata_release(s);
    return count;
}

static void wait_for_topics(struct node *n, int want)
{
    pthread_mutex_lock(&n->lock);
    for (;;) {
        int before = n->updates;
        pthread_mutex_unlock(&n->lock);
        bool there = topics_known(n) == want;
        pthread_mutex_lock(&n->lock);
        if (there)
            break;
        while (n->updates == before)
            pthread_cond_wait(&n->cond, &n->lock);
    }
    pthread_mutex_unlock(&n->lock);
}

enum { TOPICS = 60 };

static void topics_are_made_kept_and_deleted_with_real_threads(void **state)
{
    struct node n = {.ready = false};
    struct new_topic topics[TOPICS] = {0};
    struct topic_deletion deletions[TOPICS] = {0};
    struct waiting waits[TOPICS];
    char names[TOPICS][16];
    logline_set_level(LOGLINE_FATAL);
    new_test_dir(n.dir);
    node_start(&n);
    for (int i = 0; i < TOPICS; i++) { /* all at once */
        snprintf(names[i], sizeof(names[i]), "t_%d", i);
        topics[i] = (struct new_topic){.name = str_of(names[i]), .partitions = 3, .replication = 1};
        waits[i] = (struct waiting){&n, false};
        topic_admin_create(n.admin, &topics[i], 1, false, uv_executor_ex(n.admin_ex), on_done,
                           &waits[i]);
    }
    for (int i = 0; i < TOPICS; i++) {
        wait_done(&waits[i]);
        assert_int_equal(topics[i].error, 0);
    }
    wait_for_topics(&n, TOPICS);
    node_stop(&n);

    node_start(&n); /* and after a restart */
    assert_int_equal(topics_known(&n), TOPICS);
    for (int i = 0; i < TOPICS; i++)
        deletions[i].name = topics[i].name;
    waits[0].done = false;
    topic_admin_delete(n.admin, deletions, TOPICS, uv_executor_ex(n.admin_ex), on_done, &waits[0]);
    wait_done(&waits[0]);
    wait_for_topics(&n, 0);
    node_stop(&n);
    assert_int_equal(fs_remove_tree(fs_posix(), n.dir), 0);
}

/* Stopped while topics are being made: whatever had been answered is kept. */
static void a_stop_in_the_middle(void **state)
{
    struct node n = {.ready = false};
    logline_set_level(LOGLINE_FATAL);
    new_test_dir(n.dir);
    int known = 0;
    for (int round = 0; round < 10; round++) {
        char name[16];
        struct waiting w = {&n, false};
        node_start(&n);
        assert_true(topics_known(&n) >= known);
        snprintf(name, sizeof(name), "r%d", round);
        struct new_topic t = {.name = str_of(name), .partitions = 50, .replication = 1};
        topic_admin_create(n.admin, &t, 1, false, uv_executor_ex(n.admin_ex), on_done, &w);
        wait_done(&w); /* the controller has it before it, or is in the middle of it */
        assert_int_equal(t.error, 0);
        known = round + 1;
        node_stop(&n);
    }
    node_start(&n);
    assert_int_equal(topics_known(&n), known);
    node_stop(&n);
    assert_int_equal(fs_remove_tree(fs_posix(), n.dir), 0);
}

UNIT_MAIN(unit_test(topics_are_made_kept_and_deleted_with_real_threads),
          unit_test(a_stop_in_the_middle))
