/* Writing into buffers and reading out of bytes. */
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

static void integers_are_big_endian(void **state)
{
    static const uint8_t right[] = {0xfe, 0x12, 0x34, 0x80, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8};
    struct buf b = BUF_INIT;
    buf_put_i8(&b, -2);
    buf_put_i16(&b, 0x1234);
    buf_put_i32(&b, INT32_MIN + 1);
    buf_put_i64(&b, 0x0102030405060708);
    assert_int_equal(b.len, sizeof(right));
    assert_memory_equal(b.p, right, sizeof(right));
    struct reader r = reader_of(b.p, b.len);
    assert_int_equal(reader_i8(&r), -2);
    assert_int_equal(reader_i16(&r), 0x1234);
    assert_int_equal(reader_i32(&r), INT32_MIN + 1);
    assert_int_equal(reader_i64(&r), 0x0102030405060708);
    assert_int_equal(reader_left(&r), 0);
    assert_false(r.bad);
    buf_free(&b);
}

static void past_the_end_is_bad_and_stays_bad(void **state)
{
    const uint8_t two[] = {1, 2};
    struct reader r = reader_of(two, 2);
    assert_int_equal(reader_i32(&r), 0);
    assert_true(r.bad);
    assert_int_equal(reader_i8(&r), 0);
    assert_null(reader_take(&r, 0));
    r = reader_of(two, 2);
    assert_null(reader_take(&r, SIZE_MAX));
    r = reader_of(NULL, 0);
    assert_int_equal(reader_varint(&r), 0);
    assert_true(r.bad);
}

static void varints_go_there_and_back(void **state)
{
    static const struct {
        int32_t v;
        size_t len;
    } cases[] = {{0, 1},         {-1, 1},        {1, 1},         {63, 1},
                 {-64, 1},       {64, 2},        {-65, 2},       {8191, 2},
                 {-8192, 2},     {8192, 3},      {1048575, 3},   {1048576, 4},
                 {134217727, 4}, {134217728, 5}, {INT32_MAX, 5}, {INT32_MIN, 5}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf b = BUF_INIT;
        buf_put_varint(&b, cases[i].v);
        assert_int_equal(b.len, cases[i].len);
        buf_put_uvarint(&b, (uint32_t)cases[i].v);
        buf_put_varlong(&b, cases[i].v);
        buf_put_varlong(&b, cases[i].v * (1LL << 31));
        struct reader r = reader_of(b.p, b.len);
        assert_int_equal(reader_varint(&r), cases[i].v);
        assert_int_equal(reader_uvarint(&r), (uint32_t)cases[i].v);
        assert_int_equal(reader_varlong(&r), cases[i].v);
        assert_true(reader_varlong(&r) == cases[i].v * (1LL << 31));
        assert_false(r.bad);
        assert_int_equal(reader_left(&r), 0);
        buf_free(&b);
    }
    const int64_t ends[] = {INT64_MIN, INT64_MAX};
    for (int i = 0; i < 2; i++) {
        struct buf b = BUF_INIT;
        buf_put_varlong(&b, ends[i]);
        assert_int_equal(b.len, 10);
        struct reader r = reader_of(b.p, b.len);
        assert_true(reader_varlong(&r) == ends[i] && !r.bad);
        buf_free(&b);
    }
}

static bool uvarint_bad(const char *bytes, size_t n, uint32_t *v)
{
    struct reader r = reader_of(bytes, n);
    *v = reader_uvarint(&r);
    return r.bad;
}

static bool varlong_bad(const char *bytes, size_t n)
{
    struct reader r = reader_of(bytes, n);
    reader_varlong(&r);
    return r.bad;
}

static void varints_too_long_or_too_large_are_bad(void **state)
{
    uint32_t v;
    assert_false(uvarint_bad("\xff\xff\xff\xff\x0f", 5, &v));
    assert_int_equal(v, UINT32_MAX);
    assert_false(uvarint_bad("\x81\x80\x80\x80\x00", 5, &v)); /* padded */
    assert_int_equal(v, 1);
    assert_true(uvarint_bad("\xff\xff\xff\xff\x1f", 5, &v));
    assert_true(uvarint_bad("\xff\xff\xff\xff\xff\x01", 6, &v));
    assert_true(uvarint_bad("\x80\x80\x80\x80\x80\x00", 6, &v));
    assert_true(uvarint_bad("\xff\xff", 2, &v)); /* cut */
    assert_int_equal(v, 0);
    assert_false(varlong_bad("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10));
    assert_true(varlong_bad("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10));
    assert_true(varlong_bad("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11));
}

static void grows_prints_and_hands_over(void **state)
{
    struct buf b = BUF_INIT;
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%d,", i);
    buf_put_zero(&b, 3);
    buf_put(&b, NULL, 0);
    buf_put(&b, "end", 4);
    assert_int_equal(b.len, 3890 + 3 + 4);
    assert_memory_equal(b.p, "0,1,2,3,", 8);
    assert_string_equal((char *)b.p + 3893, "end");
    size_t len;
    uint8_t *p = buf_take(&b, &len);
    assert_int_equal(len, 3897);
    assert_null(b.p);
    assert_int_equal(b.len, 0);
    free(p);
    buf_free(&b);
}

static void without_memory_it_fails_and_stays_failed(void **state)
{
    struct buf b = BUF_INIT;
    buf_put_i8(&b, 1);
    assert_false(buf_reserve(&b, SIZE_MAX));
    assert_true(b.failed);
    buf_put_i32(&b, 7);
    buf_put_varint(&b, 7);
    buf_printf(&b, "x");
    assert_int_equal(b.len, 1);
    buf_free(&b);
    assert_false(b.failed);
}

UNIT_MAIN(unit_test(integers_are_big_endian), unit_test(past_the_end_is_bad_and_stays_bad),
          unit_test(varints_go_there_and_back), unit_test(varints_too_long_or_too_large_are_bad),
          unit_test(grows_prints_and_hands_over),
          unit_test(without_memory_it_fails_and_stays_failed))
