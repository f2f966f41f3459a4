/* topic_admin.h - creating, deleting and growing topics as any broker does it: checks, assignment
 * of replicas, and the writes to the store. What follows (partition states, leaders, folders) is
 * the controller's, which watches the same nodes. Asynchronous: each call ends in done() on the
 * given executor, never before it returns (but without memory: at once, with errors). */
#ifndef CONTROLLER_TOPIC_ADMIN_H
#define CONTROLLER_TOPIC_ADMIN_H

#include "metadata/metadata_cache.h"
#include "metadata/store.h"
#include "metadata/znode.h"
#include "protocol/errors.h"

struct topic_admin;

struct topic_admin_options {
    struct store *store;
    struct metadata_cache *metadata;
    struct executor *ex; /* store answers are handled here */
    bool topic_ids;      /* inter.broker.protocol.version >= 2.8 */
    /* Is this a legal topic setting? NULL = yes, else why not (malloc'ed text). On ex. */
    char *(*check_config)(void *arg, struct str name, struct str value);
    int32_t (*default_partitions)(void *arg);  /* on ex */
    int16_t (*default_replication)(void *arg); /* on ex */
    void *arg;
    int64_t limit_ms; /* for the store, which may be cut off: then REQUEST_TIMED_OUT; 0 = none */
    uint64_t seed;    /* of the assignment's random start; 0 = from the kernel */
};
int topic_admin_new(const struct topic_admin_options *o, struct topic_admin **out);
/* When no call is under way and ex will run none of its tasks any more. */
void topic_admin_free(struct topic_admin *t);

enum { TOPIC_PARTITIONS_MAX = 200000 }; /* of one topic */

/* Asked once for each topic, when all else is checked and it is about to be written (not when it is
 * only validated), for the partitions that are made: false refuses it with
 * THROTTLING_QUOTA_EXCEEDED. On ex. */
struct topic_permit {
    bool (*take)(void *arg, int32_t partitions);
    void *arg;
};

struct manual_assignment {
    int32_t partition; /* growth: not looked at, they come in order */
    const int32_t *brokers;
    int brokers_n;
};
struct new_topic {
    struct str name;
    int32_t partitions;                          /* -1 = the broker's default */
    int16_t replication;                         /* -1 = the broker's default */
    const struct manual_assignment *assignments; /* or NULL */
    int assignments_n;
    const struct config_pair *configs;
    int configs_n;
    bool any_racks; /* auto creation: where only some brokers have a rack, none counts; else such a
                       cluster is refused */
    const struct topic_permit *permit; /* NULL = none is needed */
    /* result */
    enum kerr error;
    char *message; /* malloc'ed, or NULL; freed by the caller */
    struct uuid id;
    int32_t made_partitions;
    int16_t made_replication;
};
/* topics: the caller's memory until done; those whose `error` is set already are left alone (names
 * given twice must have been dealt with so). done runs on done_on when all are written (not yet
 * when leaders are there: wait on the metadata cache). @thread any */
void topic_admin_create(struct topic_admin *t, struct new_topic *topics, int n, bool validate_only,
                        struct executor *done_on, void (*done)(void *arg), void *arg);

struct topic_deletion {
    struct str name;
    enum kerr error; /* result; set already: left alone */
};
/* Writes /admin/delete_topics/<t>. As above. */
void topic_admin_delete(struct topic_admin *t, struct topic_deletion *topics, int n,
                        struct executor *done_on, void (*done)(void *arg), void *arg);

struct topic_growth {
    struct str name;
    int32_t count;                               /* total wanted */
    const struct manual_assignment *assignments; /* of the new ones, or NULL */
    int assignments_n;
    const struct topic_permit *permit; /* NULL = none is needed */
    enum kerr error;                   /* result; set already: left alone */
    char *message;                     /* malloc'ed, or NULL; freed by the caller */
};
void topic_admin_grow(struct topic_admin *t, struct topic_growth *topics, int n, bool validate_only,
                      struct executor *done_on, void (*done)(void *arg), void *arg);

#endif
