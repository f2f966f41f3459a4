/* produce_order.c - where a Produce request is appended, and in which order.
 *
 * Records must be appended in the order of the connection's requests: producers keep several in
 * flight, and an idempotent one numbers them. On the reactor that comes by itself. But a compressed
 * batch has to be decompressed to be checked, which for a large one (or a small one that inflates)
 * takes longer than other connections should wait; such requests go to a worker. And those that
 * begin a transaction ask its coordinator first. Produce requests that come on the connection
 * meanwhile line up behind it. The last of the line is the
 * connection's user pointer, NULL while there is no line. */
#include "protocol/record_batch.h"
#include "server/produce_op.h"
#include "server/request_later.h"

/* Compressed bytes of one partition from which on a worker takes the request. */
#define LARGE_COMPRESSED (16 * 1024)

static bool is_large_compressed(const struct records *r)
{
    if (r->len < LARGE_COMPRESSED)
        return false;
    /* The attributes are 16 bits in magic 2, and 8 in older messages. */
    int attributes = r->p[BATCH_AT_MAGIC] >= 2 ? r->p[BATCH_AT_ATTRIBUTES + 1] : r->p[ENTRY_HEAD];
    return attributes & BATCH_CODEC_MASK;
}

static bool wants_worker(const struct produce_op *op)
{
    for (int i = 0; i < op->slots_n; i++)
        if (is_large_compressed(&op->slots[i].data->records))
            return true;
    return false;
}

static void append_work(struct job *job)
{
    produce_append(container_of(job, struct produce_op, job));
}

static void append_done(struct job *job);

static void submit(struct produce_op *op)
{
    request_work(op->req, &op->job, append_work, append_done);
}

static void verified(struct produce_op *op);

/* Appends its records. false: that takes its time; whoever does it goes on with the line. */
static bool advance(struct produce_op *op)
{
    if (produce_verify(op, verified))
        return false;
    if (wants_worker(op)) {
        submit(op);
        return false;
    }
    produce_append(op);
    return true;
}

/* Its records are appended: the next in line. */
static void go_on(struct produce_op *op)
{
    do {
        struct produce_op *next = op->next;
        if (!next)
            conn_set_user(op->req->net->conn, NULL);
        produce_finish(op);
        op = next;
    } while (op && advance(op));
}

static void append_done(struct job *job)
{
    struct produce_op *op = container_of(job, struct produce_op, job);
    struct broker *b = op->req->broker;
    go_on(op);
    broker_async_end(b);
}

static void verified(struct produce_op *op)
{
    if (wants_worker(op)) {
        submit(op);
        return;
    }
    produce_append(op);
    go_on(op);
}

void produce_start(struct produce_op *op)
{
    struct conn *conn = op->req->net->conn;
    struct produce_op *last = conn_user(conn);
    if (last) {
        conn_set_user(conn, op);
        last->next = op;
    } else if (advance(op)) {
        produce_finish(op);
    } else {
        conn_set_user(conn, op);
    }
}
