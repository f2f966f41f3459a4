/* handle_produce.c - Produce v0-v11: each partition's records are checked where they lie in the
 * frame, given offsets, and appended; partitions do not affect each other.
 *
 * ACKS   0: no answer ever; any error closes the connection, which is all that such a client can
 *        notice. 1: answered after the append. -1: after the high watermark has passed it. Other
 *        values: nothing is appended.
 *
 * FLUSH  delayed_produce.c. */
#include "server/broker_metrics.h"
#include "server/handlers.h"
#include "server/leader_hints.h"
#include "server/produce_op.h"
#include "server/request_quota.h"
#include "server/rights.h"

#define FIRST_VERSION_STORAGE_ERROR 4
#define FIRST_VERSION_HINTS 10

/* ---- the answer's frame ---- */

static bool lay_out(struct produce_op *op)
{
    const struct produce_request *body = op->body;
    struct arena *a = op->req->arena;
    int n = 0;
    for (int32_t t = 0; t < body->topic_data.n; t++)
        n += body->topic_data.v[t].partition_data.n;
    produce_response_init(&op->response);
    op->slots = arena_array(a, struct produce_slot, (size_t)n);
    op->response.responses.v = produce_response_response_new(a, body->topic_data.n);
    if (!op->slots || !op->response.responses.v)
        return false;
    op->response.responses.n = body->topic_data.n;
    for (int32_t t = 0; t < body->topic_data.n; t++) {
        const struct produce_request_topic_data *from = &body->topic_data.v[t];
        struct produce_response_response *to = &op->response.responses.v[t];
        to->name = from->name;
        to->partition_responses.v =
            produce_response_partition_response_new(a, from->partition_data.n);
        if (!to->partition_responses.v)
            return false;
        to->partition_responses.n = from->partition_data.n;
        enum kerr refused = rights_topic(op->req, ACL_WRITE, from->name)
                                ? KERR_NONE
                                : KERR_TOPIC_AUTHORIZATION_FAILED;
        for (int32_t i = 0; i < from->partition_data.n; i++) {
            struct produce_response_partition_response *out = &to->partition_responses.v[i];
            out->index = from->partition_data.v[i].index;
            out->base_offset = -1;
            op->slots[op->slots_n++] = (struct produce_slot){.out = out,
                                                             .data = &from->partition_data.v[i],
                                                             .topic = from->name,
                                                             .refused = refused};
        }
    }
    return true;
}

/* ---- append ---- */

static struct append_policy policy_of(const struct log_config *c, int version, int64_t now_ms)
{
    int level = CODEC_LEVEL_DEFAULT;
    if (c->compression == CODEC_GZIP)
        level = c->gzip_level;
    else if (c->compression == CODEC_LZ4)
        level = c->lz4_level;
    else if (c->compression == CODEC_ZSTD)
        level = c->zstd_level;
    return (struct append_policy){.origin = APPEND_CLIENT,
                                  .produce_version = version,
                                  .max_message_bytes = c->max_message_bytes,
                                  .compression = c->compression,
                                  .level = level,
                                  .log_append_time = c->log_append_time,
                                  .keys_required = c->cleanup_policy & CLEANUP_COMPACT,
                                  .before_max_ms = c->timestamp_before_max_ms,
                                  .after_max_ms = c->timestamp_after_max_ms,
                                  .now_ms = now_ms};
}

static void tell_record_errors(struct produce_op *op, const struct prepared *pr,
                               struct produce_response_partition_response *out)
{
    struct arena *a = op->req->arena;
    if (pr->message)
        out->error_message = arena_str(a, str_of(pr->message));
    if (pr->errors_n == 0)
        return;
    struct produce_response_record_error *v = produce_response_record_error_new(a, pr->errors_n);
    if (!v)
        return; /* the code alone will do */
    for (int i = 0; i < pr->errors_n; i++) {
        v[i].batch_index = pr->errors[i].batch_index;
        v[i].batch_index_error_message = str_of(pr->errors[i].message);
    }
    out->record_errors.v = v;
    out->record_errors.n = pr->errors_n;
}

static void count_fault(struct produce_op *op, enum kerr e, const struct prepared *pr)
{
    static const enum broker_count counts[] = {[FAULT_NO_KEY] = COUNT_NO_KEY,
                                               [FAULT_MAGIC] = COUNT_BAD_MAGIC,
                                               [FAULT_CRC] = COUNT_BAD_CRC,
                                               [FAULT_OFFSET] = COUNT_BAD_OFFSET};
    struct broker_metrics *m = broker_metrics(op->req->broker);
    if (pr->fault != FAULT_OTHER)
        metrics_count(m, counts[pr->fault], 1);
    else if (e == KERR_OUT_OF_ORDER_SEQUENCE_NUMBER)
        metrics_count(m, COUNT_BAD_OFFSET, 1);
}

/* Kafka tells the log start beside some errors and not beside others. */
static bool tells_log_start(enum kerr e)
{
    static const enum kerr silent[] = {
        KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_NOT_LEADER_OR_FOLLOWER, KERR_MESSAGE_TOO_LARGE,
        KERR_RECORD_LIST_TOO_LARGE,      KERR_CORRUPT_MESSAGE,        KERR_KAFKA_STORAGE_ERROR,
        KERR_INVALID_TOPIC_EXCEPTION};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (e == silent[i])
            return false;
    return true;
}

static enum kerr append_prepared(struct produce_op *op, int slot, struct partition *p,
                                 struct prepared *pr, int64_t flush_messages)
{
    struct produce_slot *s = &op->slots[slot];
    struct partition_append appended;
    if (pr->batches_n == 0) /* nothing whole was sent (v0-v2): nothing happens */
        return KERR_NONE;
    enum kerr e = partition_append(p, pr, APPEND_CLIENT, op->body->acks, &appended);
    if (e != KERR_NONE)
        return e;
    if (!appended.info.duplicate) {
        struct broker_metrics *m = broker_metrics(op->req->broker);
        metrics_topic(m, p, TOPIC_MESSAGES_IN, (uint64_t)pr->offsets_n);
        metrics_topic(m, p, TOPIC_BYTES_IN, pr->len);
        if (pr->rebuilt.len > 0)
            metrics_topic(m, p, TOPIC_PRODUCE_CONVERSIONS, (uint64_t)pr->offsets_n);
    }
    s->out->base_offset = appended.info.first_offset;
    s->out->log_append_time_ms = appended.info.log_append_time;
    if (op->body->acks == -1) {
        s->partition = partition_ref(p);
        s->required_offset = appended.required_offset;
        s->term = appended.term;
    }
    if (appended.info.needs_flush) { /* acknowledged when fewer than flush_messages are at risk */
        s->to_flush = partition_ref(p);
        s->flush_up_to = appended.required_offset - flush_messages + 1;
    } else if (appended.info.rolled) {
        partition_flush_soon(p, broker_workers(op->req->broker));
    }
    return KERR_NONE;
}

static enum kerr append_to(struct produce_op *op, int slot, struct partition *p,
                           const struct records *records, int64_t now_ms)
{
    struct produce_response_partition_response *out = op->slots[slot].out;
    enum kerr e = partition_check_append(p, op->body->acks);
    struct log *log = partition_log(p);
    if (!log)
        return e != KERR_NONE ? e : KERR_NOT_LEADER_OR_FOLLOWER;
    if (e == KERR_NONE) {
        const struct log_config *config = log_config_ref(log);
        struct append_policy policy = policy_of(config, request_version(op->req), now_ms);
        int64_t flush_messages = config->flush_messages;
        log_config_unref(config);
        struct prepared pr;
        /* The frame is the request's own: its bytes may be written to. */
        e = records_prepare(&policy, (uint8_t *)records->p,
                            records->len > 0 ? (size_t)records->len : 0, op->req->arena, &pr);
        pr.txn_guard = op->slots[slot].txn_guard;
        if (e == KERR_NONE)
            e = append_prepared(op, slot, p, &pr, flush_messages);
        if (e != KERR_NONE) {
            count_fault(op, e, &pr);
            tell_record_errors(op, &pr, out);
        }
        prepared_free(&pr);
    }
    if (e == KERR_NONE || tells_log_start(e))
        out->log_start_offset = log_start_offset(log);
    log_unref(log);
    return e;
}

static void count_attempt(struct produce_op *op, const struct partition *p, enum kerr e,
                          const struct records *records)
{
    struct broker_metrics *m = broker_metrics(op->req->broker);
    metrics_topic(m, p, TOPIC_PRODUCE_REQUESTS, 1);
    if (e == KERR_MESSAGE_TOO_LARGE)
        metrics_topic(m, p, TOPIC_BYTES_REJECTED, records->len > 0 ? (uint64_t)records->len : 0);
    if (e != KERR_NONE && tells_log_start(e)) /* the others are what a healthy broker says, too */
        metrics_topic(m, p, TOPIC_FAILED_PRODUCE, 1);
}

static bool is_admin_client(const struct request *req)
{
    return str_eqz(req->header.client_id, "__admin_client");
}

static enum kerr produce_one(struct produce_op *op, int slot,
                             const struct metadata_snapshot *snapshot, int64_t now_ms)
{
    const struct produce_request_partition_data *data = op->slots[slot].data;
    struct topic_partition tp = {op->slots[slot].topic, data->index};
    if (op->slots[slot].refused != KERR_NONE)
        return op->slots[slot].refused;
    if (op->body->acks < -1 || op->body->acks > 1)
        return KERR_INVALID_REQUIRED_ACKS;
    if (!metadata_partition(snapshot, tp.topic, tp.partition))
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (topic_is_internal(tp.topic) && !is_admin_client(op->req))
        return KERR_INVALID_TOPIC_EXCEPTION;
    enum kerr e;
    struct partition *p = replica_manager_find(broker_replicas(op->req->broker), tp, &e);
    if (!p)
        return e;
    e = append_to(op, slot, p, &data->records, now_ms);
    count_attempt(op, p, e, &data->records);
    partition_unref(p);
    return e;
}

void produce_append(struct produce_op *op)
{
    struct broker *b = op->req->broker;
    int64_t now_ms = clock_wall_ms(broker_clock(b));
    const struct metadata_snapshot *snapshot = metadata_acquire(broker_metadata(b));
    for (int i = 0; i < op->slots_n; i++)
        op->slots[i].out->error_code = (int16_t)produce_one(op, i, snapshot, now_ms);
    metadata_release(snapshot);
}

/* ---- the answer ---- */

static void add_hints(struct produce_op *op)
{
    struct leader_hints h =
        leader_hints_of(op->req->broker, request_listener(op->req), op->req->arena);
    for (int i = 0; i < op->slots_n; i++) {
        struct produce_slot *s = &op->slots[i];
        if (s->out->error_code == KERR_NOT_LEADER_OR_FOLLOWER)
            leader_hints_add(&h, (struct topic_partition){s->topic, s->out->index},
                             &s->out->current_leader.leader_id,
                             &s->out->current_leader.leader_epoch);
    }
    struct produce_response_node_endpoint *v =
        h.n ? produce_response_node_endpoint_new(op->req->arena, h.n) : NULL;
    if (!v)
        return;
    for (int i = 0; i < h.n; i++)
        v[i] = (struct produce_response_node_endpoint){h.endpoints[i].id, h.endpoints[i].host,
                                                       h.endpoints[i].port, h.endpoints[i].rack};
    op->response.node_endpoints.v = v;
    op->response.node_endpoints.n = h.n;
}

static void answer_acks_0(struct produce_op *op)
{
    for (int i = 0; i < op->slots_n; i++) {
        const struct produce_slot *s = &op->slots[i];
        if (s->out->error_code == KERR_NONE)
            continue;
        request_close(op->req, "produce with acks=0 to %.*s-%d failed: %s", STR_ARG(s->topic),
                      (int)s->out->index, kerr_name(s->out->error_code));
        return;
    }
    request_respond_none(op->req);
}

void produce_answer(struct produce_op *op)
{
    request_count_produced(op->req, op->req->net->frame_len);
    for (int i = 0; i < op->slots_n; i++)
        metrics_request_error(op->req, op->slots[i].out->error_code);
    if (op->body->acks == 0) {
        answer_acks_0(op);
        return;
    }
    if (request_version(op->req) < FIRST_VERSION_STORAGE_ERROR)
        for (int i = 0; i < op->slots_n; i++)
            if (op->slots[i].out->error_code == KERR_KAFKA_STORAGE_ERROR)
                op->slots[i].out->error_code = KERR_NOT_LEADER_OR_FOLLOWER;
    if (request_version(op->req) >= FIRST_VERSION_HINTS)
        add_hints(op);
    request_respond(op->req, &op->response);
}

/* Records of a transaction are its owner's to write: else nothing of the request is appended. */
static void check_transaction(struct produce_op *op)
{
    struct str id = op->body->transactional_id;
    if (!authorizer_enabled(op->req) || !produce_is_transactional(op) ||
        (!str_is_null(id) && rights_txn(op->req, ACL_WRITE, id)))
        return;
    for (int i = 0; i < op->slots_n; i++)
        op->slots[i].refused = KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
}

void handle_produce(struct request *req)
{
    struct produce_op *op = arena_new(req->arena, struct produce_op);
    if (op) {
        op->req = req;
        op->body = req->body;
    }
    if (!op || !lay_out(op)) {
        request_no_memory(req);
        return;
    }
    check_transaction(op);
    produce_start(op);
}
