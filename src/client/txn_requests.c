/* txn_requests.c - a producer's transactional requests: which one is due, sending it, its answer.
 * See txn.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/txn.h"
#include "protocol/errors.h"
#include "protocol/msg/add_offsets_to_txn.h"
#include "protocol/msg/add_partitions_to_txn.h"
#include "protocol/msg/end_txn.h"
#include "protocol/msg/init_producer_id.h"
#include "protocol/msg/txn_offset_commit.h"

enum {
    LOOK_AGAIN_MS = 100,     /* while a connection is awaited without an event of its own */
    FIRST_PARTITION_MS = 20, /* the transaction before is just being completed */
};

/* ---- which is due; lock held ---- */

static enum txn_request due_in_transaction(const struct txn *t)
{
    if (!list_empty(&t->wanted) || !list_empty(&t->asked))
        return TXN_ADD_PARTITIONS;
    if (t->offsets)
        return t->offsets->added ? TXN_COMMIT_OFFSETS : TXN_ADD_OFFSETS;
    return TXN_NOTHING;
}

static enum txn_request due_in_commit(const struct txn *t)
{
    enum txn_request r = due_in_transaction(t);
    if (r != TXN_NOTHING || !list_empty(&t->p->incomplete))
        return r;
    return t->open ? TXN_END : TXN_NOTHING;
}

static enum txn_request due_in_abort(const struct txn *t)
{
    if (!list_empty(&t->p->incomplete))
        return TXN_NOTHING;
    if (!t->open && t->unclear && !t->skip_end)
        return t->unclear & BIT(TXN_ADD_PARTITIONS) ? TXN_ADD_PARTITIONS : TXN_ADD_OFFSETS;
    if (t->open && !t->skip_end)
        return TXN_END;
    return t->bump || t->p->producer_id < 0 ? TXN_INIT_ID : TXN_NOTHING;
}

static bool is_over(const struct txn *t)
{
    return (t->state == TXN_COMMITTING || t->state == TXN_ABORTING) &&
           list_empty(&t->p->incomplete);
}

/* A transaction that needs nothing (any more) is complete. */
static enum txn_request find_due(struct txn *t)
{
    enum txn_request r = TXN_NOTHING;
    if (t->asking != TXN_NOTHING)
        return r;
    if (t->state == TXN_INITIALIZING)
        r = TXN_INIT_ID;
    else if (t->state == TXN_IN_TRANSACTION)
        r = due_in_transaction(t);
    else if (t->state == TXN_COMMITTING)
        r = due_in_commit(t);
    else if (t->state == TXN_ABORTING)
        r = due_in_abort(t);
    if (r == TXN_NOTHING && is_over(t))
        txn_complete(t, TXN_READY, KAFKA_OK, NULL);
    return r;
}

/* ---- requests; lock held. false: no memory ---- */

struct made { /* a request, in the arena */
    const void *request;
    int16_t api;
    int min_version, max_version;
};

static bool make_init_id(struct txn *t, struct arena *a, struct made *m)
{
    struct init_producer_id_request *req = arena_alloc(a, sizeof *req);
    bool bump = t->state == TXN_ABORTING && t->p->producer_id >= 0;
    if (!req)
        return false;
    init_producer_id_request_init(req);
    req->transactional_id = str_of(t->id);
    req->transaction_timeout_ms = t->timeout_ms;
    if (bump) {
        req->producer_id = t->p->producer_id;
        req->producer_epoch = t->p->producer_epoch;
    }
    *m = (struct made){req, API_INIT_PRODUCER_ID, bump ? 3 : -1, -1};
    return true;
}

/* Neighbours of one topic share its entry. */
static bool fill_partitions(struct txn *t, struct arena *a, struct add_partitions_to_txn_request *r)
{
    int32_t n = 0;
    list_each (it, &t->asked)
        n++;
    r->v3_and_below_topics.v = add_partitions_to_txn_request_topic_new(a, n);
    int32_t *indexes = arena_array(a, int32_t, n);
    if (!r->v3_and_below_topics.v || !indexes)
        return false;
    list_each (it, &t->asked) {
        const struct pqueue *q = list_entry(it, struct pqueue, txn_link);
        int32_t topics = r->v3_and_below_topics.n;
        struct add_partitions_to_txn_request_topic *to = r->v3_and_below_topics.v;
        if (!topics || !str_eqz(to[topics - 1].name, q->topic->name)) {
            to[topics].name = str_of(q->topic->name);
            to[topics].partitions.v = indexes;
            r->v3_and_below_topics.n = ++topics;
        }
        *indexes++ = q->partition;
        to[topics - 1].partitions.n++;
    }
    return true;
}

/* 3 is the last version for clients. */
static bool make_add_partitions(struct txn *t, struct arena *a, struct made *m)
{
    struct add_partitions_to_txn_request *req = arena_alloc(a, sizeof *req);
    if (t->state != TXN_ABORTING)
        list_splice(&t->asked, &t->wanted);
    if (!req)
        return false;
    add_partitions_to_txn_request_init(req);
    req->v3_and_below_transactional_id = str_of(t->id);
    req->v3_and_below_producer_id = t->p->producer_id;
    req->v3_and_below_producer_epoch = t->p->producer_epoch;
    *m = (struct made){req, API_ADD_PARTITIONS_TO_TXN, 0, 3};
    return fill_partitions(t, a, req);
}

static bool make_add_offsets(struct txn *t, struct arena *a, struct made *m)
{
    struct add_offsets_to_txn_request *req = arena_alloc(a, sizeof *req);
    if (!req)
        return false;
    add_offsets_to_txn_request_init(req);
    req->transactional_id = str_of(t->id);
    req->producer_id = t->p->producer_id;
    req->producer_epoch = t->p->producer_epoch;
    req->group_id = str_of(t->group_id);
    *m = (struct made){req, API_ADD_OFFSETS_TO_TXN, 0, 4};
    return true;
}

/* Those that the coordinator has not taken yet. */
static bool fill_offsets(const struct txn_offsets *o, struct arena *a,
                         struct txn_offset_commit_request *req)
{
    int32_t n = (int32_t)o->list->n;
    struct txn_offset_commit_request_partition *p = txn_offset_commit_request_partition_new(a, n);
    struct txn_offset_commit_request_topic *t = txn_offset_commit_request_topic_new(a, n);
    if (!p || !t)
        return false;
    req->topics.v = t;
    for (int32_t i = 0; i < n; i++) {
        const kafka_offset_t *from = &o->list->v[i];
        if (from->err == KAFKA_OK)
            continue;
        if (!req->topics.n || !str_eqz(t[req->topics.n - 1].name, from->topic)) {
            t[req->topics.n].name = str_of(from->topic);
            t[req->topics.n++].partitions.v = p;
        }
        p->partition_index = from->partition;
        p->committed_offset = from->offset;
        p->committed_leader_epoch = from->leader_epoch;
        p++->committed_metadata = str_of(from->metadata ? from->metadata : "");
        t[req->topics.n - 1].partitions.n++;
    }
    return true;
}

/* Below version 3 a member cannot be named. */
static bool make_commit_offsets(struct txn *t, struct arena *a, struct made *m)
{
    struct txn_offset_commit_request *req = arena_alloc(a, sizeof *req);
    const kafka_group_metadata_t *g = t->offsets->group;
    bool named = g->generation >= 0 || g->member_id[0] || g->instance_id;
    if (!req)
        return false;
    txn_offset_commit_request_init(req);
    req->transactional_id = str_of(t->id);
    req->group_id = str_of(g->group_id);
    req->producer_id = t->p->producer_id;
    req->producer_epoch = t->p->producer_epoch;
    req->generation_id = g->generation;
    req->member_id = str_of(g->member_id);
    req->group_instance_id = g->instance_id ? str_of(g->instance_id) : STR_NULL;
    *m = (struct made){req, API_TXN_OFFSET_COMMIT, named ? 3 : 0, 4};
    return fill_offsets(t->offsets, a, req);
}

static bool make_end(struct txn *t, struct arena *a, struct made *m)
{
    struct end_txn_request *req = arena_alloc(a, sizeof *req);
    if (!req)
        return false;
    end_txn_request_init(req);
    req->transactional_id = str_of(t->id);
    req->producer_id = t->p->producer_id;
    req->producer_epoch = t->p->producer_epoch;
    req->committed = t->state == TXN_COMMITTING;
    *m = (struct made){req, API_END_TXN, 0, 4};
    return true;
}

/* ---- answers; lock held ---- */

static kafka_err_t init_id_error(struct txn *t, int version, const void *response)
{
    const struct init_producer_id_response *r = response;
    if (r->error_code != KAFKA_OK)
        return r->error_code;
    if (r->producer_id < 0 || r->producer_epoch < 0)
        return KAFKA_ERR_BAD_RESPONSE;
    t->p->producer_id = r->producer_id;
    t->p->producer_epoch = r->producer_epoch;
    t->p->idempotence = IDEMPOTENCE_READY;
    t->can_bump = version >= 3;
    return KAFKA_OK;
}

/* Of several errors the one that decides. Others in a request that has one bad partition say only
 * that they were left out. */
static kafka_err_t worse(enum txn_request r, kafka_err_t a, kafka_err_t b)
{
    static const int8_t ranks[] = {
        [VERDICT_RETRY] = 2,   [VERDICT_FIND] = 3,   [VERDICT_ABORTABLE] = 4, [VERDICT_BUMP] = 5,
        [VERDICT_REFUSED] = 6, [VERDICT_FENCED] = 7, [VERDICT_FATAL] = 8};
    int ranked[2];
    kafka_err_t errs[2] = {a, b};
    for (int i = 0; i < 2; i++)
        ranked[i] = errs[i] == KAFKA_OK                       ? 0
                    : errs[i] == KERR_OPERATION_NOT_ATTEMPTED ? 1
                                                              : ranks[txn_judge(r, errs[i])];
    return ranked[1] > ranked[0] ? b : a;
}

static kafka_err_t partitions_error(struct txn *t, int version, const void *response)
{
    const struct add_partitions_to_txn_response *r = response;
    kafka_err_t err = KAFKA_OK;
    int32_t answered = 0, asked = 0;
    for (int32_t i = 0; i < r->results_by_topic_v3_and_below.n; i++) {
        const struct add_partitions_to_txn_response_topic_result *topic =
            &r->results_by_topic_v3_and_below.v[i];
        for (int32_t k = 0; k < topic->results_by_partition.n; k++, answered++) {
            kafka_err_t one = topic->results_by_partition.v[k].partition_error_code;
            err = worse(TXN_ADD_PARTITIONS, err, one);
            if (one == KERR_TOPIC_AUTHORIZATION_FAILED)
                snprintf(t->refused_topic, sizeof t->refused_topic, "%.*s", STR_ARG(topic->name));
        }
    }
    list_each (it, &t->asked)
        asked++;
    return err == KAFKA_OK && answered != asked ? KAFKA_ERR_BAD_RESPONSE : err;
}

static kafka_err_t add_offsets_error(struct txn *t, int version, const void *response)
{
    return ((const struct add_offsets_to_txn_response *)response)->error_code;
}

static kafka_offset_t *find_offset(const struct txn_offsets *o, struct str topic, int32_t partition)
{
    for (size_t i = 0; i < o->list->n; i++)
        if (o->list->v[i].partition == partition && str_eqz(topic, o->list->v[i].topic))
            return (kafka_offset_t *)&o->list->v[i];
    return NULL;
}

static kafka_err_t commit_offsets_error(struct txn *t, int version, const void *response)
{
    const struct txn_offset_commit_response *r = response;
    const struct txn_offsets *o = t->offsets;
    kafka_err_t err = KAFKA_OK;
    for (int32_t i = 0; o && i < r->topics.n; i++)
        for (int32_t k = 0; k < r->topics.v[i].partitions.n; k++) {
            kafka_offset_t *of =
                find_offset(o, r->topics.v[i].name, r->topics.v[i].partitions.v[k].partition_index);
            if (of)
                of->err = r->topics.v[i].partitions.v[k].error_code;
        }
    for (size_t i = 0; o && i < o->list->n; i++)
        err = worse(TXN_COMMIT_OFFSETS, err, o->list->v[i].err);
    return err;
}

static kafka_err_t end_error(struct txn *t, int version, const void *response)
{
    return ((const struct end_txn_response *)response)->error_code;
}

/* ---- what was done; lock held ---- */

static void init_id_done(struct txn *t)
{
    t->bump = false;
    if (t->state == TXN_INITIALIZING) {
        txn_set_state(t, TXN_READY);
        txn_finish_op(t, KAFKA_OK, NULL);
    }
}

static void partitions_done(struct txn *t)
{
    t->open = true;
    while (!list_empty(&t->asked)) {
        struct pqueue *q = list_entry(list_pop(&t->asked), struct pqueue, txn_link);
        list_push_back(&t->added, &q->txn_link);
        q->in_txn = true;
        queue_place(t->p, q);
    }
}

static void add_offsets_done(struct txn *t)
{
    t->open = true;
    if (t->offsets)
        t->offsets->added = true;
}

static void commit_offsets_done(struct txn *t)
{
    txn_finish_offsets(t, KAFKA_OK, NULL);
}

static void end_done(struct txn *t)
{
    t->open = false;
}

/* ---- the table of requests ---- */

static const struct {
    const char *name;
    bool (*make)(struct txn *t, struct arena *a, struct made *m);
    kafka_err_t (*error)(struct txn *t, int version, const void *response);
    void (*done)(struct txn *t);
} requests[TXN_REQUESTS] = {
    [TXN_INIT_ID] = {"InitProducerId", make_init_id, init_id_error, init_id_done},
    [TXN_ADD_PARTITIONS] = {"AddPartitionsToTxn", make_add_partitions, partitions_error,
                            partitions_done},
    [TXN_ADD_OFFSETS] = {"AddOffsetsToTxn", make_add_offsets, add_offsets_error, add_offsets_done},
    [TXN_COMMIT_OFFSETS] = {"TxnOffsetCommit", make_commit_offsets, commit_offsets_error,
                            commit_offsets_done},
    [TXN_END] = {"EndTxn", make_end, end_error, end_done},
};

/* ---- errors; lock held ---- */

/* Those that make the transaction known to its coordinator. */
static bool adds(enum txn_request r)
{
    return r == TXN_ADD_PARTITIONS || r == TXN_ADD_OFFSETS;
}

static void retry(struct txn *t, enum txn_request r, kafka_err_t err)
{
    struct cluster *c = t->p->cluster;
    int64_t wait = cluster_backoff_ms(c, t->attempts++);
    bool first = r == TXN_ADD_PARTITIONS && !t->open && err == KERR_CONCURRENT_TRANSACTIONS;
    if (first && wait > FIRST_PARTITION_MS)
        wait = FIRST_PARTITION_MS;
    t->retry_at_ms = executor_now_ms(cluster_executor(c)) + wait;
}

/* It was answered, and nothing was added. */
static void drop_what_was_asked(struct txn *t, enum txn_request r)
{
    t->unclear &= ~BIT(r);
    while (r == TXN_ADD_PARTITIONS && !list_empty(&t->asked))
        list_pop(&t->asked);
}

static void abortable(struct txn *t, enum txn_request r, kafka_err_t err, const char *why)
{
    if (adds(r))
        drop_what_was_asked(t, r);
    if (t->state != TXN_ABORTING || r == TXN_END || r == TXN_INIT_ID)
        txn_abortable(t, err, why);
}

static void bump(struct txn *t, enum txn_request r, kafka_err_t err, const char *why)
{
    if (!t->can_bump) {
        txn_fatal(t, err, why);
        return;
    }
    t->bump = true;
    t->skip_end |= err == KERR_INVALID_PRODUCER_ID_MAPPING; /* nothing can be ended under this id */
    if (adds(r))
        drop_what_was_asked(t, r);
    if (t->state != TXN_ABORTING || (r == TXN_END && !t->skip_end))
        txn_abortable(t, err, why);
}

static void on_error(struct txn *t, enum txn_request r, const char *name, kafka_err_t err)
{
    char why[500], words[CLIENT_WORDS];
    if (t->state == TXN_FATAL_ERROR)
        return;
    const char *topic = r == TXN_ADD_PARTITIONS ? t->refused_topic : NULL;
    const char *id = err == KERR_GROUP_AUTHORIZATION_FAILED ? t->group_id : t->id;
    snprintf(why, sizeof why, "%s: %s (%s)", name, client_words(err, topic, id, words),
             kafka_err_name(err));
    switch (txn_judge(r, err)) {
    case VERDICT_RETRY:
    case VERDICT_FIND:
        retry(t, r, err);
        break;
    case VERDICT_ABORTABLE:
        abortable(t, r, err, why);
        break;
    case VERDICT_BUMP:
        bump(t, r, err, why);
        break;
    case VERDICT_REFUSED:
        txn_complete(t, TXN_UNINITIALIZED, err, why);
        break;
    case VERDICT_FENCED:
        txn_fenced(t, err, name);
        break;
    case VERDICT_FATAL:
        txn_fatal(t, err, why);
        break;
    }
}

/* ---- sending; lock not held ---- */

static struct coordinator *coordinator_of(struct txn *t, enum txn_request r)
{
    return r == TXN_COMMIT_OFFSETS ? &t->group : &t->coordinator;
}

static void on_answer(void *arg, int status, int version, const void *response)
{
    struct txn *t = arg;
    kafka_producer_t *p = t->p;
    enum txn_request r = t->asking;
    t->asking = TXN_NOTHING;
    if (p->stopped)
        return;
    pthread_mutex_lock(&p->lock);
    kafka_err_t err =
        status == 0 ? requests[r].error(t, version, response) : client_err_of_status(status);
    if (err == KAFKA_OK) {
        t->attempts = 0;
        t->unclear &= ~BIT(r);
        requests[r].done(t);
    } else {
        if (adds(r) && status != 0)
            t->unclear |= BIT(r);
        on_error(t, r, requests[r].name, err);
    }
    pthread_mutex_unlock(&p->lock);
    if (err != KAFKA_OK && txn_judge(r, err) == VERDICT_FIND)
        coordinator_failed(coordinator_of(t, r), t->asked_node);
    sender_run(p);
}

/* The coordinator of the group at hand. false without memory. */
static bool take_group(struct txn *t, const char *group_id)
{
    if (t->group_id && strcmp(t->group_id, group_id) == 0)
        return true;
    if (t->group_id)
        coordinator_close(&t->group);
    free(t->group_id);
    t->group_id = str_dup(str_of(group_id));
    if (!t->group_id)
        return false;
    coordinator_init(&t->group, t->p->cluster, COORDINATOR_GROUP, t->group_id);
    t->group.changed = t->coordinator.changed;
    t->group.arg = t;
    return true;
}

/* The connection for the request; NULL: not now, *wait_ms says when. */
static struct node *find_node(struct txn *t, enum txn_request r, int64_t *wait_ms)
{
    struct coordinator *co = coordinator_of(t, r);
    int64_t wait = LOOK_AGAIN_MS;
    if (co->err != KAFKA_OK) { /* FindCoordinator was refused */
        pthread_mutex_lock(&t->p->lock);
        on_error(t, r, "FindCoordinator", co->err);
        sender_wake(t->p);
        pthread_mutex_unlock(&t->p->lock);
        co->err = KAFKA_OK;
        return NULL;
    }
    struct node *n = coordinator_node(co);
    if (!n)
        return NULL; /* on_coordinator runs us again */
    if (node_ready(n, &wait))
        return n;
    wait = wait > 0 ? wait : LOOK_AGAIN_MS;
    *wait_ms = wait < *wait_ms ? wait : *wait_ms;
    return NULL;
}

/* 0, or -errno without an answer to come. */
static int send_to(struct txn *t, enum txn_request r, struct node *n)
{
    struct arena a;
    struct made m;
    arena_init(&a, 0);
    pthread_mutex_lock(&t->p->lock);
    bool still = find_due(t) == r; /* a call may have come in between */
    bool made = still && requests[r].make(t, &a, &m);
    if (!still)
        sender_wake(t->p);
    pthread_mutex_unlock(&t->p->lock);
    t->asking = r;
    t->asked_node = n;
    int rc = made ? node_send(n, m.api, m.min_version, m.max_version, m.request,
                              cluster_request_timeout(t->p->cluster), true, on_answer, t)
                  : -1;
    if (rc < 0)
        t->asking = TXN_NOTHING;
    arena_free(&a);
    return still ? rc : 0;
}

/* Fails what waits of a transaction that is lost. */
static void purge(struct txn *t)
{
    kafka_producer_t *p = t->p;
    kafka_err_t why;
    pthread_mutex_lock(&p->lock);
    bool lost = txn_is_lost(t, &why) && !list_empty(&p->incomplete);
    pthread_mutex_unlock(&p->lock);
    if (lost)
        outcome_fail_lost(p, why);
}

void txn_run(struct txn *t, int64_t *wait_ms)
{
    kafka_producer_t *p = t->p;
    char *group_id = NULL;
    purge(t);
    pthread_mutex_lock(&p->lock);
    enum txn_request r = find_due(t);
    if (r != TXN_NOTHING && t->offsets)
        group_id = str_dup(str_of(t->offsets->group->group_id));
    pthread_mutex_unlock(&p->lock);
    if (r == TXN_NOTHING)
        return;
    int64_t wait = t->retry_at_ms - executor_now_ms(cluster_executor(p->cluster));
    bool ready = wait <= 0 && (!group_id || take_group(t, group_id));
    free(group_id);
    struct node *n = ready ? find_node(t, r, wait_ms) : NULL;
    if (n && send_to(t, r, n) < 0)
        wait = LOOK_AGAIN_MS;
    if (wait > 0)
        *wait_ms = wait < *wait_ms ? wait : *wait_ms;
}
