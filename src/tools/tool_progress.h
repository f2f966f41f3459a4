/* tool_progress.h - how far long work is, and how fast: a line on standard error that is written
 * over, where a person looks at it and nothing else is written there.
 *
 *   00000000000000000000.log: 512 of 2048 MB, 25 %, 170.7 MB/s
 *   1204000 records, 401333 records/s
 *
 * It comes after some seconds and each second; what ends sooner shows none.
 *
 * THREADS  one. */
#ifndef TOOLS_TOOL_PROGRESS_H
#define TOOLS_TOOL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct clock;

struct progress {
    FILE *to; /* NULL: nobody looks */
    const struct clock *clock;
    const char *name; /* borrowed; NULL: none */
    int64_t total;    /* bytes; 0: records are counted, to no end known */
    int64_t begun_ms, told_ms;
    bool shown;
};

/* Is standard error a terminal, and standard output not seen there? */
bool progress_wanted(void);
void progress_begin(struct progress *p, bool wanted, const char *name, int64_t total);
/* `done` bytes or records in all. */
void progress_step(struct progress *p, int64_t done);
/* Takes the line away. */
void progress_end(struct progress *p);

#endif
