/* tool_dump_text.c - the text files of a log dir and of a partition: checkpoints of offsets, of
 * leader epochs, partition.metadata, meta.properties.
 *
 * A file that the broker would not take is shown as far as it makes sense; then the line where it
 * stops to is told. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/props.h"
#include "log/checkpoint.h"
#include "log/epoch_cache.h"
#include "log/meta_properties.h"
#include "log/partition_metadata.h"
#include "tools/tool_dump.h"
#include "tools/tool_io.h"

enum { FILE_MAX_BYTES = 1 << 28 };

static char *read_text(struct dump *d, const char *path, size_t *size)
{
    char *text;
    int err = fs_read_all(fs_posix(), path, FILE_MAX_BYTES, &text, size);
    if (!err)
        return text;
    dump_failed(d, path, "%s", strerror(-err));
    return NULL;
}

/* ---- checkpoints ---- */

static int print_offset(void *arg, const struct str *fields)
{
    int64_t *shown = arg, partition, offset;
    if (fields[0].len == 0 || !checkpoint_int(fields[1], 0, INT32_MAX, &partition) ||
        !checkpoint_int(fields[2], INT64_MIN, INT64_MAX, &offset))
        return -EBADMSG;
    printf("topic: %.*s partition: %" PRId64 " offset: %" PRId64 "\n", STR_ARG(fields[0]),
           partition, offset);
    ++*shown;
    return 0;
}

static int print_epoch(void *arg, const struct str *fields)
{
    int64_t *shown = arg, epoch, start;
    if (!checkpoint_int(fields[0], 0, INT32_MAX, &epoch) ||
        !checkpoint_int(fields[1], 0, INT64_MAX, &start))
        return -EBADMSG;
    printf("epoch: %" PRId64 " startOffset: %" PRId64 "\n", epoch, start);
    ++*shown;
    return 0;
}

static void dump_checkpoint(struct dump *d, const char *path, int fields_n, const char *entry,
                            int (*print)(void *arg, const struct str *fields))
{
    size_t size;
    int64_t shown = 0;
    char *text = read_text(d, path, &size);
    if (!text)
        return;
    const char *zero = size ? memchr(text, 0, size) : NULL;
    if (zero)
        dump_failed(d, path, "a zero byte at position %td: the file was never synced", zero - text);
    else if (checkpoint_parse(text, size, fields_n, print, &shown) != 0)
        dump_failed(d, path,
                    "line %" PRId64 " and what follows does not fit: a checkpoint is the version "
                    "0, the number of entries, and as many lines \"%s\"",
                    shown ? shown + 3 : (int64_t)1, entry);
    free(text);
}

void dump_offset_checkpoint(struct dump *d, const char *path)
{
    dump_checkpoint(d, path, 3, "topic partition offset", print_offset);
}

void dump_epoch_checkpoint(struct dump *d, const char *path)
{
    dump_checkpoint(d, path, 2, "epoch startOffset", print_epoch);
}

/* ---- whose it is ---- */

void dump_partition_metadata(struct dump *d, const char *path)
{
    size_t size;
    struct uuid id;
    char *text = read_text(d, path, &size), shown[23];
    if (!text)
        return;
    if (partition_metadata_parse(text, size, &id) != 0) {
        dump_failed(d, path, "must be the lines \"version: 0\" and \"topic_id: <22 characters>\"");
    } else {
        uuid_format(id, shown);
        printf("version: 0 topicId: %s\n", shown);
    }
    free(text);
}

void dump_meta_properties(struct dump *d, const char *path)
{
    size_t size;
    int line = 0;
    char *text = read_text(d, path, &size);
    struct props *p = text ? props_new() : NULL;
    int err = p ? props_parse(p, text, size, &line) : 0;
    for (size_t i = 0; p && i < props_count(p) && tool_output_ok(); i++) {
        const char *key, *value;
        props_at(p, i, &key, &value);
        printf("%s: %s\n", key, value);
    }
    if (text && (!p || err == -ENOMEM))
        dump_failed(d, path, "out of memory");
    else if (err)
        dump_failed(d, path, "line %d: malformed \\u escape or a zero byte", line);
    props_free(p);
    free(text);
}

const struct dump_named dump_named_files[] = {
    {CHECKPOINT_RECOVERY_POINT, dump_offset_checkpoint},
    {CHECKPOINT_LOG_START, dump_offset_checkpoint},
    {CHECKPOINT_HIGH_WATERMARK, dump_offset_checkpoint},
    {CHECKPOINT_CLEANER, dump_offset_checkpoint},
    {EPOCH_FILE_NAME, dump_epoch_checkpoint},
    {PARTITION_METADATA_NAME, dump_partition_metadata},
    {META_PROPERTIES_NAME, dump_meta_properties},
    {NULL, NULL},
};
