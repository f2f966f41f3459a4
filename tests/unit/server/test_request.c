/* Dispatch over real connections: what is served is handled, everything else closes the connection
 * with one line, and the arena's cap is relative to the frame. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/logline.h"
#include "protocol/msg/api_versions.h"
#include "server/broker_private.h"
#include "server/request.h"

static char lines[8192]; /* what was logged */
static atomic_int lines_n;

static void keep_line(enum logline_level level, const char *line, void *arg)
{
    size_t at = strlen(lines);
    snprintf(lines + at, sizeof(lines) - at, "%s\n", line);
    atomic_fetch_add(&lines_n, 1);
}

static struct reactor_pool *pool;
static struct net_server *server;
static int port;
static struct conn_handler handler;

static struct broker broker; /* ApiVersions needs no more of it than settings */

static void on_request(void *arg, struct net_request *net)
{
    request_dispatch(&broker, net);
}

static int open_server(void **state)
{
    struct net_limits limits = net_limits_default();
    char err[256];
    if (config_load(props_new(), &broker.config, err, sizeof(err)))
        return -1;
    handler.request = on_request;
    logline_set_sink(keep_line, NULL);
    return reactor_pool_start(1, &pool) || net_server_new(pool, &limits, &handler, &server) ||
           net_server_listen(server, "PLAINTEXT", "127.0.0.1", 0, &port) ||
           (net_server_accept(server), 0);
}

static int close_server(void **state)
{
    net_server_stop(server, 0);
    net_server_free(server);
    reactor_pool_stop(pool);
    config_unref(broker.config);
    logline_set_sink(NULL, NULL);
    return 0;
}

static int connected(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval deadline = {.tv_sec = 30};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    lines[0] = 0;
    atomic_store(&lines_n, 0);
    return fd;
}

static void send_request(int fd, int16_t key, int16_t version, const void *body, size_t body_n)
{
    struct buf b = BUF_INIT;
    buf_put_i32(&b, 0);
    buf_put_i16(&b, key);
    buf_put_i16(&b, version);
    buf_put_i32(&b, 77);
    buf_put_i16(&b, -1);
    buf_put(&b, body, body_n);
    put_be32(b.p, (uint32_t)(b.len - 4));
    assert_int_equal(send(fd, b.p, b.len, MSG_NOSIGNAL), (ssize_t)b.len);
    buf_free(&b);
}

/* Count of bytes of the frame, which goes to p; 0 = closed. */
static size_t receive_frame(int fd, uint8_t *p, size_t n)
{
    uint8_t head[4];
    ssize_t got = recv(fd, head, 4, MSG_WAITALL);
    if (got <= 0)
        return 0;
    assert_int_equal(got, 4);
    size_t len = get_be32(head);
    assert_true(len <= n);
    assert_int_equal(recv(fd, p, len, MSG_WAITALL), (ssize_t)len);
    return len;
}

static void expect_closed(int16_t key, int16_t version, const void *body, size_t n,
                          const char *words)
{
    uint8_t frame[4096];
    int fd = connected();
    send_request(fd, key, version, body, n);
    assert_int_equal(receive_frame(fd, frame, sizeof(frame)), 0);
    close(fd);
    assert_int_equal(atomic_load(&lines_n), 1);
    if (!strstr(lines, words))
        fail_msg("%s lacks: %s", lines, words);
}

static void what_is_served_is_answered(void **state)
{
    uint8_t frame[4096];
    int fd = connected();
    send_request(fd, API_API_VERSIONS, 0, NULL, 0);
    size_t n = receive_frame(fd, frame, sizeof(frame));
    struct reader r = reader_of(frame, n);
    assert_int_equal(reader_i32(&r), 77);
    struct arena a;
    struct api_versions_response out;
    arena_init(&a, 0);
    assert_int_equal(api_versions_response_decode(&out, 0, &r, &a), 0);
    assert_int_equal(reader_left(&r), 0);
    assert_int_equal(out.error_code, 0);
    int rows_n;
    const struct api_row *rows = api_served(&rows_n);
    assert_int_equal(out.api_keys.n, rows_n);
    for (int i = 0; i < rows_n; i++) {
        assert_int_equal(out.api_keys.v[i].api_key, rows[i].key);
        assert_int_equal(out.api_keys.v[i].min_version, rows[i].min);
        assert_int_equal(out.api_keys.v[i].max_version, rows[i].max);
    }
    arena_free(&a);
    close(fd);
}

static void what_is_not_served_closes(void **state)
{
    expect_closed(-1, 0, NULL, 0, "unknown API key -1");
    expect_closed(76, 3, NULL, 0, "unknown API key 76 (version 3)");
    expect_closed(API_ENVELOPE, 0, "\0", 1, "Envelope (version 0) is not served");
    expect_closed(API_FETCH, 18, NULL, 0, "unsupported version 18 of Fetch, served are 0 to 17");
    expect_closed(API_METADATA, -1, NULL, 0, "unsupported version -1 of Metadata");
    expect_closed(API_METADATA, 1, NULL, 0, "malformed Metadata request, version 1");
}

static void an_unknown_version_of_api_versions_is_answered(void **state)
{
    static const int16_t versions[] = {5, 99, -1};
    int fd = connected();
    for (int i = 0; i < 3; i++) {
        uint8_t frame[64];
        send_request(fd, API_API_VERSIONS, versions[i], "\xff\xff", 2);
        static const uint8_t expected[] = {0, 0, 0, 77, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4};
        assert_int_equal(receive_frame(fd, frame, sizeof(frame)), sizeof(expected));
        assert_memory_equal(frame, expected, sizeof(expected));
    }
    close(fd);
}

/* Two bytes an element on the wire, many more in memory: more than a frame of this size justifies.
 */
static void decoding_is_capped_by_the_frame(void **state)
{
    enum { N = 8 << 20 };
    struct buf b = BUF_INIT;
    buf_put_i32(&b, N);
    buf_put_zero(&b, 2 * N);
    expect_closed(API_METADATA, 1, b.p, b.len, "more memory than its size justifies");
    buf_free(&b);
}

static void rows_are_in_order_and_within_the_protocol(void **state)
{
    int n;
    const struct api_row *rows = api_served(&n);
    for (int i = 0; i < n; i++) {
        const struct api_desc *api = api_find(rows[i].key);
        assert_non_null(api);
        assert_true(i == 0 || rows[i - 1].key < rows[i].key);
        assert_true(rows[i].min >= api->request->min && rows[i].max <= api->request->max);
        assert_true(rows[i].min <= rows[i].max);
        assert_non_null(rows[i].handle);
        assert_ptr_equal(api_row_find(rows[i].key), &rows[i]);
    }
    assert_null(api_row_find(-1));
    assert_null(api_row_find(API_KEY_MAX + 1));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_served_is_answered),
        cmocka_unit_test(what_is_not_served_closes),
        cmocka_unit_test(an_unknown_version_of_api_versions_is_answered),
        cmocka_unit_test(decoding_is_capped_by_the_frame),
        cmocka_unit_test(rows_are_in_order_and_within_the_protocol),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, open_server, close_server);
}
