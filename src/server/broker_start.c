/* broker_start.c - the broker's parts, made in order. Each step fills its fields and may fail with
 * one line for people; then what exists is taken down again. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cond.h"
#include "base/logline.h"
#include "metadata/zookeeper_connect.h"
#include "server/auto_create.h"
#include "server/broker_cluster.h"
#include "server/broker_groups.h"
#include "server/broker_private.h"
#include "server/broker_security.h"
#include "server/broker_txns.h"
#include "server/client_quotas.h"
#include "server/control_queue.h"
#include "server/dynamic_config.h"
#include "server/entity_configs.h"
#include "server/fetch_session.h"
#include "server/finalized_features.h"
#include "server/listener_tls.h"
#include "server/sasl_listener.h"
#include "server/scram_users.h"

static int fail(char *err, size_t err_n, int rc, const char *what)
{
    return broker_start_failed(err, err_n, rc, what);
}

/* ---- what this build can do ---- */

static void add_line(char *err, size_t err_n, const char *line)
{
    size_t at = strnlen(err, err_n);
    if (at < err_n)
        snprintf(err + at, err_n - at, "%s%s", at ? "\n" : "", line);
}

static int check_zookeeper(const struct config *c, char *err, size_t err_n)
{
    struct zookeeper_connect where;
    const char *connect = config_string(c, "zookeeper.connect");
    char line[1024] = "";
    int rc = connect && *connect ? zookeeper_connect_parse(connect, &where, line, sizeof(line)) : 1;
    if (rc == 0)
        zookeeper_connect_clear(&where);
    if (rc < 0)
        add_line(err, err_n, line);
    if (!config_bool(c, "zookeeper.ssl.client.enable"))
        return rc < 0 ? rc : 0;
    add_line(err, err_n,
             "zookeeper.ssl.client.enable=true: this version has no TLS towards ZooKeeper; it "
             "must be false");
    return rc < 0 ? rc : -ENOTSUP;
}

static int check_tls(const struct config *c, char *err, size_t err_n)
{
    int rc = 0;
    for (int i = 0; i < c->listeners_n; i++) {
        const struct listener_config *l = &c->listeners[i];
        char line[1024];
        int one =
            listener_has_tls(l) ? listener_tls_check(NULL, c, l->name, line, sizeof(line)) : 0;
        if (!one)
            continue;
        add_line(err, err_n, line);
        rc = one;
    }
    return rc;
}

/* What SASL needs is looked at without a store, whose users it does not need. */
static int check_sasl(const struct config *c, char *err, size_t err_n)
{
    int rc = 0;
    for (int i = 0; i < c->listeners_n; i++) {
        char line[1024] = "";
        int one = sasl_listener_check(c, &c->listeners[i], line, sizeof(line));
        if (!one)
            continue;
        add_line(err, err_n, *line ? line : strerror(-one));
        rc = one;
    }
    return rc;
}

int broker_check_supported(const struct config *c, char *err, size_t err_n)
{
    if (err_n)
        *err = 0;
    char line[512] = "";
    int acls = broker_check_authorizer(c, line, sizeof(line));
    if (acls)
        add_line(err, err_n, line);
    int rc = check_zookeeper(c, err, err_n);
    int more = check_tls(c, err, err_n);
    int sasl = check_sasl(c, err, err_n);
    return rc ? rc : more ? more : sasl ? sasl : acls;
}

/* ---- threads ---- */

static int start_pool(struct broker *b, const char *name, const char *key, struct workers **out,
                      char *err, size_t err_n)
{
    int64_t n = config_int(b->config, key);
    int rc = workers_start(name, (int)n, out);
    if (rc)
        snprintf(err, err_n, "%s: cannot start %lld threads: %s", key, (long long)n, strerror(-rc));
    return rc;
}

static int start_threads(struct broker *b, char *err, size_t err_n)
{
    int rc = uv_executor_start("background", &b->background);
    if (!rc)
        rc = uv_executor_start("controller", &b->controller_ex);
    if (!rc)
        rc = start_pool(b, "worker", "num.io.threads", &b->workers, err, err_n);
    if (!rc) {
        b->warming = turns_new(b->workers, broker_warmers(config_int(b->config, "num.io.threads")));
        rc = b->warming ? 0 : -ENOMEM;
    }
    if (!rc)
        rc = start_pool(b, "upkeep", "background.threads", &b->background_workers, err, err_n);
    if (!rc)
        rc = entity_configs_make(b);
    return rc && !*err ? fail(err, err_n, rc, "cannot start threads") : rc;
}

/* ---- settings in the store ---- */

static int load_settings(struct broker *b, char *err, size_t err_n)
{
    b->dynamic = dynamic_config_new(b->config);
    int rc = b->dynamic ? entity_configs_load_brokers(b) : -ENOMEM;
    return rc ? fail(err, err_n, rc, "cannot read the brokers' settings") : 0;
}

static int secure_listeners(struct broker *b, char *err, size_t err_n)
{
    const struct config *c = dynamic_config_ref(b->dynamic);
    b->scram_users = scram_users_new();
    int rc = b->scram_users ? broker_security_new(c, b->scram_users, b->tokens, b->clock,
                                                  &b->security, err, err_n)
                            : fail(err, err_n, -ENOMEM, "cannot keep users");
    config_unref(c);
    return rc;
}

static int follow_features(struct broker *b, char *err, size_t err_n)
{
    int rc = b->config->ibp < 207
                 ? 0
                 : finalized_features_new(b->store, uv_executor_ex(b->background), &b->features);
    return rc ? fail(err, err_n, rc, "cannot follow the finalized features") : 0;
}

static int load_quotas(struct broker *b, char *err, size_t err_n)
{
    int rc = entity_configs_load_clients(b);
    return rc ? fail(err, err_n, rc, "cannot read the quotas of clients") : 0;
}

/* ---- logs and replicas ---- */

static void config_at_load(void *arg, struct str topic, struct log_config *out)
{
    broker_topic_config(arg, topic, out);
}

/* A log is being made (on a worker): the topic's settings may be news to us. Or they have changed
 * (on the watcher's executor): then they are in place. */
static void config_of_replica(void *arg, struct str topic, struct log_config *out)
{
    struct broker *b = arg;
    if (!executor_on_thread(uv_executor_ex(b->background)))
        topic_configs_refresh(b->topic_configs, topic);
    broker_topic_config(b, topic, out);
    broker_throttle_topic(b, topic);
}

static void dir_failed(void *arg, struct log_dir *d)
{
    struct broker *b = arg;
    struct replica_manager *replicas = atomic_load(&b->replicas);
    if (!replicas)
        return; /* while loading: log_manager_open tells when none is left */
    replica_manager_dir_failed(replicas, d);
    if (log_manager_online_dirs(b->logs) == 0)
        broker_fatal(b, "no log dir is left that works");
}

void broker_log_options(struct broker *b, struct log_manager_options *o)
{
    const struct config *now = b->dynamic ? dynamic_config_ref(b->dynamic) : config_ref(b->config);
    *o = (struct log_manager_options){
        .fs = fs_posix(),
        .clock = b->clock,
        .dirs = (const char *const *)b->config->log_dirs,
        .dirs_n = b->config->log_dirs_n,
        .defaults = now->log_defaults,
        .recovery_threads = (int)config_int(now, "num.recovery.threads.per.data.dir"),
        .broker_id = b->id,
        .cluster_id = b->cluster_id,
        .remove_topic_ids = b->config->ibp < 208,
        .topic_config = config_at_load,
        .dir_failed = dir_failed,
        .arg = b,
    };
    config_unref(now);
}

static bool unclean_election(void *arg, struct str topic)
{
    struct log_config c;
    broker_topic_config(arg, topic, &c);
    return c.unclean_leader_election;
}

static void topic_changed(struct broker *b, struct replica_manager *replicas, struct str topic)
{
    struct controller *controller = atomic_load(&b->controller);
    replica_manager_topic_config_changed(replicas, topic);
    broker_throttle_topic(b, topic);
    if (controller && controller_is_active(controller) && unclean_election(b, topic))
        controller_unclean_allowed(controller, topic);
}

static void config_changed(void *arg, struct str path)
{
    struct broker *b = arg;
    struct replica_manager *replicas = atomic_load(&b->replicas);
    if (atomic_load(&b->deaf))
        return;
    if (path.len <= 7 || memcmp(path.p, "topics/", 7) != 0)
        entity_configs_changed(b, path);
    else if (replicas) /* the topic's settings are in place already */
        topic_changed(b, replicas, (struct str){path.p + 7, path.len - 7});
}

static int load_logs(struct broker *b, char *err, size_t err_n)
{
    struct topic_configs_options t = {.store = b->store,
                                      .ex = uv_executor_ex(b->background),
                                      .clock = b->clock,
                                      .changed = config_changed,
                                      .arg = b};
    int rc = topic_configs_open(&t, &b->topic_configs);
    if (rc)
        return fail(err, err_n, rc, "cannot read the topics' settings");
    struct log_manager_options o;
    broker_log_options(b, &o);
    return log_manager_open(&o, &b->logs, err, err_n);
}

static int make_replicas(struct broker *b, char *err, size_t err_n)
{
    struct replica_manager_options o = {
        .broker_id = b->id,
        .logs = b->logs,
        .metadata = b->metadata,
        .workers = b->workers,
        .clock = b->clock,
        .fetchers = b->fetchers,
        .isr_writer = broker_isr_writer(b),
        .count_topics = b->metrics != NULL,
        .inter_broker_listener = str_of(b->config->inter_broker_listener),
        .replica_lag_ms = config_int(b->config, "replica.lag.time.max.ms"),
        .dir_lost = broker_dir_lost,
        .topic_config = config_of_replica,
        .arg = b};
    struct replica_manager *replicas = NULL;
    int rc = replica_manager_new(&o, &replicas);
    atomic_store(&b->replicas, replicas);
    if (!rc)
        rc = control_queue_new(b->workers, &b->control_queue);
    control_gate_init(&b->control_gate, b->store);
    if (rc)
        return fail(err, err_n, rc, "cannot make the replica manager");
    b->fetch_sessions = fetch_sessions_new(
        (int)config_int(b->config, "max.incremental.fetch.session.cache.slots"), b->clock);
    return b->fetch_sessions ? 0 : fail(err, err_n, -ENOMEM, "cannot make the fetch sessions");
}

/* ---- administration ---- */

static int32_t default_partitions(void *arg)
{
    return (int32_t)config_int(((struct broker *)arg)->config, "num.partitions");
}

static int16_t default_replication(void *arg)
{
    return (int16_t)config_int(((struct broker *)arg)->config, "default.replication.factor");
}

/* Of Kafka 2.3; the greatest value means none. */
static int set_default_quotas(struct broker *b)
{
    int64_t produce = config_int(b->config, "quota.producer.default");
    int64_t fetch = config_int(b->config, "quota.consumer.default");
    int rc = produce == INT64_MAX
                 ? 0
                 : client_quotas_set_default(b->quotas, QUOTA_PRODUCE, (double)produce);
    if (!rc && fetch != INT64_MAX)
        rc = client_quotas_set_default(b->quotas, QUOTA_FETCH, (double)fetch);
    return rc;
}

static int make_admin(struct broker *b, char *err, size_t err_n)
{
    struct topic_admin_options t = {.store = b->store,
                                    .metadata = b->metadata,
                                    .ex = uv_executor_ex(b->background),
                                    .topic_ids = b->config->ibp >= 208,
                                    .check_config = topic_config_check,
                                    .default_partitions = default_partitions,
                                    .default_replication = default_replication,
                                    .limit_ms = config_int(b->config, "request.timeout.ms"),
                                    .arg = b};
    struct producer_ids_options p = {
        .ex = uv_executor_ex(b->background), .allocate = broker_allocate_producer_ids, .arg = b};
    struct rate_window window = {(int)config_int(b->config, "quota.window.num"),
                                 config_int(b->config, "quota.window.size.seconds") * 1000};
    b->quotas = client_quotas_new(window);
    if (b->quotas)
        client_quotas_set_mutation_window(
            b->quotas, (struct rate_window){
                           (int)config_int(b->config, "controller.quota.window.num"),
                           config_int(b->config, "controller.quota.window.size.seconds") * 1000});
    if (b->quotas && set_default_quotas(b) != 0)
        return fail(err, err_n, -ENOMEM, "cannot make the quotas");
    int rc = b->quotas ? topic_admin_new(&t, &b->topic_admin) : -ENOMEM;
    if (!rc)
        rc = producer_ids_new(&p, &b->producer_ids);
    if (!rc)
        rc = auto_create_new(b, &b->auto_create);
    return rc ? fail(err, err_n, rc, "cannot make the topic administration") : 0;
}

/* ---- membership ---- */

/* Requests that are meant for an earlier life of this broker carry a smaller one. */
static void epoch_known(void *arg, int64_t epoch)
{
    struct broker *b = arg;
    replica_manager_set_broker_epoch(atomic_load(&b->replicas), epoch);
}

/* How long the session of a predecessor that was killed may last: servers look once a tick, which
 * is at most half a session. */
static int64_t predecessor_ms(const struct broker *b)
{
    return config_int(b->config, "zookeeper.session.timeout.ms") * 3 / 2;
}

static int register_broker(struct broker *b, char *err, size_t err_n)
{
    const struct config *now = dynamic_config_ref(b->dynamic);
    struct endpoint *endpoints = calloc((size_t)now->listeners_n, sizeof(*endpoints));
    if (!endpoints) {
        config_unref(now);
        return fail(err, err_n, -ENOMEM, "cannot register");
    }
    struct broker_info self = {.id = b->id,
                               .rack = str_of(config_string(b->config, "broker.rack")),
                               .endpoints = endpoints,
                               .endpoints_n = broker_endpoints(b, now, endpoints)};
    struct broker_registrar_options o = {.store = b->store,
                                         .ex = uv_executor_ex(b->controller_ex),
                                         .clock = b->clock,
                                         .self = &self,
                                         .jmx_port = -1,
                                         .wait_ms = predecessor_ms(b),
                                         .registered = epoch_known,
                                         .arg = b};
    int rc = broker_registrar_new(&o, &b->registrar);
    free(endpoints);
    config_unref(now);
    if (!rc)
        rc = broker_registrar_run(b->registrar, NULL);
    if (rc == -EEXIST || rc == -EADDRINUSE) { /* what errno says of these would mislead */
        snprintf(err, err_n,
                 "cannot register broker %d: another live broker has its %s (see above)", b->id,
                 rc == -EEXIST ? "id" : "address");
        return rc;
    }
    return rc ? fail(err, err_n, rc, "cannot register the broker") : 0;
}

static void controller_died(void *arg, const char *why)
{
    say_error("Controller", "%s", why);
    broker_fatal(arg, "the controller cannot go on");
}

static void controller_ready(void *arg)
{
    struct broker *b = arg;
    pthread_mutex_lock(&b->lock);
    b->ready = true;
    pthread_cond_broadcast(&b->cond);
    pthread_mutex_unlock(&b->lock);
}

static int start_controller(struct broker *b, char *err, size_t err_n)
{
    struct controller_options o = {
        .broker_id = b->id,
        .store = b->store,
        .ex = uv_executor_ex(b->controller_ex),
        .registrar = b->registrar,
        .listener = str_of(b->config->inter_broker_listener),
        .ibp = broker_ibp(b),
        .delete_topics = config_bool(b->config, "delete.topic.enable"),
        .rebalance_ms = broker_rebalance_ms(b),
        .imbalance_percent = (int)config_int(b->config, "leader.imbalance.per.broker.percentage"),
        .unclean = unclean_election,
        .channel = broker_open_channel,
        .fatal = controller_died,
        .ready = controller_ready,
        .arg = b};
    struct controller *controller;
    int rc = controller_start(&o, &controller);
    atomic_store(&b->controller, rc ? NULL : controller);
    if (rc)
        return fail(err, err_n, rc, "cannot start the controller");
    pthread_mutex_lock(&b->lock);
    while (!b->ready && !b->dead)
        pthread_cond_wait(&b->cond, &b->lock);
    const char *dead = b->dead;
    pthread_mutex_unlock(&b->lock);
    if (dead) {
        snprintf(err, err_n, "%s", dead);
        return -EIO;
    }
    topic_configs_follow(b->topic_configs, b->metadata);
    return 0;
}

/* ---- all of it ---- */

static struct broker *broker_new(struct config *config)
{
    struct broker *b = calloc(1, sizeof(*b));
    if (!b) {
        config_free(config);
        return NULL;
    }
    b->config = config;
    b->clock = clock_real();
    b->id = config->broker_id;
    b->meta_lock_fd = -1;
    pthread_mutex_init(&b->listeners_lock, NULL);
    pthread_mutex_init(&b->lock, NULL);
    cond_init(&b->cond);
    return b;
}

static int check_supported(struct broker *b, char *err, size_t err_n)
{
    return broker_check_supported(b->config, err, err_n);
}

int broker_start(struct config *config, struct broker **out, char *err, size_t err_n)
{
    static int (*const steps[])(struct broker *, char *, size_t) = {
        check_supported,     broker_make_metrics,  start_threads,     broker_find_identity,
        load_settings,       broker_tokens_start,  secure_listeners,  broker_acls_start,
        load_logs,           broker_make_cleaner,  broker_make_ties,  make_replicas,
        broker_groups_start, broker_txns_start,    make_admin,        broker_bind_listeners,
        load_quotas,         follow_features,      register_broker,   start_controller,
        broker_start_upkeep, broker_start_cleaner, broker_make_mover, broker_serve_metrics,
    };
    *out = NULL;
    struct broker *b = broker_new(config);
    if (!b)
        return fail(err, err_n, -ENOMEM, "cannot start");
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof(steps) / sizeof(*steps); i++)
        rc = steps[i](b, err, err_n);
    if (rc) {
        broker_take_down(b);
        return rc;
    }
    broker_accept(b);
    char component[32];
    snprintf(component, sizeof(component), "KafkaServer id=%d", b->id);
    say_info(component, "started");
    *out = b;
    return 0;
}
