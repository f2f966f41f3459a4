/* A map whose pages are gone: an error code, again and again, on any thread; a log lives on with
 * its dir offline. */
#include "log/map_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/thread.h"
#include "log_util.h"

static uint8_t *map_of_nothing(struct log_test *t)
{
    map_guard_install();
    int fd = open(temp_dir_path(&t->tmp, "x"), O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 8192), 0);
    uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(p != MAP_FAILED);
    p[0] = 7;
    assert_int_equal(ftruncate(fd, 0), 0); /* behind our back */
    close(fd);
    return p;
}

static void a_fault_is_an_error(void **state)
{
    struct log_test t;
    uint8_t b[8] = {1}, good[8] = {2};
    setup(&t);
    uint8_t *p = map_of_nothing(&t);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(map_guard_copy(b, p + 100 * i, 8), -EIO);
        assert_int_equal(map_guard_copy(p + 4096, b, 8), -EIO);
        assert_int_equal(map_guard_copy(b, good, 8), 0);
        assert_int_equal(b[0], 2);
    }
    munmap(p, 8192);
    teardown(&t);
}

static void *fault_here(void *p)
{
    uint8_t b[8];
    for (int i = 0; i < 100; i++)
        if (map_guard_copy(b, p, 8) != -EIO)
            return p;
    return NULL;
}

/* Threads of ours block signals, but not their own faults. */
static void on_threads_at_once(void **state)
{
    struct log_test t;
    pthread_t threads[4];
    setup(&t);
    uint8_t *p = map_of_nothing(&t);
    for (int i = 0; i < 4; i++)
        assert_int_equal(thread_start("fault", fault_here, p, &threads[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    munmap(p, 8192);
    teardown(&t);
}

/* A fault that is not in a guarded place still ends the process. */
static void other_faults_are_not_hidden(void **state)
{
    struct log_test t;
    uint8_t b[8];
    int status;
    setup(&t);
    volatile uint8_t *p = map_of_nothing(&t);
    assert_int_equal(map_guard_copy(b, (const void *)p, 8), -EIO);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGBUS, SIG_DFL); /* cmocka's would go on with the tests here */
        map_guard_install();
        _exit(p[0]);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    munmap((void *)(uintptr_t)p, 8192);
    teardown(&t);
}

static void a_log_whose_index_cannot_be_read_is_offline(void **state)
{
    struct log_test t;
    struct log_slice s;
    setup(&t);
    map_guard_install();
    t.config.index_interval_bytes = 50;
    log_dir_free(t.dir);
    t.fs = fs_posix(); /* the other one looks into maps itself */
    make_dir(&t);
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 20, 1);
    assert_int_equal(truncate(log_file(&t, "00000000000000000000.index"), 0), 0);
    assert_int_equal(log_read(t.log, 10, 100, 20, true, false, &s), KERR_KAFKA_STORAGE_ERROR);
    assert_true(log_dir_offline(t.dir));
    assert_non_null(strstr(t.said, "00000000000000000000.index"));
    struct records r = records_of(1);
    assert_int_equal(append(&t, &r), KERR_KAFKA_STORAGE_ERROR);
    teardown(&t);
}

static void an_append_whose_index_cannot_be_written_is_refused(void **state)
{
    struct log_test t;
    setup(&t);
    map_guard_install();
    t.config.index_interval_bytes = 50;
    log_dir_free(t.dir);
    t.fs = fs_posix();
    make_dir(&t);
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 5, 1);
    assert_int_equal(truncate(log_file(&t, "00000000000000000000.index"), 0), 0);
    struct records r = records_of(1);
    assert_int_equal(append(&t, &r), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(log_end_offset(t.log), 5);
    assert_true(log_dir_offline(t.dir));
    fresh_dir(&t);
    assert_int_equal(try_open(&t, false), 0); /* and comes back whole */
    assert_true(log_end_offset(t.log) >= 5);
    check(&t);
    teardown(&t);
}

UNIT_MAIN(unit_test(a_fault_is_an_error), unit_test(on_threads_at_once),
          unit_test(other_faults_are_not_hidden),
          unit_test(a_log_whose_index_cannot_be_read_is_offline),
          unit_test(an_append_whose_index_cannot_be_written_is_refused))
