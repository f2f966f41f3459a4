/* replica_manager_stop.c - StopReplica applied to this broker. */
#include "base/logline.h"
#include "protocol/msg/stop_replica.h"
#include "replica/fan_out.h"
#include "replica/fetchers.h"
#include "replica/replica_manager_private.h"

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
    replica_manager_unfollow(m, p);
    p->awaited.leader = -1;
    if (!delete) {
        partition_wake(p);
        return KERR_NONE;
    }
    partition_make_gone(p);
    replica_manager_forget(m, p);
    return delete_log(m, partition_tp(p));
}

struct stop_item {
    struct str topic;
    int32_t number, leader_epoch;
    bool delete;
    struct stop_replica_response_partition_error *out;
};

struct stop_all {
    struct replica_manager *m;
    struct stop_item *items;
    int32_t n;
    int lanes;
};

static enum kerr stop(struct replica_manager *m, const struct stop_item *it)
{
    struct topic_partition tp = {it->topic, it->number};
    struct partition *p = replica_manager_lookup(m, tp);
    enum kerr e = KERR_NONE;
    if (p)
        e = stop_partition(m, p, it->leader_epoch, it->delete);
    else if (it->delete &&!str_is_null(it->topic))
        e = delete_log(m, tp);
    if (e != KERR_NONE)
        say_info("ReplicaManager", "StopReplica for %.*s-%d, epoch %d: %s", STR_ARG(it->topic),
                 (int)it->number, (int)it->leader_epoch, kerr_name((int16_t)e));
    partition_unref(p);
    return e;
}

static void stop_lane(void *arg, int lane)
{
    struct stop_all *all = arg;
    for (int32_t i = 0; i < all->n; i++) {
        const struct stop_item *it = &all->items[i];
        if (control_lane((struct topic_partition){it->topic, it->number}, all->lanes) == lane)
            it->out->error_code = (int16_t)stop(all->m, it);
    }
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

static void add_stop(struct stop_all *all, struct stop_replica_response *out, struct str topic,
                     int32_t number, int32_t leader_epoch, bool delete)
{
    struct stop_replica_response_partition_error *to = &out->partition_errors.v[all->n];
    to->topic_name = topic;
    to->partition_index = number;
    all->items[all->n++] = (struct stop_item){topic, number, leader_epoch, delete, to};
}

static void add_stops(struct stop_all *all, const struct stop_replica_request *req,
                      struct stop_replica_response *out)
{
    for (int32_t i = 0; i < req->ungrouped_partitions.n; i++)
        add_stop(all, out, req->ungrouped_partitions.v[i].topic_name,
                 req->ungrouped_partitions.v[i].partition_index, -1, req->delete_partitions);
    for (int32_t t = 0; t < req->topics.n; t++)
        for (int32_t i = 0; i < req->topics.v[t].partition_indexes.n; i++)
            add_stop(all, out, req->topics.v[t].name, req->topics.v[t].partition_indexes.v[i], -1,
                     req->delete_partitions);
    for (int32_t t = 0; t < req->topic_states.n; t++) {
        const struct stop_replica_request_topic_state *ts = &req->topic_states.v[t];
        for (int32_t i = 0; i < ts->partition_states.n; i++)
            add_stop(all, out, ts->topic_name, ts->partition_states.v[i].partition_index,
                     ts->partition_states.v[i].leader_epoch,
                     ts->partition_states.v[i].delete_partition);
    }
}

void replica_manager_stop(struct replica_manager *m, const struct stop_replica_request *req,
                          struct arena *a, struct stop_replica_response *out)
{
    int32_t n = stop_count(req);
    struct stop_all all = {.m = m, .lanes = control_lanes(n)};
    all.items = arena_array(a, struct stop_item, (size_t)n);
    out->partition_errors.v = stop_replica_response_partition_error_new(a, n);
    out->partition_errors.n = 0;
    pthread_mutex_lock(&m->control);
    enum kerr e = all.items && out->partition_errors.v
                      ? replica_manager_check_epochs(m, req->broker_epoch, req->controller_epoch)
                      : KERR_UNKNOWN_SERVER_ERROR;
    if (e == KERR_NONE) {
        add_stops(&all, req, out);
        out->partition_errors.n = all.n;
        fan_out(m->o.workers, all.lanes, stop_lane, &all);
        if (m->o.fetchers)
            fetchers_close_idle(m->o.fetchers);
    }
    pthread_mutex_unlock(&m->control);
    out->error_code = (int16_t)e;
}
