/* consumer_poll.c - what the fetcher queued, as messages. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "client/cluster_private.h"
#include "client/consumer_private.h"
#include "client/group.h"

struct kafka_messages {
    kafka_message_t *v;
    size_t n, cap;
    struct opened **sources; /* one reference each */
    size_t sources_n, sources_cap;
    struct arena arena; /* topic names, headers */
};

void kafka_messages_free(kafka_messages_t *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->sources_n; i++)
        opened_unref(m->sources[i]);
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
    if (m && !(m->v = malloc((size_t)cap * sizeof *m->v))) {
        free(m);
        return NULL;
    }
    if (m) {
        m->cap = (size_t)cap;
        arena_init(&m->arena, 0);
    }
    return m;
}

/* The batch that the next message points into stays as long as m. */
static bool add_source(kafka_messages_t *m, struct opened *o)
{
    if (m->sources_n > 0 && m->sources[m->sources_n - 1] == o)
        return true;
    if (m->sources_n == m->sources_cap) {
        size_t cap = m->sources_cap ? 2 * m->sources_cap : 8;
        struct opened **grown = realloc(m->sources, cap * sizeof *grown);
        if (!grown)
            return false;
        m->sources = grown;
        m->sources_cap = cap;
    }
    atomic_fetch_add(&o->refs, 1);
    m->sources[m->sources_n++] = o;
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

/* Ask again from the position: what failed may do so no more. */
static kafka_err_t start_over(struct cpart *p, kafka_err_t err)
{
    cpart_drop_queue(p);
    p->generation++;
    p->fetch_at = p->position;
    return err;
}

/* From one answer, as many as fit: 1: m is full, 0: the answer is worked off, or minus an error.
 * Lock held. */
static int take_some(kafka_consumer_t *c, struct cpart *p, struct fetched *f, const char *topic,
                     kafka_messages_t *m)
{
    struct record r;
    const struct batch *head;
    while (m->n < m->cap) {
        int rc = fetched_next(f, c->check_crcs, &r, &head);
        if (rc <= 0)
            return rc;
        if (!add_source(m, f->open) || !add_message(m, topic, p->partition, head, &r))
            return KAFKA_ERR_NO_MEMORY;
        p->position = r.offset + 1;
        p->position_epoch = head->leader_epoch;
    }
    return 1;
}

/* Takes records from the partition's queue into m. Lock held. */
static kafka_err_t take_from(kafka_consumer_t *c, struct cpart *p, kafka_messages_t *m)
{
    const char *topic = list_empty(&p->queue) ? "" : arena_str(&m->arena, str_of(p->topic)).p;
    if (!topic)
        return KAFKA_ERR_NO_MEMORY;
    while (m->n < m->cap && !list_empty(&p->queue)) {
        struct fetched *f = list_entry(p->queue.next, struct fetched, link);
        int rc = take_some(c, p, f, topic, m);
        if (rc == 1)
            return KAFKA_OK;
        if (rc < 0 && rc != KAFKA_ERR_NO_MEMORY && m->n > 0)
            return KAFKA_OK; /* what was read before the damage comes first; the next poll meets it
                                again */
        c->wants_more = true;
        if (rc < 0) /* it may have been the way, not the disk */
            return start_over(p, rc > -200 ? -rc : rc);
        p->position = f->next_offset;
        list_remove(&f->link);
        p->queue_n--;
        fetched_unref(f);
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
        if (!p->paused && p->state != CPART_VALIDATE)
            err = take_from(c, p, m);
    }
    /* The partition served first goes last, so that each gets its turn under max.poll.records. */
    if (m->n > 0 && first != &c->parts) {
        list_remove(first);
        list_push_back(&c->parts, first);
    }
    return m->n > 0 ? KAFKA_OK : err;
}

static bool anything_queued(kafka_consumer_t *c)
{
    list_each (it, &c->parts) {
        struct cpart *p = list_entry(it, struct cpart, link);
        if (!p->paused && p->state != CPART_VALIDATE && p->queue_n > 0)
            return true;
    }
    return false;
}

/* Records, or the error to tell, or neither (*out NULL). Lock held. */
static kafka_err_t take_news(kafka_consumer_t *c, kafka_messages_t **out)
{
    kafka_err_t err = KAFKA_OK;
    if (c->woken) {
        c->woken = false;
        return client_fail(KAFKA_ERR_WAKEUP, "kafka_consumer_wakeup was called");
    }
    if (c->group && c->group->preparing)
        return KAFKA_OK; /* what is about to be revoked is at rest */
    if (anything_queued(c)) {
        kafka_messages_t *m = messages_new(c->max_poll_records);
        err = m ? take(c, m) : KAFKA_ERR_NO_MEMORY;
        if (err == KAFKA_OK && m->n > 0) {
            *out = m;
            return KAFKA_OK;
        }
        kafka_messages_free(m);
    }
    if (err == KAFKA_OK) {
        err = c->error;
        c->error = KAFKA_OK;
        if (err != KAFKA_OK)
            client_fail(err, "%s", c->error_text);
    }
    return err;
}

/* Waits for news, until the group has something to do. false: the time is over. */
static bool wait_for_news(kafka_consumer_t *c, int64_t deadline_ms)
{
    int64_t due = group_due_ms(c);
    if (client_cond_wait(&c->news, &c->lock, due < deadline_ms ? due : deadline_ms))
        return true;
    return due < deadline_ms;
}

static kafka_err_t check_may_poll(kafka_consumer_t *c)
{
    if (c->in_callback)
        return client_fail(KAFKA_ERR_STATE, "poll cannot be called from a callback");
    if (c->mode == CONSUMER_NONE)
        return client_fail(KAFKA_ERR_STATE,
                           "poll: neither subscribed to topics nor assigned partitions");
    return KAFKA_OK;
}

static void set_in_poll(kafka_consumer_t *c, bool in)
{
    if (!c->group)
        return;
    c->group->in_poll = in;
    c->group->last_poll_ms = client_now_ms();
}

kafka_err_t kafka_consumer_poll(kafka_consumer_t *c, int64_t timeout_ms, kafka_messages_t **out)
{
    int64_t deadline = timeout_ms == 0 ? 0 : client_deadline(timeout_ms);
    *out = NULL;
    pthread_mutex_lock(&c->lock);
    kafka_err_t err = check_may_poll(c);
    set_in_poll(c, true);
    while (err == KAFKA_OK) {
        if (c->group)
            err = group_poll(c);
        if (err == KAFKA_OK)
            err = take_news(c, out);
        if (c->wants_more)
            fetcher_wake(c); /* before waiting: what is asked for now comes soonest */
        if (err != KAFKA_OK || *out || timeout_ms == 0 || !wait_for_news(c, deadline))
            break;
    }
    set_in_poll(c, false);
    pthread_mutex_unlock(&c->lock);
    const struct client_hooks *h = client_conf_hooks(c->conf);
    for (size_t i = 0; *out && i < h->consumer_n; i++)
        if (h->consumer[i].on_consume)
            h->consumer[i].on_consume(*out, h->consumer[i].arg);
    return err;
}
