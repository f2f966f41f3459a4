/* The executor that runs by hand on a simulated clock. */
#include "base/sim_executor.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

/* What ran and when, as text: "a@0 b@10 ". */
struct world {
    struct sim_clock clock;
    struct sim_executor *sim;
    struct executor *ex;
    char log[256];
};

struct step {
    struct task task;
    struct timer timer;
    struct world *world;
    const char *name;
    struct step *post_then; /* posted by this one when it runs */
    int again;              /* starts its timer again, this often */
    int64_t again_ms;
};

static void note(struct step *s)
{
    size_t n = strlen(s->world->log);
    snprintf(s->world->log + n, sizeof(s->world->log) - n, "%s@%d ", s->name,
             (int)executor_now_ms(s->world->ex));
}

static void act(struct step *s)
{
    note(s);
    if (s->post_then)
        executor_post(s->world->ex, &s->post_then->task);
    if (s->again-- > 0)
        executor_timer_start(s->world->ex, &s->timer, s->again_ms);
}

static void on_run(struct task *t)
{
    act(container_of(t, struct step, task));
}

static void on_fire(struct timer *t)
{
    assert_false(timer_armed(t));
    act(container_of(t, struct step, timer));
}

static void step_init(struct step *s, struct world *w, const char *name)
{
    *s = (struct step){.world = w, .name = name};
    task_init(&s->task, on_run);
    timer_init(&s->timer, on_fire);
}

static void world_init(struct world *w)
{
    sim_clock_init(&w->clock, 1700000000000);
    w->sim = sim_executor_new(&w->clock);
    w->ex = sim_executor_ex(w->sim);
    w->log[0] = '\0';
}

static void tasks_run_in_order_and_never_inside_post(void **state)
{
    struct world w;
    struct step a, b, c;
    world_init(&w);
    step_init(&a, &w, "a");
    step_init(&b, &w, "b");
    step_init(&c, &w, "c");
    a.post_then = &c;
    executor_post(w.ex, &a.task);
    executor_post(w.ex, &b.task);
    assert_string_equal(w.log, "");
    assert_true(sim_executor_step(w.sim));
    assert_string_equal(w.log, "a@0 ");
    sim_executor_drain(w.sim);
    assert_string_equal(w.log, "a@0 b@0 c@0 ");
    assert_false(sim_executor_step(w.sim));
    sim_executor_free(w.sim);
}

static void timers_fire_at_their_own_time(void **state)
{
    struct world w;
    struct step a, b, c, t;
    world_init(&w);
    step_init(&a, &w, "a");
    step_init(&b, &w, "b");
    step_init(&c, &w, "c");
    step_init(&t, &w, "t");
    b.post_then = &t;
    a.again = 2;
    a.again_ms = 7;
    executor_timer_start(w.ex, &b.timer, 20);
    executor_timer_start(w.ex, &a.timer, 10);
    executor_timer_start(w.ex, &c.timer, 20);
    assert_int_equal(sim_executor_next_timer(w.sim), 10);
    sim_executor_drain(w.sim);
    assert_string_equal(w.log, "");
    sim_executor_advance(w.sim, 9);
    assert_string_equal(w.log, "");
    sim_executor_advance(w.sim, 21);
    assert_string_equal(w.log, "a@10 a@17 b@20 t@20 c@20 a@24 ");
    assert_int_equal(clock_mono_ms(&w.clock.clock), 30);
    assert_int_equal(clock_wall_ms(&w.clock.clock), 1700000000030);
    assert_int_equal(sim_executor_next_timer(w.sim), -1);
    sim_executor_free(w.sim);
}

static void timers_stop_and_move(void **state)
{
    struct world w;
    struct step a, b;
    world_init(&w);
    step_init(&a, &w, "a");
    step_init(&b, &w, "b");
    executor_timer_start(w.ex, &a.timer, 5);
    executor_timer_start(w.ex, &b.timer, 5);
    assert_true(timer_armed(&a.timer));
    executor_timer_stop(w.ex, &a.timer);
    executor_timer_stop(w.ex, &a.timer);
    assert_false(timer_armed(&a.timer));
    executor_timer_start(w.ex, &b.timer, 50);
    sim_executor_advance(w.sim, 49);
    assert_string_equal(w.log, "");
    sim_executor_advance(w.sim, 1);
    assert_string_equal(w.log, "b@50 ");
    executor_timer_start(w.ex, &a.timer, 5);
    executor_post(w.ex, &b.task);
    sim_executor_free(w.sim); /* forgets what is left */
    assert_false(timer_armed(&a.timer));
}

UNIT_MAIN(unit_test(tasks_run_in_order_and_never_inside_post),
          unit_test(timers_fire_at_their_own_time), unit_test(timers_stop_and_move))
