/* key_partition.h - which partition of its internal topic a group or transactional id belongs to,
 * and so which broker coordinates it. */
#ifndef COORDINATOR_KEY_PARTITION_H
#define COORDINATOR_KEY_PARTITION_H

#include "coordinator/utf16.h"

/* 0 .. n-1, by Java's string hash; n >= 1. */
static inline int32_t key_partition(struct str key, int32_t n)
{
    int32_t h = utf16_hash(key);
    return h == INT32_MIN ? 0 : (h < 0 ? -h : h) % n;
}

#endif
