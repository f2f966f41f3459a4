/* sim_history.h - what a group's members were promised, and saw.
 *
 *   G2 of one generation a partition belongs to one member, by one leader's assignment (a token
 *      tells them apart; a coordinator that has just taken over may give out one that is lost with
 *      it, and its generation's number again: so those count that a commit was taken for)
 *   G3 a commit that succeeded is not undone: later generations find it, or more, and commit no
 *      less; one of an earlier generation is not taken any more
 *   G4 what is committed in the end is no less, and each record below it was processed by somebody
 *
 * DOUBT  a commit that got no answer may take effect any time while its generation lasts, also
 *        behind a later one: then that generation promises no more than it. */
#ifndef TESTS_SIM_SIM_HISTORY_H
#define TESTS_SIM_SIM_HISTORY_H

#include "sim.h"

struct history;
struct history *history_new(const char *group);

/* A member was told that these are its own. */
void history_own(struct history *h, int32_t generation, uint64_t token, int member,
                 const int32_t *partitions, int n);
/* It was given records. */
void history_processed(struct history *h, int32_t partition, int64_t from, int64_t to);
/* What the coordinator of this generation gave as committed; -1: nothing. */
void history_found(struct history *h, int32_t generation, int32_t partition, int64_t offset);
/* The latest generation that has committed something: to be taken when a commit is sent. */
int32_t history_latest(const struct history *h);
void history_committed(struct history *h, int32_t generation, uint64_t token, int32_t partition,
                       int64_t offset, int32_t latest_when_sent);
void history_doubtful(struct history *h, int32_t generation, uint64_t token, int32_t partition,
                      int64_t offset);
/* At the end. */
void history_judge(const struct history *h, int32_t partition, int64_t committed);

#endif
