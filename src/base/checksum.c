/* checksum.c - crc32c: the choice of form and the portable one (slicing by 8); murmur2. */
#include "base/checksum.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/crc32c_hw.h"

static const uint32_t polynomial = 0x82f63b78; /* bits reversed */

/* table[k][b]: what byte b contributes when k bytes come behind it. Fixed once made. */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        table[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xff];
}

static inline uint64_t load_le64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

uint32_t crc32c_portable(uint32_t start, const void *data, size_t n)
{
    pthread_once(&table_once, make_table);
    const uint8_t *p = data;
    uint32_t crc = ~start;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t w = load_le64(p) ^ crc;
        crc = table[7][w & 0xff] ^ table[6][w >> 8 & 0xff] ^ table[5][w >> 16 & 0xff] ^
              table[4][w >> 24 & 0xff] ^ table[3][w >> 32 & 0xff] ^ table[2][w >> 40 & 0xff] ^
              table[1][w >> 48 & 0xff] ^ table[0][w >> 56];
    }
    for (; n; n--, p++)
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
    return ~crc;
}

static uint32_t choose(uint32_t crc, const void *p, size_t n);

/* Threads that come first at the same time all choose the same. */
static _Atomic(crc32c_fn) chosen = choose;

static uint32_t choose(uint32_t crc, const void *p, size_t n)
{
    crc32c_fn fn = crc32c_hw();
    if (!fn)
        fn = crc32c_portable;
    atomic_store_explicit(&chosen, fn, memory_order_relaxed);
    return fn(crc, p, n);
}

uint32_t crc32c_update(uint32_t crc, const void *p, size_t n)
{
    return atomic_load_explicit(&chosen, memory_order_relaxed)(crc, p, n);
}

uint32_t crc32c(const void *p, size_t n)
{
    return crc32c_update(0, p, n);
}

uint32_t murmur2(const void *data, size_t n)
{
    const uint32_t m = 0x5bd1e995;
    const uint8_t *p = data;
    uint32_t h = 0x9747b28c ^ (uint32_t)n;
    for (; n >= 4; n -= 4, p += 4) {
        uint32_t k =
            (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        k *= m;
        k ^= k >> 24;
        h = h * m ^ k * m;
    }
    if (n >= 3)
        h ^= (uint32_t)p[2] << 16;
    if (n >= 2)
        h ^= (uint32_t)p[1] << 8;
    if (n >= 1)
        h = (h ^ p[0]) * m;
    h ^= h >> 13;
    h *= m;
    return h ^ h >> 15;
}
