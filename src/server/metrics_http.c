/* metrics_http.c - see metrics_http.h.
 *
 * A connection reads its head, sends, and leaves: it ends its side and takes what still comes, so
 * that the answer is not lost to a reset over unread input. Its one timer bounds each of these. */
#include "server/metrics_http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/logline.h"
#include "base/uv_executor.h"
#include "net/sock.h"
#include "server/http_request.h"

enum { HEAD_MS = 5000, SEND_MS = 60000, PIECE_MS = 5000, LEAVE_MS = 2000, BACKLOG = 16 };

struct metrics_http {
    struct metrics_http_options o;
    struct uv_executor *thread;
    uv_tcp_t listener;
    struct list conns; /* oldest first */
    int conns_n, pages_n;
    int fd;             /* until the loop has it */
    struct timer again; /* accepting failed for want of memory */
    struct task begin, end;
};

enum http_phase { PHASE_HEAD, PHASE_SENDING, PHASE_LEAVING };

struct http_conn {
    struct list link;
    struct metrics_http *h;
    uv_tcp_t tcp;
    struct timer timer;
    enum http_phase phase;
    size_t head_n;
    char head[HTTP_HEAD_MAX];
    /* the answer */
    void *page;       /* owned; NULL: none, or told to its end */
    int64_t until_ms; /* all of it must be taken; monotonic */
    bool chunked;
    bool ended;     /* its client's side */
    struct buf out; /* what is being written */
    char size[24];
    uv_write_t write;
    uv_shutdown_t shutdown;
};

static struct executor *executor_of(struct metrics_http *h)
{
    return uv_executor_ex(h->thread);
}

/* ---- the end of a connection ---- */

static void drop_page(struct http_conn *c)
{
    if (!c->page)
        return;
    c->h->o.end(c->page);
    c->page = NULL;
    c->h->pages_n--;
}

static void closed(uv_handle_t *handle)
{
    struct http_conn *c = handle->data;
    buf_free(&c->out);
    free(c);
}

/* Of one that is closing the loop may still tell what had come to its end before, also well. */
static bool is_closing(const struct http_conn *c)
{
    return uv_is_closing((const uv_handle_t *)&c->tcp);
}

static void close_conn(struct http_conn *c)
{
    if (is_closing(c))
        return;
    executor_timer_stop(executor_of(c->h), &c->timer);
    drop_page(c);
    list_remove(&c->link);
    c->h->conns_n--;
    uv_close((uv_handle_t *)&c->tcp, closed);
}

static void late(struct timer *t)
{
    close_conn(container_of(t, struct http_conn, timer));
}

static void allow(struct http_conn *c, int64_t ms)
{
    executor_timer_start(executor_of(c->h), &c->timer, ms);
}

/* Who takes nothing does not hold a page for as long as one who reads slowly. */
static void allow_piece(struct http_conn *c)
{
    int64_t left = c->until_ms - executor_now_ms(executor_of(c->h));
    int64_t piece = c->h->o.piece_ms;
    allow(c, left < 0 ? 0 : left < piece ? left : piece);
}

static void left(uv_shutdown_t *r, int status)
{
    struct http_conn *c = r->data;
    if (status != 0 || c->ended)
        close_conn(c);
}

static void leave(struct http_conn *c)
{
    c->phase = PHASE_LEAVING;
    allow(c, c->h->o.leave_ms);
    c->shutdown.data = c;
    if (uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, left) != 0)
        close_conn(c);
}

/* ---- sending ---- */

/* Another piece, or the end, when what went before is written. */
static void sent(uv_write_t *w, int status);

static void write_parts(struct http_conn *c, const uv_buf_t *parts, unsigned n)
{
    c->write.data = c;
    if (c->out.failed || uv_write(&c->write, (uv_stream_t *)&c->tcp, parts, n, sent) != 0)
        close_conn(c);
}

static void write_out(struct http_conn *c)
{
    uv_buf_t all = uv_buf_init((char *)c->out.p, (unsigned)c->out.len);
    write_parts(c, &all, 1);
}

static void write_chunk(struct http_conn *c, bool last)
{
    static char end_of_chunk[] = "\r\n", and_of_all[] = "\r\n0\r\n\r\n";
    bool empty = c->out.len == 0;
    int len = snprintf(c->size, sizeof(c->size), "%zx\r\n", c->out.len);
    uv_buf_t parts[] = {uv_buf_init(c->size, (unsigned)len),
                        uv_buf_init((char *)c->out.p, (unsigned)c->out.len),
                        last && !empty ? uv_buf_init(and_of_all, sizeof(and_of_all) - 1)
                                       : uv_buf_init(end_of_chunk, sizeof(end_of_chunk) - 1)};
    write_parts(c, parts, 3);
}

static void send_next(struct http_conn *c)
{
    bool more = true;
    allow_piece(c);
    c->out.len = 0;
    while (more && c->out.len == 0 && !c->out.failed)
        more = c->h->o.next(c->page, &c->out);
    if (!more)
        drop_page(c);
    if (c->chunked)
        write_chunk(c, !more); /* an empty one is the last by itself */
    else if (c->out.len > 0 || c->out.failed)
        write_out(c);
    else
        leave(c);
}

static void sent(uv_write_t *w, int status)
{
    struct http_conn *c = w->data;
    if (is_closing(c))
        return;
    if (status < 0)
        close_conn(c);
    else if (c->page)
        send_next(c);
    else
        leave(c);
}

static void put_head(struct http_conn *c, enum http_status s, const char *type)
{
    buf_printf(&c->out,
               "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\n"
               "Connection: close\r\n%s%s",
               (int)s, http_status_text(s), type,
               s == HTTP_METHOD_NOT_ALLOWED ? "Allow: GET, HEAD\r\n" : "",
               c->chunked ? "Transfer-Encoding: chunked\r\n" : "");
}

static void send_text(struct http_conn *c, enum http_status s, bool head_only)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "%s\n", s == HTTP_OK ? "ok" : http_status_text(s));
    put_head(c, s, "text/plain; charset=utf-8");
    buf_printf(&c->out, "Content-Length: %d\r\n\r\n%s", len, head_only ? "" : text);
    write_out(c);
}

static void send_page(struct http_conn *c, int minor, bool head_only)
{
    if (!head_only && c->h->pages_n < METRICS_HTTP_PAGES)
        c->page = c->h->o.begin(c->h->o.arg);
    if (!head_only && !c->page) {
        send_text(c, HTTP_UNAVAILABLE, false);
        return;
    }
    c->h->pages_n += c->page != NULL;
    c->chunked = c->page && minor > 0;
    put_head(c, HTTP_OK, "text/plain; version=0.0.4; charset=utf-8");
    buf_printf(&c->out, "\r\n");
    write_out(c);
}

static void answer(struct http_conn *c, enum http_status s, const struct http_request *r)
{
    c->phase = PHASE_SENDING;
    c->until_ms = executor_now_ms(executor_of(c->h)) + c->h->o.send_ms;
    allow_piece(c);
    bool head = s == HTTP_OK && str_eqz(r->method, "HEAD");
    bool metrics = s == HTTP_OK && str_eqz(r->path, "/metrics");
    if (s == HTTP_OK && !metrics && !str_eqz(r->path, "/health"))
        s = HTTP_NOT_FOUND;
    else if (s == HTTP_OK && !head && !str_eqz(r->method, "GET"))
        s = HTTP_METHOD_NOT_ALLOWED;
    if (s == HTTP_OK && metrics)
        send_page(c, r->minor, head);
    else
        send_text(c, s, head);
}

/* ---- reading ---- */

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct http_conn *c = handle->data;
    (void)suggested;
    if (c->phase != PHASE_HEAD) /* what comes behind the head is nobody's */
        c->head_n = 0;
    *out = uv_buf_init(c->head + c->head_n, (unsigned)(sizeof(c->head) - c->head_n));
}

static void got(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct http_conn *c = stream->data;
    struct http_request r;
    (void)buf;
    c->ended |= n == UV_EOF;
    if (n < 0 && (n != UV_EOF || c->phase != PHASE_SENDING))
        close_conn(c);
    if (n <= 0 || c->phase != PHASE_HEAD)
        return;
    c->head_n += (size_t)n;
    enum http_status s = http_request_parse(c->head, c->head_n, &r);
    if (s != HTTP_MORE)
        answer(c, s, &r);
}

/* ---- new connections ---- */

static struct http_conn *longest_without_head(struct metrics_http *h)
{
    list_each (l, &h->conns) {
        struct http_conn *c = container_of(l, struct http_conn, link);
        if (c->phase != PHASE_SENDING)
            return c;
    }
    return NULL;
}

static void came(uv_stream_t *listener, int status)
{
    struct metrics_http *h = listener->data;
    struct http_conn *c = status == 0 ? calloc(1, sizeof(*c)) : NULL;
    if (status == 0 && !c)
        executor_timer_start(executor_of(h), &h->again, h->o.leave_ms);
    if (!c)
        return;
    c->h = h;
    timer_init(&c->timer, late);
    uv_tcp_init(listener->loop, &c->tcp);
    c->tcp.data = c;
    h->conns_n++;
    list_push_back(&h->conns, &c->link);
    bool good = uv_accept(listener, (uv_stream_t *)&c->tcp) == 0;
    if (good && h->conns_n > METRICS_HTTP_CONNECTIONS)
        close_conn(longest_without_head(h)); /* c itself, if all others are being answered */
    if (is_closing(c))
        return;
    allow(c, h->o.head_ms);
    if (!good || uv_read_start((uv_stream_t *)&c->tcp, give_room, got) != 0)
        close_conn(c);
}

static void accept_again(struct timer *t)
{
    struct metrics_http *h = container_of(t, struct metrics_http, again);
    came((uv_stream_t *)&h->listener, 0);
}

/* ---- life ---- */

static void begin(struct task *t)
{
    struct metrics_http *h = container_of(t, struct metrics_http, begin);
    uv_tcp_init(uv_executor_loop(h->thread), &h->listener);
    h->listener.data = h;
    if (uv_tcp_open(&h->listener, h->fd) != 0)
        close(h->fd);
    else if (uv_listen((uv_stream_t *)&h->listener, BACKLOG, came) != 0)
        say_error("metrics", "cannot listen");
}

static void end(struct task *t)
{
    struct metrics_http *h = container_of(t, struct metrics_http, end);
    executor_timer_stop(executor_of(h), &h->again);
    while (!list_empty(&h->conns))
        close_conn(container_of(h->conns.next, struct http_conn, link));
    uv_close((uv_handle_t *)&h->listener, NULL);
}

int metrics_http_start(const struct metrics_http_options *o, struct metrics_http **out, int *port)
{
    struct metrics_http *h = calloc(1, sizeof(*h));
    *out = NULL;
    if (!h)
        return -ENOMEM;
    h->o = *o;
    h->o.head_ms = o->head_ms ? o->head_ms : HEAD_MS;
    h->o.send_ms = o->send_ms ? o->send_ms : SEND_MS;
    h->o.piece_ms = o->piece_ms ? o->piece_ms : PIECE_MS;
    h->o.leave_ms = o->leave_ms ? o->leave_ms : LEAVE_MS;
    list_init(&h->conns);
    h->fd = sock_listen(o->host, o->port, BACKLOG, -1);
    int rc = h->fd < 0 ? h->fd : uv_executor_start("metrics", &h->thread);
    if (rc) {
        if (h->fd >= 0)
            close(h->fd);
        free(h);
        return rc;
    }
    *port = sock_bound_port(h->fd);
    timer_init(&h->again, accept_again);
    task_init(&h->begin, begin);
    executor_post(executor_of(h), &h->begin);
    *out = h;
    return 0;
}

void metrics_http_stop(struct metrics_http *h)
{
    if (!h)
        return;
    task_init(&h->end, end);
    executor_post(executor_of(h), &h->end);
    uv_executor_stop(h->thread);
    free(h);
}
