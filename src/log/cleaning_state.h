/* cleaning_state.h - is a log being compacted, and may it be? One for each log.
 *
 *            take                    pause
 *   NONE ------------> ACTIVE ---------------> ABORTED      the thread looks at each buffer and
 *    |  ^               |                        |          gives up when it sees ABORTED
 *    |  +---------------+ finish                 | finish
 *    |  +---------------------- PAUSED <---------+
 *    |    last resume             ^  pause and resume count
 *    +----------------------------+
 *             pause
 *
 * NONE     at rest.
 * ACTIVE   a cleaner thread works on it; nothing of its work is visible but whole replacements.
 * ABORTED  the thread has been asked to stop; `pauses` wait for it.
 * PAUSED   no thread may take it until all that paused it have resumed.
 *
 * An uncleanable log (its data is damaged) is not taken for compaction until the next start, only
 * for retention.
 * THREADS  the cleaner's lock. */
#ifndef LOG_CLEANING_STATE_H
#define LOG_CLEANING_STATE_H

#include <stdbool.h>

enum cleaning_state { CLEANING_NONE, CLEANING_ACTIVE, CLEANING_ABORTED, CLEANING_PAUSED };

struct cleaning {
    enum cleaning_state state;
    int pauses; /* who wants it paused; 0 unless ABORTED or PAUSED */
    bool uncleanable;
};

/* A thread wants to work on it, to compact it or only to delete from it: true when it may. */
bool cleaning_take(struct cleaning *c, bool compact);
/* The thread has ended its work, whichever way. */
void cleaning_finish(struct cleaning *c);
/* true: paused. false: wait for cleaning_finish, which pauses it. */
bool cleaning_pause(struct cleaning *c);
void cleaning_resume(struct cleaning *c);
const char *cleaning_state_name(enum cleaning_state s); /* static */

#endif
