/* siphash.h - SipHash-2-4 with 128 bits: a hash of short strings that cannot be made to collide by
 * who does not know its key. */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
    uint64_t k[2];
};

/* From the machine's random source. */
struct siphash_key siphash_random_key(void);
void siphash128(const struct siphash_key *key, const void *p, size_t n, uint64_t out[2]);

#endif
