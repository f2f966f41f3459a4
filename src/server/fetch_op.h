/* fetch_op.h - one Fetch request from its partitions to its answer, for handle_fetch.c (reading),
 * delayed_fetch.c (waiting), fetch_warm.c (cold records), fetch_convert.c (old formats) and
 * fetch_answer.c. All in the request's arena; on the connection's reactor but for conversions.
 *
 * THREADS    the reactor; while a worker reads ahead or converts, the worker alone.
 *
 * OWNERSHIP  the op holds its partitions, slices and converted bytes until fetch_release. */
#ifndef SERVER_FETCH_OP_H
#define SERVER_FETCH_OP_H

#include "replica/pending.h"
#include "server/broker.h"
#include "server/fetch_session.h"
#include "server/request.h"

/* So often workers read ahead for one fetch; what is cold even then, as when memory is short, is
 * waited for on the reactor. */
#define FETCH_WARM_MAX 3

struct fetch_slot {              /* beside context.wants[i] */
    struct partition *partition; /* one reference; NULL: `error` says why */
    enum kerr error;             /* of finding it, or of the read */
    bool throttled;              /* of a follower that lags: its records are held back now */
    int32_t nearest;             /* the replica to read from instead; -1 = none */
    bool unknown; /* not in the metadata cache, or refused: no reason to answer at once */
    struct partition_read read; /* its slice holds one reference on the file */
    int64_t available;          /* while waiting: bytes that a read would give */
    bool looked, idle;          /* while waiting: idle: nothing moved since it was read, empty */
    bool converted_form;        /* `converted` is what is sent, not the slice */
    struct buf converted;       /* message set of an older magic */
};

struct fetch_op {
    struct request *req;
    const struct fetch_request *body;
    struct fetch_context context;
    struct fetch_slot *slots;
    int32_t replica_id;
    enum isolation isolation;
    struct str rack;  /* of the consumer, where it matters; else null */
    bool hard_limit;  /* v0-v2: cut anywhere, also in the first batch */
    bool leader_only; /* the fetcher cannot be sent to, or served by, a follower */
    uint32_t max_bytes;
    int64_t min_bytes;
    int64_t found_bytes; /* by the last read */
    bool held_back;      /* by a quota: the answer is empty */
    bool must_answer;    /* the last read met an error or a diverging log */
    bool cold;           /* it met records that are on the disk only */
    int warmed;          /* how often workers have read ahead for it */
    int64_t waiting_bytes;
    struct pending pending;
};

/* Reads all partitions within the limits; again (reread), all but the idle ones. */
void fetch_read(struct fetch_op *op, bool reread);
struct partition_read_args fetch_read_args(const struct fetch_op *op, int i);
/* Lets go of slices and converted bytes, so that all can be read again. */
void fetch_release_reads(struct fetch_op *op);
/* Lets go of everything. */
void fetch_release(struct fetch_op *op);

/* Reads, as fetch_read does, and goes on with then(op): at once, or once workers have read into
 * memory what was on the disk only. */
void fetch_read_then(struct fetch_op *op, bool reread, void (*then)(struct fetch_op *op));
/* Waits until there is enough, or max wait is over; then reads again and answers. */
void fetch_wait(struct fetch_op *op);
/* Converts what was read for versions that know no magic 2, on a worker; then answers. */
void fetch_convert(struct fetch_op *op, int magic);
/* Answers; the op is gone. */
void fetch_answer(struct fetch_op *op);
/* After the last read: converts where the version asks for it, answers. */
void fetch_deliver(struct fetch_op *op);

#endif
