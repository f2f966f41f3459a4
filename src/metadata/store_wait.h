/* store_wait.h - waiting for the store's answer on the calling thread: an executor that runs a task
 * where it is posted, whose task ends the wait. Inside metadata/ only. */
#ifndef METADATA_STORE_WAIT_H
#define METADATA_STORE_WAIT_H

#include <pthread.h>

#include "metadata/store.h"

struct store_waiter {
    struct executor ex; /* give it as done_on */
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool over;
};

void store_waiter_init(struct store_waiter *w);
/* From the answer's callback. */
void store_waiter_signal(struct store_waiter *w);
/* Waits for the signal, then ends the waiter. */
void store_waiter_wait(struct store_waiter *w, struct store *s);

#endif
