/* cleaner_private.h - inside of the cleaner: cleaner.c is what a thread does, cleaner_threads.c
 * which threads there are.
 *
 * LOCKS  admin, then lock. lock also guards `cleaning` of every log; it is held for moments, never
 *        over work on files. */
#ifndef LOG_CLEANER_PRIVATE_H
#define LOG_CLEANER_PRIVATE_H

#include "log/cleaner.h"
#include "log/cleaner_throttle.h"
#include "log/cleaner_work.h"

/* What a thread's last run was like. */
struct last_run {
    double map_fill, seconds;
    int64_t read, written;
};

struct cleaner_thread {
    struct cleaner *cleaner;
    pthread_t thread;
    bool runs;
    int number;
    struct cleaner_work work;
    struct log *log; /* being worked on; written by the thread, under lock */
    struct last_run last;
};

/* The threads and what they work with. */
struct crew {
    struct cleaner_thread *v; /* at least one */
    int n, threads;           /* of v; how many of them shall be threads */
};

struct cleaner {
    struct log_manager *logs;
    const struct clock *clock;

    pthread_mutex_t admin; /* starting and stopping, one at a time; taken in front of lock */
    bool running, ended;   /* started; stopped for good */

    pthread_mutex_t lock;
    pthread_cond_t cond; /* something below, or the state of a log, has changed; monotonic clock */
    /* lock; what a thread is itself is its own while it runs */
    struct crew crew;
    int64_t backoff_ms;
    bool stopping;
    struct cleaner_throttle throttle;
    double max_dirty_percent, max_delay_s;
    int64_t last_run_ms, logs_cleaned;
};

/* Chooses a log, compacts it, looks after retention. true when it compacted one. */
bool cleaner_round_of(struct cleaner_thread *t);
/* Sleeps for ms, but not longer than until there is a reason to end: the cleaner stops, or work on
 * the log (may be NULL) shall be given up. Under lock. */
void cleaner_rest(struct cleaner *c, const struct log *log, int64_t ms);

#endif
