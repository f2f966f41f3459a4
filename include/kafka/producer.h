/* kafka/producer.h - sending records.
 *
 *   kafka_producer_t *p = kafka_producer_new(conf, err, sizeof err);
 *   kafka_producer_send(p, &(kafka_record_t){.topic = "t", .partition = KAFKA_PARTITION_ANY, .value
 * = "v", .value_len = 1, .timestamp = KAFKA_TIMESTAMP_NOW}, on_delivery, NULL);
 *   kafka_producer_flush(p, -1);
 *   kafka_producer_close(p, -1); */
#ifndef KAFKA_PRODUCER_H
#define KAFKA_PRODUCER_H

#include <kafka/common.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kafka_producer kafka_producer_t;

#define KAFKA_PARTITION_ANY (-1)
#define KAFKA_TIMESTAMP_NOW (-1)

typedef struct {
    const char *topic;
    int32_t
        partition; /* KAFKA_PARTITION_ANY: by partitioner.class, which takes the key (murmur2), and
                      without one sticks to a partition for a batch, the less loaded ones first */
    int64_t timestamp; /* KAFKA_TIMESTAMP_NOW */
    const void *key;   /* NULL = null; for an empty key give a non-NULL pointer and length 0 */
    size_t key_len;
    const void *value; /* NULL = null (a tombstone) */
    size_t value_len;
    const kafka_header_t *headers;
    size_t headers_n;
} kafka_record_t;

typedef struct {
    kafka_err_t err;
    const char *error_message; /* the broker's words, or the code's text */
    const char *topic;
    int32_t partition;
    int64_t offset;    /* -1 when err is set, or acks=0 */
    int64_t timestamp; /* the record's, or the log append time where the topic says so */
} kafka_delivery_t;

/* Once per record accepted by send, in the order of the partition; on the producer's thread. `d` is
 * borrowed during the call. */
typedef void (*kafka_delivery_cb)(const kafka_delivery_t *d, void *arg);

/* Copies conf. NULL with a line in err when a setting is not legal. Connects when first needed.
 * Free with kafka_producer_close. */
KAFKA_API kafka_producer_t *kafka_producer_new(const kafka_conf_t *conf, char *err, size_t err_n);

/* Copies the record into a batch and returns; cb may be NULL. Blocks at most max.block.ms, for
 * metadata of the topic or for room in buffer.memory. On error the record was not taken and cb will
 * not be called. */
KAFKA_API kafka_err_t kafka_producer_send(kafka_producer_t *p, const kafka_record_t *record,
                                          kafka_delivery_cb cb, void *arg);
/* Sends one record and waits for its outcome (at most delivery.timeout.ms). *offset may be NULL. */
KAFKA_API kafka_err_t kafka_producer_send_sync(kafka_producer_t *p, const kafka_record_t *record,
                                               int64_t *offset);
/* Sends what is gathered without waiting for linger.ms, until every record sent before has its
 * outcome, or KAFKA_ERR_TIMED_OUT. Not from a callback. */
KAFKA_API kafka_err_t kafka_producer_flush(kafka_producer_t *p, int64_t timeout_ms);
/* Number of partitions of a topic (waits for metadata at most max.block.ms). */
KAFKA_API kafka_err_t kafka_producer_partition_count(kafka_producer_t *p, const char *topic,
                                                     int32_t *count);
/* Flushes for at most timeout_ms, fails what is left with KAFKA_ERR_CLOSED, ends the thread, frees.
 * NULL is fine. Not from a callback; no other call may be in progress or follow. */
KAFKA_API void kafka_producer_close(kafka_producer_t *p, int64_t timeout_ms);

/* ---- of one's own; set before kafka_producer_new, which copies them ---- */

/* Chooses the partition (0 to partitions - 1) of a record that names none; anything else refuses
 * the record with KAFKA_ERR_INVALID_ARG. Runs on the sending thread, one call at a time, and must
 * not call the producer. Goes before partitioner.class. */
typedef int32_t (*kafka_partitioner_fn)(const kafka_record_t *record, int32_t partitions,
                                        void *arg);
KAFKA_API kafka_err_t kafka_conf_set_partitioner(kafka_conf_t *conf, kafka_partitioner_fn fn,
                                                 void *arg);

/* Looks at records on their way; each may be NULL. Several are called in the order they were added.
 */
typedef struct {
    /* Before the record is taken; may change it (what it then points to must live until send
     * returns). On the sending thread. */
    void (*on_send)(kafka_record_t *record, void *arg);
    /* Its outcome, before its callback. On the producer's thread; a refused send on the sender's.
     */
    void (*on_acknowledgement)(const kafka_delivery_t *d, void *arg);
    void *arg;
} kafka_producer_interceptor_t;
KAFKA_API kafka_err_t kafka_conf_add_producer_interceptor(kafka_conf_t *conf,
                                                          const kafka_producer_interceptor_t *i);

#ifdef __cplusplus
}
#endif
#endif
