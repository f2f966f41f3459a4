/* deletion_wait.h - waits until topics are deleted to the end: folders renamed, nodes gone, names
 * free again. The metadata cache forgets a topic earlier, when its deletion begins.
 *
 * It ends when none of the names is left under /admin/delete_topics, at the deadline, or when the
 * connection closes.
 *
 * OWNERSHIP  the request's arena.
 *
 * THREADS    everything on the request's reactor. */
#ifndef SERVER_DELETION_WAIT_H
#define SERVER_DELETION_WAIT_H

#include "metadata/store.h"
#include "server/name_set.h"
#include "server/request.h"

struct deletion_wait {
    struct request *req;
    const struct name_set *names;
    /* The last call, exactly once: answers the request. */
    void (*done)(struct deletion_wait *w);
    void *arg;
    /* private */
    struct store_watch watch;
    struct store_request read;
    struct store_op op;
    struct timer deadline, pause;
    int left_n; /* topics whose deletion was under way at the last look */
    bool reading, changed, ending;
};

/* Fills in req, names, done and arg first. done may come before this returns. */
void deletion_wait_start(struct deletion_wait *w, int64_t timeout_ms);

#endif
