/* Limits on new connections in a running server, and their change. */
#include "net_test.h"

#include <limits.h>
#include <math.h>

struct two_listeners {
    struct server_test *st;
    int client, broker; /* ports */
};

static struct two_listeners begin(void)
{
    struct two_listeners t = {.st = server_new()};
    struct server_test *st = t.st;
    assert_int_equal(reactor_pool_start(2, &st->pool), 0);
    assert_int_equal(net_server_new(st->pool, &st->limits, &st->handler, &st->server), 0);
    assert_int_equal(net_server_listen(st->server, "CLIENT", "127.0.0.1", 0, &t.client), 0);
    assert_int_equal(net_server_listen(st->server, "BROKER", "127.0.0.1", 0, &t.broker), 0);
    net_server_accept(st->server);
    return t;
}

static struct net_admission no_limits(void)
{
    return (struct net_admission){
        .max_connections = INT_MAX, .max_connections_per_ip = INT_MAX, .max_rate = INFINITY};
}

static int dial(int port)
{
    int fd = client_socket();
    assert_int_equal(client_dial(fd, port), 0);
    return fd;
}

static bool silent(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void one_listener_is_full_and_the_other_is_not(void **state)
{
    struct two_listeners t = begin();
    struct net_listener_limit own = {"CLIENT", 1, INFINITY};
    struct net_admission l = no_limits();
    l.listeners = &own;
    l.listeners_n = 1;
    assert_int_equal(net_server_set_admission(t.st->server, &l), 0);
    int first = dial(t.client), second = dial(t.client);
    client_round_trip(first, "e1");
    client_send_frame(second, "e2");
    int broker[2] = {dial(t.broker), dial(t.broker)};
    client_round_trip(broker[0], "e3");
    client_round_trip(broker[1], "e4");
    settle(t.st);
    assert_true(silent(second));
    l.listeners_n = 0; /* and now there is no limit */
    assert_int_equal(net_server_set_admission(t.st->server, &l), 0);
    client_expect(second, "e2");
    close(first);
    close(second);
    close(broker[0]);
    close(broker[1]);
    server_end(t.st);
}

static void a_full_listener_goes_on_when_one_of_its_own_closes(void **state)
{
    struct two_listeners t = begin();
    struct net_listener_limit own = {"CLIENT", 1, INFINITY};
    struct net_admission l = no_limits();
    l.listeners = &own;
    l.listeners_n = 1;
    assert_int_equal(net_server_set_admission(t.st->server, &l), 0);
    int fd[4];
    for (int i = 0; i < 4; i++) {
        fd[i] = dial(t.client);
        client_send_frame(fd[i], "e");
    }
    for (int i = 0; i < 4; i++) {
        client_expect(fd[i], "e");
        close(fd[i]);
    }
    server_end(t.st);
}

static void the_exempt_listener_makes_room_for_itself(void **state)
{
    struct two_listeners t = begin();
    struct net_admission l = no_limits();
    l.max_connections = 2;
    l.exempt_listener = "BROKER";
    assert_int_equal(net_server_set_admission(t.st->server, &l), 0);
    int idle = dial(t.client);
    client_round_trip(idle, "e");
    int other = dial(t.client);
    client_round_trip(other, "e");
    int broker = dial(t.broker);
    client_round_trip(broker, "eserved");
    wait_until(t.st, t.st->closed >= 1); /* one of each reactor may have had to go */
    settle(t.st);
    assert_int_equal(net_server_connections(t.st->server), 2);
    client_round_trip(broker, "estill there");
    int more = dial(t.broker), yet_more = dial(t.broker);
    client_round_trip(more, "e");
    client_round_trip(yet_more, "e"); /* nobody is left who could go: it goes beyond */
    client_expect_end(idle);
    client_expect_end(other);
    assert_int_equal(net_server_connections(t.st->server), 3);
    int waits = dial(t.client);
    client_send_frame(waits, "e");
    settle(t.st);
    assert_true(silent(waits));
    close(more);
    close(yet_more);
    client_expect(waits, "e");
    close(idle);
    close(other);
    close(broker);
    close(waits);
    server_end(t.st);
}

static void a_lower_limit_closes_those_idle_longest(void **state)
{
    struct two_listeners t = begin();
    int fd[6];
    for (int i = 0; i < 6; i++) {
        fd[i] = dial(t.client);
        client_round_trip(fd[i], "e");
    }
    struct net_admission l = no_limits();
    l.max_connections = 4;
    assert_int_equal(net_server_set_admission(t.st->server, &l), 0);
    wait_until(t.st, t.st->closed == 2);
    settle(t.st);
    assert_int_equal(net_server_connections(t.st->server), 4);
    client_round_trip(fd[5], "ethe youngest");
    for (int i = 0; i < 6; i++)
        close(fd[i]);
    server_end(t.st);
}

static void an_address_has_a_limit_of_its_own(void **state)
{
    struct two_listeners t = begin();
    struct net_ip_limit own = {.max = 1};
    struct net_admission l = no_limits();
    assert_int_equal(net_ip_of("127.0.0.1", &own.ip), 0);
    l.max_connections_per_ip = 100;
    l.ip_limits = &own;
    l.ip_limits_n = 1;
    assert_int_equal(net_server_set_admission(t.st->server, &l), 0);
    int first = dial(t.client);
    client_round_trip(first, "e");
    int second = dial(t.broker);
    client_expect_end(second);
    l.ip_limits_n = 0;
    assert_int_equal(net_server_set_admission(t.st->server, &l), 0);
    int third = dial(t.broker);
    client_round_trip(third, "e");
    close(first);
    close(second);
    close(third);
    server_end(t.st);
}

static void an_address_over_its_rate_is_closed_unread(void **state)
{
    struct two_listeners t = begin();
    struct in6_addr ip;
    assert_int_equal(net_ip_of("127.0.0.1", &ip), 0);
    assert_int_equal(net_server_set_ip_rate(t.st->server, &ip, 0), 0);
    int refused = dial(t.client);
    client_send_frame(refused, "e");
    client_expect_end(refused);
    assert_int_equal(net_server_connections(t.st->server), 0);
    assert_int_equal(net_server_set_ip_rate(t.st->server, &ip, INFINITY), 0);
    int served = dial(t.client);
    client_round_trip(served, "e");
    assert_int_equal(read_count(t.st, &t.st->opened), 1);
    close(refused);
    close(served);
    server_end(t.st);
}

/* None of them is closed early by a later one, and none is lost. */
static void stopping_closes_those_held_back(void **state)
{
    struct two_listeners t = begin();
    assert_int_equal(net_server_set_ip_rate(t.st->server, NULL, 0), 0);
    int fd[20];
    for (int i = 0; i < 20; i++)
        fd[i] = dial(t.client);
    settle(t.st);
    net_server_stop(t.st->server, 0);
    for (int i = 0; i < 20; i++) {
        client_expect_end(fd[i]);
        close(fd[i]);
    }
    server_end(t.st);
}

static void over_the_rate_the_rest_waits(void **state)
{
    struct server_test *st = server_new();
    st->limits.rate_samples = 2;
    st->limits.rate_sample_ms = 20;
    server_begin(st, 2);
    struct net_admission l = no_limits();
    l.max_rate = 100; /* two in 20 ms */
    assert_int_equal(net_server_set_admission(st->server, &l), 0);
    int fd[20];
    for (int i = 0; i < 20; i++) {
        fd[i] = client_connect(st);
        client_send_frame(fd[i], "e");
    }
    for (int i = 0; i < 20; i++) {
        client_expect(fd[i], "e");
        close(fd[i]);
    }
    server_end(st);
}

static void names_become_addresses(void **state)
{
    struct in6_addr a, b;
    assert_int_equal(net_ip_of("127.0.0.1", &a), 0);
    assert_int_equal(net_ip_of("::ffff:127.0.0.1", &b), 0);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_int_equal(net_ip_of("::1", &a), 0);
    assert_true(IN6_IS_ADDR_LOOPBACK(&a));
    assert_true(net_ip_of("no such host.", &a) < 0);
    assert_true(net_ip_of("", &a) < 0);
}

UNIT_MAIN(unit_test(one_listener_is_full_and_the_other_is_not),
          unit_test(a_full_listener_goes_on_when_one_of_its_own_closes),
          unit_test(the_exempt_listener_makes_room_for_itself),
          unit_test(a_lower_limit_closes_those_idle_longest),
          unit_test(an_address_has_a_limit_of_its_own),
          unit_test(an_address_over_its_rate_is_closed_unread),
          unit_test(stopping_closes_those_held_back), unit_test(over_the_rate_the_rest_waits),
          unit_test(names_become_addresses))
