/* producer_ids.c - see producer_ids.h.
 *
 * The block is claimed by a conditional write: read /latest_producer_id_block with its version,
 * write the block behind it expecting that version, begin again when somebody else was faster. Ids
 * are given only after the write has been answered. */
#include "server/producer_ids.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"

#define BLOCK_PATH "/latest_producer_id_block"

enum { RETRY_PAUSE_MS = 50, PREFETCH_PERCENT = 90 };

struct producer_ids {
    /* Fixed after creation. */
    struct store *store;
    struct executor *ex;
    int32_t broker_id;

    pthread_mutex_t lock;
    /* Under lock. */
    int64_t next, end;             /* ids left of the block: next .. end - 1 */
    int64_t after_next, after_end; /* the block claimed ahead; empty when equal */
    struct list waiting;
    bool claiming;
    int64_t not_before_ms; /* monotonic: no claim earlier, after a failure */

    /* Of the claim that is under way; on ex. */
    struct task begin;
    struct store_request request;
    struct store_op op;
    int64_t first, last;
    char text[160];
};

static int64_t left(const struct producer_ids *p)
{
    return p->end - p->next + p->after_end - p->after_next;
}

/* Under lock. */
static int64_t take(struct producer_ids *p)
{
    if (p->next == p->end) {
        p->next = p->after_next;
        p->end = p->after_end;
        p->after_next = p->after_end;
    }
    return p->next < p->end ? p->next++ : -1;
}

static void tell(struct task *task)
{
    struct producer_id_wait *w = container_of(task, struct producer_id_wait, task);
    w->done(w);
}

/* Gives every waiter an id, or -1 where there is none. */
static void serve_waiting(struct producer_ids *p)
{
    pthread_mutex_lock(&p->lock);
    while (!list_empty(&p->waiting)) {
        struct producer_id_wait *w =
            container_of(list_pop(&p->waiting), struct producer_id_wait, link);
        w->id = take(p);
        executor_post(w->done_on, &w->task);
    }
    p->claiming = false;
    pthread_mutex_unlock(&p->lock);
}

/* ---- claiming a block; on ex ---- */

static void read_latest(struct producer_ids *p);

static void claim_failed(struct producer_ids *p, const char *what)
{
    say_warn("ProducerIds", "no new block of producer ids: %s", what);
    pthread_mutex_lock(&p->lock);
    p->not_before_ms = executor_now_ms(p->ex) + RETRY_PAUSE_MS;
    pthread_mutex_unlock(&p->lock);
    serve_waiting(p);
}

static void submit(struct producer_ids *p, struct store_op op, void (*done)(struct store_request *))
{
    p->op = op;
    p->request = (struct store_request){.ops = &p->op, .ops_n = 1, .done_on = p->ex, .done = done};
    store_submit(p->store, &p->request);
}

static void written(struct store_request *r)
{
    struct producer_ids *p = container_of(r, struct producer_ids, request);
    int status = r->status;
    store_request_clear(r);
    if (status == STORE_BAD_VERSION || status == -EEXIST || status == -ENOENT) {
        read_latest(p); /* somebody else was faster */
        return;
    }
    if (status) {
        claim_failed(p, "the metadata store did not take it");
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->after_next = p->first;
    p->after_end = p->last + 1;
    pthread_mutex_unlock(&p->lock);
    say_debug("ProducerIds", "block %" PRId64 " to %" PRId64, p->first, p->last);
    serve_waiting(p);
}

/* Last id of the block in the node, -1 when there was none yet; false when it is not readable. */
static bool parse_block_end(struct bytes data, int64_t *out)
{
    *out = -1;
    if (data.len <= 0)
        return true;
    json_t *root = json_loadb((const char *)data.p, (size_t)data.len, 0, NULL);
    const char *end = json_string_value(json_object_get(root, "block_end"));
    char *rest = NULL;
    bool good = end && *end;
    if (good) {
        errno = 0;
        *out = strtoll(end, &rest, 10);
        good = !*rest && !errno && *out >= 0;
    }
    json_decref(root);
    return good;
}

static void latest_read(struct store_request *r)
{
    struct producer_ids *p = container_of(r, struct producer_ids, request);
    int status = r->status;
    int32_t version = p->op.stat.version;
    int64_t block_end = -1;
    bool readable = status || parse_block_end(p->op.result, &block_end);
    store_request_clear(r);
    if (status && status != -ENOENT) {
        claim_failed(p, "the metadata store did not answer");
        return;
    }
    if (!readable || block_end > INT64_MAX - PRODUCER_ID_BLOCK) {
        claim_failed(p, readable ? "the last one is used up" : BLOCK_PATH " is not readable");
        return;
    }
    p->first = block_end + 1;
    p->last = block_end + PRODUCER_ID_BLOCK;
    int n = snprintf(p->text, sizeof(p->text),
                     "{\"version\":1,\"broker\":%d,\"block_start\":\"%" PRId64
                     "\",\"block_end\":\"%" PRId64 "\"}",
                     p->broker_id, p->first, p->last);
    struct bytes data = {(const uint8_t *)p->text, n};
    submit(p,
           status == -ENOENT ? store_op_create(BLOCK_PATH, data, 0)
                             : store_op_set(BLOCK_PATH, data, version),
           written);
}

static void read_latest(struct producer_ids *p)
{
    submit(p, store_op_get(BLOCK_PATH, false), latest_read);
}

static void begin(struct task *task)
{
    read_latest(container_of(task, struct producer_ids, begin));
}

/* ---- asking ---- */

/* Is it time for the next block? Under lock. */
static bool should_claim(const struct producer_ids *p)
{
    return !p->claiming && p->after_next == p->after_end &&
           left(p) <= PRODUCER_ID_BLOCK * (100 - PREFETCH_PERCENT) / 100 &&
           executor_now_ms(p->ex) >= p->not_before_ms;
}

void producer_ids_next(struct producer_ids *p, struct producer_id_wait *w)
{
    task_init(&w->task, tell);
    pthread_mutex_lock(&p->lock);
    w->id = take(p);
    bool claim = should_claim(p);
    if (claim) {
        p->claiming = true;
        executor_post(p->ex, &p->begin);
    }
    if (w->id < 0 && p->claiming)
        list_push_back(&p->waiting, &w->link);
    else
        executor_post(w->done_on, &w->task);
    pthread_mutex_unlock(&p->lock);
}

int producer_ids_new(struct store *store, struct executor *ex, int32_t broker_id,
                     struct producer_ids **out)
{
    struct producer_ids *p = calloc(1, sizeof(*p));
    *out = p;
    if (!p)
        return -ENOMEM;
    p->store = store;
    p->ex = ex;
    p->broker_id = broker_id;
    list_init(&p->waiting);
    task_init(&p->begin, begin);
    pthread_mutex_init(&p->lock, NULL);
    p->not_before_ms = INT64_MIN;
    return 0;
}

void producer_ids_free(struct producer_ids *p)
{
    if (!p)
        return;
    pthread_mutex_destroy(&p->lock);
    free(p);
}
