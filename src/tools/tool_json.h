/* tool_json.h - events as lines of JSON on standard output, as the verifiable tools print them:
 * {"timestamp":1700000000000,"name":"startup_complete",...}. A line goes out whole, and at once.
 *
 * THREADS  any. */
#ifndef TOOLS_TOOL_JSON_H
#define TOOLS_TOOL_JSON_H

#include "base/buf.h"

/* The line up to behind its name; the caller appends `,"field":value` and so on. */
void tool_json_begin(struct buf *line, const char *name);
/* Closes and prints it; frees the buffer. */
void tool_json_end(struct buf *line);
/* An event without fields of its own. */
void tool_json_event(const char *name);

#endif
