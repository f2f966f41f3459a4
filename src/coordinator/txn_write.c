/* txn_write.c - changes of transactional ids: an image is written down, and holds once its replicas
 * have it (txn.h: CHANGE).
 *
 * A write that ends after its partition went elsewhere has come to nothing, whatever became of it:
 * who leads now has read the log. What follows a prepared end, its markers and the last image, is
 * never given up while the id is here: what fails is tried again. One struct txn_write sees to all
 * of it, so that an end that has begun needs no more memory for itself. */
#include "coordinator/txn_coordinator_private.h"

#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/txn_records.h"

enum { AGAIN_MS = 100 };

struct txn_write {
    struct group_append append;
    struct txn_coordinator *c;
    struct txn *t; /* one reference */
    uint64_t load;
    struct txn_image to;
    struct txn_call *call; /* NULL: nobody asks (any more) */
    enum kerr answer;      /* the call's, when it is written */
    struct list link;      /* while it waits for another try */
    bool fencing;          /* an abort that its producer did not ask for */
};

static const struct { /* what the log says -> what clients are told */
    enum kerr log, client;
} write_errors[] = {
    {KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_ENOUGH_REPLICAS, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_REQUEST_TIMED_OUT, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_LEADER_OR_FOLLOWER, KERR_NOT_COORDINATOR},
    {KERR_KAFKA_STORAGE_ERROR, KERR_NOT_COORDINATOR},
    {KERR_NONE, KERR_NONE},
};

static enum kerr client_error(enum kerr e)
{
    for (size_t i = 0; i < sizeof(write_errors) / sizeof(*write_errors); i++)
        if (write_errors[i].log == e)
            return write_errors[i].client;
    return KERR_UNKNOWN_SERVER_ERROR;
}

static void write_free(struct txn_write *w)
{
    txn_unref(w->t);
    txn_image_free(&w->to);
    free(w);
}

static bool is_prepared(const struct txn_image *i)
{
    return i->state == TXN_PREPARE_COMMIT || i->state == TXN_PREPARE_ABORT;
}

static bool is_complete(const struct txn_image *i)
{
    return i->state == TXN_COMPLETE_COMMIT || i->state == TXN_COMPLETE_ABORT;
}

/* ---- the record ---- */

static bool encode(const struct txn_write *w, struct buf *bytes, struct group_record *r)
{
    struct arena a;
    arena_init(&a, 0);
    txn_key_put(bytes, w->t->id);
    size_t key = bytes->len;
    bool good = txn_value_put(bytes, &w->to, &a) && bytes->len <= INT32_MAX;
    arena_free(&a);
    if (good) {
        r->key = (struct bytes){bytes->p, (int32_t)key};
        r->value = (struct bytes){bytes->p + key, (int32_t)(bytes->len - key)};
    }
    return good;
}

/* false: nothing was begun. The producer that asks waits as long as its transactions may take: as
 * it says now, not as the one before it did. For the last image nobody waits, and given up early it
 * would only be written once more. */
static bool append(struct txn_write *w)
{
    struct group_log *log = w->c->o.log;
    struct buf bytes = BUF_INIT;
    struct group_record r;
    w->append.timeout_ms = is_complete(&w->to) ? 0 : w->to.timeout_ms;
    bool good = encode(w, &bytes, &r);
    if (good)
        log->ops->append(log, &w->append, &r, 1);
    buf_free(&bytes);
    return good;
}

/* ---- another try ---- */

static void try_later(struct txn_write *w)
{
    list_push_back(&w->c->again, &w->link);
    if (!timer_armed(&w->c->again_timer))
        executor_timer_start(w->c->o.ex, &w->c->again_timer, AGAIN_MS);
}

static void send_markers(struct txn_write *w);

static void try_again(struct txn_write *w)
{
    if (!txn_coordinator_owns(w->c, w->t, w->load))
        write_free(w);
    else if (!is_complete(&w->to))
        send_markers(w);
    else if (!append(w))
        try_later(w);
}

static void again_due(struct timer *timer)
{
    struct txn_coordinator *c = container_of(timer, struct txn_coordinator, again_timer);
    struct list all, *l;
    list_init(&all);
    list_splice(&all, &c->again);
    while ((l = list_pop(&all)) != NULL)
        try_again(list_entry(l, struct txn_write, link));
}

void txn_write_init(struct txn_coordinator *c)
{
    list_init(&c->again);
    timer_init(&c->again_timer, again_due);
}

void txn_write_shut_down(struct txn_coordinator *c)
{
    struct list *l;
    executor_timer_stop(c->o.ex, &c->again_timer);
    while ((l = list_pop(&c->again)) != NULL)
        write_free(list_entry(l, struct txn_write, link));
}

/* ---- writes ---- */

static void answer(struct txn_write *w, enum kerr e)
{
    struct txn_call *call = w->call;
    w->call = NULL;
    if (!call)
        return;
    call->producer_id = w->t->now.producer_id;
    call->epoch = w->t->now.epoch;
    txn_call_finish(call, e);
}

static void failed(struct txn_write *w, enum kerr e)
{
    w->t->pending = false;
    if (w->fencing)
        w->t->fence_failed = true;
    logline(LOGLINE_INFO, TXN_TAG, "%.*s: %s could not be written: %s", STR_ARG(w->t->id),
            txn_state_name(w->to.state), kerr_name((int16_t)w->append.error));
    answer(w, e);
}

static void go_on(struct txn_write *w);

static void written(struct group_append *a)
{
    struct txn_write *w = container_of(a, struct txn_write, append);
    enum kerr e = client_error(a->error);
    if (!txn_coordinator_owns(w->c, w->t, w->load)) {
        answer(w, KERR_NOT_COORDINATOR);
    } else if (e == KERR_NONE) {
        w->t->pending = false;
        txn_install(w->t, &w->to);
        answer(w, w->answer);
        if (is_prepared(&w->t->now)) {
            go_on(w);
            return;
        }
    } else if (is_complete(&w->to)) {
        try_later(w);
        return;
    } else {
        failed(w, e);
    }
    write_free(w);
}

/* NULL without memory. */
static struct txn_write *write_new(struct txn_coordinator *c, struct txn *t, struct txn_call *call)
{
    struct txn_write *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->c = c;
    w->t = txn_ref(t);
    w->load = c->partitions[t->partition].load;
    w->call = call;
    list_init(&w->link);
    w->append = (struct group_append){
        .partition = t->partition, .producer_id = -1, .producer_epoch = -1, .done = written};
    return w;
}

static void start(struct txn_write *w, struct txn_image *to)
{
    w->to = *to;
    w->t->pending = true;
    w->t->pending_state = to->state;
    if (append(w))
        return;
    w->append.error = KERR_UNKNOWN_SERVER_ERROR;
    failed(w, KERR_UNKNOWN_SERVER_ERROR);
    write_free(w);
}

void txn_write_start(struct txn_coordinator *c, struct txn *t, struct txn_image *to,
                     struct txn_call *call)
{
    struct txn_write *w = write_new(c, t, call);
    if (w) {
        start(w, to);
        return;
    }
    txn_image_free(to);
    txn_call_finish(call, KERR_UNKNOWN_SERVER_ERROR);
}

/* ---- the end of a transaction ---- */

/* Until the markers are written, the id keeps what sees to it. */
static void send_markers(struct txn_write *w)
{
    struct txn_coordinator *c = w->c;
    struct txn *t = w->t;
    if (txn_markers_send(c->markers, t, w->load, c->partitions[t->partition].epoch) == 0)
        t->ending = w;
    else
        try_later(w);
}

static void complete(struct txn_write *w)
{
    txn_complete_image(w->t, clock_wall_ms(w->c->o.ex->clock), &w->to);
    if (!append(w))
        try_later(w);
}

static void go_on(struct txn_write *w)
{
    struct txn *t = w->t;
    t->pending = true;
    t->pending_state =
        t->now.state == TXN_PREPARE_COMMIT ? TXN_COMPLETE_COMMIT : TXN_COMPLETE_ABORT;
    if (t->now.partitions.n > 0)
        send_markers(w);
    else
        complete(w);
}

bool txn_write_resume(struct txn_coordinator *c, struct txn *t)
{
    struct txn_write *w = write_new(c, t, NULL);
    if (w)
        go_on(w);
    return w != NULL;
}

void txn_write_markers_written(void *coordinator, struct txn *t, uint64_t load)
{
    struct txn_write *w = t->ending;
    (void)coordinator;
    (void)load;
    t->ending = NULL;
    if (w)
        complete(w);
}

void txn_write_give_up(struct txn *t)
{
    struct txn_write *w = t->ending;
    t->ending = NULL;
    if (w)
        write_free(w);
}

void txn_write_fencing_abort(struct txn_coordinator *c, struct txn *t, struct txn_call *call)
{
    struct txn_image to;
    struct txn_write *w = write_new(c, t, call);
    if (!w || txn_end_image(t, false, clock_wall_ms(c->o.ex->clock), &to) != 0) {
        if (w)
            write_free(w);
        if (call)
            txn_call_finish(call, KERR_UNKNOWN_SERVER_ERROR);
        return;
    }
    txn_fence(t);
    to.epoch = t->now.epoch;
    to.last_epoch = t->now.last_epoch;
    w->answer = KERR_CONCURRENT_TRANSACTIONS;
    w->fencing = true;
    start(w, &to);
}
