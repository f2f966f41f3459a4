/* sim_fs.h - the disk of a simulated host: files in memory, what of them is on the platter, faults.
 *
 * DURABLE  a file's bytes as of its last fsync (msync), a folder's names as of its own. A loss of
 *          power goes back to them; or, torn, to something between them and what was written.
 * FAULTS   asked for by sim_faults.c: the next call that writes, or the n-th, fails, is short, or
 * is the last that the program makes. */
#ifndef TESTS_SIM_SIM_FS_H
#define TESTS_SIM_SIM_FS_H

#include "base/file.h"
#include "sim.h"

enum sim_crash {
    CRASH_PROCESS, /* what was written stays */
    CRASH_DROP,    /* only what was synced stays */
    CRASH_TEAR     /* and some of the rest */
};

struct sim_fs *sim_fs_new(struct sim_host *h);
/* After the host's death: nothing is open any more. */
void sim_fs_crash(struct sim_fs *fs, enum sim_crash how);
/* The host dies at the n-th change of a file from now (1: the next), in its middle. */
void sim_fs_die_at(struct sim_fs *fs, uint64_t n, void (*died)(struct sim_host *h));
/* Calls that change or sync something under this folder fail with EIO from now on; NULL: none. */
void sim_fs_break(struct sim_fs *fs, const char *folder);
/* Calls that change or sync take up to this long. */
void sim_fs_slow(struct sim_fs *fs, int64_t sync_ns);
uint64_t sim_fs_failed(const struct sim_fs *fs); /* calls that failed so far */
bool sim_fs_broken(const struct sim_fs *fs);

#endif
