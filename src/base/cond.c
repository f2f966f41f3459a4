/* cond.c - see cond.h. */
#include "base/cond.h"

#include <errno.h>
#include <time.h>

void cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, int64_t mono_ms)
{
    if (mono_ms == INT64_MAX) {
        pthread_cond_wait(c, m);
        return true;
    }
    if (mono_ms < 0)
        mono_ms = 0;
    struct timespec at = {(time_t)(mono_ms / 1000), (long)(mono_ms % 1000) * 1000000};
    return pthread_cond_timedwait(c, m, &at) != ETIMEDOUT;
}
