/* request_later.h - what handlers leave for later: work on a worker, work in the queue of settings,
 * waits for partitions.
 *
 * Work counts as the broker's (broker_async_begin), so that a stop awaits it; its `done`, on the
 * connection's reactor, answers the request and calls broker_async_end last.
 *
 * OWNERSHIP  jobs, ops and pendings lie in the request's arena.
 *
 * THREADS    the connection's reactor. */
#ifndef SERVER_REQUEST_LATER_H
#define SERVER_REQUEST_LATER_H

#include "base/workers.h"
#include "replica/pending.h"
#include "server/control_queue.h"
#include "server/request.h"

/* work on some worker. */
void request_work(struct request *req, struct job *job, void (*work)(struct job *job),
                  void (*done)(struct job *job));
/* work in its turn among all that reads and writes settings (entity_configs.h). */
void request_configure(struct request *req, struct control_op *op,
                       void (*work)(struct control_op *op), void (*done)(struct control_op *op));

/* Watches n partitions, as `at` gives them (NULL: none at that place), until ops->changed says that
 * it is enough, the time is over, or the client goes. ops->finish may come before the call returns:
 * CANCELLED when the client has gone already, EXPIRED without memory to wait. */
void request_wait(struct request *req, struct pending *p, const struct pending_ops *ops,
                  struct partition *(*at)(struct pending *p, int i), int n, int64_t timeout_ms);

#endif
