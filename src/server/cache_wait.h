/* cache_wait.h - a request that waits until the metadata cache shows something: leaders of a new
 * topic, the end of a deleted one. It ends when the cache shows it, at the deadline, or when its
 * connection closes or has closed.
 *
 * OWNERSHIP  the request's arena; gone with the answer.
 *
 * THREADS    everything on the request's reactor. */
#ifndef SERVER_CACHE_WAIT_H
#define SERVER_CACHE_WAIT_H

#include <stdatomic.h>

#include "metadata/metadata_cache.h"
#include "server/request.h"

struct cache_wait {
    struct request *req;
    /* Does the cache show it? */
    bool (*shown)(struct cache_wait *w, const struct metadata_snapshot *s);
    /* The last call, exactly once: answers the request. */
    void (*done)(struct cache_wait *w);
    void *arg;
    /* private */
    struct metadata_listener listener;
    struct timer deadline;
    struct task task;
    atomic_bool posted; /* task is in the reactor's queue */
    bool ending;
};

/* Fills in req, shown, done and arg first. timeout_ms <= 0: done at once. done may come before this
 * returns. */
void cache_wait_start(struct cache_wait *w, int64_t timeout_ms);

#endif
