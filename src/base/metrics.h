/* metrics.h - what counts on hot paths: counters spread over slots, and histograms of bounded size.
 *
 * SLOTS    each thread has a slot; whoever counts adds to the memory of its own one, so threads do
 *          not pull a cache line from each other, and whoever reads adds the slots up. More threads
 *          than slots share them: all adds are atomic, and relaxed.
 *
 * HISTOGRAM  buckets on a logarithmic scale, four to each power of two: a quantile is at most an
 *          eighth beside the truth (values below 8 are exact). It never forgets; what lately
 *          happened is the difference of two tallies (histogram_window). Nothing is allocated, no
 *          clock is read.
 *
 * THREADS  adds: any. Tallies: any, each its owner's alone; while others add they see some of it.
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { METRICS_SLOTS = 16, METRICS_CACHE_LINE = 64 };

/* The slot of the calling thread: 0 .. METRICS_SLOTS-1. */
unsigned metrics_slot(void);

typedef _Atomic uint64_t metric;

static inline void metric_add(metric *m, uint64_t n)
{
    atomic_fetch_add_explicit(m, n, memory_order_relaxed);
}
/* For a metric that one thread alone adds to. */
static inline void metric_add_own(metric *m, uint64_t n)
{
    atomic_store_explicit(m, atomic_load_explicit(m, memory_order_relaxed) + n,
                          memory_order_relaxed);
}
static inline uint64_t metric_read(const metric *m)
{
    return atomic_load_explicit(m, memory_order_relaxed);
}

/* One number of many threads, outside of a set that has slots of its own: a line for each slot. */
struct metric_spread { /* zero it */
    struct {
        metric n;
        char apart[METRICS_CACHE_LINE - sizeof(metric)];
    } slots[METRICS_SLOTS];
};
static inline void metric_spread_add(struct metric_spread *m, uint64_t n)
{
    metric_add(&m->slots[metrics_slot()].n, n);
}
uint64_t metric_spread_read(const struct metric_spread *m);

/* ---- histograms ---- */

enum { HISTOGRAM_BUCKETS = 160 }; /* up to 2^41, the last one takes all above */

struct histogram { /* zero it */
    metric sum;
    metric buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t value);

/* Copies, with which one can calculate. */
struct tally { /* zero it */
    uint64_t count, sum;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};
/* Adds what is in the histogram. */
void tally_add(struct tally *t, const struct histogram *h);
/* Takes an earlier tally of the same away. */
void tally_subtract(struct tally *t, const struct tally *earlier);
/* The value that a share q (0 .. 1) of all does not pass; 0 when there are none. */
double tally_quantile(const struct tally *t, double q);

/* What happened lately: since one to two periods ago. */
struct histogram_window { /* zero it */
    struct tally older, newer;
};
/* Once a period. `all` is everything until now. */
void histogram_window_turn(struct histogram_window *w, const struct tally *all);
/* Everything until now becomes what happened lately. */
void histogram_window_cut(const struct histogram_window *w, struct tally *all);

#endif
