/* tool_part_filter.h - which partitions kafka-get-offsets is asked about. */
#ifndef TOOLS_TOOL_PART_FILTER_H
#define TOOLS_TOOL_PART_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/tool_regex.h"

struct part_filter;

/* From --topic and --partitions, or --topic-partitions; NULL where not given. Ends the process when
 * one is not legal. Returns owned. */
struct part_filter *part_filter_new(const char *topic, const char *partitions,
                                    const char *topic_partitions);
void part_filter_free(struct part_filter *f);
bool part_filter_matches(const struct part_filter *f, const char *topic, int32_t partition);

#endif
