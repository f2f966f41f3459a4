/* tool_format_internal.h - the console consumer's formatters for records of __consumer_offsets and
 * __transaction_state, in both forms that Kafka has: JSON, one object a line, or (by their old
 * names) the text of the broker's own objects. */
#ifndef TOOLS_TOOL_FORMAT_INTERNAL_H
#define TOOLS_TOOL_FORMAT_INTERNAL_H

#include <kafka/consumer.h>
#include <stdio.h>

#include "tools/tool_internal.h"

enum internal_format { FORMAT_OFFSETS, FORMAT_GROUPS, FORMAT_TRANSACTIONS };

/* `name`: a class of Kafka's, short or whole. false: none of these. */
bool internal_format_find(const char *name, enum internal_format *kind, bool *old);
/* Records of other kinds are passed over. NULL, or what is wrong with the record (static). The
 * arena is the caller's for its memory. */
const char *internal_format_print(enum internal_format kind, bool old, const kafka_message_t *m,
                                  struct arena *a, FILE *out);

#endif
