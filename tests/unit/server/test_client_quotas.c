/* Client quotas: which one holds, what is counted together, how long a client is held back. */
#include "server/client_quotas.h"

#include <math.h>
#include <stdio.h>

#include "unit.h"

static const struct rate_window kafka = {.samples = 11, .sample_ms = 1000};

struct world {
    struct client_quotas *q;
    struct arena mem;
};

static int setup(void **state)
{
    static struct world w;
    arena_init(&w.mem, 0);
    w.q = client_quotas_new(kafka);
    *state = &w;
    return w.q ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *w = *state;
    client_quotas_free(w->q);
    arena_free(&w->mem);
    return 0;
}

/* One key at a path; value NULL removes all. */
static void set(struct world *w, const char *path, const char *key, const char *value)
{
    struct quota_entity e;
    struct config_pair pair = {str_of(key), str_of(value)};
    assert_true(quota_entity_parse(str_of(path), &w->mem, &e));
    assert_int_equal(client_quotas_set(w->q, &e, (struct config_list){&pair, value ? 1 : 0}), 0);
}

static int64_t produce(struct world *w, const char *user, const char *client, double bytes,
                       int64_t now)
{
    return client_quotas_record(w->q, QUOTA_PRODUCE, str_of(user), str_of(client), bytes, now);
}

static double limit(struct world *w, const char *user, const char *client)
{
    return client_quotas_burst(w->q, QUOTA_PRODUCE, str_of(user), str_of(client)) / 10;
}

struct looked {
    int n;
    double rate;
    int64_t throttle_ms;
    bool user, client;
};

static void take_look(void *arg, struct str user, struct str client, double rate, int64_t ms)
{
    struct looked *l = arg;
    l->n++;
    l->rate += rate;
    l->throttle_ms += ms;
    l->user |= !str_is_null(user);
    l->client |= !str_is_null(client);
}

static struct looked look(struct world *w, enum quota_kind kind, int64_t now)
{
    struct looked l = {0};
    client_quotas_each(w->q, kind, now, take_look, &l);
    return l;
}

static void counters_can_be_looked_at(void **state)
{
    struct world *w = *state;
    assert_int_equal(look(w, QUOTA_PRODUCE, 0).n, 0);
    set(w, "users/alice", "producer_byte_rate", "100");
    assert_int_equal(produce(w, "alice", "a", 500, 1000), 0);
    struct looked l = look(w, QUOTA_PRODUCE, 1000);
    assert_int_equal(l.n, 1);
    assert_true(l.rate > 0 && l.throttle_ms == 0);
    assert_true(l.user && !l.client); /* her clients share it */
    int64_t ms = produce(w, "alice", "b", 1500, 1000);
    l = look(w, QUOTA_PRODUCE, 1000);
    assert_int_equal(l.n, 1);
    assert_true(ms > 0 && l.throttle_ms == ms);
    assert_int_equal(look(w, QUOTA_FETCH, 1000).n, 0);
    assert_int_equal(look(w, QUOTA_PRODUCE, 100000).n, 0); /* forgotten */
}

/* quota.producer.default: of each client id by itself, below all that is set while running. */
static void the_files_default_is_the_last_resort(void **state)
{
    struct world *w = *state;
    assert_int_equal(client_quotas_set_default(w->q, QUOTA_PRODUCE, 1000), 0);
    assert_true(client_quotas_any(w->q, QUOTA_PRODUCE));
    assert_false(client_quotas_any(w->q, QUOTA_FETCH));
    assert_true(limit(w, "u", "c") == 1000);
    assert_true(produce(w, "u", "c", 1e6, 0) > 0);
    assert_int_equal(produce(w, "u", "other", 100, 0), 0);
    set(w, "clients/c", "producer_byte_rate", "5000");
    assert_true(limit(w, "u", "c") == 5000);
    assert_true(limit(w, "u", "other") == 1000);
    set(w, "users/u", "producer_byte_rate", "7000");
    assert_true(limit(w, "u", "other") == 7000);
    set(w, "users/u", "producer_byte_rate", NULL);
    set(w, "clients/c", "producer_byte_rate", NULL);
    assert_true(limit(w, "u", "c") == 1000); /* it stays */
}

static void without_quotas_nothing_is_counted(void **state)
{
    struct world *w = *state;
    assert_false(client_quotas_any(w->q, QUOTA_PRODUCE));
    assert_int_equal(produce(w, "u", "c", 1e12, 0), 0);
    assert_int_equal(client_quotas_counters(w->q, QUOTA_PRODUCE), 0);
    assert_true(isinf(limit(w, "u", "c")));
}

/* Each step sets one that comes before all set so far. */
static void the_nearest_quota_holds(void **state)
{
    struct world *w = *state;
    static const char *const paths[] = {
        "clients/<default>",         "clients/c",
        "users/<default>",           "users/<default>/clients/<default>",
        "users/<default>/clients/c", "users/u",
        "users/u/clients/<default>", "users/u/clients/c"};
    char value[16];
    for (int i = 0; i < 8; i++) {
        snprintf(value, sizeof(value), "%d", 100 + i);
        set(w, paths[i], "producer_byte_rate", value);
        assert_true(limit(w, "u", "c") == 100 + i);
    }
    for (int i = 7; i >= 0; i--) { /* and gone again */
        assert_true(limit(w, "u", "c") == 100 + i);
        set(w, paths[i], "producer_byte_rate", NULL);
    }
    assert_true(isinf(limit(w, "u", "c")));
    assert_false(client_quotas_any(w->q, QUOTA_PRODUCE));
}

/* The nearest entity that sets the kind asked for, not the nearest one of all. */
static void kinds_are_looked_up_one_by_one(void **state)
{
    struct world *w = *state;
    set(w, "users/u", "producer_byte_rate", "100");
    set(w, "users/u/clients/c", "consumer_byte_rate", "5");
    assert_true(limit(w, "u", "c") == 100);
    assert_true(client_quotas_burst(w->q, QUOTA_FETCH, STR_LIT("u"), STR_LIT("c")) == 50);
    assert_true(isinf(client_quotas_burst(w->q, QUOTA_FETCH, STR_LIT("u"), STR_LIT("d"))));
}

/* The example of Kafka's documents: 1000 a second, a burst of 21000. */
static void a_burst_is_held_back_until_the_rate_fits(void **state)
{
    struct world *w = *state;
    set(w, "clients/c", "producer_byte_rate", "1000");
    assert_int_equal(produce(w, "u", "c", 21000, 5000), 11000);
    assert_int_equal(produce(w, "u", "d", 21000, 5000), 0); /* another client */
    assert_int_equal(produce(w, "u", "c", 0, 16000), 0);
}

static void what_is_within_the_quota_is_not_held_back(void **state)
{
    struct world *w = *state;
    set(w, "clients/c", "producer_byte_rate", "1000");
    for (int64_t t = 0; t < 60000; t += 500)
        assert_int_equal(produce(w, "u", "c", 450, t), 0);
}

/* Whose bytes add up: 9000 of 10000 free by one, then 2000 by another. */
static bool share(struct world *w, const char *path, const char *u2, const char *c2)
{
    set(w, path, "producer_byte_rate", "1000");
    int64_t first = produce(w, "u1", "c1", 9000, 0);
    int64_t second = produce(w, u2, c2, 2000, 0);
    set(w, path, "producer_byte_rate", NULL); /* forgets what was counted, too */
    assert_int_equal(first, 0);
    return second > 0;
}

static void counters_are_shared_as_the_quota_says(void **state)
{
    struct world *w = *state;
    assert_false(share(w, "users/<default>/clients/<default>", "u1", "c2"));
    assert_false(share(w, "users/<default>/clients/<default>", "u2", "c1"));
    assert_true(share(w, "users/<default>/clients/<default>", "u1", "c1"));
    assert_true(share(w, "users/<default>", "u1", "c2"));
    assert_false(share(w, "users/<default>", "u2", "c1"));
    assert_true(share(w, "users/u1", "u1", "c2"));
    assert_true(share(w, "clients/<default>", "u2", "c1"));
    assert_false(share(w, "clients/<default>", "u1", "c2"));
    assert_true(share(w, "clients/c1", "u2", "c1"));
    assert_false(share(w, "users/u1/clients/<default>", "u1", "c2"));
    assert_true(share(w, "users/<default>/clients/c1", "u1", "c1"));
    assert_false(share(w, "users/<default>/clients/c1", "u2", "c1"));
}

static void a_changed_quota_holds_at_once_for_what_was_counted(void **state)
{
    struct world *w = *state;
    set(w, "clients/c", "producer_byte_rate", "1000");
    assert_int_equal(produce(w, "u", "c", 9000, 0), 0);
    set(w, "clients/c", "producer_byte_rate", "100");
    assert_true(produce(w, "u", "c", 0, 0) > 0);
    set(w, "clients/c", "producer_byte_rate", "5000");
    assert_int_equal(produce(w, "u", "c", 0, 0), 0);
}

static void time_is_never_held_back_longer_than_a_sample(void **state)
{
    struct world *w = *state;
    set(w, "users/<default>", "request_percentage", "1.5");
    struct str u = STR_LIT("u"), c = STR_LIT("c");
    assert_int_equal(client_quotas_record(w->q, QUOTA_REQUEST, u, c, 14, 0), 0);
    assert_int_equal(client_quotas_record(w->q, QUOTA_REQUEST, u, c, 1000, 0), 1000);
    assert_int_equal(produce(w, "u", "c", 1e9, 0), 0);
}

static int64_t fetch(struct world *w, double bytes, int64_t now, bool *empty)
{
    return client_quotas_record_fetch(w->q, STR_LIT("u"), STR_LIT("c"), bytes, now, empty);
}

static void a_fetch_beyond_the_quota_is_empty_and_not_counted(void **state)
{
    struct world *w = *state;
    bool empty;
    set(w, "clients/c", "consumer_byte_rate", "1000");
    assert_int_equal(fetch(w, 8000, 0, &empty), 0);
    assert_false(empty);
    assert_int_equal(fetch(w, 4000, 0, &empty), 2000);
    assert_true(empty);
    assert_int_equal(fetch(w, 2000, 0, &empty), 0); /* as if the 4000 had never been */
    assert_false(empty);
    assert_true(fetch(w, 4000, 11500, &empty) == 0);
}

/* A quota of 100 bytes a second, and batches of 10 KB: each comes, and its time is served. */
static void a_batch_larger_than_the_whole_window_gets_through(void **state)
{
    struct world *w = *state;
    bool empty;
    set(w, "clients/c", "consumer_byte_rate", "100");
    int64_t now = 0;
    for (int i = 0; i < 5; i++) {
        int64_t ms = fetch(w, 10240, now, &empty);
        assert_false(empty);
        assert_true(ms > 10000);
        assert_true(fetch(w, 10240, now, &empty) > 0); /* another connection of the same client */
        assert_true(empty);
        now += ms;
    }
}

static void an_oversized_batch_waits_for_what_was_sent_before(void **state)
{
    struct world *w = *state;
    bool empty;
    set(w, "clients/c", "consumer_byte_rate", "100");
    assert_true(fetch(w, 2000, 0, &empty) > 0);
    assert_false(empty);
    assert_true(fetch(w, 2000, 5000, &empty) > 0);
    assert_true(empty);
    assert_true(fetch(w, 2000, 20000, &empty) > 0);
    assert_false(empty);
}

static void unrecord_takes_back(void **state)
{
    struct world *w = *state;
    set(w, "clients/c", "producer_byte_rate", "1000");
    assert_true(produce(w, "u", "c", 50000, 0) > 0);
    client_quotas_unrecord(w->q, QUOTA_PRODUCE, STR_LIT("u"), STR_LIT("c"), 50000, 0);
    assert_int_equal(produce(w, "u", "c", 0, 0), 0);
}

static void idle_counters_are_dropped(void **state)
{
    struct world *w = *state;
    char name[16];
    set(w, "clients/<default>", "producer_byte_rate", "1000");
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        produce(w, "u", name, 10, i * 10); /* 100 a second */
        assert_true(client_quotas_counters(w->q, QUOTA_PRODUCE) <= 1201);
    }
}

static void values_that_are_no_rates_hold_nobody_back(void **state)
{
    struct world *w = *state;
    static const char *const bad[] = {"0", "-5", "many", "12x", "nan"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        set(w, "clients/c", "producer_byte_rate", bad[i]);
        assert_true(isinf(limit(w, "u", "c")));
    }
    set(w, "clients/c", "SCRAM-SHA-256", "salt=...");
    assert_true(isinf(limit(w, "u", "c")));
}

static void an_empty_client_id_has_the_default(void **state)
{
    struct world *w = *state;
    set(w, "clients/<default>", "producer_byte_rate", "1000");
    assert_true(limit(w, "u", "") == 1000);
    assert_true(produce(w, "u", "", 20000, 0) > 0);
}

#define in_world(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* controller_mutation_rate: a bucket of rate * window; strict requests are refused while some are
 * owed, others never. */
static void topic_changes_have_a_bucket(void **state)
{
    struct world *w = *state;
    struct str u = STR_LIT("u"), c = STR_LIT("c");
    bool refused;
    assert_int_equal(client_quotas_mutate(w->q, u, c, 1e6, true, 0, &refused), 0);
    assert_false(refused); /* no quota */
    client_quotas_set_mutation_window(w->q, (struct rate_window){10, 1000});
    set(w, "users/u", "controller_mutation_rate", "2"); /* 20 at once */
    assert_int_equal(client_quotas_mutate(w->q, u, c, 20, true, 0, &refused), 0);
    assert_int_equal(client_quotas_mutate(w->q, u, c, 10, true, 0, &refused), 0);
    assert_false(refused); /* none was owed; now 10 are */
    assert_int_equal(client_quotas_mutate(w->q, u, c, 1, true, 1000, &refused), 4000);
    assert_true(refused);
    assert_int_equal(client_quotas_mutate(w->q, u, c, 1, true, 1000, &refused),
                     4000); /* uncounted */
    assert_int_equal(client_quotas_mutate(w->q, u, c, 2, false, 1000, &refused), 5000);
    assert_false(refused);
    assert_int_equal(client_quotas_mutate(w->q, STR_LIT("v"), c, 99, true, 1000, &refused), 0);
    assert_int_equal(client_quotas_mutate(w->q, u, c, 1, true, 6000, &refused), 0);
    assert_false(refused);
    /* what is owed is not forgotten with the window */
    client_quotas_mutate(w->q, u, c, 200, false, 10000, &refused);
    assert_true(client_quotas_mutate(w->q, u, c, 1, true, 60000, &refused) > 0);
    assert_true(refused);
    assert_int_equal(client_quotas_counters(w->q, QUOTA_MUTATION), 1);
}

UNIT_MAIN(in_world(counters_can_be_looked_at), in_world(topic_changes_have_a_bucket),
          in_world(without_quotas_nothing_is_counted),
          in_world(the_files_default_is_the_last_resort), in_world(the_nearest_quota_holds),
          in_world(kinds_are_looked_up_one_by_one),
          in_world(a_burst_is_held_back_until_the_rate_fits),
          in_world(what_is_within_the_quota_is_not_held_back),
          in_world(counters_are_shared_as_the_quota_says),
          in_world(a_changed_quota_holds_at_once_for_what_was_counted),
          in_world(time_is_never_held_back_longer_than_a_sample),
          in_world(a_fetch_beyond_the_quota_is_empty_and_not_counted),
          in_world(a_batch_larger_than_the_whole_window_gets_through),
          in_world(an_oversized_batch_waits_for_what_was_sent_before),
          in_world(unrecord_takes_back), in_world(idle_counters_are_dropped),
          in_world(values_that_are_no_rates_hold_nobody_back),
          in_world(an_empty_client_id_has_the_default))
