/* SipHash-2-4 with 128 bits, by vectors of the authors' and of OpenSSL. */
#include "unit.h"

#include <string.h>

#include "base/siphash.h"

static void matches_known_values(void **state)
{
    static const struct {
        size_t n;
        uint8_t hash[16];
    } t[] = {
        {0,
         {0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02,
          0x93}},
        {1,
         {0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc,
          0x45}},
        {2,
         {0x81, 0x77, 0x22, 0x8d, 0xa4, 0xa4, 0x5d, 0xc7, 0xfc, 0xa3, 0x8b, 0xde, 0xf6, 0x0a, 0xff,
          0xe4}},
        {9,
         {0x26, 0x44, 0x99, 0x06, 0x0a, 0xd9, 0xba, 0xab, 0xc4, 0x7f, 0x8b, 0x02, 0xbb, 0x6d, 0x71,
          0xed}},
        {17,
         {0x47, 0x3d, 0x06, 0xe8, 0x73, 0x8d, 0xb8, 0x98, 0x54, 0xc0, 0x66, 0xc4, 0x7a, 0xe4, 0x77,
          0x40}},
    };
    uint8_t bytes[64], key[16];
    struct siphash_key k;
    for (uint8_t i = 0; i < 64; i++)
        bytes[i] = i;
    memcpy(key, bytes, 16);
    memcpy(&k.k[0], key, 8);
    memcpy(&k.k[1], key + 8, 8);
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        uint64_t out[2];
        siphash128(&k, bytes, t[i].n, out);
        assert_memory_equal(out, t[i].hash, 16);
    }
}

static void the_quick_form_matches_known_values(void **state)
{
    static const struct {
        size_t n;
        uint64_t hash;
    } t[] = {{0, 0xabac0158050fc4dc}, {1, 0xc9f49bf37d57ca93}, {7, 0xd3927d989bb11140},
             {8, 0x369095118d299a8e}, {9, 0x25a48eb36c063de4}, {17, 0x9cf2689063dbd80c},
             {64, 0xf17997ec4b4a6065}};
    uint8_t bytes[64];
    struct siphash_key k;
    for (uint8_t i = 0; i < 64; i++)
        bytes[i] = i;
    memcpy(k.k, bytes, 16);
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
        assert_true(siphash13(&k, bytes, t[i].n) == t[i].hash);
}

static void keys_matter(void **state)
{
    struct siphash_key a = siphash_random_key(), b = siphash_random_key();
    uint64_t x[2], y[2];
    siphash128(&a, "same", 4, x);
    siphash128(&b, "same", 4, y);
    assert_memory_not_equal(x, y, 16);
}

UNIT_MAIN(unit_test(matches_known_values), unit_test(the_quick_form_matches_known_values),
          unit_test(keys_matter))
