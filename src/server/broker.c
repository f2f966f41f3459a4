/* broker.c - what handlers ask of the broker, and its end that nobody wished for. */
#include "server/broker.h"

#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "server/authorizer.h"
#include "server/broker_metrics.h"
#include "server/broker_private.h"
#include "server/dynamic_config.h"
#include "server/finalized_features.h"

int32_t broker_id(const struct broker *b)
{
    return b->id;
}

const char *broker_cluster_id(const struct broker *b)
{
    return b->cluster_id;
}

const struct config *broker_config(const struct broker *b)
{
    return b->config;
}

struct dynamic_config *broker_dynamic_config(const struct broker *b)
{
    return b->dynamic;
}

int64_t broker_features_epoch(const struct broker *b)
{
    return b ? finalized_features_epoch(b->features) : -1;
}

struct authorizer *broker_authorizer(const struct broker *b)
{
    return b->authorizer;
}

struct client_quotas *broker_quotas(const struct broker *b)
{
    return b->quotas;
}

struct broker_metrics *broker_metrics(const struct broker *b)
{
    return b->metrics;
}

struct log_mover *broker_log_mover(const struct broker *b)
{
    return b->mover;
}

const struct clock *broker_clock(const struct broker *b)
{
    return b->clock;
}

struct metadata_cache *broker_metadata(const struct broker *b)
{
    return b->metadata;
}

struct replica_manager *broker_replicas(const struct broker *b)
{
    return atomic_load(&b->replicas);
}

struct log_manager *broker_logs(const struct broker *b)
{
    return b->logs;
}

struct store *broker_store(const struct broker *b)
{
    return b->store;
}

struct topic_admin *broker_topic_admin(const struct broker *b)
{
    return b->topic_admin;
}

struct workers *broker_workers(const struct broker *b)
{
    return b->workers;
}

struct turns *broker_warming(const struct broker *b)
{
    return b->warming;
}

struct fetch_sessions *broker_fetch_sessions(const struct broker *b)
{
    return b->fetch_sessions;
}

struct control_gate *broker_control_gate(struct broker *b)
{
    return &b->control_gate;
}

struct control_queue *broker_control_queue(const struct broker *b)
{
    return b->control_queue;
}

struct auto_create *broker_auto_create(const struct broker *b)
{
    return b->auto_create;
}

struct txn_manager *broker_txns(const struct broker *b)
{
    return b->txns;
}

struct txn_manager *broker_txn_verifier(const struct broker *b)
{
    const struct config *now = dynamic_config_ref(b->dynamic);
    bool on = config_bool(now, "transaction.partition.verification.enable");
    config_unref(now);
    return on ? b->txns : NULL;
}

struct group_manager *broker_groups(const struct broker *b)
{
    return b->groups;
}

struct producer_ids *broker_producer_ids(const struct broker *b)
{
    return b->producer_ids;
}

struct replication_throttle *broker_throttle(const struct broker *b)
{
    return b->throttle;
}

struct controller *broker_controller(const struct broker *b)
{
    return b->controller;
}

bool broker_is_controller(const struct broker *b)
{
    return controller_is_active(b->controller);
}

/* ---- settings of topics ---- */

static int copy_pair(struct props *p, const struct config_pair *pair)
{
    char *name = str_dup(pair->name), *value = str_dup(pair->value);
    int rc = name && value ? props_set(p, name, value) : -1;
    free(name);
    free(value);
    return rc;
}

struct props *broker_topic_overrides(struct broker *b, struct str topic)
{
    const struct topic_overrides *o = topic_configs_get(b->topic_configs, topic);
    struct props *p = props_new();
    for (int i = 0; p && o && i < o->list.n; i++) {
        if (copy_pair(p, &o->list.v[i]) != 0) {
            props_free(p);
            p = NULL;
        }
    }
    if (o)
        topic_overrides_unref(o);
    return p;
}

void broker_topic_config(struct broker *b, struct str topic, struct log_config *out)
{
    struct props *overrides = broker_topic_overrides(b, topic);
    const struct config *now = dynamic_config_ref(b->dynamic);
    config_topic(now, overrides, out);
    config_unref(now);
    props_free(overrides);
}

/* ---- work that waits elsewhere ---- */

void broker_async_begin(struct broker *b)
{
    pthread_mutex_lock(&b->lock);
    b->async++;
    pthread_mutex_unlock(&b->lock);
}

void broker_async_end(struct broker *b)
{
    pthread_mutex_lock(&b->lock);
    if (--b->async == 0)
        pthread_cond_broadcast(&b->cond);
    pthread_mutex_unlock(&b->lock);
}

/* ---- the end that nobody wished for ---- */

void broker_fatal(struct broker *b, const char *why)
{
    pthread_mutex_lock(&b->lock);
    bool first = !b->dead;
    if (first)
        b->dead = why;
    void (*tell)(void *arg, const char *why) = first ? b->on_fatal : NULL;
    pthread_cond_broadcast(&b->cond);
    pthread_mutex_unlock(&b->lock);
    if (first)
        say_fatal("KafkaServer", "cannot go on: %s", why);
    if (tell)
        tell(b->on_fatal_arg, why);
}

void broker_on_fatal(struct broker *b, void (*cb)(void *arg, const char *why), void *arg)
{
    pthread_mutex_lock(&b->lock);
    b->on_fatal = cb;
    b->on_fatal_arg = arg;
    const char *dead = b->dead;
    pthread_mutex_unlock(&b->lock);
    if (dead)
        cb(arg, dead);
}
