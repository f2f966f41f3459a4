/* log_dir_probe.h - whether a broker could use a folder for its logs, asked without touching it:
 * --check-config may be run beside the broker that has it open, and long before it is made.
 *
 * It is told for the user who asks. THREADS any: nothing is kept. */
#ifndef SERVER_LOG_DIR_PROBE_H
#define SERVER_LOG_DIR_PROBE_H

#include <stddef.h>

#include "server/config.h"

/* 0 when `path` is a folder that may be read and written, or could be made as one; else -errno,
 * with a few words in `why`. @blocks */
int log_dir_probe(const char *path, char *why, size_t why_n);
/* All log.dirs as the start would take them. 0, or -errno with a line in `err` for each folder that
 * stops it (separated by '\n'); one that the broker would go on without is warned of in the log.
 * @blocks */
int log_dirs_probe(const struct config *c, char *err, size_t err_n);

#endif
