/* checkpoint.h - the text checkpoints: four of a log dir (topic partition offset) and the epochs of
 * a log (epoch start).
 *
 *   0                 version, always 0
 *   <count>           number of entries
 *   <entry>           one per line
 *
 * Fields are separated by one space when written, by any white space when read. A file of 0 bytes,
 * or of the version line alone, has no entries. Anything else that does not fit (version, count,
 * number of fields, not a number) is -EBADMSG as a whole.
 *
 * CRASH  written by fs_replace: afterwards the old file or the new one. */
#ifndef LOG_CHECKPOINT_H
#define LOG_CHECKPOINT_H

#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

/* What the text says, line by line: each(arg, fields) for every entry, which has exactly
 * `fields_n` (<= 3) fields; it returns 0 or -EBADMSG. */
int checkpoint_parse(const char *text, size_t len, int fields_n,
                     int (*each)(void *arg, const struct str *fields), void *arg);
/* Decimal, with a sign; false when it is not all of that or does not fit. */
bool checkpoint_int(struct str s, int64_t min, int64_t max, int64_t *out);

#define CHECKPOINT_RECOVERY_POINT "recovery-point-offset-checkpoint"
#define CHECKPOINT_LOG_START "log-start-offset-checkpoint"
#define CHECKPOINT_HIGH_WATERMARK "replication-offset-checkpoint"
#define CHECKPOINT_CLEANER "cleaner-offset-checkpoint"

struct offset_entry {
    struct str topic;
    int32_t partition;
    int64_t offset;
};

/* A file read: entries sorted for look-up. Zero it before use. */
struct offset_checkpoint {
    char *text; /* owned; the topics point into it */
    struct offset_entry *v;
    size_t n, cap;
};

/* Takes `text` (malloc'ed) also on failure. 0, -EBADMSG, -ENOMEM. */
int offset_checkpoint_parse(char *text, size_t len, struct offset_checkpoint *out);
/* No file: no entries. 0, -EBADMSG, or -errno of reading. */
int offset_checkpoint_read(struct fs *fs, const char *path, struct offset_checkpoint *out);
bool offset_checkpoint_get(const struct offset_checkpoint *c, struct str topic, int32_t partition,
                           int64_t *offset);
void offset_checkpoint_free(struct offset_checkpoint *c);

/* The text of these entries, appended to out. */
void offset_checkpoint_text(const struct offset_entry *v, size_t n, struct buf *out);
int offset_checkpoint_write(struct fs *fs, const char *path, const struct offset_entry *v,
                            size_t n);

#endif
