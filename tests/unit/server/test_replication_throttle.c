/* Which replicas are throttled, and when the rate is above its limit. */
#include "server/replication_throttle.h"

#include "unit.h"

static struct topic_partition tp(const char *topic, int32_t partition)
{
    return (struct topic_partition){str_of(topic), partition};
}

static void topics_list_their_replicas(void **state)
{
    struct sim_clock clock;
    sim_clock_init(&clock, 1700000000000);
    struct replication_throttle *t =
        replication_throttle_new(3, (struct rate_window){11, 1000}, &clock.clock);
    assert_false(replication_throttle_lists(t, THROTTLE_LEADER, tp("t", 0)));
    replication_throttle_set(t, STR_LIT("t"), "0:1,2:3,5:3", "*");
    static const bool leads[] = {false, false, true, false, false, true};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(replication_throttle_lists(t, THROTTLE_LEADER, tp("t", i)), leads[i]);
        assert_true(replication_throttle_lists(t, THROTTLE_FOLLOWER, tp("t", i)));
        assert_false(replication_throttle_lists(t, THROTTLE_FOLLOWER, tp("u", i)));
    }
    replication_throttle_set(t, STR_LIT("t"), "0:3", "");
    assert_true(replication_throttle_lists(t, THROTTLE_LEADER, tp("t", 0)));
    assert_false(replication_throttle_lists(t, THROTTLE_LEADER, tp("t", 2)));
    assert_false(replication_throttle_lists(t, THROTTLE_FOLLOWER, tp("t", 0)));
    replication_throttle_set(t, STR_LIT("u"), NULL, "1:3");
    replication_throttle_set(t, STR_LIT("t"), NULL, NULL);
    assert_false(replication_throttle_lists(t, THROTTLE_LEADER, tp("t", 0)));
    assert_true(replication_throttle_lists(t, THROTTLE_FOLLOWER, tp("u", 1)));
    replication_throttle_free(t);
}

static void the_rate_is_measured_since_the_oldest_sample(void **state)
{
    struct sim_clock clock;
    sim_clock_init(&clock, 1700000000000);
    sim_clock_advance(&clock, 1000000);
    struct replication_throttle *t =
        replication_throttle_new(3, (struct rate_window){11, 1000}, &clock.clock);
    assert_false(replication_throttle_exceeded(t, THROTTLE_LEADER, 1000));
    replication_throttle_count(t, THROTTLE_LEADER, 5000); /* a burst: at least over one sample */
    assert_true(replication_throttle_exceeded(t, THROTTLE_LEADER, 4999));
    assert_false(replication_throttle_exceeded(t, THROTTLE_LEADER, 5000));
    assert_false(replication_throttle_exceeded(t, THROTTLE_FOLLOWER, 1));
    sim_clock_advance(&clock, 4000);
    assert_true(replication_throttle_exceeded(t, THROTTLE_LEADER, 1200));
    assert_false(replication_throttle_exceeded(t, THROTTLE_LEADER, 1300));
    sim_clock_advance(&clock, 20000);
    assert_false(replication_throttle_exceeded(t, THROTTLE_LEADER, 1));
    replication_throttle_free(t);
}

UNIT_MAIN(unit_test(topics_list_their_replicas),
          unit_test(the_rate_is_measured_since_the_oldest_sample))
