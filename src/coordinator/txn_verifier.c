/* txn_verifier.c - see txn_verifier.h. */
#include "coordinator/txn_verifier.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "coordinator/dial.h"
#include "coordinator/key_partition.h"
#include "protocol/msg/add_partitions_to_txn.h"

enum { FIRST_VERSION = 4, LAST_VERSION = 5, REQUEST_QUESTIONS_MAX = 500 };

struct asked { /* a broker */
    struct list link;
    struct txn_verifier *owner;
    int32_t broker;
    struct dial dial;
    struct list queue;
    /* The request that is out. */
    bool busy;
    struct list sent;
    struct arena arena;
};

struct txn_verifier {
    struct txn_verifier_options o;
    struct list brokers;
    bool stopped;
    struct txn_verifier_counts counts;
};

/* ---- answers ---- */

/* It has its answer. */
static void finish(struct txn_question *q)
{
    struct txn_verifier *v = q->verifier;
    bool failed = false;
    for (int i = 0; i < q->n; i++)
        failed |= q->partitions[i].error != KERR_NONE;
    metric_add(&v->counts.failed, failed);
    histogram_add(&v->counts.took_us,
                  (uint64_t)(clock_mono_ns(v->o.ex->clock) - q->asked_ns) / 1000);
    q->done(q);
}

const struct txn_verifier_counts *txn_verifier_counts(const struct txn_verifier *v)
{
    return &v->counts;
}

static void end(struct txn_question *q, enum kerr e)
{
    for (int i = 0; i < q->n; i++)
        q->partitions[i].error = e;
    finish(q);
}

static enum kerr meaning_of(enum kerr e)
{
    if (e == KERR_PRODUCER_FENCED)
        return KERR_INVALID_PRODUCER_EPOCH;
    return e;
}

typedef struct add_partitions_to_txn_response_transaction_result result;

/* What the answer leaves out was not answered. */
static enum kerr error_in(const result *r, const struct txn_call_partition *p)
{
    for (int32_t t = 0; t < r->topic_results.n; t++) {
        const struct add_partitions_to_txn_response_topic_result *topic = &r->topic_results.v[t];
        if (!str_eq(topic->name, p->topic))
            continue;
        for (int32_t i = 0; i < topic->results_by_partition.n; i++)
            if (topic->results_by_partition.v[i].partition_index == p->partition)
                return (enum kerr)topic->results_by_partition.v[i].partition_error_code;
    }
    return KERR_NETWORK_EXCEPTION;
}

static void take_answer(struct txn_question *q, const struct add_partitions_to_txn_response *r)
{
    const result *found = NULL;
    for (int32_t i = 0; i < r->results_by_transaction.n && !found; i++)
        if (str_eq(r->results_by_transaction.v[i].transactional_id, q->id))
            found = &r->results_by_transaction.v[i];
    for (int i = 0; i < q->n; i++) {
        struct txn_call_partition *p = &q->partitions[i];
        p->error = found ? meaning_of(error_in(found, p)) : KERR_NETWORK_EXCEPTION;
    }
    finish(q);
}

/* Of the whole: KERR_NONE = look at each. */
static enum kerr error_of_all(int status, const struct add_partitions_to_txn_response *r,
                              bool *skipped)
{
    *skipped = status == -ENOTSUP;
    if (status)
        return KERR_NETWORK_EXCEPTION;
    if (r->error_code == KERR_CLUSTER_AUTHORIZATION_FAILED)
        return KERR_INVALID_TXN_STATE;
    return (enum kerr)r->error_code;
}

static void send_queue(struct asked *a);

static void answered(void *arg, int status, int version, const void *response)
{
    struct asked *a = arg;
    struct list sent, *l;
    bool skipped;
    enum kerr all = error_of_all(status, response, &skipped);
    (void)version;
    list_init(&sent);
    list_splice(&sent, &a->sent);
    a->busy = false;
    while ((l = list_pop(&sent)) != NULL) {
        struct txn_question *q = list_entry(l, struct txn_question, link);
        if (skipped)
            end(q, KERR_NONE);
        else if (all != KERR_NONE)
            end(q, a->owner->stopped ? KERR_COORDINATOR_NOT_AVAILABLE : all);
        else
            take_answer(q, response);
    }
    arena_reset(&a->arena);
    if (a->owner->stopped)
        return;
    if (status && status != -ENOTSUP)
        dial_hang_up(&a->dial);
    send_queue(a);
}

/* ---- requests ---- */

typedef struct add_partitions_to_txn_request_transaction transaction;
typedef struct add_partitions_to_txn_request_topic topic;

/* Its partitions stand in order of their topics, mostly. */
static bool put_topics(const struct txn_question *q, struct arena *a, transaction *to)
{
    topic *v = add_partitions_to_txn_request_topic_new(a, q->n), *last = NULL;
    int32_t *numbers = arena_array(a, int32_t, (size_t)q->n);
    if (!v || !numbers)
        return false;
    to->topics.v = v;
    for (int i = 0; i < q->n; i++) {
        if (!last || !str_eq(last->name, q->partitions[i].topic)) {
            last = &v[to->topics.n++];
            last->name = q->partitions[i].topic;
            last->partitions.v = numbers;
            last->partitions.n = 0;
        }
        *numbers++ = q->partitions[i].partition;
        last->partitions.n++;
    }
    return true;
}

static struct add_partitions_to_txn_request *build(struct asked *a, int n)
{
    struct add_partitions_to_txn_request *req =
        arena_new(&a->arena, struct add_partitions_to_txn_request);
    transaction *v = add_partitions_to_txn_request_transaction_new(&a->arena, n);
    if (!req || !v)
        return NULL;
    add_partitions_to_txn_request_init(req);
    req->transactions.v = v;
    list_each (l, &a->sent) {
        const struct txn_question *q = list_entry(l, struct txn_question, link);
        transaction *to = &v[req->transactions.n++];
        to->transactional_id = q->id;
        to->producer_id = q->producer_id;
        to->producer_epoch = q->epoch;
        to->verify_only = true;
        if (!put_topics(q, &a->arena, to))
            return NULL;
    }
    return req;
}

static void send_queue(struct asked *a)
{
    const struct txn_verifier_options *o = &a->owner->o;
    int n = 0;
    while (!a->busy && n < REQUEST_QUESTIONS_MAX && !list_empty(&a->queue)) {
        list_push_back(&a->sent, list_pop(&a->queue));
        n++;
    }
    if (n == 0)
        return;
    struct add_partitions_to_txn_request *req = a->dial.remote ? build(a, n) : NULL;
    a->busy = true;
    if (!req || remote_send(a->dial.remote, API_ADD_PARTITIONS_TO_TXN, FIRST_VERSION, LAST_VERSION,
                            req, o->timeout_ms, answered, a) != 0)
        answered(a, -ENOMEM, -1, NULL);
}

/* ---- questions ---- */

static struct asked *find_broker(struct txn_verifier *v, int32_t broker)
{
    list_each (l, &v->brokers) {
        struct asked *a = list_entry(l, struct asked, link);
        if (a->broker == broker)
            return a;
    }
    struct asked *a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->owner = v;
    a->broker = broker;
    list_init(&a->queue);
    list_init(&a->sent);
    arena_init(&a->arena, 0);
    list_push_back(&v->brokers, &a->link);
    return a;
}

/* Who coordinates the id; NULL: nobody who can be reached. */
static struct asked *find_coordinator(struct txn_verifier *v, struct str id)
{
    const struct txn_verifier_options *o = &v->o;
    const struct metadata_snapshot *s = metadata_acquire(o->metadata);
    const struct partition_info *p =
        metadata_partition(s, STR_LIT("__transaction_state"), key_partition(id, o->partitions_n));
    const struct broker_info *b = p && p->leader >= 0 ? metadata_broker(s, p->leader) : NULL;
    const struct endpoint *e = b ? broker_endpoint(b, o->listener) : NULL;
    struct asked *a = e ? find_broker(v, b->id) : NULL;
    if (a && !a->busy && !dial_to(&a->dial, &o->opener, e, o->client_id, o->timeout_ms))
        a = NULL;
    metadata_release(s);
    return a;
}

/* One that waits for the same id makes room, or `q` is late itself. */
static bool take_place(struct asked *a, struct txn_question *q)
{
    list_each_safe (l, &a->queue) {
        struct txn_question *old = list_entry(l, struct txn_question, link);
        if (!str_eq(old->id, q->id))
            continue;
        if (q->epoch < old->epoch)
            return false;
        list_remove(&old->link);
        end(old, q->epoch == old->epoch ? KERR_NETWORK_EXCEPTION : KERR_INVALID_PRODUCER_EPOCH);
    }
    return true;
}

static void ask(struct task *t)
{
    struct txn_question *q = container_of(t, struct txn_question, task);
    struct txn_verifier *v = q->verifier;
    struct asked *a = v->stopped ? NULL : find_coordinator(v, q->id);
    if (!a) {
        end(q, KERR_COORDINATOR_NOT_AVAILABLE);
    } else if (!take_place(a, q)) {
        end(q, KERR_INVALID_PRODUCER_EPOCH);
    } else {
        list_push_back(&a->queue, &q->link);
        send_queue(a);
    }
}

void txn_verifier_ask(struct txn_verifier *v, struct txn_question *q)
{
    q->verifier = v;
    q->asked_ns = clock_mono_ns(v->o.ex->clock);
    list_init(&q->link);
    task_init(&q->task, ask);
    executor_post(v->o.ex, &q->task);
}

/* ---- life ---- */

struct txn_verifier *txn_verifier_new(const struct txn_verifier_options *o)
{
    struct txn_verifier *v = calloc(1, sizeof(*v));
    char *client_id = str_dup(str_of(o->client_id));
    if (!v || !client_id) {
        free(v);
        free(client_id);
        return NULL;
    }
    v->o = *o;
    v->o.client_id = client_id;
    list_init(&v->brokers);
    return v;
}

void txn_verifier_stop(struct txn_verifier *v)
{
    v->stopped = true;
    list_each (l, &v->brokers) {
        struct asked *a = list_entry(l, struct asked, link);
        struct list *waits;
        dial_hang_up(&a->dial);
        while ((waits = list_pop(&a->queue)) != NULL)
            end(list_entry(waits, struct txn_question, link), KERR_COORDINATOR_NOT_AVAILABLE);
    }
}

void txn_verifier_free(struct txn_verifier *v)
{
    struct list *l;
    if (!v)
        return;
    while ((l = list_pop(&v->brokers)) != NULL) {
        struct asked *a = list_entry(l, struct asked, link);
        arena_free(&a->arena);
        free(a);
    }
    free((char *)v->o.client_id);
    free(v);
}
