/* Listeners that are added and removed while the server runs: sockets, connections, limits. */
#include "net_test.h"

#include <math.h>

static int add(struct server_test *st, const char *name, int port)
{
    int bound = 0;
    assert_int_equal(net_server_listen(st->server, name, "127.0.0.1", port, &bound), 0);
    net_server_accept(st->server);
    return bound;
}

static int dial(int port)
{
    int fd = client_socket();
    assert_int_equal(client_dial(fd, port), 0);
    return fd;
}

static void one_that_is_added_serves(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 2);
    int old = client_connect(st), bound;
    client_round_trip(old, "e before");
    assert_int_equal(net_server_listen(st->server, "B", "127.0.0.1", 0, &bound), 0);
    int early = dial(bound); /* waits until accepting begins */
    client_send_frame(early, "e early");
    net_server_accept(st->server);
    client_expect(early, "e early");
    for (int i = 0; i < 10; i++) {
        int fd = dial(bound);
        client_round_trip(fd, "e after");
        close(fd);
    }
    client_round_trip(old, "e still");
    assert_int_equal(net_server_listen(st->server, "C", "127.0.0.1", bound, &bound), -EADDRINUSE);
    assert_int_equal(net_can_listen("127.0.0.1", bound), -EADDRINUSE);
    close(early);
    close(old);
    server_end(st);
}

static void one_that_is_removed_ends_its_connections_only(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 3);
    int port = add(st, "B", 0), fds[12], others[3];
    for (int i = 0; i < 3; i++) {
        others[i] = client_connect(st);
        client_round_trip(others[i], "e");
    }
    for (int i = 0; i < 12; i++) {
        fds[i] = dial(port);
        client_round_trip(fds[i], "e");
    }
    assert_int_equal(net_server_unlisten(st->server, "B"), 0);
    assert_int_equal(net_server_unlisten(st->server, "B"), -ENOENT);
    int again = client_socket();
    assert_int_equal(client_dial(again, port), -ECONNREFUSED);
    close(again);
    for (int i = 0; i < 12; i++) {
        client_expect_end(fds[i]);
        close(fds[i]);
    }
    wait_until(st, st->closed == 12);
    for (int i = 0; i < 3; i++) {
        client_round_trip(others[i], "e still");
        close(others[i]);
    }
    assert_int_equal(add(st, "OTHER", port), port); /* the port is free at once */
    int fd = dial(port);
    client_round_trip(fd, "e");
    close(fd);
    server_end(st);
}

/* What is being worked on is answered, what waits for who knows how long is told. */
static void requests_in_work_are_answered(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int port = add(st, "B", 0);
    int working = dial(port), waiting = dial(port);
    client_send_frame(working, "l");
    wait_until(st, st->kept_n == 1);
    st->kept[0]->aborted = NULL; /* short work: nobody is told; the reactor is at rest */
    client_send_frame(waiting, "l");
    wait_until(st, st->kept_n == 2);
    assert_int_equal(net_server_unlisten(st->server, "B"), 0);
    wait_until(st, st->aborted == 1);
    client_expect_end(waiting);
    finish_kept(st, 1, NULL);
    finish_kept(st, 0, "the answer");
    client_expect(working, "the answer");
    client_expect_end(working);
    close(working);
    close(waiting);
    server_end(st);
}

/* Idle connections of other listeners are still found idle afterwards. */
static void idleness_goes_on(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_idle_ms = 100;
    server_begin(st, 1);
    int port = add(st, "B", 0);
    int gone = dial(port), other = client_connect(st);
    client_round_trip(other, "e");
    client_round_trip(gone, "e");
    assert_int_equal(net_server_unlisten(st->server, "B"), 0);
    client_expect_end(gone);
    client_expect_end(other);
    close(gone);
    close(other);
    server_end(st);
}

static void limits_go_with_the_name(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    struct net_listener_limit own[] = {{"B", 1, INFINITY}};
    struct net_admission l = {.max_connections = INT32_MAX,
                              .max_connections_per_ip = INT32_MAX,
                              .max_rate = INFINITY,
                              .listeners = own,
                              .listeners_n = 1};
    for (int i = 0; i < 3; i++) {
        int port = 0;
        assert_int_equal(net_server_listen(st->server, "B", "127.0.0.1", 0, &port), 0);
        assert_int_equal(net_server_set_admission(st->server, &l), 0);
        net_server_accept(st->server);
        int first = dial(port), second = dial(port);
        client_round_trip(first, "e");
        client_send_frame(second, "e second");
        settle(st);
        int opened = read_count(st, &st->opened);
        close(first);
        client_expect(second, "e second"); /* its turn comes when the first is gone */
        assert_int_equal(read_count(st, &st->opened), opened + 1);
        close(second);
        assert_int_equal(net_server_unlisten(st->server, "B"), 0);
    }
    server_end(st);
}

static void note_thread(void *arg, struct net_request *r)
{
    struct server_test *st = arg;
    pthread_mutex_lock(&st->lock);
    char name[16] = "", line[32];
    pthread_getname_np(pthread_self(), name, sizeof(name));
    snprintf(line, sizeof(line), "[%s]", name);
    if (!strstr(st->log, line))
        strcat(st->log, line);
    pthread_mutex_unlock(&st->lock);
    on_test_request(arg, r);
}

static void serve_some(struct server_test *st)
{
    for (int i = 0; i < 24; i++) {
        int fd = client_connect(st);
        client_round_trip(fd, "e");
        close(fd);
    }
}

/* New connections are dealt out to more threads, then to fewer; old ones stay. */
static void threads_come_and_rest(void **state)
{
    struct server_test *st = server_new();
    st->handler.request = note_thread;
    server_begin(st, 2);
    int old[6];
    for (int i = 0; i < 2; i++)
        old[i] = client_connect(st);
    serve_some(st);
    assert_null(strstr(st->log, "[net-2]"));
    assert_int_equal(net_server_set_threads(st->server, 4), 0);
    for (int i = 2; i < 6; i++)
        old[i] = client_connect(st);
    serve_some(st);
    assert_non_null(strstr(st->log, "[net-2]"));
    assert_non_null(strstr(st->log, "[net-3]"));
    assert_int_equal(net_server_set_threads(st->server, 1), 0);
    serve_some(st);
    st->log[0] = 0;
    serve_some(st);
    assert_string_equal(st->log, "[net-0]");
    for (int i = 0; i < 6; i++) { /* wherever they are */
        client_round_trip(old[i], "e still");
        close(old[i]);
    }
    assert_int_equal(net_server_set_threads(st->server, 3), 0);
    assert_int_equal(net_server_set_threads(st->server, 1 << 20), -EAGAIN);
    serve_some(st);
    server_end(st);
}

struct churn {
    struct server_test *st;
    int port;
    atomic_bool stop;
};

static void *connect_all_the_time(void *arg)
{
    struct churn *c = arg;
    while (!atomic_load(&c->stop)) {
        int fd = client_socket();
        if (client_dial(fd, c->port) == 0) {
            char b[8];
            if (send(fd, "\0\0\0\1e", 5, MSG_NOSIGNAL) == 5)
                (void)!recv(fd, b, sizeof(b), 0);
        }
        close(fd);
    }
    return NULL;
}

/* Added and removed again and again while clients come and go, up to the end of the server. */
static void coming_and_going(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 2);
    struct churn c = {.st = st};
    pthread_t t[3];
    c.port = add(st, "B", 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&t[i], NULL, connect_all_the_time, &c), 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(net_server_set_threads(st->server, 1 + i % 5), 0);
        assert_int_equal(net_server_unlisten(st->server, "B"), 0);
        assert_int_equal(add(st, "B", c.port), c.port);
    }
    assert_int_equal(net_server_unlisten(st->server, "B"), 0);
    net_server_stop(st->server, 100);
    int bound;
    assert_int_equal(net_server_listen(st->server, "C", "127.0.0.1", 0, &bound), -ESHUTDOWN);
    atomic_store(&c.stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    server_end(st);
}

UNIT_MAIN(unit_test(one_that_is_added_serves),
          unit_test(one_that_is_removed_ends_its_connections_only),
          unit_test(requests_in_work_are_answered), unit_test(idleness_goes_on),
          unit_test(limits_go_with_the_name), unit_test(threads_come_and_rest),
          unit_test(coming_and_going))
