/* config_changes.h - follows /config/changes: each new notice names an entity whose settings are to
 * be read again. Inside metadata/; others see topic_configs.h.
 *
 * Notices are numbered; each is looked at once, in order. A round that the end of the session (or a
 * lack of memory) cuts short is made again, all of it, with the next one. All that are there at the
 * start are looked at (they only say "read again"). Those older than 15 minutes are removed at the
 * next event, by whichever broker comes first.
 *
 * THREADS  the executor's, but start. */
#ifndef METADATA_CONFIG_CHANGES_H
#define METADATA_CONFIG_CHANGES_H

#include "base/clock.h"
#include "metadata/store.h"

struct config_changes;
struct config_changes_options {
    struct store *store;
    struct executor *ex;
    const struct clock *clock;
    /* Shall the entity's node be read before `changed`? Then `data` gets the answer of the GET. */
    bool (*wants_data)(void *arg, struct str entity_path);
    void (*data)(void *arg, struct str entity_path, int status, struct bytes data);
    void (*changed)(void *arg, struct str entity_path);
    void (*closed)(void *arg); /* the last call */
    void *arg;
};
int config_changes_new(const struct config_changes_options *o, struct config_changes **out);
void config_changes_start(struct config_changes *c); /* @thread any */
/* Frees, now or when what is under way is answered; then `closed`. */
void config_changes_close(struct config_changes *c);

#endif
