/* tool_when.h - times as people write them: ISO 8601 date-times and durations. */
#ifndef TOOLS_TOOL_WHEN_H
#define TOOLS_TOOL_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* "2024-02-29T12:30:00.250", perhaps with Z, +01, +0130 or +01:30 (none: UTC); the fraction, of up
 * to three digits, and the seconds may be left out. Milliseconds since 1970. */
bool tool_when_datetime(const char *text, int64_t *ms);
/* "P1DT2H3M4.5S", as Java's Duration reads it: any case, a sign in front of all or of each number,
 * at least one of the parts. Milliseconds. */
bool tool_when_duration(const char *text, int64_t *ms);

#endif
