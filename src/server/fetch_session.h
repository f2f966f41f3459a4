/* fetch_session.h - incremental fetch sessions (KIP-227): what a fetcher asks for is remembered, so
 * that a request names only what changed and an answer holds only what is new.
 *
 * A session has an id, the epoch that its next request must carry, and an ordered list of
 * partitions. Partitions that gave records move to the end, so that under the response limit all
 * get their turn.
 *
 * BOUNDS   at most `slots` sessions; all partitions of all sessions together at most `slots` *
 *          FETCH_SESSION_PARTITIONS_PER_SLOT: a session that would pass that is not made (id 0), or
 *          is dropped when it grows past it (the fetcher starts a full one).
 *
 * THREADS  any: one lock over the cache, held for look-ups and list work only. What a request is to
 *          serve is copied into its arena, so it does not matter to it what happens to the session
 *          meanwhile. */
#ifndef SERVER_FETCH_SESSION_H
#define SERVER_FETCH_SESSION_H

#include "base/arena.h"
#include "base/clock.h"
#include "metadata/metadata_cache.h"
#include "protocol/errors.h"
#include "protocol/msg/fetch.h"

#define FETCH_SESSION_PARTITIONS_PER_SLOT 500
/* A session unused, or made, longer ago than this may be evicted (each where the rules say so). */
#define FETCH_SESSION_EVICT_MS 120000

struct fetch_sessions;

/* slots: max.incremental.fetch.session.cache.slots; 0 = no sessions. Borrows the clock. */
struct fetch_sessions *fetch_sessions_new(int slots, const struct clock *clock);
void fetch_sessions_free(struct fetch_sessions *s);
int fetch_sessions_count(struct fetch_sessions *s);
int fetch_sessions_partitions(struct fetch_sessions *s);
uint64_t fetch_sessions_evicted(struct fetch_sessions *s); /* since the start */

/* One partition to serve. */
struct fetch_want {
    struct str topic; /* null: the id is not known here */
    struct uuid topic_id;
    int32_t partition;
    int32_t max_bytes;
    int64_t offset, fetcher_log_start;
    int32_t current_leader_epoch, last_fetched_epoch;
};

enum fetch_context_kind {
    FETCH_FULL,        /* serve all; try to make a session */
    FETCH_SESSIONLESS, /* serve all */
    FETCH_INCREMENTAL, /* serve the session's partitions; answer what changed */
    FETCH_REFUSED      /* `error` is the answer */
};
struct fetch_context {
    enum fetch_context_kind kind;
    enum kerr error;
    int32_t session_id; /* of the answer */
    int32_t epoch;      /* of the request */
    bool uses_ids, follower;
    struct fetch_want *wants; /* in the arena */
    int wants_n;
};

/* Reads the request's session fields, updates the session, and lists what is to be served: each
 * partition once (the last mention wins), in the order of request or session. Names are resolved by
 * the snapshot (v13+). 0 or -ENOMEM (the arena). */
int fetch_context_begin(struct fetch_sessions *s, const struct fetch_request *req, int version,
                        const struct metadata_snapshot *snapshot, struct arena *a,
                        struct fetch_context *out);

/* What was found for wants[i]. */
struct fetch_found {
    enum kerr error;
    int64_t high_watermark, log_start;
    bool has_records;
    bool special; /* diverging epoch or preferred replica: always told */
    bool send;    /* result: goes into the answer */
};
/* Ends the request: sets found[i].send and out session_id, makes the session or notes what was
 * sent. Not KERR_NONE (a newer request of the session came first): the top-level error, no
 * partitions. */
enum kerr fetch_context_end(struct fetch_sessions *s, struct fetch_context *c,
                            struct fetch_found *found);
/* Ends the request without telling anything: its client is held back. The session stays as it was,
 * and none is made. The same errors. */
enum kerr fetch_context_end_empty(struct fetch_sessions *s, struct fetch_context *c);

#endif
