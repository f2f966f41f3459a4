/* metrics_text.c - see metrics_text.h. */
#include "base/metrics_text.h"

#include <math.h>

static const char *const kinds[] = {
    [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_SUMMARY] = "summary"};

/* `also` is escaped too; 0: nothing more. */
static void put_escaped(struct buf *out, const char *p, size_t n, char also)
{
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (c == '\n')
            buf_put(out, "\\n", 2);
        else if (c == '\\' || (also && c == also))
            buf_put(out, (const char[]){'\\', c}, 2);
        else
            buf_put(out, &c, 1);
    }
}

void metrics_head(struct buf *out, const char *name, enum metric_kind kind, const char *help)
{
    buf_printf(out, "# HELP %s ", name);
    put_escaped(out, help, strlen(help), 0);
    buf_printf(out, "\n# TYPE %s %s\n", name, kinds[kind]);
}

static void put_labels(struct buf *out, const struct metric_label *labels, int n)
{
    for (int i = 0; i < n; i++) {
        struct str v = labels[i].value;
        buf_printf(out, "%s%s=\"", i ? "," : "{", labels[i].name);
        put_escaped(out, v.p, v.len > 0 ? (size_t)v.len : 0, '"');
        buf_put(out, "\"", 1);
    }
    if (n)
        buf_put(out, "}", 1);
}

/* Whole numbers as such: %g would round offsets and bytes. */
static void put_value(struct buf *out, double v)
{
    if (isnan(v) || isinf(v))
        buf_printf(out, " %s\n", isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
    else if (v == floor(v) && fabs(v) < 0x1p53)
        buf_printf(out, " %lld\n", (long long)v);
    else
        buf_printf(out, " %.9g\n", v);
}

void metrics_sample(struct buf *out, const char *name, const char *suffix,
                    const struct metric_label *labels, int labels_n, double value)
{
    buf_printf(out, "%s%s", name, suffix);
    put_labels(out, labels, labels_n);
    put_value(out, value);
}

void metrics_summary(struct buf *out, const char *name, const struct metric_label *labels,
                     int labels_n, const struct tally *lately, const struct tally *all, double unit)
{
    static const struct {
        double q;
        const char *text;
    } quantiles[] = {{0.5, "0.50"},  {0.75, "0.75"}, {0.95, "0.95"},
                     {0.98, "0.98"}, {0.99, "0.99"}, {0.999, "0.999"}};
    struct metric_label with[8];
    if (labels_n > 7)
        return;
    for (int i = 0; i < labels_n; i++)
        with[i] = labels[i];
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++) {
        with[labels_n] = (struct metric_label){"quantile", str_of(quantiles[i].text)};
        metrics_sample(out, name, "", with, labels_n + 1,
                       lately->count ? tally_quantile(lately, quantiles[i].q) / unit : NAN);
    }
    metrics_sample(out, name, "_sum", labels, labels_n, (double)all->sum / unit);
    metrics_sample(out, name, "_count", labels, labels_n, (double)all->count);
}
