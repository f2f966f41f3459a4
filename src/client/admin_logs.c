/* admin_logs.c - the admin client's dealings with logs: deleting records, looking at log dirs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "client/cluster_private.h"
#include "protocol/errors.h"
#include "protocol/msg/delete_records.h"
#include "protocol/msg/describe_log_dirs.h"

/* ---- deleting records ---- */

/* One partition of the caller's arrays. */
struct deletion {
    size_t i;
    int32_t leader;
    bool done;
};

struct delete_call {
    kafka_admin_t *admin;
    const kafka_topic_partition_t *partitions;
    const int64_t *offsets;
    size_t n;
    int64_t *low_watermarks;
    kafka_err_t *errs;
    int64_t deadline_ms;
    struct deletion *all;   /* in the caller's order */
    struct deletion **sent; /* of the request under way, by its topics' order */
};

static int64_t time_left(const struct delete_call *c)
{
    int64_t left = c->deadline_ms == INT64_MAX ? INT64_MAX : c->deadline_ms - client_now_ms();
    return left > 0 ? left : 0;
}

/* Whose leader is not the broker that was asked: asked again. */
static bool is_final(kafka_err_t err)
{
    return err != KERR_NOT_LEADER_OR_FOLLOWER && err != KERR_LEADER_NOT_AVAILABLE &&
           err != KERR_BROKER_NOT_AVAILABLE;
}

static kafka_err_t on_deleted(struct op *op, int version, const void *response)
{
    const struct delete_records_response *m = response;
    struct delete_call *c = op->arg;
    size_t k = 0;
    /* One partition a topic, in the order of the request. */
    for (int32_t t = 0; t < m->topics.n; t++) {
        struct deletion *d = c->sent[k++];
        if (!d || m->topics.v[t].partitions.n != 1)
            return KAFKA_ERR_BAD_RESPONSE;
        c->errs[d->i] = m->topics.v[t].partitions.v[0].error_code;
        c->low_watermarks[d->i] = m->topics.v[t].partitions.v[0].low_watermark;
        d->done = is_final(c->errs[d->i]);
    }
    return KAFKA_OK;
}

static kafka_err_t delete_at(struct delete_call *c, int32_t leader)
{
    struct arena mem;
    struct delete_records_request req;
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    delete_records_request_init(&req);
    req.timeout_ms = admin_request_timeout(time_left(c));
    req.topics.v = delete_records_request_topic_new(&mem, (int32_t)c->n);
    c->sent = arena_array(&mem, struct deletion *, c->n + 1);
    for (size_t i = 0; req.topics.v && c->sent && i < c->n; i++) {
        if (c->all[i].done || c->all[i].leader != leader)
            continue;
        struct delete_records_request_topic *t = &req.topics.v[req.topics.n];
        t->name = str_of(c->partitions[i].topic);
        t->partitions.v = delete_records_request_partition_new(&mem, 1);
        t->partitions.n = 1;
        if (!t->partitions.v)
            break;
        t->partitions.v->partition_index = c->partitions[i].partition;
        t->partitions.v->offset = c->offsets[i];
        c->sent[req.topics.n++] = &c->all[i];
    }
    struct op op = {.node = leader,
                    .api_key = API_DELETE_RECORDS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_deleted,
                    .arg = c};
    if (req.topics.n > 0)
        err = op_run(c->admin->cluster, &op, time_left(c));
    arena_free(&mem);
    return err;
}

static int by_name(const void *name, const void *topic)
{
    return strcmp(name, ((const kafka_topic_info_t *)topic)->name);
}

/* Topics and partitions are sorted. */
static const kafka_partition_info_t *find(const kafka_cluster_info_t *info,
                                          const kafka_topic_partition_t *tp, kafka_err_t *err)
{
    const kafka_topic_info_t *t = info->topics_n ? bsearch(tp->topic, info->topics, info->topics_n,
                                                           sizeof *info->topics, by_name)
                                                 : NULL;
    *err = t && t->err ? t->err : KERR_UNKNOWN_TOPIC_OR_PARTITION;
    for (size_t p = 0; t && p < t->partitions_n; p++)
        if (t->partitions[p].partition == tp->partition)
            return &t->partitions[p];
    return NULL;
}

/* Who leads each that has no outcome yet. */
static kafka_err_t find_leaders(struct delete_call *c)
{
    kafka_cluster_info_t *info;
    kafka_err_t err = kafka_admin_describe(c->admin, NULL, 0, time_left(c), &info);
    if (err != KAFKA_OK)
        return err;
    for (size_t i = 0; i < c->n; i++) {
        if (c->all[i].done)
            continue;
        const kafka_partition_info_t *p = find(info, &c->partitions[i], &c->errs[i]);
        c->all[i].leader = p ? p->leader : -1;
        c->all[i].done = !p;
        if (p && p->leader < 0)
            c->errs[i] = KERR_LEADER_NOT_AVAILABLE;
    }
    kafka_cluster_info_free(info);
    return KAFKA_OK;
}

/* One request to each leader. Is there anything left to try? */
static kafka_err_t one_round(struct delete_call *c, bool *left)
{
    kafka_err_t err = find_leaders(c);
    *left = false;
    for (size_t i = 0; err == KAFKA_OK && i < c->n; i++) {
        if (!c->all[i].done && c->all[i].leader >= 0) {
            int32_t leader = c->all[i].leader;
            err = delete_at(c, leader);
            for (size_t k = 0; k < c->n; k++) /* asked in this round */
                if (c->all[k].leader == leader)
                    c->all[k].leader = -1;
        }
        *left |= !c->all[i].done;
    }
    return err;
}

static void pause_ms(int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

kafka_err_t kafka_admin_delete_records(kafka_admin_t *a, const kafka_topic_partition_t *partitions,
                                       const int64_t *offsets, size_t n, int64_t timeout_ms,
                                       int64_t *low_watermarks, kafka_err_t *errs)
{
    struct delete_call c = {.admin = a,
                            .partitions = partitions,
                            .offsets = offsets,
                            .n = n,
                            .low_watermarks = low_watermarks,
                            .errs = errs,
                            .deadline_ms = client_deadline(timeout_ms),
                            .all = calloc(n + 1, sizeof *c.all)};
    kafka_err_t err = c.all ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
    bool left = true;
    for (size_t i = 0; c.all && i < n; i++) {
        c.all[i] = (struct deletion){.i = i, .leader = -1};
        errs[i] = KAFKA_ERR_TIMED_OUT;
        low_watermarks[i] = -1;
    }
    for (int round = 0; err == KAFKA_OK && left && (round == 0 || time_left(&c) > 0); round++) {
        if (round > 0)
            pause_ms(cluster_backoff_ms(a->cluster, round - 1));
        err = one_round(&c, &left);
    }
    free(c.all);
    return err;
}

/* ---- log dirs ---- */

struct log_dirs {
    kafka_log_dirs_t dirs;
    struct arena mem;
};

static bool keep_replicas(struct arena *mem, const struct describe_log_dirs_response_result *from,
                          kafka_log_dir_t *to)
{
    size_t n = 0;
    for (int32_t t = 0; t < from->topics.n; t++)
        n += (size_t)from->topics.v[t].partitions.n;
    kafka_log_dir_replica_t *r = arena_array(mem, kafka_log_dir_replica_t, n);
    to->replicas = r;
    to->replicas_n = n;
    for (int32_t t = 0; r && t < from->topics.n; t++) {
        const struct describe_log_dirs_response_topic *topic = &from->topics.v[t];
        const char *name = admin_keep(mem, topic->name);
        for (int32_t p = 0; p < topic->partitions.n; p++)
            *r++ = (kafka_log_dir_replica_t){.topic = name,
                                             .partition = topic->partitions.v[p].partition_index,
                                             .size = topic->partitions.v[p].partition_size,
                                             .offset_lag = topic->partitions.v[p].offset_lag,
                                             .future = topic->partitions.v[p].is_future_key};
    }
    return to->replicas != NULL;
}

static kafka_err_t on_dirs(struct op *op, int version, const void *response)
{
    const struct describe_log_dirs_response *m = response;
    struct log_dirs *d = op->arg;
    if (m->error_code)
        return m->error_code;
    arena_reset(&d->mem);
    kafka_log_dir_t *v = arena_array(&d->mem, kafka_log_dir_t, (size_t)m->results.n);
    bool complete = v != NULL;
    for (int32_t i = 0; complete && i < m->results.n; i++) {
        v[i] = (kafka_log_dir_t){.err = m->results.v[i].error_code,
                                 .path = admin_keep(&d->mem, m->results.v[i].log_dir),
                                 .total_bytes = m->results.v[i].total_bytes,
                                 .usable_bytes = m->results.v[i].usable_bytes};
        complete = keep_replicas(&d->mem, &m->results.v[i], &v[i]);
    }
    d->dirs = (kafka_log_dirs_t){v, (size_t)m->results.n};
    return complete ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

kafka_err_t kafka_admin_describe_log_dirs(kafka_admin_t *a, int32_t broker, int64_t timeout_ms,
                                          kafka_log_dirs_t **out)
{
    struct log_dirs *d = calloc(1, sizeof *d);
    struct describe_log_dirs_request req;
    *out = NULL;
    if (!d)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&d->mem, 0);
    describe_log_dirs_request_init(&req);
    req.topics.n = -1;
    struct op op = {.node = broker,
                    .api_key = API_DESCRIBE_LOG_DIRS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_dirs,
                    .arg = d};
    kafka_err_t err = op_run(a->cluster, &op, timeout_ms);
    if (err == KAFKA_OK)
        *out = &d->dirs;
    else
        kafka_log_dirs_free(&d->dirs);
    return err;
}

void kafka_log_dirs_free(kafka_log_dirs_t *dirs)
{
    if (!dirs)
        return;
    struct log_dirs *d = container_of(dirs, struct log_dirs, dirs);
    arena_free(&d->mem);
    free(d);
}
