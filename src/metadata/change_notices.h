/* change_notices.h - follows a folder of sequential notices, as /config/changes and the like: each
 * new one names an entity whose node is to be read again.
 *
 * Notices are numbered; each is looked at once, in order. A round that the end of the session (or a
 * lack of memory) cuts short is made again, all of it, with the next one. All that are there at the
 * start are looked at (they only say "read again"). Those older than 15 minutes are removed at the
 * next event, by whichever broker comes first.
 *
 * THREADS  the executor's, but start. */
#ifndef METADATA_CHANGE_NOTICES_H
#define METADATA_CHANGE_NOTICES_H

#include "base/arena.h"
#include "base/clock.h"
#include "metadata/store.h"

struct change_notices;
struct change_notices_options {
    struct store *store;
    struct executor *ex;
    const struct clock *clock;
    const char *component;   /* in lines of the log; this and the next are borrowed */
    const char *dir;         /* "/config/changes" */
    const char *name_prefix; /* "config_change_": what stands before the number */
    const char
        *node_prefix; /* "/config/": what stands before an entity's path to make its node's */
    /* The path of the entity that a notice names, in the arena. 0; -EBADMSG: passed over with a
     * line; -ENOMEM. */
    int (*decode)(struct bytes data, struct arena *a, struct str *entity_path);
    /* Shall the entity's node be read before `changed`? Then `data` gets the answer of the GET. */
    bool (*wants_data)(void *arg, struct str entity_path);
    void (*data)(void *arg, struct str entity_path, int status, struct bytes data);
    void (*changed)(void *arg, struct str entity_path); /* NULL = nobody asks */
    void (*round)(void *arg);  /* all that one round found has been told; NULL = nobody asks */
    void (*closed)(void *arg); /* the last call */
    void *arg;
};
int change_notices_new(const struct change_notices_options *o, struct change_notices **out);
void change_notices_start(struct change_notices *c); /* @thread any */
/* Frees, now or when what is under way is answered; then `closed`. */
void change_notices_close(struct change_notices *c);

#endif
