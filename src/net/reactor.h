/* reactor.h - the network threads: libuv loops that own connections. */
#ifndef NET_REACTOR_H
#define NET_REACTOR_H

#include <uv.h>

#include "base/executor.h"

struct reactor;      /* one thread */
struct reactor_pool; /* num.network.threads of them */

int reactor_pool_start(int n, struct reactor_pool **out);
/* All listeners and connections must be gone. @blocks */
void reactor_pool_stop(struct reactor_pool *p);
int reactor_pool_size(const struct reactor_pool *p);
struct reactor *reactor_pool_at(struct reactor_pool *p, int i);
/* Round-robin. @thread any */
struct reactor *reactor_pool_next(struct reactor_pool *p);

/* Where code for connections of this reactor runs. */
struct executor *reactor_executor(struct reactor *r);
uv_loop_t *reactor_loop(struct reactor *r);

#endif
