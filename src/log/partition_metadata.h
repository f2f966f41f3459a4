/* partition_metadata.h - partition.metadata: the topic's id beside its data.
 *
 *   version: 0
 *   topic_id: ABEiM0RVZneImaq7zN3u_w       no newline behind it
 *
 * It must be on disk before the first record of the partition.
 *
 * THREADS    whoever makes or loads the partition's folder, alone. */
#ifndef LOG_PARTITION_METADATA_H
#define LOG_PARTITION_METADATA_H

#include "base/file.h"
#include "base/str.h"

#define PARTITION_METADATA_NAME "partition.metadata"

/* 0; -EBADMSG when it does not parse or the id is zero. */
int partition_metadata_parse(const char *text, size_t len, struct uuid *out);
/* 0; -ENOENT; -EBADMSG; -errno. `dir` is the partition's folder. */
int partition_metadata_read(struct fs *fs, const char *dir, struct uuid *out);
/* Durable when it returns 0. */
int partition_metadata_write(struct fs *fs, const char *dir, struct uuid id, bool sync);

#endif
