/* zookeeper_call.h - one request of the store as a call of the ZooKeeper library: paths with the
 * chroot, access lists, results back into the request. No queue, no session.
 *
 * OWNERSHIP  a call that is sent must live until `over` was called, or its handle is closed.
 * THREADS    one at a time; `over` comes on the library's completion thread. */
#ifndef METADATA_ZOOKEEPER_CALL_H
#define METADATA_ZOOKEEPER_CALL_H

#include <zookeeper/zookeeper.h>

#include "metadata/store.h"

enum zookeeper_call_state {
    CALL_UNSENT, /* or lost with its connection: to be sent (again) */
    CALL_SENT,
    CALL_DONE /* the request holds its result */
};

struct zookeeper_call {
    /* The store's. */
    struct list link;
    struct store_request *request; /* NULL: answered already, only the library still knows it */
    bool in_library;               /* `over` is to come */
    enum zookeeper_call_state state;
    int64_t sent_ns; /* first; 0: not yet */
    int lost;        /* how often the connection broke under it */
    void *owner;
    /* With `owner` as context, for all paths: so the library knows one watcher, and calls it once
     * an event however often it was asked for. */
    watcher_fn watcher;
    void (*over)(struct zookeeper_call *c, int rc);

    /* What goes out. */
    bool protect;
    size_t bytes; /* about */
    size_t chroot_len;
    char *paths; /* one after the other, each with room for its sequence number */
    /* For a multi; one block, at multi_ops. */
    zoo_op_t *multi_ops;
    zoo_op_result_t *results;
    struct Stat *stats;
    char *made; /* where the library writes the paths that it made: as long as `paths` */

    /* The answer, during `over`; borrowed from the library. */
    const char *value;
    int value_len;
    const struct Stat *stat;
    const struct String_vector *names;
};

enum { ZOOKEEPER_BYTES_MAX = 4 << 20 };

/* NULL without memory. Borrows the request. */
struct zookeeper_call *zookeeper_call_new(struct store_request *r, const char *chroot,
                                          bool protect);
void zookeeper_call_free(struct zookeeper_call *c);
/* Well-formed paths, data that a server may take? 0, -EINVAL or -E2BIG. */
int zookeeper_call_check(const struct zookeeper_call *c);
/* 0: `over` will be called; else the library's code: it will not. */
int zookeeper_call_send(struct zookeeper_call *c, zhandle_t *zh);
/* Was it the connection that failed, so that it is to be sent again? */
bool zookeeper_call_is_lost(int rc);
/* From `over`: status and results into the request. */
void zookeeper_call_take(struct zookeeper_call *c, int rc);
/* ... and after it: has it armed a watch of its path? */
bool zookeeper_call_arms(const struct store_request *r);

#endif
