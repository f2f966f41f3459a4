/* sim_txn.c - producers with a transactional id. Each takes the next input of its pipeline (its
 * group's committed offset), writes to several partitions, and commits records and offset together,
 * or aborts. Some crash within a transaction and come back: who they were goes on beside them, as a
 * machine that stood still would.
 *
 * ANEW   a request without an answer may come late, into the next transaction of the same epoch,
 *        and end that: so after one the producer asks for another epoch first, as one that has
 *        given up must. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/batch_builder.h"
#include "protocol/msg/add_offsets_to_txn.h"
#include "protocol/msg/add_partitions_to_txn.h"
#include "protocol/msg/end_txn.h"
#include "protocol/msg/init_producer_id.h"
#include "protocol/msg/produce.h"
#include "protocol/msg/txn_offset_commit.h"
#include "sim_ledger.h"
#include "sim_txn.h"
#include "sim_work_private.h"

enum { ZOMBIES_MAX = 12, ZOMBIE_TRIES = 40 };

struct seat { /* a transactional id */
    char id[20], group[24];
    int number;
    struct topic *topic;
    int zombies;
    /* The newest that was given out. */
    int64_t producer;
    int16_t epoch;
};

struct producer {
    struct client *c;
    struct seat *seat;
    bool zombie;
    int tries; /* of a zombie */
    int64_t id;
    int16_t epoch;
    int coordinator, group_coordinator; /* -1 unknown */
    int32_t next[PARTITIONS_MAX];       /* sequence */
    int64_t txn;
    int64_t input;
    uint32_t added; /* partitions, bits */
    bool offsets_added, unanswered;
};

static struct seat seats[LEDGER_SEATS];
static int running;

int work_transactions_running(void)
{
    return running;
}

/* ---- one request ---- */

/* Goes to the coordinator of the id, or of the group. The error is read from the answer by `code`.
 */
struct question {
    int16_t api;
    int max_version;
    const void *request;
    bool of_group;
    int (*code)(const void *answer);
};

static int ask(struct producer *p, const struct question *q)
{
    const void *answer;
    struct arena a;
    int *to = q->of_group ? &p->group_coordinator : &p->coordinator;
    if (*to < 0)
        *to = q->of_group ? work_coordinator_of(p->c, p->seat->group, 0)
                          : work_coordinator_of(p->c, p->seat->id, 1);
    if (*to < 0)
        return KERR_COORDINATOR_NOT_AVAILABLE;
    arena_init(&a, 0);
    int rc = client_call(p->c, *to, q->api, q->max_version, q->request, &a, &answer);
    int code = rc == 0 ? q->code(answer) : -1;
    arena_free(&a);
    if (code < 0)
        p->unanswered = true;
    if (code != KERR_NONE && code != KERR_CONCURRENT_TRANSACTIONS)
        *to = -1;
    return code;
}

static bool worth_another_try(struct producer *p, int code)
{
    if (p->zombie && ++p->tries > ZOMBIE_TRIES)
        return false;
    return code < 0 || code == KERR_CONCURRENT_TRANSACTIONS ||
           code == KERR_UNSTABLE_OFFSET_COMMIT || work_is_retriable(code);
}

/* Until there is an answer that is not for another try. */
static int insist(struct producer *p, const struct question *q)
{
    for (;;) {
        int code = ask(p, q);
        if (code == KERR_NONE || !worth_another_try(p, code))
            return code;
        work_pause();
    }
}

static bool is_fenced(const struct producer *p)
{
    return p->id != p->seat->producer || p->epoch != p->seat->epoch;
}

/* ---- an epoch ---- */

struct given {
    int64_t id;
    int16_t epoch;
};
static struct given given; /* by the last answer: one thread, and taken at once */

static int code_of_init(const void *answer)
{
    const struct init_producer_id_response *r = answer;
    given = (struct given){r->producer_id, r->producer_epoch};
    return r->error_code;
}

static bool get_epoch(struct producer *p)
{
    struct seat *s = p->seat;
    struct init_producer_id_request req;
    init_producer_id_request_init(&req);
    req.transactional_id = str_of(s->id);
    req.transaction_timeout_ms = (int32_t)sim_between(3000, 20000);
    struct question q = {API_INIT_PRODUCER_ID, -1, &req, false, code_of_init};
    int code = ask(p, &q);
    if (code > 0 && !worth_another_try(p, code))
        sim_violation("T4: %s asks for an epoch and gets %s", s->id, kerr_name((enum kerr)code));
    if (code != KERR_NONE)
        return false;
    if (given.id == s->producer && given.epoch <= s->epoch)
        sim_violation("T5: %s is given epoch %d of producer %lld after %d", s->id, given.epoch,
                      (long long)given.id, s->epoch);
    if (given.id != s->producer)
        work_note_producer_id(given.id);
    p->id = s->producer = given.id;
    p->epoch = s->epoch = given.epoch;
    p->unanswered = false;
    memset(p->next, 0, sizeof(p->next));
    sim_say("%s is producer %lld, epoch %d", s->id, (long long)p->id, p->epoch);
    return true;
}

int64_t txn_committed_input(struct client *c, int seat)
{
    for (int to = -1;;) {
        int32_t zero = 0;
        int64_t found = -1;
        if (to < 0)
            to = work_coordinator_of(c, seats[seat].group, 0);
        int32_t epoch = work_coordinates(seats[seat].group, to);
        int code = to > 0 ? work_committed(c, to, seats[seat].group, seats[seat].topic->name, &zero,
                                           1, true, &found)
                          : -1;
        if (code == KERR_NONE && epoch >= 0 && work_coordinates(seats[seat].group, to) == epoch)
            return found;
        if (code != KERR_UNSTABLE_OFFSET_COMMIT)
            to = -1;
        work_pause();
    }
}

int txn_seats(void)
{
    int n = 0;
    while (n < LEDGER_SEATS && seats[n].topic)
        n++;
    return n;
}

/* ---- within a transaction ---- */

static int code_of_add(const void *answer)
{
    const struct add_partitions_to_txn_response *r = answer;
    return r->results_by_topic_v3_and_below.v[0].results_by_partition.v[0].partition_error_code;
}

static int add_partition(struct producer *p, int32_t partition)
{
    struct add_partitions_to_txn_request req;
    struct add_partitions_to_txn_request_topic t = {.name = str_of(p->seat->topic->name)};
    if (p->added & 1U << partition)
        return KERR_NONE;
    add_partitions_to_txn_request_init(&req);
    t.partitions.v = &partition;
    t.partitions.n = 1;
    req.v3_and_below_transactional_id = str_of(p->seat->id);
    req.v3_and_below_producer_id = p->id;
    req.v3_and_below_producer_epoch = p->epoch;
    req.v3_and_below_topics.v = &t;
    req.v3_and_below_topics.n = 1;
    struct question q = {API_ADD_PARTITIONS_TO_TXN, 3, &req, false, code_of_add};
    int code = insist(p, &q);
    if (code == KERR_NONE)
        p->added |= 1U << partition;
    return code;
}

static int build(struct producer *p, int32_t partition, int write, struct buf *out)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    char value[64];
    int n = 1 + (int)sim_below(3);
    o.transactional = true;
    o.producer_id = p->id;
    o.producer_epoch = p->epoch;
    o.base_sequence = p->next[partition];
    struct batch_builder *b = batch_builder_new(&o);
    int len = snprintf(value, sizeof(value), "txn %lld write %d", (long long)p->txn, write);
    for (int i = 0; i < n; i++)
        batch_builder_add(b, i, sim_wall_ms(), BYTES_NULL,
                          (struct bytes){(const uint8_t *)value, len}, NULL, 0);
    batch_builder_finish(b, out);
    batch_builder_free(b);
    return n;
}

static int send_batch(struct producer *p, int leader, int32_t partition, const struct buf *batch)
{
    struct produce_request req;
    struct produce_request_topic_data topic = {.name = str_of(p->seat->topic->name)};
    struct produce_request_partition_data data = {
        .index = partition, .records = {.p = batch->p, .len = (int32_t)batch->len}};
    const void *answer;
    struct arena a;
    produce_request_init(&req);
    req.transactional_id = str_of(p->seat->id);
    req.acks = -1;
    req.timeout_ms = (int32_t)sim_between(500, 5000);
    topic.partition_data.v = &data;
    topic.partition_data.n = 1;
    req.topic_data.v = &topic;
    req.topic_data.n = 1;
    arena_init(&a, 0);
    int rc = client_call(p->c, leader, API_PRODUCE, -1, &req, &a, &answer);
    const struct produce_response *r = answer;
    int code = rc == 0 ? r->responses.v[0].partition_responses.v[0].error_code : -1;
    arena_free(&a);
    if (code < 0)
        p->unanswered = true;
    return code;
}

static int deliver(struct producer *p, int32_t partition, const struct buf *batch)
{
    bool was_fenced = is_fenced(p), fresh = false;
    for (;;) {
        int leader = client_leader(p->c, p->seat->topic->name, partition, fresh);
        int code = leader > 0 ? send_batch(p, leader, partition, batch) : KERR_LEADER_NOT_AVAILABLE;
        if (code == KERR_NONE || code == KERR_DUPLICATE_SEQUENCE_NUMBER) {
            if (was_fenced)
                sim_violation("T4: a write of %s, epoch %d, is acknowledged by b%d, begun after "
                              "epoch %d was given out",
                              p->seat->id, p->epoch, leader, p->seat->epoch);
            return KERR_NONE;
        }
        if (!worth_another_try(p, code))
            return code;
        fresh = true;
        work_pause();
    }
}

static int write_some(struct producer *p)
{
    int32_t partition = (int32_t)sim_below((uint64_t)p->seat->topic->partitions);
    int code = add_partition(p, partition);
    if (code != KERR_NONE)
        return code;
    struct buf batch = BUF_INIT;
    int n = build(p, partition, ledger_write(p->txn, partition), &batch);
    code = deliver(p, partition, &batch);
    buf_free(&batch);
    if (code == KERR_NONE)
        p->next[partition] += n;
    return code;
}

static int code_of_add_offsets(const void *answer)
{
    return ((const struct add_offsets_to_txn_response *)answer)->error_code;
}

static int code_of_offsets(const void *answer)
{
    return ((const struct txn_offset_commit_response *)answer)
        ->topics.v[0]
        .partitions.v[0]
        .error_code;
}

static int add_offsets(struct producer *p)
{
    struct add_offsets_to_txn_request req;
    add_offsets_to_txn_request_init(&req);
    req.transactional_id = str_of(p->seat->id);
    req.producer_id = p->id;
    req.producer_epoch = p->epoch;
    req.group_id = str_of(p->seat->group);
    struct question q = {API_ADD_OFFSETS_TO_TXN, -1, &req, false, code_of_add_offsets};
    return insist(p, &q);
}

static int commit_offset(struct producer *p)
{
    struct txn_offset_commit_request req;
    struct txn_offset_commit_request_topic t = {.name = str_of(p->seat->topic->name)};
    struct txn_offset_commit_request_partition part = {.committed_offset = p->input + 1,
                                                       .committed_leader_epoch = -1,
                                                       .committed_metadata = STR_LIT("")};
    txn_offset_commit_request_init(&req);
    t.partitions.v = &part;
    t.partitions.n = 1;
    req.transactional_id = str_of(p->seat->id);
    req.group_id = str_of(p->seat->group);
    req.producer_id = p->id;
    req.producer_epoch = p->epoch;
    req.topics.v = &t;
    req.topics.n = 1;
    struct question q = {API_TXN_OFFSET_COMMIT, 3, &req, true, code_of_offsets};
    return insist(p, &q);
}

static int code_of_end(const void *answer)
{
    return ((const struct end_txn_response *)answer)->error_code;
}

/* The fate of a transaction that its producer cannot bring to its end. */
static void give_up(struct producer *p, bool commit_in_doubt, int code)
{
    sim_say("%s: transaction %lld ends with %s", p->seat->id, (long long)p->txn,
            code < 0 ? "no answer" : kerr_name((enum kerr)code));
    if (commit_in_doubt)
        work.counts.txn_doubtful++;
    else
        ledger_aborted(p->txn);
    work.counts.txn_fenced++;
    p->unanswered = true; /* another epoch first */
}

static void end(struct producer *p, bool commit)
{
    struct end_txn_request req;
    end_txn_request_init(&req);
    req.transactional_id = str_of(p->seat->id);
    req.producer_id = p->id;
    req.producer_epoch = p->epoch;
    req.committed = commit;
    struct question q = {API_END_TXN, 3, &req, false, code_of_end};
    bool before = p->unanswered, doubt = false;
    if (commit)
        ledger_commit_asked(p->txn);
    else
        ledger_aborted(p->txn);
    for (;;) {
        p->unanswered = false;
        int code = ask(p, &q);
        /* what could not be replicated in time may be, later */
        doubt |= commit && (p->unanswered || work_is_retriable(code));
        before |= p->unanswered;
        if (code == KERR_NONE) {
            if (commit)
                ledger_committed(p->txn);
            commit ? work.counts.txn_committed++ : work.counts.txn_aborted++;
            sim_say("%s: transaction %lld is %s", p->seat->id, (long long)p->txn,
                    commit ? "committed" : "aborted");
            break;
        }
        if (!worth_another_try(p, code)) {
            give_up(p, commit && doubt, code);
            return;
        }
        work_pause();
    }
    p->unanswered = before;
}

/* Writes, offset, end. */
static void go_on(struct producer *p, int writes, bool commit)
{
    int code = KERR_NONE;
    for (int i = 0; i < writes && code == KERR_NONE; i++) {
        fiber_sleep(sim_between(1, p->zombie ? 1500 : 60) * SIM_MS);
        code = write_some(p);
    }
    if (code == KERR_NONE)
        code = add_offsets(p);
    if (code == KERR_NONE)
        code = commit_offset(p);
    if (code == KERR_NONE)
        end(p, commit);
    else
        give_up(p, false, code);
}

/* ---- lives ---- */

static void *haunt(void *arg)
{
    struct producer *p = arg;
    char name[24];
    snprintf(name, sizeof(name), "zombie-%d", p->seat->number);
    p->c = client_new(name);
    fiber_sleep(sim_between(1, 4000) * SIM_MS);
    go_on(p, 1 + (int)sim_below(3), true);
    work.running--;
    running--;
    free(p);
    return NULL;
}

/* It dies within its transaction, which is nobody's then, or goes on as a zombie. */
static void crash(struct producer *p)
{
    struct seat *s = p->seat;
    p->unanswered = true;
    if (s->zombies == ZOMBIES_MAX || sim_chance(0.4)) {
        ledger_aborted(p->txn);
        return;
    }
    s->zombies++;
    work.counts.zombies++;
    running++;
    struct producer *z = malloc(sizeof(*z));
    *z = *p;
    z->zombie = true;
    work_begin("zombie", haunt, z);
}

static void transact(struct producer *p)
{
    p->txn = ledger_begin(p->seat->number, p->input);
    p->added = 0;
    int writes = (int)sim_below(4);
    for (int i = 0; i < writes; i++) {
        int code = write_some(p);
        if (code != KERR_NONE) {
            give_up(p, false, code);
            return;
        }
    }
    if (sim_chance(0.06)) {
        crash(p);
        return;
    }
    go_on(p, 1 + (int)sim_below(2), sim_chance(0.8));
}

static void *sit(void *arg)
{
    struct producer *p = arg;
    p->c = client_new(p->seat->id);
    p->unanswered = true;
    while (!work.ending) {
        fiber_sleep(sim_between(1, 2 * work.produce_ms) * SIM_MS);
        if (!p->seat->topic->there)
            continue;
        if (p->unanswered && !get_epoch(p)) {
            work_pause();
            continue;
        }
        int64_t found = txn_committed_input(p->c, p->seat->number);
        p->input = found < 0 ? 0 : found;
        transact(p);
    }
    work.running--;
    running--;
    return NULL;
}

void work_begin_transactions(int n, struct topic *t)
{
    for (int i = 0; i < n && i < LEDGER_SEATS; i++) {
        struct seat *s = &seats[i];
        *s = (struct seat){.number = i, .topic = t, .producer = -1, .epoch = -1};
        snprintf(s->id, sizeof(s->id), "pipe%d", i);
        snprintf(s->group, sizeof(s->group), "pipeline%d", i);
        struct producer *p = calloc(1, sizeof(*p));
        *p = (struct producer){
            .seat = s, .id = -1, .epoch = -1, .coordinator = -1, .group_coordinator = -1};
        running++;
        work_begin(s->id, sit, p);
    }
}
