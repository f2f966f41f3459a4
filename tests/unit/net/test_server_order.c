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

static void a_client_that_breaks_is_told_to_those_who_asked(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    client_send_frame(fd, "lfirst");
    client_send_frame(fd, "lsecond");
    wait_until(st, st->kept_n == 2);
    client_break(fd);
    wait_until(st, st->aborted == 2 && st->closed == 1);
    assert_int_equal(st->hurried, 0);
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

/* ---- a client that ends its side ---- */

/* Everything that was sent before is served and answered, whether it is in work, read, or still in
 * the socket; who waits is told once; then the connection closes. */
static void a_client_that_ends_its_side_gets_its_answers(void **state)
{
    for (int in_work_max = 1; in_work_max <= 64; in_work_max *= 8) {
        struct server_test *st = server_new();
        st->limits.max_pipelined = in_work_max;
        server_begin(st, 1);
        int fd = client_connect(st);
        client_send_frame(fd, "l");
        for (int i = 0; i < 300; i++)
            client_send_frame(fd, i % 2 ? "eodd" : "eeven");
        client_send_frame(fd, "l");
        client_send_frame(fd, "b100000");
        client_send(fd, "\0\0\1\0begun", 9); /* nobody can answer that */
        wait_until(st, st->kept_n == 1);
        shutdown(fd, SHUT_WR);
        wait_until(st, st->hurried == 1);
        assert_int_equal(read_count(st, &st->closed), 0);
        finish_kept(st, 0, "first");
        client_expect(fd, "first");
        for (int i = 0; i < 300; i++)
            client_expect(fd, i % 2 ? "eodd" : "eeven");
        wait_until(st, st->kept_n == 2);
        assert_true(st->kept[1]->hurry);
        finish_kept(st, 1, "last");
        client_expect(fd, "last");
        uint32_t n;
        free(client_recv_frame(fd, &n));
        assert_int_equal(n, 100000);
        client_expect_end(fd);
        wait_until(st, st->closed == 1);
        assert_int_equal(st->aborted, 0);
        close(fd);
        server_end(st);
    }
}

static void answer_hurried(struct net_request *r)
{
    answer_bytes(r, r->frame, r->frame_len);
}

static void request_that_answers_when_hurried(void *arg, struct net_request *r)
{
    r->aborted = net_request_no_answer;
    lock_and_count(arg, &((struct server_test *)arg)->requests);
    if (r->hurry)
        answer_hurried(r);
    else
        r->hurried = answer_hurried;
}

/* What was held back comes to its end by the answers to what was hurried. */
static void hurried_requests_may_be_answered_at_once(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_pipelined = 5;
    st->handler.request = request_that_answers_when_hurried;
    server_begin(st, 1);
    int fd = client_connect(st);
    for (int i = 0; i < 500; i++)
        client_send_frame(fd, i % 2 ? "odd" : "even");
    wait_until(st, st->requests >= 5);
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 500; i++)
        client_expect(fd, i % 2 ? "odd" : "even");
    client_expect_end(fd);
    wait_until(st, st->closed == 1);
    close(fd);
    /* The same of one that is gone altogether: its requests do not hold the connection. */
    fd = client_connect(st);
    for (int i = 0; i < 500; i++)
        client_send_frame(fd, "x");
    wait_until(st, st->requests >= 505);
    close(fd);
    wait_until(st, st->closed == 2);
    server_end(st);
}

/* Reading stops at the limit; that the client broke the connection must be noticed all the same,
 * also behind what was not read, and after it ended its side. */
static void a_client_that_breaks_while_it_is_not_read(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_pipelined = 1;
    server_begin(st, 1);
    int n = 0;
    for (int ends_first = 0; ends_first < 2; ends_first++) {
        for (int more = 0; more < 2; more++) {
            int fd = client_connect(st);
            client_send_frame(fd, "l");
            if (more)
                client_send_frame(fd, "e");
            n++;
            wait_until(st, st->kept_n == n);
            if (ends_first) {
                int hurried = read_count(st, &st->hurried);
                shutdown(fd, SHUT_WR);
                wait_until(st, st->hurried == hurried + 1);
            }
            client_break(fd);
            wait_until(st, st->aborted == n && st->closed == n);
            finish_kept(st, n - 1, "x");
        }
    }
    server_end(st);
}

/* Nothing more is read behind a line that is full, so that its client left might never be heard. */
static void the_head_of_a_full_line_is_hurried(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_pipelined = 4;
    server_begin(st, 1);
    int fd = client_connect(st);
    for (int i = 0; i < 3; i++)
        client_send_frame(fd, "l");
    wait_until(st, st->kept_n == 3);
    settle(st);
    assert_int_equal(read_count(st, &st->hurried), 0);
    for (int n = 1; n < 40; n++) {
        client_send_frame(fd, "l");
        wait_until(st, st->kept_n == n + 3 && st->hurried == n);
        assert_false(st->kept[n - 1]->hurry);
        finish_kept(st, n - 1, "x");
        client_expect(fd, "x");
    }
    client_break(fd);
    wait_until(st, st->closed == 1 && st->aborted == 3);
    for (int i = 39; i < 42; i++)
        finish_kept(st, i, NULL);
    server_end(st);
}

/* Urgent bytes look like a broken socket to the poll. */
static void urgent_bytes_break_nothing(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    client_send_frame(fd, "l");
    wait_until(st, st->kept_n == 1);
    shutdown(fd, SHUT_WR);
    wait_until(st, st->hurried == 1);
    finish_kept(st, 0, "answer");
    client_expect(fd, "answer");
    client_expect_end(fd);
    close(fd);
    fd = client_connect(st);
    client_send_frame(fd, "l");
    wait_until(st, st->kept_n == 2);
    assert_int_equal(send(fd, "!", 1, MSG_OOB), 1);
    shutdown(fd, SHUT_WR);
    wait_until(st, st->hurried == 2);
    settle(st);
    assert_int_equal(read_count(st, &st->aborted), 0);
    client_break(fd);
    finish_kept(st, 1, "to nobody");
    wait_until(st, st->closed == 2);
    server_end(st);
}

/* acks=0 and close: what was sent ahead of the end is served, though its connection was held back.
 */
static void a_client_that_leaves_while_it_is_not_read(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_pipelined = 1;
    server_begin(st, 1);
    int fd = client_connect(st);
    client_send_frame(fd, "l");
    wait_until(st, st->kept_n == 1);
    client_send_frame(fd, "n");
    client_send_frame(fd, "n");
    close(fd);
    wait_until(st, st->hurried == 1);
    settle(st);
    assert_int_equal(read_count(st, &st->requests), 1);
    finish_kept(st, 0, NULL);
    wait_until(st, st->requests == 3 && st->closed == 1);
    assert_int_equal(st->aborted, 0);
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
    client_break(fd);
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
          unit_test(a_client_that_breaks_is_told_to_those_who_asked),
          unit_test(a_client_that_ends_its_side_gets_its_answers),
          unit_test(hurried_requests_may_be_answered_at_once),
          unit_test(a_client_that_breaks_while_it_is_not_read),
          unit_test(the_head_of_a_full_line_is_hurried), unit_test(urgent_bytes_break_nothing),
          unit_test(a_client_that_leaves_while_it_is_not_read),
          unit_test(closing_lets_earlier_answers_out), unit_test(closing_drops_later_requests),
          unit_test(aborted_may_finish_the_request), unit_test(opened_may_refuse),
          unit_test(stop_lets_requests_in_work_finish), unit_test(stop_sends_what_is_unsent),
          unit_test(stop_ends_when_its_time_is_over),
          unit_test(free_before_the_last_request_is_finished),
          unit_test(a_server_that_never_accepted_stops))
