/* admin_transactions.c - the admin client and transactional ids: listing, describing, fencing. */
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "client/cluster_private.h"
#include "protocol/errors.h"
#include "protocol/msg/describe_transactions.h"
#include "protocol/msg/init_producer_id.h"
#include "protocol/msg/list_transactions.h"

/* ---- listing ---- */

struct txn_listing {
    kafka_transaction_list_t list;
    struct arena mem;
    kafka_transaction_listing_t *v;
    size_t n, cap;
    int32_t broker; /* being asked */
};

static bool add(struct txn_listing *l, const struct list_transactions_response_transaction_state *t)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 32;
        kafka_transaction_listing_t *grown = realloc(l->v, cap * sizeof *grown);
        if (!grown)
            return false;
        l->v = grown;
        l->cap = cap;
    }
    kafka_transaction_listing_t *to = &l->v[l->n];
    *to = (kafka_transaction_listing_t){arena_str(&l->mem, t->transactional_id).p,
                                        arena_str(&l->mem, t->transaction_state).p, t->producer_id,
                                        l->broker};
    if (!to->transactional_id || !to->state)
        return false;
    l->n++;
    return true;
}

static kafka_err_t on_listed(struct op *op, int version, const void *response)
{
    const struct list_transactions_response *m = response;
    struct txn_listing *l = op->arg;
    if (m->error_code)
        return m->error_code;
    for (int32_t i = 0; i < m->transaction_states.n; i++)
        if (!add(l, &m->transaction_states.v[i]))
            return KAFKA_ERR_NO_MEMORY;
    return KAFKA_OK;
}

static int by_coordinator(const void *a, const void *b)
{
    const kafka_transaction_listing_t *x = a, *y = b;
    if (x->coordinator != y->coordinator)
        return x->coordinator < y->coordinator ? -1 : 1;
    return strcmp(x->transactional_id, y->transactional_id);
}

static int64_t time_left(int64_t deadline)
{
    int64_t left = deadline == INT64_MAX ? -1 : deadline - client_now_ms();
    return deadline == INT64_MAX || left > 0 ? left : 0;
}

static kafka_err_t ask_all(kafka_admin_t *a, struct txn_listing *l,
                           struct list_transactions_request *req, const kafka_cluster_info_t *info,
                           int64_t deadline)
{
    kafka_broker_error_t *errors = arena_array(&l->mem, kafka_broker_error_t, info->nodes_n);
    kafka_err_t first = KAFKA_OK;
    l->list.errors = errors;
    for (size_t i = 0; errors && i < info->nodes_n; i++) {
        struct op op = {.node = info->nodes[i].id,
                        .api_key = API_LIST_TRANSACTIONS,
                        .min_version = req->duration_filter >= 0 ? 1 : 0,
                        .max_version = -1,
                        .request = req,
                        .handle = on_listed,
                        .arg = l};
        l->broker = info->nodes[i].id;
        kafka_err_t err = op_run(a->cluster, &op, time_left(deadline));
        if (err != KAFKA_OK)
            errors[l->list.errors_n++] = (kafka_broker_error_t){l->broker, err};
        first = first == KAFKA_OK ? err : first;
    }
    /* With nothing from anywhere there is no list. */
    bool nothing = !errors || l->list.errors_n == info->nodes_n;
    return !errors ? KAFKA_ERR_NO_MEMORY : nothing ? first : KAFKA_OK;
}

static bool fill_filters(struct txn_listing *l, struct list_transactions_request *req,
                         const char *const *states, size_t states_n, const int64_t *producer_ids,
                         size_t producer_ids_n)
{
    size_t n = states ? states_n : 0;
    struct str *names = arena_array(&l->mem, struct str, n);
    for (size_t i = 0; names && i < n; i++)
        names[i] = str_of(states[i]);
    req->state_filters.v = names;
    req->state_filters.n = (int32_t)n;
    req->producer_id_filters.v = (int64_t *)producer_ids; /* only read */
    req->producer_id_filters.n = producer_ids ? (int32_t)producer_ids_n : 0;
    return names != NULL;
}

kafka_err_t kafka_admin_list_transactions(kafka_admin_t *a, const char *const *states,
                                          size_t states_n, const int64_t *producer_ids,
                                          size_t producer_ids_n, int64_t longer_than_ms,
                                          int64_t timeout_ms, kafka_transaction_list_t **out)
{
    int64_t deadline = client_deadline(timeout_ms);
    struct txn_listing *l = calloc(1, sizeof *l);
    struct list_transactions_request req;
    kafka_cluster_info_t *info = NULL;
    const char *none = NULL;
    *out = NULL;
    if (!l)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&l->mem, 0);
    list_transactions_request_init(&req);
    req.duration_filter = longer_than_ms < 0 ? -1 : longer_than_ms;
    kafka_err_t err = fill_filters(l, &req, states, states_n, producer_ids, producer_ids_n)
                          ? kafka_admin_describe(a, &none, 0, timeout_ms, &info)
                          : KAFKA_ERR_NO_MEMORY;
    if (err == KAFKA_OK)
        err = ask_all(a, l, &req, info, deadline);
    kafka_cluster_info_free(info);
    if (l->n)
        qsort(l->v, l->n, sizeof *l->v, by_coordinator);
    l->list.v = l->v;
    l->list.n = l->n;
    if (err == KAFKA_OK)
        *out = &l->list;
    else
        kafka_transaction_list_free(&l->list);
    return err;
}

void kafka_transaction_list_free(kafka_transaction_list_t *list)
{
    if (!list)
        return;
    struct txn_listing *l = container_of(list, struct txn_listing, list);
    free(l->v);
    arena_free(&l->mem);
    free(l);
}

/* ---- describing ---- */

struct txn_infos {
    kafka_transaction_infos_t infos;
    struct arena mem;
};

struct txn_call {
    struct arena *mem;
    kafka_transaction_info_t *to;
    struct coordinator *coordinator;
};

static bool keep_partitions(struct arena *a,
                            const struct describe_transactions_response_transaction_state *t,
                            kafka_transaction_info_t *to)
{
    size_t n = 0;
    for (int32_t i = 0; i < t->topics.n; i++)
        n += (size_t)t->topics.v[i].partitions.n;
    kafka_topic_partition_t *v = arena_array(a, kafka_topic_partition_t, n);
    to->partitions = v;
    for (int32_t i = 0; v && i < t->topics.n; i++) {
        const char *topic = arena_str(a, t->topics.v[i].topic).p;
        for (int32_t p = 0; topic && p < t->topics.v[i].partitions.n; p++)
            v[to->partitions_n++] =
                (kafka_topic_partition_t){topic, t->topics.v[i].partitions.v[p]};
    }
    return to->partitions_n == n && v;
}

static kafka_err_t on_described(struct op *op, int version, const void *response)
{
    const struct describe_transactions_response *m = response;
    struct txn_call *c = op->arg;
    if (m->transaction_states.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    const struct describe_transactions_response_transaction_state *t = m->transaction_states.v;
    struct node *n = coordinator_node(c->coordinator);
    c->to->coordinator = n ? node_id(n) : -1;
    if (t->error_code)
        return t->error_code;
    c->to->state = arena_str(c->mem, t->transaction_state).p;
    c->to->producer_id = t->producer_id;
    c->to->producer_epoch = t->producer_epoch;
    c->to->timeout_ms = t->transaction_timeout_ms;
    c->to->start_ms = t->transaction_start_time_ms;
    c->to->partitions_n = 0;
    return c->to->state && keep_partitions(c->mem, t, c->to) ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

static kafka_err_t describe_one(kafka_admin_t *a, struct arena *mem, const char *id,
                                kafka_transaction_info_t *to, int64_t timeout_ms)
{
    struct admin_group g;
    struct describe_transactions_request req;
    struct str name = str_of(id);
    struct txn_call call = {mem, to, &g.coordinator};
    struct op op = {.api_key = API_DESCRIBE_TRANSACTIONS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_described,
                    .arg = &call};
    *to = (kafka_transaction_info_t){.transactional_id = arena_str(mem, name).p,
                                     .state = "",
                                     .coordinator = -1,
                                     .producer_id = -1,
                                     .producer_epoch = -1,
                                     .start_ms = -1};
    describe_transactions_request_init(&req);
    req.transactional_ids.v = &name;
    req.transactional_ids.n = 1;
    admin_txn_begin(&g, a, id);
    to->err = admin_group_run(&g, &op, timeout_ms);
    admin_group_end(&g);
    return to->transactional_id ? to->err : KAFKA_ERR_NO_MEMORY;
}

kafka_err_t kafka_admin_describe_transactions(kafka_admin_t *a, const char *const *ids, size_t n,
                                              int64_t timeout_ms, kafka_transaction_infos_t **out)
{
    struct txn_infos *d = calloc(1, sizeof *d);
    kafka_transaction_info_t *v = NULL;
    kafka_err_t err = KAFKA_OK;
    *out = NULL;
    if (d) {
        arena_init(&d->mem, 0);
        v = arena_array(&d->mem, kafka_transaction_info_t, n);
    }
    for (size_t i = 0; v && err != KAFKA_ERR_NO_MEMORY && i < n; i++)
        err = describe_one(a, &d->mem, ids[i], &v[i], timeout_ms);
    if (!v || err == KAFKA_ERR_NO_MEMORY) {
        if (d)
            kafka_transaction_infos_free(&d->infos);
        return KAFKA_ERR_NO_MEMORY;
    }
    d->infos.v = v;
    d->infos.n = n;
    *out = &d->infos;
    return KAFKA_OK;
}

void kafka_transaction_infos_free(kafka_transaction_infos_t *infos)
{
    if (!infos)
        return;
    struct txn_infos *d = container_of(infos, struct txn_infos, infos);
    arena_free(&d->mem);
    free(d);
}

/* ---- fencing ---- */

enum { FENCE_TIMEOUT_MAX_MS = 60000 }; /* coordinators allow at least this, unless set otherwise */

/* Of a transaction that nobody begins; but the coordinator's own write must be done in that time,
 * too, so it is as long as the answer is waited for. */
static int32_t fence_timeout(const kafka_admin_t *a, int64_t timeout_ms)
{
    int64_t ms = timeout_ms > 0 ? timeout_ms : cluster_request_timeout(a->cluster);
    return (int32_t)(ms < FENCE_TIMEOUT_MAX_MS ? ms : FENCE_TIMEOUT_MAX_MS);
}

static kafka_err_t on_fenced(struct op *op, int version, const void *response)
{
    const struct init_producer_id_response *m = response;
    kafka_fenced_producer_t *to = op->arg;
    to->producer_id = m->producer_id;
    to->producer_epoch = m->producer_epoch;
    return m->error_code;
}

kafka_err_t kafka_admin_fence_producers(kafka_admin_t *a, const char *const *ids, size_t n,
                                        int64_t timeout_ms, kafka_fenced_producer_t *out)
{
    kafka_err_t first = KAFKA_OK;
    for (size_t i = 0; i < n; i++) {
        struct admin_group g;
        struct init_producer_id_request req;
        struct op op = {.api_key = API_INIT_PRODUCER_ID,
                        .min_version = -1,
                        .max_version = -1,
                        .request = &req,
                        .handle = on_fenced,
                        .arg = &out[i]};
        init_producer_id_request_init(&req);
        req.transactional_id = str_of(ids[i]);
        req.transaction_timeout_ms = fence_timeout(a, timeout_ms);
        out[i] = (kafka_fenced_producer_t){KAFKA_OK, -1, -1};
        admin_txn_begin(&g, a, ids[i]);
        out[i].err = admin_group_run(&g, &op, timeout_ms);
        admin_group_end(&g);
        first = first == KAFKA_OK ? out[i].err : first;
    }
    return first;
}
