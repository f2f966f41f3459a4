/* kafka/consumer.h - reading records: as a member of a group, which shares out the partitions of
 * the topics subscribed to, or from partitions that the caller names (assign).
 *
 *   kafka_conf_set(conf, "group.id", "g", err, sizeof err);
 *   kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
 *   kafka_consumer_subscribe(c, (const char *[]){"t"}, 1, NULL);
 *   while (running && kafka_consumer_poll(c, 1000, &m) == KAFKA_OK) {
 *       for (size_t i = 0; i < kafka_messages_count(m); i++)
 *           use(kafka_messages_at(m, i));
 *       kafka_messages_free(m);
 *   }
 *   kafka_consumer_close(c);
 *
 * THREADS  A consumer is used by one thread at a time, except kafka_consumer_wakeup, which any
 * thread may call. Its background thread fetches ahead and keeps it alive in the group
 * (heartbeats). Rebalance listeners and commit callbacks run inside poll, commit, unsubscribe and
 * close, on the thread that called; they may call the consumer, but not poll, subscribe or close.
 * Assignors run on the background thread. */
#ifndef KAFKA_CONSUMER_H
#define KAFKA_CONSUMER_H

#include <kafka/common.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kafka_consumer kafka_consumer_t;

#define KAFKA_OFFSET_BEGINNING (-2)
#define KAFKA_OFFSET_END (-1)

typedef struct {
    const char *topic;
    int32_t partition;
    int64_t offset;
    int64_t timestamp;
    int timestamp_type;   /* 0 CreateTime, 1 LogAppendTime, -1 none (message format 0) */
    int32_t leader_epoch; /* -1 unknown */
    const void *key;      /* NULL = null */
    size_t key_len;
    const void *value; /* NULL = null */
    size_t value_len;
    const kafka_header_t *headers;
    size_t headers_n;
} kafka_message_t;

typedef struct kafka_messages kafka_messages_t; /* what one poll returned */

/* Copies conf. NULL with a line in err when a setting is not legal. Connects when first needed. */
KAFKA_API kafka_consumer_t *kafka_consumer_new(const kafka_conf_t *conf, char *err, size_t err_n);
/* Commits (enable.auto.commit), calls the listener for what is given up, leaves the group (but for
 * a member with group.instance.id) and frees; messages already polled stay valid. Waits at most
 * timeout_ms for the brokers; the first form 30 s. NULL is fine. Not from a callback. @blocks */
KAFKA_API void kafka_consumer_close(kafka_consumer_t *c);
KAFKA_API void kafka_consumer_close_timeout(kafka_consumer_t *c, int64_t timeout_ms);

/* ---- groups (group.id must be set, else KAFKA_ERR_INVALID_ARG) ---- */

/* Told which partitions come and go; each may be NULL. With the eager assignors (range, roundrobin,
 * sticky) all partitions are revoked before each rebalance and assigned again after it; with
 * cooperative-sticky, and with group.protocol=consumer, only those that move. Offsets are best
 * committed in `revoked`; in `lost` the partitions may be with another member already, so that a
 * commit fails. `lost` NULL: `revoked` is called instead. In `assigned` kafka_consumer_seek sets
 * where reading begins. The arrays are borrowed during the call. */
typedef struct {
    void (*assigned)(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg);
    void (*revoked)(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg);
    void (*lost)(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg);
    void *arg;
} kafka_rebalance_listener_t;

/* Join the group for these topics and no others; poll does the work. Topics that do not exist are
 * waited for. The listener is copied, NULL: none. n = 0 is unsubscribe. KAFKA_ERR_STATE after
 * assign or subscribe_pattern, until unsubscribe. */
KAFKA_API kafka_err_t kafka_consumer_subscribe(kafka_consumer_t *c, const char *const *topics,
                                               size_t n,
                                               const kafka_rebalance_listener_t *listener);
/* The same for all topics, now and later, whose whole name matches: a regular expression as Java
 * has them, without its lookarounds and possessive quantifiers; internal topics only when
 * exclude.internal.topics=false. KAFKA_ERR_INVALID_ARG when it is not one. */
KAFKA_API kafka_err_t kafka_consumer_subscribe_pattern(kafka_consumer_t *c, const char *pattern,
                                                       const kafka_rebalance_listener_t *listener);
/* Leaves the group, or lets go of what was assigned. Calls the listener. @blocks briefly */
KAFKA_API kafka_err_t kafka_consumer_unsubscribe(kafka_consumer_t *c);
/* Partitions that are read now. Returns owned, in *out. */
KAFKA_API kafka_err_t kafka_consumer_assignment(kafka_consumer_t *c, kafka_partition_list_t **out);
/* Topics subscribed to (with a pattern: those that match), each with partition -1. Returns owned.
 */
KAFKA_API kafka_err_t kafka_consumer_subscription(kafka_consumer_t *c,
                                                  kafka_partition_list_t **out);
/* The member's id ("" when it has none) and generation (-1). Borrowed until the next call. */
KAFKA_API const char *kafka_consumer_member_id(kafka_consumer_t *c);
KAFKA_API int32_t kafka_consumer_generation(kafka_consumer_t *c);
/* The group and what this member is in it now, for kafka_producer_send_offsets_to_transaction: take
 * it after the poll whose records the offsets are of. Returns owned (kafka_group_metadata_free);
 * NULL without group.id or memory. */
KAFKA_API kafka_group_metadata_t *kafka_consumer_group_metadata(kafka_consumer_t *c);
/* Leave and join again at the next poll: something that a custom assignor looks at has changed. */
KAFKA_API kafka_err_t kafka_consumer_enforce_rebalance(kafka_consumer_t *c);

/* ---- commits: with a group or, with assign and group.id, as its only user ---- */

/* Commits these offsets, or with NULL the positions of all partitions that are read. Tried again
 * while errors heal, at most timeout_ms (-1: default.api.timeout.ms). REBALANCE_IN_PROGRESS: poll,
 * then commit what is still assigned; KAFKA_ERR_COMMIT_FAILED: no member any more. @blocks */
KAFKA_API kafka_err_t kafka_consumer_commit(kafka_consumer_t *c, const kafka_offset_t *offsets,
                                            size_t n, int64_t timeout_ms);
/* err: that of the whole, else the first partition's. Runs inside a later poll, commit or close, in
 * the order of the calls. `offsets` is borrowed during the call, with an error each. */
typedef void (*kafka_commit_cb)(kafka_consumer_t *c, kafka_err_t err, const kafka_offset_t *offsets,
                                size_t n, void *arg);
/* The same without waiting, tried once. cb may be NULL: failures are then logged. On error nothing
 * was sent, and cb will not be called. */
KAFKA_API kafka_err_t kafka_consumer_commit_async(kafka_consumer_t *c,
                                                  const kafka_offset_t *offsets, size_t n,
                                                  kafka_commit_cb cb, void *arg);
/* What the group has committed for these partitions, offset -1 where nothing. Returns owned, in
 * *out. @blocks at most timeout_ms (-1: default.api.timeout.ms) */
KAFKA_API kafka_err_t kafka_consumer_committed(kafka_consumer_t *c,
                                               const kafka_topic_partition_t *tps, size_t n,
                                               int64_t timeout_ms, kafka_offset_list_t **out);

/* ---- assignors of one's own ---- */

typedef struct {
    const char *member_id;
    const char *instance_id;   /* NULL: none */
    const char *rack;          /* NULL: none */
    const char *const *topics; /* subscribed, sorted */
    size_t topics_n;
    const kafka_topic_partition_t *owned; /* what it says it has */
    size_t owned_n;
    int32_t generation;    /* in which it got that; -1 unknown */
    const void *user_data; /* what its assignor's user_data gave; NULL: none */
    size_t user_data_len;
} kafka_group_member_t;

typedef struct {
    const char *name;
    int32_t partitions;
    /* racks[partition]: those of its replicas' brokers, sorted, each once, NULL at the end. NULL
     * when no broker of the cluster tells one. */
    const char *const *const *racks;
} kafka_topic_size_t;

typedef struct kafka_assignment kafka_assignment_t; /* being made */
/* members[member] gets the partition. */
KAFKA_API kafka_err_t kafka_assignment_add(kafka_assignment_t *a, size_t member, const char *topic,
                                           int32_t partition);
/* Bytes for members[member]'s on_assigned. */
KAFKA_API kafka_err_t kafka_assignment_set_user_data(kafka_assignment_t *a, size_t member,
                                                     const void *data, size_t len);

typedef struct {
    const char *name; /* the protocol's, to be named in partition.assignment.strategy */
    int cooperative;  /* members keep what they have during a rebalance; what moves must be left out
                       * of one round, so that its owner gives it up first */
    /* Shares out the topics that exist among the members, who are sorted (instance ids first). An
     * error fails the rebalance. */
    kafka_err_t (*assign)(const kafka_group_member_t *members, size_t members_n,
                          const kafka_topic_size_t *topics, size_t topics_n,
                          kafka_assignment_t *out, void *arg);
    /* May be NULL. What this member tells the assignor: writes at most n bytes, returns how many
     * (0: none). */
    size_t (*user_data)(void *buf, size_t n, void *arg);
    /* May be NULL. Told what this member got, with the bytes of kafka_assignment_set_user_data. */
    void (*on_assigned)(const kafka_topic_partition_t *tps, size_t n, const void *user_data,
                        size_t user_data_len, int32_t generation, void *arg);
    void *arg;
} kafka_assignor_t;
/* Copies it (name too); `arg` and what it leads to must outlive the consumers made from conf. All
 * three functions run on those consumers' background threads and must not call them. */
KAFKA_API kafka_err_t kafka_conf_add_assignor(kafka_conf_t *conf, const kafka_assignor_t *assignor);

/* ---- partitions and positions ---- */

/* Partitions of a topic (waits at most default.api.timeout.ms; kafka_consumer_wakeup ends that).
 * UNKNOWN_TOPIC_OR_PARTITION when there is none; the broker may then be creating it, if it does so
 * and allow.auto.create.topics is true: ask again. */
KAFKA_API kafka_err_t kafka_consumer_partition_count(kafka_consumer_t *c, const char *topic,
                                                     int32_t *count);

/* Read these partitions and no others. Positions of partitions that stay are kept; new ones start
 * at the group's committed offset if group.id is set, else where auto.offset.reset says (default
 * latest), unless seek is called. KAFKA_ERR_STATE while subscribed. n = 0 is unsubscribe. */
KAFKA_API kafka_err_t kafka_consumer_assign(kafka_consumer_t *c, const kafka_topic_partition_t *tps,
                                            size_t n);
/* Next poll reads from here: an offset, KAFKA_OFFSET_BEGINNING or KAFKA_OFFSET_END. KAFKA_ERR_STATE
 * when the partition is not assigned. */
KAFKA_API kafka_err_t kafka_consumer_seek(kafka_consumer_t *c, const char *topic, int32_t partition,
                                          int64_t offset);
KAFKA_API kafka_err_t kafka_consumer_pause(kafka_consumer_t *c, const char *topic,
                                           int32_t partition);
KAFKA_API kafka_err_t kafka_consumer_resume(kafka_consumer_t *c, const char *topic,
                                            int32_t partition);
/* Offset of the next record that poll will return. Blocks while a reset is resolved, at most
 * timeout_ms. */
KAFKA_API kafka_err_t kafka_consumer_position(kafka_consumer_t *c, const char *topic,
                                              int32_t partition, int64_t timeout_ms,
                                              int64_t *offset);

/* Up to max.poll.records records, waiting at most timeout_ms for the first. *out is NULL (and
 * KAFKA_OK) when none came. Errors of single partitions that do not heal by themselves are returned
 * as the call's error with *out NULL; the next call goes on. Free with kafka_messages_free. */
KAFKA_API kafka_err_t kafka_consumer_poll(kafka_consumer_t *c, int64_t timeout_ms,
                                          kafka_messages_t **out);
KAFKA_API size_t kafka_messages_count(const kafka_messages_t *m);
/* Borrowed until kafka_messages_free. */
KAFKA_API const kafka_message_t *kafka_messages_at(const kafka_messages_t *m, size_t i);
KAFKA_API void kafka_messages_free(kafka_messages_t *m);
/* Makes a call that waits (poll, commit, committed, position, partition_count, list_offsets), or
 * the next one, return KAFKA_ERR_WAKEUP. @thread any */
KAFKA_API void kafka_consumer_wakeup(kafka_consumer_t *c);

/* Records between the position and the end of what may be read, as the last answer told it; -1 when
 * it is not known yet. KAFKA_ERR_STATE when the partition is not assigned. */
KAFKA_API kafka_err_t kafka_consumer_lag(kafka_consumer_t *c, const char *topic, int32_t partition,
                                         int64_t *lag);

/* ListOffsets for n partitions: timestamp KAFKA_OFFSET_BEGINNING, KAFKA_OFFSET_END, -3 (record with
 * the largest timestamp), -4 (first kept locally), -5 (last in remote storage), or a time;
 * offsets[i] = -1 when there is none, or error per partition in errs[i]. */
KAFKA_API kafka_err_t kafka_consumer_list_offsets(kafka_consumer_t *c,
                                                  const kafka_topic_partition_t *tps,
                                                  const int64_t *timestamps, size_t n,
                                                  int64_t timeout_ms, int64_t *offsets,
                                                  int64_t *found_timestamps, kafka_err_t *errs);

/* Looks at what comes and what is committed; each may be NULL. Added before kafka_consumer_new,
 * which copies it. Called inside poll and commit, on their thread. */
typedef struct {
    void (*on_consume)(const kafka_messages_t *m, void *arg);
    void (*on_commit)(const kafka_offset_t *offsets, size_t n, void *arg); /* that were committed */
    void *arg;
} kafka_consumer_interceptor_t;
KAFKA_API kafka_err_t kafka_conf_add_consumer_interceptor(kafka_conf_t *conf,
                                                          const kafka_consumer_interceptor_t *i);

#ifdef __cplusplus
}
#endif
#endif
