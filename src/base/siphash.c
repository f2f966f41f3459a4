#include "base/siphash.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotl(uint64_t v, int by)
{
    return v << by | v >> (64 - by);
}

static inline void mix(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotl(s->v1, 13) ^ s->v0;
    s->v0 = rotl(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotl(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotl(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotl(s->v1, 17) ^ s->v2;
    s->v2 = rotl(s->v2, 32);
}

/* All of p, `rounds` for each word. The whole is inlined with `rounds` known. */
static inline void absorb(struct sip *s, int rounds, const uint8_t *at, size_t n)
{
    uint64_t word;
    size_t left = n;
    for (bool last = false; !last;) {
        last = left < 8;
        word = 0;
        if (left)
            memcpy(&word, at, last ? left : 8);
        word = le64toh(word) | (last ? (uint64_t)n << 56 : 0);
        s->v3 ^= word;
        for (int i = 0; i < rounds; i++)
            mix(s);
        s->v0 ^= word;
        if (!last)
            at += 8, left -= 8;
    }
}

static inline uint64_t finish(struct sip *s, int rounds)
{
    for (int i = 0; i < rounds; i++)
        mix(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static inline struct sip begin(const struct siphash_key *key)
{
    const uint64_t k0 = key->k[0], k1 = key->k[1];
    return (struct sip){k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                        k1 ^ 0x7465646279746573};
}

uint64_t siphash13(const struct siphash_key *key, const void *p, size_t n)
{
    struct sip s = begin(key);
    absorb(&s, 1, p, n);
    s.v2 ^= 0xff;
    return finish(&s, 3);
}

void siphash128(const struct siphash_key *key, const void *p, size_t n, uint64_t out[2])
{
    struct sip s = begin(key);
    s.v1 ^= 0xee;
    absorb(&s, 2, p, n);
    s.v2 ^= 0xee;
    out[0] = finish(&s, 4);
    s.v1 ^= 0xdd;
    out[1] = finish(&s, 4);
}

struct siphash_key siphash_random_key(void)
{
    struct siphash_key key;
    struct uuid u = uuid_random();
    memcpy(key.k, u.b, sizeof(key.k));
    return key;
}
