/* batch_builder.h - making record batches (magic 2), and message sets (magic 0, 1) for old peers.
 *
 * MAGIC 0, 1  without a codec each record becomes one message with its own offset; with one, all
 *             become inner messages of one wrapper: their offsets are absolute in magic 0, relative
 *             to the first in magic 1. snappy is written in the xerial framing, lz4 for magic 0
 *             with the old header check.
 *
 * Offsets are given by the caller and rise; the batch's base offset is that of the first record. */
#ifndef PROTOCOL_BATCH_BUILDER_H
#define PROTOCOL_BATCH_BUILDER_H

#include "protocol/record_batch.h"

struct batch_builder; /* THREADS one */

struct batch_options {
    int8_t magic; /* 0, 1 or 2 */
    enum codec codec;
    int level; /* CODEC_LEVEL_DEFAULT */
    bool log_append_time;
    int64_t log_append_timestamp; /* when log_append_time */
    bool transactional, control;
    int32_t leader_epoch; /* -1 unknown */
    int64_t producer_id;  /* -1 none */
    int16_t producer_epoch;
    int32_t base_sequence;
    /* For compaction, magic 2; -1 otherwise. The range of the original batch, of which some records
     * are gone; and the time from which its tombstones may be dropped, which takes the place of the
     * base timestamp. */
    int64_t base_offset, last_offset;
    int64_t delete_horizon;
};
#define BATCH_OPTIONS_DEFAULT                             \
    ((struct batch_options){.magic = 2,                   \
                            .level = CODEC_LEVEL_DEFAULT, \
                            .leader_epoch = -1,           \
                            .producer_id = -1,            \
                            .producer_epoch = -1,         \
                            .base_sequence = -1,          \
                            .base_offset = -1,            \
                            .last_offset = -1,            \
                            .delete_horizon = -1})

struct batch_builder *batch_builder_new(const struct batch_options *o);
void batch_builder_free(struct batch_builder *b);
/* Forgets all records and takes new options; keeps memory for reuse. */
void batch_builder_reset(struct batch_builder *b, const struct batch_options *o);
/* Copies the record. headers: n pairs; dropped below magic 2. 0; -ENOMEM; -EINVAL when the offset
 * is negative, does not rise, or is further than 2^31 - 1 from the first one; -EMSGSIZE when the
 * batch would pass 2^31 - 1 bytes. After an error the builder is as before. */
int batch_builder_add(struct batch_builder *b, int64_t offset, int64_t timestamp, struct bytes key,
                      struct bytes value, const struct record_header *headers, int headers_n);
/* The same with a record as an iterator gives it: headers are copied as they are. */
int batch_builder_add_record(struct batch_builder *b, int64_t offset, const struct record *r);
/* Memory for a batch of so many bytes, uncompressed, at once instead of by and by. false without.
 */
bool batch_builder_reserve(struct batch_builder *b, size_t bytes);
int32_t batch_builder_count(const struct batch_builder *b);
/* Bytes so far, uncompressed, with the head. */
size_t batch_builder_size(const struct batch_builder *b);
/* Upper bound of what adding such a record costs. */
size_t batch_builder_record_size(const struct batch_options *o, struct bytes key,
                                 struct bytes value, const struct record_header *headers,
                                 int headers_n);
/* Sets what is known only when the batch is sent: producer fields of `o`. */
void batch_builder_set_producer(struct batch_builder *b, int64_t id, int16_t epoch,
                                int32_t base_sequence);
/* Compresses, fills the head and CRC, appends to out (which, when it has no memory yet, is given
 * the builder's own where that saves a copy); the builder is empty again. Nothing is appended when
 * it holds no record. 0; -ENOMEM; -EINVAL for a level out of range, or zstd below magic 2. After an
 * error builder and out are as before (but for out->failed). */
int batch_builder_finish(struct batch_builder *b, struct buf *out);

/* A transaction marker: 78 bytes appended to out. */
int batch_build_marker(bool commit, int64_t offset, int64_t timestamp, int32_t leader_epoch,
                       int64_t producer_id, int16_t producer_epoch, int32_t coordinator_epoch,
                       struct buf *out);

/* What compaction leaves of a magic 2 batch that must be remembered though all its records are
 * gone: its head, 61 bytes, without records, codec and delete horizon. 0 or -ENOMEM. */
int batch_build_empty(const struct batch *original, struct buf *out);

#endif
