/* metrics.c - see metrics.h. */
#include "base/metrics.h"

#include <string.h>

/* A process has one set of threads: their numbers are its, not a broker's. */
static atomic_uint threads_seen;
static _Thread_local unsigned slot_plus_1;

unsigned metrics_slot(void)
{
    if (!slot_plus_1)
        slot_plus_1 =
            atomic_fetch_add_explicit(&threads_seen, 1, memory_order_relaxed) % METRICS_SLOTS + 1;
    return slot_plus_1 - 1;
}

uint64_t metric_spread_read(const struct metric_spread *m)
{
    uint64_t n = 0;
    for (int s = 0; s < METRICS_SLOTS; s++)
        n += metric_read(&m->slots[s].n);
    return n;
}

/* ---- buckets: 0 .. 7 themselves, then four to each power of two ---- */

enum { EXACT = 8, EXACT_BITS = 3, PER_POWER = 4 };

static unsigned bucket_of(uint64_t v)
{
    if (v < EXACT)
        return (unsigned)v;
    unsigned power = 63 - (unsigned)__builtin_clzll(v);
    unsigned b = EXACT + (power - EXACT_BITS) * PER_POWER + (unsigned)(v >> (power - 2) & 3);
    return b < HISTOGRAM_BUCKETS ? b : HISTOGRAM_BUCKETS - 1;
}

/* The middle of what falls into it. */
static double value_of(unsigned b)
{
    if (b < EXACT)
        return b;
    unsigned power = EXACT_BITS + (b - EXACT) / PER_POWER;
    double step = (double)(UINT64_C(1) << (power - 2));
    return (double)(UINT64_C(1) << power) + (double)((b - EXACT) % PER_POWER) * step + step / 2;
}

void histogram_add(struct histogram *h, uint64_t value)
{
    metric_add(&h->sum, value);
    metric_add(&h->buckets[bucket_of(value)], 1);
}

/* ---- tallies ---- */

void tally_add(struct tally *t, const struct histogram *h)
{
    t->sum += metric_read(&h->sum);
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t n = metric_read(&h->buckets[i]);
        t->buckets[i] += n;
        t->count += n;
    }
}

void tally_subtract(struct tally *t, const struct tally *earlier)
{
    t->sum -= earlier->sum;
    t->count -= earlier->count;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
        t->buckets[i] -= earlier->buckets[i];
}

double tally_quantile(const struct tally *t, double q)
{
    if (t->count == 0)
        return 0;
    uint64_t rank = (uint64_t)(q * (double)t->count), seen = 0;
    if (rank >= t->count)
        rank = t->count - 1;
    unsigned b = 0;
    while (b < HISTOGRAM_BUCKETS - 1 && (seen += t->buckets[b]) <= rank)
        b++;
    return value_of(b);
}

void histogram_window_turn(struct histogram_window *w, const struct tally *all)
{
    w->older = w->newer;
    w->newer = *all;
}

void histogram_window_cut(const struct histogram_window *w, struct tally *all)
{
    tally_subtract(all, &w->older);
}
