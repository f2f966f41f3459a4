/* Chains: building from buffers, files and writers; sending through real sockets with any split;
 * files that are shorter than promised; nothing leaks at any point of giving up. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/chain.h"

static struct buf buf_text(const char *text)
{
    struct buf b = BUF_INIT;
    buf_put(&b, text, strlen(text));
    return b;
}

/* A file of n bytes that count up, already unlinked. */
static struct file *counting_file(size_t n)
{
    char path[] = "/tmp/test_chain_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct file *f;
    assert_int_equal(fs_open(fs_posix(), path, O_RDWR, &f), 0);
    unlink(path);
    uint8_t *p = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 7);
    assert_int_equal(file_pwrite_all(f, p, n, 0), 0);
    free(p);
    return f;
}

/* The same without a descriptor: a file layer that has none to send from. */
static ssize_t memory_pread(struct file *f, void *p, size_t n, int64_t off)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)((size_t)(off + (int64_t)i) * 7);
    return (ssize_t)n;
}
static void memory_close(struct file *f)
{
    free(f);
}
static const struct fs_ops memory_ops = {.pread = memory_pread, .close = memory_close};
static struct fs memory_fs = {&memory_ops};

static struct file *memory_file(void)
{
    struct file *f = malloc(sizeof(*f));
    f->fs = &memory_fs;
    atomic_init(&f->refs, 1);
    f->fd = -1;
    return f;
}

/* The rest of the chain through a socket pair, `budget` bytes at a time, reading `step` at a time.
 */
static size_t pump(struct chain *c, uint8_t *out, size_t cap, size_t budget, size_t step)
{
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    size_t got = 0;
    while (c->left > 0) {
        ssize_t sent = chain_send(c, fd[0], budget);
        assert_true(sent >= 0 && (size_t)sent <= budget);
        for (ssize_t n; (n = read(fd[1], out + got, step < cap - got ? step : cap - got)) > 0;)
            got += (size_t)n;
    }
    assert_true(list_empty(&c->pieces));
    close(fd[0]);
    for (ssize_t n; (n = read(fd[1], out + got, cap - got)) > 0;)
        got += (size_t)n;
    close(fd[1]);
    return got;
}

static void buffers_leave_in_order(void **state)
{
    struct chain c, more;
    chain_init(&c);
    chain_init(&more);
    struct buf a = buf_text("one "), b = buf_text("two "), d = buf_text("three"), empty = BUF_INIT;
    assert_int_equal(chain_add_buf(&c, &a), 0);
    assert_null(a.p);
    assert_int_equal(chain_add_buf(&more, &b), 0);
    assert_int_equal(chain_add_buf(&more, &empty), 0);
    assert_int_equal(chain_add_buf(&more, &d), 0);
    chain_append(&c, &more);
    assert_int_equal(more.left, 0);
    assert_int_equal(c.left, 13);
    char out[32] = {0};
    assert_int_equal(chain_read(&c, out, 6), 6);
    assert_string_equal(out, "one tw");
    assert_int_equal(chain_read(&c, out, sizeof(out)), 7);
    assert_memory_equal(out, "o three", 7);
    assert_int_equal(chain_read(&c, out, sizeof(out)), 0);
    chain_free(&c);
}

static void a_failed_buffer_is_refused_and_kept(void **state)
{
    struct chain c;
    chain_init(&c);
    struct buf b = buf_text("x");
    b.failed = true;
    assert_int_equal(chain_add_buf(&c, &b), -ENOMEM);
    assert_non_null(b.p);
    assert_int_equal(c.left, 0);
    struct writer w = {.buf = b};
    assert_int_equal(chain_add_writer(&c, &w, true), -ENOMEM);
    assert_non_null(w.buf.p);
    writer_free(&w);
}

/* memory, file, file, memory, file: splices at equal places and at the end. */
static void make_writer(struct writer *w, struct file *f)
{
    static const struct {
        const char *text;
        int64_t pos;
        int32_t len;
    } parts[] = {{"head", 0, 10}, {"", 100, 1000}, {"middle", 5, 0}, {"", 7, 3}};
    *w = WRITER_INIT;
    w->splices = calloc(8, sizeof(*w->splices));
    w->splices_cap = 8;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        buf_put(&w->buf, parts[i].text, strlen(parts[i].text));
        w->splices[w->splices_n++] =
            (struct splice){w->buf.len, file_ref(f), parts[i].pos, parts[i].len};
    }
}

static size_t expected_writer(uint8_t *out)
{
    size_t n = 0, size = 10 + 10 + 1000 + 3;
    put_be32(out, (uint32_t)size);
    n += 4;
    memcpy(out + n, "head", 4);
    n += 4;
    for (size_t i = 0; i < 10; i++)
        out[n++] = (uint8_t)(i * 7);
    for (size_t i = 100; i < 1100; i++)
        out[n++] = (uint8_t)(i * 7);
    memcpy(out + n, "middle", 6);
    n += 6;
    for (size_t i = 7; i < 10; i++)
        out[n++] = (uint8_t)(i * 7);
    return n;
}

static void a_writer_comes_apart_and_arrives_whole(void **state)
{
    struct file *files[] = {counting_file(2000), memory_file()}; /* sendfile; read and send */
    uint8_t want[2048], got[2048];
    size_t want_n = expected_writer(want);
    for (int i = 0; i < 2; i++) {
        for (size_t budget = 1; budget < 1100; budget += 37) {
            struct writer w;
            make_writer(&w, files[i]);
            struct chain c;
            chain_init(&c);
            assert_int_equal(chain_add_writer(&c, &w, true), 0);
            assert_null(w.buf.p);
            assert_null(w.splices);
            assert_int_equal(c.left, want_n);
            assert_true(c.memory > 10); /* of files, none */
            assert_int_equal(files[i]->refs,
                             4); /* ours and three ranges; an empty one needs none */
            assert_int_equal(pump(&c, got, sizeof(got), budget, 64), want_n);
            assert_memory_equal(got, want, want_n);
            assert_int_equal(c.memory, 0);
            assert_int_equal(files[i]->refs, 1);
        }
        file_unref(files[i]);
    }
}

static void an_unframed_empty_writer_adds_nothing(void **state)
{
    struct chain c;
    chain_init(&c);
    struct writer w = WRITER_INIT;
    assert_int_equal(chain_add_writer(&c, &w, false), 0);
    assert_true(list_empty(&c.pieces));
    assert_int_equal(chain_add_writer(&c, &w, true), 0);
    uint8_t out[8];
    assert_int_equal(pump(&c, out, sizeof(out), 100, 100), 4);
    assert_memory_equal(out, "\0\0\0\0", 4);
}

static void more_pieces_than_one_call_takes(void **state)
{
    struct chain c;
    chain_init(&c);
    char want[1000] = "";
    for (int i = 0; i < 200; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%d,", i);
        strcat(want, text);
        struct buf b = buf_text(text);
        assert_int_equal(chain_add_buf(&c, &b), 0);
    }
    char got[1000] = "";
    assert_int_equal(pump(&c, (uint8_t *)got, sizeof(got), SIZE_MAX, 1000), strlen(want));
    assert_string_equal(got, want);
}

static void a_full_socket_leaves_the_rest(void **state)
{
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    struct chain c;
    chain_init(&c);
    struct buf b = BUF_INIT;
    buf_put_zero(&b, 4 << 20);
    assert_int_equal(chain_add_buf(&c, &b), 0);
    ssize_t first = chain_send(&c, fd[0], SIZE_MAX);
    assert_true(first > 0 && first < 4 << 20);
    assert_int_equal(c.left, (4 << 20) - first);
    assert_int_equal(chain_send(&c, fd[0], SIZE_MAX), 0);
    chain_free(&c);
    close(fd[0]);
    close(fd[1]);
}

static void a_closed_socket_is_an_error_and_no_signal(void **state)
{
    struct file *f = counting_file(100);
    for (int with_file = 0; with_file < 2; with_file++) {
        int fd[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
        close(fd[1]);
        struct chain c;
        chain_init(&c);
        if (with_file) {
            assert_int_equal(chain_add_file(&c, f, 0, 100), 0);
        } else {
            struct buf b = buf_text("x");
            assert_int_equal(chain_add_buf(&c, &b), 0);
        }
        assert_int_equal(chain_send(&c, fd[0], 100), -EPIPE);
        chain_free(&c);
        close(fd[0]);
    }
    assert_int_equal(f->refs, 1);
    file_unref(f);
}

static void a_short_file_is_no_data(void **state)
{
    struct file *f = counting_file(100);
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    struct chain c;
    chain_init(&c);
    assert_int_equal(chain_add_file(&c, f, 50, 51), 0);
    ssize_t n = chain_send(&c, fd[0], 1000);
    if (n == 50) /* what is there may leave first */
        n = chain_send(&c, fd[0], 1000);
    assert_int_equal(n, -ENODATA);
    chain_free(&c);

    chain_init(&c);
    assert_int_equal(chain_add_file(&c, f, 50, 51), 0);
    char out[100];
    assert_int_equal(chain_read(&c, out, sizeof(out)), -ENODATA);
    chain_free(&c);
    assert_int_equal(f->refs, 1);
    file_unref(f);
    close(fd[0]);
    close(fd[1]);
}

/* Looking takes nothing away, and copies only what does not lie together. */
static void a_look_at_the_head(void **state)
{
    struct chain c;
    const uint8_t *at;
    uint8_t tmp[32];
    chain_init(&c);
    assert_int_equal(chain_peek(&c, tmp, sizeof(tmp), &at), 0);
    struct buf a = buf_text("one "), b = buf_text("two");
    assert_int_equal(chain_add_buf(&c, &a), 0);
    assert_int_equal(chain_peek(&c, tmp, sizeof(tmp), &at), 4);
    assert_true(at != tmp);
    assert_int_equal(chain_add_buf(&c, &b), 0);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(chain_peek(&c, tmp, 3, &at), 3);
        assert_true(at != tmp);
        assert_memory_equal(at, "one", 3);
        assert_int_equal(chain_peek(&c, tmp, 6, &at), 6);
        assert_memory_equal(at, "one tw", 6);
        assert_int_equal(chain_peek(&c, tmp, sizeof(tmp), &at), 7);
        assert_memory_equal(at, "one two", 7);
        assert_int_equal(c.left, 7);
    }
    chain_drop(&c, 5);
    assert_int_equal(chain_peek(&c, tmp, sizeof(tmp), &at), 2);
    assert_memory_equal(at, "wo", 2);
    chain_free(&c);
}

/* An answer that is sent but for its last byte takes as much memory as before. */
static void memory_counts_until_the_last_byte(void **state)
{
    struct chain c, other;
    chain_init(&c);
    chain_init(&other);
    for (int i = 0; i < 2; i++) {
        struct writer w = WRITER_INIT;
        buf_put_zero(&w.buf, 100000);
        assert_int_equal(chain_add_writer(&other, &w, true), 0);
        struct buf b = BUF_INIT;
        buf_put_zero(&b, 100000);
        assert_int_equal(chain_add_buf(&other, &b), 0);
        chain_append(&c, &other);
        assert_int_equal(other.memory, 0);
    }
    uint64_t each = c.memory / 2;
    assert_in_range(each, 200000, 400000);
    uint8_t *sink = malloc(200000);
    for (int i = 2; i > 0; i--) {
        assert_in_range(c.memory, (uint64_t)i * each, (uint64_t)i * each);
        assert_int_equal(chain_read(&c, sink, 100003), 100003);
        assert_in_range(c.memory, (uint64_t)i * each, (uint64_t)i * each);
        assert_int_equal(chain_read(&c, sink, 2), 2);
        assert_true(c.memory < (uint64_t)i * each - 99000);
        assert_int_equal(chain_read(&c, sink, 99999), 99999);
    }
    assert_int_equal(c.left, 0);
    assert_int_equal(c.memory, 0);
    free(sink);
}

static void giving_up_anywhere_leaks_nothing(void **state)
{
    struct file *f = counting_file(2000);
    uint8_t want[2048], got[2048];
    size_t want_n = expected_writer(want);
    for (size_t at = 0; at <= want_n; at++) {
        struct writer w;
        make_writer(&w, f);
        struct chain c;
        chain_init(&c);
        assert_int_equal(chain_add_writer(&c, &w, true), 0);
        assert_int_equal(chain_read(&c, got, at), at);
        assert_memory_equal(got, want, at);
        chain_free(&c);
        assert_int_equal(c.memory, 0);
        assert_int_equal(f->refs, 1);
    }
    file_unref(f);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* as the contract of chain_send asks for file ranges */
    const struct CMUnitTest tests[] = {
        unit_test(buffers_leave_in_order),
        unit_test(a_failed_buffer_is_refused_and_kept),
        unit_test(a_writer_comes_apart_and_arrives_whole),
        unit_test(an_unframed_empty_writer_adds_nothing),
        unit_test(more_pieces_than_one_call_takes),
        unit_test(a_full_socket_leaves_the_rest),
        unit_test(a_closed_socket_is_an_error_and_no_signal),
        unit_test(a_short_file_is_no_data),
        unit_test(giving_up_anywhere_leaks_nothing),
        unit_test(memory_counts_until_the_last_byte),
        unit_test(a_look_at_the_head),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
