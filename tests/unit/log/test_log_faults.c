/* Every call to the disk fails once, in every scenario: no crash, no leak, nothing acknowledged is
 * lost, nothing is claimed after a sync that failed. */
#include "log_util.h"

struct story {
    int64_t acked; /* end of what was acknowledged */
    int64_t tried; /* end of what was attempted */
    int64_t least; /* what must be there whatever else happened: lowered by cuts */
    bool failed;   /* a storage error was returned */
    bool closed;   /* cleanly */
};

static void note(struct log_test *t, struct story *s, enum kerr code)
{
    if (!code)
        return;
    assert_int_equal(code, KERR_KAFKA_STORAGE_ERROR);
    if (log_dir_offline(t->dir))
        s->failed = true;
}

static void tell_append(struct log_test *t, struct story *s, struct records r)
{
    struct append_info info;
    bool before = s->failed;
    enum kerr code = append_info(t, &r, &info);
    note(t, s, code);
    if (!code) {
        assert_false(before); /* offline is for ever */
        s->acked = info.last_offset + 1;
    }
    if (s->tried < s->acked)
        s->tried = s->acked;
    if (code && !before)
        s->tried = s->acked + r.n;
}

static void tell_flush(struct log_test *t, struct story *s)
{
    int64_t before = log_recovery_point(t->log);
    bool failed = s->failed;
    enum kerr code = log_flush(t->log);
    note(t, s, code);
    if (code || failed) /* no success after a failure, and no progress */
        assert_int_equal(log_recovery_point(t->log), before);
    assert_true(!failed || code);
}

static void leader(struct log_test *t, struct story *s)
{
    int32_t sequence = 0;
    note(t, s, log_begin_epoch(t->log, 1));
    note(t, s, log_set_topic_id(t->log, (struct uuid){{1}}));
    for (int i = 0; i < 24; i++) {
        tell_append(t, s, records_of(1 + i % 3));
        if (i % 3 == 0) {
            struct records r = produced(7, 0, sequence, 1, true);
            int64_t acked = s->acked;
            tell_append(t, s, r);
            sequence += s->acked > acked;
        }
        if (i % 9 == 4) {
            enum kerr code = append_marker(t, 7, 0, i % 2, 0);
            note(t, s, code);
            s->acked += !code;
            if (s->tried < s->acked + 1)
                s->tried = s->acked + 1;
        }
        log_set_high_watermark(t->log, s->acked);
        if (i % 8 == 5)
            tell_flush(t, s);
        if (i == 15)
            note(t, s, log_raise_start_offset(t->log, 9));
        if (i % 10 == 9)
            log_retention(t->log, T0);
    }
    tell_flush(t, s);
    s->closed = log_close(t->log) == 0;
    s->least = s->acked;
}

/* The scenario with the n-th call failing; false when there are fewer calls than that. */
static bool run_leader(uint64_t n, int error)
{
    struct log_test t;
    struct story s = {0};
    setup(&t);
    t.config.segment_bytes = 600;
    t.config.index_interval_bytes = 100;
    t.config.file_delete_delay_ms = 0;
    assert_int_equal(try_create(&t), 0);
    uint64_t from = fs_fault_total(t.fault);
    fs_fault_fail_at(t.fault, n, error);
    leader(&t, &s);
    bool reached = fs_fault_total(t.fault) - from >= n;
    fs_fault_fail_at(t.fault, 0, 0);
    note_checkpoints(&t);
    t.start_offset = 0;
    fresh_dir(&t);
    assert_int_equal(try_open(&t, s.closed), 0);
    if (log_end_offset(t.log) < s.least || log_end_offset(t.log) > s.tried)
        fail_msg("call %d, error %d: end %" PRId64 ", acknowledged %" PRId64 ", tried %" PRId64,
                 (int)n, error, log_end_offset(t.log), s.least, s.tried);
    check(&t);
    read_all(&t, 300);
    append_many(&t, 2, 1);
    reopen_clean(&t);
    check(&t);
    teardown(&t);
    return reached;
}

static void visit(bool (*run)(uint64_t n, int error), int error)
{
    uint64_t n = 1;
    while (run(n, error))
        n++;
    assert_true(n > 50);
}

static void a_leader_with_io_errors(void **state)
{
    visit(run_leader, EIO);
}

static void a_leader_on_a_full_disk(void **state)
{
    visit(run_leader, ENOSPC);
}

/* Too many open files: that says nothing about the disk, which goes on. */
static void a_leader_without_descriptors(void **state)
{
    visit(run_leader, EMFILE);
}

/* ---- a follower that is cut ---- */

static void tell_replicate(struct log_test *t, struct story *s, int n, int32_t epoch)
{
    int64_t at = log_end_offset(t->log);
    enum kerr code = replicate(t, at, n, epoch);
    note(t, s, code);
    if (!code)
        s->acked = s->least = at + n;
}

static void tell_cut(struct log_test *t, struct story *s, int64_t offset, bool fully)
{
    enum kerr code = fully ? log_truncate_fully(t->log, offset) : log_truncate_to(t->log, offset);
    note(t, s, code);
    if (!code) /* inside a batch: the gap in front of the end does not survive a restart */
        s->acked = s->least = fully ? offset : offset - 1;
    else if (s->least > offset || fully)
        s->least = fully ? 0 : offset - 1; /* perhaps cut, perhaps not */
}

static bool run_follower(uint64_t n, int error)
{
    struct log_test t;
    struct story s = {0};
    setup(&t);
    t.config.segment_bytes = 500;
    t.config.index_interval_bytes = 60;
    t.config.file_delete_delay_ms = 0;
    assert_int_equal(try_create(&t), 0);
    uint64_t from = fs_fault_total(t.fault);
    fs_fault_fail_at(t.fault, n, error);
    for (int i = 0; i < 12 && !s.failed; i++)
        tell_replicate(&t, &s, 2, i / 5);
    if (!s.failed)
        tell_flush(&t, &s);
    if (!s.failed)
        tell_cut(&t, &s, 13, false);
    for (int i = 0; i < 6 && !s.failed; i++)
        tell_replicate(&t, &s, 3, 7);
    if (!s.failed)
        tell_cut(&t, &s, 20, false);
    if (!s.failed)
        tell_flush(&t, &s);
    if (!s.failed)
        tell_cut(&t, &s, 100, true);
    for (int i = 0; i < 4 && !s.failed; i++)
        tell_replicate(&t, &s, 1, 8);
    log_dir_remove_due(t.dir);
    s.closed = log_close(t.log) == 0;
    bool reached = fs_fault_total(t.fault) - from >= n;
    fs_fault_fail_at(t.fault, 0, 0);
    note_checkpoints(&t);
    t.start_offset = 0;
    fresh_dir(&t);
    assert_int_equal(try_open(&t, s.closed), 0);
    if (log_end_offset(t.log) < s.least)
        fail_msg("call %d, error %d: end %" PRId64 ", at least %" PRId64 "\n%s", (int)n, error,
                 log_end_offset(t.log), s.least, t.said);
    check(&t);
    reopen_clean(&t);
    check(&t);
    teardown(&t);
    return reached;
}

static void a_follower_with_io_errors(void **state)
{
    visit(run_follower, EIO);
}

static void a_follower_without_descriptors(void **state)
{
    visit(run_follower, EMFILE);
}

/* ---- making, deleting, loading ---- */

static void every_failure_of_making_a_log(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EMFILE};
    for (int k = 0; k < 3; k++)
        for (uint64_t n = 1;; n++) {
            struct log_test t;
            setup(&t);
            fs_fault_fail_at(t.fault, n, errors[k]);
            struct topic_partition tp = {TOPIC, 0};
            int err = log_create(t.dir, tp, &t.config, (struct uuid){{1}}, &t.log);
            fs_fault_fail_at(t.fault, 0, 0);
            if (err)
                assert_null(t.log);
            assert_int_equal(log_dir_offline(t.dir), err && errors[k] != EMFILE);
            if (!err) {
                teardown(&t);
                assert_true(n > 8);
                break;
            }
            if (errors[k] == EMFILE) /* the next attempt finds nothing in its way */
                assert_int_equal(try_create(&t), 0);
            fresh_dir(&t);
            struct file_stat st;
            if (fs_stat(t.fs, log_file(&t, ""), &st) == 0) { /* half made: loads all the same */
                assert_int_equal(try_open(&t, false), 0);
                append_many(&t, 1, 1);
                check(&t);
            }
            teardown(&t);
        }
}

static void every_failure_of_deleting(void **state)
{
    for (uint64_t n = 1; n < 5; n++) {
        struct log_test t;
        setup_log(&t);
        append_many(&t, 3, 1);
        fs_fault_fail_at(t.fault, n, EIO);
        int err = log_delete(t.log, 0);
        fs_fault_fail_at(t.fault, 0, 0);
        assert_int_equal(log_dir_offline(t.dir), err != 0);
        fresh_dir(&t);
        struct file_stat st;
        if (fs_stat(t.fs, log_file(&t, ""), &st) == 0) {
            assert_int_equal(try_open(&t, false), 0);
            assert_int_equal(log_end_offset(t.log), 3);
        }
        teardown(&t);
    }
}

/* Want of descriptors or memory says nothing about the dir: the log is as before, and can be
 * deleted later; or it is deleted. Nothing between: such a log would be in everybody's way for
 * ever. */
static void a_shortage_while_deleting(void **state)
{
    static const int errors[] = {EMFILE, ENFILE, ENOMEM};
    for (int e = 0; e < 3; e++)
        for (uint64_t n = 1; n < 5; n++) {
            struct log_test t;
            struct file_stat st;
            setup_log(&t);
            append_many(&t, 3, 1);
            fs_fault_fail_at(t.fault, n, errors[e]);
            int err = log_delete(t.log, 0);
            fs_fault_fail_at(t.fault, 0, 0);
            assert_false(log_dir_offline(t.dir));
            if (err) {
                assert_int_equal(err, -errors[e]);
                assert_int_equal(read_at(&t, 0, 100), 1);
                append_many(&t, 1, 1);
                check(&t);
                assert_int_equal(log_delete(t.log, 0), 0);
            }
            assert_int_equal(fs_stat(t.fs, temp_dir_path(&t.tmp, "data/orders-0"), &st), -ENOENT);
            log_dir_remove_due(t.dir);
            teardown(&t);
        }
}

static void every_failure_of_a_recovery(void **state)
{
    for (uint64_t n = 1;; n++) {
        struct log_test t;
        setup(&t);
        t.config.segment_bytes = 600;
        t.config.index_interval_bytes = 100;
        assert_int_equal(try_create(&t), 0);
        for (int i = 0; i < 20; i++) {
            struct records r = produced(1, 0, i, 1, true);
            assert_int_equal(append(&t, &r), KERR_NONE);
        }
        assert_int_equal(append_marker(&t, 1, 0, false, 0), KERR_NONE);
        note_checkpoints(&t);
        drop_log(&t);
        fs_fault_fail_at(t.fault, n, EIO);
        int err = try_open(&t, false);
        fs_fault_fail_at(t.fault, 0, 0);
        if (log_dir_offline(t.dir) != (err != 0))
            fail_msg("call %d: error %d, %s", (int)n, err, t.said);
        if (!err) {
            assert_true(n > 50);
            teardown(&t);
            break;
        }
        assert_null(t.log);
        fresh_dir(&t);
        assert_int_equal(try_open(&t, false), 0);
        assert_int_equal(log_end_offset(t.log), 21);
        assert_int_equal(
            size_of(&t, "00000000000000000000.txnindex") > 0 || log_segment_count(t.log) > 1, 1);
        check(&t);
        teardown(&t);
    }
}

/* ---- reading ---- */

static void a_read_error_takes_the_dir_offline(void **state)
{
    struct log_test t;
    struct log_slice s;
    struct offset_lookup l;
    setup_log(&t);
    append_many(&t, 3, 1);
    reopen_clean(&t);
    fs_fault_add(t.fault, (struct fs_fault_rule){.call = FS_PREAD, .times = 1, .error = EIO});
    assert_int_equal(log_read(t.log, 0, 100, 3, true, false, &s), KERR_KAFKA_STORAGE_ERROR);
    assert_null(s.file);
    assert_true(log_dir_offline(t.dir));
    assert_int_equal(log_read(t.log, 0, 100, 3, true, false, &s), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(log_lookup(t.log, T0, 3, &l), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(log_set_topic_id(t.log, uuid_random()), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(log_begin_epoch(t.log, 4), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(log_raise_start_offset(t.log, 0), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(log_truncate_to(t.log, 0), KERR_KAFKA_STORAGE_ERROR);
    fs_fault_clear(t.fault);
    teardown(&t);
}

static void a_shortage_of_descriptors_only_fails_the_call(void **state)
{
    struct log_test t;
    struct log_slice s;
    setup_log(&t);
    append_many(&t, 3, 1);
    reopen_clean(&t);
    fs_fault_add(t.fault, (struct fs_fault_rule){.call = FS_OPEN, .times = 1, .error = EMFILE});
    assert_int_equal(log_read(t.log, 0, 100, 3, true, false, &s), KERR_KAFKA_STORAGE_ERROR);
    assert_false(log_dir_offline(t.dir));
    assert_int_equal(log_read(t.log, 0, 100, 3, true, false, &s), KERR_NONE);
    file_unref(s.file);
    teardown(&t);
}

/* What a flush could not do for want of descriptors, the next one does: nothing that it was to make
 * durable is forgotten. The n-th open of the flush fails; false: there are fewer. */
static bool flush_short_of(int n)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 600;
    t.config.index_interval_bytes = 100;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 10, 1);
    note_checkpoints(&t);
    reopen_unclean(&t); /* recovered files are closed, and unsynced */
    append_many(&t, 10, 1);
    fs_fault_add(t.fault,
                 (struct fs_fault_rule){.call = FS_OPEN, .skip = n, .times = 1, .error = EMFILE});
    bool failed = log_flush(t.log) != KERR_NONE;
    fs_fault_clear(t.fault);
    assert_false(log_dir_offline(t.dir));
    assert_int_equal(log_flush(t.log), KERR_NONE);
    assert_int_equal(log_recovery_point(t.log), 20);
    t.recovery_point = 20;
    drop_log(&t);
    log_dir_free(t.dir);
    assert_int_equal(fs_fault_crash(t.fault, t.data, FS_CRASH_DROP, 1), 0);
    make_dir(&t);
    assert_int_equal(try_open(&t, false), 0);
    if (log_end_offset(t.log) != 20)
        fail_msg("open %d: end %" PRId64, n, log_end_offset(t.log));
    if (strstr(t.said, "made anew"))
        fail_msg("open %d: an index did not reach the disk:\n%s", n, t.said);
    check(&t);
    teardown(&t);
    return failed;
}

static void the_next_flush_makes_up_for_a_shortage(void **state)
{
    int n = 0;
    while (flush_short_of(n))
        n++;
    assert_true(n > 3);
}

/* The same for the names of new segments: opening the folder takes a descriptor, too. */
static void the_next_flush_syncs_the_folder_again(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 600;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 20, 1);
    fs_fault_add(t.fault, (struct fs_fault_rule){.call = FS_SYNC_DIR, .times = 1, .error = EMFILE});
    assert_int_equal(log_flush(t.log), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(log_recovery_point(t.log), 0);
    uint64_t before = fs_fault_count(t.fault, FS_SYNC_DIR);
    assert_int_equal(log_flush(t.log), KERR_NONE);
    assert_int_equal(fs_fault_count(t.fault, FS_SYNC_DIR), before + 1);
    assert_int_equal(log_recovery_point(t.log), 20);
    teardown(&t);
}

/* Records of an old format end the epochs; until the file says so they would mislead the next life.
 */
static void epochs_that_ended_are_gone_from_the_file(void **state)
{
    struct log_test t;
    struct append_info info;
    setup_log(&t);
    assert_int_equal(replicate(&t, 0, 1, 3), KERR_NONE);
    struct records r = records_of(1);
    r.o.magic = 1;
    r.first_offset = 1;
    struct buf b = build(&r);
    fs_fault_add(t.fault,
                 (struct fs_fault_rule){
                     .call = FS_OPEN, .path = "*leader-epoch*", .times = 1, .error = EMFILE});
    assert_int_equal(append_bytes(&t, &b, 0, APPEND_REPLICATION, &info), KERR_KAFKA_STORAGE_ERROR);
    assert_false(log_dir_offline(t.dir));
    assert_int_equal(append_bytes(&t, &b, 0, APPEND_REPLICATION, &info), KERR_NONE);
    buf_free(&b);
    fs_fault_clear(t.fault);
    reopen_clean(&t);
    assert_int_equal(log_latest_epoch(t.log), -1);
    teardown(&t);
}

/* An fsync that failed has failed, whatever the error: pages may be lost. */
static void a_failed_sync_is_never_a_shortage(void **state)
{
    static const enum fs_call calls[] = {FS_SYNC, FS_MSYNC};
    for (int i = 0; i < 2; i++) {
        struct log_test t;
        setup(&t);
        t.config.index_interval_bytes = 0;
        assert_int_equal(try_create(&t), 0);
        append_many(&t, 3, 1);
        fs_fault_add(t.fault,
                     (struct fs_fault_rule){.call = calls[i], .times = 1, .error = ENOMEM});
        assert_int_equal(log_flush(t.log), KERR_KAFKA_STORAGE_ERROR);
        assert_true(log_dir_offline(t.dir));
        fs_fault_clear(t.fault);
        teardown(&t);
    }
}

/* Part of a write is taken back: whoever looks at the file before a restart sees whole batches. */
static void a_short_write_is_cut_back(void **state)
{
    struct log_test t;
    setup_log(&t);
    append_many(&t, 3, 1);
    int64_t size = log_size(t.log);
    fs_fault_add(
        t.fault,
        (struct fs_fault_rule){
            .call = FS_PWRITEV, .path = "*.log", .times = 1, .error = ENOSPC, .write_bytes = 33});
    struct records r = records_of(1);
    assert_int_equal(append(&t, &r), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(size_of(&t, "00000000000000000000.log"), size);
    assert_int_equal(log_end_offset(t.log), 3);
    assert_int_equal(log_size(t.log), size);
    teardown(&t);
    /* a write that is only short goes on */
    setup_log(&t);
    fs_fault_add(t.fault, (struct fs_fault_rule){
                              .call = FS_PWRITEV, .path = "*.log", .times = 3, .write_bytes = 10});
    append_many(&t, 3, 1);
    check(&t);
    teardown(&t);
}

UNIT_MAIN(unit_test(a_leader_with_io_errors), unit_test(a_leader_on_a_full_disk),
          unit_test(a_leader_without_descriptors), unit_test(a_follower_with_io_errors),
          unit_test(a_follower_without_descriptors), unit_test(every_failure_of_making_a_log),
          unit_test(every_failure_of_deleting), unit_test(a_shortage_while_deleting),
          unit_test(every_failure_of_a_recovery), unit_test(a_read_error_takes_the_dir_offline),
          unit_test(a_shortage_of_descriptors_only_fails_the_call),
          unit_test(a_short_write_is_cut_back), unit_test(the_next_flush_makes_up_for_a_shortage),
          unit_test(the_next_flush_syncs_the_folder_again),
          unit_test(epochs_that_ended_are_gone_from_the_file),
          unit_test(a_failed_sync_is_never_a_shortage))
