/* kafka/common.h - what producer, consumer and admin client share: errors, settings, topic
 * partitions.
 *
 * Conventions of this library:
 *   - Types are opaque; functions that make one return it owned, and name the function that frees
 * it.
 *   - Strings given to the library are copied unless a function says otherwise. Strings it returns
 * are borrowed from the object they came from, as long as the function says.
 *   - Times are milliseconds; -1 as a timeout means without limit, 0 means do not wait.
 *   - Each client has one background thread of its own, which does all network work. Unless stated
 * otherwise every function of a client may be called from any thread at the same time.
 *   - Callbacks run on the thread named in their description and must not call the client's close
 * or free function. */
#ifndef KAFKA_COMMON_H
#define KAFKA_COMMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KAFKA_API __attribute__((visibility("default")))
#else
#define KAFKA_API
#endif

/* 0 is success. Positive codes, and -1 (UNKNOWN_SERVER_ERROR), are the protocol's and come from a
 * broker; codes from -200 down are this library's. */
typedef int kafka_err_t;
enum {
    KAFKA_OK = 0,
    KAFKA_ERR_INVALID_ARG = -200, /* an argument or setting is not legal */
    KAFKA_ERR_NO_MEMORY = -201,
    KAFKA_ERR_TIMED_OUT = -202,  /* the time given, or delivery.timeout.ms, is over */
    KAFKA_ERR_QUEUE_FULL = -203, /* buffer.memory is used up and max.block.ms is over */
    KAFKA_ERR_CLOSED = -204,     /* the client is being closed */
    KAFKA_ERR_TRANSPORT = -205,  /* connection failed or ended */
    KAFKA_ERR_ALL_BROKERS_DOWN = -206,
    KAFKA_ERR_BAD_RESPONSE = -207, /* a broker's answer made no sense */
    KAFKA_ERR_UNSUPPORTED = -208,  /* the broker has no version of a request that can say this */
    KAFKA_ERR_WAKEUP = -209,       /* kafka_consumer_wakeup was called */
    KAFKA_ERR_NO_OFFSET = -210,    /* no position, and auto.offset.reset=none */
    KAFKA_ERR_FATAL = -211,        /* the producer cannot go on (sequence or epoch lost) */
    KAFKA_ERR_STATE = -212,        /* not allowed in the present state */
    KAFKA_ERR_COMMIT_FAILED =
        -213, /* no member of the group any more: others have the partitions */
    KAFKA_ERR_LOG_TRUNCATION = -214, /* the position lies behind where a new leader's log ends */
    KAFKA_ERR_TXN_ABORTED = -215,    /* the record's transaction was aborted before it was sent */
    KAFKA_ERR_AUTHENTICATION =
        -216, /* a broker does not let us in, or is not the one it should be */
};
/* "TIMED_OUT", "UNKNOWN_TOPIC_OR_PARTITION"; a sentence for people; may the same call succeed
 * later? Static. */
KAFKA_API const char *kafka_err_name(kafka_err_t err);
KAFKA_API const char *kafka_err_text(kafka_err_t err);
KAFKA_API int kafka_err_is_retriable(kafka_err_t err);

/* What the last call that failed on this thread has to say: a line that names topic, host, timeout
 * or setting where it can; "" before any. Borrowed until this thread's next call. @thread any */
KAFKA_API const char *kafka_last_error(void);

KAFKA_API const char *kafka_version(void);

/* ---- settings: names and values of Apache Kafka's clients ---- */
typedef struct kafka_conf kafka_conf_t;
KAFKA_API kafka_conf_t *kafka_conf_new(void);
KAFKA_API void kafka_conf_free(kafka_conf_t *conf);
/* KAFKA_ERR_INVALID_ARG with a line in err (naming key, value, what is allowed) when the value is
 * not legal. An unknown key is kept and reported when a client is made. @thread one at a time on
 * the same conf */
KAFKA_API kafka_err_t kafka_conf_set(kafka_conf_t *conf, const char *key, const char *value,
                                     char *err, size_t err_n);
/* A Java .properties file; later settings win. */
KAFKA_API kafka_err_t kafka_conf_load(kafka_conf_t *conf, const char *path, char *err,
                                      size_t err_n);
/* As set, else NULL. Borrowed until the key is set again or conf is freed. */
KAFKA_API const char *kafka_conf_get(const kafka_conf_t *conf, const char *key);

/* Lines of the library's own log (warnings and up by default) go to standard error unless a sink is
 * set. level: 0 debug, 1 info, 2 warning, 3 error. Any thread. Process-wide. */
KAFKA_API void kafka_log_set_sink(void (*sink)(int level, const char *line, void *arg), void *arg);

typedef struct {
    const char *topic;
    int32_t partition;
} kafka_topic_partition_t;

/* A partition's offset in a group: to commit, or as found. */
typedef struct {
    const char *topic;
    int32_t partition;
    int32_t leader_epoch; /* of the record before the offset; -1 unknown */
    int64_t offset;       /* of the next record to read; -1: none is committed */
    const char *metadata; /* the application's words; NULL = "" */
    kafka_err_t err;      /* of this partition alone; not looked at in a commit */
} kafka_offset_t;

/* Results: one block of memory each. */
typedef struct {
    const kafka_offset_t *v;
    size_t n;
} kafka_offset_list_t;
KAFKA_API void kafka_offset_list_free(kafka_offset_list_t *list); /* NULL is fine */
typedef struct {
    const kafka_topic_partition_t *v;
    size_t n;
} kafka_partition_list_t;
KAFKA_API void kafka_partition_list_free(kafka_partition_list_t *list); /* NULL is fine */

/* Who commits offsets within a transaction: a group, and the member of it whose offsets they are.
 * So the group's coordinator can refuse a member that has been put out meanwhile. From
 * kafka_consumer_group_metadata, or made here for a group without members (then nobody is fenced).
 * Both return owned, NULL without memory. */
typedef struct kafka_group_metadata kafka_group_metadata_t;
KAFKA_API kafka_group_metadata_t *kafka_group_metadata_new(const char *group_id);
KAFKA_API void kafka_group_metadata_free(kafka_group_metadata_t *g); /* NULL is fine */

typedef struct {
    const char *key;   /* NUL-ended, never NULL */
    const void *value; /* NULL = null */
    size_t value_len;
} kafka_header_t;

#ifdef __cplusplus
}
#endif
#endif
