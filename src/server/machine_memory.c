/* machine_memory.c - see machine_memory.h.
 *
 * READS  proc/meminfo; proc/self/cgroup, of which a line "0::/path" is of the second version of
 * cgroups (sys/fs/cgroup/path/memory.max) and one "n:..,memory,..:/path" of the first
 * (sys/fs/cgroup/memory/path/memory.limit_in_bytes). Each group above limits too. In a container
 * the path may not be there below sys/fs/cgroup, only its top: the walk up ends there. */
#include "server/machine_memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

static uint64_t total_of(const char *root)
{
    char path[PATH_MAX], line[256];
    unsigned long long kib = 0;
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    while (kib == 0 && fgets(line, sizeof(line), f))
        if (sscanf(line, "MemTotal: %llu kB", &kib) != 1)
            kib = 0;
    fclose(f);
    return kib > UINT64_MAX / 1024 ? 0 : kib * 1024;
}

/* 0: there is none ("max", or no such file). */
static uint64_t limit_in(const char *path)
{
    unsigned long long bytes = 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    if (fscanf(f, "%llu", &bytes) != 1)
        bytes = 0;
    fclose(f);
    return bytes;
}

/* Of the group and of all above it. */
static uint64_t limit_of(const char *root, const char *top, char *group, const char *name)
{
    char path[2 * PATH_MAX];
    uint64_t least = 0;
    for (;;) {
        char *slash = strrchr(group, '/');
        int n = snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s%s/%s", root, top, group, name);
        if (n > 0 && (size_t)n < sizeof(path))
            least = smaller(least, limit_in(path));
        if (!slash)
            return least;
        *slash = 0;
    }
}

static uint64_t limit_of_line(const char *root, char *line)
{
    char *controllers = strchr(line, ':'),
         *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return 0;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    controllers++;
    if (!*controllers)
        return limit_of(root, "", group, "memory.max");
    for (char *save, *c = strtok_r(controllers, ",", &save); c; c = strtok_r(NULL, ",", &save))
        if (strcmp(c, "memory") == 0)
            return limit_of(root, "/memory", group, "memory.limit_in_bytes");
    return 0;
}

uint64_t machine_memory(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX];
    uint64_t least = total_of(root);
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    if (!f)
        return least;
    while (fgets(line, sizeof(line), f))
        least = smaller(least, limit_of_line(root, line));
    fclose(f);
    return least;
}
