/* handle_fetch.c - Fetch v0-v17: session, partitions, the read within the limits, and whether to
 * answer at once.
 *
 * LIMITS   (KIP-74) partitions are read in order; each gets the lesser of its own limit and what is
 *          left of the response's. Until the first that gives bytes, the limits do not hold for one
 *          batch, so that there is always progress. v0-v2 have no response limit and cut anywhere.
 */
#include <string.h>

#include "server/broker_cluster.h"
#include "server/client_quotas.h"
#include "server/fetch_op.h"
#include "server/handlers.h"
#include "server/replication_throttle.h"
#include "server/request_quota.h"
#include "server/rights.h"

#define FIRST_VERSION_RESPONSE_LIMIT 3
#define FIRST_VERSION_FOLLOWER_FETCH 11
#define FIRST_VERSION_IDS 13
#define FIRST_VERSION_REPLICA_STATE 15

/* ---- partitions ---- */

static enum kerr find_partition(struct fetch_op *op, const struct metadata_snapshot *snapshot,
                                const struct fetch_want *w, struct fetch_slot *s)
{
    s->unknown = true;
    if (str_is_null(w->topic))
        return KERR_UNKNOWN_TOPIC_ID;
    if (!metadata_partition(snapshot, w->topic, w->partition))
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    s->unknown = false;
    enum kerr e;
    struct topic_partition tp = {w->topic, w->partition};
    s->partition = replica_manager_find(broker_replicas(op->req->broker), tp, &e);
    if (!s->partition || !op->context.uses_ids)
        return e;
    struct uuid known = partition_topic_id(s->partition);
    if (uuid_is_zero(w->topic_id) || uuid_is_zero(known) || uuid_eq(w->topic_id, known))
        return KERR_NONE;
    partition_unref(s->partition);
    s->partition = NULL;
    return KERR_INCONSISTENT_TOPIC_ID;
}

/* A consumer may read the topic; of neighbours with one name the first is asked about. Whether
 * there is such a topic is not told to who may not. */
static bool may_read(const struct fetch_op *op, int i)
{
    const struct fetch_want *w = &op->context.wants[i];
    if (str_is_null(w->topic))
        return true;
    if (i > 0 && w[-1].topic.p == w->topic.p && w[-1].topic.len == w->topic.len)
        return op->slots[i - 1].error != KERR_TOPIC_AUTHORIZATION_FAILED;
    return rights_topic(op->req, ACL_READ, w->topic);
}

static void find_partitions(struct fetch_op *op, const struct metadata_snapshot *snapshot)
{
    bool checked = authorizer_enabled(op->req), follower = op->replica_id >= 0;
    bool trusted = !checked || (follower && authorize_cluster(op->req, ACL_CLUSTER_ACTION));
    for (int i = 0; i < op->context.wants_n; i++) {
        struct fetch_slot *s = &op->slots[i];
        if (trusted || (!follower && may_read(op, i))) {
            s->error = find_partition(op, snapshot, &op->context.wants[i], s);
        } else {
            s->error = KERR_TOPIC_AUTHORIZATION_FAILED;
            s->unknown = true;
        }
    }
}

/* ---- reading ---- */

struct partition_read_args fetch_read_args(const struct fetch_op *op, int i)
{
    const struct fetch_want *w = &op->context.wants[i];
    return (struct partition_read_args){.replica_id = op->replica_id,
                                        .offset = w->offset,
                                        .current_leader_epoch = w->current_leader_epoch,
                                        .last_fetched_epoch = w->last_fetched_epoch,
                                        .fetcher_log_start = w->fetcher_log_start,
                                        .max_bytes = w->max_bytes > 0 ? (uint32_t)w->max_bytes : 0,
                                        .isolation = op->isolation,
                                        .hard_limit = op->hard_limit,
                                        .leader_only = op->leader_only};
}

/* The one place where a fetch gets its slices; they are not looked into here. */
static void obtain_slice(struct fetch_op *op, int i, uint32_t left, bool min_one, bool reread)
{
    struct fetch_slot *s = &op->slots[i];
    struct partition_read_args args = fetch_read_args(op, i);
    if (args.max_bytes > left)
        args.max_bytes = left;
    args.min_one = min_one;
    args.reread = reread;
    args.now = op->warmed < FETCH_WARM_MAX;
    struct topic_partition tp = {op->context.wants[i].topic, op->context.wants[i].partition};
    s->throttled = op->replica_id >= 0 && !broker_may_replicate(op->req->broker, true, tp) &&
                   !partition_in_sync(s->partition, op->replica_id);
    /* Sent elsewhere, a consumer gets positions and no records. */
    s->nearest = str_is_null(op->rack)
                     ? -1
                     : partition_nearest_replica(s->partition, args.offset, op->rack,
                                                 request_listener(op->req));
    if (s->nearest >= 0 || s->throttled) {
        args.max_bytes = 0;
        args.min_one = false;
    }
    s->error = partition_read(s->partition, &args, op->req->arena, &s->read);
    op->cold |= s->read.slice.cold;
    if (s->error != KERR_NONE || s->read.diverging_epoch >= 0 || s->nearest >= 0)
        op->must_answer = true;
}

void fetch_read(struct fetch_op *op, bool reread)
{
    uint32_t left = op->max_bytes;
    bool min_one = !op->hard_limit;
    op->found_bytes = 0;
    op->must_answer = op->cold = false;
    for (int i = 0; i < op->context.wants_n; i++) {
        struct fetch_slot *s = &op->slots[i];
        if (!s->partition) {
            op->must_answer |= !s->unknown;
            continue;
        }
        if (reread && s->idle)
            continue;
        obtain_slice(op, i, left, min_one, reread);
        uint32_t len = s->read.slice.len;
        if (len == 0)
            continue;
        min_one = false;
        left = len < left ? left - len : 0;
        op->found_bytes += len;
    }
}

void fetch_release_reads(struct fetch_op *op)
{
    for (int i = 0; i < op->context.wants_n; i++) {
        struct fetch_slot *s = &op->slots[i];
        file_unref(s->read.slice.file);
        s->read.slice.file = NULL;
        s->read.slice.len = 0;
        buf_free(&s->converted);
        s->converted = BUF_INIT;
    }
}

void fetch_release(struct fetch_op *op)
{
    fetch_release_reads(op);
    for (int i = 0; i < op->context.wants_n; i++) {
        partition_unref(op->slots[i].partition);
        op->slots[i].partition = NULL;
    }
}

/* ---- the request ---- */

static bool anything_to_read(const struct fetch_op *op)
{
    for (int i = 0; i < op->context.wants_n; i++)
        if (!op->slots[i].unknown)
            return true;
    return false;
}

/* Whether the client passed a quota: then it gets no records now, and those read are not counted.
 */
static void ask_quotas(struct fetch_op *op)
{
    struct request *req = op->req;
    struct client_quotas *q = broker_quotas(req->broker);
    bool empty = false;
    int64_t bytes_ms =
        client_quotas_record_fetch(q, request_user(req), request_client(req),
                                   (double)op->found_bytes, request_now_ms(req), &empty);
    request_throttle(req, bytes_ms);
    if (request_time_throttle_ms(req) > 0 && !empty) {
        client_quotas_unrecord(q, QUOTA_FETCH, request_user(req), request_client(req),
                               (double)op->found_bytes, request_now_ms(req));
        empty = true;
    }
    op->held_back = empty;
    if (!empty)
        return;
    fetch_release_reads(op);
    op->found_bytes = 0;
}

/* What a replica gets; not what was read and read again. */
static void count_replicated(struct fetch_op *op)
{
    struct replication_throttle *t = broker_throttle(op->req->broker);
    for (int i = 0; i < op->context.wants_n; i++) {
        struct topic_partition tp = {op->context.wants[i].topic, op->context.wants[i].partition};
        uint32_t len = op->slots[i].partition ? op->slots[i].read.slice.len : 0;
        if (len > 0 && replication_throttle_lists(t, THROTTLE_LEADER, tp))
            replication_throttle_count(t, THROTTLE_LEADER, len);
    }
}

void fetch_deliver(struct fetch_op *op)
{
    int version = request_version(op->req);
    if (op->replica_id < 0)
        ask_quotas(op);
    else
        count_replicated(op);
    if (version <= 3 && op->found_bytes > 0)
        fetch_convert(op, version <= 1 ? 0 : 1);
    else
        fetch_answer(op);
}

static bool selects_by_rack(const struct config *c)
{
    const char *selector = config_string(c, "replica.selector.class");
    const char *name = selector ? strrchr(selector, '.') : NULL;
    return name && strcmp(name, ".RackAwareReplicaSelector") == 0;
}

static void set_limits(struct fetch_op *op)
{
    int version = request_version(op->req);
    const struct fetch_request *body = op->body;
    int64_t cap = config_int(broker_config(op->req->broker), "fetch.max.bytes");
    op->replica_id =
        version >= FIRST_VERSION_REPLICA_STATE ? body->replica_state.replica_id : body->replica_id;
    if (op->replica_id < 0)
        op->replica_id = -1;
    if (op->replica_id < 0) { /* more at once would only be held back */
        double burst = client_quotas_burst(broker_quotas(op->req->broker), QUOTA_FETCH,
                                           request_user(op->req), request_client(op->req));
        cap = burst < (double)cap ? (int64_t)burst : cap;
    }
    int64_t asked = version >= FIRST_VERSION_RESPONSE_LIMIT ? body->max_bytes : INT32_MAX;
    if (asked > cap)
        asked = cap;
    op->max_bytes = asked > 0 ? (uint32_t)asked : 0;
    op->min_bytes = body->min_bytes < asked ? body->min_bytes : asked;
    op->req->untimed = op->req->of_follower = op->replica_id >= 0;
    op->isolation = body->isolation_level == READ_COMMITTED ? READ_COMMITTED : READ_UNCOMMITTED;
    op->rack = STR_NULL;
    if (op->replica_id < 0 && version >= FIRST_VERSION_FOLLOWER_FETCH && body->rack_id.len > 0 &&
        selects_by_rack(broker_config(op->req->broker)))
        op->rack = body->rack_id;
    op->hard_limit = version < FIRST_VERSION_RESPONSE_LIMIT;
    op->leader_only = op->replica_id >= 0 || version < FIRST_VERSION_FOLLOWER_FETCH;
}

static bool begin(struct fetch_op *op)
{
    struct request *req = op->req;
    const struct metadata_snapshot *snapshot = metadata_acquire(broker_metadata(req->broker));
    int r = fetch_context_begin(broker_fetch_sessions(req->broker), op->body, request_version(req),
                                snapshot, req->arena, &op->context);
    if (r == 0) {
        op->slots = arena_array(req->arena, struct fetch_slot, (size_t)op->context.wants_n);
        if (op->slots)
            find_partitions(op, snapshot);
    }
    metadata_release(snapshot);
    return r == 0 && op->slots;
}

static void answer_or_wait(struct fetch_op *op)
{
    if (op->body->max_wait_ms <= 0 || op->found_bytes >= op->min_bytes || op->must_answer ||
        !anything_to_read(op) || op->req->net->hurry)
        fetch_deliver(op);
    else
        fetch_wait(op);
}

void handle_fetch(struct request *req)
{
    struct fetch_op *op = arena_new(req->arena, struct fetch_op);
    if (op) {
        op->req = req;
        op->body = req->body;
        set_limits(op);
    }
    if (!op || !begin(op)) {
        request_no_memory(req);
        return;
    }
    if (op->context.kind == FETCH_REFUSED) {
        fetch_answer(op);
        return;
    }
    fetch_read_then(op, false, answer_or_wait);
}
