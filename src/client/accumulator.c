/* accumulator.c - records gathered into batches, a queue per partition. See producer_private.h for
 * threads and order. */
#include <stdlib.h>
#include <string.h>

#include "client/producer_private.h"

static bool ptopic_is(const struct hnode *n, const void *key)
{
    return strcmp(container_of(n, struct ptopic, hnode)->name, key) == 0;
}

static struct pqueue *pqueue_new(struct ptopic *t, int32_t partition)
{
    struct pqueue *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    q->topic = t;
    q->partition = partition;
    list_init(&q->waiting);
    list_init(&q->in_flight);
    list_init(&q->active_link);
    return q;
}

static struct ptopic *ptopic_new(kafka_producer_t *p, const char *name, uint64_t hash)
{
    struct ptopic *t = calloc(1, sizeof *t);
    if (!t || !(t->name = str_dup(str_of(name))) || hmap_put(&p->topics, &t->hnode, hash) < 0) {
        if (t)
            free(t->name);
        free(t);
        return NULL;
    }
    t->sticky = -1;
    return t;
}

struct ptopic *producer_topic(kafka_producer_t *p, const char *name, int32_t partitions)
{
    uint64_t hash = hash_bytes(name, strlen(name));
    struct hnode *n = hmap_find(&p->topics, hash, ptopic_is, name);
    struct ptopic *t = n ? container_of(n, struct ptopic, hnode) : ptopic_new(p, name, hash);
    if (!t || partitions <= t->queues_n)
        return t;
    struct pqueue **grown = realloc(t->queues, (size_t)partitions * sizeof *grown);
    if (!grown)
        return NULL;
    t->queues = grown;
    while (t->queues_n < partitions) {
        if (!(t->queues[t->queues_n] = pqueue_new(t, t->queues_n)))
            return NULL;
        t->queues_n++;
    }
    return t;
}

static struct bytes bytes_of(const void *p, size_t n)
{
    return p ? (struct bytes){p, (int32_t)n} : BYTES_NULL;
}

enum { HEADERS_ON_STACK = 32 };

/* The record's headers in the builder's form, in `small` or malloc'ed. NULL without memory. */
static struct record_header *convert_headers(const kafka_record_t *r, struct record_header *small)
{
    struct record_header *h =
        r->headers_n <= HEADERS_ON_STACK ? small : malloc(r->headers_n * sizeof *h);
    for (size_t i = 0; h && i < r->headers_n; i++) {
        h[i].key = str_of(r->headers[i].key);
        h[i].value = bytes_of(r->headers[i].value, r->headers[i].value_len);
    }
    return h;
}

size_t accumulator_record_size(const kafka_producer_t *p, const kafka_record_t *r)
{
    size_t n = 36 + r->key_len + r->value_len; /* attributes, and every varint at its longest */
    for (size_t i = 0; i < r->headers_n; i++)
        n += 10 + strlen(r->headers[i].key) + r->headers[i].value_len;
    (void)p;
    return n;
}

static struct pbatch *pbatch_new(kafka_producer_t *p, struct pqueue *q)
{
    struct pbatch *b = calloc(1, sizeof *b);
    if (!b || !(b->builder = batch_builder_new(&p->batch_options))) {
        free(b);
        return NULL;
    }
    b->queue = q;
    b->number = ++p->last_number;
    b->created_ms = clock_mono_ms(clock_real());
    b->estimate = BATCH_HEAD;
    list_init(&b->link);
    list_init(&b->all_link);
    return b;
}

void pbatch_free(struct pbatch *b)
{
    batch_builder_free(b->builder);
    buf_free(&b->bytes);
    free(b->thunks);
    free(b);
}

bool accumulator_batch_full(const kafka_producer_t *p, const struct pbatch *b)
{
    return b->closed || b->estimate >= p->batch_size;
}

static bool add_thunk(struct pbatch *b, struct thunk t)
{
    if (b->thunks_n == b->thunks_cap) {
        int32_t cap = b->thunks_cap ? 2 * b->thunks_cap : 16;
        struct thunk *grown = realloc(b->thunks, (size_t)cap * sizeof *grown);
        if (!grown)
            return false;
        b->thunks = grown;
        b->thunks_cap = cap;
    }
    b->thunks[b->thunks_n++] = t;
    return true;
}

static kafka_err_t add_record(struct pbatch *b, const kafka_record_t *r, int64_t timestamp)
{
    struct record_header small[HEADERS_ON_STACK];
    struct record_header *headers = convert_headers(r, small);
    if (!headers)
        return KAFKA_ERR_NO_MEMORY;
    int rc = batch_builder_add(b->builder, b->thunks_n, timestamp, bytes_of(r->key, r->key_len),
                               bytes_of(r->value, r->value_len), headers, (int)r->headers_n);
    if (headers != small)
        free(headers);
    return rc < 0 ? KAFKA_ERR_NO_MEMORY : KAFKA_OK;
}

static struct pbatch *last_batch(struct pqueue *q)
{
    return list_empty(&q->waiting) ? NULL : list_entry(q->waiting.prev, struct pbatch, link);
}

kafka_err_t accumulator_append(kafka_producer_t *p, struct pqueue *q, const kafka_record_t *r,
                               int64_t timestamp, kafka_delivery_cb cb, void *arg, bool *wake)
{
    size_t size = accumulator_record_size(p, r);
    struct pbatch *b = last_batch(q);
    *wake = false;
    if (b && (b->closed || b->estimate + size > p->batch_size)) {
        *wake = !b->closed;
        b->closed = true;
        b = NULL;
    }
    bool made = !b;
    if (made && !(b = pbatch_new(p, q)))
        return KAFKA_ERR_NO_MEMORY;
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    if (add_thunk(b, (struct thunk){cb, arg, timestamp}) && (b->thunks_n--, true))
        err = add_record(b, r, timestamp);
    if (err != KAFKA_OK) {
        if (made)
            pbatch_free(b);
        return err;
    }
    b->thunks_n++;
    b->estimate += size;
    b->memory += size;
    p->memory_used += size;
    if (made) {
        list_push_back(&q->waiting, &b->link);
        list_push_back(&p->incomplete, &b->all_link);
        if (!list_linked(&q->active_link))
            list_push_back(&p->active, &q->active_link);
    }
    *wake |= made || b->estimate >= p->batch_size;
    return KAFKA_OK;
}

static void shrink(int64_t *wait_ms, int64_t to)
{
    if (to < *wait_ms)
        *wait_ms = to;
}

bool accumulator_ready(const kafka_producer_t *p, struct pqueue *q, int64_t now_ms,
                       int64_t *wait_ms)
{
    struct pbatch *b = list_entry(q->waiting.next, struct pbatch, link);
    if (q->retrying && !list_empty(&q->in_flight))
        return false;
    if (b->retry_at_ms > now_ms) {
        shrink(wait_ms, b->retry_at_ms - now_ms);
        return false;
    }
    bool more = q->waiting.next != q->waiting.prev;
    int64_t lingered = now_ms - b->created_ms;
    if (more || b->attempts > 0 || accumulator_batch_full(p, b) || p->memory_waiters ||
        p->flushing || p->closing || lingered >= p->linger_ms)
        return true;
    shrink(wait_ms, p->linger_ms - lingered);
    return false;
}

/* Batches that never got a sequence lie behind those that have one, in the order made. */
static bool goes_before(const struct pbatch *a, const struct pbatch *b)
{
    if (a->has_sequence && b->has_sequence)
        return (int32_t)((uint32_t)a->sequence - (uint32_t)b->sequence) < 0;
    if (a->has_sequence != b->has_sequence)
        return a->has_sequence;
    return a->number < b->number;
}

void accumulator_requeue(kafka_producer_t *p, struct pbatch *b)
{
    struct pqueue *q = b->queue;
    struct list *at = q->waiting.next;
    while (at != &q->waiting && goes_before(list_entry(at, struct pbatch, link), b))
        at = at->next;
    list_remove(&b->link);
    list_push_back(at, &b->link); /* in front of `at` */
    if (!list_linked(&q->active_link))
        list_push_back(&p->active, &q->active_link);
}

/* Copies record i of `from` (with its thunk) into a batch of `parts`, making a new one when the
 * last is full. */
static bool split_record(kafka_producer_t *p, struct pbatch *from, int32_t i,
                         const struct record *r, struct list *parts)
{
    enum { MAX_HEADERS = 1024 };
    struct record_header *headers = NULL;
    int n = 0;
    if (r->headers_n > MAX_HEADERS ||
        (r->headers_n && !(headers = malloc((size_t)r->headers_n * sizeof *headers))))
        return false;
    struct reader at = reader_of(r->headers.p, r->headers.len < 0 ? 0 : (size_t)r->headers.len);
    while (n < r->headers_n && record_header_next(&at, &headers[n]))
        n++;
    size_t size = batch_builder_record_size(&p->batch_options, r->key, r->value, headers, n);
    struct pbatch *b = list_empty(parts) ? NULL : list_entry(parts->prev, struct pbatch, link);
    bool ok = true;
    if (!b || b->estimate + size > p->batch_size) {
        if ((b = pbatch_new(p, from->queue)))
            list_push_back(parts, &b->link);
    }
    ok = b && add_thunk(b, from->thunks[i]) &&
         batch_builder_add(b->builder, b->thunks_n - 1, r->timestamp, r->key, r->value, headers,
                           n) == 0;
    if (b) {
        b->estimate += size;
        b->memory += size;
        b->closed = true;
        b->created_ms = from->created_ms;
        b->attempts = from->attempts;
    }
    free(headers);
    return ok;
}

bool accumulator_split(kafka_producer_t *p, struct pbatch *from)
{
    struct batch head;
    struct record_iter *it = NULL;
    struct record r;
    struct list parts = LIST_INIT(parts);
    int32_t i = 0;
    uint64_t number = p->last_number;
    bool ok = from->thunks_n > 1 &&
              batch_decode(from->bytes.p, from->bytes.len, from->bytes.len, &head) == BATCH_OK &&
              record_iter_open(&head, &it) == 0;
    while (ok && i < from->thunks_n && record_iter_next(it, &r) == 1)
        ok = split_record(p, from, i++, &r, &parts);
    record_iter_close(it);
    ok = ok && i == from->thunks_n && parts.next != parts.prev;
    if (!ok) {
        while (!list_empty(&parts))
            pbatch_free(list_entry(list_pop(&parts), struct pbatch, link));
        p->last_number = number;
        return false;
    }
    /* The parts stand where the whole stood: for order, for flush (its number), and in memory. */
    struct list *place = from->link.next, *all_place = from->all_link.next;
    int32_t sequence = from->sequence;
    p->memory_used -= from->memory;
    while (!list_empty(&parts)) {
        struct pbatch *b = list_entry(list_pop(&parts), struct pbatch, link);
        b->number = from->number;
        b->has_sequence = from->has_sequence;
        b->producer_id = from->producer_id;
        b->producer_epoch = from->producer_epoch;
        b->sequence = sequence;
        sequence = from->has_sequence ? sequence_add(sequence, b->thunks_n) : sequence;
        p->memory_used += b->memory;
        list_push_back(place, &b->link);
        list_push_back(all_place, &b->all_link);
    }
    list_remove(&from->link);
    list_remove(&from->all_link);
    pbatch_free(from);
    return true;
}
