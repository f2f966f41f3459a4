/* What stands on the store below the controller: flows, start-up nodes, registration, producer ids,
 * overrides of topics and their notices. All on the simulated executor. */
#include "base/logline.h"
#include "base/sim_executor.h"
#include "metadata/bootstrap.h"
#include "metadata/config_write.h"
#include "metadata/flow.h"
#include "metadata/paths.h"
#include "metadata/producer_ids.h"
#include "metadata/registration.h"
#include "metadata/topic_configs.h"
#include "protocol/msg/update_metadata.h"

#include "metadata/store_test.h"

struct sim {
    struct sim_clock clock;
    struct sim_executor *e;
    struct executor *ex;
    struct store *s;
};

static struct metadata_cache *cache;

static int sim_start(void **state)
{
    static struct sim sim;
    logline_set_level(LOGLINE_FATAL);
    sim_clock_init(&sim.clock, 1700000000000);
    sim.e = sim_executor_new(&sim.clock);
    sim.ex = sim_executor_ex(sim.e);
    struct embedded_options o = {.clock = &sim.clock.clock, .run_on = sim.ex};
    char err[64];
    assert_int_equal(embedded_store_open(&o, &sim.s, err, sizeof(err)), 0);
    assert_int_equal(bootstrap_paths(sim.s), 0);
    cache = metadata_cache_new();
    *state = &sim;
    return 0;
}

static int sim_stop(void **state)
{
    struct sim *sim = *state;
    sim_executor_drain(sim->e);
    store_close(sim->s);
    sim_executor_drain(sim->e);
    sim_executor_free(sim->e);
    metadata_cache_free(cache);
    return 0;
}

static void start_nodes_are_made_once(void **state)
{
    struct sim *sim = *state;
    struct store_stat st;
    char *a, *b;
    int32_t id;
    assert_int_equal(stat_of(sim->s, "/config/changes", &st), 0);
    assert_int_equal(stat_of(sim->s, "/latest_producer_id_block", &st), 0);
    assert_int_equal(bootstrap_paths(sim->s), 0);
    assert_int_equal(bootstrap_cluster_id(sim->s, &a), 0);
    assert_int_equal(bootstrap_cluster_id(sim->s, &b), 0);
    assert_string_equal(a, b);
    assert_int_equal(strlen(a), 22);
    free(a);
    free(b);
    set(sim->s, "/cluster/id", "{\"id\":5}", -1);
    assert_int_equal(bootstrap_cluster_id(sim->s, &a), -EBADMSG);
    assert_int_equal(bootstrap_broker_id(sim->s, 1000, &id), 0);
    assert_int_equal(id, 1001);
    assert_int_equal(bootstrap_broker_id(sim->s, 1000, &id), 0);
    assert_int_equal(id, 1002);
}

/* Flows. */

struct traced {
    struct flow flow, child;
    char trace[64];
    int rounds, child_error, done;
};

static struct traced *traced_of(struct flow *f)
{
    return container_of(f, struct traced, flow);
}

static void ask_two(struct flow *f)
{
    strcat(traced_of(f)->trace, "a");
    store_batch_add(flow_ask(f), store_op_exists("/config", false));
    store_batch_add(flow_ask(f), store_op_exists("/nil", false));
}

static void see_two(struct flow *f)
{
    struct store_request *r = store_batch_first(flow_answers(f));
    assert_int_equal(r->status, 0);
    assert_int_equal(store_batch_next(flow_answers(f), r)->status, -ENOENT);
    strcat(traced_of(f)->trace, "b");
    if (++traced_of(f)->rounds < 3)
        flow_goto(f, ask_two);
}

static void child_asks(struct flow *f)
{
    store_batch_add(flow_ask(f), store_op_exists("/config", false));
}

static void child_ends(struct flow *f)
{
    struct traced *t = container_of(f, struct traced, child);
    strcat(t->trace, "c");
    if (t->child_error)
        flow_fail(f, t->child_error);
}

static const flow_step child_steps[] = {child_asks, child_ends, NULL};

static void call_child(struct flow *f)
{
    assert_null(store_batch_first(flow_answers(f)));
    flow_call(f, &traced_of(f)->child, child_steps, NULL);
}

static void wait_for_it(struct flow *f)
{
    strcat(traced_of(f)->trace, "w");
    flow_wait(f);
}

static void last_step(struct flow *f)
{
    strcat(traced_of(f)->trace, "l");
    flow_end(f);
}

static void never(struct flow *f)
{
    strcat(traced_of(f)->trace, "!");
}

static const flow_step traced_steps[] = {ask_two,   see_two, call_child, wait_for_it,
                                         last_step, never,   NULL};

static void traced_done(struct flow *f)
{
    traced_of(f)->done++;
}

static void steps_run_in_order_with_answers_calls_and_waits(void **state)
{
    struct sim *sim = *state;
    struct traced t = {.rounds = 0};
    flow_start(&t.flow, sim->s, sim->ex, traced_steps, traced_done);
    assert_string_equal(t.trace, ""); /* never inside flow_start */
    sim_executor_drain(sim->e);
    assert_string_equal(t.trace, "abababcw");
    assert_int_equal(t.done, 0);
    flow_resume(&t.flow);
    assert_string_equal(t.trace, "abababcwl");
    assert_int_equal(t.done, 1);
    assert_int_equal(t.flow.error, 0);
}

static void failure_ends_the_caller_as_well(void **state)
{
    struct sim *sim = *state;
    struct traced t = {.child_error = -ESTALE};
    flow_start(&t.flow, sim->s, sim->ex, traced_steps, traced_done);
    sim_executor_drain(sim->e);
    assert_string_equal(t.trace, "abababc");
    assert_int_equal(t.done, 1);
    assert_int_equal(t.flow.error, -ESTALE);
}

/* Registration. */

struct outcome {
    int n, status;
    int64_t epoch;
};

static void on_registered(void *arg, int status, int64_t epoch)
{
    struct outcome *o = arg;
    o->n++;
    o->status = status;
    o->epoch = epoch;
}

static struct broker_registrar *registrar(struct sim *sim, struct store *s, int32_t id,
                                          int32_t port)
{
    struct endpoint e = {STR_LIT("PLAINTEXT"), STR_LIT("localhost"), port, 0};
    struct broker_info self = {id, STR_NULL, &e, 1};
    struct broker_registrar_options o = {.store = s,
                                         .ex = sim->ex,
                                         .clock = &sim->clock.clock,
                                         .self = &self,
                                         .jmx_port = -1,
                                         .wait_ms = 18000};
    struct broker_registrar *g;
    assert_int_equal(broker_registrar_new(&o, &g), 0);
    return g;
}

static void a_broker_registers_and_again_after_an_expiry(void **state)
{
    struct sim *sim = *state;
    struct outcome o = {0};
    struct store_stat st;
    struct broker_registrar *g = registrar(sim, sim->s, 1, 9092);
    assert_int_equal(broker_registrar_epoch(g), -1);
    broker_registrar_register(g, on_registered, &o);
    sim_executor_drain(sim->e);
    assert_int_equal(o.n, 1);
    assert_int_equal(o.status, 0);
    assert_int_equal(stat_of(sim->s, "/brokers/ids/1", &st), 0);
    assert_int_equal(st.czxid, o.epoch);
    assert_int_equal(broker_registrar_epoch(g), o.epoch);
    assert_true(st.ephemeral);
    struct bytes data;
    struct broker_info back;
    struct arena a;
    arena_init(&a, 0);
    assert_int_equal(store_get(sim->s, "/brokers/ids/1", &data, NULL), 0);
    assert_int_equal(znode_broker_decode(data, 1, &a, &back), 0);
    assert_int_equal(back.endpoints[0].port, 9092);
    free((void *)data.p);
    arena_free(&a);

    int64_t first = o.epoch;
    broker_registrar_register(g, on_registered, &o); /* ours already */
    sim_executor_drain(sim->e);
    assert_int_equal(o.epoch, first);
    embedded_store_expire_session(sim->s);
    sim_executor_drain(sim->e);
    assert_int_equal(stat_of(sim->s, "/brokers/ids/1", &st), -ENOENT);
    broker_registrar_register(g, on_registered, &o);
    sim_executor_drain(sim->e);
    assert_int_equal(o.status, 0);
    assert_true(o.epoch > first);
    broker_registrar_free(g);
}

static void a_foreign_registration_is_waited_for(void **state)
{
    struct sim *sim = *state;
    struct outcome first = {0}, second = {0};
    struct store *other;
    assert_int_equal(embedded_store_attach(sim->s, &other), 0);
    struct broker_registrar *a = registrar(sim, other, 1, 9092);
    struct broker_registrar *b = registrar(sim, sim->s, 1, 9092);
    broker_registrar_register(a, on_registered, &first);
    sim_executor_drain(sim->e);
    broker_registrar_register(b, on_registered, &second);
    sim_executor_drain(sim->e);
    assert_int_equal(second.n, 0);
    sim_executor_advance(sim->e, 17999);
    assert_int_equal(second.n, 0);
    embedded_store_expire_session(other); /* the predecessor's session times out */
    sim_executor_drain(sim->e);
    assert_int_equal(second.n, 1);
    assert_int_equal(second.status, 0);
    assert_true(second.epoch > first.epoch);

    broker_registrar_register(a, on_registered, &first); /* held by a broker that stays */
    sim_executor_advance(sim->e, 18001);
    assert_int_equal(first.n, 2);
    assert_int_equal(first.status, -EEXIST);
    broker_registrar_free(a);
    broker_registrar_free(b);
    store_close(other);
}

static void two_brokers_cannot_have_one_endpoint(void **state)
{
    struct sim *sim = *state;
    struct outcome o = {0};
    struct broker_registrar *a = registrar(sim, sim->s, 1, 9092);
    struct broker_registrar *b = registrar(sim, sim->s, 2, 9092);
    struct broker_registrar *c = registrar(sim, sim->s, 2, 9093);
    broker_registrar_register(a, on_registered, &o);
    sim_executor_drain(sim->e);
    broker_registrar_register(b, on_registered, &o);
    sim_executor_drain(sim->e);
    assert_int_equal(o.status, -EADDRINUSE);
    broker_registrar_register(c, on_registered, &o);
    sim_executor_drain(sim->e);
    assert_int_equal(o.status, 0);
    broker_registrar_free(a);
    broker_registrar_free(b);
    broker_registrar_free(c);
}

/* Producer ids. */

struct block {
    int status;
    int64_t start;
    int32_t length;
};

static void on_block(void *arg, int status, int64_t start, int32_t length)
{
    *(struct block *)arg = (struct block){status, start, length};
}

static void blocks_follow_one_another(void **state)
{
    struct sim *sim = *state;
    struct block b[4];
    for (int i = 0; i < 4; i++) /* at once: they conflict and are tried again */
        producer_ids_allocate(sim->s, sim->ex, i, on_block, &b[i]);
    sim_executor_drain(sim->e);
    bool seen[4] = {false};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(b[i].status, 0);
        assert_int_equal(b[i].length, 1000);
        seen[b[i].start / 1000] = true;
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
    assert_int_equal(del(sim->s, PATH_PRODUCER_IDS, -1), 0); /* not even the node is there */
    producer_ids_allocate(sim->s, sim->ex, 0, on_block, &b[0]);
    sim_executor_drain(sim->e);
    assert_int_equal(b[0].start, 0);
    set(sim->s, PATH_PRODUCER_IDS,
        "{\"version\":1,\"broker\":0,\"block_start\":\"9223372036854774000\","
        "\"block_end\":\"9223372036854774999\"}",
        -1);
    producer_ids_allocate(sim->s, sim->ex, 0, on_block, &b[0]);
    sim_executor_drain(sim->e);
    assert_int_equal(b[0].status, -ERANGE);
    set(sim->s, PATH_PRODUCER_IDS, "nonsense", -1);
    producer_ids_allocate(sim->s, sim->ex, 0, on_block, &b[0]);
    sim_executor_drain(sim->e);
    assert_int_equal(b[0].status, -EBADMSG);
    set(sim->s, PATH_PRODUCER_IDS, "", -1); /* no more than that: ids may be in use */
    producer_ids_allocate(sim->s, sim->ex, 0, on_block, &b[0]);
    sim_executor_drain(sim->e);
    assert_int_equal(b[0].status, -EBADMSG);
}

struct supply {
    int asked;
    int refuse;
    producer_ids_cb cb;
    void *cb_arg;
};

static int supply_ask(void *arg, producer_ids_cb cb, void *cb_arg)
{
    struct supply *s = arg;
    s->asked++;
    s->cb = cb;
    s->cb_arg = cb_arg;
    return s->refuse;
}

static void ids_are_fetched_when_needed_and_ahead_at_90_percent(void **state)
{
    struct sim *sim = *state;
    struct supply s = {0};
    struct producer_ids *p;
    struct producer_ids_options o = {.ex = sim->ex, .allocate = supply_ask, .arg = &s};
    int64_t id;
    assert_int_equal(producer_ids_new(&o, &p), 0);
    sim_executor_drain(sim->e);
    assert_int_equal(s.asked, 0); /* nothing at start */
    assert_int_equal(producer_ids_next(p, &id), -EAGAIN);
    assert_int_equal(producer_ids_next(p, &id), -EAGAIN);
    sim_executor_drain(sim->e);
    assert_int_equal(s.asked, 1); /* one at a time */
    s.cb(s.cb_arg, 0, 5000, 1000);
    for (int i = 0; i < 900; i++) {
        assert_int_equal(producer_ids_next(p, &id), 0);
        assert_int_equal(id, 5000 + i);
    }
    sim_executor_drain(sim->e);
    assert_int_equal(s.asked, 1);
    assert_int_equal(producer_ids_next(p, &id), 0); /* 5900 */
    sim_executor_drain(sim->e);
    assert_int_equal(s.asked, 2);
    s.cb(s.cb_arg, -EIO, 0, 0);
    assert_int_equal(producer_ids_next(p, &id), 0);
    sim_executor_drain(sim->e);
    assert_int_equal(s.asked, 2); /* pause */
    sim_executor_advance(sim->e, 50);
    assert_int_equal(producer_ids_next(p, &id), 0);
    sim_executor_drain(sim->e);
    assert_int_equal(s.asked, 3);
    s.cb(s.cb_arg, 0, 5500, 1000); /* overlaps: not taken */
    sim_executor_advance(sim->e, 50);
    assert_int_equal(producer_ids_next(p, &id), 0);
    sim_executor_drain(sim->e);
    assert_int_equal(s.asked, 4);
    s.cb(s.cb_arg, 0, 8000, 1000);
    for (int64_t want = 5904; want < 6000; want++) {
        assert_int_equal(producer_ids_next(p, &id), 0);
        assert_int_equal(id, want);
    }
    assert_int_equal(producer_ids_next(p, &id), 0);
    assert_int_equal(id, 8000);
    sim_executor_drain(sim->e);
    assert_int_equal(s.asked, 4);
    producer_ids_free(p);
}

/* Topic settings. */

struct changes {
    char paths[8][32];
    int n;
};

static void on_change(void *arg, struct str path)
{
    struct changes *c = arg;
    assert_true(c->n < 8);
    snprintf(c->paths[c->n++], 32, "%.*s", STR_ARG(path));
}

static struct topic_configs *follow(struct sim *sim, struct changes *c)
{
    struct topic_configs *t;
    struct topic_configs_options o = {
        .store = sim->s, .ex = sim->ex, .clock = &sim->clock.clock, .changed = on_change, .arg = c};
    assert_int_equal(topic_configs_open(&o, &t), 0);
    topic_configs_follow(t, cache);
    sim_executor_drain(sim->e);
    return t;
}

static void become_controller(struct sim *sim)
{
    assert_int_equal(create(sim->s, "/controller", "{\"version\":2,\"brokerid\":1}", 0), 0);
}

static void on_written(void *arg, enum kerr error)
{
    *(int *)arg = error;
}

static int write_config(struct sim *sim, const char *path, const char *name, const char *value)
{
    struct config_pair p = {str_of(name), str_of(value)};
    int result = -99;
    assert_int_equal(config_write(sim->s, sim->ex, str_of(path), (struct config_list){&p, 1},
                                  on_written, &result),
                     0);
    sim_executor_drain(sim->e);
    return result;
}

static bool overrides(struct topic_configs *t, const char *topic, const char *name,
                      const char *value)
{
    const struct topic_overrides *o = topic_configs_get(t, str_of(topic));
    bool same = str_eq(topic_overrides_value(o, str_of(name)), str_of(value));
    topic_overrides_unref(o);
    return same;
}

static void overrides_are_read_at_start_and_on_notices(void **state)
{
    struct sim *sim = *state;
    struct changes c = {.n = 0};
    become_controller(sim);
    create(sim->s, "/config/topics/a", "{\"version\":1,\"config\":{\"k\":\"1\"}}", 0);
    create(sim->s, "/config/topics/b", "{\"version\":1,\"config\":{}}", 0);
    create(sim->s, "/config/topics/bad", "oops", 0);
    struct topic_configs *t = follow(sim, &c);
    assert_int_equal(c.n, 0);
    assert_true(overrides(t, "a", "k", "1"));
    assert_true(overrides(t, "a", "other", NULL));
    assert_null(topic_configs_get(t, STR_LIT("b")));
    assert_null(topic_configs_get(t, STR_LIT("bad")));
    assert_int_equal(write_config(sim, "topics/a", "k", "2"), 0);
    assert_int_equal(write_config(sim, "topics/new", "k", "3"), 0);
    assert_int_equal(write_config(sim, "users/u/clients/c", "q", "4"), 0);
    assert_int_equal(c.n, 3);
    assert_string_equal(c.paths[0], "topics/a");
    assert_string_equal(c.paths[1], "topics/new");
    assert_string_equal(c.paths[2], "users/u/clients/c");
    assert_true(overrides(t, "a", "k", "2"));
    assert_true(overrides(t, "new", "k", "3"));
    assert_true(
        holds(sim->s, "/config/users/u/clients/c", "{\"version\":1,\"config\":{\"q\":\"4\"}}"));
    del(sim->s, "/config/topics/a", -1);
    assert_int_equal(topic_configs_refresh(t, STR_LIT("a")), 0);
    assert_null(topic_configs_get(t, STR_LIT("a")));
    topic_configs_close(t);
}

static void notices_are_told_again_after_a_start_and_removed_when_old(void **state)
{
    struct sim *sim = *state;
    struct changes c = {.n = 0};
    struct store_stat st;
    become_controller(sim);
    assert_int_equal(write_config(sim, "topics/a", "k", "1"), 0);
    assert_int_equal(write_config(sim, "topics/a", "k", "2"), 0);
    create(sim->s, "/config/changes/config_change_", "nonsense", STORE_SEQUENTIAL);
    create(sim->s, "/config/changes/other", "not one", 0);
    struct topic_configs *t = follow(sim, &c);
    assert_int_equal(c.n, 1); /* two notices of one entity */
    sim_executor_advance(sim->e, 15 * 60 * 1000);
    assert_int_equal(write_config(sim, "topics/b", "k", "1"), 0);
    assert_int_equal(c.n, 2);
    assert_int_equal(stat_of(sim->s, "/config/changes/config_change_0000000000", &st), -ENOENT);
    assert_int_equal(stat_of(sim->s, "/config/changes/config_change_0000000001", &st), -ENOENT);
    assert_int_equal(stat_of(sim->s, "/config/changes", &st), 0);
    assert_int_equal(st.children_n, 2); /* the new one and the foreign one */
    embedded_store_expire_session(sim->s);
    sim_executor_drain(sim->e);
    assert_int_equal(c.n, 2); /* listed again, nothing new */
    assert_int_equal(write_config(sim, "topics/b", "k", "2"), 0);
    assert_int_equal(c.n, 3);
    topic_configs_close(t);
}

/* Whenever the session ends, what was changed is known in the end, and told. */
static void a_change_outlives_the_end_of_the_session(void **state)
{
    struct sim *sim = *state;
    char value[16];
    become_controller(sim);
    assert_int_equal(write_config(sim, "topics/a", "k", "0"), 0);
    bool gone = false;
    for (int at = 0; !gone; at++) {
        struct changes c = {.n = 0};
        struct topic_configs *t = follow(sim, &c);
        int result = -99, steps = 0;
        snprintf(value, sizeof(value), "%d", at + 1);
        struct config_pair p = {STR_LIT("k"), str_of(value)};
        c.n = 0;
        assert_int_equal(config_write(sim->s, sim->ex, STR_LIT("topics/a"),
                                      (struct config_list){&p, 1}, on_written, &result),
                         0);
        while (result == -99)
            assert_true(sim_executor_step(sim->e));
        assert_int_equal(result, 0);
        while (steps < at && sim_executor_step(sim->e))
            steps++;
        gone = steps < at; /* all was over before */
        embedded_store_expire_session(sim->s);
        sim_executor_drain(sim->e);
        if (!overrides(t, "a", "k", value) || c.n != 1)
            fail_msg("session ends after %d steps: told %d times", at, c.n);
        topic_configs_close(t);
        sim_executor_drain(sim->e);
    }
}

static void tell_of_topic(struct str name, int32_t leader)
{
    struct update_metadata_request r;
    struct update_metadata_request_topic_state t = {.topic_name = name};
    struct update_metadata_request_partition_state p = {.leader = leader};
    int32_t replica = 0;
    update_metadata_request_init(&r);
    r.topic_states.v = &t;
    r.topic_states.n = 1;
    t.partition_states.v = &p;
    t.partition_states.n = 1;
    p.replicas.v = &replica;
    p.replicas.n = 1;
    assert_int_equal(metadata_cache_update(cache, &r), 0);
}

static void overrides_of_topics_long_gone_are_dropped(void **state)
{
    struct sim *sim = *state;
    struct changes c = {.n = 0};
    create(sim->s, "/config/topics/here", "{\"version\":1,\"config\":{\"k\":\"1\"}}", 0);
    create(sim->s, "/config/topics/gone", "{\"version\":1,\"config\":{\"k\":\"1\"}}", 0);
    struct topic_configs *t = follow(sim, &c);
    tell_of_topic(STR_LIT("here"), 0);
    sim_executor_advance(sim->e, 60000);
    assert_true(overrides(t, "gone", "k", "1")); /* perhaps only new */
    tell_of_topic(STR_LIT("gone"), 0);
    sim_executor_advance(sim->e, 60000);
    tell_of_topic(STR_LIT("gone"), -2);
    sim_executor_advance(sim->e, 60000);
    assert_true(overrides(t, "gone", "k", "1"));
    const struct topic_overrides *kept = topic_configs_get(t, STR_LIT("gone"));
    sim_executor_advance(sim->e, 60000);
    assert_null(topic_configs_get(t, STR_LIT("gone")));
    assert_true(overrides(t, "here", "k", "1"));
    assert_true(str_eqz(topic_overrides_value(kept, STR_LIT("k")), "1"));
    topic_overrides_unref(kept);
    topic_configs_close(t);
}

static void configs_are_written_only_under_a_controller(void **state)
{
    struct sim *sim = *state;
    struct store_stat st;
    assert_int_equal(write_config(sim, "topics/a", "k", "1"), KERR_STALE_CONTROLLER_EPOCH);
    create(sim->s, "/controller", "{\"version\":2,\"brokerid\":3000,\"kraftControllerEpoch\":5}",
           0);
    assert_int_equal(write_config(sim, "topics/a", "k", "1"), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(stat_of(sim->s, "/config/topics/a", &st), -ENOENT);
    assert_int_equal(stat_of(sim->s, "/config/changes", &st), 0);
    assert_int_equal(st.children_n, 0);
}

#define sim_test(f) cmocka_unit_test_setup_teardown(f, sim_start, sim_stop)

UNIT_MAIN(sim_test(start_nodes_are_made_once),
          sim_test(steps_run_in_order_with_answers_calls_and_waits),
          sim_test(failure_ends_the_caller_as_well),
          sim_test(a_broker_registers_and_again_after_an_expiry),
          sim_test(a_foreign_registration_is_waited_for),
          sim_test(two_brokers_cannot_have_one_endpoint), sim_test(blocks_follow_one_another),
          sim_test(ids_are_fetched_when_needed_and_ahead_at_90_percent),
          sim_test(overrides_are_read_at_start_and_on_notices),
          sim_test(notices_are_told_again_after_a_start_and_removed_when_old),
          sim_test(a_change_outlives_the_end_of_the_session),
          sim_test(overrides_of_topics_long_gone_are_dropped),
          sim_test(configs_are_written_only_under_a_controller))
