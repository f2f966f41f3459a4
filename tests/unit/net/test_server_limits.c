/* Limits on connections: idle ones, per address, over all, and the process's descriptors. */
#include "net_test.h"

#include <poll.h>
#include <sys/resource.h>

#include "net/sock.h"

static void idle_connections_close_and_waiting_ones_do_not(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_idle_ms = 30;
    server_begin(st, 1);
    int waiting = client_connect(st);
    client_send_frame(waiting, "l");
    wait_until(st, st->kept_n == 1);
    for (int i = 0; i < 4; i++) { /* four idle lives one after another: the other waits longer */
        int fd = client_connect(st);
        client_round_trip(fd, "e");
        client_expect_end(fd);
        close(fd);
    }
    assert_int_equal(read_count(st, &st->aborted), 0);
    finish_kept(st, 0, "still there");
    client_expect(waiting, "still there");
    client_expect_end(waiting); /* and now it is idle, too */
    close(waiting);
    server_end(st);
}

static void no_progress_is_idle(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_idle_ms = 30;
    server_begin(st, 1);
    int silent = client_connect(st), half = client_connect(st), muted = client_connect(st),
        never_reads = client_connect(st);
    client_send(half, "\0\0\0\x64half", 8);
    client_send_frame(muted, "m600000");
    client_send_frame(never_reads, "b50000000");
    wait_until(st, st->closed == 4);
    close(silent);
    close(half);
    close(muted);
    close(never_reads);
    server_end(st);
}

static char first_closed[64];

static void note_first_closed(void *arg, struct conn *c)
{
    if (!*first_closed)
        snprintf(first_closed, sizeof(first_closed), "%s", conn_peer(c));
    on_test_closed(arg, c);
}

static void traffic_makes_a_connection_younger(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_idle_ms = 100;
    st->handler.closed = note_first_closed;
    server_begin(st, 1);
    int old = client_connect(st);
    client_round_trip(old, "e");
    int young = client_connect(st);
    client_round_trip(young, "e");
    client_round_trip(old, "emoves to the young end");
    struct sockaddr_storage a;
    socklen_t n = sizeof(a);
    char host[SOCK_HOST_MAX], name[SOCK_NAME_MAX];
    assert_int_equal(getsockname(young, (struct sockaddr *)&a, &n), 0);
    sock_text(&a, host, name);
    wait_until(st, st->closed == 2);
    assert_string_equal(first_closed, name);
    close(old);
    close(young);
    server_end(st);
}

static void one_address_has_its_limit(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_connections_per_ip = 2;
    server_begin(st, 2);
    int a = client_connect(st), b = client_connect(st);
    client_round_trip(a, "ea");
    client_round_trip(b, "eb");
    for (int i = 0; i < 3; i++) {
        int c = client_connect(st);
        client_expect_end(c);
        close(c);
    }
    wait_until(st, log_lines(st, "max.connections.per.ip") == 3);
    assert_int_equal(net_server_connections(st->server), 2);
    close(a);
    wait_until(st, st->closed == 1);
    int d = client_connect(st);
    client_round_trip(d, "ed");
    close(b);
    close(d);
    server_end(st);
}

static void over_all_the_rest_waits_for_a_slot(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_connections = 2;
    assert_int_equal(reactor_pool_start(2, &st->pool), 0);
    assert_int_equal(net_server_new(st->pool, &st->limits, &st->handler, &st->server), 0);
    int port[2];
    assert_int_equal(net_server_listen(st->server, "A", "127.0.0.1", 0, &port[0]), 0);
    assert_int_equal(net_server_listen(st->server, "B", "127.0.0.1", 0, &port[1]), 0);
    net_server_accept(st->server);
    int fd[8];
    for (int i = 0; i < 8; i++) { /* by both listeners */
        fd[i] = client_socket();
        assert_int_equal(client_dial(fd[i], port[i % 2]), 0);
        client_send_frame(fd[i], "e");
    }
    for (int served = 0; served < 8;
         served++) { /* each gets its turn when one before it has gone */
        struct pollfd p[8];
        for (int i = 0; i < 8; i++)
            p[i] = (struct pollfd){fd[i], POLLIN, 0};
        assert_true(poll(p, 8, WAIT_S * 1000) > 0);
        int i = 0;
        while (!p[i].revents)
            i++;
        client_expect(fd[i], "e");
        settle(st);
        assert_true(net_server_connections(st->server) <= 2);
        close(fd[i]);
        fd[i] = -1;
    }
    wait_until(st, st->closed == 8);
    assert_int_equal(st->opened, 8);
    server_end(st);
}

/* Without free descriptors: the client that waits is let go, with one line however many they are,
 * and when there are descriptors again, clients are served. */
static void out_of_descriptors(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int before = client_connect(st);
    client_round_trip(before, "e");
    int refused[3], later = client_socket();
    for (int i = 0; i < 3; i++)
        refused[i] = client_socket();
    int first_free = dup(0);
    close(first_free);
    struct rlimit old, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){(rlim_t)first_free, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(client_dial(refused[i], st->port), 0);
        client_expect_end(refused[i]);
    }
    client_round_trip(before, "eundisturbed");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(client_dial(later, st->port), 0);
    client_round_trip(later, "eserved");
    assert_int_equal(log_lines(st, "cannot accept connections"), 1);
    for (int i = 0; i < 3; i++)
        close(refused[i]);
    close(before);
    close(later);
    server_end(st);
}

static void many_connections_come_and_go(void **state)
{
    struct server_test *st = server_new();
    st->limits.backlog = 128;
    server_begin(st, 2);
    enum { CONNECTIONS = 400 };
    int fd[CONNECTIONS];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CONNECTIONS; i++)
            fd[i] = client_connect(st);
        for (int i = 0; i < CONNECTIONS; i++)
            client_round_trip(fd[i], "e");
        assert_int_equal(net_server_connections(st->server), CONNECTIONS);
        for (int i = 0; i < CONNECTIONS; i++)
            close(fd[i]);
        wait_until(st, st->closed == (round + 1) * CONNECTIONS);
    }
    assert_int_equal(net_server_connections(st->server), 0);
    server_end(st);
}

UNIT_MAIN(unit_test(idle_connections_close_and_waiting_ones_do_not), unit_test(no_progress_is_idle),
          unit_test(traffic_makes_a_connection_younger), unit_test(one_address_has_its_limit),
          unit_test(over_all_the_rest_waits_for_a_slot), unit_test(out_of_descriptors),
          unit_test(many_connections_come_and_go))
