/* Listening on names, numbers and everything; addresses as text; counts per address. */
#include "net_test.h"

#include <netinet/in.h>

#include "net/ip_count.h"
#include "net/sock.h"

static int dial_v6(int port)
{
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 a = {.sin6_family = AF_INET6,
                             .sin6_port = htons((uint16_t)port),
                             .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool has_ipv6(void)
{
    int l = sock_listen("::1", 0, 5, -1);
    if (l >= 0)
        close(l);
    return l >= 0;
}

static void all_interfaces_take_both_families(void **state)
{
    static const char *const hosts[] = {"", "0.0.0.0"};
    for (int i = 0; i < 2; i++) {
        int l = sock_listen(hosts[i], 0, 5, -1);
        assert_true(l >= 0);
        int port = sock_bound_port(l);
        assert_true(port > 0);
        int fd = client_socket();
        assert_int_equal(client_dial(fd, port), 0);
        close(fd);
        if (has_ipv6()) {
            fd = dial_v6(port);
            assert_true(fd >= 0);
            close(fd);
        }
        close(l);
    }
}

static void names_and_numbers(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "127.0.0.5"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        int l = sock_listen(hosts[i], 0, 5, 50000);
        assert_true(l >= 0);
        close(l);
    }
    assert_true(sock_listen("no host name", 0, 5, -1) < 0);
    assert_int_equal(sock_listen("192.0.2.1", 0, 5, -1), -EADDRNOTAVAIL);
}

static void a_taken_port_is_told(void **state)
{
    int l = sock_listen("127.0.0.1", 0, 5, -1);
    assert_int_equal(sock_listen("127.0.0.1", sock_bound_port(l), 5, -1), -EADDRINUSE);
    assert_int_equal(sock_listen("", sock_bound_port(l), 5, -1), -EADDRINUSE);
    /* the same port on another address is fine (C109) */
    int other = sock_listen("127.0.0.2", sock_bound_port(l), 5, -1);
    assert_true(other >= 0);
    close(other);
    close(l);
}

static void expect_text(const char *numeric, int port, const char *host, const char *name)
{
    struct sockaddr_storage a = {0};
    char got_host[SOCK_HOST_MAX], got_name[SOCK_NAME_MAX];
    struct sockaddr_in *four = (void *)&a;
    struct sockaddr_in6 *six = (void *)&a;
    if (inet_pton(AF_INET, numeric, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
    } else {
        assert_int_equal(inet_pton(AF_INET6, numeric, &six->sin6_addr), 1);
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)port);
    }
    sock_text(&a, got_host, got_name);
    assert_string_equal(got_host, host);
    assert_string_equal(got_name, name);
    assert_int_equal(sock_port(&a), port);
}

static void addresses_as_text(void **state)
{
    expect_text("10.1.2.3", 9092, "10.1.2.3", "10.1.2.3:9092");
    expect_text("::ffff:10.1.2.3", 65535, "10.1.2.3", "10.1.2.3:65535");
    expect_text("::1", 1, "::1", "[::1]:1");
    expect_text("2001:db8:1111:2222:3333:4444:5555:6666", 65535,
                "2001:db8:1111:2222:3333:4444:5555:6666",
                "[2001:db8:1111:2222:3333:4444:5555:6666]:65535");
}

static void counts_per_address(void **state)
{
    struct ip_count ips;
    ip_count_init(&ips);
    struct in6_addr a = {.s6_addr = {1}}, b = {.s6_addr = {2}};
    assert_true(ip_count_add(&ips, &a, 2));
    assert_true(ip_count_add(&ips, &a, 2));
    assert_false(ip_count_add(&ips, &a, 2));
    assert_true(ip_count_add(&ips, &b, 2));
    assert_false(ip_count_add(&ips, &b, 0));
    ip_count_drop(&ips, &a);
    assert_true(ip_count_add(&ips, &a, 2));
    ip_count_drop(&ips, &a);
    ip_count_drop(&ips, &a);
    ip_count_drop(&ips, &b);
    assert_int_equal(ips.by_ip.n, 0); /* an address without connections costs nothing */
    assert_false(ip_count_add(&ips, &a, 0));
    assert_int_equal(ips.by_ip.n, 0);
    ip_count_free(&ips);
}

/* Two listeners, each connection knows its own. */
static void tell_listener(void *arg, struct net_request *r)
{
    const char *name = conn_listener_name(r->conn);
    answer_bytes(r, name, strlen(name));
}

static void connections_know_their_listener(void **state)
{
    struct server_test *st = server_new();
    st->handler.request = tell_listener;
    assert_int_equal(reactor_pool_start(2, &st->pool), 0);
    assert_int_equal(net_server_new(st->pool, &st->limits, &st->handler, &st->server), 0);
    int port[2];
    assert_int_equal(net_server_listen(st->server, "INSIDE", "127.0.0.1", 0, &port[0]), 0);
    assert_int_equal(net_server_listen(st->server, "OUTSIDE", "", 0, &port[1]), 0);
    int taken;
    assert_int_equal(net_server_listen(st->server, "C", "127.0.0.1", port[0], &taken), -EADDRINUSE);
    net_server_accept(st->server);
    for (int i = 0; i < 2; i++) {
        int fd = client_socket();
        assert_int_equal(client_dial(fd, port[i]), 0);
        client_send_frame(fd, "?");
        client_expect(fd, i ? "OUTSIDE" : "INSIDE");
        close(fd);
    }
    server_end(st);
}

UNIT_MAIN(unit_test(all_interfaces_take_both_families), unit_test(names_and_numbers),
          unit_test(a_taken_port_is_told), unit_test(addresses_as_text),
          unit_test(counts_per_address), unit_test(connections_know_their_listener))
