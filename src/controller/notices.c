/* notices.c - what brokers tell by leaving a node: a log dir that failed, ISRs that a leader below
 * 2.7-IV2 wrote by itself; and what they answer to LeaderAndIsr of their log dirs.
 *
 * A node that tells is removed, whatever came of it: what it told can be found out anew. */
#include "controller/control_answers.h"
#include "controller/controller_private.h"

/* ---- lists of notices ---- */

static void list_notices(struct flow *f, const char *path)
{
    job_ask(f, store_op_children(path, true));
}

/* All children, asked for; the paths are in the arena. */
static void read_notices(struct flow *f)
{
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_first(flow_answers(f));
    if (r->status) {
        flow_fail(f, r->status);
        return;
    }
    for (int i = 0; i < r->ops[0].names_n; i++)
        job_ask(f,
                store_op_get(arena_printf(&f->arena, "%s/%s", r->ops[0].path, r->ops[0].names[i]),
                             false));
}

static void remember(struct flow *f, struct path_list *paths)
{
    store_batch_each (r, flow_answers(f))
        if (!r->status)
            job_add_path(f, paths, (char *)r->ops[0].path);
}

static void remove_notices(struct flow *f, const struct path_list *paths)
{
    for (int i = 0; i < paths->n; i++)
        job_ask_fenced(f, store_op_delete(paths->v[i], STORE_ANY_VERSION));
}

static struct path_list *paths_of(struct flow *f)
{
    return job_of(f)->items;
}

static bool begin(struct flow *f)
{
    job_of(f)->items = arena_new(&f->arena, struct path_list);
    if (!job_of(f)->items)
        flow_fail(f, -ENOMEM);
    return job_of(f)->items != NULL;
}

static void end(struct flow *f)
{
    job_answered(f);
}

/* ---- log dirs ---- */

static void list_dir_events(struct flow *f)
{
    if (begin(f))
        list_notices(f, PATH_LOG_DIR_EVENTS);
}

/* The brokers are told again to lead or follow all that they host: their answers name what they
 * cannot. */
static void ask_brokers(struct flow *f)
{
    struct job *j = job_of(f);
    bool *told = arena_array(&f->arena, bool, (size_t)j->c->ctx.brokers_n);
    if (!job_answered(f) || !told)
        return;
    remember(f, paths_of(f));
    store_batch_each (r, flow_answers(f)) {
        int32_t broker;
        if (r->status || znode_log_dir_event_decode(r->ops[0].result, &broker)) {
            say_warn(j->c->component, "%s is malformed: it is removed", r->ops[0].path);
            continue;
        }
        say_warn(j->c->component, "broker %d has lost a log dir", broker);
        for (int i = 0; i < j->c->ctx.brokers_n; i++)
            told[i] |= j->c->ctx.brokers[i]->id == broker;
    }
    hmap_each (h, &j->c->ctx.topics) {
        struct ctl_topic *t = hmap_entry(h, struct ctl_topic, node);
        for (int i = 0; i < t->partitions_n; i++)
            for (int k = 0; k < t->partitions[i]->replicas_n; k++) {
                struct ctl_replica *r = &t->partitions[i]->replicas[k];
                bool online = r->state == REPLICA_NEW || r->state == REPLICA_ONLINE ||
                              r->state == REPLICA_OFFLINE;
                for (int b = 0; b < j->c->ctx.brokers_n && online && !t->deleting; b++)
                    if (told[b] && j->c->ctx.brokers[b]->id == r->broker)
                        job_add_replica(f, &j->replicas, t->partitions[i], r);
            }
    }
    for (int i = 0; i < j->replicas.n; i++) /* also those that were just made */
        if (j->replicas.v[i].replica->state == REPLICA_NEW)
            context_set_replica(j->replicas.v[i].partition, j->replicas.v[i].replica,
                                REPLICA_ONLINE);
    replicas_move(j->c, &j->replicas, REPLICA_ONLINE);
    remove_notices(f, paths_of(f));
}

static const flow_step dir_steps[] = {list_dir_events, read_notices, ask_brokers, end, NULL};
const struct event_kind event_log_dirs = {"LogDirEventNotification", dir_steps, true, true,
                                          CONTROLLER_LOG_DIR_CHANGE};

/* ---- answers to LeaderAndIsr ---- */

/* Replicas that are lost with their dir. job.broker, job.answer: partitions by name */
static void note_dead_dirs(struct flow *f)
{
    struct job *j = job_of(f);
    if (!control_answer_counts(j->c, j))
        return;
    for (int i = 0; i < j->answer.parts_n; i++) {
        const struct stop_answer_part *part = &j->answer.parts[i];
        struct ctl_topic *t = context_topic(&j->c->ctx, part->topic);
        struct ctl_partition *p = t ? context_partition(t, part->partition) : NULL;
        struct ctl_replica *r = p ? context_replica(p, j->broker) : NULL;
        if (!r)
            continue;
        bool dead = part->error == KERR_KAFKA_STORAGE_ERROR;
        if (dead && !r->dead_dir)
            job_add_replica(f, &j->replicas, p, r);
        r->dead_dir = dead;
    }
    if (j->replicas.n) {
        say_warn(j->c->component, "broker %d has %d replicas on failed log dirs", j->broker,
                 j->replicas.n);
        replicas_lost(f, j->replicas);
    }
}

static const flow_step answer_steps[] = {note_dead_dirs, NULL};
const struct event_kind event_dirs_answered = {"LeaderAndIsrResponse", answer_steps, true, false,
                                               CONTROLLER_LEADER_AND_ISR_ANSWER};

/* ---- ISRs that leaders wrote ---- */

static void list_isr_changes(struct flow *f)
{
    if (begin(f))
        list_notices(f, PATH_ISR_CHANGES);
}

static void read_states(struct flow *f)
{
    struct job *j = job_of(f);
    if (!job_answered(f))
        return;
    remember(f, paths_of(f));
    store_batch_each (r, flow_answers(f)) {
        struct named_partitions l;
        if (r->status || znode_partitions_decode(r->ops[0].result, &f->arena, &l)) {
            say_warn(j->c->component, "%s is malformed: it is removed", r->ops[0].path);
            continue;
        }
        for (int i = 0; i < l.n; i++) {
            struct ctl_topic *t = context_topic(&j->c->ctx, l.v[i].topic);
            struct ctl_partition *p = t ? context_partition(t, l.v[i].partition) : NULL;
            if (p && p->known)
                job_add_partition(f, &j->partitions, p);
        }
    }
    for (int i = 0; i < j->partitions.n; i++) {
        struct ctl_partition *p = j->partitions.v[i];
        struct store_request *r =
            job_ask(f, store_op_get(path_state(&f->arena, p->topic->name, p->number), false));
        if (r)
            r->user = p;
    }
}

static void tell_states(struct flow *f)
{
    struct job *j = job_of(f);
    if (!job_answered(f))
        return;
    store_batch_each (r, flow_answers(f)) {
        struct partition_node node;
        struct ctl_partition *p = r->user;
        if (r->status || znode_partition_decode(r->ops[0].result, &f->arena, &node))
            continue;
        if (context_set_known(p, &node, r->ops[0].stat.version))
            flow_fail(f, -ENOMEM);
        batch_metadata(j->c, p);
    }
    batch_send(j->c);
    remove_notices(f, paths_of(f));
}

static void complete_moves(struct flow *f)
{
    if (job_answered(f))
        moves_complete(f, &job_of(f)->partitions);
}

static const flow_step isr_steps[] = {list_isr_changes, read_notices,   read_states,
                                      tell_states,      complete_moves, NULL};
const struct event_kind event_isr_changes = {"IsrChangeNotification", isr_steps, true, true,
                                             CONTROLLER_ISR_CHANGE};
