/* consumer_lookup.c - ListOffsets for the application: leader by leader, again while that heals. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "client/cluster_private.h"
#include "client/consumer_private.h"
#include "protocol/errors.h"
#include "protocol/msg/list_offsets.h"

struct lookup {
    const kafka_topic_partition_t *tps;
    const int64_t *timestamps;
    int64_t *offsets, *found;
    kafka_err_t *errs;
    size_t n;
    size_t *chosen; /* indexes into tps of this request */
    size_t chosen_n;
};

static bool is_answer_to(const struct lookup *l, size_t i, struct str topic, int32_t partition)
{
    const kafka_topic_partition_t *tp = &l->tps[l->chosen[i]];
    return tp->partition == partition && str_eqz(topic, tp->topic);
}

static void keep_one(struct lookup *l, size_t i, const struct list_offsets_response_partition *r)
{
    size_t at = l->chosen[i];
    l->errs[at] = r->error_code;
    l->offsets[at] = r->offset;
    if (l->found)
        l->found[at] = r->timestamp;
}

/* Answers come in the order asked, mostly: looking begins behind the last found. A partition may
 * have been asked for more than once. */
static kafka_err_t keep_lookup(struct op *op, int version, const void *response)
{
    const struct list_offsets_response *m = response;
    struct lookup *l = op->arg;
    size_t next = 0;
    for (int32_t t = 0; t < m->topics.n; t++)
        for (int32_t k = 0; k < m->topics.v[t].partitions.n; k++) {
            const struct list_offsets_response_partition *r = &m->topics.v[t].partitions.v[k];
            for (size_t tried = 0; tried < l->chosen_n; tried++) {
                size_t i = (next + tried) % l->chosen_n;
                if (is_answer_to(l, i, m->topics.v[t].name, r->partition_index)) {
                    keep_one(l, i, r);
                    next = i + 1;
                    break;
                }
            }
        }
    return KAFKA_OK;
}

/* The first version that knows a special time. */
static int version_for(int64_t timestamp)
{
    return timestamp == -3 ? 7 : timestamp == -4 ? 8 : timestamp < -4 ? 9 : 1;
}

static kafka_err_t ask_leader(kafka_consumer_t *c, struct lookup *l, int32_t leader,
                              int64_t deadline)
{
    struct arena a;
    struct list_offsets_request req;
    arena_init(&a, 0);
    list_offsets_request_init(&req);
    req.replica_id = -1;
    req.isolation_level = c->read_committed;
    req.topics.v = list_offsets_request_topic_new(&a, (int32_t)l->chosen_n);
    struct list_offsets_request_partition *parts =
        list_offsets_request_partition_new(&a, (int32_t)l->chosen_n);
    int least = 1;
    for (size_t i = 0; req.topics.v && parts && i < l->chosen_n; i++) {
        const kafka_topic_partition_t *tp = &l->tps[l->chosen[i]];
        struct list_offsets_request_topic *t =
            req.topics.n ? &req.topics.v[req.topics.n - 1] : NULL;
        if (!t || !str_eqz(t->name, tp->topic)) {
            t = &req.topics.v[req.topics.n++];
            t->name = str_of(tp->topic);
            t->partitions.v = &parts[i];
        }
        parts[i].partition_index = tp->partition;
        parts[i].timestamp = l->timestamps[l->chosen[i]];
        if (version_for(parts[i].timestamp) > least)
            least = version_for(parts[i].timestamp);
        t->partitions.n++;
    }
    struct op op = {.node = leader,
                    .api_key = API_LIST_OFFSETS,
                    .min_version = least,
                    .max_version = -1,
                    .interruptible = true,
                    .request = &req,
                    .handle = keep_lookup,
                    .arg = l};
    int64_t left = deadline == INT64_MAX ? -1 : deadline - client_now_ms();
    kafka_err_t err = req.topics.v && parts
                          ? op_run(c->cluster, &op, deadline == INT64_MAX || left > 0 ? left : 0)
                          : KAFKA_ERR_NO_MEMORY;
    arena_free(&a);
    return err;
}

/* One round: every partition still without a result, leader by leader. */
static kafka_err_t lookup_round(kafka_consumer_t *c, struct lookup *l, bool *open, int64_t deadline)
{
    kafka_err_t err = KAFKA_OK;
    for (size_t i = 0; i < l->n && err == KAFKA_OK; i++) {
        struct leader_info leader, other;
        if (!open[i] ||
            !cluster_leader(c->cluster, l->tps[i].topic, l->tps[i].partition, &leader) ||
            leader.leader < 0)
            continue;
        l->chosen_n = 0;
        for (size_t k = i; k < l->n; k++)
            if (open[k] &&
                cluster_leader(c->cluster, l->tps[k].topic, l->tps[k].partition, &other) &&
                other.leader == leader.leader)
                l->chosen[l->chosen_n++] = k;
        for (size_t k = 0; k < l->chosen_n; k++)
            l->errs[l->chosen[k]] = KAFKA_ERR_BAD_RESPONSE;
        err = ask_leader(c, l, leader.leader, deadline);
        for (size_t k = 0; k < l->chosen_n; k++)
            open[l->chosen[k]] = false;
    }
    return err;
}

/* Partitions whose error heals are opened again; are there any? */
static bool reopen(struct lookup *l, bool *open)
{
    bool any = false;
    for (size_t i = 0; i < l->n; i++) {
        open[i] =
            kafka_err_is_retriable(l->errs[i]) && l->errs[i] != KERR_UNKNOWN_TOPIC_OR_PARTITION;
        any |= open[i];
    }
    return any;
}

kafka_err_t kafka_consumer_list_offsets(kafka_consumer_t *c, const kafka_topic_partition_t *tps,
                                        const int64_t *timestamps, size_t n, int64_t timeout_ms,
                                        int64_t *offsets, int64_t *found_timestamps,
                                        kafka_err_t *errs)
{
    int64_t deadline = client_deadline(timeout_ms);
    struct lookup l = {
        tps, timestamps, offsets, found_timestamps, errs, n, calloc(n + 1, sizeof(size_t)), 0};
    bool *open = calloc(n + 1, sizeof *open);
    kafka_err_t err = l.chosen && open ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
    for (size_t i = 0; i < n; i++) { /* should it end before there is an answer */
        offsets[i] = -1;
        errs[i] = KAFKA_ERR_WAKEUP;
    }
    if (err == KAFKA_OK && consumer_take_wakeup(c))
        err = KAFKA_ERR_WAKEUP;
    for (size_t i = 0; i < n && err == KAFKA_OK; i++)
        cluster_follow_topic(c->cluster, tps[i].topic);
    for (size_t i = 0; i < n && err == KAFKA_OK; i++) {
        int32_t count;
        errs[i] = cluster_wait_topic(c->cluster, tps[i].topic, -1, timeout_ms, &count);
        if (errs[i] == KAFKA_OK)
            errs[i] = tps[i].partition < count ? KERR_LEADER_NOT_AVAILABLE
                                               : KERR_UNKNOWN_TOPIC_OR_PARTITION;
        open[i] = errs[i] == KERR_LEADER_NOT_AVAILABLE;
        if (errs[i] == KAFKA_ERR_WAKEUP)
            err = KAFKA_ERR_WAKEUP;
    }
    for (int attempt = 0; err == KAFKA_OK; attempt++) {
        err = lookup_round(c, &l, open, deadline);
        if (err != KAFKA_OK || !reopen(&l, open) || client_now_ms() >= deadline)
            break;
        cluster_refresh(c->cluster);
        pthread_mutex_lock(&c->lock);
        client_cond_wait(&c->news, &c->lock,
                         client_deadline(cluster_backoff_ms(c->cluster, attempt)));
        pthread_mutex_unlock(&c->lock);
    }
    if (err == KAFKA_ERR_WAKEUP)
        consumer_take_wakeup(c);
    free(l.chosen);
    free(open);
    return err;
}
