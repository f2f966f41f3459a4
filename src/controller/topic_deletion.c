/* topic_deletion.c - from the mark under /admin/delete_topics to the last node gone.
 *
 * Queued:  the mark was seen; no elections for it any more.
 * Begun:   its partitions are OFFLINE, then NON_EXISTENT; clients are told leader -2.
 * Started: each live replica was told to stop, then to delete; each answers in its own time.
 * Over:    all have answered well: nodes of topic, settings and mark go, in this order.
 *
 * A move is given up with its topic, and not waited for: nobody elects for this topic any more, and
 * brokers that have been told of leader -2 serve no follower, so the move might not end.
 *
 * A replica whose broker is gone, or that answers with an error, holds its topic up ("ineligible")
 * until a broker that hosts it comes back; then it is tried again. Nothing is tried by time. What
 * is to be done next follows from the counts of replica states alone (look_at), so a new controller
 * goes on where the last one stopped. */
#include <stdlib.h>

#include "controller/control_answers.h"
#include "controller/controller_private.h"

static bool all_deleted(const struct ctl_topic *t)
{
    int n = 0;
    for (int s = 0; s < REPLICA_STATES; s++)
        n += t->replicas_in[s];
    return t->replicas_in[REPLICA_DELETION_SUCCESSFUL] == n;
}

static void add_replicas_in(struct flow *f, struct replica_list *l, struct ctl_topic *t,
                            enum replica_state state)
{
    for (int i = 0; i < t->partitions_n; i++)
        for (int k = 0; k < t->partitions[i]->replicas_n; k++)
            if (t->partitions[i]->replicas[k].state == state)
                job_add_replica(f, l, t->partitions[i], &t->partitions[i]->replicas[k]);
}

void deletion_fail_replicas(struct controller *c, const struct replica_list *l, const char *why)
{
    struct replica_list failing = {malloc(((size_t)l->n + 1) * sizeof(*l->v)), 0, l->n};
    for (int i = 0; failing.v && i < l->n; i++) {
        struct ctl_replica_ref r = l->v[i];
        struct ctl_topic *t = r.partition->topic;
        if (!t->ineligible)
            say_warn(c->component, "deletion of topic %.*s waits: replica %d: %s", STR_ARG(t->name),
                     r.replica->broker, why);
        t->ineligible = true;
        if (r.replica->state == REPLICA_DELETION_STARTED)
            failing.v[failing.n++] = r;
    }
    if (failing.v)
        replicas_move(c, &failing, REPLICA_DELETION_INELIGIBLE);
    free(failing.v);
}

/* Resuming. job.topics: those to look at */

struct plan {
    struct topic_list over, start;
    struct partition_list ending;                /* of topics whose deletion begins */
    struct replica_list retry, dead, live, gone; /* gone: of topics that are over */
};

static struct plan *plan_of(struct flow *f)
{
    return job_of(f)->items;
}

static void look_at(struct flow *f, struct ctl_topic *t)
{
    struct plan *plan = plan_of(f);
    if (!t->deleting)
        return;
    if (all_deleted(t)) {
        job_add_topic(f, &plan->over, t);
        add_replicas_in(f, &plan->gone, t, REPLICA_DELETION_SUCCESSFUL);
        return;
    }
    if (t->replicas_in[REPLICA_DELETION_STARTED])
        return; /* the answers are awaited */
    add_replicas_in(f, &plan->retry, t, REPLICA_DELETION_INELIGIBLE);
    if (!t->ineligible)
        job_add_topic(f, &plan->start, t);
}

static void make_plan(struct flow *f)
{
    struct job *j = job_of(f);
    j->items = arena_new(&f->arena, struct plan);
    if (!j->items) {
        flow_fail(f, -ENOMEM);
        return;
    }
    for (int i = 0; i < j->topics.n; i++)
        look_at(f, j->topics.v[i]);
    replicas_go_offline(f, plan_of(f)->retry);
}

static void begin(struct flow *f)
{
    struct plan *plan = plan_of(f);
    struct controller *c = controller_of(f);
    for (int i = 0; i < plan->start.n; i++) {
        struct ctl_topic *t = plan->start.v[i];
        for (int k = 0; k < t->partitions_n; k++) {
            if (!t->deletion_begun)
                job_add_partition(f, &plan->ending, t->partitions[k]);
            batch_metadata(c, t->partitions[k]);
        }
        if (!t->deletion_begun)
            say_info(c->component, "deleting topic %.*s", STR_ARG(t->name));
        t->deletion_begun = true;
    }
    partitions_move(c, &plan->ending, PARTITION_OFFLINE);
    partitions_move(c, &plan->ending, PARTITION_NON_EXISTENT);
    batch_send(c);
}

static void split(struct flow *f)
{
    struct plan *plan = plan_of(f);
    struct controller *c = controller_of(f);
    for (int i = 0; i < plan->start.n; i++) {
        struct ctl_topic *t = plan->start.v[i];
        for (int k = 0; k < t->partitions_n; k++) {
            struct ctl_partition *p = t->partitions[k];
            for (int m = 0; m < p->replicas_n; m++) {
                struct ctl_replica *r = &p->replicas[m];
                if (r->state == REPLICA_DELETION_SUCCESSFUL)
                    continue;
                bool live = context_broker(&c->ctx, r->broker) != NULL && !r->dead_dir;
                job_add_replica(f, live ? &plan->live : &plan->dead, p, r);
            }
        }
    }
    replicas_go_offline(f, plan->live);
}

/* Dead ones go offline first, too: that is where they may become ineligible from. */
static void dead_offline(struct flow *f)
{
    replicas_go_offline(f, plan_of(f)->dead);
}

static void start(struct flow *f)
{
    struct plan *plan = plan_of(f);
    struct controller *c = controller_of(f);
    replicas_move(c, &plan->dead, REPLICA_DELETION_INELIGIBLE);
    for (int i = 0; i < plan->dead.n; i++) {
        struct ctl_topic *t = plan->dead.v[i].partition->topic;
        if (!t->ineligible)
            say_warn(c->component, "deletion of topic %.*s waits for broker %d", STR_ARG(t->name),
                     plan->dead.v[i].replica->broker);
        t->ineligible = true;
    }
    replicas_move(c, &plan->live, REPLICA_DELETION_STARTED);
}

/* The end. */

static void delete_topics(struct flow *f)
{
    struct plan *plan = plan_of(f);
    struct path_list paths = {NULL, 0, 0};
    replicas_move(controller_of(f), &plan->gone, REPLICA_NON_EXISTENT);
    for (int i = 0; i < plan->over.n; i++) {
        topic_unwatch(controller_of(f), plan->over.v[i]);
        job_add_path(f, &paths, path_topic(&f->arena, plan->over.v[i]->name));
    }
    delete_trees(f, paths);
}

static void delete_settings_and_marks(struct flow *f)
{
    struct plan *plan = plan_of(f);
    for (int i = 0; i < plan->over.n; i++) {
        struct str name = plan->over.v[i]->name;
        job_ask_fenced(f, store_op_delete(path_topic_config(&f->arena, name), STORE_ANY_VERSION));
        job_ask_fenced(f, store_op_delete(path_delete_topic(&f->arena, name), STORE_ANY_VERSION));
    }
}

static void forget(struct flow *f)
{
    struct plan *plan = plan_of(f);
    struct controller *c = controller_of(f);
    bool moved = false;
    if (!job_answered(f))
        return;
    store_batch_each (r, flow_answers(f))
        if (job_status(r) && job_status(r) != -ENOENT)
            say_error(c->component, "deleting %s: %s", job_op(r)->path, strerror(-job_status(r)));
    for (int i = 0; i < plan->over.n; i++) {
        say_info(c->component, "topic %.*s is deleted", STR_ARG(plan->over.v[i]->name));
        moved |= plan->over.v[i]->moving;
        topic_forget(c, plan->over.v[i]);
    }
    if (moved)
        controller_event(c, &event_moves_given_up);
}

const flow_step deletion_resume_steps[] = {
    make_plan, begin, split, dead_offline, start, delete_topics, delete_settings_and_marks,
    forget,    NULL};

/* Event: the children of /admin/delete_topics; and the same at a failover. */

static void list_marks(struct flow *f)
{
    job_ask(f, store_op_children(PATH_DELETE_TOPICS, true));
}

static bool hosted_by_the_dead(struct controller *c, const struct ctl_topic *t)
{
    for (int i = 0; i < t->partitions_n; i++)
        for (int k = 0; k < t->partitions[i]->replicas_n; k++)
            if (!replica_is_online(c, t->partitions[i], t->partitions[i]->replicas[k].broker))
                return true;
    return false;
}

static void queue_marked(struct flow *f)
{
    struct job *j = job_of(f);
    struct controller *c = j->c;
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_first(flow_answers(f));
    if (r->status) {
        flow_fail(f, r->status);
        return;
    }
    for (int i = 0; i < r->ops[0].names_n; i++) {
        struct str name = str_of(r->ops[0].names[i]);
        struct ctl_topic *t = context_topic(&c->ctx, name);
        if (!t || !c->o.delete_topics) {
            say_info(c->component, "mark of topic %.*s is removed: %s", STR_ARG(name),
                     t ? "deletion is not enabled" : "no such topic");
            if (!t) /* an earlier controller may have come no further than the topic's own node */
                job_ask_fenced(
                    f, store_op_delete(path_topic_config(&f->arena, name), STORE_ANY_VERSION));
            job_ask_fenced(f,
                           store_op_delete(path_delete_topic(&f->arena, name), STORE_ANY_VERSION));
        } else if (!t->deleting) {
            t->deleting = true;
            job_add_topic(f, &j->topics, t);
        }
    }
}

static void marks_removed(struct flow *f)
{
    job_answered(f);
}

static void resume_queued(struct flow *f)
{
    struct job *j = job_of(f);
    struct job *resume = j->topics.n ? job_new(f) : NULL;
    if (!resume)
        return;
    resume->topics = j->topics;
    job_call(f, resume, deletion_resume_steps);
}

static const flow_step marked_steps[] = {list_marks, queue_marked, marks_removed, resume_queued,
                                         NULL};
const struct event_kind event_topic_deletion = {"TopicDeletion", marked_steps, true, true,
                                                CONTROLLER_TOPIC_DELETION};

static void hold_up(struct flow *f)
{
    struct job *j = job_of(f);
    for (int i = 0; i < j->topics.n; i++)
        j->topics.v[i]->ineligible = hosted_by_the_dead(j->c, j->topics.v[i]);
    job_answered(f);
}

const flow_step deletion_begin_steps[] = {list_marks, queue_marked, hold_up, NULL};

/* Event: a broker answered. job.broker, job.answer */

static void sort_answer(struct flow *f)
{
    struct job *j = job_of(f);
    struct controller *c = j->c;
    struct replica_list good = {NULL, 0, 0}, bad = {NULL, 0, 0};
    if (!control_answer_counts(c, j))
        return;
    for (int i = 0; i < j->answer.parts_n; i++) {
        const struct stop_answer_part *part = &j->answer.parts[i];
        struct ctl_topic *t = context_topic(&c->ctx, part->topic);
        struct ctl_partition *p = t && t->deleting ? context_partition(t, part->partition) : NULL;
        struct ctl_replica *r = p ? context_replica(p, j->broker) : NULL;
        if (!r || r->state != REPLICA_DELETION_STARTED)
            continue;
        job_add_replica(f, part->error ? &bad : &good, p, r);
        if (!j->topics.n || j->topics.v[j->topics.n - 1] != t) /* parts of a topic are together */
            job_add_topic(f, &j->topics, t);
    }
    replicas_move(c, &good, REPLICA_DELETION_SUCCESSFUL);
    deletion_fail_replicas(c, &bad, "could not delete");
    resume_queued(f);
}

static const flow_step answer_steps[] = {sort_answer, NULL};
const struct event_kind event_replica_deleted = {"TopicDeletionStopReplicaResponse", answer_steps,
                                                 true, false, CONTROLLER_TOPIC_DELETION};
