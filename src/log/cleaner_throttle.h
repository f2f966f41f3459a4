/* cleaner_throttle.h - holds all cleaner threads together to so many bytes per second, read and
 * written. Decides only how long to sleep; THREADS the caller's lock. */
#ifndef LOG_CLEANER_THROTTLE_H
#define LOG_CLEANER_THROTTLE_H

#include <stddef.h>
#include <stdint.h>

struct cleaner_throttle {
    double bytes_per_second;
    int64_t since_ns; /* the window's begin, monotonic */
    double bytes;     /* in the window */
};

/* No limit when it is not above 0. */
void cleaner_throttle_init(struct cleaner_throttle *t, double bytes_per_second, int64_t now_ns);
/* n bytes have been moved: how many ms to sleep now. */
int64_t cleaner_throttle_note(struct cleaner_throttle *t, size_t n, int64_t now_ns);

#endif
