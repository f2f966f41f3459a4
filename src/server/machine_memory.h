/* machine_memory.h - how much memory this process may have: the machine's, or less where a cgroup
 * of its own or above says so.
 *
 * THREADS  any. Reads a few small files: at start, not on a loop. */
#ifndef SERVER_MACHINE_MEMORY_H
#define SERVER_MACHINE_MEMORY_H

#include <stdint.h>

/* Bytes; 0 when nothing tells. `root` is "" for the machine, a folder with such files for tests. */
uint64_t machine_memory(const char *root);

#endif
