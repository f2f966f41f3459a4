/* fetch_session_cache.h - the sessions themselves, for fetch_session.c and its tests only. All
 * under the cache's lock.
 *
 * INVARIANTS  (F1) sessions_n <= slots. (F2) partitions_n is the sum of all sessions' partitions_n,
 *             and <= slots * FETCH_SESSION_PARTITIONS_PER_SLOT. (F3) by_use holds every session,
 * the least recently used first. */
#ifndef SERVER_FETCH_SESSION_CACHE_H
#define SERVER_FETCH_SESSION_CACHE_H

#include <pthread.h>

#include "base/hmap.h"
#include "server/fetch_session.h"

struct cached_partition {
    struct hnode node; /* in the session's map, by topic (name or id) and number */
    struct list link;  /* in the session's order */
    struct uuid topic_id;
    int32_t partition, max_bytes;
    int64_t offset, fetcher_log_start;
    int32_t current_leader_epoch, last_fetched_epoch;
    /* What the last answer told, or would have if it had been news; -1: not known to have come. */
    int64_t sent_high_watermark, sent_log_start;
    bool sent_records;
    int32_t topic_len; /* 0 in sessions with ids */
    char topic[];
};

struct fetch_session {
    struct hnode node; /* in the cache's map, by id */
    struct list use;
    int32_t id, epoch; /* epoch: what the next request must carry */
    bool privileged;   /* a follower's */
    bool uses_ids;
    int64_t created_ms, used_ms; /* monotonic */
    struct hmap map;
    struct list order;
    int partitions_n;
};

struct fetch_sessions {
    const struct clock *clock;
    int slots, partitions_max;
    pthread_mutex_t lock;
    struct hmap map;
    struct list by_use;
    int sessions_n, partitions_n;
    uint64_t evicted;
    uint64_t last_id; /* what the last id was made from */
};

struct fetch_session *session_find(struct fetch_sessions *s, int32_t id);
/* Makes room and a session without partitions; NULL when the rules give it no place. */
struct fetch_session *session_make(struct fetch_sessions *s, bool privileged, bool uses_ids,
                                   int partitions);
void session_drop(struct fetch_sessions *s, struct fetch_session *session);
void session_touch(struct fetch_sessions *s, struct fetch_session *session);

/* Adds at the end, or updates where it stands. NULL: no memory, or no room for more. */
struct cached_partition *session_put(struct fetch_sessions *s, struct fetch_session *session,
                                     const struct fetch_want *want);
void session_forget(struct fetch_sessions *s, struct fetch_session *session, struct str topic,
                    struct uuid topic_id, int32_t partition);

#endif
