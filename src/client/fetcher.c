/* fetcher.c - the consumer's background work: finding positions, one Fetch per broker under way,
 * queueing what comes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/committed.h"
#include "client/consumer_private.h"
#include "client/group.h"
#include "protocol/errors.h"
#include "protocol/msg/fetch.h"
#include "protocol/msg/list_offsets.h"
#include "protocol/msg/offset_fetch.h"

enum { LOOK_AGAIN_MS = 100 };

enum send_kind { SEND_FETCH, SEND_LOOKUP /* ListOffsets */, SEND_COMMITTED /* OffsetFetch */ };

struct fetch_send { /* a request under way; a Fetch counts as the node's one */
    struct list link;
    kafka_consumer_t *c;
    struct node *node;
    enum send_kind kind;
    struct cpart **parts;
    uint64_t *generations;
    int n, cap;
};

static void fetcher_run(kafka_consumer_t *c);

void cpart_drop_queue(struct cpart *p)
{
    while (!list_empty(&p->queue))
        fetched_unref(list_entry(list_pop(&p->queue), struct fetched, link));
    p->queue_n = 0;
}

void cpart_unref(struct cpart *p)
{
    if (--p->refs > 0)
        return;
    cpart_drop_queue(p);
    free(p->topic);
    free(p);
}

static void send_free(struct fetch_send *s)
{
    free(s->parts);
    free(s->generations);
    free(s);
}

/* ---- choosing ---- */

static bool send_add(struct fetch_send *s, struct cpart *p)
{
    if (s->n == s->cap) {
        int cap = s->cap ? 2 * s->cap : 8;
        struct cpart **parts = realloc(s->parts, (size_t)cap * sizeof *parts);
        if (parts)
            s->parts = parts;
        uint64_t *generations = realloc(s->generations, (size_t)cap * sizeof *generations);
        if (generations)
            s->generations = generations;
        if (!parts || !generations)
            return false;
        s->cap = cap;
    }
    s->parts[s->n] = p;
    s->generations[s->n++] = p->generation;
    p->refs++;
    p->busy = true;
    return true;
}

static struct fetch_send *send_for(kafka_consumer_t *c, struct list *sends, struct node *n,
                                   enum send_kind kind)
{
    list_each (it, sends) {
        struct fetch_send *s = list_entry(it, struct fetch_send, link);
        if (s->node == n && s->kind == kind)
            return s;
    }
    struct fetch_send *s = calloc(1, sizeof *s);
    if (s) {
        s->c = c;
        s->node = n;
        s->kind = kind;
        list_push_back(sends, &s->link);
    }
    return s;
}

static bool fetching_from(kafka_consumer_t *c, struct node *n)
{
    list_each (it, &c->fetches) {
        struct fetch_send *s = list_entry(it, struct fetch_send, link);
        if (s->node == n && s->kind == SEND_FETCH)
            return true;
    }
    return false;
}

/* Does the partition want a request now? Lock held. */
static bool wants(struct cpart *p, int64_t now, int64_t *wait_ms)
{
    if (p->busy)
        return false;
    if (p->state == CPART_FETCH && (p->paused || p->queue_n >= CPART_QUEUE_MAX))
        return false;
    if (p->retry_at_ms > now) {
        *wait_ms = p->retry_at_ms - now < *wait_ms ? p->retry_at_ms - now : *wait_ms;
        return false;
    }
    return true;
}

/* The group may not be used: told once. */
static void on_coordinator_error(kafka_consumer_t *c)
{
    c->error = c->group->coordinator.err;
    snprintf(c->error_text, sizeof c->error_text, "group %s: finding its coordinator: %s (%s)",
             c->group->id, kafka_err_text(c->error), kafka_err_name(c->error));
    c->group->coordinator.err = KAFKA_OK;
    pthread_cond_broadcast(&c->news);
}

/* No position, and nothing says where to begin but auto.offset.reset. */
static void begin_reset(kafka_consumer_t *c, struct cpart *p)
{
    if (c->reset_to == 0) {
        p->state = CPART_NOWHERE;
        if (c->error == KAFKA_OK)
            snprintf(c->error_text, sizeof c->error_text,
                     "%s-%d has no position: nothing is committed, or it is out of range, and "
                     "auto.offset.reset=none",
                     p->topic, p->partition);
        c->error = KAFKA_ERR_NO_OFFSET;
        pthread_cond_broadcast(&c->news);
        return;
    }
    p->state = CPART_RESET;
    p->reset_to = c->reset_to;
}

/* Whom to ask about a partition. NULL: not known, or not to be asked now. */
static struct node *find_target(kafka_consumer_t *c, struct cpart *p, bool *unknown)
{
    int64_t wait;
    if (p->state == CPART_START) {
        struct node *n = coordinator_node(&c->group->coordinator);
        if (c->group->coordinator.err != KAFKA_OK)
            on_coordinator_error(c);
        return n && node_ready(n, &wait) ? n : NULL;
    }
    struct node *n = p->leader >= 0 ? cluster_node(c->cluster, p->leader) : NULL;
    *unknown |= !n;
    return n && node_ready(n, &wait) ? n : NULL;
}

static void collect_one(kafka_consumer_t *c, struct cpart *p, int64_t now, struct list *sends,
                        int64_t *wait_ms, bool *unknown)
{
    if (p->state == CPART_START && !c->group)
        begin_reset(c, p);
    if (p->state == CPART_NOWHERE || !wants(p, now, wait_ms))
        return;
    struct node *n = find_target(c, p, unknown);
    if (!n) {
        *wait_ms = *wait_ms < LOOK_AGAIN_MS ? *wait_ms : LOOK_AGAIN_MS;
        return;
    }
    enum send_kind kind = p->state == CPART_START   ? SEND_COMMITTED
                          : p->state == CPART_RESET ? SEND_LOOKUP
                                                    : SEND_FETCH;
    if (kind == SEND_FETCH && fetching_from(c, n))
        return; /* its answer runs us again */
    struct fetch_send *s = send_for(c, sends, n, kind);
    if (s)
        send_add(s, p);
}

static void collect(kafka_consumer_t *c, int64_t now, struct list *sends, int64_t *wait_ms)
{
    bool unknown = false;
    c->wants_more = false;
    list_each (it, &c->parts)
        collect_one(c, list_entry(it, struct cpart, link), now, sends, wait_ms, &unknown);
    if (unknown)
        cluster_refresh(c->cluster);
}

/* ---- answers ---- */

/* Hands each partition's part of an answer to `take` if it is still wanted; ends the request. */
static bool still_wanted(struct fetch_send *s, int i)
{
    return !s->parts[i]->revoked && s->parts[i]->generation == s->generations[i];
}

static void try_later(kafka_consumer_t *c, struct cpart *p)
{
    p->retry_at_ms = executor_now_ms(cluster_executor(c->cluster)) +
                     cluster_backoff_ms(c->cluster, p->attempts++);
}

static void tell_error(kafka_consumer_t *c, struct cpart *p, kafka_err_t err)
{
    c->error = err;
    snprintf(c->error_text, sizeof c->error_text, "%s-%d at offset %lld: %s (%s)", p->topic,
             p->partition, (long long)p->fetch_at, kafka_err_text(err), kafka_err_name(err));
    pthread_cond_broadcast(&c->news);
}

/* A partition's error: what heals by itself is tried again, the rest is told. Lock held. */
static void on_part_error(kafka_consumer_t *c, struct cpart *p, kafka_err_t err, bool *refresh)
{
    if (err == KERR_OFFSET_OUT_OF_RANGE) {
        if (p->queue_n == 0 && p->fetch_at == p->position)
            begin_reset(c, p);
        else
            try_later(c, p); /* records in the queue come first */
        return;
    }
    try_later(c, p);
    if (kafka_err_is_retriable(err) && err != KERR_CORRUPT_MESSAGE)
        *refresh = true;
    else
        tell_error(c, p, err);
}

static void end_send(struct fetch_send *s)
{
    kafka_consumer_t *c = s->c;
    pthread_mutex_lock(&c->lock);
    list_remove(&s->link);
    for (int i = 0; i < s->n; i++) {
        s->parts[i]->busy = false;
        cpart_unref(s->parts[i]);
    }
    pthread_mutex_unlock(&c->lock);
    send_free(s);
}

static void finish_send(struct fetch_send *s, bool refresh)
{
    kafka_consumer_t *c = s->c;
    end_send(s);
    if (refresh)
        cluster_refresh(c->cluster);
    if (!c->closing)
        fetcher_run(c);
}

static const struct list_offsets_response_partition *
find_lookup(const struct list_offsets_response *m, const struct cpart *p)
{
    for (int32_t t = 0; m && t < m->topics.n; t++)
        for (int32_t k = 0; k < m->topics.v[t].partitions.n; k++)
            if (m->topics.v[t].partitions.v[k].partition_index == p->partition &&
                str_eqz(m->topics.v[t].name, p->topic))
                return &m->topics.v[t].partitions.v[k];
    return NULL;
}

static void on_lookup(void *arg, int status, int version, const void *response)
{
    struct fetch_send *s = arg;
    kafka_consumer_t *c = s->c;
    bool refresh = false;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < s->n; i++) {
        struct cpart *p = s->parts[i];
        const struct list_offsets_response_partition *r = find_lookup(response, p);
        kafka_err_t err = status ? client_err_of_status(status)
                          : r    ? r->error_code
                                 : KAFKA_ERR_BAD_RESPONSE;
        if (!still_wanted(s, i))
            continue;
        if (err != KAFKA_OK) {
            on_part_error(c, p, err, &refresh);
            continue;
        }
        p->position = p->fetch_at = r->offset;
        p->state = CPART_FETCH;
        p->attempts = 0;
        pthread_cond_broadcast(&c->news);
    }
    pthread_mutex_unlock(&c->lock);
    finish_send(s, refresh);
}

/* ---- committed offsets ---- */

struct committed_answer {
    struct fetch_send *s;
    int next;
    bool *seen;
    bool refresh;
};

static void on_committed_one(struct fetch_send *s, int i, const struct committed_offset *o)
{
    struct cpart *p = s->parts[i];
    kafka_consumer_t *c = s->c;
    p->attempts = 0;
    if (o->offset < 0) {
        begin_reset(c, p);
        return;
    }
    p->position = p->fetch_at = o->offset;
    p->position_epoch = o->leader_epoch;
    p->state = CPART_FETCH;
    pthread_cond_broadcast(&c->news);
}

static void take_committed(void *arg, const struct committed_offset *o)
{
    struct committed_answer *a = arg;
    for (int tried = 0; tried < a->s->n; tried++) {
        int i = (a->next + tried) % a->s->n;
        struct cpart *p = a->s->parts[i];
        if (p->partition != o->partition || !str_eqz(o->topic, p->topic))
            continue;
        a->next = i + 1;
        a->seen[i] = true;
        if (!still_wanted(a->s, i))
            return;
        if (o->err != KAFKA_OK)
            on_part_error(a->s->c, p, o->err, &a->refresh);
        else
            on_committed_one(a->s, i, o);
        return;
    }
}

static void on_committed(void *arg, int status, int version, const void *response)
{
    struct fetch_send *s = arg;
    kafka_consumer_t *c = s->c;
    struct committed_answer a = {s, 0, calloc((size_t)s->n, sizeof *a.seen), false};
    kafka_err_t err = !a.seen ? KAFKA_ERR_NO_MEMORY : client_err_of_status(status);
    pthread_mutex_lock(&c->lock);
    if (err == KAFKA_ERR_UNSUPPORTED && c->stable_offsets) {
        c->stable_offsets = false; /* a broker before 2.5 */
        err = KERR_COORDINATOR_LOAD_IN_PROGRESS;
    }
    if (err == KAFKA_OK)
        err = committed_walk(version, response, take_committed, &a);
    for (int i = 0; i < s->n; i++)
        if ((!a.seen || !a.seen[i]) && still_wanted(s, i))
            on_part_error(c, s->parts[i], err != KAFKA_OK ? err : KAFKA_ERR_BAD_RESPONSE,
                          &a.refresh);
    pthread_mutex_unlock(&c->lock);
    free(a.seen);
    if (coordinator_is_stale(err) && c->group->coordinator.node == s->node)
        coordinator_forget(&c->group->coordinator);
    finish_send(s, false);
}

/* ---- records ---- */

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
        tell_error(c, p, KAFKA_ERR_NO_MEMORY);
        try_later(c, p);
        return;
    }
    enum batch_walk how = find_end(f, &p->epoch);
    if (f->next_offset == p->fetch_at) {
        /* Not one whole batch: damaged, or too large for the limits of a broker before 0.10.1. */
        fetched_unref(f);
        tell_error(c, p, how == BATCH_CORRUPT ? KERR_CORRUPT_MESSAGE : KERR_MESSAGE_TOO_LARGE);
        try_later(c, p);
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

static void on_fetched(void *arg, int status, int version, const void *response)
{
    struct fetch_send *s = arg;
    kafka_consumer_t *c = s->c;
    const struct fetch_response *m = response;
    struct finder finder = {m, 0, 0};
    struct fetch_memory *memory = NULL;
    bool refresh = false;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < s->n; i++) {
        struct cpart *p = s->parts[i];
        const struct fetch_response_partition *r = find_fetch(&finder, p);
        kafka_err_t err = status          ? client_err_of_status(status)
                          : m->error_code ? m->error_code
                          : r             ? r->error_code
                                          : KAFKA_ERR_BAD_RESPONSE;
        if (!still_wanted(s, i))
            continue;
        if (err != KAFKA_OK) {
            on_part_error(c, p, err, &refresh);
            continue;
        }
        p->attempts = 0;
        p->end = c->read_committed && r->last_stable_offset >= 0 ? r->last_stable_offset
                                                                 : r->high_watermark;
        if (r->records.len <= 0)
            continue;
        if (!memory)
            memory = keep_memory(s);
        take_records(c, p, memory, r);
    }
    pthread_mutex_unlock(&c->lock);
    fetch_memory_unref(memory);
    finish_send(s, refresh);
}

/* ---- requests ---- */

static bool fill_lookup(struct fetch_send *s, struct arena *a, struct list_offsets_request *req)
{
    list_offsets_request_init(req);
    req->replica_id = -1;
    req->isolation_level = s->c->read_committed;
    req->topics.v = list_offsets_request_topic_new(a, s->n);
    for (int i = 0; req->topics.v && i < s->n; i++) {
        struct list_offsets_request_topic *t = &req->topics.v[i];
        t->name = str_of(s->parts[i]->topic);
        t->partitions.v = list_offsets_request_partition_new(a, 1);
        if (!t->partitions.v)
            return false;
        t->partitions.n = 1;
        t->partitions.v[0].partition_index = s->parts[i]->partition;
        t->partitions.v[0].timestamp = s->parts[i]->reset_to;
        req->topics.n++;
    }
    return req->topics.v != NULL;
}

/* Partitions one after the other; neighbours of one topic share its entry. */
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
    for (int i = 0; i < s->n; i++) {
        struct cpart *p = s->parts[i];
        struct fetch_request_topic *t = req->topics.n ? &req->topics.v[req->topics.n - 1] : NULL;
        if (!t || !str_eqz(t->topic, p->topic)) {
            t = &req->topics.v[req->topics.n++];
            t->topic = str_of(p->topic);
            t->partitions.v = &parts[i];
        }
        parts[i].partition = p->partition;
        parts[i].fetch_offset = p->fetch_at;
        parts[i].partition_max_bytes = c->partition_max_bytes;
        t->partitions.n++;
    }
    return true;
}

static bool fill_committed(struct fetch_send *s, struct arena *a, struct offset_fetch_request *req)
{
    kafka_topic_partition_t *tps = arena_array(a, kafka_topic_partition_t, (size_t)s->n);
    for (int i = 0; tps && i < s->n; i++)
        tps[i] = (kafka_topic_partition_t){s->parts[i]->topic, s->parts[i]->partition};
    return tps && committed_fill(a, req, s->c->group->id, tps, (size_t)s->n, s->c->stable_offsets);
}

/* No memory for the request: its partitions try again later. */
static void fail_send(struct fetch_send *s)
{
    kafka_consumer_t *c = s->c;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < s->n; i++)
        try_later(c, s->parts[i]);
    pthread_mutex_unlock(&c->lock);
    end_send(s);
}

static void send_off(struct fetch_send *s)
{
    kafka_consumer_t *c = s->c;
    struct arena a;
    int64_t timeout = cluster_request_timeout(c->cluster);
    arena_init(&a, 0);
    list_push_back(&c->fetches, &s->link);
    for (struct peer_response *r; (r = spent_take(c->spent));)
        node_recycle_response(s->node, r);
    union {
        struct list_offsets_request lookup;
        struct fetch_request fetch;
        struct offset_fetch_request committed;
    } req;
    pthread_mutex_lock(&c->lock);
    bool ok = s->kind == SEND_LOOKUP      ? fill_lookup(s, &a, &req.lookup)
              : s->kind == SEND_COMMITTED ? fill_committed(s, &a, &req.committed)
                                          : fill_fetch(s, &a, &req.fetch);
    pthread_mutex_unlock(&c->lock);
    if (!ok)
        ;
    else if (s->kind == SEND_COMMITTED)
        ok = node_send(s->node, API_OFFSET_FETCH, 1, COMMITTED_MAX_VERSION, &req.committed, timeout,
                       true, on_committed, s) == 0;
    else if (s->kind == SEND_LOOKUP)
        ok = node_send(s->node, API_LIST_OFFSETS, 1, -1, &req.lookup, timeout, true, on_lookup,
                       s) == 0;
    else /* 12 is the last version that names topics by name */
        ok = node_send(s->node, API_FETCH, 0, 12, &req.fetch, timeout, true, on_fetched, s) == 0;
    arena_free(&a);
    if (!ok)
        fail_send(s);
}

static void fetcher_run(kafka_consumer_t *c)
{
    int64_t wait = INT64_MAX;
    struct list sends = LIST_INIT(sends);
    if (c->closing)
        return;
    pthread_mutex_lock(&c->lock);
    collect(c, executor_now_ms(cluster_executor(c->cluster)), &sends, &wait);
    pthread_mutex_unlock(&c->lock);
    while (!list_empty(&sends)) {
        struct fetch_send *s = list_entry(list_pop(&sends), struct fetch_send, link);
        if (s->n > 0)
            send_off(s);
        else
            send_free(s);
    }
    if (wait != INT64_MAX && !c->closing)
        executor_timer_start(cluster_executor(c->cluster), &c->timer, wait);
}

static void on_wake(struct task *t)
{
    kafka_consumer_t *c = container_of(t, kafka_consumer_t, wake_task);
    pthread_mutex_lock(&c->lock);
    c->wake_posted = false;
    pthread_mutex_unlock(&c->lock);
    fetcher_run(c);
}

static void on_timer(struct timer *t)
{
    fetcher_run(container_of(t, kafka_consumer_t, timer));
}

void cpart_find_leader(kafka_consumer_t *c, struct cpart *p)
{
    struct leader_info leader = {-1, -1};
    cluster_leader(c->cluster, p->topic, p->partition, &leader);
    p->leader = leader.leader;
}

static void on_metadata(void *arg)
{
    kafka_consumer_t *c = arg;
    pthread_mutex_lock(&c->lock);
    list_each (it, &c->parts)
        cpart_find_leader(c, list_entry(it, struct cpart, link));
    consumer_match_pattern(c);
    if (c->group)
        group_on_metadata(c->group);
    pthread_mutex_unlock(&c->lock);
    fetcher_run(c);
}

void fetcher_init(kafka_consumer_t *c)
{
    list_init(&c->fetches);
    task_init(&c->wake_task, on_wake);
    timer_init(&c->timer, on_timer);
    cluster_on_metadata(c->cluster, on_metadata, c);
}

void fetcher_wake(kafka_consumer_t *c)
{
    if (c->wake_posted)
        return;
    c->wake_posted = true;
    executor_post(cluster_executor(c->cluster), &c->wake_task);
}

void fetcher_stop(void *consumer)
{
    kafka_consumer_t *c = consumer;
    c->closing = true;
    executor_timer_stop(cluster_executor(c->cluster), &c->timer);
    cluster_on_metadata(c->cluster, NULL, NULL);
}
