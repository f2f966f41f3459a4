/* sim_keyed.h - the committed records of a compacted topic, by key: what every replica must have
 * below its high watermark, whatever its cleaner has thrown away: of each key the latest record,
 * all tombstones and markers (delete.retention.ms is longer than a run), and nothing that was not
 * committed. A record of an aborted transaction may go. */
#ifndef TESTS_SIM_SIM_KEYED_H
#define TESTS_SIM_SIM_KEYED_H

#include "protocol/record_batch.h"
#include "sim.h"

struct keyed;
struct keyed *keyed_new(void);
/* The next committed batch, as it was before any cleaning. */
void keyed_add(struct keyed *k, const struct batch *b);

/* Walks a replica's log from `at` to `to`. What is not there may only be older than something below
 * `has`: that is in this log, or, in one that is copied from another whose cleaner has been there,
 * will be. */
struct keyed_look {
    const struct keyed *k;
    int64_t at, to, has;
    const char *(*who)(void);
    int32_t *missing; /* its own */
    int32_t missing_n;
};
/* This batch is the next one; the same as it was committed, byte for byte, or cleaned. */
void keyed_see(struct keyed_look *l, const struct batch *b, bool same);
/* There is no more: now it is judged. */
void keyed_seen(struct keyed_look *l);

#endif
