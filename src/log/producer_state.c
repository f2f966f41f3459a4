#include "log/producer_state.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checksum.h"

/* Is a time of that age over the limit? Timestamps come from clients and may be anything. */
static bool older_than(int64_t now_ms, int64_t timestamp, int64_t limit_ms)
{
    int64_t age;
    if (__builtin_sub_overflow(now_ms, timestamp, &age))
        return timestamp < 0;
    return age >= limit_ms;
}

static bool id_equals(const struct hnode *node, const void *key)
{
    return hmap_entry(node, struct producer, node)->id == *(const int64_t *)key;
}

static struct producer *find(const struct producer_state *ps, int64_t id)
{
    struct hnode *n = hmap_find(&ps->by_id, hash_int((uint64_t)id), id_equals, &id);
    return n ? hmap_entry(n, struct producer, node) : NULL;
}

/* The producer, if anything is known of it. */
static const struct producer *known(const struct producer_state *ps, int64_t id)
{
    const struct producer *p = find(ps, id);
    return p && p->epoch >= 0 ? p : NULL;
}

int txn_marker_parse(const struct batch *b, struct txn_marker *out)
{
    enum { TYPE_ABORT = 0, TYPE_COMMIT = 1 };
    struct record_iter *it;
    struct record r;
    *out = (struct txn_marker){0};
    if (b->record_count == 0) /* emptied by compaction */
        return 0;
    int rc = record_iter_open(b, &it);
    if (rc)
        return rc;
    rc = record_iter_next(it, &r);
    if (rc == 1) {
        struct reader key = reader_of(r.key.p, r.key.len < 0 ? 0 : (size_t)r.key.len);
        struct reader value = reader_of(r.value.p, r.value.len < 0 ? 0 : (size_t)r.value.len);
        int16_t version = reader_i16(&key);
        int16_t type = reader_i16(&key);
        rc = key.bad || version < 0 ? -EBADMSG : 0;
        if (!rc && (type == TYPE_ABORT || type == TYPE_COMMIT)) {
            version = reader_i16(&value);
            out->coordinator_epoch = reader_i32(&value);
            out->commit = type == TYPE_COMMIT;
            out->valid = !value.bad && version >= 0;
            rc = out->valid ? 0 : -EBADMSG;
        }
    } else if (rc == 0) {
        rc = -EBADMSG;
    }
    record_iter_close(it);
    return rc;
}

void producer_state_init(struct producer_state *ps)
{
    hmap_init(&ps->by_id);
    list_init(&ps->open);
    list_init(&ps->unreplicated);
    list_init(&ps->spare);
    ps->spare_n = 0;
}

void producer_state_free(struct producer_state *ps)
{
    for (struct hnode *n = hmap_first(&ps->by_id), *next; n; n = next) {
        next = hmap_next(&ps->by_id, n);
        free(hmap_entry(n, struct producer, node));
    }
    hmap_free(&ps->by_id);
    list_each_safe (it, &ps->unreplicated)
        free(list_entry(it, struct completed_txn, link));
    list_each_safe (it, &ps->spare)
        free(list_entry(it, struct completed_txn, link));
    producer_state_init(ps);
}

size_t producer_state_count(const struct producer_state *ps)
{
    return ps->by_id.n;
}

/* i-th newest batch. */
static const struct producer_batch *batch_at(const struct producer *p, int i)
{
    return &p->batches[(p->newest + PRODUCER_BATCHES - i) % PRODUCER_BATCHES];
}

static const struct producer_batch *find_duplicate(const struct producer *p, const struct batch *b)
{
    if (!p || p->epoch != b->producer_epoch || b->base_sequence < 0)
        return NULL;
    for (int i = 0; i < p->batches_n; i++) {
        const struct producer_batch *x = batch_at(p, i);
        if (x->last_sequence == b->last_sequence &&
            sequence_sub(x->last_sequence, x->offset_delta) == b->base_sequence)
            return x;
    }
    return NULL;
}

static enum kerr refuse(enum kerr code, const char *text, const char **why)
{
    if (why)
        *why = text;
    return code;
}

static enum kerr check_sequence(const struct producer *p, const struct batch *b, const char **why)
{
    if (!p) /* new here, or all it wrote was deleted: any sequence may come */
        return KERR_NONE;
    if (b->producer_epoch != p->epoch) {
        if (b->base_sequence != 0)
            return refuse(KERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
                          "the first batch of a new producer epoch must have sequence 0", why);
        return KERR_NONE;
    }
    int32_t last = p->batches_n ? batch_at(p, 0)->last_sequence : NO_SEQUENCE;
    if (b->base_sequence != sequence_add(last, 1))
        return refuse(KERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
                      "the batch's sequence does not follow the producer's last one", why);
    return KERR_NONE;
}

static enum kerr check_marker(const struct producer *p, const struct txn_marker *m,
                              const char **why)
{
    if (p && m->valid && p->coordinator_epoch > m->coordinator_epoch)
        return refuse(KERR_TRANSACTION_COORDINATOR_FENCED,
                      "a newer transaction coordinator has sent a marker already", why);
    return KERR_NONE;
}

enum kerr producer_check(const struct producer_state *ps, const struct batch *b,
                         const struct txn_marker *marker, enum append_origin origin,
                         const struct producer_batch **dup, const char **why)
{
    *dup = NULL;
    if (b->producer_id < 0 || origin == APPEND_REPLICATION) /* the leader has checked */
        return KERR_NONE;
    const struct producer *p = known(ps, b->producer_id);
    if (origin == APPEND_CLIENT && !marker && (*dup = find_duplicate(p, b)))
        return KERR_NONE;
    if (p && b->producer_epoch < p->epoch)
        return refuse(KERR_INVALID_PRODUCER_EPOCH, "the producer's epoch is older than the last",
                      why);
    if (marker)
        return check_marker(p, marker, why);
    if (origin == APPEND_CLIENT) {
        enum kerr err = check_sequence(p, b, why);
        if (err)
            return err;
    }
    if (p && p->txn_first_offset >= 0 && !batch_is_transactional(b))
        return refuse(KERR_INVALID_TXN_STATE,
                      "the producer has a transaction open, and the batch is not part of one", why);
    return KERR_NONE;
}

int producer_reserve_markers(struct producer_state *ps, int n)
{
    while (ps->spare_n < n) {
        struct completed_txn *t = calloc(1, sizeof(*t));
        if (!t)
            return -ENOMEM;
        list_init(&t->link);
        list_push_back(&ps->spare, &t->link);
        ps->spare_n++;
    }
    return 0;
}

int producer_reserve(struct producer_state *ps, const struct batch *b,
                     const struct txn_marker *marker)
{
    if (b->producer_id < 0 || (marker && !marker->valid))
        return 0;
    if (marker && producer_reserve_markers(ps, 1))
        return -ENOMEM;
    if (find(ps, b->producer_id))
        return 0;
    struct producer *p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    list_init(&p->open);
    p->id = b->producer_id;
    p->epoch = NO_PRODUCER_EPOCH;
    p->coordinator_epoch = -1;
    p->txn_first_offset = -1;
    if (hmap_put(&ps->by_id, &p->node, hash_int((uint64_t)p->id))) {
        free(p);
        return -ENOMEM;
    }
    return 0;
}

static void take_epoch(struct producer *p, int16_t epoch)
{
    if (p->epoch == epoch)
        return;
    p->epoch = epoch;
    p->batches_n = 0;
    p->restored = false;
}

static void push_batch(struct producer *p, const struct producer_batch *b)
{
    p->newest = (uint8_t)((p->newest + 1) % PRODUCER_BATCHES);
    p->batches[p->newest] = *b;
    if (p->batches_n < PRODUCER_BATCHES)
        p->batches_n++;
}

/* They open at rising offsets, except when a snapshot brings them in any order. */
static void open_txn(struct producer_state *ps, struct producer *p, int64_t first_offset)
{
    p->txn_first_offset = first_offset;
    struct list *after = ps->open.prev;
    while (after != &ps->open &&
           list_entry(after, struct producer, open)->txn_first_offset > first_offset)
        after = after->prev;
    list_push_front(after, &p->open);
}

static void apply_data(struct producer_state *ps, struct producer *p, const struct batch *b)
{
    take_epoch(p, b->producer_epoch);
    push_batch(
        p, &(struct producer_batch){.last_offset = b->last_offset,
                                    .timestamp = b->max_timestamp,
                                    .last_sequence = b->last_sequence,
                                    .offset_delta = (int32_t)(b->last_offset - b->base_offset)});
    p->last_timestamp = b->max_timestamp;
    if (batch_is_transactional(b) && p->txn_first_offset < 0)
        open_txn(ps, p, b->base_offset);
}

static bool apply_marker(struct producer_state *ps, struct producer *p, const struct batch *b,
                         const struct txn_marker *m, struct completed_txn *done)
{
    take_epoch(p, b->producer_epoch);
    p->coordinator_epoch = m->coordinator_epoch;
    p->last_timestamp = b->max_timestamp;
    if (p->txn_first_offset < 0) /* an empty transaction leaves no trace */
        return false;
    struct completed_txn *t = list_entry(list_pop(&ps->spare), struct completed_txn, link);
    ps->spare_n--;
    t->producer_id = p->id;
    t->first_offset = p->txn_first_offset;
    t->last_offset = b->last_offset;
    t->aborted = !m->commit;
    p->txn_first_offset = -1;
    list_remove(&p->open);
    t->last_stable_offset =
        list_empty(&ps->open) ? b->last_offset + 1
                              : list_entry(ps->open.next, struct producer, open)->txn_first_offset;
    *done = *t;
    list_push_back(&ps->unreplicated, &t->link);
    return true;
}

bool producer_apply(struct producer_state *ps, const struct batch *b,
                    const struct txn_marker *marker, struct completed_txn *done)
{
    if (b->producer_id < 0 || (marker && !marker->valid))
        return false;
    struct producer *p = find(ps, b->producer_id);
    if (marker)
        return apply_marker(ps, p, b, marker, done);
    apply_data(ps, p, b);
    return false;
}

bool producer_has_open_txn(const struct producer_state *ps, int64_t id)
{
    const struct producer *p = find(ps, id);
    return p && p->txn_first_offset >= 0;
}

int64_t producer_first_unstable(const struct producer_state *ps)
{
    int64_t first = INT64_MAX;
    if (!list_empty(&ps->open))
        first = list_entry(ps->open.next, struct producer, open)->txn_first_offset;
    list_each (it, &ps->unreplicated) {
        int64_t at = list_entry(it, struct completed_txn, link)->first_offset;
        if (at < first)
            first = at;
    }
    return first;
}

void producer_on_high_watermark(struct producer_state *ps, int64_t hw)
{
    while (!list_empty(&ps->unreplicated)) {
        struct completed_txn *t = list_entry(ps->unreplicated.next, struct completed_txn, link);
        if (t->last_offset >= hw)
            break;
        list_remove(&t->link);
        free(t);
    }
}

bool producer_has_unreplicated(const struct producer_state *ps)
{
    return !list_empty(&ps->unreplicated);
}

void producer_expire(struct producer_state *ps, int64_t now_ms, int64_t expiration_ms)
{
    for (struct hnode *n = hmap_first(&ps->by_id), *next; n; n = next) {
        struct producer *p = hmap_entry(n, struct producer, node);
        next = hmap_next(&ps->by_id, n);
        if (p->txn_first_offset >= 0 || !older_than(now_ms, p->last_timestamp, expiration_ms))
            continue;
        hmap_remove(&ps->by_id, n);
        free(p);
    }
}

bool producer_restored(const struct producer_state *ps, int64_t id)
{
    const struct producer *p = known(ps, id);
    return p && p->restored && p->batches_n > 0 && p->batches_n < PRODUCER_BATCHES;
}

/* Puts what `old` had before p's oldest batch in front of it. */
static void recall_batches(struct producer *p, const struct producer *old)
{
    int64_t oldest = batch_at(p, p->batches_n - 1)->last_offset;
    int i = 0;
    while (i < old->batches_n && batch_at(old, i)->last_offset != oldest)
        i++;
    for (i++; i < old->batches_n && p->batches_n < PRODUCER_BATCHES; i++) {
        int place = (p->newest + PRODUCER_BATCHES - p->batches_n) % PRODUCER_BATCHES;
        p->batches[place] = *batch_at(old, i);
        p->batches_n++;
    }
}

void producer_recall(struct producer_state *ps, const struct producer_state *from)
{
    hmap_each (node, &ps->by_id) {
        struct producer *p = hmap_entry(node, struct producer, node);
        const struct producer *old = p->restored ? known(from, p->id) : NULL;
        p->restored = false;
        if (old && old->epoch == p->epoch && p->batches_n > 0)
            recall_batches(p, old);
    }
}

/* ---- snapshot bytes ---- */

enum { SNAPSHOT_VERSION = 1, SNAPSHOT_CRC_AT = 2, SNAPSHOT_HEAD = 10, SNAPSHOT_ENTRY = 46 };

void producer_snapshot_encode(const struct producer_state *ps, struct buf *out)
{
    size_t start = out->len;
    uint32_t n = 0;
    buf_put_i16(out, SNAPSHOT_VERSION);
    buf_put_i32(out, 0);
    buf_put_i32(out, 0);
    hmap_each (node, &ps->by_id) {
        const struct producer *p = hmap_entry(node, struct producer, node);
        if (p->epoch < 0)
            continue;
        const struct producer_batch *last = p->batches_n ? batch_at(p, 0) : NULL;
        buf_put_i64(out, p->id);
        buf_put_i16(out, p->epoch);
        buf_put_i32(out, last ? last->last_sequence : NO_SEQUENCE);
        buf_put_i64(out, last ? last->last_offset : -1);
        buf_put_i32(out, last ? last->offset_delta : 0);
        buf_put_i64(out, p->last_timestamp);
        buf_put_i32(out, p->coordinator_epoch);
        buf_put_i64(out, p->txn_first_offset);
        n++;
    }
    if (out->failed)
        return;
    put_be32(out->p + start + 6, n);
    put_be32(out->p + start + SNAPSHOT_CRC_AT, crc32c(out->p + start + 6, out->len - start - 6));
}

const char *producer_snapshot_open(const void *p, size_t size, struct reader *entries, int32_t *n)
{
    struct reader *r = entries;
    *r = reader_of(p, size);
    int16_t version = reader_i16(r);
    uint32_t crc = (uint32_t)reader_i32(r);
    const uint8_t *checked = r->p;
    *n = reader_i32(r);
    if (r->bad)
        return "it is too short";
    if (version != SNAPSHOT_VERSION)
        return "its version is not known";
    if (crc32c(checked, size - 6) != crc)
        return "its checksum is wrong";
    if (*n < 0 || reader_left(r) != (size_t)*n * SNAPSHOT_ENTRY)
        return "its size does not fit the number of its entries";
    return NULL;
}

struct producer_snapshot_entry producer_snapshot_next(struct reader *entries)
{
    struct producer_snapshot_entry e = {.id = reader_i64(entries)};
    e.epoch = reader_i16(entries);
    e.last_sequence = reader_i32(entries);
    e.last_offset = reader_i64(entries);
    e.offset_delta = reader_i32(entries);
    e.last_timestamp = reader_i64(entries);
    e.coordinator_epoch = reader_i32(entries);
    e.txn_first_offset = reader_i64(entries);
    return e;
}

static int decode_entry(struct producer_state *ps, const struct producer_snapshot_entry *e,
                        int64_t now_ms, int64_t expiration_ms)
{
    struct batch key = {.producer_id = e->id};
    if (e->id < 0 || e->epoch < 0 || e->offset_delta < 0 || e->last_offset < -1 ||
        e->txn_first_offset < -1 || e->last_sequence < NO_SEQUENCE ||
        (e->last_offset >= 0 && e->offset_delta > e->last_offset) || find(ps, e->id))
        return -EBADMSG;
    if (e->txn_first_offset < 0 && older_than(now_ms, e->last_timestamp, expiration_ms))
        return 0;
    int err = producer_reserve(ps, &key, NULL);
    if (err)
        return err;
    struct producer *p = find(ps, e->id);
    p->epoch = e->epoch;
    p->last_timestamp = e->last_timestamp;
    p->coordinator_epoch = e->coordinator_epoch;
    p->restored = e->last_offset >= 0;
    if (e->last_offset >= 0)
        push_batch(p, &(struct producer_batch){.last_offset = e->last_offset,
                                               .timestamp = e->last_timestamp,
                                               .last_sequence = e->last_sequence,
                                               .offset_delta = e->offset_delta});
    if (e->txn_first_offset >= 0)
        open_txn(ps, p, e->txn_first_offset);
    return 0;
}

int producer_snapshot_decode(struct producer_state *ps, const void *p, size_t n, int64_t now_ms,
                             int64_t expiration_ms)
{
    struct reader r;
    int32_t entries;
    if (producer_snapshot_open(p, n, &r, &entries))
        return -EBADMSG;
    for (int32_t i = 0; i < entries; i++) {
        struct producer_snapshot_entry e = producer_snapshot_next(&r);
        int err = decode_entry(ps, &e, now_ms, expiration_ms);
        if (err) {
            producer_state_free(ps);
            return err;
        }
    }
    return 0;
}
