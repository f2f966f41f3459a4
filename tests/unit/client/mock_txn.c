/* mock_txn.c - the mock as coordinator of one transactional id, and what it means for Produce. A
 * commit writes no marker: logs hold the records alone. See mock_broker.h. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "client/mock_private.h"
#include "protocol/errors.h"
#include "protocol/msg/add_offsets_to_txn.h"
#include "protocol/msg/add_partitions_to_txn.h"
#include "protocol/msg/end_txn.h"
#include "protocol/msg/init_producer_id.h"
#include "protocol/msg/txn_offset_commit.h"

static void forget(struct mock_txn *t)
{
    t->parts_n = t->offsets_n = 0;
    t->group_added = false;
}

/* ---- producer ids ---- */

static int16_t next_epoch(struct mock_request *r, const struct init_producer_id_request *req)
{
    struct mock_txn *t = &r->m->txn;
    bool named = r->head.api_version >= 3 && req->producer_id >= 0;
    if (named && t->epoch >= 0 && (req->producer_id != t->id || req->producer_epoch != t->epoch))
        return KERR_PRODUCER_FENCED;
    if (t->state == MOCK_TXN_ONGOING) {
        t->epoch++;
        t->state = MOCK_TXN_ABORTED;
        forget(t);
        return KERR_CONCURRENT_TRANSACTIONS;
    }
    if (t->id < 0 || t->epoch >= t->last_epoch) {
        t->id = r->m->next_producer_id++;
        t->epoch = 0;
    } else {
        t->epoch++;
    }
    t->state = MOCK_TXN_EMPTY;
    forget(t);
    return 0;
}

static void do_init_producer_id(struct mock_request *r, const void *request, void *response)
{
    const struct init_producer_id_request *req = request;
    struct init_producer_id_response *out = response;
    struct mock_txn *t = &r->m->txn;
    out->producer_id = -1;
    out->error_code = r->error;
    if (out->error_code)
        return;
    if (req->transactional_id.len < 0) {
        out->producer_id = r->m->next_producer_id++;
        return;
    }
    out->error_code = r->node != t->coordinator ? KERR_NOT_COORDINATOR : next_epoch(r, req);
    if (out->error_code)
        return;
    out->producer_id = t->id;
    out->producer_epoch = t->epoch;
}

/* ---- the transaction ---- */

/* A coordinator that says so has nothing under the transactional id. */
static void lose_id(struct mock_txn *t)
{
    t->id = -1;
    t->epoch = -1;
    t->state = MOCK_TXN_EMPTY;
    forget(t);
}

static int16_t check(struct mock_request *r, int64_t id, int16_t epoch)
{
    struct mock_txn *t = &r->m->txn;
    if (r->error == KERR_INVALID_PRODUCER_ID_MAPPING)
        lose_id(t);
    return r->error                    ? r->error
           : r->node != t->coordinator ? KERR_NOT_COORDINATOR
           : id != t->id               ? KERR_INVALID_PRODUCER_ID_MAPPING
           : epoch != t->epoch         ? KERR_PRODUCER_FENCED
                                       : 0;
}

static bool has_part(const struct mock_txn *t, struct str topic, int partition)
{
    for (int i = 0; i < t->parts_n; i++)
        if (t->parts[i].partition == partition && str_eqz(topic, t->parts[i].topic))
            return true;
    return false;
}

static void add_part(struct mock_txn *t, struct str topic, int partition)
{
    if (has_part(t, topic, partition))
        return;
    assert_true(t->parts_n < MOCK_TXN_PARTS);
    snprintf(t->parts[t->parts_n].topic, sizeof t->parts->topic, "%.*s", STR_ARG(topic));
    t->parts[t->parts_n++].partition = partition;
}

static void do_add_partitions(struct mock_request *r, const void *request, void *response)
{
    const struct add_partitions_to_txn_request *req = request;
    struct add_partitions_to_txn_response *out = response;
    struct mock_txn *t = &r->m->txn;
    int32_t n = req->v3_and_below_topics.n;
    int16_t err = check(r, req->v3_and_below_producer_id, req->v3_and_below_producer_epoch);
    out->results_by_topic_v3_and_below.v =
        add_partitions_to_txn_response_topic_result_new(r->arena, n);
    out->results_by_topic_v3_and_below.n = n;
    for (int32_t i = 0; i < n; i++) {
        const struct add_partitions_to_txn_request_topic *from = &req->v3_and_below_topics.v[i];
        struct add_partitions_to_txn_response_topic_result *to =
            &out->results_by_topic_v3_and_below.v[i];
        to->name = from->name;
        to->results_by_partition.n = from->partitions.n;
        to->results_by_partition.v =
            add_partitions_to_txn_response_partition_result_new(r->arena, from->partitions.n);
        for (int32_t k = 0; k < from->partitions.n; k++) {
            to->results_by_partition.v[k].partition_index = from->partitions.v[k];
            to->results_by_partition.v[k].partition_error_code =
                err && t->refused_partition >= 0 && from->partitions.v[k] != t->refused_partition
                    ? KERR_OPERATION_NOT_ATTEMPTED
                    : err;
            if (!err)
                add_part(t, from->name, from->partitions.v[k]);
        }
    }
    if (!err)
        t->state = MOCK_TXN_ONGOING;
}

static void do_add_offsets(struct mock_request *r, const void *request, void *response)
{
    const struct add_offsets_to_txn_request *req = request;
    struct add_offsets_to_txn_response *out = response;
    out->error_code = check(r, req->producer_id, req->producer_epoch);
    if (out->error_code)
        return;
    r->m->txn.group_added = true;
    r->m->txn.state = MOCK_TXN_ONGOING;
}

static void add_offset(struct mock_txn *t, struct str topic, int partition, int64_t offset)
{
    assert_true(t->offsets_n < MOCK_TXN_PARTS);
    snprintf(t->offsets[t->offsets_n].topic, sizeof t->offsets->topic, "%.*s", STR_ARG(topic));
    t->offsets[t->offsets_n].partition = partition;
    t->offsets[t->offsets_n++].offset = offset;
}

static int16_t check_offsets(struct mock_request *r, const struct txn_offset_commit_request *req)
{
    const struct mock_group *g = &r->m->group;
    if (r->error || r->node != g->coordinator)
        return r->error ? r->error : KERR_NOT_COORDINATOR;
    if (!r->m->txn.group_added)
        return KERR_INVALID_TXN_STATE;
    if (req->generation_id < 0)
        return 0;
    return !str_eqz(req->member_id, g->member_id) ? KERR_UNKNOWN_MEMBER_ID
           : req->generation_id != g->generation  ? KERR_ILLEGAL_GENERATION
                                                  : 0;
}

static void do_commit_offsets(struct mock_request *r, const void *request, void *response)
{
    const struct txn_offset_commit_request *req = request;
    struct txn_offset_commit_response *out = response;
    int16_t err = check_offsets(r, req);
    out->topics.v = txn_offset_commit_response_topic_new(r->arena, req->topics.n);
    out->topics.n = req->topics.n;
    for (int32_t i = 0; i < req->topics.n; i++) {
        struct txn_offset_commit_response_topic *to = &out->topics.v[i];
        to->name = req->topics.v[i].name;
        to->partitions.n = req->topics.v[i].partitions.n;
        to->partitions.v = txn_offset_commit_response_partition_new(r->arena, to->partitions.n);
        for (int32_t k = 0; k < to->partitions.n; k++) {
            const struct txn_offset_commit_request_partition *p = &req->topics.v[i].partitions.v[k];
            to->partitions.v[k].partition_index = p->partition_index;
            to->partitions.v[k].error_code = err && k == 0 ? err : err ? r->m->txn.others : 0;
            if (!to->partitions.v[k].error_code)
                add_offset(&r->m->txn, to->name, p->partition_index, p->committed_offset);
        }
    }
}

static void do_end(struct mock_request *r, const void *request, void *response)
{
    const struct end_txn_request *req = request;
    struct end_txn_response *out = response;
    struct mock_txn *t = &r->m->txn;
    enum mock_txn_state wanted = req->committed ? MOCK_TXN_COMMITTED : MOCK_TXN_ABORTED;
    out->error_code = check(r, req->producer_id, req->producer_epoch);
    if (!out->error_code && t->state != MOCK_TXN_ONGOING && t->state != wanted)
        out->error_code = KERR_INVALID_TXN_STATE;
    if (out->error_code || t->state == wanted)
        return;
    for (int i = 0; i < t->offsets_n && req->committed; i++)
        mock_put_offset(r->m, str_of(t->offsets[i].topic), t->offsets[i].partition,
                        t->offsets[i].offset);
    t->commits += req->committed;
    t->aborts += !req->committed;
    t->state = wanted;
    forget(t);
}

/* ---- for the other parts of the mock ---- */

int16_t mock_check_txn_batch(struct mock_request *r, struct str topic, int partition,
                             const struct batch *b)
{
    const struct mock_txn *t = &r->m->txn;
    if (!batch_is_transactional(b) || t->id < 0) /* leaders do not ask a coordinator that lost it */
        return 0;
    if (b->producer_id != t->id || b->producer_epoch != t->epoch)
        return KERR_INVALID_PRODUCER_EPOCH;
    return has_part(t, topic, partition) ? 0 : KERR_INVALID_TXN_STATE;
}

mock_do mock_find_txn_api(int16_t api)
{
    static const struct {
        int16_t api;
        mock_do fn;
    } table[] = {
        {API_INIT_PRODUCER_ID, do_init_producer_id},
        {API_ADD_PARTITIONS_TO_TXN, do_add_partitions},
        {API_ADD_OFFSETS_TO_TXN, do_add_offsets},
        {API_TXN_OFFSET_COMMIT, do_commit_offsets},
        {API_END_TXN, do_end},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].api == api)
            return table[i].fn;
    return NULL;
}

/* ---- what tests put in and look at ---- */

struct mock_txn_view mock_txn(struct mock *m)
{
    pthread_mutex_lock(&m->lock);
    const struct mock_txn *t = &m->txn;
    struct mock_txn_view view = {.producer_id = t->id,
                                 .epoch = t->epoch,
                                 .commits = t->commits,
                                 .aborts = t->aborts,
                                 .open = t->state == MOCK_TXN_ONGOING};
    pthread_mutex_unlock(&m->lock);
    return view;
}

void mock_move_txn_coordinator(struct mock *m, int node)
{
    pthread_mutex_lock(&m->lock);
    m->txn.coordinator = node;
    pthread_mutex_unlock(&m->lock);
}

void mock_txn_last_epoch(struct mock *m, int16_t epoch)
{
    pthread_mutex_lock(&m->lock);
    m->txn.last_epoch = epoch;
    pthread_mutex_unlock(&m->lock);
}

void mock_txn_refuse_one(struct mock *m, int partition, int16_t others)
{
    pthread_mutex_lock(&m->lock);
    m->txn.refused_partition = partition;
    m->txn.others = others;
    pthread_mutex_unlock(&m->lock);
}
