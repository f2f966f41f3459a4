/* chain.h - bytes on their way out: a list of memory pieces and file ranges, sent from the head by
 * writev and sendfile until the socket takes no more. Short writes, TLS (which cannot sendfile) and
 * throttling are dealt with here and nowhere else.
 *
 * OWNERSHIP  a chain owns its memory and one reference on each file; chain_free lets go of the rest
 *            at any point. A chain must not be copied or moved as a struct (use chain_append).
 * THREADS    one at a time. The thread that sends file ranges must have SIGPIPE blocked or ignored
 *            (sendfile has no MSG_NOSIGNAL); reactors do (reactor.c). */
#ifndef NET_CHAIN_H
#define NET_CHAIN_H

#include "base/buf.h"
#include "base/file.h"
#include "base/list.h"
#include "protocol/codec.h"

struct chain {
    struct list pieces;
    uint64_t left;   /* bytes not yet sent */
    uint64_t memory; /* that the chain holds: of an answer, all until its last byte is sent */
};

void chain_init(struct chain *c);
void chain_free(struct chain *c);
/* Takes the buffer's memory (b is empty afterwards). 0 or -ENOMEM (then nothing is taken; a failed
 * buffer is one). */
int chain_add_buf(struct chain *c, struct buf *b);
/* Takes its own reference on the file. 0 or -ENOMEM. */
int chain_add_file(struct chain *c, struct file *f, int64_t pos, uint64_t len);
/* Takes an encoded message apart: memory and splices in order, with the 4-byte frame length in
 * front if `framed`. The writer is empty afterwards. 0; -ENOMEM, -EMSGSIZE (over 2 GiB): then
 * nothing is taken. */
int chain_add_writer(struct chain *c, struct writer *w, bool framed);
/* Moves all pieces of `from` to the end of `to`. */
void chain_append(struct chain *to, struct chain *from);

/* Sends to the (non-blocking) socket what it takes. Returns bytes sent (>= 0, also when the socket
 * is full: look at left), or -errno; -ENODATA when a file range is shorter than promised (truncated
 * meanwhile): the connection must close. At most `budget` bytes, so that one connection cannot hold
 * the loop. */
ssize_t chain_send(struct chain *c, int fd, size_t budget);
/* The first bytes of the chain, which stay in it: n of them, or all there are. *at is where they
 * lie, or `tmp` (n bytes), to which they were copied. Count, or -errno as chain_read. @blocks on
 * file pieces */
ssize_t chain_peek(const struct chain *c, void *tmp, size_t n, const uint8_t **at);
/* The first n bytes are done with. */
void chain_drop(struct chain *c, uint64_t n);
/* Copies up to n bytes from the head to p and drops them (TLS, tests). Count, or -errno. @blocks on
 * file pieces */
ssize_t chain_read(struct chain *c, void *p, size_t n);

#endif
