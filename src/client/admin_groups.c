/* admin_groups.c - the admin client and groups: listing, deleting, and what all operations on a
 * group's coordinator share. */
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "client/cluster_private.h"
#include "protocol/errors.h"
#include "protocol/msg/delete_groups.h"
#include "protocol/msg/list_groups.h"

/* ---- the coordinator ---- */

static void begin(struct admin_group *g, kafka_admin_t *a, int8_t type, const char *key)
{
    g->admin = a;
    coordinator_init(&g->coordinator, a->cluster, type, key);
    g->coordinator.shared = true;
}

void admin_group_begin(struct admin_group *g, kafka_admin_t *a, const char *group)
{
    begin(g, a, COORDINATOR_GROUP, group);
}

void admin_txn_begin(struct admin_group *g, kafka_admin_t *a, const char *id)
{
    begin(g, a, COORDINATOR_TRANSACTION, id);
}

kafka_err_t admin_group_run(struct admin_group *g, struct op *op, int64_t timeout_ms)
{
    op->coordinator = &g->coordinator;
    return op_run(g->admin->cluster, op, timeout_ms);
}

static void close_coordinator(void *arg)
{
    coordinator_close(arg);
}

void admin_group_end(struct admin_group *g)
{
    cluster_call(g->admin->cluster, close_coordinator, &g->coordinator);
}

/* ---- listing ---- */

struct group_listing {
    kafka_group_list_t list;
    struct arena mem;
    kafka_group_listing_t *v;
    size_t n, cap;
    int32_t broker; /* being asked */
};

static bool add_listing(struct group_listing *l, const struct list_groups_response_group *g)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 32;
        kafka_group_listing_t *grown = realloc(l->v, cap * sizeof *grown);
        if (!grown)
            return false;
        l->v = grown;
        l->cap = cap;
    }
    kafka_group_listing_t *to = &l->v[l->n];
    *to = (kafka_group_listing_t){
        arena_str(&l->mem, g->group_id).p, arena_str(&l->mem, g->protocol_type).p,
        arena_str(&l->mem, g->group_state).p, arena_str(&l->mem, g->group_type).p, l->broker};
    if (!to->group_id || !to->protocol_type || !to->state || !to->type)
        return false;
    l->n++;
    return true;
}

static kafka_err_t on_listed(struct op *op, int version, const void *response)
{
    const struct list_groups_response *m = response;
    struct group_listing *l = op->arg;
    if (m->error_code)
        return m->error_code;
    for (int32_t i = 0; i < m->groups.n; i++)
        if (!add_listing(l, &m->groups.v[i]))
            return KAFKA_ERR_NO_MEMORY;
    return KAFKA_OK;
}

static struct str *names(struct arena *a, const char *const *v, size_t n)
{
    struct str *to = arena_array(a, struct str, n);
    for (size_t i = 0; to && i < n; i++)
        to[i] = str_of(v[i]);
    return to;
}

static int by_group(const void *a, const void *b)
{
    const kafka_group_listing_t *x = a, *y = b;
    int c = strcmp(x->group_id, y->group_id);
    return c ? c : x->coordinator - y->coordinator;
}

/* A group that moves while brokers are asked may be told of twice. */
static void sort_listings(struct group_listing *l)
{
    size_t kept = 0;
    if (l->n)
        qsort(l->v, l->n, sizeof *l->v, by_group);
    for (size_t i = 0; i < l->n; i++)
        if (kept == 0 || strcmp(l->v[kept - 1].group_id, l->v[i].group_id) != 0)
            l->v[kept++] = l->v[i];
    l->list.v = l->v;
    l->list.n = kept;
}

static kafka_err_t ask_all(kafka_admin_t *a, struct group_listing *l,
                           struct list_groups_request *req, const kafka_cluster_info_t *info,
                           int64_t deadline)
{
    kafka_broker_error_t *errors = arena_array(&l->mem, kafka_broker_error_t, info->nodes_n);
    kafka_err_t first = KAFKA_OK;
    l->list.errors = errors;
    for (size_t i = 0; errors && i < info->nodes_n; i++) {
        struct op op = {.node = info->nodes[i].id,
                        .api_key = API_LIST_GROUPS,
                        .min_version = req->types_filter.n > 0    ? 5
                                       : req->states_filter.n > 0 ? 4
                                                                  : 0,
                        .max_version = -1,
                        .request = req,
                        .handle = on_listed,
                        .arg = l};
        l->broker = info->nodes[i].id;
        int64_t left = deadline - client_now_ms();
        kafka_err_t err = op_run(a->cluster, &op, deadline == INT64_MAX ? -1 : left > 0 ? left : 0);
        if (err != KAFKA_OK)
            errors[l->list.errors_n++] = (kafka_broker_error_t){l->broker, err};
        first = first == KAFKA_OK ? err : first;
    }
    /* With nothing from anywhere there is no list. */
    bool nothing = !errors || l->list.errors_n == info->nodes_n;
    return !errors ? KAFKA_ERR_NO_MEMORY : nothing ? first : KAFKA_OK;
}

kafka_err_t kafka_admin_list_groups(kafka_admin_t *a, const char *const *states, size_t states_n,
                                    const char *const *types, size_t types_n, int64_t timeout_ms,
                                    kafka_group_list_t **out)
{
    int64_t deadline = client_deadline(timeout_ms);
    struct group_listing *l = calloc(1, sizeof *l);
    struct list_groups_request req;
    kafka_cluster_info_t *info = NULL;
    const char *none = NULL;
    *out = NULL;
    if (!l)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&l->mem, 0);
    list_groups_request_init(&req);
    req.states_filter.v = names(&l->mem, states, states ? states_n : 0);
    req.states_filter.n = states ? (int32_t)states_n : 0;
    req.types_filter.v = names(&l->mem, types, types ? types_n : 0);
    req.types_filter.n = types ? (int32_t)types_n : 0;
    kafka_err_t err = req.states_filter.v && req.types_filter.v
                          ? kafka_admin_describe(a, &none, 0, timeout_ms, &info)
                          : KAFKA_ERR_NO_MEMORY;
    if (err == KAFKA_OK)
        err = ask_all(a, l, &req, info, deadline);
    kafka_cluster_info_free(info);
    sort_listings(l);
    if (err == KAFKA_OK)
        *out = &l->list;
    else
        kafka_group_list_free(&l->list);
    return err;
}

void kafka_group_list_free(kafka_group_list_t *list)
{
    if (!list)
        return;
    struct group_listing *l = container_of(list, struct group_listing, list);
    free(l->v);
    arena_free(&l->mem);
    free(l);
}

/* ---- deleting ---- */

static kafka_err_t on_deleted(struct op *op, int version, const void *response)
{
    const struct delete_groups_response *m = response;
    return m->results.n == 1 ? m->results.v[0].error_code : KAFKA_ERR_BAD_RESPONSE;
}

kafka_err_t kafka_admin_delete_groups(kafka_admin_t *a, const char *const *groups, size_t n,
                                      int64_t timeout_ms, kafka_err_t *errs)
{
    kafka_err_t first = KAFKA_OK;
    for (size_t i = 0; i < n; i++) {
        struct admin_group g;
        struct delete_groups_request req;
        struct str name = str_of(groups[i]);
        delete_groups_request_init(&req);
        req.groups_names.v = &name;
        req.groups_names.n = 1;
        struct op op = {.api_key = API_DELETE_GROUPS,
                        .min_version = -1,
                        .max_version = -1,
                        .request = &req,
                        .handle = on_deleted};
        admin_group_begin(&g, a, groups[i]);
        kafka_err_t err = admin_group_run(&g, &op, timeout_ms);
        admin_group_end(&g);
        first = first == KAFKA_OK ? err : first;
        if (errs)
            errs[i] = err;
    }
    return first;
}
