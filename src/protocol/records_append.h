/* records_append.h - what is done to records between the socket and the log: checks, and offsets,
 * epoch and timestamps put in where the bytes lie, or, where the topic demands another codec or
 * format, a rebuild.
 *
 * Two steps, so that no decompression and no CRC happens under the partition's lock:
 *   records_prepare   no lock; checks everything that does not depend on the log; rebuilds if
 * needed records_assign    under the lock; writes offsets and leader epoch; O(number of batches)
 *
 * THREADS  one at a time on the same bytes. */
#ifndef PROTOCOL_RECORDS_APPEND_H
#define PROTOCOL_RECORDS_APPEND_H

#include "base/arena.h"
#include "protocol/errors.h"
#include "protocol/record_batch.h"

enum append_origin { APPEND_CLIENT, APPEND_COORDINATOR, APPEND_REPLICATION };

#define COMPRESSION_PRODUCER (-1) /* keep the producer's codec */

struct append_policy {
    enum append_origin origin;
    int produce_version; /* of the Produce request: 0-2 take magic 0 and 1; -1 when not from a
                            request */
    int32_t max_message_bytes;
    int compression; /* enum codec, or COMPRESSION_PRODUCER */
    int level;       /* CODEC_LEVEL_DEFAULT or the topic's */
    bool log_append_time;
    bool keys_required;                  /* compacted topic */
    int64_t before_max_ms, after_max_ms; /* INT64_MAX = no limit */
    int64_t now_ms;
};

struct record_error {
    int32_t batch_index;
    const char *message; /* static, or in the arena */
};

/* Kinds of faults that are counted. */
enum record_fault { FAULT_OTHER, FAULT_NO_KEY, FAULT_MAGIC, FAULT_CRC, FAULT_OFFSET };

struct prepared_batch { /* one entry of the prepared bytes */
    size_t at;
    struct batch head;
};

struct prepared {
    uint8_t *p; /* the caller's bytes, or `rebuilt.p` */
    size_t len; /* whole entries only; a partial tail is cut */
    struct buf rebuilt;
    struct prepared_batch *batches; /* in the arena */
    int batches_n;
    int64_t offsets_n;           /* offsets that the append takes (leader) */
    int64_t max_timestamp;       /* -1 without any */
    int64_t max_timestamp_delta; /* last offset of the batch with the maximum, relative to the first
                                    offset */
    int64_t first_offset, last_offset; /* as found; after records_assign: as assigned */
    enum codec source_codec;
    uint64_t txn_guard; /* the appender's word on transactions that open (log's txn_guards.h); 0
                           after records_prepare */
    /* on failure */
    struct record_error *errors; /* in the arena */
    int errors_n;
    enum record_fault fault;
    const char *message; /* why, for the response; NULL = the code's own text */
};

/* Checks `n` bytes at p (writable: the frame) by the rules for the origin; may rebuild. KERR_NONE,
 * or the code that the partition answers. No entry at all: NONE with batches_n 0 (the request-level
 * rule for Produce v3+, INVALID_RECORD, is applied here when produce_version >= 3). prepared_free
 * in every case.
 *
 * CORRUPT_MESSAGE: a size, magic or checksum is wrong, or replicated offsets do not rise.
 * INVALID_RECORD, INVALID_TIMESTAMP: as the rules say; also data that does not decode or passes
 * codec_cap. UNKNOWN_SERVER_ERROR: no memory. On an error the bytes are as they were; single
 * records at fault are all in `errors`, as far as the arena takes them. From a leader's origin
 * exactly one magic 2 batch comes out; replicated entries are left as they are, of any magic. */
enum kerr records_prepare(const struct append_policy *policy, uint8_t *p, size_t n, struct arena *a,
                          struct prepared *out);
void prepared_free(struct prepared *pr);
/* Gives the records offsets from `first_offset` on and the leader epoch. (Replication: not called.)
 */
void records_assign(struct prepared *pr, int64_t first_offset, int32_t leader_epoch);

#endif
