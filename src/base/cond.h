/* cond.h - condition variables whose waits may have an end: by the monotonic clock, as
 * clock_mono_ms tells it. */
#ifndef BASE_COND_H
#define BASE_COND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void cond_init(pthread_cond_t *c);
/* As pthread_cond_wait, but not beyond that moment; INT64_MAX: without end. false: it has come. */
bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, int64_t mono_ms);

#endif
