/* client_quotas.h - how much clients may send, fetch and have worked, a second, on this broker; and
 * how long one that passed its quota is held back (KIP-219: it is answered at once, its answer says
 * how long, and its connection is not read for that time).
 *
 * A counter is shared as the quota that holds says: one for each user and client id when it names
 * or means both, else one for the user, or for the client id. Counters that would be empty are
 * dropped, so memory follows the clients of the last seconds. A change of quotas holds at once,
 * for what was counted before, too. Of a kind without any quota nothing is counted.
 *
 * THREADS  any. Times are monotonic ms of the caller's clock. */
#ifndef SERVER_CLIENT_QUOTAS_H
#define SERVER_CLIENT_QUOTAS_H

#include "base/rate.h"
#include "server/quota_limits.h"

struct client_quotas;

/* NULL without memory. */
struct client_quotas *client_quotas_new(struct rate_window window);
/* A rate of each client id for which nothing else is set (quota.producer.default of Kafka 2.3). 0
 * or -ENOMEM. Once a kind, before others use it. */
int client_quotas_set_default(struct client_quotas *q, enum quota_kind kind, double rate);
void client_quotas_free(struct client_quotas *q);

/* Takes over what the store says of a user, a client id or both. 0 or -ENOMEM. */
int client_quotas_set(struct client_quotas *q, const struct quota_entity *e,
                      struct config_list list);
/* Is any quota of this kind set? Cheap. */
bool client_quotas_any(const struct client_quotas *q, enum quota_kind kind);

/* Counts; returns the ms to hold the client back, 0 = none. The value is bytes, or percent of a
 * second's time of one thread for QUOTA_REQUEST. */
int64_t client_quotas_record(struct client_quotas *q, enum quota_kind kind, struct str user,
                             struct str client, double value, int64_t now_ms);
/* The same for the bytes of a fetch's records. When the client is held back the records do not go
 * out and are not counted (*empty); but a batch that no waiting would ever make room for goes out,
 * counted, when nothing else speaks against it: else its reader would stand before it for ever. */
int64_t client_quotas_record_fetch(struct client_quotas *q, struct str user, struct str client,
                                   double bytes, int64_t now_ms, bool *empty);
/* Topic changes (controller_mutation_rate, KIP-599): `partitions` that are made or deleted, by a
 * bucket that holds what the rate gives in the whole window. strict: *refused, and nothing counts,
 * when some are owed already; else they count, and are never refused. The ms to hold the client
 * back, 0 = none. */
int64_t client_quotas_mutate(struct client_quotas *q, struct str user, struct str client,
                             double partitions, bool strict, int64_t now_ms, bool *refused);
/* Before others use it; without it the window is that of the other kinds. */
void client_quotas_set_mutation_window(struct client_quotas *q, struct rate_window window);
/* For metrics: each counter of a kind (not QUOTA_MUTATION), its rate, and how long its clients
 * would be held back now; names are null where it is shared by all. Under the lock: `each` is
 * quick. */
void client_quotas_each(struct client_quotas *q, enum quota_kind kind, int64_t now_ms,
                        void (*each)(void *arg, struct str user, struct str client, double rate,
                                     int64_t throttle_ms),
                        void *arg);
/* Takes back what was counted. */
void client_quotas_unrecord(struct client_quotas *q, enum quota_kind kind, struct str user,
                            struct str client, double value, int64_t now_ms);
/* What an idle client may take at once without being held back; INFINITY without a quota. */
double client_quotas_burst(struct client_quotas *q, enum quota_kind kind, struct str user,
                           struct str client);
/* Counters alive, for tests. */
int client_quotas_counters(struct client_quotas *q, enum quota_kind kind);

#endif
