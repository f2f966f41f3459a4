/* store.h - the metadata store: a tree of nodes with versions, ephemeral and sequential nodes,
 * watches and atomic multi-operations, as ZooKeeper has them. Two forms: embedded
 * (embedded_store.h: one broker by itself) and ZooKeeper; all code above is the same.
 *
 * ASYNC     A request is one operation or a multi; its `done` runs on the executor it names, never
 * before submit returns. Requests of one caller take effect in the order submitted. LOST Connection
 * loss is retried inside (so a non-idempotent operation must be checked by its caller); -ESTALE =
 * the session expired, nothing more of it will be retried. WATCHES   As in ZooKeeper, one-shot at
 * heart: a handler is registered once for a path; it is armed by each exists/get (node) or children
 * (children) read of that path with `watch` set, and told once when it changes. It carries no data:
 * the handler reads again, which arms it again. OWNERSHIP The request's memory is the caller's and
 * must live until done; result memory (data, names) belongs to the request and is freed by
 * store_request_clear. THREADS   any may submit. */
#ifndef METADATA_STORE_H
#define METADATA_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/executor.h"
#include "base/str.h"
#include <errno.h>

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

struct store_stat {
    int32_t version;      /* of the data */
    int64_t czxid, mzxid; /* transaction ids of creation and last change */
    int64_t ctime_ms, mtime_ms;
    bool ephemeral;
    int32_t children_n;
};

struct store_op {
    enum store_op_type type;
    const char *path;  /* absolute, without the chroot; borrowed */
    struct bytes data; /* CREATE, SET; null is a value of its own; borrowed */
    int flags;         /* CREATE */
    int32_t version;   /* SET, DELETE, CHECK: expected, or STORE_ANY_VERSION */
    bool watch;        /* GET, EXISTS, CHILDREN */
    /* result */
    int status; /* 0; -ENOENT no node, -EEXIST, -ENOTEMPTY, -EBADF bad version (store_bad_version),
                   -ESTALE, -EIO the journal failed, -EINVAL bad path, -ECANCELED another op of the
                   multi failed */
    struct store_stat stat;
    struct bytes result; /* GET: data (owned by the request); CREATE: the path made (sequence number
                            in it) */
    char **names;        /* CHILDREN: owned by the request */
    int names_n;
};
#define STORE_BAD_VERSION (-EBADF)

struct store_request {
    struct store_op *ops;
    int ops_n;
    bool multi; /* all or nothing (only CREATE, SET, DELETE, CHECK); otherwise ops_n must be 1 */
    int status; /* multi: 0 or the first failing op's status; else ops[0].status */
    struct executor *done_on;
    void (*done)(struct store_request *r);
    /* private to the store */
    struct task task;
};

struct store_watch {
    const char *path;
    bool children; /* of the node's children, else of the node itself (made, changed, deleted) */
    struct executor *on;
    void (*fired)(struct store_watch *w); /* on `on` */
    /* private to the store */
    struct list link;
    struct task task;
    bool armed, posted;
};

enum store_session { STORE_CONNECTED, STORE_DISCONNECTED, STORE_EXPIRED };

struct store;
struct store_ops {
    void (*submit)(struct store *s, struct store_request *r);
    void (*watch)(struct store *s, struct store_watch *w);
    void (*unwatch)(struct store *s, struct store_watch *w);
    void (*on_session)(struct store *s, struct executor *on,
                       void (*cb)(void *arg, enum store_session state), void *arg);
    int64_t (*session_id)(struct store *s);
    void (*close)(struct store *s);
};
struct store {
    const struct store_ops *ops;
};

void store_submit(struct store *s, struct store_request *r);
/* Register and deregister a handler; deregister on its executor: afterwards it will not fire. */
void store_watch(struct store *s, struct store_watch *w);
void store_unwatch(struct store *s, struct store_watch *w);
/* Tells changes of the session; one listener per call, for the store's life. */
void store_on_session(struct store *s, struct executor *on,
                      void (*cb)(void *arg, enum store_session state), void *arg);
/* Ends the session (ephemeral nodes go) and frees. @blocks */
void store_close(struct store *s);
void store_request_clear(struct store_request *r);

/* Submits and waits. Not on the executor `done_on` would use. @blocks; for start, workers and tests
 */
int store_run(struct store *s, struct store_request *r);
int store_get(struct store *s, const char *path,
              struct bytes *data /* owned: free((void *)data->p) */, struct store_stat *stat);
/* Makes missing parents with null data. *created tells whether this call made it. */
int store_create_path(struct store *s, const char *path, struct bytes data, int flags);
/* Children first. Gone already is fine. */
int store_delete_tree(struct store *s, const char *path);

#endif
