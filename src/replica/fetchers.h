/* fetchers.h - all fetchers of a broker: some for each broker that leads a partition followed here,
 * each with a share of its partitions (by a hash that every broker computes alike).
 *
 * THREADS  fetchers_follow, _unfollow: the control queue's lanes, one at a time for one partition.
 *          The rest: stated. */
#ifndef REPLICA_FETCHERS_H
#define REPLICA_FETCHERS_H

#include "replica/fetcher.h"

/* Where fetchers live. */
struct fetch_places {
    /* A new place; false (logged): cannot. @thread any */
    bool (*open)(void *arg, const char *name, struct fetch_place *out);
    /* Nothing runs there any more but, maybe, the caller. @thread the place's */
    void (*close)(void *arg, struct fetch_place place);
    void *arg;
};

struct fetchers_options {
    struct fetch_settings settings;
    struct fetch_places places;
    int per_source; /* num.replica.fetchers */
};

struct fetchers;

/* NULL without memory. */
struct fetchers *fetchers_new(const struct fetchers_options *o);
/* After stop, when all places are closed. NULL is fine. */
void fetchers_free(struct fetchers *fs);

/* Fetch the partition from this broker, and from no other. */
void fetchers_follow(struct fetchers *fs, struct partition *p, int32_t source, struct str host,
                     int port, int32_t leader_epoch, struct uuid id);
/* The id changed, or (zero) is not used any more; nothing if it is not followed. */
void fetchers_set_id(struct fetchers *fs, struct partition *p, int32_t leader_epoch,
                     struct uuid id);
/* This is where the broker is now: those that follow it ask there. (A broker that is back at
 * another address may lead in the same epoch as before, so that no LeaderAndIsr says anything new.)
 * @thread any */
void fetchers_see_broker(struct fetchers *fs, int32_t source, struct str host, int port);
void fetchers_unfollow(struct fetchers *fs, struct partition *p);
/* num.replica.fetchers is this now: for those that are followed from here on. */
void fetchers_set_per_source(struct fetchers *fs, int per_source);
/* Ends those without partitions. @thread any */
void fetchers_close_idle(struct fetchers *fs);
/* This broker is leaving: what is fetched goes on, but a partition that is given to another leader
 * in its place is not fetched from there. It would be back in sync at once and the new leader would
 * ask for it in vain (the controller takes nobody in who leaves); an Apache leader whose request
 * was refused holds acks=all back until its next append. @thread any */
void fetchers_leave(struct fetchers *fs);
/* Ends all, for good: nothing is followed from now on. @thread any */
void fetchers_stop(struct fetchers *fs);
/* @thread any */
int fetchers_count(struct fetchers *fs);
int fetchers_failed_count(struct fetchers *fs);
/* One fetcher, for metrics. */
struct fetcher_figures {
    int32_t source;
    int number, port;
    char host[256]; /* cut, if need be */
    uint64_t requests, bytes;
};
/* Fills in up to `most`; returns how many. */
int fetchers_look(struct fetchers *fs, struct fetcher_figures *out, int most);
/* The number of the fetcher that a partition has, of those from its leader. */
int fetchers_number_for(struct fetchers *fs, struct topic_partition tp);

/* Which of n fetchers has the partition. */
int fetchers_number_of(struct topic_partition tp, int n);

#endif
