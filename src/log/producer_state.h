/* producer_state.h - what a log knows of its idempotent and transactional producers.
 *
 * Per producer id: epoch, the newest five batches (to recognise what is sent twice), the epoch of
 * the transaction coordinator that sent the last marker, and where its open transaction began. Per
 * log: the open transactions, and those that are complete but whose marker is not yet below the
 * high watermark; from both follows the first unstable offset.
 *
 * USE         check, reserve, write the bytes, apply. After reserve nothing can fail.
 * INVARIANTS  at most five batches a producer; an open transaction keeps its producer from
 *             expiring; open transactions stand in order of their first offset.
 * THREADS     one at a time (the log's mutex). Memory is taken only once there is a producer. */
#ifndef LOG_PRODUCER_STATE_H
#define LOG_PRODUCER_STATE_H

#include "base/buf.h"
#include "base/hmap.h"
#include "protocol/records_append.h"

enum { PRODUCER_BATCHES = 5 };

struct producer_batch {
    int64_t last_offset;
    int64_t timestamp;
    int32_t last_sequence;
    int32_t offset_delta; /* last offset - first offset, and last sequence - first */
};

struct producer {
    struct hnode node; /* producer_state.by_id */
    struct list open;  /* producer_state.open, while it has a transaction open */
    int64_t id;
    int64_t last_timestamp;
    int64_t txn_first_offset;  /* -1: none open */
    int32_t coordinator_epoch; /* -1: no marker seen */
    int16_t epoch;             /* -1: nothing known (deleted, or reserved and never applied) */
    uint8_t batches_n;
    uint8_t newest; /* place of the newest batch */
    /* It came from a snapshot, which keeps the newest batch only: those before it may be known to
     * the log. */
    bool restored;
    struct producer_batch batches[PRODUCER_BATCHES];
};

struct completed_txn {
    struct list link;
    int64_t producer_id, first_offset, last_offset;
    int64_t last_stable_offset; /* once it is complete */
    bool aborted;
};

struct producer_state {
    struct hmap by_id;
    struct list open;         /* of producer, by first offset */
    struct list unreplicated; /* of completed_txn, in order of their markers */
    struct list spare;        /* of completed_txn, for markers to come */
    int spare_n;
};

/* What the record of a control batch says. */
struct txn_marker {
    bool valid; /* an end-of-transaction marker; false: another kind, or emptied by compaction */
    bool commit;
    int32_t coordinator_epoch;
};
/* b->p is the whole batch. 0; -EBADMSG when it is no control record at all; -ENOMEM. */
int txn_marker_parse(const struct batch *b, struct txn_marker *out);

void producer_state_init(struct producer_state *ps);
void producer_state_free(struct producer_state *ps); /* empty, ready for use again */
size_t producer_state_count(const struct producer_state *ps);

/* May this batch with a producer id be appended? *dup: the same batch was written before (then
 * NONE). marker: of a control batch, else NULL. `why` (may be NULL) gets a static text on refusal.
 */
enum kerr producer_check(const struct producer_state *ps, const struct batch *b,
                         const struct txn_marker *marker, enum append_origin origin,
                         const struct producer_batch **dup, const char **why);
/* Memory for applying it. 0 or -ENOMEM. */
int producer_reserve(struct producer_state *ps, const struct batch *b,
                     const struct txn_marker *marker);
/* Memory for n markers that are applied one after the other. 0 or -ENOMEM. */
int producer_reserve_markers(struct producer_state *ps, int n);
/* The batch is in the log. Offsets are those it got. True with *done filled when a transaction
 * ended with it. */
bool producer_apply(struct producer_state *ps, const struct batch *b,
                    const struct txn_marker *marker, struct completed_txn *done);

bool producer_has_open_txn(const struct producer_state *ps, int64_t id);
/* min over open and unreplicated transactions; INT64_MAX when there is none. */
int64_t producer_first_unstable(const struct producer_state *ps);
/* Forgets completed transactions whose marker is below the high watermark. */
void producer_on_high_watermark(struct producer_state *ps, int64_t hw);
bool producer_has_unreplicated(const struct producer_state *ps);
/* Forgets producers without an open transaction whose last record is that old. */
void producer_expire(struct producer_state *ps, int64_t now_ms, int64_t expiration_ms);

/* Could batches before those that are known of this producer be found in the log? */
bool producer_restored(const struct producer_state *ps, int64_t id);
/* `from` holds what a stretch of the log says that ends where the snapshot was taken: all producers
 * that came from it get back the batches before their newest one. */
void producer_recall(struct producer_state *ps, const struct producer_state *from);

/* ---- snapshot bytes ----
 *   0 int16 version 1   2 uint32 CRC-32C of what follows   6 int32 entries
 *   each of 46 bytes: int64 id, int16 epoch, int32 last sequence, int64 last offset, int32 offset
 *   delta, int64 last timestamp, int32 coordinator epoch, int64 first offset of the open
 *   transaction. */
struct producer_snapshot_entry {
    int64_t id;
    int16_t epoch;
    int32_t last_sequence; /* -1, like last_offset, when no batch is remembered */
    int64_t last_offset;
    int32_t offset_delta;
    int64_t last_timestamp;
    int32_t coordinator_epoch;
    int64_t txn_first_offset; /* -1: none open */
};
/* Checks head, size and checksum; *entries then stands before the first of the *n entries. NULL, or
 * what is wrong (static). */
const char *producer_snapshot_open(const void *p, size_t size, struct reader *entries, int32_t *n);
/* The next one, as it is written: nothing in it has been judged. */
struct producer_snapshot_entry producer_snapshot_next(struct reader *entries);

void producer_snapshot_encode(const struct producer_state *ps, struct buf *out);
/* Into an empty state; leaves out producers that are expired. 0; -EBADMSG; -ENOMEM. On failure the
 * state is empty. */
int producer_snapshot_decode(struct producer_state *ps, const void *p, size_t n, int64_t now_ms,
                             int64_t expiration_ms);

#endif
