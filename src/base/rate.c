/* rate.c - see rate.h. */
#include "base/rate.h"

#include <stdlib.h>

void rate_free(struct rate *r)
{
    free(r->v);
    *r = RATE_INIT;
}

static void begin(struct rate_sample *s, int64_t now_ms)
{
    *s = (struct rate_sample){.start_ms = now_ms, .last_ms = now_ms};
}

/* One more, up to N + 1: while the window's edge lies inside the oldest, all of it counts. */
static bool grow(struct rate *r, const struct rate_window *w)
{
    if (r->n > w->samples)
        return false;
    if (r->n == r->cap) {
        int cap = r->cap ? r->cap * 2 : 4;
        struct rate_sample *v = realloc(r->v, (size_t)cap * sizeof(*v));
        if (!v)
            return false;
        r->v = v;
        r->cap = cap;
    }
    r->n++;
    return true;
}

/* The sample that values go into now; NULL without memory for a first one. */
static struct rate_sample *current(struct rate *r, const struct rate_window *w, int64_t now_ms)
{
    if (r->n == 0) {
        if (!grow(r, w))
            return NULL;
        begin(&r->v[0], now_ms);
    }
    if (now_ms - r->v[r->current].start_ms >= w->sample_ms) {
        bool last = r->current == r->n - 1;
        r->current = last && !grow(r, w) ? 0 : r->current + 1;
        begin(&r->v[r->current], now_ms);
    }
    return &r->v[r->current];
}

void rate_record(struct rate *r, const struct rate_window *w, double value, int64_t now_ms)
{
    struct rate_sample *s = current(r, w, now_ms);
    if (!s)
        return;
    s->value += value;
    if (now_ms > s->last_ms)
        s->last_ms = now_ms;
}

static void forget_old(struct rate *r, const struct rate_window *w, int64_t now_ms)
{
    for (int i = 0; i < r->n; i++)
        if (now_ms - r->v[i].last_ms >= w->samples * w->sample_ms)
            begin(&r->v[i], now_ms);
}

/* From the start of the oldest sample until now, and the whole samples that N - 1 lack. */
static int64_t time_measured(const struct rate *r, const struct rate_window *w, int64_t now_ms)
{
    int64_t start = now_ms;
    for (int i = 0; i < r->n; i++)
        if (r->v[i].start_ms < start)
            start = r->v[i].start_ms;
    int64_t ms = now_ms - start, whole = ms / w->sample_ms;
    if (whole < w->samples - 1)
        ms += (w->samples - 1 - whole) * w->sample_ms;
    return ms > 1 ? ms : 1;
}

double rate_measure(struct rate *r, const struct rate_window *w, int64_t now_ms, int64_t *over_ms)
{
    double sum = 0;
    forget_old(r, w, now_ms);
    for (int i = 0; i < r->n; i++)
        sum += r->v[i].value;
    int64_t ms = time_measured(r, w, now_ms);
    if (over_ms)
        *over_ms = ms;
    return sum * 1000 / (double)ms;
}

int64_t rate_throttle_ms(struct rate *r, const struct rate_window *w, double limit, int64_t now_ms)
{
    int64_t over_ms;
    double found = rate_measure(r, w, now_ms, &over_ms);
    if (!(found > limit))
        return 0;
    double ms = (found - limit) / limit * (double)over_ms + 0.5;
    return ms < (double)INT32_MAX ? (int64_t)ms : INT32_MAX; /* a limit of 0, too */
}
