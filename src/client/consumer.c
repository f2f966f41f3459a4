/* consumer.c - the public face of the simple consumer. See kafka/consumer.h; the network's side is
 * fetcher.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "client/cluster_private.h"
#include "client/consumer_private.h"
#include "protocol/errors.h"
#include "protocol/msg/list_offsets.h"

struct kafka_messages {
    kafka_message_t *v;
    size_t n, cap;
    struct fetched **sources; /* one reference each */
    size_t sources_n, sources_cap;
    struct arena arena; /* topic names, headers */
};

static int64_t conf_int(const kafka_consumer_t *c, const char *key)
{
    return client_conf_int(c->conf, SCOPE_CONSUMER, key);
}

static const char *conf_string(const kafka_consumer_t *c, const char *key)
{
    return client_conf_string(c->conf, SCOPE_CONSUMER, key);
}

static void read_settings(kafka_consumer_t *c)
{
    const char *reset = conf_string(c, "auto.offset.reset");
    c->reset_to = strcmp(reset, "earliest") == 0 ? KAFKA_OFFSET_BEGINNING
                  : strcmp(reset, "latest") == 0 ? KAFKA_OFFSET_END
                                                 : 0;
    c->read_committed = strcmp(conf_string(c, "isolation.level"), "read_committed") == 0;
    c->check_crcs = client_conf_bool(c->conf, SCOPE_CONSUMER, "check.crcs");
    c->max_poll_records = (int)conf_int(c, "max.poll.records");
    c->fetch_min_bytes = (int32_t)conf_int(c, "fetch.min.bytes");
    c->fetch_max_bytes = (int32_t)conf_int(c, "fetch.max.bytes");
    c->fetch_max_wait_ms = (int32_t)conf_int(c, "fetch.max.wait.ms");
    c->partition_max_bytes = (int32_t)conf_int(c, "max.partition.fetch.bytes");
    c->api_timeout_ms = conf_int(c, "default.api.timeout.ms");
    c->rack = conf_string(c, "client.rack");
}

static void consumer_free(kafka_consumer_t *c)
{
    while (!list_empty(&c->parts))
        cpart_unref(list_entry(list_pop(&c->parts), struct cpart, link));
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->lock);
    kafka_conf_free(c->conf);
    free(c);
}

kafka_consumer_t *kafka_consumer_new(const kafka_conf_t *conf, char *err, size_t err_n)
{
    kafka_consumer_t *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    pthread_mutex_init(&c->lock, NULL);
    client_cond_init(&c->news);
    list_init(&c->parts);
    c->conf = client_conf_copy(conf);
    if (!c->conf || client_conf_check(c->conf, SCOPE_CONSUMER, err, err_n) != KAFKA_OK) {
        consumer_free(c);
        return NULL;
    }
    read_settings(c);
    char made_id[64];
    snprintf(made_id, sizeof made_id, "consumer-%d", (int)getpid());
    const char *id = conf_string(c, "client.id");
    c->cluster = cluster_start(c->conf, SCOPE_CONSUMER, id && *id ? id : made_id, err, err_n);
    if (!c->cluster) {
        consumer_free(c);
        return NULL;
    }
    fetcher_init(c);
    return c;
}

void kafka_consumer_close(kafka_consumer_t *c)
{
    if (!c)
        return;
    cluster_call(c->cluster, fetcher_stop, c);
    cluster_stop(c->cluster);
    consumer_free(c);
}

kafka_err_t kafka_consumer_partition_count(kafka_consumer_t *c, const char *topic, int32_t *count)
{
    pthread_mutex_lock(&c->lock);
    bool woken = c->woken;
    c->woken = false;
    pthread_mutex_unlock(&c->lock);
    if (woken)
        return KAFKA_ERR_WAKEUP;
    kafka_err_t err = cluster_wait_topic(c->cluster, topic, -1, c->api_timeout_ms, count);
    if (err == KAFKA_ERR_WAKEUP) {
        pthread_mutex_lock(&c->lock);
        c->woken = false;
        pthread_mutex_unlock(&c->lock);
    }
    return err;
}

/* ---- assignment and positions ---- */

static struct cpart *find_part(struct list *parts, const char *topic, int32_t partition)
{
    list_each (it, parts) {
        struct cpart *p = list_entry(it, struct cpart, link);
        if (p->partition == partition && strcmp(p->topic, topic) == 0)
            return p;
    }
    return NULL;
}

static struct cpart *cpart_new(const char *topic, int32_t partition)
{
    struct cpart *p = calloc(1, sizeof *p);
    if (!p || !(p->topic = str_dup(str_of(topic)))) {
        free(p);
        return NULL;
    }
    list_init(&p->link);
    list_init(&p->queue);
    p->refs = 1;
    p->partition = partition;
    p->position = p->fetch_at = -1;
    p->epoch = -1;
    return p;
}

static void revoke_parts(struct list *parts)
{
    while (!list_empty(parts)) {
        struct cpart *p = list_entry(list_pop(parts), struct cpart, link);
        p->revoked = true;
        cpart_unref(p);
    }
}

kafka_err_t kafka_consumer_assign(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n)
{
    struct list next = LIST_INIT(next);
    kafka_err_t err = KAFKA_OK;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < n && err == KAFKA_OK; i++) {
        if (find_part(&next, tps[i].topic, tps[i].partition))
            continue;
        struct cpart *p = find_part(&c->parts, tps[i].topic, tps[i].partition);
        if (!p && !(p = cpart_new(tps[i].topic, tps[i].partition)))
            err = KAFKA_ERR_NO_MEMORY;
        if (p) {
            list_remove(&p->link);
            list_push_back(&next, &p->link);
        }
    }
    revoke_parts(&c->parts);
    list_splice(&c->parts, &next);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < n; i++)
        cluster_follow_topic(c->cluster, tps[i].topic);
    pthread_mutex_lock(&c->lock);
    c->error = KAFKA_OK;
    fetcher_wake(c);
    pthread_mutex_unlock(&c->lock);
    return err;
}

kafka_err_t kafka_consumer_seek(kafka_consumer_t *c, const char *topic, int32_t partition,
                                int64_t offset)
{
    if (offset < KAFKA_OFFSET_BEGINNING)
        return KAFKA_ERR_INVALID_ARG;
    pthread_mutex_lock(&c->lock);
    struct cpart *p = find_part(&c->parts, topic, partition);
    if (p) {
        p->generation++;
        p->attempts = 0;
        p->retry_at_ms = 0;
        cpart_drop_queue(p);
        p->state = offset >= 0 ? CPART_FETCH : CPART_RESET;
        p->position = p->fetch_at = offset >= 0 ? offset : -1;
        p->reset_to = offset;
        c->error = KAFKA_OK;
        fetcher_wake(c);
    }
    pthread_mutex_unlock(&c->lock);
    return p ? KAFKA_OK : KAFKA_ERR_STATE;
}

static kafka_err_t set_paused(kafka_consumer_t *c, const char *topic, int32_t partition,
                              bool paused)
{
    pthread_mutex_lock(&c->lock);
    struct cpart *p = find_part(&c->parts, topic, partition);
    if (p)
        p->paused = paused;
    fetcher_wake(c);
    pthread_mutex_unlock(&c->lock);
    return p ? KAFKA_OK : KAFKA_ERR_STATE;
}

kafka_err_t kafka_consumer_pause(kafka_consumer_t *c, const char *topic, int32_t partition)
{
    return set_paused(c, topic, partition, true);
}

kafka_err_t kafka_consumer_resume(kafka_consumer_t *c, const char *topic, int32_t partition)
{
    return set_paused(c, topic, partition, false);
}

kafka_err_t kafka_consumer_position(kafka_consumer_t *c, const char *topic, int32_t partition,
                                    int64_t timeout_ms, int64_t *offset)
{
    int64_t deadline = client_deadline(timeout_ms);
    kafka_err_t err = KAFKA_OK;
    pthread_mutex_lock(&c->lock);
    struct cpart *p = find_part(&c->parts, topic, partition);
    while (p && p->state != CPART_FETCH && err == KAFKA_OK) {
        err = c->error;
        if (err == KAFKA_OK && !client_cond_wait(&c->news, &c->lock, deadline))
            err = KAFKA_ERR_TIMED_OUT;
    }
    if (!p)
        err = KAFKA_ERR_STATE;
    else if (err == KAFKA_OK)
        *offset = p->position;
    pthread_mutex_unlock(&c->lock);
    return err;
}

/* ---- poll ---- */

void kafka_messages_free(kafka_messages_t *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->sources_n; i++)
        fetched_unref(m->sources[i]);
    free(m->sources);
    free(m->v);
    arena_free(&m->arena);
    free(m);
}

size_t kafka_messages_count(const kafka_messages_t *m)
{
    return m ? m->n : 0;
}

const kafka_message_t *kafka_messages_at(const kafka_messages_t *m, size_t i)
{
    return &m->v[i];
}

static kafka_messages_t *messages_new(int cap)
{
    kafka_messages_t *m = calloc(1, sizeof *m);
    if (m && !(m->v = calloc((size_t)cap, sizeof *m->v))) {
        free(m);
        return NULL;
    }
    if (m) {
        m->cap = (size_t)cap;
        arena_init(&m->arena, 0);
    }
    return m;
}

static bool add_source(kafka_messages_t *m, struct fetched *f)
{
    if (m->sources_n == m->sources_cap) {
        size_t cap = m->sources_cap ? 2 * m->sources_cap : 8;
        struct fetched **grown = realloc(m->sources, cap * sizeof *grown);
        if (!grown)
            return false;
        m->sources = grown;
        m->sources_cap = cap;
    }
    atomic_fetch_add(&f->refs, 1);
    m->sources[m->sources_n++] = f;
    return true;
}

static bool add_headers(kafka_messages_t *m, kafka_message_t *to, const struct record *r)
{
    if (r->headers_n <= 0)
        return true;
    kafka_header_t *h = arena_array(&m->arena, kafka_header_t, (size_t)r->headers_n);
    struct reader at = reader_of(r->headers.p, (size_t)r->headers.len);
    struct record_header one;
    size_t n = 0;
    if (!h)
        return false;
    while (n < (size_t)r->headers_n && record_header_next(&at, &one)) {
        struct str key = arena_str(&m->arena, one.key);
        if (!key.p)
            return false;
        h[n].key = key.p;
        h[n].value = one.value.len < 0 ? NULL : one.value.p;
        h[n++].value_len = one.value.len < 0 ? 0 : (size_t)one.value.len;
    }
    to->headers = h;
    to->headers_n = n;
    return true;
}

static bool add_message(kafka_messages_t *m, const char *topic, int32_t partition,
                        const struct batch *head, const struct record *r)
{
    kafka_message_t *to = &m->v[m->n];
    *to = (kafka_message_t){
        .topic = topic,
        .partition = partition,
        .offset = r->offset,
        .timestamp = r->timestamp,
        .timestamp_type = head->magic == 0 ? -1 : r->log_append_time,
        .leader_epoch = head->leader_epoch,
        .key = r->key.len < 0 ? NULL : (const void *)r->key.p,
        .key_len = r->key.len < 0 ? 0 : (size_t)r->key.len,
        .value = r->value.len < 0 ? NULL : (const void *)r->value.p,
        .value_len = r->value.len < 0 ? 0 : (size_t)r->value.len,
    };
    if (!add_headers(m, to, r))
        return false;
    m->n++;
    return true;
}

/* Takes records from the partition's queue into m, as many as fit. Lock held. */
static kafka_err_t take_from(kafka_consumer_t *c, struct cpart *p, kafka_messages_t *m)
{
    const char *topic = NULL;
    while (m->n < m->cap && !list_empty(&p->queue)) {
        struct fetched *f = list_entry(p->queue.next, struct fetched, link);
        struct record r;
        struct batch head;
        int rc = 1;
        if (!topic && !(topic = arena_str(&m->arena, str_of(p->topic)).p))
            return KAFKA_ERR_NO_MEMORY;
        if (!add_source(m, f))
            return KAFKA_ERR_NO_MEMORY;
        while (m->n < m->cap && (rc = fetched_next(f, c->check_crcs, &r, &head)) == 1) {
            if (!add_message(m, topic, p->partition, &head, &r))
                return KAFKA_ERR_NO_MEMORY;
            p->position = r.offset + 1;
        }
        if (rc == 1)
            return KAFKA_OK; /* full */
        if (rc < 0 && m->n > 0)
            return KAFKA_OK; /* what was read before the damage comes first; the next poll meets it
                                again */
        if (rc == 0)
            p->position = f->next_offset;
        list_remove(&f->link);
        p->queue_n--;
        fetched_unref(f);
        if (rc <
            0) { /* ask again from where the damage is: it may have been the way, not the disk */
            cpart_drop_queue(p);
            p->generation++;
            p->fetch_at = p->position;
            return rc > -200 ? -rc : rc;
        }
    }
    return KAFKA_OK;
}

static kafka_err_t take(kafka_consumer_t *c, kafka_messages_t *m)
{
    kafka_err_t err = KAFKA_OK;
    struct list *first = c->parts.next;
    for (struct list *it = first; it != &c->parts && m->n < m->cap && err == KAFKA_OK;
         it = it->next) {
        struct cpart *p = list_entry(it, struct cpart, link);
        if (!p->paused)
            err = take_from(c, p, m);
    }
    /* The partition served first goes last, so that each gets its turn under max.poll.records. */
    if (m->n > 0 && first != &c->parts) {
        list_remove(first);
        list_push_back(&c->parts, first);
    }
    return m->n > 0 ? KAFKA_OK : err;
}

kafka_err_t kafka_consumer_poll(kafka_consumer_t *c, int64_t timeout_ms, kafka_messages_t **out)
{
    int64_t deadline = client_deadline(timeout_ms);
    kafka_err_t err;
    *out = NULL;
    kafka_messages_t *m = messages_new(c->max_poll_records);
    if (!m)
        return KAFKA_ERR_NO_MEMORY;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        err = c->woken ? KAFKA_ERR_WAKEUP : take(c, m);
        c->woken = false;
        if (err == KAFKA_OK && m->n == 0) {
            err = c->error;
            c->error = KAFKA_OK;
        }
        if (err != KAFKA_OK || m->n > 0 || !client_cond_wait(&c->news, &c->lock, deadline))
            break;
    }
    fetcher_wake(c);
    pthread_mutex_unlock(&c->lock);
    if (err == KAFKA_OK && m->n > 0)
        *out = m;
    else
        kafka_messages_free(m);
    return err;
}

void kafka_consumer_wakeup(kafka_consumer_t *c)
{
    pthread_mutex_lock(&c->lock);
    c->woken = true;
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
    cluster_interrupt(c->cluster);
}

/* ---- ListOffsets ---- */

struct lookup {
    const kafka_topic_partition_t *tps;
    const int64_t *timestamps;
    int64_t *offsets, *found;
    kafka_err_t *errs;
    size_t n;
    size_t *chosen; /* indexes into tps of this request */
    size_t chosen_n;
};

static kafka_err_t keep_lookup(struct op *op, int version, const void *response)
{
    const struct list_offsets_response *m = response;
    struct lookup *l = op->arg;
    for (int32_t t = 0; t < m->topics.n; t++)
        for (int32_t k = 0; k < m->topics.v[t].partitions.n; k++) {
            const struct list_offsets_response_partition *r = &m->topics.v[t].partitions.v[k];
            for (size_t i = 0; i < l->chosen_n; i++) {
                size_t at = l->chosen[i];
                if (l->tps[at].partition != r->partition_index ||
                    !str_eqz(m->topics.v[t].name, l->tps[at].topic))
                    continue;
                l->errs[at] = r->error_code;
                l->offsets[at] = r->offset;
                if (l->found)
                    l->found[at] = r->timestamp;
            }
        }
    return KAFKA_OK;
}

static kafka_err_t ask_leader(kafka_consumer_t *c, struct lookup *l, int32_t leader,
                              int64_t deadline)
{
    struct arena a;
    struct list_offsets_request req;
    arena_init(&a, 0);
    list_offsets_request_init(&req);
    req.replica_id = -1;
    req.isolation_level = c->read_committed;
    req.topics.v = list_offsets_request_topic_new(&a, (int32_t)l->chosen_n);
    struct list_offsets_request_partition *parts =
        list_offsets_request_partition_new(&a, (int32_t)l->chosen_n);
    bool newest_needed = false;
    for (size_t i = 0; req.topics.v && parts && i < l->chosen_n; i++) {
        const kafka_topic_partition_t *tp = &l->tps[l->chosen[i]];
        struct list_offsets_request_topic *t =
            req.topics.n ? &req.topics.v[req.topics.n - 1] : NULL;
        if (!t || !str_eqz(t->name, tp->topic)) {
            t = &req.topics.v[req.topics.n++];
            t->name = str_of(tp->topic);
            t->partitions.v = &parts[i];
        }
        parts[i].partition_index = tp->partition;
        parts[i].timestamp = l->timestamps[l->chosen[i]];
        newest_needed |= parts[i].timestamp == -3;
        t->partitions.n++;
    }
    struct op op = {.node = leader,
                    .api_key = API_LIST_OFFSETS,
                    .min_version = newest_needed ? 7 : 1,
                    .max_version = -1,
                    .request = &req,
                    .handle = keep_lookup,
                    .arg = l};
    int64_t left = deadline == INT64_MAX ? -1 : deadline - client_now_ms();
    kafka_err_t err =
        req.topics.v && parts ? op_run(c->cluster, &op, left < -1 ? 0 : left) : KAFKA_ERR_NO_MEMORY;
    arena_free(&a);
    return err;
}

/* One round: every partition still without a result, leader by leader. */
static kafka_err_t lookup_round(kafka_consumer_t *c, struct lookup *l, bool *open, int64_t deadline)
{
    kafka_err_t err = KAFKA_OK;
    for (size_t i = 0; i < l->n && err == KAFKA_OK; i++) {
        struct leader_info leader, other;
        if (!open[i] ||
            !cluster_leader(c->cluster, l->tps[i].topic, l->tps[i].partition, &leader) ||
            leader.leader < 0)
            continue;
        l->chosen_n = 0;
        for (size_t k = i; k < l->n; k++)
            if (open[k] &&
                cluster_leader(c->cluster, l->tps[k].topic, l->tps[k].partition, &other) &&
                other.leader == leader.leader)
                l->chosen[l->chosen_n++] = k;
        for (size_t k = 0; k < l->chosen_n; k++)
            l->errs[l->chosen[k]] = KAFKA_ERR_BAD_RESPONSE;
        err = ask_leader(c, l, leader.leader, deadline);
        for (size_t k = 0; k < l->chosen_n; k++)
            open[l->chosen[k]] = false;
    }
    return err;
}

/* Partitions whose error heals are opened again; are there any? */
static bool reopen(struct lookup *l, bool *open)
{
    bool any = false;
    for (size_t i = 0; i < l->n; i++) {
        open[i] =
            kafka_err_is_retriable(l->errs[i]) && l->errs[i] != KERR_UNKNOWN_TOPIC_OR_PARTITION;
        any |= open[i];
    }
    return any;
}

kafka_err_t kafka_consumer_list_offsets(kafka_consumer_t *c, const kafka_topic_partition_t *tps,
                                        const int64_t *timestamps, size_t n, int64_t timeout_ms,
                                        int64_t *offsets, int64_t *found_timestamps,
                                        kafka_err_t *errs)
{
    int64_t deadline = client_deadline(timeout_ms);
    struct lookup l = {
        tps, timestamps, offsets, found_timestamps, errs, n, calloc(n + 1, sizeof(size_t)), 0};
    bool *open = calloc(n + 1, sizeof *open);
    kafka_err_t err = l.chosen && open ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
    for (size_t i = 0; i < n && err == KAFKA_OK; i++)
        cluster_follow_topic(c->cluster, tps[i].topic);
    for (size_t i = 0; i < n && err == KAFKA_OK; i++) {
        int32_t count;
        offsets[i] = -1;
        errs[i] = cluster_wait_topic(c->cluster, tps[i].topic, -1, timeout_ms, &count);
        if (errs[i] == KAFKA_OK)
            errs[i] = tps[i].partition < count ? KERR_LEADER_NOT_AVAILABLE
                                               : KERR_UNKNOWN_TOPIC_OR_PARTITION;
        open[i] = errs[i] == KERR_LEADER_NOT_AVAILABLE;
    }
    for (int attempt = 0; err == KAFKA_OK; attempt++) {
        err = lookup_round(c, &l, open, deadline);
        if (err != KAFKA_OK || !reopen(&l, open) || client_now_ms() >= deadline)
            break;
        cluster_refresh(c->cluster);
        pthread_mutex_lock(&c->lock);
        client_cond_wait(&c->news, &c->lock,
                         client_deadline(cluster_backoff_ms(c->cluster, attempt)));
        pthread_mutex_unlock(&c->lock);
    }
    free(l.chosen);
    free(open);
    return err;
}
