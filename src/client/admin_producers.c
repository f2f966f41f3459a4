/* admin_producers.c - the admin client and what partitions know of producers: looking at it, and
 * ending a transaction there that nobody else ends.
 *
 * Both go to a broker that has the partition: its leader as of the moment, asked for again when
 * that has moved. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "client/cluster_private.h"
#include "protocol/errors.h"
#include "protocol/msg/describe_producers.h"
#include "protocol/msg/write_txn_markers.h"

enum { AGAIN_MS = 100 };

/* ---- one partition's broker ---- */

static int64_t time_left(int64_t deadline)
{
    int64_t left = deadline == INT64_MAX ? -1 : deadline - client_now_ms();
    return deadline == INT64_MAX || left > 0 ? left : 0;
}

static kafka_err_t find_leader(kafka_admin_t *a, const kafka_topic_partition_t *tp,
                               int64_t timeout_ms, int32_t *leader)
{
    kafka_cluster_info_t *info;
    kafka_err_t err = kafka_admin_describe(a, &tp->topic, 1, timeout_ms, &info);
    if (err != KAFKA_OK)
        return err;
    const kafka_topic_info_t *t = info->topics_n ? info->topics : NULL;
    err = t && t->err ? t->err : KERR_UNKNOWN_TOPIC_OR_PARTITION;
    for (size_t i = 0; t && i < t->partitions_n; i++) {
        if (t->partitions[i].partition != tp->partition)
            continue;
        *leader = t->partitions[i].leader;
        err = *leader >= 0 ? KAFKA_OK : KERR_LEADER_NOT_AVAILABLE;
    }
    kafka_cluster_info_free(info);
    return err;
}

/* Another leader may know. */
static bool has_moved(kafka_err_t err)
{
    return err == KERR_NOT_LEADER_OR_FOLLOWER || err == KERR_LEADER_NOT_AVAILABLE ||
           err == KERR_BROKER_NOT_AVAILABLE || err == KERR_REPLICA_NOT_AVAILABLE;
}

static void pause_a_moment(void)
{
    struct timespec t = {0, AGAIN_MS * 1000000L};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}

/* The operation at `broker`, or (-1) at the partition's leader, whoever that is in the end. */
static kafka_err_t run_at(kafka_admin_t *a, const kafka_topic_partition_t *tp, int32_t broker,
                          struct op *op, int64_t deadline)
{
    for (;;) {
        struct op one = *op;
        kafka_err_t err = KAFKA_OK;
        one.node = broker;
        one.once = broker < 0;
        if (broker < 0)
            err = find_leader(a, tp, time_left(deadline), &one.node);
        if (err == KAFKA_OK)
            err = op_run(a->cluster, &one, time_left(deadline));
        if (broker >= 0 || !has_moved(err) || time_left(deadline) == 0)
            return err;
        pause_a_moment();
    }
}

/* ---- describing ---- */

struct producers {
    kafka_producers_t result;
    struct arena mem;
};

struct describe_call {
    struct arena *mem;
    kafka_partition_producers_t *to;
};

static bool keep_states(struct describe_call *c,
                        const struct describe_producers_response_partition *p)
{
    int32_t n = p->active_producers.n;
    kafka_producer_state_t *v = arena_array(c->mem, kafka_producer_state_t, (size_t)n);
    for (int32_t i = 0; v && i < n; i++) {
        const struct describe_producers_response_active_producer *from = &p->active_producers.v[i];
        v[i] = (kafka_producer_state_t){.producer_id = from->producer_id,
                                        .producer_epoch = from->producer_epoch,
                                        .last_sequence = from->last_sequence,
                                        .last_timestamp_ms = from->last_timestamp,
                                        .coordinator_epoch = from->coordinator_epoch,
                                        .txn_start_offset = from->current_txn_start_offset};
    }
    c->to->v = v;
    c->to->n = v ? (size_t)n : 0;
    return v != NULL;
}

static kafka_err_t on_described(struct op *op, int version, const void *response)
{
    const struct describe_producers_response *m = response;
    struct describe_call *c = op->arg;
    if (m->topics.n != 1 || m->topics.v->partitions.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    const struct describe_producers_response_partition *p = m->topics.v->partitions.v;
    c->to->error_message = admin_keep(c->mem, p->error_message);
    if (p->error_code)
        return p->error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION ? ADMIN_UNKNOWN_TOPIC
                                                                : p->error_code;
    return keep_states(c, p) ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

static void describe_one(kafka_admin_t *a, struct arena *mem, int32_t broker,
                         const kafka_topic_partition_t *tp, kafka_partition_producers_t *to,
                         int64_t deadline)
{
    struct describe_producers_request req;
    struct describe_producers_request_topic topic;
    int32_t partition = tp->partition;
    struct describe_call call = {mem, to};
    struct op op = {.api_key = API_DESCRIBE_PRODUCERS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_described,
                    .arg = &call};
    describe_producers_request_init(&req);
    topic.name = str_of(tp->topic);
    topic.partition_indexes.v = &partition;
    topic.partition_indexes.n = 1;
    req.topics.v = &topic;
    req.topics.n = 1;
    *to = (kafka_partition_producers_t){.topic = arena_str(mem, str_of(tp->topic)).p,
                                        .partition = tp->partition};
    to->err = to->topic ? run_at(a, tp, broker, &op, deadline) : KAFKA_ERR_NO_MEMORY;
    if (to->err == ADMIN_UNKNOWN_TOPIC)
        to->err = KERR_UNKNOWN_TOPIC_OR_PARTITION;
}

kafka_err_t kafka_admin_describe_producers(kafka_admin_t *a, int32_t broker,
                                           const kafka_topic_partition_t *tps, size_t n,
                                           int64_t timeout_ms, kafka_producers_t **out)
{
    int64_t deadline = client_deadline(timeout_ms);
    struct producers *p = calloc(1, sizeof *p);
    kafka_partition_producers_t *v = NULL;
    *out = NULL;
    if (p) {
        arena_init(&p->mem, 0);
        v = arena_array(&p->mem, kafka_partition_producers_t, n);
    }
    bool good = v != NULL;
    for (size_t i = 0; good && i < n; i++) {
        describe_one(a, &p->mem, broker, &tps[i], &v[i], deadline);
        good = v[i].err != KAFKA_ERR_NO_MEMORY;
    }
    if (!good) {
        if (p)
            kafka_producers_free(&p->result);
        return KAFKA_ERR_NO_MEMORY;
    }
    p->result.v = v;
    p->result.n = n;
    *out = &p->result;
    return KAFKA_OK;
}

void kafka_producers_free(kafka_producers_t *result)
{
    if (!result)
        return;
    struct producers *p = container_of(result, struct producers, result);
    arena_free(&p->mem);
    free(p);
}

/* ---- aborting ---- */

static kafka_err_t on_marked(struct op *op, int version, const void *response)
{
    const struct write_txn_markers_response *m = response;
    if (m->markers.n != 1 || m->markers.v->topics.n != 1 ||
        m->markers.v->topics.v->partitions.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    kafka_err_t err = m->markers.v->topics.v->partitions.v->error_code;
    /* A broker that does not have the partition says this, too. */
    return err == KERR_UNKNOWN_TOPIC_OR_PARTITION ? KERR_NOT_LEADER_OR_FOLLOWER : err;
}

kafka_err_t kafka_admin_abort_transaction(kafka_admin_t *a, const char *topic, int32_t partition,
                                          int64_t producer_id, int32_t producer_epoch,
                                          int32_t coordinator_epoch, int64_t timeout_ms)
{
    kafka_topic_partition_t tp = {topic, partition};
    struct write_txn_markers_request req;
    struct write_txn_markers_request_marker marker;
    struct write_txn_markers_request_topic in;
    struct op op = {.api_key = API_WRITE_TXN_MARKERS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_marked};
    write_txn_markers_request_init(&req);
    in.name = str_of(topic);
    in.partition_indexes.v = &partition;
    in.partition_indexes.n = 1;
    marker.producer_id = producer_id;
    marker.producer_epoch = (int16_t)producer_epoch;
    marker.transaction_result = false;
    marker.coordinator_epoch = coordinator_epoch < 0 ? 0 : coordinator_epoch;
    marker.topics.v = &in;
    marker.topics.n = 1;
    req.markers.v = &marker;
    req.markers.n = 1;
    return run_at(a, &tp, -1, &op, client_deadline(timeout_ms));
}
