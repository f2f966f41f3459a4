/* journal.c - files of the embedded store: see journal.h. */
#include "metadata/journal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"

static const char component[] = "MetadataStore";
static const size_t file_max = (size_t)1 << 30;

static char *path_in(const char *dir, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

/* "<path>: <what>", and the error goes on. */
static int explain(int error, const char *path, const char *what, char *err, size_t err_n)
{
    snprintf(err, err_n, "%s: %s", path, what);
    return error;
}

static int read_snapshot(struct journal *j, struct tree *t, int64_t *zxid, char *err, size_t err_n)
{
    char *p, why[256];
    size_t n;
    int e = fs_read_all(j->fs, j->snapshot_path, file_max, &p, &n);
    if (e == -ENOENT)
        return 0;
    if (e)
        return explain(e, j->snapshot_path, strerror(-e), err, err_n);
    e = snapshot_decode((uint8_t *)p, n, t, zxid, why, sizeof(why));
    free(p);
    if (e)
        return explain(e, j->snapshot_path, e == -ENOMEM ? "no memory" : why, err, err_n);
    j->snapshot_size = (int64_t)n;
    return 0;
}

static int read_journal(struct journal *j, struct tree *t, int64_t *zxid, char *err, size_t err_n)
{
    char *p, why[256];
    size_t n, good;
    int e = fs_read_all(j->fs, j->path, file_max, &p, &n);
    if (e)
        return explain(e, j->path, strerror(-e), err, err_n);
    e = journal_decode((uint8_t *)p, n, t, zxid, &good, why, sizeof(why));
    free(p);
    if (e)
        return explain(e, j->path, e == -ENOMEM ? "no memory" : why, err, err_n);
    if (good < n)
        say_warn(component, "%s: dropping %zu bytes of a torn record at position %zu", j->path,
                 n - good, good);
    j->size = (int64_t)good;
    return 0;
}

/* An empty journal in the place of any there is, and open. */
static int begin_journal(struct journal *j, int64_t base)
{
    struct buf b = BUF_INIT;
    file_unref(j->file);
    j->file = NULL;
    journal_put_header(&b, base);
    int err = b.failed ? -ENOMEM : fs_replace(j->fs, j->path, b.p, b.len);
    buf_free(&b);
    if (!err)
        err = fs_open(j->fs, j->path, O_RDWR, &j->file);
    if (!err)
        j->size = JOURNAL_HEADER_BYTES;
    return err;
}

/* Opens the journal for appending; a torn end is cut off for good before anything is put there. */
static int continue_journal(struct journal *j)
{
    struct file_stat st;
    int err = fs_open(j->fs, j->path, O_RDWR, &j->file);
    if (!err)
        err = file_stat(j->file, &st);
    if (err || st.size == j->size)
        return err;
    err = file_truncate(j->file, j->size);
    return err ? err : file_sync(j->file);
}

int journal_open(struct journal *j, struct fs *fs, const char *dir, struct tree *t, int64_t *zxid,
                 char *err, size_t err_n)
{
    *j = (struct journal){.fs = fs,
                          .path = path_in(dir, "kafkad-metadata.journal"),
                          .snapshot_path = path_in(dir, "kafkad-metadata.snapshot")};
    *zxid = 0;
    struct file_stat st;
    if (!j->path || !j->snapshot_path)
        return explain(-ENOMEM, dir, "no memory", err, err_n);
    int e = read_snapshot(j, t, zxid, err, err_n);
    if (e)
        return e;
    e = fs_stat(fs, j->path, &st);
    if (e == -ENOENT && j->snapshot_size)
        /* the journal is there before the first snapshot and is only ever replaced */
        return explain(-EBADMSG, j->path, "missing, though there is a snapshot", err, err_n);
    bool begin = e == -ENOENT;
    if (e && !begin)
        return explain(e, j->path, strerror(-e), err, err_n);
    if (!begin && (e = read_journal(j, t, zxid, err, err_n)))
        return e;
    e = begin ? begin_journal(j, 0) : continue_journal(j);
    return e ? explain(e, j->path, strerror(-e), err, err_n) : 0;
}

int journal_append(struct journal *j, const struct buf *payload)
{
    if (j->error)
        return j->error;
    uint8_t head[JOURNAL_FRAME_BYTES];
    journal_frame_head(payload, head);
    struct iovec iov[] = {{head, sizeof(head)}, {payload->p, payload->len}};
    int err = file_pwritev_all(j->file, iov, 2, j->size);
    if (!err)
        err = file_sync(j->file);
    if (err)
        return j->error = err;
    j->size += (int64_t)(sizeof(head) + payload->len);
    return 0;
}

/* Of descriptors or memory: says nothing about the disk. */
static bool is_shortage(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

int journal_snapshot(struct journal *j, const struct tree *t, int64_t zxid)
{
    if (j->error)
        return j->error;
    struct buf b = BUF_INIT;
    int err = snapshot_encode(t, zxid, &b);
    if (!err)
        err = fs_replace(j->fs, j->snapshot_path, b.p, b.len);
    int64_t size = (int64_t)b.len;
    buf_free(&b);
    if (is_shortage(err)) { /* whichever snapshot is there, the journal has all behind it */
        say_warn(component, "no snapshot for now, the journal grows: %s", strerror(-err));
        j->snapshot_size = j->size; /* and is to be twice as long at the next try */
        return 0;
    }
    if (!err) {
        j->snapshot_size = size;
        err = begin_journal(j, zxid);
    }
    return j->error = err;
}

void journal_close(struct journal *j)
{
    file_unref(j->file);
    free(j->path);
    free(j->snapshot_path);
    *j = (struct journal){0};
}
