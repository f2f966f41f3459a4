/* One appender, several readers, flushes, retention, look-ups, a change of settings: all at once.
 * Meant for the thread sanitizer; the readers also check that what they see is whole. */
#include <pthread.h>

#include "log_util.h"

#include "log/open_files.h"

enum { READERS = 3, APPENDS = 3000 };

struct shared {
    struct log_test t;
    struct open_files open; /* so few that they are opened and closed all the time */
    atomic_bool stop;
    atomic_int reads, retained;
};

static void *reader(void *arg)
{
    struct shared *sh = arg;
    struct log *log = sh->t.log;
    uint64_t random = (uint64_t)(uintptr_t)&random;
    uint8_t *p = malloc(64 << 10);
    while (!atomic_load(&sh->stop)) {
        struct log_slice s;
        int64_t start = log_start_offset(log), end = log_high_watermark(log);
        int64_t at = start + (int64_t)(test_random(&random) % (uint64_t)(end - start + 1));
        if (test_random(&random) % 2) /* near the end, where the appender is */
            at = end - 1 > start ? end - 1 : start;
        enum kerr code = log_read(log, at, 2000, end, true, false, &s);
        if (code == KERR_OFFSET_OUT_OF_RANGE) { /* only retention can have taken it */
            assert_true(log_start_offset(log) > at);
            continue;
        }
        assert_int_equal(code, KERR_NONE);
        if (s.len == 0) {
            assert_true(at >= end);
            continue;
        }
        assert_int_equal(file_pread(s.file, p, s.len, s.pos), s.len);
        file_unref(s.file);
        struct batch b;
        int64_t next = -1;
        for (uint32_t o = 0; batch_decode(p + o, s.len - o, s.len - o, &b) == BATCH_OK;
             o += b.size) {
            assert_true(batch_crc_ok(&b));
            assert_true(next < 0 ? b.base_offset <= at && b.last_offset >= at
                                 : b.base_offset == next);
            next = b.last_offset + 1;
        }
        assert_true(next > at && next <= end); /* never beyond what is committed */
        atomic_fetch_add(&sh->reads, 1);
    }
    free(p);
    return NULL;
}

static void *looker(void *arg)
{
    struct shared *sh = arg;
    struct log *log = sh->t.log;
    struct arena a;
    arena_init(&a, 0);
    while (!atomic_load(&sh->stop)) {
        struct offset_lookup l;
        int64_t end = log_end_offset(log), *v;
        int32_t epoch;
        int n;
        assert_int_equal(log_lookup(log, T0 + end / 2, end, &l), KERR_NONE);
        assert_true(l.offset < end);
        assert_int_equal(log_lookup(log, LIST_MAX_TIMESTAMP, end, &l), KERR_NONE);
        assert_int_equal(log_offsets_before(log, -1, end, 5, &a, &v, &n), KERR_NONE);
        log_end_offset_for_epoch(log, 0, &epoch, &end);
        assert_true(log_bytes_between(log, 0, end) >= 0);
        assert_true(log_last_stable_offset(log) <= log_end_offset(log));
        const struct log_config *c = log_config_ref(log);
        assert_true(c->segment_bytes > 0);
        log_config_unref(c);
        arena_reset(&a);
    }
    arena_free(&a);
    return NULL;
}

/* Flushes, retention, checkpoints' questions, settings. */
static void *upkeep(void *arg)
{
    struct shared *sh = arg;
    struct log *log = sh->t.log;
    struct log_config c = sh->t.config;
    int64_t point = 0;
    for (int i = 0; !atomic_load(&sh->stop); i++) {
        assert_int_equal(log_flush(log), KERR_NONE);
        assert_true(log_recovery_point(log) >= point);
        point = log_recovery_point(log);
        atomic_fetch_add(&sh->retained, log_retention(log, T0));
        log_dir_remove_due(sh->t.dir);
        c.segment_bytes = 3000 + i % 7 * 500;
        log_set_config(log, &c);
        log_expire_producers(log, T0);
        (void)log_size(log);
        (void)log_topic_id(log);
    }
    return NULL;
}

static void all_at_once(void **state)
{
    struct shared sh = {0};
    pthread_t threads[READERS + 2];
    setup(&sh.t);
    sh.t.config.segment_bytes = 3000;
    sh.t.config.index_interval_bytes = 200;
    sh.t.config.retention_bytes = 20000;
    sh.t.config.file_delete_delay_ms = 0;
    /* the plain layer: the one that fails has a lock of its own, which would order everything */
    log_dir_free(sh.t.dir);
    sh.t.fs = fs_posix();
    make_dir(&sh.t);
    open_files_init(&sh.open, 2);
    sh.t.dir->open_files = &sh.open;
    assert_int_equal(try_create(&sh.t), 0);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, &sh), 0);
    assert_int_equal(pthread_create(&threads[READERS], NULL, looker, &sh), 0);
    assert_int_equal(pthread_create(&threads[READERS + 1], NULL, upkeep, &sh), 0);
    int32_t sequence = 0;
    bool open = false;
    for (int i = 0; i < APPENDS || atomic_load(&sh.retained) < 5; i++) {
        struct records r = records_of(1 + i % 4);
        r.timestamp = T0 + i;
        r.value_n = (size_t)(i * 7 % 90);
        assert_int_equal(append(&sh.t, &r), KERR_NONE);
        if (i % 10 == 0) {
            struct records p = produced(9, 0, sequence++, 1, true);
            assert_int_equal(append(&sh.t, &p), KERR_NONE);
            open = true;
        }
        if (i % 30 == 29 && open) {
            assert_int_equal(append_marker(&sh.t, 9, 0, i % 60 == 29, 0), KERR_NONE);
            open = false;
        }
        /* sometimes the watermark lags behind the end */
        if (i % 3)
            log_set_high_watermark(sh.t.log, log_end_offset(sh.t.log));
    }
    atomic_store(&sh.stop, true);
    for (int i = 0; i < READERS + 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(atomic_load(&sh.reads) > 0);
    assert_false(log_dir_offline(sh.t.dir));
    check(&sh.t);
    reopen_clean(&sh.t);
    check(&sh.t);
    teardown(&sh.t);
}

/* A follower that is cut again and again under its readers: they may see old or new, never a
 * fault. */
static void *reader_of_a_cut_log(void *arg)
{
    struct shared *sh = arg;
    struct log *log = sh->t.log;
    uint64_t random = 5;
    uint8_t *p = malloc(64 << 10);
    while (!atomic_load(&sh->stop)) {
        struct log_slice s;
        struct offset_lookup l;
        int64_t end = log_end_offset(log);
        int64_t at = (int64_t)(test_random(&random) % (uint64_t)(end + 1));
        enum kerr code = log_read(log, at, 1000, end, true, false, &s);
        assert_true(code == KERR_NONE || code == KERR_OFFSET_OUT_OF_RANGE);
        if (code == KERR_NONE && s.len) {
            assert_true(file_pread(s.file, p, s.len, s.pos) >= 0); /* may be short */
            file_unref(s.file);
        }
        (void)log_lookup(log, T0, end, &l);
        atomic_fetch_add(&sh->reads, 1);
    }
    free(p);
    return NULL;
}

static void cut_under_readers(void **state)
{
    struct shared sh = {0};
    pthread_t threads[READERS];
    uint64_t random = 1;
    setup(&sh.t);
    sh.t.config.segment_bytes = 2000;
    sh.t.config.index_interval_bytes = 100;
    sh.t.config.file_delete_delay_ms = 0;
    log_dir_free(sh.t.dir);
    sh.t.fs = fs_posix();
    make_dir(&sh.t);
    assert_int_equal(try_create(&sh.t), 0);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader_of_a_cut_log, &sh), 0);
    for (int i = 0; i < 150 || atomic_load(&sh.reads) < 1000; i++) {
        for (int k = 0; k < 20; k++)
            assert_int_equal(replicate(&sh.t, log_end_offset(sh.t.log), 2, i), KERR_NONE);
        int64_t end = log_end_offset(sh.t.log);
        int64_t back = (int64_t)(test_random(&random) % 60);
        enum kerr code = i % 17 == 16 ? log_truncate_fully(sh.t.log, end / 2)
                                      : log_truncate_to(sh.t.log, end - back > 0 ? end - back : 0);
        assert_int_equal(code, KERR_NONE);
        log_dir_remove_due(sh.t.dir);
    }
    atomic_store(&sh.stop, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    assert_false(log_dir_offline(sh.t.dir));
    check(&sh.t);
    teardown(&sh.t);
}

/* Many threads come to a log at rest: each file is opened for all of them. */
static void *first_reader(void *arg)
{
    struct shared *sh = arg;
    while (!atomic_load(&sh->stop))
        ;
    for (int64_t at = 0; at < 100; at++) {
        struct log_slice s;
        assert_int_equal(log_read(sh->t.log, at, 1, 100, true, false, &s), KERR_NONE);
        assert_true(s.len > 0);
        file_unref(s.file);
    }
    return NULL;
}

static void files_are_opened_by_many_at_once(void **state)
{
    for (int round = 0; round < 5; round++) {
        struct shared sh = {0};
        pthread_t threads[4];
        setup(&sh.t);
        sh.t.config.segment_bytes = 800;
        sh.t.config.index_interval_bytes = 100;
        log_dir_free(sh.t.dir);
        sh.t.fs = fs_posix();
        make_dir(&sh.t);
        assert_int_equal(try_create(&sh.t), 0);
        append_many(&sh.t, 100, 1);
        reopen_clean(&sh.t);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, first_reader, &sh), 0);
        atomic_store(&sh.stop, true); /* go */
        append_many(&sh.t, 20, 1);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        check(&sh.t);
        teardown(&sh.t);
    }
}

UNIT_MAIN(unit_test(all_at_once), unit_test(cut_under_readers),
          unit_test(files_are_opened_by_many_at_once))
