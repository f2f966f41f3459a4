/* fetcher_private.h - a fetcher's parts.
 *
 *   fetcher.c          life, turns, what others ask of it
 *   fetcher_fetch.c    the Fetch request and its session; the answer
 *   fetcher_ask.c      OffsetForLeaderEpoch and ListOffsets
 *
 * INVARIANTS  (F1) at most one request is out (`busy`).
 *             (F2) an answer is looked at for a partition only if it was asked for since the
 *             partition last changed (`asked`), and the partition itself checks the epoch.
 *             (F3) `session` says of each followed partition what the leader's session holds.
 *             (F4) what the leader's session counts as told was taken: when an answer for a
 *             partition that is followed was dropped, its marks included, the next request begins
 *             the session anew. A leader tells each mark once. */
#ifndef REPLICA_FETCHER_PRIVATE_H
#define REPLICA_FETCHER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/hmap.h"
#include "replica/fetcher.h"
#include "replica/partition_follow.h"

enum follow_state {
    FOLLOW_FETCHING,
    FOLLOW_ASK_EPOCH,
    FOLLOW_ASK_LATEST,
    FOLLOW_ASK_EARLIEST,
    FOLLOW_FAILED
};

/* What a session has been told of a partition. */
struct session_part {
    bool in; /* it is part of the session */
    int64_t offset, log_start;
    int32_t leader_epoch, last_epoch;
};

struct followed {
    struct hnode node;           /* fetcher.map, by topic and number */
    struct hnode id_node;        /* fetcher.by_id, while it has an id */
    struct list link;            /* fetcher.parts */
    struct partition *partition; /* one reference */
    struct topic_partition tp;   /* borrowed from it */
    struct uuid id;              /* zero: by name */
    int32_t leader_epoch;
    enum follow_state state;
    int64_t offset; /* of the next fetch: where the log ends */
    uint64_t cuts;  /* as of the last look, like the next */
    int64_t log_start;
    int32_t last_epoch;              /* of the last record fetched; -1 = not told */
    int32_t asked_epoch;             /* ASK_EPOCH: the question that is out */
    int64_t delayed_until, delay_ms; /* delayed_until 0 = ready */
    bool behind; /* its last answer left something to fetch, or there was none */
    bool again;  /* its log must be looked at before it is asked for, after the delay */
    bool asked;  /* is in the request that is out */
    struct session_part session;
};

/* A partition that the session has, and that must be taken out of it. */
struct forgotten {
    struct list link;
    struct uuid id;
    int32_t partition;
    int32_t topic_len;
    char topic[];
};

struct follow_command {
    struct list link;
    struct partition *partition; /* one reference */
    int32_t leader_epoch;        /* -1: forget it */
    struct uuid id;
};

struct fetcher {
    struct fetcher_options o; /* host is owned */
    const struct fetch_settings *s;
    char component[64], client_id[48];

    pthread_mutex_t lock;
    struct list commands; /* under lock */
    bool posted, closing; /* under lock */
    struct str new_host;  /* under lock, owned; null: the address is as it was */
    int new_port;
    struct task task;
    atomic_int failed_n;
    struct fetcher_counts counts;

    /* The executor's. */
    struct hmap map, by_id;
    struct list parts; /* in the order in which they are asked for */
    struct remote *remote;
    bool busy, ended, troubled, urgent;
    int64_t sent_at; /* monotonic ms of the request that is out */
    struct timer timer;
    struct arena arena; /* of the request that is out */
    /* The session at the leader. */
    int32_t session_id, session_epoch; /* epoch 0: the next is a full one */
    bool session_ids;                  /* made with topic ids */
    struct list forgotten;
};

/* ---- fetcher.c ---- */
/* By id where `topic` is null; or NULL. */
struct followed *fetcher_find(struct fetcher *f, struct str topic, struct uuid id,
                              int32_t partition);
/* The one that was asked for, or NULL (F2). */
struct followed *fetcher_asked(struct fetcher *f, struct str topic, struct uuid id,
                               int32_t partition);
bool followed_ready(const struct fetcher *f, const struct followed *p);
void followed_delay(struct fetcher *f, struct followed *p);
void followed_fail(struct fetcher *f, struct followed *p, const char *doing, enum kerr e);
/* What becomes of a partition after work on its log ended with `e`. true: go on. */
bool followed_went_well(struct fetcher *f, struct followed *p, const char *doing, enum kerr e);
void followed_look(struct followed *p, const struct follow_view *view);
static inline struct follow_seen followed_seen(const struct followed *p)
{
    return (struct follow_seen){p->offset, p->cuts};
}
/* When a partition that is not asked for now may be; -1: there is none. */
int64_t fetcher_next_ready_ms(const struct fetcher *f);
/* The request that was out is over; the next turn comes. `failed`: delay all, session anew. */
void fetcher_answered(struct fetcher *f);
void fetcher_request_failed(struct fetcher *f, int16_t api_key, int status);
/* Sends; fetcher_request_failed at once without memory. */
void fetcher_send(struct fetcher *f, int16_t api_key, int version, const void *request, peer_cb cb);

/* ---- fetcher_fetch.c ---- */
/* false: nothing to fetch now. */
bool fetcher_fetch(struct fetcher *f);
void session_restart(struct fetcher *f);
/* The partition leaves the fetcher: the session must forget it. */
void session_forget_part(struct fetcher *f, struct followed *p);

/* ---- fetcher_ask.c ---- */
/* false: nobody has to ask. */
bool fetcher_ask_epochs(struct fetcher *f);
bool fetcher_ask_offsets(struct fetcher *f, enum follow_state state);

#endif
