/* broker_private.h - a broker's parts, for broker.c, broker_start.c and broker_stop.c. */
#ifndef SERVER_BROKER_PRIVATE_H
#define SERVER_BROKER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/heap.h"
#include "base/turns.h"
#include "base/uv_executor.h"
#include "controller/controller.h"
#include "controller/topic_admin.h"
#include "log/cleaner.h"
#include "log/log_manager.h"
#include "metadata/producer_ids.h"
#include "metadata/registration.h"
#include "metadata/topic_configs.h"
#include "net/remote.h"
#include "net/server_conn.h"
#include "replica/log_mover.h"
#include "server/broker.h"
#include "server/control_gate.h"
#include "server/upkeep.h"

struct broker {
    /* Fixed once the broker serves; in the order in which they are made. NULL = not made. */
    struct config *config;
    const struct clock *clock;
    int32_t id;
    char *cluster_id;
    char *meta_lock_path; /* embedded store: keeps two processes off one journal */
    int meta_lock_fd;
    struct uv_executor *background;       /* answers of the store, timers of upkeep */
    struct uv_executor *controller_ex;    /* the controller alone */
    struct remote_peers controller_peers; /* on it */
    struct workers *workers;
    struct turns *warming;
    struct workers *background_workers; /* upkeep's */
    struct dynamic_config *dynamic;     /* settings in force */
    struct scram_users *scram_users;
    struct tokens *tokens;             /* NULL: there are none */
    struct token_follow *token_follow; /* on the background executor */
    struct broker_security *security;
    struct control_queue *config_queue; /* what reads and writes settings in the store */
    struct entity_rereads *rereads;     /* of it, after notices */
    struct store *store;
    struct authorizer *authorizer; /* NULL: there is none, all is allowed */
    struct store *acl_store;       /* authorizer.zookeeper.url's; NULL: `store` has the ACLs */
    struct acl_follow *acl_follow; /* keeps its ACLs fresh; on the background executor */
    struct topic_configs *topic_configs;
    atomic_bool deaf; /* notices of settings are passed over: the end is near */
    struct log_manager *logs;
    struct cleaner *cleaner; /* NULL also when it is switched off */
    struct metadata_cache *metadata;
    struct fetch_threads *fetch_threads;
    struct replication_throttle *throttle;
    struct fetchers *fetchers;
    struct remote_peers background_peers; /* on the background executor */
    struct controller_link *isr_link;
    struct isr_manager *isr_manager;          /* NULL below level 2.7-IV2, where */
    struct isr_store *isr_store;              /* this one writes; NULL from there on */
    struct controller_link *producer_id_link; /* NULL below level 3.0 */
    struct replica_manager *_Atomic replicas; /* a failed dir may ask from any thread */
    struct control_queue *control_queue;
    struct control_gate control_gate;
    struct fetch_sessions *fetch_sessions;
    struct uv_executor **group_executors;
    int group_executors_n;
    struct group_manager *groups;
    struct uv_executor *txn_executor;
    struct remote_peers txn_peers; /* on it */
    struct txn_manager *txns;
    struct auto_create *auto_create;
    struct producer_ids *producer_ids;
    struct client_quotas *quotas;
    struct topic_admin *topic_admin;
    struct reactor_pool *reactors;
    struct conn_handler conn_handler;
    struct net_server *net;
    struct broker_registrar *registrar;
    struct finalized_features *features; /* NULL: inter.broker.protocol.version has none */
    struct controller *_Atomic controller;
    struct broker_metrics *metrics;      /* NULL: no metrics.http.listener */
    struct metrics_pages *metrics_pages; /* the same */
    struct metrics_http *metrics_http;
    struct upkeep *upkeep;
    bool upkeep_runs;
    struct heap_watch heap; /* the upkeep's */
    struct log_mover *mover;

    /* Over every change of listeners; taken before `lock`. net is NULL under it before the first
     * and after the last. */
    pthread_mutex_t listeners_lock;
    struct bound_listener *bound; /* broker_listeners.c */
    int bound_n;
    bool listening;          /* clients are let in */
    int network_threads;     /* that get new connections */
    uint64_t endpoints_told; /* what was registered, as a hash */

    pthread_mutex_t lock;
    pthread_cond_t cond;
    /* Under lock. */
    int async;        /* broker_async_begin without its end */
    bool ready;       /* the controller's first round is over */
    const char *dead; /* why it cannot go on; static text */
    void (*on_fatal)(void *arg, const char *why);
    void *on_fatal_arg;
};

/* How many workers may read cold records ahead, of so many. */
static inline int broker_warmers(int64_t workers)
{
    return workers > 1 ? (int)(workers / 2) : 1;
}

/* `why` is static text. @thread any */
void broker_fatal(struct broker *b, const char *why);
/* Who it is: opens the store; cluster id and broker id. 0, or -errno with a line in err. @blocks */
int broker_find_identity(struct broker *b, char *err, size_t err_n);
void broker_log_options(struct broker *b, struct log_manager_options *o);
/* Writes "what: reason" and returns rc. */
int broker_start_failed(char *err, size_t err_n, int rc, const char *what);
/* The last steps of the start. 0, or -errno with a line in err. */
int broker_start_upkeep(struct broker *b, char *err, size_t err_n);
int broker_start_cleaner(struct broker *b, char *err, size_t err_n);
int broker_make_mover(struct broker *b, char *err, size_t err_n);
/* The cleaner without its threads: before anybody may delete a log, which waits for it. */
int broker_make_cleaner(struct broker *b, char *err, size_t err_n);
/* Other settings are in force. 0 or -errno. @blocks */
int broker_cleaner_changed(struct broker *b, const struct config *old, const struct config *now);

/* ---- broker_endpoint.c: of metrics.http.listener; nothing without it ---- */
/* Begins to count. 0, or -errno with a line. */
int broker_make_metrics(struct broker *b, char *err, size_t err_n);
/* Opens the endpoint, when all that it tells of exists. The same. @blocks */
int broker_serve_metrics(struct broker *b, char *err, size_t err_n);
/* Closes it, before anything that it tells of ends. @blocks */
void broker_end_metrics(struct broker *b);
void broker_free_metrics(struct broker *b);

/* ---- broker_acls.c ---- */
/* Is authorizer.class.name one that this build has, or none? 0, or -ENOTSUP with a line. */
int broker_check_authorizer(const struct config *c, char *err, size_t err_n);
/* The authorizer with all ACLs, if there is to be one. 0, or -errno with a line. @blocks */
int broker_acls_start(struct broker *b, char *err, size_t err_n);
/* No further changes are followed. @thread the background executor's */
void broker_acls_end(struct broker *b);
void broker_acls_free(struct broker *b);

/* ---- broker_tokens.c ---- */
/* With all tokens that the store has, if there are to be any. 0, or -errno with a line. @blocks */
int broker_tokens_start(struct broker *b, char *err, size_t err_n);
/* What comes round. Only where there are tokens. @blocks */
void broker_tokens_upkeep(void *arg);
/* No further changes are followed. @thread the background executor's */
void broker_tokens_end(struct broker *b);
void broker_tokens_free(struct broker *b);

/* ---- broker_listeners.c ---- */
/* Makes the network and binds; nobody is let in yet. */
int broker_bind_listeners(struct broker *b, char *err, size_t err_n);
void broker_accept(struct broker *b);
/* Other settings are in force: listeners come and go, limits change, the registration follows. 0 or
 * -errno, after as much as could be done. @blocks */
int broker_listeners_apply(struct broker *b, const struct config *now);
/* Settings were told once more that are as they were: key stores may have changed under their
 * names. @blocks */
void broker_stores_look(struct broker *b, const struct config *now);
int broker_limit_ip(struct broker *b, const struct in6_addr *ip, double rate);
/* Advertised endpoints, which borrow from `c`; room for c->listeners_n. Returns how many. */
int broker_endpoints(struct broker *b, const struct config *c, struct endpoint *out);
/* Listeners change no more. Returns owned; NULL. */
struct net_server *broker_take_net(struct broker *b);
void broker_listeners_free(struct broker *b);

/* Takes down what has been made; frees. @blocks */
void broker_take_down(struct broker *b);

#endif
