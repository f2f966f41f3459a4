/* framing.h - cuts a stream of bytes into frames: a 4-byte big-endian length, then that many bytes.
 *
 * Bytes come in two ways: fed from a buffer (framing_feed), which may hold many frames; or read by
 * the caller straight to where the present frame lies (framing_direct, framing_took), which saves
 * the copy for large ones. Nothing is allocated before the length was found good and the caller
 * said yes (framing_begin).
 *
 * THREADS  one; the pool's. */
#ifndef NET_FRAMING_H
#define NET_FRAMING_H

#include <sys/uio.h>

#include "net/frame_pool.h"

struct framing {
    uint32_t max_frame;
    uint8_t head[4];
    uint8_t head_n; /* bytes of the length that are here */
    bool begun;     /* memory for the body is there */
    uint32_t len;   /* of the present frame, once head_n == 4 */
    uint32_t got;   /* of its body */
    struct frame_mem mem;
    uint32_t last_len; /* of the frame before: what comes is likely to be like it */
};

enum framing_event {
    FRAMING_MORE,   /* all input is used up, the frame is not complete */
    FRAMING_LENGTH, /* the length is here and good: call framing_begin, then feed again */
    FRAMING_FRAME,  /* complete: call framing_take, then feed again */
    FRAMING_BAD,    /* the length is negative or over max_frame: framing_complaint says more */
    FRAMING_NOMEM,
};

void framing_init(struct framing *f, uint32_t max_frame);
/* Drops what is there of a frame. */
void framing_free(struct framing *f, struct frame_pool *fp);

/* Uses up bytes from *p, *n. With n 0 it says again where the frame stands. */
enum framing_event framing_feed(struct framing *f, struct frame_pool *fp, const uint8_t **p,
                                size_t *n);
/* After FRAMING_LENGTH: memory for the body. 0 or -ENOMEM. */
int framing_begin(struct framing *f, struct frame_pool *fp);
/* After FRAMING_FRAME: hands out the frame; the next one can begin. Returns its length. */
uint32_t framing_take(struct framing *f, struct frame_pool *fp, struct frame_mem *out);

/* Is the present frame's body on its way (begun and not complete)? */
static inline bool framing_in_body(const struct framing *f)
{
    return f->begun && f->got < f->len;
}
/* Where the body goes on: *n bytes at the pointer returned, grown before if it was full. NULL
 * without memory. Only while framing_in_body. */
uint8_t *framing_direct(struct framing *f, struct frame_pool *fp, size_t *n);
/* n bytes were put there. */
static inline void framing_took(struct framing *f, size_t n)
{
    f->got += (uint32_t)n;
}
/* Places for the next read: what is missing of the body, straight where it lies, and behind it the
 * scratch for what follows; only the scratch between frames. After a large frame little is read
 * ahead, so that the next large one is not copied either. Returns how many places, 0 without
 * memory. */
int framing_places(struct framing *f, struct frame_pool *fp, void *scratch, size_t scratch_n,
                   struct iovec iov[2]);
/* `got` bytes were read into these places. Returns how many of them lie in the scratch: to be fed,
 * even if there are none. */
size_t framing_placed(struct framing *f, const struct iovec iov[2], size_t got);

/* What is wrong with the length, and what the client perhaps meant to speak: "frame length -1 is
 * not within 0..104857600", "... (this looks like a TLS ClientHello)". */
void framing_complaint(const struct framing *f, char *out, size_t n);

#endif
