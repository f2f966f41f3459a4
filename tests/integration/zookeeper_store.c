/* The store on a real ZooKeeper server against the rules of every store. test_zookeeper_store.py
 * starts the server and gives its port as the first argument; each rule has a chroot of its own. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "metadata/zookeeper_store.h"

#include "metadata/store_test.h"
#include "metadata/threaded_rules.h"

static int port;
static char connect_to[64]; /* with the chroot of the rule */

static struct store *open_session(void)
{
    struct zookeeper_options o = {.connect = connect_to,
                                  .session_timeout_ms = 10000,
                                  .connection_timeout_ms = 30000,
                                  .max_in_flight = 10};
    struct store *s;
    char err[256] = "";
    if (zookeeper_store_open(&o, &s, err, sizeof(err)))
        fail_msg("%s", err);
    return s;
}

static struct store *attach(struct store_rules *t)
{
    (void)t;
    return open_session();
}

/* ---- ending a session from the outside: taken over with its password, and closed ---- */

static uint8_t *put(uint8_t *at, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        *at++ = (uint8_t)(v >> (8 * i));
    return at;
}

/* As the servers make it from the id: sixteen bytes of Java's random numbers. */
static uint8_t *put_password(uint8_t *at, int64_t session)
{
    uint64_t mask = (1ull << 48) - 1,
             seed = (((uint64_t)session ^ 0xB3415C00) ^ 0x5DEECE66D) & mask;
    for (int i = 0; i < 4; i++) {
        seed = (seed * 0x5DEECE66D + 0xB) & mask;
        for (int k = 0; k < 4; k++)
            *at++ = (uint8_t)(seed >> (16 + 8 * k));
    }
    return at;
}

static void take_over_and_close(int64_t session)
{
    uint8_t frames[64], *at = frames, rest[256];
    at = put(at, 45, 4);
    at = put(at, 0, 4);     /* protocol */
    at = put(at, 0, 8);     /* last zxid */
    at = put(at, 10000, 4); /* timeout */
    at = put(at, (uint64_t)session, 8);
    at = put(at, 16, 4);
    at = put_password(at, session);
    at = put(at, 0, 1); /* not read-only */
    at = put(at, 8, 4);
    at = put(at, 1, 4);             /* xid */
    at = put(at, (uint32_t)-11, 4); /* close */
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(write(fd, frames, (size_t)(at - frames)), at - frames);
    while (read(fd, rest, sizeof(rest)) > 0)
        ;
    close(fd);
}

/* Its owner may be faster and take it back: again then. */
static void expire(struct store_rules *t, struct store *s)
{
    (void)t;
    int64_t session = store_session_id(s);
    struct store_stat st;
    do
        take_over_and_close(session);
    while (stat_of(s, "/", &st) != -ESTALE);
}

static int start(void **state)
{
    static struct threaded_rules t;
    static int n;
    snprintf(connect_to, sizeof(connect_to), "127.0.0.1:%d/rule/%d", port, n++);
    threaded_rules_init(&t);
    t.rules.attach = attach;
    t.rules.expire = expire;
    t.rules.s = open_session();
    *state = &t.rules;
    return 0;
}

static int stop(void **state)
{
    struct threaded_rules *t =
        container_of((struct store_rules *)*state, struct threaded_rules, rules);
    store_close(t->rules.s);
    threaded_rules_end(t);
    return 0;
}

static int set_large(struct store *s, const char *path, size_t n)
{
    char *data = calloc(1, n + 1);
    memset(data, 'x', n);
    int status = set(s, path, data, STORE_ANY_VERSION);
    free(data);
    return status;
}

/* The server hangs up on more than a megabyte; that is not tried for ever, and hurts nobody else.
 */
static void what_is_too_large_fails_alone(void **state)
{
    struct store_rules *t = *state;
    assert_int_equal(create(t->s, "/n", "x", 0), 0);
    assert_int_equal(set_large(t->s, "/n", 900 << 10), 0);
    assert_int_equal(set_large(t->s, "/n", 2 << 20), -E2BIG);
    assert_int_equal(set_large(t->s, "/n", 5 << 20), -E2BIG);
    struct store_stat st;
    assert_int_equal(stat_of(t->s, "/n", &st), 0);
    assert_int_equal(st.version, 1);
    assert_int_equal(set(t->s, "/n", "y", 1), 0);
}

/* Nothing waits for a server that is cut off, once the end is near. */
static void requests_after_end_waits_are_still_answered_while_connected(void **state)
{
    struct store_rules *t = *state;
    store_end_waits(t->s);
    assert_int_equal(create(t->s, "/n", "x", 0), 0);
    assert_true(holds(t->s, "/n", "x"));
}

/* The library's look-ups of names come by here. */
static atomic_int lookups;

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **res)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    atomic_fetch_add(&lookups, 1);
    return next(node, service, hints, res);
}

/* A name server that is slow, or away, must not hold up a session that stands; and ten thousand
 * requests are not to be ten thousand questions to it. */
static void names_are_looked_up_for_connections_only(void **state)
{
    struct store_rules *t = *state;
    assert_int_equal(create(t->s, "/n", "x", 0), 0);
    int before = lookups;
    assert_true(before > 0);
    for (int i = 0; i < 50; i++)
        assert_true(holds(t->s, "/n", "x"));
    assert_int_equal(lookups, before);
}

int main(int argc, char **argv)
{
    port = argc > 1 ? atoi(argv[1]) : 0;
    if (!port) {
        fprintf(stderr, "usage: zookeeper_store PORT [PATTERN]\n");
        return 2;
    }
    const struct CMUnitTest own[] = {
        cmocka_unit_test_setup_teardown(what_is_too_large_fails_alone, start, stop),
        cmocka_unit_test_setup_teardown(names_are_looked_up_for_connections_only, start, stop),
        cmocka_unit_test_setup_teardown(requests_after_end_waits_are_still_answered_while_connected,
                                        start, stop)};
    return store_rules_run(argc > 2 ? argv[2] : NULL, start, stop) +
           cmocka_run_group_tests(own, NULL, NULL);
}
