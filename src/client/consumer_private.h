/* consumer_private.h - the inside of a consumer.
 *
 * THREADS  `lock` guards everything here but what is marked. The background thread (fetcher.c)
 * sends requests and queues what comes back; the user's thread (consumer.c) takes records from the
 * queues. STALE    Each partition has a generation that rises with every seek and reassignment; an
 * answer to a request of an earlier generation is thrown away. */
#ifndef CLIENT_CONSUMER_PRIVATE_H
#define CLIENT_CONSUMER_PRIVATE_H

#include <kafka/consumer.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/hmap.h"
#include "base/java_regex.h"
#include "client/cluster.h"
#include "protocol/record_batch.h"
#include "protocol/record_iter.h"

enum consumer_mode { CONSUMER_NONE, CONSUMER_ASSIGN, CONSUMER_TOPICS, CONSUMER_PATTERN };

enum cpart_state {
    CPART_START, /* no position yet: the group's committed offset, else auto.offset.reset decides */
    CPART_RESET, /* position is being looked up: reset_to */
    CPART_VALIDATE, /* has a position that the new leader has to confirm */
    CPART_FETCH,    /* has a position */
    CPART_NOWHERE,  /* auto.offset.reset=none: poll has told; the application must seek */
};

/* Where the memory of answers waits to be used again, once its records are read. It may outlive the
 * consumer, as messages do. */
enum { SPENT_MAX = 4 };
struct spent_answers {
    atomic_int refs; /* the consumer's and one per fetch_memory */
    pthread_mutex_t lock;
    bool closed;
    struct peer_response *v[SPENT_MAX]; /* owned */
    int n;
};

/* The memory of one Fetch answer, which the records of all its partitions lie in. */
struct fetch_memory {
    atomic_int refs;
    struct peer_response *response; /* owned; NULL: none yet */
    struct spent_answers *spent;    /* one reference */
};

/* One batch whose records are handed out, decompressed if it was compressed. */
struct opened {
    atomic_int refs;   /* fetched.open's, while there are records left, and one per message set */
    struct fetched *f; /* one reference */
    struct record_iter iter;
};

/* Records of one partition as one answer brought them. */
struct fetched {
    struct list link;            /* cpart.queue */
    atomic_int refs;             /* the queue's and one per opened batch */
    struct fetch_memory *memory; /* one reference */
    const uint8_t *bytes;        /* in there */
    size_t len;
    int64_t next_offset; /* behind the last whole batch */
    int64_t from_offset; /* records below are not for us */
    /* user's thread */
    size_t at;               /* next entry in bytes */
    struct batch head;       /* of the open entry */
    struct opened *open;     /* NULL: none */
    struct aborted *aborted; /* read_committed: see aborted.h; NULL: nothing is left out */
};

struct cpart {
    struct list link;   /* consumer.parts */
    struct hnode hnode; /* consumer.by_name */
    int refs;           /* the list's and one per request under way */
    char *topic;
    int32_t partition;
    int32_t leader; /* as metadata has it, -1 unknown */
    int32_t leader_epoch;
    int32_t preferred; /* a replica that is closer, -1: none */
    int64_t preferred_until_ms;
    uint64_t assigned; /* by which assign call */
    enum cpart_state state;
    uint64_t generation;
    int64_t reset_to;
    int64_t position;       /* next record to hand out */
    int32_t position_epoch; /* of the record before it, -1 unknown */
    int64_t fetch_at;       /* next record to ask for */
    int64_t end;            /* of what may be read, as the last answer told it; -1 unknown */
    int32_t epoch;          /* leader epoch of the last batch taken */
    bool paused, busy /* a request is under way */, revoked;
    int attempts;
    int64_t retry_at_ms;
    struct list queue; /* of struct fetched */
    int queue_n;
};

struct kafka_consumer {
    struct cluster *cluster;
    kafka_conf_t *conf;
    int64_t reset_to; /* LIST_* timestamp of auto.offset.reset, 0 = none */
    bool read_committed, check_crcs;
    int max_poll_records;
    int32_t fetch_min_bytes, fetch_max_bytes, fetch_max_wait_ms, partition_max_bytes;
    int64_t api_timeout_ms;
    const char *rack;
    struct group *group; /* NULL without group.id */

    pthread_mutex_t lock;
    pthread_cond_t news; /* records, an error, a position, a wakeup */
    struct list parts;
    struct hmap by_name;
    enum consumer_mode mode;
    char **topics; /* subscribed to, sorted; with a pattern, those that match */
    size_t topics_n;
    struct java_regex pattern;
    bool pattern_ready; /* topics holds what the pattern matches */
    bool with_internal; /* a pattern may match internal topics */
    kafka_rebalance_listener_t listener;
    char told_member_id[300];
    bool in_callback; /* the user's thread is inside one */
    uint64_t assigns;
    bool wake_posted, woken;
    bool wants_more;   /* a queue has room that the fetcher does not know of */
    kafka_err_t error; /* to be told by the next poll */
    char error_text[800];
    bool stable_or_fail; /* internal.throw.on.fetch.stable.offset.unsupported */
    bool stable_offsets; /* the coordinator can wait for transactions to end before it answers */

    /* background thread */
    struct task wake_task;
    struct timer timer;
    struct list fetches;  /* under way */
    struct list sessions; /* struct fetch_session */
    int64_t metadata_max_age_ms;
    bool closing;

    struct spent_answers *spent; /* one reference */
};

enum { CPART_QUEUE_MAX = 2 }; /* answers kept per partition: one being read, one ahead */

/* consumer.c; lock held */
bool consumer_is_subscribed(const kafka_consumer_t *c);
struct cpart *consumer_find_part(kafka_consumer_t *c, const char *topic, int32_t partition);
/* These and no others; those that stay keep their positions. */
kafka_err_t consumer_set_parts(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n);
/* Was kafka_consumer_wakeup called? Once. Takes the lock. */
bool consumer_take_wakeup(kafka_consumer_t *c);

/* consumer_subscribe.c; lock held */
bool consumer_wants_topic(const kafka_consumer_t *c, const char *topic);
void consumer_drop_subscription(kafka_consumer_t *c);
/* Background thread: what does the pattern match now? */
void consumer_match_pattern(kafka_consumer_t *c);

/* fetcher.c */
void fetcher_init(kafka_consumer_t *c);
void fetcher_wake(kafka_consumer_t *c); /* lock held */
void fetcher_stop(void *consumer);      /* background thread */
void cpart_unref(struct cpart *p);      /* lock held */
void cpart_drop_queue(struct cpart *p); /* lock held */

/* What metadata says of the partition's leader. Lock held. */
void cpart_find_leader(kafka_consumer_t *c, struct cpart *p);

/* fetched.c */
/* The partition's part of an answer; takes a reference to the memory. NULL without memory. */
struct fetch_response_partition;
struct fetched *fetched_new(struct fetch_memory *memory, const struct fetch_response_partition *r,
                            int64_t from_offset);
/* The next record for the application. 1: *r and *head filled, good as long as f->open, which the
 * caller may keep a reference of; 0: none left; negative: the rest of the set cannot be read, minus
 * a protocol error or a kafka_err_t. */
int fetched_next(struct fetched *f, bool check_crcs, struct record *r, const struct batch **head);
void fetched_unref(struct fetched *f);
void opened_unref(struct opened *o);

/* spent_answers.c */
struct spent_answers *spent_new(void); /* NULL without memory */
/* The consumer's reference; what waits is freed. NULL is fine. */
void spent_close(struct spent_answers *s);
/* Without a response yet. NULL without memory. */
struct fetch_memory *fetch_memory_new(struct spent_answers *s);
void fetch_memory_unref(struct fetch_memory *m);
/* One that waits, or NULL. Returns owned. */
struct peer_response *spent_take(struct spent_answers *s);

#endif
