/* delivery.c - the end of a batch: its callbacks are called, in the order of the partition's
 * records, its memory goes back. A batch whose outcome comes before an older one's waits for that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/producer_private.h"
#include "protocol/msg/produce.h"

/* ---- callbacks ---- */

static void tell_interceptors(const kafka_producer_t *p, const kafka_delivery_t *d)
{
    for (size_t i = 0; i < p->hooks->producer_n; i++)
        if (p->hooks->producer[i].on_acknowledgement)
            p->hooks->producer[i].on_acknowledgement(d, p->hooks->producer[i].arg);
}

static const char *words_of(const struct pbatch *b, int32_t i, char out[CLIENT_WORDS])
{
    if (b->record_words)
        return b->record_words[i]
                   ? b->record_words[i]
                   : "The batch was refused because other records in it are not valid.";
    return b->message ? b->message : client_words(b->err, b->queue->topic->name, NULL, out);
}

static void call_back(const kafka_producer_t *p, const struct pbatch *b)
{
    char words[CLIENT_WORDS];
    kafka_delivery_t d = {.err = b->err,
                          .topic = b->queue->topic->name,
                          .partition = b->queue->partition,
                          .offset = -1};
    for (int32_t i = 0; i < b->thunks_n; i++) {
        const struct thunk *t = &b->thunks[i];
        if (!t->cb && p->hooks->producer_n == 0)
            continue;
        d.error_message = words_of(b, i, words);
        d.timestamp = b->append_time_ms >= 0 ? b->append_time_ms : t->timestamp;
        if (b->base_offset >= 0)
            d.offset = b->base_offset + i;
        if (p->hooks->producer_n > 0)
            tell_interceptors(p, &d);
        if (t->cb)
            t->cb(&d, t->arg);
    }
}

/* ---- the end ---- */

static void finish(kafka_producer_t *p, struct pbatch *b)
{
    call_back(p, b);
    pthread_mutex_lock(&p->lock);
    list_remove(&b->link);
    list_remove(&b->all_link);
    idempotence_done(b);
    queue_place(p, b->queue);
    p->memory_used -= b->memory;
    if (p->memory_waiters)
        pthread_cond_broadcast(&p->room);
    pthread_cond_broadcast(&p->progress);
    pthread_mutex_unlock(&p->lock);
    pbatch_free(b);
}

static bool has_older(const struct list *of, const struct pbatch *b)
{
    list_each (it, of)
        if (list_entry(it, struct pbatch, link)->first_record < b->first_record)
            return true;
    return false;
}

bool delivery_has_older(const struct pbatch *b)
{
    return has_older(&b->queue->waiting, b) || has_older(&b->queue->in_flight, b);
}

static bool must_wait(const struct pbatch *b)
{
    return delivery_has_older(b) || has_older(&b->queue->given_up, b);
}

/* Those settled that no older one holds up any more. */
static void finish_settled(kafka_producer_t *p, struct pqueue *q)
{
    for (;;) {
        pthread_mutex_lock(&p->lock);
        struct pbatch *b =
            list_empty(&q->settled) ? NULL : list_entry(q->settled.next, struct pbatch, link);
        if (b && must_wait(b))
            b = NULL;
        if (b)
            list_remove(&b->link);
        pthread_mutex_unlock(&p->lock);
        if (!b)
            return;
        finish(p, b);
    }
}

/* Puts the batch off when its callbacks must wait for an older batch's. */
static bool put_off(kafka_producer_t *p, struct pbatch *b)
{
    struct pqueue *q = b->queue;
    pthread_mutex_lock(&p->lock);
    bool wait = must_wait(b);
    if (wait) {
        struct list *at = &q->settled;
        while (at->prev != &q->settled &&
               list_entry(at->prev, struct pbatch, link)->first_record > b->first_record)
            at = at->prev;
        list_remove(&b->link);
        list_push_back(at, &b->link);
        b->settled = true;
        idempotence_done(b);
        queue_place(p, q);
    }
    pthread_mutex_unlock(&p->lock);
    return wait;
}

/* Produce v8: words about single records of a batch that was refused as a whole. Without memory
 * they are left out. */
static void take_record_words(struct pbatch *b,
                              const struct produce_response_partition_response *details)
{
    if (!details || details->record_errors.n <= 0)
        return;
    b->record_words = calloc((size_t)b->thunks_n, sizeof *b->record_words);
    for (int32_t k = 0; b->record_words && k < details->record_errors.n; k++) {
        int32_t i = details->record_errors.v[k].batch_index;
        struct str said = details->record_errors.v[k].batch_index_error_message;
        if (i >= 0 && i < b->thunks_n && said.len > 0 && !b->record_words[i])
            b->record_words[i] = str_dup(said);
    }
}

void delivery_end(kafka_producer_t *p, struct pbatch *b, const struct outcome *o)
{
    struct pqueue *q = b->queue;
    b->err = o->err;
    b->base_offset = o->err == KAFKA_OK ? o->base_offset : -1;
    b->append_time_ms = o->append_time_ms;
    b->message = o->message ? str_dup(str_of(o->message)) : NULL;
    if (o->err != KAFKA_OK)
        take_record_words(b, o->details);
    if (put_off(p, b))
        return;
    finish(p, b);
    finish_settled(p, q);
}
