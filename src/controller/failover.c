/* failover.c - what a broker does that has just been elected: reads everything, tells everyone. The
 * order of the steps matters: a broker must know the live ones before it can follow them, what is
 * to be deleted must not be elected, and what has no leader is waited for more than all else. */
#include "controller/controller_private.h"

/* In this mode there are no features; their node is made or put right all the same. */
static void read_feature(struct flow *f)
{
    job_ask(f, store_op_get(PATH_FEATURE, false));
}

static void write_feature(struct flow *f)
{
    int32_t version = 0, status = 0;
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_first(flow_answers(f));
    struct bytes data = znode_feature_encode(&f->arena);
    if (!data.p)
        flow_fail(f, -ENOMEM);
    else if (r->status == -ENOENT)
        job_ask(f, store_op_create(PATH_FEATURE, data, 0));
    else if (znode_feature_decode(r->ops[0].result, &version, &status) || version != 2 ||
             status != 1)
        job_ask(f, store_op_set(PATH_FEATURE, data, STORE_ANY_VERSION));
}

/* Notices of a time before this reign: everything they could tell is read below. */
static void log_dirs_changed(struct store_watch *w)
{
    controller_event(container_of(w, struct controller, log_dirs_watch), &event_log_dirs);
}

static void isrs_changed(struct store_watch *w)
{
    controller_event(container_of(w, struct controller, isr_changes_watch), &event_isr_changes);
}

static void election_asked(struct store_watch *w)
{
    controller_event(container_of(w, struct controller, preferred_watch), &event_preferred_node);
}

static void moves_asked(struct store_watch *w)
{
    controller_event(container_of(w, struct controller, reassign_watch), &event_reassign_node);
}

static void list_notices(struct flow *f)
{
    struct controller *c = controller_of(f);
    if (!job_answered(f))
        return;
    controller_watch_on(c, &c->log_dirs_watch, PATH_LOG_DIR_EVENTS, true, log_dirs_changed);
    controller_watch_on(c, &c->isr_changes_watch, PATH_ISR_CHANGES, true, isrs_changed);
    controller_watch_on(c, &c->preferred_watch, PATH_PREFERRED, false, election_asked);
    controller_watch_on(c, &c->reassign_watch, PATH_REASSIGN, false, moves_asked);
    job_ask(f, store_op_children(PATH_LOG_DIR_EVENTS, true));
    job_ask(f, store_op_children(PATH_ISR_CHANGES, true));
}

static void delete_notices(struct flow *f)
{
    if (!job_answered(f))
        return;
    store_batch_each (r, flow_answers(f))
        for (int i = 0; i < r->ops[0].names_n; i++)
            job_ask_fenced(f, store_op_delete(arena_printf(&f->arena, "%s/%s", r->ops[0].path,
                                                           r->ops[0].names[i]),
                                              STORE_ANY_VERSION));
}

static void brokers_changed(struct store_watch *w)
{
    controller_event(container_of(w, struct controller, brokers_watch), &event_broker_change);
}

static void topics_changed(struct store_watch *w)
{
    controller_event(container_of(w, struct controller, topics_watch), &event_topic_change);
}

static void deletions_changed(struct store_watch *w)
{
    controller_event(container_of(w, struct controller, deletions_watch), &event_topic_deletion);
}

static void watch_and_list(struct flow *f)
{
    struct controller *c = controller_of(f);
    if (!job_answered(f))
        return;
    controller_watch_on(c, &c->brokers_watch, PATH_BROKER_IDS, true, brokers_changed);
    controller_watch_on(c, &c->topics_watch, PATH_TOPICS, true, topics_changed);
    controller_watch_on(c, &c->deletions_watch, PATH_DELETE_TOPICS, true, deletions_changed);
    job_ask(f, store_op_children(PATH_BROKER_IDS, true));
    job_ask(f, store_op_children(PATH_TOPICS, true));
}

/* Two lists in, all their nodes asked for: r->user is NULL for brokers. */
static void read_nodes(struct flow *f)
{
    struct controller *c = controller_of(f);
    if (!job_answered(f))
        return;
    struct store_request *brokers = store_batch_first(flow_answers(f));
    struct store_request *topics = store_batch_next(flow_answers(f), brokers);
    if (brokers->status || topics->status) {
        flow_fail(f, brokers->status ? brokers->status : topics->status);
        return;
    }
    for (int i = 0; i < brokers->ops[0].names_n; i++)
        job_ask(f, store_op_get(
                       arena_printf(&f->arena, PATH_BROKER_IDS "/%s", brokers->ops[0].names[i]),
                       false));
    for (int i = 0; i < topics->ops[0].names_n; i++)
        topic_begin(f, str_of(topics->ops[0].names[i]));
    c->topics_as_of = topics->ops[0].as_of;
}

static void learn_nodes(struct flow *f)
{
    struct job *j = job_of(f);
    struct controller *c = j->c;
    if (!job_answered(f))
        return;
    store_batch_each (r, flow_answers(f)) {
        struct broker_info info;
        if (r->user) {
            if (topic_fill(f, r))
                job_add_topic(f, &j->topics, r->user);
        } else if (broker_in_answer(f, r, &info)) {
            struct ctl_broker *b = context_add_broker(&c->ctx, &info, r->ops[0].stat.czxid);
            if (b)
                broker_begin(c, b);
            else
                flow_fail(f, -ENOMEM);
        }
    }
    topic_ask_ids(f, &j->topics);
}

static void read_states(struct flow *f)
{
    struct job *j = job_of(f);
    if (!topic_ids_given(f))
        return;
    for (int i = 0; i < j->topics.n; i++) {
        struct ctl_topic *t = j->topics.v[i];
        for (int k = 0; k < t->partitions_n; k++) {
            struct store_request *r = job_ask(
                f, store_op_get(path_state(&f->arena, t->name, t->partitions[k]->number), false));
            if (r)
                r->user = t->partitions[k];
        }
    }
}

static void learn_states(struct flow *f)
{
    struct controller *c = controller_of(f);
    if (!job_answered(f))
        return;
    store_batch_each (r, flow_answers(f)) {
        struct partition_node node;
        if (r->status == -ENOENT)
            continue;
        if (r->status || znode_partition_decode(r->ops[0].result, &f->arena, &node))
            say_error(c->component, "%s is malformed", r->ops[0].path);
        else if (context_set_known(r->user, &node, r->ops[0].stat.version))
            flow_fail(f, -ENOMEM);
        else
            bounced_note(c, r->user, r->ops[0].stat.mzxid);
    }
}

static void learn_deletions(struct flow *f)
{
    struct job *deletions = job_new(f);
    if (deletions)
        job_call(f, deletions, deletion_begin_steps);
}

static void tell_live_brokers(struct flow *f)
{
    struct controller *c = controller_of(f);
    say_info(c->component, "%d brokers, %zu topics", c->ctx.brokers_n, c->ctx.topics.n);
    batch_metadata_to_all(c);
    batch_send(c);
}

/* States are taken as they are found, then moved as after any other change. job.replicas: those
 * that are offline */
static void begin_replicas(struct flow *f)
{
    struct job *j = job_of(f);
    for (int i = 0; i < j->topics.n; i++) {
        struct ctl_topic *t = j->topics.v[i];
        for (int k = 0; k < t->partitions_n; k++) {
            struct ctl_partition *p = t->partitions[k];
            for (int m = 0; m < p->replicas_n; m++) {
                bool is = replica_is_online(j->c, p, p->replicas[m].broker);
                context_set_replica(p, &p->replicas[m],
                                    is ? REPLICA_ONLINE : REPLICA_DELETION_INELIGIBLE);
                if (!is)
                    job_add_replica(f, &j->replicas, p, &p->replicas[m]);
            }
        }
    }
}

/* Those that need a leader; where it matters who has bounced, that is seen to when the others have
 * answered. */
static void begin_partitions(struct flow *f)
{
    struct job *j = job_of(f);
    for (int i = 0; i < j->topics.n; i++) {
        struct ctl_topic *t = j->topics.v[i];
        for (int k = 0; k < t->partitions_n; k++) {
            struct ctl_partition *p = t->partitions[k];
            p->state = !p->known                               ? PARTITION_NEW
                       : replica_is_online(j->c, p, p->leader) ? PARTITION_ONLINE
                                                               : PARTITION_OFFLINE;
            p->elected = false;
            if (bounced_any(p))
                j->c->some_bounced = true;
            else if (p->state != PARTITION_ONLINE && !t->deleting)
                job_add_partition(f, &j->partitions, p);
        }
    }
    partitions_elect(f, j->partitions, ELECT_TAKEN_OVER);
}

/* All brokers of all they host but what they were told just now. Their answers name the log dirs
 * that have failed. */
static void tell_replicas(struct flow *f)
{
    struct job *j = job_of(f);
    struct replica_list online = {NULL, 0, 0};
    for (int i = 0; i < j->topics.n; i++) {
        struct ctl_topic *t = j->topics.v[i];
        for (int k = 0; k < t->partitions_n; k++) {
            struct ctl_partition *p = t->partitions[k];
            for (int m = 0; m < p->replicas_n && !p->elected; m++)
                if (p->replicas[m].state == REPLICA_ONLINE && !p->replicas[m].bounced)
                    job_add_replica(f, &online, p, &p->replicas[m]);
        }
    }
    j->c->asks_dirs = true;
    replicas_move(j->c, &online, REPLICA_ONLINE);
    j->c->asks_dirs = false;
    bounced_look(j->c, -1, -1);
}

/* After the elections, which have taken the dead out of the ISRs of what they led: leaders are
 * waited for more than anything. */
static void lose_replicas(struct flow *f)
{
    replicas_go_offline(f, job_of(f)->replicas);
}

static void resume_deletions(struct flow *f)
{
    struct job *j = job_of(f);
    struct job *resume = j->topics.n ? job_new(f) : NULL;
    if (!resume)
        return;
    resume->topics = j->topics; /* those that are not queued are passed over */
    job_call(f, resume, deletion_resume_steps);
}

/* What comes by itself, or was asked of the controller before. */
static void begin_upkeep(struct flow *f)
{
    enum { FIRST_REBALANCE_MS = 5000 };
    struct controller *c = controller_of(f);
    say_info(c->component, "has taken over");
    controller_event(c, &event_reassign_node); /* which arm their watches, too */
    controller_event(c, &event_preferred_node);
    if (c->o.rebalance_ms > 0)
        executor_timer_start(c->o.ex, &c->rebalance_timer, FIRST_REBALANCE_MS);
}

const flow_step failover_steps[] = {read_feature,
                                    write_feature,
                                    list_notices,
                                    delete_notices,
                                    watch_and_list,
                                    read_nodes,
                                    learn_nodes,
                                    read_states,
                                    learn_states,
                                    learn_deletions,
                                    tell_live_brokers,
                                    begin_replicas,
                                    begin_partitions,
                                    tell_replicas,
                                    lose_replicas,
                                    moves_resume,
                                    resume_deletions,
                                    begin_upkeep,
                                    NULL};
