/* test_group_cleanup.c - how offsets and groups end: by time, by request, with their topic. */
#include "group_bench.h"

enum { HOUR = 3600000 };

/* One topic "t" as consumers subscribe to it. */
static const uint8_t subscribes_t[] = {0, 0, 0, 0, 0, 1, 0, 1, 't', 255, 255, 255, 255};
static const struct bytes on_t = {subscribes_t, sizeof(subscribes_t)};

/* Looks for expired offsets come every 10 minutes. */
static void pass(struct bench *b, int64_t ms)
{
    for (; ms > 0; ms -= 600000)
        bench_advance(b, ms < 600000 ? ms : 600000);
}

static struct bench *bench_with_retention(int64_t ms)
{
    struct bench *b = bench_new();
    b->config.retention_ms = ms;
    group_shard_start(b->shard);
    bench_run(b);
    return b;
}

/* A member of "g" that is stable in generation 1. */
static char *stable_member(struct bench *b, struct bytes metadata, const char *type)
{
    struct call *c = JOIN2(b, .metadata = metadata, .session_ms = 1800000, .type = type);
    bench_advance(b, 3000);
    char *id = join_id(c);
    struct call *s = call_new(GROUP_SYNC, 4);
    s->in.sync.group_id = STR_LIT("g");
    s->in.sync.member_id = str_of(id);
    s->in.sync.generation_id = c->out.join.generation_id;
    bench_submit(b, s);
    assert_int_equal(s->out.sync.error_code, KERR_NONE);
    call_free(s);
    call_free(c);
    return id;
}

/* 20 */
static void simple_groups_expire_by_commit_time(void **state)
{
    struct bench *b = bench_with_retention(HOUR);
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    pass(b, HOUR / 2);
    assert_int_equal(commit_error(COMMIT(b, .partition = 1, .offset = 2)), KERR_NONE);
    pass(b, HOUR / 2);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1); /* equality expires */
    assert_int_equal(fetch_one(b, "g", "t", 1, false, NULL), 2);
    assert_int_equal(b->log.tombstones, 1);
    pass(b, HOUR / 2);
    assert_null(group_shard_find(b->shard, STR_LIT("g")));
    assert_int_equal(b->log.tombstones, 2); /* a group of generation 0 has no record to bury */
    bench_restart(b);
    assert_int_equal(group_shard_groups(b->shard), 0);
    bench_free(b);
}

/* 20 */
static void groups_expire_from_when_they_became_empty(void **state)
{
    struct bench *b = bench_with_retention(HOUR);
    char *id = stable_member(b, on_t, NULL);
    assert_int_equal(commit_error(COMMIT(b, .member = id, .generation = 1, .offset = 1)),
                     KERR_NONE);
    for (int i = 0; i < 9; i++) { /* three hours alive, without another commit */
        pass(b, HOUR / 3);
        assert_int_equal(heartbeat(b, "g", str_of(id), 1), KERR_NONE);
    }
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 1);
    assert_int_equal(leave(b, "g", str_of(id)), KERR_NONE);
    pass(b, HOUR - 600000);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 1);
    bench_restart(b); /* the time it became empty is in its record */
    group_shard_start(b->shard);
    bench_run(b);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 1);
    pass(b, 600000);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    assert_null(group_shard_find(b->shard, STR_LIT("g")));
    assert_int_equal(b->log.tombstones, 2); /* the offset and the group */
    bench_restart(b);
    assert_int_equal(group_shard_groups(b->shard), 0);
    free(id);
    bench_free(b);
}

/* 20 */
static void topics_that_are_read_never_expire(void **state)
{
    struct bench *b = bench_with_retention(HOUR);
    char *id = stable_member(b, on_t, NULL);
    assert_int_equal(commit_error(COMMIT(b, .member = id, .generation = 1, .offset = 1)),
                     KERR_NONE);
    assert_int_equal(
        commit_error(COMMIT(b, .member = id, .generation = 1, .topic = "old", .offset = 2)),
        KERR_NONE);
    for (int i = 0; i < 4; i++) {
        pass(b, HOUR / 3);
        assert_int_equal(heartbeat(b, "g", str_of(id), 1), KERR_NONE);
    }
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 1);
    assert_int_equal(fetch_one(b, "g", "old", 0, false, NULL), -1);
    free(id);
    bench_free(b);
}

static void nothing_expires_while_it_is_not_known_what_is_read(void **state)
{
    for (int other_type = 0; other_type < 2; other_type++) {
        struct bench *b = bench_with_retention(HOUR);
        struct bytes metadata = other_type ? on_t : (struct bytes){(const uint8_t *)"?", 1};
        char *id = stable_member(b, metadata, other_type ? "connect" : NULL);
        assert_int_equal(
            commit_error(COMMIT(b, .member = id, .generation = 1, .topic = "x", .offset = 1)),
            KERR_NONE);
        for (int i = 0; i < 4; i++) {
            pass(b, HOUR / 3);
            assert_int_equal(heartbeat(b, "g", str_of(id), 1), KERR_NONE);
        }
        assert_int_equal(fetch_one(b, "g", "x", 0, false, NULL), 1);
        free(id);
        bench_free(b);
    }
}

/* Trap: in the middle of a rebalance nothing is known. */
static void nothing_expires_during_a_rebalance(void **state)
{
    struct bench *b = bench_with_retention(HOUR);
    char *id = stable_member(b, on_t, NULL);
    assert_int_equal(
        commit_error(COMMIT(b, .member = id, .generation = 1, .topic = "old", .offset = 1)),
        KERR_NONE);
    b->config.retention_ms = HOUR / 4;
    struct call *c = JOIN(b, .version = 3, .rebalance_ms = 2 * HOUR, .session_ms = 1800000);
    for (int i = 0; i < 3; i++) { /* a new member is parked for five minutes at most */
        group_shard_start(b->shard);
        bench_run(b);
        assert_int_equal(fetch_one(b, "g", "old", 0, false, NULL), 1);
        bench_advance(b, 90000);
        assert_int_equal(heartbeat(b, "g", str_of(id), 1), KERR_REBALANCE_IN_PROGRESS);
        b->config.retention_ms = 1000;
    }
    group_shard_shut_down(b->shard);
    call_free(c);
    free(id);
    bench_free(b);
}

static void an_explicit_retention_counts_whatever_the_group_does(void **state)
{
    struct bench *b = bench_with_retention(100 * HOUR);
    assert_int_equal(commit_error(COMMIT(b, .version = 2, .retention = HOUR, .offset = 1)),
                     KERR_NONE);
    assert_int_equal(
        commit_error(COMMIT(b, .version = 4, .retention = INT64_MAX, .partition = 1, .offset = 2)),
        KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .version = 3, .partition = 2, .offset = 3)), KERR_NONE);
    assert_int_equal(
        commit_error(COMMIT(b, .version = 3, .retention = -9, .partition = 3, .offset = 4)),
        KERR_NONE);
    bench_restart(b);
    group_shard_start(b->shard);
    pass(b, HOUR);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    assert_int_equal(fetch_one(b, "g", "t", 1, false, NULL), 2);
    assert_int_equal(fetch_one(b, "g", "t", 2, false, NULL), 3);
    assert_int_equal(fetch_one(b, "g", "t", 3, false, NULL), -1);
    bench_free(b);
}

static void any_commit_timestamp_is_taken(void **state)
{
    static const struct {
        int64_t timestamp;
        bool expires;
    } rows[] = {{INT64_MIN, true},
                {INT64_MAX, false},
                {1, true},
                {-2, true},
                {BENCH_START_MS + 10 * HOUR, false}};
    struct bench *b = bench_with_retention(HOUR);
    for (int i = 0; i < 5; i++)
        assert_int_equal(commit_error(COMMIT(b, .version = 1, .timestamp = rows[i].timestamp,
                                             .partition = i, .offset = 7)),
                         KERR_NONE);
    pass(b, 600000);
    for (int i = 0; i < 5; i++)
        assert_int_equal(fetch_one(b, "g", "t", i, false, NULL), rows[i].expires ? -1 : 7);
    bench_free(b);
}

static void pending_commits_do_not_expire(void **state)
{
    struct bench *b = bench_with_retention(HOUR);
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    b->log.hold = true;
    struct call *c = COMMIT(b, .offset = 2);
    pass(b, 2 * HOUR);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 1);
    bench_release(b, KERR_NONE);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 2);
    call_free(c);
    bench_free(b);
}

static void a_tombstone_that_fails_comes_again_after_a_load(void **state)
{
    struct bench *b = bench_with_retention(HOUR);
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    pass(b, HOUR - 600000);
    b->log.next_error = KERR_KAFKA_STORAGE_ERROR;
    pass(b, 600000);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    assert_int_equal(b->log.tombstones, 0);
    bench_restart(b);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 1);
    group_shard_start(b->shard);
    bench_run(b);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    assert_int_equal(b->log.tombstones, 1);
    bench_free(b);
}

static void nothing_expires_twice_as_many_groups_in_turns(void **state)
{
    struct bench *b = bench_with_retention(HOUR);
    char name[24];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "group-%d", i);
        assert_int_equal(commit_error(COMMIT(b, .group = name, .offset = i)), KERR_NONE);
    }
    assert_int_equal(group_shard_groups(b->shard), 300);
    pass(b, HOUR);
    assert_int_equal(group_shard_groups(b->shard), 0);
    assert_int_equal(b->log.tombstones, 300);
    pass(b, HOUR);
    assert_int_equal(b->log.tombstones, 300);
    bench_free(b);
}

/* ---- DeleteGroups ---- */

/* 21 */
static void groups_are_deleted_when_nobody_is_in(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    stable_group(b, "g", 1, ids);
    assert_int_equal(commit_error(COMMIT(b, .member = ids[0], .generation = 1, .offset = 1)),
                     KERR_NONE);
    assert_int_equal(delete_group(b, "g"), KERR_NON_EMPTY_GROUP);
    struct call *c = JOIN(b, .version = 3);
    assert_int_equal(delete_group(b, "g"), KERR_NON_EMPTY_GROUP); /* PreparingRebalance */
    assert_int_equal(leave(b, "g", str_of(ids[0])), KERR_NONE);
    assert_int_equal(delete_group(b, "g"), KERR_NON_EMPTY_GROUP); /* CompletingRebalance */
    assert_int_equal(leave(b, "g", c->out.join.member_id), KERR_NONE);
    assert_int_equal(delete_group(b, "g"), KERR_NONE);
    assert_int_equal(b->log.tombstones, 2);
    assert_int_equal(delete_group(b, "g"), KERR_GROUP_ID_NOT_FOUND);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    bench_restart(b);
    assert_int_equal(delete_group(b, "g"), KERR_GROUP_ID_NOT_FOUND);
    call_free(c);
    free_ids(ids, 1);
    bench_free(b);
}

static void a_group_named_twice_is_deleted_once(void **state)
{
    struct bench *b = bench_new();
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    struct call *c = call_new(GROUP_DELETE, 2);
    struct str names[] = {STR_LIT("g"), STR_LIT("x"), STR_LIT("g")};
    c->in.del.groups_names.v = names;
    c->in.del.groups_names.n = 3;
    bench_submit(b, c);
    assert_int_equal(c->out.del.results.n, 2);
    assert_int_equal(c->out.del.results.v[0].error_code, KERR_NONE);
    assert_int_equal(c->out.del.results.v[1].error_code, KERR_GROUP_ID_NOT_FOUND);
    call_free(c);
    bench_free(b);
}

static void a_commit_under_way_goes_with_its_group(void **state)
{
    struct bench *b = bench_new();
    b->log.hold = true;
    struct call *c = COMMIT(b, .offset = 1);
    assert_int_equal(delete_group(b, "g"), KERR_NONE);
    bench_release(b, KERR_NONE);
    assert_int_equal(commit_error(c), KERR_NONE);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    bench_restart(b);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    bench_free(b);
}

/* ---- OffsetDelete ---- */

static enum kerr delete_offset(struct bench *b, const char *group, const char *topic,
                               int32_t partition, enum kerr *top)
{
    struct call *c = call_new(GROUP_OFFSET_DELETE, 0);
    struct offset_delete_request_partition p = {.partition_index = partition};
    struct offset_delete_request_topic t = {.name = str_of(topic), .partitions = {&p, 1}};
    c->in.offset_delete.group_id = str_of(group);
    c->in.offset_delete.topics.v = &t;
    c->in.offset_delete.topics.n = 1;
    bench_submit(b, c);
    *top = c->out.offset_delete.error_code;
    assert_int_equal(c->out.offset_delete.topics.n, *top == KERR_NONE);
    enum kerr e = *top ? KERR_NONE : c->out.offset_delete.topics.v[0].partitions.v[0].error_code;
    call_free(c);
    return e;
}

/* 21 */
static void offsets_are_deleted_unless_they_are_read(void **state)
{
    struct bench *b = bench_new();
    enum kerr top;
    delete_offset(b, "g", "t", 0, &top);
    assert_int_equal(top, KERR_GROUP_ID_NOT_FOUND);
    delete_offset(b, "", "t", 0, &top);
    assert_int_equal(top, KERR_INVALID_GROUP_ID);
    char *id = stable_member(b, on_t, NULL);
    assert_int_equal(commit_error(COMMIT(b, .member = id, .generation = 1, .offset = 1)),
                     KERR_NONE);
    assert_int_equal(
        commit_error(COMMIT(b, .member = id, .generation = 1, .topic = "old", .offset = 1)),
        KERR_NONE);
    assert_int_equal(delete_offset(b, "g", "t", 0, &top), KERR_GROUP_SUBSCRIBED_TO_TOPIC);
    assert_int_equal(top, KERR_NONE);
    assert_int_equal(delete_offset(b, "g", "old", 0, &top), KERR_NONE);
    assert_int_equal(delete_offset(b, "g", "old", 0, &top), KERR_NONE); /* and not there */
    assert_int_equal(fetch_one(b, "g", "old", 0, false, NULL), -1);
    assert_int_equal(leave(b, "g", str_of(id)), KERR_NONE);
    assert_int_equal(delete_offset(b, "g", "t", 0, &top), KERR_NONE);
    assert_null(group_shard_find(b->shard, STR_LIT("g"))); /* nothing of it is left */
    assert_int_equal(b->log.tombstones, 3);
    free(id);
    bench_free(b);
}

static void groups_of_other_types_keep_their_offsets_while_they_live(void **state)
{
    struct bench *b = bench_new();
    enum kerr top;
    char *id = stable_member(b, on_t, "connect");
    assert_int_equal(commit_error(COMMIT(b, .member = id, .generation = 1, .offset = 1)),
                     KERR_NONE);
    delete_offset(b, "g", "t", 0, &top);
    assert_int_equal(top, KERR_NON_EMPTY_GROUP);
    free(id);
    bench_free(b);
}

/* ---- deleted topics ---- */

static void offsets_of_a_deleted_topic_go(void **state)
{
    struct bench *b = bench_new();
    static const int32_t partitions[] = {0, 1, 2};
    char *ids[1];
    stable_group(b, "live", 1, ids);
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .partition = 2, .offset = 1)), KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .partition = 3, .offset = 1)), KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .group = "only", .offset = 1)), KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .group = "other", .topic = "u", .offset = 1)),
                     KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .group = "live", .member = ids[0], .generation = 1)),
                     KERR_NONE);
    group_shard_forget(b->shard, STR_LIT("t"), partitions, 3);
    bench_run(b);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    assert_int_equal(fetch_one(b, "g", "t", 2, false, NULL), -1);
    assert_int_equal(fetch_one(b, "g", "t", 3, false, NULL), 1);
    assert_int_equal(fetch_one(b, "live", "t", 0, false, NULL), -1);
    assert_int_equal(fetch_one(b, "other", "u", 0, false, NULL), 1);
    assert_null(group_shard_find(b->shard, STR_LIT("only")));
    assert_string_equal(state_of(b, "live"), "Stable");
    assert_int_equal(b->log.tombstones, 4);
    free_ids(ids, 1);
    bench_free(b);
}

UNIT_MAIN(unit_test(simple_groups_expire_by_commit_time),
          unit_test(groups_expire_from_when_they_became_empty),
          unit_test(topics_that_are_read_never_expire),
          unit_test(nothing_expires_while_it_is_not_known_what_is_read),
          unit_test(nothing_expires_during_a_rebalance),
          unit_test(an_explicit_retention_counts_whatever_the_group_does),
          unit_test(any_commit_timestamp_is_taken), unit_test(pending_commits_do_not_expire),
          unit_test(a_tombstone_that_fails_comes_again_after_a_load),
          unit_test(nothing_expires_twice_as_many_groups_in_turns),
          unit_test(groups_are_deleted_when_nobody_is_in),
          unit_test(a_group_named_twice_is_deleted_once),
          unit_test(a_commit_under_way_goes_with_its_group),
          unit_test(offsets_are_deleted_unless_they_are_read),
          unit_test(groups_of_other_types_keep_their_offsets_while_they_live),
          unit_test(offsets_of_a_deleted_topic_go))
