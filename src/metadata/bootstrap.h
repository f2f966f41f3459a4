/* bootstrap.h - what a starting broker finds or makes in the store before anything else: the paths
 * that everyone relies on, the cluster's id, a broker id of its own. All calls block. */
#ifndef METADATA_BOOTSTRAP_H
#define METADATA_BOOTSTRAP_H

#include "metadata/store.h"

/* The persistent nodes with null data that every starting broker creates. 0 or -errno. @blocks */
int bootstrap_paths(struct store *s);
/* *id: the cluster's, made now if there is none. Returns owned (free). -EBADMSG: the node is not
 * readable. @blocks */
int bootstrap_cluster_id(struct store *s, char **id);
/* A broker id that nobody had: reserved_max + 1 or more. @blocks */
int bootstrap_broker_id(struct store *s, int32_t reserved_max, int32_t *id);

#endif
