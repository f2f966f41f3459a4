/* sim_work.c - see sim_work.h. */
#include "sim_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/batch_builder.h"
#include "protocol/msg/create_topics.h"
#include "protocol/msg/fetch.h"
#include "protocol/msg/init_producer_id.h"
#include "protocol/msg/produce.h"
#include "sim_broker.h"
#include "sim_client.h"
#include "sim_model.h"
#include "sim_work_private.h"

enum { PAUSE_MS = 100 };

struct work work;

struct sim_work_counts sim_work_counts(void)
{
    return work.counts;
}

void work_pause(void)
{
    fiber_sleep(sim_between(PAUSE_MS / 2, PAUSE_MS * 3) * SIM_MS);
}

bool work_is_retriable(int code)
{
    switch (code) {
    case KERR_UNKNOWN_TOPIC_OR_PARTITION:
    case KERR_LEADER_NOT_AVAILABLE:
    case KERR_NOT_LEADER_OR_FOLLOWER:
    case KERR_REQUEST_TIMED_OUT:
    case KERR_NOT_ENOUGH_REPLICAS:
    case KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
    case KERR_KAFKA_STORAGE_ERROR:
    case KERR_COORDINATOR_LOAD_IN_PROGRESS:
    case KERR_COORDINATOR_NOT_AVAILABLE:
    case KERR_NOT_COORDINATOR:
    case KERR_NOT_CONTROLLER:
    case KERR_UNKNOWN_TOPIC_ID:
    case KERR_INCONSISTENT_TOPIC_ID:
    case KERR_REPLICA_NOT_AVAILABLE:
    case KERR_OFFSET_NOT_AVAILABLE:
    case KERR_FENCED_LEADER_EPOCH:
    case KERR_UNKNOWN_LEADER_EPOCH:
        return true;
    default:
        return false;
    }
}

struct topic *work_topic(void)
{
    return &work.topics[sim_below((uint64_t)work.topics_n)];
}

/* ---- making topics ---- */

int work_create_topic(struct client *c, struct topic *t, int broker)
{
    struct create_topics_request req;
    struct create_topics_request_topic x;
    struct create_topics_request_config unclean = {STR_LIT("unclean.leader.election.enable"),
                                                   STR_LIT("true")};
    const void *answer;
    struct arena a;
    create_topics_request_init(&req);
    create_topics_request_topic_init(&x);
    x.name = str_of(t->name);
    x.num_partitions = t->partitions;
    x.replication_factor = (int16_t)(sim_cluster.brokers < 3 ? sim_cluster.brokers : 3);
    if (t->unclean) {
        x.configs.v = &unclean;
        x.configs.n = 1;
    }
    req.topics.v = &x;
    req.topics.n = 1;
    req.timeout_ms = 5000;
    arena_init(&a, 0);
    int rc = client_call(c, broker, API_CREATE_TOPICS, -1, &req, &a, &answer);
    const struct create_topics_response *r = answer;
    int code = rc == 0 && r->topics.n == 1 ? r->topics.v[0].error_code : KERR_REQUEST_TIMED_OUT;
    arena_free(&a);
    return code;
}

static void *make_topics(void *arg)
{
    struct client *c = client_new("maker");
    (void)arg;
    for (int i = 0; i < work.topics_n; i++) {
        for (;;) {
            int to = client_controller(c);
            int code = to < 0 ? KERR_NOT_CONTROLLER : work_create_topic(c, &work.topics[i], to);
            if (code == KERR_NONE || code == KERR_TOPIC_ALREADY_EXISTS)
                break;
            work_pause();
        }
        work.topics[i].there = true;
    }
    work.running--;
    return NULL;
}

/* ---- producing ---- */

struct producer {
    struct client *c;
    int64_t id; /* -1: none, acks=1 */
    int16_t epoch;
    int number;
    int64_t values;
    int32_t next[TOPICS_MAX][PARTITIONS_MAX]; /* sequence */
    int generation[TOPICS_MAX];
};

void work_note_producer_id(int64_t id)
{
    for (size_t i = 0; i < work.ids_n; i++)
        if (work.ids[i] == id)
            sim_violation("producer id %lld is given out twice", (long long)id);
    if (work.ids_n < IDS_MAX)
        work.ids[work.ids_n++] = id;
}

static bool get_id(struct producer *p)
{
    struct init_producer_id_request req;
    const void *answer;
    struct arena a;
    init_producer_id_request_init(&req);
    req.transactional_id = STR_NULL;
    req.transaction_timeout_ms = 60000;
    arena_init(&a, 0);
    int rc = client_call(p->c, client_any_broker(), API_INIT_PRODUCER_ID, -1, &req, &a, &answer);
    const struct init_producer_id_response *r = answer;
    bool good = rc == 0 && r->error_code == 0;
    if (good) {
        p->id = r->producer_id;
        p->epoch = r->producer_epoch;
        work_note_producer_id(p->id);
        memset(p->next, 0, sizeof(p->next));
    }
    arena_free(&a);
    return good;
}

static int build(struct producer *p, int32_t sequence, struct buf *out)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    int n = 1 + (int)sim_below(4);
    char value[300];
    o.producer_id = p->id;
    o.producer_epoch = p->id >= 0 ? p->epoch : -1;
    o.base_sequence = p->id >= 0 ? sequence : -1;
    struct batch_builder *b = batch_builder_new(&o);
    for (int i = 0; i < n; i++) {
        int len = snprintf(value, sizeof(value), "producer %d value %lld ", p->number,
                           (long long)p->values++);
        int pad = (int)sim_below(200);
        memset(value + len, 'a' + p->number, (size_t)pad);
        batch_builder_add(b, i, sim_wall_ms(), BYTES_NULL,
                          (struct bytes){(const uint8_t *)value, len + pad}, NULL, 0);
    }
    batch_builder_finish(b, out);
    batch_builder_free(b);
    return n;
}

/* One try. The error, or -1 when nobody can tell. */
static int send_batch(struct producer *p, int leader, const char *name, int32_t partition,
                      const struct buf *batch, int64_t *base_offset)
{
    struct produce_request req;
    struct produce_request_topic_data topic;
    struct produce_request_partition_data data;
    const void *answer;
    struct arena a;
    produce_request_init(&req);
    req.acks = p->id >= 0 ? -1 : 1;
    req.timeout_ms = (int32_t)sim_between(500, 5000);
    topic = (struct produce_request_topic_data){.name = str_of(name)};
    data = (struct produce_request_partition_data){
        .index = partition, .records = {.p = batch->p, .len = (int32_t)batch->len}};
    topic.partition_data.v = &data;
    topic.partition_data.n = 1;
    req.topic_data.v = &topic;
    req.topic_data.n = 1;
    arena_init(&a, 0);
    int rc = client_call(p->c, leader, API_PRODUCE, -1, &req, &a, &answer);
    const struct produce_response *r = answer;
    int code = rc == 0 ? r->responses.v[0].partition_responses.v[0].error_code : -1;
    if (code == 0)
        *base_offset = r->responses.v[0].partition_responses.v[0].base_offset;
    arena_free(&a);
    return code;
}

/* Until it is known to be there; false: the topic has gone. (What asks goes by the name it began
 * with: the topic's may come to stand for the next one while an answer is awaited.) */
static bool deliver(struct producer *p, struct topic *t, int32_t partition, const struct buf *batch,
                    int32_t sequence)
{
    int generation = t->generation;
    char name[sizeof(t->name)];
    bool fresh = false;
    memcpy(name, t->name, sizeof(name));
    for (;;) {
        int leader = client_leader(p->c, name, partition, fresh);
        int64_t base = -1;
        int32_t epoch = leader > 0 ? sim_model_leads(name, partition, leader) : -1;
        int code = leader > 0 ? send_batch(p, leader, name, partition, batch, &base) : -1;
        if (t->generation != generation)
            return false;
        if (code == KERR_NONE || code == KERR_DUPLICATE_SEQUENCE_NUMBER) {
            if (p->id >= 0 && !t->deleting)
                sim_model_acked(name, partition, leader, p->id, sequence, base);
            work.counts.acked++;
            sim_say("%s-%d: batch %d of producer %lld acknowledged at %lld by b%d", name, partition,
                    sequence, (long long)p->id, (long long)base, leader);
            return true;
        }
        /* one that was deposed and does not know it yet may not have seen the latest records */
        bool zombie = epoch < 0 || sim_model_leads(name, partition, leader) != epoch;
        if (code == KERR_OUT_OF_ORDER_SEQUENCE_NUMBER && zombie)
            code = -1;
        if (code >= 0 && !work_is_retriable(code) && !t->deleting && !t->unclean) {
            sim_model_tell(name, partition, p->id);
            sim_violation("produce to %s-%d, sequence %d of producer %lld: %s", name, partition,
                          sequence, (long long)p->id, kerr_name((enum kerr)code));
        }
        if (p->id < 0 || (t->unclean && code >= 0 && !work_is_retriable(code)))
            return false;
        work.counts.retried++;
        fresh = true;
        work_pause();
    }
}

static void *produce(void *arg)
{
    struct producer *p = arg;
    char name[16];
    snprintf(name, sizeof(name), "producer-%d", p->number);
    p->c = client_new(name);
    bool idempotent = p->id == 0;
    while (!work.ending) {
        fiber_sleep(sim_between(1, work.produce_ms) * SIM_MS);
        if (idempotent && (p->id <= 0 || sim_chance(0.002)) && !get_id(p)) {
            work_pause();
            continue;
        }
        struct topic *t = work_topic();
        if (!t->there || t->deleting)
            continue;
        int32_t partition = (int32_t)sim_below((uint64_t)t->partitions);
        int slot = (int)(t - work.topics);
        if (p->generation[slot] != t->generation) {
            p->generation[slot] = t->generation;
            memset(p->next[slot], 0, sizeof(p->next[slot]));
        }
        struct buf batch = BUF_INIT;
        int32_t sequence = p->next[slot][partition];
        int n = build(p, sequence, &batch);
        bool good = deliver(p, t, partition, &batch, sequence);
        if (good)
            p->next[slot][partition] += n;
        else if (t->unclean && idempotent)
            p->id = 0; /* its numbers may be lost: another one */
        buf_free(&batch);
    }
    work.running--;
    return NULL;
}

/* ---- consuming ---- */

int64_t work_fetch(struct client *c, int leader, const struct topic *t, int32_t partition,
                   int64_t from, int *code)
{
    struct fetch_request req;
    struct fetch_request_topic topic;
    struct fetch_request_partition part;
    const void *answer;
    struct arena a;
    int64_t next = from;
    char name[sizeof(t->name)]; /* see deliver */
    memcpy(name, t->name, sizeof(name));
    fetch_request_init(&req);
    fetch_request_topic_init(&topic);
    fetch_request_partition_init(&part);
    req.max_wait_ms = (int32_t)sim_below(500);
    req.min_bytes = 1;
    req.max_bytes = 1 << 20;
    topic.topic = str_of(name);
    part.partition = partition;
    part.fetch_offset = from;
    part.partition_max_bytes = (int32_t)sim_between(200, 20000);
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    req.topics.v = &topic;
    req.topics.n = 1;
    arena_init(&a, 0);
    int generation = t->generation;
    int rc = client_call(c, leader, API_FETCH, 12, &req, &a, &answer);
    const struct fetch_response *r = answer;
    *code = rc ? -1 : r->error_code;
    if (rc == 0 && r->error_code == 0 && r->responses.n == 1 && t->generation == generation &&
        !t->deleting) {
        const struct fetch_response_partition *p = &r->responses.v[0].partitions.v[0];
        *code = p->error_code;
        if (p->error_code == 0 && p->records.len > 0)
            next =
                sim_model_consumed(t->name, partition, from, p->records.p, (size_t)p->records.len);
    }
    arena_free(&a);
    return next;
}

static void *consume(void *arg)
{
    char name[16];
    snprintf(name, sizeof(name), "consumer-%d", (int)(intptr_t)arg);
    struct client *c = client_new(name);
    int64_t at[TOPICS_MAX][PARTITIONS_MAX] = {{0}};
    int generation[TOPICS_MAX] = {0};
    bool fresh = false;
    while (!work.ending) {
        struct topic *t = work_topic();
        int slot = (int)(t - work.topics);
        if (!t->there || t->deleting) {
            work_pause();
            continue;
        }
        if (generation[slot] != t->generation || t->unclean) {
            generation[slot] = t->generation;
            memset(at[slot], 0, sizeof(at[slot]));
        }
        int32_t partition = (int32_t)sim_below((uint64_t)t->partitions);
        int leader = client_leader(c, t->name, partition, fresh);
        int code = -1;
        int64_t from = at[slot][partition];
        int32_t epoch = leader > 0 ? sim_model_leads(t->name, partition, leader) : -1;
        if (sim_chance(0.02))
            from = at[slot][partition] = (int64_t)sim_below((uint64_t)from + 1);
        int64_t next = leader > 0 ? work_fetch(c, leader, t, partition, from, &code) : from;
        if (generation[slot] == t->generation) {
            work.counts.consumed += (uint64_t)(next - from);
            at[slot][partition] = next;
        }
        if (code == KERR_OFFSET_OUT_OF_RANGE && !t->unclean && !t->deleting &&
            generation[slot] == t->generation && epoch >= 0 &&
            sim_model_leads(t->name, partition, leader) == epoch)
            sim_violation("M10: a consumer stands at %lld of %s-%d, which b%d calls out of range",
                          (long long)from, t->name, partition, leader);
        fresh = code != 0;
        fiber_sleep(sim_between(1, 200) * SIM_MS);
    }
    work.running--;
    return NULL;
}

/* ---- all of it ---- */

void work_begin(const char *name, void *(*run)(void *), void *arg)
{
    work.running++;
    fiber_start(sim_host(SIM_CLIENTS), name, run, arg);
}

void sim_work_begin(const struct sim_work *w)
{
    sim_host(SIM_CLIENTS)->up = true;
    work.topics_n = w->topics;
    work.produce_ms = sim_between(20, 300);
    for (int i = 0; i < w->topics; i++) {
        struct topic *t = &work.topics[i];
        snprintf(t->name, sizeof(t->name), "t%d", i);
        t->partitions = 1 + (int)sim_below((uint64_t)w->partitions);
        t->unclean = w->unclean && i == w->topics - 1;
        if (t->unclean)
            sim_model_unclean(t->name);
    }
    if (w->transactions) {
        struct topic *t = &work.topics[work.topics_n++];
        snprintf(t->name, sizeof(t->name), "x");
        t->partitions = 1 + (int)sim_below(3);
        t->transactional = true;
        work_begin_transactions(w->transactions, t);
        work_begin("read-committed", work_read_committed, t);
    }
    work_begin("maker", make_topics, NULL);
    for (int i = 0; i < 4; i++) {
        struct producer *p = calloc(1, sizeof(*p));
        p->number = i;
        p->id = i == 3 ? -1 : 0;
        work_begin("producer", produce, p);
    }
    for (int i = 0; i < 2; i++)
        work_begin("consumer", consume, (void *)(intptr_t)i);
    work.may_delete = w->deletes;
    if (w->admin)
        work_begin("admin", work_administer, NULL);
    for (int i = 0; w->groups && i < 2; i++)
        work_begin("group", work_commit, (void *)(intptr_t)i);
    for (int i = 0; i < w->memberships; i++) {
        char name[32];
        snprintf(name, sizeof(name), "members%d", i);
        int members = 1 + (int)sim_below(MEMBERS_MAX);
        bool fixed = sim_chance(0.3);
        uint64_t kind = w->modern ? sim_below(5) : 0;
        struct membership *g = membership_new(name, members, fixed,
                                              kind < 2   ? GROUP_CLASSIC
                                              : kind < 4 ? GROUP_MODERN
                                                         : GROUP_MIXED);
        for (int k = 0; k < members; k++)
            work_begin("member", work_member, membership_member(g, k));
    }
}

void sim_work_end(void)
{
    work.ending = true;
}

bool sim_work_is_over(void)
{
    return work.running == 0;
}
