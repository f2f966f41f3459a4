/* idempotence.c - the producer's id, and the sequence numbers under it. See producer_private.h. */
#include "client/txn.h"
#include "protocol/errors.h"
#include "protocol/msg/init_producer_id.h"

enum { LOOK_AGAIN_MS = 100 };

/* ---- producer id ---- */

static void on_refused(kafka_producer_t *p, kafka_err_t err)
{
    client_log(3, "no producer id: %s", kafka_err_text(err));
    pthread_mutex_lock(&p->lock);
    p->fatal = err;
    pthread_cond_broadcast(&p->room);
    pthread_mutex_unlock(&p->lock);
    outcome_fail_all(p, err);
}

static void set_state(kafka_producer_t *p, enum idempotence state)
{
    pthread_mutex_lock(&p->lock);
    p->idempotence = state;
    pthread_mutex_unlock(&p->lock);
}

static void on_producer_id(void *arg, int status, int version, const void *response)
{
    kafka_producer_t *p = arg;
    const struct init_producer_id_response *r = response;
    kafka_err_t err = status == 0 ? r->error_code : client_err_of_status(status);
    if (p->stopped)
        return;
    if (err == KAFKA_OK) {
        pthread_mutex_lock(&p->lock);
        p->producer_id = r->producer_id;
        p->producer_epoch = r->producer_epoch;
        p->idempotence = IDEMPOTENCE_READY;
        pthread_mutex_unlock(&p->lock);
        p->id_attempts = 0;
    } else if (err == KAFKA_ERR_UNSUPPORTED) {
        client_log(2, "the broker is too old for idempotent producers: going on without");
        set_state(p, IDEMPOTENCE_OFF);
    } else if (kafka_err_is_retriable(err)) {
        p->ask_at_ms = executor_now_ms(cluster_executor(p->cluster)) +
                       cluster_backoff_ms(p->cluster, p->id_attempts++);
        set_state(p, IDEMPOTENCE_NEEDS_ID);
    } else {
        on_refused(p, err);
        return;
    }
    sender_run(p);
}

static void ask(kafka_producer_t *p, int64_t *wait_ms)
{
    struct init_producer_id_request req;
    int64_t wait = p->ask_at_ms - executor_now_ms(cluster_executor(p->cluster));
    struct node *n = wait <= 0 ? cluster_node(p->cluster, NODE_ANY) : NULL;
    if (n) {
        init_producer_id_request_init(&req);
        req.transactional_id = STR_NULL;
        req.transaction_timeout_ms = INT32_MAX;
        set_state(p, IDEMPOTENCE_ASKING);
        if (node_send(n, API_INIT_PRODUCER_ID, -1, -1, &req, cluster_request_timeout(p->cluster),
                      true, on_producer_id, p) == 0)
            return;
        set_state(p, IDEMPOTENCE_NEEDS_ID);
    }
    if (wait <= 0)
        wait = LOOK_AGAIN_MS;
    *wait_ms = wait < *wait_ms ? wait : *wait_ms;
}

bool idempotence_ready(kafka_producer_t *p, int64_t *wait_ms)
{
    pthread_mutex_lock(&p->lock);
    enum idempotence state = p->idempotence;
    pthread_mutex_unlock(&p->lock);
    if (state == IDEMPOTENCE_NEEDS_ID && !p->txn)
        ask(p, wait_ms);
    return state == IDEMPOTENCE_OFF || state == IDEMPOTENCE_READY;
}

/* ---- sequence numbers ---- */

/* The queue counts under the producer's present id and epoch, from 0. */
static void begin_count(kafka_producer_t *p, struct pqueue *q)
{
    q->producer_id = p->producer_id;
    q->producer_epoch = p->producer_epoch;
    q->next_sequence = 0;
}

void idempotence_number(kafka_producer_t *p, struct pbatch *b)
{
    struct pqueue *q = b->queue;
    if (p->idempotence != IDEMPOTENCE_READY || b->has_sequence)
        return;
    bool old = q->producer_id != p->producer_id || q->producer_epoch != p->producer_epoch;
    if (old && q->numbered == 0)
        begin_count(p, q);
    b->has_sequence = true;
    b->producer_id = q->producer_id;
    b->producer_epoch = q->producer_epoch;
    b->sequence = q->next_sequence;
    q->next_sequence = sequence_add(q->next_sequence, b->thunks_n);
    q->numbered++;
}

void idempotence_done(struct pbatch *b)
{
    b->queue->numbered -= b->has_sequence;
    b->has_sequence = false;
}

void idempotence_lost(kafka_producer_t *p, struct pqueue *q)
{
    if (p->txn)
        txn_lost_count(p->txn);
    else if (p->idempotence != IDEMPOTENCE_OFF)
        q->lost_count = true;
}

void idempotence_take_back(struct pbatch *b)
{
    struct pqueue *q = b->queue;
    uint32_t ahead = ((uint32_t)q->next_sequence - (uint32_t)b->sequence) & INT32_MAX;
    if (ahead <= INT32_MAX / 2) /* else an older one was taken back already */
        q->next_sequence = b->sequence;
}

void idempotence_restart(kafka_producer_t *p, struct pqueue *q)
{
    q->lost_count = false;
    list_each (it, &q->waiting)
        list_entry(it, struct pbatch, link)->has_sequence = false;
    q->numbered = 0;
    if (p->txn) { /* what the partition had of it is gone: it counts from 0 again */
        begin_count(p, q);
        return;
    }
    /* Another queue may have moved the epoch on already; else this one does. At its end a new id
     * begins at 0 again: until it is there nothing is numbered. */
    if (q->producer_id != p->producer_id || q->producer_epoch != p->producer_epoch)
        return;
    if (p->producer_epoch < INT16_MAX)
        p->producer_epoch++;
    else if (p->idempotence == IDEMPOTENCE_READY)
        p->idempotence = IDEMPOTENCE_NEEDS_ID;
}
