/* znode.h - what the nodes of the tree hold: JSON (or text) to structs and back, byte for byte as
 * every member of a ZooKeeper-mode cluster reads and writes them.
 *
 * Readers take any key order, unknown keys, and every version listed; missing optional keys get
 * their defaults. Writers emit compact JSON of the newest version.
 *
 * ERRORS     decode: 0; -EBADMSG not such a node; -ENOMEM. encode: null bytes without memory, or
 *            when a text is not UTF-8.
 * OWNERSHIP  results are in the arena (encoded bytes have a NUL behind them).
 * THREADS    any. */
#ifndef METADATA_ZNODE_H
#define METADATA_ZNODE_H

#include "base/arena.h"
#include "metadata/metadata_cache.h"

struct id_list {
    int32_t *v;
    int n;
};
static inline bool id_list_has(struct id_list l, int32_t id)
{
    for (int i = 0; i < l.n; i++)
        if (l.v[i] == id)
            return true;
    return false;
}
static inline bool id_list_eq(struct id_list a, struct id_list b)
{
    return a.n == b.n && (a.n <= 0 || memcmp(a.v, b.v, (size_t)a.n * sizeof(*a.v)) == 0);
}

/* Order of int32_t ids, for qsort and bsearch. */
int id_compare(const void *a, const void *b);
/* Is one of them there more than once? Also true without memory. */
bool id_list_has_twice(struct id_list l, struct arena *a);

/* /brokers/ids/<id>, versions 1 to 5. `id` is the node's name. Endpoints are the advertised ones;
 * features are not kept (there are none in this mode). */
struct bytes znode_broker_encode(const struct broker_info *b, int32_t jmx_port,
                                 int64_t timestamp_ms, struct arena *a);
int znode_broker_decode(struct bytes data, int32_t id, struct arena *a, struct broker_info *b);

/* /brokers/topics/<t>, versions 1 to 3. */
struct partition_assignment {
    int32_t partition;
    struct id_list replicas;         /* in order of preference */
    struct id_list adding, removing; /* empty unless a reassignment is running */
};
struct topic_node {
    struct uuid id;                          /* zero = none */
    struct partition_assignment *partitions; /* by number, each once */
    int partitions_n;
};
struct bytes znode_topic_encode(const struct topic_node *t, struct arena *a);
int znode_topic_decode(struct bytes data, struct arena *a, struct topic_node *t);

/* /brokers/topics/<t>/partitions/<n>/state. The node's data version is the partition epoch. */
struct partition_node {
    int32_t controller_epoch;
    int32_t leader; /* -1 none */
    int32_t leader_epoch;
    struct id_list isr;
    bool recovering; /* since an unclean election */
};
struct bytes znode_partition_encode(const struct partition_node *p, struct arena *a);
int znode_partition_decode(struct bytes data, struct arena *a, struct partition_node *p);

/* /controller */
struct controller_node {
    int32_t broker;
    int64_t timestamp_ms;
    int32_t kraft_epoch; /* > 0: a migration away from ZooKeeper owns the node; -1 otherwise */
};
struct bytes znode_controller_encode(const struct controller_node *c, struct arena *a);
int znode_controller_decode(struct bytes data, struct controller_node *c);

/* /controller_epoch: decimal text. */
struct bytes znode_epoch_encode(int32_t epoch, struct arena *a);
int znode_epoch_decode(struct bytes data, int32_t *epoch);

/* /config/<type>/<entity>. Null data, and an object without "config", are an empty list. */
struct config_pair {
    struct str name, value;
};
struct config_list {
    struct config_pair *v; /* values that are null are left out when written */
    int n;
};
struct bytes znode_config_encode(struct config_list l, struct arena *a);
int znode_config_decode(struct bytes data, struct arena *a, struct config_list *l);

/* /config/changes/config_change_<n>: the entity's path below /config, e.g. "topics/t". */
struct bytes znode_config_change_encode(struct str entity_path, struct arena *a);
int znode_config_change_decode(struct bytes data, struct arena *a, struct str *entity_path);

/* /cluster/id: 22 characters. */
struct bytes znode_cluster_id_encode(const char *id, struct arena *a);
int znode_cluster_id_decode(struct bytes data, struct arena *a, struct str *id);

/* /latest_producer_id_block: both ends inclusive. */
struct producer_id_block {
    int32_t broker;
    int64_t start, end;
};
struct bytes znode_producer_ids_encode(const struct producer_id_block *b, struct arena *a);
int znode_producer_ids_decode(struct bytes data, struct producer_id_block *b);

/* Partitions by name. /admin/preferred_replica_election and isr_change_<n> have no replicas,
 * /admin/reassign_partitions does. */
struct named_partition {
    struct str topic;
    int32_t partition;
    struct id_list replicas;
};
struct named_partitions {
    struct named_partition *v;
    int n;
};
struct bytes znode_partitions_encode(struct named_partitions l, struct arena *a);
int znode_partitions_decode(struct bytes data, struct arena *a, struct named_partitions *out);
struct bytes znode_reassign_encode(struct named_partitions l, struct arena *a);
int znode_reassign_decode(struct bytes data, struct arena *a, struct named_partitions *out);

/* log_dir_event_<n>: a log dir of this broker failed. */
struct bytes znode_log_dir_event_encode(int32_t broker, struct arena *a);
int znode_log_dir_event_decode(struct bytes data, int32_t *broker);

/* /feature */
struct bytes znode_feature_encode(struct arena *a); /* version 2, enabled, no features */
/* Is the node as this broker would write it (version 2, enabled)? */
int znode_feature_decode(struct bytes data, int32_t *version, int32_t *status);

#endif
