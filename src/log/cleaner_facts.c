#include "log/cleaner_facts.h"

#include <errno.h>
#include <stdlib.h>

#include "log/log_private.h"

static int first_timestamp(struct segment *s, int64_t *t)
{
    uint8_t window[FILE_BATCHES_WINDOW_MIN];
    struct file_batches w;
    struct file *f;
    struct batch b;
    int64_t pos;
    *t = NO_TIMESTAMP;
    int err = segment_size(s) ? segment_file(s, &f) : 0;
    if (err || !segment_size(s))
        return err;
    file_batches_init(&w, f, 0, segment_size(s), window, sizeof(window));
    if (file_batches_next(&w, &b, &pos) == BATCH_OK)
        *t = b.max_timestamp;
    file_unref(f);
    return segment_failed(s, LOG_FILE_DATA, w.error, "read");
}

/* The times of a dirty segment, as far as somebody asks for them. */
static int times_of(struct segment *s, const struct cleaner_facts *f, struct cleaner_segment *out)
{
    struct time_offset max = {NO_TIMESTAMP, 0};
    int err = f->min_lag_ms > 0 ? segment_max_time(s, &max) : 0;
    out->max_timestamp = max.timestamp;
    if (!err && f->max_lag_ms < INT64_MAX)
        err = first_timestamp(s, &out->first_timestamp);
    return err;
}

static int choose_from(const struct segment_list *l, struct cleaner_facts *f,
                       struct cleaner_segment *v, struct cleaner_choice *out)
{
    bool reset;
    int err = 0;
    for (int i = 0; i < l->n; i++)
        v[i] = (struct cleaner_segment){.base = l->v[i]->base,
                                        .size = segment_size(l->v[i]),
                                        .max_timestamp = NO_TIMESTAMP,
                                        .first_timestamp = NO_TIMESTAMP};
    f->segments = v;
    f->segments_n = l->n;
    int from = cleaner_segment_from(f, cleaner_first_dirty(f, &reset));
    for (int i = from; i < l->n - 1 && !err; i++)
        err = times_of(l->v[i], f, &v[i]);
    if (!err)
        cleaner_choose(f, out);
    return err;
}

int cleaner_choose_log(struct log *log, int64_t now_ms, struct cleaner_choice *out)
{
    const struct log_config *c = log_config_ref(log);
    struct cleaner_facts f = {.now_ms = now_ms,
                              .min_lag_ms = c->min_compaction_lag_ms,
                              .max_lag_ms = c->max_compaction_lag_ms,
                              .min_ratio = c->min_cleanable_ratio};
    log_config_unref(c);
    f.last_stable =
        log_last_stable_offset(log); /* before the list: what is rolled later is above */
    struct segment_list *l = log_pin(log);
    f.start = log_start_offset(log);
    f.end = log_end_offset(log);
    f.cleaned_to = log_cleaned_to(log);
    struct cleaner_segment *v = malloc((size_t)l->n * sizeof(*v));
    int err = v ? choose_from(l, &f, v, out) : -ENOMEM;
    free(v);
    segment_list_unpin(l);
    return err;
}
