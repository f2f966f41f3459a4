/* tool_line_reader.h - what the console producer makes of a line: headers, key, value, as its
 * reader properties say (parse.key, key.separator, parse.headers, ..., null.marker). */
#ifndef TOOLS_TOOL_LINE_READER_H
#define TOOLS_TOOL_LINE_READER_H

#include <kafka/producer.h>
#include <regex.h>

#include "tools/tool_options.h"

struct line_reader;

/* Settings of `file` (a .properties file; NULL: none), then of the pairs. Ends the process when
 * they are not legal. Returns owned. */
struct line_reader *line_reader_new(const char *file, const struct tool_texts *pairs);
void line_reader_free(struct line_reader *r);
/* Fills key, value and headers of `out`, which point into line and reader until the next call. The
 * byte behind the line may be changed. NULL, or a line saying what is wrong (borrowed until the
 * next call). */
const char *line_reader_parse(struct line_reader *r, char *line, size_t n, kafka_record_t *out);

#endif
