/* request_quota.h - how much of a thread's time requests take, and holding clients back.
 *
 * TIME   (request_percentage) From dispatch until the handler returns or answers, and encoding and
 *        sending the answer; not while a request waits. It is counted when the answer is made, and
 *        what encoding and sending take afterwards. Not held back for time: requests between
 *        brokers, and those that their handler marks (`untimed`).
 * THREADS  the connection's reactor. */
#ifndef SERVER_REQUEST_QUOTA_H
#define SERVER_REQUEST_QUOTA_H

#include "server/request.h"

/* A span of work on a request, on the stack of who does it. */
struct request_run {
    struct request *req; /* NULL once the request is finished */
    int64_t began_ns;
};
/* Between the two the handler works; the request may be gone at the end. */
void request_run_begin(struct request_run *run, struct request *req);
void request_run_end(struct request_run *run);

/* The answer is being made: counts the time, once. Returns for how long the client is to be held
 * back for it; whoever asks before the answer is made finds it counted in there, too. */
int64_t request_time_throttle_ms(struct request *req);
/* Holds the client back for this long after the answer; the longest of several counts. */
void request_throttle(struct request *req, int64_t ms);
/* Bytes of a Produce request, or of the records of a Fetch answer. */
void request_count_produced(struct request *req, double bytes);

/* Encoding and sending the answer, after which the request is gone. */
struct request_sending {
    struct broker *broker; /* NULL: it is not counted */
    int64_t began_ns;
    int32_t user_len, client_len;
    char names[512];
};
void request_sending_begin(struct request_sending *s, const struct request *req);
void request_sending_end(const struct request_sending *s);

/* Monotonic ms, as quotas count. */
int64_t request_now_ms(const struct request *req);

#endif
