/* fetch_records.c - Fetch: requests that name what a session does not know, answers into the
 * partitions' queues, replicas that are closer than the leader. */
#include <stdlib.h>

#include "client/fetch_session.h"
#include "client/fetcher_private.h"
#include "protocol/errors.h"
#include "protocol/msg/fetch.h"

/* ---- answers ---- */

/* Answers list partitions in the order of the request, mostly: looking begins behind the last
 * found.
 */
struct finder {
    const struct fetch_response *m;
    int32_t topic, partition;
};

static const struct fetch_response_partition *find_fetch(struct finder *at, const struct cpart *p)
{
    int32_t topics = at->m ? at->m->responses.n : 0;
    for (int32_t i = 0; i <= topics && topics > 0; i++) {
        const struct fetch_response_response *t = &at->m->responses.v[at->topic];
        int32_t n = str_eqz(t->topic, p->topic) ? t->partitions.n : 0;
        for (int32_t k = 0; k < n; k++) {
            int32_t place = (at->partition + k) % n;
            if (t->partitions.v[place].partition_index == p->partition) {
                at->partition = (place + 1) % n;
                return &t->partitions.v[place];
            }
        }
        at->topic = (at->topic + 1) % topics;
        at->partition = 0;
    }
    return NULL;
}

/* Offset behind the last whole entry. */
static enum batch_walk find_end(struct fetched *f, int32_t *epoch)
{
    struct batch b;
    enum batch_walk how = BATCH_END;
    for (size_t at = 0; at < f->len; at += b.size) {
        how = batch_decode(f->bytes + at, f->len - at, f->len - at, &b);
        if (how != BATCH_OK)
            return how;
        if (b.last_offset >= f->next_offset)
            f->next_offset = b.last_offset + 1;
        *epoch = b.leader_epoch;
    }
    return how;
}

/* Queues the records. Lock held. */
static void take_records(kafka_consumer_t *c, struct cpart *p, struct fetch_memory *memory,
                         const struct fetch_response_partition *r)
{
    struct fetched *f = memory ? fetched_new(memory, r, p->fetch_at) : NULL;
    if (!f) {
        fetch_tell_error(c, p, KAFKA_ERR_NO_MEMORY);
        fetch_try_later(c, p);
        return;
    }
    enum batch_walk how = find_end(f, &p->epoch);
    if (f->next_offset == p->fetch_at) {
        /* Not one whole batch: damaged, or too large for the limits of a broker before 0.10.1. */
        fetched_unref(f);
        fetch_tell_error(c, p,
                         how == BATCH_CORRUPT ? KERR_CORRUPT_MESSAGE : KERR_MESSAGE_TOO_LARGE);
        fetch_try_later(c, p);
        return;
    }
    p->fetch_at = f->next_offset;
    p->queue_n++;
    list_push_back(&p->queue, &f->link);
    pthread_cond_broadcast(&c->news);
}

/* The answer's memory becomes ours. NULL without memory. */
static struct fetch_memory *keep_memory(struct fetch_send *s)
{
    struct fetch_memory *m = fetch_memory_new(s->c->spent);
    if (m && !(m->response = node_keep_response(s->node))) {
        fetch_memory_unref(m);
        return NULL;
    }
    return m;
}

/* From now on a replica that is closer, until metadata would be asked for again. */
static void prefer_replica(kafka_consumer_t *c, struct cpart *p, int32_t node_id)
{
    p->preferred = node_id;
    p->preferred_until_ms = executor_now_ms(cluster_executor(c->cluster)) + c->metadata_max_age_ms;
}

/* A replica that does not do sends us back to the leader, at once. */
static bool back_to_leader(const struct fetch_send *s, struct cpart *p, kafka_err_t err)
{
    bool other = p->preferred >= 0 && s->node_id == p->preferred;
    p->preferred = -1;
    return other && err == KERR_OFFSET_OUT_OF_RANGE;
}

static void take_part(struct fetch_send *s, struct cpart *p,
                      const struct fetch_response_partition *r, struct fetch_memory **memory)
{
    kafka_consumer_t *c = s->c;
    p->attempts = 0;
    if (r->high_watermark >= 0)
        p->end = c->read_committed && r->last_stable_offset >= 0 ? r->last_stable_offset
                                                                 : r->high_watermark;
    if (r->preferred_read_replica >= 0)
        prefer_replica(c, p, r->preferred_read_replica);
    if (r->records.len <= 0)
        return;
    if (!*memory)
        *memory = keep_memory(s);
    take_records(c, p, *memory, r);
}

static void on_fetched(void *arg, int status, int version, const void *response)
{
    struct fetch_send *s = arg;
    kafka_consumer_t *c = s->c;
    const struct fetch_response *m = response;
    struct finder finder = {m, 0, 0};
    struct fetch_memory *memory = NULL;
    kafka_err_t all = status ? client_err_of_status(status) : m->error_code;
    bool full = !s->session || fetch_session_is_full(s->session);
    bool again = s->session && fetch_session_end(s->session, all, m ? m->session_id : 0);
    bool refresh = false;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < s->n && !again; i++) {
        struct cpart *p = s->parts[i];
        const struct fetch_response_partition *r = find_fetch(&finder, p);
        kafka_err_t err = all != KAFKA_OK ? all
                          : r             ? r->error_code
                          : full          ? KAFKA_ERR_BAD_RESPONSE
                                          : KAFKA_OK;
        if (!fetch_still_wanted(s, i))
            continue;
        if (err == KAFKA_OK && r)
            take_part(s, p, r, &memory);
        else if (err != KAFKA_OK && !back_to_leader(s, p, err))
            fetch_on_error(c, p, err, &refresh);
    }
    pthread_mutex_unlock(&c->lock);
    fetch_memory_unref(memory);
    fetch_finish(s, refresh);
}

/* ---- requests ---- */

/* The node's session, made when it is first needed; NULL without memory: then every fetch is whole.
 */
static struct fetch_session *find_session(kafka_consumer_t *c, int32_t node_id)
{
    list_each (it, &c->sessions) {
        struct fetch_session *s = list_entry(it, struct fetch_session, link);
        if (s->node_id == node_id)
            return s;
    }
    struct fetch_session *s = fetch_session_new(node_id);
    if (s)
        list_push_back(&c->sessions, &s->link);
    return s;
}

/* Neighbours of one topic share its entry. */
static void add_part(struct fetch_send *s, struct cpart *p, struct fetch_request *req,
                     struct fetch_request_partition *to)
{
    struct fetch_request_topic *t = req->topics.n ? &req->topics.v[req->topics.n - 1] : NULL;
    if (!t || !str_eqz(t->topic, p->topic)) {
        t = &req->topics.v[req->topics.n++];
        t->topic = str_of(p->topic);
        t->partitions.v = to;
    }
    to->partition = p->partition;
    to->fetch_offset = p->fetch_at;
    to->current_leader_epoch = p->leader_epoch;
    to->partition_max_bytes = s->c->partition_max_bytes;
    t->partitions.n++;
}

static bool fill_fetch(struct fetch_send *s, struct arena *a, struct fetch_request *req)
{
    kafka_consumer_t *c = s->c;
    fetch_request_init(req);
    req->replica_id = -1;
    req->max_wait_ms = c->fetch_max_wait_ms;
    req->min_bytes = c->fetch_min_bytes;
    req->max_bytes = c->fetch_max_bytes;
    req->isolation_level = c->read_committed;
    req->rack_id = str_of(c->rack ? c->rack : "");
    req->topics.v = fetch_request_topic_new(a, s->n);
    struct fetch_request_partition *parts = fetch_request_partition_new(a, s->n);
    if (!req->topics.v || !parts)
        return false;
    s->session = find_session(c, s->node_id);
    if (s->session)
        fetch_session_begin(s->session);
    for (int i = 0; i < s->n; i++) {
        struct cpart *p = s->parts[i];
        if (!s->session ||
            fetch_session_want(s->session, p->topic, p->partition, p->fetch_at, p->leader_epoch))
            add_part(s, p, req, parts++);
    }
    return !s->session || fetch_session_fill(s->session, a, req);
}

/* 12 is the last version that names topics by name. */
int send_fetch(struct fetch_send *s, struct arena *a)
{
    struct fetch_request req;
    pthread_mutex_lock(&s->c->lock);
    bool ok = fill_fetch(s, a, &req);
    pthread_mutex_unlock(&s->c->lock);
    int rc = ok ? node_send(s->node, API_FETCH, 0, 12, &req, cluster_request_timeout(s->c->cluster),
                            true, on_fetched, s)
                : -1;
    if (rc < 0 && s->session)
        fetch_session_end(s->session, KAFKA_ERR_NO_MEMORY, 0);
    return rc;
}

static void on_closed(void *arg, int status, int version, const void *response)
{
}

void fetch_close_sessions(kafka_consumer_t *c)
{
    list_each (it, &c->sessions) {
        struct fetch_session *s = list_entry(it, struct fetch_session, link);
        struct node *n = s->id ? cluster_find_node(c->cluster, s->node_id) : NULL;
        struct fetch_request req;
        int64_t wait;
        if (!n || !node_ready(n, &wait))
            continue;
        fetch_request_init(&req);
        req.replica_id = -1;
        req.session_id = s->id;
        req.session_epoch = -1; /* the last */
        node_send(n, API_FETCH, 7, 12, &req, cluster_request_timeout(c->cluster), true, on_closed,
                  NULL);
    }
}
