/* The parts of the store on ZooKeeper that need no server: the text of zookeeper.connect, access by
 * path, the library's lines, and who hears of a session's end. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "base/sim_executor.h"
#include "metadata/session_listeners.h"
#include "metadata/zookeeper_acl.h"
#include "metadata/zookeeper_call.h"
#include "metadata/zookeeper_connect.h"
#include "metadata/zookeeper_log.h"

#include "unit.h"

/* ---- zookeeper.connect ---- */

static void parsed(const char *text, const char *hosts, const char *chroot)
{
    struct zookeeper_connect c;
    char err[256] = "";
    if (zookeeper_connect_parse(text, &c, err, sizeof(err)))
        fail_msg("%s", err);
    assert_string_equal(c.hosts, hosts);
    assert_string_equal(c.chroot, chroot);
    zookeeper_connect_clear(&c);
}

static void refused(const char *text, const char *why)
{
    struct zookeeper_connect c;
    char err[256] = "";
    assert_int_equal(zookeeper_connect_parse(text, &c, err, sizeof(err)), -EINVAL);
    assert_non_null(strstr(err, text));
    if (!strstr(err, why))
        fail_msg("%s", err);
    assert_null(c.hosts);
    assert_null(c.chroot);
}

static void hosts_get_their_port_and_the_folder_is_split_off(void **state)
{
    parsed("h:1", "h:1", "");
    parsed("h", "h:2181", "");
    parsed("a:1,b,c:3", "a:1,b:2181,c:3", "");
    parsed(" a:1 , b ", "a:1,b:2181", "");
    parsed("h:1/", "h:1", "");
    parsed("h:1/kafka", "h:1", "/kafka");
    parsed("a,b/one/two", "a:2181,b:2181", "/one/two");
    parsed("[::1]:2182/x", "[::1]:2182", "/x");
    parsed("[::1]", "[::1]:2181", "");
    parsed("h:65535", "h:65535", "");
}

static void what_is_no_list_of_hosts_is_refused(void **state)
{
    refused("", "a host is missing");
    refused("/kafka", "a host is missing");
    refused("a,,b", "a host is missing");
    refused("a,", "a host is missing");
    refused(":2181", "a host is missing");
    refused("h:", "a port must be 1 to 65535");
    refused("h:0", "a port must be 1 to 65535");
    refused("h:65536", "a port must be 1 to 65535");
    refused("h:99999999", "a port must be 1 to 65535");
    refused("h:x", "a port must be 1 to 65535");
    refused("a b:1", "white space");
    refused("h:1/a/", "absolute path");
    refused("h:1//a", "absolute path");
    refused("h:1/../a", "absolute path");
}

/* ---- access ---- */

static void access_goes_by_the_path(void **state)
{
    static const struct {
        const char *path;
        enum node_access access;
    } cases[] = {
        {"/brokers/ids/1", NODE_READABLE},
        {"/controller", NODE_READABLE},
        {"/config/topics/users", NODE_READABLE},
        {"/config/usersx", NODE_READABLE},
        {"/config/users", NODE_PRIVATE},
        {"/config/users/alice", NODE_PRIVATE},
        {"/config/users/alice/clients/c", NODE_PRIVATE},
        {"/config/brokers", NODE_PRIVATE},
        {"/config/brokers/1", NODE_PRIVATE},
        {"/delegation_token/tokens/x", NODE_PRIVATE},
        {"/delegation_token/token_changes", NODE_READABLE},
        {"/consumers", NODE_OPEN},
        {"/consumers/g/offsets/t/0", NODE_READABLE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(zookeeper_node_access(cases[i].path, true), cases[i].access);
        assert_int_equal(zookeeper_node_access(cases[i].path, false), NODE_OPEN);
    }
}

/* ---- what may be sent ---- */

static int checked(struct store_op *ops, int n, bool multi)
{
    struct store_request r = {.ops = ops, .ops_n = n, .multi = multi};
    struct zookeeper_call *c = zookeeper_call_new(&r, "/root", false);
    assert_non_null(c);
    int status = zookeeper_call_check(c);
    zookeeper_call_free(c);
    return status;
}

static void requests_that_no_server_would_take_are_not_sent(void **state)
{
    char *much = calloc(1, ZOOKEEPER_BYTES_MAX);
    struct bytes data = {(uint8_t *)much, ZOOKEEPER_BYTES_MAX / 2};
    struct store_op fine[] = {store_op_create("/a", data, 0), store_op_check("/b", 1)};
    assert_int_equal(checked(fine, 1, false), 0);
    assert_int_equal(checked(fine, 2, true), 0);
    struct store_op large[] = {store_op_set("/a", data, -1), store_op_set("/b", data, -1)};
    assert_int_equal(checked(large, 1, true), 0);
    assert_int_equal(checked(large, 2, true), -E2BIG);
    struct store_op read[] = {store_op_get("/a", false)};
    assert_int_equal(checked(read, 1, true), -EINVAL);
    struct store_op sequential[] = {store_op_create("/q/", BYTES_NULL, STORE_SEQUENTIAL)};
    assert_int_equal(checked(sequential, 1, false), 0);
    sequential[0].flags = 0;
    assert_int_equal(checked(sequential, 1, false), -EINVAL);
    struct store_op root[] = {store_op_delete("/", -1)};
    assert_int_equal(checked(root, 1, false), -EINVAL);
    free(much);
}

/* ---- log lines ---- */

struct heard_lines {
    int n;
    char last[256];
};

static void hear_line(enum logline_level level, const char *line, void *arg)
{
    struct heard_lines *h = arg;
    h->n++;
    snprintf(h->last, sizeof(h->last), "%s", line);
}

static void the_librarys_lines_become_ours_and_do_not_flood(void **state)
{
    struct heard_lines h = {0, ""};
    logline_set_sink(hear_line, &h);
    zookeeper_log("2026-01-31 12:00:00,123:4711:ZOO_INFO@f@1: all is well");
    assert_int_equal(h.n, 0);
    zookeeper_log("2026-01-31 12:00:00,123:4711:ZOO_ERROR@f@1: Socket [h:1]: refused");
    assert_int_equal(h.n, 1);
    assert_non_null(strstr(h.last, "WARN [ZooKeeperClient] Socket [h:1]: refused"));
    zookeeper_log("2026-01-31 12:00:01,123:4711:ZOO_ERROR@f@1: again");
    zookeeper_log("no form at all");
    assert_int_equal(h.n, 1);
    logline_set_sink(NULL, NULL);
}

static void servers_are_told_in_numbers(void **state)
{
    char text[ZOOKEEPER_SERVER_TEXT];
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(2181)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(2182), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    v4.sin_addr.s_addr = htonl(0x7f000002);
    zookeeper_server_text((struct sockaddr *)&v4, sizeof(v4), text);
    assert_string_equal(text, "127.0.0.2:2181");
    zookeeper_server_text((struct sockaddr *)&v6, sizeof(v6), text);
    assert_string_equal(text, "[::1]:2182");
    zookeeper_server_text(NULL, 0, text);
    assert_string_equal(text, "?");
    zookeeper_server_text((struct sockaddr *)&v4, 1, text); /* not the length of an address */
    assert_string_equal(text, "?");
}

/* ---- listeners ---- */

struct ears {
    int expired, connected;
    struct session_listeners *leave; /* removes itself when it hears */
};

static void hear(void *arg, enum store_session state)
{
    struct ears *e = arg;
    e->expired += state == STORE_EXPIRED;
    e->connected += state == STORE_CONNECTED;
    if (e->leave)
        session_listeners_remove(e->leave, hear, e);
}

static void count(void *arg)
{
    ++*(int *)arg;
}

static void all_are_told_and_then_the_teller(void **state)
{
    struct sim_clock clock;
    sim_clock_init(&clock, 0);
    struct sim_executor *a = sim_executor_new(&clock), *b = sim_executor_new(&clock);
    struct session_listeners *l = session_listeners_new();
    struct ears one = {0}, two = {0}, gone = {0}, leaver = {.leave = l};
    int told = 0;
    assert_int_equal(session_listeners_tell(l, STORE_EXPIRED, count, &told), 0);
    assert_int_equal(told, 0); /* nobody: the caller knows by the answer */
    session_listeners_add(l, sim_executor_ex(a), hear, &one);
    session_listeners_add(l, sim_executor_ex(b), hear, &two);
    session_listeners_add(l, sim_executor_ex(b), hear, &gone);
    session_listeners_add(l, sim_executor_ex(b), hear, &leaver);
    assert_int_equal(session_listeners_tell(l, STORE_EXPIRED, count, &told), 4);
    session_listeners_remove(l, hear, &gone); /* told, but not heard yet */
    sim_executor_drain(a);
    assert_int_equal(one.expired, 1);
    assert_int_equal(told, 0);
    sim_executor_drain(b);
    assert_int_equal(told, 1);
    assert_int_equal(two.expired, 1);
    assert_int_equal(gone.expired, 0);
    assert_int_equal(leaver.expired, 1);
    assert_int_equal(session_listeners_tell(l, STORE_CONNECTED, NULL, NULL), 2);
    assert_int_equal(session_listeners_tell(l, STORE_EXPIRED, count, &told), 2);
    session_listeners_free(l); /* with words on their way */
    sim_executor_drain(a);
    sim_executor_drain(b);
    assert_int_equal(told, 2);
    assert_int_equal(one.connected + two.connected, 0);
    assert_int_equal(one.expired + two.expired, 2);
    sim_executor_free(a);
    sim_executor_free(b);
}

UNIT_MAIN(unit_test(hosts_get_their_port_and_the_folder_is_split_off),
          unit_test(what_is_no_list_of_hosts_is_refused), unit_test(servers_are_told_in_numbers),
          unit_test(access_goes_by_the_path),
          unit_test(requests_that_no_server_would_take_are_not_sent),
          unit_test(the_librarys_lines_become_ours_and_do_not_flood),
          unit_test(all_are_told_and_then_the_teller))
