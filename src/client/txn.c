/* txn.c - the state of a producer's transactions, and the calls of the application. See txn.h. */
#include "client/txn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cluster_private.h"
#include "client/lists.h"
#include "protocol/errors.h"

/* ---- state ---- */

static const struct {
    const char *name;
    unsigned next; /* legal moves; every state may become FATAL_ERROR */
} states[TXN_STATES] = {
    [TXN_UNINITIALIZED] = {"UNINITIALIZED", BIT(TXN_INITIALIZING)},
    [TXN_INITIALIZING] = {"INITIALIZING",
                          BIT(TXN_READY) | BIT(TXN_UNINITIALIZED) | BIT(TXN_ABORTABLE_ERROR)},
    [TXN_READY] = {"READY", BIT(TXN_IN_TRANSACTION)},
    [TXN_IN_TRANSACTION] = {"IN_TRANSACTION",
                            BIT(TXN_COMMITTING) | BIT(TXN_ABORTING) | BIT(TXN_ABORTABLE_ERROR)},
    [TXN_COMMITTING] = {"COMMITTING", BIT(TXN_READY) | BIT(TXN_ABORTABLE_ERROR)},
    [TXN_ABORTING] = {"ABORTING",
                      BIT(TXN_READY) | BIT(TXN_UNINITIALIZED) | BIT(TXN_ABORTABLE_ERROR)},
    [TXN_ABORTABLE_ERROR] = {"ABORTABLE_ERROR", BIT(TXN_ABORTING)},
    [TXN_FATAL_ERROR] = {"FATAL_ERROR", 0},
};

const char *txn_state_name(enum txn_state state)
{
    return states[state].name;
}

void txn_set_state(struct txn *t, enum txn_state to)
{
    if (to != TXN_FATAL_ERROR && !(states[t->state].next & BIT(to)))
        abort(); /* a transaction would be committed or lost that must not */
    client_log(0, "transactional.id %s: %s -> %s", t->id, states[t->state].name, states[to].name);
    t->state = to;
}

static bool state_is(const struct txn *t, unsigned any)
{
    return BIT(t->state) & any;
}

/* ---- life ---- */

struct txn *txn_new(kafka_producer_t *p, const char *id, int32_t timeout_ms)
{
    struct txn *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->p = p;
    t->id = id;
    t->timeout_ms = timeout_ms;
    client_cond_init(&t->changed);
    list_init(&t->wanted);
    list_init(&t->asked);
    list_init(&t->added);
    return t;
}

static void on_coordinator(void *arg)
{
    struct txn *t = arg;
    sender_run(t->p);
}

void txn_start(struct txn *t)
{
    coordinator_init(&t->coordinator, t->p->cluster, COORDINATOR_TRANSACTION, t->id);
    t->coordinator.changed = on_coordinator;
    t->coordinator.arg = t;
}

void txn_stop(struct txn *t)
{
    coordinator_close(&t->coordinator);
    if (t->group_id)
        coordinator_close(&t->group);
}

static void offsets_unref(struct txn_offsets *o)
{
    if (!o || --o->refs > 0)
        return;
    kafka_offset_list_free(o->list);
    kafka_group_metadata_free(o->group);
    free(o);
}

void txn_free(struct txn *t)
{
    if (!t)
        return;
    offsets_unref(t->offsets);
    free(t->group_id);
    pthread_cond_destroy(&t->changed);
    free(t);
}

/* ---- outcomes ---- */

void txn_finish_op(struct txn *t, kafka_err_t err, const char *why)
{
    if (t->op == TXN_OP_NONE || t->op_done)
        return;
    t->op_done = true;
    t->op_err = err;
    snprintf(t->op_why, sizeof t->op_why, "%s", why ? why : "");
    pthread_cond_broadcast(&t->changed);
}

void txn_finish_offsets(struct txn *t, kafka_err_t err, const char *why)
{
    struct txn_offsets *o = t->offsets;
    if (!o)
        return;
    o->done = true;
    o->err = err;
    snprintf(o->why, sizeof o->why, "%s", why ? why : "");
    t->offsets = NULL;
    offsets_unref(o);
    pthread_cond_broadcast(&t->changed);
}

static void enter_error(struct txn *t, enum txn_state state, kafka_err_t err, const char *why)
{
    txn_set_state(t, state);
    t->err = err;
    snprintf(t->why, sizeof t->why, "%s", why);
    txn_finish_op(t, err, t->why);
    txn_finish_offsets(t, err, t->why);
    sender_wake(t->p); /* to fail what waits */
}

void txn_abortable(struct txn *t, kafka_err_t err, const char *why)
{
    if (!state_is(t, BIT(TXN_ABORTABLE_ERROR) | BIT(TXN_FATAL_ERROR)))
        enter_error(t, TXN_ABORTABLE_ERROR, err, why);
}

void txn_fatal(struct txn *t, kafka_err_t err, const char *why)
{
    if (t->state == TXN_FATAL_ERROR)
        return;
    client_log(3, "transactional.id %s: %s", t->id, why);
    t->p->fatal = err;
    enter_error(t, TXN_FATAL_ERROR, err, why);
    pthread_cond_broadcast(&t->p->room);
}

/* Brokers say no more than that: the coordinator ends what is over its time by a new epoch, too. */
void txn_fenced(struct txn *t, kafka_err_t err, const char *what)
{
    char why[600];
    snprintf(why, sizeof why,
             "%s: a newer producer with the same transactional id took over, or the transaction "
             "was open for longer than transaction.timeout.ms=%d and the coordinator ended it (%s)",
             what, t->timeout_ms, kafka_err_name(err));
    txn_fatal(t, KERR_PRODUCER_FENCED, why);
}

static void forget_partitions(struct list *of)
{
    while (!list_empty(of))
        list_entry(list_pop(of), struct pqueue, txn_link)->in_txn = false;
}

void txn_complete(struct txn *t, enum txn_state to, kafka_err_t err, const char *why)
{
    forget_partitions(&t->wanted);
    forget_partitions(&t->asked);
    forget_partitions(&t->added);
    t->open = t->skip_end = t->bump = false;
    t->unclear = 0;
    t->err = KAFKA_OK;
    txn_set_state(t, to);
    txn_finish_op(t, err, why);
}

/* ---- for the other parts of the producer ---- */

kafka_err_t txn_check_send(const struct txn *t)
{
    if (t->state == TXN_IN_TRANSACTION)
        return KAFKA_OK;
    if (t->state == TXN_ABORTABLE_ERROR)
        return client_fail(t->err, "the transaction must be aborted: %s", t->why);
    return client_fail(KAFKA_ERR_STATE,
                       "no transaction is open (%s): call kafka_producer_begin_transaction",
                       txn_state_name(t->state));
}

void txn_add_partition(struct txn *t, struct pqueue *q)
{
    if (!list_linked(&q->txn_link))
        list_push_back(&t->wanted, &q->txn_link);
}

bool txn_hurries(const struct txn *t)
{
    return t->state == TXN_COMMITTING;
}

bool txn_is_lost(const struct txn *t, kafka_err_t *why)
{
    *why = t->err != KAFKA_OK ? t->err : KAFKA_ERR_TXN_ABORTED;
    return state_is(t, BIT(TXN_ABORTING) | BIT(TXN_ABORTABLE_ERROR) | BIT(TXN_FATAL_ERROR));
}

/* Without a new epoch to come the count must stay whole: what has a number goes on to its outcome.
 */
bool txn_gives_up(const struct txn *t, const struct pbatch *b)
{
    kafka_err_t why;
    return txn_is_lost(t, &why) && (t->can_bump || !b->has_sequence || t->state == TXN_FATAL_ERROR);
}

void txn_lost_count(struct txn *t)
{
    if (t->can_bump)
        t->bump = true;
    else if (!t->p->stopped)
        txn_fatal(t, KAFKA_ERR_FATAL,
                  "a batch was given up that may have been written, and the coordinator is too old "
                  "for a new epoch");
}

void txn_batch_failed(struct txn *t, struct pbatch *b, kafka_err_t err, bool unclear)
{
    char what[300], why[700], words[CLIENT_WORDS];
    snprintf(what, sizeof what, "topic %s, partition %d: a batch was not delivered",
             b->queue->topic->name, b->queue->partition);
    snprintf(why, sizeof why, "%s: %s (%s)", what,
             client_words(err, b->queue->topic->name, t->id, words), kafka_err_name(err));
    if (b->has_sequence && unclear)
        txn_lost_count(t);
    else if (b->has_sequence)
        idempotence_take_back(b);
    switch (txn_judge_batch(err)) {
    case VERDICT_FENCED:
        txn_fenced(t, err, what);
        return;
    case VERDICT_FATAL:
        txn_fatal(t, err, why);
        return;
    default:
        t->bump |= t->can_bump;
        if (state_is(t, BIT(TXN_IN_TRANSACTION) | BIT(TXN_COMMITTING)))
            txn_abortable(t, err, why);
    }
}

/* ---- calls ---- */

static const struct {
    const char *name;
    enum txn_state to;
    unsigned from;
} ops[] = {
    [TXN_OP_INIT] = {"init_transactions", TXN_INITIALIZING, BIT(TXN_UNINITIALIZED)},
    [TXN_OP_COMMIT] = {"commit_transaction", TXN_COMMITTING, BIT(TXN_IN_TRANSACTION)},
    [TXN_OP_ABORT] = {"abort_transaction", TXN_ABORTING,
                      BIT(TXN_IN_TRANSACTION) | BIT(TXN_ABORTABLE_ERROR)},
};

static kafka_err_t check_txn(kafka_producer_t *p, const char *call, bool blocks)
{
    if (!p->txn)
        return client_fail(KAFKA_ERR_STATE, "%s: this producer has no transactional.id", call);
    if (blocks && executor_on_thread(cluster_executor(p->cluster)))
        return client_fail(KAFKA_ERR_STATE, "%s would wait for the callback that calls it", call);
    return KAFKA_OK;
}

/* May the call be made in a state of `from`? Lock held. */
static kafka_err_t check_state(const struct txn *t, const char *call, unsigned from)
{
    if (t->p->closing)
        return client_fail(KAFKA_ERR_CLOSED, "%s: the producer is being closed", call);
    if (t->op != TXN_OP_NONE)
        return client_fail(KAFKA_ERR_STATE,
                           "%s: %s is under way, or was over its time: call that again", call,
                           ops[t->op].name);
    if (state_is(t, from))
        return KAFKA_OK;
    if (state_is(t, BIT(TXN_ABORTABLE_ERROR) | BIT(TXN_FATAL_ERROR)))
        return client_fail(t->err, "%s: %s", call, t->why);
    return client_fail(
        KAFKA_ERR_STATE, "%s: not allowed in state %s%s", call, txn_state_name(t->state),
        t->state == TXN_UNINITIALIZED ? ": kafka_producer_init_transactions first" : "");
}

static int64_t limit_of(const struct txn *t, int64_t timeout_ms)
{
    return timeout_ms < 0 ? t->p->max_block_ms : timeout_ms;
}

static kafka_err_t over_time(const struct txn *t, const char *call, int64_t limit_ms)
{
    char why[500];
    return client_fail(KAFKA_ERR_TIMED_OUT,
                       "%s: not done within %lld ms, and still under way: call it again%s", call,
                       (long long)limit_ms, cluster_why(t->p->cluster, why, sizeof why));
}

/* Lock held. */
static kafka_err_t begin_op(struct txn *t, enum txn_op op)
{
    kafka_err_t err = check_state(t, ops[op].name, ops[op].from);
    if (err != KAFKA_OK)
        return err;
    t->op = op;
    t->op_done = false;
    txn_set_state(t, ops[op].to);
    if (op == TXN_OP_ABORT) {
        forget_partitions(&t->wanted);
        txn_finish_offsets(t, KAFKA_ERR_TXN_ABORTED, "the transaction is being aborted");
    }
    sender_wake(t->p);
    return KAFKA_OK;
}

/* Lock held. The last of several callers that wait for the same takes the outcome away. */
static kafka_err_t await_op(struct txn *t, int64_t limit_ms)
{
    int64_t deadline = client_deadline(limit_ms);
    bool in_time = true;
    const char *name = ops[t->op].name;
    t->op_waiters++;
    while (!t->op_done && in_time)
        in_time = client_cond_wait(&t->changed, &t->p->lock, deadline);
    t->op_waiters--;
    if (!t->op_done)
        return over_time(t, name, limit_ms);
    if (t->op_waiters == 0)
        t->op = TXN_OP_NONE;
    return t->op_err == KAFKA_OK ? KAFKA_OK : client_fail(t->op_err, "%s: %s", name, t->op_why);
}

static kafka_err_t run_op(kafka_producer_t *p, enum txn_op op, int64_t timeout_ms)
{
    struct txn *t = p->txn;
    kafka_err_t err = check_txn(p, ops[op].name, true);
    if (err != KAFKA_OK)
        return err;
    pthread_mutex_lock(&p->lock);
    if (t->op != op)
        err = begin_op(t, op);
    if (err == KAFKA_OK)
        err = await_op(t, limit_of(t, timeout_ms));
    pthread_mutex_unlock(&p->lock);
    return err;
}

kafka_err_t kafka_producer_init_transactions(kafka_producer_t *p, int64_t timeout_ms)
{
    return run_op(p, TXN_OP_INIT, timeout_ms);
}

kafka_err_t kafka_producer_commit_transaction(kafka_producer_t *p, int64_t timeout_ms)
{
    return run_op(p, TXN_OP_COMMIT, timeout_ms);
}

kafka_err_t kafka_producer_abort_transaction(kafka_producer_t *p, int64_t timeout_ms)
{
    return run_op(p, TXN_OP_ABORT, timeout_ms);
}

kafka_err_t kafka_producer_begin_transaction(kafka_producer_t *p)
{
    kafka_err_t err = check_txn(p, "begin_transaction", false);
    if (err != KAFKA_OK)
        return err;
    pthread_mutex_lock(&p->lock);
    err = check_state(p->txn, "begin_transaction", BIT(TXN_READY));
    if (err == KAFKA_OK)
        txn_set_state(p->txn, TXN_IN_TRANSACTION);
    pthread_mutex_unlock(&p->lock);
    return err;
}

kafka_txn_status_t kafka_producer_transaction_status(kafka_producer_t *p)
{
    pthread_mutex_lock(&p->lock);
    kafka_txn_status_t status = p->fatal != KAFKA_OK ? KAFKA_TXN_FATAL
                                : p->txn && p->txn->state == TXN_ABORTABLE_ERROR
                                    ? KAFKA_TXN_MUST_ABORT
                                    : KAFKA_TXN_FINE;
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* ---- offsets ---- */

static kafka_err_t check_offsets(const kafka_offset_t *offsets, size_t n,
                                 const kafka_group_metadata_t *group)
{
    if (!group || !group->group_id[0])
        return client_fail(KAFKA_ERR_INVALID_ARG, "send_offsets_to_transaction: no group");
    for (size_t i = 0; i < n; i++)
        if (!offsets[i].topic || offsets[i].partition < 0 || offsets[i].offset < 0)
            return client_fail(KAFKA_ERR_INVALID_ARG, "offset %lld cannot be committed",
                               (long long)offsets[i].offset);
    return KAFKA_OK;
}

static struct txn_offsets *offsets_new(const kafka_offset_t *offsets, size_t n,
                                       const kafka_group_metadata_t *g)
{
    struct txn_offsets *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->refs = 1;
    o->list = offset_list_copy(offsets, n);
    o->group = group_metadata_make(g->group_id, g->generation, g->member_id, g->instance_id);
    if (!o->list || !o->group) {
        offsets_unref(o);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        ((kafka_offset_t *)o->list->v)[i].err = KAFKA_ERR_BAD_RESPONSE;
    return o;
}

/* Those of an earlier call, that was over its time, go first. Lock held. */
static kafka_err_t await_offsets(struct txn *t, struct txn_offsets *o, int64_t limit_ms)
{
    static const char call[] = "send_offsets_to_transaction";
    int64_t deadline = client_deadline(limit_ms);
    bool in_time = true;
    kafka_err_t err = check_state(t, call, BIT(TXN_IN_TRANSACTION));
    while (err == KAFKA_OK && t->offsets && in_time) {
        in_time = client_cond_wait(&t->changed, &t->p->lock, deadline);
        err = check_state(t, call, BIT(TXN_IN_TRANSACTION));
    }
    if (err != KAFKA_OK)
        return err;
    if (t->offsets)
        return over_time(t, call, limit_ms);
    t->offsets = o;
    o->refs++;
    sender_wake(t->p);
    while (!o->done && in_time)
        in_time = client_cond_wait(&t->changed, &t->p->lock, deadline);
    if (!o->done)
        return over_time(t, call, limit_ms);
    return o->err == KAFKA_OK ? KAFKA_OK : client_fail(o->err, "%s: %s", call, o->why);
}

kafka_err_t kafka_producer_send_offsets_to_transaction(kafka_producer_t *p,
                                                       const kafka_offset_t *offsets, size_t n,
                                                       const kafka_group_metadata_t *group,
                                                       int64_t timeout_ms)
{
    kafka_err_t err = check_txn(p, "send_offsets_to_transaction", true);
    if (err == KAFKA_OK)
        err = check_offsets(offsets, n, group);
    if (err != KAFKA_OK || n == 0)
        return err;
    struct txn_offsets *o = offsets_new(offsets, n, group);
    if (!o)
        return KAFKA_ERR_NO_MEMORY;
    pthread_mutex_lock(&p->lock);
    err = await_offsets(p->txn, o, limit_of(p->txn, timeout_ms));
    offsets_unref(o);
    pthread_mutex_unlock(&p->lock);
    return err;
}

/* ---- the end ---- */

void txn_close(struct txn *t, int64_t deadline_ms)
{
    bool in_time = true;
    pthread_mutex_lock(&t->p->lock);
    if (state_is(t, ops[TXN_OP_ABORT].from)) {
        t->op = TXN_OP_NONE; /* of a call whose caller has given up */
        begin_op(t, TXN_OP_ABORT);
    }
    while (state_is(t, BIT(TXN_COMMITTING) | BIT(TXN_ABORTING)) && in_time)
        in_time = client_cond_wait(&t->changed, &t->p->lock, deadline_ms);
    pthread_mutex_unlock(&t->p->lock);
}
