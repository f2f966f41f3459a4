/* txn_requests.c - requests at the transaction coordinator. */
#include "base/logline.h"
#include "coordinator/txn_coordinator_private.h"
#include "protocol/msg/describe_transactions.h"
#include "protocol/msg/list_transactions.h"

#include <errno.h>

void txn_call_finish(struct txn_call *call, enum kerr e)
{
    call->error = e;
    if (e != KERR_NONE) {
        call->producer_id = TXN_NO_PRODUCER;
        call->epoch = TXN_NO_EPOCH;
    }
    call->done(call);
}

static int64_t now_ms(const struct txn_coordinator *c)
{
    return clock_wall_ms(c->o.ex->clock);
}

/* ---- InitProducerId ---- */

/* NULL: *e says why. */
static struct txn *make_id(struct txn_coordinator *c, const struct txn_call *call,
                           int32_t partition, enum kerr *e)
{
    int64_t producer_id;
    *e = KERR_COORDINATOR_LOAD_IN_PROGRESS; /* a block of ids is on its way */
    if (c->o.producer_id(c->o.arg, &producer_id) != 0)
        return NULL;
    struct txn *t = txn_coordinator_add(c, call->id, partition);
    *e = KERR_UNKNOWN_SERVER_ERROR;
    if (!t)
        return NULL;
    t->now.producer_id = producer_id;
    t->now.timeout_ms = call->timeout_ms;
    t->now.updated_ms = now_ms(c);
    return t;
}

static void run_init(struct txn_coordinator *c, struct txn_call *call, int32_t partition)
{
    enum txn_init_step step = TXN_INIT_BUMP;
    enum kerr e;
    int64_t new_id = -1;
    struct txn_image to;
    struct txn *t = txn_coordinator_id(c, call->id);
    if (!t)
        t = make_id(c, call, partition, &e);
    if (t)
        e = txn_check_init(t, call->producer_id, call->epoch, &step);
    if (e == KERR_NONE && step == TXN_INIT_ROTATE && c->o.producer_id(c->o.arg, &new_id) != 0)
        e = KERR_COORDINATOR_LOAD_IN_PROGRESS;
    if (e != KERR_NONE) {
        txn_call_finish(call, e);
    } else if (step == TXN_INIT_ABORT) {
        txn_write_fencing_abort(c, t, call);
    } else if (step == TXN_INIT_REPEAT) {
        call->producer_id = t->now.producer_id;
        call->epoch = t->now.epoch;
        txn_call_finish(call, KERR_NONE);
    } else {
        txn_init_image(t, step, new_id, call->epoch, call->timeout_ms, now_ms(c), &to);
        txn_write_start(c, t, &to, call);
    }
}

/* ---- partitions ---- */

static bool has_all(const struct txn *t, const struct txn_call *call)
{
    bool all = t->now.state == TXN_ONGOING;
    for (int i = 0; all && i < call->partitions_n; i++)
        all = txn_partitions_has(&t->now.partitions, call->partitions[i].topic,
                                 call->partitions[i].partition);
    return all;
}

static int add_image(const struct txn_coordinator *c, const struct txn *t,
                     const struct txn_call *call, struct txn_image *to)
{
    int rc = txn_add_image(t, now_ms(c), to);
    if (rc)
        return rc;
    for (int i = 0; !rc && i < call->partitions_n; i++)
        rc = txn_partitions_add(&to->partitions, call->partitions[i].topic,
                                call->partitions[i].partition);
    if (rc)
        txn_image_free(to);
    return rc;
}

static void run_add(struct txn_coordinator *c, struct txn_call *call, int32_t partition)
{
    struct txn_image to;
    struct txn *t = txn_coordinator_id(c, call->id);
    enum kerr e =
        t ? txn_check_add(t, call->producer_id, call->epoch) : KERR_INVALID_PRODUCER_ID_MAPPING;
    (void)partition;
    if (e != KERR_NONE || has_all(t, call))
        txn_call_finish(call, e);
    else if (add_image(c, t, call, &to) != 0)
        txn_call_finish(call, KERR_UNKNOWN_SERVER_ERROR);
    else
        txn_write_start(c, t, &to, call);
}

static void run_verify(struct txn_coordinator *c, struct txn_call *call, int32_t partition)
{
    const struct txn *t = txn_coordinator_id(c, call->id);
    enum kerr e =
        t ? txn_check_verify(t, call->producer_id, call->epoch) : KERR_INVALID_PRODUCER_ID_MAPPING;
    (void)partition;
    for (int i = 0; e == KERR_NONE && i < call->partitions_n; i++) {
        struct txn_call_partition *p = &call->partitions[i];
        p->error = txn_partitions_has(&t->now.partitions, p->topic, p->partition)
                       ? KERR_NONE
                       : KERR_TRANSACTION_ABORTABLE;
    }
    txn_call_finish(call, e);
}

/* ---- EndTxn ---- */

static void run_end(struct txn_coordinator *c, struct txn_call *call, int32_t partition)
{
    bool write = false;
    struct txn_image to;
    struct txn *t = txn_coordinator_id(c, call->id);
    enum kerr e = t ? txn_check_end(t, call->producer_id, call->epoch, call->commit, &write)
                    : KERR_INVALID_PRODUCER_ID_MAPPING;
    (void)partition;
    if (e != KERR_NONE || !write)
        txn_call_finish(call, e);
    else if (txn_end_image(t, call->commit, now_ms(c), &to) != 0)
        txn_call_finish(call, KERR_UNKNOWN_SERVER_ERROR);
    else
        txn_write_start(c, t, &to, call);
}

/* ---- ListTransactions ---- */

/* Unknown names are told back; when all are unknown nothing matches. */
static bool read_filters(const struct list_transactions_request *in, struct arena *a,
                         struct list_transactions_response *out, unsigned *states)
{
    int32_t n = in->state_filters.n;
    struct str *unknown = arena_array(a, struct str, (size_t)(n > 0 ? n : 0));
    *states = n > 0 ? 0 : ~0U;
    out->unknown_state_filters.v = unknown;
    for (int32_t i = 0; unknown && i < n; i++) {
        int s = txn_state_find(in->state_filters.v[i]);
        if (s < 0)
            unknown[out->unknown_state_filters.n++] = in->state_filters.v[i];
        else
            *states |= 1U << s;
    }
    return unknown != NULL;
}

static bool has_producer(const struct list_transactions_request *in, int64_t id)
{
    for (int32_t i = 0; i < in->producer_id_filters.n; i++)
        if (in->producer_id_filters.v[i] == id)
            return true;
    return in->producer_id_filters.n <= 0;
}

/* What it shows as: an id that is being forgotten is not there. */
static bool is_listed(const struct txn *t, const struct list_transactions_request *in,
                      unsigned states, int64_t now)
{
    if (t->pending && t->pending_state == TXN_DEAD)
        return false;
    if (!(states & 1U << t->now.state) || !has_producer(in, t->now.producer_id))
        return false;
    return in->duration_filter < 0 || now - t->now.start_ms > in->duration_filter;
}

static bool list(const struct txn_coordinator *c, struct txn_call *call)
{
    typedef struct list_transactions_response_transaction_state entry;
    const struct list_transactions_request *in = call->in;
    struct list_transactions_response *out = call->out;
    int64_t now = now_ms(c);
    unsigned states;
    int32_t n = 0;
    if (!read_filters(in, call->arena, out, &states))
        return false;
    hmap_each (node, &c->ids)
        n += is_listed(hmap_entry(node, struct txn, node), in, states, now);
    entry *v = out->transaction_states.v =
        list_transactions_response_transaction_state_new(call->arena, n);
    if (!v)
        return false;
    hmap_each (node, &c->ids) {
        const struct txn *t = hmap_entry(node, struct txn, node);
        if (!is_listed(t, in, states, now))
            continue;
        entry *e = &v[out->transaction_states.n++];
        e->transactional_id = arena_str(call->arena, t->id);
        e->producer_id = t->now.producer_id;
        e->transaction_state = str_of(txn_state_name(t->now.state));
    }
    return !call->arena->exhausted;
}

static void run_list(struct txn_coordinator *c, struct txn_call *call)
{
    struct list_transactions_response *out = call->out;
    if (c->loading_n > 0)
        out->error_code = KERR_COORDINATOR_LOAD_IN_PROGRESS;
    else if (!list(c, call))
        call->no_memory = true;
    txn_call_finish(call, (enum kerr)out->error_code);
}

/* ---- DescribeTransactions ---- */

typedef struct describe_transactions_response_transaction_state description;

static bool describe_topics(const struct txn *t, struct arena *a, description *out)
{
    const struct txn_partitions *p = &t->now.partitions;
    struct describe_transactions_response_topic *v = out->topics.v =
        describe_transactions_response_topic_new(a, p->n);
    for (int i = 0; v && i < p->n; i++) {
        int32_t *numbers = arena_array(a, int32_t, (size_t)p->topics[i].n);
        if (!numbers)
            return false;
        memcpy(numbers, p->topics[i].v, (size_t)p->topics[i].n * sizeof(*numbers));
        v[i].topic = arena_str(a, p->topics[i].name);
        v[i].partitions.v = numbers;
        v[i].partitions.n = p->topics[i].n;
        out->topics.n++;
    }
    return v && !a->exhausted;
}

static enum kerr describe(const struct txn_coordinator *c, struct txn_call *call, description *out)
{
    int32_t partition;
    if (out->transactional_id.len <= 0)
        return KERR_INVALID_REQUEST;
    enum kerr e = txn_coordinator_admit(c, out->transactional_id, &partition);
    const struct txn *t = e == KERR_NONE ? txn_coordinator_id(c, out->transactional_id) : NULL;
    if (!t || (t->pending && t->pending_state == TXN_DEAD))
        return e != KERR_NONE ? e : KERR_TRANSACTIONAL_ID_NOT_FOUND;
    out->transaction_state = str_of(txn_state_name(t->now.state));
    out->transaction_timeout_ms = t->now.timeout_ms;
    out->transaction_start_time_ms = t->now.start_ms;
    out->producer_id = t->now.producer_id;
    out->producer_epoch = t->now.epoch;
    if (!describe_topics(t, call->arena, out))
        call->no_memory = true;
    return KERR_NONE;
}

static void run_describe(struct txn_coordinator *c, struct txn_call *call)
{
    struct describe_transactions_response *out = call->out;
    for (int32_t i = 0; i < out->transaction_states.n; i++) {
        description *d = &out->transaction_states.v[i];
        if (d->error_code == KERR_NONE)
            d->error_code =
                (int16_t)(c->active ? describe(c, call, d) : KERR_COORDINATOR_NOT_AVAILABLE);
    }
    txn_call_finish(call, KERR_NONE);
}

/* ---- all of them ---- */

static bool is_legal_timeout(const struct txn_coordinator *c, int32_t ms)
{
    return ms > 0 && ms <= c->o.config.max_timeout_ms;
}

static void handle_one(struct txn_coordinator *c, struct txn_call *call)
{
    static void (*const run[TXN_CALLS])(struct txn_coordinator *, struct txn_call *, int32_t) = {
        [TXN_CALL_INIT] = run_init,
        [TXN_CALL_ADD] = run_add,
        [TXN_CALL_VERIFY] = run_verify,
        [TXN_CALL_END] = run_end,
    };
    int32_t partition;
    enum kerr e;
    if (call->id.len <= 0)
        e = KERR_INVALID_REQUEST;
    else if (call->api == TXN_CALL_INIT && !is_legal_timeout(c, call->timeout_ms))
        e = KERR_INVALID_TRANSACTION_TIMEOUT; /* whoever coordinates the id */
    else
        e = c->active ? txn_coordinator_admit(c, call->id, &partition)
                      : KERR_COORDINATOR_NOT_AVAILABLE;
    if (e == KERR_NONE)
        run[call->api](c, call, partition);
    else
        txn_call_finish(call, e);
}

void txn_coordinator_handle(struct txn_coordinator *c, struct txn_call *call)
{
    if (call->api == TXN_CALL_DESCRIBE) {
        run_describe(c, call);
    } else if (call->api != TXN_CALL_LIST) {
        handle_one(c, call);
    } else if (c->active) {
        run_list(c, call);
    } else {
        ((struct list_transactions_response *)call->out)->error_code =
            KERR_COORDINATOR_NOT_AVAILABLE;
        txn_call_finish(call, KERR_COORDINATOR_NOT_AVAILABLE);
    }
}
