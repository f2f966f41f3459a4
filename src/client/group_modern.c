/* group_modern.c - group.protocol=consumer (KIP-848): one request, ConsumerGroupHeartbeat, in which
 * a member says what it wants and has, and the broker what it shall have. See group.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cluster_private.h"
#include "client/consumer_private.h"
#include "client/group.h"
#include "client/lists.h"
#include "protocol/errors.h"
#include "protocol/msg/consumer_group_heartbeat.h"

enum { SILENCE_MS = 45000 }; /* of a coordinator: then another is looked for */

struct heartbeat {
    struct group *g;
    uint64_t round;
    struct node *to;
};

/* ---- the assignment ---- */

/* Ids as names. false when one is not known yet. */
static bool name_target(struct group *g, struct arena *a, kafka_topic_partition_t *to)
{
    char name[256] = "";
    const char *kept = NULL;
    struct uuid last = UUID_ZERO;
    for (size_t i = 0; i < g->target_n; i++) {
        if (!kept || !uuid_eq(last, g->target[i].topic)) {
            if (!cluster_topic_name(g->c->cluster, g->target[i].topic, name))
                return false;
            last = g->target[i].topic;
            if (!(kept = arena_str(a, str_of(name)).p))
                return false;
        }
        to[i] = (kafka_topic_partition_t){kept, g->target[i].partition};
    }
    return true;
}

void group_modern_resolve(struct group *g)
{
    struct arena a;
    if (!g->target)
        return;
    arena_init(&a, 0);
    kafka_topic_partition_t *tps = arena_array(&a, kafka_topic_partition_t, g->target_n);
    if (tps && name_target(g, &a, tps)) {
        if (g->target_n)
            qsort(tps, g->target_n, sizeof *tps, topic_partition_cmp);
        kafka_partition_list_free(g->next);
        g->next = partition_list_copy(tps, g->target_n);
        g->next_number++;
        g->target = NULL;
        if (!g->next)
            group_fail(g, KAFKA_ERR_NO_MEMORY, "taking the assignment");
        else if (g->state != GROUP_ASSIGNED)
            group_set_state(g, GROUP_ASSIGNED);
        pthread_cond_broadcast(&g->c->news);
    } else {
        cluster_refresh(g->c->cluster); /* it calls again */
    }
    arena_free(&a);
}

static void take_target(struct group *g,
                        const struct consumer_group_heartbeat_response_assignment *from)
{
    size_t n = 0;
    for (int32_t t = 0; t < from->topic_partitions.n; t++)
        n += (size_t)from->topic_partitions.v[t].partitions.n;
    arena_reset(&g->target_mem);
    g->target = arena_array(&g->target_mem, struct id_partition, n + 1);
    g->target_n = 0;
    for (int32_t t = 0; g->target && t < from->topic_partitions.n; t++)
        for (int32_t i = 0; i < from->topic_partitions.v[t].partitions.n; i++)
            g->target[g->target_n++] = (struct id_partition){
                from->topic_partitions.v[t].topic_id, from->topic_partitions.v[t].partitions.v[i]};
    group_modern_resolve(g);
}

/* ---- answers ---- */

static void retry_later(struct group *g, int64_t now)
{
    g->say_all = true; /* who knows what was heard */
    g->beat_due_ms = g->retry_at_ms = now + cluster_backoff_ms(g->c->cluster, g->attempts++);
}

/* said: the broker's words, or null. */
static void on_error(struct group *g, kafka_err_t err, struct str said, int64_t now)
{
    char what[160] = "heartbeat";
    if (said.len > 0)
        snprintf(what, sizeof what, "heartbeat: %.*s", STR_ARG(said));
    if (err == KERR_FENCED_MEMBER_EPOCH || err == KERR_UNKNOWN_MEMBER_ID) {
        client_log(1, "group %s: member %s is out: %s", g->id, g->member_id, kafka_err_name(err));
        group_reset(g, true);
    } else if (err == KAFKA_ERR_UNSUPPORTED || err == KERR_UNSUPPORTED_VERSION) {
        group_reset(g, false);
        group_fail(g, KAFKA_ERR_UNSUPPORTED,
                   "the broker does not have group.protocol=consumer, use classic");
    } else if (err > 0 && !kafka_err_is_retriable(err)) {
        group_reset(g, false);
        group_fail(g, err, what);
    } else {
        retry_later(g, now);
    }
}

static void on_ok(struct group *g, const struct consumer_group_heartbeat_response *m, int64_t now)
{
    if (m->member_id.len > 0 && !str_eqz(m->member_id, g->member_id)) {
        char *id = str_dup(m->member_id);
        if (id) {
            free(g->member_id);
            g->member_id = id;
        }
    }
    bool joined = g->generation < 0;
    g->generation = m->member_epoch;
    g->attempts = 0;
    g->retry_at_ms = 0;
    g->beat_ok_ms = now;
    if (m->heartbeat_interval_ms > 0)
        g->heartbeat_ms = m->heartbeat_interval_ms;
    g->beat_due_ms = now + g->heartbeat_ms;
    if (m->assignment) {
        take_target(g, m->assignment);
    } else if (joined) {
        struct consumer_group_heartbeat_response_assignment none = {{NULL, 0}};
        take_target(g, &none);
    }
}

static void on_heartbeat(void *arg, int status, int version, const void *response)
{
    struct heartbeat h = *(struct heartbeat *)arg;
    struct group *g = h.g;
    const struct consumer_group_heartbeat_response *m = response;
    kafka_err_t err = status == 0 ? m->error_code : client_err_of_status(status);
    free(arg);
    client_log(0, "group %s: heartbeat: %s", g->id, kafka_err_name(err));
    if (coordinator_is_stale(err) && g->coordinator.node == h.to)
        coordinator_forget(&g->coordinator);
    pthread_mutex_lock(&g->c->lock);
    int64_t now = executor_now_ms(cluster_executor(g->c->cluster));
    g->beating = false;
    if (h.round == g->round && err == KAFKA_OK)
        on_ok(g, m, now);
    else if (h.round == g->round)
        on_error(g, err, status == 0 ? m->error_message : STR_NULL, now);
    group_run(g);
    pthread_mutex_unlock(&g->c->lock);
}

/* ---- requests ---- */

static bool fill_names(struct group *g, struct arena *a,
                       struct consumer_group_heartbeat_request *req)
{
    req->subscribed_topic_names.v = arena_array(a, struct str, g->c->topics_n);
    req->subscribed_topic_names.n = (int32_t)g->c->topics_n;
    for (size_t i = 0; req->subscribed_topic_names.v && i < g->c->topics_n; i++)
        req->subscribed_topic_names.v[i] = str_of(g->c->topics[i]);
    return req->subscribed_topic_names.v != NULL;
}

/* What is owned, each partition by itself: the order of a consumer's partitions is any. */
static bool fill_owned(struct group *g, struct arena *a,
                       struct consumer_group_heartbeat_request *req)
{
    int32_t most = 0;
    list_each (it, &g->c->parts)
        most++;
    req->topic_partitions.v = consumer_group_heartbeat_request_topic_partition_new(a, most);
    req->topic_partitions.n = 0;
    if (!req->topic_partitions.v)
        return false;
    list_each (it, &g->c->parts) {
        struct cpart *p = list_entry(it, struct cpart, link);
        struct uuid id;
        if (!cluster_topic_id(g->c->cluster, p->topic, &id))
            continue; /* deleted: nobody's */
        struct consumer_group_heartbeat_request_topic_partition *t = NULL;
        for (int32_t i = 0; i < req->topic_partitions.n && !t; i++)
            if (uuid_eq(req->topic_partitions.v[i].topic_id, id))
                t = &req->topic_partitions.v[i];
        if (!t) {
            t = &req->topic_partitions.v[req->topic_partitions.n++];
            t->topic_id = id;
            t->partitions.v = arena_array(a, int32_t, (size_t)most);
            if (!t->partitions.v)
                return false;
        }
        t->partitions.v[t->partitions.n++] = p->partition;
    }
    return true;
}

static bool fill(struct group *g, struct arena *a, struct consumer_group_heartbeat_request *req)
{
    bool all = g->generation < 0 || g->say_all;
    consumer_group_heartbeat_request_init(req);
    req->group_id = str_of(g->id);
    req->member_id = arena_str(a, str_of(g->member_id));
    req->member_epoch = g->generation < 0 ? 0 : g->generation;
    req->instance_id = str_of(g->instance_id);
    req->subscribed_topic_names.n = -1;
    req->topic_partitions.n = -1;
    if (all) {
        req->rack_id = g->c->rack && *g->c->rack ? str_of(g->c->rack) : STR_NULL;
        req->rebalance_timeout_ms = (int32_t)g->max_poll_ms;
        req->server_assignor = str_of(g->remote_assignor);
        if (!fill_names(g, a, req))
            return false;
    }
    return (!all && !g->say_owned) || fill_owned(g, a, req);
}

/* Made by the client, as later versions of the request want it; all take it. */
static bool make_member_id(struct group *g)
{
    char id[23];
    if (g->member_id[0])
        return true;
    uuid_format(uuid_random(), id);
    char *copy = str_dup(str_of(id));
    if (!copy)
        return false;
    free(g->member_id);
    g->member_id = copy;
    return true;
}

static void send_beat(struct group *g, struct node *n, int64_t now)
{
    struct arena a;
    struct consumer_group_heartbeat_request req;
    struct heartbeat *h = malloc(sizeof *h);
    arena_init(&a, 0);
    if (h && make_member_id(g) && fill(g, &a, &req)) {
        *h = (struct heartbeat){.g = g, .round = g->round, .to = n};
        g->beating = node_send(n, API_CONSUMER_GROUP_HEARTBEAT, -1, -1, &req,
                               cluster_request_timeout(g->c->cluster), true, on_heartbeat, h) == 0;
    }
    if (g->beating) {
        g->say_all = g->say_now = g->say_owned = false;
        g->beat_due_ms = now + g->heartbeat_ms;
    } else {
        free(h);
        retry_later(g, now);
    }
    arena_free(&a);
}

int64_t group_modern_run(struct group *g, int64_t now)
{
    int64_t wait = 0;
    if (g->state == GROUP_OUT)
        return INT64_MAX;
    if (g->generation >= 0 && now - g->beat_ok_ms > SILENCE_MS && g->coordinator.node) {
        g->beat_ok_ms = now;
        g->forget_coordinator = true;
        group_wake(g);
        return INT64_MAX;
    }
    struct node *n = coordinator_node(&g->coordinator);
    if (!n || g->beating)
        return INT64_MAX; /* `changed`, or the answer, runs us again */
    if (!node_ready(n, &wait))
        return now + wait;
    int64_t due = g->say_now || g->generation < 0 ? now : g->beat_due_ms;
    due = due > g->retry_at_ms ? due : g->retry_at_ms;
    if (now < due)
        return due;
    send_beat(g, n, now);
    return g->beating ? INT64_MAX : g->retry_at_ms;
}

/* ---- leaving ---- */

struct modern_leaving {
    struct op op;
    struct consumer_group_heartbeat_request req;
    char member_id[];
};

static kafka_err_t on_left(struct op *op, int version, const void *response)
{
    return ((const struct consumer_group_heartbeat_response *)response)->error_code;
}

static void leaving_done(struct op *op, kafka_err_t result)
{
    struct group *g = op->arg;
    if (result != KAFKA_OK && result != KERR_UNKNOWN_MEMBER_ID)
        client_log(1, "group %s: leaving: %s", g->id, kafka_err_name(result));
    group_left(g);
    free(container_of(op, struct modern_leaving, op));
}

bool group_modern_leave(struct group *g)
{
    if (!g->member_id[0] || g->generation < 0)
        return false;
    struct modern_leaving *l = calloc(1, sizeof *l + strlen(g->member_id) + 1);
    if (!l)
        return false;
    strcpy(l->member_id, g->member_id);
    consumer_group_heartbeat_request_init(&l->req);
    l->req.group_id = str_of(g->id);
    l->req.member_id = str_of(l->member_id);
    l->req.instance_id = str_of(g->instance_id);
    l->req.member_epoch = g->instance_id ? -2 : -1; /* a static member may come back */
    l->req.subscribed_topic_names.n = -1;
    l->req.topic_partitions.n = -1;
    l->op = (struct op){.coordinator = &g->coordinator,
                        .once = true,
                        .api_key = API_CONSUMER_GROUP_HEARTBEAT,
                        .min_version = -1,
                        .max_version = -1,
                        .request = &l->req,
                        .handle = on_left,
                        .finished = leaving_done,
                        .arg = g};
    op_start(g->c->cluster, &l->op, cluster_request_timeout(g->c->cluster));
    return true;
}
