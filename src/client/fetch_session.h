/* fetch_session.h - incremental fetches: what a broker remembers of this consumer's last Fetch, so
 * that the next one names only what is new.
 *
 * A session begins with a full fetch (epoch 0) whose answer gives it an id. While it holds, a
 * request names partitions that are new or have another offset, and those that are no longer wanted
 * (forgotten). Whatever goes wrong begins a new one: id kept, so that the broker drops the old.
 *
 * THREADS  the background thread. */
#ifndef CLIENT_FETCH_SESSION_H
#define CLIENT_FETCH_SESSION_H

#include "base/arena.h"
#include "base/hmap.h"
#include <kafka/common.h>

struct fetch_request;

struct fetch_session {
    struct list link; /* consumer.sessions */
    int32_t node_id;
    int32_t id;    /* 0: none */
    int32_t epoch; /* of the next request; 0: a full one */
    struct hmap by_name;
    struct list remembered; /* by the broker, once the request under way is answered */
    uint64_t round;
};

/* NULL without memory. Returns owned. */
struct fetch_session *fetch_session_new(int32_t node_id);
void fetch_session_free(struct fetch_session *s);
/* A request is being made. */
void fetch_session_begin(struct fetch_session *s);
/* The partition is wanted: true when the request must name it. */
bool fetch_session_want(struct fetch_session *s, const char *topic, int32_t partition,
                        int64_t offset, int32_t leader_epoch);
/* Id, epoch and what is forgotten. Memory from the arena; topic names are good until the next
 * begin. false without memory. */
bool fetch_session_fill(struct fetch_session *s, struct arena *a, struct fetch_request *req);
/* Was the request a full one, whose answer names all its partitions? */
bool fetch_session_is_full(const struct fetch_session *s);
/* The answer: its error and session id. true when the error was the session's alone: ask again at
 * once. */
bool fetch_session_end(struct fetch_session *s, kafka_err_t err, int32_t id);

#endif
