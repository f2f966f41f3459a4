/* The real clock and the simulated one. */
#include "base/clock.h"

#include <time.h>

#include "unit.h"

static void real_clock_follows_the_machine(void **state)
{
    const struct clock *c = clock_real();
    struct timespec before, after;
    clock_gettime(CLOCK_REALTIME, &before);
    int64_t wall = clock_wall_ms(c);
    clock_gettime(CLOCK_REALTIME, &after);
    assert_true(wall >= (int64_t)before.tv_sec * 1000 + before.tv_nsec / 1000000);
    assert_true(wall <= (int64_t)after.tv_sec * 1000 + after.tv_nsec / 1000000);
    int64_t last = clock_mono_ns(c);
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_mono_ns(c);
        assert_true(now >= last);
        last = now;
    }
    assert_true(clock_mono_ms(c) >= last / 1000000);
}

static void simulated_clock_stands_still_until_moved(void **state)
{
    struct sim_clock sim;
    sim_clock_init(&sim, 1700000000000);
    assert_int_equal(clock_wall_ms(&sim.clock), 1700000000000);
    assert_int_equal(clock_mono_ms(&sim.clock), 0);
    sim_clock_advance(&sim, 1500);
    assert_int_equal(clock_wall_ms(&sim.clock), 1700000001500);
    assert_int_equal(clock_mono_ms(&sim.clock), 1500);
    sim.wall_ms -= 5000; /* a wall clock may jump; the other must not */
    assert_int_equal(clock_wall_ms(&sim.clock), 1699999996500);
    assert_int_equal(clock_mono_ns(&sim.clock), 1500000000);
}

UNIT_MAIN(unit_test(real_clock_follows_the_machine),
          unit_test(simulated_clock_stands_still_until_moved))
