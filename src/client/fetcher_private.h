/* fetcher_private.h - what the fetcher's files share: requests under way and what errors mean.
 *
 * FILES  fetcher.c        which partition asks for what, when, of whom
 *        fetch_records.c  Fetch: sessions, records, other replicas
 *        fetch_offsets.c  positions: committed ones, by time, checked after a change of leader */
#ifndef CLIENT_FETCHER_PRIVATE_H
#define CLIENT_FETCHER_PRIVATE_H

#include "client/consumer_private.h"

enum send_kind {
    SEND_FETCH,
    SEND_LOOKUP,    /* ListOffsets */
    SEND_COMMITTED, /* OffsetFetch */
    SEND_VALIDATE,  /* OffsetForLeaderEpoch */
    SEND_KINDS
};

struct fetch_session;

struct fetch_send { /* a request under way; a Fetch counts as the node's one */
    struct list link;
    kafka_consumer_t *c;
    struct node *node;
    int32_t node_id;
    enum send_kind kind;
    struct fetch_session *session; /* SEND_FETCH; NULL without memory */
    struct cpart **parts;
    uint64_t *generations;
    int n, cap;
};

/* Makes the request and sends it: 0, or negative when that was not possible. Lock not held. */
int send_fetch(struct fetch_send *s, struct arena *a);
/* Lets brokers forget theirs; nobody waits for it. */
void fetch_close_sessions(kafka_consumer_t *c);
int send_lookup(struct fetch_send *s, struct arena *a);
int send_committed(struct fetch_send *s, struct arena *a);
int send_validate(struct fetch_send *s, struct arena *a);

/* Is the answer about part i still of use? Lock held. */
bool fetch_still_wanted(const struct fetch_send *s, int i);
/* A partition's error: what heals by itself is tried again, the rest is told. Lock held. */
void fetch_on_error(kafka_consumer_t *c, struct cpart *p, kafka_err_t err, bool *refresh);
/* The next poll says so. Lock held. */
void fetch_tell_error(kafka_consumer_t *c, const struct cpart *p, kafka_err_t err);
void fetch_try_later(kafka_consumer_t *c, struct cpart *p);
/* No position, and nothing says where to begin but auto.offset.reset. Lock held. */
void fetch_begin_reset(kafka_consumer_t *c, struct cpart *p);
/* Ends the request; the fetcher runs again. */
void fetch_finish(struct fetch_send *s, bool refresh);

#endif
