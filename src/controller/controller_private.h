/* controller_private.h - the controller inside its room: its state, its jobs, and what the files
 * that decide offer each other.
 *
 * JOB      an event from the queue, or a part of one: a flow (metadata/flow.h) with what its steps
 *          hand on. One event at a time; what it calls in between is a job of its own, in the
 *          caller's arena.
 * FENCE    every write goes out with a check of /controller_epoch. A failed check means that
 * another controller acts: the event is given up (CONTROLLER_MOVED) and the controller resigns.
 * ROUND    the control requests that one step of the state machines gathers: one entry per broker
 *          and partition, sent together (control_batch.c).
 * REIGN    counts elections won and lost by this process, so that answers to requests of an earlier
 *          one are told apart.
 * THREADS  the controller's; what others may call is in controller.h. */
#ifndef CONTROLLER_CONTROLLER_PRIVATE_H
#define CONTROLLER_CONTROLLER_PRIVATE_H

#include <stdatomic.h>

#include "base/logline.h"
#include "controller/context.h"
#include "controller/controller.h"
#include "controller/election.h"
#include "metadata/flow.h"
#include "metadata/paths.h"

enum { CONTROLLER_MOVED = -EOWNERDEAD };

struct controller {
    struct controller_options o; /* fixed; listener is owned */
    char component[32];
    int refs; /* the owner; the event under way; each request at a channel; posted tasks */
    bool stopping, fatal_told;

    /* Queue. */
    struct list queue; /* of struct job */
    struct job *current;
    struct task start_task;
    struct timer register_timer; /* tries again to register, after a failure */

    /* Who leads. */
    atomic_bool active;
    uint64_t reign;
    int32_t epoch;         /* of the reign */
    int32_t epoch_version; /* data version of /controller_epoch: the fence */
    int32_t seen;          /* broker id in /controller; -1 none known */

    /* While active. */
    struct context ctx;
    int64_t topics_as_of; /* of the last listing of /brokers/topics; 0 = the next is in full */
    int ignored_topics;   /* malformed ones, which the listing counts all the same */
    bool some_bounced;    /* a partition may have a replica that is `bounced` */
    bool asks_dirs;       /* the round tells brokers of all that they host */
    bool metadata_to_all; /* the round has an UpdateMetadata for everyone */
    struct ctl_partition **metadata; /* partitions in it; owned */
    int metadata_n, metadata_cap;

    struct store_watch controller_watch, brokers_watch, topics_watch, deletions_watch;
    struct store_watch isr_changes_watch, log_dirs_watch, preferred_watch, reassign_watch;
    struct timer rebalance_timer;
    bool ready_told;
    uint64_t own_sent, own_answered; /* requests to this broker */
    uint64_t ready_at;               /* own_answered that ends the first round; 0 = not known yet */

    struct controller_counts counts;
};

/* Lists that steps build, in a job's arena. */
struct partition_list {
    struct ctl_partition **v;
    int n, cap;
};
struct ctl_replica_ref {
    struct ctl_partition *partition;
    struct ctl_replica *replica;
};
struct replica_list {
    struct ctl_replica_ref *v;
    int n, cap;
};
struct topic_list {
    struct ctl_topic **v;
    int n, cap;
};

struct event_kind {
    const char *name;
    const flow_step *steps;
    bool when_active; /* nothing to do for a broker that is not the controller */
    bool once;        /* one in the queue is enough */
    enum controller_work work;
};

/* What a broker answered to deletions. */
struct stop_answer {
    struct stop_answer_part {
        struct str topic;
        int32_t partition;
        int16_t error;
    } * parts;
    int parts_n;
};

struct job {
    struct flow flow;
    struct controller *c;
    struct list link;              /* in the queue */
    const struct event_kind *kind; /* events */
    struct arena inputs;           /* events: what was known when it was queued */
    int64_t since_ns;              /* events: queued, then begun; monotonic */

    struct controller_call *call; /* whom this event answers; NULL once that is done */

    /* Inputs and working set; which are used is each event's own. */
    int32_t broker;
    int64_t broker_epoch; /* of an answer: whom it was asked of */
    struct str topic;
    struct stop_answer answer;
    struct partition_list partitions;
    struct replica_list replicas;
    struct topic_list topics;
    int32_t *ids;
    int ids_n;
    void *items; /* the file's own */
    int items_n, at;
    enum election_strategy strategy;
    int32_t epoch, epoch_version;
};

static inline struct job *job_of(struct flow *f)
{
    return container_of(f, struct job, flow);
}
static inline struct controller *controller_of(struct flow *f)
{
    return job_of(f)->c;
}

/* job.c */
/* A job to be called from a step: zeroed, in the caller's arena. Fails the caller without memory.
 */
struct job *job_new(struct flow *caller);
void job_call(struct flow *caller, struct job *j, const flow_step *steps);
/* Append; without memory the flow fails. */
void job_add_partition(struct flow *f, struct partition_list *l, struct ctl_partition *p);
void job_add_replica(struct flow *f, struct replica_list *l, struct ctl_partition *p,
                     struct ctl_replica *r);
void job_add_topic(struct flow *f, struct topic_list *l, struct ctl_topic *t);
/* Unless it is there; a list is filled either this way or the other. */
void job_add_topic_once(struct flow *f, struct topic_list *l, struct ctl_topic *t);
void job_add_all_of_topic(struct flow *f, struct ctl_topic *t);
/* Ask for a plain read, or a write under the fence. NULL without memory (the flow fails then). */
struct store_request *job_ask(struct flow *f, struct store_op op);
struct store_request *job_ask_fenced(struct flow *f, struct store_op op);
/* Status of what was asked: of the read, or of the operation behind the fence. */
int job_status(const struct store_request *r);
const struct store_op *job_op(const struct store_request *r);
/* Looks over the answers: false when the fence is broken or the store does not answer any more; the
 * flow has failed then. */
bool job_answered(struct flow *f);

/* controller_counts.c */
void count_begun(struct job *j);
void count_over(const struct job *j);

/* controller.c */
void controller_unref(struct controller *c);
/* The broker cannot go on; told once. */
void controller_fatal(struct controller *c, const char *why);
/* Queues an event. NULL: it is there already and one is enough, or no memory (logged). */
struct job *controller_event(struct controller *c, const struct event_kind *kind);
/* Registers a watch of the reign; without memory the broker stops. */
void controller_watch_on(struct controller *c, struct store_watch *w, const char *path,
                         bool children, void (*fired)(struct store_watch *w));
/* The own broker has answered one more request. */
void controller_own_answered(struct controller *c);
/* Forget everything of the reign. */
void controller_resign(struct controller *c, const char *why);

/* calls.c */
/* Answers the event's caller, whose response is complete. */
void call_answer(struct flow *f);
/* The event will not be worked on. `j` may have no call. */
void call_refuse(struct job *j);
/* The broker that asks, if it is registered with this epoch; else NULL. */
struct ctl_broker *call_broker(struct controller *c, int32_t id, int64_t epoch);

/* isr_change.c */
extern const struct event_kind event_alter_partition;
/* leader_election.c */
extern const struct event_kind event_elect_leaders, event_preferred_node, event_unclean;
void rebalance_due(struct timer *t); /* controller.rebalance_timer */

/* notices.c */
extern const struct event_kind event_log_dirs, event_isr_changes;
/* job.broker and job.answer: partitions by name, with KAFKA_STORAGE_ERROR or NONE */
extern const struct event_kind event_dirs_answered;

/* reassignment.c */
extern const struct event_kind event_reassign, event_list_moves, event_reassign_node;
extern const struct event_kind event_moves_given_up;
/* Those of the list whose target is in sync are completed, as a job of the step's. Others, and
 * those that are not being reassigned, are passed over. */
void moves_complete(struct flow *f, const struct partition_list *l);
/* At a failover: goes on with all there are. */
void moves_resume(struct flow *f);

/* move_target.c */
/* What is wrong with the target of a move, for people; in the arena, or static. NULL: nothing.
 * live: those that would be added must be live. */
const char *move_target_problem(const struct controller *c, const struct ctl_partition *p,
                                struct id_list target, bool live, struct arena *a);

/* shutdown.c */
extern const struct event_kind event_controlled_shutdown;
/* producer_id_block.c */
extern const struct event_kind event_allocate_producer_ids;

/* elect.c */
extern const struct event_kind event_elect, event_register_and_elect, event_step_down;
int elect_watch(struct controller *c); /* 0 or -ENOMEM */

/* failover.c */
extern const flow_step failover_steps[];

/* bounced.c */
/* The state was written at this zxid: who began another life since? */
void bounced_note(const struct controller *c, struct ctl_partition *p, int64_t written);
bool bounced_any(const struct ctl_partition *p);
void bounced_forget(struct ctl_partition *p);
extern const struct event_kind event_bounced;
/* That broker has answered for all it hosts; or (-1) one may be gone. */
void bounced_look(struct controller *c, int32_t broker, int64_t broker_epoch);

/* broker_change.c */
extern const struct event_kind event_broker_change, event_broker_modified;
/* Opens the channel and watches the node. */
void broker_begin(struct controller *c, struct ctl_broker *b);
void broker_end(struct controller *c, struct ctl_broker *b); /* closes and removes */
/* These replicas are gone with their broker or its log dir: as a job of the step's, what they led
 * is elected anew, they leave the ISRs, all brokers hear of it. */
void replicas_lost(struct flow *f, struct replica_list l);
/* The broker in the answer to a read of its node; false (logged) when there is none. */
bool broker_in_answer(struct flow *f, const struct store_request *r, struct broker_info *info);

/* topic_change.c */
extern const struct event_kind event_topic_change, event_topic_modified;
void topic_unwatch(struct controller *c, struct ctl_topic *t);
void topic_forget(struct controller *c, struct ctl_topic *t); /* unwatches and frees */
/* What the topic's node holds by what is known; null bytes without memory. In the flow's arena. */
struct bytes topic_node_of(struct flow *f, const struct ctl_topic *t);
/* Begins to watch a topic and asks for its node. */
struct ctl_topic *topic_begin(struct flow *f, struct str name);
/* Takes the answer in. false: no such topic, or a malformed one (logged); it is forgotten again. */
bool topic_fill(struct flow *f, const struct store_request *answer);
/* Asks to write ids for the topics of the list that lack one; the answers go to topic_ids_given. */
void topic_ask_ids(struct flow *f, const struct topic_list *l);
bool topic_ids_given(struct flow *f);

/* delete_tree.c */
struct path_list {
    char **v;
    int n, cap;
};
void job_add_path(struct flow *f, struct path_list *l, char *path); /* NULL: the flow fails */
/* Deletes the nodes and all below them, as a job of the step's. Gone already is fine. */
void delete_trees(struct flow *f, struct path_list l);

/* topic_deletion.c */
extern const struct event_kind event_topic_deletion, event_replica_deleted;
extern const flow_step deletion_resume_steps[]; /* job.topics: the ones to look at */
extern const flow_step deletion_begin_steps[];  /* at failover: reads what is queued */
/* Replicas that cannot be deleted now hold up their topics. */
void deletion_fail_replicas(struct controller *c, const struct replica_list *l, const char *why);

/* partition_state.c */
/* To NEW, OFFLINE, NON_EXISTENT: at once. */
void partitions_move(struct controller *c, const struct partition_list *l, enum partition_state to);
/* To ONLINE by electing, as a job of the step's: writes the states, tells the brokers. Those nobody
 * can lead stay as they are; the others have `elected` set afterwards. (NEW ones: whatever the
 * strategy, all that are online are in sync.) */
void partitions_elect(struct flow *f, struct partition_list l, enum election_strategy strategy);
/* Is the replica's broker live, and its log dir? */
bool replica_is_online(const struct controller *c, const struct ctl_partition *p, int32_t broker);

/* replica_state.c */
/* Anything but OFFLINE: at once; sends the round. */
void replicas_move(struct controller *c, const struct replica_list *l, enum replica_state to);
/* To OFFLINE, as a job of the step's: stops them, takes them out of the ISRs, tells the others. */
void replicas_go_offline(struct flow *f, struct replica_list l);

/* control_batch.c */
void batch_leader_and_isr(struct controller *c, int32_t broker, struct ctl_partition *p,
                          bool is_new);
void batch_stop(struct controller *c, int32_t broker, struct ctl_partition *p, bool del);
void batch_metadata(struct controller *c, struct ctl_partition *p); /* to all brokers */
void batch_metadata_to(struct controller *c, int32_t broker);       /* that one gets the round's */
void batch_metadata_to_all(struct controller *c);
void batch_send(struct controller *c);
void batch_clear(struct controller *c);

#endif
