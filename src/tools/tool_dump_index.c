/* tool_dump_index.c - .index and .timeindex files: their entries, and whether they agree with the
 * .log beside them.
 *
 * An index of a log in use has its full size, with zeros behind the entries: the first entry of
 * zeros ends it. Such an entry at the very beginning is shown, as Kafka does, but is held against
 * nothing. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/file_batches.h"
#include "log/offset_index.h"
#include "log/time_index.h"
#include "protocol/record_iter.h"
#include "tools/tool_dump.h"
#include "tools/tool_io.h"

struct indexing {
    struct dump *d;
    const char *path;
    int64_t base;
    struct file *index, *log;
    int64_t index_size, log_size;
    struct index_view view;
    struct file *offsets; /* time index only; may be NULL */
    struct index_view offsets_view;
    uint8_t window[4096];
};

/* Lines of one kind, under a heading that comes with the first of them. */
struct notes {
    struct buf lines;
    const char *heading;
    bool with_path;
};

static void note(struct notes *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void note(struct notes *n, const char *fmt, ...)
{
    char line[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    buf_put(&n->lines, line, strlen(line));
}

static void end_notes(struct indexing *x, struct notes *n)
{
    char path[8192];
    if (n->lines.len) {
        buf_printf(&x->d->notes, "%s%s\n", n->heading,
                   n->with_path ? dump_absolute(x->path, path) : "");
        buf_put(&x->d->notes, n->lines.p, n->lines.len);
    }
    buf_free(&n->lines);
}

static struct index_view view_of(struct file *f, int64_t size, int entry)
{
    int64_t n = size / entry;
    return (struct index_view){
        .file = f, .n = n > INT32_MAX ? INT32_MAX : (int32_t)n, .entry = (uint8_t)entry};
}

static bool open_both(struct indexing *x, struct dump *d, const char *path, int entry)
{
    char log[8192];
    *x = (struct indexing){.d = d, .path = path, .base = dump_base_offset(path)};
    dump_sibling(path, ".log", log);
    if (!(x->log = dump_open(d, log, &x->log_size)) ||
        !(x->index = dump_open(d, path, &x->index_size)))
        return false;
    x->view = view_of(x->index, x->index_size, entry);
    return true;
}

static void close_all(struct indexing *x)
{
    if (x->view.error)
        dump_failed(x->d, x->path, "%s", strerror(-x->view.error));
    file_unref(x->index);
    file_unref(x->log);
    file_unref(x->offsets);
}

static bool is_zero(struct index_view *v, int32_t i)
{
    static const uint8_t zeros[TIME_ENTRY_BYTES];
    uint8_t raw[TIME_ENTRY_BYTES];
    index_view_get(v, i, raw);
    return memcmp(raw, zeros, v->entry) == 0;
}

/* Entries in front of the zeros. */
static int32_t used(struct index_view *v)
{
    int32_t n = v->n;
    while (n > 0 && is_zero(v, n - 1))
        n--;
    return n;
}

static bool size_fits(struct indexing *x)
{
    if (x->index_size % x->view.entry == 0)
        return true;
    dump_failed(x->d, x->path, "the index is corrupt: its size %" PRId64 " is no multiple of %d",
                x->index_size, x->view.entry);
    return false;
}

/* ---- offsets ---- */

static void check_offsets(struct indexing *x)
{
    int32_t n = used(&x->view);
    if (!size_fits(x))
        return;
    int64_t last = n ? offset_index_at(&x->view, x->base, n - 1).offset : x->base;
    if (last < x->base)
        dump_failed(x->d, x->path,
                    "the index is corrupt: its last offset %" PRId64
                    " is less than the base offset %" PRId64,
                    last, x->base);
    else
        printf("%s passed sanity check.\n", x->path);
}

/* The last offset of the batch at the entry's position. false: no batch there, which was told. */
static bool find_batch(struct indexing *x, struct offset_position e, int64_t *last)
{
    struct file_batches walk;
    struct batch b;
    int64_t pos, end = e.position + x->d->max_message;
    if (e.position >= 0 && e.position < x->log_size) {
        file_batches_init(&walk, x->log, e.position, end < x->log_size ? end : x->log_size,
                          x->window, sizeof x->window);
        if (file_batches_next(&walk, &b, &pos) == BATCH_OK) {
            *last = b.last_offset;
            return true;
        }
    }
    dump_failed(x->d, x->path,
                "the entry of offset %" PRId64 ": the log has no whole batch (of at most %" PRId64
                " bytes) at position %" PRId64,
                e.offset, x->d->max_message, e.position);
    return false;
}

static void show_offsets(struct indexing *x)
{
    struct notes mismatches = {.heading = "Mismatches in :", .with_path = true};
    for (int32_t i = 0; i < x->view.n && !x->view.error && tool_output_ok(); i++) {
        struct offset_position e = offset_index_at(&x->view, x->base, i);
        int64_t last;
        if (e.offset == x->base && i > 0)
            break;
        if (!(i == 0 && is_zero(&x->view, 0))) {
            if (!find_batch(x, e, &last))
                break;
            if (last != e.offset)
                note(&mismatches, "  Index offset: %" PRId64 ", log offset: %" PRId64 "\n",
                     e.offset, last);
        }
        if (!x->d->verify_only)
            printf("offset: %" PRId64 " position: %" PRId64 "\n", e.offset, e.position);
    }
    end_notes(x, &mismatches);
}

void dump_offset_index(struct dump *d, const char *path)
{
    struct indexing *x = calloc(1, sizeof *x);
    if (!x)
        tool_die("out of memory");
    if (open_both(x, d, path, OFFSET_ENTRY_BYTES)) {
        if (x->view.n == 0)
            printf("%s is empty.\n", path);
        else if (d->sanity_only)
            check_offsets(x);
        else
            show_offsets(x);
    }
    close_all(x);
    free(x);
}

/* ---- times ---- */

static void check_times(struct indexing *x)
{
    int32_t n = used(&x->view);
    if (!size_fits(x))
        return;
    struct time_offset first = {0}, last = {0, x->base};
    if (n) {
        first = time_index_at(&x->view, x->base, 0);
        last = time_index_at(&x->view, x->base, n - 1);
    }
    if (last.timestamp < first.timestamp)
        dump_failed(x->d, x->path,
                    "the time index is corrupt: its last timestamp %" PRId64
                    " is less than its first %" PRId64,
                    last.timestamp, first.timestamp);
    else if (last.offset < x->base)
        dump_failed(x->d, x->path,
                    "the time index is corrupt: its last offset %" PRId64
                    " is less than the base offset %" PRId64,
                    last.offset, x->base);
    else
        printf("%s passed sanity check.\n", x->path);
}

/* The newest time among a batch's records. false when they cannot be read. */
static bool newest(struct indexing *x, struct batch *b, int64_t pos, int64_t *out)
{
    struct buf bytes = BUF_INIT;
    struct record_iter it = {.body = {0}};
    struct record r;
    *out = NO_TIMESTAMP;
    int rc = file_batch_load(x->log, pos, b, &bytes);
    if (!rc)
        rc = record_iter_init(&it, b, codec_cap(b->size));
    int more = 0;
    while (!rc && (more = record_iter_next(&it, &r)) > 0)
        if (r.timestamp > *out)
            *out = r.timestamp;
    rc = rc ? rc : more;
    if (rc)
        dump_failed(x->d, x->path, "the batch at position %" PRId64 " of the log: %s", pos,
                    it.why ? it.why : strerror(-rc));
    record_iter_fini(&it);
    buf_free(&bytes);
    return rc == 0;
}

struct time_notes {
    struct notes times, order, offsets;
    int64_t previous;
};

static void compare(struct indexing *x, struct time_notes *n, struct time_offset e)
{
    struct offset_position from = {.position = 0};
    struct file_batches walk;
    struct batch b = {0};
    int64_t pos = 0, found = -1, time;
    if (x->offsets)
        from = offset_index_floor(&x->offsets_view, x->base, e.offset);
    file_batches_init(&walk, x->log, from.position, x->log_size, x->window, sizeof x->window);
    while (found < e.offset && file_batches_next(&walk, &b, &pos) == BATCH_OK)
        found = b.last_offset;
    if (!b.size || found != e.offset) { /* an entry may say -1, too */
        note(&n->offsets, "Indexed offset: %" PRId64 ", found log offset: %" PRId64 "\n", e.offset,
             found < e.offset ? -1 : found);
        return;
    }
    if (newest(x, &b, pos, &time) && time != e.timestamp)
        note(&n->times, "  Index timestamp: %" PRId64 ", log timestamp: %" PRId64 "\n", e.timestamp,
             time);
    if (n->previous >= e.timestamp)
        note(&n->order,
             "  Index timestamp: %" PRId64 ", Previously indexed timestamp: %" PRId64 "\n",
             e.timestamp, n->previous);
}

static void show_times(struct indexing *x)
{
    struct time_notes n = {
        .times = {.heading = "Found timestamp mismatch in :", .with_path = true},
        .order = {.heading = "Found out of order timestamp in :", .with_path = true},
        .offsets = {.heading = "The following indexed offsets are not found in the log."},
        .previous = NO_TIMESTAMP};
    for (int32_t i = 0; i < x->view.n && !x->view.error && tool_output_ok(); i++) {
        struct time_offset e = time_index_at(&x->view, x->base, i);
        if (e.offset == x->base && i > 0 && is_zero(&x->view, i))
            break;
        if (!(i == 0 && is_zero(&x->view, 0)))
            compare(x, &n, e);
        if (!x->d->verify_only)
            printf("timestamp: %" PRId64 " offset: %" PRId64 "\n", e.timestamp, e.offset);
        n.previous = e.timestamp;
    }
    end_notes(x, &n.times);
    end_notes(x, &n.order);
    end_notes(x, &n.offsets);
}

/* The offset index beside it tells where to look; without it the log is read from its start. */
static void open_offsets(struct indexing *x)
{
    char path[8192];
    int64_t size = 0;
    struct file_stat st;
    dump_sibling(x->path, ".index", path);
    if (fs_stat(fs_posix(), path, &st) == 0)
        x->offsets = dump_open(x->d, path, &size);
    x->offsets_view = view_of(x->offsets, size, OFFSET_ENTRY_BYTES);
    x->offsets_view.n = x->offsets ? used(&x->offsets_view) : 0;
}

void dump_time_index(struct dump *d, const char *path)
{
    struct indexing *x = calloc(1, sizeof *x);
    if (!x)
        tool_die("out of memory");
    if (open_both(x, d, path, TIME_ENTRY_BYTES)) {
        open_offsets(x);
        if (d->sanity_only)
            check_times(x);
        else
            show_times(x);
    }
    close_all(x);
    free(x);
}
