/* What is durable after a flush, and what a flush may claim. */
#include "log_util.h"

static void the_recovery_point_rises_to_the_end(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 1000;
    assert_int_equal(try_create(&t), 0);
    assert_int_equal(log_recovery_point(t.log), 0);
    append_many(&t, 50, 1);
    sim_clock_advance(&t.clock, 5000);
    assert_int_equal(log_flush(t.log), KERR_NONE);
    assert_int_equal(log_recovery_point(t.log), 50);
    assert_int_equal(log_last_flush_ms(t.log), T0 + 5000);
    uint64_t syncs = fs_fault_count(t.fault, FS_SYNC);
    struct tally flushes = {0};
    assert_int_equal(log_flush(t.log), KERR_NONE); /* nothing new: nothing to do */
    tally_add(&flushes, log_dir_flushes(t.log->folder.dir));
    assert_int_equal(flushes.count, 1);
    assert_int_equal(fs_fault_count(t.fault, FS_SYNC), syncs);
    append_many(&t, 1, 1);
    assert_int_equal(log_flush(t.log), KERR_NONE);
    assert_true(fs_fault_count(t.fault, FS_SYNC) - syncs <= 3); /* the active segment alone */
    check(&t);
    teardown(&t);
}

/* Everything below the recovery point survives a crash that forgets all that was not synced. */
static void what_was_flushed_survives_a_crash(void **state)
{
    for (int flush_at = 1; flush_at < 40; flush_at += 3) {
        struct log_test t;
        setup(&t);
        t.config.segment_bytes = 700;
        t.config.index_interval_bytes = 100;
        assert_int_equal(try_create(&t), 0);
        for (int i = 0; i < 40; i++) {
            struct records r = produced(1, 0, i, 1, false);
            assert_int_equal(append(&t, &r), KERR_NONE);
            if (i + 1 == flush_at)
                assert_int_equal(log_flush(t.log), KERR_NONE);
        }
        note_checkpoints(&t);
        drop_log(&t);
        assert_int_equal(fs_fault_crash(t.fault, t.data, FS_CRASH_DROP, 1), 0);
        assert_int_equal(try_open(&t, false), 0);
        assert_true(log_end_offset(t.log) >= flush_at);
        check(&t);
        read_all(&t, 500);
        teardown(&t);
    }
}

static void flush_messages_asks_for_it(void **state)
{
    struct log_test t;
    struct append_info info;
    setup(&t);
    t.config.flush_messages = 5;
    assert_int_equal(try_create(&t), 0);
    struct records r = records_of(2);
    static const bool want[] = {false, false, true, true};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
        assert_int_equal(info.needs_flush, want[i]);
    }
    assert_int_equal(log_flush(t.log), KERR_NONE);
    assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
    assert_false(info.needs_flush);
    t.config.flush_messages = 1;
    log_set_config(t.log, &t.config);
    assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
    assert_true(info.needs_flush);
    teardown(&t);
}

/* C87: the folder is synced before a new segment's flush is claimed. */
static void a_new_segments_name_is_synced_too(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 300;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 3, 1);
    assert_int_equal(log_flush(t.log), KERR_NONE);
    uint64_t dirs = fs_fault_count(t.fault, FS_SYNC_DIR);
    append_many(&t, 1, 1); /* rolls */
    assert_int_equal(log_segment_count(t.log), 2);
    assert_int_equal(log_flush(t.log), KERR_NONE);
    assert_int_equal(fs_fault_count(t.fault, FS_SYNC_DIR), dirs + 1);
    append_many(&t, 1, 1);
    assert_int_equal(log_flush(t.log), KERR_NONE);
    assert_int_equal(fs_fault_count(t.fault, FS_SYNC_DIR), dirs + 1);
    teardown(&t);
}

/* A sync that fails is never claimed, not by a second try either. */
static void a_failed_sync_is_the_end(void **state)
{
    static const enum fs_call calls[] = {FS_SYNC, FS_SYNC_DIR, FS_MSYNC};
    for (int k = 0; k < 3; k++)
        for (int skip = 0; skip < 6; skip++) {
            struct log_test t;
            setup(&t);
            t.config.segment_bytes = 500;
            t.config.index_interval_bytes = 50;
            assert_int_equal(try_create(&t), 0);
            append_many(&t, 12, 1);
            fs_fault_add(t.fault, (struct fs_fault_rule){
                                      .call = calls[k], .skip = skip, .times = 1, .error = EIO});
            enum kerr code = log_flush(t.log);
            if (code) {
                assert_int_equal(code, KERR_KAFKA_STORAGE_ERROR);
                assert_int_equal(log_recovery_point(t.log), 0);
                assert_true(log_dir_offline(t.dir));
                assert_int_equal(log_flush(t.log), KERR_KAFKA_STORAGE_ERROR);
                assert_int_equal(log_recovery_point(t.log), 0);
                struct records r = records_of(1);
                assert_int_equal(append(&t, &r), KERR_KAFKA_STORAGE_ERROR);
                assert_int_equal(log_close(t.log), -EIO);
            } else {
                assert_int_equal(log_recovery_point(t.log), 12); /* fewer calls than that */
            }
            teardown(&t);
        }
}

static void a_closed_log_is_sealed_and_refuses(void **state)
{
    struct log_test t;
    struct log_slice s;
    setup(&t);
    t.config.segment_bytes = 1000;
    t.config.index_interval_bytes = 100;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 20, 2);
    assert_int_equal(log_close(t.log), 0);
    assert_int_equal(log_close(t.log), 0);
    struct records r = records_of(1);
    assert_int_equal(append(&t, &r), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(log_read(t.log, 0, 100, 40, true, false, &s), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(log_flush(t.log), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(log_truncate_to(t.log, 0), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(log_retention(t.log, T0), 0);
    check_closed(&t);
    assert_int_equal(log_recovery_point(t.log), 40);
    assert_int_equal(size_of(&t, "00000000000000000040.snapshot"), 10);
    teardown(&t);
}

UNIT_MAIN(unit_test(the_recovery_point_rises_to_the_end),
          unit_test(what_was_flushed_survives_a_crash), unit_test(flush_messages_asks_for_it),
          unit_test(a_new_segments_name_is_synced_too), unit_test(a_failed_sync_is_the_end),
          unit_test(a_closed_log_is_sealed_and_refuses))
