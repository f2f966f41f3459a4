/* A log dir: offline once, its lock, its mark, delayed removal. */
#include <sys/wait.h>
#include <unistd.h>

#include "log_util.h"

#include <sched.h>

static void count_failure(void *arg, struct log_dir *d)
{
    ++*(int *)arg;
}

static void it_fails_once(void **state)
{
    struct log_test t;
    int failures = 0;
    setup(&t);
    t.dir->on_failure = count_failure;
    t.dir->failure_arg = &failures;
    assert_false(log_dir_offline(t.dir));
    log_dir_fail(t.dir, -EIO, "append to %s", "/d/t-0/000.log");
    assert_true(log_dir_offline(t.dir));
    log_dir_fail(t.dir, ENOSPC, "write %s", "/d/x");
    assert_int_equal(failures, 1);
    const char *line = strstr(t.said, "goes offline");
    assert_non_null(line);
    assert_non_null(strstr(line, "append to /d/t-0/000.log"));
    assert_non_null(strstr(line, strerror(EIO)));
    assert_null(strstr(line + 1, "goes offline"));
    teardown(&t);
}

/* Also when somebody has removed the file that is locked. */
static void claim_twice(bool file_removed)
{
    struct log_test t;
    char err[512] = "";
    int status;
    setup(&t);
    assert_int_equal(log_dir_claim(t.dir, err, sizeof(err)), 0);
    if (file_removed)
        assert_int_equal(unlink(temp_dir_path(&t.tmp, "data/.lock")), 0);
    pid_t child = fork();
    if (child == 0) { /* locks are per process: only another one can tell */
        struct log_dir *d = log_dir_new(t.fs, &t.clock.clock, t.data);
        char why[512] = "";
        int rc = log_dir_claim(d, why, sizeof(why));
        bool good = rc == -EAGAIN && strstr(why, t.data) && strstr(why, ".lock") &&
                    strstr(why, "in use") && !log_dir_offline(d);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    log_dir_free(t.dir);
    make_dir(&t);
    assert_int_equal(log_dir_claim(t.dir, err, sizeof(err)), 0);
    teardown(&t);
}

static void one_process_at_a_time(void **state)
{
    claim_twice(false);
    claim_twice(true);
}

static void a_dir_that_cannot_be_made_is_offline(void **state)
{
    struct log_test t;
    char err[512] = "";
    setup(&t);
    log_dir_free(t.dir);
    fs_fault_add(t.fault, (struct fs_fault_rule){.call = FS_STAT, .times = -1, .error = EACCES});
    make_dir(&t);
    assert_int_equal(log_dir_claim(t.dir, err, sizeof(err)), -EACCES);
    assert_true(log_dir_offline(t.dir));
    fs_fault_clear(t.fault);
    teardown(&t);
}

static void the_clean_mark_is_taken_once(void **state)
{
    struct log_test t;
    char path[PATH_MAX], *text;
    size_t n;
    setup(&t);
    snprintf(path, sizeof(path), "%s/.kafka_cleanshutdown", t.data);
    assert_int_equal(log_dir_take_clean_mark(t.dir), 0);
    assert_int_equal(log_dir_put_clean_mark(t.dir), 0);
    assert_int_equal(fs_read_all(t.fs, path, 100, &text, &n), 0);
    assert_string_equal(text, "{\"version\":0,\"brokerEpoch\":-1}");
    free(text);
    assert_int_equal(log_dir_take_clean_mark(t.dir), 1);
    assert_int_equal(log_dir_take_clean_mark(t.dir), 0);
    /* a crash right after must not find it again */
    assert_int_equal(log_dir_put_clean_mark(t.dir), 0);
    assert_int_equal(log_dir_take_clean_mark(t.dir), 1);
    assert_int_equal(fs_fault_crash(t.fault, t.data, FS_CRASH_DROP, 1), 0);
    assert_int_equal(log_dir_take_clean_mark(t.dir), 0);
    teardown(&t);
}

static void make_file(struct log_test *t, const char *path)
{
    struct file *f;
    assert_int_equal(fs_open(t->fs, path, O_RDWR | O_CREAT, &f), 0);
    file_unref(f);
}

static bool there(struct log_test *t, const char *path)
{
    struct file_stat st;
    return fs_stat(t->fs, path, &st) == 0;
}

static void the_doomed_go_when_due(void **state)
{
    struct log_test t;
    setup(&t);
    const char *a = temp_dir_path(&t.tmp, "data/a"), *b = temp_dir_path(&t.tmp, "data/b");
    const char *d = temp_dir_path(&t.tmp, "data/d"), *in = temp_dir_path(&t.tmp, "data/d/x");
    make_file(&t, a);
    make_file(&t, b);
    assert_int_equal(fs_mkdir(t.fs, d), 0);
    make_file(&t, in);
    int64_t now = clock_mono_ms(&t.clock.clock);
    log_dir_doom(t.dir, a, false, 1000);
    log_dir_doom(t.dir, b, false, INT64_MAX); /* never */
    log_dir_doom(t.dir, d, true, 500);
    log_dir_doom(t.dir, "/nowhere/at/all", false, 0); /* gone already: fine */
    assert_int_equal(log_dir_next_due(t.dir), now);
    log_dir_remove_due(t.dir);
    assert_int_equal(log_dir_next_due(t.dir), now + 500);
    sim_clock_advance(&t.clock, 500);
    log_dir_remove_due(t.dir);
    assert_false(there(&t, d));
    assert_true(there(&t, a));
    sim_clock_advance(&t.clock, 500);
    log_dir_remove_due(t.dir);
    assert_false(there(&t, a));
    assert_true(there(&t, b));
    assert_false(log_dir_offline(t.dir));
    teardown(&t);
}

static void a_removal_that_fails_takes_it_offline(void **state)
{
    struct log_test t;
    setup(&t);
    const char *a = temp_dir_path(&t.tmp, "data/a");
    make_file(&t, a);
    log_dir_doom(t.dir, a, false, 0);
    fs_fault_add(t.fault, (struct fs_fault_rule){.call = FS_UNLINK, .times = -1, .error = EROFS});
    log_dir_remove_due(t.dir);
    assert_true(log_dir_offline(t.dir));
    assert_int_equal(log_dir_next_due(t.dir), -1);
    fs_fault_clear(t.fault);
    teardown(&t);
}

static void too_long_a_path_is_refused(void **state)
{
    struct log_test t;
    char *path = malloc(LOG_PATH_MAX);
    setup(&t);
    memset(path, 'p', LOG_PATH_MAX - 1);
    path[0] = '/';
    path[LOG_PATH_MAX - 1] = 0;
    assert_null(log_dir_new(t.fs, &t.clock.clock, path));
    path[LOG_PATH_MAX - 2 * FOLDER_NAME_MAX - 1] = 0;
    struct log_dir *d = log_dir_new(t.fs, &t.clock.clock, path);
    assert_non_null(d);
    log_dir_free(d);
    free(path);
    teardown(&t);
}

struct recoveries {
    struct log_dir *dir;
    atomic_int now, most;
};

static void *recover_often(void *arg)
{
    struct recoveries *r = arg;
    for (int i = 0; i < 200; i++) {
        log_dir_begin_recovery(r->dir);
        int now = atomic_fetch_add(&r->now, 1) + 1;
        if (now > atomic_load(&r->most))
            atomic_store(&r->most, now);
        sched_yield();
        atomic_fetch_sub(&r->now, 1);
        log_dir_end_recovery(r->dir);
    }
    return NULL;
}

static void logs_with_much_to_read_take_turns(void **state)
{
    enum { THREADS = 6 };
    for (int most = 0; most < 3; most++) {
        struct log_test t;
        pthread_t threads[THREADS];
        setup(&t);
        struct recoveries r = {.dir = t.dir};
        t.dir->recovering_most = most;
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, recover_often, &r), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(t.dir->recovering, 0);
        if (most)
            assert_true(atomic_load(&r.most) <= most);
        teardown(&t);
    }
}

UNIT_MAIN(unit_test(it_fails_once), unit_test(one_process_at_a_time),
          unit_test(a_dir_that_cannot_be_made_is_offline), unit_test(the_clean_mark_is_taken_once),
          unit_test(the_doomed_go_when_due), unit_test(a_removal_that_fails_takes_it_offline),
          unit_test(too_long_a_path_is_refused), unit_test(logs_with_much_to_read_take_turns))
