/* tool_dump.h - what kafka-dump-log shows of a file, one function per kind of file.
 *
 * The lines are Kafka's. What is damaged is told on standard error, with the file, the place and
 * the reason; the rest of the files is still shown. Nothing is written.
 *
 * THREADS  one. */
#ifndef TOOLS_TOOL_DUMP_H
#define TOOLS_TOOL_DUMP_H

#include <stdio.h>

#include "base/buf.h"
#include "base/file.h"
#include "tools/tool_dump_decoder.h"

struct dump {
    /* What is wanted. */
    bool deep, contents, skip_metadata, verify_only, sanity_only;
    int64_t max_bytes, max_message;
    struct dump_decoder *decoder;
    /* What was found. */
    FILE *complaints; /* what is wrong: standard error */
    bool failed;      /* some file could not be shown to its end */
    struct buf notes; /* lines for standard error at the end: mismatches, gaps */
};

enum { DUMP_ALL_BYTES = INT32_MAX }; /* max_bytes: the whole file */

void dump_log(struct dump *d, const char *path);
void dump_offset_index(struct dump *d, const char *path);
void dump_time_index(struct dump *d, const char *path);
void dump_producer_snapshot(struct dump *d, const char *path);
void dump_txn_index(struct dump *d, const char *path);
/* The text files, which are told by their whole name. Kafka's tool knows none of them. */
void dump_offset_checkpoint(struct dump *d, const char *path);
void dump_epoch_checkpoint(struct dump *d, const char *path);
void dump_partition_metadata(struct dump *d, const char *path);
void dump_meta_properties(struct dump *d, const char *path);

struct dump_named {
    const char *name;
    void (*dump)(struct dump *d, const char *path);
};
extern const struct dump_named dump_named_files[]; /* ends with a NULL name */

/* ---- for the functions above ---- */
/* A line on standard error about the file; dump->failed. */
void dump_failed(struct dump *d, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* NULL, with dump_failed, when it cannot be read. */
struct file *dump_open(struct dump *d, const char *path, int64_t *size);
/* The name's last part; the number that it begins with (0 when it has none). */
const char *dump_base_name(const char *path);
int64_t dump_base_offset(const char *path);
/* As in Java: the working folder in front of a relative path. In `out`. */
const char *dump_absolute(const char *path, char out[8192]);
/* The same folder and number, another suffix. */
void dump_sibling(const char *path, const char *suffix, char out[8192]);

#endif
