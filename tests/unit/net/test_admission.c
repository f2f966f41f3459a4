/* Which new connections are let in: decided on numbers, without sockets. */
#include "net/admission.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "unit.h"

static struct admission a;
static struct admission_listener *client, *broker;

static int setup(void **state)
{
    struct net_limits l = net_limits_default();
    admission_init(&a, &l);
    client = admission_listener_new(&a, "CLIENT");
    broker = admission_listener_new(&a, "BROKER");
    return client && broker ? 0 : -1;
}

static int teardown(void **state)
{
    admission_free(&a);
    return 0;
}

static struct net_admission no_limits(void)
{
    return (struct net_admission){
        .max_connections = INT_MAX, .max_connections_per_ip = INT_MAX, .max_rate = INFINITY};
}

static struct in6_addr ip(int n)
{
    struct in6_addr at = IN6ADDR_LOOPBACK_INIT;
    at.s6_addr[14] = (uint8_t)(n >> 8);
    at.s6_addr[13] = (uint8_t)n;
    return at;
}

static void without_limits_all_come_in(void **state)
{
    struct in6_addr at = ip(1);
    assert_true(admission_slot_free(&a, client, 1000000, 1000000));
    assert_false(admission_exceeded(&a, 1000000));
    assert_int_equal(admission_max_per_ip(&a, &at), INT_MAX);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(admission_new_ms(&a, client, 0), 0);
        assert_int_equal(admission_ip_ms(&a, &at, 0), 0);
    }
    assert_int_equal(admission_ips_seen(&a), 0);
}

static void numbers_over_all_and_of_one_listener(void **state)
{
    struct net_listener_limit own = {"CLIENT", 3, INFINITY};
    struct net_admission l = no_limits();
    l.max_connections = 10;
    l.listeners = &own;
    l.listeners_n = 1;
    assert_int_equal(admission_set(&a, &l), 0);
    assert_true(admission_slot_free(&a, client, 2, 9));
    assert_false(admission_slot_free(&a, client, 3, 3));
    assert_true(admission_slot_free(&a, broker, 9, 9));
    assert_false(admission_slot_free(&a, broker, 0, 10));
    assert_false(admission_exceeded(&a, 10));
    assert_true(admission_exceeded(&a, 11));
    l.listeners_n = 0; /* and without the listener's own again */
    assert_int_equal(admission_set(&a, &l), 0);
    assert_true(admission_slot_free(&a, client, 9, 9));
}

static void the_exempt_listener_is_held_back_by_its_own_limits_only(void **state)
{
    struct net_listener_limit own = {"BROKER", 5, INFINITY};
    struct net_admission l = no_limits();
    l.max_connections = 2;
    l.max_rate = 0.1;
    l.exempt_listener = "BROKER";
    l.listeners = &own;
    l.listeners_n = 1;
    assert_int_equal(admission_set(&a, &l), 0);
    assert_true(admission_slot_free(&a, broker, 4, 400));
    assert_false(admission_slot_free(&a, broker, 5, 5));
    assert_false(admission_slot_free(&a, client, 0, 2));
    assert_true(admission_exempt(&a, broker));
    assert_false(admission_exempt(&a, client));
    for (int i = 0; i < 50; i++)
        assert_int_equal(admission_new_ms(&a, broker, 0), 0);
    assert_int_equal(admission_new_ms(&a, client, 0), 0);
    assert_true(admission_new_ms(&a, client, 0) > 0);
}

static void addresses_have_limits_of_their_own(void **state)
{
    struct net_ip_limit own[50];
    struct net_admission l = no_limits();
    for (int i = 0; i < 50; i++)
        own[i] = (struct net_ip_limit){ip(i * 37 % 50), i * 37 % 50};
    l.max_connections_per_ip = 100;
    l.ip_limits = own;
    l.ip_limits_n = 50;
    assert_int_equal(admission_set(&a, &l), 0);
    for (int i = 0; i < 60; i++) {
        struct in6_addr at = ip(i);
        assert_int_equal(admission_max_per_ip(&a, &at), i < 50 ? i : 100);
    }
}

/* Ten a second: a hundred may come at once, then each waits until there is room, a sample at most.
 */
static void rates_hold_the_acceptor_back(void **state)
{
    struct net_listener_limit own = {"CLIENT", INT_MAX, 10};
    struct net_admission l = no_limits();
    l.listeners = &own;
    l.listeners_n = 1;
    assert_int_equal(admission_set(&a, &l), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(admission_new_ms(&a, client, 0), 0);
    assert_int_equal(admission_new_ms(&a, client, 0), 100);
    for (int i = 0; i < 50; i++)
        admission_new_ms(&a, client, 0);
    assert_int_equal(admission_new_ms(&a, client, 0), 1000);
    assert_int_equal(admission_new_ms(&a, broker, 0), 0);
    assert_int_equal(admission_new_ms(&a, client, 11000), 0);
}

static void the_rate_over_all_counts_every_listener(void **state)
{
    struct net_admission l = no_limits();
    l.max_rate = 10;
    assert_int_equal(admission_set(&a, &l), 0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(admission_new_ms(&a, client, 0), 0);
        assert_int_equal(admission_new_ms(&a, broker, 0), 0);
    }
    assert_true(admission_new_ms(&a, client, 0) > 0);
}

/* Refused ones do not count: who goes on trying is not shut out for ever. */
static void addresses_are_held_back_by_rate(void **state)
{
    struct in6_addr one = ip(1), two = ip(2), three = ip(3);
    assert_int_equal(admission_set_ip_rate(&a, NULL, 1), 0);
    assert_int_equal(admission_set_ip_rate(&a, &two, 2), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(admission_ip_ms(&a, &one, 0), 0);
    for (int i = 0; i < 1000; i++)
        assert_in_range(admission_ip_ms(&a, &one, i), 1, 1000);
    for (int i = 0; i < 20; i++)
        assert_int_equal(admission_ip_ms(&a, &two, 0), 0);
    assert_true(admission_ip_ms(&a, &two, 0) > 0);
    assert_int_equal(admission_ip_ms(&a, &three, 0), 0);
    assert_int_equal(admission_ip_ms(&a, &one, 12000), 0);
    assert_int_equal(admission_set_ip_rate(&a, &two, INFINITY), 0); /* the default again */
    for (int i = 0; i < 10; i++)
        admission_ip_ms(&a, &two, 30000);
    assert_true(admission_ip_ms(&a, &two, 30000) > 0);
    assert_int_equal(admission_set_ip_rate(&a, NULL, INFINITY), 0);
    assert_int_equal(admission_ip_ms(&a, &two, 30000), 0);
}

static void a_rate_of_zero_lets_nobody_in(void **state)
{
    struct in6_addr one = ip(1);
    assert_int_equal(admission_set_ip_rate(&a, &one, 0), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(admission_ip_ms(&a, &one, i * 60000), 1000);
}

static void addresses_not_seen_for_long_are_forgotten(void **state)
{
    assert_int_equal(admission_set_ip_rate(&a, NULL, 5), 0);
    for (int i = 0; i < 20000; i++) {
        struct in6_addr at = ip(i);
        admission_ip_ms(&a, &at, i * 10);
        assert_true(admission_ips_seen(&a) <= 1201);
    }
}

#define admits(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

UNIT_MAIN(admits(without_limits_all_come_in), admits(numbers_over_all_and_of_one_listener),
          admits(the_exempt_listener_is_held_back_by_its_own_limits_only),
          admits(addresses_have_limits_of_their_own), admits(rates_hold_the_acceptor_back),
          admits(the_rate_over_all_counts_every_listener), admits(addresses_are_held_back_by_rate),
          admits(a_rate_of_zero_lets_nobody_in), admits(addresses_not_seen_for_long_are_forgotten))
