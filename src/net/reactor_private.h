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
/* Work on a connection begins: is it the first of the loop's round? */
void reactor_works(struct reactor *r, int64_t now_ns);
/* How long that was ago: what is worked on now has stood in line for so long. 0: not measured. */
int64_t reactor_round_ns(const struct reactor *r, int64_t now_ns);
/* Its place in the pool. */
int reactor_index(const struct reactor *r);

#endif
