/* tool_progress.c - see tool_progress.h. */
#include "tools/tool_progress.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

enum { FIRST_MS = 2000, EACH_MS = 1000 };

/* What goes to a terminal or into a pipe may end on the same screen as the line. */
bool progress_wanted(void)
{
    struct stat out;
    return isatty(STDERR_FILENO) && fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode);
}

void progress_begin(struct progress *p, bool wanted, const char *name, int64_t total)
{
    *p = (struct progress){
        .to = wanted ? stderr : NULL, .clock = clock_real(), .name = name, .total = total};
    if (wanted)
        p->begun_ms = p->told_ms = clock_mono_ms(p->clock);
}

static void tell(struct progress *p, int64_t done, int64_t now)
{
    double seconds = (double)(now - p->begun_ms) / 1000.0;
    fprintf(p->to, "\r%s%s", p->name ? p->name : "", p->name ? ": " : "");
    if (p->total > 0)
        fprintf(p->to, "%lld of %lld MB, %d %%, %.1f MB/s", (long long)(done / 1000000),
                (long long)(p->total / 1000000), (int)(100.0 * (double)done / (double)p->total),
                (double)done / 1e6 / seconds);
    else
        fprintf(p->to, "%lld records, %.0f records/s", (long long)done, (double)done / seconds);
    fputs("\033[K", p->to); /* what is left of a longer line before */
    fflush(p->to);
    p->told_ms = now;
    p->shown = true;
}

void progress_step(struct progress *p, int64_t done)
{
    if (!p->to)
        return;
    int64_t now = clock_mono_ms(p->clock);
    if (now - p->begun_ms >= FIRST_MS && now - p->told_ms >= EACH_MS)
        tell(p, done, now);
}

void progress_end(struct progress *p)
{
    if (!p->shown)
        return;
    fputs("\r\033[K", p->to);
    fflush(p->to);
    p->shown = false;
}
