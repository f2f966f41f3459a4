/* Which segments become one: by tables. */
#include "unit.h"

#include "log/cleaner_group.h"

#define FAR ((int64_t)INT32_MAX)

static void groups_by_every_limit(void **state)
{
    static const struct {
        const char *what;
        int n, group;
        struct cleaner_group_segment v[4];
    } t[] = {
        {"alone", 1, 1, {{0, 10, 8, 12, 9}}},
        {"as many as fit",
         4,
         3,
         {{0, 30, 0, 0, 9}, {10, 30, 0, 0, 19}, {20, 40, 0, 0, 29}, {30, 1, 0, 0, 39}}},
        {"too large alone", 2, 1, {{0, 500, 0, 0, 9}, {10, 1, 0, 0, 19}}},
        {"empty ones join",
         4,
         4,
         {{0, 100, 0, 0, 9}, {10, 0, 0, 0, 19}, {20, 0, 0, 0, 29}, {30, 0, 0, 0, 39}}},
        {"offset index", 3, 2, {{0, 1, 40, 0, 9}, {10, 1, 40, 0, 19}, {20, 1, 1, 0, 29}}},
        {"time index", 3, 2, {{0, 1, 0, 40, 9}, {10, 1, 0, 40, 19}, {20, 1, 0, 1, 29}}},
        {"offsets that just fit", 2, 2, {{5, 1, 0, 0, 9}, {10, 1, 0, 0, 5 + FAR}}},
        {"one too far", 2, 1, {{5, 1, 0, 0, 9}, {10, 1, 0, 0, 6 + FAR}}},
        {"seen from the first, not the one before",
         3,
         2,
         {{0, 1, 0, 0, 9}, {10, 1, 0, 0, FAR}, {FAR + 1, 1, 0, 0, FAR + 9}}},
        {"an empty one has no offsets",
         3,
         2,
         {{0, 1, 0, 0, 9}, {10, 0, 0, 0, 3 * FAR}, {3 * FAR + 1, 1, 0, 0, 3 * FAR + 2}}},
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        int n = cleaner_group(t[i].v, t[i].n, (struct cleaner_group_limits){100, 80});
        if (n != t[i].group)
            fail_msg("%s: %d, not %d", t[i].what, n, t[i].group);
    }
}

UNIT_MAIN(unit_test(groups_by_every_limit))
