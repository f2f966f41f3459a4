/* net_test.h - a real server on 127.0.0.1 with a handler that does what frames say, blocking
 * clients, and ways to wait for what happens instead of sleeping.
 *
 * FRAMES  e...       answered at once with itself       n...  no answer
 *         l...       kept for the test to finish        c     closes the connection
 *         m<ms>      mutes, answered with itself        b<n>  answered with n bytes 'b'
 *         f<pos>,<n> answered with a range of st->file
 *
 * Every wait gives up after WAIT_S seconds, which fails the test. */
#ifndef TESTS_NET_TEST_H
#define TESTS_NET_TEST_H

#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/logline.h"
#include "net/server_conn.h"

enum { WAIT_S = 60, KEPT_MAX = 256 };

struct server_test {
    struct reactor_pool *pool;
    struct net_server *server;
    struct net_limits limits;
    struct conn_handler handler;
    int port;
    struct file *file; /* for f */
    bool refuse_new;   /* what `opened` says */
    /* under lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct net_request *kept[KEPT_MAX]; /* of l, in order of arrival; stay here when finished */
    int kept_n;
    int requests, opened, closed, aborted, hurried;
    char log[16384]; /* lines */
};

static inline void lock_and_count(struct server_test *st, int *what)
{
    pthread_mutex_lock(&st->lock);
    (*what)++;
    pthread_cond_broadcast(&st->changed);
    pthread_mutex_unlock(&st->lock);
}

static inline bool timed_wait(struct server_test *st, time_t until)
{
    struct timespec t = {until, 0};
    return pthread_cond_timedwait(&st->changed, &st->lock, &t) == 0;
}

/* Waits (with the lock) until the condition on st holds. */
#define wait_until(st, condition)                       \
    do {                                                \
        time_t until_ = time(NULL) + WAIT_S;            \
        pthread_mutex_lock(&(st)->lock);                \
        while (!(condition) && timed_wait(st, until_))  \
            ;                                           \
        bool holds_ = (condition);                      \
        pthread_mutex_unlock(&(st)->lock);              \
        if (!holds_)                                    \
            fail_msg("waited in vain for " #condition); \
    } while (0)

static inline int read_count(struct server_test *st, const int *what)
{
    pthread_mutex_lock(&st->lock);
    int n = *what;
    pthread_mutex_unlock(&st->lock);
    return n;
}

/* ---- the handler ---- */

static inline void answer_bytes(struct net_request *r, const void *p, size_t n)
{
    struct writer w = WRITER_INIT;
    struct chain c;
    chain_init(&c);
    buf_put(&w.buf, p, n);
    assert_int_equal(chain_add_writer(&c, &w, true), 0);
    net_request_answer(r, &c);
}

static inline void answer_fill(struct net_request *r, size_t n)
{
    char *p = malloc(n);
    memset(p, 'b', n);
    answer_bytes(r, p, n);
    free(p);
}

static inline void answer_file(struct server_test *st, struct net_request *r, long pos, long n)
{
    struct buf head = BUF_INIT;
    struct chain c;
    chain_init(&c);
    buf_put_i32(&head, (int32_t)n);
    assert_int_equal(chain_add_buf(&c, &head), 0);
    assert_int_equal(chain_add_file(&c, st->file, pos, (uint64_t)n), 0);
    net_request_answer(r, &c);
}

static inline void on_test_aborted(struct net_request *r)
{
    struct server_test *st = r->user;
    lock_and_count(st, &st->aborted);
}

static inline void on_test_hurried(struct net_request *r)
{
    struct server_test *st = r->user;
    lock_and_count(st, &st->hurried);
}

static inline void keep(struct server_test *st, struct net_request *r)
{
    r->user = st;
    r->aborted = on_test_aborted;
    r->hurried = on_test_hurried;
    pthread_mutex_lock(&st->lock);
    if (st->kept_n < KEPT_MAX)
        st->kept[st->kept_n++] = r;
    pthread_cond_broadcast(&st->changed);
    pthread_mutex_unlock(&st->lock);
}

static inline void on_test_request(void *arg, struct net_request *r)
{
    struct server_test *st = arg;
    char text[64];
    snprintf(text, sizeof(text), "%.*s", (int)r->frame_len, (char *)r->frame);
    lock_and_count(st, &st->requests);
    char *rest;
    long n = strtol(text + (*text != 0), &rest, 10);
    switch (*text) {
    case 'l':
        keep(st, r);
        break;
    case 'n':
        net_request_no_answer(r);
        break;
    case 'c':
        net_request_close_conn(r, "asked to, by %s", text);
        break;
    case 'm':
        conn_mute_for(r->conn, n);
        answer_bytes(r, r->frame, r->frame_len);
        break;
    case 'b':
        answer_fill(r, (size_t)n);
        break;
    case 'f':
        answer_file(st, r, n, strtol(rest + 1, NULL, 10));
        break;
    default:
        answer_bytes(r, r->frame, r->frame_len);
    }
}

static inline bool on_test_opened(void *arg, struct conn *c)
{
    struct server_test *st = arg;
    lock_and_count(st, &st->opened);
    return !st->refuse_new;
}

static inline void on_test_closed(void *arg, struct conn *c)
{
    struct server_test *st = arg;
    lock_and_count(st, &st->closed);
}

static inline void on_test_line(enum logline_level level, const char *line, void *arg)
{
    struct server_test *st = arg;
    pthread_mutex_lock(&st->lock);
    size_t n = strlen(st->log);
    snprintf(st->log + n, sizeof(st->log) - n, "%s\n", line);
    pthread_cond_broadcast(&st->changed);
    pthread_mutex_unlock(&st->lock);
}

static inline int log_lines(struct server_test *st, const char *text)
{
    int n = 0;
    for (const char *at = st->log; (at = strstr(at, text)); at++)
        n++;
    return n;
}

/* ---- the server ---- */

/* Fill in st->limits (starting from net_limits_default) before server_begin. */
static inline struct server_test *server_new(void)
{
    struct server_test *st = calloc(1, sizeof(*st));
    st->limits = net_limits_default();
    st->handler = (struct conn_handler){on_test_opened, on_test_request, on_test_closed, .arg = st};
    pthread_mutex_init(&st->lock, NULL);
    pthread_cond_init(&st->changed, NULL);
    logline_set_sink(on_test_line, st);
    return st;
}

static inline void server_begin(struct server_test *st, int reactors)
{
    assert_int_equal(reactor_pool_start(reactors, &st->pool), 0);
    assert_int_equal(net_server_new(st->pool, &st->limits, &st->handler, &st->server), 0);
    assert_int_equal(net_server_listen(st->server, "PLAINTEXT", "127.0.0.1", 0, &st->port), 0);
    net_server_accept(st->server);
}

static inline void server_end(struct server_test *st)
{
    net_server_free(st->server);
    reactor_pool_stop(st->pool);
    logline_set_sink(NULL, NULL);
    pthread_cond_destroy(&st->changed);
    pthread_mutex_destroy(&st->lock);
    free(st);
}

/* Runs fn on an executor and waits until it has run. */
struct call {
    struct task task;
    void (*fn)(void *arg);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
};

static inline void on_call(struct task *t)
{
    struct call *call = container_of(t, struct call, task);
    call->fn(call->arg);
    pthread_mutex_lock(&call->lock);
    call->done = true;
    pthread_cond_signal(&call->cond);
    pthread_mutex_unlock(&call->lock);
}

static inline void call_on(struct executor *ex, void (*fn)(void *arg), void *arg)
{
    struct call call = {.fn = fn, .arg = arg};
    pthread_mutex_init(&call.lock, NULL);
    pthread_cond_init(&call.cond, NULL);
    task_init(&call.task, on_call);
    executor_post(ex, &call.task);
    pthread_mutex_lock(&call.lock);
    while (!call.done)
        pthread_cond_wait(&call.cond, &call.lock);
    pthread_mutex_unlock(&call.lock);
    pthread_cond_destroy(&call.cond);
    pthread_mutex_destroy(&call.lock);
}

static inline void do_nothing(void *arg)
{
}

/* When this returns every reactor has dealt with what lay in its sockets before: each round is at
 * least one more turn of its loop. */
static inline void settle(struct server_test *st)
{
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < reactor_pool_size(st->pool); i++)
            call_on(reactor_executor(reactor_pool_at(st->pool, i)), do_nothing, NULL);
}

struct finish_call {
    struct net_request *r;
    const char *text; /* NULL: no answer */
};

static inline void on_finish_call(void *arg)
{
    struct finish_call *f = arg;
    if (f->text)
        answer_bytes(f->r, f->text, strlen(f->text));
    else
        net_request_no_answer(f->r);
}

/* Finishes kept request i, on its reactor. */
static inline void finish_kept(struct server_test *st, int i, const char *text)
{
    pthread_mutex_lock(&st->lock);
    struct finish_call f = {st->kept[i], text};
    pthread_mutex_unlock(&st->lock);
    call_on(conn_executor(f.r->conn), on_finish_call, &f);
}

/* ---- clients ---- */

static inline int client_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct timeval t = {WAIT_S, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
    return fd;
}

static inline int client_dial(int fd, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
}

static inline int client_connect(struct server_test *st)
{
    int fd = client_socket();
    assert_int_equal(client_dial(fd, st->port), 0);
    return fd;
}

static inline void client_send(int fd, const void *p, size_t n)
{
    const uint8_t *at = p;
    while (n > 0) {
        ssize_t r = send(fd, at, n, MSG_NOSIGNAL);
        assert_true(r > 0);
        at += r;
        n -= (size_t)r;
    }
}

static inline void client_send_frame_n(int fd, const void *p, uint32_t n)
{
    uint8_t *all = malloc(4 + n);
    put_be32(all, n);
    memcpy(all + 4, p, n);
    client_send(fd, all, 4 + n);
    free(all);
}

static inline void client_send_frame(int fd, const char *text)
{
    client_send_frame_n(fd, text, (uint32_t)strlen(text));
}

static inline void client_recv(int fd, void *p, size_t n)
{
    uint8_t *at = p;
    while (n > 0) {
        ssize_t r = recv(fd, at, n, 0);
        if (r <= 0)
            fail_msg("expected %zu more bytes, got %zd (%s)", n, r, r ? strerror(errno) : "end");
        at += r;
        n -= (size_t)r;
    }
}

/* The next frame's body; owned. */
static inline uint8_t *client_recv_frame(int fd, uint32_t *n)
{
    uint8_t head[4];
    client_recv(fd, head, 4);
    *n = get_be32(head);
    uint8_t *p = malloc(*n + 1);
    client_recv(fd, p, *n);
    p[*n] = 0;
    return p;
}

static inline void client_expect(int fd, const char *text)
{
    uint32_t n;
    uint8_t *p = client_recv_frame(fd, &n);
    assert_string_equal((char *)p, text);
    free(p);
}

/* Closes with a reset, as one does that has not read its answers. */
static inline void client_break(int fd)
{
    struct linger l = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
    close(fd);
}

/* The server closed; a reset counts, data does not. */
static inline void client_expect_end(int fd)
{
    char byte;
    ssize_t r = recv(fd, &byte, 1, 0);
    if (r != 0 && !(r < 0 && errno == ECONNRESET))
        fail_msg("expected the end, got %zd (%s)", r, r < 0 ? strerror(errno) : "data");
}

static inline void client_round_trip(int fd, const char *text)
{
    client_send_frame(fd, text);
    client_expect(fd, text);
}

#endif
