/* sim_client.c - see sim_client.h. */
#include "sim_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/uv_executor.h"
#include "net/peer.h"
#include "protocol/msg/metadata.h"
#include "sim_broker.h"

enum { CALL_MS = 12000, KNOWN_MAX = 64 };

struct known {
    char topic[32];
    int32_t partition, leader;
};

struct client {
    char name[16];
    struct uv_executor *ex;
    struct peer *peers[SIM_HOSTS];
    struct known known[KNOWN_MAX];
    int known_n;
    int oldest; /* the next to give its place away, when full */
    int controller;
};

struct waiting_call {
    struct task task;
    struct client *c;
    int broker, max_version;
    int16_t api_key;
    const void *request;
    struct arena *arena;
    const void *response;
    int status;
    bool over;
};

struct client *client_new(const char *name)
{
    struct client *c = calloc(1, sizeof(*c));
    snprintf(c->name, sizeof(c->name), "%s", name);
    uv_executor_start(name, &c->ex);
    return c;
}

static void answered(void *arg, int status, int version, const void *response)
{
    struct waiting_call *w = arg;
    (void)version;
    w->status = status;
    if (status == 0)
        w->response = msg_copy(api_find(w->api_key)->response, w->arena, response);
    w->over = true;
    fiber_wake_all(sim_here(), w);
}

static void begin(struct task *task)
{
    struct waiting_call *w = container_of(task, struct waiting_call, task);
    struct client *c = w->c;
    if (!c->peers[w->broker]) {
        struct peer_options o = {
            .client_id = c->name, .connect_timeout_ms = 3000, .request_timeout_ms = CALL_MS};
        c->peers[w->broker] = peer_new(uv_executor_loop(c->ex), uv_executor_ex(c->ex),
                                       sim_host(w->broker)->name, SIM_PORT, &o);
    }
    peer_send(c->peers[w->broker], w->api_key, -1, w->max_version, w->request, -1, true, answered,
              w);
}

int client_call(struct client *c, int broker, int16_t api_key, int max_version, const void *request,
                struct arena *a, const void **response)
{
    struct waiting_call w = {.c = c,
                             .broker = broker,
                             .max_version = max_version,
                             .api_key = api_key,
                             .request = request,
                             .arena = a};
    task_init(&w.task, begin);
    executor_post(uv_executor_ex(c->ex), &w.task);
    while (!w.over)
        fiber_block(&w);
    *response = w.response;
    return w.status;
}

int client_any_broker(void)
{
    return 1 + (int)sim_below((uint64_t)sim_cluster.brokers);
}

static struct known *known_of(struct client *c, const char *topic, int32_t partition, bool make)
{
    for (int i = 0; i < c->known_n; i++)
        if (c->known[i].partition == partition && strcmp(c->known[i].topic, topic) == 0)
            return &c->known[i];
    if (!make)
        return NULL;
    struct known *k = &c->known[c->oldest];
    if (c->known_n < KNOWN_MAX)
        k = &c->known[c->known_n++];
    else /* in turn, so that all partitions of one topic have a place beside each other */
        c->oldest = (c->oldest + 1) % KNOWN_MAX;
    snprintf(k->topic, sizeof(k->topic), "%s", topic);
    k->partition = partition;
    return k;
}

static void refresh(struct client *c, const char *topic)
{
    struct metadata_request req;
    struct metadata_request_topic t;
    const void *answer;
    struct arena a;
    metadata_request_init(&req);
    metadata_request_topic_init(&t);
    t.name = str_of(topic);
    req.topics.v = &t;
    req.topics.n = topic ? 1 : 0;
    req.allow_auto_topic_creation = false;
    arena_init(&a, 0);
    if (client_call(c, client_any_broker(), API_METADATA, 9, &req, &a, &answer) == 0) {
        const struct metadata_response *m = answer;
        c->controller = m->controller_id;
        for (int i = 0; i < m->topics.n; i++)
            for (int k = 0; k < m->topics.v[i].partitions.n; k++) {
                const struct metadata_response_partition *p = &m->topics.v[i].partitions.v[k];
                known_of(c, topic, p->partition_index, true)->leader = p->leader_id;
            }
    }
    arena_free(&a);
}

int client_leader(struct client *c, const char *topic, int32_t partition, bool fresh)
{
    struct known *k = known_of(c, topic, partition, false);
    if (fresh || !k || k->leader <= 0) {
        refresh(c, topic);
        k = known_of(c, topic, partition, false);
    }
    return k && k->leader > 0 && k->leader <= sim_cluster.brokers ? k->leader : -1;
}

int client_controller(struct client *c)
{
    refresh(c, NULL);
    return c->controller > 0 && c->controller <= sim_cluster.brokers ? c->controller : -1;
}
