/* Descriptors of segments: never more than allowed, whatever is read and written; files that were
 * closed come back. */
#include "log/open_files.h"

#include <dirent.h>

#include "log_util.h"

struct many {
    struct log_test t;
    struct open_files open;
    struct log *logs[30];
};

/* On real files, whose descriptors can be counted. */
static void setup_many(struct many *m, int max, int n)
{
    memset(m, 0, sizeof(*m));
    setup(&m->t);
    log_dir_free(m->t.dir);
    m->t.fs = fs_posix();
    make_dir(&m->t);
    open_files_init(&m->open, max);
    m->t.dir->open_files = &m->open;
    m->t.config.segment_bytes = 400;
    m->t.config.index_interval_bytes = 100;
    for (int i = 0; i < n; i++) {
        struct topic_partition tp = {TOPIC, i};
        assert_int_equal(log_create(m->t.dir, tp, &m->t.config, UUID_ZERO, &m->logs[i]), 0);
    }
}

static void teardown_many(struct many *m)
{
    for (int i = 0; i < 30; i++)
        log_unref(m->logs[i]);
    assert_int_equal(m->open.n, 0);
    teardown(&m->t);
    open_files_free(&m->open);
}

static void use(struct many *m, int i)
{
    m->t.log = m->logs[i];
}

static int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void never_more_than_allowed(void **state)
{
    struct many m;
    setup_many(&m, 10, 30);
    int before = descriptors();
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 30; i++) {
            use(&m, i);
            append_many(&m.t, 2, 1);
            assert_true(m.open.n <= 10);
        }
    for (int i = 0; i < 30; i++) {
        use(&m, i);
        assert_true(log_segment_count(m.logs[i]) >= 2);
        read_all(&m.t, 1);
        check(&m.t);
        assert_true(m.open.n <= 10);
        assert_true(descriptors() <= before + 10 + 2);
    }
    for (int i = 0; i < 30; i++) { /* closed with data that was not synced: the sync opens them */
        assert_int_equal(log_flush(m.logs[i]), KERR_NONE);
        assert_int_equal(log_recovery_point(m.logs[i]), 10);
    }
    m.t.log = NULL;
    teardown_many(&m);
}

/* A slice keeps the file that it needs; who used a file lately keeps it rather than who did not. */
static void slices_and_hot_files_are_spared(void **state)
{
    struct many m;
    struct log_slice s;
    char head[12];
    setup_many(&m, 4, 12);
    for (int i = 0; i < 12; i++) {
        use(&m, i);
        append_many(&m.t, 1, 1);
        assert_int_equal(log_flush(m.logs[i]), KERR_NONE);
    }
    assert_int_equal(log_read(m.logs[0], 0, 100, 1, true, false, &s), KERR_NONE);
    for (int i = 1; i < 12; i++) {
        use(&m, i);
        read_all(&m.t, 100);
        use(&m, 11); /* hot */
        read_all(&m.t, 100);
    }
    assert_null(m.logs[0]->segments.now->v[0]->file);
    assert_non_null(m.logs[11]->segments.now->v[0]->file);
    assert_int_equal(file_pread(s.file, head, sizeof(head), s.pos), sizeof(head));
    file_unref(s.file);
    m.t.log = NULL;
    teardown_many(&m);
}

/* No descriptors at all: what rests is closed, and the call succeeds. */
static void running_out_closes_what_rests(void **state)
{
    struct many m;
    setup_many(&m, 100, 10);
    for (int i = 0; i < 10; i++) {
        use(&m, i);
        append_many(&m.t, 1, 1);
    }
    assert_true(m.open.n == 10);
    assert_true(open_files_shrink(&m.open));
    assert_int_equal(m.open.n, 5);
    for (int i = 0; i < 10; i++) {
        use(&m, i);
        read_all(&m.t, 100);
    }
    while (open_files_shrink(&m.open))
        ;
    assert_int_equal(m.open.n, 0);
    m.t.log = NULL;
    teardown_many(&m);
}

/* Aborted transactions are in files of their own, which go and come with the segment's. */
static void transaction_indexes_too(void **state)
{
    struct many m;
    setup_many(&m, 1, 2);
    m.t.config.segment_bytes = 1 << 20;
    for (int i = 0; i < 2; i++) {
        log_set_config(m.logs[i], &m.t.config);
        use(&m, i);
        for (int k = 0; k < 3; k++) {
            struct records r = produced(7, 0, k, 1, true);
            assert_int_equal(append(&m.t, &r), KERR_NONE);
            assert_int_equal(append_marker(&m.t, 7, 0, false, 0), KERR_NONE);
        }
        log_set_high_watermark(m.logs[i], 6);
    }
    for (int k = 0; k < 4; k++) {
        struct log *log = m.logs[k % 2];
        struct log_slice s;
        struct aborted_txn *aborted;
        int n;
        arena_reset(&m.t.arena);
        assert_int_equal(
            log_read_committed(log, 0, 1 << 20, 6, true, false, &m.t.arena, &s, &aborted, &n),
            KERR_NONE);
        assert_int_equal(n, 3);
        file_unref(s.file);
        use(&m, (k + 1) % 2);
        read_all(&m.t, 1 << 20);
        assert_null(log->segments.now->v[0]->txns.file);
    }
    m.t.log = NULL;
    teardown_many(&m);
}

/* After a start each index is looked into for the first time: the empty ones keep no descriptor
 * either, and can be written to and synced all the same. */
static void empty_indexes_hold_nothing(void **state)
{
    struct many m;
    setup_many(&m, 4, 30);
    m.t.config.index_interval_bytes = 1 << 20;
    for (int i = 0; i < 30; i++) {
        log_set_config(m.logs[i], &m.t.config);
        use(&m, i);
        append_many(&m.t, 6, 1);
        assert_int_equal(log_close(m.logs[i]), 0);
        log_unref(m.logs[i]);
    }
    int before = descriptors();
    for (int clean = 1; clean >= 0; clean--) {
        for (int i = 0; i < 30; i++) {
            struct log_open_args a = {.dir = m.t.dir,
                                      .tp = {TOPIC, i},
                                      .config = &m.t.config,
                                      .clean = clean,
                                      .recovery_point = clean ? 6 : 0};
            assert_int_equal(log_open(&a, &m.logs[i]), 0);
            use(&m, i);
            read_all(&m.t, 1);
            assert_true(descriptors() <= before + 4 + 1);
        }
        for (int i = 0; i < 30; i++) {
            use(&m, i);
            append_many(&m.t, 1, 1);
            assert_int_equal(log_flush(m.logs[i]), KERR_NONE);
            if (clean)
                assert_int_equal(log_close(m.logs[i]), 0);
            if (clean)
                log_unref(m.logs[i]);
        }
    }
    m.t.log = NULL;
    teardown_many(&m);
}

/* ---- maps of indexes ---- */

/* Maps of this process of files below the test's folder. */
static int maps_of(struct many *m)
{
    char line[8192];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof(line), f))
        n += strstr(line, m->t.data) != NULL;
    if (f)
        fclose(f);
    return n;
}

/* However many segments are read, written, looked up by time and rolled: the number is kept, and
 * nothing is lost. */
static void maps_of_indexes_are_few(void **state)
{
    struct many m;
    setup_many(&m, 1000, 30);
    m.open.max_maps = 12;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 30; i++) {
            use(&m, i);
            append_many(&m.t, 3, 1);
            assert_true(m.open.maps <= 12);
        }
        assert_true(maps_of(&m) <= 12 + 2);
    }
    for (int i = 0; i < 30; i++) {
        struct offset_lookup found;
        use(&m, i);
        assert_true(log_segment_count(m.logs[i]) >= 3);
        read_all(&m.t, 1);
        assert_int_equal(log_lookup(m.logs[i], T0, log_end_offset(m.logs[i]), &found), KERR_NONE);
        assert_int_equal(found.offset, 0);
        check(&m.t);
        assert_true(m.open.maps <= 12);
        assert_true(maps_of(&m) <= 12 + 2);
        assert_int_equal(log_flush(m.logs[i]), KERR_NONE);
        assert_true(maps_of(&m) <= 12 + 2);
    }
    m.t.log = NULL;
    teardown_many(&m);
    assert_int_equal(m.open.maps, 0);
}

/* Who may not wait opens nothing; who may, opens for both. */
static void without_waiting_no_index_is_opened(void **state)
{
    struct many m;
    struct index_view v;
    setup_many(&m, 1000, 1);
    use(&m, 0);
    append_many(&m.t, 40, 1);
    struct segment *s = m.logs[0]->segments.now->v[0];
    for (int round = 0; round < 2; round++) {
        segment_drop_files(s);
        assert_int_equal(segment_offsets_now(s, &v), -EAGAIN);
        index_view_close(&v);
        assert_false(index_file_mapped(&s->offsets));
        assert_int_equal(segment_offsets(s, &v), 0);
        index_view_close(&v);
        assert_int_equal(segment_offsets_now(s, &v), 0);
        assert_true(v.now && v.n > 0);
        index_view_close(&v);
    }
    m.t.log = NULL;
    teardown_many(&m);
}

/* One thread reads everywhere while others write: looked at by the sanitizers. */
struct reader_thread {
    struct many *m;
    atomic_bool stop;
};

static void *read_everywhere(void *arg)
{
    struct reader_thread *r = arg;
    for (unsigned i = 0; !atomic_load(&r->stop); i++) {
        struct log *log = r->m->logs[i % 4];
        int64_t end = log_end_offset(log);
        struct log_slice s;
        if (end > 0 && log_read(log, i % (unsigned)end, 100, end, true, false, &s) == KERR_NONE)
            file_unref(s.file);
    }
    return NULL;
}

static void maps_are_closed_under_readers(void **state)
{
    struct many m;
    struct reader_thread r = {.m = &m};
    pthread_t threads[2];
    setup_many(&m, 1000, 4);
    m.open.max_maps = 2;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_everywhere, &r), 0);
    for (int round = 0; round < 60; round++)
        for (int i = 0; i < 4; i++) {
            use(&m, i);
            append_many(&m.t, 2, 1);
        }
    atomic_store(&r.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) {
        use(&m, i);
        read_all(&m.t, 1);
        check(&m.t);
    }
    m.t.log = NULL;
    teardown_many(&m);
}

UNIT_MAIN(unit_test(never_more_than_allowed), unit_test(slices_and_hot_files_are_spared),
          unit_test(running_out_closes_what_rests), unit_test(transaction_indexes_too),
          unit_test(empty_indexes_hold_nothing), unit_test(maps_of_indexes_are_few),
          unit_test(without_waiting_no_index_is_opened), unit_test(maps_are_closed_under_readers))
