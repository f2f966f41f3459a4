/* All logs of a broker: start, create, delete, checkpoints, stop, dirs that fail. */
#include <unistd.h>

#include "log/checkpoint.h"
#include "log/log_manager.h"
#include "log_util.h"

struct manager_test {
    struct log_test t; /* fs, clock, config, records; its own dir and log are not used */
    char dirs[3][300];
    const char *paths[3];
    int dirs_n;
    struct log_manager_options o;
    struct log_manager *m;
    char err[1024];
    atomic_int failed;
};

static void count_failure(void *arg, struct log_dir *d)
{
    atomic_fetch_add(&((struct manager_test *)arg)->failed, 1);
}

static void setup_manager(struct manager_test *mt, int dirs)
{
    memset((void *)mt, 0, sizeof(*mt));
    setup(&mt->t);
    log_dir_free(mt->t.dir);
    mt->t.dir = NULL;
    for (int i = 0; i < 3; i++) {
        snprintf(mt->dirs[i], sizeof(mt->dirs[i]), "%s/d%d", mt->t.tmp.path, i);
        mt->paths[i] = mt->dirs[i];
    }
    mt->t.config.file_delete_delay_ms = 1000;
    mt->o = (struct log_manager_options){.fs = mt->t.fs,
                                         .clock = &mt->t.clock.clock,
                                         .dirs = mt->paths,
                                         .dirs_n = dirs,
                                         .defaults = mt->t.config,
                                         .recovery_threads = 2,
                                         .broker_id = 1,
                                         .cluster_id = "cluster-a",
                                         .dir_failed = count_failure,
                                         .arg = mt};
}

static int open_manager(struct manager_test *mt)
{
    mt->err[0] = 0;
    return log_manager_open(&mt->o, &mt->m, mt->err, sizeof(mt->err));
}

static void must_open(struct manager_test *mt)
{
    int rc = open_manager(mt);
    if (rc)
        fail_msg("%s", mt->err);
}

static void close_manager(struct manager_test *mt)
{
    log_manager_close(mt->m);
    mt->m = NULL;
}

static void teardown_manager(struct manager_test *mt)
{
    log_manager_abandon(mt->m);
    mt->t.dir = NULL;
    teardown(&mt->t);
}

static struct topic_partition tp_of(const char *topic, int32_t partition)
{
    return (struct topic_partition){str_of(topic), partition};
}

/* Returns shared. */
static struct log *make(struct manager_test *mt, const char *topic, int32_t partition)
{
    struct log *log;
    assert_int_equal(log_manager_get_or_create(mt->m, tp_of(topic, partition), true, UUID_ZERO,
                                               &mt->t.config, &log),
                     KERR_NONE);
    return log;
}

static void append_to(struct manager_test *mt, struct log *log, int n)
{
    mt->t.log = log;
    append_many(&mt->t, n, 1);
    mt->t.log = NULL;
}

static bool exists(struct manager_test *mt, const char *path)
{
    struct file_stat st;
    return fs_stat(mt->t.fs, path, &st) == 0;
}

static const char *in_dir(struct manager_test *mt, int dir, const char *name)
{
    char sub[400];
    snprintf(sub, sizeof(sub), "d%d/%s", dir, name);
    return temp_dir_path(&mt->t.tmp, sub);
}

static bool checkpoint_says(struct manager_test *mt, int dir, const char *file, const char *topic,
                            int32_t partition, int64_t *v)
{
    struct offset_checkpoint c;
    assert_int_equal(offset_checkpoint_read(mt->t.fs, in_dir(mt, dir, file), &c), 0);
    bool there = offset_checkpoint_get(&c, str_of(topic), partition, v);
    offset_checkpoint_free(&c);
    return there;
}

static void logs_survive_a_clean_stop(void **state)
{
    struct manager_test mt;
    int64_t v;
    struct uuid id = uuid_random();
    setup_manager(&mt, 1);
    must_open(&mt);
    assert_null(log_manager_find(mt.m, tp_of("a", 0)));
    struct log *log;
    assert_int_equal(log_manager_get_or_create(mt.m, tp_of("a", 0), true, id, &mt.t.config, &log),
                     KERR_NONE);
    struct log *again = make(&mt, "a", 0);
    assert_ptr_equal(again, log);
    log_unref(again);
    assert_int_equal(log_manager_count(mt.m), 1);
    append_to(&mt, log, 10);
    log_set_high_watermark(log, 8);
    assert_int_equal(log_raise_start_offset(log, 3), KERR_NONE);
    log_unref(log);
    assert_false(exists(&mt, in_dir(&mt, 0, ".kafka_cleanshutdown")));
    assert_true(exists(&mt, in_dir(&mt, 0, ".lock")));
    close_manager(&mt);
    assert_true(exists(&mt, in_dir(&mt, 0, ".kafka_cleanshutdown")));
    assert_false(exists(&mt, in_dir(&mt, 0, ".lock")));
    /* 17: the recovery point of a cleanly shut dir is the end of each log */
    assert_true(checkpoint_says(&mt, 0, CHECKPOINT_RECOVERY_POINT, "a", 0, &v));
    assert_int_equal(v, 10);
    assert_true(checkpoint_says(&mt, 0, CHECKPOINT_LOG_START, "a", 0, &v));
    assert_int_equal(v, 3);
    assert_true(checkpoint_says(&mt, 0, CHECKPOINT_HIGH_WATERMARK, "a", 0, &v));
    assert_int_equal(v, 8);
    must_open(&mt);
    assert_false(exists(&mt, in_dir(&mt, 0, ".kafka_cleanshutdown")));
    log = log_manager_find(mt.m, tp_of("a", 0));
    assert_non_null(log);
    assert_int_equal(log_start_offset(log), 3);
    assert_int_equal(log_end_offset(log), 10);
    assert_int_equal(log_high_watermark(log), 8);
    assert_true(uuid_eq(log_topic_id(log), id));
    log_unref(log);
    close_manager(&mt);
    teardown_manager(&mt);
}

static void without_the_mark_logs_are_checked(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 1);
    must_open(&mt);
    struct log *log = make(&mt, "a", 0);
    append_to(&mt, log, 10);
    log_manager_checkpoint_high_watermarks(mt.m);
    log_unref(log);
    log_manager_abandon(mt.m);
    must_open(&mt);
    assert_non_null(strstr(mt.t.said, "not clean"));
    log = log_manager_find(mt.m, tp_of("a", 0));
    assert_int_equal(log_end_offset(log), 10);
    assert_int_equal(log_recovery_point(log), 0);
    log_unref(log);
    close_manager(&mt);
    teardown_manager(&mt);
}

static void new_logs_go_to_the_emptiest_dir(void **state)
{
    struct manager_test mt;
    int n[3] = {0};
    setup_manager(&mt, 3);
    must_open(&mt);
    for (int32_t i = 0; i < 9; i++) {
        struct log *log = make(&mt, "a", i);
        for (int d = 0; d < 3; d++)
            n[d] += strcmp(log_dir_path(log_dir_of(log)), mt.dirs[d]) == 0;
        if (i == 0) /* ties in order */
            assert_int_equal(n[0], 1);
        log_unref(log);
    }
    for (int d = 0; d < 3; d++)
        assert_int_equal(n[d], 3);
    close_manager(&mt);
    must_open(&mt);
    assert_int_equal(log_manager_count(mt.m), 9);
    close_manager(&mt);
    teardown_manager(&mt);
}

/* ---- deleting ---- */

static int count_delete_folders(struct manager_test *mt, int dir)
{
    char cmd[512];
    snprintf(cmd, sizeof(cmd), "ls -d '%s'/*-delete 2>/dev/null | wc -l", mt->dirs[dir]);
    FILE *p = popen(cmd, "r");
    int n = -1;
    assert_int_equal(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

static void a_deleted_logs_name_is_free_at_once(void **state)
{
    struct manager_test mt;
    int64_t v;
    setup_manager(&mt, 1);
    must_open(&mt);
    struct log *log = make(&mt, "a", 0);
    append_to(&mt, log, 10);
    log_set_high_watermark(log, 10);
    assert_int_equal(log_raise_start_offset(log, 5), KERR_NONE);
    assert_int_equal(log_flush(log), KERR_NONE);
    log_manager_checkpoint_recovery_points(mt.m);
    log_manager_checkpoint_start_offsets(mt.m);
    assert_int_equal(log_manager_delete(mt.m, tp_of("a", 0)), KERR_NONE);
    assert_int_equal(log_manager_delete(mt.m, tp_of("a", 0)), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_null(log_manager_find(mt.m, tp_of("a", 0)));
    assert_int_equal(count_delete_folders(&mt, 0), 1);
    /* who still holds it is turned away */
    struct log_slice s;
    assert_int_equal(log_read(log, 5, 100, 10, true, false, &s), KERR_NOT_LEADER_OR_FOLLOWER);
    mt.t.log = log;
    struct records r = records_of(1);
    assert_int_equal(append(&mt.t, &r), KERR_NOT_LEADER_OR_FOLLOWER);
    mt.t.log = NULL;
    log_unref(log);
    /* the new log of that name takes over nothing, not even from the checkpoints of a crash */
    log = make(&mt, "a", 0);
    assert_int_equal(log_end_offset(log), 0);
    append_to(&mt, log, 2);
    log_unref(log);
    assert_false(checkpoint_says(&mt, 0, CHECKPOINT_LOG_START, "a", 0, &v));
    assert_false(checkpoint_says(&mt, 0, CHECKPOINT_RECOVERY_POINT, "a", 0, &v));
    log_manager_abandon(mt.m);
    must_open(&mt);
    log = log_manager_find(mt.m, tp_of("a", 0));
    assert_int_equal(log_start_offset(log), 0);
    assert_int_equal(log_end_offset(log), 2);
    log_unref(log);
    /* the folder of the old one was found and goes */
    assert_true(log_manager_next_delete_ms(mt.m) >= 0);
    log_manager_delete_due(mt.m);
    assert_int_equal(count_delete_folders(&mt, 0), 0);
    close_manager(&mt);
    teardown_manager(&mt);
}

/* Without descriptors for a while the files stay as they were, and are written later. */
static void checkpoints_wait_for_descriptors(void **state)
{
    struct manager_test mt;
    int64_t v;
    setup_manager(&mt, 1);
    must_open(&mt);
    struct log *log = make(&mt, "a", 0);
    append_to(&mt, log, 3);
    log_set_high_watermark(log, 3);
    log_manager_checkpoint_high_watermarks(mt.m);
    append_to(&mt, log, 2);
    log_set_high_watermark(log, 5);
    for (uint64_t at = 1, used = at; at <= used; at++) { /* whichever call lacks them */
        uint64_t before = fs_fault_total(mt.t.fault);
        fs_fault_fail_at(mt.t.fault, before + at, -EMFILE);
        log_manager_checkpoint_high_watermarks(mt.m);
        used = fs_fault_total(mt.t.fault) - before;
        fs_fault_clear(mt.t.fault);
        assert_false(log_offline(log));
        assert_true(checkpoint_says(&mt, 0, CHECKPOINT_HIGH_WATERMARK, "a", 0, &v));
        assert_true(v == 3 || v == 5);
    }
    log_manager_checkpoint_high_watermarks(mt.m);
    assert_true(checkpoint_says(&mt, 0, CHECKPOINT_HIGH_WATERMARK, "a", 0, &v));
    assert_int_equal(v, 5);
    log_unref(log);
    teardown_manager(&mt);
}

/* Lines about logs that are gone, left by a crash between deletion and checkpoint. */
static void stale_checkpoint_lines_do_no_harm(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 1);
    must_open(&mt);
    close_manager(&mt);
    struct offset_entry e = {STR_LIT("a"), 0, 500};
    assert_int_equal(offset_checkpoint_write(mt.t.fs, in_dir(&mt, 0, CHECKPOINT_LOG_START), &e, 1),
                     0);
    assert_int_equal(
        offset_checkpoint_write(mt.t.fs, in_dir(&mt, 0, CHECKPOINT_RECOVERY_POINT), &e, 1), 0);
    must_open(&mt);
    struct log *log = make(&mt, "a", 0);
    append_to(&mt, log, 3);
    log_unref(log);
    log_manager_abandon(mt.m);
    must_open(&mt);
    log = log_manager_find(mt.m, tp_of("a", 0));
    assert_int_equal(log_start_offset(log), 0);
    assert_int_equal(log_end_offset(log), 3);
    log_unref(log);
    close_manager(&mt);
    teardown_manager(&mt);
}

/* C90: 249 characters, a restart in between, the name used again. */
static void the_longest_topic_can_be_deleted(void **state)
{
    struct manager_test mt;
    char topic[250];
    memset(topic, 'x', 249);
    topic[249] = 0;
    setup_manager(&mt, 1);
    must_open(&mt);
    for (int32_t p = 0; p < 3; p++) {
        struct log *log = make(&mt, topic, p);
        append_to(&mt, log, 2);
        log_unref(log);
    }
    for (int32_t p = 0; p < 3; p++)
        assert_int_equal(log_manager_delete(mt.m, tp_of(topic, p)), KERR_NONE);
    assert_int_equal(count_delete_folders(&mt, 0), 3);
    close_manager(&mt);
    must_open(&mt);
    assert_int_equal(log_manager_count(mt.m), 0);
    log_unref(make(&mt, topic, 1));
    log_manager_delete_due(mt.m);
    assert_int_equal(count_delete_folders(&mt, 0), 0);
    assert_int_equal(log_manager_count(mt.m), 1);
    close_manager(&mt);
    teardown_manager(&mt);
}

/* C105 */
static void a_delay_of_zero_is_gone_after_the_stop(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 1);
    mt.o.defaults.file_delete_delay_ms = 0;
    must_open(&mt);
    struct log *log = make(&mt, "a", 0);
    append_to(&mt, log, 2);
    log_unref(log);
    assert_int_equal(log_manager_next_delete_ms(mt.m), -1);
    assert_int_equal(log_manager_delete(mt.m, tp_of("a", 0)), KERR_NONE);
    assert_true(log_manager_next_delete_ms(mt.m) <= clock_mono_ms(&mt.t.clock.clock));
    close_manager(&mt);
    assert_int_equal(count_delete_folders(&mt, 0), 0);
    teardown_manager(&mt);
}

/* ---- whose dirs ---- */

static void meta_is_written_and_checked(void **state)
{
    struct manager_test mt;
    int32_t id;
    char cluster[64];
    setup_manager(&mt, 2);
    assert_int_equal(log_manager_read_meta(&mt.o, &id, cluster, mt.err, sizeof(mt.err)), 0);
    assert_int_equal(id, 1);
    mt.o.broker_id = -1;
    mt.o.cluster_id = NULL;
    assert_int_equal(log_manager_read_meta(&mt.o, &id, cluster, mt.err, sizeof(mt.err)), 0);
    assert_int_equal(id, -1);
    assert_string_equal(cluster, "");
    mt.o.broker_id = 7;
    mt.o.cluster_id = "cluster-a";
    must_open(&mt);
    close_manager(&mt);
    mt.o.broker_id = -1;
    mt.o.cluster_id = NULL;
    assert_int_equal(log_manager_read_meta(&mt.o, &id, cluster, mt.err, sizeof(mt.err)), 0);
    assert_int_equal(id, 7);
    assert_string_equal(cluster, "cluster-a");
    /* another id: refused, with file, found and allowed */
    mt.o.broker_id = 8;
    assert_int_equal(open_manager(&mt), -EINVAL);
    assert_non_null(strstr(mt.err, "d0/meta.properties"));
    assert_non_null(strstr(mt.err, "broker.id is 7"));
    assert_non_null(strstr(mt.err, "allowed is 8"));
    mt.o.broker_id = 7;
    mt.o.cluster_id = "cluster-b";
    assert_int_equal(open_manager(&mt), -EINVAL);
    assert_non_null(strstr(mt.err, "cluster.id is cluster-a"));
    assert_non_null(strstr(mt.err, "allowed is cluster-b"));
    /* a dir that is new gets them from the others */
    assert_int_equal(fs_unlink(mt.t.fs, in_dir(&mt, 0, "meta.properties")), 0);
    mt.o.broker_id = -1;
    mt.o.cluster_id = NULL;
    must_open(&mt);
    close_manager(&mt);
    assert_true(exists(&mt, in_dir(&mt, 0, "meta.properties")));
    /* and two dirs of two brokers do not go together */
    FILE *f = fopen(in_dir(&mt, 1, "meta.properties"), "w");
    fputs("version=0\nbroker.id=9\ncluster.id=cluster-a\n", f);
    fclose(f);
    assert_int_equal(open_manager(&mt), -EINVAL);
    assert_non_null(strstr(mt.err, "d1/meta.properties: broker.id is 9, allowed is 7"));
    assert_non_null(strstr(mt.err, "d0/meta.properties"));
    teardown_manager(&mt);
}

static void the_same_folder_twice_is_refused(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 2);
    assert_int_equal(fs_mkdir(mt.t.fs, mt.dirs[0]), 0);
    assert_int_equal(symlink(mt.dirs[0], mt.dirs[1]), 0);
    assert_int_equal(open_manager(&mt), -EINVAL);
    assert_non_null(strstr(mt.err, "twice"));
    teardown_manager(&mt);
}

static void strange_folders_stop_the_start(void **state)
{
    static const struct {
        const char *name;
        bool good;
    } cases[] = {{"lost+found", true},
                 {"remote-log-index-cache", true},
                 {"__cluster_metadata-0", true},
                 {"a-0.00112233445566778899aabbccddeeff-stray", true},
                 {"a-0.00112233445566778899aabbccddeeff-future", true},
                 {"nonsense", false},
                 {"a-b", false},
                 {"a-0.x.y-delet", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct manager_test mt;
        setup_manager(&mt, 1);
        assert_int_equal(fs_mkdir(mt.t.fs, mt.dirs[0]), 0);
        assert_int_equal(fs_mkdir(mt.t.fs, in_dir(&mt, 0, cases[i].name)), 0);
        FILE *f = fopen(in_dir(&mt, 0, "a plain file"), "w"); /* ignored */
        fclose(f);
        int rc = open_manager(&mt);
        assert_int_equal(rc, cases[i].good ? 0 : -EINVAL);
        if (!cases[i].good)
            assert_non_null(strstr(mt.err, cases[i].name));
        else
            close_manager(&mt);
        assert_true(exists(&mt, in_dir(&mt, 0, cases[i].name)));
        teardown_manager(&mt);
    }
}

static void two_folders_of_one_partition_stop_the_start(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 2);
    must_open(&mt);
    log_unref(make(&mt, "a", 0));
    close_manager(&mt);
    assert_int_equal(fs_mkdir(mt.t.fs, in_dir(&mt, 1, "a-0")), 0);
    assert_int_equal(open_manager(&mt), -EINVAL);
    assert_non_null(strstr(mt.err, "d0/a-0"));
    assert_non_null(strstr(mt.err, "d1/a-0"));
    teardown_manager(&mt);
}

/* ---- dirs that fail ---- */

static void a_dir_that_fails_takes_only_its_own_logs(void **state)
{
    struct manager_test mt;
    struct log *logs[4];
    setup_manager(&mt, 2);
    must_open(&mt);
    for (int32_t i = 0; i < 4; i++) {
        logs[i] = make(&mt, "a", i);
        append_to(&mt, logs[i], 3);
    }
    fs_fault_add(mt.t.fault,
                 (struct fs_fault_rule){
                     .call = FS_PWRITEV, .path = "*/d0/*.log", .times = -1, .error = ENOSPC});
    int refused = 0;
    for (int i = 0; i < 4; i++) {
        struct records r = records_of(1);
        mt.t.log = logs[i];
        enum kerr code = append(&mt.t, &r);
        bool in_d0 = strcmp(log_dir_path(log_dir_of(logs[i])), mt.dirs[0]) == 0;
        assert_int_equal(code, in_d0 ? KERR_KAFKA_STORAGE_ERROR : KERR_NONE);
        refused += in_d0;
        mt.t.log = NULL;
    }
    fs_fault_clear(mt.t.fault);
    assert_int_equal(refused, 2);
    assert_int_equal(mt.failed, 1);
    assert_int_equal(log_manager_online_dirs(mt.m), 1);
    struct log *log;
    /* one that may lie there is not made anew; one that is new goes to the other */
    assert_int_equal(
        log_manager_get_or_create(mt.m, tp_of("b", 0), false, UUID_ZERO, &mt.t.config, &log),
        KERR_KAFKA_STORAGE_ERROR);
    assert_null(log);
    assert_int_equal(log_manager_delete(mt.m, tp_of("b", 0)), KERR_KAFKA_STORAGE_ERROR);
    log = make(&mt, "b", 0);
    assert_string_equal(log_dir_path(log_dir_of(log)), mt.dirs[1]);
    log_unref(log);
    assert_int_equal(
        log_manager_get_or_create(mt.m, tp_of("a", 0), true, UUID_ZERO, &mt.t.config, &log),
        KERR_KAFKA_STORAGE_ERROR);
    for (int i = 0; i < 4; i++)
        log_unref(logs[i]);
    close_manager(&mt);
    assert_false(exists(&mt, in_dir(&mt, 0, ".kafka_cleanshutdown")));
    assert_true(exists(&mt, in_dir(&mt, 1, ".kafka_cleanshutdown")));
    /* after a restart all is there */
    must_open(&mt);
    assert_int_equal(log_manager_count(mt.m), 5);
    assert_int_equal(log_manager_online_dirs(mt.m), 2);
    close_manager(&mt);
    teardown_manager(&mt);
}

static void a_dir_that_does_not_load_is_offline(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 2);
    must_open(&mt);
    for (int32_t i = 0; i < 4; i++)
        log_unref(make(&mt, "a", i));
    close_manager(&mt);
    fs_fault_add(mt.t.fault, (struct fs_fault_rule){
                                 .call = FS_LIST, .path = "*/d0/a-0", .times = -1, .error = EIO});
    must_open(&mt);
    assert_int_equal(log_manager_online_dirs(mt.m), 1);
    assert_int_equal(log_manager_count(mt.m), 2);
    assert_null(log_manager_find(mt.m, tp_of("a", 0)));
    close_manager(&mt);
    assert_false(exists(&mt, in_dir(&mt, 0, ".kafka_cleanshutdown")));
    fs_fault_add(mt.t.fault, (struct fs_fault_rule){
                                 .call = FS_LIST, .path = "*/d1/a-1", .times = -1, .error = EIO});
    assert_int_equal(open_manager(&mt), -EIO);
    fs_fault_clear(mt.t.fault);
    teardown_manager(&mt);
}

/* Every call of a start may fail: no crash, no leak, nothing lost. */
static void every_failure_of_a_start(void **state)
{
    for (uint64_t n = 1;; n++) {
        struct manager_test mt;
        setup_manager(&mt, 1);
        must_open(&mt);
        for (int32_t i = 0; i < 2; i++) {
            struct log *log = make(&mt, "a", i);
            append_to(&mt, log, 5);
            log_unref(log);
        }
        assert_int_equal(log_manager_delete(mt.m, tp_of("a", 1)), KERR_NONE);
        if (n % 2)
            close_manager(&mt);
        else
            log_manager_abandon(mt.m);
        mt.m = NULL;
        fs_fault_fail_at(mt.t.fault, n, EIO);
        int rc = open_manager(&mt);
        fs_fault_fail_at(mt.t.fault, 0, 0);
        bool whole = rc == 0 && mt.failed == 0;
        log_manager_abandon(mt.m);
        mt.failed = 0;
        must_open(&mt);
        struct log *log = log_manager_find(mt.m, tp_of("a", 0));
        assert_non_null(log);
        assert_int_equal(log_end_offset(log), 5);
        log_unref(log);
        assert_null(log_manager_find(mt.m, tp_of("a", 1)));
        close_manager(&mt);
        teardown_manager(&mt);
        if (whole && n > 60)
            break;
    }
}

/* ---- many new logs ---- */

/* The machine crashes; whatever was not synced is gone. */
static void crash_machine(struct manager_test *mt)
{
    log_manager_abandon(mt->m);
    mt->m = NULL;
    for (int i = 0; i < mt->o.dirs_n; i++)
        assert_int_equal(fs_fault_crash(mt->t.fault, mt->dirs[i], FS_CRASH_DROP, 1), 0);
}

static void new_logs_are_durable_once_synced(void **state)
{
    struct manager_test mt;
    struct uuid id = uuid_random();
    for (int n = 1; n < 40; n += 13) { /* few, and many */
        setup_manager(&mt, 2);
        must_open(&mt);
        uint64_t syncs = fs_fault_count(mt.t.fault, FS_SYNC);
        uint64_t dirs = fs_fault_count(mt.t.fault, FS_SYNC_DIR);
        for (int32_t i = 0; i < n; i++) {
            struct log *log;
            assert_int_equal(
                log_manager_get_or_create(mt.m, tp_of("a", i), true, id, &mt.t.config, &log),
                KERR_NONE);
            log_unref(log);
        }
        assert_int_equal(fs_fault_count(mt.t.fault, FS_SYNC), syncs);
        log_manager_sync_created(mt.m);
        assert_int_equal(fs_fault_count(mt.t.fault, FS_SYNC), syncs + (uint64_t)n);
        assert_in_range(fs_fault_count(mt.t.fault, FS_SYNC_DIR), dirs + (uint64_t)n + 1,
                        dirs + (uint64_t)n + 2);
        log_manager_sync_created(mt.m); /* nothing is left to do */
        assert_int_equal(fs_fault_count(mt.t.fault, FS_SYNC), syncs + (uint64_t)n);
        crash_machine(&mt);
        must_open(&mt);
        assert_int_equal(log_manager_count(mt.m), n);
        for (int32_t i = 0; i < n; i++) {
            struct log *log = log_manager_find(mt.m, tp_of("a", i));
            assert_non_null(log);
            assert_true(uuid_eq(log_topic_id(log), id));
            log_unref(log);
        }
        close_manager(&mt);
        teardown_manager(&mt);
    }
}

/* Nobody asked for it: then the first flush makes the log itself durable, too, and the first append
 * the topic's id. */
static void a_flush_makes_a_new_log_durable(void **state)
{
    struct manager_test mt;
    struct uuid id = uuid_random();
    setup_manager(&mt, 1);
    must_open(&mt);
    struct log *log;
    assert_int_equal(log_manager_get_or_create(mt.m, tp_of("a", 0), true, id, &mt.t.config, &log),
                     KERR_NONE);
    append_to(&mt, log, 3);
    assert_int_equal(log_flush(log), KERR_NONE);
    log_unref(log);
    crash_machine(&mt);
    must_open(&mt);
    log = log_manager_find(mt.m, tp_of("a", 0));
    assert_non_null(log);
    assert_true(uuid_eq(log_topic_id(log), id));
    assert_int_equal(log_end_offset(log), 3);
    log_unref(log);
    close_manager(&mt);
    teardown_manager(&mt);
}

static void a_failed_sync_of_new_logs_is_told(void **state)
{
    for (uint64_t n = 1; n <= 7; n++) {
        struct manager_test mt;
        setup_manager(&mt, 1);
        mt.o.recovery_threads = 1;
        must_open(&mt);
        for (int32_t i = 0; i < 2; i++)
            log_unref(make(&mt, "a", i));
        fs_fault_fail_at(mt.t.fault, n, EIO);
        log_manager_sync_created(mt.m);
        fs_fault_fail_at(mt.t.fault, 0, 0);
        /* two folders, and their dir */
        assert_int_equal(log_manager_online_dirs(mt.m), n <= 3 ? 0 : 1);
        teardown_manager(&mt);
    }
}

/* ---- upkeep ---- */

static void flush_ms_flushes(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 1);
    mt.t.config.flush_ms = 1000;
    must_open(&mt);
    struct log *log = make(&mt, "a", 0);
    append_to(&mt, log, 3);
    log_manager_flush_due(mt.m);
    assert_int_equal(log_recovery_point(log), 0);
    sim_clock_advance(&mt.t.clock, 1000);
    log_manager_flush_due(mt.m);
    assert_int_equal(log_recovery_point(log), 3);
    log_unref(log);
    close_manager(&mt);
    teardown_manager(&mt);
}

static void count_log(void *arg, struct log *log)
{
    ++*(int *)arg;
}

static void upkeep_reaches_all_logs(void **state)
{
    struct manager_test mt;
    int n = 0;
    setup_manager(&mt, 2);
    mt.t.config.retention_ms = 1000;
    must_open(&mt);
    for (int32_t i = 0; i < 6; i++) {
        struct log *log = make(&mt, "a", i);
        append_to(&mt, log, 3);
        log_set_high_watermark(log, 3);
        log_unref(log);
    }
    log_manager_each(mt.m, count_log, &n);
    assert_int_equal(n, 6);
    sim_clock_advance(&mt.t.clock, 100000);
    log_manager_retention(mt.m);
    log_manager_expire_producers(mt.m);
    for (int32_t i = 0; i < 6; i++) {
        struct log *log = log_manager_find(mt.m, tp_of("a", i));
        assert_int_equal(log_start_offset(log), 3);
        log_unref(log);
    }
    int64_t due = log_manager_next_delete_ms(mt.m);
    assert_int_equal(due, clock_mono_ms(&mt.t.clock.clock) + 1000);
    sim_clock_advance(&mt.t.clock, 1000);
    log_manager_delete_due(mt.m);
    assert_int_equal(log_manager_next_delete_ms(mt.m), -1);
    close_manager(&mt);
    teardown_manager(&mt);
}

static void truncation_saves_the_recovery_points(void **state)
{
    struct manager_test mt;
    int64_t v;
    setup_manager(&mt, 1);
    must_open(&mt);
    struct log *log = make(&mt, "a", 0);
    append_to(&mt, log, 10);
    assert_int_equal(log_flush(log), KERR_NONE);
    log_manager_checkpoint_recovery_points(mt.m);
    assert_true(checkpoint_says(&mt, 0, CHECKPOINT_RECOVERY_POINT, "a", 0, &v));
    assert_int_equal(v, 10);
    assert_int_equal(log_truncate_to(log, 6), KERR_NONE);
    assert_true(checkpoint_says(&mt, 0, CHECKPOINT_RECOVERY_POINT, "a", 0, &v));
    assert_int_equal(v, 6);
    log_unref(log);
    close_manager(&mt);
    teardown_manager(&mt);
}

/* Records that come where lost ones were must not be taken for those: were the power cut now, their
 * bytes would not be looked at. */
static void a_start_saves_the_recovery_points_of_what_is_left(void **state)
{
    struct manager_test mt;
    int64_t v;
    setup_manager(&mt, 1);
    must_open(&mt);
    struct log *log = make(&mt, "a", 0);
    append_to(&mt, log, 6);
    log_unref(log);
    log_manager_abandon(mt.m);
    struct offset_entry e = {STR_LIT("a"), 0, 10};
    assert_int_equal(
        offset_checkpoint_write(mt.t.fs, in_dir(&mt, 0, CHECKPOINT_RECOVERY_POINT), &e, 1), 0);
    must_open(&mt);
    assert_true(checkpoint_says(&mt, 0, CHECKPOINT_RECOVERY_POINT, "a", 0, &v));
    assert_int_equal(v, 6);
    close_manager(&mt);
    teardown_manager(&mt);
}

static void topic_config(void *arg, struct str topic, struct log_config *c)
{
    if (str_eqz(topic, "compacted"))
        c->cleanup_policy = CLEANUP_COMPACT;
}

static void topics_get_their_settings_at_load(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 1);
    mt.o.topic_config = topic_config;
    must_open(&mt);
    log_unref(make(&mt, "compacted", 0));
    log_unref(make(&mt, "plain", 0));
    close_manager(&mt);
    must_open(&mt);
    for (int i = 0; i < 2; i++) {
        struct log *log = log_manager_find(mt.m, tp_of(i ? "compacted" : "plain", 0));
        const struct log_config *c = log_config_ref(log);
        assert_int_equal(c->cleanup_policy, i ? CLEANUP_COMPACT : CLEANUP_DELETE);
        log_config_unref(c);
        log_unref(log);
    }
    close_manager(&mt);
    teardown_manager(&mt);
}

static void unreadable_checkpoints_count_as_empty(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 1);
    must_open(&mt);
    struct log *log = make(&mt, "a", 0);
    append_to(&mt, log, 4);
    log_unref(log);
    close_manager(&mt);
    static const char *const files[] = {CHECKPOINT_RECOVERY_POINT, CHECKPOINT_LOG_START,
                                        CHECKPOINT_HIGH_WATERMARK};
    for (int i = 0; i < 3; i++) {
        FILE *f = fopen(in_dir(&mt, 0, files[i]), "w");
        fputs("0\n7\na 0 1\n", f);
        fclose(f);
    }
    must_open(&mt);
    for (int i = 0; i < 3; i++)
        assert_non_null(strstr(mt.t.said, files[i]));
    log = log_manager_find(mt.m, tp_of("a", 0));
    assert_int_equal(log_end_offset(log), 4);
    assert_int_equal(log_high_watermark(log), 0);
    log_unref(log);
    close_manager(&mt);
    teardown_manager(&mt);
}

/* ---- futures ---- */

static struct log *future_of(struct manager_test *mt, const char *topic)
{
    return log_manager_future(mt->m, tp_of(topic, 0));
}

/* A log with n records, and a future with the first `copied` of them in the other dir. */
static void make_with_future(struct manager_test *mt, int n, int copied)
{
    struct log_dir *dirs[2];
    struct log *log = make(mt, "a", 0);
    append_to(mt, log, n);
    log_set_high_watermark(log, n);
    assert_int_equal(log_manager_dirs(mt->m, dirs, 2), 2);
    struct log_dir *other = log_dir_of(log) == dirs[0] ? dirs[1] : dirs[0];
    assert_int_equal(log_manager_make_future(mt->m, log, other), KERR_NONE);
    struct log *future = future_of(mt, "a");
    append_to(mt, future, copied);
    log_set_high_watermark(future, copied);
    log_unref(future);
    log_unref(log);
}

static int folders_of(struct manager_test *mt, const char *with, const char *without);

static void a_future_is_apart_from_its_log(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 2);
    must_open(&mt);
    make_with_future(&mt, 10, 4);
    struct log *log = log_manager_find(mt.m, tp_of("a", 0)), *future = future_of(&mt, "a");
    assert_ptr_not_equal(log, future);
    assert_true(log_is_future(future));
    assert_false(log_is_future(log));
    assert_int_equal(log_end_offset(future), 4);
    assert_int_equal(log_manager_count(mt.m), 1);
    assert_int_equal(log_manager_make_future(mt.m, log, log_dir_of(future)), KERR_NONE);
    struct log *same = future_of(&mt, "a");
    assert_ptr_equal(same, future);
    log_unref(same);
    log_unref(log);
    log_unref(future);
    teardown_manager(&mt);
}

static void futures_survive_any_stop(void **state)
{
    for (int clean = 0; clean < 2; clean++) {
        struct manager_test mt;
        setup_manager(&mt, 2);
        must_open(&mt);
        make_with_future(&mt, 10, 4);
        if (clean)
            close_manager(&mt);
        else
            log_manager_abandon(mt.m);
        must_open(&mt);
        struct log *log = log_manager_find(mt.m, tp_of("a", 0)), *future = future_of(&mt, "a");
        assert_non_null(log);
        assert_non_null(future);
        assert_int_equal(log_end_offset(log), 10);
        assert_int_equal(log_end_offset(future), 4);
        if (clean)
            assert_int_equal(log_high_watermark(future), 4);
        assert_true(log_is_future(future));
        log_unref(log);
        log_unref(future);
        teardown_manager(&mt);
    }
}

static void the_future_takes_the_logs_place(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 2);
    must_open(&mt);
    make_with_future(&mt, 10, 10);
    struct log *log = log_manager_find(mt.m, tp_of("a", 0)), *future = future_of(&mt, "a");
    struct log_dir *from = log_dir_of(log);
    int old = strcmp(log_dir_path(from), mt.dirs[0]) == 0 ? 0 : 1;
    assert_int_equal(log_manager_swap_future(mt.m, log, future), KERR_NONE);
    struct log *now = log_manager_find(mt.m, tp_of("a", 0));
    assert_ptr_equal(now, future);
    assert_false(log_is_future(now));
    assert_null(future_of(&mt, "a"));
    assert_true(exists(&mt, in_dir(&mt, 1 - old, "a-0")));
    assert_false(exists(&mt, in_dir(&mt, old, "a-0")));
    append_to(&mt, now, 1);
    assert_int_equal(log_begin_epoch(log, 9), KERR_NOT_LEADER_OR_FOLLOWER);
    log_unref(log);
    log_unref(future);
    log_unref(now);
    sim_clock_advance(&mt.t.clock, 2000);
    log_manager_delete_due(mt.m);
    close_manager(&mt);
    must_open(&mt);
    now = log_manager_find(mt.m, tp_of("a", 0));
    assert_int_equal(log_end_offset(now), 11);
    assert_int_equal(log_high_watermark(now), 10);
    assert_string_equal(log_dir_path(log_dir_of(now)), mt.dirs[1 - old]);
    log_unref(now);
    teardown_manager(&mt);
}

static void a_future_that_is_dropped_leaves_nothing(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 2);
    must_open(&mt);
    make_with_future(&mt, 10, 4);
    struct log *future = future_of(&mt, "a");
    log_manager_drop_future(mt.m, future);
    log_manager_drop_future(mt.m, future); /* harmless */
    log_unref(future);
    assert_null(future_of(&mt, "a"));
    sim_clock_advance(&mt.t.clock, 2000);
    log_manager_delete_due(mt.m);
    assert_int_equal(folders_of(&mt, "a-0", NULL), 1);
    close_manager(&mt);
    must_open(&mt);
    assert_null(future_of(&mt, "a"));
    teardown_manager(&mt);
}

static int count_name(void *arg, const char *name)
{
    const char *const *words = ((const char *const **)arg)[0];
    int *n = ((int **)arg)[1];
    *n += strstr(name, words[0]) && (!words[1] || !strstr(name, words[1]));
    return 0;
}

/* Names in both dirs with one text in them and without the other. */
static int folders_of(struct manager_test *mt, const char *with, const char *without)
{
    int n = 0;
    const char *words[] = {with, without};
    void *arg[] = {words, &n};
    for (int i = 0; i < 2; i++)
        assert_int_equal(fs_list(mt->t.fs, mt->dirs[i], count_name, arg), 0);
    return n;
}

/* Each call of the swap fails in turn: then there is the old log, or the new one, or (between the
 * two renames) both, which the next start tells; never none, and never fewer records. */
static void a_swap_that_fails_loses_nothing(void **state)
{
    for (uint64_t at = 1;; at++) {
        struct manager_test mt;
        setup_manager(&mt, 2);
        must_open(&mt);
        make_with_future(&mt, 10, 10);
        struct log *log = log_manager_find(mt.m, tp_of("a", 0)), *future = future_of(&mt, "a");
        assert_int_equal(log_flush(future), KERR_NONE);
        uint64_t before = fs_fault_total(mt.t.fault);
        fs_fault_fail_at(mt.t.fault, before + at, -EIO);
        enum kerr e = log_manager_swap_future(mt.m, log, future);
        uint64_t used = fs_fault_total(mt.t.fault) - before;
        fs_fault_clear(mt.t.fault);
        log_unref(log);
        log_unref(future);
        log_manager_abandon(mt.m);
        mt.m = NULL;
        int rc = open_manager(&mt);
        if (rc == 0) {
            log = log_manager_find(mt.m, tp_of("a", 0));
            assert_non_null(log);
            assert_int_equal(log_end_offset(log), 10);
            log_unref(log);
        } else {
            assert_non_null(strstr(mt.err, "one partition has two folders"));
        }
        teardown_manager(&mt);
        if (at > used) {
            assert_int_equal(e, KERR_NONE);
            break;
        }
    }
}

static void futures_need_all_dirs_and_a_short_name(void **state)
{
    struct manager_test mt;
    struct log_dir *dirs[2];
    char name[250];
    memset(name, 'x', 240);
    name[240] = 0;
    setup_manager(&mt, 2);
    must_open(&mt);
    assert_int_equal(log_manager_dirs(mt.m, dirs, 2), 2);
    struct log *log = make(&mt, name, 0);
    struct log_dir *other = log_dir_of(log) == dirs[0] ? dirs[1] : dirs[0];
    assert_int_equal(log_manager_make_future(mt.m, log, other), KERR_INVALID_TOPIC_EXCEPTION);
    log_unref(log);
    log = make(&mt, "a", 0);
    other = log_dir_of(log) == dirs[0] ? dirs[1] : dirs[0];
    log_dir_fail(other, EIO, "test");
    assert_int_equal(log_manager_make_future(mt.m, log, other), KERR_KAFKA_STORAGE_ERROR);
    log_unref(log);
    teardown_manager(&mt);
}

static void a_wish_is_good_for_one_log(void **state)
{
    struct manager_test mt;
    struct log_dir *dirs[2];
    setup_manager(&mt, 2);
    must_open(&mt);
    assert_int_equal(log_manager_dirs(mt.m, dirs, 2), 2);
    assert_null(log_manager_dir(mt.m, "/no/such"));
    assert_ptr_equal(log_manager_dir(mt.m, mt.dirs[1]), dirs[1]);
    for (int i = 0; i < 3; i++) { /* the emptiest would be the first by turns */
        char topic[16];
        snprintf(topic, sizeof(topic), "t%d", i);
        log_manager_prefer_dir(mt.m, tp_of(topic, 0), dirs[0]);
        log_manager_prefer_dir(mt.m, tp_of(topic, 0), dirs[1]);
        struct log *log = make(&mt, topic, 0);
        assert_ptr_equal(log_dir_of(log), dirs[1]);
        log_unref(log);
    }
    log_manager_prefer_dir(mt.m, tp_of("never-made", 0), dirs[0]);
    struct log *log = make(&mt, "other", 0);
    assert_ptr_equal(log_dir_of(log), dirs[0]);
    log_unref(log);
    teardown_manager(&mt);
}

static void two_futures_of_one_partition_stop_the_start(void **state)
{
    struct manager_test mt;
    setup_manager(&mt, 2);
    must_open(&mt);
    make_with_future(&mt, 1, 1);
    close_manager(&mt);
    assert_int_equal(
        fs_mkdir(mt.t.fs, in_dir(&mt, 0, "b-0.00112233445566778899aabbccddeeff00-future")), 0);
    assert_int_equal(
        fs_mkdir(mt.t.fs, in_dir(&mt, 1, "b-0.ff112233445566778899aabbccddeeff-future")), 0);
    assert_int_equal(open_manager(&mt), -EINVAL);
    assert_non_null(strstr(mt.err, "two folders"));
    teardown_manager(&mt);
}

UNIT_MAIN(
    unit_test(a_future_is_apart_from_its_log), unit_test(futures_survive_any_stop),
    unit_test(the_future_takes_the_logs_place), unit_test(a_future_that_is_dropped_leaves_nothing),
    unit_test(a_swap_that_fails_loses_nothing), unit_test(futures_need_all_dirs_and_a_short_name),
    unit_test(a_wish_is_good_for_one_log), unit_test(two_futures_of_one_partition_stop_the_start),
    unit_test(logs_survive_a_clean_stop), unit_test(without_the_mark_logs_are_checked),
    unit_test(new_logs_go_to_the_emptiest_dir), unit_test(a_deleted_logs_name_is_free_at_once),
    unit_test(checkpoints_wait_for_descriptors), unit_test(stale_checkpoint_lines_do_no_harm),
    unit_test(the_longest_topic_can_be_deleted), unit_test(a_delay_of_zero_is_gone_after_the_stop),
    unit_test(meta_is_written_and_checked), unit_test(the_same_folder_twice_is_refused),
    unit_test(strange_folders_stop_the_start),
    unit_test(two_folders_of_one_partition_stop_the_start),
    unit_test(a_dir_that_fails_takes_only_its_own_logs),
    unit_test(a_dir_that_does_not_load_is_offline), unit_test(every_failure_of_a_start),
    unit_test(flush_ms_flushes), unit_test(upkeep_reaches_all_logs),
    unit_test(truncation_saves_the_recovery_points),
    unit_test(a_start_saves_the_recovery_points_of_what_is_left),
    unit_test(topics_get_their_settings_at_load), unit_test(unreadable_checkpoints_count_as_empty),
    unit_test(new_logs_are_durable_once_synced), unit_test(a_flush_makes_a_new_log_durable),
    unit_test(a_failed_sync_of_new_logs_is_told))
