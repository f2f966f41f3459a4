#include "base/siphash.h"

#include <endian.h>
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

static inline void take(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    mix(s);
    mix(s);
    s->v0 ^= word;
}

static inline uint64_t finish(struct sip *s)
{
    mix(s);
    mix(s);
    mix(s);
    mix(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

void siphash128(const struct siphash_key *key, const void *p, size_t n, uint64_t out[2])
{
    const uint64_t k0 = key->k[0], k1 = key->k[1];
    struct sip s = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee,
                    k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
    const uint8_t *at = p;
    size_t left = n;
    uint64_t word;
    for (; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        take(&s, le64toh(word));
    }
    word = 0;
    if (left)
        memcpy(&word, at, left);
    take(&s, le64toh(word) | (uint64_t)n << 56);
    s.v2 ^= 0xee;
    out[0] = finish(&s);
    s.v1 ^= 0xdd;
    out[1] = finish(&s);
}

struct siphash_key siphash_random_key(void)
{
    struct siphash_key key;
    struct uuid u = uuid_random();
    memcpy(key.k, u.b, sizeof(key.k));
    return key;
}
