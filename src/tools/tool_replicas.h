/* tool_replicas.h - kafka-replica-verification: the copies of partitions, compared batch by batch
 * up to the high watermark. */
#ifndef TOOLS_TOOL_REPLICAS_H
#define TOOLS_TOOL_REPLICAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* What one replica had to say, last time. */
struct replica {
    int32_t broker;
    int64_t high_watermark; /* -1: no answer */
    struct buf records;
};
struct replicated {
    const char *topic; /* borrowed */
    int32_t partition;
    int64_t offset; /* up to here all replicas are alike */
    struct replica *replicas;
    size_t replicas_n;
};

/* A line for people, without its line end. */
typedef void (*replicas_tell)(const char *line, void *arg);

/* Compares what the replicas have from `offset` on, and moves it. A checksum that differs is told
 * and passed over; false when they do not even have the same offsets, which is told, too. */
bool replicas_compare(struct replicated *r, replicas_tell tell, void *arg);
/* Records below the highest high watermark that were not compared yet. */
int64_t replicas_lag(const struct replicated *r);

#endif
