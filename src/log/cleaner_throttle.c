#include "log/cleaner_throttle.h"

#include <math.h>

static const int64_t window_ns = INT64_C(300000000);
enum { SLEEP_MAX_MS = 3600 * 1000 };

void cleaner_throttle_init(struct cleaner_throttle *t, double bytes_per_second, int64_t now_ns)
{
    if (!(bytes_per_second > 0))
        bytes_per_second = INFINITY;
    *t = (struct cleaner_throttle){.bytes_per_second = bytes_per_second, .since_ns = now_ns};
}

int64_t cleaner_throttle_note(struct cleaner_throttle *t, size_t n, int64_t now_ns)
{
    t->bytes += (double)n;
    int64_t elapsed_ns = now_ns - t->since_ns;
    if (elapsed_ns <= window_ns)
        return 0;
    double should_ms = t->bytes * 1000 / t->bytes_per_second;
    double ahead_ms = should_ms - (double)elapsed_ns / 1000000;
    int64_t ms = 0;
    if (ahead_ms >= SLEEP_MAX_MS)
        ms = SLEEP_MAX_MS;
    else if (ahead_ms > 0)
        ms = (int64_t)(ahead_ms + 0.5);
    t->since_ns = now_ns + ms * 1000000; /* the next window begins behind the sleep */
    t->bytes = 0;
    return ms;
}
