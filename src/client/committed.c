/* committed.c - what a group has committed: OffsetFetch, for the application, and as where reading
 * begins. */
#include <stdlib.h>

#include "client/cluster_private.h"
#include "client/committed.h"
#include "client/consumer_private.h"
#include "client/group.h"
#include "client/lists.h"
#include "protocol/errors.h"
#include "protocol/msg/offset_fetch.h"

bool committed_fill(struct arena *a, struct offset_fetch_request *req, const char *group,
                    const kafka_topic_partition_t *tps, size_t n, bool require_stable)
{
    offset_fetch_request_init(req);
    req->group_id = str_of(group);
    req->require_stable = require_stable;
    req->topics.n = tps ? 0 : -1;
    if (!tps)
        return true;
    req->topics.v = offset_fetch_request_topic_new(a, (int32_t)n);
    int32_t *indexes = arena_array(a, int32_t, n);
    if (!req->topics.v || !indexes)
        return false;
    for (size_t i = 0; i < n; i++) {
        int32_t last = req->topics.n - 1;
        if (last < 0 || !str_eqz(req->topics.v[last].name, tps[i].topic)) {
            last = req->topics.n++;
            req->topics.v[last].name = str_of(tps[i].topic);
            req->topics.v[last].partition_indexes.v = &indexes[i];
        }
        indexes[i] = tps[i].partition;
        req->topics.v[last].partition_indexes.n++;
    }
    return true;
}

/* Both layouts say the same: the single group of before v8, and the first of many. */
kafka_err_t committed_walk(int version, const struct offset_fetch_response *m,
                           void (*each)(void *arg, const struct committed_offset *o), void *arg)
{
    if (version < 8) {
        for (int32_t t = 0; m->error_code == 0 && t < m->topics.n; t++)
            for (int32_t k = 0; k < m->topics.v[t].partitions.n; k++) {
                const struct offset_fetch_response_partition *p = &m->topics.v[t].partitions.v[k];
                each(arg, &(struct committed_offset){m->topics.v[t].name, p->partition_index,
                                                     p->committed_offset, p->committed_leader_epoch,
                                                     p->metadata, p->error_code});
            }
        return m->error_code;
    }
    if (m->groups.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    const struct offset_fetch_response_group *g = m->groups.v;
    for (int32_t t = 0; g->error_code == 0 && t < g->topics.n; t++)
        for (int32_t k = 0; k < g->topics.v[t].partitions.n; k++) {
            const struct offset_fetch_response_group_partition *p = &g->topics.v[t].partitions.v[k];
            each(arg, &(struct committed_offset){g->topics.v[t].name, p->partition_index,
                                                 p->committed_offset, p->committed_leader_epoch,
                                                 p->metadata, p->error_code});
        }
    return g->error_code;
}

/* ---- for the application ---- */

struct found {
    struct arena mem;
    kafka_offset_t *v;
    size_t n, cap;
    kafka_err_t err;
    bool failed;
};

static void keep(void *arg, const struct committed_offset *o)
{
    struct found *f = arg;
    if (f->n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 32;
        kafka_offset_t *grown = realloc(f->v, cap * sizeof *grown);
        f->failed |= !grown;
        if (!grown)
            return;
        f->v = grown;
        f->cap = cap;
    }
    const char *topic = f->n && str_eqz(o->topic, f->v[f->n - 1].topic)
                            ? f->v[f->n - 1].topic
                            : arena_str(&f->mem, o->topic).p;
    const char *metadata = o->metadata.len < 0 ? NULL : arena_str(&f->mem, o->metadata).p;
    f->failed |= !topic;
    if (o->err != KAFKA_OK && f->err == KAFKA_OK)
        f->err = o->err;
    f->v[f->n++] = (kafka_offset_t){topic ? topic : "", o->partition, o->leader_epoch,
                                    o->offset,          metadata,     o->err};
}

static kafka_err_t on_committed(struct op *op, int version, const void *response)
{
    struct found *f = op->arg;
    f->n = 0;
    f->err = KAFKA_OK;
    arena_reset(&f->mem);
    kafka_err_t err = committed_walk(version, response, keep, f);
    if (err == KAFKA_OK && f->failed)
        err = KAFKA_ERR_NO_MEMORY;
    /* What heals is waited for; other errors are the partition's own. */
    return err == KAFKA_OK && f->err == KERR_UNSTABLE_OFFSET_COMMIT ? f->err : err;
}

kafka_err_t committed_get(struct cluster *c, struct coordinator *co, const char *group,
                          const kafka_topic_partition_t *tps, size_t n,
                          enum committed_stable stable, bool interruptible, int64_t timeout_ms,
                          kafka_offset_list_t **out)
{
    struct arena mem;
    struct offset_fetch_request req;
    struct found f = {.v = NULL};
    arena_init(&mem, 0);
    arena_init(&f.mem, 0);
    *out = NULL;
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    if (committed_fill(&mem, &req, group, tps, n, stable != STABLE_NO)) {
        struct op op = {.coordinator = co,
                        .interruptible = interruptible,
                        .api_key = API_OFFSET_FETCH,
                        .min_version = tps ? 1 : 2,
                        .max_version = COMMITTED_MAX_VERSION,
                        .request = &req,
                        .handle = on_committed,
                        .arg = &f};
        err = op_run(c, &op, timeout_ms);
        if (err == KAFKA_ERR_UNSUPPORTED && stable == STABLE_IF_KNOWN) { /* a broker before 2.5 */
            req.require_stable = false;
            err = op_run(c, &op, timeout_ms);
        }
    }
    if (err == KAFKA_OK && !(*out = offset_list_copy(f.v, f.n)))
        err = KAFKA_ERR_NO_MEMORY;
    free(f.v);
    arena_free(&f.mem);
    arena_free(&mem);
    return err;
}

kafka_err_t kafka_consumer_committed(kafka_consumer_t *c, const kafka_topic_partition_t *tps,
                                     size_t n, int64_t timeout_ms, kafka_offset_list_t **out)
{
    *out = NULL;
    if (!c->group)
        return client_fail(KAFKA_ERR_INVALID_ARG,
                           "offsets are committed for a group: set group.id");
    if (consumer_take_wakeup(c))
        return KAFKA_ERR_WAKEUP;
    int64_t limit = timeout_ms < 0 ? c->api_timeout_ms : timeout_ms;
    static const kafka_topic_partition_t none;
    char why[500], words[CLIENT_WORDS];
    kafka_err_t err = committed_get(
        c->cluster, &c->group->coordinator, c->group->id, tps ? tps : &none, tps ? n : 0,
        c->stable_or_fail ? STABLE_OR_FAIL : STABLE_IF_KNOWN, true, limit, out);
    if (err == KAFKA_ERR_WAKEUP)
        consumer_take_wakeup(c);
    if (err != KAFKA_OK)
        client_fail(err, "group %s: committed offsets: %s (%s) within %lld ms%s", c->group->id,
                    client_words(err, NULL, c->group->id, words), kafka_err_name(err),
                    (long long)limit, cluster_why(c->cluster, why, sizeof why));
    return err;
}
