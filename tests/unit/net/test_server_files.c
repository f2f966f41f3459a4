/* Answers made of file ranges, over TCP. */
#include "net_test.h"

#include <fcntl.h>

enum { FILE_SIZE = 5000000 };

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 2654435761u >> 13);
}

static struct file *test_file(void)
{
    char path[] = "/tmp/test_server_files_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct file *f;
    assert_int_equal(fs_open(fs_posix(), path, O_RDWR, &f), 0);
    unlink(path);
    uint8_t *p = malloc(FILE_SIZE);
    for (size_t i = 0; i < FILE_SIZE; i++)
        p[i] = byte_at(i);
    assert_int_equal(file_pwrite_all(f, p, FILE_SIZE, 0), 0);
    free(p);
    return f;
}

/* Nothing may hold on to the file any more. */
static void server_end_with_file(struct server_test *st)
{
    struct file *f = st->file;
    server_end(st);
    assert_int_equal(f->refs, 1);
    file_unref(f);
}

static void expect_range(int fd, size_t pos, size_t n)
{
    uint32_t got_n;
    uint8_t *got = client_recv_frame(fd, &got_n);
    assert_int_equal(got_n, n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != byte_at(pos + i))
            fail_msg("byte %zu of the range at %zu is wrong", i, pos);
    free(got);
}

static void ranges_arrive_as_they_are_in_the_file(void **state)
{
    struct server_test *st = server_new();
    st->file = test_file();
    server_begin(st, 1);
    int fd = client_connect(st), slow = client_connect(st);
    static const size_t ranges[][2] = {{0, 1},        {0, 100},         {4095, 2},
                                       {77, 1000000}, {0, FILE_SIZE},   {FILE_SIZE - 1, 1},
                                       {1234, 0},     {100000, 3000000}};
    enum { N = sizeof(ranges) / sizeof(ranges[0]) };
    for (int i = 0; i < N; i++) {
        char text[64];
        snprintf(text, sizeof(text), "f%zu,%zu", ranges[i][0], ranges[i][1]);
        client_send_frame(fd, text);
        client_send_frame(slow, text); /* pipelined: more than its socket takes */
    }
    for (int i = 0; i < N; i++)
        expect_range(fd, ranges[i][0], ranges[i][1]);
    for (int i = 0; i < N; i++)
        expect_range(slow, ranges[i][0], ranges[i][1]);
    close(fd);
    close(slow);
    server_end_with_file(st);
}

static void a_truncated_file_closes_the_connection(void **state)
{
    struct server_test *st = server_new();
    st->file = test_file();
    server_begin(st, 1);
    int fd = client_connect(st), other = client_connect(st);
    char text[64];
    snprintf(text, sizeof(text), "f10,%d", FILE_SIZE); /* ten bytes more than there are */
    client_send_frame(fd, text);
    client_send_frame(fd, "eafter");
    uint8_t head[4];
    client_recv(fd, head, 4);
    assert_int_equal(get_be32(head), FILE_SIZE);
    size_t got = 0;
    char chunk[65536];
    for (ssize_t n; (n = recv(fd, chunk, sizeof(chunk), 0)) > 0;)
        got += (size_t)n;
    assert_true(got <= FILE_SIZE - 10);
    wait_until(st, log_lines(st, "a file is shorter") == 1 && st->closed == 1);
    client_round_trip(other, "eothers");
    close(fd);
    close(other);
    server_end_with_file(st);
}

/* The client goes while a range is on its way: no signal, no leak of the file. */
static void the_client_goes_in_the_middle(void **state)
{
    struct server_test *st = server_new();
    st->file = test_file();
    server_begin(st, 2);
    for (int i = 0; i < 20; i++) {
        int fd = client_connect(st);
        char text[64];
        snprintf(text, sizeof(text), "f%d,%d", i, FILE_SIZE - i);
        client_send_frame(fd, text);
        uint8_t some[1000];
        client_recv(fd, some, sizeof(some));
        close(fd); /* with unread bytes: a reset */
    }
    wait_until(st, st->closed == 20);
    server_end_with_file(st);
}

UNIT_MAIN(unit_test(ranges_arrive_as_they_are_in_the_file),
          unit_test(a_truncated_file_closes_the_connection),
          unit_test(the_client_goes_in_the_middle))
