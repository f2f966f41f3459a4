/* finalized_features.h - the epoch of the cluster's finalized features, which ApiVersions tells. In
 * this mode there are no features (the node's list is empty), so the epoch is all there is.
 *
 * THREADS  epoch: any; end: the executor; the rest: at the start and the end of the broker. */
#ifndef SERVER_FINALIZED_FEATURES_H
#define SERVER_FINALIZED_FEATURES_H

#include "metadata/store.h"

struct finalized_features;

/* Reads the node, and again whenever it changes. Both are borrowed. 0 or -ENOMEM. */
int finalized_features_new(struct store *store, struct executor *ex,
                           struct finalized_features **out);
/* Data version of /feature; -1 while it is absent, disabled or malformed. NULL is -1. */
int64_t finalized_features_epoch(const struct finalized_features *f);
void finalized_features_end(struct finalized_features *f);  /* no more reading */
void finalized_features_free(struct finalized_features *f); /* when the executor has ended */

#endif
