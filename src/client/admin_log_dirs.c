/* admin_log_dirs.c - the admin client: replicas that move to other log dirs of their broker. */
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "protocol/errors.h"
#include "protocol/msg/alter_replica_log_dirs.h"

struct dirs_call {
    const kafka_log_dir_move_t *v; /* the caller's, as errs */
    size_t n;
    kafka_err_t *errs;
};

static kafka_err_t on_altered(struct op *op, int version, const void *response)
{
    const struct alter_replica_log_dirs_response *m = response;
    struct dirs_call *c = op->arg;
    for (size_t i = 0; i < c->n; i++)
        c->errs[i] = KAFKA_ERR_BAD_RESPONSE; /* not told of */
    for (int32_t t = 0; t < m->results.n; t++) {
        const struct alter_replica_log_dirs_response_result *r = &m->results.v[t];
        for (size_t i = 0; i < c->n; i++) {
            if (!str_eq(r->topic_name, str_of(c->v[i].topic)))
                continue;
            for (int32_t k = 0; k < r->partitions.n; k++)
                if (r->partitions.v[k].partition_index == c->v[i].partition)
                    c->errs[i] = r->partitions.v[k].error_code;
        }
    }
    return KAFKA_OK;
}

static int by_dir_and_topic(const void *a, const void *b)
{
    const kafka_log_dir_move_t *const *x = a, *const *y = b;
    int order = strcmp((*x)->dir, (*y)->dir);
    return order ? order : strcmp((*x)->topic, (*y)->topic);
}

/* Each dir once, and each topic once in it. */
static bool fill(struct alter_replica_log_dirs_request *req, struct arena *mem,
                 const kafka_log_dir_move_t *v, size_t n)
{
    const kafka_log_dir_move_t **sorted = arena_array(mem, const kafka_log_dir_move_t *, n + 1);
    int32_t *partitions = arena_array(mem, int32_t, n + 1);
    struct alter_replica_log_dirs_request_topic *topics =
        alter_replica_log_dirs_request_topic_new(mem, (int32_t)n);
    struct alter_replica_log_dirs_request_topic *topic = topics;
    req->dirs.v = alter_replica_log_dirs_request_dir_new(mem, (int32_t)n);
    req->dirs.n = 0;
    if (!sorted || !partitions || !topics || !req->dirs.v)
        return false;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &v[i];
    if (n)
        qsort(sorted, n, sizeof *sorted, by_dir_and_topic);
    for (size_t i = 0; i < n; i++) {
        bool new_dir = i == 0 || strcmp(sorted[i]->dir, sorted[i - 1]->dir) != 0;
        if (new_dir) {
            req->dirs.v[req->dirs.n].path = str_of(sorted[i]->dir);
            req->dirs.v[req->dirs.n].topics.v = topic;
            req->dirs.v[req->dirs.n++].topics.n = 0;
        }
        if (new_dir || strcmp(sorted[i]->topic, sorted[i - 1]->topic) != 0) {
            topic->name = str_of(sorted[i]->topic);
            topic->partitions.v = &partitions[i];
            topic->partitions.n = 0;
            topic++;
            req->dirs.v[req->dirs.n - 1].topics.n++;
        }
        topic[-1].partitions.n++;
        partitions[i] = sorted[i]->partition;
    }
    return true;
}

kafka_err_t kafka_admin_alter_replica_log_dirs(kafka_admin_t *a, int32_t broker,
                                               const kafka_log_dir_move_t *v, size_t n,
                                               int64_t timeout_ms, kafka_err_t *errs)
{
    struct arena mem;
    struct alter_replica_log_dirs_request req;
    struct dirs_call call = {v, n, errs};
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    alter_replica_log_dirs_request_init(&req);
    struct op op = {.node = broker,
                    .api_key = API_ALTER_REPLICA_LOG_DIRS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_altered,
                    .arg = &call};
    if (fill(&req, &mem, v, n))
        err = op_run(a->cluster, &op, timeout_ms);
    arena_free(&mem);
    return err;
}
