/* vectors.h - bytes of tests/unit/data/disk_vectors.txt by name. */
#ifndef TESTS_LOG_VECTORS_H
#define TESTS_LOG_VECTORS_H

#include "project_paths.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

/* The bytes of the vector `name`, at most `max` of them; fails when there is none. */
static inline size_t vector(const char *name, uint8_t *out, size_t max)
{
    char line[2048];
    size_t n = 0, name_n = strlen(name);
    FILE *f = fopen(TEST_DATA_DIR "/disk_vectors.txt", "r");
    assert_non_null(f);
    while (n == 0 && fgets(line, sizeof(line), f)) {
        unsigned byte;
        if (strncmp(line, name, name_n) != 0 || line[name_n] != ' ')
            continue;
        for (const char *p = line + name_n + 1; sscanf(p, "%2x", &byte) == 1 && n < max; p += 2)
            out[n++] = (uint8_t)byte;
    }
    fclose(f);
    assert_true(n > 0);
    return n;
}

static inline void assert_vector(const char *name, const void *p, size_t n)
{
    uint8_t want[1024];
    assert_int_equal(n, vector(name, want, sizeof(want)));
    assert_memory_equal(p, want, n);
}

#endif
