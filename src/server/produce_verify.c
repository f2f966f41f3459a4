/* produce_verify.c - before records of a transaction are appended: the transaction's coordinator is
 * asked whether the partitions are in it, unless one is open there already (KIP-890;
 * transaction.partition.verification.enable). The connection's later Produce requests wait.
 *
 * A request without a transactional id costs a look at a bit of each partition's first batch. */
#include "coordinator/txn_manager.h"
#include "log/txn_guards.h"
#include "protocol/record_batch.h"
#include "server/produce_op.h"

enum { FIRST_VERSION_ABORTABLE = 11 };

struct verifying { /* in the request's arena */
    struct txn_question question;
    struct produce_op *op;
    int *slots; /* of each partition that is asked about */
    void (*then)(struct produce_op *op);
    struct task task;
};

struct first_batch {
    int64_t producer_id;
    int16_t epoch;
    int32_t sequence;
};

/* The first batch's head; false: not of a transaction, or nothing whole. */
static bool is_transactional(const struct records *r, struct first_batch *out)
{
    if (r->len < BATCH_HEAD || r->p[BATCH_AT_MAGIC] != 2 ||
        !(get_be16(r->p + BATCH_AT_ATTRIBUTES) & BATCH_TRANSACTIONAL))
        return false;
    *out = (struct first_batch){.producer_id = (int64_t)get_be64(r->p + BATCH_AT_PRODUCER_ID),
                                .epoch = (int16_t)get_be16(r->p + BATCH_AT_PRODUCER_EPOCH),
                                .sequence = (int32_t)get_be32(r->p + BATCH_AT_BASE_SEQUENCE)};
    return true;
}

static void refuse(struct produce_slot *s, enum kerr e, const char *why)
{
    s->refused = e;
    s->out->error_message = str_of(why);
}

/* ---- what the coordinator said ---- */

static const struct {
    enum kerr said, told;
    const char *why;
} answers[] = {
    /* Old clients send again on NOT_ENOUGH_REPLICAS, and do not ask for metadata. */
    {KERR_CONCURRENT_TRANSACTIONS, KERR_NOT_ENOUGH_REPLICAS,
     "The transaction cannot be verified yet: the one before is being completed "
     "(CONCURRENT_TRANSACTIONS)"},
    {KERR_NETWORK_EXCEPTION, KERR_NOT_ENOUGH_REPLICAS,
     "The transaction cannot be verified yet: its coordinator has not answered "
     "(NETWORK_EXCEPTION)"},
    {KERR_COORDINATOR_LOAD_IN_PROGRESS, KERR_NOT_ENOUGH_REPLICAS,
     "The transaction cannot be verified yet: its coordinator is loading "
     "(COORDINATOR_LOAD_IN_PROGRESS)"},
    {KERR_COORDINATOR_NOT_AVAILABLE, KERR_NOT_ENOUGH_REPLICAS,
     "The transaction cannot be verified yet: it has no coordinator (COORDINATOR_NOT_AVAILABLE)"},
    {KERR_NOT_COORDINATOR, KERR_NOT_ENOUGH_REPLICAS,
     "The transaction cannot be verified yet: its coordinator has moved (NOT_COORDINATOR)"},
    {KERR_INVALID_TXN_STATE, KERR_INVALID_TXN_STATE, "The partition is not in the transaction"},
};

static void tell(struct produce_slot *s, enum kerr e, int version)
{
    if (e == KERR_TRANSACTION_ABORTABLE && version < FIRST_VERSION_ABORTABLE)
        e = KERR_INVALID_TXN_STATE;
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
        if (answers[i].said == e) {
            refuse(s, answers[i].told, answers[i].why);
            return;
        }
    s->refused = e;
}

static void go_on(struct task *t)
{
    struct verifying *v = container_of(t, struct verifying, task);
    struct produce_op *op = v->op;
    struct broker *b = op->req->broker;
    for (int i = 0; i < v->question.n; i++)
        tell(&op->slots[v->slots[i]], v->question.partitions[i].error, request_version(op->req));
    v->then(op);
    broker_async_end(b);
}

static void answered(struct txn_question *q)
{
    struct verifying *v = container_of(q, struct verifying, question);
    task_init(&v->task, go_on);
    executor_post(request_executor(v->op->req), &v->task);
}

/* ---- what is to be asked ---- */

/* True: the coordinator must be asked about the slot. */
static bool begin(struct produce_op *op, struct produce_slot *s, const struct first_batch *f)
{
    struct topic_partition tp = {s->topic, s->data->index};
    int64_t now = clock_wall_ms(broker_clock(op->req->broker));
    enum kerr e;
    bool ask = false;
    struct partition *p = replica_manager_find(broker_replicas(op->req->broker), tp, &e);
    struct log *log = p && partition_is_leader(p) ? partition_log(p) : NULL;
    s->txn_guard = TXN_GUARD_NONE;
    if (log) {
        ask = log_begin_txn(log, f->producer_id, f->epoch, f->sequence, now, &s->txn_guard);
        log_unref(log);
    }
    partition_unref(p);
    if (ask && s->txn_guard == 0)
        s->refused = KERR_UNKNOWN_SERVER_ERROR;
    return ask && s->txn_guard != 0;
}

bool produce_is_transactional(const struct produce_op *op)
{
    struct first_batch f;
    for (int i = 0; i < op->slots_n; i++)
        if (is_transactional(&op->slots[i].data->records, &f))
            return true;
    return false;
}

/* All batches of a request are of one producer; false: they are not. */
static bool read_producer(struct produce_op *op, struct first_batch *out, bool *any)
{
    *any = false;
    for (int i = 0; i < op->slots_n; i++) {
        struct first_batch f;
        if (op->slots[i].refused || !is_transactional(&op->slots[i].data->records, &f))
            continue;
        if (*any && (f.producer_id != out->producer_id || f.epoch != out->epoch))
            return false;
        *out = f;
        *any = true;
    }
    return true;
}

static void refuse_all(struct produce_op *op, enum kerr e, const char *why)
{
    for (int i = 0; i < op->slots_n; i++)
        if (op->slots[i].refused == KERR_NONE)
            refuse(&op->slots[i], e, why);
}

static struct verifying *verifying_new(struct produce_op *op, const struct first_batch *f)
{
    struct arena *a = op->req->arena;
    struct verifying *v = arena_new(a, struct verifying);
    if (!v)
        return NULL;
    v->op = op;
    v->slots = arena_array(a, int, (size_t)op->slots_n);
    v->question = (struct txn_question){
        .id = op->body->transactional_id,
        .producer_id = f->producer_id,
        .epoch = f->epoch,
        .partitions = arena_array(a, struct txn_call_partition, (size_t)op->slots_n),
        .done = answered};
    return v->slots && v->question.partitions ? v : NULL;
}

/* Fills the question. */
static void gather(struct produce_op *op, struct verifying *v)
{
    struct txn_question *q = &v->question;
    for (int i = 0; i < op->slots_n; i++) {
        struct produce_slot *s = &op->slots[i];
        struct first_batch f;
        if (s->refused || !is_transactional(&s->data->records, &f) || !begin(op, s, &f))
            continue;
        v->slots[q->n] = i;
        q->partitions[q->n++] =
            (struct txn_call_partition){.topic = s->topic, .partition = s->data->index};
    }
}

bool produce_verify(struct produce_op *op, void (*then)(struct produce_op *op))
{
    struct first_batch f = {0};
    bool any;
    if (!read_producer(op, &f, &any)) {
        refuse_all(op, KERR_INVALID_PRODUCER_ID_MAPPING,
                   "Records of transactions of more than one producer");
        return false;
    }
    if (!any)
        return false;
    if (str_is_null(op->body->transactional_id)) {
        refuse_all(op, KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NULL);
        return false;
    }
    struct txn_manager *verifier = broker_txn_verifier(op->req->broker);
    if (!verifier)
        return false;
    struct verifying *v = verifying_new(op, &f);
    if (!v) {
        refuse_all(op, KERR_UNKNOWN_SERVER_ERROR, NULL);
        return false;
    }
    gather(op, v);
    if (v->question.n == 0)
        return false;
    v->then = then;
    broker_async_begin(op->req->broker);
    txn_manager_ask(verifier, &v->question);
    return true;
}
