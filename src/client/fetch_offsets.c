/* fetch_offsets.c - where reading begins and goes on: committed offsets, offsets by time, and
 * whether a position still holds under a new leader. */
#include <stdio.h>
#include <stdlib.h>

#include "client/committed.h"
#include "client/fetcher_private.h"
#include "client/group.h"
#include "protocol/errors.h"
#include "protocol/msg/list_offsets.h"
#include "protocol/msg/offset_fetch.h"
#include "protocol/msg/offset_for_leader_epoch.h"

/* ---- by time ---- */

static const struct list_offsets_response_partition *
find_lookup(const struct list_offsets_response *m, const struct cpart *p)
{
    for (int32_t t = 0; m && t < m->topics.n; t++)
        for (int32_t k = 0; k < m->topics.v[t].partitions.n; k++)
            if (m->topics.v[t].partitions.v[k].partition_index == p->partition &&
                str_eqz(m->topics.v[t].name, p->topic))
                return &m->topics.v[t].partitions.v[k];
    return NULL;
}

static void on_lookup(void *arg, int status, int version, const void *response)
{
    struct fetch_send *s = arg;
    kafka_consumer_t *c = s->c;
    bool refresh = false;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < s->n; i++) {
        struct cpart *p = s->parts[i];
        const struct list_offsets_response_partition *r = find_lookup(response, p);
        kafka_err_t err = status ? client_err_of_status(status)
                          : r    ? r->error_code
                                 : KAFKA_ERR_BAD_RESPONSE;
        if (!fetch_still_wanted(s, i))
            continue;
        if (err != KAFKA_OK) {
            fetch_on_error(c, p, err, &refresh);
            continue;
        }
        p->position = p->fetch_at = r->offset;
        p->state = CPART_FETCH;
        p->attempts = 0;
        pthread_cond_broadcast(&c->news);
    }
    pthread_mutex_unlock(&c->lock);
    fetch_finish(s, refresh);
}

static bool fill_lookup(struct fetch_send *s, struct arena *a, struct list_offsets_request *req)
{
    list_offsets_request_init(req);
    req->replica_id = -1;
    req->isolation_level = s->c->read_committed;
    req->topics.v = list_offsets_request_topic_new(a, s->n);
    for (int i = 0; req->topics.v && i < s->n; i++) {
        struct list_offsets_request_topic *t = &req->topics.v[i];
        t->name = str_of(s->parts[i]->topic);
        t->partitions.v = list_offsets_request_partition_new(a, 1);
        if (!t->partitions.v)
            return false;
        t->partitions.n = 1;
        t->partitions.v[0].partition_index = s->parts[i]->partition;
        t->partitions.v[0].timestamp = s->parts[i]->reset_to;
        req->topics.n++;
    }
    return req->topics.v != NULL;
}

int send_lookup(struct fetch_send *s, struct arena *a)
{
    struct list_offsets_request req;
    pthread_mutex_lock(&s->c->lock);
    bool ok = fill_lookup(s, a, &req);
    pthread_mutex_unlock(&s->c->lock);
    return ok ? node_send(s->node, API_LIST_OFFSETS, 1, -1, &req,
                          cluster_request_timeout(s->c->cluster), true, on_lookup, s)
              : -1;
}

/* ---- committed offsets ---- */

struct committed_answer {
    struct fetch_send *s;
    int next;
    bool *seen;
    bool refresh;
};

static void on_committed_one(struct fetch_send *s, int i, const struct committed_offset *o)
{
    struct cpart *p = s->parts[i];
    kafka_consumer_t *c = s->c;
    p->attempts = 0;
    if (o->offset < 0) {
        fetch_begin_reset(c, p);
        return;
    }
    p->position = p->fetch_at = o->offset;
    p->position_epoch = p->epoch = o->leader_epoch;
    p->state = o->leader_epoch >= 0 && p->leader_epoch >= 0 ? CPART_VALIDATE : CPART_FETCH;
    pthread_cond_broadcast(&c->news);
}

static void take_committed(void *arg, const struct committed_offset *o)
{
    struct committed_answer *a = arg;
    for (int tried = 0; tried < a->s->n; tried++) {
        int i = (a->next + tried) % a->s->n;
        struct cpart *p = a->s->parts[i];
        if (p->partition != o->partition || !str_eqz(o->topic, p->topic))
            continue;
        a->next = i + 1;
        a->seen[i] = true;
        if (!fetch_still_wanted(a->s, i))
            return;
        if (o->err != KAFKA_OK)
            fetch_on_error(a->s->c, p, o->err, &a->refresh);
        else
            on_committed_one(a->s, i, o);
        return;
    }
}

static void on_committed(void *arg, int status, int version, const void *response)
{
    struct fetch_send *s = arg;
    kafka_consumer_t *c = s->c;
    struct committed_answer a = {s, 0, calloc((size_t)s->n, sizeof *a.seen), false};
    kafka_err_t err = !a.seen ? KAFKA_ERR_NO_MEMORY : client_err_of_status(status);
    pthread_mutex_lock(&c->lock);
    if (err == KAFKA_ERR_UNSUPPORTED && c->stable_offsets && !c->stable_or_fail) {
        c->stable_offsets = false; /* a broker before 2.5 */
        err = KERR_COORDINATOR_LOAD_IN_PROGRESS;
    }
    if (err == KAFKA_OK)
        err = committed_walk(version, response, take_committed, &a);
    for (int i = 0; i < s->n; i++)
        if ((!a.seen || !a.seen[i]) && fetch_still_wanted(s, i))
            fetch_on_error(c, s->parts[i], err != KAFKA_OK ? err : KAFKA_ERR_BAD_RESPONSE,
                           &a.refresh);
    pthread_mutex_unlock(&c->lock);
    free(a.seen);
    if (coordinator_is_stale(err) && c->group->coordinator.node == s->node)
        coordinator_forget(&c->group->coordinator);
    fetch_finish(s, false);
}

static bool fill_committed(struct fetch_send *s, struct arena *a, struct offset_fetch_request *req)
{
    kafka_topic_partition_t *tps = arena_array(a, kafka_topic_partition_t, (size_t)s->n);
    for (int i = 0; tps && i < s->n; i++)
        tps[i] = (kafka_topic_partition_t){s->parts[i]->topic, s->parts[i]->partition};
    return tps && committed_fill(a, req, s->c->group->id, tps, (size_t)s->n, s->c->stable_offsets);
}

int send_committed(struct fetch_send *s, struct arena *a)
{
    struct offset_fetch_request req;
    pthread_mutex_lock(&s->c->lock);
    bool ok = fill_committed(s, a, &req);
    pthread_mutex_unlock(&s->c->lock);
    return ok ? node_send(s->node, API_OFFSET_FETCH, 1, COMMITTED_MAX_VERSION, &req,
                          cluster_request_timeout(s->c->cluster), true, on_committed, s)
              : -1;
}

/* ---- after a change of leader ---- */

/* The new leader's log ends, for the epoch that we read in, at `end` (-1: it knows no such epoch):
 * what lies behind was never committed, and is gone. */
static void on_truncated(kafka_consumer_t *c, struct cpart *p, int64_t end)
{
    cpart_drop_queue(p);
    p->generation++;
    p->fetch_at = p->position;
    p->state = CPART_FETCH;
    if (end >= p->position)
        return; /* only what was fetched ahead */
    client_log(2, "%s-%d was cut to offset %lld below position %lld", p->topic, p->partition,
               (long long)end, (long long)p->position);
    if (c->reset_to == 0) {
        p->state = CPART_NOWHERE;
        c->error = KAFKA_ERR_LOG_TRUNCATION;
        snprintf(c->error_text, sizeof c->error_text,
                 "%s-%d: the log was cut to offset %lld (-1: all of it), position is %lld, and "
                 "auto.offset.reset=none",
                 p->topic, p->partition, (long long)end, (long long)p->position);
        pthread_cond_broadcast(&c->news);
    } else if (end < 0) {
        fetch_begin_reset(c, p);
    } else {
        p->position = p->fetch_at = end;
    }
}

static void on_valid(kafka_consumer_t *c, struct cpart *p,
                     const struct offset_for_leader_epoch_response_partition *r)
{
    p->attempts = 0;
    if (r->end_offset < 0 || r->leader_epoch < 0 || r->end_offset < p->fetch_at)
        on_truncated(c, p, r->leader_epoch < 0 ? -1 : r->end_offset);
    else
        p->state = CPART_FETCH;
    pthread_cond_broadcast(&c->news);
}

static const struct offset_for_leader_epoch_response_partition *
find_validated(const struct offset_for_leader_epoch_response *m, const struct cpart *p)
{
    for (int32_t t = 0; m && t < m->topics.n; t++)
        for (int32_t k = 0; k < m->topics.v[t].partitions.n; k++)
            if (m->topics.v[t].partitions.v[k].partition == p->partition &&
                str_eqz(m->topics.v[t].topic, p->topic))
                return &m->topics.v[t].partitions.v[k];
    return NULL;
}

/* Cannot be asked: the position is taken as it is. */
static bool cannot_validate(kafka_err_t err)
{
    return err == KAFKA_ERR_UNSUPPORTED || err == KERR_TOPIC_AUTHORIZATION_FAILED ||
           err == KERR_CLUSTER_AUTHORIZATION_FAILED;
}

static void on_validated(void *arg, int status, int version, const void *response)
{
    struct fetch_send *s = arg;
    kafka_consumer_t *c = s->c;
    bool refresh = false;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < s->n; i++) {
        struct cpart *p = s->parts[i];
        const struct offset_for_leader_epoch_response_partition *r =
            status == 0 ? find_validated(response, p) : NULL;
        kafka_err_t err = status ? client_err_of_status(status)
                          : r    ? r->error_code
                                 : KAFKA_ERR_BAD_RESPONSE;
        if (!fetch_still_wanted(s, i) || p->state != CPART_VALIDATE)
            continue;
        if (err == KAFKA_OK)
            on_valid(c, p, r);
        else if (cannot_validate(err))
            p->state = CPART_FETCH;
        else
            fetch_on_error(c, p, err, &refresh);
    }
    pthread_mutex_unlock(&c->lock);
    fetch_finish(s, refresh);
}

static bool fill_validate(struct fetch_send *s, struct arena *a,
                          struct offset_for_leader_epoch_request *req)
{
    offset_for_leader_epoch_request_init(req);
    req->replica_id = -1;
    req->topics.v = offset_for_leader_epoch_request_topic_new(a, s->n);
    struct offset_for_leader_epoch_request_partition *parts =
        offset_for_leader_epoch_request_partition_new(a, s->n);
    for (int i = 0; req->topics.v && parts && i < s->n; i++) {
        struct offset_for_leader_epoch_request_topic *t = &req->topics.v[req->topics.n++];
        t->topic = str_of(s->parts[i]->topic);
        t->partitions.v = &parts[i];
        t->partitions.n = 1;
        parts[i].partition = s->parts[i]->partition;
        parts[i].current_leader_epoch = s->parts[i]->leader_epoch;
        parts[i].leader_epoch = s->parts[i]->epoch;
    }
    return req->topics.v && parts;
}

int send_validate(struct fetch_send *s, struct arena *a)
{
    struct offset_for_leader_epoch_request req;
    pthread_mutex_lock(&s->c->lock);
    bool ok = fill_validate(s, a, &req);
    pthread_mutex_unlock(&s->c->lock);
    /* 3: the first version that consumers may use */
    return ok ? node_send(s->node, API_OFFSET_FOR_LEADER_EPOCH, 3, -1, &req,
                          cluster_request_timeout(s->c->cluster), true, on_validated, s)
              : -1;
}
