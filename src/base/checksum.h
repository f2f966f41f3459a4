/* checksum.h - CRC-32C (Castagnoli) by hardware where the CPU has it (chosen once at run time),
 * else by tables; and murmur2 as Kafka's partitioner uses it. */
#ifndef BASE_CHECKSUM_H
#define BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* crc32c("123456789") = 0xe3069283. To go on: crc32c_update(earlier, more). */
uint32_t crc32c(const void *p, size_t n);
uint32_t crc32c_update(uint32_t crc, const void *p, size_t n);
/* The portable form, for tests and comparison. */
uint32_t crc32c_portable(uint32_t crc, const void *p, size_t n);

/* Seed 0x9747b28c; the partitioner uses (murmur2 & 0x7fffffff) % partitions. */
uint32_t murmur2(const void *p, size_t n);

#endif
