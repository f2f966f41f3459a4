/* txn.c - see txn.h. */
#include "coordinator/txn.h"

#include <errno.h>
#include <stdlib.h>

static const char *const names[TXN_STATES] = {
    [TXN_EMPTY] = "Empty",
    [TXN_ONGOING] = "Ongoing",
    [TXN_PREPARE_COMMIT] = "PrepareCommit",
    [TXN_PREPARE_ABORT] = "PrepareAbort",
    [TXN_COMPLETE_COMMIT] = "CompleteCommit",
    [TXN_COMPLETE_ABORT] = "CompleteAbort",
    [TXN_DEAD] = "Dead",
    [TXN_PREPARE_EPOCH_FENCE] = "PrepareEpochFence",
};

const char *txn_state_name(enum txn_state s)
{
    return names[s];
}

int txn_state_find(struct str name)
{
    for (int i = 0; i < TXN_STATES; i++)
        if (str_eqz(name, names[i]))
            return i;
    return -1;
}

/* ---- life ---- */

struct txn *txn_new(struct str id, int32_t partition)
{
    struct txn *t = calloc(1, sizeof(*t) + (size_t)id.len);
    if (!t)
        return NULL;
    char *name = (char *)(t + 1);
    memcpy(name, id.p, (size_t)id.len);
    t->id = (struct str){name, id.len};
    t->refs = 1;
    t->partition = partition;
    t->now = (struct txn_image){.producer_id = TXN_NO_PRODUCER,
                                .last_producer_id = TXN_NO_PRODUCER,
                                .epoch = TXN_NO_EPOCH,
                                .last_epoch = TXN_NO_EPOCH,
                                .start_ms = -1};
    list_init(&t->link);
    return t;
}

struct txn *txn_ref(struct txn *t)
{
    t->refs++;
    return t;
}

void txn_image_free(struct txn_image *i)
{
    txn_partitions_free(&i->partitions);
}

void txn_unref(struct txn *t)
{
    if (!t || --t->refs > 0)
        return;
    txn_image_free(&t->now);
    free(t);
}

void txn_install(struct txn *t, struct txn_image *i)
{
    txn_image_free(&t->now);
    t->now = *i;
    i->partitions = TXN_PARTITIONS_INIT;
    t->fence_failed = false;
}

/* The same, without its partitions. */
static struct txn_image image_like(const struct txn *t, enum txn_state state, int64_t now_ms)
{
    struct txn_image i = t->now;
    i.partitions = TXN_PARTITIONS_INIT;
    i.state = state;
    i.updated_ms = now_ms;
    return i;
}

static int image_with_partitions(const struct txn *t, enum txn_state state, int64_t now_ms,
                                 struct txn_image *out)
{
    *out = image_like(t, state, now_ms);
    int rc = txn_partitions_add_all(&out->partitions, &t->now.partitions);
    if (rc)
        txn_image_free(out);
    return rc;
}

/* ---- InitProducerId ---- */

static bool is_used_up(int16_t epoch)
{
    return epoch >= TXN_LAST_EPOCH;
}

/* Does who names this pair hold the id? After the epochs of the last producer id were used up, that
 * one may come once more, for the answer that it did not get. */
static bool holds(const struct txn_image *i, int64_t producer_id, int16_t epoch)
{
    return i->epoch == TXN_NO_EPOCH || producer_id == i->producer_id ||
           (producer_id == i->last_producer_id && is_used_up(epoch));
}

static enum kerr check_next_epoch(const struct txn_image *i, bool named, int16_t epoch,
                                  enum txn_init_step *step)
{
    if (is_used_up(i->epoch)) {
        *step = TXN_INIT_ROTATE;
        return !named || epoch == i->epoch ? KERR_NONE : KERR_UNKNOWN_SERVER_ERROR;
    }
    *step = TXN_INIT_BUMP;
    if (!named || i->epoch == TXN_NO_EPOCH || epoch == i->epoch)
        return KERR_NONE;
    *step = TXN_INIT_REPEAT;
    return epoch == i->last_epoch ? KERR_NONE : KERR_PRODUCER_FENCED;
}

enum kerr txn_check_init(const struct txn *t, int64_t producer_id, int16_t epoch,
                         enum txn_init_step *step)
{
    bool named = producer_id != TXN_NO_PRODUCER;
    if (t->pending)
        return KERR_CONCURRENT_TRANSACTIONS;
    if (named && !holds(&t->now, producer_id, epoch))
        return KERR_PRODUCER_FENCED;
    if (txn_is_idle(t))
        return check_next_epoch(&t->now, named, epoch, step);
    *step = TXN_INIT_ABORT;
    return t->now.state == TXN_ONGOING ? KERR_NONE : KERR_CONCURRENT_TRANSACTIONS;
}

void txn_init_image(const struct txn *t, enum txn_init_step step, int64_t new_id, int16_t epoch,
                    int32_t timeout_ms, int64_t now_ms, struct txn_image *out)
{
    bool named = epoch != TXN_NO_EPOCH;
    *out = image_like(t, TXN_EMPTY, now_ms);
    out->timeout_ms = timeout_ms;
    out->start_ms = -1;
    out->last_epoch = named ? t->now.epoch : TXN_NO_EPOCH;
    out->epoch = (int16_t)(t->now.epoch + 1);
    if (step != TXN_INIT_ROTATE)
        return;
    out->last_producer_id = t->now.producer_id;
    out->producer_id = new_id;
    out->epoch = 0;
}

/* ---- partitions ---- */

enum kerr txn_check_verify(const struct txn *t, int64_t producer_id, int16_t epoch)
{
    if (producer_id != t->now.producer_id)
        return KERR_INVALID_PRODUCER_ID_MAPPING;
    if (epoch != t->now.epoch)
        return KERR_PRODUCER_FENCED;
    if (t->now.state == TXN_PREPARE_COMMIT || t->now.state == TXN_PREPARE_ABORT)
        return KERR_CONCURRENT_TRANSACTIONS;
    return KERR_NONE;
}

enum kerr txn_check_add(const struct txn *t, int64_t producer_id, int16_t epoch)
{
    enum kerr e = txn_check_verify(t, producer_id, epoch);
    return e == KERR_NONE && t->pending ? KERR_CONCURRENT_TRANSACTIONS : e;
}

int txn_add_image(const struct txn *t, int64_t now_ms, struct txn_image *out)
{
    int rc = image_with_partitions(t, TXN_ONGOING, now_ms, out);
    if (t->now.state != TXN_ONGOING)
        out->start_ms = now_ms;
    return rc;
}

/* ---- the end ---- */

enum kerr txn_check_end(const struct txn *t, int64_t producer_id, int16_t epoch, bool commit,
                        bool *write)
{
    static const struct {
        int16_t commit, abort;
    } answers[TXN_STATES] = {
        [TXN_EMPTY] = {KERR_INVALID_TXN_STATE, KERR_INVALID_TXN_STATE},
        [TXN_ONGOING] = {KERR_NONE, KERR_NONE},
        [TXN_PREPARE_COMMIT] = {KERR_CONCURRENT_TRANSACTIONS, KERR_INVALID_TXN_STATE},
        [TXN_PREPARE_ABORT] = {KERR_INVALID_TXN_STATE, KERR_CONCURRENT_TRANSACTIONS},
        [TXN_COMPLETE_COMMIT] = {KERR_NONE, KERR_INVALID_TXN_STATE},
        [TXN_COMPLETE_ABORT] = {KERR_INVALID_TXN_STATE, KERR_NONE},
        [TXN_DEAD] = {KERR_INVALID_TXN_STATE, KERR_INVALID_TXN_STATE},
        [TXN_PREPARE_EPOCH_FENCE] = {KERR_INVALID_TXN_STATE, KERR_INVALID_TXN_STATE},
    };
    *write = t->now.state == TXN_ONGOING;
    if (producer_id != t->now.producer_id)
        return KERR_INVALID_PRODUCER_ID_MAPPING;
    if (epoch != t->now.epoch)
        return KERR_PRODUCER_FENCED;
    if (t->pending)
        return KERR_CONCURRENT_TRANSACTIONS;
    return commit ? answers[t->now.state].commit : answers[t->now.state].abort;
}

/* `then` is earlier than now_ms by more than ms; values of a log may be anything. */
static bool longer_ago(int64_t then, int64_t now_ms, int64_t ms)
{
    int64_t age;
    return !__builtin_sub_overflow(now_ms, then, &age) ? age > ms : then < 0;
}

bool txn_is_overdue(const struct txn *t, int64_t now_ms)
{
    return t->now.state == TXN_ONGOING && !t->pending &&
           longer_ago(t->now.start_ms, now_ms, t->now.timeout_ms);
}

bool txn_is_expired(const struct txn *t, int64_t now_ms, int64_t expiration_ms)
{
    return txn_is_idle(t) && !t->pending &&
           longer_ago(t->now.updated_ms, now_ms, expiration_ms - 1);
}

void txn_fence(struct txn *t)
{
    t->now.last_epoch = TXN_NO_EPOCH;
    if (!t->fence_failed && t->now.epoch < INT16_MAX)
        t->now.epoch++;
}

int txn_end_image(const struct txn *t, bool commit, int64_t now_ms, struct txn_image *out)
{
    return image_with_partitions(t, commit ? TXN_PREPARE_COMMIT : TXN_PREPARE_ABORT, now_ms, out);
}

void txn_complete_image(const struct txn *t, int64_t now_ms, struct txn_image *out)
{
    bool commit = t->now.state == TXN_PREPARE_COMMIT;
    *out = image_like(t, commit ? TXN_COMPLETE_COMMIT : TXN_COMPLETE_ABORT, now_ms);
}
