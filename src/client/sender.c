/* sender.c - the producer's background work: which batches go now, to which broker, and what their
 * answers mean. */
#include <errno.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "client/producer_private.h"
#include "protocol/errors.h"
#include "protocol/msg/init_producer_id.h"
#include "protocol/msg/produce.h"

enum {
    LOOK_AGAIN_MS = 100
}; /* while a leader or connection is awaited without an event of its own */

struct produce_send { /* one Produce request under way */
    kafka_producer_t *p;
    struct node *node;
    struct pbatch **batches;
    int n, cap;
    size_t bytes;
    struct list link;
};

static void sender_run(kafka_producer_t *p);

/* ---- completion ---- */

static const char *record_message(const struct produce_response_partition_response *details,
                                  int32_t i)
{
    if (!details)
        return NULL;
    for (int32_t k = 0; k < details->record_errors.n; k++)
        if (details->record_errors.v[k].batch_index == i)
            return details->record_errors.v[k].batch_index_error_message.p;
    return NULL;
}

void sender_complete(kafka_producer_t *p, struct pbatch *b, kafka_err_t err, const char *message,
                     int64_t base_offset, int64_t append_time,
                     const struct produce_response_partition_response *details)
{
    char named[512];
    for (int32_t i = 0; i < b->thunks_n; i++) {
        struct thunk *t = &b->thunks[i];
        if (!t->cb)
            continue;
        kafka_delivery_t d = {.err = err,
                              .topic = b->queue->topic->name,
                              .partition = b->queue->partition,
                              .offset = -1,
                              .timestamp = append_time >= 0 ? append_time : t->timestamp};
        if (err == KAFKA_OK && base_offset >= 0)
            d.offset = base_offset + i;
        d.error_message = message ? message : kafka_err_text(err);
        if (err != KAFKA_OK && details && details->record_errors.n > 0) {
            const char *own = record_message(details, i);
            snprintf(named, sizeof named, "%s",
                     own ? own
                         : "The batch was refused because other records in it are not valid.");
            d.error_message = named;
        }
        t->cb(&d, t->arg);
    }
    pthread_mutex_lock(&p->lock);
    list_remove(&b->link);
    list_remove(&b->all_link);
    if (list_empty(&b->queue->waiting))
        list_remove(&b->queue->active_link);
    p->memory_used -= b->memory;
    pthread_cond_broadcast(&p->room);
    pthread_cond_broadcast(&p->progress);
    pthread_mutex_unlock(&p->lock);
    pbatch_free(b);
}

static bool expired(const kafka_producer_t *p, const struct pbatch *b, int64_t now)
{
    return now - b->created_ms >= p->delivery_timeout_ms;
}

/* Idempotence lost the thread: after what is in flight has come back, go on under a new epoch. Lock
 * held. */
static void want_new_epoch(kafka_producer_t *p)
{
    if (p->idempotence == IDEMPOTENCE_READY)
        p->idempotence = IDEMPOTENCE_DRAIN;
}

static void fail_overdue(kafka_producer_t *p, int64_t now, int64_t *wait_ms)
{
    struct list overdue = LIST_INIT(overdue);
    pthread_mutex_lock(&p->lock);
    list_each_safe (it, &p->active) {
        struct pqueue *q = list_entry(it, struct pqueue, active_link);
        while (!list_empty(&q->waiting)) {
            struct pbatch *b = list_entry(q->waiting.next, struct pbatch, link);
            if (!expired(p, b, now)) {
                int64_t left = b->created_ms + p->delivery_timeout_ms - now;
                *wait_ms = left < *wait_ms ? left : *wait_ms;
                break;
            }
            if (b->maybe_written)
                want_new_epoch(p);
            b->closed = true;
            list_remove(&b->link);
            list_push_back(&overdue, &b->link);
        }
        if (list_empty(&q->waiting))
            list_remove(&q->active_link);
    }
    pthread_mutex_unlock(&p->lock);
    while (!list_empty(&overdue)) {
        struct pbatch *b = list_entry(overdue.next, struct pbatch, link);
        sender_complete(p, b, KAFKA_ERR_TIMED_OUT, "delivery.timeout.ms is over.", -1, -1, NULL);
    }
}

/* ---- producer id ---- */

static void on_producer_id(void *arg, int status, int version, const void *response)
{
    kafka_producer_t *p = arg;
    const struct init_producer_id_response *r = response;
    kafka_err_t err = status == 0 ? r->error_code : client_err_of_status(status);
    if (p->idempotence != IDEMPOTENCE_ASKING)
        return;
    if (err == KAFKA_OK) {
        p->producer_id = r->producer_id;
        p->producer_epoch = r->producer_epoch;
        p->idempotence = IDEMPOTENCE_READY;
        p->id_attempts = 0;
    } else if (err == KAFKA_ERR_UNSUPPORTED) {
        client_log(2, "the broker is too old for idempotent producers: going on without");
        p->idempotence = IDEMPOTENCE_OFF;
    } else if (kafka_err_is_retriable(err)) {
        p->idempotence = IDEMPOTENCE_NEEDS_ID;
        executor_timer_start(cluster_executor(p->cluster), &p->timer,
                             cluster_backoff_ms(p->cluster, p->id_attempts++));
        return;
    } else {
        client_log(3, "no producer id: %s", kafka_err_text(err));
        pthread_mutex_lock(&p->lock);
        p->fatal = err;
        pthread_mutex_unlock(&p->lock);
        sender_fail_all(p, err);
        return;
    }
    sender_run(p);
}

/* true when batches may go out now. */
static bool have_producer_id(kafka_producer_t *p, int64_t *wait_ms)
{
    if (p->idempotence == IDEMPOTENCE_OFF || p->idempotence == IDEMPOTENCE_READY)
        return true;
    if (p->idempotence != IDEMPOTENCE_NEEDS_ID)
        return false;
    struct node *n = cluster_node(p->cluster, NODE_ANY);
    int64_t wait;
    if (!n || !node_ready(n, &wait)) {
        *wait_ms = *wait_ms < LOOK_AGAIN_MS ? *wait_ms : LOOK_AGAIN_MS;
        return false;
    }
    struct init_producer_id_request req;
    init_producer_id_request_init(&req);
    req.transactional_id = STR_NULL;
    req.transaction_timeout_ms = INT32_MAX;
    p->idempotence = IDEMPOTENCE_ASKING;
    node_send(n, API_INIT_PRODUCER_ID, -1, -1, &req, cluster_request_timeout(p->cluster), true,
              on_producer_id, p);
    return false;
}

/* Nothing is in flight: all sequences start again at 0 under the next epoch. Lock held. */
static void begin_new_epoch(kafka_producer_t *p)
{
    for (struct hnode *n = hmap_first(&p->topics); n; n = hmap_next(&p->topics, n)) {
        struct ptopic *t = container_of(n, struct ptopic, hnode);
        for (int32_t i = 0; i < t->queues_n; i++) {
            struct pqueue *q = t->queues[i];
            q->next_sequence = 0;
            q->retrying = false;
            list_each (it, &q->waiting)
                list_entry(it, struct pbatch, link)->has_sequence = false;
        }
    }
    p->idempotence = p->producer_epoch == INT16_MAX ? IDEMPOTENCE_NEEDS_ID : IDEMPOTENCE_READY;
    p->producer_epoch++;
}

/* ---- answers ---- */

static bool leader_is_stale(kafka_err_t err)
{
    return err == KERR_NOT_LEADER_OR_FOLLOWER || err == KERR_LEADER_NOT_AVAILABLE ||
           err == KERR_FENCED_LEADER_EPOCH || err == KERR_UNKNOWN_TOPIC_OR_PARTITION ||
           err == KERR_KAFKA_STORAGE_ERROR || err == KERR_UNKNOWN_TOPIC_ID ||
           err == KERR_REPLICA_NOT_AVAILABLE || err == KAFKA_ERR_TRANSPORT ||
           err == KAFKA_ERR_TIMED_OUT;
}

/* Only with idempotence: answers that a batch ahead of this one explains, so that sending again
 * will heal. */
static bool sequence_error(kafka_err_t err)
{
    return err == KERR_OUT_OF_ORDER_SEQUENCE_NUMBER || err == KERR_UNKNOWN_PRODUCER_ID;
}

static void send_again(kafka_producer_t *p, struct pbatch *b, kafka_err_t err)
{
    pthread_mutex_lock(&p->lock);
    b->maybe_written |= err == KAFKA_ERR_TRANSPORT || err == KAFKA_ERR_TIMED_OUT;
    b->queue->retrying = true;
    accumulator_requeue(p, b);
    if (err == KERR_MESSAGE_TOO_LARGE && accumulator_split(p, b)) {
        pthread_mutex_unlock(&p->lock);
        return;
    }
    b->retry_at_ms = executor_now_ms(cluster_executor(p->cluster)) +
                     cluster_backoff_ms(p->cluster, b->attempts++);
    /* A sequence error whose cause is not a batch in flight can only be left behind with a new
     * epoch. */
    if (sequence_error(err) && list_empty(&b->queue->in_flight))
        want_new_epoch(p);
    pthread_mutex_unlock(&p->lock);
    if (leader_is_stale(err))
        cluster_refresh(p->cluster);
}

static bool worth_sending_again(kafka_producer_t *p, struct pbatch *b, kafka_err_t err)
{
    if (p->closing && p->fatal)
        return false;
    if (err == KERR_MESSAGE_TOO_LARGE)
        return b->thunks_n > 1 && b->bytes.len > 0;
    if (expired(p, b, executor_now_ms(cluster_executor(p->cluster))) || b->attempts >= p->retries)
        return false;
    return kafka_err_is_retriable(err) || (b->has_sequence && sequence_error(err));
}

static void settle(kafka_producer_t *p, struct pbatch *b, kafka_err_t err,
                   const struct produce_response_partition_response *r)
{
    if (err == KERR_DUPLICATE_SEQUENCE_NUMBER) {
        sender_complete(p, b, KAFKA_OK, NULL, -1, -1, NULL);
        return;
    }
    if (err == KAFKA_OK) {
        sender_complete(p, b, KAFKA_OK, NULL, r ? r->base_offset : -1,
                        r ? r->log_append_time_ms : -1, NULL);
        return;
    }
    if (worth_sending_again(p, b, err)) {
        send_again(p, b, err);
        return;
    }
    char message[512];
    const char *text = NULL;
    if (r && r->error_message.len > 0) {
        snprintf(message, sizeof message, "%.*s", STR_ARG(r->error_message));
        text = message;
    }
    pthread_mutex_lock(&p->lock);
    if (b->has_sequence)
        want_new_epoch(p);
    pthread_mutex_unlock(&p->lock);
    sender_complete(p, b, err, text, -1, -1, r);
}

static const struct produce_response_partition_response *
find_result(const struct produce_response *m, const struct pbatch *b)
{
    for (int32_t i = 0; m && i < m->responses.n; i++) {
        if (!str_eqz(m->responses.v[i].name, b->queue->topic->name))
            continue;
        for (int32_t k = 0; k < m->responses.v[i].partition_responses.n; k++)
            if (m->responses.v[i].partition_responses.v[k].index == b->queue->partition)
                return &m->responses.v[i].partition_responses.v[k];
    }
    return NULL;
}

static void send_free(struct produce_send *s)
{
    free(s->batches);
    free(s);
}

static void on_produced(void *arg, int status, int version, const void *response)
{
    struct produce_send *s = arg;
    kafka_producer_t *p = s->p;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < s->n; i++)
        list_remove(&s->batches[i]->link); /* no longer in flight */
    p->in_flight_total--;
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < s->n; i++) {
        const struct produce_response_partition_response *r = find_result(response, s->batches[i]);
        kafka_err_t err = client_err_of_status(status);
        if (status == 0 && p->acks != 0)
            err = r ? r->error_code : KAFKA_ERR_BAD_RESPONSE;
        settle(p, s->batches[i], err, r);
    }
    send_free(s);
    sender_run(p);
}

/* ---- requests ---- */

static struct produce_send *send_for(kafka_producer_t *p, struct list *sends, struct node *n)
{
    list_each (it, sends) {
        struct produce_send *s = list_entry(it, struct produce_send, link);
        if (s->node == n)
            return s;
    }
    struct produce_send *s = calloc(1, sizeof *s);
    if (s) {
        s->p = p;
        s->node = n;
        list_push_back(sends, &s->link);
    }
    return s;
}

static bool send_add(struct produce_send *s, struct pbatch *b)
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
    s->bytes += b->bytes.len ? b->bytes.len : b->estimate;
    return true;
}

/* Takes the queue's first batch for sending. Lock held. */
static void take_batch(kafka_producer_t *p, struct pqueue *q, struct pbatch *b)
{
    b->closed = true;
    list_remove(&b->link);
    if (list_empty(&q->in_flight))
        q->retrying = false;
    list_push_back(&q->in_flight, &b->link);
    list_remove(&q->active_link);
    if (!list_empty(&q->waiting))
        list_push_back(&p->active,
                       &q->active_link); /* behind the others: fairness under max.request.size */
    if (p->idempotence == IDEMPOTENCE_READY && !b->has_sequence) {
        b->has_sequence = true;
        b->producer_id = p->producer_id;
        b->producer_epoch = p->producer_epoch;
        b->sequence = q->next_sequence;
        q->next_sequence = sequence_add(q->next_sequence, b->thunks_n);
    }
}

/* One request per broker from what is ready now. Lock held. */
static void collect(kafka_producer_t *p, int64_t now, struct list *sends, int64_t *wait_ms)
{
    bool unknown_leader = false;
    list_each_safe (it, &p->active) {
        struct pqueue *q = list_entry(it, struct pqueue, active_link);
        struct leader_info leader;
        int64_t wait;
        if (!accumulator_ready(p, q, now, wait_ms))
            continue;
        struct node *n = NULL;
        if (cluster_leader(p->cluster, q->topic->name, q->partition, &leader) && leader.leader >= 0)
            n = cluster_node(p->cluster, leader.leader);
        if (!n || !node_ready(n, &wait)) {
            unknown_leader |= !n;
            *wait_ms = *wait_ms < LOOK_AGAIN_MS ? *wait_ms : LOOK_AGAIN_MS;
            continue;
        }
        if (node_in_flight(n) >= p->max_in_flight)
            continue; /* its next answer runs us again */
        struct pbatch *b = list_entry(q->waiting.next, struct pbatch, link);
        struct produce_send *s = send_for(p, sends, n);
        size_t size = b->bytes.len ? b->bytes.len : b->estimate;
        if (!s || (s->n > 0 && s->bytes + size > p->max_request_size)) {
            *wait_ms = 0;
            continue;
        }
        if (send_add(s, b))
            take_batch(p, q, b);
    }
    if (unknown_leader)
        cluster_refresh(p->cluster);
}

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

/* The request's arrays, in the arena; batches of the same topic under one entry. */
static bool fill_request(struct produce_send *s, struct arena *a, struct produce_request *req)
{
    produce_request_init(req);
    req->transactional_id = STR_NULL;
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

/* Versions below 3 carry old message formats, which this producer does not write. */
static void send_off(struct produce_send *s)
{
    kafka_producer_t *p = s->p;
    struct arena a;
    struct produce_request req;
    bool ok = true;
    arena_init(&a, 0);
    for (int i = 0; i < s->n && ok; i++)
        ok = finish_batch(s->batches[i]);
    pthread_mutex_lock(&p->lock);
    p->in_flight_total++;
    pthread_mutex_unlock(&p->lock);
    if (ok && fill_request(s, &a, &req))
        node_send(s->node, API_PRODUCE, p->batch_options.codec == CODEC_ZSTD ? 7 : 3, -1, &req,
                  cluster_request_timeout(p->cluster), p->acks != 0, on_produced, s);
    else
        on_produced(s, -ENOMEM, 0, NULL);
    arena_free(&a);
}

static void sender_run(kafka_producer_t *p)
{
    int64_t now = executor_now_ms(cluster_executor(p->cluster)), wait = INT64_MAX;
    struct list sends = LIST_INIT(sends);
    fail_overdue(p, now, &wait);
    pthread_mutex_lock(&p->lock);
    if (p->idempotence == IDEMPOTENCE_DRAIN && p->in_flight_total == 0)
        begin_new_epoch(p);
    bool work = !list_empty(&p->active);
    pthread_mutex_unlock(&p->lock);
    if (work && have_producer_id(p, &wait)) {
        pthread_mutex_lock(&p->lock);
        collect(p, now, &sends, &wait);
        pthread_mutex_unlock(&p->lock);
    }
    bool sent = !list_empty(&sends);
    while (!list_empty(&sends)) {
        struct produce_send *s = list_entry(list_pop(&sends), struct produce_send, link);
        if (s->n > 0)
            send_off(s);
        else
            send_free(s);
    }
    if (wait == 0 && !sent)
        wait = LOOK_AGAIN_MS;
    if (wait != INT64_MAX)
        executor_timer_start(cluster_executor(p->cluster), &p->timer, wait);
}

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
    sender_run(arg);
}

void sender_init(kafka_producer_t *p)
{
    task_init(&p->wake_task, on_wake);
    timer_init(&p->timer, on_timer);
    cluster_on_metadata(p->cluster, on_metadata, p);
}

void sender_wake(kafka_producer_t *p)
{
    if (p->wake_posted)
        return;
    p->wake_posted = true;
    executor_post(cluster_executor(p->cluster), &p->wake_task);
}

void sender_fail_all(kafka_producer_t *p, kafka_err_t err)
{
    struct list left = LIST_INIT(left);
    pthread_mutex_lock(&p->lock);
    list_each_safe (it, &p->active) {
        struct pqueue *q = list_entry(it, struct pqueue, active_link);
        list_each (b, &q->waiting)
            list_entry(b, struct pbatch, link)->closed = true;
        list_splice(&left, &q->waiting);
        list_remove(&q->active_link);
    }
    pthread_mutex_unlock(&p->lock);
    while (!list_empty(&left))
        sender_complete(p, list_entry(left.next, struct pbatch, link), err, NULL, -1, -1, NULL);
}
