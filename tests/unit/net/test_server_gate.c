/* A gate between a connection and the handler: it sees the frames, lets them through or not, gives
 * the connection its user, and hears of the end. */
#include "net_test.h"

/* "p<name>" = this user, then the gate opens for good; "t" = let this one through; "x" = answered,
 * then closed; all else is answered with "gate". */
struct gate_test {
    struct server_test *st;
    const char *text; /* of arg's listener */
    int asked, frames, closed;
    char user[64];
    bool refuse;
};

static void at_gate(void *arg, struct net_request *r)
{
    struct gate_test *g = arg;
    struct str text = {(char *)r->frame, (int32_t)r->frame_len};
    lock_and_count(g->st, &g->frames);
    if (*text.p == 't') {
        conn_pass(r);
    } else if (*text.p == 'p') {
        assert_int_equal(conn_set_principal(r->conn, (struct str){text.p + 1, text.len - 1}), 0);
        struct str user = conn_principal(r->conn);
        snprintf(g->user, sizeof(g->user), "%.*s", STR_ARG(user));
        conn_set_gate(r->conn, NULL, NULL);
        conn_set_max_pipelined(r->conn, 0);
        answer_bytes(r, "in", 2);
    } else if (*text.p == 'x') {
        struct writer w = WRITER_INIT;
        struct chain c;
        chain_init(&c);
        buf_put(&w.buf, "bad password", 12);
        assert_int_equal(chain_add_writer(&c, &w, true), 0);
        net_request_answer_and_close(r, &c, "it is not %s", "you");
    } else if (*text.p == 'l') {
        on_test_request(g->st, r);
    } else {
        answer_bytes(r, "gate", 4);
    }
}

static void at_gate_closed(void *arg, struct conn *c)
{
    struct gate_test *g = arg;
    lock_and_count(g->st, &g->closed);
}

static const struct conn_gate gate = {at_gate, at_gate_closed};

static bool ask_who(void *arg, struct conn *c)
{
    struct gate_test *g = arg;
    lock_and_count(g->st, &g->asked);
    assert_true(str_eqz(conn_principal(c), "ANONYMOUS"));
    conn_set_gate(c, &gate, g);
    conn_set_max_pipelined(c, 1);
    return !g->refuse;
}

static struct gate_test *gate_begin(int *port)
{
    struct gate_test *g = calloc(1, sizeof(*g));
    g->st = server_new();
    server_begin(g->st, 2);
    struct listen_security security = {.secured = ask_who, .arg = g};
    assert_int_equal(
        net_server_listen_secured(g->st->server, "GATED", "127.0.0.1", 0, &security, port), 0);
    net_server_accept(g->st->server);
    return g;
}

static void gate_end(struct gate_test *g)
{
    server_end(g->st);
    free(g);
}

static int dial(int port)
{
    int fd = client_socket();
    assert_int_equal(client_dial(fd, port), 0);
    return fd;
}

static void frames_go_to_the_gate_until_it_opens(void **state)
{
    int port;
    struct gate_test *g = gate_begin(&port);
    int fd = dial(port);
    client_send_frame(fd, "hello");
    client_expect(fd, "gate");
    client_send_frame(fd, "through");
    client_expect(fd, "through");
    client_send_frame(fd, "palice");
    client_expect(fd, "in");
    client_round_trip(fd, "hello");
    assert_int_equal(read_count(g->st, &g->frames), 3);
    assert_string_equal(g->user, "alice");
    close(fd);
    wait_until(g->st, g->st->closed == 1);
    assert_int_equal(read_count(g->st, &g->closed), 0); /* it was not there any more */
    gate_end(g);
}

static void other_listeners_have_none(void **state)
{
    int port;
    struct gate_test *g = gate_begin(&port);
    int fd = client_connect(g->st);
    client_round_trip(fd, "hello");
    assert_int_equal(read_count(g->st, &g->asked), 0);
    close(fd);
    gate_end(g);
}

static void a_refusal_arrives_before_the_end(void **state)
{
    int port;
    struct gate_test *g = gate_begin(&port);
    int fd = dial(port);
    client_send_frame(fd, "x");
    client_send_frame(fd, "e never read");
    client_expect(fd, "bad password");
    client_expect_end(fd);
    wait_until(g->st, g->closed == 1);
    wait_until(g->st, log_lines(g->st, "it is not you") == 1);
    assert_int_equal(read_count(g->st, &g->frames), 1);
    close(fd);
    gate_end(g);
}

static void one_frame_at_a_time(void **state)
{
    int port;
    struct gate_test *g = gate_begin(&port);
    int fd = dial(port);
    client_send_frame(fd, "later");
    client_send_frame(fd, "pbob");
    wait_until(g->st, g->st->kept_n == 1);
    settle(g->st);
    assert_int_equal(read_count(g->st, &g->frames), 1);
    finish_kept(g->st, 0, "done");
    client_expect(fd, "done");
    client_expect(fd, "in");
    close(fd);
    gate_end(g);
}

static void it_hears_of_the_end(void **state)
{
    int port;
    struct gate_test *g = gate_begin(&port);
    int fd = dial(port);
    client_send_frame(fd, "hello");
    client_expect(fd, "gate");
    close(fd);
    wait_until(g->st, g->closed == 1);
    gate_end(g);
}

static void a_connection_may_be_refused(void **state)
{
    int port;
    struct gate_test *g = gate_begin(&port);
    g->refuse = true;
    int fd = dial(port);
    client_expect_end(fd);
    wait_until(g->st, g->closed == 1);
    close(fd);
    gate_end(g);
}

UNIT_MAIN(unit_test(frames_go_to_the_gate_until_it_opens), unit_test(other_listeners_have_none),
          unit_test(a_refusal_arrives_before_the_end), unit_test(one_frame_at_a_time),
          unit_test(it_hears_of_the_end), unit_test(a_connection_may_be_refused))
