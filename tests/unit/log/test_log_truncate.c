/* Cutting a log back. */
#include "log_util.h"

static void every_cut_leaves_a_prefix(void **state)
{
    for (int64_t cut = 0; cut <= 62; cut++) {
        struct log_test t;
        setup(&t);
        t.config.segment_bytes = 1000;
        t.config.index_interval_bytes = 100;
        assert_int_equal(try_create(&t), 0);
        for (int i = 0; i < 20; i++)
            assert_int_equal(replicate(&t, 3 * i, 3, i / 7), KERR_NONE);
        log_set_high_watermark(t.log, 40);
        assert_int_equal(log_flush(t.log), KERR_NONE);
        assert_int_equal(log_truncate_to(t.log, cut), KERR_NONE);
        int64_t end = cut < 60 ? cut : 60;
        assert_int_equal(log_end_offset(t.log), end);
        assert_true(log_high_watermark(t.log) <= end);
        assert_true(log_recovery_point(t.log) <= end);
        /* inside a batch: the whole batch went, and the gap is legal */
        int64_t kept = cut < 60 ? cut / 3 * 3 : 60;
        int64_t at = 0, next;
        while ((next = read_at(&t, at, 200)) > 0)
            at = next;
        assert_int_equal(at, kept);
        check(&t);
        assert_int_equal(replicate(&t, end, 2, 5), KERR_NONE);
        check(&t);
        reopen_clean(&t);
        assert_int_equal(log_end_offset(t.log), end + 2);
        check(&t);
        reopen_unclean(&t);
        assert_int_equal(log_end_offset(t.log), end + 2);
        check(&t);
        teardown(&t);
    }
}

static void epochs_go_with_the_records(void **state)
{
    struct log_test t;
    setup_log(&t);
    assert_int_equal(replicate(&t, 0, 10, 0), KERR_NONE);
    assert_int_equal(replicate(&t, 10, 10, 3), KERR_NONE);
    assert_int_equal(log_begin_epoch(t.log, 4), KERR_NONE);
    assert_int_equal(log_latest_epoch(t.log), 4);
    assert_int_equal(log_truncate_to(t.log, 20), KERR_NONE); /* the end: nothing but epochs */
    assert_int_equal(log_latest_epoch(t.log), 3);
    assert_int_equal(log_truncate_to(t.log, 10), KERR_NONE);
    assert_int_equal(log_latest_epoch(t.log), 0);
    reopen_clean(&t);
    assert_int_equal(log_latest_epoch(t.log), 0);
    teardown(&t);
}

static void below_the_first_segment_it_begins_anew(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 300;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 20, 1);
    log_set_high_watermark(t.log, 20);
    assert_int_equal(log_raise_start_offset(t.log, 15), KERR_NONE);
    assert_true(log_retention(t.log, T0) > 0);
    assert_true(t.log->segments.now->v[0]->base > 3);
    assert_int_equal(log_truncate_to(t.log, 3), KERR_NONE);
    assert_int_equal(log_start_offset(t.log), 3);
    assert_int_equal(log_end_offset(t.log), 3);
    assert_int_equal(log_high_watermark(t.log), 3);
    check(&t);
    assert_int_equal(replicate(&t, 3, 2, 1), KERR_NONE);
    assert_int_equal(read_at(&t, 3, 100), 5);
    reopen_clean(&t);
    check(&t);
    teardown(&t);
}

static void starting_over_anywhere(void **state)
{
    static const int64_t at[] = {0, 5, 20, 1000000};
    for (int i = 0; i < 4; i++) {
        struct log_test t;
        struct append_info info;
        setup_log(&t);
        append_many(&t, 10, 1);
        struct records p = produced(1, 0, 0, 2, true);
        assert_int_equal(append(&t, &p), KERR_NONE);
        log_set_high_watermark(t.log, 12);
        assert_int_equal(log_truncate_fully(t.log, at[i]), KERR_NONE);
        assert_int_equal(log_start_offset(t.log), at[i]);
        assert_int_equal(log_end_offset(t.log), at[i]);
        assert_int_equal(log_high_watermark(t.log), at[i]);
        assert_int_equal(log_last_stable_offset(t.log), at[i]);
        assert_int_equal(log_latest_epoch(t.log), -1);
        assert_int_equal(log_segment_count(t.log), 1);
        check(&t);
        struct log_slice s;
        assert_int_equal(log_read(t.log, at[i], 100, at[i], true, false, &s), KERR_NONE);
        assert_int_equal(s.len, 0);
        if (at[i] > 0)
            assert_int_equal(log_read(t.log, 0, 100, 9, true, false, &s), KERR_OFFSET_OUT_OF_RANGE);
        /* the producer is forgotten with its records */
        struct records next = produced(1, 0, 7, 1, false);
        assert_int_equal(append_info(&t, &next, &info), KERR_NONE);
        assert_int_equal(info.first_offset, at[i]);
        log_dir_remove_due(t.dir);
        reopen_clean(&t);
        assert_int_equal(log_start_offset(t.log), at[i]);
        assert_int_equal(log_end_offset(t.log), at[i] + 1);
        check(&t);
        teardown(&t);
    }
}

static void producers_are_as_of_the_cut(void **state)
{
    struct log_test t;
    struct append_info info;
    setup(&t);
    t.config.segment_bytes = 400;
    assert_int_equal(try_create(&t), 0);
    for (int i = 0; i < 20; i++) {
        struct records r = produced(1, 0, i, 1, false);
        assert_int_equal(append(&t, &r), KERR_NONE);
    }
    struct records open = produced(2, 0, 0, 1, true);
    assert_int_equal(append(&t, &open), KERR_NONE); /* 20 */
    log_set_high_watermark(t.log, 21);
    assert_int_equal(log_last_stable_offset(t.log), 20);
    assert_int_equal(log_truncate_to(t.log, 13), KERR_NONE);
    assert_int_equal(log_last_stable_offset(t.log), 13);
    struct records again = produced(1, 0, 12, 1, false);
    assert_int_equal(append_info(&t, &again, &info), KERR_NONE);
    assert_true(info.duplicate);
    assert_int_equal(info.first_offset, 12);
    struct records wrong = produced(1, 0, 20, 1, false), right = produced(1, 0, 13, 1, false);
    assert_int_equal(append(&t, &wrong), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(append(&t, &right), KERR_NONE);
    check(&t);
    teardown(&t);
}

static void aborted_transactions_above_the_cut_are_forgotten(void **state)
{
    struct log_test t;
    setup_log(&t);
    struct records a = produced(1, 0, 0, 1, true), b = produced(1, 0, 1, 1, true);
    assert_int_equal(append(&t, &a), KERR_NONE);
    assert_int_equal(append_marker(&t, 1, 0, false, 0), KERR_NONE);
    assert_int_equal(append(&t, &b), KERR_NONE);
    assert_int_equal(append_marker(&t, 1, 0, false, 0), KERR_NONE);
    assert_int_equal(size_of(&t, "00000000000000000000.txnindex"), 2 * TXN_ENTRY_BYTES);
    assert_int_equal(log_truncate_to(t.log, 3), KERR_NONE);
    assert_int_equal(size_of(&t, "00000000000000000000.txnindex"), TXN_ENTRY_BYTES);
    log_set_high_watermark(t.log, 3);
    assert_int_equal(log_last_stable_offset(t.log), 2); /* open again */
    assert_int_equal(append_marker(&t, 1, 0, true, 0), KERR_NONE);
    assert_int_equal(size_of(&t, "00000000000000000000.txnindex"), TXN_ENTRY_BYTES);
    check(&t);
    teardown(&t);
}

/* A reader that pinned the segments before the cut meets short files, never a fault. */
static void readers_of_the_old_segments_are_safe(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.index_interval_bytes = 50;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 40, 1);
    struct segment_list *old = log_pin(t.log);
    struct segment *s = old->v[0];
    struct index_view v, w;
    assert_int_equal(segment_offsets(s, &v), 0);
    int32_t n = v.n;
    assert_true(n > 10);
    assert_int_equal(log_truncate_to(t.log, 10), KERR_NONE);
    append_many(&t, 3, 5);
    pthread_mutex_lock(&t.log->lock);
    assert_int_equal(log_roll(t.log, log_end_offset(t.log)), 0);
    pthread_mutex_unlock(&t.log->lock);
    assert_int_equal(segment_offsets(s, &w), 0);
    assert_int_equal(w.n, n);
    for (int32_t i = 0; i < n; i++)
        assert_true(offset_index_at(&w, 0, i).offset > 0);
    index_view_close(&v);
    index_view_close(&w);
    struct file *f;
    struct batch b;
    int64_t pos;
    assert_int_equal(segment_file(s, &f), 0);
    (void)segment_find(s, f, 39, segment_size(s), &b, &pos);
    file_unref(f);
    segment_list_unpin(old);
    check(&t);
    teardown(&t);
}

/* The same one after its maps were closed to save maps: the names lead to other files now, which
 * are no answer, the first time and ever after. */
static void names_of_a_cut_segment_are_not_followed(void **state)
{
    struct log_test t;
    struct index_view v;
    setup(&t);
    t.config.index_interval_bytes = 50;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 40, 1);
    struct segment_list *old = log_pin(t.log);
    struct segment *s = old->v[0];
    assert_int_equal(log_truncate_to(t.log, 10), KERR_NONE);
    append_many(&t, 3, 5);
    segment_drop_files(s);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(segment_offsets(s, &v), -ESTALE);
        index_view_close(&v);
        assert_int_equal(segment_times(s, &v), -ESTALE);
        index_view_close(&v);
        assert_int_equal(segment_offsets_now(s, &v), -EAGAIN);
        index_view_close(&v);
        assert_false(index_file_mapped(&s->offsets));
        assert_false(index_file_mapped(&s->times));
    }
    assert_false(log_dir_offline(t.dir));
    segment_list_unpin(old);
    check(&t);
    teardown(&t);
}

/* Readers that come in the middle of a cut, at each of its calls of the file layer. */
struct amid {
    struct log_test *t;
    enum fs_call at; /* which calls */
    int seen;        /* those that were met */
    pthread_t threads[64];
    int threads_n;
};

static void read_below_the_cut(struct log *log, bool now, struct arena *a)
{
    for (int64_t offset = 0; offset < 10; offset += 3) {
        struct log_slice s;
        struct aborted_txn *aborted;
        int n;
        enum kerr code = now ? log_read_now(log, offset, 1, 12, true, false, &s)
                             : log_read(log, offset, 1, 12, true, false, &s);
        assert_int_equal(code, KERR_NONE);
        assert_true(s.cold ? now : s.first_offset == offset && s.len > 0);
        file_unref(s.file);
        code = now ? log_read_committed_now(log, offset, 1, 12, true, false, a, &s, &aborted, &n)
                   : log_read_committed(log, offset, 1, 12, true, false, a, &s, &aborted, &n);
        assert_int_equal(code, KERR_NONE);
        assert_true(s.cold ? now : s.first_offset == offset && s.len > 0 && n >= 1);
        file_unref(s.file);
    }
}

static void *read_with_waits(void *arg)
{
    struct amid *m = arg;
    struct arena a;
    struct offset_lookup found;
    arena_init(&a, 0);
    read_below_the_cut(m->t->log, false, &a);
    assert_int_equal(log_lookup(m->t->log, T0, 10, &found), KERR_NONE);
    assert_int_equal(found.offset, 0);
    arena_free(&a);
    return NULL;
}

static void read_amid(void *arg)
{
    struct amid *m = arg;
    m->seen++;
    fs_fault_clear(m->t->fault); /* the readers' own calls are of no interest */
    read_below_the_cut(m->t->log, true, &m->t->arena);
    assert_int_equal(pthread_create(&m->threads[m->threads_n], NULL, read_with_waits, m), 0);
    m->threads_n++;
}

/* What lies below the cut is there all the time, and nobody may hear that it is not: a consumer who
 * is told that his offset is out of range goes elsewhere, and loses or repeats records. */
static void a_cut_hides_nothing_below_it(void **state)
{
    static const enum fs_call calls[] = {FS_OPEN,    FS_UNLINK,   FS_TRUNCATE, FS_RENAME,
                                         FS_PWRITEV, FS_SYNC_DIR, FS_SYNC,     FS_PREAD};
    int met = 0;
    for (size_t c = 0; c < sizeof(calls) / sizeof(*calls); c++) {
        for (int skip = 0, seen = 1; seen; skip++) {
            struct log_test t;
            struct amid m = {.t = &t, .at = calls[c]};
            setup(&t);
            t.config.segment_bytes = 1500;
            t.config.index_interval_bytes = 50;
            assert_int_equal(try_create(&t), 0);
            for (int64_t id = 1; id <= 6; id++) {
                struct records r = produced(id, 0, 0, 2, true);
                assert_int_equal(append(&t, &r), KERR_NONE);
                assert_int_equal(append_marker(&t, id, 0, false, 0), KERR_NONE);
            }
            log_set_high_watermark(t.log, 18);
            fs_fault_add(
                t.fault,
                (struct fs_fault_rule){
                    .call = calls[c], .skip = skip, .times = 1, .before = read_amid, .arg = &m});
            assert_int_equal(log_truncate_to(t.log, 12), KERR_NONE);
            fs_fault_clear(t.fault);
            for (int i = 0; i < m.threads_n; i++)
                pthread_join(m.threads[i], NULL);
            seen = m.seen;
            met += seen;
            assert_int_equal(log_end_offset(t.log), 12);
            check(&t);
            teardown(&t);
        }
    }
    assert_true(met > 8);
}

static int note_save(void *arg, struct log_dir *d)
{
    ++*(int *)arg;
    return 0;
}

/* The checkpoint must not stay above what was cut. */
static void a_lowered_recovery_point_is_saved_at_once(void **state)
{
    struct log_test t;
    int saves = 0;
    setup_log(&t);
    t.dir->save_recovery_points = note_save;
    t.dir->save_arg = &saves;
    append_many(&t, 10, 1);
    assert_int_equal(log_flush(t.log), KERR_NONE);
    assert_int_equal(log_recovery_point(t.log), 10);
    assert_int_equal(log_truncate_to(t.log, 8), KERR_NONE); /* the file says 0: no need */
    assert_int_equal(saves, 0);
    atomic_store(&t.log->saved_recovery_point, 8);
    assert_int_equal(log_truncate_to(t.log, 5), KERR_NONE);
    assert_int_equal(saves, 1);
    assert_int_equal(log_recovery_point(t.log), 5);
    teardown(&t);
}

/* A clean stop leaves the newest time in the index, also where nothing came behind the cut. Seen by
 * the simulator: without it the file's age stands for that of the records. */
static void the_newest_time_outlives_a_clean_stop(void **state)
{
    for (int again = 0; again < 2; again++) {
        struct log_test t;
        struct time_offset newest;
        setup_log(&t);
        struct records r = records_of(5);
        assert_int_equal(append(&t, &r), KERR_NONE);
        r.timestamp = T0 + 1000;
        assert_int_equal(append(&t, &r), KERR_NONE);
        if (again) { /* a start in between: nobody has read its times but from the index */
            reopen_clean(&t);
            r.timestamp = T0 + 2000;
            assert_int_equal(append(&t, &r), KERR_NONE);
        }
        assert_int_equal(log_truncate_to(t.log, 5), KERR_NONE);
        reopen_clean(&t);
        assert_int_equal(segment_max_time(segment_list_active(t.log->segments.now), &newest), 0);
        assert_int_equal(newest.timestamp, T0 + 4);
        assert_int_equal(newest.offset, 4);
        check(&t);
        teardown(&t);
    }
}

UNIT_MAIN(unit_test(the_newest_time_outlives_a_clean_stop), unit_test(every_cut_leaves_a_prefix),
          unit_test(epochs_go_with_the_records), unit_test(below_the_first_segment_it_begins_anew),
          unit_test(starting_over_anywhere), unit_test(producers_are_as_of_the_cut),
          unit_test(aborted_transactions_above_the_cut_are_forgotten),
          unit_test(readers_of_the_old_segments_are_safe),
          unit_test(names_of_a_cut_segment_are_not_followed),
          unit_test(a_cut_hides_nothing_below_it),
          unit_test(a_lowered_recovery_point_is_saved_at_once))
