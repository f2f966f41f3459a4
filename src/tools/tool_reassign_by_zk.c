/* tool_reassign_by_zk.c - kafka-reassign-partitions --zookeeper, as in 2.x: the controller is asked
 * by a node, brokers and topics are set by theirs. What is under way is what the node still names.
 */
#include <stdio.h>
#include <string.h>

#include "tools/tool_io.h"
#include "tools/tool_reassign_zk.h"
#include "tools/tool_zk_brokers.h"

struct by_zk {
    struct reassign *r;
    struct store *s;
};

static const char limits_note[] =
    "Warning: You must run Verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed. You can also alter the throttle by rerunning the Execute command passing "
    "a new value.";

/* ---- throttles ---- */

static void set_rates(struct by_zk *z, struct id_list brokers)
{
    const struct reassign_args *a = z->r->args;
    char rate[32], dir_rate[32], entity[32];
    kafka_config_t configs[3];
    size_t n = 0;
    snprintf(rate, sizeof rate, "%lld", (long long)a->throttle);
    snprintf(dir_rate, sizeof dir_rate, "%lld", (long long)a->dir_throttle);
    if (a->throttle >= 0) {
        configs[n++] = (kafka_config_t){reassign_broker_keys[0], rate};
        configs[n++] = (kafka_config_t){reassign_broker_keys[1], rate};
    }
    if (a->dir_throttle >= 0)
        configs[n++] = (kafka_config_t){reassign_broker_keys[2], dir_rate};
    for (int i = 0; n && i < brokers.n; i++) {
        snprintf(entity, sizeof entity, "brokers/%d", brokers.v[i]);
        reassign_zk_configure(z->r, z->s, entity, configs, n);
    }
    if (a->throttle >= 0)
        printf("The inter-broker throttle limit was set to %s B/s\n", rate);
    if (a->dir_throttle >= 0)
        printf("The replica-alter-dir throttle limit was set to %s B/s\n", dir_rate);
}

/* Partitions that go to no new broker have nothing to hold back. */
static struct reassign_moves real_moves(struct by_zk *z, const struct reassign_plan *plan,
                                        const struct reassign_plan *now)
{
    kafka_moving_partitions_t none = {NULL, 0};
    struct reassign_moves m = reassign_moves_of(&none, plan, now, &z->r->mem);
    int kept = 0;
    reassign_need(m.v);
    for (int i = 0; i < m.n; i++)
        if (m.v[i].to.n)
            m.v[kept++] = m.v[i];
    m.n = kept;
    return m;
}

static void set_replicas(struct by_zk *z, const struct reassign_plan *plan,
                         const struct reassign_plan *now)
{
    size_t n;
    struct reassign_moves m = real_moves(z, plan, now);
    const char **topics = reassign_need(reassign_plan_topics(plan, &z->r->mem, &n));
    for (size_t i = 0; i < n; i++) {
        kafka_config_t configs[2];
        for (int k = 0; k < 2; k++)
            configs[k] = (kafka_config_t){
                reassign_topic_keys[k],
                reassign_need(reassign_throttled(&m, topics[i], k == 0, &z->r->mem))};
        reassign_zk_configure(z->r, z->s,
                              reassign_need(arena_printf(&z->r->mem, "topics/%s", topics[i])),
                              configs, 2);
    }
}

/* Of all brokers and of the plan's topics. */
static void remove_throttles(struct by_zk *z, const struct reassign_plan *plan)
{
    size_t n;
    bool changed = false;
    char entity[32];
    kafka_config_t of_brokers[3], of_topics[2];
    for (int i = 0; i < 3; i++)
        of_brokers[i] = (kafka_config_t){reassign_broker_keys[i], NULL};
    for (int i = 0; i < 2; i++)
        of_topics[i] = (kafka_config_t){reassign_topic_keys[i], NULL};
    kafka_node_t *nodes = reassign_zk_brokers(z->r, z->s, &n);
    for (size_t i = 0; i < n; i++) {
        snprintf(entity, sizeof entity, "brokers/%d", nodes[i].id);
        changed |= reassign_zk_configure(z->r, z->s, entity, of_brokers, 3);
    }
    const char **topics = reassign_need(reassign_plan_topics(plan, &z->r->mem, &n));
    for (size_t i = 0; i < n; i++)
        changed |= reassign_zk_configure(
            z->r, z->s, reassign_need(arena_printf(&z->r->mem, "topics/%s", topics[i])), of_topics,
            2);
    if (changed)
        puts("Throttle was removed.");
}

/* ---- executing ---- */

static void check_plan(struct by_zk *z, const struct reassign_plan *plan,
                       const struct reassign_plan *now, const kafka_node_t *nodes, size_t nodes_n)
{
    struct arena *a = &z->r->mem;
    char *parts = NULL;
    for (int i = 0; i < plan->n; i++)
        if (!reassign_plan_find(now, plan->v[i].topic, plan->v[i].partition))
            parts =
                reassign_need(arena_printf(a, "%s%s%s-%d", parts ? parts : "", parts ? ", " : "",
                                           plan->v[i].topic, plan->v[i].partition));
    if (parts)
        reassign_fail(z->r, "The proposed assignment contains non-existent partitions: %s", parts);
    size_t room = 0;
    for (int i = 0; i < plan->n; i++)
        room += (size_t)plan->v[i].replicas.n;
    struct id_list unknown = {reassign_need(arena_array(a, int32_t, room)), 0};
    for (int i = 0; i < plan->n; i++)
        for (int k = 0; k < plan->v[i].replicas.n; k++) {
            bool known = false;
            for (size_t b = 0; b < nodes_n; b++)
                known |= nodes[b].id == plan->v[i].replicas.v[k];
            if (!known)
                reassign_add_id(&unknown, plan->v[i].replicas.v[k]);
        }
    if (unknown.n)
        reassign_fail(z->r, "The proposed assignment contains non-existent brokerIDs: %s",
                      (char *)reassign_need(reassign_format_ids(unknown, a)));
}

/* All that have, or are to have, one of the partitions. */
static struct id_list brokers_of(struct by_zk *z, const struct reassign_plan *plan,
                                 const struct reassign_plan *now)
{
    size_t room = 0;
    const struct reassign_plan *both[2] = {plan, now};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < both[k]->n; i++)
            room += (size_t)both[k]->v[i].replicas.n;
    struct id_list ids = {reassign_need(arena_array(&z->r->mem, int32_t, room)), 0};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < both[k]->n; i++)
            for (int j = 0; j < both[k]->v[i].replicas.n; j++)
                reassign_add_id(&ids, both[k]->v[i].replicas.v[j]);
    reassign_sort_ids(&ids);
    return ids;
}

/* Brokers hear of the log dirs before they make the replicas, and again for those they have. */
static void begin(struct by_zk *z, const struct reassign_plan *plan)
{
    struct reassign_dir_moves dirs = reassign_plan_dirs(plan, &z->r->mem);
    reassign_need(dirs.v);
    if (dirs.n && !z->r->admin)
        reassign_fail(z->r, "bootstrap-server needs to be provided in order to reassign replica to "
                            "the specified log directory");
    if (dirs.n)
        reassign_try_dirs(z->r, &dirs);
    reassign_zk_begin(z->r, z->s, plan);
    if (dirs.n)
        reassign_move_dirs(z->r, &dirs);
    puts("Successfully started reassignment of partitions.");
}

static void execute(struct by_zk *z)
{
    size_t topics_n, nodes_n;
    struct named_partitions moving;
    const struct reassign_args *a = z->r->args;
    struct reassign_plan plan = reassign_read_plan(z->r);
    const char *wrong = reassign_plan_check(&plan, &z->r->mem);
    if (wrong)
        reassign_fail(z->r, "%s", wrong);
    const char **topics = reassign_need(reassign_plan_topics(&plan, &z->r->mem, &topics_n));
    struct reassign_plan now = reassign_zk_topics(z->r, z->s, topics, topics_n);
    kafka_node_t *nodes = reassign_zk_brokers(z->r, z->s, &nodes_n);
    check_plan(z, &plan, &now, nodes, nodes_n);
    bool limited = a->throttle >= 0 || a->dir_throttle >= 0;
    if (reassign_zk_moving(z->r, z->s, &moving)) {
        puts("There is an existing assignment running.");
        set_rates(z, brokers_of(z, &plan, &now));
        return;
    }
    reassign_print_current(z->r, &now);
    if (limited)
        puts(limits_note);
    if (a->throttle >= 0)
        set_replicas(z, &plan, &now);
    set_rates(z, brokers_of(z, &plan, &now));
    begin(z, &plan);
}

/* ---- verifying ---- */

enum outcome { COMPLETED, IN_PROGRESS, FAILED };
static const char *const outcome_texts[] = {"completed successfully", "is still in progress",
                                            "failed"};

static enum outcome look_at(struct by_zk *z, const struct reassign_part *p,
                            const struct reassign_plan *moving, const struct reassign_plan *now)
{
    if (reassign_plan_find(moving, p->topic, p->partition))
        return IN_PROGRESS;
    const struct reassign_part *is = reassign_plan_find(now, p->topic, p->partition);
    struct id_list ids = is ? is->replicas : (struct id_list){NULL, 0};
    if (id_list_eq(ids, p->replicas))
        return COMPLETED;
    printf("ERROR: Assigned replicas (%s) don't match the list of replicas for reassignment (%s) "
           "for partition %s-%d\n",
           (char *)reassign_need(reassign_format_ids(ids, &z->r->mem)),
           (char *)reassign_need(reassign_format_ids(p->replicas, &z->r->mem)), p->topic,
           p->partition);
    return FAILED;
}

static enum outcome look_at_dir(const struct reassign_dir_move *m,
                                const struct reassign_dir_found *f)
{
    switch (f->state) {
    case DIR_COMPLETED:
        return COMPLETED;
    case DIR_MOVING:
        return IN_PROGRESS;
    case DIR_MOVING_ELSEWHERE:
        printf("Partition %s-%d on broker %d is being moved to log dir %s instead of %s\n",
               m->topic, m->partition, m->broker, f->future, m->dir);
        break;
    case DIR_NOT_MOVING:
        printf("Partition %s-%d on broker %d is not being moved from log dir %s to %s\n", m->topic,
               m->partition, m->broker, f->current, m->dir);
        break;
    case DIR_REPLICA_MISSING:
        printf("Partition %s-%d is not found in any live log dir on broker %d.\n", m->topic,
               m->partition, m->broker);
        break;
    case DIR_MISSING:
        printf("Partition %s-%d is not found in any live log dir on broker %d. There is likely "
               "offline log directory on the broker.\n",
               m->topic, m->partition, m->broker);
        break;
    }
    return FAILED;
}

/* What the node of moves names, if there is one. */
static struct reassign_plan moving_now(struct by_zk *z)
{
    struct named_partitions l;
    struct arena *a = &z->r->mem;
    reassign_zk_moving(z->r, z->s, &l);
    struct reassign_plan p = {reassign_need(arena_array(a, struct reassign_part, (size_t)l.n)), 0};
    for (int i = 0; i < l.n; i++)
        p.v[p.n++] =
            (struct reassign_part){.topic = reassign_need((char *)arena_str(a, l.v[i].topic).p),
                                   .partition = l.v[i].partition};
    reassign_plan_sort(&p);
    return p;
}

static void verify(struct by_zk *z)
{
    size_t topics_n;
    bool all = true;
    struct reassign_plan plan = reassign_read_plan(z->r);
    struct reassign_dir_moves dirs = reassign_plan_dirs(&plan, &z->r->mem);
    reassign_need(dirs.v);
    puts("Status of partition reassignment: ");
    if (dirs.n && !z->r->admin)
        reassign_fail(z->r, "bootstrap-server needs to be provided in order to verify the log "
                            "directories of replicas");
    const char **topics = reassign_need(reassign_plan_topics(&plan, &z->r->mem, &topics_n));
    struct reassign_plan moving = moving_now(z);
    struct reassign_plan now = reassign_zk_topics(z->r, z->s, topics, topics_n);
    size_t outcomes_n = (size_t)plan.n + (size_t)dirs.n;
    enum outcome *found = reassign_need(arena_array(&z->r->mem, enum outcome, outcomes_n));
    for (int i = 0; i < plan.n; i++)
        found[i] = look_at(z, &plan.v[i], &moving, &now);
    struct reassign_dir_found *in = dirs.n ? reassign_look_at_dirs(z->r, &dirs) : NULL;
    for (int i = 0; i < dirs.n; i++)
        found[plan.n + i] = look_at_dir(&dirs.v[i], &in[i]);
    for (int i = 0; i < plan.n; i++)
        printf("Reassignment of partition %s-%d %s\n", plan.v[i].topic, plan.v[i].partition,
               outcome_texts[found[i]]);
    for (int i = 0; i < dirs.n; i++)
        printf("Reassignment of replica %s-%d-%d %s\n", dirs.v[i].topic, dirs.v[i].partition,
               dirs.v[i].broker, outcome_texts[found[plan.n + i]]);
    for (size_t i = 0; i < outcomes_n; i++)
        all &= found[i] == COMPLETED;
    if (all && plan.n)
        remove_throttles(z, &plan);
}

/* ---- generating ---- */

static void generate(struct by_zk *z)
{
    size_t topics_n, nodes_n;
    struct id_list allowed;
    const char *wrong = reassign_brokers_parse(z->r->args->brokers, &z->r->mem, &allowed);
    if (wrong)
        reassign_fail(z->r, "%s", wrong);
    const char **topics = reassign_read_topics(z->r, &topics_n);
    struct reassign_plan now = reassign_zk_topics(z->r, z->s, topics, topics_n);
    kafka_node_t *nodes = reassign_zk_brokers(z->r, z->s, &nodes_n);
    struct reassign_plan proposed = reassign_propose(z->r, &now, nodes, nodes_n, allowed);
    reassign_print_proposal(z->r, &now, &proposed);
}

void reassign_by_zookeeper(struct reassign *r)
{
    struct by_zk z = {r, NULL};
    r->failed = "Partitions reassignment failed due to ";
    z.s = tool_zk_open_as(r->args->zookeeper, r->args->config);
    if (r->args->execute)
        execute(&z);
    else if (r->args->verify)
        verify(&z);
    else
        generate(&z);
    tool_zk_close(z.s);
}
