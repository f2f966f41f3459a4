/* Creating, deleting and growing topics: every check with its code, what is written, calls that
 * race, and the same at 10,000 partitions. */
#include "base/logline.h"
#include "base/sim_executor.h"
#include "controller/topic_admin.h"
#include "controller/topic_names.h"
#include "metadata/bootstrap.h"
#include "protocol/msg/update_metadata.h"

#include "metadata/store_test.h"

struct world {
    struct sim_clock clock;
    struct sim_executor *e;
    struct executor *ex;
    struct store *s;
    struct metadata_cache *cache;
    struct topic_admin *admin;
    struct arena arena;
    int32_t default_partitions;
    int16_t default_replication;
};

static char *check_config(void *arg, struct str name, struct str value)
{
    return str_eqz(name, "good") ? NULL : strdup("no such setting");
}

static int32_t default_partitions(void *arg)
{
    return ((struct world *)arg)->default_partitions;
}

static int16_t default_replication(void *arg)
{
    return ((struct world *)arg)->default_replication;
}

/* UpdateMetadata with brokers 0..n-1 (racks: one letter each, '-' none) and one partition of a
 * topic. */
static void tell(struct world *w, int brokers, const char *racks, const char *topic, int32_t leader)
{
    struct update_metadata_request r;
    update_metadata_request_init(&r);
    r.controller_id = 0;
    r.live_brokers.v = update_metadata_request_live_broker_new(&w->arena, brokers);
    r.live_brokers.n = brokers;
    for (int i = 0; i < brokers; i++) {
        r.live_brokers.v[i].id = i;
        r.live_brokers.v[i].rack = racks && racks[i] != '-' ? (struct str){racks + i, 1} : STR_NULL;
    }
    if (topic) {
        static int32_t replica = 0;
        r.topic_states.v = update_metadata_request_topic_state_new(&w->arena, 1);
        r.topic_states.n = 1;
        r.topic_states.v[0].topic_name = str_of(topic);
        r.topic_states.v[0].partition_states.v =
            update_metadata_request_partition_state_new(&w->arena, 1);
        r.topic_states.v[0].partition_states.n = 1;
        r.topic_states.v[0].partition_states.v[0].leader = leader;
        r.topic_states.v[0].partition_states.v[0].replicas.v = &replica;
        r.topic_states.v[0].partition_states.v[0].replicas.n = 1;
    }
    assert_int_equal(metadata_cache_update(w->cache, &r), 0);
}

static int world_start(void **state)
{
    static struct world world;
    struct world *w = &world;
    logline_set_level(LOGLINE_FATAL);
    sim_clock_init(&w->clock, 1700000000000);
    w->e = sim_executor_new(&w->clock);
    w->ex = sim_executor_ex(w->e);
    w->s = open_in_memory(w->ex);
    w->cache = metadata_cache_new();
    w->default_partitions = 4;
    w->default_replication = 2;
    arena_init(&w->arena, 0);
    assert_int_equal(bootstrap_paths(w->s), 0);
    assert_int_equal(create(w->s, "/controller", "{\"version\":2,\"brokerid\":0}", 0), 0);
    tell(w, 3, NULL, NULL, 0);
    struct topic_admin_options o = {.store = w->s,
                                    .metadata = w->cache,
                                    .ex = w->ex,
                                    .topic_ids = true,
                                    .check_config = check_config,
                                    .default_partitions = default_partitions,
                                    .default_replication = default_replication,
                                    .arg = w,
                                    .seed = 5};
    assert_int_equal(topic_admin_new(&o, &w->admin), 0);
    *state = w;
    return 0;
}

static int world_stop(void **state)
{
    struct world *w = *state;
    sim_executor_drain(w->e);
    topic_admin_free(w->admin);
    store_close(w->s);
    sim_executor_drain(w->e);
    sim_executor_free(w->e);
    metadata_cache_free(w->cache);
    arena_free(&w->arena);
    return 0;
}

static void on_done(void *arg)
{
    ++*(int *)arg;
}

static struct new_topic topic(const char *name, int32_t partitions, int16_t replication)
{
    return (struct new_topic){
        .name = str_of(name), .partitions = partitions, .replication = replication};
}

static void run_create(struct world *w, struct new_topic *t, int n, bool dry)
{
    int done = 0;
    topic_admin_create(w->admin, t, n, dry, w->ex, on_done, &done);
    assert_int_equal(done, 0);
    sim_executor_drain(w->e);
    assert_int_equal(done, 1);
}

/* The error of creating one topic; the message goes. */
static int created(struct world *w, struct new_topic t)
{
    run_create(w, &t, 1, false);
    assert_int_equal(t.message != NULL,
                     t.error != KERR_NONE && t.error != KERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(uuid_is_zero(t.id), t.error != KERR_NONE);
    free(t.message);
    return t.error;
}

static struct topic_node node_of(struct world *w, const char *name)
{
    char path[300];
    struct bytes data;
    struct topic_node node;
    snprintf(path, sizeof(path), "/brokers/topics/%s", name);
    assert_int_equal(store_get(w->s, path, &data, NULL), 0);
    assert_int_equal(znode_topic_decode(data, &w->arena, &node), 0);
    free((void *)data.p);
    return node;
}

static void a_topic_gets_its_nodes(void **state)
{
    struct world *w = *state;
    struct config_pair config = {STR_LIT("good"), STR_LIT("1")};
    struct new_topic t[2] = {topic("a", 5, 3), topic("b", -1, -1)};
    t[0].configs = &config;
    t[0].configs_n = 1;
    run_create(w, t, 2, false);
    assert_int_equal(t[0].error, 0);
    assert_int_equal(t[1].error, 0);
    assert_int_equal(t[1].made_partitions, 4);
    assert_int_equal(t[1].made_replication, 2);
    assert_false(uuid_eq(t[0].id, t[1].id));
    struct topic_node node = node_of(w, "a");
    assert_true(uuid_eq(node.id, t[0].id));
    assert_int_equal(node.partitions_n, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(node.partitions[i].replicas.n, 3);
    assert_true(holds(w->s, "/config/topics/a", "{\"version\":1,\"config\":{\"good\":\"1\"}}"));
    assert_true(holds(w->s, "/config/topics/b", "{\"version\":1,\"config\":{}}"));
    struct store_stat st;
    assert_int_equal(stat_of(w->s, "/config/changes", &st), 0);
    assert_int_equal(st.children_n, 0); /* no notice */
}

static void mistakes_have_their_codes(void **state)
{
    struct world *w = *state;
    char long_name[251];
    memset(long_name, 'x', 250);
    long_name[250] = 0;
    assert_int_equal(created(w, topic("__cluster_metadata", 1, 1)), KERR_INVALID_REQUEST);
    assert_int_equal(created(w, topic(long_name, 1, 1)), KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(created(w, topic("", 1, 1)), KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(created(w, topic("..", 1, 1)), KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(created(w, topic("a/b", 1, 1)), KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(
        created(w, (struct new_topic){.name = STR_NULL, .partitions = 1, .replication = 1}),
        KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(created(w, topic("t", 0, 1)), KERR_INVALID_PARTITIONS);
    assert_int_equal(created(w, topic("t", -2, 1)), KERR_INVALID_PARTITIONS);
    assert_int_equal(created(w, topic("t", INT32_MAX, 1)), KERR_INVALID_PARTITIONS);
    assert_int_equal(created(w, topic("t", 1, 0)), KERR_INVALID_REPLICATION_FACTOR);
    assert_int_equal(created(w, topic("t", 1, 4)), KERR_INVALID_REPLICATION_FACTOR);
    assert_int_equal(created(w, topic("t", 1, INT16_MAX)), KERR_INVALID_REPLICATION_FACTOR);
    struct config_pair null_value = {STR_LIT("good"), STR_NULL}, bad = {STR_LIT("x"), STR_LIT("1")};
    struct config_pair binary = {STR_LIT("good"), STR_LIT("\xff")};
    struct new_topic t = topic("t", 1, 1);
    t.configs_n = 1;
    t.configs = &null_value;
    assert_int_equal(created(w, t), KERR_INVALID_CONFIG);
    t.configs = &bad;
    assert_int_equal(created(w, t), KERR_INVALID_CONFIG);
    t.configs = &binary;
    assert_int_equal(created(w, t), KERR_INVALID_CONFIG);
    struct store_stat st;
    assert_int_equal(stat_of(w->s, "/brokers/topics", &st), 0);
    assert_int_equal(st.children_n, 0);
    long_name[249] = 0;
    assert_int_equal(created(w, topic(long_name, 1, 1)), 0);
}

static void what_exists_is_not_made_again(void **state)
{
    struct world *w = *state;
    assert_int_equal(created(w, topic("t", 1, 1)), 0);
    assert_int_equal(created(w, topic("t", 1, 1)), KERR_TOPIC_ALREADY_EXISTS); /* in the store */
    tell(w, 3, NULL, "u", 0);
    assert_int_equal(created(w, topic("u", 1, 1)), KERR_TOPIC_ALREADY_EXISTS); /* in the cache */
    create(w->s, "/admin/delete_topics/v", NULL, 0);
    assert_int_equal(created(w, topic("v", 1, 1)), KERR_TOPIC_ALREADY_EXISTS); /* being deleted */
    create(w->s, "/config/topics/x", "{\"version\":1,\"config\":{\"old\":\"1\"}}", 0);
    assert_int_equal(created(w, topic("x", 1, 1)), 0); /* left-over settings are replaced */
    assert_true(holds(w->s, "/config/topics/x", "{\"version\":1,\"config\":{}}"));
}

static void names_that_collide_are_refused(void **state)
{
    struct world *w = *state;
    assert_int_equal(created(w, topic("a.b", 1, 1)), 0);
    assert_int_equal(created(w, topic("a_b", 1, 1)), KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(created(w, topic("a-b", 1, 1)), 0);
    struct new_topic t[] = {topic("c.d.e", 1, 1), topic("c_d.e", 1, 1), topic("cde", 1, 1)};
    run_create(w, t, 3, false);
    assert_int_equal(t[0].error, 0);
    assert_int_equal(t[1].error, KERR_INVALID_TOPIC_EXCEPTION); /* with its neighbour */
    assert_int_equal(t[2].error, 0);
    free(t[1].message);
    store_delete_tree(w->s, "/brokers/topics/a.b"); /* as a controller would, elsewhere */
    assert_int_equal(created(w, topic("a_b", 1, 1)), 0);
    create(w->s, "/brokers/topics/x.y", "{\"version\":1,\"partitions\":{}}", 0);
    assert_int_equal(created(w, topic("x_y", 1, 1)), KERR_INVALID_TOPIC_EXCEPTION);
}

static void two_calls_at_once_do_not_both_win(void **state)
{
    struct world *w = *state;
    struct new_topic a = topic("t", 1, 1), b = topic("t", 1, 1), c = topic("x.y", 1, 1),
                     d = topic("x_y", 1, 1);
    int done = 0;
    topic_admin_create(w->admin, &a, 1, false, w->ex, on_done, &done);
    topic_admin_create(w->admin, &b, 1, false, w->ex, on_done, &done);
    topic_admin_create(w->admin, &c, 1, false, w->ex, on_done, &done);
    topic_admin_create(w->admin, &d, 1, false, w->ex, on_done, &done);
    sim_executor_drain(w->e);
    assert_int_equal(done, 4);
    assert_int_equal(a.error, 0);
    assert_int_equal(b.error, KERR_TOPIC_ALREADY_EXISTS);
    assert_int_equal(c.error, 0);
    assert_int_equal(d.error, KERR_INVALID_TOPIC_EXCEPTION);
    free(b.message);
    free(d.message);
}

static void a_dry_run_checks_all_and_writes_nothing(void **state)
{
    struct world *w = *state;
    struct store_stat st;
    struct new_topic t[] = {topic("a.b", 2, 2), topic("a_b", 1, 1), topic("c", 1, 9)};
    run_create(w, t, 3, true);
    assert_int_equal(t[0].error, 0);
    assert_true(uuid_is_zero(t[0].id));
    assert_int_equal(t[0].made_partitions, 2);
    assert_int_equal(t[1].error, KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(t[2].error, KERR_INVALID_REPLICATION_FACTOR);
    free(t[1].message);
    free(t[2].message);
    stat_of(w->s, "/brokers/topics", &st);
    assert_int_equal(st.children_n, 0);
    stat_of(w->s, "/config/topics", &st);
    assert_int_equal(st.children_n, 0);
    assert_int_equal(created(w, topic("a_b", 1, 1)), 0); /* the name was let go of */
}

static int created_manually(struct world *w, const char *name, const struct manual_assignment *m,
                            int n)
{
    struct new_topic t = topic(name, -1, -1);
    t.assignments = m;
    t.assignments_n = n;
    return created(w, t);
}

static void assignments_by_hand(void **state)
{
    struct world *w = *state;
    static const int32_t two[] = {7, 1}, three[] = {0, 1, 2}, twice[] = {1, 1};
    struct manual_assignment good[] = {{1, two, 2}, {0, three, 2}};
    struct manual_assignment gap[] = {{0, two, 2}, {2, two, 2}},
                             same[] = {{0, two, 2}, {0, two, 2}},
                             uneven[] = {{0, two, 2}, {1, three, 3}}, dup[] = {{0, twice, 2}},
                             none[] = {{0, two, 0}};
    assert_int_equal(created_manually(w, "t", good, 2), 0);
    struct topic_node node = node_of(w, "t");
    assert_int_equal(node.partitions_n, 2);
    assert_int_equal(node.partitions[1].replicas.v[0], 7); /* a broker that is down is fine */
    assert_int_equal(created_manually(w, "u", gap, 2), KERR_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(created_manually(w, "u", same, 2), KERR_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(created_manually(w, "u", uneven, 2), KERR_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(created_manually(w, "u", dup, 1), KERR_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(created_manually(w, "u", none, 1), KERR_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(created_manually(w, "u", good, 0), KERR_INVALID_REPLICA_ASSIGNMENT);
    struct new_topic both = topic("u", 2, -1);
    both.assignments = good;
    both.assignments_n = 2;
    assert_int_equal(created(w, both), KERR_INVALID_REQUEST);
}

static void racks_are_for_all_or_for_nobody(void **state)
{
    struct world *w = *state;
    tell(w, 3, "a-b", NULL, 0);
    struct new_topic refused = topic("t", 1, 1);
    run_create(w, &refused, 1, false);
    assert_int_equal(refused.error, KERR_UNKNOWN_SERVER_ERROR);
    assert_non_null(strstr(refused.message, "rack"));
    free(refused.message);
    struct new_topic automatic = topic("u", 3, 2);
    automatic.any_racks = true;
    assert_int_equal(created(w, automatic), 0);
    tell(w, 3, "aab", NULL, 0);
    assert_int_equal(created(w, topic("v", 20, 2)), 0);
    struct topic_node node = node_of(w, "v");
    for (int i = 0; i < 20; i++) /* rack b in each */
        assert_true(id_list_has(node.partitions[i].replicas, 2));
}

static void without_a_controller_nothing_is_made(void **state)
{
    struct world *w = *state;
    struct store_stat st;
    del(w->s, "/controller", -1);
    assert_int_equal(created(w, topic("t", 1, 1)), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(stat_of(w->s, "/config/topics/t", &st), -ENOENT);
}

/* A hook in the middle of a call: between its reads and its write something changes. */
static void a_change_in_between_is_noticed(void **state)
{
    struct world *w = *state;
    struct new_topic t = topic("t", 1, 1);
    int done = 0;
    topic_admin_create(w->admin, &t, 1, false, w->ex, on_done, &done);
    sim_executor_step(w->e); /* asks */
    sim_executor_step(w->e); /* the store answers */
    set(w->s, "/controller", "{\"version\":2,\"brokerid\":1}", -1);
    create(w->s, "/config/topics/t", NULL, 0);
    sim_executor_drain(w->e);
    assert_int_equal(done, 1);
    assert_int_equal(t.error, 0);
    assert_true(holds(w->s, "/config/topics/t", "{\"version\":1,\"config\":{}}"));
}

static void a_missing_base_path_ends_the_call(void **state)
{
    struct world *w = *state;
    store_delete_tree(w->s, "/config/topics");
    assert_int_equal(created(w, topic("t", 1, 1)), KERR_UNKNOWN_SERVER_ERROR);
}

static void errors_set_before_are_left_alone(void **state)
{
    struct world *w = *state;
    struct new_topic t[] = {topic("a", 1, 1), topic("b", 1, 1)};
    t[0].error = KERR_TOPIC_AUTHORIZATION_FAILED;
    run_create(w, t, 2, false);
    assert_int_equal(t[0].error, KERR_TOPIC_AUTHORIZATION_FAILED);
    assert_null(t[0].message);
    assert_int_equal(t[1].error, 0);
}

static void an_expired_session_is_an_error(void **state)
{
    struct world *w = *state;
    struct new_topic t = topic("t", 1, 1);
    int done = 0;
    struct topic_growth g = {.name = STR_LIT("t"), .count = 2};
    struct topic_deletion d = {.name = STR_LIT("gone")};
    tell(w, 3, NULL, "gone", 0);
    topic_admin_create(w->admin, &t, 1, false, w->ex, on_done, &done);
    topic_admin_grow(w->admin, &g, 1, false, w->ex, on_done, &done);
    topic_admin_delete(w->admin, &d, 1, w->ex, on_done, &done);
    for (int i = 0; i < 3; i++)
        sim_executor_step(w->e); /* asked, not answered */
    embedded_store_expire_session(w->s);
    sim_executor_drain(w->e);
    assert_int_equal(done, 3);
    assert_int_equal(t.error, KERR_NOT_CONTROLLER);
    assert_int_equal(g.error, KERR_NOT_CONTROLLER);
    assert_int_equal(d.error, KERR_NOT_CONTROLLER);
    free(t.message);
    free(g.message);
}

static void deletion_leaves_a_mark(void **state)
{
    struct world *w = *state;
    int done = 0;
    struct store_stat st;
    struct topic_deletion d[] = {{STR_LIT("t"), 0},
                                 {STR_LIT("nil"), 0},
                                 {STR_LIT("t"), 0},
                                 {STR_LIT("t"), KERR_TOPIC_AUTHORIZATION_FAILED}};
    tell(w, 3, NULL, "t", 0);
    topic_admin_delete(w->admin, d, 4, w->ex, on_done, &done);
    sim_executor_drain(w->e);
    assert_int_equal(done, 1);
    assert_int_equal(d[0].error, 0);
    assert_int_equal(d[1].error, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(d[2].error, 0); /* marked already */
    assert_int_equal(d[3].error, KERR_TOPIC_AUTHORIZATION_FAILED);
    assert_int_equal(stat_of(w->s, "/admin/delete_topics/t", &st), 0);
    assert_true(holds(w->s, "/admin/delete_topics/t", NULL));
}

static int grown(struct world *w, struct topic_growth g)
{
    int done = 0;
    topic_admin_grow(w->admin, &g, 1, false, w->ex, on_done, &done);
    sim_executor_drain(w->e);
    assert_int_equal(done, 1);
    assert_int_equal(g.message != NULL, g.error != 0);
    free(g.message);
    return (int)g.error;
}

static void growth_adds_partitions_behind(void **state)
{
    struct world *w = *state;
    tell(w, 5, NULL, NULL, 0);
    create(w->s, "/brokers/topics/t",
           "{\"version\":3,\"topic_id\":\"AAECAwQFBgcICQoLDA0ODw\",\"partitions\":{\"0\":[3,4,0],"
           "\"1\":[4,0,1],\"2\":[0,1,2],\"3\":[1,2,3]}}",
           0);
    struct topic_growth g = {.name = STR_LIT("t"), .count = 7};
    assert_int_equal(grown(w, g), 0);
    struct topic_node node = node_of(w, "t");
    assert_int_equal(node.id.b[15], 15); /* kept */
    assert_int_equal(node.partitions_n, 7);
    assert_int_equal(node.partitions[0].replicas.v[0], 3);
    static const int32_t worked[3][3] = {{2, 1, 3}, {3, 4, 0}, {4, 0, 1}};
    for (int i = 0; i < 3; i++)
        assert_memory_equal(node.partitions[4 + i].replicas.v, worked[i], sizeof(worked[i]));
    static const int32_t ids[] = {1, 2, 3}, dup[] = {1, 2, 1}, unknown[] = {1, 2, 9};
    struct manual_assignment one[] = {{0, ids, 3}}, two[] = {{0, ids, 3}, {0, ids, 3}},
                             thin[] = {{0, ids, 2}}, doubled[] = {{0, dup, 3}},
                             absent[] = {{0, unknown, 3}};
    g.count = 8;
    g.assignments = two;
    g.assignments_n = 2;
    assert_int_equal(grown(w, g), KERR_INVALID_REPLICA_ASSIGNMENT);
    g.assignments_n = 1;
    g.assignments = thin;
    assert_int_equal(grown(w, g), KERR_INVALID_REPLICA_ASSIGNMENT);
    g.assignments = doubled;
    assert_int_equal(grown(w, g), KERR_INVALID_REPLICA_ASSIGNMENT);
    g.assignments = absent;
    assert_int_equal(grown(w, g), KERR_INVALID_REPLICA_ASSIGNMENT);
    g.assignments = one;
    assert_int_equal(grown(w, g), 0);
    node = node_of(w, "t");
    assert_memory_equal(node.partitions[7].replicas.v, ids, sizeof(ids));
}

static void growth_that_cannot_be_is_refused(void **state)
{
    struct world *w = *state;
    create(w->s, "/brokers/topics/t", "{\"version\":1,\"partitions\":{\"0\":[0],\"1\":[1]}}", 0);
    create(w->s, "/brokers/topics/moving",
           "{\"version\":2,\"partitions\":{\"0\":[0,1]},\"adding_replicas\":{\"0\":[1]}}", 0);
    create(w->s, "/brokers/topics/big", "{\"version\":1,\"partitions\":{\"0\":[0,1,2,3]}}", 0);
    create(w->s, "/brokers/topics/bad", "nonsense", 0);
    create(w->s, "/brokers/topics/empty", "{\"version\":1,\"partitions\":{}}", 0);
    struct topic_growth g = {.name = STR_LIT("t"), .count = 2};
    assert_int_equal(grown(w, g), KERR_INVALID_PARTITIONS);
    g.count = 1;
    assert_int_equal(grown(w, g), KERR_INVALID_PARTITIONS);
    g.count = -1;
    assert_int_equal(grown(w, g), KERR_INVALID_PARTITIONS);
    g.count = INT32_MAX;
    assert_int_equal(grown(w, g), KERR_INVALID_PARTITIONS);
    static const int32_t ids[] = {0}; /* the number to add is not even computed */
    struct manual_assignment one[] = {{0, ids, 1}};
    g.assignments = one;
    g.assignments_n = 1;
    for (int i = 0; i < 2; i++) {
        g.count = i ? INT32_MIN : INT32_MAX;
        assert_int_equal(grown(w, g), KERR_INVALID_PARTITIONS);
    }
    g.assignments = NULL;
    g.assignments_n = 0;
    g.count = 3;
    g.name = STR_LIT("moving");
    assert_int_equal(grown(w, g), KERR_REASSIGNMENT_IN_PROGRESS);
    g.name = STR_LIT("big");
    assert_int_equal(grown(w, g), KERR_INVALID_REPLICATION_FACTOR);
    g.name = STR_LIT("bad");
    assert_int_equal(grown(w, g), KERR_UNKNOWN_SERVER_ERROR);
    g.name = STR_LIT("empty");
    assert_int_equal(grown(w, g), KERR_UNKNOWN_SERVER_ERROR);
    g.name = STR_LIT("nil");
    assert_int_equal(grown(w, g), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    g.name = STR_LIT("a/b");
    assert_int_equal(grown(w, g), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    create(w->s, "/admin/delete_topics/t", NULL, 0);
    g.name = STR_LIT("t");
    assert_int_equal(grown(w, g), KERR_INVALID_TOPIC_EXCEPTION);
}

static void two_growths_at_once_make_one_after_the_other(void **state)
{
    struct world *w = *state;
    int done = 0;
    create(w->s, "/brokers/topics/t", "{\"version\":1,\"partitions\":{\"0\":[0]}}", 0);
    struct topic_growth a = {.name = STR_LIT("t"), .count = 3};
    struct topic_growth b = {.name = STR_LIT("t"), .count = 5};
    topic_admin_grow(w->admin, &a, 1, false, w->ex, on_done, &done);
    topic_admin_grow(w->admin, &b, 1, false, w->ex, on_done, &done);
    sim_executor_drain(w->e);
    assert_int_equal(done, 2);
    assert_int_equal(a.error, 0);
    assert_int_equal(b.error, 0);
    assert_int_equal(node_of(w, "t").partitions_n, 5);
}

static void many_partitions_and_many_topics(void **state)
{
    struct world *w = *state;
    enum { N = 10000, TOPICS = 3000 };
    assert_int_equal(created(w, topic("wide", N, 3)), 0);
    struct topic_node node = node_of(w, "wide");
    assert_int_equal(node.partitions_n, N);
    int leads[3] = {0};
    for (int i = 0; i < N; i++)
        leads[node.partitions[i].replicas.v[0]]++;
    assert_true(leads[0] >= N / 3 && leads[1] >= N / 3 && leads[2] >= N / 3);
    assert_int_equal(grown(w, (struct topic_growth){.name = STR_LIT("wide"), .count = 2 * N}), 0);
    for (int i = 0; i < TOPICS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "many_%d", i);
        assert_int_equal(created(w, topic(name, 1, 1)), 0);
    }
    struct store_stat st;
    stat_of(w->s, "/brokers/topics", &st);
    assert_int_equal(st.children_n, TOPICS + 1);
}

#define world_test(f) cmocka_unit_test_setup_teardown(f, world_start, world_stop)

struct purse {
    int left, asked;
};

static bool take_from_purse(void *arg, int32_t partitions)
{
    struct purse *p = arg;
    p->asked++;
    if (partitions > p->left)
        return false;
    p->left -= partitions;
    return true;
}

/* For what passed all other checks, as many as are made, once for each topic. */
static void a_permit_is_asked_before_something_is_written(void **state)
{
    struct world *w = *state;
    struct purse purse = {8, 0};
    struct topic_permit permit = {take_from_purse, &purse};
    struct new_topic t[4] = {topic("a", 5, 1), topic("b", 0, 1), topic("c", 4, 1),
                             topic("d", -1, -1)};
    t[3].partitions = 3;
    t[3].replication = 1;
    for (int i = 0; i < 4; i++)
        t[i].permit = &permit;
    run_create(w, t, 4, true);
    assert_int_equal(purse.asked, 0); /* nothing was made */
    for (int i = 0; i < 4; i++) {
        free(t[i].message);
        t[i].message = NULL;
        t[i].error = KERR_NONE;
    }
    run_create(w, t, 4, false);
    assert_int_equal(t[0].error, KERR_NONE);
    assert_int_equal(t[1].error, KERR_INVALID_PARTITIONS);
    assert_int_equal(t[2].error, KERR_THROTTLING_QUOTA_EXCEEDED);
    assert_int_equal(t[3].error, KERR_NONE);
    assert_int_equal(purse.asked, 3);
    assert_int_equal(purse.left, 0);
    for (int i = 0; i < 4; i++)
        free(t[i].message);
    struct topic_growth g = {.name = STR_LIT("a"), .count = 7, .permit = &permit};
    int done = 0;
    topic_admin_grow(w->admin, &g, 1, false, w->ex, on_done, &done);
    sim_executor_drain(w->e);
    assert_int_equal(g.error, KERR_THROTTLING_QUOTA_EXCEEDED);
    assert_int_equal(node_of(w, "a").partitions_n, 5);
    purse.left = 2;
    g.error = KERR_NONE;
    free(g.message);
    g.message = NULL;
    topic_admin_grow(w->admin, &g, 1, false, w->ex, on_done, &done);
    sim_executor_drain(w->e);
    assert_int_equal(g.error, KERR_NONE);
    assert_int_equal(purse.left, 0);
    assert_int_equal(node_of(w, "a").partitions_n, 7);
    free(g.message);
}

UNIT_MAIN(world_test(a_permit_is_asked_before_something_is_written),
          world_test(a_topic_gets_its_nodes), world_test(mistakes_have_their_codes),
          world_test(what_exists_is_not_made_again), world_test(names_that_collide_are_refused),
          world_test(two_calls_at_once_do_not_both_win),
          world_test(a_dry_run_checks_all_and_writes_nothing), world_test(assignments_by_hand),
          world_test(racks_are_for_all_or_for_nobody),
          world_test(without_a_controller_nothing_is_made),
          world_test(a_change_in_between_is_noticed), world_test(a_missing_base_path_ends_the_call),
          world_test(errors_set_before_are_left_alone), world_test(an_expired_session_is_an_error),
          world_test(deletion_leaves_a_mark), world_test(growth_adds_partitions_behind),
          world_test(growth_that_cannot_be_is_refused),
          world_test(two_growths_at_once_make_one_after_the_other),
          world_test(many_partitions_and_many_topics))
