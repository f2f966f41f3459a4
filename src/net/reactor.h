/* reactor.h - the network threads: libuv loops that own connections.
 *
 * THREADS  a reactor's executor and loop may be used by anything that belongs to its thread.
 * Reactor threads have SIGPIPE blocked. */
#ifndef NET_REACTOR_H
#define NET_REACTOR_H

#include <uv.h>

#include "base/executor.h"

struct reactor;      /* one thread */
struct reactor_pool; /* num.network.threads of them, and those that were too many once */

/* n >= 1. 0 or -errno. On success *out is owned. */
int reactor_pool_start(int n, struct reactor_pool **out);
/* From now on it is known how much they wait, and requests tell how long they stood in line
 * (net_request.waited_ns). Once, before there is a connection. */
void reactor_pool_measure(struct reactor_pool *p);
/* How many ns the thread has waited for something to do since; 0 before. @thread any */
uint64_t reactor_pool_idle_ns(struct reactor_pool *p, int i);
/* All listeners and connections must be gone, and every request finished. @blocks */
void reactor_pool_stop(struct reactor_pool *p);
/* More threads, up to reactor_pool_capacity. They are used only when reactor_pool_use says so. 0 or
 * -errno, with fewer. One at a time; @thread any but a reactor */
int reactor_pool_grow(struct reactor_pool *p, int n);
/* reactor_pool_next gives the first n from now on, 1 <= n <= size. Threads beyond go on with what
 * they have. @thread any */
void reactor_pool_use(struct reactor_pool *p, int n);
int reactor_pool_size(const struct reactor_pool *p);     /* all that run */
int reactor_pool_capacity(const struct reactor_pool *p); /* fixed */
struct reactor *reactor_pool_at(struct reactor_pool *p, int i);
/* Round-robin. @thread any */
struct reactor *reactor_pool_next(struct reactor_pool *p);

/* Where code for connections of this reactor runs. */
struct executor *reactor_executor(struct reactor *r);
uv_loop_t *reactor_loop(struct reactor *r);

#endif
