/* producer_private.h - the inside of a producer.
 *
 * THREADS  `lock` guards queues, batches that are still open, memory accounting and states. The
 * background thread (sender) alone touches a batch that is closed for appends, the connections and
 * the producer id. ORDER    Per partition: batches lie in a queue in the order made. With
 * idempotence each gets a sequence number when it is first sent; while some batch of a partition is
 * to be sent again, nothing newer of that partition goes out until all in flight have come back,
 * and batches that return take their old place. So order holds over retries. */
#ifndef CLIENT_PRODUCER_PRIVATE_H
#define CLIENT_PRODUCER_PRIVATE_H

#include <kafka/producer.h>

#include <pthread.h>

#include "base/hmap.h"
#include "client/cluster.h"
#include "protocol/batch_builder.h"

enum partitioner { PARTITIONER_STICKY, PARTITIONER_ROUND_ROBIN };

/* One record's outcome, kept until its batch is done. */
struct thunk {
    kafka_delivery_cb cb;
    void *arg;
    int64_t timestamp;
};

struct pbatch {
    struct list link;     /* pqueue.waiting or pqueue.in_flight */
    struct list all_link; /* producer.incomplete, oldest first */
    struct pqueue *queue;
    uint64_t number;               /* rises with each batch made: what flush waits for */
    struct batch_builder *builder; /* NULL once finished */
    struct buf bytes;              /* finished batch */
    struct thunk *thunks;
    int32_t thunks_n, thunks_cap;
    size_t memory;   /* charged to buffer.memory */
    size_t estimate; /* uncompressed size so far */
    int64_t created_ms, retry_at_ms;
    int attempts;
    bool closed; /* no more appends */
    bool has_sequence;
    bool maybe_written; /* sent at least once without a clear answer */
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t sequence;
};

struct pqueue { /* one partition */
    struct ptopic *topic;
    int32_t partition;
    struct list waiting, in_flight;
    struct list active_link; /* producer.active while something waits */
    int32_t next_sequence;
    bool retrying; /* a batch came back: send nothing newer until in_flight is empty */
};

struct ptopic {
    struct hnode hnode; /* producer.topics */
    char *name;
    struct pqueue **queues;
    int32_t queues_n;
    int32_t sticky; /* current partition of records without key, -1 = choose */
    size_t sticky_bytes;
    uint32_t round_robin;
};

enum idempotence {
    IDEMPOTENCE_OFF,
    IDEMPOTENCE_NEEDS_ID,
    IDEMPOTENCE_ASKING,
    IDEMPOTENCE_READY,
    IDEMPOTENCE_DRAIN
};

struct kafka_producer {
    struct cluster *cluster;
    kafka_conf_t *conf;
    struct batch_options batch_options;
    int16_t acks;
    size_t batch_size, buffer_memory, max_request_size;
    int64_t linger_ms, max_block_ms, delivery_timeout_ms;
    int retries, max_in_flight;
    enum partitioner partitioner;
    bool ignore_keys;

    pthread_mutex_t lock;
    pthread_cond_t room;     /* memory came back, or closing */
    pthread_cond_t progress; /* a batch was completed */
    struct hmap topics;
    struct list active;     /* queues with waiting batches */
    struct list incomplete; /* all batches */
    size_t memory_used;
    int memory_waiters, flushing;
    uint64_t last_number;
    bool closing, wake_posted;
    kafka_err_t fatal;
    unsigned random;

    /* sender's */
    struct task wake_task;
    struct timer timer;
    int in_flight_total;
    enum idempotence idempotence;
    int64_t producer_id;
    int16_t producer_epoch;
    int id_attempts;
};

/* accumulator.c; `lock` held */
struct ptopic *producer_topic(kafka_producer_t *p, const char *name, int32_t partitions);
/* Puts the record into the queue's last batch or a new one. *wake: the sender has something to look
 * at. */
kafka_err_t accumulator_append(kafka_producer_t *p, struct pqueue *q, const kafka_record_t *r,
                               int64_t timestamp, kafka_delivery_cb cb, void *arg, bool *wake);
/* Bytes that the record may take. */
size_t accumulator_record_size(const kafka_producer_t *p, const kafka_record_t *r);
bool accumulator_batch_full(const kafka_producer_t *p, const struct pbatch *b);
/* May the queue's first batch go now? If not, *wait_ms (may shrink) says when to look again. */
bool accumulator_ready(const kafka_producer_t *p, struct pqueue *q, int64_t now_ms,
                       int64_t *wait_ms);
/* A closed batch of more than one record, as several of about batch.size, put in its place. false:
 * cannot be split. */
bool accumulator_split(kafka_producer_t *p, struct pbatch *b);
/* Inserts into waiting where its sequence belongs. */
void accumulator_requeue(kafka_producer_t *p, struct pbatch *b);
void pbatch_free(struct pbatch *b);

/* partitioner.c; `lock` held */
int32_t partitioner_choose(kafka_producer_t *p, struct ptopic *t, const kafka_record_t *r,
                           int32_t available);
void partitioner_appended(kafka_producer_t *p, struct ptopic *t, int32_t partition, size_t bytes,
                          bool batch_full);

/* sender.c */
void sender_init(kafka_producer_t *p);
/* Makes the sender look at the queues. `lock` held. */
void sender_wake(kafka_producer_t *p);
/* On the background thread: fails everything left with `err`. */
void sender_fail_all(kafka_producer_t *p, kafka_err_t err);
/* Takes the batch off all lists, gives its memory back, calls the callbacks (without the lock),
 * frees it. Background thread, lock not held. base_offset -1 on error. */
struct produce_response_partition_response;
void sender_complete(kafka_producer_t *p, struct pbatch *b, kafka_err_t err, const char *message,
                     int64_t base_offset, int64_t append_time,
                     const struct produce_response_partition_response *details);

#endif
