/* watches.h - the embedded store's registry of watch handlers: arm, note a change, tell.
 *
 * Changes are noted while a request is applied and told once it is durable, so a handler never
 * learns of something that a crash takes back.
 *
 * OWNERSHIP  a handler's memory is its caller's until unwatch; what is posted to executors is a
 *            slot of our own, which outlives it.
 * THREADS    any; one lock inside. */
#ifndef METADATA_WATCHES_H
#define METADATA_WATCHES_H

#include "metadata/store.h"

struct watches;

struct watches *watches_new(void);
/* Drops all handlers; memory goes when the last told one has run. */
void watches_free(struct watches *r);
/* `session` is only compared. 0 or -ENOMEM. */
int watches_add(struct watches *r, const void *session, struct store_watch *w);
void watches_remove(struct watches *r, struct store_watch *w);
void watches_arm(struct watches *r, const void *session, const char *path, bool children);
/* Something happened to the node (or its children): its armed handlers are to be told. */
void watches_note(struct watches *r, const char *path, bool children);
/* Moves what was noted so far to `to`, a list of the caller's. */
void watches_take(struct watches *r, struct list *to);
/* Posts the handlers on a list made by watches_take. */
void watches_tell(struct watches *r, struct list *from);
/* The session expired: nothing of it is armed any more. */
void watches_disarm(struct watches *r, const void *session);
/* The session was closed: its handlers go. */
void watches_drop(struct watches *r, const void *session);

#endif
