/* replica_manager_control.c - LeaderAndIsr, StopReplica and UpdateMetadata applied to this broker.
 *
 * Requests may come twice (a channel resends after a lost connection) and late; epochs tell. One
 * partition's failure leaves the others alone. */
#include "base/logline.h"
#include "protocol/msg/leader_and_isr.h"
#include "protocol/msg/stop_replica.h"
#include "protocol/msg/update_metadata.h"
#include "replica/replica_manager_private.h"

typedef struct leader_and_isr_request_partition_state isr_state;

/* ---- LeaderAndIsr ---- */

static bool among(const int32_t *ids, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static bool is_alive(struct replica_manager *m, int32_t broker)
{
    const struct metadata_snapshot *s = metadata_acquire(m->o.metadata);
    bool alive = metadata_broker(s, broker) != NULL;
    metadata_release(s);
    return alive;
}

/* The topic id known here: in memory, or that of a log of this name on disk. */
static struct uuid known_topic_id(struct replica_manager *m, struct partition *p)
{
    struct uuid id = partition_topic_id(p);
    struct log *log = uuid_is_zero(id) ? log_manager_find(m->o.logs, partition_tp(p)) : NULL;
    if (log) {
        id = log_topic_id(log);
        log_unref(log);
    }
    return id;
}

/* Finds or makes the log and gives it the topic id. *out shared. */
static enum kerr open_log(struct replica_manager *m, struct partition *p, const isr_state *s,
                          struct uuid id, struct log **out)
{
    struct topic_partition tp = partition_tp(p);
    struct log_config config = log_config_default();
    m->o.topic_config(m->o.arg, tp.topic, &config);
    enum kerr e = log_manager_get_or_create(m->o.logs, tp, s->is_new, id, &config, out);
    if (e == KERR_NONE && !uuid_is_zero(id) && uuid_is_zero(log_topic_id(*out))) {
        e = log_set_topic_id(*out, id);
        if (e != KERR_NONE)
            log_unref(*out);
    }
    return e;
}

static enum kerr take_role(struct replica_manager *m, struct partition *p, const isr_state *s,
                           struct uuid id)
{
    struct log *log;
    enum kerr e = open_log(m, p, s, id, &log);
    if (e == KERR_NONE) {
        struct leadership l = {.controller_epoch = s->controller_epoch,
                               .leader = s->leader,
                               .leader_epoch = s->leader_epoch,
                               .partition_epoch = s->partition_epoch,
                               .isr = s->isr.v,
                               .isr_n = s->isr.n,
                               .replicas = s->replicas.v,
                               .replicas_n = s->replicas.n,
                               .topic_id = uuid_is_zero(id) ? log_topic_id(log) : id};
        if (s->leader == m->o.broker_id)
            e = partition_make_leader(p, &l, log);
        else if (is_alive(m, s->leader))
            e = partition_make_follower(p, &l, log);
        /* else: the log is there, so that its high watermark stays in the checkpoint; a later
         * request will tell of a leader that lives */
        log_unref(log);
    }
    if (e == KERR_KAFKA_STORAGE_ERROR)
        partition_make_offline(p);
    return e;
}

/* The same leadership again: nothing changes but a topic id that was not known. */
static enum kerr same_epoch(struct partition *p, struct uuid id)
{
    struct uuid own = partition_topic_id(p);
    if (!uuid_is_zero(id) && uuid_is_zero(own)) {
        struct log *log = partition_log(p);
        enum kerr e = log ? log_set_topic_id(log, id) : KERR_NONE;
        if (log)
            log_unref(log);
        if (e == KERR_NONE)
            partition_take_topic_id(p, id);
        return e;
    }
    if (uuid_is_zero(id) && !uuid_is_zero(own) && atomic_load(&p->role) == PARTITION_FOLLOWER)
        return KERR_NONE;
    return KERR_STALE_CONTROLLER_EPOCH;
}

static enum kerr become_one(struct replica_manager *m, struct partition *p, const isr_state *s,
                            struct uuid id)
{
    if (atomic_load(&p->role) == PARTITION_OFFLINE)
        return KERR_KAFKA_STORAGE_ERROR;
    struct uuid known = known_topic_id(m, p);
    if (!uuid_is_zero(id) && !uuid_is_zero(known) && !uuid_eq(id, known))
        return KERR_INCONSISTENT_TOPIC_ID;
    int32_t own = atomic_load(&p->leader_epoch);
    if (s->leader_epoch < own)
        return KERR_STALE_CONTROLLER_EPOCH;
    if (s->leader_epoch == own)
        return same_epoch(p, id);
    if (!among(s->replicas.v, s->replicas.n, m->o.broker_id))
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    return take_role(m, p, s, id);
}

static enum kerr become(struct replica_manager *m, struct str topic, const isr_state *s,
                        struct uuid id)
{
    struct topic_partition tp = {topic, s->partition_index};
    if (topic_name_problem(topic) || tp.partition < 0)
        return KERR_INVALID_TOPIC_EXCEPTION;
    struct partition *p = replica_manager_lookup_or_make(m, tp);
    if (!p)
        return KERR_UNKNOWN_SERVER_ERROR;
    enum kerr e = become_one(m, p, s, id);
    if (e != KERR_NONE)
        logline(e == KERR_STALE_CONTROLLER_EPOCH ? LOGLINE_DEBUG : LOGLINE_INFO, "ReplicaManager",
                "LeaderAndIsr for %.*s-%d, leader %d epoch %d: %s (here epoch %d)", STR_ARG(topic),
                (int)tp.partition, (int)s->leader, (int)s->leader_epoch, kerr_name((int16_t)e),
                (int)partition_leader_epoch(p));
    partition_unref(p);
    return e;
}

static int32_t become_each(struct replica_manager *m, struct str topic, struct uuid id,
                           const isr_state *states, int32_t n, bool by_name,
                           struct leader_and_isr_response_partition_error *out)
{
    for (int32_t i = 0; i < n; i++) {
        struct str name = str_is_null(topic) ? states[i].topic_name : topic;
        if (by_name)
            out[i].topic_name = name;
        out[i].partition_index = states[i].partition_index;
        out[i].error_code = (int16_t)become(m, name, &states[i], id);
    }
    return n;
}

/* Versions below 5 answer with one flat list of names. */
static bool become_flat(struct replica_manager *m, const struct leader_and_isr_request *req,
                        struct arena *a, struct leader_and_isr_response *out)
{
    int32_t n = req->ungrouped_partition_states.n;
    for (int32_t t = 0; t < req->topic_states.n; t++)
        n += req->topic_states.v[t].partition_states.n;
    struct leader_and_isr_response_partition_error *v =
        leader_and_isr_response_partition_error_new(a, n);
    if (!v)
        return false;
    out->partition_errors.v = v;
    out->partition_errors.n = n;
    v += become_each(m, STR_NULL, UUID_ZERO, req->ungrouped_partition_states.v,
                     req->ungrouped_partition_states.n, true, v);
    for (int32_t t = 0; t < req->topic_states.n; t++) {
        const struct leader_and_isr_request_topic_state *ts = &req->topic_states.v[t];
        v += become_each(m, ts->topic_name, UUID_ZERO, ts->partition_states.v,
                         ts->partition_states.n, true, v);
    }
    return true;
}

static bool become_by_topic(struct replica_manager *m, const struct leader_and_isr_request *req,
                            struct arena *a, struct leader_and_isr_response *out)
{
    out->topics.v = leader_and_isr_response_topic_new(a, req->topic_states.n);
    if (!out->topics.v)
        return false;
    out->topics.n = req->topic_states.n;
    for (int32_t t = 0; t < req->topic_states.n; t++) {
        const struct leader_and_isr_request_topic_state *ts = &req->topic_states.v[t];
        struct leader_and_isr_response_topic *to = &out->topics.v[t];
        to->topic_id = ts->topic_id;
        to->partition_errors.v =
            leader_and_isr_response_partition_error_new(a, ts->partition_states.n);
        if (!to->partition_errors.v)
            return false;
        to->partition_errors.n = ts->partition_states.n;
    }
    for (int32_t t = 0; t < req->topic_states.n; t++) {
        const struct leader_and_isr_request_topic_state *ts = &req->topic_states.v[t];
        become_each(m, ts->topic_name, ts->topic_id, ts->partition_states.v, ts->partition_states.n,
                    false, out->topics.v[t].partition_errors.v);
    }
    return true;
}

void replica_manager_become(struct replica_manager *m, int version,
                            const struct leader_and_isr_request *req, struct arena *a,
                            struct leader_and_isr_response *out)
{
    pthread_mutex_lock(&m->control);
    enum kerr e = replica_manager_check_epochs(m, req->broker_epoch, req->controller_epoch);
    /* All memory of the answer is there before anything is done. */
    if (e == KERR_NONE &&
        !(version >= 5 ? become_by_topic(m, req, a, out) : become_flat(m, req, a, out)))
        e = KERR_UNKNOWN_SERVER_ERROR;
    pthread_mutex_unlock(&m->control);
    out->error_code = (int16_t)e;
}

/* ---- StopReplica ---- */

static enum kerr delete_log(struct replica_manager *m, struct topic_partition tp)
{
    struct log *log = log_manager_find(m->o.logs, tp);
    if (log) {
        log_unref(log);
        return log_manager_delete(m->o.logs, tp);
    }
    /* It may lie in a dir that failed. */
    return log_manager_online_dirs(m->o.logs) < log_manager_dirs(m->o.logs, NULL, 0)
               ? KERR_KAFKA_STORAGE_ERROR
               : KERR_NONE;
}

static enum kerr stop_partition(struct replica_manager *m, struct partition *p,
                                int32_t leader_epoch, bool delete)
{
    if (atomic_load(&p->role) == PARTITION_OFFLINE)
        return KERR_KAFKA_STORAGE_ERROR;
    /* -1: not known, -2: the topic is being deleted */
    if (leader_epoch >= 0 && leader_epoch < atomic_load(&p->leader_epoch))
        return KERR_FENCED_LEADER_EPOCH;
    if (!delete) {
        partition_wake(p);
        return KERR_NONE;
    }
    partition_make_gone(p);
    replica_manager_forget(m, p);
    return delete_log(m, partition_tp(p));
}

static void stop(struct replica_manager *m, struct str topic, int32_t number, int32_t leader_epoch,
                 bool delete, struct stop_replica_response *out)
{
    struct topic_partition tp = {topic, number};
    struct partition *p = replica_manager_lookup(m, tp);
    enum kerr e = KERR_NONE;
    if (p)
        e = stop_partition(m, p, leader_epoch, delete);
    else if (delete &&!str_is_null(topic))
        e = delete_log(m, tp);
    if (e != KERR_NONE)
        say_info("ReplicaManager", "StopReplica for %.*s-%d, epoch %d: %s", STR_ARG(topic),
                 (int)number, (int)leader_epoch, kerr_name((int16_t)e));
    partition_unref(p);
    struct stop_replica_response_partition_error *to =
        &out->partition_errors.v[out->partition_errors.n++];
    to->topic_name = topic;
    to->partition_index = number;
    to->error_code = (int16_t)e;
}

static int32_t stop_count(const struct stop_replica_request *req)
{
    int32_t n = req->ungrouped_partitions.n;
    for (int32_t t = 0; t < req->topics.n; t++)
        n += req->topics.v[t].partition_indexes.n;
    for (int32_t t = 0; t < req->topic_states.n; t++)
        n += req->topic_states.v[t].partition_states.n;
    return n;
}

static void stop_each(struct replica_manager *m, const struct stop_replica_request *req,
                      struct stop_replica_response *out)
{
    for (int32_t i = 0; i < req->ungrouped_partitions.n; i++)
        stop(m, req->ungrouped_partitions.v[i].topic_name,
             req->ungrouped_partitions.v[i].partition_index, -1, req->delete_partitions, out);
    for (int32_t t = 0; t < req->topics.n; t++)
        for (int32_t i = 0; i < req->topics.v[t].partition_indexes.n; i++)
            stop(m, req->topics.v[t].name, req->topics.v[t].partition_indexes.v[i], -1,
                 req->delete_partitions, out);
    for (int32_t t = 0; t < req->topic_states.n; t++) {
        const struct stop_replica_request_topic_state *ts = &req->topic_states.v[t];
        for (int32_t i = 0; i < ts->partition_states.n; i++)
            stop(m, ts->topic_name, ts->partition_states.v[i].partition_index,
                 ts->partition_states.v[i].leader_epoch, ts->partition_states.v[i].delete_partition,
                 out);
    }
}

void replica_manager_stop(struct replica_manager *m, const struct stop_replica_request *req,
                          struct arena *a, struct stop_replica_response *out)
{
    out->partition_errors.v = stop_replica_response_partition_error_new(a, stop_count(req));
    out->partition_errors.n = 0;
    pthread_mutex_lock(&m->control);
    enum kerr e = out->partition_errors.v
                      ? replica_manager_check_epochs(m, req->broker_epoch, req->controller_epoch)
                      : KERR_UNKNOWN_SERVER_ERROR;
    if (e == KERR_NONE)
        stop_each(m, req, out);
    pthread_mutex_unlock(&m->control);
    out->error_code = (int16_t)e;
}

/* ---- UpdateMetadata ---- */

enum kerr replica_manager_update_metadata(struct replica_manager *m,
                                          const struct update_metadata_request *req)
{
    pthread_mutex_lock(&m->control);
    enum kerr e = replica_manager_check_epochs(m, req->broker_epoch, req->controller_epoch);
    if (e == KERR_NONE && metadata_cache_update(m->o.metadata, req) < 0)
        e = KERR_UNKNOWN_SERVER_ERROR;
    pthread_mutex_unlock(&m->control);
    return e;
}
