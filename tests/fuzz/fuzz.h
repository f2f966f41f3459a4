/* fuzz.h - what every fuzz target has: its entry, and the way in which it says that a rule is
 * broken. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static inline void must(bool b)
{
    if (!b)
        abort();
}

#endif
