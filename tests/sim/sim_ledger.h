/* sim_ledger.h - what was told about each transaction, and what readers of committed records saw.
 *
 *   T1 nothing is given to a reader of a transaction that was aborted, or whose end nobody has
 *      asked for
 *   T2 of a transaction whose commit was acknowledged every write is seen, once, in its partition,
 *      behind those before it
 *   T3 of one whose commit got no answer all writes are seen, or none
 *   T4 what a producer sends after it was fenced is not acknowledged
 *   T5 a producer id belongs to one transactional id, or to one producer without
 *   T6 the group's offset of a pipeline and its records hold together: each input counts once, and
 *      those that count are the ones below what is committed in the end */
#ifndef TESTS_SIM_SIM_LEDGER_H
#define TESTS_SIM_SIM_LEDGER_H

#include "sim.h"

enum { LEDGER_SEATS = 4 };

/* A transaction of this seat (a transactional id) begins. input: what it takes from its pipeline.
 * Its number; they rise. */
int64_t ledger_begin(int seat, int64_t input);
/* A write that is about to be sent: its number in the transaction. */
int ledger_write(int64_t txn, int32_t partition);
/* Its commit is about to be asked for; it was acknowledged; it is known never to be. One that is
 * said of after the commit was asked for, and a try got no answer, is left in doubt. */
void ledger_commit_asked(int64_t txn);
void ledger_committed(int64_t txn);
void ledger_aborted(int64_t txn);

/* A reader of committed records was given this write. */
void ledger_seen(int64_t txn, int write, int32_t partition, int64_t offset);
/* The same in the reading from end to end, in order within each partition. */
void ledger_read(int64_t txn, int write, int32_t partition, int64_t offset);
/* After that. committed: the seat's input in the end, or -1. */
void ledger_judge(const int64_t committed[LEDGER_SEATS]);

#endif
