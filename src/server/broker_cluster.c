/* broker_cluster.c - see broker_cluster.h. */
#include "server/broker_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "base/props.h"
#include "controller/peer_channel.h"
#include "metadata/paths.h"
#include "metadata/znode.h"
#include "protocol/msg/allocate_producer_ids.h"
#include "replica/isr_manager.h"
#include "replica/isr_store.h"
#include "server/broker_private.h"
#include "server/broker_security.h"
#include "server/dynamic_config.h"
#include "server/fetch_threads.h"
#include "server/local_channel.h"
#include "server/replication_throttle.h"

int broker_ibp(const struct broker *b)
{
    const struct config *c = b->config;
    return IBP(c->ibp / 100, c->ibp % 100, c->ibp_iv);
}

struct remote_peers broker_peers(const struct broker *b, struct uv_executor *ex,
                                 struct str listener)
{
    return (struct remote_peers){
        .loop = ex ? uv_executor_loop(ex) : NULL,
        .ex = ex ? uv_executor_ex(ex) : NULL,
        .connect_timeout_ms = config_int(b->config, "socket.connection.setup.timeout.ms"),
        .connect_timeout_max_ms = config_int(b->config, "socket.connection.setup.timeout.max.ms"),
        .security = broker_security_peer(b->security, listener)};
}

/* Where controllers reach brokers, and brokers the controller. */
static struct str control_listener(const struct broker *b)
{
    const char *control = config_string(b->config, "control.plane.listener.name");
    return str_of(control && *control ? control : b->config->inter_broker_listener);
}

struct broker_channel *broker_open_channel(void *arg, const struct broker_info *to)
{
    struct broker *b = arg;
    struct executor *ex = uv_executor_ex(b->controller_ex);
    if (to->id == b->id)
        return local_channel_new(b->control_queue, atomic_load(&b->replicas), to->id, ex);
    const struct endpoint *e = broker_endpoint(to, control_listener(b));
    if (!e) {
        say_error("Controller", "broker %d has no listener %.*s", to->id,
                  STR_ARG(control_listener(b)));
        return NULL;
    }
    char client_id[16];
    snprintf(client_id, sizeof(client_id), "%d", b->id);
    b->controller_peers = broker_peers(b, b->controller_ex, control_listener(b));
    struct remote_opener opener = remote_peers_opener(&b->controller_peers);
    struct peer_channel_options o = {.broker_id = to->id,
                                     .host = e->host,
                                     .port = e->port,
                                     .client_id = client_id,
                                     .timeout_ms =
                                         config_int(b->config, "controller.socket.timeout.ms"),
                                     .own_id = b->id};
    return peer_channel_new(&o, &opener, ex);
}

/* ---- throttles ---- */

void broker_throttle_topic(struct broker *b, struct str topic)
{
    struct props *p = broker_topic_overrides(b, topic);
    if (p)
        replication_throttle_set(b->throttle, topic,
                                 props_get(p, "leader.replication.throttled.replicas"),
                                 props_get(p, "follower.replication.throttled.replicas"));
    props_free(p);
}

bool broker_may_replicate(const struct broker *b, bool as_leader, struct topic_partition tp)
{
    enum throttle_side side = as_leader ? THROTTLE_LEADER : THROTTLE_FOLLOWER;
    if (!replication_throttle_lists(b->throttle, side, tp))
        return true;
    const struct config *now = dynamic_config_ref(b->dynamic);
    double limit = (double)config_int(now, as_leader ? "leader.replication.throttled.rate"
                                                     : "follower.replication.throttled.rate");
    config_unref(now);
    return !replication_throttle_exceeded(b->throttle, side, limit);
}

static bool may_fetch(void *arg, struct topic_partition tp, bool behind)
{
    return !behind || broker_may_replicate(arg, false, tp);
}

static void received(void *arg, struct topic_partition tp, int64_t bytes)
{
    const struct broker *b = arg;
    if (replication_throttle_lists(b->throttle, THROTTLE_FOLLOWER, tp))
        replication_throttle_count(b->throttle, THROTTLE_FOLLOWER, bytes);
}

/* ---- fetchers ---- */

static int64_t registered_epoch(void *arg)
{
    const struct broker *b = arg;
    return b->registrar ? broker_registrar_epoch(b->registrar) : -1;
}

static struct fetch_settings fetch_settings_of(struct broker *b)
{
    const struct config *c = b->config;
    return (struct fetch_settings){
        .broker_id = b->id,
        .ibp = broker_ibp(b),
        .max_bytes = (int32_t)config_int(c, "replica.fetch.max.bytes"),
        .response_max_bytes = (int32_t)config_int(c, "replica.fetch.response.max.bytes"),
        .min_bytes = (int32_t)config_int(c, "replica.fetch.min.bytes"),
        .wait_max_ms = (int32_t)config_int(c, "replica.fetch.wait.max.ms"),
        .backoff_ms = config_int(c, "replica.fetch.backoff.ms"),
        .timeout_ms = config_int(c, "replica.socket.timeout.ms"),
        .broker_epoch = registered_epoch,
        .may_fetch = may_fetch,
        .received = received,
        .arg = b};
}

static bool make_fetchers(struct broker *b)
{
    struct rate_window window = {(int)config_int(b->config, "replication.quota.window.num"),
                                 config_int(b->config, "replication.quota.window.size.seconds") *
                                     1000};
    b->throttle = replication_throttle_new(b->id, window, b->clock);
    if (!b->throttle)
        return false;
    struct remote_peers peers = broker_peers(b, NULL, str_of(b->config->inter_broker_listener));
    peers.receive_buffer = (int)config_int(b->config, "replica.socket.receive.buffer.bytes");
    b->fetch_threads = fetch_threads_new(b->workers, &peers);
    if (b->fetch_threads) {
        struct fetchers_options o = {.settings = fetch_settings_of(b),
                                     .places = fetch_threads_places(b->fetch_threads),
                                     .per_source =
                                         (int)config_int(b->config, "num.replica.fetchers")};
        b->fetchers = fetchers_new(&o);
    }
    return b->fetchers != NULL;
}

void broker_stop_fetchers(struct broker *b)
{
    if (b->fetchers)
        fetchers_stop(b->fetchers);
    fetch_threads_await(b->fetch_threads);
}

/* ---- what is asked of the controller ---- */

struct controller_link *broker_link_to_controller(struct broker *b)
{
    struct executor *ex = uv_executor_ex(b->background);
    char client_id[16];
    snprintf(client_id, sizeof(client_id), "%d", b->id);
    b->background_peers = broker_peers(b, b->background, control_listener(b));
    struct controller_link_options o = {.metadata = b->metadata,
                                        .listener = control_listener(b),
                                        .opener = remote_peers_opener(&b->background_peers),
                                        .ex = ex,
                                        .client_id = client_id,
                                        .timeout_ms =
                                            config_int(b->config, "controller.socket.timeout.ms")};
    return controller_link_new(&o);
}

static bool make_isr_manager(struct broker *b)
{
    b->isr_link = broker_link_to_controller(b);
    struct isr_manager_options o = {.broker_id = b->id,
                                    .ibp = broker_ibp(b),
                                    .link = b->isr_link,
                                    .ex = uv_executor_ex(b->background),
                                    .broker_epoch = registered_epoch,
                                    .arg = b};
    b->isr_manager = b->isr_link ? isr_manager_new(&o) : NULL;
    return b->isr_manager != NULL;
}

static bool make_isr_store(struct broker *b)
{
    struct isr_store_options o = {
        .broker_id = b->id, .store = b->store, .ex = uv_executor_ex(b->background)};
    b->isr_store = isr_store_new(&o);
    return b->isr_store != NULL;
}

struct isr_writer *broker_isr_writer(struct broker *b)
{
    return b->isr_store ? isr_store_writer(b->isr_store) : isr_manager_writer(b->isr_manager);
}

int broker_make_ties(struct broker *b, char *err, size_t err_n)
{
    b->metadata = metadata_cache_new();
    bool made = b->metadata && make_fetchers(b) &&
                (ibp_has_alter_partition(broker_ibp(b)) ? make_isr_manager(b) : make_isr_store(b));
    if (made && ibp_has_producer_id_blocks(broker_ibp(b)))
        made = (b->producer_id_link = broker_link_to_controller(b)) != NULL;
    if (made)
        return 0;
    snprintf(err, err_n, "cannot make the replica fetchers: out of memory");
    return -ENOMEM;
}

void broker_close_links(struct broker *b)
{
    if (b->isr_manager)
        isr_manager_stop(b->isr_manager);
    if (b->isr_store)
        isr_store_stop(b->isr_store);
    controller_link_close(b->isr_link);
    b->isr_link = NULL;
    controller_link_close(b->producer_id_link);
    b->producer_id_link = NULL;
}

/* ---- producer ids ---- */

struct id_block_request {
    struct controller_request request;
    struct allocate_producer_ids_request body;
    producer_ids_cb cb;
    void *arg;
};

static bool on_id_block(struct controller_request *request, int status, int version,
                        const void *response)
{
    struct id_block_request *q = container_of(request, struct id_block_request, request);
    const struct allocate_producer_ids_response *r = response;
    (void)version;
    if (status == 0 && r->error_code == KERR_NOT_CONTROLLER)
        return true;
    if (status == 0 && r->error_code) {
        say_warn("ProducerIds", "the controller answers AllocateProducerIds with %s",
                 kerr_name(r->error_code));
        status = -EAGAIN;
    }
    q->cb(q->arg, status, status ? -1 : r->producer_id_start, status ? 0 : r->producer_id_len);
    free(q);
    return false;
}

int broker_allocate_producer_ids(void *arg, producer_ids_cb cb, void *cb_arg)
{
    struct broker *b = arg;
    struct executor *ex = uv_executor_ex(b->background);
    if (!ibp_has_producer_id_blocks(broker_ibp(b)))
        return producer_ids_allocate(b->store, ex, b->id, cb, cb_arg);
    struct id_block_request *q = b->producer_id_link ? calloc(1, sizeof(*q)) : NULL;
    if (!q)
        return -ENOMEM;
    q->cb = cb;
    q->arg = cb_arg;
    allocate_producer_ids_request_init(&q->body);
    q->body.broker_id = b->id;
    q->body.broker_epoch = registered_epoch(b);
    q->request =
        (struct controller_request){.api_key = API_ALLOCATE_PRODUCER_IDS,
                                    .min_version = -1,
                                    .max_version = -1,
                                    .request = &q->body,
                                    .limit_ms = config_int(b->config, "request.timeout.ms"),
                                    .done = on_id_block};
    controller_link_send(b->producer_id_link, &q->request);
    return 0;
}

void broker_free_ties(struct broker *b)
{
    isr_manager_free(b->isr_manager);
    fetchers_free(b->fetchers);
    fetch_threads_free(b->fetch_threads);
    replication_throttle_free(b->throttle);
}

/* ---- what the controller is told ---- */

int64_t broker_rebalance_ms(const struct broker *b)
{
    return config_bool(b->config, "auto.leader.rebalance.enable")
               ? config_int(b->config, "leader.imbalance.check.interval.seconds") * 1000
               : 0;
}

struct dir_notice {
    struct store_request request;
    struct store_op op;
    struct arena arena;
};

static void dir_notice_written(struct store_request *r)
{
    struct dir_notice *n = container_of(r, struct dir_notice, request);
    if (r->status)
        say_error("ReplicaManager", "the controller cannot be told of a failed log dir: %s",
                  strerror(-r->status));
    store_request_clear(r);
    arena_free(&n->arena);
    free(n);
}

void broker_dir_lost(void *arg)
{
    struct broker *b = arg;
    struct dir_notice *n = calloc(1, sizeof(*n));
    if (!n)
        return; /* it is found out at the next LeaderAndIsr */
    arena_init(&n->arena, 0);
    n->op = store_op_create(PATH_LOG_DIR_EVENT_PREFIX, znode_log_dir_event_encode(b->id, &n->arena),
                            STORE_SEQUENTIAL);
    n->request = (struct store_request){.ops = &n->op,
                                        .ops_n = 1,
                                        .done_on = uv_executor_ex(b->background),
                                        .done = dir_notice_written};
    store_submit(b->store, &n->request);
}
