/* open_files.h - how many descriptors, and maps of index files, the segments of all logs may hold:
 * those not used for longest are closed, and opened again at the next use.
 *
 * Not a strict LRU: a use only sets a mark on the segment, and whoever opens one file too many goes
 * through the oldest, gives those with a mark a second chance, and closes the first without. Slices
 * on their way to a socket and walks in progress have references of their own: what is closed here
 * lives until they are done, so the number is exceeded by as many.
 *
 * Files with unsynced data are spared while others can be found. Closing one loses nothing: Linux
 * tells an error of writing back to the next one who opens the file and syncs it.
 *
 * LOCKS    its own mutex, then a segment's spin lock. Taken when files are opened or closed, not
 *          when they are used.
 * THREADS  any. */
#ifndef LOG_OPEN_FILES_H
#define LOG_OPEN_FILES_H

#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"

struct segment;

struct open_files {
    pthread_mutex_t lock;
    struct list segments; /* with an open file, or a map; oldest first */
    int n, max;
    int maps, max_maps; /* of segments; maps of those that were closed meanwhile may be missing */
};

/* max 0: half of what RLIMIT_NOFILE leaves after a few dozen. Maps: half of vm.max_map_count. */
void open_files_init(struct open_files *o, int max);
/* No segment may be known any more. */
void open_files_free(struct open_files *o);
/* The segment, which readers can see, has opened a file or made a map. o may be NULL: no limit. */
void open_files_add(struct open_files *o, struct segment *s);
/* It is about to close its files itself. Harmless when it is not known. */
void open_files_remove(struct open_files *o, struct segment *s);
/* Descriptors have run out: closes half of what is open. False when nothing was closed. */
bool open_files_shrink(struct open_files *o);

#endif
