/* group_requests.h - what the files of requests share: group_requests.c (members and lists of
 * groups) and group_requests_offsets.c. Private to them. */
#ifndef COORDINATOR_GROUP_REQUESTS_H
#define COORDINATOR_GROUP_REQUESTS_H

#include "coordinator/group_shard_private.h"

/* May requests for this group be answered here, now? */
enum kerr group_admit(const struct group_shard *s, struct str id, bool empty_id,
                      int32_t *partition);
/* Does the group belong to this shard, whoever may own its partition? */
bool group_is_mine(const struct group_shard *s, struct str id);
void group_call_no_memory(struct group_call *c);
/* The answer of a request for one group is an error. */
void group_call_refuse(struct group_call *c, enum kerr e);

struct str group_commit_id(const struct group_call *c);
void group_commit_run(struct group_shard *s, struct group_call *c, int32_t partition);
void group_commit_refuse(struct group_call *c, enum kerr e);
struct str group_txn_commit_id(const struct group_call *c);
void group_txn_commit_run(struct group_shard *s, struct group_call *c, int32_t partition);
void group_txn_commit_refuse(struct group_call *c, enum kerr e);
struct str group_offset_delete_id(const struct group_call *c);
void group_offset_delete_run(struct group_shard *s, struct group_call *c, int32_t partition);
void group_offset_delete_refuse(struct group_call *c, enum kerr e);
void group_fetch_run(struct group_shard *s, struct group_call *c);

#endif
