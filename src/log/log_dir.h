/* log_dir.h - one folder of log.dirs: its lock, meta.properties, checkpoints, and whether it still
 * works.
 *
 * The first I/O error on anything below it takes it offline, once and until restart: `on_failure`
 * is called (any thread, once), every log in it answers KERR_KAFKA_STORAGE_ERROR, its checkpoints
 * are no longer written. */
#ifndef LOG_LOG_DIR_H
#define LOG_LOG_DIR_H

#include <stdbool.h>

#include "base/file.h"
#include "base/metrics.h"

struct log_dir;

const char *log_dir_path(const struct log_dir *d);
bool log_dir_offline(const struct log_dir *d); /* @thread any */
/* How long flushes of its logs took, in us. @thread any */
const struct histogram *log_dir_flushes(const struct log_dir *d);
/* `doing` names the call and file: "append to /d/t-0/000.log". error is positive or negative errno.
 */
void log_dir_fail(struct log_dir *d, int error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
