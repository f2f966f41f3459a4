#include "log/cleaner_choose.h"

int64_t cleaner_first_dirty(const struct cleaner_facts *f, bool *reset)
{
    *reset = f->cleaned_to > f->end || (f->cleaned_to > 0 && f->cleaned_to < f->start);
    return *reset || f->cleaned_to < f->start ? f->start : f->cleaned_to;
}

int cleaner_segment_from(const struct cleaner_facts *f, int64_t offset)
{
    int i = 0;
    while (i < f->segments_n - 1 && f->segments[i + 1].base <= offset)
        i++;
    return i;
}

/* Times come from clients and may be anything: no difference may overflow. */
static int64_t before(int64_t now_ms, int64_t age_ms)
{
    int64_t t;
    return __builtin_sub_overflow(now_ms, age_ms, &t) ? INT64_MIN : t;
}

static int64_t first_uncleanable(const struct cleaner_facts *f, int64_t first_dirty)
{
    int active = f->segments_n - 1;
    int64_t offset = f->segments[active].base;
    if (f->last_stable < offset)
        offset = f->last_stable;
    int64_t youngest = before(f->now_ms, f->min_lag_ms);
    for (int i = cleaner_segment_from(f, first_dirty); f->min_lag_ms > 0 && i < active; i++)
        if (f->segments[i].max_timestamp > youngest) {
            if (f->segments[i].base < offset)
                offset = f->segments[i].base;
            break;
        }
    return offset > first_dirty ? offset : first_dirty;
}

static int64_t overdue_ms(const struct cleaner_facts *f, int64_t first_dirty)
{
    int64_t oldest = INT64_MAX, limit = before(f->now_ms, f->max_lag_ms);
    for (int i = cleaner_segment_from(f, first_dirty); i < f->segments_n - 1; i++)
        if (f->segments[i].first_timestamp > 0 && f->segments[i].first_timestamp < oldest)
            oldest = f->segments[i].first_timestamp;
    return oldest < limit ? limit - oldest : 0;
}

void cleaner_choose(const struct cleaner_facts *f, struct cleaner_choice *out)
{
    *out = (struct cleaner_choice){0};
    out->first_dirty = cleaner_first_dirty(f, &out->reset);
    out->first_uncleanable = first_uncleanable(f, out->first_dirty);
    int from = cleaner_segment_from(f, out->first_dirty);
    int to = cleaner_segment_from(f, out->first_uncleanable);
    out->upto = f->segments[to].base;
    for (int i = 0; i < f->segments_n && f->segments[i].base < out->first_dirty; i++)
        out->clean_bytes += f->segments[i].size;
    for (int i = from; i < to; i++)
        out->cleanable_bytes += f->segments[i].size;
    int64_t all = out->clean_bytes + out->cleanable_bytes;
    out->ratio = all ? (double)out->cleanable_bytes / (double)all : 0;
    out->overdue_ms = overdue_ms(f, out->first_dirty);
    out->eligible = out->ratio > f->min_ratio || (out->overdue_ms > 0 && out->cleanable_bytes > 0);
}
