/* metrics_text.h - metrics as Prometheus reads them: text format 0.0.4.
 *
 *   # HELP name what it means
 *   # TYPE name counter
 *   name{label="value",...} 12
 *
 * A family's head comes once, before all its samples, which are not mixed with others'. What of a
 * label's value would end it is escaped; whoever writes gives legal names.
 *
 * OWNERSHIP  writes into the caller's buffer, whose errors stick (buf.h). */
#ifndef BASE_METRICS_TEXT_H
#define BASE_METRICS_TEXT_H

#include "base/buf.h"
#include "base/metrics.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_SUMMARY };

struct metric_label {
    const char *name;
    struct str value;
};

void metrics_head(struct buf *out, const char *name, enum metric_kind kind, const char *help);
/* `suffix` goes behind the name ("_count"); "" for none. */
void metrics_sample(struct buf *out, const char *name, const char *suffix,
                    const struct metric_label *labels, int labels_n, double value);
/* Quantiles of `lately`, sum and count of `all`; `unit` divides (1000 for ms of microseconds). */
void metrics_summary(struct buf *out, const char *name, const struct metric_label *labels,
                     int labels_n, const struct tally *lately, const struct tally *all,
                     double unit);

#endif
