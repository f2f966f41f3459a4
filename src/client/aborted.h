/* aborted.h - which batches of a fetch answer belong to aborted transactions, for read_committed.
 *
 * The broker lists the transactions, aborted, that overlap the answer: producer and first offset.
 * From the batch that reaches that offset on, up to its abort marker, the producer's transactional
 * batches are out. So all batches must be shown, in their order, those too that are not wanted.
 *
 * THREADS one at a time. */
#ifndef CLIENT_ABORTED_H
#define CLIENT_ABORTED_H

#include "protocol/msg/fetch.h"
#include "protocol/record_batch.h"

struct aborted; /* NULL: none is listed */

/* Copies what is listed. Returns owned, in *out. false without memory. */
bool aborted_new(const struct fetch_response_partition *r, struct aborted **out);
void aborted_free(struct aborted *a); /* NULL is fine */
/* Is the batch, the next one, to be left out? */
bool aborted_has(struct aborted *a, const struct batch *b);

#endif
