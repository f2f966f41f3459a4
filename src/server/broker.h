/* broker.h - one broker: owns every part, starts them in order, stops them in order. Several can
 * live in one process (tests).
 *
 * START    config -> log dirs' meta -> store (embedded or ZooKeeper) -> cluster id, broker id ->
 *          load logs -> replica manager -> bind listeners -> register -> controller -> first
 *          metadata -> accept -> "started".
 * STOP     on ZooKeeper first: the controller has others lead. Then: stop accepting, finish
 *          requests -> scheduler -> controller -> replicas -> logs with the clean mark -> store ->
 *          "shut down completed".
 * THREADS  start, stop: one thread, not one of the broker's. Everything else: any. */
#ifndef SERVER_BROKER_H
#define SERVER_BROKER_H

#include "base/clock.h"
#include "base/executor.h"
#include "base/workers.h"
#include "metadata/metadata_cache.h"
#include "metadata/store.h"
#include "net/server_conn.h"
#include "replica/replica_manager.h"
#include "server/config.h"

struct auto_create;
struct broker;
struct client_quotas;
struct control_gate;
struct control_queue;
struct controller;
struct dynamic_config;
struct fetch_sessions;
struct group_manager;
struct log_mover;
struct producer_ids;
struct replication_throttle;
struct topic_admin;
struct txn_manager;

/* Takes config in both cases. 0 = serving; else -errno with lines for people in err (mostly one;
 * separated by '\n'). @blocks */
int broker_start(struct config *config, struct broker **out, char *err, size_t err_n);
/* Controlled, clean stop; frees. @blocks */
void broker_stop(struct broker *b);
/* What this build cannot do though the settings ask for it: -ENOTSUP or -EINVAL with a line in err
 * for each such thing (separated by '\n'), or 0. */
int broker_check_supported(const struct config *config, char *err, size_t err_n);
/* Called (any thread, once) when the broker cannot go on: no log dir left, metadata journal failed.
 */
void broker_on_fatal(struct broker *b, void (*cb)(void *arg, const char *why), void *arg);

/* For handlers. All borrowed. */
int32_t broker_id(const struct broker *b);
const char *broker_cluster_id(const struct broker *b);
/* As it was started: for what does not change while it runs. */
const struct config *broker_config(const struct broker *b);
/* The settings in force, those changed while running included. */
struct dynamic_config *broker_dynamic_config(const struct broker *b);
struct client_quotas *broker_quotas(const struct broker *b);
/* -1: none are known, also without a broker. */
int64_t broker_features_epoch(const struct broker *b);
struct log_mover *broker_log_mover(const struct broker *b);
const struct clock *broker_clock(const struct broker *b);
struct metadata_cache *broker_metadata(const struct broker *b);
struct replica_manager *broker_replicas(const struct broker *b);
struct replication_throttle *broker_throttle(const struct broker *b);
struct log_manager *broker_logs(const struct broker *b);
struct store *broker_store(const struct broker *b);
struct topic_admin *broker_topic_admin(const struct broker *b);
struct workers *broker_workers(const struct broker *b);
struct turns *broker_warming(const struct broker *b); /* fetch_warm.c's, on the workers */
struct fetch_sessions *broker_fetch_sessions(const struct broker *b);
struct control_queue *broker_control_queue(const struct broker *b);
struct control_gate *broker_control_gate(struct broker *b);
struct auto_create *broker_auto_create(const struct broker *b);
struct producer_ids *broker_producer_ids(const struct broker *b);
struct group_manager *broker_groups(const struct broker *b);
struct txn_manager *broker_txns(const struct broker *b);
/* Who is asked whether a partition is in a transaction; NULL when nobody is to be
 * (transaction.partition.verification.enable). */
struct txn_manager *broker_txn_verifier(const struct broker *b);
struct controller *broker_controller(const struct broker *b);
/* A member of a cluster, or one by itself on the embedded store. */
bool broker_on_zookeeper(const struct broker *b);
/* Is this broker the controller now? */
bool broker_is_controller(const struct broker *b);
/* Settings of a topic as in force now (broker's values, then overrides). */
void broker_topic_config(struct broker *b, struct str topic, struct log_config *out);
/* A topic's own settings, maybe none. Returns owned (props_free); NULL without memory. */
struct props *broker_topic_overrides(struct broker *b, struct str topic);

/* A request that waits for another thread (the store's, a worker) without hearing of a closed
 * connection is counted between these two, and broker_stop waits for it. @thread any */
void broker_async_begin(struct broker *b);
void broker_async_end(struct broker *b);

#endif
