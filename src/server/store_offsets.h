/* store_offsets.h - offsets as version 0 of OffsetCommit and OffsetFetch keeps them: in the
 * metadata store, one node a partition, /consumers/<group>/offsets/<topic>/<number> with decimal
 * text. Nothing else of the broker knows them. @blocks: for workers */
#ifndef SERVER_STORE_OFFSETS_H
#define SERVER_STORE_OFFSETS_H

#include "metadata/store.h"
#include "protocol/errors.h"

/* INVALID_GROUP_ID for a group that is no name of a node. */
enum kerr store_offset_put(struct store *s, struct str group, struct str topic, int32_t partition,
                           int64_t offset);
/* *offset is -1 when there is none. */
enum kerr store_offset_get(struct store *s, struct str group, struct str topic, int32_t partition,
                           int64_t *offset);

#endif
