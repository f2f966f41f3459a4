/* metrics_http.h - the endpoint of metrics.http.listener: a small HTTP server that tells a page
 * piece by piece, on a thread of its own.
 *
 *   GET or HEAD /metrics   the page (Prometheus text 0.0.4)
 *   GET or HEAD /health    "ok"
 *   else                   404, 405, 400, 431; 503 when too many pages are being told
 *
 * One request a connection; then it closes. HTTP/1.1 gets chunks, so that a page that was cut off
 * is seen to be; HTTP/1.0 gets bytes until the end.
 *
 * BOUNDS   connections, pages at once, the head's size, and the time for the head, for the
 *          answer and for each piece of it, and for leaving. When there is no room for a new
 * connection, the one that has kept its head back for longest goes: idle ones cannot lock the
 * others out.
 *
 * THREADS  start, stop: any one. The page's functions: the endpoint's thread. */
#ifndef SERVER_METRICS_HTTP_H
#define SERVER_METRICS_HTTP_H

#include "base/buf.h"

struct metrics_http;

struct metrics_http_options {
    const char *host; /* "" = all addresses; like port only looked at in start */
    int port;         /* 0 = a free one */
    int64_t head_ms, send_ms, piece_ms, leave_ms; /* 0 = the defaults */
    /* Page: begin returns owned, or NULL when there is no memory; next appends a piece (some ten
     * kilobytes) and tells whether there are more; end frees, at any time. */
    void *(*begin)(void *arg);
    bool (*next)(void *page, struct buf *out);
    void (*end)(void *page);
    void *arg; /* borrowed until stop */
};

enum { METRICS_HTTP_CONNECTIONS = 16, METRICS_HTTP_PAGES = 4 };

/* 0 or -errno. *port is the one that it listens on. @blocks on looking a name up */
int metrics_http_start(const struct metrics_http_options *o, struct metrics_http **out, int *port);
/* Closes all, frees. NULL is fine. @blocks until its thread has ended */
void metrics_http_stop(struct metrics_http *h);

#endif
