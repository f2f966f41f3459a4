/* metrics_page.h - the page that GET /metrics tells: all families of metrics of a broker, one
 * behind the other (metrics_families.c has the table).
 *
 * What concerns partitions is looked up when the page begins, and told piece by piece from there:
 * sums and parts agree, and ten thousand partitions cost no long pause. Quantiles are of what
 * happened since five to ten minutes ago, if somebody asked then; else since the last time before.
 *
 * THREADS  the endpoint's; new and free: one, when nobody asks. */
#ifndef SERVER_METRICS_PAGE_H
#define SERVER_METRICS_PAGE_H

#include "server/metrics_http.h"

struct broker;
struct metrics_pages;

/* Borrows the broker, whose parts must live while pages are told. NULL without memory. */
struct metrics_pages *metrics_pages_new(struct broker *b);
/* When all threads are there, before the first page. */
void metrics_pages_serve(struct metrics_pages *s);
void metrics_pages_free(struct metrics_pages *s); /* NULL is fine */

/* As of struct metrics_http_options; arg: the pages. */
void *metrics_page_begin(void *arg);
bool metrics_page_next(void *page, struct buf *out);
void metrics_page_end(void *page);

#endif
