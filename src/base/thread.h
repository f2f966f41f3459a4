/* thread.h - starting a named thread that takes no signals but those of its own faults (the main
 * thread gets the others). */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* 0 or -errno. `name` is cut to 15 characters. The thread must be joined. */
int thread_start(const char *name, void *(*run)(void *arg), void *arg, pthread_t *out);

#endif
