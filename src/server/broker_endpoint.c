/* broker_endpoint.c - the broker's metrics: counting, from before there is anything to count, and
 * the endpoint, from when it serves until it stops. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/logline.h"
#include "server/broker_metrics.h"
#include "server/broker_private.h"
#include "server/config_value.h"
#include "server/metrics_http.h"
#include "server/metrics_page.h"

/* NULL: it is switched off. */
static const char *listener_of(const struct broker *b)
{
    const char *listener = config_string(b->config, "metrics.http.listener");
    return listener && *listener ? listener : NULL;
}

int broker_make_metrics(struct broker *b, char *err, size_t err_n)
{
    if (!listener_of(b))
        return 0;
    b->metrics = broker_metrics_new();
    b->metrics_pages = b->metrics ? metrics_pages_new(b) : NULL;
    return b->metrics_pages ? 0
                            : broker_start_failed(err, err_n, -ENOMEM, "cannot make the metrics");
}

int broker_serve_metrics(struct broker *b, char *err, size_t err_n)
{
    struct config_address where;
    const char *listener = listener_of(b);
    if (!listener || !config_address_parse(listener, &where)) /* the setting's check has seen it */
        return 0;
    struct metrics_http_options o = {.host = where.host,
                                     .port = where.port,
                                     .begin = metrics_page_begin,
                                     .next = metrics_page_next,
                                     .end = metrics_page_end,
                                     .arg = b->metrics_pages};
    metrics_pages_serve(b->metrics_pages);
    int port, rc = metrics_http_start(&o, &b->metrics_http, &port);
    bool v6 = strchr(where.host, ':') != NULL;
    if (rc)
        snprintf(err, err_n, "metrics.http.listener=%s: cannot listen: %s", listener,
                 strerror(-rc));
    else
        say_info("metrics", "serving http://%s%s%s:%d/metrics", v6 ? "[" : "",
                 *where.host ? where.host : "0.0.0.0", v6 ? "]" : "", port);
    return rc;
}

void broker_end_metrics(struct broker *b)
{
    metrics_http_stop(b->metrics_http);
    b->metrics_http = NULL;
}

void broker_free_metrics(struct broker *b)
{
    metrics_pages_free(b->metrics_pages);
    broker_metrics_free(b->metrics);
}
