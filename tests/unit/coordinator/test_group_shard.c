/* test_group_shard.c - which groups this broker answers for: admission, loads and unloads, lists;
 * and what it makes of a damaged log. */
#include <errno.h>

#include "group_bench.h"

static int32_t home_of(const char *group)
{
    return key_partition(str_of(group), BENCH_PARTITIONS);
}

/* Every API's error for "g". */
static enum kerr error_of_api(struct bench *b, enum group_api api, const char *group)
{
    struct str id = str_of(group);
    int32_t zero = 0;
    struct offset_fetch_request_topic ft = {.name = STR_LIT("t"), .partition_indexes = {&zero, 1}};
    struct offset_commit_request_partition cp = {.committed_metadata = STR_LIT("")};
    struct offset_commit_request_topic ct = {.name = STR_LIT("t"), .partitions = {&cp, 1}};
    struct txn_offset_commit_request_partition tp = {.committed_metadata = STR_LIT("")};
    struct txn_offset_commit_request_topic tt = {.name = STR_LIT("t"), .partitions = {&tp, 1}};
    static const int versions[GROUP_APIS] = {
        [GROUP_JOIN] = 9,  [GROUP_SYNC] = 5, [GROUP_LEAVE] = 2,    [GROUP_COMMIT] = 8,
        [GROUP_FETCH] = 7, [GROUP_LIST] = 5, [GROUP_DESCRIBE] = 5, [GROUP_TXN_COMMIT] = 3};
    struct call *c = call_new(api, versions[api]);
    switch (api) {
    case GROUP_JOIN:
        call_free(bench_submit(b, (c->in.join.group_id = STR_LIT(""), c)));
        c = JOIN(b, .group = group);
        break;
    case GROUP_SYNC:
        c->in.sync.group_id = id;
        bench_submit(b, c);
        break;
    case GROUP_HEARTBEAT:
        c->in.heartbeat.group_id = id;
        bench_submit(b, c);
        break;
    case GROUP_LEAVE:
        c->in.leave.group_id = id;
        bench_submit(b, c);
        break;
    case GROUP_COMMIT:
        c->in.commit.group_id = id;
        c->in.commit.topics.v = &ct;
        c->in.commit.topics.n = 1;
        bench_submit(b, c);
        break;
    case GROUP_TXN_COMMIT:
        c->in.txn.group_id = id;
        c->in.txn.topics.v = &tt;
        c->in.txn.topics.n = 1;
        bench_submit(b, c);
        break;
    case GROUP_FETCH:
        c->in.fetch.group_id = id;
        c->in.fetch.topics.v = &ft;
        c->in.fetch.topics.n = 1;
        bench_submit(b, c);
        break;
    case GROUP_DESCRIBE:
        c->in.describe.groups.v = &id;
        c->in.describe.groups.n = 1;
        bench_submit(b, c);
        break;
    case GROUP_DELETE:
        c->in.del.groups_names.v = &id;
        c->in.del.groups_names.n = 1;
        bench_submit(b, c);
        break;
    case GROUP_OFFSET_DELETE:
        c->in.offset_delete.group_id = id;
        bench_submit(b, c);
        break;
    case GROUP_CONSUMER_HEARTBEAT:
        c->in.beat.group_id = id;
        bench_submit(b, c);
        break;
    case GROUP_CONSUMER_DESCRIBE:
        c->in.consumers.group_ids.v = &id;
        c->in.consumers.group_ids.n = 1;
        bench_submit(b, c);
        break;
    default:
        bench_submit(b, c);
    }
    enum kerr e = KERR_NONE;
    switch (api) {
    case GROUP_JOIN:
        e = c->out.join.error_code;
        break;
    case GROUP_SYNC:
        e = c->out.sync.error_code;
        break;
    case GROUP_HEARTBEAT:
        e = c->out.heartbeat.error_code;
        break;
    case GROUP_LEAVE:
        e = c->out.leave.error_code;
        break;
    case GROUP_COMMIT:
        e = c->out.commit.topics.v[0].partitions.v[0].error_code;
        break;
    case GROUP_TXN_COMMIT:
        e = c->out.txn.topics.v[0].partitions.v[0].error_code;
        break;
    case GROUP_FETCH:
        e = c->out.fetch.error_code;
        break;
    case GROUP_DESCRIBE:
        e = c->out.describe.groups.v[0].error_code;
        assert_int_equal(c->out.describe.groups.v[0].group_state.len, e == KERR_NONE ? 4 : 0);
        break;
    case GROUP_DELETE:
        e = c->out.del.results.v[0].error_code;
        break;
    case GROUP_OFFSET_DELETE:
        e = c->out.offset_delete.error_code;
        break;
    case GROUP_CONSUMER_HEARTBEAT:
        e = c->out.beat.error_code;
        break;
    case GROUP_CONSUMER_DESCRIBE:
        e = c->out.consumers.groups.v[0].error_code;
        break;
    default:
        e = c->out.list.error_code;
    }
    call_free(c);
    return e;
}

/* 2 */
static void elsewhere_means_not_coordinator(void **state)
{
    struct bench *b = bench_new();
    group_shard_resigned(b->shard, home_of("g"), 1);
    for (enum group_api api = 0; api < GROUP_APIS; api++)
        assert_int_equal(error_of_api(b, api, "g"),
                         api == GROUP_LIST ? KERR_NONE : KERR_NOT_COORDINATOR);
    bench_free(b);
}

/* 22 */
static void while_it_loads(void **state)
{
    struct bench *b = bench_new();
    group_shard_resigned(b->shard, home_of("g"), 1);
    group_shard_elected(b->shard, home_of("g"), 2);
    for (enum group_api api = 0; api < GROUP_APIS; api++)
        assert_int_equal(error_of_api(b, api, "g"), api == GROUP_SYNC ? KERR_REBALANCE_IN_PROGRESS
                                                    : api == GROUP_HEARTBEAT
                                                        ? KERR_NONE
                                                        : KERR_COORDINATOR_LOAD_IN_PROGRESS);
    bench_finish_load(b, home_of("g"));
    assert_int_equal(error_of_api(b, GROUP_LIST, "g"), KERR_NONE);
    bench_free(b);
}

static void after_the_shut_down(void **state)
{
    struct bench *b = bench_new();
    group_shard_shut_down(b->shard);
    for (enum group_api api = 0; api < GROUP_APIS; api++)
        assert_int_equal(error_of_api(b, api, "g"), KERR_COORDINATOR_NOT_AVAILABLE);
    bench_free(b);
}

static void illegal_ids_come_first(void **state)
{
    struct bench *b = bench_new();
    group_shard_shut_down(b->shard);
    for (enum group_api api = 0; api < GROUP_APIS; api++) {
        bool allowed = api == GROUP_COMMIT || api == GROUP_FETCH || api == GROUP_DESCRIBE ||
                       api == GROUP_DELETE || api == GROUP_LIST ||
                       api == GROUP_CONSUMER_HEARTBEAT; /* it has an error of its own for that */
        assert_int_equal(error_of_api(b, api, ""),
                         allowed ? KERR_COORDINATOR_NOT_AVAILABLE : KERR_INVALID_GROUP_ID);
    }
    bench_free(b);
}

/* 23 */
static void a_missing_group_is_dead_and_no_error(void **state)
{
    struct bench *b = bench_new();
    assert_int_equal(error_of_api(b, GROUP_DESCRIBE, "g"), KERR_NONE);
    assert_string_equal(state_of(b, "g"), "Dead");
    bench_free(b);
}

/* 23, trap: metadata and assignment in their places, only when stable */
static void describing_members(void **state)
{
    struct bench *b = bench_new();
    struct call *c = JOIN2(b, .metadata = {(const uint8_t *)"M", 1}, .client = "cl");
    for (int round = 0; round < 3; round++) {
        static const char *const states[] = {"PreparingRebalance", "CompletingRebalance", "Stable"};
        struct call *d = call_new(GROUP_DESCRIBE, 5);
        struct str g = STR_LIT("g");
        d->in.describe.groups.v = &g;
        d->in.describe.groups.n = 1;
        bench_submit(b, d);
        const struct describe_groups_response_group *out = &d->out.describe.groups.v[0];
        bool is_stable = round == 2;
        assert_true(str_eqz(out->group_state, states[round]));
        assert_true(str_eqz(out->protocol_type, "consumer"));
        assert_true(str_eqz(out->protocol_data, is_stable ? "range" : ""));
        assert_int_equal(out->members.n, 1);
        const struct describe_groups_response_member *m = out->members.v;
        assert_true(str_eqz(m->client_id, "cl") && str_eqz(m->client_host, "/127.0.0.1"));
        assert_int_equal(m->member_metadata.len, is_stable);
        assert_int_equal(m->member_assignment.len, is_stable);
        if (is_stable) {
            assert_memory_equal(m->member_metadata.p, "M", 1);
            assert_memory_equal(m->member_assignment.p, "A", 1);
        }
        call_free(d);
        if (round == 0)
            bench_advance(b, 3000);
        if (round == 1)
            call_free(
                sync_all(b, "g", c->out.join.member_id, NULL, 1, &c->out.join.member_id, 1, "A"));
    }
    call_free(c);
    bench_free(b);
}

static int list_n(struct bench *b, const char *state, const char *type)
{
    struct call *c = call_new(GROUP_LIST, 5);
    struct str s = str_of(state), t = str_of(type);
    c->in.list.states_filter.v = &s;
    c->in.list.states_filter.n = state != NULL;
    c->in.list.types_filter.v = &t;
    c->in.list.types_filter.n = type != NULL;
    bench_submit(b, c);
    int n = c->out.list.groups.n;
    for (int i = 0; i < n; i++)
        assert_true(str_eqz(c->out.list.groups.v[i].group_type, "classic"));
    call_free(c);
    return n;
}

static void listing_with_filters(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    stable_group(b, "stable", 1, ids);
    assert_int_equal(commit_error(COMMIT(b, .group = "simple", .offset = 1)), KERR_NONE);
    struct call *c = JOIN2(b, .group = "joining");
    assert_int_equal(list_n(b, NULL, NULL), 3);
    assert_int_equal(list_n(b, "stable", NULL), 1);
    assert_int_equal(list_n(b, "EMPTY", NULL), 1);
    assert_int_equal(list_n(b, "preparingREBALANCE", NULL), 1);
    assert_int_equal(list_n(b, "Dead", NULL), 0);
    assert_int_equal(list_n(b, "nonsense", NULL), 0);
    assert_int_equal(list_n(b, NULL, "Classic"), 3);
    assert_int_equal(list_n(b, NULL, "consumer"), 0);
    assert_int_equal(list_n(b, "Stable", "classic"), 1);
    struct group_counts counts = {0};
    group_shard_count(b->shard, &counts);
    assert_int_equal(counts.groups, 3);
    assert_int_equal(counts.offsets, 1);
    assert_int_equal(counts.by_state[GROUP_STABLE], 1);
    assert_int_equal(counts.by_state[GROUP_EMPTY], 1);
    assert_int_equal(counts.by_state[GROUP_PREPARING_REBALANCE], 1);
    assert_int_equal(counts.events.committed, 1);
    assert_int_equal(counts.events.rebalances, 1);
    assert_true(counts.events.loads.n > 0);
    assert_int_equal(counts.events.expired + counts.events.deleted, 0);
    group_shard_shut_down(b->shard);
    call_free(c);
    free_ids(ids, 1);
    bench_free(b);
}

/* ---- loads and unloads ---- */

static void unloading_answers_whoever_waits(void **state)
{
    struct bench *b = bench_new();
    char *ids[2];
    stable_group(b, "g", 2, ids);
    struct call *c = JOIN(b, .member = ids[0]);
    group_shard_resigned(b->shard, home_of("g"), 1);
    assert_int_equal(c->out.join.error_code, KERR_NOT_COORDINATOR);
    assert_int_equal(group_shard_groups(b->shard), 0);
    assert_int_equal(sim_executor_next_timer(b->sim), -1); /* all its timers ended */
    int records = b->log.records;
    bench_run(b);
    assert_int_equal(b->log.records, records); /* the log is another broker's now */
    /* trap: when it comes back, or goes elsewhere, members and generation are there */
    group_shard_elected(b->shard, home_of("g"), 2);
    bench_finish_load(b, home_of("g"));
    assert_int_equal(heartbeat(b, "g", str_of(ids[0]), 1), KERR_NONE);
    assert_int_equal(heartbeat(b, "g", str_of(ids[1]), 1), KERR_NONE);
    assert_string_equal(state_of(b, "g"), "Stable");
    call_free(c);
    free_ids(ids, 2);
    bench_free(b);
}

static void a_parked_sync_hears_of_the_unload(void **state)
{
    struct bench *b = bench_new();
    struct call *a = JOIN2(b), *c = JOIN2(b);
    bench_advance(b, 6000);
    struct call *s = sync_one(b, "g", c->out.join.member_id, 1);
    group_shard_resigned(b->shard, home_of("g"), 3);
    assert_int_equal(s->out.sync.error_code, KERR_NOT_COORDINATOR);
    call_free(s);
    call_free(a);
    call_free(c);
    bench_free(b);
}

static void a_write_under_way_when_the_partition_goes(void **state)
{
    struct bench *b = bench_new();
    struct call *a = JOIN2(b);
    bench_advance(b, 3000);
    b->log.hold = true;
    struct call *s = sync_one(b, "g", a->out.join.member_id, 1);
    struct call *c = COMMIT(b, .group = "simple", .offset = 1);
    group_shard_resigned(b->shard, home_of("g"), 3);
    group_shard_resigned(b->shard, home_of("simple"), 3);
    assert_int_equal(s->out.sync.error_code, KERR_NOT_COORDINATOR);
    assert_false(c->done);
    bench_release(b, KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(commit_error(c), KERR_NOT_COORDINATOR);
    call_free(s);
    call_free(a);
    bench_free(b);
}

static void late_news_are_passed_over(void **state)
{
    struct bench *b = bench_new();
    int32_t p = home_of("g");
    int loads = b->loads;
    group_shard_elected(b->shard, p, 5); /* an owner goes on */
    assert_int_equal(b->loads, loads);
    group_shard_resigned(b->shard, p, 4);
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    group_shard_resigned(b->shard, p, 6);
    group_shard_elected(b->shard, p, 5);
    assert_int_equal(b->loads, loads);
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NOT_COORDINATOR);
    group_shard_resigned(b->shard, p, -1); /* deleted: a new topic counts from 0 */
    group_shard_elected(b->shard, p, 0);
    assert_int_equal(b->loads, loads + 1);
    bench_finish_load(b, p);
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    group_shard_elected(b->shard, 77, 0); /* no such partition */
    group_shard_resigned(b->shard, -1, 0);
    bench_free(b);
}

static void only_the_newest_load_counts(void **state)
{
    struct bench *b = bench_new();
    int32_t p = home_of("g");
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    group_shard_resigned(b->shard, p, 1);
    group_shard_elected(b->shard, p, 2);
    uint64_t first = b->load;
    group_shard_resigned(b->shard, p, 3);
    group_shard_elected(b->shard, p, 4);
    uint64_t second = b->load;
    b->load = first;
    bench_finish_load(b, p); /* what it made is dropped */
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_COORDINATOR_LOAD_IN_PROGRESS);
    b->load = second;
    bench_finish_load(b, p);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 1);
    bench_finish_load(b, p); /* and a load that nobody waits for */
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 1);
    bench_free(b);
}

static void a_failed_load_serves_nothing(void **state)
{
    struct bench *b = bench_new();
    int32_t p = home_of("g");
    group_shard_resigned(b->shard, p, 1);
    group_shard_elected(b->shard, p, 2);
    group_shard_loaded(b->shard, p, b->load, NULL, 0, -EIO);
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NOT_COORDINATOR);
    group_shard_elected(b->shard, p, 3); /* but it may be tried again */
    bench_finish_load(b, p);
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    bench_free(b);
}

static void a_load_that_failed_is_tried_again(void **state)
{
    static const struct {
        int error;
        bool again;
    } rows[] = {{-ENOMEM, true}, {-EIO, true}, {-EBADMSG, false}, {-ECANCELED, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct bench *b = bench_new();
        int32_t p = home_of("g");
        group_shard_resigned(b->shard, p, 1);
        group_shard_elected(b->shard, p, 2);
        for (int failure = 0; failure < 2; failure++) {
            uint64_t failed = b->load;
            group_shard_loaded(b->shard, p, failed, NULL, 0, rows[i].error);
            assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NOT_COORDINATOR);
            bench_advance(b, 10000);
            assert_int_equal(b->load != failed, rows[i].again);
        }
        if (rows[i].again) {
            group_shard_loaded(b->shard, p, b->load, NULL, 0, rows[i].error);
            group_shard_resigned(b->shard, p, 3); /* another leads now */
            uint64_t last = b->load;
            bench_advance(b, 10000);
            assert_int_equal(b->load, last);
            group_shard_elected(b->shard, p, 4);
            bench_finish_load(b, p);
            assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
        }
        bench_free(b);
    }
}

/* 12 */
static void a_group_over_the_limit_shrinks_in_one_rebalance(void **state)
{
    struct bench *b = bench_new();
    char *ids[3];
    struct call *c[3];
    stable_group(b, "g", 3, ids);
    b->config.max_size = 2;
    bench_restart(b);
    assert_string_equal(state_of(b, "g"), "PreparingRebalance");
    for (int i = 0; i < 3; i++)
        c[i] = JOIN(b, .member = ids[i]);
    assert_int_equal(c[2]->out.join.error_code, KERR_GROUP_MAX_SIZE_REACHED);
    assert_int_equal(c[0]->out.join.generation_id, 2);
    assert_int_equal(c[0]->out.join.members.n + c[1]->out.join.members.n, 2);
    for (int i = 0; i < 3; i++)
        call_free(c[i]);
    free_ids(ids, 3);
    bench_free(b);
}

static void sessions_begin_again_after_a_load(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    stable_group(b, "g", 1, ids);
    bench_advance(b, 9000);
    bench_restart(b);
    bench_advance(b, 9999);
    assert_string_equal(state_of(b, "g"), "Stable");
    bench_advance(b, 1);
    assert_string_equal(state_of(b, "g"), "Empty");
    free_ids(ids, 1);
    bench_free(b);
}

/* ---- what is in the log ---- */

static void put_raw(struct bench *b, int32_t partition, struct bytes key, struct bytes value)
{
    struct group_record r = {key, value};
    bench_write(&b->log, partition, -1, -1, &r, 1);
}

/* Trap: a bad record is passed over and the rest loads. */
static void damaged_and_unknown_records_do_not_stop_a_load(void **state)
{
    struct bench *b = bench_new();
    int32_t p = home_of("g");
    static const uint8_t key_9[] = {0, 9, 0, 1, 'g'}, key_bad[] = {0, 1, 0, 9, 'g'},
                         key_g[] = {0, 2, 0, 1, 'g'},
                         key_t9[] = {0, 1, 0, 1, 'g', 0, 1, 't', 0, 0, 0, 9},
                         value_5[] = {0, 5, 1, 2, 3}, value_bad[] = {0, 3, 0};
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    put_raw(b, p, (struct bytes){key_9, sizeof(key_9)}, (struct bytes){value_5, 5});
    put_raw(b, p, (struct bytes){key_bad, sizeof(key_bad)}, (struct bytes){value_5, 5});
    put_raw(b, p, BYTES_NULL, (struct bytes){value_5, 5});
    put_raw(b, p, (struct bytes){key_g, sizeof(key_g)}, (struct bytes){value_5, 5});
    put_raw(b, p, (struct bytes){key_g, sizeof(key_g)}, (struct bytes){value_bad, 3});
    put_raw(b, p, (struct bytes){key_t9, sizeof(key_t9)}, (struct bytes){value_5, 5});
    put_raw(b, p, (struct bytes){key_t9, sizeof(key_t9)}, (struct bytes){value_bad, 3});
    put_raw(b, p, (struct bytes){key_t9, sizeof(key_t9)}, (struct bytes){value_bad, 0});
    size_t spoilt = b->log.batches[p].len;
    assert_int_equal(commit_error(COMMIT(b, .partition = 1, .offset = 2)), KERR_NONE);
    b->log.batches[p].p[spoilt + 70] ^= 1; /* a wrong checksum: that batch is lost */
    assert_int_equal(commit_error(COMMIT(b, .partition = 2, .offset = 3)), KERR_NONE);
    bench_restart(b);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 1);
    assert_int_equal(fetch_one(b, "g", "t", 1, false, NULL), -1);
    assert_int_equal(fetch_one(b, "g", "t", 2, false, NULL), 3);
    assert_int_equal(fetch_one(b, "g", "t", 9, false, NULL), -1);
    assert_string_equal(state_of(b, "g"), "Empty");
    bench_free(b);
}

static void a_bad_group_record_leaves_the_good_one_before_it(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    stable_group(b, "g", 1, ids);
    static const uint8_t key_g[] = {0, 2, 0, 1, 'g'}, value_bad[] = {0, 3, 0, 9};
    put_raw(b, home_of("g"), (struct bytes){key_g, 5}, (struct bytes){value_bad, 4});
    bench_restart(b);
    assert_int_equal(heartbeat(b, "g", str_of(ids[0]), 1), KERR_NONE);
    free_ids(ids, 1);
    bench_free(b);
}

static void later_records_win_and_tombstones_remove(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    stable_group(b, "g", 1, ids);
    for (int i = 0; i < 10; i++)
        assert_int_equal(commit_error(COMMIT(b, .member = ids[0], .generation = 1,
                                             .partition = i % 2, .offset = i)),
                         KERR_NONE);
    assert_int_equal(leave(b, "g", str_of(ids[0])), KERR_NONE);
    bench_restart(b);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 8);
    assert_int_equal(fetch_one(b, "g", "t", 1, false, NULL), 9);
    assert_string_equal(state_of(b, "g"), "Empty");
    assert_int_equal(delete_group(b, "g"), KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .partition = 1, .offset = 77)), KERR_NONE);
    bench_restart(b);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    assert_int_equal(fetch_one(b, "g", "t", 1, false, NULL), 77);
    assert_int_equal(group_generation(group_shard_find(b->shard, STR_LIT("g"))), 0);
    free_ids(ids, 1);
    bench_free(b);
}

static void records_of_all_writers(void **state)
{
    static const int levels[][2] = {{9, 0}, {11, 0}, {201, 0}, {203, 0}, {309, 0}};
    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
        struct bench *b = bench_new();
        b->config.versions = group_record_versions_of(levels[i][0], levels[i][1]);
        char *ids[2];
        stable_group(b, "g", 2, ids);
        assert_int_equal(commit_error(COMMIT(b, .member = ids[1], .generation = 1, .offset = 6)),
                         KERR_NONE);
        bench_restart(b);
        assert_string_equal(state_of(b, "g"), "Stable");
        assert_int_equal(heartbeat(b, "g", str_of(ids[0]), 1), KERR_NONE);
        assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 6);
        free_ids(ids, 2);
        bench_free(b);
    }
}

/* ---- several shards ---- */

static void each_shard_does_its_own(void **state)
{
    struct bench *b = bench_new();
    struct group_shard *shards[3];
    for (int i = 0; i < 3; i++) {
        struct group_shard_options o = {.env = *group_shard_env(b->shard),
                                        .partitions_n = BENCH_PARTITIONS,
                                        .index = i,
                                        .shards = 3,
                                        .check_interval_ms = 600000,
                                        .load = bench_load,
                                        .arg = b};
        assert_int_equal(group_shard_new(&o, &shards[i]), 0);
        for (int32_t p = 0; p < BENCH_PARTITIONS; p++) {
            int loads = b->loads;
            group_shard_elected(shards[i], p, 0);
            assert_int_equal(b->loads - loads, p % 3 == i);
            if (b->loads > loads)
                group_shard_loaded(shards[i], p, b->load, NULL, 0, 0);
        }
    }
    static const char *const names[] = {"g", "group", "my-group", "txn-1", "x", "y"};
    struct str ids[6];
    for (int i = 0; i < 6; i++) {
        struct call *c = call_new(GROUP_COMMIT, 8);
        struct offset_commit_request_partition p = {.committed_offset = i,
                                                    .committed_metadata = STR_LIT("")};
        struct offset_commit_request_topic t = {.name = STR_LIT("t"), .partitions = {&p, 1}};
        ids[i] = c->in.commit.group_id = str_of(names[i]);
        c->in.commit.topics.v = &t;
        c->in.commit.topics.n = 1;
        assert_true(group_call_lay_out(&c->c));
        group_shard_handle(shards[home_of(names[i]) % 3], &c->c);
        sim_executor_drain(b->sim);
        assert_int_equal(commit_error(c), KERR_NONE);
    }
    struct call *list = call_new(GROUP_LIST, 5), *describe = call_new(GROUP_DESCRIBE, 5);
    describe->in.describe.groups.v = ids;
    describe->in.describe.groups.n = 6;
    assert_true(group_call_lay_out(&describe->c));
    for (int i = 0; i < 3; i++) {
        group_shard_handle(shards[i], &list->c);
        group_shard_handle(shards[i], &describe->c);
    }
    assert_int_equal(list->out.list.groups.n, 6);
    for (int i = 0; i < 6; i++)
        assert_true(str_eqz(describe->out.describe.groups.v[i].group_state, "Empty"));
    list->done = describe->done = true;
    call_free(list);
    call_free(describe);
    for (int i = 0; i < 3; i++)
        group_shard_free(shards[i]);
    bench_free(b);
}

UNIT_MAIN(unit_test(elsewhere_means_not_coordinator), unit_test(while_it_loads),
          unit_test(after_the_shut_down), unit_test(illegal_ids_come_first),
          unit_test(a_missing_group_is_dead_and_no_error), unit_test(describing_members),
          unit_test(listing_with_filters), unit_test(unloading_answers_whoever_waits),
          unit_test(a_parked_sync_hears_of_the_unload),
          unit_test(a_write_under_way_when_the_partition_goes),
          unit_test(late_news_are_passed_over), unit_test(only_the_newest_load_counts),
          unit_test(a_failed_load_serves_nothing), unit_test(a_load_that_failed_is_tried_again),
          unit_test(a_group_over_the_limit_shrinks_in_one_rebalance),
          unit_test(sessions_begin_again_after_a_load),
          unit_test(damaged_and_unknown_records_do_not_stop_a_load),
          unit_test(a_bad_group_record_leaves_the_good_one_before_it),
          unit_test(later_records_win_and_tombstones_remove), unit_test(records_of_all_writers),
          unit_test(each_shard_does_its_own))
