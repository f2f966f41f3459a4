/* The metadata cache: what UpdateMetadata does to it, snapshots that stay as they were, many
 * topics, readers on many threads. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "metadata/metadata_cache.h"
#include "protocol/msg/update_metadata.h"

#include "unit.h"

typedef struct update_metadata_request request;
typedef struct update_metadata_request_partition_state partition_state;
typedef struct update_metadata_request_topic_state topic_state;

static struct arena arena;
static struct metadata_cache *cache;

static int cache_make(void **state)
{
    logline_set_level(LOGLINE_FATAL);
    arena_init(&arena, 0);
    cache = metadata_cache_new();
    return cache ? 0 : -1;
}

static int cache_drop(void **state)
{
    metadata_cache_free(cache);
    arena_free(&arena);
    return 0;
}

static request *new_request(int topics)
{
    request *r = arena_new(&arena, request);
    update_metadata_request_init(r);
    r->controller_id = 1;
    r->topic_states.v = update_metadata_request_topic_state_new(&arena, topics);
    r->topic_states.n = topics;
    return r;
}

static struct uuid id_of(int n)
{
    struct uuid u = UUID_ZERO;
    u.b[0] = (uint8_t)(n >> 16);
    u.b[1] = (uint8_t)(n >> 8);
    u.b[2] = (uint8_t)n;
    u.b[15] = 1;
    return u;
}

/* Topic i of the request, partitions from..to-1, led by `leader`. */
static void set_topic(request *r, int i, const char *name, struct uuid id, int from, int to,
                      int32_t leader)
{
    topic_state *t = &r->topic_states.v[i];
    t->topic_name = arena_str(&arena, str_of(name));
    t->topic_id = id;
    t->partition_states.v = update_metadata_request_partition_state_new(&arena, to - from);
    t->partition_states.n = to - from;
    for (int k = 0; k < to - from; k++) {
        partition_state *p = &t->partition_states.v[k];
        int32_t *ids = arena_array(&arena, int32_t, 3);
        ids[0] = leader;
        ids[1] = 7;
        ids[2] = 8;
        p->partition_index = from + k;
        p->leader = leader;
        p->leader_epoch = 10 + from + k;
        p->zk_version = 20;
        p->controller_epoch = 3;
        p->replicas.v = ids;
        p->replicas.n = 3;
        p->isr.v = ids;
        p->isr.n = 2;
        p->offline_replicas.v = ids + 2;
        p->offline_replicas.n = 1;
    }
}

static void update_one(const char *name, struct uuid id, int from, int to, int32_t leader)
{
    request *r = new_request(1);
    set_topic(r, 0, name, id, from, to, leader);
    assert_int_equal(metadata_cache_update(cache, r), 0);
}

static void set_brokers(request *r, const int32_t *ids, int n)
{
    r->live_brokers.v = update_metadata_request_live_broker_new(&arena, n);
    r->live_brokers.n = n;
    for (int i = 0; i < n; i++) {
        struct update_metadata_request_live_broker *b = &r->live_brokers.v[i];
        b->id = ids[i];
        b->rack = ids[i] % 2 ? STR_LIT("odd") : STR_NULL;
        b->endpoints.v = update_metadata_request_endpoint_new(&arena, 2);
        b->endpoints.n = 2;
        b->endpoints.v[0].listener = STR_LIT("INT");
        b->endpoints.v[0].host = STR_LIT("b.internal");
        b->endpoints.v[0].port = 9000 + ids[i];
        b->endpoints.v[1].listener = STR_LIT("EXT");
        b->endpoints.v[1].host = STR_LIT("b.external");
        b->endpoints.v[1].port = 443;
        b->endpoints.v[1].security_protocol = 1;
    }
}

static void a_new_cache_knows_nothing(void **state)
{
    const struct metadata_snapshot *s = metadata_acquire(cache);
    const struct broker_info *b;
    assert_int_equal(metadata_controller(s), -1);
    assert_int_equal(metadata_brokers(s, &b), 0);
    assert_null(metadata_broker(s, 0));
    assert_null(metadata_topic(s, STR_LIT("t")));
    assert_null(metadata_topic_by_id(s, id_of(1)));
    assert_int_equal(metadata_topics_n(s), 0);
    assert_non_null(metadata_topics(s, &arena));
    metadata_release(s);
}

static void the_broker_list_replaces_the_old_one(void **state)
{
    static const int32_t first[] = {5, 1, 3}, second[] = {4, 1};
    request *r = new_request(0);
    set_brokers(r, first, 3);
    assert_int_equal(metadata_cache_update(cache, r), 0);
    const struct metadata_snapshot *old = metadata_acquire(cache), *s;
    r = new_request(0);
    r->controller_id = 4;
    set_brokers(r, second, 2);
    assert_int_equal(metadata_cache_update(cache, r), 0);
    s = metadata_acquire(cache);
    const struct broker_info *b;
    assert_int_equal(metadata_brokers(s, &b), 2);
    assert_int_equal(b[0].id, 1);
    assert_int_equal(b[1].id, 4);
    assert_int_equal(metadata_controller(s), 4);
    assert_null(metadata_broker(s, 3));
    assert_true(str_is_null(metadata_broker(s, 4)->rack));
    assert_true(str_eqz(metadata_broker(s, 1)->rack, "odd"));
    const struct endpoint *e = broker_endpoint(metadata_broker(s, 4), STR_LIT("INT"));
    assert_true(str_eqz(e->host, "b.internal"));
    assert_int_equal(e->port, 9004);
    assert_int_equal(broker_endpoint(&b[0], STR_LIT("EXT"))->security_protocol, 1);
    assert_null(broker_endpoint(&b[0], STR_LIT("NONE")));
    metadata_release(s);
    assert_int_equal(metadata_brokers(old, &b), 3); /* as it was */
    assert_int_equal(b[2].id, 5);
    assert_int_equal(metadata_controller(old), 1);
    metadata_release(old);
}

static void listed_partitions_are_merged_and_others_stay(void **state)
{
    update_one("t", id_of(1), 0, 3, 1);
    update_one("u", id_of(2), 0, 1, 1);
    update_one("t", id_of(1), 1, 2, 2);
    const struct metadata_snapshot *s = metadata_acquire(cache);
    const struct topic_info *t = metadata_topic(s, STR_LIT("t"));
    assert_int_equal(t->partitions_n, 3);
    assert_int_equal(t->partitions[0].leader, 1);
    assert_int_equal(t->partitions[1].leader, 2);
    assert_int_equal(t->partitions[1].replicas[0], 2);
    const struct partition_info *p = metadata_partition(s, STR_LIT("t"), 2);
    assert_int_equal(p->leader, 1);
    assert_int_equal(p->leader_epoch, 12);
    assert_int_equal(p->partition_epoch, 20);
    assert_int_equal(p->controller_epoch, 3);
    assert_int_equal(p->replicas_n, 3);
    assert_int_equal(p->isr_n, 2);
    assert_int_equal(p->offline_n, 1);
    assert_int_equal(p->offline[0], 8);
    assert_null(metadata_partition(s, STR_LIT("t"), 3));
    assert_null(metadata_partition(s, STR_LIT("t"), -1));
    assert_ptr_equal(metadata_topic_by_id(s, id_of(1)), t);
    assert_int_equal(metadata_topics_n(s), 2);
    metadata_release(s);
}

static void deletion_takes_partitions_and_with_the_last_the_topic(void **state)
{
    update_one("t", id_of(1), 0, 3, 1);
    update_one("t", id_of(1), 1, 2, -2);
    const struct metadata_snapshot *s = metadata_acquire(cache);
    const struct topic_info *t = metadata_topic(s, STR_LIT("t"));
    assert_int_equal(t->partitions_n, 3);
    assert_int_equal(t->partitions[1].leader, -1); /* a gap */
    assert_int_equal(t->partitions[1].replicas_n, 0);
    assert_null(metadata_partition(s, STR_LIT("t"), 1));
    metadata_release(s);
    update_one("t", id_of(1), 2, 3, -2);
    s = metadata_acquire(cache);
    assert_int_equal(metadata_topic(s, STR_LIT("t"))->partitions_n, 1); /* the gap goes as well */
    metadata_release(s);
    update_one("t", id_of(1), 0, 3, -2);
    update_one("never", id_of(9), 5, 6, -2);
    s = metadata_acquire(cache);
    assert_null(metadata_topic(s, STR_LIT("t")));
    assert_null(metadata_topic_by_id(s, id_of(1)));
    assert_null(metadata_topic(s, STR_LIT("never")));
    assert_int_equal(metadata_topics_n(s), 0);
    metadata_release(s);
}

static void a_topic_takes_the_id_it_is_given(void **state)
{
    update_one("t", id_of(1), 0, 2, 1);
    update_one("t", id_of(2), 0, 1, 1);
    const struct metadata_snapshot *s = metadata_acquire(cache);
    assert_null(metadata_topic_by_id(s, id_of(1)));
    assert_true(str_eqz(metadata_topic_by_id(s, id_of(2))->name, "t"));
    metadata_release(s);
    update_one("t", UUID_ZERO, 0, 1, 1);
    s = metadata_acquire(cache);
    assert_null(metadata_topic_by_id(s, id_of(2)));
    assert_null(metadata_topic_by_id(s, UUID_ZERO));
    assert_true(uuid_is_zero(metadata_topic(s, STR_LIT("t"))->id));
    metadata_release(s);
}

static void a_later_partition_may_come_first(void **state)
{
    update_one("t", id_of(1), 4, 5, 1);
    const struct metadata_snapshot *s = metadata_acquire(cache);
    assert_int_equal(metadata_topic(s, STR_LIT("t"))->partitions_n, 5);
    assert_null(metadata_partition(s, STR_LIT("t"), 0));
    assert_non_null(metadata_partition(s, STR_LIT("t"), 4));
    metadata_release(s);
}

static void impossible_partition_numbers_change_nothing(void **state)
{
    static const int32_t bad[] = {-1, 1000000, INT32_MAX};
    update_one("t", id_of(1), 0, 1, 1);
    for (int i = 0; i < 3; i++) {
        request *r = new_request(2);
        set_topic(r, 0, "u", id_of(2), 0, 1, 1);
        set_topic(r, 1, "t", id_of(1), 0, 1, 2);
        r->topic_states.v[1].partition_states.v[0].partition_index = bad[i];
        assert_int_equal(metadata_cache_update(cache, r), -EINVAL);
    }
    const struct metadata_snapshot *s = metadata_acquire(cache);
    assert_int_equal(metadata_topics_n(s), 1);
    assert_int_equal(metadata_partition(s, STR_LIT("t"), 0)->leader, 1);
    metadata_release(s);
}

static void old_versions_list_partitions_one_by_one(void **state)
{
    request *r = new_request(3);
    set_topic(r, 0, "t", UUID_ZERO, 0, 2, 1);
    set_topic(r, 1, "u", UUID_ZERO, 0, 1, 1);
    partition_state *flat = update_metadata_request_partition_state_new(&arena, 4);
    flat[0] = r->topic_states.v[0].partition_states.v[0];
    flat[1] = r->topic_states.v[1].partition_states.v[0];
    flat[2] = r->topic_states.v[0].partition_states.v[1];
    flat[0].topic_name = flat[2].topic_name = STR_LIT("t");
    flat[1].topic_name = STR_LIT("u");
    r->topic_states.n = 0;
    r->ungrouped_partition_states.v = flat;
    r->ungrouped_partition_states.n = 3;
    r->live_brokers.v = update_metadata_request_live_broker_new(&arena, 1);
    r->live_brokers.n = 1;
    r->live_brokers.v[0].id = 1;
    r->live_brokers.v[0].v0_host = STR_LIT("old");
    r->live_brokers.v[0].v0_port = 9092;
    assert_int_equal(metadata_cache_update(cache, r), 0);
    const struct metadata_snapshot *s = metadata_acquire(cache);
    assert_int_equal(metadata_topic(s, STR_LIT("t"))->partitions_n, 2);
    assert_int_equal(metadata_topic(s, STR_LIT("u"))->partitions_n, 1);
    assert_int_equal(broker_endpoint(metadata_broker(s, 1), STR_LIT("PLAINTEXT"))->port, 9092);
    metadata_release(s);
}

enum { MANY = 3000 };

static const char *name_of(int i)
{
    return arena_printf(&arena, "topic-%05d", i);
}

static void many_topics_come_and_go_one_by_one(void **state)
{
    for (int i = 0; i < MANY; i++)
        update_one(name_of(i), id_of(i), 0, 1, 1);
    const struct metadata_snapshot *full = metadata_acquire(cache);
    for (int i = 0; i < MANY; i += 2)
        update_one(name_of(i), id_of(i), 0, 1, -2);
    const struct metadata_snapshot *half = metadata_acquire(cache);
    assert_int_equal(metadata_topics_n(full), MANY);
    assert_int_equal(metadata_topics_n(half), MANY / 2);
    for (int i = 0; i < MANY; i++) {
        struct str name = str_of(name_of(i));
        assert_non_null(metadata_topic(full, name));
        assert_ptr_equal(metadata_topic(full, name), metadata_topic_by_id(full, id_of(i)));
        assert_int_equal(metadata_topic(half, name) != NULL, i % 2);
        assert_int_equal(metadata_topic_by_id(half, id_of(i)) != NULL, i % 2);
    }
    const struct topic_info **sorted = metadata_topics(half, &arena);
    for (int i = 0; i < MANY / 2; i++)
        assert_true(str_eqz(sorted[i]->name, name_of(2 * i + 1)));
    /* what did not change is shared */
    assert_ptr_equal(metadata_topic(full, STR_LIT("topic-00001")),
                     metadata_topic(half, STR_LIT("topic-00001")));
    metadata_release(full);
    metadata_release(half);
}

static void many_topics_come_in_one_request(void **state)
{
    request *r = new_request(MANY);
    for (int i = 0; i < MANY; i++)
        set_topic(r, i, name_of(i), id_of(i), 0, 2, 1);
    assert_int_equal(metadata_cache_update(cache, r), 0);
    const struct metadata_snapshot *s = metadata_acquire(cache);
    assert_int_equal(metadata_topics_n(s), MANY);
    assert_non_null(metadata_topic(s, str_of(name_of(MANY - 1))));
    metadata_release(s);
}

struct told {
    struct metadata_listener l;
    int n;
    int32_t controller;
};

static void on_update(struct metadata_listener *l)
{
    struct told *t = container_of(l, struct told, l);
    const struct metadata_snapshot *s = metadata_acquire(cache);
    t->n++;
    t->controller = metadata_controller(s);
    metadata_release(s);
}

static void listeners_see_what_was_published(void **state)
{
    struct told t = {.l = {.updated = on_update}};
    metadata_cache_listen(cache, &t.l);
    request *r = new_request(0);
    r->controller_id = 77;
    assert_int_equal(metadata_cache_update(cache, r), 0);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.controller, 77);
    metadata_cache_unlisten(cache, &t.l);
    assert_int_equal(metadata_cache_update(cache, r), 0);
    assert_int_equal(t.n, 1);
}

/* More references than the counter beside the pointer can hold. */
static void a_snapshot_can_be_taken_very_often(void **state)
{
    enum { TIMES = 200000 };
    update_one("t", id_of(1), 0, 1, 1);
    const struct metadata_snapshot *s = NULL;
    for (int i = 0; i < TIMES; i++)
        s = metadata_acquire(cache);
    update_one("t", id_of(1), 0, 1, 2);
    assert_int_equal(metadata_partition(s, STR_LIT("t"), 0)->leader, 1);
    for (int i = 0; i < TIMES; i++)
        metadata_release(s);
}

static atomic_bool stop;

/* Within one snapshot both topics have the same leader, and it never goes back. */
static void *read_pairs(void *arg)
{
    int32_t last = 0;
    while (!atomic_load(&stop)) {
        const struct metadata_snapshot *s = metadata_acquire(cache);
        int32_t a = metadata_partition(s, STR_LIT("a"), 0)->leader;
        int32_t b = metadata_partition(s, STR_LIT("b"), 0)->leader;
        struct arena mine;
        arena_init(&mine, 0);
        bool sorted = str_eqz(metadata_topics(s, &mine)[1]->name, "b");
        arena_free(&mine);
        metadata_release(s);
        if (a != b || a < last || !sorted)
            return "torn";
        last = a;
    }
    return NULL;
}

static void readers_on_many_threads_see_whole_snapshots(void **state)
{
    enum { READERS = 3, UPDATES = 2000 };
    pthread_t t[READERS];
    for (int i = 0; i <= UPDATES; i++) {
        request *r = new_request(2);
        set_topic(r, 0, "a", id_of(1), 0, 1, i + 1);
        set_topic(r, 1, "b", id_of(2), 0, 1, i + 1);
        assert_int_equal(metadata_cache_update(cache, r), 0);
        for (int k = 0; i == 0 && k < READERS; k++)
            pthread_create(&t[k], NULL, read_pairs, NULL);
    }
    atomic_store(&stop, true);
    for (int k = 0; k < READERS; k++) {
        void *problem;
        pthread_join(t[k], &problem);
        assert_null(problem);
    }
}

static void topic_names_are_checked(void **state)
{
    char name[251];
    memset(name, 'a', 250);
    name[250] = 0;
    assert_non_null(topic_name_problem(str_of(name)));
    name[249] = 0;
    assert_null(topic_name_problem(str_of(name)));
    static const char *bad[] = {"", ".", "..", "a b", "a/b", "a:b", "\xc3\xa4", "a\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_non_null(topic_name_problem(str_of(bad[i])));
    assert_non_null(topic_name_problem(STR_NULL));
    static const char *good[] = {"...", "a", "-", "_", "A.b_C-9"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_null(topic_name_problem(str_of(good[i])));
    assert_true(topic_names_collide(STR_LIT("a.b"), STR_LIT("a_b")));
    assert_true(topic_names_collide(STR_LIT("._"), STR_LIT("_.")));
    assert_false(topic_names_collide(STR_LIT("a-b"), STR_LIT("a_b")));
    assert_false(topic_names_collide(STR_LIT("a.b"), STR_LIT("a_bc")));
    assert_true(topic_is_internal(STR_LIT("__consumer_offsets")));
    assert_true(topic_is_internal(STR_LIT("__transaction_state")));
    assert_false(topic_is_internal(STR_LIT("__cluster_metadata")));
}

#define cache_test(f) cmocka_unit_test_setup_teardown(f, cache_make, cache_drop)

UNIT_MAIN(cache_test(a_new_cache_knows_nothing), cache_test(the_broker_list_replaces_the_old_one),
          cache_test(listed_partitions_are_merged_and_others_stay),
          cache_test(deletion_takes_partitions_and_with_the_last_the_topic),
          cache_test(a_topic_takes_the_id_it_is_given),
          cache_test(a_later_partition_may_come_first),
          cache_test(impossible_partition_numbers_change_nothing),
          cache_test(old_versions_list_partitions_one_by_one),
          cache_test(many_topics_come_and_go_one_by_one),
          cache_test(many_topics_come_in_one_request), cache_test(listeners_see_what_was_published),
          cache_test(a_snapshot_can_be_taken_very_often),
          cache_test(readers_on_many_threads_see_whole_snapshots),
          unit_test(topic_names_are_checked))
