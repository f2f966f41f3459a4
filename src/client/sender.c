/* sender.c - the producer's requests: which batches go now, and to which broker. */
#include <errno.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "client/txn.h"
#include "protocol/errors.h"
#include "protocol/msg/produce.h"

enum { LOOK_AGAIN_MS = 100 }; /* while a connection is awaited without an event of its own */

struct produce_send { /* one Produce request under way */
    kafka_producer_t *p;
    struct pbatch **batches;
    int n, cap;
    size_t bytes;
};

static void send_free(struct produce_send *s)
{
    free(s->batches);
    free(s);
}

static bool send_add(struct produce_send *s, struct pbatch *b, size_t size)
{
    if (s->n == s->cap) {
        int cap = s->cap ? 2 * s->cap : 8;
        struct pbatch **grown = realloc(s->batches, (size_t)cap * sizeof *grown);
        if (!grown)
            return false;
        s->batches = grown;
        s->cap = cap;
    }
    s->batches[s->n++] = b;
    s->bytes += size;
    return true;
}

/* ---- answers ---- */

static void take_answer(struct produce_send *s, int status, const void *response)
{
    kafka_producer_t *p = s->p;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < s->n; i++) {
        struct pbatch *b = s->batches[i];
        list_remove(&b->link);
        b->in_flight = false;
    }
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < s->n; i++)
        outcome_settle(p, s->batches[i], status, response);
    send_free(s);
}

static void on_produced(void *arg, int status, int version, const void *response)
{
    struct produce_send *s = arg;
    kafka_producer_t *p = s->p;
    take_answer(s, status, response);
    sender_run(p);
}

/* ---- requests ---- */

/* Writes producer id, epoch and sequence into a finished batch (a retry under a new epoch). */
static void stamp(struct pbatch *b)
{
    uint8_t *p = b->bytes.p;
    put_be64(p + BATCH_AT_PRODUCER_ID, (uint64_t)b->producer_id);
    put_be16(p + BATCH_AT_PRODUCER_EPOCH, (uint16_t)b->producer_epoch);
    put_be32(p + BATCH_AT_BASE_SEQUENCE, (uint32_t)b->sequence);
    put_be32(p + BATCH_AT_CRC, crc32c(p + BATCH_AT_ATTRIBUTES, b->bytes.len - BATCH_AT_ATTRIBUTES));
}

static bool finish_batch(struct pbatch *b)
{
    if (!b->builder) {
        if (b->has_sequence)
            stamp(b);
        return true;
    }
    if (b->has_sequence)
        batch_builder_set_producer(b->builder, b->producer_id, b->producer_epoch, b->sequence);
    if (batch_builder_finish(b->builder, &b->bytes) < 0)
        return false;
    batch_builder_free(b->builder);
    b->builder = NULL;
    return true;
}

/* The request's arrays, in the arena; batches of the same topic under one entry. They lie in the
 * order taken, so one topic's are mostly neighbours. */
static bool fill_request(struct produce_send *s, struct arena *a, struct produce_request *req)
{
    produce_request_init(req);
    req->transactional_id = s->p->txn ? str_of(s->p->txn->id) : STR_NULL;
    req->acks = s->p->acks;
    req->timeout_ms = (int32_t)cluster_request_timeout(s->p->cluster);
    req->topic_data.v = arena_calloc(a, (size_t)s->n, sizeof *req->topic_data.v);
    bool *taken = arena_calloc(a, (size_t)s->n, sizeof *taken);
    if (!req->topic_data.v || !taken)
        return false;
    for (int i = 0; i < s->n; i++) {
        if (taken[i])
            continue;
        struct produce_request_topic_data *t = &req->topic_data.v[req->topic_data.n++];
        t->name = str_of(s->batches[i]->queue->topic->name);
        t->partition_data.v = arena_calloc(a, (size_t)(s->n - i), sizeof *t->partition_data.v);
        if (!t->partition_data.v)
            return false;
        for (int k = i; k < s->n; k++) {
            struct pbatch *b = s->batches[k];
            if (taken[k] || b->queue->topic != s->batches[i]->queue->topic)
                continue;
            taken[k] = true;
            t->partition_data.v[t->partition_data.n++] = (struct produce_request_partition_data){
                .index = b->queue->partition,
                .records = {b->bytes.p, (int32_t)b->bytes.len, NULL, 0}};
        }
    }
    return true;
}

/* Of the answer: not longer than the batches may live. */
static int64_t answer_timeout(const struct produce_send *s)
{
    int64_t now = executor_now_ms(cluster_executor(s->p->cluster));
    int64_t timeout = cluster_request_timeout(s->p->cluster);
    for (int i = 0; i < s->n; i++) {
        int64_t left = s->batches[i]->created_ms + s->p->delivery_timeout_ms - now;
        timeout = left < timeout ? left : timeout;
    }
    return timeout > 0 ? timeout : 1;
}

/* Versions below 3 carry old message formats, which this producer does not write. 0 or -errno. */
static int send_off(struct produce_send *s, struct node *n)
{
    kafka_producer_t *p = s->p;
    struct arena a;
    struct produce_request req;
    int rc = 0;
    arena_init(&a, 0);
    for (int i = 0; i < s->n && rc == 0; i++)
        rc = finish_batch(s->batches[i]) ? 0 : -ENOMEM;
    if (rc == 0 && !fill_request(s, &a, &req))
        rc = -ENOMEM;
    if (rc == 0)
        rc = node_send(n, API_PRODUCE, p->batch_options.codec == CODEC_ZSTD ? 7 : 3, -1, &req,
                       answer_timeout(s), p->acks != 0, on_produced, s);
    arena_free(&a);
    return rc;
}

/* ---- choosing ---- */

/* Takes the queue's first batch for sending. Lock held. */
static void take_batch(kafka_producer_t *p, struct pqueue *q, struct pbatch *b)
{
    b->closed = true;
    b->in_flight = true;
    q->sent_to = q->leader;
    list_remove(&b->link);
    q->waiting_n--;
    idempotence_number(p, b);
    list_push_back(&q->in_flight, &b->link);
    queue_place(p, q);
}

/* One request from what is ready: of each partition the first batch, up to max.request.size. NULL:
 * nothing, or no memory. */
static struct produce_send *collect(kafka_producer_t *p, struct pleader *l)
{
    struct list queues = LIST_INIT(queues);
    struct produce_send *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->p = p;
    pthread_mutex_lock(&p->lock);
    list_splice(&queues, &l->ready);
    while (!list_empty(&queues)) {
        struct pqueue *q = list_entry(queues.next, struct pqueue, link);
        struct pbatch *b = list_entry(q->waiting.next, struct pbatch, link);
        size_t size = b->bytes.len ? b->bytes.len : b->estimate;
        if ((s->n > 0 && s->bytes + size > p->max_request_size) || !send_add(s, b, size))
            break;
        take_batch(p, q, b);
    }
    /* Those left over keep their turn: before the ones that were served. */
    list_splice(&queues, &l->ready);
    list_splice(&l->ready, &queues);
    pthread_mutex_unlock(&p->lock);
    if (s->n > 0)
        return s;
    send_free(s);
    return NULL;
}

static void shrink(int64_t *wait_ms, int64_t to)
{
    if (to < *wait_ms)
        *wait_ms = to;
}

static void serve_leader(kafka_producer_t *p, struct pleader *l, int64_t *wait_ms)
{
    int64_t wait;
    struct node *n = l->id >= 0 ? cluster_node(p->cluster, l->id) : NULL;
    if (!n) {
        cluster_refresh(p->cluster); /* what it finds runs us again */
        return;
    }
    while (node_in_flight(n) < p->max_in_flight) { /* else its next answer runs us again */
        if (!node_ready(n, &wait)) {
            shrink(wait_ms, wait > 0 ? wait : LOOK_AGAIN_MS);
            return;
        }
        struct produce_send *s = collect(p, l);
        if (!s)
            return;
        int rc = send_off(s, n);
        if (rc < 0) {
            take_answer(s, rc, NULL);
            shrink(wait_ms, LOOK_AGAIN_MS);
            return;
        }
    }
}

/* Leaders that have something ready. A leader stays as long as the producer. */
static bool anything_ready(kafka_producer_t *p, struct pleader *l, int64_t now, int64_t *wait_ms)
{
    pthread_mutex_lock(&p->lock);
    leader_wake_due(p, l, now, wait_ms);
    bool any = !list_empty(&l->ready);
    pthread_mutex_unlock(&p->lock);
    return any;
}

static struct list *next_leader(kafka_producer_t *p, struct list *at)
{
    pthread_mutex_lock(&p->lock);
    struct list *next = at->next;
    pthread_mutex_unlock(&p->lock);
    return next;
}

void sender_run(kafka_producer_t *p)
{
    int64_t now = executor_now_ms(cluster_executor(p->cluster)), wait = INT64_MAX;
    if (p->stopped)
        return;
    outcome_fail_overdue(p, now, &wait);
    if (p->txn)
        txn_run(p->txn, &wait);
    for (struct list *it = next_leader(p, &p->leaders); it != &p->leaders;
         it = next_leader(p, it)) {
        struct pleader *l = list_entry(it, struct pleader, link);
        if (anything_ready(p, l, now, &wait) && idempotence_ready(p, &wait))
            serve_leader(p, l, &wait);
    }
    if (wait != INT64_MAX)
        executor_timer_start(cluster_executor(p->cluster), &p->timer, wait > 0 ? wait : 0);
}

/* ---- events ---- */

static void on_timer(struct timer *t)
{
    sender_run(container_of(t, kafka_producer_t, timer));
}

static void on_wake(struct task *t)
{
    kafka_producer_t *p = container_of(t, kafka_producer_t, wake_task);
    pthread_mutex_lock(&p->lock);
    p->wake_posted = false;
    pthread_mutex_unlock(&p->lock);
    sender_run(p);
}

static void on_metadata(void *arg)
{
    producer_take_metadata(arg);
    sender_run(arg);
}

void sender_init(kafka_producer_t *p)
{
    task_init(&p->wake_task, on_wake);
    timer_init(&p->timer, on_timer);
    cluster_on_metadata(p->cluster, on_metadata, p);
}

void sender_stop(kafka_producer_t *p)
{
    p->stopped = true;
    executor_timer_stop(cluster_executor(p->cluster), &p->timer);
    cluster_on_metadata(p->cluster, NULL, NULL);
}

void sender_wake(kafka_producer_t *p)
{
    if (p->wake_posted)
        return;
    p->wake_posted = true;
    executor_post(cluster_executor(p->cluster), &p->wake_task);
}
