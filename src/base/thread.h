/* thread.h - starting a named thread that takes no signals (the main thread gets them all). */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* 0 or -errno. `name` is cut to 15 characters. The thread must be joined. */
int thread_start(const char *name, void *(*run)(void *arg), void *arg, pthread_t *out);

#endif
