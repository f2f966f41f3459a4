/* map_guard.h - touching a mapped file whose page cannot be had (a bad sector, a file that another
 * program has cut) is an error code and not the end of the process.
 *
 * The first call installs a handler for SIGBUS. A fault anywhere else goes to the handler that was
 * there before.
 *
 * THREADS  any. */
#ifndef LOG_MAP_GUARD_H
#define LOG_MAP_GUARD_H

#include <stddef.h>

/* The first copy does it; again after somebody else has set a handler (cmocka does, for each test).
 * THREADS  one. */
void map_guard_install(void);
/* memcpy from or into a map. 0 or -EIO (then `to` holds anything). */
int map_guard_copy(void *to, const void *from, size_t n);

#endif
