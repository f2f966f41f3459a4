/* heap.c - see heap.h.
 *
 * What is resident and not in use is what could go back, but for stacks, maps and tables that are
 * not the C library's: what is left after one try is not tried for again. */
#include "base/heap.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

enum { MUCH = 32 << 20 };

int64_t heap_resident(void)
{
    static const char key[] = "RssAnon:";
    char line[256];
    long long kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, key, sizeof(key) - 1) == 0)
            sscanf(line + sizeof(key) - 1, "%lld", &kb);
    fclose(f);
    return (int64_t)kb * 1024;
}

static int64_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return (int64_t)(m.uordblks + m.hblkhd);
}

int64_t heap_give_back(struct heap_watch *w)
{
    int64_t before = heap_resident();
    int64_t spare = before - in_use();
    if (spare < w->kept)
        w->kept = spare > 0 ? spare : 0;
    if (spare - w->kept < MUCH)
        return 0;
    malloc_trim(0);
    int64_t after = heap_resident();
    spare -= before - after;
    w->kept = spare > 0 ? spare : 0;
    return before > after ? before - after : 0;
}
