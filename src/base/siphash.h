/* siphash.h - SipHash: a hash of short strings that cannot be made to collide by who does not know
 * its key.
 *
 * THREADS  any: no state. */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
    uint64_t k[2];
};

/* From the machine's random source. */
struct siphash_key siphash_random_key(void);
/* SipHash-1-3, 64 bits: for tables, where a collision costs time only. */
uint64_t siphash13(const struct siphash_key *key, const void *p, size_t n);
/* SipHash-2-4, 128 bits: for where a hash stands for what was hashed. */
void siphash128(const struct siphash_key *key, const void *p, size_t n, uint64_t out[2]);

#endif
