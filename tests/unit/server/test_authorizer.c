/* The authorizer: super users, what is in force after a change, what is said of a denial, and
 * decisions while the ACLs change. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl_store.h"
#include "base/logline.h"
#include "server/authorizer.h"

#include "unit.h"

/* ---- what it asks of a request ---- */

struct broker {
    struct authorizer *z;
};
struct conn {
    const char *user, *host;
};

struct authorizer *broker_authorizer(const struct broker *b)
{
    return b->z;
}
struct str conn_principal(const struct conn *c)
{
    return str_of(c->user);
}
const char *conn_peer_host(const struct conn *c)
{
    return c->host;
}
struct in6_addr conn_peer_ip(const struct conn *c)
{
    struct in6_addr ip;
    assert_int_equal(acl_host_parse(str_of(c->host), &ip), 0);
    return ip;
}

static struct broker broker;
static struct conn conn;
static struct net_request net = {.conn = &conn};
static const struct api_desc api = {.name = "Fetch"};
static struct request req = {.broker = &broker, .net = &net, .api = &api};

static struct authorizer *make(const char *super_users, bool allow_everyone)
{
    struct authorizer_options o = {super_users, allow_everyone, clock_real()};
    char err[256] = "";
    assert_int_equal(authorizer_new(&o, &broker.z, err, sizeof(err)), 0);
    return broker.z;
}

static int end(void **state)
{
    authorizer_free(broker.z);
    broker.z = NULL;
    return 0;
}

static bool may(const char *user, const char *topic)
{
    conn = (struct conn){user, "10.0.0.1"};
    return authorize(&req, ACL_READ, ACL_TOPIC, str_of(topic));
}

static struct acl_binding allow(const char *topic, const char *principal)
{
    return (struct acl_binding){{ACL_TOPIC, ACL_LITERAL, str_of(topic)},
                                {str_of(principal), STR_LIT("*"), ACL_READ, ACL_ALLOW}};
}

static void without_one_all_is_allowed(void **state)
{
    assert_false(authorizer_enabled(&req));
    assert_true(may("a", "t"));
    assert_true(authorize_cluster(&req, ACL_CLUSTER_ACTION));
    assert_true(authorize_any(&req, ACL_WRITE, ACL_TOPIC));
    assert_int_equal(authorized_operations(&req, ACL_GROUP, STR_LIT("g")),
                     1 << 3 | 1 << 6 | 1 << 8);
    assert_int_equal(authorized_operations(&req, ACL_TOPIC, STR_LIT("g")), 0xdf8);
    assert_int_equal(authorized_operations(&req, ACL_CLUSTER, STR_LIT("g")), 0x1fa0);
}

static void super_users(void **state)
{
    make(" User:a;User:CN=b, O=x:y ;User:c;;Group:d;", false);
    assert_true(authorizer_enabled(&req));
    assert_true(may("a", "t"));
    assert_true(may("CN=b, O=x:y", "t"));
    assert_true(may("c", "t"));
    assert_false(may("d", "t"));
    assert_false(may("A", "t"));
    assert_false(may("", "t"));
    conn.user = "a";
    assert_true(authorize_any(&req, ACL_WRITE, ACL_TOPIC));
    assert_int_equal(authorized_operations(&req, ACL_TOPIC, STR_LIT("t")),
                     acl_operations_of(ACL_TOPIC));
    struct acl_binding deny = allow("t", "User:*");
    deny.entry.permission = ACL_DENY;
    assert_int_equal(authorizer_add(broker.z, &deny), 0);
    assert_true(may("a", "t")); /* no ACL holds for it */
}

static void super_users_that_are_none(void **state)
{
    static const char *const bad[] = {"a", "User:a,b;c", "User:a;b", "a;User:b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct authorizer_options o = {bad[i], false, clock_real()};
        struct authorizer *z;
        char err[256] = "";
        assert_int_equal(authorizer_new(&o, &z, err, sizeof(err)), -EINVAL);
        assert_null(z);
        assert_non_null(strstr(err, "super.users"));
    }
}

static void the_default(void **state)
{
    make(NULL, true);
    struct acl_binding b = allow("t", "User:b");
    assert_true(may("a", "t"));
    assert_int_equal(authorizer_add(broker.z, &b), 0);
    assert_false(may("a", "t"));
    assert_true(may("b", "t"));
    assert_true(may("a", "u"));
    conn.user = "a";
    assert_int_equal(authorized_operations(&req, ACL_TOPIC, STR_LIT("t")), 0);
    assert_int_equal(authorized_operations(&req, ACL_TOPIC, STR_LIT("u")),
                     acl_operations_of(ACL_TOPIC));
    assert_true(authorize_any(&req, ACL_WRITE, ACL_TOPIC));
}

static void put(const char *topic, struct acl_entry *entries, int n, int status)
{
    struct acl_stored one = {.pattern = {ACL_TOPIC, ACL_LITERAL, str_of(topic)},
                             .status = status,
                             .node = {.entries = entries, .n = n}};
    assert_int_equal(authorizer_put(broker.z, &one), 0);
}

static void in_force_when_published(void **state)
{
    make("", true);
    struct acl_entry e = allow("t", "User:a").entry;
    put("t", &e, 1, 0);
    assert_true(may("x", "t")); /* still as before */
    assert_int_equal(authorizer_publish(broker.z), 0);
    assert_false(may("x", "t"));
    assert_true(may("a", "t"));
    put("t", NULL, 0, -ESTALE); /* no answer says nothing */
    assert_int_equal(authorizer_publish(broker.z), 0);
    assert_true(may("a", "t"));
    put("t", NULL, 0, -EBADMSG); /* unreadable: nobody, whatever the default */
    assert_int_equal(authorizer_publish(broker.z), 0);
    assert_false(may("a", "t"));
    put("t", NULL, 0, -ENOENT);
    put("none", NULL, 0, -ENOENT);
    assert_int_equal(authorizer_publish(broker.z), 0);
    assert_true(may("x", "t"));
}

/* What is made here is heard of a second time, by its notice. */
static void what_is_heard_twice_changes_nothing(void **state)
{
    make("", false);
    struct acl_entry e[] = {allow("t", "User:a").entry, allow("t", "User:b").entry};
    uint64_t was = authorizer_state(broker.z);
    for (int n = 0; n <= 2; n++) {
        for (int again = 0; again < 2; again++) {
            put("t", e, n, n ? 0 : -ENOENT);
            assert_int_equal(authorizer_publish(broker.z), 0);
            assert_int_equal(authorizer_state(broker.z), was + (uint64_t)n);
        }
        assert_int_equal(may("b", "t"), n == 2);
    }
    for (int again = 0; again < 2; again++) {
        put("t", NULL, 0, -EBADMSG);
        assert_int_equal(authorizer_publish(broker.z), 0);
        assert_int_equal(authorizer_state(broker.z), was + 3);
    }
}

static void what_there_is(void **state)
{
    struct arena a;
    struct acl_binding *found,
        b[] = {allow("t", "User:a"), allow("s", "User:a"), allow("t", "User:b")};
    struct acl_pattern *patterns;
    int n;
    make("", false);
    arena_init(&a, 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(authorizer_add(broker.z, &b[i]), 0);
    struct acl_filter f = ACL_FILTER_ALL;
    assert_int_equal(authorizer_find(broker.z, &f, &a, &found, &n), 0);
    assert_int_equal(n, 3);
    assert_true(str_eqz(found[0].pattern.name, "s")); /* those of a pattern lie together */
    assert_true(str_eqz(found[1].pattern.name, "t"));
    assert_true(str_eqz(found[2].pattern.name, "t"));
    f.principal = STR_LIT("User:b");
    assert_int_equal(authorizer_find(broker.z, &f, &a, &found, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(authorizer_patterns(broker.z, &a, &patterns, &n), 0);
    assert_int_equal(n, 2);
    arena_free(&a);
}

/* ---- what is said ---- */

static char said[4096];
static int said_n;

static void hear(enum logline_level level, const char *line, void *arg)
{
    said_n++;
    snprintf(said, sizeof(said), "%s", line);
}

static void denials_are_told_once_in_a_while(void **state)
{
    make("", false);
    said_n = 0;
    logline_set_sink(hear, NULL);
    for (int i = 0; i < 100; i++)
        may("a", "t");
    assert_int_equal(said_n, 1);
    assert_non_null(strstr(said, "INFO"));
    assert_non_null(strstr(said, "Principal = User:a is Denied operation = Read from host = "
                                 "10.0.0.1 on resource = Topic:LITERAL:t for request = Fetch"));
    conn.user = "b";
    assert_false(authorize_quietly(&req, ACL_READ, ACL_TOPIC, STR_LIT("t")));
    assert_int_equal(said_n, 1);
    conn.host = "::1";
    assert_false(authorize(&req, ACL_READ, ACL_TOPIC, STR_LIT("t")));
    assert_non_null(strstr(said, "host = 0:0:0:0:0:0:0:1 on"));
    assert_false(authorize_cluster(&req, ACL_CLUSTER_ACTION));
    assert_non_null(strstr(said, "WARN"));
    assert_non_null(strstr(said, "super.users"));
    assert_false(authorize_any(&req, ACL_WRITE, ACL_TOPIC));
    assert_non_null(strstr(said, "Topic:ANY:"));
    logline_set_sink(NULL, NULL);
}

/* ---- decisions while ACLs change ---- */

static atomic_bool over;
static atomic_int decided;

static void *decide(void *arg)
{
    struct in6_addr host = IN6ADDR_LOOPBACK_INIT;
    while (!atomic_load(&over)) {
        /* always there, whatever else comes and goes */
        assert_true(
            authorizer_would(broker.z, STR_LIT("a"), host, ACL_READ, ACL_TOPIC, STR_LIT("always")));
        assert_false(
            authorizer_would(broker.z, STR_LIT("b"), host, ACL_READ, ACL_TOPIC, STR_LIT("always")));
        atomic_fetch_add(&decided, 1);
    }
    return NULL;
}

static void while_acls_change(void **state)
{
    enum { THREADS = 3, CHANGES = 300 };
    pthread_t threads[THREADS];
    make("", false);
    struct acl_binding always = allow("always", "User:a");
    struct acl_entry e = always.entry;
    assert_int_equal(authorizer_add(broker.z, &always), 0);
    atomic_store(&over, false);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, decide, NULL);
    while (atomic_load(&decided) < THREADS)
        sched_yield();
    for (int i = 0; i < CHANGES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "t%d", i % 7);
        put(name, &e, i % 2, i % 2 ? 0 : -ENOENT);
        put("always", &e, 1, 0);
        assert_int_equal(authorizer_publish(broker.z), 0);
    }
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

#define with_end(f) cmocka_unit_test_teardown(f, end)
UNIT_MAIN(with_end(without_one_all_is_allowed), with_end(super_users),
          with_end(super_users_that_are_none), with_end(the_default),
          with_end(in_force_when_published), with_end(what_is_heard_twice_changes_nothing),
          with_end(what_there_is), with_end(denials_are_told_once_in_a_while),
          with_end(while_acls_change))
