/* Framing without sockets: every split, both ways in, every bad length. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "net/framing.h"

static struct frame_pool pool;

static int setup(void **state)
{
    frame_pool_init(&pool, 1 << 20, NULL);
    return 0;
}

static int teardown(void **state)
{
    frame_pool_free(&pool);
    return 0;
}

/* Feeds p..p+n; appends each complete frame as "<text>;" to out. */
static enum framing_event feed(struct framing *f, const uint8_t *p, size_t n, struct buf *out)
{
    for (;;) {
        enum framing_event ev = framing_feed(f, &pool, &p, &n);
        if (ev == FRAMING_LENGTH) {
            assert_int_equal(framing_begin(f, &pool), 0);
        } else if (ev == FRAMING_FRAME) {
            struct frame_mem m;
            uint32_t len = framing_take(f, &pool, &m);
            buf_put(out, m.p, len);
            buf_put(out, ";", 1);
            frame_pool_put(&pool, &m);
        } else {
            return ev;
        }
    }
}

static const char three[] = "\0\0\0\3abc\0\0\0\0\0\0\0\1z\0\0\0\5hello";

static void every_split_gives_the_same_frames(void **state)
{
    size_t n = sizeof(three) - 1;
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = i; j <= n; j++) {
            struct framing f;
            struct buf out = BUF_INIT;
            framing_init(&f, 100);
            const uint8_t *p = (const uint8_t *)three;
            feed(&f, p, i, &out);
            feed(&f, p + i, j - i, &out);
            assert_int_equal(feed(&f, p + j, n - j, &out), FRAMING_MORE);
            assert_int_equal(out.len, 13);
            assert_memory_equal(out.p, "abc;;z;hello;", 13);
            buf_free(&out);
            framing_free(&f, &pool);
        }
    }
}

static void large_frames_grow_and_stay_right(void **state)
{
    uint32_t len = 1000000;
    uint8_t *p = malloc(4 + len);
    put_be32(p, len);
    for (uint32_t i = 0; i < len; i++)
        p[4 + i] = (uint8_t)(i * 31 >> 3);
    for (size_t step = 100; step < 400000; step = step * 3 + 1) {
        struct framing f;
        framing_init(&f, len);
        size_t at = 0;
        /* by turns fed and read in place */
        for (int turn = 0; at < 4 + len; turn++) {
            size_t n = step < 4 + len - at ? step : 4 + len - at;
            if (framing_in_body(&f) && turn % 2) {
                size_t room;
                uint8_t *to = framing_direct(&f, &pool, &room);
                assert_non_null(to);
                assert_true(room > 0 && room <= f.len - f.got);
                n = n < room ? n : room;
                memcpy(to, p + at, n);
                framing_took(&f, n);
                at += n;
            } else {
                const uint8_t *from = p + at;
                size_t left = n;
                if (framing_feed(&f, &pool, &from, &left) == FRAMING_LENGTH) {
                    assert_int_equal(framing_begin(&f, &pool), 0);
                    framing_feed(&f, &pool, &from, &left);
                }
                at += n - left;
            }
            assert_true(f.mem.cap <= 64 * 1024 || f.mem.lent || f.mem.cap <= 2 * (f.got + step));
        }
        const uint8_t *none = p;
        size_t zero = 0;
        assert_int_equal(framing_feed(&f, &pool, &none, &zero), FRAMING_FRAME);
        struct frame_mem m;
        assert_int_equal(framing_take(&f, &pool, &m), len);
        assert_memory_equal(m.p, p + 4, len);
        assert_int_equal(f.last_len, len);
        frame_pool_put(&pool, &m);
        framing_free(&f, &pool);
    }
    free(p);
}

static void bad_lengths_are_told_before_anything_is_allocated(void **state)
{
    static const struct {
        const char *head;
        const char *says;
    } cases[] = {
        {"\0\0\0\x65", "frame length 101 is not within 0..100"},
        {"\xff\xff\xff\xff", "frame length -1 is not within 0..100"},
        {"\x80\0\0\0", "frame length -2147483648 is not within 0..100"},
        {"\x7f\xff\xff\xff", "frame length 2147483647 is not within 0..100"},
        {"\x16\x03\x01\x02", "(this looks like a TLS ClientHello)"},
        {"GET ", "(this looks like an HTTP request)"},
        {"POST", "(this looks like an HTTP request)"},
        {"PUT ", "(this looks like an HTTP request)"},
        {"SSH-", "(this looks like an SSH client)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct framing f;
        struct buf out = BUF_INIT;
        framing_init(&f, 100);
        assert_int_equal(feed(&f, (const uint8_t *)cases[i].head, 4, &out), FRAMING_BAD);
        assert_null(f.mem.p);
        char why[160];
        framing_complaint(&f, why, sizeof(why));
        assert_non_null(strstr(why, cases[i].says));
        if (!strchr(cases[i].says, '('))
            assert_string_equal(why, cases[i].says);
        framing_free(&f, &pool);
    }
}

static void the_largest_limit_still_refuses_negative_lengths(void **state)
{
    struct framing f;
    struct buf out = BUF_INIT;
    framing_init(&f, UINT32_MAX);
    assert_int_equal(feed(&f, (const uint8_t *)"\xff\0\0\0", 4, &out), FRAMING_BAD);
    framing_free(&f, &pool);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(every_split_gives_the_same_frames, setup, teardown),
          cmocka_unit_test_setup_teardown(large_frames_grow_and_stay_right, setup, teardown),
          cmocka_unit_test_setup_teardown(bad_lengths_are_told_before_anything_is_allocated, setup,
                                          teardown),
          cmocka_unit_test_setup_teardown(the_largest_limit_still_refuses_negative_lengths, setup,
                                          teardown))
