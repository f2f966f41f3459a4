/* txn_records.h - the records of __transaction_state.
 *
 *   key    int16 version 0, the transactional id
 *   value  int16 version, then the fields of TransactionLogValue; none at all (a tombstone): the id
 *          is forgotten. Versions 0 and 1 are read, 0 is written.
 *
 * Decoded text is borrowed from the bytes.
 *
 * THREADS  any: no state. */
#ifndef COORDINATOR_TXN_RECORDS_H
#define COORDINATOR_TXN_RECORDS_H

#include "base/arena.h"
#include "base/buf.h"
#include "coordinator/txn.h"

/* 0; -EBADMSG; -ENOTSUP for a kind of key that is not known. */
int txn_key_decode(struct bytes key, struct str *id);
void txn_key_put(struct buf *out, struct str id);
/* 0, and the image is the caller's (txn_image_free); -EBADMSG, -ENOTSUP, -ENOMEM. */
int txn_value_decode(struct bytes value, struct arena *a, struct txn_image *out);
/* `a` is for the work. false: without memory, or a text that is too long. */
bool txn_value_put(struct buf *out, const struct txn_image *i, struct arena *a);

#endif
