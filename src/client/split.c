/* split.c - a batch that the broker found too large, as several of at most half its size: as often
 * as it takes, down to single records. */
#include <stdlib.h>

#include "client/producer_private.h"

enum { MAX_HEADERS = 1024 };

/* The record's headers, malloc'ed (NULL for none). false without memory, or with too many. */
static bool read_headers(const struct record *r, struct record_header **out, int *n)
{
    *out = NULL;
    *n = 0;
    if (r->headers_n <= 0)
        return true;
    if (r->headers_n > MAX_HEADERS || !(*out = malloc((size_t)r->headers_n * sizeof **out)))
        return false;
    struct reader at = reader_of(r->headers.p, (size_t)r->headers.len);
    while (*n < r->headers_n && record_header_next(&at, *out + *n))
        (*n)++;
    return true;
}

/* Copies record i of `from` (with its thunk) into the last of `parts`, or a new one when that is
 * full. */
static bool split_record(kafka_producer_t *p, struct pbatch *from, int32_t i,
                         const struct record *r, struct list *parts)
{
    size_t target = from->estimate / 2 < p->batch_size ? from->estimate / 2 : p->batch_size;
    struct record_header *headers;
    int n;
    if (!read_headers(r, &headers, &n))
        return false;
    size_t size = batch_builder_record_size(&p->batch_options, r->key, r->value, headers, n);
    struct pbatch *b = list_empty(parts) ? NULL : list_entry(parts->prev, struct pbatch, link);
    if (!b || b->estimate + size > target) {
        if ((b = pbatch_new(p, from->queue))) {
            list_push_back(parts, &b->link);
            b->first_record = from->first_record + (uint64_t)i;
        }
    }
    bool ok = b &&
              batch_builder_add(b->builder, b->thunks_n, r->timestamp, r->key, r->value, headers,
                                n) == 0 &&
              pbatch_add_thunk(b, from->thunks[i]);
    if (ok) {
        b->estimate += size;
        b->memory += size;
    }
    free(headers);
    return ok;
}

static bool split_records(kafka_producer_t *p, struct pbatch *from, struct list *parts)
{
    struct batch head;
    struct record_iter *it = NULL;
    struct record r;
    int32_t i = 0;
    bool ok = from->thunks_n > 1 &&
              batch_decode(from->bytes.p, from->bytes.len, from->bytes.len, &head) == BATCH_OK &&
              record_iter_open(&head, &it) == 0;
    while (ok && i < from->thunks_n && record_iter_next(it, &r) == 1)
        ok = split_record(p, from, i++, &r, parts);
    record_iter_close(it);
    return ok && i == from->thunks_n && parts->next != parts->prev;
}

bool accumulator_split(kafka_producer_t *p, struct pbatch *from)
{
    struct pqueue *q = from->queue;
    struct list parts = LIST_INIT(parts);
    if (!split_records(p, from, &parts)) {
        while (!list_empty(&parts))
            pbatch_free(list_entry(list_pop(&parts), struct pbatch, link));
        return false;
    }
    /* The parts stand where the whole stood: for order, for flush (its number), and in memory.
     * Their sequences follow each other: nothing under those numbers was written. */
    struct list *place = from->link.next, *all_place = from->all_link.next;
    int32_t sequence = from->sequence;
    p->memory_used -= from->memory;
    while (!list_empty(&parts)) {
        struct pbatch *b = list_entry(list_pop(&parts), struct pbatch, link);
        b->number = from->number;
        b->closed = true;
        b->created_ms = from->created_ms;
        b->attempts = from->attempts;
        b->has_sequence = from->has_sequence;
        b->producer_id = from->producer_id;
        b->producer_epoch = from->producer_epoch;
        b->sequence = sequence;
        if (from->has_sequence) {
            sequence = sequence_add(sequence, b->thunks_n);
            q->numbered++;
        }
        p->memory_used += b->memory;
        list_push_back(place, &b->link);
        list_push_back(all_place, &b->all_link);
        q->waiting_n++;
    }
    list_remove(&from->link);
    list_remove(&from->all_link);
    q->waiting_n--;
    idempotence_done(from);
    pbatch_free(from);
    return true;
}
