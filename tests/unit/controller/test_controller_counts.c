/* What the controller counts of its work, and what a look at it tells. */
#include "controller/sim_cluster.h"

static struct sim_cluster cluster;
static bool looked;

static void on_look(struct controller_look *l)
{
    looked = true;
}

static struct controller_look look_at(struct sim_cluster *c)
{
    struct controller_look l = {.done = on_look};
    looked = false;
    controller_look(sim_active(c)->controller, &l);
    assert_false(looked); /* never from inside */
    sim_drain(c);
    assert_true(looked);
    return l;
}

static uint64_t took(struct sim_cluster *c, enum controller_work work)
{
    struct tally t = {0};
    tally_add(&t, &controller_counts(sim_active(c)->controller)->took_us[work]);
    return t.count;
}

static uint64_t all_began(struct sim_cluster *c)
{
    struct tally t = {0};
    tally_add(&t, &controller_counts(sim_active(c)->controller)->waited_us);
    return t.count;
}

static void events_count_by_what_they_are(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start_under(c, 3, 0);
    uint64_t sum = 0, before = took(c, CONTROLLER_TOPIC_CHANGE);
    assert_true(took(c, CONTROLLER_CHANGE) > 0);
    assert_int_equal(sim_create_topic(c, "t", 2, 3), 0);
    assert_int_equal(took(c, CONTROLLER_TOPIC_CHANGE), before + 1);
    before = took(c, CONTROLLER_BROKER_CHANGE);
    sim_broker_kill(c, 2, false);
    sim_drain(c);
    assert_true(took(c, CONTROLLER_BROKER_CHANGE) > before);
    assert_int_equal(took(c, CONTROLLER_UNCLEAN_ENABLE), 0);
    controller_unclean_allowed(sim_active(c)->controller, STR_LIT("t"));
    sim_drain(c);
    assert_int_equal(took(c, CONTROLLER_UNCLEAN_ENABLE), 0);
    assert_int_equal(took(c, CONTROLLER_TOPIC_UNCLEAN_ENABLE), 1);
    controller_unclean_allowed(sim_active(c)->controller, STR_NULL);
    sim_drain(c);
    assert_int_equal(took(c, CONTROLLER_UNCLEAN_ENABLE), 1);
    for (int i = 0; i < CONTROLLER_WORKS; i++)
        sum += took(c, (enum controller_work)i);
    assert_int_equal(sum, all_began(c)); /* all are over */
    assert_int_equal(atomic_load(&controller_counts(sim_active(c)->controller)->working_on),
                     CONTROLLER_IDLE);
    sim_stop(c);
}

static void unclean_leaders_count(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start_under(c, 3, 0);
    static const int32_t two[] = {1, 2};
    assert_int_equal(sim_create_assigned(c, "t", two, 2), 0);
    sim_broker_kill(c, 2, false);
    sim_drain(c);
    sim_broker_kill(c, 1, false);
    sim_drain(c);
    sim_broker_start(c, 2);
    sim_drain(c);
    const struct controller_counts *n = controller_counts(sim_active(c)->controller);
    assert_int_equal(metric_read(&n->unclean), 0);
    c->unclean = true;
    controller_unclean_allowed(sim_active(c)->controller, STR_LIT("t"));
    sim_drain(c);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 2);
    assert_int_equal(metric_read(&n->unclean), 1);
    c->unclean = false;
    sim_stop(c);
}

static void a_look_tells_what_is_to_be_done(void **state)
{
    struct sim_cluster *c = &cluster;
    sim_start_under(c, 3, 0);
    assert_int_equal(sim_create_topic(c, "stays", 1, 3), 0);
    assert_int_equal(sim_create_topic(c, "goes", 2, 3), 0);
    struct controller_look l = look_at(c);
    assert_int_equal(l.events, 0);
    assert_int_equal(l.topics_to_delete, 0);
    assert_int_equal(l.queues_n, 3);
    free(l.queues);
    sim_broker_kill(c, 2, false);
    sim_drain(c);
    sim_delete_topic(c, "goes");
    l = look_at(c);
    assert_int_equal(l.topics_to_delete, 1);
    assert_int_equal(l.topics_ineligible, 1);
    assert_int_equal(l.replicas_to_delete, 2); /* those of the broker that is gone */
    assert_int_equal(l.replicas_ineligible, 2);
    assert_int_equal(l.queues_n, 2);
    free(l.queues);
    sim_broker_start(c, 2);
    sim_drain(c);
    l = look_at(c);
    assert_int_equal(l.topics_to_delete + l.replicas_to_delete + l.topics_ineligible, 0);
    free(l.queues);
    sim_stop(c);
}

UNIT_MAIN(unit_test(events_count_by_what_they_are), unit_test(unclean_leaders_count),
          unit_test(a_look_tells_what_is_to_be_done))
