/* admin_group_offsets.c - the admin client and a group's offsets and members. */
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "client/committed.h"
#include "protocol/errors.h"
#include "protocol/msg/leave_group.h"
#include "protocol/msg/offset_commit.h"
#include "protocol/msg/offset_delete.h"

kafka_err_t kafka_admin_group_offsets(kafka_admin_t *a, const char *group,
                                      const kafka_topic_partition_t *tps, size_t n,
                                      int require_stable, int64_t timeout_ms,
                                      kafka_offset_list_t **out)
{
    struct admin_group g;
    admin_group_begin(&g, a, group);
    kafka_err_t err =
        committed_get(a->cluster, &g.coordinator, group, tps, n,
                      require_stable ? STABLE_IF_KNOWN : STABLE_NO, false, timeout_ms, out);
    admin_group_end(&g);
    return err;
}

/* ---- errors per partition ---- */

struct outcome { /* of the caller's partitions, in their order */
    const kafka_topic_partition_t *tps;
    kafka_err_t *errs;
    size_t n, next;
};

static bool outcome_begin(struct outcome *o, const kafka_topic_partition_t *tps, size_t n)
{
    *o = (struct outcome){tps, calloc(n + 1, sizeof *o->errs), n, 0};
    return o->errs != NULL;
}

static void outcome_reset(struct outcome *o)
{
    for (size_t i = 0; i < o->n; i++)
        o->errs[i] = KAFKA_ERR_BAD_RESPONSE;
}

static void outcome_put(struct outcome *o, struct str topic, int32_t partition, kafka_err_t err)
{
    for (size_t tried = 0; tried < o->n; tried++) {
        size_t i = (o->next + tried) % o->n;
        if (o->tps[i].partition == partition && str_eqz(topic, o->tps[i].topic)) {
            o->errs[i] = err;
            o->next = i + 1;
            return;
        }
    }
}

/* The first error; one that heals only when it is the only kind. */
static kafka_err_t outcome_first(const struct outcome *o)
{
    kafka_err_t first = KAFKA_OK;
    for (size_t i = 0; i < o->n; i++)
        if (o->errs[i] != KAFKA_OK && (first == KAFKA_OK || (kafka_err_is_retriable(first) &&
                                                             !kafka_err_is_retriable(o->errs[i]))))
            first = o->errs[i];
    return first;
}

/* The whole call's error is everybody's. */
static kafka_err_t outcome_end(struct outcome *o, kafka_err_t err, kafka_err_t *errs)
{
    for (size_t i = 0; errs && i < o->n; i++)
        errs[i] = o->errs && (err == KAFKA_OK || o->errs[i] != KAFKA_OK) ? o->errs[i] : err;
    free(o->errs);
    return err;
}

/* Asks the coordinator, and ends the outcome. request NULL: there was no memory for it. */
static kafka_err_t outcome_ask(struct outcome *o, kafka_admin_t *a, const char *group,
                               int16_t api_key, int min_version, const void *request,
                               kafka_err_t (*handle)(struct op *, int, const void *),
                               int64_t timeout_ms, kafka_err_t *errs)
{
    struct admin_group g;
    struct op op = {.api_key = api_key,
                    .min_version = min_version,
                    .max_version = -1,
                    .request = request,
                    .handle = handle,
                    .arg = o};
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    if (request) {
        admin_group_begin(&g, a, group);
        err = admin_group_run(&g, &op, timeout_ms);
        admin_group_end(&g);
    }
    return outcome_end(o, err == ADMIN_UNKNOWN_TOPIC ? KERR_UNKNOWN_TOPIC_OR_PARTITION : err, errs);
}

/* Topics of the same name that follow each other share an entry: index of the entry for tps[i]. */
static bool same_topic(const kafka_topic_partition_t *tps, size_t i)
{
    return i > 0 && strcmp(tps[i - 1].topic, tps[i].topic) == 0;
}

/* ---- alter ---- */

static kafka_err_t on_altered(struct op *op, int version, const void *response)
{
    const struct offset_commit_response *m = response;
    struct outcome *o = op->arg;
    outcome_reset(o);
    for (int32_t t = 0; t < m->topics.n; t++)
        for (int32_t k = 0; k < m->topics.v[t].partitions.n; k++)
            outcome_put(o, m->topics.v[t].name, m->topics.v[t].partitions.v[k].partition_index,
                        m->topics.v[t].partitions.v[k].error_code);
    kafka_err_t first = outcome_first(o);
    /* A topic that is not there will not come by waiting; a rebalance ends. */
    return first == KERR_UNKNOWN_TOPIC_OR_PARTITION ? ADMIN_UNKNOWN_TOPIC
           : first == KERR_REBALANCE_IN_PROGRESS    ? KERR_COORDINATOR_LOAD_IN_PROGRESS
                                                    : first;
}

static bool fill_commit(struct arena *a, struct offset_commit_request *req, const char *group,
                        const kafka_offset_t *offsets, const kafka_topic_partition_t *tps, size_t n)
{
    offset_commit_request_init(req);
    req->group_id = str_of(group);
    req->topics.v = offset_commit_request_topic_new(a, (int32_t)n);
    struct offset_commit_request_partition *parts =
        offset_commit_request_partition_new(a, (int32_t)n);
    for (size_t i = 0; req->topics.v && parts && i < n; i++) {
        if (!same_topic(tps, i)) {
            struct offset_commit_request_topic *t = &req->topics.v[req->topics.n++];
            t->name = str_of(tps[i].topic);
            t->partitions.v = &parts[i];
        }
        req->topics.v[req->topics.n - 1].partitions.n++;
        parts[i].partition_index = tps[i].partition;
        parts[i].committed_offset = offsets[i].offset;
        parts[i].committed_leader_epoch = offsets[i].leader_epoch;
        parts[i].committed_metadata = str_of(offsets[i].metadata ? offsets[i].metadata : "");
    }
    return req->topics.v && parts;
}

kafka_err_t kafka_admin_alter_group_offsets(kafka_admin_t *a, const char *group,
                                            const kafka_offset_t *offsets, size_t n,
                                            int64_t timeout_ms, kafka_err_t *errs)
{
    struct arena mem;
    struct offset_commit_request req;
    struct outcome o = {0};
    arena_init(&mem, 0);
    kafka_topic_partition_t *tps = arena_array(&mem, kafka_topic_partition_t, n);
    for (size_t i = 0; tps && i < n; i++)
        tps[i] = (kafka_topic_partition_t){offsets[i].topic, offsets[i].partition};
    bool made = tps && outcome_begin(&o, tps, n) && fill_commit(&mem, &req, group, offsets, tps, n);
    kafka_err_t err = outcome_ask(&o, a, group, API_OFFSET_COMMIT, 1, made ? &req : NULL,
                                  on_altered, timeout_ms, errs);
    arena_free(&mem);
    return err;
}

/* ---- delete ---- */

static kafka_err_t on_deleted(struct op *op, int version, const void *response)
{
    const struct offset_delete_response *m = response;
    struct outcome *o = op->arg;
    if (m->error_code)
        return m->error_code;
    outcome_reset(o);
    for (int32_t t = 0; t < m->topics.n; t++)
        for (int32_t k = 0; k < m->topics.v[t].partitions.n; k++)
            outcome_put(o, m->topics.v[t].name, m->topics.v[t].partitions.v[k].partition_index,
                        m->topics.v[t].partitions.v[k].error_code);
    kafka_err_t first = outcome_first(o);
    return first == KERR_UNKNOWN_TOPIC_OR_PARTITION ? ADMIN_UNKNOWN_TOPIC : first;
}

static bool fill_delete(struct arena *a, struct offset_delete_request *req, const char *group,
                        const kafka_topic_partition_t *tps, size_t n)
{
    offset_delete_request_init(req);
    req->group_id = str_of(group);
    req->topics.v = offset_delete_request_topic_new(a, (int32_t)n);
    struct offset_delete_request_partition *parts =
        offset_delete_request_partition_new(a, (int32_t)n);
    for (size_t i = 0; req->topics.v && parts && i < n; i++) {
        if (!same_topic(tps, i)) {
            struct offset_delete_request_topic *t = &req->topics.v[req->topics.n++];
            t->name = str_of(tps[i].topic);
            t->partitions.v = &parts[i];
        }
        req->topics.v[req->topics.n - 1].partitions.n++;
        parts[i].partition_index = tps[i].partition;
    }
    return req->topics.v && parts;
}

kafka_err_t kafka_admin_delete_group_offsets(kafka_admin_t *a, const char *group,
                                             const kafka_topic_partition_t *tps, size_t n,
                                             int64_t timeout_ms, kafka_err_t *errs)
{
    struct arena mem;
    struct offset_delete_request req;
    struct outcome o = {0};
    arena_init(&mem, 0);
    bool made = outcome_begin(&o, tps, n) && fill_delete(&mem, &req, group, tps, n);
    kafka_err_t err = outcome_ask(&o, a, group, API_OFFSET_DELETE, -1, made ? &req : NULL,
                                  on_deleted, timeout_ms, errs);
    arena_free(&mem);
    return err;
}

/* ---- members ---- */

struct removal {
    kafka_err_t *errs; /* may be NULL */
    size_t n;
};

static kafka_err_t on_removed(struct op *op, int version, const void *response)
{
    const struct leave_group_response *m = response;
    struct removal *r = op->arg;
    kafka_err_t first = m->error_code;
    for (int32_t i = 0; i < m->members.n; i++) {
        if (r->errs && (size_t)i < r->n)
            r->errs[i] = m->members.v[i].error_code;
        if (first == KAFKA_OK)
            first = m->members.v[i].error_code;
    }
    return first;
}

static kafka_err_t remove_members(kafka_admin_t *a, const char *group,
                                  struct leave_group_request *req, kafka_err_t *errs,
                                  int64_t timeout_ms)
{
    struct admin_group g;
    struct removal r = {errs, (size_t)req->members.n};
    struct op op = {.api_key = API_LEAVE_GROUP,
                    .min_version = 3,
                    .max_version = -1,
                    .request = req,
                    .handle = on_removed,
                    .arg = &r};
    admin_group_begin(&g, a, group);
    kafka_err_t err = admin_group_run(&g, &op, timeout_ms);
    admin_group_end(&g);
    return err;
}

static struct leave_group_request_member *fill_member(struct leave_group_request *req,
                                                      const char *reason)
{
    struct leave_group_request_member *m = &req->members.v[req->members.n++];
    m->reason = str_of(reason ? reason : "removed by an administrator");
    return m;
}

/* Static ones by instance id, the others by member id. */
static kafka_err_t remove_all(kafka_admin_t *a, const char *group, const char *reason,
                              int64_t timeout_ms)
{
    struct arena mem;
    struct leave_group_request req;
    kafka_group_infos_t *infos;
    kafka_err_t err = kafka_admin_describe_groups(a, &group, 1, timeout_ms, &infos);
    if (err != KAFKA_OK)
        return err;
    arena_init(&mem, 0);
    leave_group_request_init(&req);
    req.group_id = str_of(group);
    req.members.v = leave_group_request_member_new(&mem, (int32_t)infos->v[0].members_n);
    for (size_t i = 0; req.members.v && i < infos->v[0].members_n; i++) {
        const kafka_member_info_t *m = &infos->v[0].members[i];
        struct leave_group_request_member *to = fill_member(&req, reason);
        to->group_instance_id = str_of(m->instance_id);
        to->member_id = m->instance_id ? STR_LIT("") : str_of(m->member_id);
    }
    err = infos->v[0].err;
    if (err == KAFKA_OK && !req.members.v)
        err = KAFKA_ERR_NO_MEMORY;
    if (err == KAFKA_OK && req.members.n > 0)
        err = remove_members(a, group, &req, NULL, timeout_ms);
    kafka_group_infos_free(infos);
    arena_free(&mem);
    return err;
}

kafka_err_t kafka_admin_remove_group_members(kafka_admin_t *a, const char *group,
                                             const char *const *instance_ids, size_t n,
                                             const char *reason, int64_t timeout_ms,
                                             kafka_err_t *errs)
{
    struct arena mem;
    struct leave_group_request req;
    if (!instance_ids)
        return remove_all(a, group, reason, timeout_ms);
    arena_init(&mem, 0);
    leave_group_request_init(&req);
    req.group_id = str_of(group);
    req.members.v = leave_group_request_member_new(&mem, (int32_t)n);
    for (size_t i = 0; req.members.v && i < n; i++)
        fill_member(&req, reason)->group_instance_id = str_of(instance_ids[i]);
    kafka_err_t err =
        req.members.v ? remove_members(a, group, &req, errs, timeout_ms) : KAFKA_ERR_NO_MEMORY;
    arena_free(&mem);
    return err;
}
