/* metrics_requests.c - families of requests: counts and times by API. As in Kafka a Fetch counts
 * under its API's name and under FetchConsumer or FetchFollower. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/api.h"
#include "protocol/errors.h"
#include "server/metrics_page_private.h"

/* NULL: no kind of request. */
static const char *kind_name(int kind)
{
    if (kind == REQUEST_FETCH_CONSUMER)
        return "FetchConsumer";
    if (kind == REQUEST_FETCH_FOLLOWER)
        return "FetchFollower";
    const struct api_desc *api = kind <= API_KEY_MAX ? api_find((int16_t)kind) : NULL;
    return api ? api->name : NULL;
}

static bool tally_kind(const struct page *p, int kind, enum request_histogram which,
                       struct tally *out)
{
    const struct broker_metrics *m = broker_metrics(p->broker);
    if (kind != API_FETCH)
        return metrics_request_tally(m, kind, which, out);
    bool consumers = metrics_request_tally(m, REQUEST_FETCH_CONSUMER, which, out);
    return metrics_request_tally(m, REQUEST_FETCH_FOLLOWER, which, out) || consumers;
}

size_t request_items(const struct page *p)
{
    (void)p;
    return REQUEST_KINDS;
}

void put_request_histogram(const struct page *p, const struct family *f, size_t item,
                           struct buf *out)
{
    const struct kind_windows *w = p->pages->windows[item];
    struct tally all = {0}, lately;
    const char *name = kind_name((int)item);
    if (!name || !tally_kind(p, (int)item, (enum request_histogram)f->which, &all))
        return;
    lately = all;
    if (w)
        histogram_window_cut(&w->of[f->which], &lately);
    struct metric_label l = {"request", str_of(name)};
    metrics_summary(out, f->name, &l, 1, &lately, &all, f->which == REQUEST_BYTES ? 1 : 1000);
}

void put_request_versions(const struct page *p, const struct family *f, size_t item,
                          struct buf *out)
{
    const struct broker_metrics *m = broker_metrics(p->broker);
    uint64_t n[REQUEST_VERSIONS] = {0};
    const char *name = kind_name((int)item);
    if (!name)
        return;
    metrics_request_versions(m, (int)item, n);
    if (item == API_FETCH) {
        metrics_request_versions(m, REQUEST_FETCH_CONSUMER, n);
        metrics_request_versions(m, REQUEST_FETCH_FOLLOWER, n);
    }
    for (int v = 0; v < REQUEST_VERSIONS; v++) {
        char version[16];
        snprintf(version, sizeof(version), "%d", v);
        struct metric_label l[] = {{"request", str_of(name)}, {"version", str_of(version)}};
        if (n[v])
            metrics_sample(out, f->name, "", l, 2, (double)n[v]);
    }
}

void put_request_errors(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    const struct broker_metrics *m = broker_metrics(p->broker);
    uint64_t n[REQUEST_ERRORS] = {0};
    const char *name = kind_name((int)item);
    if (!name)
        return;
    metrics_request_errors(m, (int)item, n);
    if (item == API_FETCH) {
        metrics_request_errors(m, REQUEST_FETCH_CONSUMER, n);
        metrics_request_errors(m, REQUEST_FETCH_FOLLOWER, n);
    }
    for (int i = 0; i < REQUEST_ERRORS; i++) {
        struct metric_label l[] = {
            {"request", str_of(name)},
            {"error", str_of(kerr_name((int16_t)(i + REQUEST_ERROR_FIRST)))}};
        if (n[i])
            metrics_sample(out, f->name, "", l, 2, (double)n[i]);
    }
}

/* ---- windows ---- */

static void turn_kind(struct metrics_pages *s, int kind)
{
    struct page look = {.pages = s, .broker = s->broker};
    struct tally all = {0};
    if (!kind_name(kind) || !tally_kind(&look, kind, REQUEST_TOTAL_US, &all))
        return;
    if (!s->windows[kind])
        s->windows[kind] = calloc(1, sizeof(*s->windows[kind]));
    if (!s->windows[kind])
        return; /* quantiles are of all until then */
    for (int h = 0; h < REQUEST_HISTOGRAMS; h++) {
        all = (struct tally){0};
        tally_kind(&look, kind, (enum request_histogram)h, &all);
        histogram_window_turn(&s->windows[kind]->of[h], &all);
    }
}

void metrics_requests_turn(struct metrics_pages *s)
{
    for (int kind = 0; kind < REQUEST_KINDS; kind++)
        turn_kind(s, kind);
}
