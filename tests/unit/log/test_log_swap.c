/* Folders that a compaction left in the middle: every place where it may have stopped ends with the
 * old segments or the new ones, whole. */
#include "log_util.h"

/* Three segments 0, 10, 20 of one-record batches; and the replacement of the first two by one of
 * base 0 that keeps the even offsets, as files .cleaned. */
static void setup_swap(struct log_test *t)
{
    setup(t);
    assert_int_equal(try_create(t), 0);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(replicate(t, i, 1, 0), KERR_NONE);
        if (i == 9 || i == 19) {
            pthread_mutex_lock(&t->log->lock);
            assert_int_equal(log_roll(t->log, i + 1), 0);
            pthread_mutex_unlock(&t->log->lock);
        }
    }
    assert_int_equal(log_close(t->log), 0);
    note_checkpoints(t);
    drop_log(t);
    struct buf all = BUF_INIT;
    for (int i = 0; i < 20; i += 2) {
        struct records r = records_of(1);
        r.first_offset = i;
        r.o.leader_epoch = 0;
        struct buf b = build(&r);
        buf_put(&all, b.p, b.len);
        buf_free(&b);
    }
    uint8_t time[TIME_ENTRY_BYTES];
    time_entry_encode(time, 0, (struct time_offset){T0, 0});
    write_file(t, "00000000000000000000.log.cleaned", all.p, all.len);
    write_file(t, "00000000000000000000.index.cleaned", "", 0);
    write_file(t, "00000000000000000000.timeindex.cleaned", time, sizeof(time));
    buf_free(&all);
}

static void move(struct log_test *t, const char *from, const char *to)
{
    assert_int_equal(fs_rename(t->fs, log_file(t, from), log_file(t, to)), 0);
}

/* The steps of a swap, in order. */
static void step(struct log_test *t, int i)
{
    static const char *const steps[][2] = {
        {"00000000000000000000.log.cleaned", "00000000000000000000.log.swap"},
        {"00000000000000000000.index.cleaned", "00000000000000000000.index.swap"},
        {"00000000000000000000.timeindex.cleaned", "00000000000000000000.timeindex.swap"},
        {"00000000000000000010.log", "00000000000000000010.log.deleted"},
        {"00000000000000000010.index", "00000000000000000010.index.deleted"},
        {"00000000000000000010.timeindex", "00000000000000000010.timeindex.deleted"},
        {"00000000000000000010.snapshot", "00000000000000000010.snapshot.deleted"},
        {"00000000000000000000.log", "00000000000000000000.log.deleted"},
        {"00000000000000000000.index", "00000000000000000000.index.deleted"},
        {"00000000000000000000.timeindex", "00000000000000000000.timeindex.deleted"},
        {"00000000000000000000.log.swap", "00000000000000000000.log"},
        {"00000000000000000000.index.swap", "00000000000000000000.index"},
        {"00000000000000000000.timeindex.swap", "00000000000000000000.timeindex"},
    };
    move(t, steps[i][0], steps[i][1]);
}
enum { STEPS = 13, COMPLETE = 3 };

static int count_stages(struct log_test *t)
{
    struct log_names names;
    char path[PATH_MAX];
    int n = 0;
    snprintf(path, sizeof(path), "%s/orders-0", t->data);
    assert_int_equal(log_names_list(t->fs, path, &names), 0);
    for (int i = 0; i < names.n; i++)
        n += names.v[i].stage != LOG_STAGE_LIVE;
    log_names_free(&names);
    return n;
}

static void old_or_new_at_every_step(void **state)
{
    for (int clean = 0; clean < 2; clean++)
        for (int steps = 0; steps <= STEPS; steps++) {
            struct log_test t;
            setup_swap(&t);
            for (int i = 0; i < steps; i++)
                step(&t, i);
            assert_int_equal(try_open(&t, clean), 0);
            bool replaced = steps >= COMPLETE;
            assert_int_equal(log_segment_count(t.log), replaced ? 2 : 3);
            assert_int_equal(log_end_offset(t.log), 30);
            assert_int_equal(count_stages(&t), 0);
            int n = 0;
            for (int64_t at = 0, next; (next = read_at(&t, at, 1)) > 0; at = next)
                n++;
            assert_int_equal(n, replaced ? 20 : 30);
            check(&t);
            reopen_clean(&t);
            check(&t);
            teardown(&t);
        }
}

/* .cleaned beside .swap of a higher base: a split that was not complete. */
static void a_higher_swap_of_an_incomplete_set_goes(void **state)
{
    struct log_test t;
    setup_swap(&t);
    move(&t, "00000000000000000000.log.cleaned", "00000000000000000005.log.swap");
    move(&t, "00000000000000000000.index.cleaned", "00000000000000000005.index.swap");
    move(&t, "00000000000000000000.timeindex.cleaned", "00000000000000000003.timeindex.cleaned");
    assert_int_equal(try_open(&t, true), 0);
    assert_int_equal(log_segment_count(t.log), 3);
    assert_int_equal(count_stages(&t), 0);
    check(&t);
    teardown(&t);
}

static void doomed_files_go(void **state)
{
    struct log_test t;
    setup_swap(&t);
    write_file(&t, "00000000000000000077.log.deleted", "x", 1);
    write_file(&t, "00000000000000000077.snapshot.deleted", "x", 1);
    assert_int_equal(try_open(&t, true), 0);
    assert_int_equal(count_stages(&t), 0);
    assert_int_equal(log_segment_count(t.log), 3);
    teardown(&t);
}

/* The start itself may be stopped at any call, and started again. */
static void a_start_that_is_stopped_can_be_made_again(void **state)
{
    for (int steps = 0; steps <= STEPS; steps += 2) {
        for (uint64_t n = 1;; n++) {
            struct log_test t;
            setup_swap(&t);
            for (int i = 0; i < steps; i++)
                step(&t, i);
            fs_fault_fail_at(t.fault, n, EIO); /* nothing is done after the first error */
            int err = try_open(&t, true);
            fs_fault_clear(t.fault);
            fresh_dir(&t);
            assert_int_equal(try_open(&t, false), 0);
            bool replaced = steps >= COMPLETE;
            assert_int_equal(log_segment_count(t.log), replaced ? 2 : 3);
            check(&t);
            teardown(&t);
            if (!err)
                break;
        }
    }
}

UNIT_MAIN(unit_test(old_or_new_at_every_step), unit_test(a_higher_swap_of_an_incomplete_set_goes),
          unit_test(doomed_files_go), unit_test(a_start_that_is_stopped_can_be_made_again))
