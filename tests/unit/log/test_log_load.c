/* What a start makes of what it finds: clean and unclean stops, damage, missing files. */
#include "log_util.h"

static void a_clean_start_reads_no_data(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 2000;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 100, 1);
    assert_int_equal(log_close(t.log), 0);
    check_closed(&t);
    note_checkpoints(&t);
    drop_log(&t);
    fs_fault_add(t.fault, (struct fs_fault_rule){.call = FS_OPEN,
                                                 .path = "*00000000000000000000.*",
                                                 .times = -1,
                                                 .error = EIO});
    uint64_t before = fs_fault_total(t.fault);
    assert_int_equal(try_open(&t, true), 0);
    uint64_t calls = fs_fault_total(t.fault) - before;
    assert_int_equal(log_end_offset(t.log), 100);
    assert_int_equal(log_recovery_point(t.log), 100);
    assert_true(calls < 40 + (uint64_t)log_segment_count(t.log));
    fs_fault_clear(t.fault);
    /* and a stop without a change writes nothing */
    uint64_t writes = fs_fault_count(t.fault, FS_PWRITEV) + fs_fault_count(t.fault, FS_SYNC);
    assert_int_equal(log_close(t.log), 0);
    assert_int_equal(fs_fault_count(t.fault, FS_PWRITEV) + fs_fault_count(t.fault, FS_SYNC),
                     writes);
    teardown(&t);
}

static void after_kill_9_all_is_there(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 2000;
    t.config.index_interval_bytes = 100;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 100, 1);
    reopen_unclean(&t);
    assert_int_equal(log_end_offset(t.log), 100);
    assert_int_equal(log_recovery_point(t.log), 0);
    check(&t);
    assert_true(read_all(&t, 500) > 10);
    append_many(&t, 10, 1);
    check(&t);
    reopen_clean(&t);
    check(&t);
    teardown(&t);
}

/* 19: a flipped byte above the recovery point cuts at the batch that holds it; below, nothing
 * happens at the start. */
static void a_flipped_byte_cuts_at_its_batch(void **state)
{
    enum { BATCHES = 12, FLUSHED = 5 };
    struct log_test probe;
    setup_log(&probe);
    append_many(&probe, 1, 2);
    int64_t one = log_size(probe.log);
    teardown(&probe);
    for (int64_t at = 0; at < BATCHES * one; at += 7) {
        struct log_test t;
        int i = (int)(at / one);
        /* what the checksum does not cover: the leader epoch, which nobody looks at, and the
         * offset, which shows only when it falls or by what follows */
        int64_t in = at % one;
        if (in < 8 || (in >= 12 && in < 16))
            continue;
        setup(&t);
        t.config.index_interval_bytes = 100;
        assert_int_equal(try_create(&t), 0);
        append_many(&t, FLUSHED, 2);
        assert_int_equal(log_flush(t.log), KERR_NONE);
        note_checkpoints(&t);
        append_many(&t, BATCHES - FLUSHED, 2);
        drop_log(&t);
        flip_byte(&t, "00000000000000000000.log", at);
        assert_int_equal(try_open(&t, false), 0);
        if (i >= FLUSHED) {
            assert_int_equal(log_end_offset(t.log), 2 * i);
            assert_non_null(strstr(t.said, "00000000000000000000.log: cut"));
            check(&t);
        } else if (in >= 61) { /* in the records: not even looked at */
            assert_int_equal(log_end_offset(t.log), 2 * BATCHES);
        }
        append_many(&t, 1, 2);
        teardown(&t);
    }
}

static void every_torn_end_is_cut(void **state)
{
    struct log_test t;
    setup_log(&t);
    append_many(&t, 4, 2);
    int64_t one = log_size(t.log) / 4;
    struct file *f;
    uint8_t *bytes = malloc((size_t)(4 * one));
    assert_int_equal(fs_open(t.fs, log_file(&t, "00000000000000000000.log"), O_RDONLY, &f), 0);
    assert_int_equal(file_pread(f, bytes, (size_t)(4 * one), 0), 4 * one);
    file_unref(f);
    for (int64_t n = 4 * one; n >= 0; n--) {
        drop_log(&t);
        write_file(&t, "00000000000000000000.log", bytes, (size_t)n);
        assert_int_equal(try_open(&t, false), 0);
        assert_int_equal(log_end_offset(t.log), n / one * 2);
        assert_int_equal(size_of(&t, "00000000000000000000.log"), n / one * one);
        check(&t);
    }
    free(bytes);
    teardown(&t);
}

static void after_a_cut_later_segments_go(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 500;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 30, 1);
    int segments = log_segment_count(t.log);
    assert_true(segments >= 4);
    int64_t base = t.log->segments.now->v[1]->base;
    char name[64];
    snprintf(name, sizeof(name), "%020" PRId64 ".log", base);
    drop_log(&t);
    flip_byte(&t, name, 70);
    assert_int_equal(try_open(&t, false), 0);
    assert_int_equal(log_segment_count(t.log), 2);
    assert_int_equal(log_end_offset(t.log), base);
    check(&t);
    log_dir_remove_due(t.dir);
    append_many(&t, 30, 1);
    check(&t);
    reopen_clean(&t);
    assert_int_equal(log_end_offset(t.log), base + 30);
    check(&t);
    teardown(&t);
}

/* The end of a segment is missing and the next one is there: by itself no reason to remove what was
 * acknowledged. */
static void a_gap_between_segments_stays(void **state)
{
    for (int compact = 0; compact < 2; compact++) {
        struct log_test t;
        setup(&t);
        t.config.segment_bytes = 500;
        t.config.cleanup_policy = compact ? CLEANUP_COMPACT : CLEANUP_DELETE;
        assert_int_equal(try_create(&t), 0);
        append_many(&t, 12, 1);
        int segments = log_segment_count(t.log);
        int64_t base = t.log->segments.now->v[1]->base, end = log_end_offset(t.log);
        int64_t one = segment_size(t.log->segments.now->v[0]) / base;
        drop_log(&t);
        struct file *f;
        assert_int_equal(fs_open(t.fs, log_file(&t, "00000000000000000000.log"), O_RDWR, &f), 0);
        assert_int_equal(file_truncate(f, one * 2), 0); /* whole batches: no torn end */
        file_unref(f);
        t.said[0] = 0;
        assert_int_equal(try_open(&t, false), 0);
        assert_int_equal(log_end_offset(t.log), end);
        assert_int_equal(log_segment_count(t.log), segments);
        assert_int_equal(read_at(&t, 2, 1), base + 1);
        assert_int_equal(strstr(t.said, "nothing is removed") != NULL, !compact);
        check(&t);
        reopen_clean(&t);
        assert_int_equal(log_end_offset(t.log), end);
        teardown(&t);
    }
}

/* ---- missing and damaged files ---- */

static void fill_segments(struct log_test *t)
{
    setup(t);
    t->config.segment_bytes = 1500;
    t->config.index_interval_bytes = 100;
    assert_int_equal(try_create(t), 0);
    struct records r = records_of(1);
    for (int i = 0; i < 50; i++) {
        r.timestamp = T0 + i;
        assert_int_equal(append(t, &r), KERR_NONE);
    }
    assert_true(log_segment_count(t->log) >= 3);
    assert_int_equal(log_close(t->log), 0);
    note_checkpoints(t);
    drop_log(t);
}

static void assert_like_before(struct log_test *t)
{
    struct offset_lookup l;
    assert_int_equal(log_end_offset(t->log), 50);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(log_lookup(t->log, T0 + i, 50, &l), KERR_NONE);
        assert_int_equal(l.offset, i);
    }
    read_all(t, 300);
    check(t);
}

/* C74: of the active, of an old, of an empty segment. */
static void missing_indexes_are_made_anew(void **state)
{
    static const char *const kinds[] = {".index", ".timeindex"};
    for (int which = 0; which < 3; which++)
        for (int mask = 1; mask < 4; mask++) {
            struct log_test t;
            char name[64];
            fill_segments(&t);
            assert_int_equal(try_open(&t, true), 0);
            int64_t base = t.log->segments.now->v[which ? 0 : log_segment_count(t.log) - 1]->base;
            if (which == 2) { /* an empty active one */
                pthread_mutex_lock(&t.log->lock);
                assert_int_equal(log_roll(t.log, 50), 0);
                pthread_mutex_unlock(&t.log->lock);
                base = 50;
            }
            assert_int_equal(log_close(t.log), 0);
            drop_log(&t);
            for (int k = 0; k < 2; k++)
                if (mask & 1 << k) {
                    snprintf(name, sizeof(name), "%020" PRId64 "%s", base, kinds[k]);
                    assert_int_equal(fs_unlink(t.fs, log_file(&t, name)), 0);
                }
            assert_int_equal(try_open(&t, true), 0);
            assert_like_before(&t);
            reopen_clean(&t);
            check_closed(&t);
            assert_like_before(&t);
            teardown(&t);
        }
}

/* The active segment's index is looked at: zeros that were never cut, or another file's entries. */
static void an_impossible_active_index_is_made_anew(void **state)
{
    static const struct {
        const char *kind;
        size_t n;
        uint8_t byte;
    } bad[] = {{".index", 4096, 0},    {".index", 13, 0},     {".index", 80, 0x7f},
               {".timeindex", 996, 0}, {".timeindex", 13, 0}, {".timeindex", 24, 0xff}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct log_test t;
        char name[64];
        uint8_t bytes[4096];
        fill_segments(&t);
        assert_int_equal(try_open(&t, true), 0);
        int64_t base = segment_list_active(t.log->segments.now)->base;
        drop_log(&t);
        snprintf(name, sizeof(name), "%020" PRId64 "%s", base, bad[i].kind);
        memset(bytes, bad[i].byte, sizeof(bytes));
        write_file(&t, name, bytes, bad[i].n);
        assert_int_equal(try_open(&t, true), 0);
        assert_like_before(&t);
        append_many(&t, 5, 1);
        check(&t);
        teardown(&t);
    }
}

static void indexes_without_a_segment_go(void **state)
{
    struct log_test t;
    fill_segments(&t);
    write_file(&t, "00000000000000099999.index", "12345678", 8);
    write_file(&t, "00000000000000099999.timeindex", "123456789012", 12);
    write_file(&t, "00000000000000099999.txnindex", "x", 1);
    write_file(&t, "stranger.txt", "x", 1);
    assert_int_equal(try_open(&t, true), 0);
    assert_int_equal(size_of(&t, "00000000000000099999.index"), -ENOENT);
    assert_int_equal(size_of(&t, "00000000000000099999.txnindex"), -ENOENT);
    assert_int_equal(size_of(&t, "stranger.txt"), 1);
    assert_non_null(strstr(t.said, "00000000000000099999.index belongs to no segment"));
    assert_like_before(&t);
    teardown(&t);
}

/* 20: all indexes and snapshots gone, unclean, recovery point 0: the same answers. */
static void everything_but_the_data_can_be_made_anew(void **state)
{
    struct log_test t;
    struct log_names names;
    char want[4096] = "", got[4096] = "";
    setup(&t);
    t.config.segment_bytes = 1500;
    assert_int_equal(try_create(&t), 0);
    int32_t sequence[4] = {0};
    uint64_t random = 5;
    for (int i = 0; i < 120; i++) {
        int id = (int)(test_random(&random) % 4);
        if (test_random(&random) % 4 == 0) {
            assert_int_equal(append_marker(&t, id, 0, test_random(&random) % 2, 0), KERR_NONE);
        } else {
            struct records r = produced(id, 0, sequence[id], 2, true);
            r.timestamp = T0 + i;
            assert_int_equal(append(&t, &r), KERR_NONE);
            sequence[id] += 2;
        }
    }
    int64_t end = log_end_offset(t.log);
    log_set_high_watermark(t.log, end);
    for (int round = 0; round < 2; round++) {
        char *out = round ? got : want;
        size_t n = 0;
        memset(out, 0, 4096);
        for (int64_t at = 0; at < end; at += 9) {
            struct log_slice s;
            struct aborted_txn *v;
            struct offset_lookup l;
            int k;
            arena_reset(&t.arena);
            assert_int_equal(
                log_read_committed(t.log, at, 400, end, true, false, &t.arena, &s, &v, &k),
                KERR_NONE);
            file_unref(s.file);
            assert_int_equal(log_lookup(t.log, T0 + at, end, &l), KERR_NONE);
            n += (size_t)snprintf(out + n, 4096 - n, "%" PRId64 ":%u:%d:%" PRId64 " ", s.pos, s.len,
                                  k, l.offset);
        }
        n += (size_t)snprintf(out + n, 4096 - n, "%" PRId64, log_last_stable_offset(t.log));
        if (round)
            break;
        drop_log(&t);
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/orders-0", t.data);
        assert_int_equal(log_names_list(t.fs, path, &names), 0);
        for (int i = 0; i < names.n; i++) {
            char file[LOG_PATH_MAX];
            if (names.v[i].kind == LOG_FILE_DATA)
                continue;
            log_file_path(file, path, names.v[i].base, names.v[i].kind, names.v[i].stage);
            assert_int_equal(fs_unlink(t.fs, file), 0);
        }
        log_names_free(&names);
        t.recovery_point = 0;
        t.high_watermark = end;
        assert_int_equal(try_open(&t, false), 0);
        check(&t);
    }
    /* slices end by the index where aborted ones are asked for, so counts may differ by the index
     * interval; positions and offsets may not */
    for (char *a = want, *b = got; *a || *b;) {
        long long pa, pb;
        unsigned la, lb;
        int ka, kb, na = 0, nb = 0;
        long long oa, ob;
        if (sscanf(a, "%lld:%u:%d:%lld %n", &pa, &la, &ka, &oa, &na) < 4 ||
            sscanf(b, "%lld:%u:%d:%lld %n", &pb, &lb, &kb, &ob, &nb) < 4) {
            assert_string_equal(a, b);
            break;
        }
        assert_true(pa == pb && la == lb && oa == ob);
        a += na;
        b += nb;
    }
    teardown(&t);
}

static void damaged_snapshots_fall_back_to_older_ones(void **state)
{
    struct log_test t;
    struct append_info info;
    setup(&t);
    t.config.segment_bytes = 500;
    assert_int_equal(try_create(&t), 0);
    for (int i = 0; i < 30; i++) {
        struct records r = produced(1, 0, i, 1, false);
        assert_int_equal(append(&t, &r), KERR_NONE);
    }
    assert_int_equal(log_close(t.log), 0);
    note_checkpoints(&t);
    int n = log_segment_count(t.log);
    int64_t last_base = segment_list_active(t.log->segments.now)->base;
    assert_true(n > 3);
    drop_log(&t);
    char name[64];
    for (int damaged = 0; damaged < 2; damaged++) {
        flip_byte(&t, "00000000000000000030.snapshot", 20);
        snprintf(name, sizeof(name), "%020" PRId64 ".snapshot", damaged ? last_base : INT64_C(30));
        if (damaged)
            flip_byte(&t, name, 20);
        assert_int_equal(try_open(&t, true), 0);
        assert_non_null(strstr(t.said, name));
        struct records again = produced(1, 0, 29, 1, false);
        assert_int_equal(append_info(&t, &again, &info), KERR_NONE);
        assert_true(info.duplicate);
        assert_int_equal(log_close(t.log), 0);
        assert_true(size_of(&t, "00000000000000000030.snapshot") > 10);
        drop_log(&t);
    }
    teardown(&t);
}

static void snapshots_without_a_segment_go(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 500;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 20, 1);
    assert_int_equal(log_close(t.log), 0);
    note_checkpoints(&t);
    drop_log(&t);
    char *bytes;
    size_t n;
    assert_int_equal(
        fs_read_all(t.fs, log_file(&t, "00000000000000000020.snapshot"), 100, &bytes, &n), 0);
    assert_int_equal(n, 10);
    write_file(&t, "00000000000000000003.snapshot", bytes, n);
    write_file(&t, "00000000000000000099.snapshot", bytes, n); /* above the end */
    free(bytes);
    assert_int_equal(try_open(&t, true), 0);
    assert_int_equal(size_of(&t, "00000000000000000003.snapshot"), -ENOENT);
    assert_int_equal(size_of(&t, "00000000000000000099.snapshot"), -ENOENT);
    check(&t);
    teardown(&t);
}

static void a_torn_transaction_index_is_made_anew(void **state)
{
    struct log_test t;
    struct append_info info;
    setup_log(&t);
    for (int i = 0; i < 5; i++) {
        struct records r = produced(1, 0, i, 1, true);
        assert_int_equal(append(&t, &r), KERR_NONE);
        assert_int_equal(append_marker(&t, 1, 0, false, 0), KERR_NONE);
    }
    char *want, *got;
    size_t n;
    assert_int_equal(
        fs_read_all(t.fs, log_file(&t, "00000000000000000000.txnindex"), 1000, &want, &n), 0);
    assert_int_equal(n, 5 * TXN_ENTRY_BYTES);
    assert_int_equal(log_close(t.log), 0);
    note_checkpoints(&t);
    drop_log(&t);
    flip_byte(&t, "00000000000000000000.txnindex", 18); /* a marker far below its base */
    flip_byte(&t, "00000000000000000000.txnindex", 34); /* an unknown version */
    assert_int_equal(try_open(&t, true), 0);
    assert_non_null(strstr(t.said, "00000000000000000000.txnindex"));
    assert_int_equal(
        fs_read_all(t.fs, log_file(&t, "00000000000000000000.txnindex"), 1000, &got, &n), 0);
    assert_int_equal(n, 5 * TXN_ENTRY_BYTES);
    assert_memory_equal(want, got, n);
    free(want);
    free(got);
    struct records next = produced(1, 0, 4, 1, true); /* its producers are there as well */
    assert_int_equal(append_info(&t, &next, &info), KERR_NONE);
    assert_true(info.duplicate);
    check(&t);
    teardown(&t);
}

/* C89 */
static void a_bad_epoch_file_is_made_anew(void **state)
{
    static const char *const texts[] = {"", "0\n3\n0 0\n", "garbage", "0\n2\n5 0\n3 9\n", NULL};
    for (int clean = 0; clean < 2; clean++)
        for (int i = 0; i < 5; i++) {
            struct log_test t;
            int32_t found;
            int64_t end;
            setup(&t);
            t.config.segment_bytes = 500;
            assert_int_equal(try_create(&t), 0);
            for (int k = 0; k < 30; k++)
                assert_int_equal(replicate(&t, k, 1, k / 10 * 2), KERR_NONE);
            assert_int_equal(log_flush(t.log), KERR_NONE);
            if (clean)
                assert_int_equal(log_close(t.log), 0);
            note_checkpoints(&t);
            drop_log(&t);
            if (texts[i])
                write_file(&t, EPOCH_FILE_NAME, texts[i], strlen(texts[i]));
            else
                assert_int_equal(fs_unlink(t.fs, log_file(&t, EPOCH_FILE_NAME)), 0);
            assert_int_equal(try_open(&t, clean), 0);
            assert_false(log_dir_offline(t.dir));
            for (int e = 0; e < 3; e++) {
                log_end_offset_for_epoch(t.log, 2 * e, &found, &end);
                assert_int_equal(found, 2 * e);
                assert_int_equal(end, 10 * (e + 1));
            }
            if (i && texts[i]) /* one line names the file */
                assert_non_null(strstr(t.said, EPOCH_FILE_NAME));
            check(&t);
            /* it is on disk again */
            char *text;
            size_t n;
            assert_int_equal(fs_read_all(t.fs, log_file(&t, EPOCH_FILE_NAME), 100, &text, &n), 0);
            assert_string_equal(text, "0\n3\n0 0\n2 10\n4 20\n");
            free(text);
            teardown(&t);
        }
}

static void epochs_above_the_end_and_below_the_start_are_cut(void **state)
{
    struct log_test t;
    setup_log(&t);
    for (int k = 0; k < 3; k++)
        assert_int_equal(replicate(&t, 10 * k, 10, k), KERR_NONE);
    assert_int_equal(log_close(t.log), 0);
    note_checkpoints(&t);
    drop_log(&t);
    write_file(&t, EPOCH_FILE_NAME, "0\n4\n0 0\n1 10\n2 20\n7 30\n", 24);
    t.start_offset = 15;
    assert_int_equal(try_open(&t, true), 0);
    assert_int_equal(log_latest_epoch(t.log), 2);
    struct offset_lookup l;
    assert_int_equal(log_lookup(t.log, LIST_EARLIEST, 30, &l), KERR_NONE);
    assert_int_equal(l.offset, 15);
    assert_int_equal(l.leader_epoch, 1);
    check(&t);
    teardown(&t);
}

/* ---- checkpoints that do not fit the log ---- */

static void an_end_below_the_start_begins_anew(void **state)
{
    struct log_test t;
    setup_log(&t);
    append_many(&t, 5, 1);
    assert_int_equal(log_close(t.log), 0);
    drop_log(&t);
    t.start_offset = 100;
    assert_int_equal(try_open(&t, true), 0);
    assert_int_equal(log_start_offset(t.log), 100);
    assert_int_equal(log_end_offset(t.log), 100);
    assert_int_equal(log_high_watermark(t.log), 100);
    check(&t);
    append_many(&t, 1, 1);
    assert_int_equal(read_at(&t, 100, 100), 101);
    teardown(&t);
}

static void positions_are_bounded(void **state)
{
    struct log_test t;
    setup_log(&t);
    append_many(&t, 5, 2);
    assert_int_equal(log_close(t.log), 0);
    drop_log(&t);
    t.recovery_point = 1000;
    t.high_watermark = 1000;
    t.start_offset = 3;
    assert_int_equal(try_open(&t, false), 0);
    assert_int_equal(log_recovery_point(t.log), 10);
    assert_int_equal(log_high_watermark(t.log), 10);
    check(&t);
    drop_log(&t);
    t.high_watermark = 0;
    t.recovery_point = 4;
    assert_int_equal(try_open(&t, false), 0);
    assert_int_equal(log_recovery_point(t.log), 4); /* not raised: nothing was synced */
    assert_int_equal(log_high_watermark(t.log), 3);
    check(&t);
    teardown(&t);
}

static void a_folder_without_segments_gets_one(void **state)
{
    struct log_test t;
    setup_log(&t);
    drop_log(&t);
    assert_int_equal(fs_unlink(t.fs, log_file(&t, "00000000000000000000.log")), 0);
    t.start_offset = 7;
    assert_int_equal(try_open(&t, false), 0);
    assert_int_equal(log_start_offset(t.log), 7);
    assert_int_equal(log_end_offset(t.log), 7);
    check(&t);
    append_many(&t, 2, 2);
    reopen_clean(&t);
    assert_int_equal(log_end_offset(t.log), 11);
    check(&t);
    teardown(&t);
}

static void bad_partition_metadata_takes_the_dir_offline(void **state)
{
    struct log_test t;
    setup_log(&t);
    assert_int_equal(log_set_topic_id(t.log, uuid_random()), KERR_NONE);
    assert_int_equal(log_close(t.log), 0);
    drop_log(&t);
    write_file(&t, "partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", 43);
    assert_int_equal(try_open(&t, true), -EBADMSG);
    assert_true(log_dir_offline(t.dir));
    assert_non_null(strstr(t.said, "partition.metadata"));
    teardown(&t);
}

/* Creation syncs it in the end only: a loss of power before may leave anything. */
static void torn_partition_metadata_of_a_new_log_is_written_anew(void **state)
{
    static const char *const torn[] = {"", "version: 0\ntop", "version: 0\ntopic_id: "};
    for (size_t i = 0; i < sizeof torn / sizeof *torn; i++) {
        struct log_test t;
        struct uuid id = uuid_random();
        setup_log(&t);
        assert_int_equal(log_set_topic_id(t.log, uuid_random()), KERR_NONE);
        drop_log(&t);
        write_file(&t, "partition.metadata", torn[i], strlen(torn[i]));
        assert_int_equal(try_open(&t, false), 0);
        assert_false(log_dir_offline(t.dir));
        assert_true(uuid_is_zero(log_topic_id(t.log)));
        assert_int_equal(log_set_topic_id(t.log, id), KERR_NONE);
        assert_int_equal(size_of(&t, "partition.metadata"), 43);
        append_many(&t, 1, 1);
        drop_log(&t);
        write_file(&t, "partition.metadata", torn[i], strlen(torn[i]));
        assert_int_equal(try_open(&t, false), -EBADMSG); /* with records it was durable */
        assert_true(log_dir_offline(t.dir));
        teardown(&t);
    }
}

static void ids_are_removed_for_old_protocols(void **state)
{
    struct log_test t;
    setup_log(&t);
    assert_int_equal(log_set_topic_id(t.log, uuid_random()), KERR_NONE);
    assert_int_equal(log_close(t.log), 0);
    drop_log(&t);
    struct log_open_args a = {.dir = t.dir,
                              .tp = {TOPIC, 0},
                              .config = &t.config,
                              .clean = true,
                              .remove_topic_id = true};
    assert_int_equal(log_open(&a, &t.log), 0);
    assert_true(uuid_is_zero(log_topic_id(t.log)));
    assert_int_equal(size_of(&t, "partition.metadata"), -ENOENT);
    teardown(&t);
}

/* ---- batches sent again after a start ---- */

static void send_again(struct log_test *t, int32_t sequence, int64_t offset)
{
    struct append_info info;
    struct records r = produced(7, 0, sequence, 2, false);
    assert_int_equal(append_info(t, &r, &info), KERR_NONE);
    assert_true(info.duplicate);
    assert_int_equal(info.first_offset, offset);
    assert_int_equal(info.last_offset, offset + 1);
}

/* Six batches of one producer, and of another one between them. */
static void fill_producers(struct log_test *t)
{
    for (int i = 0; i < 6; i++) {
        struct records r = produced(7, 0, 2 * i, 2, false);
        assert_int_equal(append(t, &r), KERR_NONE);
        r = produced(8, 0, i, 1, false);
        assert_int_equal(append(t, &r), KERR_NONE);
    }
}

static void assert_five_are_known(struct log_test *t)
{
    int64_t end = log_end_offset(t->log);
    struct records r = produced(7, 0, 0, 2, false);
    assert_int_equal(append(t, &r), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER); /* the sixth oldest */
    for (int i = 1; i < 6; i++)
        send_again(t, 2 * i, 3 * i);
    r = produced(8, 0, 4, 1, false);
    struct append_info info;
    assert_int_equal(append_info(t, &r, &info), KERR_NONE);
    assert_true(info.duplicate);
    assert_int_equal(log_end_offset(t->log), end);
    r = produced(7, 0, 12, 2, false);
    assert_int_equal(append(t, &r), KERR_NONE);
    r = produced(8, 0, 7, 1, false);
    assert_int_equal(append(t, &r), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    check(t);
}

/* A producer with five batches in flight sends them all again after the broker came back: whatever
 * the stop was like, wherever segments begin, also when the start itself was killed. */
static void five_batches_are_known_after_any_stop(void **state)
{
    for (int how = 0; how < 6; how++)
        for (int segment_bytes = 150; segment_bytes < 1400; segment_bytes += 110) {
            struct log_test t;
            setup(&t);
            t.config.segment_bytes = segment_bytes;
            t.config.index_interval_bytes = 100;
            assert_int_equal(try_create(&t), 0);
            fill_producers(&t);
            switch (how) {
            case 0:
                reopen_clean(&t);
                break;
            case 1: /* never a checkpoint */
                reopen_unclean(&t);
                break;
            case 2: /* all of it safe, and the checkpoint says so */
                assert_int_equal(log_flush(t.log), KERR_NONE);
                note_checkpoints(&t);
                reopen_unclean(&t);
                break;
            case 3: /* killed after a clean stop and a start that wrote nothing */
                reopen_clean(&t);
                reopen_unclean(&t);
                break;
            case 4: /* killed in the start that followed a kill */
                reopen_unclean(&t);
                note_checkpoints(&t);
                fs_fault_power_off_at(t.fault, 40);
                drop_log(&t);
                if (!try_open(&t, false))
                    drop_log(&t);
                log_dir_free(t.dir);
                assert_int_equal(fs_fault_crash(t.fault, t.data, FS_CRASH_KEEP, 1), 0);
                fs_fault_clear(t.fault);
                make_dir(&t);
                assert_int_equal(try_open(&t, false), 0);
                break;
            default: /* twice clean */
                reopen_clean(&t);
                reopen_clean(&t);
            }
            assert_five_are_known(&t);
            teardown(&t);
        }
}

/* What is recalled does not outlive an epoch, and is sought once. */
static void a_new_epoch_forgets_older_batches(void **state)
{
    struct log_test t;
    setup_log(&t);
    fill_producers(&t);
    reopen_clean(&t);
    struct records r = produced(7, 1, 0, 2, false);
    assert_int_equal(append(&t, &r), KERR_NONE);
    r = produced(7, 0, 10, 2, false);
    assert_int_equal(append(&t, &r), KERR_INVALID_PRODUCER_EPOCH);
    r = produced(7, 1, 10, 2, false);
    assert_int_equal(append(&t, &r), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    r = produced(8, 0, 9, 1, false);
    assert_int_equal(append(&t, &r), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    uint64_t reads = fs_fault_count(t.fault, FS_PREAD);
    assert_int_equal(append(&t, &r), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(fs_fault_count(t.fault, FS_PREAD), reads);
    teardown(&t);
}

/* Offsets beyond what a log can have are neither taken nor kept: nothing overflows, and what was
 * taken is found again. */
static void the_last_offset_there_is(void **state)
{
    const int64_t first = LOG_OFFSET_LIMIT - 3;
    struct log_test t;
    setup_log(&t);
    assert_int_equal(log_truncate_fully(t.log, LOG_OFFSET_LIMIT), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(log_truncate_fully(t.log, INT64_MAX), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(replicate(&t, INT64_MAX, 1, 0), KERR_CORRUPT_MESSAGE);
    assert_int_equal(replicate(&t, INT64_MAX - 1, 2, 0), KERR_CORRUPT_MESSAGE);
    assert_int_equal(log_truncate_fully(t.log, first), KERR_NONE);
    assert_int_equal(replicate(&t, first, 2, 0), KERR_NONE);
    assert_int_equal(replicate(&t, first + 2, 2, 0), KERR_CORRUPT_MESSAGE);
    assert_int_equal(replicate(&t, first + 2, 1, 0), KERR_NONE);
    assert_int_equal(log_end_offset(t.log), LOG_OFFSET_LIMIT);
    struct records r = records_of(2);
    r.first_offset = INT64_MAX - 1;
    struct buf b = build(&r);
    char name[64];
    snprintf(name, sizeof(name), "%020" PRId64 ".log", first);
    int64_t size = size_of(&t, name);
    struct file *f;
    assert_int_equal(fs_open(t.fs, log_file(&t, name), O_RDWR, &f), 0);
    assert_int_equal(file_pwrite_all(f, b.p, b.len, size), 0);
    file_unref(f);
    buf_free(&b);
    reopen_unclean(&t);
    assert_int_equal(log_end_offset(t.log), LOG_OFFSET_LIMIT);
    assert_int_equal(size_of(&t, name), size);
    check(&t);
    teardown(&t);
}

UNIT_MAIN(
    unit_test(five_batches_are_known_after_any_stop), unit_test(a_new_epoch_forgets_older_batches),
    unit_test(the_last_offset_there_is), unit_test(a_clean_start_reads_no_data),
    unit_test(after_kill_9_all_is_there), unit_test(a_flipped_byte_cuts_at_its_batch),
    unit_test(every_torn_end_is_cut), unit_test(after_a_cut_later_segments_go),
    unit_test(a_gap_between_segments_stays), unit_test(missing_indexes_are_made_anew),
    unit_test(an_impossible_active_index_is_made_anew), unit_test(indexes_without_a_segment_go),
    unit_test(everything_but_the_data_can_be_made_anew),
    unit_test(damaged_snapshots_fall_back_to_older_ones), unit_test(snapshots_without_a_segment_go),
    unit_test(a_torn_transaction_index_is_made_anew), unit_test(a_bad_epoch_file_is_made_anew),
    unit_test(epochs_above_the_end_and_below_the_start_are_cut),
    unit_test(an_end_below_the_start_begins_anew), unit_test(positions_are_bounded),
    unit_test(a_folder_without_segments_gets_one),
    unit_test(bad_partition_metadata_takes_the_dir_offline),
    unit_test(torn_partition_metadata_of_a_new_log_is_written_anew),
    unit_test(ids_are_removed_for_old_protocols))
