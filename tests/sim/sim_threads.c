/* sim_threads.c - threads, locks, time and chance of the brokers: every call of theirs is linked to
 * the __wrap_ form here (tests/sim/CMakeLists.txt). A lock's state lies in the lock's own memory;
 * all zero is the state after init, and that of PTHREAD_MUTEX_INITIALIZER.
 *
 * Each lock is a place where the thread may lose the processor. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "base/clock.h"
#include "base/logline.h"
#include "sim.h"

/* Declared here, since nothing else does. */
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *a);
int __wrap_pthread_rwlock_destroy(pthread_rwlock_t *l);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *l);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *l);
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *l);
int __wrap_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a);
int __wrap_pthread_cond_destroy(pthread_cond_t *c);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t);
int __wrap_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_broadcast(pthread_cond_t *c);
int __wrap_pthread_once(pthread_once_t *once, void (*init)(void));
int __wrap_thread_start(const char *name, void *(*run)(void *), void *arg, pthread_t *out);
int __wrap_pthread_join(pthread_t t, void **result);
int __wrap_pthread_detach(pthread_t t);
pthread_t __wrap_pthread_self(void);
int __wrap_sched_yield(void);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags);

/* ---- locks ---- */

static char outside_mark; /* stands for code that runs in no fiber */

static struct fiber *me(void);

struct mutex {
    struct fiber *owner;
    struct sim_host *host;
    int waiters;
};
struct rwlock {
    struct fiber *writer;
    struct sim_host *host;
    int readers, waiters;
};
_Static_assert(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "a mutex must fit");
_Static_assert(sizeof(struct rwlock) <= sizeof(pthread_rwlock_t), "a rwlock must fit");

static void held(int by)
{
    if (sim_here())
        sim_here()->locks_held += by;
}

int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a)
{
    (void)a;
    memset(m, 0, sizeof(*m));
    return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    struct mutex *m = (struct mutex *)mutex;
    if (m->owner || m->waiters)
        sim_violation("a mutex in use is destroyed");
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    struct mutex *m = (struct mutex *)mutex;
    fiber_maybe_yield();
    if (m->owner && m->owner == me())
        sim_violation("thread %s takes a mutex that it holds", fiber_name(me()));
    while (m->owner) {
        m->waiters++;
        fiber_block(m);
        m->waiters--;
    }
    m->owner = me();
    held(1);
    return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    struct mutex *m = (struct mutex *)mutex;
    if (m->owner)
        return EBUSY;
    m->owner = me();
    held(1);
    return 0;
}

static void mutex_unlock(struct mutex *m)
{
    if (m->owner != me())
        sim_violation("a mutex is unlocked that the thread does not hold");
    m->owner = NULL;
    held(-1);
    if (m->waiters)
        fiber_wake_all(sim_here(), m);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    mutex_unlock((struct mutex *)m);
    fiber_maybe_yield();
    return 0;
}

int __wrap_pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *a)
{
    (void)a;
    memset(l, 0, sizeof(*l));
    return 0;
}

int __wrap_pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
    struct rwlock *l = (struct rwlock *)lock;
    if (l->writer || l->readers || l->waiters)
        sim_violation("a lock in use is destroyed");
    return 0;
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    struct rwlock *l = (struct rwlock *)lock;
    fiber_maybe_yield();
    while (l->writer) {
        l->waiters++;
        fiber_block(l);
        l->waiters--;
    }
    l->readers++;
    held(1);
    return 0;
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    struct rwlock *l = (struct rwlock *)lock;
    fiber_maybe_yield();
    while (l->writer || l->readers) {
        l->waiters++;
        fiber_block(l);
        l->waiters--;
    }
    l->writer = me();
    held(1);
    return 0;
}

int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    struct rwlock *l = (struct rwlock *)lock;
    if (l->writer)
        l->writer = NULL;
    else if (l->readers-- <= 0)
        sim_violation("a lock is unlocked that nobody holds");
    held(-1);
    if (l->waiters && !l->readers)
        fiber_wake_all(sim_here(), l);
    fiber_maybe_yield();
    return 0;
}

/* ---- conditions ---- */

int __wrap_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a)
{
    (void)a; /* all timed waits here follow the monotonic clock */
    memset(c, 0, sizeof(*c));
    return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *c)
{
    (void)c;
    return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    mutex_unlock((struct mutex *)m);
    fiber_block(c);
    return __wrap_pthread_mutex_lock(m);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
    int64_t end = (int64_t)t->tv_sec * SIM_S + t->tv_nsec;
    mutex_unlock((struct mutex *)m);
    bool woken = fiber_block_for(c, end - sim_now());
    __wrap_pthread_mutex_lock(m);
    return woken ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
    if (sim_here())
        fiber_wake_one(sim_here(), c);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *c)
{
    if (sim_here())
        fiber_wake_all(sim_here(), c);
    return 0;
}

int __wrap_pthread_once(pthread_once_t *once, void (*init)(void))
{
    if (!*once) { /* nothing in there waits */
        *once = 1;
        init();
    }
    return 0;
}

/* ---- threads ---- */

static struct fiber *me(void)
{
    struct fiber *f = fiber_self();
    return f ? f : (struct fiber *)&outside_mark;
}

int __wrap_thread_start(const char *name, void *(*run)(void *), void *arg, pthread_t *out)
{
    *out = (pthread_t)fiber_start(sim_here(), name, run, arg);
    return 0;
}

int __wrap_pthread_join(pthread_t t, void **result)
{
    void *r = fiber_join((struct fiber *)t);
    if (result)
        *result = r;
    return 0;
}

int __wrap_pthread_detach(pthread_t t)
{
    (void)t;
    return 0;
}

pthread_t __wrap_pthread_self(void)
{
    return (pthread_t)me();
}

int __wrap_sched_yield(void)
{
    fiber_yield();
    return 0;
}

/* ---- time ---- */

static int64_t mono_ns(const struct clock *c)
{
    (void)c;
    return sim_now();
}

static int64_t wall_ms(const struct clock *c)
{
    (void)c;
    int64_t skew = sim_here() ? sim_here()->skew_ms : 0;
    return sim_wall_ms() + skew;
}

const struct clock *__wrap_clock_real(void);
const struct clock *__wrap_clock_real(void)
{
    static const struct clock simulated = {wall_ms, mono_ns};
    return &simulated;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    int64_t ns = id == CLOCK_REALTIME ? wall_ms(NULL) * SIM_MS : sim_now();
    t->tv_sec = (time_t)(ns / SIM_S);
    t->tv_nsec = (long)(ns % SIM_S);
    return 0;
}

/* ---- chance ---- */

ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t r = sim_random();
        memcpy((char *)p + i, &r, n - i < 8 ? n - i : 8);
    }
    return (ssize_t)n;
}

/* ---- log lines ---- */

void __wrap_logline(enum logline_level level, const char *component, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void __wrap_logline(enum logline_level level, const char *component, const char *fmt, ...)
{
    if (!sim_verbose() || level < LOGLINE_INFO)
        return;
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
    fprintf(stderr, "%10.6f %8llu %-2s %-12s %s [%s] %s\n",
            (double)(sim_now() - 1000 * SIM_S) / 1e9, (unsigned long long)sim_steps(),
            sim_here() ? sim_here()->name : "-", fiber_self() ? fiber_name(fiber_self()) : "",
            names[level], component, text);
}
