/* Entities that a notice named are read until the store answers. */
#include "server/entity_rereads.h"

#include <errno.h>
#include <stdio.h>

#include "base/sim_executor.h"

#include "unit.h"

struct readings {
    int fail;      /* so many readings get no answer */
    int n;         /* readings so far */
    char last[32]; /* path */
};

struct rig {
    struct sim_clock clock;
    struct sim_executor *e;
    struct workers *workers;
    struct control_queue *queue;
    struct entity_rereads *all;
    struct readings r;
};

static int read_one(void *arg, struct str path)
{
    struct readings *r = arg;
    snprintf(r->last, sizeof(r->last), "%.*s", STR_ARG(path));
    return r->n++ < r->fail ? -ESTALE : 0;
}

static void rig_up(struct rig *g, int fail)
{
    *g = (struct rig){.r.fail = fail};
    sim_clock_init(&g->clock, 1000);
    g->e = sim_executor_new(&g->clock);
    struct executor *ex = sim_executor_ex(g->e);
    assert_int_equal(workers_sim(ex, &g->workers), 0);
    assert_int_equal(control_queue_new(g->workers, &g->queue), 0);
    g->all = entity_rereads_new(ex, g->queue, read_one, &g->r);
    assert_non_null(g->all);
}

static void rig_down(struct rig *g)
{
    entity_rereads_end(g->all);
    sim_executor_advance(g->e, 10000);
    entity_rereads_free(g->all);
    workers_stop(g->workers);
    sim_executor_drain(g->e);
    control_queue_free(g->queue);
    sim_executor_free(g->e);
}

static void read_until_there_is_an_answer(void **state)
{
    for (int fail = 0; fail < 4; fail++) {
        struct rig g;
        rig_up(&g, fail);
        assert_int_equal(entity_rereads_add(g.all, STR_LIT("users/u")), 0);
        for (int tries = 1; tries <= fail; tries++) {
            sim_executor_drain(g.e);
            assert_int_equal(g.r.n, tries);
            sim_executor_advance(g.e, 1000);
        }
        sim_executor_advance(g.e, 10000);
        assert_int_equal(g.r.n, fail + 1);
        assert_string_equal(g.r.last, "users/u");
        rig_down(&g);
        assert_int_equal(g.r.n, fail + 1);
    }
}

/* Whenever the end comes, nothing is left and nothing is read any more. */
static void the_end_ends_all_tries(void **state)
{
    for (int steps = 0; steps < 8; steps++) {
        struct rig g;
        rig_up(&g, 1000);
        for (int i = 0; i < 3; i++)
            assert_int_equal(entity_rereads_add(g.all, STR_LIT("brokers/<default>")), 0);
        for (int i = 0; i < steps; i++)
            (void)sim_executor_step(g.e);
        sim_executor_advance(g.e, steps * 200);
        entity_rereads_end(g.all);
        sim_executor_drain(g.e);
        int n = g.r.n;
        sim_executor_advance(g.e, 10000);
        assert_int_equal(g.r.n, n);
        rig_down(&g);
    }
}

UNIT_MAIN(unit_test(read_until_there_is_an_answer), unit_test(the_end_ends_all_tries))
