/* metadata_cache.h - what this broker knows of the cluster: brokers and their endpoints, topics,
 * partitions, leaders, topic ids, controller. Filled only by UpdateMetadata requests.
 *
 * An immutable snapshot behind one pointer: a reader takes a reference, sees one state for its
 * whole answer, and lets go. An update makes a new snapshot that shares unchanged topics. THREADS
 * any. */
#ifndef METADATA_METADATA_CACHE_H
#define METADATA_METADATA_CACHE_H

#include "base/arena.h"
#include "base/executor.h"
#include "base/str.h"
#include "protocol/codec.h"

struct update_metadata_request; /* generated: protocol/msg/update_metadata.h */

struct endpoint {
    struct str listener, host;
    int32_t port;
    int16_t security_protocol; /* 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL */
};
struct broker_info {
    int32_t id;
    struct str rack; /* null = none */
    const struct endpoint *endpoints;
    int endpoints_n;
};
struct partition_info {
    int32_t leader; /* -1 none */
    int32_t leader_epoch, partition_epoch, controller_epoch;
    const int32_t *replicas, *isr, *offline;
    int replicas_n, isr_n, offline_n;
};
struct topic_info {
    struct str name;
    struct uuid id; /* zero = none */
    bool internal;
    int partitions_n; /* numbers 0 .. n-1; a gap has leader -1 and replicas_n 0 */
    const struct partition_info *partitions;
};

struct metadata_cache;
struct metadata_snapshot;

struct metadata_cache *metadata_cache_new(void); /* NULL without memory */
void metadata_cache_free(struct metadata_cache *c);
/* Merges the request (any version) and publishes. 0; -ENOMEM, or -EINVAL for a partition number
 * that cannot be: then nothing has changed. The request is only read.
 * @thread one writer at a time */
int metadata_cache_update(struct metadata_cache *c, const struct update_metadata_request *req);
/* Told after every update; for waiters. */
struct metadata_listener {
    struct list link;
    /* On the updating thread, right after publishing; must not block, nor listen or unlisten. */
    void (*updated)(struct metadata_listener *l);
};
void metadata_cache_listen(struct metadata_cache *c, struct metadata_listener *l);
/* Afterwards it is not running and will not be called. @blocks while it runs */
void metadata_cache_unlisten(struct metadata_cache *c, struct metadata_listener *l);

/* Returns shared. Everything below is borrowed from the snapshot. */
const struct metadata_snapshot *metadata_acquire(struct metadata_cache *c);
void metadata_release(const struct metadata_snapshot *s);

int32_t metadata_controller(const struct metadata_snapshot *s); /* -1 unknown */
int metadata_brokers(const struct metadata_snapshot *s,
                     const struct broker_info **out); /* live, by id */
const struct broker_info *metadata_broker(const struct metadata_snapshot *s, int32_t id); /* NULL */
const struct endpoint *broker_endpoint(const struct broker_info *b, struct str listener); /* NULL */
const struct topic_info *metadata_topic(const struct metadata_snapshot *s, struct str name);
const struct topic_info *metadata_topic_by_id(const struct metadata_snapshot *s, struct uuid id);
/* NULL when topic or number are not known. */
const struct partition_info *metadata_partition(const struct metadata_snapshot *s, struct str topic,
                                                int32_t partition);
int metadata_topics_n(const struct metadata_snapshot *s);
/* All topics in order of name (sorted once per snapshot, on demand). Array in the arena, NULL
 * without memory. */
const struct topic_info **metadata_topics(const struct metadata_snapshot *s, struct arena *a);

/* 1..249 of [a-zA-Z0-9._-], not "." or "..": NULL when legal, else why not (static text). */
const char *topic_name_problem(struct str name);
/* Equal after replacing '.' by '_'? */
bool topic_names_collide(struct str a, struct str b);
bool topic_is_internal(struct str name); /* __consumer_offsets, __transaction_state */

#endif
