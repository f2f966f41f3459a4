/* cluster_private.h - the inside of struct cluster, for cluster*.c and op.c only. */
#ifndef CLIENT_CLUSTER_PRIVATE_H
#define CLIENT_CLUSTER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/hmap.h"
#include "base/uv_executor.h"
#include "client/client_security.h"
#include "client/cluster.h"
#include "client/cluster_racks.h"

struct node {
    struct list link; /* cluster.nodes or cluster.bootstrap */
    struct cluster *cluster;
    int32_t id; /* -1: a bootstrap address */
    char *host;
    int port;
    char address[272];
    struct peer *peer; /* made when first used */
    int in_flight;
    int failures; /* in a row */
    int64_t retry_at_ms;
    int64_t used_ms; /* last request or answer */
    bool answered;   /* ever; its address is in cluster.proven */
    int64_t told_ms; /* its failures went to the log */
};

struct topic_meta {
    struct hnode hnode; /* cluster.topics, by name */
    char *name;
    bool create, internal;
    bool may_create; /* it was found missing: now a request may make it */
    bool looked_for; /* some answer named it, ever */
    int errors;      /* in a row */
    int waiters;     /* calls that wait for it: it stays */
    bool listed;     /* in the last answer about all topics */
    kafka_err_t err; /* KAFKA_OK when known */
    bool asked;      /* some request named it */
    bool answered;   /* some metadata answer named it */
    struct uuid id;
    int32_t partitions_n;
    struct leader_info *partitions;
    struct topic_racks *racks; /* consumers only */
};

struct cluster {
    const kafka_conf_t *conf;
    enum client_scope scope;
    struct uv_executor *uv;
    struct executor *ex;
    struct peer_options peer_options;
    struct client_security security;
    char *client_id;
    int64_t request_timeout_ms, backoff_ms, backoff_max_ms, reconnect_ms, reconnect_max_ms,
        metadata_max_age_ms, max_idle_ms, setup_max_ms;
    int64_t api_timeout_ms; /* of operations without a time of their own; -1: without limit */
    int64_t retries;        /* of an operation */
    bool rebootstrap;       /* bootstrap addresses serve when no known broker can be reached */

    /* Background thread only. */
    struct list nodes, bootstrap;
    struct list proven; /* addresses where a broker has answered, whatever became of its node */
    struct list ops;    /* unfinished operations */
    struct timer refresh_timer, idle_timer;
    bool served; /* some broker has answered an ordinary request */
    bool refresh_in_flight;
    int refresh_failures;
    int64_t refreshed_ms; /* last answer */
    bool closing;
    void (*on_metadata)(void *arg);
    void *on_metadata_arg;
    void (*on_refused)(void *arg);
    void *on_refused_arg;
    atomic_uint random; /* of backoffs, also on the user's threads: two may get the same */

    /* Protected by lock; `changed` is signalled at each metadata update. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct hmap topics;
    int32_t controller;
    char failure[400];   /* the last of a connection, until metadata comes */
    bool refresh_wanted; /* a task is on its way */
    unsigned interrupts;
    unsigned refusals; /* connections that were not let in, or whose broker is not to be trusted */
    bool follow_all, all_listed; /* wanted; some answer listed all since */
    bool all_asked;              /* by the request under way */
    int unasked;                 /* topics that no request has named yet */
    struct task refresh_task;
};

void cluster_metadata_init(struct cluster *c);
void cluster_metadata_free(struct cluster *c);
/* Background thread: nodes as a Metadata answer lists them. */
struct metadata_response;
void cluster_set_nodes(struct cluster *c, const struct metadata_response *m);
/* The nodes of bootstrap.servers. false without memory. @blocks while names are looked up, if
 * client.dns.lookup wants that */
bool cluster_add_bootstrap(struct cluster *c);
void cluster_fail_ops(struct cluster *c);
/* Those that wait for a connection: a broker does not let this client in. */
void cluster_refuse_ops(struct cluster *c);
unsigned cluster_random(struct cluster *c);
/* Condition variables here wait on the monotonic clock. */
void client_cond_init(pthread_cond_t *cond);
/* false when deadline_ms (monotonic; INT64_MAX = none) has passed. */
bool client_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline_ms);
int64_t client_deadline(int64_t timeout_ms);
int64_t client_now_ms(void);

#endif
