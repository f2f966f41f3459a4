/* ListOffsets: by time against a plain model, the special times, the list form of version 0. */
#include <sys/stat.h>

#include "log_util.h"

static struct offset_lookup look(struct log_test *t, int64_t timestamp, int64_t limit)
{
    struct offset_lookup l;
    assert_int_equal(log_lookup(t->log, timestamp, limit, &l), KERR_NONE);
    return l;
}

/* A batch whose records have exactly these times. */
static void append_times(struct log_test *t, const int64_t *times, int n, enum codec codec)
{
    struct append_info info;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct buf b = BUF_INIT;
    o.codec = codec;
    struct batch_builder *bb = batch_builder_new(&o);
    for (int i = 0; i < n; i++)
        assert_int_equal(batch_builder_add(bb, i, times[i], BYTES_NULL,
                                           (struct bytes){(const uint8_t *)"value", 5}, NULL, 0),
                         0);
    assert_int_equal(batch_builder_finish(bb, &b), 0);
    batch_builder_free(bb);
    assert_int_equal(append_bytes(t, &b, 4, APPEND_CLIENT, &info), KERR_NONE);
    buf_free(&b);
}

static void random_times_agree_with_a_model(void **state)
{
    struct log_test t;
    uint64_t random = 11;
    int64_t times[1000], max = -1, newest = -1;
    int n = 0;
    setup(&t);
    t.config.segment_bytes = 4000;
    t.config.index_interval_bytes = 300;
    assert_int_equal(try_create(&t), 0);
    while (n < 990) {
        int64_t batch[10];
        int k = 1 + (int)(test_random(&random) % 6);
        for (int i = 0; i < k; i++) {
            batch[i] = T0 + (int64_t)(test_random(&random) % 3000) + n; /* out of order, drifting */
            times[n + i] = batch[i];
        }
        append_times(&t, batch, k, test_random(&random) % 3 ? CODEC_NONE : CODEC_LZ4);
        n += k;
    }
    assert_true(log_segment_count(t.log) > 4);
    check(&t);
    for (int i = 0; i < n; i++)
        if (times[i] > max) {
            max = times[i];
            newest = i;
        }
    for (int round = 0; round < 3; round++) {
        int64_t start = log_start_offset(t.log);
        for (int64_t at = T0 - 5; at < max + 5; at += 3) {
            int64_t want = -1;
            for (int64_t i = start; i < n && want < 0; i++)
                if (times[i] >= at)
                    want = i;
            struct offset_lookup l = look(&t, at, n);
            assert_int_equal(l.offset, want);
            assert_int_equal(l.timestamp, want < 0 ? -1 : times[want]);
            assert_int_equal(l.leader_epoch, want < 0 ? -1 : 4);
            /* what lies at or above the reader's limit is not found */
            if (want > 0)
                assert_int_equal(look(&t, at, want).offset, -1);
        }
        struct offset_lookup l = look(&t, LIST_MAX_TIMESTAMP, n);
        assert_int_equal(l.offset, newest);
        assert_int_equal(l.timestamp, max);
        if (round == 0)
            reopen_clean(&t);
        else if (round == 1) {
            log_set_high_watermark(t.log, n);
            assert_int_equal(log_raise_start_offset(t.log, 333), KERR_NONE);
            if (newest < 333)
                break;
        }
    }
    teardown(&t);
}

/* C30 */
static void nothing_late_enough(void **state)
{
    struct log_test t;
    setup_log(&t);
    struct offset_lookup l = look(&t, T0, 0); /* an empty log */
    assert_int_equal(l.offset, -1);
    assert_int_equal(l.timestamp, -1);
    append_many(&t, 3, 3);
    l = look(&t, T0 + 86400000, 9);
    assert_int_equal(l.offset, -1);
    assert_int_equal(l.timestamp, -1);
    assert_int_equal(l.leader_epoch, -1);
    /* after retention took all */
    log_set_high_watermark(t.log, 9);
    t.config.retention_ms = 1;
    log_set_config(t.log, &t.config);
    assert_int_equal(log_retention(t.log, T0 + 1000000), 1);
    assert_int_equal(look(&t, T0, 9).offset, -1);
    assert_int_equal(look(&t, LIST_MAX_TIMESTAMP, 9).offset, -1);
    assert_int_equal(look(&t, LIST_EARLIEST, 9).offset, 9);
    teardown(&t);
}

/* C32 */
static void the_first_record_of_the_newest_time(void **state)
{
    static const enum codec codecs[] = {CODEC_NONE, CODEC_GZIP, CODEC_ZSTD};
    for (int i = 0; i < 3; i++) {
        struct log_test t;
        setup_log(&t);
        assert_int_equal(look(&t, LIST_MAX_TIMESTAMP, 0).offset, -1);
        static const int64_t times[] = {T0 + 5, T0 + 9, T0 + 9}, old[] = {T0};
        append_times(&t, times, 3, codecs[i]);
        append_times(&t, old, 1, codecs[i]);
        for (int clean = 0; clean < 2; clean++) {
            struct offset_lookup l = look(&t, LIST_MAX_TIMESTAMP, 4);
            assert_int_equal(l.offset, 1);
            assert_int_equal(l.timestamp, T0 + 9);
            assert_int_equal(l.leader_epoch, 4);
            assert_int_equal(look(&t, T0 + 9, 4).offset, 1);
            assert_int_equal(look(&t, T0 + 6, 4).offset, 1);
            assert_int_equal(look(&t, T0 + 5, 4).offset, 0);
            reopen_clean(&t);
        }
        teardown(&t);
    }
}

static void special_times(void **state)
{
    struct log_test t;
    setup_log(&t);
    struct offset_lookup l = look(&t, LIST_EARLIEST, 0);
    assert_int_equal(l.offset, 0);
    assert_int_equal(l.leader_epoch, -1);
    assert_int_equal(log_begin_epoch(t.log, 3), KERR_NONE);
    append_many(&t, 1, 5);
    /* the helper appends with epoch 0, which is older: begin a later one */
    assert_int_equal(log_begin_epoch(t.log, 6), KERR_NONE);
    l = look(&t, LIST_LATEST, 3);
    assert_int_equal(l.offset, 3);
    assert_int_equal(l.timestamp, -1);
    assert_int_equal(l.leader_epoch, 6);
    l = look(&t, LIST_EARLIEST_LOCAL, 5);
    assert_int_equal(l.offset, 0);
    l = look(&t, LIST_LATEST_TIERED, 5);
    assert_int_equal(l.offset, -1);
    assert_int_equal(l.leader_epoch, -1);
    assert_int_equal(look(&t, -77, 5).offset, -1);
    teardown(&t);
}

static void set_mtime(struct log_test *t, const char *name, int64_t ms)
{
    struct timespec ts[2] = {{ms / 1000, ms % 1000 * 1000000}, {ms / 1000, ms % 1000 * 1000000}};
    assert_int_equal(utimensat(AT_FDCWD, log_file(t, name), ts, 0), 0);
}

static void assert_list(struct log_test *t, int64_t timestamp, int64_t limit, int max,
                        const char *want)
{
    int64_t *v;
    int n;
    char got[256] = "";
    size_t len = 0;
    arena_reset(&t->arena);
    assert_int_equal(log_offsets_before(t->log, timestamp, limit, max, &t->arena, &v, &n),
                     KERR_NONE);
    for (int i = 0; i < n; i++)
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%" PRId64, i ? " " : "", v[i]);
    assert_string_equal(got, want);
}

/* C31 */
static void version_0_lists_segment_starts(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 300;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 9, 1);
    assert_int_equal(log_segment_count(t.log), 3);
    int64_t b1 = t.log->segments.now->v[1]->base, b2 = t.log->segments.now->v[2]->base;
    char all[64], two[64], seen[64], name[64];
    snprintf(all, sizeof(all), "9 %" PRId64 " %" PRId64 " 0", b2, b1);
    snprintf(two, sizeof(two), "9 %" PRId64, b2);
    snprintf(seen, sizeof(seen), "%" PRId64 " 0", b1);
    assert_list(&t, -1, 9, 10, all);
    assert_list(&t, -1, 9, 2, two);
    assert_list(&t, -1, 9, 0, "");
    assert_list(&t, -2, 9, 10, "0");
    /* a time: starts of segments not changed after it */
    set_mtime(&t, "00000000000000000000.log", T0 - 3000);
    snprintf(name, sizeof(name), "%020" PRId64 ".log", b1);
    set_mtime(&t, name, T0 - 2000);
    snprintf(name, sizeof(name), "%020" PRId64 ".log", b2);
    set_mtime(&t, name, T0 - 1000);
    assert_list(&t, T0 - 4000, 9, 10, "");
    assert_list(&t, T0 - 2000, 9, 10, seen);
    assert_list(&t, T0, 9, 10, all);
    /* a consumer's bound stands for what lies above it */
    assert_list(&t, -1, 1, 10, "1 0");
    assert_list(&t, -1, 0, 10, "0");
    log_set_high_watermark(t.log, 9);
    assert_int_equal(log_raise_start_offset(t.log, 1), KERR_NONE);
    snprintf(all, sizeof(all), "9 %" PRId64 " %" PRId64 " 1", b2, b1);
    assert_list(&t, -1, 9, 10, all);
    teardown(&t);
}

static void an_empty_log_lists_its_start(void **state)
{
    struct log_test t;
    setup_log(&t);
    assert_list(&t, -1, 0, 10, "0");
    assert_list(&t, -2, 0, 10, "0");
    teardown(&t);
}

/* Records without times: found by the time the file was changed, never by a time of their own. */
static void records_without_times(void **state)
{
    struct log_test t;
    setup_log(&t);
    struct records r = records_of(3);
    r.timestamp = -1;
    r.step = 0;
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(look(&t, 0, 3).offset, -1);
    assert_int_equal(look(&t, LIST_MAX_TIMESTAMP, 3).offset, -1);
    teardown(&t);
}

UNIT_MAIN(unit_test(random_times_agree_with_a_model), unit_test(nothing_late_enough),
          unit_test(the_first_record_of_the_newest_time), unit_test(special_times),
          unit_test(version_0_lists_segment_starts), unit_test(an_empty_log_lists_its_start),
          unit_test(records_without_times))
