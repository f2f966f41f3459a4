/* crc32c_hw.h - the form of crc32c for this machine's CPU; private to checksum.c and tests. */
#ifndef BASE_CRC32C_HW_H
#define BASE_CRC32C_HW_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t (*crc32c_fn)(uint32_t crc, const void *p, size_t n);

/* NULL when this CPU has no instruction for it, or the build has no code for this kind of CPU. */
crc32c_fn crc32c_hw(void);

#endif
