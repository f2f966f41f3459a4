/* heap.h - memory that was freed goes back to the system.
 *
 * The C library keeps what lies between pieces in use, however much it is; after a surge (many
 * answers that nobody took, a large compaction) that can be most of what the process has.
 *
 * THREADS  one at a time; others may allocate meanwhile, and wait for parts of it. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdint.h>

/* Zero at first. */
struct heap_watch {
    int64_t kept; /* bytes that are not in use and did not go back the last time */
};

/* Gives back what is free if it has become much since the last time. Returns how many bytes the
 * process has become smaller, 0 when nothing was tried. @blocks */
int64_t heap_give_back(struct heap_watch *w);
/* Memory of the process that is no file's, in bytes; 0 when unknown. @blocks */
int64_t heap_resident(void);

#endif
