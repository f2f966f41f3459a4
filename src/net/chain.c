/* chain.c - the pieces of a chain and the sender.
 *
 * FORMAT      a piece is a stretch of memory or of a file. All pieces that one chain_add_* call
 * makes lie in one block (one malloc an answer), which is freed with its last piece, as is the
 *             memory that the block's pieces point into.
 * INVARIANTS  (C1) pieces leave strictly from the head, so a block's last piece is dropped last.
 *             (C2) no piece is empty. (C3) left is the sum of the pieces' left, memory
 *             that of the blocks' memory.
 *
 * NOT HERE    when to send, and what to do when the socket is full (conn_write.c, peer_link.c). */
#include "net/chain.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    SEND_IOV = 64,          /* memory pieces in one system call */
    COPY_CHUNK = 64 * 1024, /* of files that have no descriptor to send from */
    SENDFILE_MAX = 1 << 30, /* sendfile(2) itself moves at most a little under 2 GiB */
    FRAME_HEAD = 4,
};

struct piece {
    struct list link;
    const uint8_t *p;  /* memory: the next byte to send; NULL: a file range */
    struct file *file; /* one reference */
    int64_t pos;
    uint64_t left;
    void *memory;        /* freed with this piece */
    struct block *block; /* likewise */
};

struct block {
    uint8_t head[FRAME_HEAD];
    size_t memory; /* of the block and what its pieces point into */
    struct piece pieces[];
};

void chain_init(struct chain *c)
{
    list_init(&c->pieces);
    c->left = c->memory = 0;
}

static struct piece *head_piece(const struct chain *c)
{
    return list_entry(c->pieces.next, struct piece, link);
}

static void piece_free(struct chain *c, struct piece *p)
{
    list_remove(&p->link);
    file_unref(p->file);
    free(p->memory);
    if (p->block)
        c->memory -= p->block->memory;
    free(p->block); /* p lies in it */
}

void chain_free(struct chain *c)
{
    while (!list_empty(&c->pieces))
        piece_free(c, head_piece(c));
    c->left = 0;
}

void chain_append(struct chain *to, struct chain *from)
{
    list_splice(&to->pieces, &from->pieces);
    to->left += from->left;
    to->memory += from->memory;
    from->left = from->memory = 0;
}

/* ---- adding ---- */

static struct block *block_new(int pieces)
{
    size_t n = sizeof(struct block) + (size_t)pieces * sizeof(struct piece);
    struct block *b = malloc(n);
    if (b)
        b->memory = n;
    return b;
}

/* The block goes with its last piece, and with it `memory`, which has room for cap bytes. */
static void end_block(struct chain *c, struct block *b, struct piece *last, void *memory,
                      size_t cap)
{
    last->memory = memory;
    last->block = b;
    b->memory += cap;
    c->memory += b->memory;
}

/* The next piece of a block being filled; its link is set, all else is zero but `left`. */
static struct piece *block_piece(struct chain *c, struct block *b, int i, uint64_t len)
{
    struct piece *p = &b->pieces[i];
    *p = (struct piece){.left = len};
    list_init(&p->link);
    list_push_back(&c->pieces, &p->link);
    c->left += len;
    return p;
}

int chain_add_buf(struct chain *c, struct buf *b)
{
    if (b->failed)
        return -ENOMEM;
    if (b->len == 0) {
        buf_free(b);
        return 0;
    }
    struct block *block = block_new(1);
    if (!block)
        return -ENOMEM;
    size_t len, cap = b->cap;
    uint8_t *memory = buf_take(b, &len);
    struct piece *p = block_piece(c, block, 0, len);
    p->p = memory;
    end_block(c, block, p, memory, cap);
    return 0;
}

int chain_add_file(struct chain *c, struct file *f, int64_t pos, uint64_t len)
{
    if (len == 0)
        return 0;
    struct block *block = block_new(1);
    if (!block)
        return -ENOMEM;
    struct piece *p = block_piece(c, block, 0, len);
    p->file = file_ref(f);
    p->pos = pos;
    end_block(c, block, p, NULL, 0);
    return 0;
}

/* An upper bound: each splice may end a memory piece and is one itself; head and tail. */
static int writer_pieces(const struct writer *w)
{
    return 2 * w->splices_n + 2;
}

int chain_add_writer(struct chain *c, struct writer *w, bool framed)
{
    size_t size = writer_size(w);
    if (w->buf.failed)
        return -ENOMEM;
    if (size > INT32_MAX)
        return -EMSGSIZE;
    if (size == 0 && !framed) {
        writer_free(w);
        return 0;
    }
    struct block *b = block_new(writer_pieces(w));
    if (!b)
        return -ENOMEM;

    int n = 0;
    if (framed) {
        put_be32(b->head, (uint32_t)size);
        block_piece(c, b, n++, FRAME_HEAD)->p = b->head;
    }
    size_t at = 0;
    for (int i = 0; i < w->splices_n; i++) {
        struct splice *s = &w->splices[i];
        assert(s->at >= at && s->at <= w->buf.len);
        if (s->at > at) {
            block_piece(c, b, n++, s->at - at)->p = w->buf.p + at;
            at = s->at;
        }
        if (s->len > 0) {
            struct piece *p = block_piece(c, b, n++, (uint64_t)s->len);
            p->file = s->file; /* the writer's reference is ours now */
            p->pos = s->pos;
            s->file = NULL;
        }
    }
    if (w->buf.len > at)
        block_piece(c, b, n++, w->buf.len - at)->p = w->buf.p + at;
    size_t len, cap = w->buf.cap;
    uint8_t *memory = buf_take(&w->buf, &len);
    end_block(c, b, &b->pieces[n - 1], memory, cap);
    writer_free(w);
    return 0;
}

/* ---- leaving ---- */

void chain_drop(struct chain *c, uint64_t n)
{
    assert(n <= c->left);
    c->left -= n;
    while (n > 0) {
        struct piece *p = head_piece(c);
        if (n < p->left) {
            p->left -= n;
            if (p->p)
                p->p += n;
            else
                p->pos += (int64_t)n;
            return;
        }
        n -= p->left;
        piece_free(c, p);
    }
}

static ssize_t send_iov(int fd, struct iovec *iov, size_t n, bool more)
{
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
    ssize_t r;
    do
        r = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

/* The run of memory pieces at the head. MSG_MORE when something follows that goes out now: a header
 * and the file data behind it then share their first packet. */
static ssize_t send_memory(struct chain *c, int fd, size_t budget, size_t *tried)
{
    struct iovec iov[SEND_IOV];
    size_t n = 0, bytes = 0;
    list_each (it, &c->pieces) {
        struct piece *p = list_entry(it, struct piece, link);
        if (!p->p || n == SEND_IOV || bytes == budget)
            break;
        size_t take = p->left < budget - bytes ? (size_t)p->left : budget - bytes;
        iov[n++] = (struct iovec){(void *)(uintptr_t)p->p, take};
        bytes += take;
    }
    *tried = bytes;
    return send_iov(fd, iov, n, bytes < c->left && bytes < budget);
}

/* For files without a descriptor: what the socket does not take is read again next time. */
static ssize_t send_copy(const struct piece *p, int fd, size_t n)
{
    if (n > COPY_CHUNK)
        n = COPY_CHUNK;
    uint8_t *tmp = malloc(n);
    if (!tmp)
        return -ENOMEM;
    ssize_t r = file_pread(p->file, tmp, n, p->pos);
    if (r == 0)
        r = -ENODATA;
    if (r > 0)
        r = send_iov(fd, &(struct iovec){tmp, (size_t)r}, 1, false);
    free(tmp);
    return r;
}

static ssize_t send_file(struct chain *c, int fd, size_t budget, size_t *tried)
{
    const struct piece *p = head_piece(c);
    size_t n = p->left < budget ? (size_t)p->left : budget;
    if (n > SENDFILE_MAX)
        n = SENDFILE_MAX;
    if (p->file->fd < 0) {
        *tried = n < COPY_CHUNK ? n : COPY_CHUNK;
        return send_copy(p, fd, n);
    }
    *tried = n;
    off_t off = p->pos;
    ssize_t r;
    do
        r = sendfile(fd, p->file->fd, &off, n);
    while (r < 0 && errno == EINTR);
    if (r < 0 && (errno == EINVAL || errno == ENOSYS)) { /* a file system that cannot */
        *tried = n < COPY_CHUNK ? n : COPY_CHUNK;
        return send_copy(p, fd, n);
    }
    if (r == 0)
        return -ENODATA; /* the file ends before the range does */
    return r < 0 ? -errno : r;
}

ssize_t chain_send(struct chain *c, int fd, size_t budget)
{
    ssize_t sent = 0;
    while (c->left > 0 && budget > 0) {
        size_t tried;
        ssize_t n = head_piece(c)->p ? send_memory(c, fd, budget, &tried)
                                     : send_file(c, fd, budget, &tried);
        if (n == -EAGAIN || n == -EWOULDBLOCK)
            break;
        if (n < 0)
            return n;
        chain_drop(c, (uint64_t)n);
        sent += n;
        budget -= (size_t)n;
        if ((size_t)n < tried) /* full: asking again would only say so */
            break;
    }
    return sent;
}

static ssize_t copy_piece(const struct piece *p, uint8_t *to, size_t n)
{
    if (p->p) {
        memcpy(to, p->p, n);
        return (ssize_t)n;
    }
    ssize_t r = file_pread(p->file, to, n, p->pos);
    return r >= 0 && (size_t)r < n ? -ENODATA : r;
}

ssize_t chain_peek(const struct chain *c, void *tmp, size_t n, const uint8_t **at)
{
    size_t got = 0;
    *at = tmp;
    list_each (it, &c->pieces) {
        const struct piece *p = list_entry(it, struct piece, link);
        size_t take = p->left < n - got ? (size_t)p->left : n - got;
        if (got == 0 && p->p && (take == n || take == c->left)) {
            *at = p->p;
            return (ssize_t)take;
        }
        ssize_t r = copy_piece(p, (uint8_t *)tmp + got, take);
        if (r < 0)
            return r;
        got += take;
        if (got == n)
            break;
    }
    return (ssize_t)got;
}

ssize_t chain_read(struct chain *c, void *to, size_t n)
{
    uint8_t *at = to;
    size_t left = n;
    while (left > 0 && c->left > 0) {
        const struct piece *p = head_piece(c);
        size_t take = p->left < left ? (size_t)p->left : left;
        ssize_t r = copy_piece(p, at, take);
        if (r < 0)
            return left < n ? (ssize_t)(n - left) : r; /* told at the next call */
        chain_drop(c, take);
        at += take;
        left -= take;
    }
    return (ssize_t)(n - left);
}
