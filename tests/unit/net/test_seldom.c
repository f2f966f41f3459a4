/* Lines that a client causes again and again: seldom.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "net/seldom.h"
#include "unit.h"

static struct in6_addr address(unsigned n)
{
    struct in6_addr ip = {0};
    memcpy(ip.s6_addr + 12, &n, sizeof(n));
    return ip;
}

static void one_line_of_an_address_in_a_while(void **state)
{
    struct seldom s;
    struct in6_addr a = address(1);
    unsigned kept;
    seldom_init(&s);
    assert_true(seldom_may(&s, &a, "x", 5, &kept));
    assert_int_equal(kept, 0);
    for (int i = 0; i < 3; i++)
        assert_false(seldom_may(&s, &a, "x", 5 + SELDOM_MS - 1, &kept));
    assert_true(seldom_may(&s, &a, "x", 5 + SELDOM_MS, &kept));
    assert_int_equal(kept, 3);
    assert_false(seldom_may(&s, &a, "x", 6 + SELDOM_MS, &kept));
    assert_true(seldom_may(&s, &a, "x", 5 + 9 * SELDOM_MS, &kept));
    assert_int_equal(kept, 1);
    seldom_free(&s);
}

/* Others have lines of their own, and all together not more than there are places. */
static void many_addresses_and_many_lines(void **state)
{
    struct seldom s;
    unsigned kept;
    int said = 0;
    seldom_init(&s);
    for (unsigned i = 0; i < 20 * SELDOM_PLACES; i++) {
        struct in6_addr ip = address(i / 2);
        said += seldom_may(&s, &ip, i % 2 ? "x" : "y", 7, &kept);
        assert_int_equal(kept, 0);
    }
    assert_true(said > SELDOM_PLACES / 2 && said <= SELDOM_PLACES);
    seldom_free(&s);
}

UNIT_MAIN(cmocka_unit_test(one_line_of_an_address_in_a_while),
          cmocka_unit_test(many_addresses_and_many_lines))
