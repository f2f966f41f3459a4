/* entity_apply.c - see entity_apply.h. */
#include "server/entity_apply.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "server/broker_private.h"
#include "server/client_quotas.h"
#include "server/conn_limits.h"
#include "server/dynamic_config.h"
#include "server/entity_configs.h"
#include "server/quota_entity.h"
#include "server/scram_users.h"

static bool begins(struct str path, const char *with)
{
    size_t n = strlen(with);
    return (size_t)path.len > n && memcmp(path.p, with, n) == 0;
}

static bool is_own(const struct broker *b, struct str path)
{
    char own[32];
    snprintf(own, sizeof(own), "brokers/%d", b->id);
    return str_eqz(path, own);
}

bool entity_concerns(const struct broker *b, struct str path)
{
    return !begins(path, "brokers/") || is_own(b, path) || str_eqz(path, ENTITY_ALL_BROKERS);
}

/* ---- brokers ---- */

static void configure_log(void *arg, struct log *log)
{
    struct log_config c;
    broker_topic_config(arg, log_topic_partition(log).topic, &c);
    log_set_config(log, &c);
}

static bool differs(const struct config *a, const struct config *b, const char *key)
{
    return config_int(a, key) != config_int(b, key);
}

/* Partitions of all topics that follow it and have no leader may get one now. */
static void allow_unclean(struct broker *b, const struct config *now)
{
    struct controller *c = atomic_load(&b->controller);
    if (c && controller_is_active(c) && config_bool(now, "unclean.leader.election.enable"))
        controller_unclean_allowed(c, STR_NULL);
}

/* Parts that are not made yet take the settings over when they are. */
static int put_to_use(struct broker *b, const struct config *old, const struct config *now)
{
    int rc = 0;
    if (b->logs && memcmp(&old->log_defaults, &now->log_defaults, sizeof(now->log_defaults)) != 0) {
        log_manager_set_defaults(b->logs, &now->log_defaults);
        log_manager_each(b->logs, configure_log, b);
        log_manager_each_future(b->logs, configure_log, b);
    }
    rc = broker_listeners_apply(b, now);
    if (!rc && differs(old, now, "num.io.threads")) {
        rc = workers_resize(b->workers, (int)config_int(now, "num.io.threads"));
        turns_set_most(b->warming, broker_warmers(config_int(now, "num.io.threads")));
    }
    if (differs(old, now, "num.replica.fetchers") && atomic_load(&b->replicas))
        replica_manager_set_fetchers(atomic_load(&b->replicas),
                                     (int)config_int(now, "num.replica.fetchers"));
    if (!rc && differs(old, now, "background.threads"))
        rc = workers_resize(b->background_workers, (int)config_int(now, "background.threads"));
    if (!rc)
        rc = broker_cleaner_changed(b, old, now);
    if (differs(old, now, "unclean.leader.election.enable"))
        allow_unclean(b, now);
    return rc;
}

static int apply_broker(struct broker *b, enum config_layer layer, struct config_list list)
{
    const struct config *old = dynamic_config_ref(b->dynamic);
    int rc = 0;
    if (dynamic_config_set(b->dynamic, layer, list)) {
        const struct config *now = dynamic_config_ref(b->dynamic);
        say_info("DynamicConfig", "settings of %s have changed",
                 layer == LAYER_CLUSTER ? "all brokers" : "this broker");
        rc = put_to_use(b, old, now);
        config_unref(now);
    } else {
        broker_stores_look(b, old);
    }
    config_unref(old);
    return rc;
}

/* ---- quotas ---- */

/* The rate, or INFINITY. */
static double connection_rate(struct config_list list)
{
    for (int i = 0; i < list.n; i++) {
        if (!str_eqz(list.v[i].name, "connection_creation_rate") || list.v[i].value.len <= 0)
            continue;
        char *end, *text = str_dup(list.v[i].value);
        double v = text ? strtod(text, &end) : -1;
        bool legal = text && !*end && v >= 0;
        free(text);
        return legal && v < INT32_MAX ? v : INFINITY;
    }
    return INFINITY;
}

static int apply_ip(struct broker *b, struct str name, struct config_list list)
{
    struct in6_addr ip;
    char *host = str_dup(name);
    int rc = str_is_null(name) ? 0 : host ? net_ip_of(host, &ip) : -ENOMEM;
    if (rc && rc != -ENOMEM) {
        say_error("EntityConfigs", "ips/%s has no address and is ignored: %s", host, strerror(-rc));
        rc = 0;
    } else if (!rc) {
        rc = broker_limit_ip(b, str_is_null(name) ? NULL : &ip, connection_rate(list));
    }
    free(host);
    return rc;
}

static bool is_user(const struct quota_entity *e)
{
    return e->part[QUOTA_USER].given && !e->part[QUOTA_CLIENT].given &&
           !str_is_null(e->part[QUOTA_USER].name);
}

int entity_apply_quota(struct broker *b, const struct quota_entity *e, struct config_list list)
{
    if (e->part[QUOTA_IP].given)
        return apply_ip(b, e->part[QUOTA_IP].name, list);
    int rc = is_user(e) ? scram_users_set(b->scram_users, e->part[QUOTA_USER].name, list) : 0;
    int quotas = client_quotas_set(b->quotas, e, list);
    return rc ? rc : quotas;
}

/* ---- any ---- */

static int apply_topic(struct broker *b, struct str topic)
{
    struct replica_manager *replicas = atomic_load(&b->replicas);
    int rc = topic_configs_refresh(b->topic_configs, topic);
    if (!rc && replicas)
        replica_manager_topic_config_changed(replicas, topic);
    return rc;
}

int entity_apply(struct broker *b, struct str path, struct config_list list)
{
    struct quota_entity e;
    struct arena a;
    int rc = 0;
    if (begins(path, "topics/"))
        return apply_topic(b, (struct str){path.p + 7, path.len - 7});
    if (str_eqz(path, ENTITY_ALL_BROKERS))
        return apply_broker(b, LAYER_CLUSTER, list);
    if (is_own(b, path))
        return apply_broker(b, LAYER_BROKER, list);
    arena_init(&a, 0);
    if (quota_entity_parse(path, &a, &e))
        rc = entity_apply_quota(b, &e, list);
    arena_free(&a);
    return rc;
}
