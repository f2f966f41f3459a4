/* The metrics endpoint on real sockets: answers, pages in pieces, and clients that do not behave.
 */
#include "server/metrics_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/http_request.h"
#include "unit.h"

enum { DEADLINE_S = 60, MINUTE_MS = 60000 };

/* ---- a page of so many pieces ---- */

struct source {
    int pieces, len;
    bool no_memory;
    atomic_int open, ended;
};
struct page {
    struct source *from;
    int told;
};

static void *begin(void *arg)
{
    struct source *s = arg;
    struct page *p = s->no_memory ? NULL : calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->from = s;
    atomic_fetch_add(&s->open, 1);
    return p;
}

static bool next(void *page, struct buf *out)
{
    struct page *p = page;
    if (p->told == p->from->pieces)
        return false;
    for (int i = 0; i < p->from->len; i++)
        buf_printf(out, "%d\n", p->told);
    return ++p->told < p->from->pieces;
}

static void end(void *page)
{
    struct page *p = page;
    atomic_fetch_sub(&p->from->open, 1);
    atomic_fetch_add(&p->from->ended, 1);
    free(p);
}

struct endpoint_case {
    struct metrics_http *h;
    struct source source;
    int port;
};

static void start(struct endpoint_case *e, int pieces, int len)
{
    struct metrics_http_options o = {.host = "127.0.0.1",
                                     .head_ms = MINUTE_MS,
                                     .send_ms = MINUTE_MS,
                                     .piece_ms = MINUTE_MS,
                                     .leave_ms = MINUTE_MS,
                                     .begin = begin,
                                     .next = next,
                                     .end = end,
                                     .arg = &e->source};
    *e = (struct endpoint_case){.source = {.pieces = pieces, .len = len}};
    assert_int_equal(metrics_http_start(&o, &e->h, &e->port), 0);
    assert_true(e->port > 0);
}

static void stop(struct endpoint_case *e)
{
    metrics_http_stop(e->h);
    assert_int_equal(atomic_load(&e->source.open), 0);
}

/* ---- clients ---- */

static int dial(const struct endpoint_case *e)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)e->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = DEADLINE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* All that comes until the end; closes. */
static char *hear(int fd)
{
    struct buf b = BUF_INIT;
    char part[4096];
    ssize_t n;
    while ((n = recv(fd, part, sizeof(part), 0)) > 0)
        buf_put(&b, part, (size_t)n);
    assert_int_equal(n, 0);
    close(fd);
    buf_put(&b, "", 1);
    return (char *)buf_take(&b, &(size_t){0});
}

static char *ask(const struct endpoint_case *e, const char *head)
{
    int fd = dial(e);
    say(fd, head);
    return hear(fd);
}

static const char *body_of(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

static void assert_answer(const struct endpoint_case *e, const char *head, int status,
                          const char *body)
{
    char *got = ask(e, head), want[32];
    snprintf(want, sizeof(want), "HTTP/1.1 %d ", status);
    if (strncmp(got, want, strlen(want)) != 0)
        fail_msg("%s\nanswered by\n%s", head, got);
    assert_string_equal(body_of(got), body);
    free(got);
}

/* ---- tests ---- */

static void each_request_has_its_status(void **state)
{
    struct endpoint_case e;
    start(&e, 1, 1);
    assert_answer(&e, "GET /metrics HTTP/1.0\r\n\r\n", 200, "0\n");
    assert_answer(&e, "GET /metrics?x HTTP/1.1\r\nHost: a\r\n\r\n", 200, "2\r\n0\n\r\n0\r\n\r\n");
    assert_answer(&e, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
    assert_answer(&e, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n", 200, "ok\n");
    assert_answer(&e, "HEAD /health HTTP/1.1\r\nHost: a\r\n\r\n", 200, "");
    assert_answer(&e, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 404, "Not Found\n");
    assert_answer(&e, "GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n", 404, "Not Found\n");
    assert_answer(&e, "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 405,
                  "Method Not Allowed\n");
    assert_answer(&e, "\x16\x03\x01", 400, "Bad Request\n");
    stop(&e);
}

static void a_head_without_end_is_refused(void **state)
{
    static char head[HTTP_HEAD_MAX + 1];
    struct endpoint_case e;
    start(&e, 1, 1);
    memset(head, 'a', HTTP_HEAD_MAX);
    memcpy(head, "GET / HTTP/1.1\r\n", 16);
    assert_answer(&e, head, 431, "Request Header Fields Too Large\n");
    stop(&e);
}

/* Byte by byte, and behind it the client's end. */
static void a_head_may_come_in_pieces(void **state)
{
    const char *head = "GET /health HTTP/1.0\r\n\r\n";
    struct endpoint_case e;
    start(&e, 1, 1);
    int fd = dial(&e);
    for (size_t i = 0; i < strlen(head); i++)
        assert_int_equal(send(fd, head + i, 1, MSG_NOSIGNAL), 1);
    shutdown(fd, SHUT_WR);
    char *got = hear(fd);
    assert_string_equal(body_of(got), "ok\n");
    free(got);
    stop(&e);
}

/* Far more than a socket takes at once, and to several at the same time. */
static void a_large_page_comes_whole(void **state)
{
    enum { PIECES = 100, LINES = 3000 };
    struct endpoint_case e;
    start(&e, PIECES, LINES);
    int fds[METRICS_HTTP_PAGES];
    for (int i = 0; i < METRICS_HTTP_PAGES; i++) {
        fds[i] = dial(&e);
        say(fds[i], "GET /metrics HTTP/1.0\r\n\r\n");
    }
    for (int i = 0; i < METRICS_HTTP_PAGES; i++) {
        char *got = hear(fds[i]);
        const char *at = body_of(got);
        for (int k = 0; k < PIECES * LINES; k++) {
            char *after;
            assert_int_equal(strtol(at, &after, 10), k / LINES);
            at = after + 1;
        }
        assert_int_equal(*at, 0);
        free(got);
    }
    stop(&e);
}

static void an_empty_page_is_a_page(void **state)
{
    struct endpoint_case e;
    start(&e, 0, 0);
    assert_answer(&e, "GET /metrics HTTP/1.0\r\n\r\n", 200, "");
    assert_answer(&e, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 200, "0\r\n\r\n");
    stop(&e);
}

static void without_memory_it_is_unavailable(void **state)
{
    struct endpoint_case e;
    start(&e, 1, 1);
    e.source.no_memory = true;
    assert_answer(&e, "GET /metrics HTTP/1.0\r\n\r\n", 503, "Service Unavailable\n");
    assert_answer(&e, "GET /health HTTP/1.0\r\n\r\n", 200, "ok\n");
    stop(&e);
}

/* Many more than there is room for say nothing; whoever asks is answered all the same. */
static void silent_connections_lock_nobody_out(void **state)
{
    enum { SILENT = METRICS_HTTP_CONNECTIONS * 3 };
    int fds[SILENT];
    struct endpoint_case e;
    start(&e, 1, 1);
    for (int i = 0; i < SILENT; i++)
        fds[i] = dial(&e);
    assert_answer(&e, "GET /health HTTP/1.0\r\n\r\n", 200, "ok\n");
    for (int i = 0; i < SILENT - METRICS_HTTP_CONNECTIONS; i++)
        free(hear(fds[i])); /* closed: the oldest went */
    for (int i = SILENT - METRICS_HTTP_CONNECTIONS; i < SILENT; i++)
        close(fds[i]);
    stop(&e);
}

/* They hold pages, not take them; the endpoint's end does not wait for them. */
static void whoever_does_not_read_ends_with_the_endpoint(void **state)
{
    int fds[METRICS_HTTP_PAGES];
    struct endpoint_case e;
    start(&e, 4000, 6000);
    for (int i = 0; i < METRICS_HTTP_PAGES; i++) {
        char first;
        fds[i] = dial(&e);
        say(fds[i], "GET /metrics HTTP/1.0\r\n\r\n");
        assert_int_equal(recv(fds[i], &first, 1, 0), 1);
    }
    assert_answer(&e, "GET /metrics HTTP/1.0\r\n\r\n", 503, "Service Unavailable\n");
    stop(&e);
    for (int i = 0; i < METRICS_HTTP_PAGES; i++)
        close(fds[i]);
}

static void each_time_has_its_limit(void **state)
{
    struct metrics_http_options o = {.host = "127.0.0.1",
                                     .head_ms = 1,
                                     .send_ms = 1,
                                     .leave_ms = 1,
                                     .begin = begin,
                                     .next = next,
                                     .end = end};
    struct endpoint_case e = {.source = {.pieces = 4000, .len = 6000}};
    o.arg = &e.source;
    assert_int_equal(metrics_http_start(&o, &e.h, &e.port), 0);
    free(hear(dial(&e))); /* says nothing, and is closed */
    stop(&e);
}

/* They have a minute for the page, but not for each piece. */
static void whoever_does_not_read_is_let_go(void **state)
{
    struct metrics_http_options o = {.host = "127.0.0.1",
                                     .head_ms = MINUTE_MS,
                                     .send_ms = MINUTE_MS,
                                     .piece_ms = 1,
                                     .leave_ms = MINUTE_MS,
                                     .begin = begin,
                                     .next = next,
                                     .end = end};
    struct endpoint_case e = {.source = {.pieces = 4000, .len = 6000}};
    int fds[METRICS_HTTP_PAGES];
    o.arg = &e.source;
    assert_int_equal(metrics_http_start(&o, &e.h, &e.port), 0);
    for (int i = 0; i < METRICS_HTTP_PAGES; i++) {
        fds[i] = dial(&e);
        say(fds[i], "GET /metrics HTTP/1.0\r\n\r\n");
    }
    /* Their end does not reach who has not read what is before it: the page's does. */
    for (int64_t end = time(NULL) + DEADLINE_S; atomic_load(&e.source.ended) < METRICS_HTTP_PAGES;)
        assert_true(time(NULL) < end && sched_yield() == 0);
    for (int i = 0; i < METRICS_HTTP_PAGES; i++)
        close(fds[i]);
    stop(&e);
}

static void a_taken_port_is_told(void **state)
{
    struct endpoint_case e;
    struct metrics_http *second;
    int port;
    start(&e, 1, 1);
    struct metrics_http_options o = {.host = "127.0.0.1", .port = e.port};
    assert_int_equal(metrics_http_start(&o, &second, &port), -EADDRINUSE);
    assert_null(second);
    metrics_http_stop(NULL);
    stop(&e);
}

UNIT_MAIN(unit_test(each_request_has_its_status), unit_test(a_head_without_end_is_refused),
          unit_test(a_head_may_come_in_pieces), unit_test(a_large_page_comes_whole),
          unit_test(an_empty_page_is_a_page), unit_test(without_memory_it_is_unavailable),
          unit_test(silent_connections_lock_nobody_out),
          unit_test(whoever_does_not_read_ends_with_the_endpoint),
          unit_test(each_time_has_its_limit), unit_test(whoever_does_not_read_is_let_go),
          unit_test(a_taken_port_is_told))
