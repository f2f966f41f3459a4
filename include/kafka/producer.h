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
/* Flushes for at most timeout_ms, aborts a transaction that nobody commits, fails what is left with
 * KAFKA_ERR_CLOSED, ends the thread, frees. NULL is fine. Not from a callback; no other call may be
 * in progress or follow. */
KAFKA_API void kafka_producer_close(kafka_producer_t *p, int64_t timeout_ms);

/* ---- transactions: with transactional.id ----
 *
 * What is sent, and the offsets given, between begin and commit become visible to read_committed
 * consumers all together, or never.
 *
 *   kafka_producer_init_transactions(p, -1);                    once
 *   for (;;) {
 *       kafka_producer_begin_transaction(p);
 *       kafka_producer_send(p, ...);                            only inside a transaction
 *       kafka_producer_send_offsets_to_transaction(p, offsets, n, group, -1);
 *       if (kafka_producer_commit_transaction(p, -1) != KAFKA_OK &&
 *           kafka_producer_transaction_status(p) == KAFKA_TXN_MUST_ABORT)
 *           kafka_producer_abort_transaction(p, -1);            then the same work again
 *   }
 *
 * TIMES    timeout_ms -1 is max.block.ms. KAFKA_ERR_TIMED_OUT: the work goes on. Call the same
 *          function again to learn its outcome; others but send_offsets and begin refuse until
 * then. ERRORS   Errors that heal are tried again within the time. After any other,
 *          kafka_producer_transaction_status says what may be done. KAFKA_ERR_STATE: not allowed
 * now (no transaction is open, or init is missing): nothing has changed. THREADS  any; the calls
 * but begin block, and refuse on the producer's own thread (in a callback) with KAFKA_ERR_STATE. */

/* Before anything else, once: finishes or aborts what an earlier producer of this transactional.id
 * left open, and shuts that one out (its calls fail with PRODUCER_FENCED). Without permission it
 * fails, and may be called again. @blocks */
KAFKA_API kafka_err_t kafka_producer_init_transactions(kafka_producer_t *p, int64_t timeout_ms);
KAFKA_API kafka_err_t kafka_producer_begin_transaction(kafka_producer_t *p);
/* These offsets (of the next records to read) are committed for the group when the transaction is.
 * The consumer must not commit itself (enable.auto.commit=false). Copies all. @blocks */
KAFKA_API kafka_err_t kafka_producer_send_offsets_to_transaction(
    kafka_producer_t *p, const kafka_offset_t *offsets, size_t n,
    const kafka_group_metadata_t *group, int64_t timeout_ms);
/* Sends what is gathered, waits for all outcomes, and commits. On an error of a record, too,
 * nothing is committed, and abort is due. @blocks */
KAFKA_API kafka_err_t kafka_producer_commit_transaction(kafka_producer_t *p, int64_t timeout_ms);
/* What was not sent yet fails with KAFKA_ERR_TXN_ABORTED; what was is left out by read_committed
 * consumers. @blocks */
KAFKA_API kafka_err_t kafka_producer_abort_transaction(kafka_producer_t *p, int64_t timeout_ms);

typedef enum {
    KAFKA_TXN_FINE,       /* no error: go on, or (after a timeout) make the same call again */
    KAFKA_TXN_MUST_ABORT, /* kafka_producer_abort_transaction; then a new transaction may begin */
    KAFKA_TXN_FATAL,      /* fenced, or refused for good: only kafka_producer_close is left */
} kafka_txn_status_t;
KAFKA_API kafka_txn_status_t kafka_producer_transaction_status(kafka_producer_t *p);

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
