/* fuzz_txn_records.c - a partition of __transaction_state with any content: what loads becomes ids
 * that can be asked for, used and ended like any other; and what the coordinator then writes loads
 * to the same.
 *
 * INPUT  record batches; their checksums are made right first.
 *
 * Rooms: coordinator */
#include <stdio.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "base/logline.h"
#include "base/sim_executor.h"
#include "coordinator/txn_coordinator.h"
#include "coordinator/txn_loading.h"
#include "protocol/batch_builder.h"
#include "protocol/msg/describe_transactions.h"
#include "protocol/msg/list_transactions.h"

#include "fuzz_records.h"

enum { START_MS = 1700000000, IDS_USED = 8 };

struct bench {
    struct sim_clock clock;
    struct sim_executor *sim;
    struct group_log log;
    struct buf bytes; /* the input, and what was appended */
    int64_t next;
    struct metadata_cache *metadata;
    struct txn_coordinator *c;
    uint64_t wanted;
    int64_t producers;
};

static void appended(struct task *t)
{
    struct group_append *a = container_of(t, struct group_append, task);
    a->done(a);
}

static void append(struct group_log *log, struct group_append *a, const struct group_record *r,
                   int n)
{
    struct bench *b = container_of(log, struct bench, log);
    records_append(&b->bytes, &b->next, START_MS, r, n);
    a->error = KERR_NONE;
    task_init(&a->task, appended);
    executor_post(sim_executor_ex(b->sim), &a->task);
}

static struct remote *open_none(void *arg, struct str host, int port, const char *client_id,
                                int64_t timeout_ms)
{
    (void)arg;
    (void)host;
    (void)port;
    (void)client_id;
    (void)timeout_ms;
    return NULL;
}

static int producer_id(void *arg, int64_t *id)
{
    *id = ((struct bench *)arg)->producers++;
    return 0;
}

static void want_load(void *arg, int32_t partition, int32_t epoch, uint64_t number)
{
    (void)partition;
    (void)epoch;
    ((struct bench *)arg)->wanted = number;
}

static int add_batch(void *loading, const struct batch *b)
{
    return txn_loading_add(loading, b);
}

static int load(struct bench *b, struct txn ***ids)
{
    struct txn_loading *l = txn_loading_new(0);
    int n = 0;
    must(l != NULL);
    records_load(&b->bytes, add_batch, l);
    must(txn_loading_take(l, ids, &n) == 0);
    txn_loading_free(l);
    return n;
}

/* A log holds no others: what is appended must be found behind them. */
static size_t whole_batches(const uint8_t *p, size_t n)
{
    struct batch batch;
    size_t at = 0;
    while (batch_decode(p + at, n - at, n - at, &batch) == BATCH_OK)
        at += batch.size;
    return at;
}

static void start(struct bench *b, const uint8_t *p, size_t n)
{
    static const struct group_log_ops ops = {append, NULL};
    *b = (struct bench){.log = {&ops}, .next = 1 << 30, .producers = 1000};
    sim_clock_init(&b->clock, START_MS * 1000LL);
    b->sim = sim_executor_new(&b->clock);
    b->metadata = metadata_cache_new();
    must(b->sim && b->metadata);
    buf_put(&b->bytes, p, whole_batches(p, n));
    struct txn_coordinator_options o = {.ex = sim_executor_ex(b->sim),
                                        .log = &b->log,
                                        .partitions_n = 1,
                                        .config = {900000, 50000, 10000, 10000},
                                        .markers = {.ex = sim_executor_ex(b->sim),
                                                    .metadata = b->metadata,
                                                    .listener = STR_LIT("PLAINTEXT"),
                                                    .opener = {open_none, NULL},
                                                    .client_id = "1",
                                                    .timeout_ms = 1000},
                                        .producer_id = producer_id,
                                        .load = want_load,
                                        .arg = b};
    must(txn_coordinator_new(&o, &b->c) == 0);
    txn_coordinator_start(b->c);
}

static void own(struct bench *b, int32_t epoch)
{
    struct txn **ids;
    txn_coordinator_elected(b->c, 0, epoch);
    int n = load(b, &ids);
    txn_coordinator_loaded(b->c, 0, b->wanted, ids, n, 0);
    free(ids);
    sim_executor_drain(b->sim);
}

/* ---- calls ---- */

struct call {
    struct txn_call c;
    bool done;
};

static void call_done(struct txn_call *c)
{
    struct call *call = container_of(c, struct call, c);
    must(!call->done);
    call->done = true;
}

static void run(struct bench *b, struct txn_call in)
{
    struct call call = {.c = in};
    call.c.done = call_done;
    txn_coordinator_handle(b->c, &call.c);
    sim_executor_drain(b->sim);
    must(call.done);
}

static void use(struct bench *b, struct str id)
{
    struct txn_call_partition p = {.topic = STR_LIT("t"), .partition = 3};
    struct txn_call as = {.id = id, .timeout_ms = 1000, .partitions = &p, .partitions_n = 1};
    for (int api = TXN_CALL_INIT; api <= TXN_CALL_END; api++) {
        const struct txn *t = txn_coordinator_find(b->c, id);
        if (!t)
            return;
        as.api = (enum txn_api)api;
        as.producer_id = t->now.producer_id;
        as.epoch = t->now.epoch;
        as.commit = t->now.epoch % 2;
        run(b, as);
    }
    as.api = TXN_CALL_INIT;
    as.producer_id = as.epoch = -1;
    run(b, as);
}

static void look(struct bench *b, struct str id)
{
    struct arena a;
    struct list_transactions_request in;
    struct list_transactions_response all;
    struct describe_transactions_response one;
    struct writer w = WRITER_INIT;
    arena_init(&a, 0);
    list_transactions_request_init(&in);
    list_transactions_response_init(&all);
    run(b, (struct txn_call){.api = TXN_CALL_LIST, .in = &in, .out = &all, .arena = &a});
    describe_transactions_response_init(&one);
    one.transaction_states.v = describe_transactions_response_transaction_state_new(&a, 1);
    one.transaction_states.n = 1;
    one.transaction_states.v->transactional_id = id;
    run(b, (struct txn_call){.api = TXN_CALL_DESCRIBE, .out = &one, .arena = &a});
    list_transactions_response_encode(&all, 1, &w);
    describe_transactions_response_encode(&one, 0, &w);
    must(!w.buf.failed && !w.unsupported);
    writer_free(&w);
    arena_free(&a);
}

/* What the log says is what is in memory, but for what waits for its markers. */
static void compare(struct bench *b)
{
    struct txn **ids;
    int n = load(b, &ids);
    for (int i = 0; i < n; i++) {
        const struct txn *t = txn_coordinator_find(b->c, ids[i]->id);
        must(t != NULL);
        must(t->now.state == ids[i]->now.state && t->now.producer_id == ids[i]->now.producer_id);
        must(t->fence_failed || t->now.epoch == ids[i]->now.epoch);
        must(txn_partitions_count(&t->now.partitions) ==
             txn_partitions_count(&ids[i]->now.partitions));
        txn_unref(ids[i]);
    }
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct bench b;
    struct arena a;
    struct str names[IDS_USED];
    struct txn **ids;
    int names_n = 0;
    logline_set_level(LOGLINE_FATAL);
    start(&b, p, n);
    arena_init(&a, 0);
    int count = load(&b, &ids);
    for (int i = 0; i < count; i++) {
        if (names_n < IDS_USED)
            names[names_n++] = arena_str(&a, ids[i]->id);
        txn_unref(ids[i]);
    }
    free(ids);
    own(&b, 0);
    for (int i = 0; i < names_n; i++) {
        look(&b, names[i]);
        use(&b, names[i]);
    }
    compare(&b);
    sim_executor_advance(b.sim, 20000); /* what goes on is aborted */
    compare(&b);
    txn_coordinator_resigned(b.c, 0, 1);
    own(&b, 2);
    sim_executor_advance(b.sim, 80000); /* what rests is forgotten */
    compare(&b);
    arena_free(&a);
    txn_coordinator_shut_down(b.c);
    sim_executor_drain(b.sim);
    txn_coordinator_free(b.c);
    metadata_cache_free(b.metadata);
    sim_executor_free(b.sim);
    buf_free(&b.bytes);
    return 0;
}
