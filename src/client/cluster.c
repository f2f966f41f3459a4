/* cluster.c - a client's background thread and its connections. See cluster.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "client/cluster_private.h"
#include "protocol/errors.h"
#include "protocol/msg/metadata.h"

int64_t client_now_ms(void)
{
    return clock_mono_ms(clock_real());
}

int64_t client_deadline(int64_t timeout_ms)
{
    int64_t now = client_now_ms();
    return timeout_ms < 0 || timeout_ms > INT64_MAX - now ? INT64_MAX : now + timeout_ms;
}

void client_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool client_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline_ms)
{
    if (deadline_ms == INT64_MAX) {
        pthread_cond_wait(cond, lock);
        return true;
    }
    struct timespec at = {deadline_ms / 1000, deadline_ms % 1000 * 1000000};
    return pthread_cond_timedwait(cond, lock, &at) != ETIMEDOUT;
}

/* ---- nodes ---- */

struct proven {
    struct list link;
    char address[];
};

static bool is_proven(const struct cluster *c, const char *address)
{
    list_each (it, &c->proven)
        if (strcmp(list_entry(it, struct proven, link)->address, address) == 0)
            return true;
    return false;
}

/* The node spoke Kafka's protocol. Without memory it is forgotten with the node: no harm. */
static void prove(struct node *n)
{
    if (n->answered)
        return;
    n->answered = true;
    size_t size = strlen(n->address) + 1;
    struct proven *p = is_proven(n->cluster, n->address) ? NULL : malloc(sizeof *p + size);
    if (!p)
        return;
    memcpy(p->address, n->address, size);
    list_push_back(&n->cluster->proven, &p->link);
}

static void free_proven(struct cluster *c)
{
    list_each_safe (it, &c->proven)
        free(list_entry(it, struct proven, link));
}

static struct node *node_new(struct cluster *c, int32_t id, struct str host, int port)
{
    struct node *n = calloc(1, sizeof *n);
    if (!n || !(n->host = str_dup(host))) {
        free(n);
        return NULL;
    }
    list_init(&n->link);
    n->cluster = c;
    n->id = id;
    n->port = port;
    snprintf(n->address, sizeof n->address, strchr(n->host, ':') ? "[%.255s]:%d" : "%.255s:%d",
             n->host, port);
    return n;
}

/* Callbacks of its pending requests come (canceled) before the peer is gone, while the node is
 * still whole: the node is freed only when none is in flight. */
static void node_retire(struct node *n)
{
    list_remove(&n->link);
    struct peer *peer = n->peer;
    n->peer = NULL;
    if (peer)
        peer_free(peer);
    if (n->in_flight == 0) {
        free(n->host);
        free(n);
    } else {
        n->cluster = NULL; /* the last callback frees it */
    }
}

struct node *node_open(struct cluster *c, int32_t id, struct str host, int port)
{
    return node_new(c, id, host, port);
}

void node_close(struct node *n)
{
    if (n)
        node_retire(n);
}

const char *node_host(struct node *n)
{
    return n->host;
}

int node_port(struct node *n)
{
    return n->port;
}

const char *node_address(struct node *n)
{
    return n->address;
}

unsigned cluster_random(struct cluster *c)
{
    unsigned next = atomic_load_explicit(&c->random, memory_order_relaxed) * 1103515245u + 12345u;
    atomic_store_explicit(&c->random, next, memory_order_relaxed);
    return next >> 8;
}

static int64_t backoff(struct cluster *c, int64_t first, int64_t max, int attempts)
{
    if (first >= max)
        return max;
    double ms = (double)first;
    for (int i = 0; i < attempts && ms < (double)max; i++)
        ms *= 2;
    ms *= 0.8 + 0.4 * (cluster_random(c) % 1000) / 1000.0;
    return ms > (double)max ? max : (int64_t)ms;
}

int64_t cluster_backoff_ms(const struct cluster *c, int attempts)
{
    return backoff((struct cluster *)c, c->backoff_ms, c->backoff_max_ms, attempts);
}

int64_t cluster_request_timeout(const struct cluster *c)
{
    return c->request_timeout_ms;
}

struct node *cluster_find_node(struct cluster *c, int32_t id)
{
    list_each (it, &c->nodes) {
        struct node *n = list_entry(it, struct node, link);
        if (n->id == id)
            return n;
    }
    return NULL;
}

/* Nodes of the same id and address are kept, with their connections. */
void cluster_set_nodes(struct cluster *c, const struct metadata_response *m)
{
    struct list old = LIST_INIT(old);
    list_splice(&old, &c->nodes);
    for (int i = 0; i < m->brokers.n; i++) {
        struct node *same = NULL;
        list_each (it, &old) {
            struct node *n = list_entry(it, struct node, link);
            if (n->id == m->brokers.v[i].node_id && n->port == m->brokers.v[i].port &&
                str_eqz(m->brokers.v[i].host, n->host))
                same = n;
        }
        if (same)
            list_remove(&same->link);
        else
            same = node_new(c, m->brokers.v[i].node_id, m->brokers.v[i].host, m->brokers.v[i].port);
        if (same)
            list_push_back(&c->nodes, &same->link);
    }
    while (!list_empty(&old))
        node_retire(list_entry(old.next, struct node, link));
}

/* Fewest in flight among those that may be used now, connected ones first, equal ones by chance. */
static struct node *least_busy(struct cluster *c, struct list *from)
{
    struct node *best = NULL;
    int64_t best_cost = INT64_MAX, wait;
    list_each (it, from) {
        struct node *n = list_entry(it, struct node, link);
        if (!node_ready(n, &wait))
            continue;
        int64_t cost = ((int64_t)n->in_flight << 20) +
                       (n->peer && peer_connected(n->peer) ? 0 : 1 << 19) +
                       cluster_random(c) % 1024;
        if (cost < best_cost)
            best_cost = cost, best = n;
    }
    return best;
}

/* None of the brokers that metadata tells of can be reached (or there are none). */
static bool all_lost(const struct cluster *c)
{
    list_each (it, &c->nodes) {
        const struct node *n = list_entry(it, struct node, link);
        if (n->failures == 0 || (n->peer && peer_connected(n->peer)))
            return false;
    }
    return true;
}

/* Where all are lost, bootstrap addresses come first, if they may serve: brokers may have moved. */
static struct node *any_node(struct cluster *c)
{
    bool again = list_empty(&c->nodes) || (c->rebootstrap && all_lost(c));
    struct node *n = again ? least_busy(c, &c->bootstrap) : NULL;
    return n ? n : least_busy(c, &c->nodes);
}

struct node *cluster_node(struct cluster *c, int32_t id)
{
    if (id == NODE_ANY)
        return any_node(c);
    struct node *n = cluster_find_node(c, id == NODE_CONTROLLER ? cluster_controller(c) : id);
    if (!n)
        cluster_refresh(c);
    return n;
}

bool node_ready(struct node *n, int64_t *wait_ms)
{
    *wait_ms = n->retry_at_ms - executor_now_ms(n->cluster->ex);
    return *wait_ms <= 0 || (n->peer && peer_connected(n->peer));
}

int node_in_flight(const struct node *n)
{
    return n->in_flight;
}

int32_t node_id(const struct node *n)
{
    return n->id;
}

struct sent {
    struct node *node;
    peer_cb cb;
    void *arg;
};

/* It negotiated and then closed, and no broker has ever taken a request of ours. */
static bool wants_login(const struct node *n, int status, const char *protocol)
{
    return status == -ECONNRESET && n->peer && peer_answered(n->peer) && !n->cluster->served &&
           !client_protocol_has_sasl(protocol);
}

/* What went wrong, as people need it. A port that takes connections but never answered, not even
 * to another node of ours or to the negotiation alone, has, most likely, another protocol behind
 * it. */
static void describe_failure(const struct node *n, int status, char *out, size_t size)
{
    bool odd = status == -ECONNRESET || status == -EPROTO || status == -ETIMEDOUT;
    const char *failure = n->peer ? peer_failure(n->peer) : NULL;
    const char *protocol =
        client_conf_string(n->cluster->conf, n->cluster->scope, "security.protocol");
    if (failure) {
        snprintf(out, size, "broker %s: %s", n->address, failure);
        return;
    }
    const char *what = status == -EPROTO       ? "its answer is not Kafka's protocol"
                       : status == -ECONNRESET ? "it closed the connection"
                       : status == -ETIMEDOUT  ? "no answer in time"
                                               : strerror(-status);
    bool ask = odd && !n->answered && !is_proven(n->cluster, n->address);
    if (ask)
        snprintf(out, size,
                 "broker %s: %s (is it a Kafka listener, and security.protocol=%s right for it?)",
                 n->address, what, protocol);
    else
        snprintf(out, size, "broker %s: %s%s", n->address, what,
                 wants_login(n, status, protocol)
                     ? " (if its listener asks for SASL, security.protocol must say so)"
                     : "");
}

enum { TELL_AGAIN_MS = 10000 };

/* This client is not let in, or the broker is none to be trusted: who waits is told now, for time
 * does not heal it. */
static void tell_refused(struct cluster *c)
{
    pthread_mutex_lock(&c->lock);
    c->refusals++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    cluster_refuse_ops(c);
    if (c->on_refused)
        c->on_refused(c->on_refused_arg);
}

static void note_failure(struct node *n, int status)
{
    struct cluster *c = n->cluster;
    int64_t now = executor_now_ms(c->ex);
    char text[400];
    if (n->peer && peer_answered(n->peer))
        prove(n);
    describe_failure(n, status, text, sizeof text);
    pthread_mutex_lock(&c->lock);
    memcpy(c->failure, text, sizeof text);
    pthread_mutex_unlock(&c->lock);
    if (status == -EACCES)
        tell_refused(c);
    if (n->failures++ == 0 || now - n->told_ms >= TELL_AGAIN_MS) {
        n->told_ms = now;
        if (n->failures > 1)
            client_log(2, "%s, %d times in a row", text, n->failures);
        else
            client_log(2, "%s", text);
    }
    n->retry_at_ms = now + backoff(c, c->reconnect_ms, c->reconnect_max_ms, n->failures - 1);
    if (n->peer && n->in_flight == 0 && !peer_connected(n->peer)) { /* the next has more time */
        struct peer *peer = n->peer;
        n->peer = NULL;
        peer_free(peer);
    }
    cluster_refresh(c);
}

static void note_outcome(struct node *n, int status)
{
    if (status == 0) {
        n->cluster->served = true;
        n->failures = 0;
        n->retry_at_ms = 0;
        prove(n);
    } else if (status != -ECANCELED && status != -ENOTSUP) {
        note_failure(n, status);
    }
}

const char *cluster_why(struct cluster *c, char *out, size_t n)
{
    pthread_mutex_lock(&c->lock);
    snprintf(out, n, "%s%s", c->failure[0] ? "; last failure: " : "", c->failure);
    pthread_mutex_unlock(&c->lock);
    return out;
}

static void on_answer(void *arg, int status, int version, const void *response)
{
    struct sent sent = *(struct sent *)arg;
    struct node *n = sent.node;
    free(arg);
    n->in_flight--;
    if (n->cluster) {
        n->used_ms = executor_now_ms(n->cluster->ex);
        note_outcome(n, status);
    } else if (n->in_flight == 0) {
        free(n->host);
        free(n);
    }
    sent.cb(sent.arg, status, version, response);
}

/* socket.connection.setup.timeout.ms, twice as long after each failure in a row. */
static int64_t setup_timeout(const struct cluster *c, int failures)
{
    int64_t ms = c->peer_options.connect_timeout_ms;
    for (int i = 0; i < failures && ms < c->setup_max_ms; i++)
        ms *= 2;
    return ms > c->setup_max_ms && c->setup_max_ms > c->peer_options.connect_timeout_ms
               ? c->setup_max_ms
               : ms;
}

int node_send(struct node *n, int16_t api_key, int min_version, int max_version,
              const void *request, int64_t timeout_ms, bool has_response, peer_cb cb, void *arg)
{
    struct cluster *c = n->cluster;
    if (!n->peer) {
        struct peer_options o = c->peer_options;
        o.connect_timeout_ms = setup_timeout(c, n->failures);
        n->peer = peer_new(uv_executor_loop(c->uv), c->ex, n->host, n->port, &o);
    }
    struct sent *sent = n->peer ? malloc(sizeof *sent) : NULL;
    if (!sent)
        return -ENOMEM;
    *sent = (struct sent){n, cb, arg};
    n->used_ms = executor_now_ms(c->ex);
    n->in_flight++;
    int rc = peer_send(n->peer, api_key, min_version, max_version, request, timeout_ms,
                       has_response, on_answer, sent);
    if (rc < 0) {
        n->in_flight--;
        free(sent);
    }
    return rc;
}

struct peer_response *node_keep_response(struct node *n)
{
    return peer_keep_response(n->peer);
}

void node_recycle_response(struct node *n, struct peer_response *r)
{
    if (n->peer)
        peer_recycle_response(n->peer, r);
    else
        peer_response_free(r);
}

kafka_err_t client_err_of_status(int status)
{
    switch (status) {
    case 0:
        return KAFKA_OK;
    case -ETIMEDOUT:
        return KAFKA_ERR_TIMED_OUT;
    case -ENOTSUP:
        return KAFKA_ERR_UNSUPPORTED;
    case -EPROTO:
        return KAFKA_ERR_BAD_RESPONSE;
    case -ECANCELED:
        return KAFKA_ERR_TRANSPORT;
    case -EACCES:
        return KAFKA_ERR_AUTHENTICATION;
    case -ENOMEM:
        return KAFKA_ERR_NO_MEMORY;
    default:
        return KAFKA_ERR_TRANSPORT;
    }
}

/* ---- idle connections ---- */

static void close_idle(struct cluster *c, struct list *nodes, int64_t now)
{
    list_each (it, nodes) {
        struct node *n = list_entry(it, struct node, link);
        if (!n->peer || n->in_flight > 0 || now - n->used_ms < c->max_idle_ms)
            continue;
        struct peer *peer = n->peer;
        n->peer = NULL;
        peer_free(peer);
    }
}

static void on_idle_timer(struct timer *t)
{
    struct cluster *c = container_of(t, struct cluster, idle_timer);
    int64_t now = executor_now_ms(c->ex);
    close_idle(c, &c->nodes, now);
    close_idle(c, &c->bootstrap, now);
    executor_timer_start(c->ex, &c->idle_timer, c->max_idle_ms / 4 + 1);
}

static void watch_idle(void *arg)
{
    struct cluster *c = arg;
    if (c->max_idle_ms > 0)
        executor_timer_start(c->ex, &c->idle_timer, c->max_idle_ms / 4 + 1);
}

/* ---- life ---- */

/* A broker may be about to come back under another address: a client that has nothing to ask until
 * all of them have done so would know none. */
static void on_lost(void *arg)
{
    cluster_refresh(arg);
}

static void read_settings(struct cluster *c)
{
    c->request_timeout_ms = client_conf_int(c->conf, c->scope, "request.timeout.ms");
    c->backoff_ms = client_conf_int(c->conf, c->scope, "retry.backoff.ms");
    c->backoff_max_ms = client_conf_int(c->conf, c->scope, "retry.backoff.max.ms");
    c->reconnect_ms = client_conf_int(c->conf, c->scope, "reconnect.backoff.ms");
    c->reconnect_max_ms = client_conf_int(c->conf, c->scope, "reconnect.backoff.max.ms");
    c->setup_max_ms = client_conf_int(c->conf, c->scope, "socket.connection.setup.timeout.max.ms");
    c->max_idle_ms = client_conf_int(c->conf, c->scope, "connections.max.idle.ms");
    timer_init(&c->idle_timer, on_idle_timer);
    c->rebootstrap = strcasecmp(client_conf_string(c->conf, c->scope, "metadata.recovery.strategy"),
                                "rebootstrap") == 0;
    c->retries = c->scope == SCOPE_ADMIN ? client_conf_int(c->conf, c->scope, "retries") : INT_MAX;
    c->api_timeout_ms =
        c->scope == SCOPE_ADMIN ? client_conf_int(c->conf, c->scope, "default.api.timeout.ms") : -1;
    c->metadata_max_age_ms = client_conf_int(c->conf, c->scope, "metadata.max.age.ms");
    c->peer_options = (struct peer_options){
        .client_id = c->client_id,
        .software_name = "kafkad-c",
        .software_version = KAFKAD_VERSION,
        .connect_timeout_ms =
            client_conf_int(c->conf, c->scope, "socket.connection.setup.timeout.ms"),
        .request_timeout_ms = c->request_timeout_ms,
        .send_buffer = (int)client_conf_int(c->conf, c->scope, "send.buffer.bytes"),
        .security = c->security.peer,
        .quiet = true,
        .lost = on_lost,
        .lost_arg = c,
    };
    /* Kafka's default is a limit that costs a large fetch half of its speed: it is what we begin
     * with at least, and the system may go beyond. A size that was set is kept to. */
    int receive = (int)client_conf_int(c->conf, c->scope, "receive.buffer.bytes");
    if (client_conf_is_set(c->conf, "receive.buffer.bytes"))
        c->peer_options.receive_buffer = receive;
    else
        c->peer_options.receive_least = receive;
}

static void free_nodes(struct list *nodes)
{
    while (!list_empty(nodes))
        node_retire(list_entry(nodes->next, struct node, link));
}

struct cluster *cluster_start(const kafka_conf_t *conf, enum client_scope scope,
                              const char *client_id, char *err, size_t err_n)
{
    const char *servers = client_conf_string(conf, scope, "bootstrap.servers");
    client_log_init();
    if (!client_any_resolvable(servers)) {
        snprintf(err, err_n, "No resolvable bootstrap urls given in bootstrap.servers: %s",
                 servers);
        return NULL;
    }
    struct cluster *c = calloc(1, sizeof *c);
    if (!c) {
        snprintf(err, err_n, "out of memory");
        return NULL;
    }
    if (client_security_open(&c->security, conf, scope, err, err_n) != 0) {
        free(c);
        return NULL;
    }
    c->conf = conf;
    c->scope = scope;
    c->client_id = str_dup(str_of(client_id));
    list_init(&c->nodes);
    list_init(&c->bootstrap);
    list_init(&c->proven);
    list_init(&c->ops);
    c->random = (unsigned)clock_mono_ns(clock_real());
    cluster_metadata_init(c);
    read_settings(c);
    int rc = !c->client_id || !cluster_add_bootstrap(c) ? -ENOMEM
                                                        : uv_executor_start("kafka-client", &c->uv);
    if (rc < 0) {
        snprintf(err, err_n, "starting the client's thread: %s", strerror(-rc));
        free_nodes(&c->bootstrap);
        cluster_metadata_free(c);
        client_security_close(&c->security);
        free(c->client_id);
        free(c);
        return NULL;
    }
    c->ex = uv_executor_ex(c->uv);
    cluster_call(c, watch_idle, c);
    return c;
}

static void close_on_thread(void *arg)
{
    struct cluster *c = arg;
    c->closing = true;
    executor_timer_stop(c->ex, &c->refresh_timer);
    executor_timer_stop(c->ex, &c->idle_timer);
    free_nodes(&c->nodes);
    free_nodes(&c->bootstrap);
    cluster_fail_ops(c);
}

void cluster_stop(struct cluster *c)
{
    if (!c)
        return;
    cluster_call(c, close_on_thread, c);
    uv_executor_stop(c->uv);
    free_proven(c);
    cluster_metadata_free(c);
    client_security_close(&c->security);
    free(c->client_id);
    free(c);
}

struct executor *cluster_executor(struct cluster *c)
{
    return c->ex;
}

struct blocking_call {
    struct task task;
    void (*fn)(void *arg);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
};

static void run_call(struct task *t)
{
    struct blocking_call *call = container_of(t, struct blocking_call, task);
    call->fn(call->arg);
    pthread_mutex_lock(&call->lock);
    call->done = true;
    pthread_cond_signal(&call->cond);
    pthread_mutex_unlock(&call->lock);
}

void cluster_call(struct cluster *c, void (*fn)(void *arg), void *arg)
{
    struct blocking_call call = {.fn = fn, .arg = arg};
    task_init(&call.task, run_call);
    pthread_mutex_init(&call.lock, NULL);
    client_cond_init(&call.cond);
    executor_post(c->ex, &call.task);
    pthread_mutex_lock(&call.lock);
    while (!call.done)
        pthread_cond_wait(&call.cond, &call.lock);
    pthread_mutex_unlock(&call.lock);
    pthread_cond_destroy(&call.cond);
    pthread_mutex_destroy(&call.lock);
}
