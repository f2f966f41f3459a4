/* mock_apis.c - what the mock's requests do. See mock_broker.h. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "client/mock_private.h"
#include "protocol/errors.h"
#include "protocol/msg/api_versions.h"
#include "protocol/msg/create_partitions.h"
#include "protocol/msg/create_topics.h"
#include "protocol/msg/delete_topics.h"
#include "protocol/msg/describe_configs.h"
#include "protocol/msg/fetch.h"
#include "protocol/msg/list_offsets.h"
#include "protocol/msg/metadata.h"
#include "protocol/msg/offset_for_leader_epoch.h"
#include "protocol/msg/produce.h"
#include "protocol/record_batch.h"

/* ---- topics ---- */

struct mock_topic_state *mock_find_topic(struct mock *m, struct str name)
{
    for (int i = 0; i < m->topics_n; i++)
        if (str_eqz(name, m->topics[i].name))
            return &m->topics[i];
    return NULL;
}

struct mock_topic_state *mock_add_topic(struct mock *m, struct str name, int partitions)
{
    assert_true(m->topics_n < MOCK_TOPICS);
    struct mock_topic_state *t = &m->topics[m->topics_n++];
    snprintf(t->name, sizeof t->name, "%.*s", STR_ARG(name));
    t->id = uuid_random();
    t->parts_n = partitions;
    t->parts = calloc((size_t)partitions, sizeof *t->parts);
    assert_non_null(t->parts);
    for (int i = 0; i < partitions; i++)
        t->parts[i].leader = i % m->nodes;
    return t;
}

struct mock_part *mock_find_part(struct mock *m, struct str topic, int partition)
{
    struct mock_topic_state *t = mock_find_topic(m, topic);
    return t && partition >= 0 && partition < t->parts_n ? &t->parts[partition] : NULL;
}

/* ---- Produce ---- */

static struct mock_producer *find_producer(struct mock_part *p, int64_t id)
{
    for (int i = 0; i < p->producers_n; i++)
        if (p->producers[i].id == id)
            return &p->producers[i];
    assert_true(p->producers_n < MOCK_PRODUCERS);
    struct mock_producer *made = &p->producers[p->producers_n++];
    *made = (struct mock_producer){.id = id, .epoch = -1};
    return made;
}

/* As a broker checks an idempotent producer's batch, but for a producer that it does not know: that
 * one must begin at 0 here. *duplicate: the offset of the same batch, written before, or -1. */
static int16_t check_sequence(struct mock_part *p, const struct batch *b, int64_t *duplicate)
{
    *duplicate = -1;
    if (b->producer_id < 0)
        return 0;
    struct mock_producer *producer = find_producer(p, b->producer_id);
    if (b->producer_epoch < producer->epoch)
        return KERR_INVALID_PRODUCER_EPOCH;
    if (b->producer_epoch > producer->epoch)
        *producer = (struct mock_producer){.id = b->producer_id, .epoch = b->producer_epoch};
    for (int i = 0; i < producer->batches_n; i++)
        if (producer->batches[i].first == b->base_sequence &&
            producer->batches[i].last == b->last_sequence)
            *duplicate = producer->batches[i].offset;
    if (*duplicate >= 0)
        return 0;
    return b->base_sequence == producer->next_sequence ? 0 : KERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
}

static void remember(struct mock_part *p, const struct batch *b, int64_t offset)
{
    if (b->producer_id < 0)
        return;
    struct mock_producer *producer = find_producer(p, b->producer_id);
    memmove(producer->batches + 1, producer->batches, (MOCK_LAST - 1) * sizeof *producer->batches);
    producer->batches[0].first = b->base_sequence;
    producer->batches[0].last = b->last_sequence;
    producer->batches[0].offset = offset;
    producer->batches_n += producer->batches_n < MOCK_LAST;
    producer->next_sequence = b->last_sequence == INT32_MAX ? 0 : b->last_sequence + 1;
}

static void append_batches(struct mock_part *p, const uint8_t *from, size_t n)
{
    size_t at = p->log.len;
    struct batch b;
    buf_put(&p->log, from, n);
    assert_false(p->log.failed);
    for (; at < p->log.len; at += b.size) {
        assert_int_equal(batch_decode(p->log.p + at, p->log.len - at, p->log.len - at, &b),
                         BATCH_OK);
        int64_t count = b.last_offset - b.base_offset + 1;
        put_be64(p->log.p + at, (uint64_t)p->end);
        p->end += count;
        p->batches++;
    }
}

static void produce_one(struct mock_request *r, struct str topic,
                        const struct produce_request_partition_data *d,
                        struct produce_response_partition_response *out)
{
    struct mock_part *p = mock_find_part(r->m, topic, d->index);
    struct batch b;
    int64_t duplicate;
    out->index = d->index;
    out->base_offset = -1;
    out->error_code = r->error;
    out->log_start_offset = p ? p->start : -1;
    if (r->error)
        return;
    assert_int_equal(
        batch_decode(d->records.p, (size_t)d->records.len, (uint64_t)d->records.len, &b), BATCH_OK);
    assert_true(batch_crc_ok(&b) && b.size == (uint32_t)d->records.len);
    out->error_code = !p                         ? KERR_UNKNOWN_TOPIC_OR_PARTITION
                      : p->leader != r->node     ? KERR_NOT_LEADER_OR_FOLLOWER
                      : b.size > r->m->max_batch ? KERR_MESSAGE_TOO_LARGE
                                                 : mock_check_txn_batch(r, topic, d->index, &b);
    if (!out->error_code)
        out->error_code = check_sequence(p, &b, &duplicate);
    if (out->error_code)
        return;
    out->base_offset = duplicate >= 0 ? duplicate : p->end;
    if (duplicate >= 0)
        return;
    remember(p, &b, p->end);
    append_batches(p, d->records.p, (size_t)d->records.len);
}

static void do_produce(struct mock_request *r, const void *request, void *response)
{
    const struct produce_request *req = request;
    struct produce_response *out = response;
    out->responses.v = produce_response_response_new(r->arena, req->topic_data.n);
    out->responses.n = req->topic_data.n;
    for (int32_t t = 0; t < req->topic_data.n; t++) {
        const struct produce_request_topic_data *from = &req->topic_data.v[t];
        struct produce_response_response *to = &out->responses.v[t];
        to->name = from->name;
        to->partition_responses.n = from->partition_data.n;
        to->partition_responses.v =
            produce_response_partition_response_new(r->arena, from->partition_data.n);
        for (int32_t i = 0; i < from->partition_data.n; i++)
            produce_one(r, from->name, &from->partition_data.v[i], &to->partition_responses.v[i]);
    }
    mock_appended(r->m);
}

/* ---- Fetch ---- */

/* Whole batches from the one that holds `offset`, at most `max` bytes but for the first. */
static struct records find_records(struct mock_part *p, int64_t offset, int32_t max)
{
    struct batch b;
    size_t from = SIZE_MAX, at = 0;
    for (; batch_decode(p->log.p + at, p->log.len - at, p->log.len - at, &b) == BATCH_OK;
         at += b.size) {
        if (from == SIZE_MAX && b.last_offset >= offset)
            from = at;
        if (from != SIZE_MAX && at > from && at + b.size - from > (size_t)max)
            break;
    }
    return from == SIZE_MAX ? (struct records){p->log.p, 0, NULL, 0}
                            : (struct records){p->log.p + from, (int32_t)(at - from), NULL, 0};
}

static void fetch_one(struct mock_request *r, const struct fetch_request *req, struct str topic,
                      const struct fetch_request_partition *q, struct fetch_response_partition *out)
{
    struct mock_part *p = mock_find_part(r->m, topic, q->partition);
    out->partition_index = q->partition;
    bool reader = p && p->preferred == r->node + 1;
    out->error_code = r->error                          ? r->error
                      : !p                              ? KERR_UNKNOWN_TOPIC_OR_PARTITION
                      : p->leader != r->node && !reader ? KERR_NOT_LEADER_OR_FOLLOWER
                      : q->current_leader_epoch >= 0 && q->current_leader_epoch < p->leader_epoch
                          ? KERR_FENCED_LEADER_EPOCH
                      : q->fetch_offset < p->start || q->fetch_offset > p->end
                          ? KERR_OFFSET_OUT_OF_RANGE
                          : 0;
    if (out->error_code)
        return;
    out->high_watermark = out->last_stable_offset = p->end;
    if (p->preferred && !reader) {
        out->preferred_read_replica = p->preferred - 1;
        return;
    }
    out->records = find_records(p, q->fetch_offset, q->partition_max_bytes);
    if (!req->isolation_level)
        return;
    out->aborted_transactions.n = p->aborted_n;
    out->aborted_transactions.v = fetch_response_aborted_transaction_new(r->arena, p->aborted_n);
    for (int i = 0; i < p->aborted_n; i++) {
        out->aborted_transactions.v[i].producer_id = p->aborted[i].producer_id;
        out->aborted_transactions.v[i].first_offset = p->aborted[i].first_offset;
    }
}

static void do_fetch(struct mock_request *r, const void *request, void *response)
{
    const struct fetch_request *req = request;
    struct fetch_response *out = response;
    bool news = false;
    out->responses.v = fetch_response_response_new(r->arena, req->topics.n);
    out->responses.n = req->topics.n;
    for (int32_t t = 0; t < req->topics.n; t++) {
        const struct fetch_request_topic *from = &req->topics.v[t];
        struct fetch_response_response *to = &out->responses.v[t];
        to->topic = from->topic;
        to->partitions.n = from->partitions.n;
        to->partitions.v = fetch_response_partition_new(r->arena, from->partitions.n);
        for (int32_t i = 0; i < from->partitions.n; i++) {
            fetch_one(r, req, from->topic, &from->partitions.v[i], &to->partitions.v[i]);
            news |= to->partitions.v[i].error_code || to->partitions.v[i].records.len > 0 ||
                    to->partitions.v[i].preferred_read_replica >= 0;
        }
    }
    if (!news) {
        r->answer->on_append = true;
        r->answer->due_ms = mock_now_ms() + req->max_wait_ms;
    }
}

/* ---- others ---- */

static void do_list_offsets(struct mock_request *r, const void *request, void *response)
{
    const struct list_offsets_request *req = request;
    struct list_offsets_response *out = response;
    out->topics.v = list_offsets_response_topic_new(r->arena, req->topics.n);
    out->topics.n = req->topics.n;
    for (int32_t t = 0; t < req->topics.n; t++) {
        const struct list_offsets_request_topic *from = &req->topics.v[t];
        struct list_offsets_response_topic *to = &out->topics.v[t];
        to->name = from->name;
        to->partitions.n = from->partitions.n;
        to->partitions.v = list_offsets_response_partition_new(r->arena, from->partitions.n);
        for (int32_t i = 0; i < from->partitions.n; i++) {
            const struct list_offsets_request_partition *q = &from->partitions.v[i];
            struct list_offsets_response_partition *o = &to->partitions.v[i];
            struct mock_part *p = mock_find_part(r->m, from->name, q->partition_index);
            o->partition_index = q->partition_index;
            o->error_code = r->error               ? r->error
                            : !p                   ? KERR_UNKNOWN_TOPIC_OR_PARTITION
                            : p->leader != r->node ? KERR_NOT_LEADER_OR_FOLLOWER
                                                   : 0;
            if (!o->error_code)
                o->offset = q->timestamp == -2 ? p->start : q->timestamp == -1 ? p->end : -1;
        }
    }
}

/* The present log's end, for whatever epoch. */
static void do_end_of_epoch(struct mock_request *r, const void *request, void *response)
{
    const struct offset_for_leader_epoch_request *req = request;
    struct offset_for_leader_epoch_response *out = response;
    out->topics.v = offset_for_leader_epoch_response_topic_new(r->arena, req->topics.n);
    out->topics.n = req->topics.n;
    for (int32_t t = 0; t < req->topics.n; t++) {
        const struct offset_for_leader_epoch_request_topic *from = &req->topics.v[t];
        struct offset_for_leader_epoch_response_topic *to = &out->topics.v[t];
        to->topic = from->topic;
        to->partitions.n = from->partitions.n;
        to->partitions.v =
            offset_for_leader_epoch_response_partition_new(r->arena, from->partitions.n);
        for (int32_t i = 0; i < from->partitions.n; i++) {
            struct mock_part *p =
                mock_find_part(r->m, from->topic, from->partitions.v[i].partition);
            to->partitions.v[i].partition = from->partitions.v[i].partition;
            to->partitions.v[i].error_code = r->error               ? r->error
                                             : p->leader != r->node ? KERR_NOT_LEADER_OR_FOLLOWER
                                                                    : 0;
            to->partitions.v[i].leader_epoch = from->partitions.v[i].leader_epoch;
            to->partitions.v[i].end_offset = p->end;
        }
    }
}

static void put_topic(struct mock_request *r, struct str name, struct metadata_response_topic *out,
                      bool create)
{
    struct mock_topic_state *t = mock_find_topic(r->m, name);
    bool refused = r->m->refused_error && str_eqz(name, r->m->refused);
    if (!t && create && r->m->auto_create && !refused)
        t = mock_add_topic(r->m, name, 1);
    out->name = name;
    out->error_code = refused    ? r->m->refused_error
                      : r->error ? r->error
                      : !t       ? KERR_UNKNOWN_TOPIC_OR_PARTITION
                                 : 0;
    if (out->error_code)
        return;
    out->topic_id = t->id;
    out->partitions.n = t->parts_n;
    out->partitions.v = metadata_response_partition_new(r->arena, t->parts_n);
    for (int i = 0; i < t->parts_n; i++) {
        struct metadata_response_partition *p = &out->partitions.v[i];
        p->partition_index = i;
        p->leader_id = t->parts[i].leader;
        p->leader_epoch = t->parts[i].leader_epoch;
        p->error_code = p->leader_id < 0 ? KERR_LEADER_NOT_AVAILABLE : 0;
        p->replica_nodes.v = p->isr_nodes.v = arena_array(r->arena, int32_t, 1);
        p->replica_nodes.v[0] = p->leader_id;
        p->replica_nodes.n = p->isr_nodes.n = 1;
    }
}

static void do_metadata(struct mock_request *r, const void *request, void *response)
{
    const struct metadata_request *req = request;
    struct metadata_response *out = response;
    struct mock *m = r->m;
    out->brokers.v = metadata_response_broker_new(r->arena, m->nodes);
    out->brokers.n = m->nodes;
    for (int i = 0; i < m->nodes; i++) {
        out->brokers.v[i].node_id = i;
        out->brokers.v[i].host = STR_LIT("127.0.0.1");
        out->brokers.v[i].port = m->told_ports[i];
    }
    m->topics_asked = req->topics.n;
    out->controller_id = 0;
    out->cluster_id = STR_LIT("mock");
    bool all = req->topics.n < 0;
    int most = all ? m->topics_n : req->topics.n;
    out->topics.v = metadata_response_topic_new(r->arena, most);
    for (int i = 0; i < most; i++) {
        if (all && !m->topics[i].name[0])
            continue;
        put_topic(r, all ? str_of(m->topics[i].name) : req->topics.v[i].name,
                  &out->topics.v[out->topics.n++], req->allow_auto_topic_creation);
    }
}

static void do_api_versions(struct mock_request *r, const void *request, void *response)
{
    struct api_versions_response *out = response;
    int n;
    const struct api_desc *all = api_all(&n);
    out->error_code = r->error;
    out->api_keys.v = api_versions_response_api_key_new(r->arena, n);
    for (int i = 0; i < n; i++) {
        int16_t cap = r->m->caps[all[i].key];
        if (cap < 0)
            continue;
        struct api_versions_response_api_key *k = &out->api_keys.v[out->api_keys.n++];
        k->api_key = all[i].key;
        k->min_version = all[i].request->min;
        k->max_version = all[i].request->max < cap ? all[i].request->max : cap;
    }
}

static void do_create_topics(struct mock_request *r, const void *request, void *response)
{
    const struct create_topics_request *req = request;
    struct create_topics_response *out = response;
    out->topics.v = create_topics_response_topic_new(r->arena, req->topics.n);
    out->topics.n = req->topics.n;
    for (int32_t i = 0; i < req->topics.n; i++) {
        const struct create_topics_request_topic *t = &req->topics.v[i];
        out->topics.v[i].name = t->name;
        out->topics.v[i].error_code = r->error                         ? r->error
                                      : mock_find_topic(r->m, t->name) ? KERR_TOPIC_ALREADY_EXISTS
                                                                       : 0;
        if (!out->topics.v[i].error_code)
            mock_add_topic(r->m, t->name,
                           t->assignments.n        ? t->assignments.n
                           : t->num_partitions > 0 ? t->num_partitions
                                                   : 1);
    }
}

static void do_delete_topics(struct mock_request *r, const void *request, void *response)
{
    const struct delete_topics_request *req = request;
    struct delete_topics_response *out = response;
    out->responses.v = delete_topics_response_response_new(r->arena, req->topic_names.n);
    out->responses.n = req->topic_names.n;
    for (int32_t i = 0; i < req->topic_names.n; i++) {
        struct mock_topic_state *t = mock_find_topic(r->m, req->topic_names.v[i]);
        out->responses.v[i].name = req->topic_names.v[i];
        out->responses.v[i].error_code = r->error ? r->error
                                         : t      ? 0
                                                  : KERR_UNKNOWN_TOPIC_OR_PARTITION;
        if (!out->responses.v[i].error_code)
            t->name[0] = 0;
    }
}

static const struct {
    int16_t api;
    void (*fn)(struct mock_request *r, const void *request, void *response);
} table[] = {
    {API_PRODUCE, do_produce},
    {API_FETCH, do_fetch},
    {API_LIST_OFFSETS, do_list_offsets},
    {API_METADATA, do_metadata},
    {API_OFFSET_FOR_LEADER_EPOCH, do_end_of_epoch},
    {API_API_VERSIONS, do_api_versions},
    {API_CREATE_TOPICS, do_create_topics},
    {API_DELETE_TOPICS, do_delete_topics},
};

static bool encode(struct mock_request *r, const struct api_desc *api, int version,
                   const void *message)
{
    struct writer w = WRITER_INIT;
    response_header_encode(&w, api_response_header_version(api, version), r->head.correlation_id);
    msg_encode(api->response, version, &w, message);
    assert_false(w.buf.failed || w.unsupported);
    r->answer->bytes = w.buf;
    w.buf = BUF_INIT;
    writer_free(&w);
    return true;
}

bool mock_handle(struct mock_request *r)
{
    const struct api_desc *api = api_find(r->head.api_key);
    int version = r->head.api_version;
    int16_t cap = r->m->caps[r->head.api_key];
    void *request = arena_alloc(r->arena, api->request->body->size);
    void *response = arena_alloc(r->arena, api->response->body->size);
    msg_init(api->response, response);
    if (api->key == API_API_VERSIONS && (version > cap || version > api->request->max)) {
        struct mock_request refused = *r;
        refused.error = KERR_UNSUPPORTED_VERSION;
        do_api_versions(&refused, NULL, response);
        return encode(r, api, 0, response);
    }
    assert_true(version <= cap);
    assert_int_equal(msg_decode(api->request, version, &r->body, r->arena, request), 0);
    assert_int_equal(reader_left(&r->body), 0);
    if (r->m->see)
        r->m->see(r->m->see_arg, &r->head, request);
    mock_do fn = mock_find_group_api(api->key);
    if (!fn)
        fn = mock_find_txn_api(api->key);
    if (!fn)
        fn = mock_find_acl_api(api->key);
    if (!fn)
        fn = mock_find_token_api(api->key);
    for (size_t i = 0; !fn && i < sizeof table / sizeof *table; i++)
        fn = table[i].api == api->key ? table[i].fn : NULL;
    if (fn) {
        fn(r, request, response);
        return (api->key != API_PRODUCE || ((struct produce_request *)request)->acks != 0) &&
               encode(r, api, version, response);
    }
    fail_msg("the mock has no %s", api->name);
    return false;
}

/* ---- what tests put in and look at ---- */

void mock_append(struct mock *m, const char *topic, int partition, const void *batches, size_t n)
{
    pthread_mutex_lock(&m->lock);
    append_batches(mock_find_part(m, str_of(topic), partition), batches, n);
    mock_appended(m);
    pthread_mutex_unlock(&m->lock);
    mock_release(m);
}

void mock_aborted(struct mock *m, const char *topic, int partition, int64_t producer_id,
                  int64_t first_offset)
{
    pthread_mutex_lock(&m->lock);
    struct mock_part *p = mock_find_part(m, str_of(topic), partition);
    p->aborted[p->aborted_n].producer_id = producer_id;
    p->aborted[p->aborted_n++].first_offset = first_offset;
    pthread_mutex_unlock(&m->lock);
}

void mock_prefer(struct mock *m, const char *topic, int partition, int node)
{
    pthread_mutex_lock(&m->lock);
    mock_find_part(m, str_of(topic), partition)->preferred = node + 1;
    pthread_mutex_unlock(&m->lock);
}

void mock_cut(struct mock *m, const char *topic, int partition, int64_t offset)
{
    struct batch b;
    size_t at = 0;
    pthread_mutex_lock(&m->lock);
    struct mock_part *p = mock_find_part(m, str_of(topic), partition);
    for (; batch_decode(p->log.p + at, p->log.len - at, p->log.len - at, &b) == BATCH_OK &&
           b.base_offset < offset;
         at += b.size)
        ;
    p->log.len = at;
    p->end = offset;
    pthread_mutex_unlock(&m->lock);
}

void mock_forget_producers(struct mock *m, const char *topic, int partition)
{
    pthread_mutex_lock(&m->lock);
    mock_find_part(m, str_of(topic), partition)->producers_n = 0;
    pthread_mutex_unlock(&m->lock);
}

void mock_log_start(struct mock *m, const char *topic, int partition, int64_t offset)
{
    pthread_mutex_lock(&m->lock);
    mock_find_part(m, str_of(topic), partition)->start = offset;
    pthread_mutex_unlock(&m->lock);
}

int64_t mock_end(struct mock *m, const char *topic, int partition)
{
    pthread_mutex_lock(&m->lock);
    int64_t end = mock_find_part(m, str_of(topic), partition)->end;
    pthread_mutex_unlock(&m->lock);
    return end;
}

int mock_batches(struct mock *m, const char *topic, int partition)
{
    pthread_mutex_lock(&m->lock);
    int n = mock_find_part(m, str_of(topic), partition)->batches;
    pthread_mutex_unlock(&m->lock);
    return n;
}

static bool value_in(const struct batch *b, int64_t offset, char *out, size_t n)
{
    struct record_iter *it;
    struct record r;
    bool found = false;
    assert_int_equal(record_iter_open(b, &it), 0);
    while (!found && record_iter_next(it, &r) == 1) {
        found = r.offset == offset;
        if (found)
            snprintf(out, n, "%.*s", r.value.len < 0 ? 4 : (int)r.value.len,
                     r.value.len < 0 ? "null" : (const char *)r.value.p);
    }
    record_iter_close(it);
    return found;
}

bool mock_value(struct mock *m, const char *topic, int partition, int64_t offset, char *out,
                size_t n)
{
    struct batch b;
    bool found = false;
    pthread_mutex_lock(&m->lock);
    struct mock_part *p = mock_find_part(m, str_of(topic), partition);
    for (size_t at = 0;
         !found && batch_decode(p->log.p + at, p->log.len - at, p->log.len - at, &b) == BATCH_OK;
         at += b.size)
        if (b.base_offset <= offset && offset <= b.last_offset)
            found = value_in(&b, offset, out, n);
    pthread_mutex_unlock(&m->lock);
    return found;
}
