/* What a server counts of its connections, and how long its threads wait. */
#include "net_test.h"

/* Over all threads. */
static struct net_figures figures_of(struct server_test *st, const char *listener)
{
    struct net_figures *v, sum = {0};
    int n = net_server_look(st->server, &v);
    assert_true(n >= 0);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < NET_COUNTS && strcmp(v[i].listener, listener) == 0; k++)
            sum.n[k] += v[i].n[k];
    free(v);
    return sum;
}

static void connections_and_bytes_count(void **state)
{
    struct server_test *st = server_new();
    st->limits.count = true;
    server_begin(st, 2);
    int a = client_connect(st), b = client_connect(st);
    client_round_trip(a, "efirst");
    client_round_trip(b, "esecond");
    client_round_trip(b, "ethird");
    struct net_figures f = figures_of(st, "PLAINTEXT");
    assert_int_equal(f.n[NET_OPENED], 2);
    assert_int_equal(f.n[NET_CLOSED], 0);
    assert_int_equal(f.n[NET_REQUESTS], 3);
    assert_int_equal(f.n[NET_BYTES_IN], 3 * 4 + 6 + 7 + 6);
    close(a);
    wait_until(st, st->closed == 1);
    f = figures_of(st, "PLAINTEXT");
    assert_int_equal(f.n[NET_CLOSED], 1);
    assert_int_equal(figures_of(st, "OTHER").n[NET_OPENED], 0);
    close(b);
    wait_until(st, st->closed == 2); /* what a client has may be counted a moment later */
    assert_int_equal(figures_of(st, "PLAINTEXT").n[NET_BYTES_OUT], 3 * 4 + 6 + 7 + 6);
    server_end(st);
}

static void nobody_counts_unless_asked(void **state)
{
    struct net_figures *v;
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    client_round_trip(fd, "e");
    assert_int_equal(net_server_look(st->server, &v), 0);
    assert_null(v);
    close(fd);
    server_end(st);
}

static void threads_that_wait_are_idle(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 2);
    assert_int_equal(reactor_pool_idle_ns(st->pool, 0), 0);
    reactor_pool_measure(st->pool);
    for (int i = 0; i < 2; i++)
        while (reactor_pool_idle_ns(st->pool, i) == 0) /* it gets there by itself */
            ;
    server_end(st);
}

static int64_t waited_ns; /* of the frame that came last; on the reactor, then read */

static void note_wait(void *arg, struct net_request *r)
{
    waited_ns = r->waited_ns;
    on_test_request(arg, r);
}

/* Frames that come together are handed over one after the other: the later waits for the first. */
static void later_frames_stand_in_line(void **state)
{
    struct server_test *st = server_new();
    st->handler.request = note_wait;
    assert_int_equal(reactor_pool_start(1, &st->pool), 0);
    reactor_pool_measure(st->pool);
    assert_int_equal(net_server_new(st->pool, &st->limits, &st->handler, &st->server), 0);
    assert_int_equal(net_server_listen(st->server, "PLAINTEXT", "127.0.0.1", 0, &st->port), 0);
    net_server_accept(st->server);
    int fd = client_connect(st);
    client_round_trip(fd, "e0");
    client_round_trip(fd, "e1");
    assert_true(waited_ns > 0);
    close(fd);
    server_end(st);
}

UNIT_MAIN(unit_test(connections_and_bytes_count), unit_test(nobody_counts_unless_asked),
          unit_test(threads_that_wait_are_idle), unit_test(later_frames_stand_in_line))
