/* producer_private.h - the inside of a producer.
 *
 * FILES     producer.c       the public face
 *           accumulator.c    records into batches, a queue of batches per partition
 *           split.c          a batch that was too large, as several
 *           queues.c         which queues may go, by their partitions' leaders
 *           partitioner.c    which partition a record goes to
 *           sender.c         requests: what goes when, to whom
 *           outcome.c        answers: done, again, or failed
 *           delivery.c       callbacks, in the order of the records
 *           idempotence.c    producer id, epochs, sequence numbers
 *           txn*.c           transactions (see txn.h)
 * THREADS   `lock` guards all but what is marked. A batch in flight is the background thread's.
 * ORDER     Per partition, batches lie in a queue in the order of their records. Those that come
 *           back from a failed request take their old place, and while one of them waits nothing
 *           newer of the partition goes out until all in flight have come back. Nor does anything
 *           go to a new leader while the old one has something in flight: so a partition's batches
 *           are on one connection at a time, whose answers come in order, and those without an
 *           outcome are never more than a broker remembers (five) when it looks for duplicates.
 *           Callbacks come in the order of the records, too: of two batches sent again the second
 *           may be written while the first (which was written before, but nobody knows) meets an
 *           error once more; and what is given up may lie behind what is in flight. Its callbacks
 *           then wait for the older one's.
 * SEQUENCES With idempotence a batch gets its sequence number when it first goes out, and keeps it
 *           over retries: a broker that has it already says so. Each partition counts under an
 *           epoch of its own: one that lost its count (a batch was refused, or given up while it
 * may have been written) waits until none of its batches is in flight, then counts from 0 under a
 * new epoch; the others take that epoch when none of theirs has a number. */
#ifndef CLIENT_PRODUCER_PRIVATE_H
#define CLIENT_PRODUCER_PRIVATE_H

#include <kafka/producer.h>

#include <pthread.h>

#include "base/hmap.h"
#include "client/cluster.h"
#include "protocol/batch_builder.h"

enum partitioner {
    PARTITIONER_STICKY,
    PARTITIONER_UNIFORM_STICKY, /* another partition with each batch */
    PARTITIONER_ROUND_ROBIN,
    PARTITIONER_RANDOM,
};

/* One record's outcome, kept until its batch is done. */
struct thunk {
    kafka_delivery_cb cb;
    void *arg;
    int64_t timestamp;
};

struct pbatch {
    struct list link;     /* pqueue.waiting, in_flight, settled or given_up */
    struct list all_link; /* producer.incomplete, oldest first */
    struct list end_link; /* of several that are given up together */
    struct pqueue *queue;
    uint64_t number;               /* rises with each batch made: what flush waits for */
    uint64_t first_record;         /* of the queue's records ever: its place in the queue */
    struct batch_builder *builder; /* NULL once finished */
    struct buf bytes;              /* finished batch */
    struct thunk *thunks;
    int32_t thunks_n, thunks_cap;
    size_t memory;   /* charged to buffer.memory */
    size_t estimate; /* uncompressed size so far */
    int64_t created_ms, retry_at_ms;
    int attempts;
    bool closed; /* no more appends */
    bool reserved;
    bool in_flight;
    bool settled; /* has its outcome, which its callbacks are still to be told: */
    kafka_err_t err;
    int64_t base_offset, append_time_ms;
    char *message;       /* NULL: the code's text */
    char **record_words; /* of each record; NULL: none */
    bool has_sequence;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t sequence;
};

struct pqueue { /* one partition */
    struct ptopic *topic;
    int32_t partition;
    struct list waiting, in_flight;
    struct list settled;  /* before an older batch: their callbacks wait for its */
    struct list given_up; /* their callbacks are about to be called */
    int waiting_n;
    uint64_t records; /* ever */
    struct pleader *leader;
    struct pleader *sent_to; /* where in_flight is */
    struct list link; /* one of the leader's lists, while something waits and may go some time */
    bool retrying;    /* a batch came back: nothing newer goes until in_flight is empty */
    struct list txn_link; /* the transaction's wanted, asked or added, while it is part of it */
    bool in_txn;          /* its coordinator has it */
    int64_t last_offset;  /* the last known to be written; -1. Background thread */
    /* idempotence.c */
    bool lost_count;
    int64_t producer_id; /* of the count; -1: none yet */
    int16_t producer_epoch;
    int32_t next_sequence;
    int numbered; /* batches that have a sequence and no outcome */
};

/* The queues of the partitions that one broker leads. */
struct pleader {
    struct list link; /* producer.leaders */
    int32_t id;       /* -1: leader not known */
    struct list ready;
    struct list lingering; /* one open batch; in the order of their times */
    struct list resting;   /* first batch waits for its retry */
};

struct ptopic {
    struct hnode hnode; /* producer.topics */
    char *name;
    bool known; /* metadata has it */
    struct pqueue **queues;
    int32_t queues_n;
    int32_t available; /* partitions with a leader */
    int32_t sticky;    /* current partition of records without key, -1 = choose */
    int32_t last_sticky;
    int64_t used_ms; /* last batch begun */
    size_t sticky_bytes;
    uint32_t round_robin;
};

enum idempotence { IDEMPOTENCE_OFF, IDEMPOTENCE_NEEDS_ID, IDEMPOTENCE_ASKING, IDEMPOTENCE_READY };

struct kafka_producer {
    struct cluster *cluster;
    kafka_conf_t *conf;
    struct batch_options batch_options;
    int16_t acks;
    size_t batch_size, buffer_memory, max_request_size;
    int64_t linger_ms, max_block_ms, delivery_timeout_ms, topic_max_idle_ms;
    int retries, max_in_flight;
    enum partitioner partitioner;
    bool ignore_keys, adaptive;
    int64_t
        availability_timeout_ms; /* a partition whose batches wait longer is passed over; 0: off */
    const struct client_hooks *hooks; /* conf's */

    pthread_mutex_t lock;
    pthread_cond_t room;     /* memory came back, or closing */
    pthread_cond_t progress; /* a batch was completed */
    struct hmap topics;
    struct ptopic *last_topic; /* of the last send */
    struct list leaders;
    struct list incomplete; /* all batches */
    size_t memory_used;
    int memory_waiters, flushing;
    uint64_t last_number;
    bool closing, wake_posted;
    kafka_err_t fatal;
    unsigned random;
    enum idempotence idempotence;
    int64_t producer_id;
    int16_t producer_epoch;
    struct txn *txn; /* NULL without transactional.id */

    /* background thread */
    struct task wake_task;
    struct timer timer;
    int id_attempts;
    int64_t ask_at_ms; /* for a producer id, not before */
    bool stopped;
};

/* accumulator.c; `lock` held */
/* The topic with at least so many queues, made where they are missing. NULL without memory. */
struct ptopic *producer_topic(kafka_producer_t *p, const char *name, int32_t partitions);
struct ptopic *producer_find_topic(kafka_producer_t *p, const char *name);
/* Bytes that the record may take. */
size_t accumulator_record_size(const kafka_record_t *r);
/* Puts the record, of at most `size` bytes, into the queue's last batch or a new one. *wake: the
 * sender has something to look at. *full: the batch it went to has no room for more. */
kafka_err_t accumulator_append(kafka_producer_t *p, struct pqueue *q, const kafka_record_t *r,
                               size_t size, int64_t timestamp, struct thunk thunk, bool *wake,
                               bool *full);
struct pbatch *pbatch_new(kafka_producer_t *p, struct pqueue *q);
bool pbatch_add_thunk(struct pbatch *b, struct thunk t);
void pbatch_free(struct pbatch *b);
/* Back into waiting, where its records belong. */
void accumulator_requeue(kafka_producer_t *p, struct pbatch *b);

/* split.c; `lock` held. A waiting batch of more than one record, as several of about batch.size,
 * put in its place. false: cannot be split. */
bool accumulator_split(kafka_producer_t *p, struct pbatch *b);

/* queues.c; `lock` held */
/* Puts the queue where its state says. Call it after each change of waiting, in_flight, retrying or
 * lost_count. */
void queue_place(kafka_producer_t *p, struct pqueue *q);
struct pleader *producer_leader(kafka_producer_t *p, int32_t id);
void producer_free_leaders(kafka_producer_t *p);
/* What metadata says now of topics and leaders. Takes the lock itself. @thread background */
void producer_take_metadata(kafka_producer_t *p);
/* Those whose time has come become ready; *wait_ms shrinks to the next one's. */
void leader_wake_due(kafka_producer_t *p, struct pleader *l, int64_t now_ms, int64_t *wait_ms);

/* partitioner.c; `lock` held */
/* partitioner.class: a name or Java's class name. false: unknown. */
bool partitioner_parse(const char *name, enum partitioner *out);
/* The application's answer may be no partition. */
int32_t partitioner_choose(kafka_producer_t *p, struct ptopic *t, const kafka_record_t *r);
void partitioner_appended(kafka_producer_t *p, struct ptopic *t, int32_t partition, size_t bytes,
                          bool batch_full);

/* idempotence.c */
/* May batches go out? Asks for a producer id if there is none. @thread background */
bool idempotence_ready(kafka_producer_t *p, int64_t *wait_ms);
/* Gives the batch its number, when it needs one. `lock` held. */
void idempotence_number(kafka_producer_t *p, struct pbatch *b);
/* The batch has its outcome, or needs its number no more. `lock` held. */
void idempotence_done(struct pbatch *b);
/* The queue's count does not fit the broker's any more. `lock` held. */
void idempotence_lost(kafka_producer_t *p, struct pqueue *q);
/* The batch was refused, and so will be what was numbered behind it: its number is used again.
 * `lock` held. */
void idempotence_take_back(struct pbatch *b);
/* After lost, with nothing in flight: a new count. `lock` held. */
void idempotence_restart(kafka_producer_t *p, struct pqueue *q);

/* outcome.c; background thread, lock not held */
struct produce_response;
struct produce_response_partition_response;
/* What the answer (NULL: none, as `status` says) means for the batch, which is off all queues. */
void outcome_settle(kafka_producer_t *p, struct pbatch *b, int status,
                    const struct produce_response *answer);
/* Fails what waits longer than delivery.timeout.ms; *wait_ms shrinks to the next one's. */
void outcome_fail_overdue(kafka_producer_t *p, int64_t now_ms, int64_t *wait_ms);
/* Fails everything that waits. */
void outcome_fail_all(kafka_producer_t *p, kafka_err_t err);
/* Fails what a transaction that is lost gives up. */
void outcome_fail_lost(kafka_producer_t *p, kafka_err_t err);

/* delivery.c; background thread, lock not held */
struct outcome {
    kafka_err_t err;
    const char *message;                                       /* NULL: the code's text */
    int64_t base_offset;                                       /* -1 unknown */
    int64_t append_time_ms;                                    /* -1: the records' own times */
    const struct produce_response_partition_response *details; /* NULL: none */
};
/* The batch's outcome is there: its callbacks are called, unless older ones' are still to come;
 * then it is off all lists, gives its memory back, and is freed. */
void delivery_end(kafka_producer_t *p, struct pbatch *b, const struct outcome *o);
/* Does an older batch of the queue still wait for its outcome? `lock` held. */
bool delivery_has_older(const struct pbatch *b);

/* sender.c */
void sender_init(kafka_producer_t *p);
/* Makes the sender look at the queues. `lock` held. */
void sender_wake(kafka_producer_t *p);
/* Looks at them now. @thread background */
void sender_run(kafka_producer_t *p);
/* No more requests. @thread background */
void sender_stop(kafka_producer_t *p);

#endif
