/* session_listeners.h - who hears of a session's end and of the next one, each on its executor.
 *
 * A state is told to all and must have been heard by all before the same state is told again; what
 * comes to one listener comes in order.
 * OWNERSHIP  the callback's `arg` is the caller's until removed; memory of ours goes when what is
 *            posted has run, which may be after the free.
 * THREADS    any; one lock inside, which is not held in callbacks. */
#ifndef METADATA_SESSION_LISTENERS_H
#define METADATA_SESSION_LISTENERS_H

#include "metadata/store.h"

struct session_listeners;

struct session_listeners *session_listeners_new(void);
/* Nobody is told any more. NULL is fine. */
void session_listeners_free(struct session_listeners *l);
/* 0 or -ENOMEM. */
int session_listeners_add(struct session_listeners *l, struct executor *on,
                          void (*cb)(void *arg, enum store_session state), void *arg);
/* On the listener's executor: afterwards it is not called. Not listening is fine. */
void session_listeners_remove(struct session_listeners *l,
                              void (*cb)(void *arg, enum store_session state), void *arg);
/* Posts the state to every listener; returns how many. Unless 0, all_told (may be NULL) is called
 * once all have run, from the executor of the last, also when they were removed or freed meanwhile.
 */
int session_listeners_tell(struct session_listeners *l, enum store_session state,
                           void (*all_told)(void *arg), void *arg);

#endif
