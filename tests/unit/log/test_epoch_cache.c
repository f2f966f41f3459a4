/* Leader epochs: the rules of adding and cutting, the answers, the file. */
#include "log/epoch_cache.h"

#include "log_util.h"
#include "vectors.h"

static struct epoch_cache with(const char *text)
{
    struct epoch_cache c;
    epoch_cache_init(&c);
    assert_int_equal(epoch_cache_parse(&c, text, strlen(text)), 0);
    return c;
}

static void assert_entries(struct epoch_cache *c, const char *want)
{
    char got[256] = "";
    size_t n = 0;
    for (int i = 0; i < epoch_cache_count(c); i++) {
        struct epoch_entry e = epoch_cache_at(c, i);
        n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%d:%" PRId64, i ? " " : "", e.epoch,
                              e.start);
    }
    assert_string_equal(got, want);
}

static void adding_drops_what_it_contradicts(void **state)
{
    static const struct {
        const char *before;
        int32_t epoch;
        int64_t start;
        const char *after;
    } cases[] = {
        {"0\n0\n", 0, 0, "0:0"},
        {"0\n1\n0 0\n", 1, 10, "0:0 1:10"},
        {"0\n2\n0 0\n1 10\n", 1, 10, "0:0 1:10"},
        {"0\n2\n0 0\n1 10\n", 1, 15, "0:0 1:10"}, /* began earlier: stays */
        {"0\n2\n0 0\n1 10\n", 1, 5, "0:0 1:5"},
        {"0\n2\n0 0\n1 10\n", 2, 10, "0:0 2:10"}, /* epoch 1 wrote nothing */
        {"0\n3\n0 0\n1 10\n2 20\n", 3, 5, "0:0 3:5"},
        {"0\n3\n0 0\n1 10\n2 20\n", 1, 30, "0:0 1:30"},
        {"0\n3\n0 0\n1 10\n2 20\n", 5, 0, "5:0"},
        {"0\n1\n0 0\n", -1, 10, "0:0"}, /* batches of very old leaders */
        {"0\n1\n0 0\n", 1, -1, "0:0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct epoch_cache c = with(cases[i].before);
        assert_int_equal(epoch_cache_note(&c, cases[i].epoch, cases[i].start), 0);
        assert_entries(&c, cases[i].after);
        epoch_cache_free(&c);
    }
}

static void cuts_keep_what_is_left_answerable(void **state)
{
    struct epoch_cache c = with("0\n4\n0 0\n1 10\n2 20\n5 30\n");
    assert_false(epoch_cache_cut_end(&c, 31));
    assert_true(epoch_cache_cut_end(&c, 30)); /* a start at the end goes */
    assert_entries(&c, "0:0 1:10 2:20");
    assert_false(epoch_cache_cut_start(&c, 0));
    assert_true(epoch_cache_cut_start(&c, 15));
    assert_entries(&c, "1:15 2:20");
    assert_false(epoch_cache_cut_start(&c, 15));
    assert_true(epoch_cache_cut_start(&c, 20));
    assert_entries(&c, "2:20");
    assert_false(epoch_cache_cut_start(&c, 20));
    assert_true(epoch_cache_cut_start(&c, 25));
    assert_entries(&c, "2:25");
    assert_true(epoch_cache_cut_end(&c, 0));
    assert_entries(&c, "");
    assert_false(epoch_cache_cut_start(&c, 7));
    epoch_cache_free(&c);
    struct epoch_cache late = with("0\n2\n3 50\n4 60\n");
    assert_false(epoch_cache_cut_start(&late, 40)); /* nothing begins that early */
    assert_entries(&late, "3:50 4:60");
    epoch_cache_free(&late);
}

static void end_offsets(void **state)
{
    static const struct {
        int32_t asked, found;
        int64_t end;
    } cases[] = {{-1, -1, -1}, {0, 0, 5},  {1, 1, 10},  {2, 1, 10},         {3, 3, 20},
                 {4, 3, 20},   {5, 5, 99}, {6, -1, -1}, {INT32_MAX, -1, -1}};
    struct epoch_cache c = with("0\n3\n1 5\n3 10\n5 20\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int32_t found;
        int64_t end;
        epoch_cache_end_offset(&c, cases[i].asked, 99, &found, &end);
        assert_int_equal(found, cases[i].found);
        assert_int_equal(end, cases[i].end);
    }
    assert_int_equal(epoch_cache_latest(&c), 5);
    assert_int_equal(epoch_cache_of_offset(&c, 4), -1);
    assert_int_equal(epoch_cache_of_offset(&c, 5), 1);
    assert_int_equal(epoch_cache_of_offset(&c, 19), 3);
    assert_int_equal(epoch_cache_of_offset(&c, 1000), 5);
    assert_int_equal(epoch_cache_earliest(&c, 5), 1);
    assert_int_equal(epoch_cache_earliest(&c, 4), -1);
    epoch_cache_free(&c);
    struct epoch_cache none = with("");
    int32_t found;
    int64_t end;
    epoch_cache_end_offset(&none, 0, 99, &found, &end);
    assert_int_equal(found, -1);
    assert_int_equal(end, -1);
    assert_int_equal(epoch_cache_latest(&none), -1);
    epoch_cache_free(&none);
}

static void the_file_is_kafkas(void **state)
{
    struct log_test t;
    struct epoch_cache c;
    uint8_t got[64];
    char *text;
    size_t n;
    bool had_text;
    setup_log(&t);
    epoch_cache_init(&c);
    assert_int_equal(epoch_cache_assign(&c, t.fs, log_path(t.log), 0, 0), 0);
    assert_int_equal(epoch_cache_assign(&c, t.fs, log_path(t.log), 3, 1057), 0);
    assert_int_equal(fs_read_all(t.fs, log_file(&t, EPOCH_FILE_NAME), 100, &text, &n), 0);
    assert_vector("file_leader_epoch_checkpoint", text, n);
    memcpy(got, text, n);
    free(text);
    struct epoch_cache again;
    epoch_cache_init(&again);
    assert_int_equal(epoch_cache_read(&again, t.fs, log_path(t.log), &had_text), 0);
    assert_true(had_text);
    assert_entries(&again, "0:0 3:1057");
    epoch_cache_free(&again);
    epoch_cache_free(&c);
    teardown(&t);
}

static void damage_is_refused(void **state)
{
    static const char *const bad[] = {"0\n3\n0 0\n",  "0\n1\n0\n",        "0\n1\n0 -1\n",
                                      "0\n1\n-1 0\n", "0\n2\n1 0\n0 5\n", "0\n2\n0 5\n1 5\n",
                                      "1\n0\n",       "0\n1\n0 0 0\n",    "garbage",
                                      "0\n1\n0 5",    "0\n2\n0 5\n1 25"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct epoch_cache c;
        epoch_cache_init(&c);
        assert_int_equal(epoch_cache_parse(&c, bad[i], strlen(bad[i])), -EBADMSG);
        assert_int_equal(epoch_cache_count(&c), 0);
        epoch_cache_free(&c);
    }
}

/* An epoch that could not be written is not known either. */
static void a_failed_write_changes_nothing(void **state)
{
    struct log_test t;
    setup_log(&t);
    for (uint64_t n = 1; n <= 3; n++) { /* open, stat, write: the sync comes with a flush */
        struct epoch_cache c = with("0\n1\n0 0\n");
        fs_fault_fail_at(t.fault, n, EIO);
        assert_int_equal(epoch_cache_assign(&c, t.fs, log_path(t.log), 1, 10), -EIO);
        fs_fault_clear(t.fault);
        assert_entries(&c, "0:0");
        epoch_cache_free(&c);
    }
    teardown(&t);
}

/* A new epoch costs an append no fsync: a flush sees to it before it vouches for the records. */
static void a_flush_syncs_new_epochs(void **state)
{
    struct log_test t;
    setup_log(&t);
    append_many(&t, 1, 1);
    assert_int_equal(log_flush(t.log), KERR_NONE);
    uint64_t syncs = fs_fault_count(t.fault, FS_SYNC);
    assert_int_equal(log_begin_epoch(t.log, 5), KERR_NONE);
    append_many(&t, 1, 1);
    assert_int_equal(fs_fault_count(t.fault, FS_SYNC), syncs);
    fs_fault_add(t.fault,
                 (struct fs_fault_rule){
                     .call = FS_SYNC, .path = "*/" EPOCH_FILE_NAME, .times = 1, .error = EIO});
    int64_t before = log_recovery_point(t.log);
    assert_int_equal(log_flush(t.log), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(log_recovery_point(t.log), before);
    assert_true(log_dir_offline(t.dir));
    teardown(&t);
}

static void sync_beside(void *arg)
{
    struct log *log = arg;
    bool named;
    assert_int_equal(epoch_cache_sync(&log->epochs, log_fs(log), log_path(log), &named), 0);
}

/* A flush comes in the middle of the write, at each of its calls: it does not count for what was
 * written after it. Seen by the simulator: the next flush left the new epoch out. */
static void a_sync_beside_a_write_does_not_cover_it(void **state)
{
    static const enum fs_call calls[] = {FS_OPEN, FS_PWRITEV, FS_TRUNCATE, FS_RENAME};
    for (size_t i = 0; i < 2 * sizeof(calls) / sizeof(calls[0]); i++) {
        struct log_test t;
        setup_log(&t);
        append_many(&t, 1, 1);
        if (i % 2) { /* the next write replaces the file */
            epoch_cache_clear(&t.log->epochs);
            t.log->epochs.on_disk_n = 0;
        }
        assert_int_equal(log_flush(t.log), KERR_NONE);
        fs_fault_add(t.fault, (struct fs_fault_rule){.call = calls[i / 2],
                                                     .path = "*/" EPOCH_FILE_NAME "*",
                                                     .times = 1,
                                                     .before = sync_beside,
                                                     .arg = t.log});
        assert_int_equal(log_begin_epoch(t.log, 5), KERR_NONE);
        assert_true(atomic_load(&t.log->epochs.unsynced));
        assert_int_equal(log_flush(t.log), KERR_NONE);
        teardown(&t);
    }
}

/* The machine crashes and the file of epochs is the old one, or nothing: the batches tell. */
static void epochs_come_back_from_the_batches(void **state)
{
    static const char *const found[] = {"", "0\n1\n0 0\n", "0\n1\n"};
    for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
        struct log_test t;
        setup_log(&t);
        for (int32_t epoch = 0; epoch < 4; epoch++)
            assert_int_equal(replicate(&t, 2 * epoch, 2, epoch), KERR_NONE);
        drop_log(&t);
        write_file(&t, EPOCH_FILE_NAME, found[i], strlen(found[i]));
        assert_int_equal(try_open(&t, false), 0);
        assert_entries(&t.log->epochs, "0:0 1:2 2:4 3:6");
        teardown(&t);
    }
}

UNIT_MAIN(unit_test(adding_drops_what_it_contradicts), unit_test(cuts_keep_what_is_left_answerable),
          unit_test(end_offsets), unit_test(the_file_is_kafkas), unit_test(damage_is_refused),
          unit_test(a_failed_write_changes_nothing), unit_test(a_flush_syncs_new_epochs),
          unit_test(a_sync_beside_a_write_does_not_cover_it),
          unit_test(epochs_come_back_from_the_batches))
