/* tool_pace.h - sending at a given rate. */
#ifndef TOOLS_TOOL_PACE_H
#define TOOLS_TOOL_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Microseconds of a clock that only goes forward. */
uint64_t tool_now_us(void);
/* Sleeps until record i (from 0) is due, at `per_second` (below 0: no limit) from start_us on.
 * Ends early, with false, when interrupted. */
bool tool_pace(double per_second, uint64_t start_us, int64_t i);

#endif
