/* timer_heap.h - the armed timers of one executor, soonest first. Private to the executors.
 *
 * A pairing heap whose links lie in the timers: arming never allocates and so never fails, and
 * stopping a timer that has not come near the top, which is what nearly all timeouts end with,
 * takes constant time.
 *
 * THREADS  the executor's. */
#ifndef BASE_TIMER_HEAP_H
#define BASE_TIMER_HEAP_H

#include "base/executor.h"

struct timer_heap {
    struct timer *root;
    uint64_t started; /* timers so far: the `order` of the next */
};

/* Arms the timer, or moves it when it is armed. */
void timer_heap_put(struct timer_heap *h, struct timer *t, int64_t deadline_ms);
/* Disarms it; no effect when it is not armed. */
void timer_heap_remove(struct timer_heap *h, struct timer *t);
/* The soonest; NULL when none is armed. */
static inline struct timer *timer_heap_first(const struct timer_heap *h)
{
    return h->root;
}
/* When a delay that starts now is over: at least the delay, though the clock is cut to ms. */
int64_t timer_deadline(const struct clock *clock, int64_t delay_ms);

#endif
