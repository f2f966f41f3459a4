/* tool_date.h - times as text, by patterns of Java's SimpleDateFormat. */
#ifndef TOOLS_TOOL_DATE_H
#define TOOLS_TOOL_DATE_H

#include <stddef.h>
#include <stdint.h>

/* Knows y M d H m s S and quoted text, in local time; other letters stay as they are. */
void tool_date(char *out, size_t n, const char *pattern, int64_t wall_ms);

#endif
