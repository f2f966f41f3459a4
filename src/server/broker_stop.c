/* broker_stop.c - taking a broker down, whole or half made. The order is that of use: whoever may
 * still call a part goes first. */
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "replica/isr_store.h"
#include "server/auto_create.h"
#include "server/broker_cluster.h"
#include "server/broker_groups.h"
#include "server/broker_private.h"
#include "server/broker_security.h"
#include "server/broker_txns.h"
#include "server/client_quotas.h"
#include "server/control_queue.h"
#include "server/dynamic_config.h"
#include "server/entity_rereads.h"
#include "server/fetch_session.h"
#include "server/finalized_features.h"
#include "server/scram_users.h"

enum { GRACE_MS = 1000 }; /* for requests in work, e.g. fetches that wait for records */

static void await_async(struct broker *b)
{
    pthread_mutex_lock(&b->lock);
    while (b->async > 0)
        pthread_cond_wait(&b->cond, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* Requests are answered while all that answers them still works. */
static void stop_network(struct broker *b)
{
    struct net_server *net = broker_take_net(b);
    if (net)
        net_server_stop(net, GRACE_MS);
    await_async(b);
    if (net)
        workers_watch(b->workers, 0, NULL, NULL);
    net_server_free(net);
    if (b->reactors)
        reactor_pool_stop(b->reactors);
}

/* A call that must be made on an executor, and waited for. */
struct call {
    struct task task;
    struct broker *b;
    void (*run)(struct broker *b);
    bool over; /* under the broker's lock */
};

static void run_call(struct task *task)
{
    struct call *c = container_of(task, struct call, task);
    struct broker *b = c->b;
    c->run(b);
    pthread_mutex_lock(&b->lock);
    c->over = true;
    pthread_cond_broadcast(&b->cond);
    pthread_mutex_unlock(&b->lock);
}

static void call_on(struct broker *b, struct uv_executor *e, void (*run)(struct broker *b))
{
    struct call c = {.b = b, .run = run};
    task_init(&c.task, run_call);
    executor_post(uv_executor_ex(e), &c.task);
    pthread_mutex_lock(&b->lock);
    while (!c.over)
        pthread_cond_wait(&b->cond, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* And the registration, which is on its executor. */
static void stop_controller(struct broker *b)
{
    controller_stop(b->controller);
    broker_registrar_free(b->registrar);
}

/* A notice of settings makes work for the workers; on its executor none is half told. */
static void stop_listening(struct broker *b)
{
    atomic_store(&b->deaf, true);
    entity_rereads_end(b->rereads); /* none comes to the queue of settings any more */
}

/* They use the store's watches, which belong to their executor. */
static void end_watchers(struct broker *b)
{
    finalized_features_end(b->features);
    broker_acls_end(b);
    broker_tokens_end(b);
    if (b->topic_configs)
        topic_configs_close(b->topic_configs);
}

static void stop_upkeep(struct broker *b)
{
    if (b->upkeep_runs)
        upkeep_stop(b->upkeep);
    log_mover_stop(b->mover);
    if (b->cleaner)
        cleaner_stop(b->cleaner);
}

/* Whoever may still reach the replicas: workers with control requests, flushes and failed dirs, and
 * the settings' watcher. */
static void stop_workers(struct broker *b)
{
    if (b->background)
        call_on(b, b->background, stop_listening);
    workers_stop(b->background_workers);
    workers_stop(b->workers); /* a log that is being made asks for the topic's settings */
    control_queue_free(b->control_queue);
    control_queue_free(b->config_queue);
    if (b->background)
        call_on(b, b->background, end_watchers);
}

static void stop_threads(struct broker *b)
{
    store_close(b->acl_store);
    store_close(b->store);
    if (b->controller_ex)
        uv_executor_stop(b->controller_ex);
    if (b->background)
        uv_executor_stop(b->background);
}

static void close_data(struct broker *b)
{
    /* A dir that fails while the logs are closed has no replicas left to take offline. */
    replica_manager_free(atomic_exchange(&b->replicas, NULL));
    cleaner_free(b->cleaner);
    broker_free_ties(b);
    if (b->logs)
        log_manager_close(b->logs);
}

static void free_parts(struct broker *b)
{
    turns_free(b->warming);
    broker_free_metrics(b);
    broker_acls_free(b);
    entity_rereads_free(b->rereads);
    finalized_features_free(b->features);
    isr_store_free(b->isr_store);
    upkeep_free(b->upkeep);
    log_mover_free(b->mover);
    auto_create_free(b->auto_create);
    if (b->topic_admin)
        topic_admin_free(b->topic_admin);
    if (b->producer_ids)
        producer_ids_free(b->producer_ids);
    client_quotas_free(b->quotas);
    dynamic_config_free(b->dynamic);
    if (b->fetch_sessions)
        fetch_sessions_free(b->fetch_sessions);
    if (b->metadata)
        metadata_cache_free(b->metadata);
    if (b->meta_lock_fd >= 0)
        fs_unlock(b->meta_lock_path, b->meta_lock_fd);
    free(b->meta_lock_path);
    free(b->cluster_id);
    broker_listeners_free(b);
    broker_security_free(b->security);
    scram_users_free(b->scram_users);
    broker_tokens_free(b);
    config_free(b->config);
    pthread_mutex_destroy(&b->listeners_lock);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->cond);
    free(b);
}

void broker_take_down(struct broker *b)
{
    broker_end_metrics(b);
    if (b->store)
        store_end_waits(b->store);
    if (b->acl_store)
        store_end_waits(b->acl_store);
    broker_txns_shut_down(b);
    broker_groups_shut_down(b); /* members that wait would hold the network up */
    stop_network(b);
    stop_upkeep(b);
    broker_stop_fetchers(b);
    if (b->background)
        call_on(b, b->background, broker_close_links);
    if (b->background) /* notices of settings reach the controller, too */
        call_on(b, b->background, stop_listening);
    if (b->controller_ex)
        call_on(b, b->controller_ex, stop_controller);
    stop_workers(b);
    close_data(b);
    stop_threads(b);
    broker_groups_stop(b);
    broker_txns_stop(b);
    free_parts(b);
}

void broker_stop(struct broker *b)
{
    char component[32];
    snprintf(component, sizeof(component), "KafkaServer id=%d", b->id);
    say_info(component, "shutting down");
    broker_seek_relief(b);
    broker_take_down(b);
    say_info(component, "shut down completed");
}
