/* conn_read.c - from the socket to the handler.
 *
 * WHERE BYTES GO  The rest of a frame that has begun is read straight to its place; behind it, in
 * the same call, what follows goes into the reactor's scratch buffer. Frames that lie whole in the
 * scratch are copied out of it: they are small (framing_places).
 * BOUNDS  A turn ends after TURN_READ_BYTES, TURN_FRAMES or TURN_NS. Bytes in the scratch that may
 * not be handed over yet are held by the connection: at most one scratch full. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "net/server_private.h"

struct turn {
    size_t bytes; /* that may still be read */
    int frames;   /* that may still be handed over */
    int64_t end_ns;
};

static int64_t now_ns(const struct conn *c)
{
    return clock_mono_ns(shard_executor(c->shard)->clock);
}

bool conn_has_room(const struct conn *c)
{
    const struct net_limits *l = &c->shard->server->limits;
    return c->requests_n < c->max_pipelined &&
           (l->max_pipelined_bytes == 0 || c->work_bytes < l->max_pipelined_bytes);
}

bool conn_may_read(const struct conn *c)
{
    return c->state == CONN_OPEN && !c->muted && !list_linked(&c->hungry) && conn_has_room(c) &&
           c->unsent <= c->shard->server->limits.max_unsent &&
           (c->memory == 0 || c->memory <= answers_share(c->shard->server));
}

void conn_drop_input(struct conn *c)
{
    if (c->in.begun)
        shard_uncharge(c->shard, c->in.len);
    framing_free(&c->in, shard_frames(c->shard));
    free(c->held);
    c->held = NULL;
    c->held_at = c->held_len = 0;
}

static void hand_over(struct conn *c)
{
    struct frame_mem mem;
    uint32_t len = framing_take(&c->in, shard_frames(c->shard), &mem);
    struct net_request *r = request_new(c, &mem, len);
    conn_add(c, NET_REQUESTS, 1);
    if (!r)
        conn_close(c, LOGLINE_ERROR, "out of memory");
    else if (c->gate)
        c->gate->request(c->gate_arg, r);
    else
        conn_pass(r);
}

void conn_pass(struct net_request *r)
{
    const struct conn_handler *h = &r->conn->shard->server->handler;
    h->request(h->arg, r);
}

/* What came before the bad length is still answered. */
static void refuse(struct conn *c)
{
    char why[160];
    framing_complaint(&c->in, why, sizeof(why));
    conn_complain(c, "closing connection of", "", why);
    conn_read_no_more(c);
}

/* Makes frames of the bytes and hands them over until the bytes or the turn are used up, or
 * something holds the connection back. Returns how many bytes were used. */
static size_t feed(struct conn *c, const uint8_t *p, size_t n, struct turn *turn)
{
    struct frame_pool *frames = shard_frames(c->shard);
    size_t left = n;
    while (conn_may_read(c) && turn->frames > 0) {
        switch (framing_feed(&c->in, frames, &p, &left)) {
        case FRAMING_MORE:
            return n;
        case FRAMING_LENGTH:
            if (!shard_charge(c->shard, c, c->in.len))
                break; /* hungry: the loop ends */
            c->looked_ms = 0;
            if (framing_begin(&c->in, frames) < 0) {
                shard_uncharge(c->shard, c->in.len);
                conn_close(c, LOGLINE_ERROR, "out of memory");
            }
            break;
        case FRAMING_FRAME:
            turn->frames--;
            hand_over(c);
            if (now_ns(c) >=
                turn->end_ns) /* some requests take a thousand times as long as others */
                turn->frames = 0;
            break;
        case FRAMING_BAD:
            refuse(c);
            break;
        case FRAMING_NOMEM:
            conn_close(c, LOGLINE_ERROR, "out of memory");
            break;
        }
    }
    return n - left;
}

/* Keeps scratch bytes for a later turn. */
static void hold(struct conn *c, const uint8_t *p, size_t n)
{
    assert(!conn_holds(c));
    free(c->held);
    c->held_at = c->held_len = 0;
    if (!(c->held = malloc(n))) {
        conn_close(c, LOGLINE_ERROR, "out of memory");
        return;
    }
    memcpy(c->held, p, n);
    c->held_len = (uint32_t)n;
}

/* What was held back, and a length that waited for memory. */
static void feed_held(struct conn *c, struct turn *turn)
{
    uint8_t *held = c->held; /* may be freed meanwhile, if the connection closes */
    size_t n = c->held_len - c->held_at;
    if (n == 0 && c->in.head_n < sizeof(c->in.head))
        return;
    size_t used = feed(c, held ? held + c->held_at : (const uint8_t *)"", n, turn);
    if (!c->held)
        return;
    c->held_at += (uint32_t)used;
    if (!conn_holds(c)) {
        free(c->held);
        c->held = NULL;
        c->held_at = c->held_len = 0;
    }
}

/* One read. false: nothing more is there, or the connection is closed. */
static bool read_once(struct conn *c, struct turn *turn)
{
    uint8_t *scratch = reactor_scratch(c->shard->reactor);
    struct iovec iov[2];
    int n = framing_places(&c->in, shard_frames(c->shard), scratch, REACTOR_SCRATCH, iov);
    if (n == 0) {
        conn_close(c, LOGLINE_ERROR, "out of memory");
        return false;
    }
    ssize_t got = c->transport.ops->recv(&c->transport, iov, n);
    if (got == -EAGAIN)
        return false;
    if (got < 0) {
        conn_close_errno(c, (int)got);
        return false;
    }
    if (got == 0) {
        conn_read_no_more(c);
        conn_hurry(c);
        return false;
    }
    shard_touch(c->shard, c);
    conn_add(c, NET_BYTES_IN, (uint64_t)got);
    size_t bytes = (size_t)got, asked = iov[0].iov_len + (n > 1 ? iov[1].iov_len : 0);
    turn->bytes -= bytes < turn->bytes ? bytes : turn->bytes;
    size_t rest = framing_placed(&c->in, iov, bytes);
    size_t used = feed(c, scratch, rest, turn);
    if (used < rest && c->state == CONN_OPEN)
        hold(c, scratch + used, rest - used);
    return bytes == asked && c->state == CONN_OPEN;
}

void conn_read(struct conn *c)
{
    int64_t now = now_ns(c);
    struct turn turn = {TURN_READ_BYTES, TURN_FRAMES, now + TURN_NS};
    reactor_works(c->shard->reactor, now);
    if (!conn_may_read(c))
        return;
    feed_held(c, &turn);
    while (conn_may_read(c) && !conn_holds(c) && turn.bytes > 0 && turn.frames > 0) {
        bool more = read_once(c, &turn);
        /* Answers to what one read brought leave together. */
        conn_flush(c);
        if (!more)
            return;
    }
}
