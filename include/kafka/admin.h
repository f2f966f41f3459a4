/* kafka/admin.h - looking at and changing a cluster. Every call blocks, at most timeout_ms, and
 * retries on its own what heals by itself (a moved controller, a lost connection). Results are
 * freed with the function they name. */
#ifndef KAFKA_ADMIN_H
#define KAFKA_ADMIN_H

#include <kafka/common.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kafka_admin kafka_admin_t;
KAFKA_API kafka_admin_t *kafka_admin_new(const kafka_conf_t *conf, char *err, size_t err_n);
KAFKA_API void kafka_admin_close(kafka_admin_t *a);

typedef struct {
    const char *name, *value;
} kafka_config_t;

typedef struct {
    int32_t partition;
    const int32_t *brokers;
    size_t brokers_n;
} kafka_replica_assignment_t;

/* partitions / replication_factor -1: the broker's defaults. message (may be NULL): the broker's
 * words, cut to fit. */
KAFKA_API kafka_err_t kafka_admin_create_topic(kafka_admin_t *a, const char *topic,
                                               int32_t partitions, int16_t replication_factor,
                                               const kafka_replica_assignment_t *assignment,
                                               size_t assignment_n, const kafka_config_t *configs,
                                               size_t configs_n, int64_t timeout_ms, char *message,
                                               size_t message_n);
KAFKA_API kafka_err_t kafka_admin_delete_topic(kafka_admin_t *a, const char *topic,
                                               int64_t timeout_ms, char *message, size_t message_n);
/* total: the number wanted afterwards. */
KAFKA_API kafka_err_t kafka_admin_create_partitions(kafka_admin_t *a, const char *topic,
                                                    int32_t total,
                                                    const kafka_replica_assignment_t *assignment,
                                                    size_t assignment_n, int64_t timeout_ms,
                                                    char *message, size_t message_n);

typedef struct {
    int32_t id;
    const char *host, *rack; /* rack NULL = none */
    int32_t port;
} kafka_node_t;

typedef struct {
    kafka_err_t err;
    int32_t partition, leader, leader_epoch; /* leader -1 = none */
    const int32_t *replicas, *isr, *offline;
    size_t replicas_n, isr_n, offline_n;
} kafka_partition_info_t;

typedef struct {
    kafka_err_t err;
    const char *name;
    uint8_t id[16]; /* zero when the broker has none */
    int internal;
    const kafka_partition_info_t *partitions;
    size_t partitions_n;
} kafka_topic_info_t;

typedef struct {
    const char *cluster_id;
    int32_t controller; /* -1 unknown */
    const kafka_node_t *nodes;
    size_t nodes_n;
    const kafka_topic_info_t *topics; /* in order of name */
    size_t topics_n;
} kafka_cluster_info_t;

/* topics NULL: all. Never creates topics. Free with kafka_cluster_info_free. */
KAFKA_API kafka_err_t kafka_admin_describe(kafka_admin_t *a, const char *const *topics,
                                           size_t topics_n, int64_t timeout_ms,
                                           kafka_cluster_info_t **out);
KAFKA_API void kafka_cluster_info_free(kafka_cluster_info_t *info);

enum { KAFKA_RESOURCE_TOPIC = 2, KAFKA_RESOURCE_BROKER = 4 };
typedef struct {
    const char *name, *value; /* value NULL = null or sensitive */
    int source; /* 1 topic, 2 dynamic broker, 3 dynamic default broker, 4 static broker, 5 default
                 */
    int read_only, sensitive;
} kafka_config_entry_t;
typedef struct {
    const kafka_config_entry_t *entries;
    size_t entries_n;
} kafka_config_entries_t;
/* Free with kafka_config_entries_free. */
KAFKA_API kafka_err_t kafka_admin_describe_configs(kafka_admin_t *a, int resource_type,
                                                   const char *resource, int64_t timeout_ms,
                                                   kafka_config_entries_t **out);
KAFKA_API void kafka_config_entries_free(kafka_config_entries_t *e);

typedef struct {
    int16_t key, min, max;
    const char *name; /* "Produce"; NULL for a key this library does not know */
} kafka_api_version_t;
typedef struct {
    kafka_node_t node;
    kafka_err_t err;
    const kafka_api_version_t *apis;
    size_t apis_n;
} kafka_broker_versions_t;
/* Asks every broker. Free with kafka_broker_versions_free(out, n). */
KAFKA_API kafka_err_t kafka_admin_broker_versions(kafka_admin_t *a, int64_t timeout_ms,
                                                  kafka_broker_versions_t **out, size_t *n);
KAFKA_API void kafka_broker_versions_free(kafka_broker_versions_t *v, size_t n);

#ifdef __cplusplus
}
#endif
#endif
