/* crc32c_hw.c - CRC-32C by the CPU's own instruction.
 *
 * x86-64: crc32 takes 8 bytes in one cycle but its result comes after three, so three lanes are run
 * side by side and then joined. Joining means moving a lane's crc over the bytes of the lanes
 * behind it, which is a multiplication by x^(8 * bytes) modulo the polynomial: one carry-less
 * multiplication by x^(8 * bytes - 33), and one crc32 of the 64-bit product to reduce it. The
 * constants are those powers, bits reversed as the crc itself is.
 *
 * ARMv8: one lane; the instruction is there on all 64-bit servers but asked for all the same. */
#include "base/crc32c_hw.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("sse4.2,pclmul")))

struct lanes {
    size_t bytes;      /* of one lane */
    uint32_t over_one; /* x^(8 * bytes - 33) */
    uint32_t over_two; /* x^(16 * bytes - 33) */
};
static const struct lanes long_lanes = {1024, 0x170076fa, 0xa51b6135};
static const struct lanes short_lanes = {128, 0x0d3b6092, 0xb9e02b86};

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

TARGET static inline uint64_t product(uint64_t crc, uint32_t k)
{
    __m128i x = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128(k), 0);
    return (uint64_t)_mm_cvtsi128_si64(x);
}

TARGET static inline uint64_t three_lanes(uint64_t crc, const uint8_t *p, const struct lanes *l)
{
    uint64_t a = crc, b = 0, c = 0;
    for (const uint8_t *end = p + l->bytes; p < end; p += 8) {
        a = _mm_crc32_u64(a, load64(p));
        b = _mm_crc32_u64(b, load64(p + l->bytes));
        c = _mm_crc32_u64(c, load64(p + 2 * l->bytes));
    }
    return c ^ _mm_crc32_u64(0, product(a, l->over_two) ^ product(b, l->over_one));
}

TARGET static uint32_t crc32c_x86(uint32_t start, const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t crc = ~start;
    for (; n >= 3 * long_lanes.bytes; n -= 3 * long_lanes.bytes, p += 3 * long_lanes.bytes)
        crc = three_lanes(crc, p, &long_lanes);
    for (; n >= 3 * short_lanes.bytes; n -= 3 * short_lanes.bytes, p += 3 * short_lanes.bytes)
        crc = three_lanes(crc, p, &short_lanes);
    for (; n >= 8; n -= 8, p += 8)
        crc = _mm_crc32_u64(crc, load64(p));
    for (; n; n--, p++)
        crc = _mm_crc32_u8((uint32_t)crc, *p);
    return ~(uint32_t)crc;
}

crc32c_fn crc32c_hw(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") ? crc32c_x86 : NULL;
}

#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

/* clang's arm_acle.h hides these from a build that does not ask for them everywhere */
#if defined(__clang__)
#define TARGET __attribute__((target("crc")))
#define CRC_8 __builtin_arm_crc32cb
#define CRC_64 __builtin_arm_crc32cd
#else
#define TARGET __attribute__((target("+crc")))
#define CRC_8 __builtin_aarch64_crc32cb
#define CRC_64 __builtin_aarch64_crc32cx
#endif

TARGET static uint32_t crc32c_arm(uint32_t start, const void *data, size_t n)
{
    const uint8_t *p = data;
    uint32_t crc = ~start;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        crc = CRC_64(crc, word);
    }
    for (; n; n--, p++)
        crc = CRC_8(crc, *p);
    return ~crc;
}

crc32c_fn crc32c_hw(void)
{
    return getauxval(AT_HWCAP) & HWCAP_CRC32 ? crc32c_arm : NULL;
}

#else

crc32c_fn crc32c_hw(void)
{
    return NULL;
}

#endif
