/* entity_rereads.h - entities whose settings are to be read again, since a notice named them: in
 * the queue of settings, and once more after a second as long as the store gives no answer (its
 * session ends in this moment, say). A notice comes but once.
 *
 * THREADS  add: any; the rest the executor's. */
#ifndef SERVER_ENTITY_REREADS_H
#define SERVER_ENTITY_REREADS_H

#include "base/str.h"
#include "server/control_queue.h"

struct entity_rereads;

/* read(arg, path), in the queue: 0, or anything else to be called again. Borrows ex and queue.
 * Returns owned; NULL without memory. @thread any */
struct entity_rereads *entity_rereads_new(struct executor *ex, struct control_queue *queue,
                                          int (*read)(void *arg, struct str path), void *arg);
/* 0 or -ENOMEM. */
int entity_rereads_add(struct entity_rereads *all, struct str path);
/* No further tries. NULL is fine, here and below. */
void entity_rereads_end(struct entity_rereads *all);
/* When the queue has ended as well. @thread any */
void entity_rereads_free(struct entity_rereads *all);

#endif
