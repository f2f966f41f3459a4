/* fetch_threads.h - where a broker's fetchers live: a thread with a loop for each.
 *
 * A thread that is not needed any more is waited for by a worker. */
#ifndef SERVER_FETCH_THREADS_H
#define SERVER_FETCH_THREADS_H

#include "base/workers.h"
#include "replica/fetchers.h"

struct fetch_threads;

/* NULL without memory. Borrows the workers. `peers`: how they connect; its loop and executor are
 * each thread's own. */
struct fetch_threads *fetch_threads_new(struct workers *w, const struct remote_peers *peers);
struct fetch_places fetch_threads_places(struct fetch_threads *t);
/* Waits until all places are closed. Before the workers stop. @blocks. NULL is fine. */
void fetch_threads_await(struct fetch_threads *t);
void fetch_threads_free(struct fetch_threads *t); /* after that; NULL is fine */

#endif
