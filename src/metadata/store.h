/* store.h - the metadata store: a tree of nodes with versions, ephemeral and sequential nodes,
 * watches and atomic multi-operations, as ZooKeeper has them. Two forms: embedded
 * (embedded_store.h: one broker by itself) and ZooKeeper; all code above is the same.
 *
 * ASYNC      A request is one operation or a multi; its `done` runs on the executor it names, never
 *            before submit returns. Requests of one caller take effect in the order submitted, and
 *            their answers come in that order.
 * LOST       Connection loss is retried inside (so a non-idempotent operation must be checked by
 *            its caller); -ESTALE = the session expired, nothing more of it will be retried.
 * WATCHES    As in ZooKeeper, one-shot at heart: a handler is registered once for a path; it is
 *            armed by each exists/get (node) or children (children) read of that path with `watch`
 *            set, and told once when it changes. It carries no data: the handler reads again, which
 *            arms it again. As there, a get or children of an absent node arms nothing. A change is
 *            told before any answer that shows it, and after every answer that does not.
 * SESSION    After an expiry every request gets -ESTALE until all session listeners have been told
 *            EXPIRED; then a new session begins and they are told CONNECTED. So nothing of the old
 *            life can write with the new session.
 * OWNERSHIP  The request's memory is the caller's and must live until done; result memory (data,
 *            names) belongs to the request and is freed by store_request_clear.
 * THREADS    any may submit. */
#ifndef METADATA_STORE_H
#define METADATA_STORE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/executor.h"
#include "base/metrics.h"
#include "base/str.h"

enum store_op_type {
    STORE_CREATE,
    STORE_SET,
    STORE_DELETE,
    STORE_CHECK,
    STORE_GET,
    STORE_EXISTS,
    STORE_CHILDREN
};
enum store_create_flag { STORE_EPHEMERAL = 1, STORE_SEQUENTIAL = 2 };
#define STORE_ANY_VERSION (-1)
#define STORE_BAD_VERSION (-EBADF)

struct store_stat {
    int32_t version;      /* of the data */
    int64_t czxid, mzxid; /* transaction ids of creation and last change */
    int64_t ctime_ms, mtime_ms;
    bool ephemeral;
    int64_t owner; /* session that an ephemeral node belongs to; 0 = persistent */
    int32_t children_n;
};

struct store_op {
    enum store_op_type type;
    const char *path;   /* absolute, without the chroot; borrowed */
    struct bytes data;  /* CREATE, SET; null is a value of its own; borrowed */
    int flags;          /* CREATE */
    int32_t version;    /* SET, DELETE, CHECK: expected, or STORE_ANY_VERSION */
    bool watch;         /* GET, EXISTS, CHILDREN */
    int64_t newer_than; /* CHILDREN: a hint that only children made after this transaction are
                           wanted; 0 = all. A store may answer all the same with all: see partial */
    /* result */
    int status; /* 0; -ENOENT no node, -EEXIST, -ENOTEMPTY, -EBADF bad version (STORE_BAD_VERSION),
                   -ESTALE, -EIO the journal failed, -EINVAL bad path or an ephemeral parent,
                   -ECANCELED another op of the multi failed, -ENOMEM */
    struct store_stat stat;
    struct bytes result; /* GET: data (owned by the request; NUL behind it); CREATE: the path made
                            (sequence number in it) */
    char **names;        /* CHILDREN: owned by the request; no order */
    int names_n;
    bool partial;  /* CHILDREN: names holds only what newer_than asked for */
    int64_t as_of; /* CHILDREN: the last transaction that the answer knows of */
};

struct store;
struct store_request {
    struct store_op *ops;
    int ops_n;
    bool multi; /* all or nothing (only CREATE, SET, DELETE, CHECK); otherwise ops_n must be 1 */
    int status; /* multi: 0 or the first failing op's status; else ops[0].status */
    struct executor *done_on;
    void (*done)(struct store_request *r);
    void *user;          /* the caller's */
    int64_t deadline_ms; /* monotonic; 0 = none. A store that is cut off answers -ETIMEDOUT then,
                            and what was asked may yet happen, or not */
    /* private to the store */
    struct task task;
    struct store *store;
    struct list told; /* watches that hear of it before it is answered */
};

struct store_watch_slot;
struct store_watch {
    const char *path; /* borrowed while registered */
    bool children;    /* of the node's children, else of the node itself (made, changed, deleted) */
    struct executor *on;
    void (*fired)(struct store_watch *w); /* on `on` */
    /* private to the store */
    struct store_watch_slot *slot;
};

/* CONNECTED: a new session has begun, its id is known. A session that is cut off and comes back
 * tells nothing: its watches and nodes are still there. */
enum store_session { STORE_CONNECTED, STORE_EXPIRED };

/* What a store that may be cut off counts, for metrics. */
enum store_link { STORE_LINK_NONE, STORE_LINK_CONNECTED, STORE_LINK_CUT_OFF, STORE_LINK_EXPIRED };
struct store_counts {
    struct histogram latency_us; /* requests, from when they were sent first to their answer */
    metric connects, disconnects, expiries, auth_failures;
    atomic_int link; /* enum store_link */
};

struct store_ops {
    /* Takes all of `requests` (linked by task.link), in order, as one. */
    void (*submit)(struct store *s, struct list *requests);
    int (*watch)(struct store *s, struct store_watch *w);
    void (*unwatch)(struct store *s, struct store_watch *w);
    int (*on_session)(struct store *s, struct executor *on,
                      void (*cb)(void *arg, enum store_session state), void *arg);
    void (*off_session)(struct store *s, void (*cb)(void *arg, enum store_session state),
                        void *arg);
    int64_t (*session_id)(struct store *s);
    void (*end_waits)(struct store *s);                    /* NULL: never waits */
    bool (*cut_off)(struct store *s);                      /* NULL: never */
    const struct store_counts *(*counts)(struct store *s); /* NULL: it has none */
    void (*close)(struct store *s);
    /* NULL, or (a store without a thread): do all that is queued now, on this thread. */
    void (*drive)(struct store *s);
};
struct store {
    const struct store_ops *ops;
};

void store_submit(struct store *s, struct store_request *r);
/* Register a handler: 0 or -ENOMEM. @thread any */
int store_watch(struct store *s, struct store_watch *w);
/* Deregister on the handler's executor: afterwards it will not fire. Not registered is fine. */
void store_unwatch(struct store *s, struct store_watch *w);
/* Tells changes of the session; one listener per call. 0 or -ENOMEM. */
int store_on_session(struct store *s, struct executor *on,
                     void (*cb)(void *arg, enum store_session state), void *arg);
/* On the listener's executor: afterwards it is not called. */
void store_off_session(struct store *s, void (*cb)(void *arg, enum store_session state), void *arg);
/* Owner of the ephemeral nodes that are made now; changes with each new session. @thread any */
int64_t store_session_id(struct store *s);
/* From now on nothing waits for a store that is cut off: -ESTALE instead. Before a stop, so that
 * nobody holds it up. @thread any */
void store_end_waits(struct store *s);
/* Does nothing reach it at present, as far as is known? @thread any */
bool store_cut_off(struct store *s);
/* NULL: it has none (it is embedded). Until it is closed. @thread any */
const struct store_counts *store_counts(struct store *s);
/* Answers what is queued, ends the session (ephemeral nodes go) and frees. @blocks */
void store_close(struct store *s);
void store_request_clear(struct store_request *r);

/* Submits and waits; r->done_on and r->done are overwritten. Not on an executor that the store
 * needs. @blocks; for start, workers and tests */
int store_run(struct store *s, struct store_request *r);
int store_get(struct store *s, const char *path,
              struct bytes *data /* owned: free((void *)data->p) */, struct store_stat *stat);
/* Makes missing parents with null data. *created tells whether this call made it; a node that is
 * there already is success and keeps its data. */
int store_create_path(struct store *s, const char *path, struct bytes data, bool *created);
/* Children first. Gone already is fine. */
int store_delete_tree(struct store *s, const char *path);

/* Operations as values, to be put into a request. */
static inline struct store_op store_op_create(const char *path, struct bytes data, int flags)
{
    return (struct store_op){.type = STORE_CREATE, .path = path, .data = data, .flags = flags};
}
static inline struct store_op store_op_set(const char *path, struct bytes data, int32_t version)
{
    return (struct store_op){.type = STORE_SET, .path = path, .data = data, .version = version};
}
static inline struct store_op store_op_delete(const char *path, int32_t version)
{
    return (struct store_op){.type = STORE_DELETE, .path = path, .version = version};
}
static inline struct store_op store_op_check(const char *path, int32_t version)
{
    return (struct store_op){.type = STORE_CHECK, .path = path, .version = version};
}
static inline struct store_op store_op_get(const char *path, bool watch)
{
    return (struct store_op){.type = STORE_GET, .path = path, .watch = watch};
}
static inline struct store_op store_op_exists(const char *path, bool watch)
{
    return (struct store_op){.type = STORE_EXISTS, .path = path, .watch = watch};
}
static inline struct store_op store_op_children(const char *path, bool watch)
{
    return (struct store_op){.type = STORE_CHILDREN, .path = path, .watch = watch};
}

#endif
