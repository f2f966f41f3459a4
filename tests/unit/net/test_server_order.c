/* Answers: their order, connections that end before them or with them, graceful stop. */
#include "net_test.h"

static void answers_come_in_the_order_of_requests(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 2);
    int fd = client_connect(st);
    client_send_frame(fd, "l0");
    client_send_frame(fd, "l1");
    client_send_frame(fd, "e2");
    client_send_frame(fd, "n3");
    client_send_frame(fd, "l4");
    wait_until(st, st->kept_n == 3 && st->requests == 5);
    finish_kept(st, 2, "four");
    finish_kept(st, 1, "one");
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1); /* nothing before the first */
    finish_kept(st, 0, "zero");
    client_expect(fd, "zero");
    client_expect(fd, "one");
    client_expect(fd, "e2");
    client_expect(fd, "four");
    close(fd);
    server_end(st);
}

static void every_order_of_finishing(void **state)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const char *const texts[] = {"zero", "one", NULL}; /* the last has no answer */
    for (int i = 0; i < 6; i++) {
        struct server_test *st = server_new();
        server_begin(st, 1);
        int fd = client_connect(st);
        for (int k = 0; k < 3; k++)
            client_send_frame(fd, "l");
        wait_until(st, st->kept_n == 3);
        for (int k = 0; k < 3; k++)
            finish_kept(st, orders[i][k], texts[orders[i][k]]);
        client_expect(fd, "zero");
        client_expect(fd, "one");
        client_round_trip(fd, "eafter");
        close(fd);
        server_end(st);
    }
}

static void a_client_that_leaves_is_told_to_those_who_asked(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    client_send_frame(fd, "lfirst");
    client_send_frame(fd, "lsecond");
    wait_until(st, st->kept_n == 2);
    close(fd);
    wait_until(st, st->aborted == 2 && st->closed == 1);
    /* the requests are as good as before */
    assert_memory_equal(st->kept[0]->frame, "lfirst", 6);
    assert_non_null(strstr(conn_peer(st->kept[1]->conn), "127.0.0.1:"));
    assert_string_equal(conn_peer_host(st->kept[1]->conn), "127.0.0.1");
    assert_string_equal(conn_listener_name(st->kept[1]->conn), "PLAINTEXT");
    assert_int_equal(net_server_connections(st->server), 0);
    finish_kept(st, 1, "too late");
    finish_kept(st, 0, NULL);
    assert_int_equal(st->aborted, 2);
    server_end(st);
}

/* Reading stops at the limit; the end must be noticed all the same, but not before what was sent
 * ahead of it was served. */
static void a_client_that_leaves_while_it_is_not_read(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_pipelined = 1;
    server_begin(st, 1);
    int fd = client_connect(st);
    client_send_frame(fd, "l");
    wait_until(st, st->kept_n == 1);
    close(fd);
    wait_until(st, st->aborted == 1 && st->closed == 1);
    finish_kept(st, 0, "x");

    fd = client_connect(st);
    client_send_frame(fd, "l");
    wait_until(st, st->kept_n == 2);
    client_send_frame(fd, "n");
    client_send_frame(fd, "n");
    close(fd);
    settle(st);
    assert_int_equal(read_count(st, &st->aborted), 1);
    assert_int_equal(read_count(st, &st->requests), 2);
    finish_kept(st, 1, NULL);
    wait_until(st, st->requests == 4 && st->closed == 2);
    assert_int_equal(st->aborted, 1);
    server_end(st);
}

static void closing_lets_earlier_answers_out(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    client_send_frame(fd, "lfirst");
    client_send_frame(fd, "esecond");
    client_send_frame(fd, "c");
    client_send_frame(fd, "enever");
    wait_until(st, log_lines(st, "asked to, by c") == 1);
    finish_kept(st, 0, "first");
    client_expect(fd, "first");
    client_expect(fd, "esecond");
    client_expect_end(fd);
    wait_until(st, st->closed == 1);
    assert_int_equal(st->requests, 3);
    assert_int_equal(log_lines(st, "closing connection of 127.0.0.1"), 1);
    close(fd);
    server_end(st);
}

static void close_kept(void *arg)
{
    net_request_close_conn(arg, "a change of mind");
}

static void closing_drops_later_requests(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    client_send_frame(fd, "l0");
    client_send_frame(fd, "l1");
    client_send_frame(fd, "l2");
    client_send_frame(fd, "e3");
    wait_until(st, st->kept_n == 3 && st->requests == 4);
    finish_kept(st, 2, "is answered and waits");
    call_on(conn_executor(st->kept[0]->conn), close_kept, st->kept[0]);
    client_expect_end(fd);
    wait_until(st, st->closed == 1 && st->aborted == 1);
    finish_kept(st, 1, "nobody hears it");
    close(fd);
    server_end(st);
}

static void finish_aborted(struct net_request *r)
{
    struct server_test *st = r->user;
    net_request_no_answer(r);
    lock_and_count(st, &st->aborted);
}

static void request_finished_when_aborted(void *arg, struct net_request *r)
{
    r->user = arg;
    r->aborted = finish_aborted;
    lock_and_count(arg, &((struct server_test *)arg)->requests);
}

static void aborted_may_finish_the_request(void **state)
{
    struct server_test *st = server_new();
    st->handler.request = request_finished_when_aborted;
    server_begin(st, 1);
    int fd = client_connect(st);
    for (int i = 0; i < 10; i++)
        client_send_frame(fd, "x");
    wait_until(st, st->requests == 10);
    close(fd);
    wait_until(st, st->aborted == 10 && st->closed == 1);
    server_end(st);
}

static void opened_may_refuse(void **state)
{
    struct server_test *st = server_new();
    st->refuse_new = true;
    server_begin(st, 1);
    int fd = client_connect(st);
    client_expect_end(fd);
    close(fd);
    assert_int_equal(st->closed, 0);
    server_end(st);
}

/* ---- stop ---- */

struct stopper {
    pthread_t thread;
    struct net_server *server;
    int64_t grace_ms;
};

static void *stop_main(void *arg)
{
    struct stopper *s = arg;
    net_server_stop(s->server, s->grace_ms);
    return NULL;
}

static void stop_begin(struct stopper *s, struct server_test *st, int64_t grace_ms)
{
    s->server = st->server;
    s->grace_ms = grace_ms;
    assert_int_equal(pthread_create(&s->thread, NULL, stop_main, s), 0);
}

static void stop_lets_requests_in_work_finish(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 2);
    int busy = client_connect(st), idle[4];
    client_send_frame(busy, "l0");
    client_send_frame(busy, "l1");
    client_send(busy, "\0\0\0\x09part", 8); /* never completed */
    for (int i = 0; i < 4; i++) {
        idle[i] = client_connect(st);
        client_round_trip(idle[i], "e");
    }
    wait_until(st, st->kept_n == 2);
    struct stopper s;
    stop_begin(&s, st, WAIT_S * 1000);
    for (int i = 0; i < 4; i++) {
        client_expect_end(idle[i]);
        close(idle[i]);
    }
    int late = client_socket();
    assert_int_equal(client_dial(late, st->port), -ECONNREFUSED);
    close(late);
    client_send_frame(busy, "etoo late");
    settle(st);
    assert_int_equal(read_count(st, &st->requests), 6);
    finish_kept(st, 1, "one");
    finish_kept(st, 0, "zero");
    client_expect(busy, "zero");
    client_expect(busy, "one");
    client_expect_end(busy);
    close(busy);
    pthread_join(s.thread, NULL);
    assert_int_equal(st->aborted, 0);
    assert_int_equal(st->closed, 5);
    server_end(st);
}

static void stop_sends_what_is_unsent(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    client_send_frame(fd, "b20000000");
    wait_until(st, st->requests == 1);
    struct stopper s;
    stop_begin(&s, st, WAIT_S * 1000);
    uint32_t n;
    free(client_recv_frame(fd, &n));
    assert_int_equal(n, 20000000);
    client_expect_end(fd);
    close(fd);
    pthread_join(s.thread, NULL);
    server_end(st);
}

static void stop_ends_when_its_time_is_over(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 2);
    int fd = client_connect(st);
    client_send_frame(fd, "l");
    wait_until(st, st->kept_n == 1);
    net_server_stop(st->server, 20);
    assert_int_equal(st->aborted, 1);
    assert_int_equal(st->closed, 1);
    client_expect_end(fd);
    close(fd);
    finish_kept(st, 0, "after the end");
    server_end(st);
}

static void free_before_the_last_request_is_finished(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 2);
    int fd = client_connect(st);
    client_send_frame(fd, "l");
    wait_until(st, st->kept_n == 1);
    net_server_free(st->server);
    st->server = NULL;
    finish_kept(st, 0, "after the end");
    close(fd);
    server_end(st);
}

static void a_server_that_never_accepted_stops(void **state)
{
    struct server_test *st = server_new();
    assert_int_equal(reactor_pool_start(1, &st->pool), 0);
    assert_int_equal(net_server_new(st->pool, &st->limits, &st->handler, &st->server), 0);
    assert_int_equal(net_server_listen(st->server, "A", "127.0.0.1", 0, &st->port), 0);
    server_end(st);
}

UNIT_MAIN(unit_test(answers_come_in_the_order_of_requests), unit_test(every_order_of_finishing),
          unit_test(a_client_that_leaves_is_told_to_those_who_asked),
          unit_test(a_client_that_leaves_while_it_is_not_read),
          unit_test(closing_lets_earlier_answers_out), unit_test(closing_drops_later_requests),
          unit_test(aborted_may_finish_the_request), unit_test(opened_may_refuse),
          unit_test(stop_lets_requests_in_work_finish), unit_test(stop_sends_what_is_unsent),
          unit_test(stop_ends_when_its_time_is_over),
          unit_test(free_before_the_last_request_is_finished),
          unit_test(a_server_that_never_accepted_stops))
