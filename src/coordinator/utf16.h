/* utf16.h - text as Java sees it: UTF-8 walked as UTF-16 code units. Names are hashed and metadata
 * is measured in these. Malformed bytes count as U+FFFD, one for each byte that fits nowhere. */
#ifndef COORDINATOR_UTF16_H
#define COORDINATOR_UTF16_H

#include "base/str.h"

/* Calls for each unit in order: h = h * 31 + unit, which is Java's String.hashCode. Null is 0. */
int32_t utf16_hash(struct str s);
/* Number of units; 0 for null. */
int32_t utf16_length(struct str s);

#endif
