/* journal_format.h - bytes of the embedded store's two files. No files in here: encode into a
 * buffer, decode into a tree.
 *
 * JOURNAL    header: magic (8), int64 base, uint32 CRC-32C of the 16 bytes before. Then frames:
 *            uint32 length, uint32 CRC-32C, `length` bytes: transactions back to back, each
 *              int64 zxid, int64 wall ms, uint32 n, n times:
 *              int8 type (enum store_op_type: CREATE, SET, DELETE), int16 path length, path,
 *              int32 data length (-1 null), data. Integers are big-endian.
 *            A frame is what one fsync made durable; the next one is written only afterwards. So a
 *            bad frame in front of a good one is damage, a bad one with nothing good behind it is
 *            the torn end of a crash.
 * BASE       the journal needs a snapshot that reaches at least `base` (0: none needed).
 *            Transactions up to the snapshot's zxid are skipped.
 * SNAPSHOT   magic (8), int64 zxid, uint32 n, n nodes in the order of tree_each: int16 path length,
 *            path, int32 data length, data, int32 version, int64 czxid, mzxid, ctime, mtime,
 *            uint32 children made; then the uint32 CRC-32C of all before.
 * THREADS    any. */
#ifndef METADATA_JOURNAL_FORMAT_H
#define METADATA_JOURNAL_FORMAT_H

#include "base/buf.h"
#include "metadata/tree.h"

enum { JOURNAL_HEADER_BYTES = 20, JOURNAL_FRAME_BYTES = 8, JOURNAL_FRAME_MAX = 64 << 20 };

void journal_put_header(struct buf *b, int64_t base);

/* Starts a transaction; returns where its count of operations stands, for journal_put_op. */
size_t journal_put_txn(struct buf *b, int64_t zxid, int64_t now_ms);
void journal_put_op(struct buf *b, size_t count_at, enum store_op_type type, const char *path,
                    struct bytes data);
/* The eight bytes that go before a frame's payload. */
void journal_frame_head(const struct buf *payload, uint8_t head[JOURNAL_FRAME_BYTES]);

/* Applies the journal in p[0..n) to the tree. *zxid: in, how far the tree is; out, how far it came.
 * *good: the length of the part that is whole; less than n means a torn end. 0; -EBADMSG damaged,
 * with position and reason in err; -ENOMEM. */
int journal_decode(const uint8_t *p, size_t n, struct tree *t, int64_t *zxid, size_t *good,
                   char *err, size_t err_n);

/* 0 or -ENOMEM. */
int snapshot_encode(const struct tree *t, int64_t zxid, struct buf *b);
/* Into an empty tree. 0, -EBADMSG with the reason in err, -ENOMEM. */
int snapshot_decode(const uint8_t *p, size_t n, struct tree *t, int64_t *zxid, char *err,
                    size_t err_n);

#endif
