/* reactor_private.h - what a reactor keeps for its connections. THREADS  the reactor's only. */
#ifndef NET_REACTOR_PRIVATE_H
#define NET_REACTOR_PRIVATE_H

#include "net/frame_pool.h"
#include "net/reactor.h"

enum { REACTOR_SCRATCH = 64 * 1024 };

struct frame_pool *reactor_frames(struct reactor *r);
/* REACTOR_SCRATCH bytes to read into; good until the caller returns to the loop, so reads must not
 * nest. */
uint8_t *reactor_scratch(struct reactor *r);
/* Its place in the pool. */
int reactor_index(const struct reactor *r);

#endif
