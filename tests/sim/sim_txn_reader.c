/* sim_txn_reader.c - reads what is committed, as a consumer with isolation.level=read_committed
 * does: up to the last stable offset, without what the answer calls aborted. While faults last it
 * looks at whatever comes (T1); in the end it reads all, which must be possible (no transaction
 * hangs), and has the ledger judge. */
#include <stdio.h>
#include <string.h>

#include "protocol/msg/fetch.h"
#include "sim_ledger.h"
#include "sim_model.h"
#include "sim_txn.h"
#include "sim_work_private.h"

enum { ABORTED_MAX = 64 };

typedef void (*take)(int64_t txn, int write, int32_t partition, int64_t offset);

/* A batch that is no aborted one. */
static void give(const struct batch *b, int32_t partition, take to)
{
    struct record_iter *it;
    struct record r;
    char text[64];
    long long txn;
    int write;
    if (record_iter_open(b, &it) != 0)
        sim_violation("T1: the batch at %lld cannot be read", (long long)b->base_offset);
    if (record_iter_next(it, &r) == 1 && r.value.len > 0) {
        snprintf(text, sizeof(text), "%.*s", r.value.len, (const char *)r.value.p);
        if (sscanf(text, "txn %lld write %d", &txn, &write) == 2)
            to(txn, write, partition, b->base_offset);
        else if (batch_is_transactional(b))
            sim_violation("T1: the transactional batch at %lld says '%s'",
                          (long long)b->base_offset, text);
    }
    record_iter_close(it);
}

struct aborting { /* producers whose transaction here is an aborted one */
    int64_t v[ABORTED_MAX];
    int n;
};

static int find(const struct aborting *a, int64_t producer)
{
    for (int i = 0; i < a->n; i++)
        if (a->v[i] == producer)
            return i;
    return -1;
}

/* Those of the answer's list that begin up to there. */
static void enter(struct aborting *a, const struct fetch_response_partition *p, bool *entered,
                  int64_t up_to)
{
    for (int i = 0; i < p->aborted_transactions.n && i < ABORTED_MAX; i++) {
        const struct fetch_response_aborted_transaction *x = &p->aborted_transactions.v[i];
        if (entered[i] || x->first_offset > up_to)
            continue;
        entered[i] = true;
        if (find(a, x->producer_id) < 0)
            a->v[a->n++] = x->producer_id;
    }
}

static bool is_abort_marker(const struct batch *b)
{
    struct record_iter *it;
    struct record r;
    bool is = false;
    if (record_iter_open(b, &it) != 0)
        return false;
    if (record_iter_next(it, &r) == 1 && r.key.len == 4)
        is = r.key.p[2] == 0 && r.key.p[3] == 0;
    record_iter_close(it);
    return is;
}

/* Where the next fetch goes on. */
static int64_t read_answer(const struct fetch_response_partition *p, int32_t partition,
                           int64_t from, take to)
{
    struct aborting a = {.n = 0};
    bool entered[ABORTED_MAX] = {false};
    const uint8_t *at = p->records.p;
    size_t left = p->records.len > 0 ? (size_t)p->records.len : 0;
    struct batch b;
    for (; batch_decode(at, left, left, &b) == BATCH_OK; at += b.size, left -= b.size) {
        if (b.base_offset >= p->last_stable_offset)
            sim_violation("T1: partition %d: a batch at %lld is given, the last stable offset is "
                          "%lld",
                          partition, (long long)b.base_offset, (long long)p->last_stable_offset);
        enter(&a, p, entered, b.last_offset);
        int i = batch_is_transactional(&b) ? find(&a, b.producer_id) : -1;
        if (batch_is_control(&b) && i >= 0 && is_abort_marker(&b))
            a.v[i] = a.v[--a.n];
        else if (!batch_is_control(&b) && i < 0 && b.last_offset >= from)
            give(&b, partition, to);
        if (b.last_offset >= from)
            from = b.last_offset + 1;
    }
    return from;
}

static int64_t fetch(struct client *c, int leader, const struct topic *t, int32_t partition,
                     int64_t from, int *code, take to)
{
    struct fetch_request req;
    struct fetch_request_topic topic;
    struct fetch_request_partition part;
    const void *answer;
    struct arena a;
    int64_t next = from;
    fetch_request_init(&req);
    fetch_request_topic_init(&topic);
    fetch_request_partition_init(&part);
    req.max_wait_ms = (int32_t)sim_below(300);
    req.min_bytes = 1;
    req.max_bytes = 1 << 20;
    req.isolation_level = 1;
    topic.topic = str_of(t->name);
    part.partition = partition;
    part.fetch_offset = from;
    part.partition_max_bytes = (int32_t)sim_between(200, 20000);
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    req.topics.v = &topic;
    req.topics.n = 1;
    arena_init(&a, 0);
    int rc = client_call(c, leader, API_FETCH, 12, &req, &a, &answer);
    const struct fetch_response *r = answer;
    *code = rc ? -1 : r->error_code;
    if (*code == 0 && r->responses.n == 1) {
        const struct fetch_response_partition *p = &r->responses.v[0].partitions.v[0];
        *code = p->error_code;
        if (*code == 0)
            next = read_answer(p, partition, from, to);
    }
    arena_free(&a);
    return next;
}

/* All of a partition; waits for transactions that are open still. */
static void read_all(struct client *c, const struct topic *t, int32_t partition)
{
    bool fresh = true;
    for (int64_t at = 0; at < sim_model_end(t->name, partition);) {
        int leader = client_leader(c, t->name, partition, fresh);
        int code = -1;
        int64_t next = leader > 0 ? fetch(c, leader, t, partition, at, &code, ledger_read) : at;
        fresh = code != 0;
        if (next == at)
            work_pause();
        at = next;
    }
}

void *work_read_committed(void *arg)
{
    struct topic *t = arg;
    struct client *c = client_new("read-committed");
    int64_t at[PARTITIONS_MAX] = {0}, committed[LEDGER_SEATS] = {-1, -1, -1, -1};
    bool fresh = false;
    while (!work.ending || work_transactions_running()) {
        int32_t partition = (int32_t)sim_below((uint64_t)t->partitions);
        int leader = t->there ? client_leader(c, t->name, partition, fresh) : -1;
        int code = -1;
        if (sim_chance(0.02))
            at[partition] = 0;
        if (leader > 0)
            at[partition] = fetch(c, leader, t, partition, at[partition], &code, ledger_seen);
        fresh = code != 0;
        fiber_sleep(sim_between(1, 200) * SIM_MS);
    }
    for (int i = 0; i < t->partitions; i++)
        read_all(c, t, i);
    for (int i = 0; i < txn_seats(); i++)
        committed[i] = txn_committed_input(c, i);
    ledger_judge(committed);
    work.running--;
    return NULL;
}
