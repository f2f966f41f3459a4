/* The cleaner: which log comes first, checkpoints, retention of compacted logs, damage, and who
 * must wait for whom. */
#include "cleaner_util.h"

#include <math.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include "log/cleaner_private.h"
#include "log/log_manager_private.h"

struct bench {
    struct clean_test c; /* c.t.log: the log at hand, a reference of the bench's */
    struct log_manager_options mo;
    struct cleaner_options co;
    struct log_manager *m;
    struct cleaner *cleaner;
    const char *dirs[2];
    char paths[2][300];
    struct log *logs[4];
    int logs_n;
};

static void open_all(struct bench *b)
{
    char err[1024] = "";
    if (log_manager_open(&b->mo, &b->m, err, sizeof(err)))
        fail_msg("%s", err);
    b->co.logs = b->m;
    assert_int_equal(cleaner_new(&b->co, &b->cleaner), 0);
}

static void setup_bench(struct bench *b)
{
    memset(b, 0, sizeof(*b));
    setup(&b->c.t);
    log_dir_free(b->c.t.dir);
    b->c.t.dir = NULL;
    for (int i = 0; i < 2; i++) {
        snprintf(b->paths[i], sizeof(b->paths[i]), "%s/d%d", b->c.t.tmp.path, i);
        b->dirs[i] = b->paths[i];
    }
    b->c.t.config.cleanup_policy = CLEANUP_COMPACT;
    b->c.t.config.delete_retention_ms = 1000;
    b->c.t.config.file_delete_delay_ms = 0;
    b->mo = (struct log_manager_options){.fs = b->c.t.fs,
                                         .clock = &b->c.t.clock.clock,
                                         .dirs = b->dirs,
                                         .dirs_n = 1,
                                         .defaults = b->c.t.config,
                                         .recovery_threads = 1,
                                         .broker_id = 1,
                                         .cluster_id = "cluster-a"};
    b->co = (struct cleaner_options){.clock = &b->c.t.clock.clock,
                                     .threads = 1,
                                     .dedupe_bytes = 1 << 20,
                                     .load_factor = 0.9,
                                     .io_buffer_bytes = 8192,
                                     .max_bytes_per_second = INFINITY,
                                     .backoff_ms = 1};
    open_all(b);
}

/* Makes or finds the log and takes it to hand. */
static struct log *use(struct bench *b, const char *topic)
{
    struct topic_partition tp = {str_of(topic), 0};
    assert_int_equal(
        log_manager_get_or_create(b->m, tp, true, UUID_ZERO, &b->c.t.config, &b->c.t.log),
        KERR_NONE);
    for (int i = 0; i < b->logs_n; i++)
        if (b->logs[i] == b->c.t.log) {
            log_unref(b->c.t.log);
            return b->c.t.log;
        }
    b->logs[b->logs_n++] = b->c.t.log;
    return b->c.t.log;
}

static void let_go(struct bench *b)
{
    for (int i = 0; i < b->logs_n; i++)
        log_unref(b->logs[i]);
    b->logs_n = 0;
    b->c.t.log = NULL;
}

static void restart(struct bench *b)
{
    let_go(b);
    cleaner_stop(b->cleaner);
    cleaner_free(b->cleaner);
    log_manager_close(b->m);
    open_all(b);
}

static void teardown_bench(struct bench *b)
{
    let_go(b);
    cleaner_stop(b->cleaner);
    cleaner_free(b->cleaner);
    log_manager_abandon(b->m);
    teardown(&b->c.t);
}

/* n records of one key in segments of two. */
static void fill(struct bench *b, int n)
{
    for (int i = 0; i < n; i++) {
        put(&b->c, "a", "value");
        if (i % 2)
            roll(&b->c);
    }
}

static bool file_says(struct bench *b, int64_t want)
{
    char path[400];
    struct offset_checkpoint cp = {0};
    int64_t v;
    snprintf(path, sizeof(path), "%s/" CHECKPOINT_CLEANER, b->paths[0]);
    assert_int_equal(offset_checkpoint_read(b->c.t.fs, path, &cp), 0);
    bool found = offset_checkpoint_get(&cp, str_of("t"), 0, &v);
    offset_checkpoint_free(&cp);
    return want < 0 ? !found : found && v == want;
}

static void checkpoint_survives_a_restart(void **state)
{
    struct bench b;
    setup_bench(&b);
    struct log *log = use(&b, "t");
    fill(&b, 6);
    assert_true(cleaner_round(b.cleaner));
    assert_true(file_says(&b, 6));
    assert_false(cleaner_round(b.cleaner));
    restart(&b);
    log = use(&b, "t");
    assert_int_equal(log_cleaned_to(log), 6);
    commit_all(&b.c);
    assert_false(cleaner_round(b.cleaner));
    fill(&b, 2);
    assert_true(cleaner_round(b.cleaner));
    assert_true(file_says(&b, 8));
    teardown_bench(&b);
}

static void a_new_log_of_the_name_begins_anew(void **state)
{
    struct bench b;
    setup_bench(&b);
    use(&b, "t");
    fill(&b, 6);
    assert_true(cleaner_round(b.cleaner));
    let_go(&b);
    assert_int_equal(log_manager_delete(b.m, (struct topic_partition){STR_LIT("t"), 0}), KERR_NONE);
    struct log *log = use(&b, "t");
    assert_int_equal(log_cleaned_to(log), 0);
    assert_true(file_says(&b, -1));
    fill(&b, 2);
    assert_true(cleaner_round(b.cleaner));
    assert_true(file_says(&b, 2));
    teardown_bench(&b);
}

static void a_cut_lowers_the_file_too(void **state)
{
    struct bench b;
    setup_bench(&b);
    struct log *log = use(&b, "t");
    fill(&b, 6);
    assert_true(cleaner_round(b.cleaner));
    assert_int_equal(log_truncate_to(log, 4), KERR_NONE);
    assert_true(file_says(&b, 4));
    assert_int_equal(log_truncate_fully(log, 0), KERR_NONE);
    assert_true(file_says(&b, -1));
    teardown_bench(&b);
}

static void the_dirtiest_log_comes_first(void **state)
{
    struct bench b;
    struct cleaner_stats stats;
    setup_bench(&b);
    struct log *one = use(&b, "one");
    fill(&b, 8);
    assert_true(cleaner_round(b.cleaner));
    put(&b.c, "b", "a much longer value than those before, for the ratio to be over a half");
    roll(&b.c);
    struct log *two = use(&b, "two");
    fill(&b, 2);
    assert_true(cleaner_round(b.cleaner));
    assert_int_equal(log_cleaned_to(two), 2); /* all of it was dirty */
    assert_int_equal(log_cleaned_to(one), 8);
    cleaner_stats(b.cleaner, &stats);
    assert_true(stats.max_dirty_percent == 100);
    assert_int_equal(stats.logs_cleaned, 2);
    assert_true(cleaner_round(b.cleaner));
    assert_int_equal(log_cleaned_to(one), 9);
    assert_false(cleaner_round(b.cleaner));
    teardown_bench(&b);
}

static void logs_that_are_not_compacted_are_left_alone(void **state)
{
    struct bench b;
    setup_bench(&b);
    b.c.t.config.cleanup_policy = CLEANUP_DELETE;
    struct log *log = use(&b, "t");
    fill(&b, 6);
    assert_false(cleaner_round(b.cleaner));
    assert_string_equal(contents(&b.c),
                        "0:a=value 1:a=value 2:a=value 3:a=value 4:a=value 5:a=value");
    b.c.t.config.cleanup_policy = CLEANUP_COMPACT;
    log_set_config(log, &b.c.t.config);
    assert_true(cleaner_round(b.cleaner));
    teardown_bench(&b);
}

/* ---- retention ---- */

/* Segments below the log start go whatever the policy, in one pass, and by the cleaner only. */
static void retention_of_compacted_logs(void **state)
{
    struct bench b;
    setup_bench(&b);
    b.c.t.config.min_cleanable_ratio = 1;
    struct log *log = use(&b, "t");
    fill(&b, 8);
    assert_int_equal(log_raise_start_offset(log, 5), KERR_NONE);
    log_manager_retention(b.m);
    assert_int_equal(log_segment_count(log), 5); /* not by that one */
    assert_false(cleaner_round(b.cleaner));
    assert_int_equal(log_segment_count(log), 3);
    sim_clock_advance(&b.c.t.clock, INT64_C(100) * 24 * 3600 * 1000);
    cleaner_round(b.cleaner);
    assert_int_equal(log_segment_count(log), 3); /* neither by age */
    b.c.t.config.cleanup_policy = CLEANUP_COMPACT | CLEANUP_DELETE;
    log_set_config(log, &b.c.t.config);
    cleaner_round(b.cleaner);
    assert_int_equal(log_segment_count(log), 1); /* unless both are the policy */
    assert_int_equal(log_start_offset(log), 8);
    fill(&b, 4);
    b.c.t.config.retention_ms = -1;
    b.c.t.config.retention_bytes = 1;
    log_set_config(log, &b.c.t.config);
    cleaner_round(b.cleaner);
    assert_int_equal(log_segment_count(log), 2); /* never below the limit */
    teardown_bench(&b);
}

/* ---- damage ---- */

static void damaged_logs_are_marked_and_the_others_go_on(void **state)
{
    struct bench b;
    struct file *f;
    uint8_t byte;
    int logs;
    int64_t bytes;
    setup_bench(&b);
    struct log *bad = use(&b, "bad");
    fill(&b, 6);
    assert_int_equal(segment_file(bad->segments.now->v[1], &f), 0);
    assert_int_equal(file_pread(f, &byte, 1, BATCH_HEAD + 7), 1);
    byte ^= 1;
    assert_int_equal(file_pwrite_all(f, &byte, 1, BATCH_HEAD + 7), 0);
    file_unref(f);
    struct log *good = use(&b, "good");
    fill(&b, 6);
    sim_clock_advance(&b.c.t.clock, 10);
    for (int i = 0; i < 4; i++)
        cleaner_round(b.cleaner);
    assert_int_equal(log_cleaned_to(good), 6);
    assert_int_equal(log_cleaned_to(bad), 0);
    assert_non_null(strstr(b.c.t.said, "bad-0 is not compacted any more until the next start"));
    assert_non_null(strstr(b.c.t.said, "checksum"));
    char *once = strstr(b.c.t.said, "not compacted any more");
    assert_null(strstr(once + 1, "not compacted any more"));
    struct log_dir *dir;
    log_manager_dirs(b.m, &dir, 1);
    assert_false(log_dir_offline(dir));
    cleaner_uncleanable(b.cleaner, dir, &logs, &bytes);
    assert_int_equal(logs, 1);
    assert_int_equal(bytes, log_size(bad));
    /* its data that is over can still go */
    assert_int_equal(log_raise_start_offset(bad, 4), KERR_NONE);
    cleaner_round(b.cleaner);
    assert_int_equal(log_segment_count(bad), 2);
    restart(&b);
    use(&b, "bad");
    commit_all(&b.c);
    assert_true(cleaner_round(b.cleaner)); /* looked at again */
    cleaner_uncleanable(b.cleaner, dir, &logs, &bytes);
    teardown_bench(&b);
}

/* Everything that may be wrong with a batch's bytes: never a crash, never a wrong copy. */
static void any_flipped_byte_is_noticed_or_harmless(void **state)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    int64_t size = 1;
    for (int64_t at = 0; at < size; at++) {
        struct clean_test c;
        struct batch_options o = BATCH_OPTIONS_DEFAULT;
        const struct kv v[] = {{"a", "1", 0}, {"b", "1", 0}};
        setup_clean(&c);
        put_kvs(&c, &o, APPEND_CLIENT, v, 2);
        o.codec = CODEC_LZ4;
        put_kvs(&c, &o, APPEND_CLIENT, v, 2);
        put_produced(&c, 7, 0, true, v, 2);
        put_marker(&c, 7, true);
        roll(&c);
        put(&c, "c", "1");
        roll(&c);
        size = segment_size(c.t.log->segments.now->v[0]);
        flip_byte(&c.t, "00000000000000000000.log", at);
        struct cleaner_choice ch = look(&c);
        int err = cleaner_work_run(&c.work, c.t.log, &ch, log_cuts(c.t.log), &c.result);
        assert_false(log_dir_offline(c.t.dir));
        assert_true(err == 0 || err == -EBADMSG);
        if (err)
            assert_non_null(c.result.why);
        teardown_clean(&c);
    }
    assert_true(size > 300);
}

/* ---- I/O errors ---- */

static void a_failed_dir_does_not_stop_the_others(void **state)
{
    struct bench b;
    setup_bench(&b);
    let_go(&b);
    cleaner_stop(b.cleaner);
    cleaner_free(b.cleaner);
    log_manager_close(b.m);
    b.mo.dirs_n = 2;
    open_all(&b);
    struct log *one = use(&b, "one");
    fill(&b, 6);
    struct log *two = use(&b, "two"); /* in the other dir: that has fewer */
    fill(&b, 6);
    assert_ptr_not_equal(log_dir_of(one), log_dir_of(two));
    fs_fault_add(b.c.t.fault,
                 (struct fs_fault_rule){
                     .call = FS_PWRITEV, .path = "*one-0/*.cleaned", .times = -1, .error = ENOSPC});
    for (int i = 0; i < 3; i++)
        cleaner_round(b.cleaner);
    assert_true(log_dir_offline(log_dir_of(one)));
    assert_false(log_dir_offline(log_dir_of(two)));
    assert_int_equal(log_cleaned_to(two), 6);
    teardown_bench(&b);
}

/* ---- who waits for whom ---- */

/* Holds up a call of the file layer until it is let go. */
struct gate {
    sem_t reached, go;
};

static void hold(void *arg)
{
    struct gate *g = arg;
    sem_post(&g->reached);
    while (sem_wait(&g->go) < 0)
        ;
}

static void await(sem_t *s)
{
    while (sem_wait(s) < 0)
        ;
}

static void gate_init(struct gate *g)
{
    sem_init(&g->reached, 0, 0);
    sem_init(&g->go, 0, 0);
}

/* The cleaner's first write of a log stops there. */
static void hold_writes(struct bench *b, struct gate *g)
{
    gate_init(g);
    fs_fault_add(
        b->c.t.fault,
        (struct fs_fault_rule){
            .call = FS_PWRITEV, .path = "*.log.cleaned", .times = 1, .before = hold, .arg = g});
}

static void *delete_it(void *arg)
{
    struct bench *b = arg;
    enum kerr code = log_manager_delete(b->m, (struct topic_partition){STR_LIT("t"), 0});
    return (void *)(intptr_t)code;
}

static bool wants_pause(struct bench *b, struct log *log)
{
    pthread_mutex_lock(&b->cleaner->lock);
    bool wants = log->cleaning.state == CLEANING_ABORTED;
    pthread_mutex_unlock(&b->cleaner->lock);
    return wants;
}

static void deletion_waits_until_the_work_is_given_up(void **state)
{
    struct bench b;
    struct gate g;
    pthread_t t;
    void *code;
    setup_bench(&b);
    struct log *log = use(&b, "t");
    fill(&b, 6);
    hold_writes(&b, &g);
    assert_int_equal(cleaner_start(b.cleaner), 0);
    await(&g.reached);
    pthread_create(&t, NULL, delete_it, &b);
    while (!wants_pause(&b, log))
        sched_yield();
    sem_post(&g.go);
    pthread_join(t, &code);
    assert_int_equal((intptr_t)code, KERR_NONE);
    assert_false(log_dir_offline(log_dir_of(log)));
    assert_null(log_manager_find(b.m, (struct topic_partition){STR_LIT("t"), 0}));
    teardown_bench(&b);
}

static void pause_holds_until_the_last_resume(void **state)
{
    struct bench b;
    setup_bench(&b);
    struct log *log = use(&b, "t");
    fill(&b, 6);
    cleaner_pause(b.cleaner, log);
    cleaner_pause(b.cleaner, log);
    assert_false(cleaner_round(b.cleaner));
    cleaner_resume(b.cleaner, log);
    assert_false(cleaner_round(b.cleaner));
    cleaner_resume(b.cleaner, log);
    assert_true(cleaner_round(b.cleaner));
    teardown_bench(&b);
}

/* A folder that goes away under the work, without anybody having asked, is no fault of the disk. */
static void a_deleted_folder_is_no_fault(void **state)
{
    struct bench b;
    struct gate g;
    setup_bench(&b);
    struct log *log = use(&b, "t");
    fill(&b, 6);
    hold_writes(&b, &g);
    assert_int_equal(cleaner_start(b.cleaner), 0);
    await(&g.reached);
    assert_int_equal(log_delete(log, 0), 0);
    sem_post(&g.go);
    cleaner_stop(b.cleaner);
    assert_false(log_dir_offline(log_dir_of(log)));
    teardown_bench(&b);
}

static void a_change_of_policy_ends_the_work(void **state)
{
    struct bench b;
    struct gate g;
    setup_bench(&b);
    struct log *log = use(&b, "t");
    fill(&b, 6);
    hold_writes(&b, &g);
    assert_int_equal(cleaner_start(b.cleaner), 0);
    await(&g.reached);
    b.c.t.config.cleanup_policy = CLEANUP_DELETE;
    log_set_config(log, &b.c.t.config);
    sem_post(&g.go);
    cleaner_stop(b.cleaner);
    assert_int_equal(log_cleaned_to(log), 0);
    assert_int_equal(log_segment_count(log), 4);
    teardown_bench(&b);
}

/* A follower is cut below what is being compacted: the cut wins. */
static void a_cut_wins_over_the_work(void **state)
{
    struct bench b;
    struct gate g;
    setup_bench(&b);
    struct log *log = use(&b, "t");
    fill(&b, 6);
    hold_writes(&b, &g);
    assert_int_equal(cleaner_start(b.cleaner), 0);
    await(&g.reached);
    assert_int_equal(log_truncate_to(log, 3), KERR_NONE);
    sem_post(&g.go);
    cleaner_stop(b.cleaner);
    assert_int_equal(log_end_offset(log), 3);
    assert_string_equal(contents(&b.c), "0:a=value 1:a=value 2:a=value");
    assert_int_equal(log_cleaned_to(log), 0);
    assert_false(log_dir_offline(log_dir_of(log)));
    check(&b.c.t);
    teardown_bench(&b);
}

/* One byte a second: it sleeps, but not through a stop or a pause. */
static void sleeping_threads_wake_up(void **state)
{
    struct bench b;
    struct gate g;
    setup_bench(&b);
    cleaner_stop(b.cleaner);
    cleaner_free(b.cleaner);
    b.co.clock = clock_real();
    b.co.max_bytes_per_second = 1;
    assert_int_equal(cleaner_new(&b.co, &b.cleaner), 0);
    struct log *log = use(&b, "t");
    fill(&b, 6);
    gate_init(&g);
    fs_fault_add(b.c.t.fault, (struct fs_fault_rule){.call = FS_PREAD,
                                                     .path = "*00000000000000000000.log",
                                                     .times = 1,
                                                     .before = hold,
                                                     .arg = &g});
    assert_int_equal(cleaner_start(b.cleaner), 0);
    await(&g.reached);
    sem_post(&g.go);
    cleaner_pause(b.cleaner, log);
    cleaner_resume(b.cleaner, log);
    b.co.max_bytes_per_second = INFINITY;
    b.co.threads = 2;
    b.co.io_buffer_bytes = 1 << 16;
    assert_int_equal(cleaner_set_options(b.cleaner, &b.co), 0);
    while (log_cleaned_to(log) < 6)
        sched_yield();
    b.co.dedupe_bytes = 10; /* will not do: the threads go on as they are */
    assert_int_equal(cleaner_set_options(b.cleaner, &b.co), -EINVAL);
    fill(&b, 12);
    while (log_cleaned_to(log) < 18)
        sched_yield();
    cleaner_stop(b.cleaner);
    assert_int_equal(cleaner_set_options(b.cleaner, &b.co), 0); /* after the end: nothing */
    teardown_bench(&b);
}

/* ---- readers ---- */

struct exchange {
    struct bench *b;
    int n;
};

static void compact_meanwhile(void *arg)
{
    struct exchange *x = arg;
    if (x->n++ == 0)
        assert_true(cleaner_round(x->b->cleaner));
}

/* The segments are exchanged between reading records and looking up the transactions among them:
 * the old records must not be judged by the new index. */
static void records_and_aborted_transactions_are_of_one_time(void **state)
{
    struct bench b;
    struct log_slice s;
    struct aborted_txn *aborted;
    int n;
    setup_bench(&b);
    b.c.t.config.min_cleanable_ratio = 0;
    struct log *log = use(&b, "t");
    put_produced(&b.c, 7, 0, true, &(struct kv){"a", "1", 0}, 1);
    put_marker(&b.c, 7, false);
    put_produced(&b.c, 7, 1, true, &(struct kv){"b", "1", 0}, 1);
    put_marker(&b.c, 7, true);
    roll(&b.c);
    assert_true(cleaner_round(b.cleaner)); /* the data goes, */
    put_produced(&b.c, 7, 2, true, &(struct kv){"c", "1", 0}, 1);
    put_marker(&b.c, 7, false);
    put(&b.c, "d", "1");
    roll(&b.c);
    b.mo.defaults = b.c.t.config;
    restart(&b); /* so that the index is opened by its name */
    log = use(&b, "t");
    commit_all(&b.c);
    struct exchange x = {&b, 0};
    fs_fault_add(b.c.t.fault, (struct fs_fault_rule){.call = FS_OPEN,
                                                     .path = "*.txnindex",
                                                     .times = 1,
                                                     .before = compact_meanwhile,
                                                     .arg = &x});
    assert_int_equal(log_read_committed(log, 4, 1 << 20, log_end_offset(log), true, false,
                                        &b.c.t.arena, &s, &aborted, &n),
                     KERR_NONE);
    assert_int_equal(x.n, 1);
    uint8_t raw[1000];
    struct batch head;
    bool has_data = false, told = false;
    assert_int_equal(file_pread(s.file, raw, s.len, s.pos), s.len);
    file_unref(s.file);
    for (uint32_t at = 0;
         at < s.len && batch_decode(raw + at, s.len - at, s.len - at, &head) == BATCH_OK;
         at += head.size)
        has_data |= head.producer_id == 7 && !batch_is_control(&head) && head.record_count > 0;
    for (int i = 0; i < n; i++)
        told |= aborted[i].producer_id == 7 && aborted[i].first_offset == 4;
    assert_true(told || !has_data);
    teardown_bench(&b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        unit_test(checkpoint_survives_a_restart),
        unit_test(a_new_log_of_the_name_begins_anew),
        unit_test(a_cut_lowers_the_file_too),
        unit_test(the_dirtiest_log_comes_first),
        unit_test(logs_that_are_not_compacted_are_left_alone),
        unit_test(retention_of_compacted_logs),
        unit_test(damaged_logs_are_marked_and_the_others_go_on),
        unit_test(any_flipped_byte_is_noticed_or_harmless),
        unit_test(a_failed_dir_does_not_stop_the_others),
        unit_test(deletion_waits_until_the_work_is_given_up),
        unit_test(pause_holds_until_the_last_resume),
        unit_test(a_deleted_folder_is_no_fault),
        unit_test(a_change_of_policy_ends_the_work),
        unit_test(a_cut_wins_over_the_work),
        unit_test(sleeping_threads_wake_up),
        unit_test(records_and_aborted_transactions_are_of_one_time),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
