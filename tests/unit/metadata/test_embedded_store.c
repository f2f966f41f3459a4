/* The embedded store without a disk: the rules of every store (store_rules.c), on the simulated
 * executor and on a thread of its own, and what is its own. */
#include "base/sim_executor.h"

#include "metadata/store_rules.h"
#include "metadata/store_test.h"
#include "metadata/threaded_rules.h"

/* On the simulated executor: what is posted runs in settle. */
struct sim {
    struct store_rules rules;
    struct sim_clock clock;
    struct sim_executor *e;
};

static void sim_hold(struct store_rules *t)
{
    (void)t;
}

static void sim_settle(struct store_rules *t)
{
    sim_executor_drain(container_of(t, struct sim, rules)->e);
}

static struct store *attach(struct store_rules *t)
{
    struct store *other;
    assert_int_equal(embedded_store_attach(t->s, &other), 0);
    return other;
}

static void expire(struct store_rules *t, struct store *s)
{
    (void)t;
    embedded_store_expire_session(s);
}

static int sim_start(void **state)
{
    static struct sim sim;
    sim_clock_init(&sim.clock, 1000);
    sim.e = sim_executor_new(&sim.clock);
    sim.rules = (struct store_rules){.ex = sim_executor_ex(sim.e),
                                     .simulated = true,
                                     .hold = sim_hold,
                                     .settle = sim_settle,
                                     .attach = attach,
                                     .expire = expire};
    sim.rules.s = open_in_memory(sim.rules.ex);
    *state = &sim.rules;
    return 0;
}

static int sim_stop(void **state)
{
    struct sim *sim = container_of((struct store_rules *)*state, struct sim, rules);
    store_close(sim->rules.s);
    sim_executor_drain(sim->e);
    sim_executor_free(sim->e);
    return 0;
}

/* On a thread of its own. */

static int threads_start(void **state)
{
    static struct threaded_rules t;
    threaded_rules_init(&t);
    t.rules.attach = attach;
    t.rules.expire = expire;
    t.rules.s = open_in_memory(NULL);
    *state = &t.rules;
    return 0;
}

static int threads_stop(void **state)
{
    struct threaded_rules *t =
        container_of((struct store_rules *)*state, struct threaded_rules, rules);
    store_close(t->rules.s);
    threaded_rules_end(t);
    return 0;
}

/* newer_than is more than a hint here: as many names as there are new ones. */
static void only_new_children_are_listed(void **state)
{
    struct store *s = ((struct store_rules *)*state)->s;
    create(s, "/p", NULL, 0);
    create(s, "/p/old", NULL, 0);
    struct store_op all = store_op_children("/p", false);
    assert_int_equal(run_op(s, &all), 0);
    free(all.names);
    create(s, "/p/new", NULL, 0);
    struct store_op news = store_op_children("/p", false);
    news.newer_than = all.as_of;
    assert_int_equal(run_op(s, &news), 0);
    assert_true(news.partial);
    assert_int_equal(news.names_n, 1);
    assert_string_equal(news.names[0], "new");
    free(news.names);
}

int main(int argc, char **argv)
{
    const char *pattern = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest own[] = {
        cmocka_unit_test_setup_teardown(only_new_children_are_listed, sim_start, sim_stop)};
    int failed = store_rules_run(pattern, sim_start, sim_stop);
    failed += store_rules_run(pattern, threads_start, threads_stop);
    return failed + cmocka_run_group_tests(own, NULL, NULL);
}
