/* produce_op.h - one Produce request from append to answer, for handle_produce.c (appends),
 * produce_order.c (where and in which order), produce_verify.c (transactions) and delayed_produce.c
 * (flushes, acks=all). All in the
 * request's arena. On the connection's reactor, but that large compressed records are appended on a
 * worker, which then has the op to itself. */
#ifndef SERVER_PRODUCE_OP_H
#define SERVER_PRODUCE_OP_H

#include "protocol/msg/produce.h"
#include "replica/pending.h"
#include "server/broker.h"
#include "server/request.h"

struct produce_op;

struct produce_flush { /* a flush that the topic wants before the append is acknowledged */
    struct partition_flush flush;
    struct produce_op *op;
    int slot;
};

struct produce_slot { /* one partition, in the order of the request */
    struct produce_response_partition_response *out;
    const struct produce_request_partition_data *data;
    struct str topic;
    enum kerr refused;           /* nothing is appended, and that is why */
    uint64_t txn_guard;          /* what the append needs (log/txn_guards.h) */
    struct partition *partition; /* one reference while acks=all may have to wait, else NULL */
    int64_t required_offset;
    uint32_t term;
    struct partition *to_flush; /* one reference until its flush is done, else NULL */
    int64_t flush_up_to;
};

struct produce_op {
    struct request *req;
    const struct produce_request *body;
    struct produce_response response;
    struct produce_slot *slots;
    int slots_n;
    struct produce_op *next; /* the connection's next Produce, which waits for this one's appends */
    struct job job;
    int flushes; /* not yet done */
    struct pending pending;
    int waiting; /* slots whose records are not committed yet */
};

/* Has it records of a transaction? (produce_verify.c) */
bool produce_is_transactional(const struct produce_op *op);
/* Before that: may have to ask about transactions; true: `then` comes on the reactor when that is
 * over. (produce_verify.c) */
bool produce_verify(struct produce_op *op, void (*then)(struct produce_op *op));
/* Tries all partitions. @thread any, one (handle_produce.c) */
void produce_append(struct produce_op *op);
/* Appends in the order of the connection's requests, then produce_finish. (produce_order.c) */
void produce_start(struct produce_op *op);
/* All partitions were tried: waits for flushes and for acks=all where needed, then answers.
 * (delayed_produce.c) */
void produce_finish(struct produce_op *op);
/* Answers; the op is gone. (handle_produce.c) */
void produce_answer(struct produce_op *op);

#endif
