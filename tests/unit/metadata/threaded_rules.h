/* threaded_rules.h - the executor side of store_rules.h for stores with threads of their own. */
#ifndef TESTS_METADATA_THREADED_RULES_H
#define TESTS_METADATA_THREADED_RULES_H

#include <pthread.h>

#include "base/uv_executor.h"

#include "metadata/store_rules.h"

struct threaded_rules {
    struct store_rules rules; /* hold and settle are filled in; s, attach, expire are the user's */
    struct uv_executor *e;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task task; /* keeps the executor busy */
    bool held, release;
};

void threaded_rules_init(struct threaded_rules *t);
/* Close the store before. */
void threaded_rules_end(struct threaded_rules *t);

#endif
