/* heap.h: what was freed between pieces in use goes back to the system. */
#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

enum { PIECES = 100000, SIZE = 1000, STAYS = 1000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool other_malloc = true;
#else
static const bool other_malloc = false;
#endif

static void what_was_freed_goes_back(void **state)
{
    struct heap_watch w = {0};
    void **all = calloc(PIECES, sizeof(*all));
    heap_give_back(&w);
    int64_t before = heap_resident();
    assert_true(before > 0);
    for (int i = 0; i < PIECES; i++)
        memset(all[i] = malloc(SIZE), i, SIZE);
    assert_int_equal(heap_give_back(&w), 0); /* all of it is in use */
    for (int i = 0; i < PIECES; i++) {
        if (i % STAYS == 0)
            continue;
        free(all[i]);
        all[i] = NULL;
    }
    int64_t given = heap_give_back(&w);
    if (!other_malloc) {
        assert_true(given > 80 << 20);
        assert_true(heap_resident() < before + (16 << 20));
    }
    assert_int_equal(heap_give_back(&w), 0); /* once */
    for (int i = 0; i < PIECES; i++)
        free(all[i]);
    free(all);
}

UNIT_MAIN(unit_test(what_was_freed_goes_back))
