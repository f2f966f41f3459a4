/* The controller in a simulated cluster: elections, creation, growth, deletion, brokers that die
 * and come back, and controllers that change at every possible moment. */
#include "controller/sim_cluster.h"

#include "base/logline.h"

static struct sim_cluster cluster;

static void one_broker_elects_itself_and_is_ready(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 1);
    assert_ptr_equal(sim_active(c), &c->brokers[0]);
    assert_true(c->brokers[0].ready);
    assert_true(holds(c->base, "/controller_epoch", "1"));
    assert_true(sim_exists(c, "/controller"));
    assert_true(holds(c->base, "/feature", "{\"version\":2,\"status\":1,\"features\":{}}"));
    sim_check(c);
    sim_stop(c);
}

static void a_topic_gets_leaders_and_everyone_learns_of_them(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", 6, 3), 0);
    sim_check(c);
    int leads[3] = {0};
    for (int i = 0; i < 6; i++) {
        int32_t version;
        struct partition_node p = sim_state(c, "t", i, &version);
        assert_int_equal(p.leader_epoch, 0);
        assert_int_equal(version, 0);
        assert_int_equal(p.controller_epoch, 1);
        assert_int_equal(p.isr.n, 3);
        assert_int_equal(p.leader, p.isr.v[0]);
        leads[p.leader]++;
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(leads[i], 2);
        assert_int_equal(c->brokers[i].lisr, 1); /* one request each */
        assert_int_equal(c->brokers[i].lisr_new, 6);
        const struct metadata_snapshot *s = metadata_acquire(c->brokers[i].cache);
        const struct endpoint *e = broker_endpoint(metadata_broker(s, 2), STR_LIT("CLIENT"));
        assert_int_equal(e->port, 20002);
        metadata_release(s);
    }
    sim_stop(c);
}

static void replicas_on_brokers_that_are_down_join_no_isr(void **state)
{
    struct sim_cluster *c = &cluster;
    static const int32_t mixed[] = {4, 1, 0}, nobody[] = {4, 3};
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "mixed", mixed, 3), 0);
    assert_int_equal(sim_create_assigned(c, "nobody", nobody, 2), 0);
    struct partition_node p = sim_state(c, "mixed", 0, NULL);
    assert_int_equal(p.leader, 1);
    assert_int_equal(p.isr.n, 2);
    assert_int_equal(sim_state(c, "nobody", 0, NULL).leader, -9);
    sim_check(c);
    sim_broker_start(c, 3); /* now somebody can lead */
    sim_check(c);
    p = sim_state(c, "nobody", 0, NULL);
    assert_int_equal(p.leader, 3);
    assert_int_equal(p.isr.n, 1);
    assert_int_equal(p.leader_epoch, 0);
    sim_stop(c);
}

static void topics_made_by_tools_get_an_id(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 1);
    create(c->base, "/brokers/topics/tool", "{\"version\":1,\"partitions\":{\"0\":[0]}}", 0);
    sim_check(c); /* asserts that there is an id, the same everywhere */
    sim_stop(c);
}

static void malformed_topics_are_passed_over(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 1);
    create(c->base, "/brokers/topics/bad", "nonsense", 0);
    sim_drain(c);
    assert_int_equal(sim_create_topic(c, "good", 1, 1), 0);
    assert_int_equal(sim_state(c, "good", 0, NULL).leader, 0);
    store_delete_tree(c->base, "/brokers/topics/bad");
    sim_check(c);
    sim_stop(c);
}

static void a_topic_grows(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", 2, 2), 0);
    int before = c->brokers[0].lisr_partitions + c->brokers[1].lisr_partitions +
                 c->brokers[2].lisr_partitions;
    assert_int_equal(sim_grow_topic(c, "t", 5), 0);
    sim_check(c);
    assert_int_equal(sim_state(c, "t", 4, NULL).isr.n, 2);
    int after = c->brokers[0].lisr_partitions + c->brokers[1].lisr_partitions +
                c->brokers[2].lisr_partitions;
    assert_int_equal(after - before, 6); /* only the added ones were told */
    assert_int_equal(sim_grow_topic(c, "t", 6), 0);
    sim_check(c);
    sim_stop(c);
}

static void assert_gone(struct sim_cluster *c, const char *topic)
{
    char path[300];
    static const char *const where[] = {"/brokers/topics/", "/config/topics/",
                                        "/admin/delete_topics/"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s%s", where[i], topic);
        assert_false(sim_exists(c, path));
    }
    for (int i = 0; i < SIM_BROKERS; i++) {
        assert_null(sim_replica(c, i, topic, 0));
        if (!c->brokers[i].up)
            continue;
        const struct metadata_snapshot *s = metadata_acquire(c->brokers[i].cache);
        assert_null(metadata_topic(s, str_of(topic)));
        metadata_release(s);
    }
}

static void a_topic_is_deleted_and_made_again(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", 4, 3), 0);
    assert_int_equal(sim_create_topic(c, "stays", 1, 3), 0);
    struct uuid first = sim_replica(c, 0, "t", 0)->id;
    assert_int_equal(sim_delete_topic(c, "t"), 0);
    sim_check(c);
    assert_gone(c, "t");
    assert_int_equal(sim_create_topic(c, "t", 1, 3), 0);
    sim_check(c);
    assert_false(uuid_eq(first, sim_replica(c, 0, "t", 0)->id));
    assert_int_equal(sim_state(c, "stays", 0, NULL).leader_epoch, 0); /* untouched */
    sim_stop(c);
}

static void deletion_waits_for_every_answer(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", 2, 3), 0);
    c->brokers[2].hold = true;
    assert_int_equal(sim_delete_topic(c, "t"), 0);
    assert_true(sim_exists(c, "/admin/delete_topics/t"));
    assert_true(sim_exists(c, "/brokers/topics/t"));
    assert_null(sim_replica(c, 0, "t", 0)); /* the others have done it */
    assert_non_null(sim_replica(c, 2, "t", 0));
    assert_int_equal(sim_create_topic(c, "t", 1, 1), KERR_TOPIC_ALREADY_EXISTS);
    const struct metadata_snapshot *s = metadata_acquire(c->brokers[0].cache);
    assert_null(metadata_topic(s, STR_LIT("t"))); /* clients do not see it any more */
    metadata_release(s);
    sim_release(c, 2);
    sim_check(c);
    assert_gone(c, "t");
    sim_stop(c);
}

static void deletion_waits_for_a_broker_that_is_down(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", 2, 3), 0);
    sim_broker_kill(c, 1, true);
    sim_drain(c);
    assert_int_equal(sim_delete_topic(c, "t"), 0);
    assert_true(sim_exists(c, "/admin/delete_topics/t"));
    assert_non_null(sim_replica(c, 1, "t", 0));
    sim_check(c);
    sim_broker_start(c, 1);
    sim_check(c);
    assert_gone(c, "t");
    sim_stop(c);
}

static void a_broker_that_dies_in_the_middle_holds_deletion_up(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", 2, 3), 0);
    c->brokers[2].hold = true;
    assert_int_equal(sim_delete_topic(c, "t"), 0);
    c->brokers[2].hold = false;
    sim_broker_kill(c, 2, true); /* asked, never answered */
    sim_drain(c);
    assert_true(sim_exists(c, "/admin/delete_topics/t"));
    sim_broker_start(c, 2);
    sim_check(c);
    assert_gone(c, "t");
    sim_stop(c);
}

static void a_broker_that_cannot_delete_is_asked_again_when_it_is_back(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", 2, 3), 0);
    c->brokers[1].stop_error = KERR_KAFKA_STORAGE_ERROR;
    assert_int_equal(sim_delete_topic(c, "t"), 0);
    sim_drain(c);
    assert_true(sim_exists(c, "/admin/delete_topics/t"));
    assert_non_null(sim_replica(c, 1, "t", 0));
    c->brokers[1].stop_error = 0;
    sim_broker_kill(c, 1, true);
    sim_drain(c);
    sim_broker_start(c, 1);
    sim_check(c);
    assert_gone(c, "t");
    sim_stop(c);
}

/* It dies and comes back while it is asked, and what it answered, that it could not, is looked at
 * after its new life was asked again: at whatever moment, the new life's answer counts. */
static void an_answer_of_an_earlier_life_does_not_hold_up_the_deletion(void **state)
{
    for (int steps = 0; steps < 60; steps++) {
        struct sim_cluster *c = &cluster;
        sim_start(c, 3);
        assert_int_equal(sim_create_topic(c, "t", 2, 3), 0);
        int32_t id = sim_active(c)->id == 2 ? 1 : 2;
        struct sim_broker *b = &c->brokers[id];
        b->hold = true;
        assert_int_equal(sim_delete_topic(c, "t"), 0);
        sim_bounce(c, id);
        for (int i = 0; i < steps; i++)
            sim_executor_step(c->e);
        b->stop_error = KERR_UNKNOWN_SERVER_ERROR;
        for (int before = b->sr; b->sr < before + 2;) {
            sim_release(c, id);
            if (!sim_executor_step(c->e))
                break;
        }
        b->stop_error = 0;
        sim_check(c);
        assert_gone(c, "t");
        sim_stop(c);
    }
}

static void marks_of_unknown_topics_go(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 1);
    create(c->base, "/admin/delete_topics/nil", NULL, 0);
    sim_drain(c);
    assert_false(sim_exists(c, "/admin/delete_topics/nil"));
    sim_stop(c);
}

static void the_leader_dies_and_the_next_in_sync_leads(void **state)
{
    struct sim_cluster *c = &cluster;
    static const int32_t order[] = {1, 2, 0};
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "t", order, 3), 0);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 1);
    sim_broker_kill(c, 1, true);
    sim_check(c);
    struct partition_node p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, 2);
    assert_true(p.leader_epoch > 0);
    assert_int_equal(p.isr.n, 2);
    assert_false(id_list_has(p.isr, 1));
    int32_t epoch = p.leader_epoch;
    sim_broker_start(c, 1); /* back, not in sync, follows */
    sim_check(c);
    p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, 2);
    assert_int_equal(p.leader_epoch, epoch);
    assert_int_equal(p.isr.n, 2);
    sim_stop(c);
}

static void a_follower_that_dies_leaves_the_isr(void **state)
{
    struct sim_cluster *c = &cluster;
    static const int32_t order[] = {1, 2};
    int32_t version;
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "t", order, 2), 0);
    sim_broker_kill(c, 2, true);
    sim_check(c);
    struct partition_node p = sim_state(c, "t", 0, &version);
    assert_int_equal(p.leader, 1);
    assert_int_equal(p.leader_epoch, 1);
    assert_int_equal(version, 1);
    assert_int_equal(p.isr.n, 1);
    sim_stop(c);
}

static void the_last_in_sync_stays_in_the_isr_and_leads_when_it_is_back(void **state)
{
    struct sim_cluster *c = &cluster;
    static const int32_t order[] = {1, 2};
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "t", order, 2), 0);
    sim_broker_kill(c, 1, true);
    sim_drain(c);
    sim_broker_kill(c, 2, true);
    sim_check(c);
    struct partition_node p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, -1);
    assert_int_equal(p.isr.n, 1);
    assert_int_equal(p.isr.v[0], 2);
    sim_broker_start(c, 1); /* not in sync: must not lead */
    sim_check(c);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, -1);
    sim_broker_start(c, 2);
    sim_check(c);
    p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, 2);
    assert_false(p.recovering);
    sim_stop(c);
}

static void an_unclean_leader_is_alone_in_the_isr(void **state)
{
    struct sim_cluster *c = &cluster;
    static const int32_t order[] = {1, 2};
    sim_start(c, 3);
    c->unclean = true;
    assert_int_equal(sim_create_assigned(c, "t", order, 2), 0);
    sim_broker_kill(c, 1, true);
    sim_drain(c);
    sim_broker_kill(c, 2, true);
    sim_drain(c);
    sim_broker_start(c, 1);
    sim_check(c);
    struct partition_node p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, 1);
    assert_int_equal(p.isr.n, 1);
    assert_int_equal(p.isr.v[0], 1);
    assert_true(p.recovering);
    sim_stop(c);
}

/* Its leader changed the ISR between the controller's read and its write. */
static void an_isr_change_in_between_is_read_again(void **state)
{
    struct sim_cluster *c = &cluster;
    static const int32_t order[] = {1, 2, 0};
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "t", order, 3), 0);
    struct sim_broker *b = &c->brokers[1];
    int changes = 0;
    b->up = false;
    controller_stop(b->controller);
    broker_registrar_free(b->registrar);
    b->registrar = NULL;
    store_close(b->session);
    while (sim_executor_step(c->e)) { /* the "leader" writes whenever it can */
        int32_t version;
        if (changes == 3) /* each look is a step of its own: there must be an end to them */
            continue;
        struct partition_node p = sim_state(c, "t", 0, &version);
        if (p.leader != 1) {
            changes = 3;
            continue;
        }
        char data[200];
        snprintf(
            data, sizeof(data),
            "{\"controller_epoch\":1,\"leader\":1,\"version\":1,\"leader_epoch\":%d,\"isr\":[%s]}",
            p.leader_epoch, changes % 2 ? "1,2,0" : "1,2");
        changes++;
        set(c->base, "/brokers/topics/t/partitions/0/state", data, version);
    }
    topic_admin_free(b->admin);
    metadata_cache_free(b->cache);
    sim_check(c);
    struct partition_node p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, 2);
    assert_int_equal(p.isr.n, 1); /* the ISR that was read last, without the dead */
    sim_stop(c);
}

static void a_bounced_broker_is_failed_and_started(void **state)
{
    struct sim_cluster *c = &cluster;
    static const int32_t order[] = {1, 2};
    sim_start(c, 3);
    assert_int_equal(sim_create_assigned(c, "t", order, 2), 0);
    int before = c->brokers[1].lisr;
    embedded_store_expire_session(c->brokers[1].session); /* registers again at once */
    sim_check(c);
    struct partition_node p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, 2);
    assert_false(id_list_has(p.isr, 1));
    assert_true(c->brokers[1].lisr > before);
    sim_stop(c);
}

static void changed_endpoints_are_told(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 2);
    set(c->base, "/brokers/ids/1",
        "{\"version\":5,\"features\":{},\"host\":\"moved\",\"port\":7,\"jmx_port\":-1,"
        "\"timestamp\":"
        "\"1\",\"endpoints\":[\"CLIENT://moved:7\",\"INTERNAL://b:10001\"],\"listener_security_"
        "protocol_map\":{\"CLIENT\":\"PLAINTEXT\",\"INTERNAL\":\"PLAINTEXT\"}}",
        -1);
    sim_drain(c);
    for (int i = 0; i < 2; i++) {
        const struct metadata_snapshot *s = metadata_acquire(c->brokers[i].cache);
        const struct endpoint *e = broker_endpoint(metadata_broker(s, 1), STR_LIT("CLIENT"));
        assert_true(str_eqz(e->host, "moved"));
        metadata_release(s);
    }
    sim_stop(c);
}

static void another_broker_takes_over(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", 3, 3), 0);
    sim_broker_kill(c, 0, true);
    sim_check(c);
    assert_true(sim_active(c) == &c->brokers[1] || sim_active(c) == &c->brokers[2]);
    assert_true(holds(c->base, "/controller_epoch", "2"));
    assert_int_equal(sim_create_topic(c, "u", 2, 2), 0);
    sim_broker_start(c, 0);
    sim_check(c);
    assert_false(controller_is_active(c->brokers[0].controller));
    assert_true(c->brokers[0].ready); /* as one that lost */
    sim_stop(c);
}

static void an_expired_controller_resigns_and_comes_back_as_a_broker(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", 3, 3), 0);
    int64_t before = broker_registrar_epoch(c->brokers[0].registrar);
    embedded_store_expire_session(c->brokers[0].session);
    sim_check(c);
    assert_true(broker_registrar_epoch(c->brokers[0].registrar) > before);
    assert_true(holds(c->base, "/controller_epoch", "2"));
    assert_ptr_not_equal(sim_active(c), &c->brokers[0]);
    sim_stop(c);
}

/* The session ends while the first round is under way: the start is over with the next election,
 * whoever wins it. Seen by the simulator: the broker never began to serve. */
static void the_start_ends_though_the_first_reign_does_not_last(void **state)
{
    struct sim_cluster *c = &cluster;
    for (int other_wins = 0; other_wins < 2; other_wins++) {
        sim_start(c, 2);
        assert_int_equal(sim_create_topic(c, "t", 3, 2), 0);
        for (int i = 0; i < 2; i++)
            sim_broker_kill(c, i, false);
        sim_drain(c);
        sim_broker_start(c, 0);
        c->brokers[0].hold = true;
        sim_drain(c);
        assert_ptr_equal(sim_active(c), &c->brokers[0]);
        assert_false(c->brokers[0].ready);
        if (other_wins) {
            sim_broker_start(c, 1);
            sim_drain(c);
        }
        embedded_store_expire_session(c->brokers[0].session);
        sim_drain(c);
        if (!other_wins)
            sim_release(c, 0);
        sim_drain(c);
        assert_ptr_equal(sim_active(c), &c->brokers[other_wins]);
        assert_true(c->brokers[0].ready);
        sim_release(c, 0);
        sim_check(c);
        sim_stop(c);
    }
}

static void a_controller_alone_expires_and_goes_on(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 1);
    assert_int_equal(sim_create_topic(c, "t", 3, 1), 0);
    for (int i = 2; i < 5; i++) {
        char epoch[16];
        snprintf(epoch, sizeof(epoch), "%d", i);
        embedded_store_expire_session(c->brokers[0].session);
        sim_check(c);
        assert_true(holds(c->base, "/controller_epoch", epoch));
    }
    sim_stop(c);
}

/* The id is taken when the new session begins, and stays so for long. */
static void a_broker_whose_id_is_taken_tries_until_it_is_free(void **state)
{
    struct sim_cluster *c = &cluster;
    struct store *stranger;
    sim_start(c, 2);
    assert_int_equal(sim_create_topic(c, "t", 2, 2), 0);
    assert_int_equal(embedded_store_attach(c->base, &stranger), 0);
    embedded_store_expire_session(c->brokers[1].session);
    while (sim_exists(c, "/brokers/ids/1"))
        sim_executor_step(c->e);
    assert_int_equal(create(stranger, "/brokers/ids/1", "x", STORE_EPHEMERAL), 0);
    sim_executor_advance(c->e, 60000);
    store_close(stranger);
    sim_executor_advance(c->e, 2000);
    sim_check(c);
    sim_stop(c);
}

/* Somebody raised the epoch: whatever this controller does next must not come through. */
static void a_deposed_controller_writes_nothing_and_resigns(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 2);
    set(c->base, "/controller_epoch", "7", -1);
    struct sim_broker *active = sim_active(c);
    create(c->base, "/brokers/topics/t", "{\"version\":1,\"partitions\":{\"0\":[0,1]}}", 0);
    while (controller_is_active(active->controller) && sim_executor_step(c->e))
        ;
    assert_false(sim_exists(c, "/brokers/topics/t/partitions"));
    sim_drain(c); /* its own node is still there: nobody else may act */
    assert_null(sim_active(c));
    embedded_store_expire_session(active->session);
    sim_check(c);
    assert_true(holds(c->base, "/controller_epoch", "8"));
    assert_true(sim_exists(c, "/brokers/topics/t/partitions/0/state"));
    sim_stop(c);
}

static void a_migrations_controller_is_left_alone(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 0);
    create(c->base, "/controller",
           "{\"version\":2,\"brokerid\":3000,\"timestamp\":\"1\",\"kraftControllerEpoch\":5}", 0);
    sim_broker_start(c, 0);
    sim_drain(c);
    assert_null(sim_active(c));
    assert_true(c->brokers[0].ready);
    sim_broker_kill(c, 0, true);
    sim_stop(c);
}

/* Both nodes as they would be had our transaction come through: its answer was lost. */
static void many_brokers_at_once_elect_one(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start(c, 0);
    for (int i = 0; i < SIM_BROKERS; i++)
        sim_broker_start(c, i);
    sim_check(c);
    assert_true(holds(c->base, "/controller_epoch", "1"));
    for (int round = 0; round < 4; round++) {
        sim_broker_kill(c, sim_active(c)->id, round % 2);
        sim_check(c);
    }
    sim_stop(c);
}

/* Kills the controller after k steps of an operation; the next one must bring it to its end. */
struct operation {
    const char *name;
    void (*begin)(struct sim_cluster *c);
    void (*check)(struct sim_cluster *c);
};

static bool op_done;
static struct new_topic op_topic;
static struct topic_deletion op_deletion;
static struct topic_growth op_growth;

static void set_done(void *arg)
{
    op_done = true;
}

static void begin_create(struct sim_cluster *c)
{
    op_topic = (struct new_topic){.name = STR_LIT("new"), .partitions = 3, .replication = 2};
    topic_admin_create(c->brokers[1].admin, &op_topic, 1, false, c->ex, set_done, NULL);
}

static void check_created(struct sim_cluster *c)
{
    /* the call may have been refused for lack of a controller; then there is nothing at all */
    assert_int_equal(sim_exists(c, "/brokers/topics/new"), op_topic.error == 0);
    assert_int_equal(sim_exists(c, "/config/topics/new"), op_topic.error == 0);
    if (op_topic.error == 0)
        assert_true(sim_state(c, "new", 2, NULL).leader >= 0);
    free(op_topic.message);
}

static void begin_delete(struct sim_cluster *c)
{
    op_deletion = (struct topic_deletion){.name = STR_LIT("old")};
    topic_admin_delete(c->brokers[1].admin, &op_deletion, 1, c->ex, set_done, NULL);
}

static void check_deleted(struct sim_cluster *c)
{
    assert_int_equal(op_deletion.error, 0);
    sim_broker_start(c, 0); /* its replicas were waited for */
    sim_check(c);
    assert_gone(c, "old");
}

static void begin_grow(struct sim_cluster *c)
{
    op_growth = (struct topic_growth){.name = STR_LIT("old"), .count = 5};
    topic_admin_grow(c->brokers[1].admin, &op_growth, 1, false, c->ex, set_done, NULL);
}

static void check_grown(struct sim_cluster *c)
{
    assert_int_equal(op_growth.error, 0);
    assert_true(sim_state(c, "old", 4, NULL).leader >= 0);
}

static void begin_death(struct sim_cluster *c)
{
    op_done = true;
    sim_broker_kill(c, 2, true);
}

static void check_death(struct sim_cluster *c)
{
    sim_broker_start(c, 2);
    sim_check(c);
}

static void controller_dies_during(const struct operation *op, bool clean)
{
    struct sim_cluster *c = &cluster;
    for (int k = 0;; k++) {
        bool more = true;
        sim_start(c, 4);
        assert_ptr_equal(sim_active(c), &c->brokers[0]);
        assert_int_equal(sim_create_topic(c, "old", 2, 4), 0);
        op_done = false;
        op->begin(c);
        for (int i = 0; i < k && more; i++)
            more = sim_executor_step(c->e);
        sim_broker_kill(c, 0, clean);
        sim_drain(c);
        assert_true(op_done);
        sim_check(c);
        op->check(c);
        sim_stop(c);
        if (!more)
            return;
        assert_true(k < 2000);
    }
}

static void a_controller_that_dies_at_any_moment_of_a_creation(void **state)
{
    struct operation op = {"create", begin_create, check_created};
    controller_dies_during(&op, true);
    controller_dies_during(&op, false);
}

static void a_controller_that_dies_at_any_moment_of_a_deletion(void **state)
{
    struct operation op = {"delete", begin_delete, check_deleted};
    controller_dies_during(&op, true);
    controller_dies_during(&op, false);
}

static void a_controller_that_dies_at_any_moment_of_a_growth(void **state)
{
    struct operation op = {"grow", begin_grow, check_grown};
    controller_dies_during(&op, true);
    controller_dies_during(&op, false);
}

static void a_controller_that_dies_at_any_moment_after_a_broker(void **state)
{
    struct operation op = {"death", begin_death, check_death};
    controller_dies_during(&op, true);
    controller_dies_during(&op, false);
}

/* Anything, in any order; in the end everything fits together. */
static void random_lives(unsigned seed)
{
    struct sim_cluster *c = &cluster;
    char name[8];
    srandom(seed);
    sim_start(c, 3);
    for (int round = 0; round < 60; round++) {
        int32_t id = (int32_t)(random() % SIM_BROKERS);
        struct sim_broker *active = sim_active(c);
        snprintf(name, sizeof(name), "t%ld", random() % 6);
        switch (random() % 8) {
        case 0:
            if (c->brokers[id].up)
                sim_broker_kill(c, id, random() % 2);
            break;
        case 1:
        case 2:
            if (!c->brokers[id].up)
                sim_broker_start(c, id);
            break;
        case 3:
            if (c->brokers[id].up)
                embedded_store_expire_session(c->brokers[id].session);
            break;
        case 4:
        case 5:
            if (active)
                sim_create_topic(c, name, 1 + (int)(random() % 4), 1 + (int)(random() % 3));
            break;
        case 6:
            if (active)
                sim_delete_topic(c, name);
            break;
        case 7:
            if (active)
                sim_grow_topic(c, name, 1 + (int)(random() % 6));
            break;
        }
        for (long i = random() % 40; i > 0; i--) /* not always to the end */
            sim_executor_step(c->e);
        if (random() % 4 == 0)
            sim_check(c);
    }
    for (int i = 0; i < SIM_BROKERS; i++)
        if (!c->brokers[i].up)
            sim_broker_start(c, i);
    sim_check(c);
    struct store_op marks = store_op_children("/admin/delete_topics", false);
    assert_int_equal(run_op(c->base, &marks), 0);
    assert_int_equal(marks.names_n, 0); /* with all brokers up every deletion ends */
    free(marks.names);
    sim_stop(c);
}

static void random_lives_of_clusters(void **state)
{
    for (unsigned seed = 1; seed <= 60; seed++)
        random_lives(seed);
}

static void random_lives_at_older_levels(void **state)
{
    static const int levels[] = {IBP(2, 3, 0), IBP(2, 4, 0), IBP(2, 4, 1), IBP(2, 6, 0),
                                 IBP(2, 8, 0), IBP(2, 8, 1), IBP(3, 2, 0)};
    for (unsigned i = 0; i < 3 * sizeof(levels) / sizeof(*levels); i++) {
        cluster.ibp = levels[i % (sizeof(levels) / sizeof(*levels))];
        random_lives(1000 + i);
    }
    cluster.ibp = 0;
}

static void ten_thousand_partitions_in_few_requests(void **state)
{
    struct sim_cluster *c = &cluster;
    enum { N = 10000 };
    sim_start(c, 1);
    struct sim_broker *b = &c->brokers[0];
    int lisr = b->lisr, umr = b->umr;
    assert_int_equal(sim_create_topic(c, "wide", N, 1), 0);
    assert_int_equal(b->lisr - lisr, 1);
    assert_int_equal(b->umr - umr, 1);
    assert_int_equal(b->lisr_new, N);
    assert_int_equal(sim_state(c, "wide", N - 1, NULL).leader, 0);
    assert_int_equal(sim_grow_topic(c, "wide", N + 10), 0);
    assert_int_equal(b->lisr - lisr, 2);
    int sr = b->sr;
    assert_int_equal(sim_delete_topic(c, "wide"), 0);
    assert_int_equal(b->sr - sr, 2); /* stop, delete */
    assert_gone(c, "wide");
    sim_stop(c);
}

static void many_topics_one_by_one_and_a_restart(void **state)
{
    struct sim_cluster *c = &cluster;
    enum { N = 1500 };
    char name[16];
    sim_start(c, 1);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        assert_int_equal(sim_create_topic(c, name, 1, 1), 0);
    }
    sim_broker_kill(c, 0, true);
    for (struct list *at; (at = list_pop(&c->brokers[0].disk));)
        free(list_entry(at, struct sim_replica, link));
    struct sim_broker *b = &c->brokers[0];
    b->lisr = b->umr = b->lisr_partitions = 0;
    sim_broker_start(c, 0);
    sim_drain(c);
    assert_true(b->ready);
    assert_int_equal(b->lisr_partitions, N);
    assert_true(b->lisr <= 2 && b->umr <= 3);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        assert_int_equal(sim_delete_topic(c, name), 0);
    }
    sim_check(c);
    assert_gone(c, "t0");
    sim_stop(c);
}

UNIT_MAIN(unit_test(one_broker_elects_itself_and_is_ready),
          unit_test(the_start_ends_though_the_first_reign_does_not_last),
          unit_test(a_topic_gets_leaders_and_everyone_learns_of_them),
          unit_test(replicas_on_brokers_that_are_down_join_no_isr),
          unit_test(topics_made_by_tools_get_an_id), unit_test(malformed_topics_are_passed_over),
          unit_test(a_topic_grows), unit_test(a_topic_is_deleted_and_made_again),
          unit_test(deletion_waits_for_every_answer),
          unit_test(deletion_waits_for_a_broker_that_is_down),
          unit_test(a_broker_that_dies_in_the_middle_holds_deletion_up),
          unit_test(a_broker_that_cannot_delete_is_asked_again_when_it_is_back),
          unit_test(an_answer_of_an_earlier_life_does_not_hold_up_the_deletion),
          unit_test(marks_of_unknown_topics_go),
          unit_test(the_leader_dies_and_the_next_in_sync_leads),
          unit_test(a_follower_that_dies_leaves_the_isr),
          unit_test(the_last_in_sync_stays_in_the_isr_and_leads_when_it_is_back),
          unit_test(an_unclean_leader_is_alone_in_the_isr),
          unit_test(an_isr_change_in_between_is_read_again),
          unit_test(a_bounced_broker_is_failed_and_started), unit_test(changed_endpoints_are_told),
          unit_test(another_broker_takes_over),
          unit_test(an_expired_controller_resigns_and_comes_back_as_a_broker),
          unit_test(a_controller_alone_expires_and_goes_on),
          unit_test(a_broker_whose_id_is_taken_tries_until_it_is_free),
          unit_test(a_deposed_controller_writes_nothing_and_resigns),
          unit_test(a_migrations_controller_is_left_alone),
          unit_test(many_brokers_at_once_elect_one),
          unit_test(a_controller_that_dies_at_any_moment_of_a_creation),
          unit_test(a_controller_that_dies_at_any_moment_of_a_deletion),
          unit_test(a_controller_that_dies_at_any_moment_of_a_growth),
          unit_test(a_controller_that_dies_at_any_moment_after_a_broker),
          unit_test(random_lives_of_clusters), unit_test(random_lives_at_older_levels),
          unit_test(ten_thousand_partitions_in_few_requests),
          unit_test(many_topics_one_by_one_and_a_restart))
