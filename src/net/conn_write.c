/* conn_write.c - from answers to the socket. */
#include "base/logline.h"
#include "net/server_private.h"

/* Later requests of a connection that closes: whoever works on them is told. */
static void drop_line(struct conn *c)
{
    while (!list_empty(&c->requests))
        request_abort(list_entry(c->requests.next, struct net_request, link));
}

void conn_collect(struct conn *c)
{
    while (!list_empty(&c->requests)) {
        struct net_request *r = list_entry(c->requests.next, struct net_request, link);
        if (r->state == REQUEST_IN_WORK)
            return;
        bool closes = r->state == REQUEST_CLOSES;
        chain_append(&c->out, &r->answer);
        request_free(r);
        if (closes)
            drop_line(c);
    }
}

void conn_flush(struct conn *c)
{
    if (c->state == CONN_CLOSED || c->out.left == 0 || c->full)
        return;
    uint64_t memory = c->out.memory;
    ssize_t n = c->transport.ops->send_chain(&c->transport, &c->out, TURN_SEND_BYTES);
    conn_count_memory(c, (int64_t)(c->out.memory - memory));
    if (n < 0) {
        conn_close_errno(c, (int)n);
        return;
    }
    c->unsent -= (size_t)n;
    conn_add(c, NET_BYTES_OUT, (uint64_t)n);
    c->answers_sent += (size_t)n;
    c->full = c->out.left > 0;
    if (n > 0)
        shard_touch(c->shard, c);
}
