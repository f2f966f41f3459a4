/* tool_dump_log.c - .log files, and snapshots of KRaft, which have the same form: a line for each
 * batch and, when wanted, one for each record.
 *
 * A batch that does not fit the file ends it, as does one whose size or magic cannot be: what lies
 * behind is not to be told from noise. A batch with a wrong checksum is shown (isvalid: false); its
 * records are, as far as they can be read. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/file_batches.h"
#include "protocol/record_iter.h"
#include "tools/tool_dump.h"
#include "tools/tool_io.h"
#include "tools/tool_progress.h"

enum { WINDOW = 256 << 10 };

struct dumping {
    struct dump *d;
    const char *path;
    struct file *file;
    struct file_batches walk;
    struct buf bytes; /* the batch whose records are shown */
    struct dump_text key, value;
    int64_t last_offset; /* of the last record; -1: none yet */
    bool gap_told;       /* the heading of this file's gaps */
};

/* ---- lines ---- */

static const char *timestamp_type(const struct batch *b)
{
    if (b->magic == 0)
        return "NoTimestampType";
    return b->attributes & BATCH_LOG_APPEND_TIME ? "LogAppendTime" : "CreateTime";
}

static const char *codec_text(const struct batch *b, char out[24])
{
    if (b->codec >= 0 && b->codec < CODECS)
        return codec_name((enum codec)b->codec);
    snprintf(out, 24, "unknown(%d)", b->codec);
    return out;
}

static void print_batch(const struct batch *b, int64_t pos, bool valid)
{
    char codec[24];
    if (b->magic == 2) {
        printf("baseOffset: %" PRId64 " lastOffset: %" PRId64 " count: %" PRId32
               " baseSequence: %" PRId32 " lastSequence: %" PRId32 " producerId: %" PRId64
               " producerEpoch: %d partitionLeaderEpoch: %" PRId32
               " isTransactional: %s isControl: %s deleteHorizonMs: ",
               b->base_offset, b->last_offset, b->record_count, b->base_sequence, b->last_sequence,
               b->producer_id, b->producer_epoch, b->leader_epoch,
               batch_is_transactional(b) ? "true" : "false",
               batch_is_control(b) ? "true" : "false");
        if (b->attributes & BATCH_DELETE_HORIZON)
            printf("OptionalLong[%" PRId64 "]", b->base_timestamp);
        else
            fputs("OptionalLong.empty", stdout);
    } else {
        printf("offset: %" PRId64, b->last_offset);
    }
    printf(" position: %" PRId64 " %s: %" PRId64 " size: %" PRIu32
           " magic: %d compresscodec: %s crc: %" PRIu32 " isvalid: %s\n",
           pos, timestamp_type(b), b->max_timestamp, b->size, b->magic, codec_text(b, codec),
           b->crc, valid ? "true" : "false");
}

static void print_header_keys(const struct record *r)
{
    struct reader at = reader_of(r->headers.p, (size_t)r->headers.len);
    struct record_header h;
    const char *before = "";
    fputs(" headerKeys: [", stdout);
    while (record_header_next(&at, &h)) {
        printf("%s%.*s", before, STR_ARG(h.key));
        before = ",";
    }
    putchar(']');
}

static void print_control(const struct record *r)
{
    static const char *const names[] = {"ABORT",           "COMMIT",          "LEADER_CHANGE",
                                        "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION",
                                        "KRAFT_VOTERS"};
    enum { NAMES = sizeof names / sizeof *names };
    struct reader key = reader_of(r->key.p, r->key.len < 0 ? 0 : (size_t)r->key.len);
    struct reader value = reader_of(r->value.p, r->value.len < 0 ? 0 : (size_t)r->value.len);
    reader_i16(&key); /* versions */
    reader_i16(&value);
    int16_t type = reader_i16(&key);
    int32_t epoch = reader_i32(&value);
    if (key.bad)
        fputs(" controlType: UNKNOWN(-1)", stdout);
    else if (type >= 0 && type <= 1 && !value.bad)
        printf(" endTxnMarker: %s coordinatorEpoch: %" PRId32, names[type], epoch);
    else
        printf(" controlType: %s(%d)", type >= 0 && type < NAMES ? names[type] : "UNKNOWN", type);
}

/* Of formats 0 and 1: a record is an entry of its own, with a checksum. */
static void print_legacy(const struct batch *b)
{
    printf(" isValid: %s crc: %" PRIu32, batch_crc_ok(b) ? "true" : "false", b->crc);
}

static void print_metadata(const struct batch *b, const struct record *r, const struct batch *own)
{
    int32_t key = r->key.len < 0 ? -1 : r->key.len, value = r->value.len < 0 ? -1 : r->value.len;
    printf("| offset: %" PRId64 " %s: %" PRId64 " keySize: %" PRId32 " valueSize: %" PRId32,
           r->offset, timestamp_type(b), r->timestamp, key, value);
    if (b->magic == 2) {
        printf(" sequence: %" PRId32, r->sequence);
        print_header_keys(r);
    } else {
        print_legacy(own);
    }
    if (batch_is_control(b))
        print_control(r);
}

static void put_buf(const struct buf *b)
{
    if (b->failed)
        tool_die("out of memory");
    if (b->len)
        fwrite(b->p, 1, b->len, stdout);
}

/* ---- records ---- */

static void note_gap(struct dumping *w, int64_t next)
{
    char path[8192];
    if (!w->gap_told)
        buf_printf(&w->d->notes, "Non-consecutive offsets in %s\n", dump_absolute(w->path, path));
    w->gap_told = true;
    buf_printf(&w->d->notes, "  %" PRId64 " is followed by %" PRId64 "\n", w->last_offset, next);
}

static void print_contents(struct dumping *w, const struct record *r)
{
    const char *before = w->d->skip_metadata ? "| " : " ";
    const char *wrong = dump_decode(w->d->decoder, r, &w->key, &w->value);
    if (wrong) {
        putchar('\n');
        dump_failed(w->d, w->path, "the record at offset %" PRId64 ": %s", r->offset, wrong);
        return;
    }
    if (w->key.shown) {
        printf("%skey: ", before);
        put_buf(&w->key.text);
    }
    if (w->value.shown) {
        fputs(" payload: ", stdout);
        put_buf(&w->value.text);
    }
    putchar('\n');
}

static void print_record(struct dumping *w, const struct batch *b, const struct record *r,
                         const struct batch *own)
{
    if (w->last_offset >= 0 && r->offset != w->last_offset + 1)
        note_gap(w, r->offset);
    w->last_offset = r->offset;
    if (!w->d->skip_metadata)
        print_metadata(b, r, own);
    if (w->d->contents && !batch_is_control(b))
        print_contents(w, r);
    else
        putchar('\n');
}

/* The entry of a record of format 0 or 1: the batch itself, or what lies in its data. */
static struct batch own_entry(const struct record_iter *it, const struct batch *b)
{
    struct batch inner = *b;
    size_t left = (size_t)(it->end - it->at);
    if (b->codec != CODEC_NONE)
        batch_decode(it->at, left, left, &inner);
    return inner;
}

static void print_records(struct dumping *w, struct batch *b, int64_t pos)
{
    struct record_iter it = {.body = {0}};
    struct record r;
    int rc = file_batch_load(w->file, pos, b, &w->bytes);
    if (!rc)
        rc = record_iter_init(&it, b, codec_cap(b->size));
    while (!rc && tool_output_ok()) {
        struct batch own = own_entry(&it, b);
        int got = record_iter_next(&it, &r);
        if (got <= 0) {
            rc = got;
            break;
        }
        print_record(w, b, &r, &own);
    }
    if (rc)
        dump_failed(w->d, w->path, "the batch at position %" PRId64 " (offset %" PRId64 "): %s",
                    pos, b->base_offset, it.why ? it.why : strerror(-rc));
    record_iter_fini(&it);
}

/* ---- the file ---- */

static void tell_corrupt(struct dumping *w)
{
    uint8_t head[ENTRY_HEAD] = {0};
    int64_t pos = w->walk.pos;
    ssize_t got = file_pread(w->file, head, sizeof head, pos);
    int32_t size = (int32_t)get_be32(head + 8);
    int magic = (int8_t)head[BATCH_AT_MAGIC];
    if (got == ENTRY_HEAD && size >= 14 && (magic < 0 || magic > 2))
        dump_failed(w->d, w->path, "at position %" PRId64 ": magic %d is that of no batch", pos,
                    magic);
    else
        dump_failed(w->d, w->path,
                    "at position %" PRId64 ": Found record size %" PRId32
                    " smaller than minimum record overhead (%d)",
                    pos, size,
                    size < 14    ? 14
                    : magic == 2 ? BATCH_HEAD - ENTRY_PREFIX
                    : magic == 1 ? 22
                                 : 14);
}

static void walk(struct dumping *w, int64_t size)
{
    enum batch_walk got = BATCH_END;
    struct batch b;
    int64_t pos;
    struct progress progress;
    progress_begin(&progress, progress_wanted(), dump_base_name(w->path), size);
    while (tool_output_ok() && (got = file_batches_next(&w->walk, &b, &pos)) == BATCH_OK) {
        int valid = file_batches_crc_ok(&w->walk, &b, pos);
        if (valid < 0)
            break;
        print_batch(&b, pos, valid);
        if (w->d->deep)
            print_records(w, &b, pos);
        progress_step(&progress, pos + b.size);
    }
    progress_end(&progress);
    if (w->walk.error)
        dump_failed(w->d, w->path, "reading at position %" PRId64 ": %s", w->walk.pos,
                    strerror(-w->walk.error));
    else if (got == BATCH_CORRUPT)
        tell_corrupt(w);
    else if (w->walk.pos < size && w->d->max_bytes == DUMP_ALL_BYTES && tool_output_ok())
        printf("Found %" PRId64 " invalid bytes at the end of %s\n", size - w->walk.pos,
               dump_base_name(w->path));
}

/* "<offset>-<epoch>.checkpoint", or the snapshot that a cluster begins with. */
static void print_title(const char *path)
{
    const char *name = dump_base_name(path), *dot = strrchr(name, '.');
    if (strcmp(dot, ".checkpoint") != 0)
        printf("Log starting offset: %" PRId64 "\n", dump_base_offset(path));
    else if (strcmp(name, "bootstrap.checkpoint") == 0)
        puts("KRaft bootstrap snapshot");
    else
        printf("Snapshot end offset: %" PRId64 ", epoch: %d\n", dump_base_offset(path),
               strchr(name, '-') ? atoi(strchr(name, '-') + 1) : 0);
}

void dump_log(struct dump *d, const char *path)
{
    int64_t size;
    struct dumping w = {.d = d, .path = path, .last_offset = -1};
    if (!(w.file = dump_open(d, path, &size)))
        return;
    print_title(path);
    uint8_t *window = malloc(WINDOW);
    if (!window)
        tool_die("out of memory");
    int64_t end = d->max_bytes < size ? d->max_bytes : size;
    if (d->max_bytes == DUMP_ALL_BYTES)
        end = size;
    file_batches_init(&w.walk, w.file, 0, end, window, WINDOW);
    walk(&w, size);
    free(window);
    buf_free(&w.bytes);
    buf_free(&w.key.text);
    buf_free(&w.value.text);
    file_unref(w.file);
}
