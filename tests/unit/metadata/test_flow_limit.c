/* A flow with a time limit: its requests carry the deadline, and -ETIMEDOUT ends it; without one a
 * step sees the status like any other. The store here is cut off for ever. */
#include "base/sim_executor.h"
#include "metadata/flow.h"
#include "metadata/store_answer.h"

#include "unit.h"

struct world {
    struct sim_clock clock;
    struct sim_executor *e;
    struct store store;
    struct flow flow;
    int64_t deadline_ms; /* of the last request */
    int seen, done, error;
};

static void submit(struct store *s, struct list *requests)
{
    struct world *w = container_of(s, struct world, store);
    for (struct list *at; (at = list_pop(requests));) {
        struct store_request *r = list_entry(at, struct store_request, task.link);
        w->deadline_ms = r->deadline_ms;
        store_request_reset(r);
        store_request_refuse(r, -ETIMEDOUT);
        store_request_answer(r);
    }
}

static const struct store_ops cut_off = {.submit = submit};

static int start(void **state)
{
    static struct world w;
    w = (struct world){.store = {.ops = &cut_off}};
    sim_clock_init(&w.clock, 1000);
    w.e = sim_executor_new(&w.clock);
    *state = &w;
    return 0;
}

static int stop(void **state)
{
    sim_executor_free(((struct world *)*state)->e);
    return 0;
}

static void ask(struct flow *f)
{
    store_batch_add(flow_ask(f), store_op_get("/a", false));
    store_batch_add(flow_ask(f), store_op_get("/b", false));
}

static void see(struct flow *f)
{
    struct world *w = container_of(f, struct world, flow);
    w->seen++;
    assert_int_equal(store_batch_first(flow_answers(f))->status, -ETIMEDOUT);
}

static const flow_step steps[] = {ask, see, NULL};

static void done(struct flow *f)
{
    struct world *w = container_of(f, struct world, flow);
    w->done++;
    w->error = f->error;
}

static void a_limit_ends_the_flow(void **state)
{
    struct world *w = *state;
    int64_t now = executor_now_ms(sim_executor_ex(w->e));
    w->flow.limit_ms = 500;
    flow_start(&w->flow, &w->store, sim_executor_ex(w->e), steps, done);
    sim_executor_drain(w->e);
    assert_int_equal(w->deadline_ms, now + 500);
    assert_int_equal(w->seen, 0);
    assert_int_equal(w->done, 1);
    assert_int_equal(w->error, -ETIMEDOUT);
}

static void without_one_there_is_no_deadline(void **state)
{
    struct world *w = *state;
    flow_start(&w->flow, &w->store, sim_executor_ex(w->e), steps, done);
    sim_executor_drain(w->e);
    assert_int_equal(w->deadline_ms, 0);
    assert_int_equal(w->seen, 1);
    assert_int_equal(w->done, 1);
    assert_int_equal(w->error, 0);
}

static void call(struct flow *f)
{
    struct flow *child = arena_new(&f->arena, struct flow);
    static const flow_step asking[] = {ask, NULL};
    flow_call(f, child, asking, NULL);
}

static void a_flow_that_is_called_has_its_callers_limit(void **state)
{
    static const flow_step calling[] = {call, see, NULL};
    struct world *w = *state;
    int64_t now = executor_now_ms(sim_executor_ex(w->e));
    w->flow.limit_ms = 700;
    flow_start(&w->flow, &w->store, sim_executor_ex(w->e), calling, done);
    sim_executor_drain(w->e);
    assert_int_equal(w->deadline_ms, now + 700);
    assert_int_equal(w->seen, 0);
    assert_int_equal(w->error, -ETIMEDOUT);
}

#define world_test(f) cmocka_unit_test_setup_teardown(f, start, stop)

UNIT_MAIN(world_test(a_limit_ends_the_flow), world_test(without_one_there_is_no_deadline),
          world_test(a_flow_that_is_called_has_its_callers_limit))
