/* outcome.c - what becomes of batches: done, sent again, or failed. Their end is in delivery.c. */
#include <stdio.h>

#include "client/txn.h"
#include "protocol/errors.h"
#include "protocol/msg/produce.h"

/* ---- batches that are given up ---- */

static bool expired(const kafka_producer_t *p, const struct pbatch *b, int64_t now_ms)
{
    return now_ms - b->created_ms >= p->delivery_timeout_ms;
}

/* Off what waits, which goes on without it, onto the list of those to be told: until that is done,
 * newer ones wait for it. Lock held. */
static void give_up(kafka_producer_t *p, struct pbatch *b, struct list *to_tell)
{
    struct pqueue *q = b->queue;
    b->closed = true;
    list_remove(&b->link);
    list_push_back(&q->given_up, &b->link);
    list_push_back(to_tell, &b->end_link);
    q->waiting_n--;
    if (b->has_sequence)
        idempotence_lost(p, q); /* its number stays empty, or was written: nobody knows */
    idempotence_done(b);
    queue_place(p, q);
}

static void complete_overdue(kafka_producer_t *p, struct pbatch *b)
{
    char text[900], why[500];
    snprintf(text, sizeof text,
             "topic %s, partition %d: not delivered within delivery.timeout.ms=%lld%s",
             b->queue->topic->name, b->queue->partition, (long long)p->delivery_timeout_ms,
             cluster_why(p->cluster, why, sizeof why));
    delivery_end(p, b, &(struct outcome){KAFKA_ERR_TIMED_OUT, text, -1, -1, NULL});
}

/* Nobody knows whether the broker took the batch. */
static bool is_unclear(kafka_err_t err)
{
    return err == KAFKA_ERR_TRANSPORT || err == KAFKA_ERR_TIMED_OUT ||
           err == KAFKA_ERR_BAD_RESPONSE;
}

/* What a batch's failure means for the count, and for its transaction. Lock held. */
static void count_failure(kafka_producer_t *p, struct pbatch *b, kafka_err_t err)
{
    if (p->txn)
        txn_batch_failed(p->txn, b, err, is_unclear(err) || kafka_err_is_retriable(err));
    else if (b->has_sequence)
        idempotence_lost(p, b->queue);
}

/* The oldest batches come first; those in flight have their request's own limit. */
void outcome_fail_overdue(kafka_producer_t *p, int64_t now_ms, int64_t *wait_ms)
{
    struct list overdue = LIST_INIT(overdue);
    pthread_mutex_lock(&p->lock);
    list_each_safe (it, &p->incomplete) {
        struct pbatch *b = list_entry(it, struct pbatch, all_link);
        if (!expired(p, b, now_ms)) {
            int64_t left = b->created_ms + p->delivery_timeout_ms - now_ms;
            *wait_ms = left < *wait_ms ? left : *wait_ms;
            break;
        }
        if (b->in_flight || b->settled)
            continue;
        if (p->txn)
            txn_batch_failed(p->txn, b, KAFKA_ERR_TIMED_OUT, true);
        give_up(p, b, &overdue);
    }
    pthread_mutex_unlock(&p->lock);
    while (!list_empty(&overdue))
        complete_overdue(p, list_entry(list_pop(&overdue), struct pbatch, end_link));
}

static void fail_waiting(kafka_producer_t *p, kafka_err_t err, bool all)
{
    struct list left = LIST_INIT(left);
    pthread_mutex_lock(&p->lock);
    list_each (it, &p->incomplete) {
        struct pbatch *b = list_entry(it, struct pbatch, all_link);
        if (b->in_flight || b->settled || !(all || txn_gives_up(p->txn, b)))
            continue;
        give_up(p, b, &left);
    }
    pthread_mutex_unlock(&p->lock);
    while (!list_empty(&left))
        delivery_end(p, list_entry(list_pop(&left), struct pbatch, end_link),
                     &(struct outcome){err, NULL, -1, -1, NULL});
}

void outcome_fail_all(kafka_producer_t *p, kafka_err_t err)
{
    fail_waiting(p, err, true);
}

void outcome_fail_lost(kafka_producer_t *p, kafka_err_t err)
{
    fail_waiting(p, err, false);
}

/* ---- answers ---- */

/* Whoever says so does not lead the partition (any more), or cannot: metadata is out of date. */
static bool leader_is_stale(kafka_err_t err)
{
    return err == KERR_NOT_LEADER_OR_FOLLOWER || err == KERR_LEADER_NOT_AVAILABLE ||
           err == KERR_FENCED_LEADER_EPOCH || err == KERR_UNKNOWN_TOPIC_OR_PARTITION ||
           err == KERR_KAFKA_STORAGE_ERROR || err == KERR_UNKNOWN_TOPIC_ID ||
           err == KERR_REPLICA_NOT_AVAILABLE || err == KERR_LISTENER_NOT_FOUND ||
           err == KERR_NETWORK_EXCEPTION || err == KAFKA_ERR_TRANSPORT ||
           err == KAFKA_ERR_TIMED_OUT;
}

/* With idempotence: the broker's count is another than ours. */
static bool is_count_error(kafka_err_t err)
{
    return err == KERR_OUT_OF_ORDER_SEQUENCE_NUMBER || err == KERR_UNKNOWN_PRODUCER_ID;
}

static void send_again(kafka_producer_t *p, struct pbatch *b, kafka_err_t err)
{
    struct pqueue *q = b->queue;
    pthread_mutex_lock(&p->lock);
    q->retrying = true;
    accumulator_requeue(p, b);
    bool split = err == KERR_MESSAGE_TOO_LARGE && accumulator_split(p, b);
    if (!split) {
        b->retry_at_ms = executor_now_ms(cluster_executor(p->cluster)) +
                         cluster_backoff_ms(p->cluster, b->attempts++);
        /* A batch ahead of it that has not been written explains the error, and heals it. */
        bool first = q->waiting.next == &b->link && list_empty(&q->in_flight);
        if (is_count_error(err) && first && !p->txn) /* else see count_heals */
            idempotence_lost(p, q);
    }
    queue_place(p, q);
    pthread_mutex_unlock(&p->lock);
}

/* In a transaction no record may have been lost: a count error heals when an older batch has no
 * outcome yet, or when the broker has forgotten the count together with all records: then it begins
 * anew. Lock held. */
static bool count_heals(const struct pbatch *b, kafka_err_t err,
                        const struct produce_response_partition_response *r)
{
    struct pqueue *q = b->queue;
    if (delivery_has_older(b))
        return true;
    if (err != KERR_UNKNOWN_PRODUCER_ID || !r)
        return false;
    if (r->log_start_offset < 0)
        return true; /* not told: the next answer may */
    q->lost_count = q->last_offset < r->log_start_offset;
    return q->lost_count;
}

static bool txn_allows(kafka_producer_t *p, const struct pbatch *b, kafka_err_t err,
                       const struct produce_response_partition_response *r)
{
    pthread_mutex_lock(&p->lock);
    bool may = !txn_gives_up(p->txn, b) && (!is_count_error(err) || count_heals(b, err, r));
    pthread_mutex_unlock(&p->lock);
    return may;
}

static bool worth_sending_again(kafka_producer_t *p, const struct pbatch *b, kafka_err_t err,
                                const struct produce_response_partition_response *r)
{
    if (p->stopped || (p->txn && !txn_allows(p, b, err, r)))
        return false;
    if (err == KERR_MESSAGE_TOO_LARGE)
        return b->thunks_n > 1 && b->bytes.len > 0;
    if (b->attempts >= p->retries || expired(p, b, executor_now_ms(cluster_executor(p->cluster))))
        return false;
    return kafka_err_is_retriable(err) || is_unclear(err) ||
           (b->has_sequence && is_count_error(err));
}

static void fail(kafka_producer_t *p, struct pbatch *b, kafka_err_t err,
                 const struct produce_response_partition_response *r)
{
    char said[512];
    bool has_words = r && r->error_message.len > 0;
    if (has_words)
        snprintf(said, sizeof said, "%.*s", STR_ARG(r->error_message));
    pthread_mutex_lock(&p->lock);
    count_failure(p, b, err);
    pthread_mutex_unlock(&p->lock);
    delivery_end(
        p, b,
        &(struct outcome){p->stopped ? KAFKA_ERR_CLOSED : err, has_words ? said : NULL, -1, -1, r});
}

/* In flight when its time ended. */
static void fail_overdue(kafka_producer_t *p, struct pbatch *b)
{
    pthread_mutex_lock(&p->lock);
    count_failure(p, b, KAFKA_ERR_TIMED_OUT);
    pthread_mutex_unlock(&p->lock);
    complete_overdue(p, b);
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

void outcome_settle(kafka_producer_t *p, struct pbatch *b, int status,
                    const struct produce_response *answer)
{
    const struct produce_response_partition_response *r = find_result(answer, b);
    kafka_err_t err = client_err_of_status(status);
    if (status == 0 && p->acks != 0)
        err = r ? r->error_code : KAFKA_ERR_BAD_RESPONSE;
    if (leader_is_stale(err)) /* whether this batch is sent again or not: the next one will be */
        cluster_refresh(p->cluster);
    if (err == KAFKA_OK && r && r->base_offset >= 0)
        b->queue->last_offset = r->base_offset + b->thunks_n - 1; /* this thread's alone */
    if (err == KAFKA_OK)
        delivery_end(p, b,
                     &(struct outcome){KAFKA_OK, NULL, r ? r->base_offset : -1,
                                       r ? r->log_append_time_ms : -1, NULL});
    else if (err == KERR_DUPLICATE_SEQUENCE_NUMBER) /* written before, where is not said */
        delivery_end(p, b, &(struct outcome){KAFKA_OK, NULL, -1, -1, NULL});
    else if (worth_sending_again(p, b, err, r))
        send_again(p, b, err);
    else if (is_unclear(err) && expired(p, b, executor_now_ms(cluster_executor(p->cluster))) &&
             !p->stopped)
        fail_overdue(p, b);
    else
        fail(p, b, err, r);
}
