/* rate.h - how much of something a second, over a window that moves in steps.
 *
 * The window is N samples of w ms. A value goes into the current sample; one that is w old is full
 * and the next begins, taking the place of the oldest. A sample in which nothing happened for N * w
 * is empty again. What was recorded thus leaves by whole samples, and the time that the sum is
 * divided by is at least N - 1 samples long, so that a first burst is not taken for a high rate.
 *
 * Times are any clock's, in ms; one that goes back is treated as standing still.
 *
 * THREADS  the caller's lock. */
#ifndef BASE_RATE_H
#define BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate_window {
    int samples;       /* N, >= 1 */
    int64_t sample_ms; /* w, >= 1 */
};
struct rate_sample {
    int64_t start_ms, last_ms;
    double value;
};
struct rate {
    struct rate_sample *v; /* owned; grows to N + 1 */
    int n, cap, current;
};
#define RATE_INIT ((struct rate){0})

void rate_free(struct rate *r);
/* A negative value takes back what was recorded. Without memory for another sample the current one
 * goes on. */
void rate_record(struct rate *r, const struct rate_window *w, double value, int64_t now_ms);
/* A second. *over_ms (may be NULL): the time that the sum was divided by. */
double rate_measure(struct rate *r, const struct rate_window *w, int64_t now_ms, int64_t *over_ms);
/* How long nothing may be added until the rate is down to `limit` again, as of now; 0 when it is
 * not above it. */
int64_t rate_throttle_ms(struct rate *r, const struct rate_window *w, double limit, int64_t now_ms);

#endif
