#include "tools/tool_pace.h"

#include <time.h>

#include "base/clock.h"
#include "tools/tool_io.h"

enum { TICK_US = 1000 }; /* less is not worth a sleep */

uint64_t tool_now_us(void)
{
    return (uint64_t)clock_mono_ns(clock_real()) / 1000;
}

bool tool_pace(double per_second, uint64_t start_us, int64_t i)
{
    if (per_second < 0)
        return !tool_interrupted();
    double after = (double)i * 1e6 / per_second;
    uint64_t due = after < 1e18 ? start_us + (uint64_t)after : UINT64_MAX;
    for (uint64_t now; (now = tool_now_us()) + TICK_US < due;) {
        uint64_t left = due - now;
        if (left >= 100 * TICK_US) { /* long: may be interrupted */
            if (!tool_sleep_ms(left / 1000 > 3600000 ? 3600000 : (int64_t)(left / 1000)))
                return false;
            continue;
        }
        nanosleep(&(struct timespec){0, (long)left * 1000}, NULL);
    }
    return !tool_interrupted();
}
