/* The bytes of the records of the new group protocol, in the order of each step; and what damage
 * does to a load. */
#include "base/logline.h"
#include "cgroup_bench.h"
#include "protocol/record_iter.h"

static struct bench *b;
static int64_t from; /* first record that is looked at */

static int make(void **state)
{
    logline_set_level(LOGLINE_FATAL);
    b = bench_new();
    bench_topics(b, "t:3");
    from = 0;
    return 0;
}

static int drop(void **state)
{
    bench_free(b);
    return 0;
}

static void put_hex(struct buf *out, struct bytes v)
{
    for (int i = 0; i < v.len; i++)
        buf_printf(out, "%02x", v.p[i]);
    if (v.len < 0)
        buf_printf(out, "-");
}

/* Blanks are for readers. */
static void squeeze(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++)
        if (*at != ' ')
            *to++ = *at;
    *to = 0;
}

/* The group's records since the last look are these: "key value", blanks anywhere in them but one
 * '|' between. */
static void expect_records(const char *const *expected, int n)
{
    int32_t home = key_partition(STR_LIT("g"), BENCH_PARTITIONS);
    const struct buf *bytes = &b->log.batches[home];
    struct batch batch;
    int found = 0;
    for (size_t at = 0; at < bytes->len; at += batch.size) {
        struct record_iter *it;
        struct record r;
        assert_int_equal(batch_decode(bytes->p + at, bytes->len - at, bytes->len - at, &batch),
                         BATCH_OK);
        assert_int_equal(record_iter_open(&batch, &it), 0);
        while (record_iter_next(it, &r) == 1) {
            struct buf got = BUF_INIT;
            char want[2048];
            if (r.offset < from)
                continue;
            put_hex(&got, r.key);
            buf_printf(&got, "|");
            put_hex(&got, r.value);
            buf_put_i8(&got, 0);
            snprintf(want, sizeof(want), "%s", found < n ? expected[found] : "nothing");
            squeeze(want);
            if (strcmp((char *)got.p, want) != 0)
                fail_msg("record %d\n  is     %s\n  not    %s", found, (char *)got.p, want);
            buf_free(&got);
            found++;
        }
        record_iter_close(it);
    }
    assert_int_equal(found, n);
    from = b->log.end[home];
}
#define EXPECT_RECORDS(...)                            \
    expect_records((const char *const[]){__VA_ARGS__}, \
                   sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

#define ID_T "74000000000000000000000000000001"
#define MEMBER_A "00 00 07636c69656e74 0b2f3132372e302e302e31 02 0274 00 0000ea60 00 00"

static void a_join_writes(void **state)
{
    BEAT(b, .member = "A");
    EXPECT_RECORDS("0005 000167 000141 | 0000 " MEMBER_A,
                   "0004 000167 | 0000 02 " ID_T " 0274 00000003 01 00 00",
                   "0003 000167 | 0000 00000001 00",
                   "0007 000167 000141 | 0000 02 " ID_T " 04 00000000 00000001 00000002 00 00",
                   "0006 000167 | 0000 00000001 00",
                   "0008 000167 000141 | 0000 00000001 00000000 00"
                   " 02 " ID_T " 04 00000000 00000001 00000002 00 01 00");
    /* the second: what A must give up is its own affair */
    BEAT(b, .member = "B");
    EXPECT_RECORDS("0005 000167 000142 | 0000 " MEMBER_A, "0003 000167 | 0000 00000002 00",
                   "0007 000167 000141 | 0000 02 " ID_T " 03 00000000 00000001 00 00",
                   "0007 000167 000142 | 0000 02 " ID_T " 02 00000002 00 00",
                   "0006 000167 | 0000 00000002 00",
                   "0008 000167 000142 | 0000 00000002 00000000 02 01 01 00");
    BEAT(b, .member = "A", .epoch = 1);
    EXPECT_RECORDS("0008 000167 000141 | 0000 00000001 00000001 01"
                   " 02 " ID_T " 03 00000000 00000001 00 02 " ID_T " 02 00000002 00 00");
    BEAT(b, .member = "A", .epoch = 1, .owned = "t0,t1");
    EXPECT_RECORDS("0008 000167 000141 | 0000 00000002 00000001 00"
                   " 02 " ID_T " 03 00000000 00000001 00 01 00");
    BEAT(b, .member = "A", .epoch = 2);
    expect_records(NULL, 0);
}

static void a_leave_writes(void **state)
{
    BEAT(b, .member = "A");
    from = b->log.end[key_partition(STR_LIT("g"), BENCH_PARTITIONS)];
    BEAT(b, .member = "A", .epoch = -1);
    EXPECT_RECORDS("0008 000167 000141 | -", "0007 000167 000141 | -", "0005 000167 000141 | -",
                   "0004 000167 | 0000 01 00", "0003 000167 | 0000 00000002 00");
    assert_int_equal(delete_group(b, "g"), KERR_NONE);
    EXPECT_RECORDS("0006 000167 | -", "0004 000167 | -", "0003 000167 | -");
}

static void a_static_member_writes(void **state)
{
    BEAT(b, .member = "A", .instance = "i", .rack = "r", .assignor = "range", .client = "c");
    from = b->log.end[key_partition(STR_LIT("g"), BENCH_PARTITIONS)];
    BEAT(b, .member = "A", .instance = "i", .epoch = -2);
    EXPECT_RECORDS("0008 000167 000141 | 0000 fffffffe 00000000 00"
                   " 02 " ID_T " 04 00000000 00000001 00000002 00 01 00");
    BEAT(b, .member = "B", .instance = "i", .client = "c");
    EXPECT_RECORDS(
        "0008 000167 000141 | -", "0007 000167 000141 | -", "0005 000167 000141 | -",
        "0005 000167 000142 | 0000 0269 0272 0263 0b2f3132372e302e302e31 02 0274 00 0000ea60"
        " 0672616e6765 00",
        "0007 000167 000142 | 0000 02 " ID_T " 04 00000000 00000001 00000002 00 00",
        "0008 000167 000142 | 0000 00000000 00000000 00"
        " 02 " ID_T " 04 00000000 00000001 00000002 00 01 00",
        "0008 000167 000142 | 0000 00000001 00000000 00"
        " 02 " ID_T " 04 00000000 00000001 00000002 00 01 00");
}

/* Broker 0 stands in this rack, until the next news of topics, which name no broker. */
static void rack_of_the_broker(const char *rack)
{
    struct update_metadata_request r;
    struct update_metadata_request_live_broker broker;
    update_metadata_request_init(&r);
    update_metadata_request_live_broker_init(&broker);
    broker.rack = str_of(rack);
    r.live_brokers = (typeof(r.live_brokers)){&broker, 1};
    assert_int_equal(metadata_cache_update(b->metadata, &r), 0);
    atomic_fetch_add(&b->metadata_version, 1);
}

static bool topics_name_rack(const char *rack)
{
    const struct buf *record = &cgroup_of(b, "g")->topics.record;
    return memmem(record->p, record->len, rack, strlen(rack)) != NULL;
}

/* Where racks are known they are in the record of the topics, and a rack that changes is seen. Of
 * more topics than fit into a record it names none; they are looked up after a load. */
static void topics_are_written_while_they_fit(void **state)
{
    char text[32];
    rack_of_the_broker("rack-a");
    BEAT(b, .member = "A", .names = "tw");
    assert_true(topics_name_rack("rack-a"));
    rack_of_the_broker("rack-b");
    BEAT(b, .member = "A", .epoch = 1);
    assert_true(topics_name_rack("rack-b"));
    snprintf(text, sizeof(text), "w:%d", CTOPICS_RECORD_MAX / 12);
    bench_topics(b, text);
    rack_of_the_broker("rack-b");
    int32_t epoch = cgroup_epoch(cgroup_of(b, "g"));
    struct call *c = beat_with(b, (struct beat_args){.member = "A", .epoch = epoch});
    assert_true(cgroup_of(b, "g")->topics.record.len > CTOPICS_RECORD_MAX);
    assert_int_equal(c->out.beat.error_code, KERR_NONE);
    call_free(c);
    bench_restart(b);
    assert_int_equal(cgroup_of(b, "g")->topics.n, 0);
    assert_int_equal(cgroup_epoch(cgroup_of(b, "g")), epoch + 1);
    c = beat_with(b, (struct beat_args){.member = "A", .epoch = epoch + 1});
    assert_int_equal(c->out.beat.error_code, KERR_NONE);
    call_free(c);
    assert_int_equal(cgroup_of(b, "g")->topics.n, 2);
    assert_int_equal(cgroup_epoch(cgroup_of(b, "g")), epoch + 2);
}

/* ---- damage ---- */

static size_t unhex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    for (; *hex; hex++) {
        unsigned v;
        if (*hex == ' ')
            continue;
        assert_int_equal(sscanf(hex, "%2x", &v), 1);
        out[n++] = (uint8_t)v;
        hex++;
    }
    return n;
}

static void put_raw(const char *key, const char *value)
{
    uint8_t k[256], v[1024];
    struct group_record r = {.key = {k, (int32_t)unhex(key, k)}, .value = BYTES_NULL};
    if (value)
        r.value = (struct bytes){v, (int32_t)unhex(value, v)};
    bench_write(&b->log, key_partition(STR_LIT("g"), BENCH_PARTITIONS), -1, -1, &r, 1);
}

#define GROUP "000167"
#define GOOD_MEMBER "0000 " MEMBER_A

static void records_by_themselves_make_a_group(void **state)
{
    put_raw("0003" GROUP, "0000 00000005 00");
    put_raw("0006" GROUP, "0000 00000005 00");
    put_raw("0005" GROUP "000141", GOOD_MEMBER);
    put_raw("0007" GROUP "000141", "0000 02 " ID_T " 03 00000000 00000001 00 00");
    put_raw("0008" GROUP "000141", "0000 00000005 00000004 00 02 " ID_T " 03 00000000 00000001 00"
                                   " 01 00");
    bench_restart(b);
    assert_string_equal(cstate_of(b, "g"), "Stable");
    assert_int_equal(cgroup_of(b, "g")->epoch, 5);
    assert_int_equal(cmember_of(b, "g", "A")->previous_epoch, 4);
    assert_string_equal(parts_text(&cmember_of(b, "g", "A")->assigned), "t0,t1");
}

static void what_cannot_be_read_is_passed_over(void **state)
{
    BEAT(b, .member = "A");
    put_raw("0003" GROUP, "0000 0000");                /* cut */
    put_raw("0003" GROUP, "0001 00000009 00");         /* of a later version */
    put_raw("0008" GROUP "000141", "0000 ffff");       /* cut */
    put_raw("0007" GROUP "000141", "0000 ffffffff7f"); /* a count that cannot be */
    put_raw("0008" GROUP "000158", "0000 00000001 00000000 00 01 01 00"); /* of no member */
    put_raw("0005" GROUP "000159", "0000 " MEMBER_A "ff");                /* bytes behind it */
    put_raw("0009" GROUP, "0000"); /* a kind that is not known */
    put_raw("0010" GROUP "00022e2a", "0000 01");
    bench_restart(b);
    assert_string_equal(parts_text(&cmember_of(b, "g", "A")->assigned), "t0,t1,t2");
    assert_int_equal(cgroup_of(b, "g")->epoch, 1);
    assert_null(cmember_of(b, "g", "X"));
}

static void what_two_claim_is_the_firsts(void **state)
{
    BEAT(b, .member = "A");
    put_raw("0005" GROUP "000142", GOOD_MEMBER);
    put_raw("0008" GROUP "000142", "0000 00000001 00000000 00 02 " ID_T " 03 00000002 0000000a 00"
                                   " 02 " ID_T " 02 ffffffff 00 00");
    bench_restart(b);
    assert_string_equal(parts_text(&cmember_of(b, "g", "A")->assigned), "t0,t1,t2");
    assert_string_equal(parts_text(&cmember_of(b, "g", "B")->assigned), "t10");
}

static void epochs_that_do_not_fit_together(void **state)
{
    put_raw("0003" GROUP, "0000 00000002 00");
    put_raw("0006" GROUP, "0000 00000007 00");
    put_raw("0005" GROUP "000141", GOOD_MEMBER);
    put_raw("0008" GROUP "000141", "0000 00000009 00000004 00 01 01 00");
    bench_restart(b);
    assert_int_equal(cgroup_of(b, "g")->epoch, 9);
    assert_int_equal(BEAT(b, .member = "A", .epoch = 9).error, KERR_NONE);
}

/* A later broker's state: the member must come with nothing. */
static void a_state_that_is_not_known(void **state)
{
    put_raw("0003" GROUP, "0000 00000005 00");
    put_raw("0006" GROUP, "0000 00000005 00");
    put_raw("0005" GROUP "000141", GOOD_MEMBER);
    put_raw("0008" GROUP "000141", "0000 00000005 00000004 09 02 " ID_T " 02 00000000 00 01 00");
    bench_restart(b);
    assert_int_equal(cmember_of(b, "g", "A")->state, CMEMBER_UNKNOWN);
    assert_int_equal(BEAT(b, .member = "A", .epoch = 5).error, KERR_FENCED_MEMBER_EPOCH);
    assert_int_equal(BEAT(b, .member = "A", .epoch = 5, .owned = "t0").error,
                     KERR_FENCED_MEMBER_EPOCH);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 5, .owned = ""), 6, "t0-2");
}

/* It says that all is well, and that there is something to be given up. */
static void a_state_that_its_sets_deny(void **state)
{
    put_raw("0003" GROUP, "0000 00000005 00");
    put_raw("0006" GROUP, "0000 00000005 00");
    put_raw("0005" GROUP "000141", GOOD_MEMBER);
    put_raw("0008" GROUP "000141", "0000 00000005 00000004 00 01 02 " ID_T " 02 00000000 00 00");
    bench_restart(b);
    assert_int_equal(cmember_of(b, "g", "A")->state, CMEMBER_UNREVOKED);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 5, .owned = ""), 6, "t1,t2"); /* t0 is free now */
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 6), 6, "t0-2");
    assert_string_equal(cstate_of(b, "g"), "Stable");
}

/* Partitions below zero, or more than any topic has, in what a member shall get. */
static void a_target_that_cannot_be(void **state)
{
    put_raw("0003" GROUP, "0000 00000005 00");
    put_raw("0006" GROUP, "0000 00000005 00");
    put_raw("0005" GROUP "000141", GOOD_MEMBER);
    put_raw("0007" GROUP "000141", "0000 02 " ID_T " 05 00000001 fffffffb 7ffffffe 80000000 00 00");
    put_raw("0008" GROUP "000141", "0000 00000005 00000004 00 01 01 00");
    bench_restart(b);
    assert_string_equal(parts_text(&cmember_of(b, "g", "A")->target), "t1");
    assert_int_equal(BEAT(b, .member = "A", .epoch = 5).error, KERR_NONE);
    BEAT(b, .member = "B"); /* a new target for both, from the old one */
    assert_int_equal(BEAT(b, .member = "A", .epoch = cmember_of(b, "g", "A")->epoch).error,
                     KERR_NONE);
}

static void scraps_make_no_group(void **state)
{
    put_raw("0005" GROUP "000141", GOOD_MEMBER);
    put_raw("0006" GROUP, "0000 00000007 00");
    put_raw("0006" GROUP, NULL);
    put_raw("0003" GROUP, NULL);
    bench_restart(b);
    assert_null(cgroup_of(b, "g"));
    EXPECT_BEAT(BEAT(b, .member = "A"), 1, "t0-2");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)
UNIT_MAIN(TEST(a_join_writes), TEST(a_leave_writes), TEST(a_static_member_writes),
          TEST(topics_are_written_while_they_fit), TEST(records_by_themselves_make_a_group),
          TEST(what_cannot_be_read_is_passed_over), TEST(what_two_claim_is_the_firsts),
          TEST(epochs_that_do_not_fit_together), TEST(a_state_that_is_not_known),
          TEST(a_state_that_its_sets_deny), TEST(a_target_that_cannot_be),
          TEST(scraps_make_no_group))
