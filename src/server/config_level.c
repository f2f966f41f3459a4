/* config_level.c - names of Kafka's protocol levels: a release, perhaps with its step (2.7-IV1).
 *
 * A name without a step is the last step of its release; what follows the numbers that make up a
 * release (two, or three in 0.x) is dropped, so that 2.3.1 is 2.3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/config_value.h"

struct release {
    int major, minor;
    int patch;  /* -1: the release has two numbers */
    int max_iv; /* -1: the release has no steps */
};

static const struct release releases[] = {
    {0, 8, 0, -1}, {0, 8, 1, -1}, {0, 8, 2, -1}, {0, 9, 0, -1}, {0, 10, 0, 1}, {0, 10, 1, 2},
    {0, 10, 2, 0}, {0, 11, 0, 2}, {1, 0, -1, 0}, {1, 1, -1, 0}, {2, 0, -1, 1}, {2, 1, -1, 2},
    {2, 2, -1, 1}, {2, 3, -1, 1}, {2, 4, -1, 1}, {2, 5, -1, 0}, {2, 6, -1, 0}, {2, 7, -1, 2},
    {2, 8, -1, 1}, {3, 0, -1, 1}, {3, 1, -1, 0}, {3, 2, -1, 0}, {3, 3, -1, 3}, {3, 4, -1, 0},
    {3, 5, -1, 2}, {3, 6, -1, 2}, {3, 7, -1, 4}, {3, 8, -1, 0}, {3, 9, -1, 0}, {4, 0, -1, 1},
};

/* Digits only, at most 4 of them; the end, or NULL. */
static const char *number(const char *p, int *out)
{
    const char *start = p;
    int v = 0;
    while (*p >= '0' && *p <= '9' && p - start < 4)
        v = v * 10 + (*p++ - '0');
    *out = v;
    return p == start ? NULL : p;
}

/* Dotted numbers behind the release's own: ".1" of 2.3.1. */
static const char *skip_patches(const char *p)
{
    int ignored;
    while (*p == '.') {
        p = number(p + 1, &ignored);
        if (!p)
            return NULL;
    }
    return p;
}

bool config_level_parse(const char *text, int *major, int *minor, int *iv)
{
    int patch = -1, step = -1;
    const char *p = number(text, major);
    if (!p || *p != '.' || !(p = number(p + 1, minor)))
        return false;
    if (*major == 0 && (*p != '.' || !(p = number(p + 1, &patch))))
        return false;
    p = skip_patches(p);
    if (!p)
        return false;
    if (strncmp(p, "-IV", 3) == 0) {
        p = number(p + 3, &step);
        if (!p)
            return false;
    }
    if (*p)
        return false;
    for (size_t i = 0; i < sizeof(releases) / sizeof(*releases); i++) {
        const struct release *r = &releases[i];
        if (r->major == *major && r->minor == *minor && r->patch == patch && step <= r->max_iv) {
            *iv = step >= 0 ? step : r->max_iv >= 0 ? r->max_iv : 0;
            return true;
        }
    }
    return false;
}

const char *config_level_problem(const char *value)
{
    int major, minor, iv;
    if (config_level_parse(value, &major, &minor, &iv)) {
        int level = major * 100 + minor;
        if (level >= 203 && level <= 309)
            return NULL;
    }
    return "a release from 2.3-IV0 to 3.9-IV0";
}

const char *config_format_problem(const char *value)
{
    int major, minor, iv;
    return config_level_parse(value, &major, &minor, &iv) ? NULL
                                                          : "a release from 0.8.0 to 4.0-IV1";
}
