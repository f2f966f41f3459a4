/* crc32c and murmur2: known values, and both forms of crc32c say the same. */
#include "base/checksum.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

static void crc32c_known_values(void **state)
{
    uint8_t bytes[32] = {0};
    assert_int_equal(crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(crc32c("", 0), 0);
    assert_int_equal(crc32c(bytes, 32), 0x8a9136aa); /* RFC 3720, B.4 */
    memset(bytes, 0xff, 32);
    assert_int_equal(crc32c(bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(crc32c(bytes, 32), 0x46dd794e);
}

static void crc32c_of_a_record_batch(void **state)
{
    /* two records "k1" -> "hello" (header h1 = 01 02), null -> "world"; from the attributes on */
    static const uint8_t from_attributes[] = {
        0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 0x00,
        0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x05, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x02, 0x26, 0x00, 0x00, 0x00, 0x04,
        0x6b, 0x31, 0x0a, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x02, 0x04, 0x68, 0x31, 0x04, 0x01, 0x02,
        0x16, 0x00, 0x0a, 0x02, 0x01, 0x0a, 0x77, 0x6f, 0x72, 0x6c, 0x64, 0x00};
    assert_int_equal(crc32c(from_attributes, sizeof(from_attributes)), 0x82fe0de4);
}

/* Bit by bit, straight from the definition. */
static uint32_t crc32c_slow(uint32_t crc, const uint8_t *p, size_t n)
{
    crc = ~crc;
    while (n--) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static void crc32c_forms_agree_on_every_length_and_alignment(void **state)
{
    enum { MAX = 20000 };
    uint8_t *data = malloc(MAX + 16);
    srandom(1);
    for (int i = 0; i < MAX + 16; i++)
        data[i] = (uint8_t)random();
    for (int round = 0; round < 1500; round++) {
        size_t n = round < 900 ? (size_t)round : (size_t)random() % MAX;
        const uint8_t *p = data + random() % 16;
        uint32_t start = round % 3 ? (uint32_t)random() : 0;
        uint32_t right = crc32c_slow(start, p, n);
        assert_int_equal(crc32c_update(start, p, n), right);
        assert_int_equal(crc32c_portable(start, p, n), right);
        size_t half = n / 3;
        assert_int_equal(crc32c_update(crc32c_update(start, p, half), p + half, n - half), right);
    }
    free(data);
}

static void murmur2_as_the_partitioner(void **state)
{
    static const struct {
        const char *key;
        int32_t hash;
    } cases[] = {
        {"", 275646681},
        {"0", 971027396},
        {"a", -1563381124},
        {"ab", 316155434},
        {"abc", 479470107},
        {"abcd", -1323649548},
        {"21", -973932308},
        {"foobar", -790332482},
        {"kafka", -798503068},
        {"key1", 28543940},
        {"hello", 2132663229},
        {"user-42", 1459644460},
        {"a-little-bit-long-string", -985981536},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal((int32_t)murmur2(cases[i].key, strlen(cases[i].key)), cases[i].hash);
    assert_int_equal((int32_t)murmur2("\0\1\2\3", 4), 1916244640);
    assert_int_equal((int32_t)murmur2("\0\0\0\0\0\0\0\0", 8), -522759933);
}

UNIT_MAIN(unit_test(crc32c_known_values), unit_test(crc32c_of_a_record_batch),
          unit_test(crc32c_forms_agree_on_every_length_and_alignment),
          unit_test(murmur2_as_the_partitioner))
