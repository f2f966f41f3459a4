/* embedded_apply.h - one request on the tree: results for its caller, bytes for the journal, notes
 * for the watches.
 *
 * THREADS  the one that serves the store. */
#ifndef METADATA_EMBEDDED_APPLY_H
#define METADATA_EMBEDDED_APPLY_H

#include "metadata/journal_format.h"
#include "metadata/watches.h"

struct embedded_state {
    struct tree tree;
    struct watches *watches;
    const struct clock *clock;
    int64_t zxid;    /* last transaction */
    struct buf txns; /* what the journal must take before the answers may go out */
};

/* Does the request for the session `id` (watches: `session`). Its status and results are set; they
 * hold only if the journal takes what was put into `txns`. */
void embedded_apply(struct embedded_state *s, const void *session, int64_t id,
                    struct store_request *r);
/* Deletes the session's ephemeral nodes. */
void embedded_end_session(struct embedded_state *s, int64_t id);

#endif
