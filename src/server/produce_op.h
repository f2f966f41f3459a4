/* produce_op.h - one Produce request from append to answer, for handle_produce.c and
 * delayed_produce.c. All in the request's arena; on the connection's reactor but for flushes. */
#ifndef SERVER_PRODUCE_OP_H
#define SERVER_PRODUCE_OP_H

#include "protocol/msg/produce.h"
#include "replica/pending.h"
#include "server/broker.h"
#include "server/request.h"

struct produce_op;

struct produce_flush { /* a flush that the topic wants before the append is acknowledged */
    struct partition_flush flush;
    struct partition *partition; /* one reference */
    struct produce_op *op;
    int slot;
};

struct produce_slot { /* one partition, in the order of the request */
    struct produce_response_partition_response *out;
    struct str topic;
    struct partition *partition; /* one reference while acks=all may have to wait, else NULL */
    int64_t required_offset;
};

struct produce_op {
    struct request *req;
    const struct produce_request *body;
    struct produce_response response;
    struct produce_slot *slots;
    int slots_n;
    int flushes; /* not yet done */
    struct pending pending;
    int waiting; /* slots whose records are not committed yet */
};

/* Starts the flush that an append asked for. Not KERR_NONE: it could not. */
enum kerr produce_flush_start(struct produce_op *op, int slot, struct partition *p, int64_t up_to);
/* All partitions were tried: waits for flushes and for acks=all where needed, then answers. */
void produce_await(struct produce_op *op);
/* Answers; the op is gone. (handle_produce.c) */
void produce_answer(struct produce_op *op);

#endif
