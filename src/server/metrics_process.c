/* metrics_process.c - what the system knows of this process. A file of /proc that cannot be read
 * gives NaN: not known. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/metrics_page_private.h"

static bool read_text(const char *path, char *out, size_t n)
{
    FILE *f = fopen(path, "re");
    size_t got = f ? fread(out, 1, n - 1, f) : 0;
    if (f)
        fclose(f);
    out[got] = 0;
    return got > 0;
}

/* Field `n` (from 1, as in proc(5)) of /proc/self/stat; the second may hold blanks. */
static double stat_field(int n)
{
    char text[1024];
    const char *at = read_text("/proc/self/stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
    for (int i = 2; at && i < n; i++)
        at = strchr(at + 1, ' ');
    double v;
    return at && sscanf(at, "%lf", &v) == 1 ? v : NAN;
}

/* The number behind the line's beginning, which is looked for line by line: /proc/stat is long. */
static double named_field(const char *path, const char *name)
{
    char line[512];
    double v = NAN;
    FILE *f = fopen(path, "re");
    while (f && isnan(v) && fgets(line, sizeof(line), f))
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), "%lf", &v) != 1)
            v = NAN;
    if (f)
        fclose(f);
    return v;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

double process_cpu_seconds(const struct page *p)
{
    (void)p;
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? seconds(u.ru_utime) + seconds(u.ru_stime) : NAN;
}

double process_resident_bytes(const struct page *p)
{
    (void)p;
    return stat_field(24) * (double)sysconf(_SC_PAGESIZE);
}

double process_virtual_bytes(const struct page *p)
{
    (void)p;
    return stat_field(23);
}

double process_threads(const struct page *p)
{
    (void)p;
    return stat_field(20);
}

double process_open_fds(const struct page *p)
{
    (void)p;
    DIR *d = opendir("/proc/self/fd");
    if (!d)
        return NAN;
    int n = 0;
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n - 1; /* the one that looked */
}

double process_max_fds(const struct page *p)
{
    (void)p;
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0)
        return NAN;
    return l.rlim_cur == RLIM_INFINITY ? INFINITY : (double)l.rlim_cur;
}

double process_start_seconds(const struct page *p)
{
    (void)p;
    return named_field("/proc/stat", "btime ") + stat_field(22) / (double)sysconf(_SC_CLK_TCK);
}

double process_read_bytes(const struct page *p)
{
    (void)p;
    return named_field("/proc/self/io", "read_bytes:");
}

double process_write_bytes(const struct page *p)
{
    (void)p;
    return named_field("/proc/self/io", "write_bytes:");
}
