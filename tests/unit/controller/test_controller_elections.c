/* Elections that somebody asks for, the balancing that comes by itself, log dirs that fail, ISRs
 * that leaders wrote. */
#include "controller/sim_cluster.h"

#include "protocol/api.h"
#include "protocol/msg/elect_leaders.h"

static struct sim_cluster cluster;

struct call {
    struct controller_call call;
    bool done;
    struct elect_leaders_response out;
};

static void on_done(struct controller_call *call)
{
    container_of(call, struct call, call)->done = true;
}

/* ElectLeaders v2 of all (topic NULL) or of one partition; that one's error. */
static int elect(struct sim_cluster *c, int8_t type, const char *topic, int32_t partition,
                 struct call *k)
{
    static struct elect_leaders_request q;
    static struct elect_leaders_request_topic_partition t;
    static int32_t number;
    elect_leaders_request_init(&q);
    elect_leaders_request_topic_partition_init(&t);
    q.election_type = type;
    q.topic_partitions.v = &t;
    q.topic_partitions.n = topic ? 1 : -1;
    number = partition;
    t.topic = str_of(topic ? topic : "");
    t.partitions.v = &number;
    t.partitions.n = 1;
    memset(k, 0, sizeof(*k));
    elect_leaders_response_init(&k->out);
    k->call = (struct controller_call){.api_key = API_ELECT_LEADERS,
                                       .version = 2,
                                       .request = &q,
                                       .response = &k->out,
                                       .arena = &c->arena,
                                       .done_on = c->ex,
                                       .done = on_done};
    controller_call(sim_active(c)->controller, &k->call);
    sim_drain(c);
    assert_true(k->done);
    assert_int_equal(k->call.refused, KERR_NONE);
    if (!topic)
        return 0;
    assert_int_equal(k->out.replica_election_results.n, 1);
    return k->out.replica_election_results.v[0].partition_result.v[0].error_code;
}

static const int32_t order[] = {1, 0, 2};

/* t-0 on 1, 0, 2, led by 0 since 1 was away for a while. */
static void open_unbalanced(struct sim_cluster *c)
{
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "t", order, 3), 0);
    sim_broker_kill(c, 1, false);
    sim_drain(c);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 0);
    sim_broker_start(c, 1);
    sim_drain(c);
}

/* As its leader would have written it. */
static void set_isr(struct sim_cluster *c, const char *topic, int32_t *isr, int n)
{
    char path[64];
    int32_t version;
    struct partition_node p = sim_state(c, topic, 0, &version);
    p.isr = (struct id_list){isr, n};
    snprintf(path, sizeof(path), "/brokers/topics/%s/partitions/0/state", topic);
    struct store_op op =
        store_op_set(path, znode_partition_encode(&p, &c->arena), STORE_ANY_VERSION);
    assert_int_equal(run_op(c->base, &op), 0);
}

/* And told of. */
static void notify_isr(struct sim_cluster *c, const char *topic)
{
    struct named_partition p = {.topic = str_of(topic)};
    create(c->base, "/isr_change_notification/isr_change_",
           (const char *)znode_partitions_encode((struct named_partitions){&p, 1}, &c->arena).p,
           STORE_SEQUENTIAL);
    sim_drain(c);
}

static void preferred_leaders_lead_again_when_asked(void **state)
{
    struct sim_cluster *c = &cluster;
    struct call k;
    open_unbalanced(c);
    assert_int_equal(elect(c, 0, "t", 0, &k), KERR_PREFERRED_LEADER_NOT_AVAILABLE);
    set_isr(c, "t", (int32_t[]){0, 2, 1}, 3);
    assert_int_equal(elect(c, 0, "t", 0, &k), 0);
    struct partition_node p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, 1);
    assert_int_equal(p.isr.n, 3); /* as it was */
    assert_int_equal(sim_replica(c, 0, "t", 0)->leader, 1);
    assert_int_equal(elect(c, 0, "t", 0, &k), KERR_ELECTION_NOT_NEEDED);
    assert_int_equal(elect(c, 0, "t", 7, &k), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(elect(c, 0, "unknown", 0, &k), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    elect(c, 0, NULL, 0, &k); /* none needs it */
    assert_int_equal(k.out.replica_election_results.n, 0);
    sim_check(c);
    sim_stop(c);
}

static void all_that_need_it_are_elected(void **state)
{
    struct sim_cluster *c = &cluster;
    struct call k;
    open_unbalanced(c);
    set_isr(c, "t", (int32_t[]){0, 2, 1}, 3);
    assert_int_equal(sim_create_topic(c, "u", 3, 3), 0);
    elect(c, 0, NULL, 0, &k);
    assert_int_equal(k.out.replica_election_results.n, 1);
    assert_true(str_eqz(k.out.replica_election_results.v[0].topic, "t"));
    assert_int_equal(k.out.replica_election_results.v[0].partition_result.v[0].error_code, 0);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 1);
    sim_stop(c);
}

static void an_unclean_election_is_made_when_asked(void **state)
{
    struct sim_cluster *c = &cluster;
    struct call k;
    sim_start(c, 3);
    static const int32_t two[] = {1, 2};
    assert_int_equal(sim_create_assigned(c, "t", two, 2), 0);
    assert_int_equal(elect(c, 1, "t", 0, &k), KERR_ELECTION_NOT_NEEDED);
    sim_broker_kill(c, 2, false);
    sim_drain(c);
    sim_broker_kill(c, 1, false);
    sim_drain(c);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, -1);
    assert_int_equal(elect(c, 1, "t", 0, &k), KERR_ELIGIBLE_LEADERS_NOT_AVAILABLE);
    sim_broker_start(c, 2); /* which is not in sync */
    sim_drain(c);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, -1);
    assert_int_equal(elect(c, 1, "t", 0, &k), 0);
    struct partition_node p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, 2);
    assert_int_equal(p.isr.n, 1);
    assert_true(p.recovering);
    sim_stop(c);
}

static void unclean_elections_begin_when_they_are_allowed(void **state)
{
    for (int all = 0; all < 2; all++) {
        struct sim_cluster *c = &cluster;
        sim_start(c, 3);
        static const int32_t two[] = {1, 2};
        assert_int_equal(sim_create_assigned(c, "t", two, 2), 0);
        sim_broker_kill(c, 2, false);
        sim_drain(c);
        sim_broker_kill(c, 1, false);
        sim_drain(c);
        sim_broker_start(c, 2);
        sim_drain(c);
        c->unclean = true;
        controller_unclean_allowed(sim_active(c)->controller, STR_LIT("other"));
        sim_drain(c);
        assert_int_equal(sim_state(c, "t", 0, NULL).leader, -1);
        controller_unclean_allowed(sim_active(c)->controller, all ? STR_NULL : STR_LIT("t"));
        sim_drain(c);
        assert_int_equal(sim_state(c, "t", 0, NULL).leader, 2);
        sim_stop(c);
    }
}

static void a_node_asks_for_elections_too(void **state)
{
    struct sim_cluster *c = &cluster;
    open_unbalanced(c);
    set_isr(c, "t", (int32_t[]){0, 2, 1}, 3);
    static const char *const nodes[] = {
        "nonsense", "{\"version\":1,\"partitions\":[{\"topic\":\"none\",\"partition\":0}]}",
        "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0}]}"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sim_state(c, "t", 0, NULL).leader, 0);
        create(c->base, "/admin/preferred_replica_election", nodes[i], 0);
        sim_drain(c);
        assert_false(sim_exists(c, "/admin/preferred_replica_election"));
    }
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 1);
    sim_stop(c);
}

static void leaders_are_balanced_now_and_then(void **state)
{
    struct sim_cluster *c = &cluster;
    c->rebalance_ms = 300000;
    open_unbalanced(c);
    sim_executor_advance(c->e, 10000);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 0); /* its head is not in sync */
    set_isr(c, "t", (int32_t[]){0, 2, 1}, 3);
    notify_isr(c, "t");
    sim_executor_advance(c->e, 280000);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 0);
    sim_executor_advance(c->e, 20000);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 1);
    sim_check(c);
    /* one of eleven elsewhere is not above 10 % */
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof(name), "u%d", i);
        assert_int_equal(sim_create_assigned(c, name, order, 3), 0);
    }
    int32_t version;
    struct partition_node p = sim_state(c, "t", 0, &version);
    p.leader = 0;
    p.leader_epoch++;
    struct store_op op = store_op_set("/brokers/topics/t/partitions/0/state",
                                      znode_partition_encode(&p, &c->arena), version);
    assert_int_equal(run_op(c->base, &op), 0);
    notify_isr(c, "t");
    sim_executor_advance(c->e, 700000);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 0);
    c->rebalance_ms = 0;
    sim_stop(c);
}

static void an_isr_that_its_leader_wrote_reaches_everyone(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "t", order, 3), 0);
    set_isr(c, "t", (int32_t[]){1, 2}, 2);
    notify_isr(c, "t");
    for (int i = 0; i < 3; i++) {
        const struct metadata_snapshot *s = metadata_acquire(c->brokers[i].cache);
        assert_int_equal(metadata_partition(s, STR_LIT("t"), 0)->isr_n, 2);
        metadata_release(s);
    }
    create(c->base, "/isr_change_notification/isr_change_", "nonsense", STORE_SEQUENTIAL);
    sim_drain(c);
    struct store_op list = store_op_children("/isr_change_notification", false);
    assert_int_equal(run_op(c->base, &list), 0);
    assert_int_equal(list.names_n, 0);
    free(list.names);
    sim_check(c);
    sim_stop(c);
}

static void a_failed_log_dir_takes_only_its_own_partitions(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "dead", order, 3), 0);
    assert_int_equal(sim_create_assigned(c, "well", order, 3), 0);
    c->brokers[1].dead_topic = "dead";
    create(c->base, "/log_dir_event_notification/log_dir_event_",
           (const char *)znode_log_dir_event_encode(1, &c->arena).p, STORE_SEQUENTIAL);
    sim_drain(c);
    struct partition_node p = sim_state(c, "dead", 0, NULL);
    assert_int_equal(p.leader, 0);
    assert_int_equal(p.isr.n, 2);
    assert_int_equal(sim_state(c, "well", 0, NULL).leader, 1);
    assert_int_equal(sim_state(c, "well", 0, NULL).isr.n, 3);
    const struct metadata_snapshot *s = metadata_acquire(c->brokers[2].cache);
    assert_int_equal(metadata_partition(s, STR_LIT("dead"), 0)->offline_n, 1);
    assert_int_equal(metadata_partition(s, STR_LIT("well"), 0)->offline_n, 0);
    metadata_release(s);
    /* the next life of the broker has the dir again */
    c->brokers[1].dead_topic = NULL;
    sim_broker_kill(c, 1, false);
    sim_drain(c);
    sim_broker_start(c, 1);
    sim_check(c);
    assert_int_equal(sim_replica(c, 1, "dead", 0)->leader, 0);
    struct store_op list = store_op_children("/log_dir_event_notification", false);
    assert_int_equal(run_op(c->base, &list), 0);
    assert_int_equal(list.names_n, 0);
    free(list.names);
    sim_stop(c);
}

/* t-0 on 1, 0, 2; 3 is the controller. */
static void open_with_controller_apart(struct sim_cluster *c)
{
    sim_start_under(c, 4, 3);
    assert_int_equal(sim_create_assigned(c, "t", order, 3), 0);
}

/* Brokers that bounce, so many of those of t-0 (1, 0, 2), and the controller is gone before it sees
 * that: the next one has to find out. dead: bits of the brokers whose log dir has failed. */
static struct partition_node bounce_with_dead_dirs(struct sim_cluster *c, int brokers, int dead)
{
    int told[3];
    open_with_controller_apart(c);
    for (int i = 0; i < brokers; i++)
        sim_bounce(c, order[i]);
    for (int i = 0; i < brokers; i++)
        told[i] = c->brokers[order[i]].lisr_partitions;
    for (int i = 0; i < 3; i++)
        if (dead & (1 << order[i]))
            c->brokers[order[i]].dead_topic = "t";
    sim_broker_kill(c, 3, false);
    sim_drain(c);
    if (!dead)
        sim_check(c);
    struct partition_node now = sim_state(c, "t", 0, NULL);
    for (int i = 0; i < brokers && brokers < 3 && !dead; i++) { /* nothing but who leads now */
        assert_int_equal(c->brokers[order[i]].lisr_partitions, told[i] + 1);
        assert_int_equal(sim_replica(c, order[i], "t", 0)->leader, now.leader);
        assert_int_equal(sim_replica(c, order[i], "t", 0)->leader_epoch, 1);
    }
    return now;
}

static struct partition_node bounce_behind(struct sim_cluster *c, int brokers)
{
    return bounce_with_dead_dirs(c, brokers, 0);
}

/* The others' log dirs have failed, which the new controller has to find out as well: then who
 * bounced is all there is. */
static void who_bounced_unseen_leads_when_the_others_cannot(void **state)
{
    enum { ON_0 = 1, ON_1 = 2, ON_2 = 4 };
    struct sim_cluster *c = &cluster;
    struct partition_node now = bounce_with_dead_dirs(c, 1, ON_0);
    assert_int_equal(now.leader, 2);
    assert_int_equal(now.isr.n, 1);
    sim_stop(c);
    now = bounce_with_dead_dirs(c, 1, ON_0 | ON_2);
    assert_int_equal(now.leader, 1);
    assert_int_equal(now.isr.n, 1);
    sim_stop(c);
    now = bounce_with_dead_dirs(c, 2, ON_2);
    assert_int_equal(now.leader, 1);
    assert_true(id_list_has(now.isr, 0));
    assert_false(id_list_has(now.isr, 2));
    sim_stop(c);
    now = bounce_with_dead_dirs(c, 2, ON_2 | ON_1);
    assert_int_equal(now.leader, 0);
    sim_stop(c);
}

/* What they had not flushed may be gone: they must not lead, nor count as in sync, while there is
 * another. */
static void who_bounced_unseen_is_not_in_sync(void **state)
{
    struct sim_cluster *c = &cluster;
    struct partition_node now = bounce_behind(c, 0);
    assert_int_equal(now.leader, 1);
    assert_int_equal(now.isr.n, 3);
    assert_int_equal(now.leader_epoch, 0);
    sim_stop(c);
    now = bounce_behind(c, 1);
    assert_int_equal(now.leader, 0);
    assert_int_equal(now.isr.n, 2);
    assert_false(id_list_has(now.isr, 1));
    sim_stop(c);
    now = bounce_behind(c, 2);
    assert_int_equal(now.leader, 2);
    assert_int_equal(now.isr.n, 1);
    sim_stop(c);
    now = bounce_behind(c, 3); /* all alike */
    assert_int_equal(now.leader, 1);
    assert_int_equal(now.isr.n, 3);
    sim_stop(c);
}

/* The leader did not, a follower did: it catches up as any other. */
static void a_follower_that_bounced_unseen_leaves_the_isr(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "t", order, 3), 0);
    int32_t gone = sim_active(c)->id;
    sim_bounce(c, 2);
    assert_int_not_equal(gone, 2);
    sim_broker_kill(c, gone, false);
    sim_drain(c);
    struct partition_node now = sim_state(c, "t", 0, NULL);
    assert_int_equal(now.leader, 1 - gone);
    assert_int_equal(now.isr.n, 1);
    sim_check(c);
    sim_stop(c);
}

/* Somebody asks for the preferred leader, which is not in sync, before it is known who can lead:
 * the one in doubt is seen to all the same. Seen by the simulator: it was told nothing any more. */
static void an_election_that_fails_does_not_forget_who_bounced(void **state)
{
    struct sim_cluster *c = &cluster;
    open_with_controller_apart(c);
    sim_broker_kill(c, 1, false);
    sim_drain(c);
    sim_broker_start(c, 1);
    sim_drain(c);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 0);
    sim_bounce(c, 2);
    c->brokers[0].hold = true;
    sim_broker_kill(c, 3, false);
    sim_drain(c);
    create(c->base, "/admin/preferred_replica_election",
           "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0}]}", 0);
    sim_drain(c);
    sim_release(c, 0);
    sim_drain(c);
    struct partition_node now = sim_state(c, "t", 0, NULL);
    assert_int_equal(now.leader, 0);
    assert_false(id_list_has(now.isr, 2));
    assert_int_equal(sim_replica(c, 2, "t", 0)->leader_epoch, now.leader_epoch);
    sim_check(c);
    sim_stop(c);
}

UNIT_MAIN(unit_test(an_election_that_fails_does_not_forget_who_bounced),
          unit_test(preferred_leaders_lead_again_when_asked),
          unit_test(who_bounced_unseen_is_not_in_sync),
          unit_test(who_bounced_unseen_leads_when_the_others_cannot),
          unit_test(a_follower_that_bounced_unseen_leaves_the_isr),
          unit_test(all_that_need_it_are_elected),
          unit_test(an_unclean_election_is_made_when_asked),
          unit_test(unclean_elections_begin_when_they_are_allowed),
          unit_test(a_node_asks_for_elections_too), unit_test(leaders_are_balanced_now_and_then),
          unit_test(an_isr_that_its_leader_wrote_reaches_everyone),
          unit_test(a_failed_log_dir_takes_only_its_own_partitions))
