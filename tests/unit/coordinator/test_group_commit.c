/* test_group_commit.c - commits and fetches of offsets: who may, when they show, what survives. */
#include "group_bench.h"

/* 15 */
static void who_may_commit(void **state)
{
    struct bench *b = bench_new();
    char *ids[2];
    /* nobody: a simple group comes into being */
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    assert_string_equal(state_of(b, "g"), "Empty");
    assert_int_equal(commit_error(COMMIT(b, .group = "new", .generation = 3)),
                     KERR_ILLEGAL_GENERATION);
    assert_int_equal(commit_error(COMMIT(b, .group = "new", .exactly = true)),
                     KERR_ILLEGAL_GENERATION);
    assert_null(group_shard_find(b->shard, STR_LIT("new")));
    /* an Empty group takes whoever has no generation, and no others */
    assert_int_equal(commit_error(COMMIT(b, .member = "x", .offset = 2)), KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .member = "x", .exactly = true)),
                     KERR_UNKNOWN_MEMBER_ID);
    /* members */
    stable_group(b, "g", 2, ids);
    assert_int_equal(commit_error(COMMIT(b, .offset = 3)), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(commit_error(COMMIT(b, .member = ids[0])), KERR_ILLEGAL_GENERATION);
    assert_int_equal(commit_error(COMMIT(b, .member = ids[0], .generation = 2)),
                     KERR_ILLEGAL_GENERATION);
    assert_int_equal(commit_error(COMMIT(b, .member = "x", .generation = 1)),
                     KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(commit_error(COMMIT(b, .instance = "i", .generation = 1)),
                     KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(commit_error(COMMIT(b, .member = ids[0], .generation = 1, .offset = 4)),
                     KERR_NONE);
    /* the old generation goes on while the next is prepared, and stops before it begins */
    struct call *rejoin = JOIN(b, .member = ids[0]);
    assert_string_equal(state_of(b, "g"), "PreparingRebalance");
    assert_int_equal(commit_error(COMMIT(b, .member = ids[1], .generation = 1, .offset = 5)),
                     KERR_NONE);
    struct call *other = JOIN(b, .member = ids[1]);
    assert_string_equal(state_of(b, "g"), "CompletingRebalance");
    assert_int_equal(commit_error(COMMIT(b, .member = ids[1], .generation = 2, .offset = 6)),
                     KERR_REBALANCE_IN_PROGRESS);
    assert_int_equal(commit_error(COMMIT(b, .member = ids[1], .generation = 1, .offset = 6)),
                     KERR_ILLEGAL_GENERATION);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 5);
    call_free(rejoin);
    call_free(other);
    free_ids(ids, 2);
    bench_free(b);
}

static void the_empty_group_name_is_a_name(void **state)
{
    struct bench *b = bench_new();
    assert_int_equal(commit_error(COMMIT(b, .group = "", .offset = 9)), KERR_NONE);
    assert_int_equal(fetch_one(b, "", "t", 0, false, NULL), 9);
    assert_string_equal(state_of(b, ""), "Empty");
    assert_int_equal(delete_group(b, ""), KERR_NONE);
    bench_free(b);
}

static void a_commit_is_a_sign_of_life(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    stable_group(b, "g", 1, ids);
    for (int i = 0; i < 5; i++) {
        bench_advance(b, 9000);
        assert_int_equal(commit_error(COMMIT(b, .member = ids[0], .generation = 1, .offset = i)),
                         KERR_NONE);
    }
    assert_string_equal(state_of(b, "g"), "Stable");
    bench_advance(b, 10000);
    assert_string_equal(state_of(b, "g"), "Empty");
    free_ids(ids, 1);
    bench_free(b);
}

/* 16 */
static void too_much_metadata_fails_alone(void **state)
{
    static char text[3 * 4097 + 1];
    struct bench *b = bench_new();
    memset(text, 'm', sizeof(text) - 1);
    text[4097] = 0;
    struct call *c = call_new(GROUP_COMMIT, 8);
    struct offset_commit_request_partition p[3] = {
        {.partition_index = 0, .committed_offset = 1, .committed_metadata = str_of(text)},
        {.partition_index = 1, .committed_offset = 2, .committed_metadata = {text, 4096}},
        {.partition_index = 2, .committed_offset = 3, .committed_metadata = STR_NULL},
    };
    struct offset_commit_request_topic t = {.name = STR_LIT("t"), .partitions = {p, 3}};
    c->in.commit.group_id = STR_LIT("g");
    c->in.commit.topics.v = &t;
    c->in.commit.topics.n = 1;
    bench_submit(b, c);
    const struct offset_commit_response_topic *out = &c->out.commit.topics.v[0];
    assert_int_equal(out->partitions.v[0].error_code, KERR_OFFSET_METADATA_TOO_LARGE);
    assert_int_equal(out->partitions.v[1].error_code, KERR_NONE);
    assert_int_equal(out->partitions.v[2].error_code, KERR_NONE);
    call_free(c);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    assert_int_equal(fetch_one(b, "g", "t", 1, false, NULL), 2);
    assert_int_equal(fetch_one(b, "g", "t", 2, false, NULL), 3);
    /* the limit is in UTF-16 units: 4096 of three bytes each pass */
    for (int i = 0; i < 4097; i++)
        memcpy(text + 3 * (size_t)i, "\xE2\x82\xAC", 3);
    text[3 * 4096] = 0;
    assert_int_equal(commit_error(COMMIT(b, .metadata = text, .offset = 7)), KERR_NONE);
    text[3 * 4096] = '\xE2';
    text[3 * 4097] = 0;
    assert_int_equal(commit_error(COMMIT(b, .metadata = text)), KERR_OFFSET_METADATA_TOO_LARGE);
    /* nothing but refusals: nothing is written, and no group comes into being */
    int appends = b->log.appends;
    assert_int_equal(commit_error(COMMIT(b, .group = "x", .metadata = text)),
                     KERR_OFFSET_METADATA_TOO_LARGE);
    assert_int_equal(b->log.appends, appends);
    assert_null(group_shard_find(b->shard, STR_LIT("x")));
    bench_free(b);
}

/* 17 */
static void a_commit_survives_unchanged(void **state)
{
    struct bench *b = bench_new();
    assert_int_equal(
        commit_error(COMMIT(b, .offset = INT64_MAX, .epoch = 3, .metadata = "m\xC3\xA9")),
        KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .partition = 7, .offset = INT64_MIN, .epoch = -1)),
                     KERR_NONE);
    for (int i = 0; i < 2; i++) {
        struct call *c = call_new(GROUP_FETCH, 5);
        c->in.fetch.group_id = STR_LIT("g");
        c->in.fetch.topics.n = -1;
        bench_submit(b, c);
        assert_int_equal(c->out.fetch.topics.n, 1);
        assert_int_equal(c->out.fetch.topics.v[0].partitions.n, 2);
        for (int k = 0; k < 2; k++) {
            const struct offset_fetch_response_partition *p =
                &c->out.fetch.topics.v[0].partitions.v[k];
            bool first = p->partition_index == 0;
            assert_true(p->committed_offset == (first ? INT64_MAX : INT64_MIN));
            assert_int_equal(p->committed_leader_epoch, first ? 3 : -1);
            assert_true(str_eqz(p->metadata, first ? "m\xC3\xA9" : ""));
        }
        call_free(c);
        bench_restart(b);
    }
    bench_free(b);
}

static void a_commit_shows_when_it_is_acknowledged(void **state)
{
    struct bench *b = bench_new();
    enum kerr e;
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    b->log.hold = true;
    struct call *c = COMMIT(b, .offset = 2);
    struct call *d = COMMIT(b, .partition = 1, .offset = 5);
    assert_false(c->done);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, &e), 1);
    assert_int_equal(e, KERR_NONE);
    assert_int_equal(fetch_one(b, "g", "t", 0, true, &e), -1);
    assert_int_equal(e, KERR_UNSTABLE_OFFSET_COMMIT);
    assert_int_equal(fetch_one(b, "g", "t", 1, false, &e), -1);
    assert_int_equal(e, KERR_NONE);
    bench_release(b, KERR_NONE);
    assert_int_equal(fetch_one(b, "g", "t", 0, true, &e), 2);
    assert_int_equal(e, KERR_NONE);
    assert_int_equal(commit_error(c), KERR_NONE);
    assert_int_equal(commit_error(d), KERR_NONE);
    bench_free(b);
}

static void a_failed_commit_leaves_what_was_there(void **state)
{
    static const struct {
        enum kerr log, client;
    } rows[] = {
        {KERR_NETWORK_EXCEPTION, KERR_COORDINATOR_LOAD_IN_PROGRESS},
        {KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_COORDINATOR_NOT_AVAILABLE},
        {KERR_NOT_ENOUGH_REPLICAS, KERR_COORDINATOR_NOT_AVAILABLE},
        {KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, KERR_COORDINATOR_NOT_AVAILABLE},
        {KERR_NOT_LEADER_OR_FOLLOWER, KERR_NOT_COORDINATOR},
        {KERR_KAFKA_STORAGE_ERROR, KERR_NOT_COORDINATOR},
        {KERR_MESSAGE_TOO_LARGE, KERR_INVALID_COMMIT_OFFSET_SIZE},
        {KERR_RECORD_LIST_TOO_LARGE, KERR_INVALID_COMMIT_OFFSET_SIZE},
        {KERR_INVALID_FETCH_SIZE, KERR_INVALID_COMMIT_OFFSET_SIZE},
        {KERR_REQUEST_TIMED_OUT, KERR_REQUEST_TIMED_OUT},
    };
    struct bench *b = bench_new();
    assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        b->log.next_error = rows[i].log;
        assert_int_equal(commit_error(COMMIT(b, .offset = 2)), rows[i].client);
        assert_int_equal(fetch_one(b, "g", "t", 0, true, NULL), 1);
    }
    bench_free(b);
}

static void acknowledgements_out_of_order(void **state)
{
    struct bench *b = bench_new();
    b->log.hold = true;
    struct call *c = COMMIT(b, .offset = 1), *d = COMMIT(b, .offset = 2);
    /* the second is acknowledged first */
    struct list *first = b->log.held.next, *second = first->next;
    list_remove(first);
    list_remove(second);
    list_push_back(&b->log.held, second);
    list_push_back(&b->log.held, first);
    bench_release(b, KERR_NONE);
    assert_int_equal(fetch_one(b, "g", "t", 0, true, NULL), 2);
    call_free(c);
    call_free(d);
    bench_free(b);
}

static void the_same_partition_twice_in_a_request(void **state)
{
    struct bench *b = bench_new();
    struct call *c = call_new(GROUP_COMMIT, 8);
    struct offset_commit_request_partition p[2] = {{.committed_offset = 1},
                                                   {.committed_offset = 2}};
    struct offset_commit_request_topic t = {.name = STR_LIT("t"), .partitions = {p, 2}};
    p[0].committed_metadata = p[1].committed_metadata = STR_LIT("");
    c->in.commit.group_id = STR_LIT("g");
    c->in.commit.topics.v = &t;
    c->in.commit.topics.n = 1;
    bench_submit(b, c);
    call_free(c);
    assert_int_equal(fetch_one(b, "g", "t", 0, true, NULL), 2);
    bench_restart(b);
    assert_int_equal(fetch_one(b, "g", "t", 0, true, NULL), 2);
    bench_free(b);
}

static void what_the_server_refused_is_passed_over(void **state)
{
    struct bench *b = bench_new();
    struct call *c = call_new(GROUP_COMMIT, 8);
    struct str id;
    struct offset_commit_request_partition p[2] = {{.partition_index = 0, .committed_offset = 1},
                                                   {.partition_index = 1, .committed_offset = 2}};
    struct offset_commit_request_topic t = {.name = STR_LIT("t"), .partitions = {p, 2}};
    c->in.commit.group_id = STR_LIT("g");
    c->in.commit.topics.v = &t;
    c->in.commit.topics.n = 1;
    assert_true(group_call_lay_out(&c->c));
    assert_true(group_call_single(&c->c, &id));
    c->out.commit.topics.v[0].partitions.v[0].error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    group_shard_handle(b->shard, &c->c);
    bench_run(b);
    assert_int_equal(c->out.commit.topics.v[0].partitions.v[0].error_code,
                     KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(c->out.commit.topics.v[0].partitions.v[1].error_code, KERR_NONE);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), -1);
    assert_int_equal(fetch_one(b, "g", "t", 1, false, NULL), 2);
    call_free(c);
    bench_free(b);
}

/* ---- OffsetFetch ---- */

/* 18 */
static void what_is_not_there(void **state)
{
    for (int version = 1; version <= 7; version++) {
        struct bench *b = bench_new();
        struct call *c = call_new(GROUP_FETCH, version);
        int32_t partitions[] = {0, 99};
        struct offset_fetch_request_topic t = {.name = STR_LIT("t"),
                                               .partition_indexes = {partitions, 2}};
        c->in.fetch.group_id = STR_LIT("nope");
        c->in.fetch.topics.v = &t;
        c->in.fetch.topics.n = 1;
        bench_submit(b, c);
        assert_int_equal(c->out.fetch.error_code, KERR_NONE);
        for (int i = 0; i < 2; i++) {
            const struct offset_fetch_response_partition *p =
                &c->out.fetch.topics.v[0].partitions.v[i];
            assert_int_equal(p->partition_index, partitions[i]);
            assert_int_equal(p->committed_offset, -1);
            assert_int_equal(p->committed_leader_epoch, -1);
            assert_true(str_eqz(p->metadata, ""));
            assert_int_equal(p->error_code, KERR_NONE);
        }
        call_free(c);
        assert_int_equal(group_shard_groups(b->shard), 0);
        bench_free(b);
    }
}

/* 18, trap: null means all, empty means none */
static void all_and_none(void **state)
{
    struct bench *b = bench_new();
    assert_int_equal(commit_error(COMMIT(b, .offset = 1, .topic = "a")), KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .offset = 2, .topic = "b")), KERR_NONE);
    b->log.hold = true;
    struct call *pending = COMMIT(b, .offset = 3, .topic = "c"); /* not committed yet */
    for (int version = 2; version <= 9; version++)
        for (int all = 0; all < 2; all++) {
            struct call *c = call_new(GROUP_FETCH, version);
            struct offset_fetch_request_group g = {.group_id = STR_LIT("g")};
            g.topics.n = c->in.fetch.topics.n = all ? -1 : 0;
            c->in.fetch.group_id = STR_LIT("g");
            c->in.fetch.groups.v = &g;
            c->in.fetch.groups.n = version >= 8;
            bench_submit(b, c);
            int n = version >= 8 ? c->out.fetch.groups.v[0].topics.n : c->out.fetch.topics.n;
            assert_int_equal(n, all ? 2 : 0);
            call_free(c);
        }
    bench_release(b, KERR_NONE);
    call_free(pending);
    bench_free(b);
}

static void several_groups_at_once(void **state)
{
    struct bench *b = bench_new();
    assert_int_equal(commit_error(COMMIT(b, .group = "a", .offset = 1, .epoch = 4)), KERR_NONE);
    group_shard_resigned(b->shard, key_partition(STR_LIT("away"), BENCH_PARTITIONS), 1);
    struct call *c = call_new(GROUP_FETCH, 8);
    int32_t partition = 0;
    struct offset_fetch_request_group_topic t = {.name = STR_LIT("t"),
                                                 .partition_indexes = {&partition, 1}};
    struct offset_fetch_request_group g[3] = {{.group_id = STR_LIT("a"), .topics = {&t, 1}},
                                              {.group_id = STR_LIT("none"), .topics = {&t, 1}},
                                              {.group_id = STR_LIT("away"), .topics = {&t, 1}}};
    c->in.fetch.groups.v = g;
    c->in.fetch.groups.n = 3;
    bench_submit(b, c);
    const struct offset_fetch_response_group *out = c->out.fetch.groups.v;
    assert_int_equal(out[0].topics.v[0].partitions.v[0].committed_offset, 1);
    assert_int_equal(out[0].topics.v[0].partitions.v[0].committed_leader_epoch, 4);
    assert_int_equal(out[1].topics.v[0].partitions.v[0].committed_offset, -1);
    assert_int_equal(out[1].error_code, KERR_NONE);
    assert_int_equal(out[2].error_code, KERR_NOT_COORDINATOR);
    assert_int_equal(out[2].topics.n, 0);
    call_free(c);
    bench_free(b);
}

/* ---- transactions ---- */

static enum kerr txn_commit(struct bench *b, int64_t producer_id, int64_t offset, int version,
                            int32_t generation, const char *member)
{
    struct call *c = call_new(GROUP_TXN_COMMIT, version);
    struct txn_offset_commit_request_partition p = {
        .committed_offset = offset, .committed_leader_epoch = -1, .committed_metadata = STR_NULL};
    struct txn_offset_commit_request_topic t = {.name = STR_LIT("t"), .partitions = {&p, 1}};
    c->in.txn.group_id = STR_LIT("g");
    c->in.txn.producer_id = producer_id;
    c->in.txn.producer_epoch = 0;
    c->in.txn.generation_id = generation;
    c->in.txn.member_id = str_of(member);
    c->in.txn.topics.v = &t;
    c->in.txn.topics.n = 1;
    bench_submit(b, c);
    assert_true(c->done);
    enum kerr e = c->out.txn.topics.v[0].partitions.v[0].error_code;
    call_free(c);
    return e;
}

/* The marker was written while the partition was being read, perhaps behind what was read. */
static void a_transaction_that_ends_during_a_load(void **state)
{
    for (int commits = 0; commits < 2; commits++) {
        struct bench *b = bench_new();
        int32_t p = key_partition(STR_LIT("g"), BENCH_PARTITIONS);
        enum kerr e;
        assert_int_equal(txn_commit(b, 7, 50, 3, -1, ""), KERR_NONE);
        group_shard_reload(b->shard, p);
        group_shard_txn_ended(b->shard, p, 7, commits);
        bench_finish_load(b, p);
        assert_int_equal(fetch_one(b, "g", "t", 0, true, &e), commits ? 50 : -1);
        assert_int_equal(e, KERR_NONE);
        assert_int_equal(txn_commit(b, 7, 60, 3, -1, ""), KERR_NONE);
        group_shard_reload(b->shard, p);
        group_shard_txn_ended(b->shard, p, 7, true);
        group_shard_resigned(b->shard, p, 9); /* and that is not remembered for another load */
        group_shard_elected(b->shard, p, 10);
        bench_finish_load(b, p);
        fetch_one(b, "g", "t", 0, true, &e);
        assert_int_equal(e, KERR_UNSTABLE_OFFSET_COMMIT);
        bench_free(b);
    }
}

/* 19 */
static void a_transaction_shows_after_its_marker(void **state)
{
    for (int commits = 0; commits < 2; commits++)
        for (int restart = 0; restart < 2; restart++) {
            struct bench *b = bench_new();
            int32_t p = key_partition(STR_LIT("g"), BENCH_PARTITIONS);
            enum kerr e;
            assert_int_equal(commit_error(COMMIT(b, .offset = 1)), KERR_NONE);
            assert_int_equal(txn_commit(b, 7, 50, 3, -1, ""), KERR_NONE);
            if (restart)
                bench_restart(b);
            assert_int_equal(fetch_one(b, "g", "t", 0, false, &e), 1);
            assert_int_equal(fetch_one(b, "g", "t", 0, true, &e), -1);
            assert_int_equal(e, KERR_UNSTABLE_OFFSET_COMMIT);
            group_shard_txn_ended(b->shard, p, 8, commits); /* somebody else's */
            assert_int_equal(fetch_one(b, "g", "t", 0, false, &e), 1);
            group_shard_txn_ended(b->shard, p, 7, commits);
            assert_int_equal(batch_build_marker(commits, b->log.end[p]++, BENCH_START_MS, 0, 7, 0,
                                                0, &b->log.batches[p]),
                             0);
            for (int i = 0; i < 2; i++) {
                assert_int_equal(fetch_one(b, "g", "t", 0, true, &e), commits ? 50 : 1);
                assert_int_equal(e, KERR_NONE);
                bench_restart(b);
            }
            bench_free(b);
        }
}

static void who_may_commit_in_a_transaction(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    assert_int_equal(txn_commit(b, 7, 1, 3, 5, "x"), KERR_UNKNOWN_MEMBER_ID); /* made, Empty */
    stable_group(b, "g", 1, ids);
    assert_int_equal(txn_commit(b, 7, 1, 2, -1, ""), KERR_NONE); /* anonymous, members or not */
    assert_int_equal(txn_commit(b, 7, 2, 3, 1, ids[0]), KERR_NONE);
    assert_int_equal(txn_commit(b, 7, 2, 3, 2, ids[0]), KERR_ILLEGAL_GENERATION);
    assert_int_equal(txn_commit(b, 7, 2, 3, 1, "x"), KERR_UNKNOWN_MEMBER_ID);
    struct call *c = JOIN(b, .member = ids[0]);
    assert_string_equal(state_of(b, "g"), "CompletingRebalance");
    assert_int_equal(txn_commit(b, 7, 3, 3, 2, ids[0]), KERR_NONE);
    call_free(c);
    b->log.next_error = KERR_INVALID_PRODUCER_EPOCH;
    assert_int_equal(txn_commit(b, 9, 3, 3, 2, ids[0]), KERR_INVALID_PRODUCER_EPOCH);
    free_ids(ids, 1);
    bench_free(b);
}

UNIT_MAIN(unit_test(who_may_commit), unit_test(the_empty_group_name_is_a_name),
          unit_test(a_commit_is_a_sign_of_life), unit_test(too_much_metadata_fails_alone),
          unit_test(a_commit_survives_unchanged), unit_test(a_commit_shows_when_it_is_acknowledged),
          unit_test(a_failed_commit_leaves_what_was_there),
          unit_test(acknowledgements_out_of_order),
          unit_test(the_same_partition_twice_in_a_request),
          unit_test(what_the_server_refused_is_passed_over), unit_test(what_is_not_there),
          unit_test(all_and_none), unit_test(several_groups_at_once),
          unit_test(a_transaction_shows_after_its_marker),
          unit_test(a_transaction_that_ends_during_a_load),
          unit_test(who_may_commit_in_a_transaction))
