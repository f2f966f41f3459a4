/* group_loading.h - what one partition of __consumer_offsets says, put together from its batches in
 * order: of each offset and group the last word.
 *
 * TRANSACTIONS  offsets in transactional batches count when the producer's commit marker comes;
 *               what is open at the end of the log stays pending in the loaded groups.
 *
 * DAMAGE        a record that cannot be read, or is of a kind or version that is not known, is
 *               passed over with a log line (the first few of a kind) and the rest loads.
 *
 * THREADS       one; the environment is used by group_loading_finish only, and not its executor. */
#ifndef COORDINATOR_GROUP_LOADING_H
#define COORDINATOR_GROUP_LOADING_H

#include "coordinator/group.h"
#include "protocol/record_batch.h"

struct group_loading;

/* NULL without memory. Returns owned. */
struct group_loading *group_loading_new(int32_t partition);
void group_loading_free(struct group_loading *l); /* NULL is fine */
/* The next batch, whole at b->p. 0, or -ENOMEM: the load has failed. Damage is no failure. */
int group_loading_add(struct group_loading *l, const struct batch *b);
int64_t group_loading_records(const struct group_loading *l);
int group_loading_groups(const struct group_loading *l);
/* Makes the groups: out[0 .. group_loading_groups() - 1], the caller's references. 0, or -ENOMEM
 * and none is made. Once. */
int group_loading_finish(struct group_loading *l, const struct group_env *env, struct group **out);

#endif
