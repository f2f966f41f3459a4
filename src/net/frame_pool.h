/* frame_pool.h - memory for incoming frames, kept for reuse on one thread.
 *
 * A frame of 1 MB in fresh memory costs 256 page faults, about as much as its checksum; so buffers
 * are kept in size classes (powers of two) and handed out again, newest first. What was not needed
 * for a while goes back to the system.
 *
 * A frame's declared length is only a promise, so memory follows what has arrived: a frame begins
 * with 64 KiB at most and doubles as it fills up. A kept buffer is already there and may be handed
 * out at full size at once, but only up to lent_max over all frames that are still arriving: so
 * clients that promise much and send little cannot pin memory.
 *
 * Under AddressSanitizer nothing is kept and sizes are exact, so that it sees overruns and late
 * use.
 *
 * THREADS  one. */
#ifndef NET_FRAME_POOL_H
#define NET_FRAME_POOL_H

#include "base/executor.h"

enum { FRAME_CLASSES = 18 }; /* 512 B << 17 = 64 MiB; larger ones are never kept */

/* One frame's memory. p NULL = none. */
struct frame_mem {
    uint8_t *p;
    size_t cap;
    bool lent; /* counted in the pool's lent */
};

struct frame_class {
    void *free; /* the first word of a kept buffer is the next one */
    uint32_t n;
    uint32_t low; /* least n since the last trim: that many were not needed */
};

struct frame_pool {
    struct frame_class classes[FRAME_CLASSES];
    size_t kept, kept_max;
    size_t lent, lent_max;
    bool exact;
    struct executor *ex; /* for trimming; NULL = never */
    struct timer trim;
};

/* Keeps at most kept_max bytes. Borrows the executor (the pool is used on its thread). */
void frame_pool_init(struct frame_pool *fp, size_t kept_max, struct executor *ex);
/* All frames must be back. On the pool's thread. */
void frame_pool_free(struct frame_pool *fp);
/* Memory to begin a frame of `len` bytes with; may be less than len. 0 or -ENOMEM. */
int frame_pool_get(struct frame_pool *fp, size_t len, struct frame_mem *out);
/* More room for a frame of `len` bytes whose memory is full (cap < len). 0, or -ENOMEM with nothing
 * changed. */
int frame_pool_grow(struct frame_pool *fp, size_t len, struct frame_mem *m);
/* The frame is complete: a lent buffer is now backed by bytes. */
void frame_pool_arrived(struct frame_pool *fp, struct frame_mem *m);
/* Back to the pool; m is empty afterwards. None is fine. */
void frame_pool_put(struct frame_pool *fp, struct frame_mem *m);
/* To the system, without a pool. @thread any */
void frame_mem_free(struct frame_mem *m);
/* Frees what was not needed since the last call (the timer calls it). */
void frame_pool_trim(struct frame_pool *fp);

#endif
