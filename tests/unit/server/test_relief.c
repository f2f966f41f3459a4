/* Asking for relief before the stop: attempts, pauses, what counts as success. */
#include "base/sim_executor.h"
#include "protocol/errors.h"
#include "server/relief.h"

#include "unit.h"

struct world {
    struct sim_clock clock;
    struct sim_executor *e;
    struct relief relief;
    struct relief_options o;
    bool known;
    struct controller_request *asked; /* waits for its answer */
    int asked_n, done_n;
    bool relieved;
};

static bool known(void *arg)
{
    return ((struct world *)arg)->known;
}

static void ask(void *arg, struct controller_request *r)
{
    struct world *w = arg;
    w->asked = r;
    w->asked_n++;
}

static void done(void *arg, bool relieved)
{
    struct world *w = arg;
    w->done_n++;
    w->relieved = relieved;
}

static int start(void **state)
{
    static struct world w;
    w = (struct world){.known = true};
    sim_clock_init(&w.clock, 1000);
    w.e = sim_executor_new(&w.clock);
    w.o = (struct relief_options){.ex = sim_executor_ex(w.e),
                                  .broker_id = 7,
                                  .broker_epoch = 70,
                                  .version = 3,
                                  .attempts = 3,
                                  .pause_ms = 5000,
                                  .limit_ms = 10000,
                                  .controller_known = known,
                                  .send = ask,
                                  .done = done,
                                  .arg = &w};
    *state = &w;
    return 0;
}

static int stop(void **state)
{
    sim_executor_free(((struct world *)*state)->e);
    return 0;
}

static bool answer(struct world *w, int status, enum kerr error, int left)
{
    struct controlled_shutdown_response_remaining_partition p[2] = {
        {.topic_name = STR_LIT("t"), .partition_index = 0},
        {.topic_name = STR_LIT("t"), .partition_index = 1}};
    struct controlled_shutdown_response r;
    controlled_shutdown_response_init(&r);
    r.error_code = (int16_t)error;
    r.remaining_partitions.v = p;
    r.remaining_partitions.n = left;
    return w->asked->done(w->asked, status, 3, status ? NULL : &r);
}

static void no_error_and_nothing_left_is_relief(void **state)
{
    struct world *w = *state;
    relief_ask(&w->relief, &w->o);
    assert_int_equal(w->asked_n, 1);
    const struct controlled_shutdown_request *body = w->asked->request;
    assert_int_equal(body->broker_id, 7);
    assert_int_equal(body->broker_epoch, 70);
    assert_int_equal(w->asked->min_version, 3);
    assert_int_equal(w->asked->max_version, 3);
    assert_int_equal(w->asked->limit_ms, 10000);
    assert_false(answer(w, 0, KERR_NONE, 0));
    assert_int_equal(w->done_n, 1);
    assert_true(w->relieved);
}

static void failures_are_tried_again_after_a_pause(void **state)
{
    struct world *w = *state;
    relief_ask(&w->relief, &w->o);
    assert_false(answer(w, 0, KERR_STALE_BROKER_EPOCH, 0));
    sim_executor_advance(w->e, 4999);
    assert_int_equal(w->asked_n, 1);
    sim_executor_advance(w->e, 1);
    assert_int_equal(w->asked_n, 2);
    assert_false(answer(w, 0, KERR_NONE, 2)); /* partitions are left */
    sim_executor_advance(w->e, 5000);
    assert_int_equal(w->asked_n, 3);
    assert_int_equal(w->done_n, 0);
    assert_false(answer(w, -ETIMEDOUT, KERR_NONE, 0));
    sim_executor_advance(w->e, 100000);
    assert_int_equal(w->asked_n, 3);
    assert_int_equal(w->done_n, 1);
    assert_false(w->relieved);
}

static void somebody_who_is_not_the_controller_does_not_count(void **state)
{
    struct world *w = *state;
    relief_ask(&w->relief, &w->o);
    assert_true(answer(w, 0, KERR_STALE_CONTROLLER_EPOCH, 0)); /* the link finds the right one */
    assert_int_equal(w->done_n, 0);
    assert_false(answer(w, 0, KERR_NONE, 0));
    assert_true(w->relieved);
}

static void without_a_controller_nobody_is_asked(void **state)
{
    struct world *w = *state;
    w->known = false;
    relief_ask(&w->relief, &w->o);
    sim_executor_advance(w->e, 5000);
    assert_int_equal(w->done_n, 0);
    w->known = true;
    sim_executor_advance(w->e, 5000);
    assert_int_equal(w->asked_n, 1); /* the third attempt */
    assert_false(answer(w, 0, KERR_UNKNOWN_SERVER_ERROR, 0));
    assert_int_equal(w->done_n, 1);
    assert_false(w->relieved);
}

static void no_attempts_no_relief(void **state)
{
    struct world *w = *state;
    w->o.attempts = 0;
    relief_ask(&w->relief, &w->o);
    assert_int_equal(w->asked_n, 0);
    assert_int_equal(w->done_n, 1);
}

#define world_test(f) cmocka_unit_test_setup_teardown(f, start, stop)

UNIT_MAIN(world_test(no_error_and_nothing_left_is_relief),
          world_test(failures_are_tried_again_after_a_pause),
          world_test(somebody_who_is_not_the_controller_does_not_count),
          world_test(without_a_controller_nobody_is_asked), world_test(no_attempts_no_relief))
