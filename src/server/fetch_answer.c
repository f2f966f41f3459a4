/* fetch_answer.c - the Fetch response: which partitions go in, grouped by topic, with their records
 * as ranges of files. */
#include <stdlib.h>

#include "server/broker_metrics.h"
#include "server/fetch_op.h"
#include "server/leader_hints.h"

#define FIRST_VERSION_STORAGE_ERROR 6
#define FIRST_VERSION_ZSTD 10
#define FIRST_VERSION_HINTS 16

static bool is_zstd_topic(struct partition *p)
{
    struct log *log = partition_log(p);
    if (!log)
        return false;
    const struct log_config *c = log_config_ref(log);
    bool zstd = c->compression == CODEC_ZSTD;
    log_config_unref(c);
    log_unref(log);
    return zstd;
}

/* Errors of partitions that were read well, but whose records this version must not see. */
static void check_codec(struct fetch_op *op)
{
    if (request_version(op->req) >= FIRST_VERSION_ZSTD)
        return;
    for (int i = 0; i < op->context.wants_n; i++) {
        struct fetch_slot *s = &op->slots[i];
        if (s->partition && s->error == KERR_NONE && is_zstd_topic(s->partition))
            s->error = KERR_UNSUPPORTED_COMPRESSION_TYPE;
    }
}

static struct records records_of(const struct fetch_slot *s)
{
    if (s->error != KERR_NONE || s->read.slice.len == 0)
        return (struct records){.p = (const uint8_t *)"", .len = 0};
    if (s->converted_form)
        return (struct records){
            .p = s->converted.len ? s->converted.p : (const uint8_t *)"",
            .len = (int32_t)s->converted.len,
        };
    return (struct records){
        .len = (int32_t)s->read.slice.len, .file = s->read.slice.file, .pos = s->read.slice.pos};
}

static int16_t code_of(const struct fetch_op *op, enum kerr e)
{
    if (e == KERR_KAFKA_STORAGE_ERROR && request_version(op->req) < FIRST_VERSION_STORAGE_ERROR)
        e = KERR_NOT_LEADER_OR_FOLLOWER;
    return (int16_t)e;
}

static void fill_aborted(struct fetch_op *op, const struct partition_read *read,
                         struct fetch_response_partition *out)
{
    out->aborted_transactions.v = NULL;
    out->aborted_transactions.n = -1;
    if (read->aborted_n < 0 || request_version(op->req) < 4)
        return;
    struct fetch_response_aborted_transaction *v =
        fetch_response_aborted_transaction_new(op->req->arena, read->aborted_n);
    if (!v) { /* without them the reader would take aborted records for good ones */
        out->error_code = KERR_UNKNOWN_SERVER_ERROR;
        out->records = (struct records){.p = (const uint8_t *)""};
        return;
    }
    for (int i = 0; i < read->aborted_n; i++) {
        v[i].producer_id = read->aborted[i].producer_id;
        v[i].first_offset = read->aborted[i].first_offset;
    }
    out->aborted_transactions.v = v;
    out->aborted_transactions.n = read->aborted_n;
}

/* Errors that a healthy broker gives, too, when leaders move or records are gone, are none. */
static bool is_failure(enum kerr e)
{
    static const enum kerr known[] = {
        KERR_NONE,
        KERR_UNKNOWN_TOPIC_OR_PARTITION,
        KERR_UNKNOWN_TOPIC_ID,
        KERR_INCONSISTENT_TOPIC_ID,
        KERR_NOT_LEADER_OR_FOLLOWER,
        KERR_UNKNOWN_LEADER_EPOCH,
        KERR_FENCED_LEADER_EPOCH,
        KERR_OFFSET_OUT_OF_RANGE,
        KERR_KAFKA_STORAGE_ERROR,
        KERR_TOPIC_AUTHORIZATION_FAILED,
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (e == known[i])
            return false;
    return true;
}

static void count_replicated(struct broker_metrics *m, struct partition *p, int32_t to, uint64_t n)
{
    metrics_count(m, COUNT_REPLICATED_OUT, n);
    if (partition_adds_replica(p, to))
        metrics_count(m, COUNT_MOVED_OUT, n);
}

static void count_partition(struct fetch_op *op, const struct fetch_slot *s, int32_t sent)
{
    struct broker_metrics *m = broker_metrics(op->req->broker);
    if (!m)
        return;
    metrics_request_error(op->req, (int16_t)s->error);
    metrics_topic(m, s->partition, TOPIC_FETCH_REQUESTS, 1);
    if (is_failure(s->error))
        metrics_topic(m, s->partition, TOPIC_FAILED_FETCH, 1);
    if (sent > 0 && op->replica_id < 0)
        metrics_topic(m, s->partition, TOPIC_BYTES_OUT, (uint64_t)sent);
    else if (sent > 0)
        count_replicated(m, s->partition, op->replica_id, (uint64_t)sent);
}

static void fill_partition(struct fetch_op *op, int i, struct leader_hints *hints,
                           struct fetch_response_partition *out)
{
    const struct fetch_want *w = &op->context.wants[i];
    const struct fetch_slot *s = &op->slots[i];
    out->partition_index = w->partition;
    out->error_code = code_of(op, s->error);
    out->records = records_of(s);
    count_partition(op, s, out->records.len);
    out->high_watermark = -1;
    out->aborted_transactions.n = -1;
    if (s->error == KERR_NONE && s->partition)
        out->preferred_read_replica = s->nearest;
    if (s->error == KERR_NONE) {
        out->high_watermark = s->read.high_watermark;
        out->last_stable_offset = s->read.last_stable_offset;
        out->log_start_offset = s->read.log_start_offset;
        out->diverging_epoch.epoch = s->read.diverging_epoch;
        out->diverging_epoch.end_offset = s->read.diverging_end_offset;
        fill_aborted(op, &s->read, out);
    } else if (hints &&
               (s->error == KERR_NOT_LEADER_OR_FOLLOWER || s->error == KERR_FENCED_LEADER_EPOCH)) {
        leader_hints_add(hints, (struct topic_partition){w->topic, w->partition},
                         &out->current_leader.leader_id, &out->current_leader.leader_epoch);
    }
}

static bool same_topic(const struct fetch_op *op, int a, int b)
{
    const struct fetch_want *x = &op->context.wants[a], *y = &op->context.wants[b];
    return op->context.uses_ids ? uuid_eq(x->topic_id, y->topic_id) : str_eq(x->topic, y->topic);
}

/* Partitions to send, neighbours of one topic under one head. */
static bool fill_topics(struct fetch_op *op, const struct fetch_found *found,
                        struct leader_hints *hints, struct fetch_response *out)
{
    struct arena *a = op->req->arena;
    int topics = 0, partitions = 0, last = -1;
    for (int i = 0; i < op->context.wants_n; i++) {
        if (!found[i].send)
            continue;
        partitions++;
        topics += last < 0 || !same_topic(op, last, i);
        last = i;
    }
    out->responses.v = fetch_response_response_new(a, topics);
    struct fetch_response_partition *p = fetch_response_partition_new(a, partitions);
    if (!out->responses.v || !p)
        return false;
    struct fetch_response_response *t = NULL;
    last = -1;
    for (int i = 0; i < op->context.wants_n; i++) {
        if (!found[i].send)
            continue;
        if (last < 0 || !same_topic(op, last, i)) {
            t = &out->responses.v[out->responses.n++];
            t->topic = op->context.wants[i].topic;
            t->topic_id = op->context.wants[i].topic_id;
            t->partitions.v = p;
        }
        fill_partition(op, i, hints, p++);
        t->partitions.n++;
        last = i;
    }
    return true;
}

static void fill_endpoints(struct arena *a, const struct leader_hints *h,
                           struct fetch_response *out)
{
    struct fetch_response_node_endpoint *v =
        h->n ? fetch_response_node_endpoint_new(a, h->n) : NULL;
    if (!v)
        return;
    for (int i = 0; i < h->n; i++)
        v[i] = (struct fetch_response_node_endpoint){h->endpoints[i].id, h->endpoints[i].host,
                                                     h->endpoints[i].port, h->endpoints[i].rack};
    out->node_endpoints.v = v;
    out->node_endpoints.n = h->n;
}

/* The session decides what is news. */
static enum kerr end_session(struct fetch_op *op, struct fetch_found *found)
{
    for (int i = 0; i < op->context.wants_n; i++) {
        const struct fetch_slot *s = &op->slots[i];
        found[i] = (struct fetch_found){
            .error = s->error,
            .high_watermark = s->error == KERR_NONE ? s->read.high_watermark : -1,
            .log_start = s->error == KERR_NONE ? s->read.log_start_offset : -1,
            .has_records = s->error == KERR_NONE &&
                           (s->converted_form ? s->converted.len : s->read.slice.len) > 0,
            .special = s->error == KERR_NONE &&
                       (s->read.diverging_epoch >= 0 || (s->partition && s->nearest >= 0))};
    }
    return fetch_context_end(broker_fetch_sessions(op->req->broker), &op->context, found);
}

static bool build(struct fetch_op *op, struct fetch_response *out)
{
    struct request *req = op->req;
    if (op->context.kind == FETCH_REFUSED) {
        out->error_code = (int16_t)op->context.error;
        return true;
    }
    if (op->held_back) {
        out->error_code =
            (int16_t)fetch_context_end_empty(broker_fetch_sessions(req->broker), &op->context);
        out->session_id = op->context.kind == FETCH_INCREMENTAL ? op->context.session_id : 0;
        return true;
    }
    check_codec(op);
    struct fetch_found *found =
        arena_array(req->arena, struct fetch_found, (size_t)op->context.wants_n);
    if (!found)
        return false;
    enum kerr e = end_session(op, found);
    out->session_id = op->context.session_id;
    out->error_code = (int16_t)e;
    if (e != KERR_NONE)
        return true;
    struct leader_hints hints = leader_hints_of(req->broker, request_listener(req), req->arena);
    bool hint = request_version(req) >= FIRST_VERSION_HINTS;
    if (!fill_topics(op, found, hint ? &hints : NULL, out))
        return false;
    fill_endpoints(req->arena, &hints, out);
    return true;
}

/* What the response points at: let go of once it is encoded, when the op is gone already. */
struct leftover {
    struct file *file;
    uint8_t *bytes;
};
#define LEFTOVERS_ON_STACK 16

static struct leftover *take_leftovers(struct fetch_op *op, struct leftover *few, int *n)
{
    *n = 0;
    for (int i = 0; i < op->context.wants_n; i++)
        *n += op->slots[i].read.slice.file || op->slots[i].converted.p;
    struct leftover *all =
        *n <= LEFTOVERS_ON_STACK ? few : calloc((size_t)*n, sizeof(struct leftover));
    for (int i = 0, k = 0; all && i < op->context.wants_n; i++) {
        struct fetch_slot *s = &op->slots[i];
        if (s->read.slice.file || s->converted.p)
            all[k++] = (struct leftover){s->read.slice.file, s->converted.p};
    }
    return all;
}

static void drop_leftovers(struct leftover *all, const struct leftover *few, int n)
{
    for (int i = 0; i < n; i++) {
        file_unref(all[i].file);
        free(all[i].bytes);
    }
    if (all != few)
        free(all);
}

void fetch_answer(struct fetch_op *op)
{
    struct request *req = op->req;
    struct fetch_response response;
    struct leftover few[LEFTOVERS_ON_STACK], *all = NULL;
    int n = 0;
    fetch_response_init(&response);
    if (build(op, &response))
        all = take_leftovers(op, few, &n);
    if (!all) {
        fetch_release(op);
        request_no_memory(req);
        return;
    }
    for (int i = 0; i < op->context.wants_n; i++)
        partition_unref(op->slots[i].partition);
    request_respond(req, &response);
    drop_leftovers(all, few, n);
}
