/* The machine crashes at any call, and what was not synced is forgotten, or torn: all below the
 * recovery point is there, each segment holds a prefix of what was written to it, the invariants
 * hold. (A segment above the recovery point may have lost its end while the next one's name lived
 * on: that gap looks like one of compaction, and stays.)
 *
 * LOG_CRASH_SEEDS sets how many seeds are run. */
#include "log_util.h"

/* What was written, in order. */
struct history {
    struct {
        int64_t base, last;
        uint32_t crc, size;
    } v[512];
    int n;
    int64_t saved; /* recovery point that the checkpoint file has */
    bool off;      /* the power is */
};

static bool alive(struct log_test *t, struct history *h, enum kerr code)
{
    if (code == KERR_NONE)
        return true;
    assert_int_equal(code, KERR_KAFKA_STORAGE_ERROR);
    h->off = true;
    return false;
}

/* The batch that an append of r puts at the log's end. */
static void write_one(struct log_test *t, struct history *h, const struct records *r, int32_t epoch,
                      enum append_origin origin)
{
    struct append_info info;
    struct prepared pr;
    struct batch b;
    struct append_policy policy = policy_of(t, origin);
    struct buf bytes = build(r);
    int64_t at = log_end_offset(t->log);
    arena_reset(&t->arena);
    assert_int_equal(records_prepare(&policy, bytes.p, bytes.len, &t->arena, &pr), KERR_NONE);
    enum kerr code = log_append(t->log, &pr, epoch, origin, &info);
    assert_int_equal(batch_decode(pr.p, pr.len, pr.len, &b), BATCH_OK);
    /* also when it failed: it may be in the file */
    h->v[h->n].base = at;
    h->v[h->n].last = at + (b.last_offset - b.base_offset);
    h->v[h->n].crc = b.crc;
    h->v[h->n++].size = b.size;
    alive(t, h, code);
    prepared_free(&pr);
    buf_free(&bytes);
}

static void flush(struct log_test *t, struct history *h)
{
    if (alive(t, h, log_flush(t->log)))
        h->saved = log_recovery_point(t->log); /* as the checkpoint, which is durable, would say */
}

static void write_history(struct log_test *t, struct history *h, uint64_t *random)
{
    int32_t sequence[3] = {0}, epoch = 0;
    bool open[3] = {false};
    for (int i = 0; i < 70 && !h->off; i++) {
        int id = (int)(test_random(random) % 3);
        switch (test_random(random) % 10) {
        case 0:
        case 1:
            flush(t, h);
            break;
        case 2: {
            struct append_info info;
            struct buf b = BUF_INIT;
            if (!open[id])
                break;
            assert_int_equal(
                batch_build_marker(test_random(random) % 2, 0, T0 + i, 0, id, 0, 0, &b), 0);
            int64_t at = log_end_offset(t->log);
            enum kerr code = append_bytes(t, &b, epoch, APPEND_COORDINATOR, &info);
            struct batch head;
            assert_int_equal(batch_decode(b.p, b.len, b.len, &head), BATCH_OK);
            h->v[h->n].base = h->v[h->n].last = at;
            h->v[h->n].crc = head.crc;
            h->v[h->n++].size = head.size;
            open[id] = !alive(t, h, code);
            buf_free(&b);
            break;
        }
        case 3:
            alive(t, h, log_begin_epoch(t->log, ++epoch));
            break;
        case 4:
        case 5: {
            struct records r =
                produced(id, 0, sequence[id], 1 + (int)(test_random(random) % 3), true);
            r.timestamp = T0 + i;
            write_one(t, h, &r, epoch, APPEND_CLIENT);
            sequence[id] += r.n;
            open[id] = true;
            break;
        }
        default: {
            struct records r = records_of(1 + (int)(test_random(random) % 4));
            r.value_n = test_random(random) % 100;
            r.timestamp = T0 + (int64_t)(test_random(random) % 1000);
            write_one(t, h, &r, epoch, APPEND_CLIENT);
        }
        }
        log_set_high_watermark(t->log, log_end_offset(t->log));
    }
}

static bool is_a_base(struct log_test *t, int64_t offset)
{
    const struct segment_list *l = t->log->segments.now;
    for (int i = 0; i < l->n; i++)
        if (l->v[i]->base == offset)
            return true;
    return false;
}

/* The log holds what was written, in order and from the start on; batches are missing only right
 * before a segment and above what was saved. Returns its end. */
static int64_t assert_as_written(struct log_test *t, const struct history *h, uint64_t seed)
{
    int64_t end = log_end_offset(t->log), at = 0;
    int i = 0;
    while (at < end) {
        struct log_slice s;
        struct batch b;
        uint8_t head[BATCH_HEAD];
        assert_int_equal(log_read(t->log, at, 1, end, true, false, &s), KERR_NONE);
        if (s.len == 0) { /* the last segment has no data at all, and the one before no end */
            if (at < h->saved || !is_a_base(t, end))
                fail_msg("seed %d: nothing at %" PRId64 " of %" PRId64, (int)seed, at, end);
            return end;
        }
        assert_int_equal(file_pread(s.file, head, BATCH_HEAD, s.pos), BATCH_HEAD);
        assert_int_equal(batch_decode(head, BATCH_HEAD, s.len, &b), BATCH_OK);
        file_unref(s.file);
        bool gap = false;
        for (; i < h->n && h->v[i].base < b.base_offset; i++)
            gap = true;
        if (gap && (at < h->saved || !is_a_base(t, b.base_offset)))
            fail_msg("seed %d: a gap at %" PRId64, (int)seed, at);
        if (i >= h->n || b.base_offset != h->v[i].base || b.last_offset != h->v[i].last ||
            b.crc != h->v[i].crc || b.size != h->v[i].size)
            fail_msg("seed %d: batch %d at offset %" PRId64 " is not what was written", (int)seed,
                     i, b.base_offset);
        at = b.last_offset + 1;
        i++;
    }
    return end;
}

static void crash_once(uint64_t seed)
{
    struct log_test t;
    struct history *h = calloc(1, sizeof(*h));
    uint64_t random = seed;
    setup(&t);
    t.config.segment_bytes = 700;
    t.config.index_interval_bytes = 150;
    t.config.preallocate = seed % 5 == 0;
    assert_int_equal(try_create(&t), 0);
    fs_fault_power_off_at(t.fault, 1 + test_random(&random) % 400);
    write_history(&t, h, &random);
    drop_log(&t);
    log_dir_free(t.dir);
    assert_int_equal(
        fs_fault_crash(t.fault, t.data, seed % 3 ? FS_CRASH_TEAR : FS_CRASH_DROP, seed), 0);
    fs_fault_clear(t.fault);
    make_dir(&t);
    t.recovery_point = h->saved;
    int err = try_open(&t, false);
    if (err)
        fail_msg("seed %d: the log does not open: %d\n%s", (int)seed, err, t.said);
    int64_t end = assert_as_written(&t, h, seed);
    if (end < h->saved)
        fail_msg("seed %d: end %" PRId64 ", recovery point %" PRId64, (int)seed, end, h->saved);
    char why[512] = "";
    if (!log_check(t.log, why, sizeof(why)))
        fail_msg("seed %d: %s\n%s", (int)seed, why, t.said);
    /* and life goes on */
    append_many(&t, 3, 2);
    reopen_clean(&t);
    assert_int_equal(log_end_offset(t.log), end + 6);
    check(&t);
    teardown(&t);
    free(h);
}

static void the_log_is_as_written_whatever_was_synced(void **state)
{
    const char *seeds = getenv("LOG_CRASH_SEEDS");
    int n = seeds ? atoi(seeds) : 300;
    for (int seed = 1; seed <= n; seed++)
        crash_once((uint64_t)seed);
}

/* Where the last batch below `offset` ends: a cut inside a batch leaves a gap in front of it. -1
 * when the power goes meanwhile. */
static int64_t data_end(struct log_test *t, int64_t offset)
{
    struct segment_list *l = t->log->segments.now;
    int64_t found = l->v[0]->base;
    for (int i = 0; i < l->n; i++) {
        uint8_t window[4096];
        struct file_batches w;
        struct file *f;
        struct batch b;
        int64_t pos;
        if (segment_file(l->v[i], &f))
            return -1;
        file_batches_init(&w, f, 0, segment_size(l->v[i]), window, sizeof(window));
        while (file_batches_next(&w, &b, &pos) == BATCH_OK && b.last_offset < offset)
            found = b.last_offset + 1;
        file_unref(f);
        if (w.error)
            return -1;
    }
    return found;
}

/* A follower that was cut: the old records must not come back under new epochs. */
static void cut_once(uint64_t seed)
{
    struct log_test t;
    uint64_t random = seed;
    setup(&t);
    t.config.segment_bytes = 500;
    t.config.index_interval_bytes = 100;
    t.config.file_delete_delay_ms = 0;
    assert_int_equal(try_create(&t), 0);
    fs_fault_power_off_at(t.fault, 1 + test_random(&random) % 350);
    int32_t epoch = 0;
    int64_t saved = 0; /* what must be there */
    bool off = false;
    for (int i = 0; i < 40 && !off; i++) {
        enum kerr code = KERR_NONE;
        int64_t end = log_end_offset(t.log), at = end - (int64_t)(test_random(&random) % 12);
        at = at < 0 ? 0 : at;
        switch (test_random(&random) % 8) {
        case 0:
            code = log_flush(t.log);
            break;
        case 1:
            /* a crash in the middle may leave it cut, and a whole log that was to begin anew empty
             */
            saved = at < t.log->segments.now->v[0]->base ? 0 : saved;
            code = log_truncate_to(t.log, at);
            epoch++;
            break;
        case 2:
            if (test_random(&random) % 4)
                break;
            saved = 0;
            at += (int64_t)(test_random(&random) % 9);
            code = log_truncate_fully(t.log, at);
            epoch++;
            break;
        default:
            code = replicate(&t, end, 1 + (int)(test_random(&random) % 4), epoch);
            at = end;
        }
        int64_t durable = code ? -1 : data_end(&t, log_recovery_point(t.log));
        off = log_dir_offline(t.dir);
        if (off || durable < 0) /* batches of up to 4 records and gaps of earlier cuts go whole */
            saved = saved < at - 16 ? saved : at - 16;
        else
            saved = durable;
        if (!off) /* the checkpoint follows at once when it falls; here it always does */
            t.recovery_point = log_recovery_point(t.log);
    }
    drop_log(&t);
    log_dir_free(t.dir);
    assert_int_equal(
        fs_fault_crash(t.fault, t.data, seed % 2 ? FS_CRASH_TEAR : FS_CRASH_DROP, seed), 0);
    fs_fault_clear(t.fault);
    make_dir(&t);
    int err = try_open(&t, false);
    if (err)
        fail_msg("seed %d: the log does not open: %d\n%s", (int)seed, err, t.said);
    char why[512] = "";
    if (!log_check(t.log, why, sizeof(why)))
        fail_msg("seed %d: %s\n%s", (int)seed, why, t.said);
    if (log_end_offset(t.log) < saved)
        fail_msg("seed %d: end %" PRId64 ", recovery point %" PRId64, (int)seed,
                 log_end_offset(t.log), saved);
    reopen_clean(&t);
    check(&t);
    teardown(&t);
}

static void cuts_do_not_come_back_under_other_epochs(void **state)
{
    const char *seeds = getenv("LOG_CRASH_SEEDS");
    int n = seeds ? atoi(seeds) : 300;
    for (int seed = 1; seed <= n; seed++)
        cut_once((uint64_t)seed);
}

static enum kerr append_in(struct log_test *t, struct records *r, int32_t epoch)
{
    struct append_info info;
    struct buf b = build(r);
    enum kerr e = append_bytes(t, &b, epoch, APPEND_CLIENT, &info);
    buf_free(&b);
    return e;
}

/* The process is killed, the next one flushes, and then the power goes: what that flush promised
 * was written by the process before. Seen by the simulator: the epochs were not. */
static void a_flush_covers_what_an_earlier_process_wrote(void **state)
{
    struct log_test t;
    struct records r = records_of(3);
    int32_t epoch;
    int64_t end;
    setup(&t);
    t.config.segment_bytes = 600; /* rolls: names count, too */
    assert_int_equal(try_create(&t), 0);
    for (int32_t e = 0; e < 4; e++) {
        assert_int_equal(log_begin_epoch(t.log, e), KERR_NONE);
        for (int i = 0; i < 3; i++)
            assert_int_equal(append_in(&t, &r, e), KERR_NONE);
        if (e == 0)
            assert_int_equal(log_flush(t.log), KERR_NONE);
        if (e == 0)
            note_checkpoints(&t);
    }
    reopen_unclean(&t);
    assert_int_equal(log_flush(t.log), KERR_NONE);
    note_checkpoints(&t);
    drop_log(&t);
    log_dir_free(t.dir);
    assert_int_equal(fs_fault_crash(t.fault, t.data, FS_CRASH_DROP, 1), 0);
    make_dir(&t);
    assert_int_equal(try_open(&t, false), 0);
    assert_int_equal(log_end_offset(t.log), 36);
    log_end_offset_for_epoch(t.log, 1, &epoch, &end);
    assert_int_equal(epoch, 1);
    assert_int_equal(end, 18);
    check(&t);
    teardown(&t);
}

/* The same for an epoch that had begun without a record, and begins again: the file is as it was.
 */
static void an_epoch_that_begins_again_is_flushed(void **state)
{
    for (int stops_well = 0; stops_well < 2; stops_well++) {
        struct log_test t;
        struct records r = records_of(3);
        setup(&t);
        t.config.segment_bytes = 600; /* it rolls: recovery does not look at what is before */
        assert_int_equal(try_create(&t), 0);
        assert_int_equal(log_begin_epoch(t.log, 2), KERR_NONE);
        assert_int_equal(append_in(&t, &r, 2), KERR_NONE);
        assert_int_equal(log_flush(t.log), KERR_NONE);
        note_checkpoints(&t);
        assert_int_equal(log_begin_epoch(t.log, 4), KERR_NONE);
        reopen_unclean(&t);
        if (stops_well)
            reopen_clean(&t);
        for (int i = 0; i < 9; i++) {
            assert_int_equal(log_begin_epoch(t.log, 4), KERR_NONE);
            assert_int_equal(append_in(&t, &r, 4), KERR_NONE);
            assert_int_equal(log_flush(t.log), KERR_NONE);
        }
        note_checkpoints(&t);
        drop_log(&t);
        log_dir_free(t.dir);
        assert_int_equal(fs_fault_crash(t.fault, t.data, FS_CRASH_DROP, 1), 0);
        make_dir(&t);
        assert_int_equal(try_open(&t, false), 0);
        assert_int_equal(log_end_offset(t.log), 30);
        assert_int_equal(epoch_cache_of_offset(&t.log->epochs, 3), 4);
        check(&t);
        teardown(&t);
    }
}

/* The same for a log that nobody had written to: the topic's id, the folder's name. */
static void the_first_record_makes_durable_what_an_earlier_process_made(void **state)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct log_test t;
        struct uuid id = {{7}};
        struct topic_partition tp = {TOPIC, 0};
        struct records r = records_of(1);
        setup(&t);
        assert_int_equal(log_create_unsynced(t.dir, tp, &t.config, id, &t.log), 0);
        reopen_unclean(&t);
        if (seed >= 6) /* one more, which ended well */
            reopen_clean(&t);
        assert_int_equal(append(&t, &r), KERR_NONE);
        assert_int_equal(log_flush(t.log), KERR_NONE);
        drop_log(&t);
        log_dir_free(t.dir);
        assert_int_equal(
            fs_fault_crash(t.fault, t.data, seed % 2 ? FS_CRASH_TEAR : FS_CRASH_DROP, seed), 0);
        make_dir(&t);
        assert_int_equal(try_open(&t, false), 0);
        assert_true(uuid_eq(log_topic_id(t.log), id));
        assert_int_equal(log_end_offset(t.log), 1);
        check(&t);
        teardown(&t);
    }
}

/* A crash while the log is made: there is no folder, or one that loads; and with the topic's id if
 * there can be records in it. */
static void a_log_that_was_being_made(void **state)
{
    for (uint64_t n = 1; n < 30; n++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct log_test t;
            struct uuid id = {{7}};
            struct topic_partition tp = {TOPIC, 0};
            setup(&t);
            fs_fault_power_off_at(t.fault, n);
            int made = log_create(t.dir, tp, &t.config, id, &t.log);
            bool wrote = false;
            if (!made) {
                struct records r = records_of(1);
                wrote = append(&t, &r) == KERR_NONE;
                if (log_flush(t.log))
                    wrote = false;
            }
            drop_log(&t);
            log_dir_free(t.dir);
            assert_int_equal(
                fs_fault_crash(t.fault, t.data, seed % 2 ? FS_CRASH_TEAR : FS_CRASH_DROP, seed), 0);
            fs_fault_clear(t.fault);
            make_dir(&t);
            struct file_stat st;
            bool there = fs_stat(t.fs, log_file(&t, ""), &st) == 0;
            assert_true(there || made); /* what was made, is */
            if (there) {
                assert_int_equal(try_open(&t, false), 0);
                assert_true(made || uuid_eq(log_topic_id(t.log), id));
                if (wrote)
                    assert_int_equal(log_end_offset(t.log), 1);
                check(&t);
            }
            teardown(&t);
        }
}

UNIT_MAIN(unit_test(the_log_is_as_written_whatever_was_synced),
          unit_test(cuts_do_not_come_back_under_other_epochs), unit_test(a_log_that_was_being_made),
          unit_test(a_flush_covers_what_an_earlier_process_wrote),
          unit_test(an_epoch_that_begins_again_is_flushed),
          unit_test(the_first_record_makes_durable_what_an_earlier_process_made))
