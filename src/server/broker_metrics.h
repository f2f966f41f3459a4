/* broker_metrics.h - what a broker counts for its operator, and the page that tells it.
 *
 * Counting is on when metrics.http.listener is set, else broker_metrics() is NULL and each of the
 * calls below returns at once. What can be looked up (sizes, offsets, who leads) is not counted:
 * the page asks for it (metrics_page.c).
 *
 * COST     a request: two reads of the clock, a third when it waits, and some twenty relaxed adds
 * on lines of the thread's own slot (metrics.h); a partition of a Produce or Fetch: two or three
 * more, for its topic. The first request of an API on a thread allocates its numbers.
 *
 * THREADS  counting: any; of requests, the connection's reactor. */
#ifndef SERVER_BROKER_METRICS_H
#define SERVER_BROKER_METRICS_H

#include "base/metrics.h"
#include "replica/topic_counts.h"

struct broker;
struct broker_metrics;
struct partition;
struct request;

struct broker_metrics *broker_metrics_new(void); /* NULL without memory */
void broker_metrics_free(struct broker_metrics *m);
/* Borrowed; NULL: nobody counts. */
struct broker_metrics *broker_metrics(const struct broker *b);

/* For the whole broker, and for the topic where there is a partition. */
void metrics_topic(struct broker_metrics *m, const struct partition *p, enum topic_count what,
                   uint64_t n);
uint64_t metrics_topic_total(const struct broker_metrics *m, enum topic_count what);

enum broker_count {
    COUNT_REPLICATED_OUT, /* bytes sent to followers */
    COUNT_MOVED_OUT,      /* of these: to those that a reassignment adds */
    /* batches refused */
    COUNT_NO_KEY,
    COUNT_BAD_MAGIC,
    COUNT_BAD_CRC,
    COUNT_BAD_OFFSET,
    /* requests whose time was over before what they waited for had come */
    COUNT_EXPIRED_PRODUCE,
    COUNT_EXPIRED_FETCH,
    COUNT_EXPIRED_FOLLOWER_FETCH,
    COUNT_EXPIRED_DELETE_RECORDS,
    BROKER_COUNTS
};
void metrics_count(struct broker_metrics *m, enum broker_count what, uint64_t n);
uint64_t metrics_total(const struct broker_metrics *m, enum broker_count what);

/* ---- requests that wait for partitions ---- */

enum wait_kind { WAIT_PRODUCE, WAIT_FETCH, WAIT_DELETE_RECORDS, WAIT_KINDS };
/* One more with so many partitions, or one less. @thread any */
void metrics_wait_begins(struct broker_metrics *m, enum wait_kind kind, int partitions);
void metrics_wait_is_over(struct broker_metrics *m, enum wait_kind kind, int partitions);
int64_t metrics_waiting(const struct broker_metrics *m, enum wait_kind kind, bool partitions);

/* ---- requests ---- */

/* The handler has returned, and the request waits. */
void metrics_request_waits(struct request *req);
/* An error code for something within the answer; that of the answer itself is found. */
void metrics_request_error(struct request *req, int16_t code);
/* Around encoding and handing over the answer (NULL: there is none), after which the request is
 * gone. */
struct metrics_answer {
    struct broker *broker; /* NULL: nobody counts */
    int kind;
    int64_t began_ns;
};
void metrics_answer_begin(struct metrics_answer *a, struct request *req, const void *response);
void metrics_answer_end(const struct metrics_answer *a);

/* ---- for the page ---- */

enum request_histogram {
    REQUEST_TOTAL_US,
    REQUEST_QUEUE_US,
    REQUEST_LOCAL_US,
    REQUEST_REMOTE_US,
    REQUEST_THROTTLE_US,
    REQUEST_SEND_US,
    REQUEST_BYTES,
    REQUEST_HISTOGRAMS
};
/* Kinds of requests: the API's key, and instead of Fetch its two sorts. */
enum { REQUEST_FETCH_CONSUMER = 128, REQUEST_FETCH_FOLLOWER, REQUEST_KINDS };
enum { REQUEST_VERSIONS = 32, REQUEST_ERRORS = 192, REQUEST_ERROR_FIRST = -1 };

/* Adds up; false: there was no such request. */
bool metrics_request_tally(const struct broker_metrics *m, int kind, enum request_histogram which,
                           struct tally *out);
bool metrics_request_versions(const struct broker_metrics *m, int kind,
                              uint64_t out[REQUEST_VERSIONS]);
bool metrics_request_errors(const struct broker_metrics *m, int kind, uint64_t out[REQUEST_ERRORS]);

#endif
