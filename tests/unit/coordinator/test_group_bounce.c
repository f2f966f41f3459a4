/* Leadership of an offsets partition that comes and goes: news in any order, late news, loads that
 * end after they are wanted no more, other brokers that write meanwhile. Whoever is answered is
 * answered from what the log says; nothing that was acknowledged here is forgotten while the
 * partition is here. */
#include "base/logline.h"
#include "cgroup_bench.h"

enum { STEPS = 400, WALKS = 300, PARTITIONS_OF_T = 4, LOADS_MAX = 8 };

struct read_ahead { /* a load that has read, and has not been delivered */
    uint64_t number;
    struct group *groups[4];
    int n;
};

static struct bench *b;
static uint32_t seed;
static int32_t home, epoch; /* newest epoch there is */
static bool led;            /* by this broker, in that epoch */
static int64_t committed[PARTITIONS_OF_T];
static struct read_ahead loads[LOADS_MAX];
static int loads_n;

static uint32_t chance(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* Reads the log as it is now, for the load that was asked for last. */
static void read_log(void)
{
    struct group_loading *l = group_loading_new(home);
    const struct buf *bytes = &b->log.batches[home];
    struct read_ahead *r = &loads[loads_n];
    struct batch batch;
    if (loads_n == LOADS_MAX) {
        group_loading_free(l);
        return;
    }
    for (size_t at = 0; at < bytes->len; at += batch.size) {
        assert_int_equal(batch_decode(bytes->p + at, bytes->len - at, bytes->len - at, &batch),
                         BATCH_OK);
        assert_int_equal(group_loading_add(l, &batch), 0);
    }
    r->number = b->load;
    r->n = group_loading_groups(l);
    assert_true(r->n <= 4);
    assert_int_equal(group_loading_finish(l, group_shard_env(b->shard), r->groups), 0);
    group_loading_free(l);
    loads_n++;
}

static void deliver(int i)
{
    struct read_ahead r = loads[i];
    loads[i] = loads[--loads_n];
    group_shard_loaded(b->shard, home, r.number, r.groups, r.n, 0);
}

/* Another broker leads, and its group coordinator writes. */
static void write_elsewhere(void)
{
    struct buf key = BUF_INIT, value = BUF_INIT;
    int p = (int)chance(PARTITIONS_OF_T);
    struct offset_value v = {.offset = (int64_t)chance(1000000),
                             .leader_epoch = -1,
                             .metadata = STR_LIT(""),
                             .commit_ms = BENCH_START_MS,
                             .expire_ms = -1};
    group_key_put_offset(&key, STR_LIT("g"), STR_LIT("t"), p);
    offset_value_put(&value, 3, &v);
    struct group_record r = {{key.p, (int32_t)key.len}, {value.p, (int32_t)value.len}};
    bench_write(&b->log, home, -1, -1, &r, 1);
    committed[p] = v.offset;
    buf_free(&key);
    buf_free(&value);
}

static void commit_here(void)
{
    int p = (int)chance(PARTITIONS_OF_T);
    int64_t offset = (int64_t)chance(1000000);
    enum kerr e = commit_error(COMMIT(b, .partition = p, .offset = offset));
    if (!led)
        assert_int_equal(e, KERR_NOT_COORDINATOR);
    else
        assert_true(e == KERR_NONE || e == KERR_COORDINATOR_LOAD_IN_PROGRESS);
    if (e == KERR_NONE)
        committed[p] = offset;
}

static void fetch_here(void)
{
    int p = (int)chance(PARTITIONS_OF_T);
    enum kerr e;
    int64_t offset = fetch_one(b, "g", "t", p, false, &e);
    if (!led)
        assert_int_equal(e, KERR_NOT_COORDINATOR);
    else if (e == KERR_NONE)
        assert_int_equal(offset, committed[p]);
    else
        assert_int_equal(e, KERR_COORDINATOR_LOAD_IN_PROGRESS);
}

static void elect(void)
{
    int before = b->loads;
    group_shard_elected(b->shard, home, ++epoch);
    if (!led)
        assert_int_equal(b->loads, before + 1);
    led = true;
}

static void resign(void)
{
    group_shard_resigned(b->shard, home, ++epoch);
    led = false;
}

static void step(void)
{
    switch (chance(12)) {
    case 0:
        elect();
        break;
    case 1:
        resign();
        break;
    case 2: /* late news */
        if (epoch > 0)
            group_shard_elected(b->shard, home, epoch - 1 - (int32_t)chance((uint32_t)epoch));
        break;
    case 3:
        if (epoch > 0)
            group_shard_resigned(b->shard, home, epoch - 1 - (int32_t)chance((uint32_t)epoch));
        break;
    case 4: /* the same once more, as a controller that fails over says it */
        if (led)
            group_shard_elected(b->shard, home, epoch);
        break;
    case 5:
    case 6:
        if (led)
            read_log();
        break;
    case 7:
        if (loads_n > 0)
            deliver((int)chance((uint32_t)loads_n));
        break;
    case 8:
        if (!led)
            write_elsewhere();
        break;
    case 9:
    case 10:
        commit_here();
        break;
    default:
        fetch_here();
    }
    bench_run(b);
}

static void walk(uint32_t n)
{
    seed = n * 31337u + 5;
    b = bench_new();
    bench_topics(b, "t:4");
    home = key_partition(STR_LIT("g"), BENCH_PARTITIONS);
    epoch = 0;
    led = true; /* bench_new has it own all at epoch 0 */
    for (int i = 0; i < PARTITIONS_OF_T; i++)
        committed[i] = -1;
    for (int i = 0; i < STEPS; i++)
        step();
    resign();
    while (loads_n > 0)
        deliver(0);
    elect();
    read_log();
    deliver(0);
    for (int i = 0; i < PARTITIONS_OF_T; i++)
        assert_int_equal(fetch_one(b, "g", "t", i, false, NULL), committed[i]);
    bench_free(b);
}

static void any_order_of_news(void **state)
{
    logline_set_level(LOGLINE_FATAL);
    for (uint32_t n = 0; n < WALKS; n++)
        walk(n);
}

/* A reload that a lost write asked for, and the partition goes and comes meanwhile. */
static void a_reload_that_is_overtaken(void **state)
{
    logline_set_level(LOGLINE_FATAL);
    b = bench_new();
    bench_topics(b, "t:4");
    home = key_partition(STR_LIT("g"), BENCH_PARTITIONS);
    BEAT(b, .member = "A");
    b->log.next_error = KERR_KAFKA_STORAGE_ERROR;
    assert_int_equal(BEAT(b, .member = "B").error, KERR_NOT_COORDINATOR);
    uint64_t reload = b->load;
    group_shard_resigned(b->shard, home, 1);
    group_shard_elected(b->shard, home, 2);
    assert_true(b->load > reload);
    group_shard_loaded(b->shard, home, reload, NULL, 0, 0); /* nobody wants it any more */
    assert_int_equal(BEAT(b, .member = "A", .epoch = 1).error, KERR_COORDINATOR_LOAD_IN_PROGRESS);
    bench_finish_load(b, home);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1), 1, NULL);
    bench_free(b);
}

/* Two steps are on their way when the first is lost: one reload, both senders hear of it. */
static void one_reload_for_several_lost_steps(void **state)
{
    logline_set_level(LOGLINE_FATAL);
    b = bench_new();
    bench_topics(b, "t:4");
    home = key_partition(STR_LIT("g"), BENCH_PARTITIONS);
    int loads_before = b->loads;
    b->log.hold = true;
    b->log.next_error = KERR_MESSAGE_TOO_LARGE;
    struct call *first = beat_with(b, (struct beat_args){.member = "A"});
    b->log.next_error = KERR_MESSAGE_TOO_LARGE;
    struct call *second = beat_with(b, (struct beat_args){.member = "B"});
    bench_release(b, KERR_NONE);
    assert_int_equal(beat_end(first).error, KERR_UNKNOWN_SERVER_ERROR);
    assert_true(beat_end(second).error != KERR_NONE);
    assert_int_equal(b->loads, loads_before + 1);
    bench_finish_load(b, home);
    assert_null(cgroup_of(b, "g"));
    bench_free(b);
}

UNIT_MAIN(unit_test(any_order_of_news), unit_test(a_reload_that_is_overtaken),
          unit_test(one_reload_for_several_lost_steps))
