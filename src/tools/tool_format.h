/* tool_format.h - how the console consumer prints a record: its formatters and their properties
 * (print.key, key.separator, null.literal, ...). */
#ifndef TOOLS_TOOL_FORMAT_H
#define TOOLS_TOOL_FORMAT_H

#include <kafka/consumer.h>
#include <stdio.h>

#include "tools/tool_options.h"

struct format;

/* `name` is a class of Kafka's, short or whole (NULL: the default); `file` a .properties file
 * (NULL: none), over which the pairs win; key and value deserializers may be NULL. Ends the process
 * when something is not known. Returns owned. */
struct format *format_new(const char *name, const char *file, const struct tool_texts *pairs,
                          const char *key_deserializer, const char *value_deserializer);
void format_free(struct format *f);
/* NULL, or what is wrong with the record (static): then nothing, or part of it, was printed. */
const char *format_print(struct format *f, const kafka_message_t *m, FILE *out);

#endif
