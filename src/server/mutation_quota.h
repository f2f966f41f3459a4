/* mutation_quota.h - controller_mutation_rate (KIP-599) of one request that makes or deletes
 * partitions. Versions that know THROTTLING_QUOTA_EXCEEDED get it for what is over the quota
 * (strict); older ones, and topics made on the way, are always served, and their client is held
 * back. Either way the answer says for how long.
 *
 * OWNERSHIP  part of the request's op, in its arena.
 *
 * THREADS    one at a time: first whoever writes topics, then the request's reactor. */
#ifndef SERVER_MUTATION_QUOTA_H
#define SERVER_MUTATION_QUOTA_H

#include "controller/topic_admin.h"
#include "server/request.h"

struct mutation_quota {
    const struct request *req;
    bool strict;
    int64_t wait_ms, waits_since_ms; /* the last that was told */
    struct topic_permit permit;      /* for topic_admin */
};

/* strict_since: the first version of the request that knows the error; INT16_MAX = none does. */
void mutation_quota_init(struct mutation_quota *m, const struct request *req, int strict_since);
/* false: THROTTLING_QUOTA_EXCEEDED; nothing was counted. */
bool mutation_quota_take(struct mutation_quota *m, int32_t partitions);
/* Before the answer: the client is held back, as far as that is not over yet. */
void mutation_quota_end(const struct mutation_quota *m, struct request *req);

#endif
