/* fetcher.h - follows one broker: fetches its partitions' records and appends them here.
 *
 * A fetcher has one connection and one request out at a time. Each turn: partitions that must first
 * ask something of the leader (where an epoch ends, where its log begins and ends) do; then one
 * Fetch, in a session, with all that are ready.
 *
 * STATES (of a partition in it)
 *   FETCHING      from the end of its log, naming the epoch of its last record
 *   ASK_EPOCH     (IBP < 2.7) asks where the leader's log ends for its latest epoch, before it
 *                 fetches
 *   ASK_LATEST    was out of range: asks for the leader's end
 *   ASK_EARLIEST  and, not being ahead of that, for its start
 *   FAILED        until the next LeaderAndIsr
 *   In each but FAILED it may be delayed: left alone for replica.fetch.backoff.ms.
 *
 * What decides is here; sockets, threads and clocks are handed in (fetch_place).
 * THREADS  fetcher_follow, _forget, _close: any; the rest is the executor's. */
#ifndef REPLICA_FETCHER_H
#define REPLICA_FETCHER_H

#include "base/executor.h"
#include "base/metrics.h"
#include "net/remote.h"
#include "protocol/ibp.h"
#include "replica/partition.h"

/* Where a fetcher lives: an executor of its own, and connections on it. */
struct fetch_place {
    struct executor *ex;
    struct remote_opener opener;
};

/* Settings and hooks of all fetchers of a broker. Hooks may be NULL. */
struct fetch_settings {
    int32_t broker_id;
    int ibp;
    int32_t max_bytes;          /* replica.fetch.max.bytes, for each partition */
    int32_t response_max_bytes; /* replica.fetch.response.max.bytes */
    int32_t min_bytes;          /* replica.fetch.min.bytes */
    int32_t wait_max_ms;        /* replica.fetch.wait.max.ms */
    int64_t backoff_ms;         /* replica.fetch.backoff.ms */
    int64_t timeout_ms;         /* replica.socket.timeout.ms */
    /* This broker's registration; goes with each fetch. */
    int64_t (*broker_epoch)(void *arg);
    /* May the partition, which is `behind` its leader, fetch now? Asked before each fetch. */
    bool (*may_fetch)(void *arg, struct topic_partition tp, bool behind);
    /* So many bytes came for it. */
    void (*received)(void *arg, struct topic_partition tp, int64_t bytes);
    void *arg;
};

struct fetcher_options {
    const struct fetch_settings *settings; /* borrowed */
    int32_t source;                        /* broker id */
    struct str host;                       /* copied */
    int port;
    int number; /* among the fetchers of that source */
    struct fetch_place place;
    /* The last call, on the executor: nothing of the fetcher runs any more. */
    void (*ended)(void *arg, struct fetch_place place);
    void *arg;
};

struct fetcher;

/* NULL without memory. */
struct fetcher *fetcher_new(const struct fetcher_options *o);
/* Follow the partition in this epoch; a topic id of zero: by name. The same epoch again only
 * changes the id. 0 or -ENOMEM. */
int fetcher_follow(struct fetcher *f, struct partition *p, int32_t leader_epoch, struct uuid id);
/* The source is to be found here from now on: what is out is given up, and asked there. 0, -ENOMEM.
 */
int fetcher_move_to(struct fetcher *f, struct str host, int port);
/* Soon it will not be fetched any more. */
void fetcher_forget(struct fetcher *f, struct partition *p);
/* Ends it; frees it later. No other call afterwards. */
void fetcher_close(struct fetcher *f);

/* Fetches answered, and bytes of records in them. */
struct fetcher_counts {
    metric requests, bytes;
};
/* @thread any */
const struct fetcher_counts *fetcher_counts(const struct fetcher *f);
/* Partitions that failed and wait for the next LeaderAndIsr. @thread any */
int fetcher_failed_count(const struct fetcher *f);

#endif
