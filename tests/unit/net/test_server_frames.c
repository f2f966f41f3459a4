/* Bytes to requests over real sockets: any split, many at once, large ones, bad ones. */
#include "net_test.h"

static void split_at_every_byte(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 2);
    static const char two[] = "\0\0\0\5ehalf\0\0\0\7esecond";
    for (size_t cut = 0; cut < sizeof(two); cut++) {
        int fd = client_connect(st);
        client_send(fd, two, cut);
        if (cut % 4 == 0)
            settle(st); /* the pieces arrive apart */
        client_send(fd, two + cut, sizeof(two) - 1 - cut);
        client_expect(fd, "ehalf");
        client_expect(fd, "esecond");
        close(fd);
    }
    server_end(st);
}

static void byte_by_byte(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    static const char one[] = "\0\0\0\5edrip";
    for (size_t i = 0; i < sizeof(one) - 1; i++) {
        client_send(fd, one + i, 1);
        settle(st);
    }
    client_expect(fd, "edrip");
    close(fd);
    server_end(st);
}

static void many_frames_in_one_read(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    struct buf all = BUF_INIT;
    enum { FRAMES = 5000 };
    for (int i = 0; i < FRAMES; i++) {
        char text[16];
        snprintf(text, sizeof(text), "e%d", i);
        buf_put_i32(&all, (int32_t)strlen(text));
        buf_put(&all, text, strlen(text));
    }
    client_send(fd, all.p, all.len);
    buf_free(&all);
    for (int i = 0; i < FRAMES; i++) {
        char text[16];
        snprintf(text, sizeof(text), "e%d", i);
        client_expect(fd, text);
    }
    close(fd);
    server_end(st);
}

static void an_empty_frame_is_a_frame(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    client_send(fd, "\0\0\0\0\0\0\0\1e", 9);
    client_expect(fd, "");
    client_expect(fd, "e");
    close(fd);
    server_end(st);
}

/* Large frames are read in place and small ones through the scratch; mixed, nothing gets lost. */
static void large_and_small_frames_mixed(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 2);
    static const uint32_t sizes[] = {3 << 20,       1,     1 << 20, 70000, 100,     65536,
                                     (1 << 16) - 4, 65532, 5,       40000, 2 << 20, 33000};
    int fd = client_connect(st);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            uint32_t n = sizes[i], got_n;
            uint8_t *p = malloc(n);
            for (uint32_t k = 0; k < n; k++)
                p[k] = (uint8_t)(k * 13 + (k >> 9) + i);
            p[0] = 'e';
            client_send_frame_n(fd, p, n);
            if (round == 1 && i + 1 < sizeof(sizes) / sizeof(sizes[0]))
                client_send_frame(fd, "eback to back");
            uint8_t *got = client_recv_frame(fd, &got_n);
            assert_int_equal(got_n, n);
            assert_memory_equal(got, p, n);
            free(got);
            free(p);
            if (round == 1 && i + 1 < sizeof(sizes) / sizeof(sizes[0]))
                client_expect(fd, "eback to back");
        }
    }
    close(fd);
    server_end(st);
}

static void bad_lengths_close_with_one_line(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } cases[] = {
        {"\xff\xff\xff\xff", 4, "frame length -1 is not within 0..104857600"},
        {"\x06\x40\0\1", 4, "frame length 104857601 is not within 0..104857600"},
        {"\x7f\xff\xff\xffwhatever", 12, "frame length 2147483647"},
        {"\x16\x03\x01\x02\0\1\0\1\xfc\3\3", 11, "TLS ClientHello"},
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, "HTTP request"},
        {"POST /topics HTTP/1.1\r\n\r\n", 25, "HTTP request"},
    };
    struct server_test *st = server_new();
    server_begin(st, 1);
    int other = client_connect(st);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int fd = client_connect(st);
        client_send(fd, cases[i].bytes, cases[i].n);
        client_expect_end(fd);
        wait_until(st, log_lines(st, cases[i].says) > 0);
        assert_int_equal(log_lines(st, "closing connection of 127.0.0.1:"), i + 1);
        close(fd);
        client_round_trip(other, "eothers do not notice");
    }
    close(other);
    server_end(st);
}

static void frames_before_a_bad_length_are_answered(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    client_send(fd, "\0\0\0\3eok\xff\xff\xff\xff", 11);
    client_expect(fd, "eok");
    client_expect_end(fd);
    close(fd);
    server_end(st);
}

static bool small_cap(void *arg, struct conn *c)
{
    conn_set_max_frame(c, 10);
    return true;
}

static void a_connection_may_have_a_smaller_cap(void **state)
{
    struct server_test *st = server_new();
    st->handler.opened = small_cap;
    server_begin(st, 1);
    int fd = client_connect(st);
    client_round_trip(fd, "e123456789");
    client_send_frame(fd, "e123456789x");
    client_expect_end(fd);
    wait_until(st, log_lines(st, "frame length 11 is not within 0..10") == 1);
    close(fd);
    server_end(st);
}

UNIT_MAIN(unit_test(split_at_every_byte), unit_test(byte_by_byte),
          unit_test(many_frames_in_one_read), unit_test(an_empty_frame_is_a_frame),
          unit_test(large_and_small_frames_mixed), unit_test(bad_lengths_close_with_one_line),
          unit_test(frames_before_a_bad_length_are_answered),
          unit_test(a_connection_may_have_a_smaller_cap))
