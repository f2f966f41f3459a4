/* accumulator.c - records gathered into batches, a queue per partition. See producer_private.h for
 * threads and order. */
#include <stdlib.h>
#include <string.h>

#include "client/producer_private.h"

/* ---- topics and queues ---- */

static bool ptopic_is(const struct hnode *n, const void *key)
{
    return strcmp(container_of(n, struct ptopic, hnode)->name, key) == 0;
}

static struct pqueue *pqueue_new(kafka_producer_t *p, struct ptopic *t, int32_t partition)
{
    struct leader_info leader = {-1, -1};
    struct pqueue *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    q->topic = t;
    q->partition = partition;
    q->producer_id = -1;
    list_init(&q->waiting);
    list_init(&q->in_flight);
    list_init(&q->settled);
    list_init(&q->given_up);
    list_init(&q->link);
    list_init(&q->txn_link);
    q->last_offset = -1;
    cluster_leader(p->cluster, t->name, partition, &leader);
    q->leader = producer_leader(p, leader.leader);
    if (!q->leader) {
        free(q);
        return NULL;
    }
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
    t->sticky = t->last_sticky = -1;
    return t;
}

struct ptopic *producer_find_topic(kafka_producer_t *p, const char *name)
{
    struct hnode *n = hmap_find(&p->topics, hash_bytes(name, strlen(name)), ptopic_is, name);
    return n ? container_of(n, struct ptopic, hnode) : NULL;
}

struct ptopic *producer_topic(kafka_producer_t *p, const char *name, int32_t partitions)
{
    struct ptopic *t = producer_find_topic(p, name);
    if (!t && !(t = ptopic_new(p, name, hash_bytes(name, strlen(name)))))
        return NULL;
    if (partitions <= t->queues_n)
        return t;
    struct pqueue **grown = realloc(t->queues, (size_t)partitions * sizeof *grown);
    if (!grown)
        return NULL;
    t->queues = grown;
    while (t->queues_n < partitions) {
        if (!(t->queues[t->queues_n] = pqueue_new(p, t, t->queues_n)))
            return NULL;
        t->queues_n++;
    }
    return t;
}

/* ---- batches ---- */

struct pbatch *pbatch_new(kafka_producer_t *p, struct pqueue *q)
{
    struct pbatch *b = calloc(1, sizeof *b);
    if (!b || !(b->builder = batch_builder_new(&p->batch_options))) {
        free(b);
        return NULL;
    }
    b->queue = q;
    b->first_record = q->records;
    b->created_ms = q->topic->used_ms = clock_mono_ms(clock_real());
    b->estimate = BATCH_HEAD;
    list_init(&b->link);
    list_init(&b->all_link);
    list_init(&b->end_link);
    return b;
}

void pbatch_free(struct pbatch *b)
{
    batch_builder_free(b->builder);
    buf_free(&b->bytes);
    for (int32_t i = 0; b->record_words && i < b->thunks_n; i++)
        free(b->record_words[i]);
    free(b->record_words);
    free(b->message);
    free(b->thunks);
    free(b);
}

static bool reserve_thunk(struct pbatch *b)
{
    if (b->thunks_n < b->thunks_cap)
        return true;
    int32_t cap = b->thunks_cap ? 2 * b->thunks_cap : 16;
    struct thunk *grown = realloc(b->thunks, (size_t)cap * sizeof *grown);
    if (!grown)
        return false;
    b->thunks = grown;
    b->thunks_cap = cap;
    return true;
}

bool pbatch_add_thunk(struct pbatch *b, struct thunk t)
{
    if (!reserve_thunk(b))
        return false;
    b->thunks[b->thunks_n++] = t;
    return true;
}

/* ---- records ---- */

static struct bytes bytes_of(const void *p, size_t n)
{
    return p ? (struct bytes){p, (int32_t)n} : BYTES_NULL;
}

enum { HEADERS_ON_STACK = 32, RESERVE_FROM = 8192, RESERVE_MOST = 1 << 20 };

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

size_t accumulator_record_size(const kafka_record_t *r)
{
    size_t n = 36 + r->key_len + r->value_len; /* attributes, and every varint at its longest */
    for (size_t i = 0; i < r->headers_n; i++)
        n += 10 + strlen(r->headers[i].key) + r->headers[i].value_len;
    return n;
}

static kafka_err_t add_record(struct pbatch *b, const kafka_record_t *r, int64_t timestamp,
                              size_t batch_size)
{
    struct record_header small[HEADERS_ON_STACK];
    struct record_header *headers = convert_headers(r, small);
    if (!headers)
        return KAFKA_ERR_NO_MEMORY;
    int rc = batch_builder_add(b->builder, b->thunks_n, timestamp, bytes_of(r->key, r->key_len),
                               bytes_of(r->value, r->value_len), headers, (int)r->headers_n);
    if (headers != small)
        free(headers);
    if (rc == 0 && !b->reserved && b->thunks_n > 0 &&
        batch_builder_size(b->builder) >= RESERVE_FROM) {
        b->reserved = true; /* a partition with traffic: the rest of the batch will come, too */
        batch_builder_reserve(b->builder, batch_size < RESERVE_MOST ? batch_size : RESERVE_MOST);
    }
    return rc < 0 ? KAFKA_ERR_NO_MEMORY : KAFKA_OK;
}

static struct pbatch *open_batch(struct pqueue *q)
{
    struct pbatch *b =
        list_empty(&q->waiting) ? NULL : list_entry(q->waiting.prev, struct pbatch, link);
    return b && !b->closed ? b : NULL;
}

static void enqueue(kafka_producer_t *p, struct pqueue *q, struct pbatch *b)
{
    b->number = ++p->last_number;
    list_push_back(&q->waiting, &b->link);
    list_push_back(&p->incomplete, &b->all_link);
    q->waiting_n++;
}

kafka_err_t accumulator_append(kafka_producer_t *p, struct pqueue *q, const kafka_record_t *r,
                               size_t size, int64_t timestamp, struct thunk thunk, bool *wake,
                               bool *full)
{
    struct pbatch *b = open_batch(q);
    bool closed = b && b->estimate + size > p->batch_size;
    if (closed) {
        b->closed = true;
        b = NULL;
    }
    bool made = !b;
    if (made && !(b = pbatch_new(p, q)))
        return KAFKA_ERR_NO_MEMORY;
    kafka_err_t err =
        reserve_thunk(b) ? add_record(b, r, timestamp, p->batch_size) : KAFKA_ERR_NO_MEMORY;
    if (err != KAFKA_OK) {
        if (made)
            pbatch_free(b);
        return err;
    }
    b->thunks[b->thunks_n++] = thunk;
    q->records++;
    b->estimate += size;
    b->memory += size;
    p->memory_used += size;
    b->closed = *full = b->estimate >= p->batch_size;
    if (made)
        enqueue(p, q, b);
    if (made || closed || *full)
        queue_place(p, q);
    *wake = made || closed || *full;
    return KAFKA_OK;
}

void accumulator_requeue(kafka_producer_t *p, struct pbatch *b)
{
    struct pqueue *q = b->queue;
    struct list *at = q->waiting.next;
    while (at != &q->waiting && list_entry(at, struct pbatch, link)->first_record < b->first_record)
        at = at->next;
    list_remove(&b->link);
    list_push_back(at, &b->link); /* in front of `at` */
    q->waiting_n++;
}
