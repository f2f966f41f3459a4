/* Threads have names and take no signals. */
#include "base/thread.h"

#include <signal.h>
#include <string.h>

#include "unit.h"

static void *look(void *arg)
{
    sigset_t *blocked = arg;
    pthread_sigmask(SIG_SETMASK, NULL, blocked);
    return arg;
}

static void signals_stay_with_the_thread_that_starts_it(void **state)
{
    sigset_t before, in_thread, after;
    pthread_t t;
    void *rc;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(thread_start("worker", look, &in_thread, &t), 0);
    pthread_join(t, &rc);
    assert_ptr_equal(rc, &in_thread);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGCHLD};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        assert_true(sigismember(&in_thread, signals[i]));
        assert_int_equal(sigismember(&after, signals[i]), sigismember(&before, signals[i]));
    }
}

static void *wait_for_join(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

static void long_names_are_cut(void **state)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t t;
    char name[32];
    pthread_mutex_lock(&lock);
    assert_int_equal(thread_start("replica-fetcher-thread-0", wait_for_join, &lock, &t), 0);
    assert_int_equal(pthread_getname_np(t, name, sizeof(name)), 0);
    assert_string_equal(name, "replica-fetcher");
    pthread_mutex_unlock(&lock);
    pthread_join(t, NULL);
}

UNIT_MAIN(unit_test(signals_stay_with_the_thread_that_starts_it), unit_test(long_names_are_cut))
