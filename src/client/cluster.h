/* cluster.h - a client's view of the cluster: its background thread, connections to brokers,
 * metadata, and operations that are retried until they succeed or their time is over.
 *
 * THREADS  The background thread (the cluster's executor) owns connections and runs all callbacks.
 * Metadata is also read by the user's threads, under the cluster's mutex, inside the functions
 * marked @thread any. */
#ifndef CLIENT_CLUSTER_H
#define CLIENT_CLUSTER_H

#include "base/arena.h"
#include "base/executor.h"
#include "client/client_conf.h"
#include "net/peer.h"

struct cluster;

/* Starts the thread. Borrows conf, which must outlive it. NULL with a line in err. */
struct cluster *cluster_start(const kafka_conf_t *conf, enum client_scope scope,
                              const char *client_id, char *err, size_t err_n);
/* Fails what is pending with KAFKA_ERR_CLOSED, ends the thread, frees. Timers of others on its
 * executor must be stopped before. @blocks */
void cluster_stop(struct cluster *c);
struct executor *cluster_executor(struct cluster *c);
/* Runs fn(arg) on the background thread and waits for it. @blocks, not on that thread */
void cluster_call(struct cluster *c, void (*fn)(void *arg), void *arg);

/* ---- metadata ---- */
struct leader_info {
    int32_t leader; /* -1 unknown or none */
    int32_t leader_epoch;
};
/* Starts following a topic (idempotent). The broker may create it when the client is a producer, or
 * a consumer with allow.auto.create.topics. @thread any */
void cluster_follow_topic(struct cluster *c, const char *topic);
/* Asks about it no more, unless some call waits for it. @thread background */
void cluster_unfollow_topic(struct cluster *c, const char *topic);
/* Waits until the topic is known with more than `partition` partitions (-1: any). KAFKA_OK with
 * *count; the topic's own error (UNKNOWN_TOPIC_OR_PARTITION at once, but for producers, which wait
 * for the topic to come); TIMED_OUT; WAKEUP after cluster_interrupt. @thread any but the background
 * thread, unless wait_ms is 0; @blocks */
kafka_err_t cluster_wait_topic(struct cluster *c, const char *topic, int32_t partition,
                               int64_t wait_ms, int32_t *count);
/* Errors of a topic that waiting will not heal: they end its waits at once. @thread any */
bool cluster_topic_error_is_final(kafka_err_t err);
/* TOPIC_AUTHORIZATION_FAILED or INVALID_TOPIC_EXCEPTION when that is what the brokers said of the
 * topic; KAFKA_OK else. @thread any */
kafka_err_t cluster_topic_refusal(struct cluster *c, const char *topic);
/* Ends the waits of cluster_wait_topic. @thread any */
void cluster_interrupt(struct cluster *c);
/* false when topic or partition are not known. @thread any */
bool cluster_leader(struct cluster *c, const char *topic, int32_t partition,
                    struct leader_info *out);
/* Number of partitions, -1 when not known; and of those with a leader. @thread any */
int32_t cluster_partition_count(struct cluster *c, const char *topic, int32_t *available);
/* The same at once: -2 when no broker has told of the topic yet, -1 when there is none. @thread any
 */
int32_t cluster_topic_size(struct cluster *c, const char *topic);
/* A number that changes with the racks of the topic's replicas; 0 when it or its racks are not
 * known. Consumers only. @thread any */
uint64_t cluster_racks_hash(struct cluster *c, const char *topic);
/* The racks of `partitions` partitions, as in kafka_topic_size_t, in the arena's memory; NULL when
 * they are not known, or the topic has not that many. Consumers only. @thread any */
const char *const *const *cluster_racks(struct cluster *c, const char *topic, int32_t partitions,
                                        struct arena *a);
/* Topic ids. false when not known. `name` takes 256 bytes. @thread any */
bool cluster_topic_id(struct cluster *c, const char *topic, struct uuid *id);
bool cluster_topic_name(struct cluster *c, struct uuid id, char *name);
/* From now on ask about all topics there are. @thread any */
void cluster_follow_all(struct cluster *c);
/* false until all topics have been listed since cluster_follow_all; else calls each(arg) for every
 * one, under the cluster's lock. @thread any */
bool cluster_each_topic(struct cluster *c, void (*each)(void *arg, const char *name, bool internal),
                        void *arg);
/* Ask again soon: something was stale. @thread any */
void cluster_refresh(struct cluster *c);
/* Called on the background thread after each metadata update. One listener. */
void cluster_on_metadata(struct cluster *c, void (*cb)(void *arg), void *arg);
/* Called on the background thread when a broker has not let this client in. One listener. */
void cluster_on_refused(struct cluster *c, void (*cb)(void *arg), void *arg);
/* Lowest-level facts for admin: controller, nodes. @thread any */
int32_t cluster_controller(struct cluster *c);

/* ---- sending, on the background thread ---- */
#define NODE_ANY (-1)
#define NODE_CONTROLLER (-2)
struct node;
/* The node by id, or the least busy one. NULL: not known (a refresh has been asked for). */
struct node *cluster_node(struct cluster *c, int32_t id);
/* The node by id if metadata has it. */
struct node *cluster_find_node(struct cluster *c, int32_t id);
/* A connection of the caller's own, beside the shared one to that broker. NULL without memory. */
struct node *node_open(struct cluster *c, int32_t id, struct str host, int port);
/* Its pending requests' callbacks come (canceled) before this returns. NULL is fine. */
void node_close(struct node *n);
/* Its parts, and the same as "host:port", lines to people. Borrowed as long as the node. */
const char *node_host(struct node *n);
int node_port(struct node *n);
const char *node_address(struct node *n);
/* May something be sent now? false while its reconnect backoff runs; *wait_ms tells how long. */
bool node_ready(struct node *n, int64_t *wait_ms);
int node_in_flight(const struct node *n);
int32_t node_id(const struct node *n);
/* As peer_send (0, or -ENOMEM and no callback). On a broken connection the backoff starts and
 * metadata is refreshed. */
int node_send(struct node *n, int16_t api_key, int min_version, int max_version,
              const void *request, int64_t timeout_ms, bool has_response, peer_cb cb, void *arg);
/* Within a callback with a response: see peer_keep_response. */
struct peer_response *node_keep_response(struct node *n);
/* See peer_recycle_response. */
void node_recycle_response(struct node *n, struct peer_response *r);
/* "; last failure: broker h:p: Connection refused", or "" when nothing failed of late. Returns out.
 * @thread any */
const char *cluster_why(struct cluster *c, char *out, size_t n);
/* Client error of a peer status (-errno). */
kafka_err_t client_err_of_status(int status);
/* retry.backoff.ms doubled per attempt up to retry.backoff.max.ms, with jitter. @thread any */
int64_t cluster_backoff_ms(const struct cluster *c, int attempts);
int64_t cluster_request_timeout(const struct cluster *c);

/* ---- operations: one request, retried on the background thread until its outcome is final ---- */
struct coordinator;
struct op_call;
struct op {
    /* set by the caller */
    int32_t node;                    /* id, NODE_ANY or NODE_CONTROLLER */
    struct coordinator *coordinator; /* not NULL: to this one instead; outlives the operation */
    bool once;                       /* a broker's error is final, even one that heals */
    bool interruptible;              /* cluster_interrupt ends op_run with KAFKA_ERR_WAKEUP */
    int16_t api_key;
    int min_version, max_version; /* -1: the table's */
    const void *request;          /* borrowed until done */
    /* Looks at the response (borrowed) and keeps what the caller wants. A retriable code
     * (kafka_err_is_retriable, or NOT_CONTROLLER) means: again after a backoff, until the time is
     * over, then that code is the result. */
    kafka_err_t (*handle)(struct op *op, int version, const void *response);
    /* op_start: called on the background thread when the outcome is there. May free the op. */
    void (*finished)(struct op *op, kafka_err_t result);
    void *arg;
    /* private */
    struct cluster *cluster;
    struct task task;
    struct timer timer;
    struct list link, wait_link; /* cluster.ops; coordinator.waiters */
    struct op_call *call;        /* the request under way */
    int64_t deadline_ms;
    int attempts;
    kafka_err_t result;
    bool done;
};
/* On error kafka_last_error has a line. @thread any but the background thread; @blocks at most
 * timeout_ms (< 0: without limit) */
kafka_err_t op_run(struct cluster *c, struct op *op, int64_t timeout_ms);
/* Without waiting. @thread any */
void op_start(struct cluster *c, struct op *op, int64_t timeout_ms);
/* For coordinator.c, on the background thread: try again now; or there is no coordinator to be had.
 */
void op_resume(struct op *op);
void op_fail(struct op *op, kafka_err_t err);

#endif
