/* context.h - what the controller knows: live brokers, topics with their partitions, and in which
 * state each partition and replica is.
 *
 * Read from the store when a controller takes over, kept up to date by its events, forgotten when
 * it resigns. Replica states are counted per topic, so that deletion asks its questions at no cost.
 * THREADS  the controller's executor. */
#ifndef CONTROLLER_CONTEXT_H
#define CONTROLLER_CONTEXT_H

#include "base/hmap.h"
#include "controller/broker_channel.h"
#include "metadata/store.h"
#include "metadata/znode.h"

enum partition_state {
    PARTITION_NEW,          /* known, no leader yet, no state node */
    PARTITION_ONLINE,       /* has a leader */
    PARTITION_OFFLINE,      /* its leader is gone */
    PARTITION_NON_EXISTENT, /* not told of yet, or deleted */
    PARTITION_STATES
};
enum replica_state {
    REPLICA_NEW = 1,             /* assigned, not told of yet */
    REPLICA_ONLINE,              /* leads or follows */
    REPLICA_OFFLINE,             /* its broker is gone, or it was told to stop */
    REPLICA_DELETION_STARTED,    /* told to delete */
    REPLICA_DELETION_SUCCESSFUL, /* answered that it did */
    REPLICA_DELETION_INELIGIBLE, /* cannot be deleted now */
    REPLICA_NON_EXISTENT,        /* not assigned */
    REPLICA_STATES
};
const char *partition_state_name(enum partition_state s);
const char *replica_state_name(enum replica_state s);

struct ctl_topic;

struct ctl_replica {
    int32_t broker;
    uint8_t state; /* enum replica_state; set by context_set_replica */
    bool dead_dir; /* lies in a log dir that failed, as its broker answered; until that restarts */
    bool adding, removing; /* by a reassignment that is under way */
    bool bounced;          /* bounced.c: it may have lost records; nobody was elected since */
};

struct ctl_partition {
    struct ctl_topic *topic;
    int32_t number;
    uint8_t state; /* enum partition_state; set in partition_state.c */
    bool known;    /* has a state node, whose content is below */
    bool recovering;
    bool elected;  /* by the last partitions_elect that named it */
    int listed_at; /* in the last list that was to have it once */
    int32_t leader, leader_epoch;
    int32_t epoch; /* data version of the state node */
    int32_t controller_epoch;
    struct id_list isr;           /* owned */
    struct ctl_replica *replicas; /* owned; in order of preference */
    int replicas_n;
    int dropped_n; /* behind those: not assigned any more, about to be deleted */
};

struct ctl_topic {
    struct hnode node;                 /* in context.topics */
    struct hnode id_node;              /* in context.by_id, while it has an id */
    struct str name;                   /* owned, NUL behind */
    char *path;                        /* of the topic's node; owned */
    struct uuid id;                    /* zero = none */
    uint64_t order;                    /* counts topics: a fixed order to send them in */
    struct ctl_partition **partitions; /* owned; by number */
    int partitions_n, partitions_cap;
    int replicas_in[REPLICA_STATES]; /* how many replicas are in each state */
    bool deleting;                   /* queued for deletion */
    bool deletion_begun;             /* its partitions are gone for clients */
    bool ineligible;                 /* deletion waits for a broker to come back */
    bool moving;                     /* a reassignment is written in its node */
    int listed_at;                   /* in the last list that was to have it once */
    struct store_watch watch;        /* of the data; on while watched */
    bool watched;
    void *owner; /* the controller, for the watch */
};

/* What a round of control requests holds for one broker (control_batch.c). */
struct ctl_entry {
    struct ctl_partition *partition;
    uint8_t flags;
};
struct ctl_outbox {
    struct ctl_entry *v; /* owned */
    int n, cap;
    bool metadata; /* gets an UpdateMetadata */
};

struct ctl_broker {
    int32_t id;
    int64_t epoch; /* czxid of its node */
    bool shutting_down;
    bool dirs_known;         /* it has answered for all that it hosts, in this reign */
    struct broker_info info; /* in the arena */
    struct arena arena;
    struct broker_channel *channel; /* owned; NULL = cannot be reached */
    struct ctl_outbox outbox;
    struct store_watch watch; /* of the data */
    bool watched;
    char path[32];
    void *owner; /* the controller, for the watch */
};

struct context {
    struct ctl_broker **brokers; /* owned; by id */
    int brokers_n, brokers_cap;
    struct hmap topics, by_id;
    uint64_t topics_made;
};

void context_init(struct context *x);
/* Frees all; watches must be off and channels closed. */
void context_clear(struct context *x);

struct ctl_broker *context_broker(const struct context *x, int32_t id); /* NULL */
/* Copies the info. NULL without memory. The id must not be there. */
struct ctl_broker *context_add_broker(struct context *x, const struct broker_info *info,
                                      int64_t epoch);
int context_update_broker(struct ctl_broker *b, const struct broker_info *info); /* 0, -ENOMEM */
void context_remove_broker(struct context *x, struct ctl_broker *b);             /* frees */
/* Registered and not shutting down? */
bool context_is_live(const struct context *x, int32_t id);

struct ctl_topic *context_topic(const struct context *x, struct str name); /* NULL */
/* NULL without memory. */
struct ctl_topic *context_add_topic(struct context *x, struct str name, struct uuid id);
void context_remove_topic(struct context *x, struct ctl_topic *t);                  /* frees */
struct ctl_topic *context_topic_by_id(const struct context *x, struct uuid id);     /* NULL */
int context_set_topic_id(struct context *x, struct ctl_topic *t, struct uuid id);   /* 0, -ENOMEM */
struct ctl_partition *context_partition(const struct ctl_topic *t, int32_t number); /* NULL */
/* A partition that is not there yet: NON_EXISTENT, as are its replicas. NULL without memory. */
struct ctl_partition *context_add_partition(struct ctl_topic *t,
                                            const struct partition_assignment *a);
/* Being reassigned? */
bool context_is_moving(const struct ctl_partition *p);
/* Where it came from, and where it goes: lists in the arena, NULL lists without memory. */
struct id_list context_origin(const struct ctl_partition *p, struct arena *a);
struct id_list context_target(const struct ctl_partition *p, struct arena *a);
/* The assignment becomes the target, followed by what of the origin is not in it. Replicas keep
 * their states; those in neither list are dropped: they stay, behind the others, until
 * context_forget_dropped. Pointers to replicas are not good any more. 0 or -ENOMEM. */
int context_reassign(struct ctl_partition *p, struct id_list target, struct id_list origin);
void context_forget_dropped(struct ctl_partition *p);
/* The dropped ones are assigned after all, behind the others and to be removed; what is not of the
 * origin is being added. Undoes context_reassign(p, target, target) of a move from there. */
void context_keep_dropped(struct ctl_partition *p, struct id_list origin);
/* Takes over what the state node holds. 0 or -ENOMEM (then it is as before). */
int context_set_known(struct ctl_partition *p, const struct partition_node *node, int32_t epoch);
struct ctl_replica *context_replica(const struct ctl_partition *p, int32_t broker); /* NULL */
void context_set_replica(struct ctl_partition *p, struct ctl_replica *r, enum replica_state to);

#endif
