/* kafka/consumer.h - reading records, from partitions that the caller names (simple consumer).
 *
 * A consumer is used by one thread at a time, except kafka_consumer_wakeup, which any thread may
 * call. */
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

KAFKA_API kafka_consumer_t *kafka_consumer_new(const kafka_conf_t *conf, char *err, size_t err_n);
/* Frees; messages already polled stay valid. NULL is fine. */
KAFKA_API void kafka_consumer_close(kafka_consumer_t *c);

/* Partitions of a topic (waits at most default.api.timeout.ms; kafka_consumer_wakeup ends that).
 * UNKNOWN_TOPIC_OR_PARTITION when there is none; the broker may then be creating it, if it does so
 * and allow.auto.create.topics is true: ask again. */
KAFKA_API kafka_err_t kafka_consumer_partition_count(kafka_consumer_t *c, const char *topic,
                                                     int32_t *count);

/* Read these partitions and no others. Positions of partitions that stay are kept; new ones start
 * where auto.offset.reset says (default latest) unless seek is called. */
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
/* Makes a poll or partition_count that waits, or the next one, return KAFKA_ERR_WAKEUP. @thread any
 */
KAFKA_API void kafka_consumer_wakeup(kafka_consumer_t *c);

/* ListOffsets for n partitions: timestamp KAFKA_OFFSET_BEGINNING, KAFKA_OFFSET_END, -3 (record with
 * the largest timestamp), -4 (first kept locally), -5 (last in remote storage), or a time;
 * offsets[i] = -1 when there is none, or error per partition in errs[i]. */
KAFKA_API kafka_err_t kafka_consumer_list_offsets(kafka_consumer_t *c,
                                                  const kafka_topic_partition_t *tps,
                                                  const int64_t *timestamps, size_t n,
                                                  int64_t timeout_ms, int64_t *offsets,
                                                  int64_t *found_timestamps, kafka_err_t *errs);

#ifdef __cplusplus
}
#endif
#endif
