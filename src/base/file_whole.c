/* file_whole.c - whole files and trees at a time: read all, replace without a mix, mkdir -p, rm -r.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

/* The folder that holds `path`: "." without a slash, "/" for the top. Returns owned. */
static char *parent_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n ? strndup(path, n) : strdup(".");
}

static int sync_parent(struct fs *fs, const char *path)
{
    char *parent = parent_of(path);
    if (!parent)
        return -ENOMEM;
    int err = fs_sync_dir(fs, parent);
    free(parent);
    return err;
}

static int ensure_dir(struct fs *fs, const char *path)
{
    struct file_stat st;
    int err = fs_stat(fs, path, &st);
    if (err == -ENOENT) {
        err = fs_mkdir(fs, path);
        if (err == 0)
            return sync_parent(fs, path);
        if (err == -EEXIST) /* someone else was faster */
            err = fs_stat(fs, path, &st);
    }
    if (err)
        return err;
    return st.is_dir ? 0 : -ENOTDIR;
}

int fs_mkdir_p(struct fs *fs, const char *path)
{
    char *part = strdup(path);
    if (!part)
        return -ENOMEM;
    int err = *path ? 0 : -ENOENT;
    for (char *at = part; *at && !err;) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        char kept = *at;
        *at = '\0';
        err = ensure_dir(fs, part);
        *at = kept;
    }
    free(part);
    return err;
}

static int add_name(void *arg, const char *name)
{
    struct buf *names = arg;
    buf_put(names, name, strlen(name) + 1);
    return names->failed ? -ENOMEM : 0;
}

int fs_remove_tree(struct fs *fs, const char *path)
{
    /* unlink first: a link to a folder must go itself, not what it points at */
    int err = fs_unlink(fs, path);
    if (err == -ENOENT)
        return 0;
    if (err != -EISDIR && err != -EPERM)
        return err;
    struct buf names = BUF_INIT;
    err = fs_list(fs, path, add_name, &names);
    for (size_t at = 0; at < names.len && !err;) {
        const char *name = (const char *)names.p + at;
        at += strlen(name) + 1;
        struct buf child = BUF_INIT;
        buf_printf(&child, "%s/%s", path, name);
        err = child.failed ? -ENOMEM : fs_remove_tree(fs, (char *)child.p);
        buf_free(&child);
    }
    buf_free(&names);
    if (!err)
        err = fs_rmdir(fs, path);
    return err == -ENOENT ? 0 : err;
}

int fs_read_all(struct fs *fs, const char *path, size_t max, char **out, size_t *len)
{
    *out = NULL;
    *len = 0;
    struct file *f;
    struct file_stat st;
    int err = fs_open(fs, path, O_RDONLY, &f);
    if (err)
        return err;
    char *p = NULL;
    err = file_stat(f, &st);
    if (!err && st.is_dir)
        err = -EISDIR;
    else if (!err && (uint64_t)st.size > max)
        err = -EFBIG;
    else if (!err && !(p = malloc((size_t)st.size + 1)))
        err = -ENOMEM;
    if (!err) {
        ssize_t got = file_pread(f, p, (size_t)st.size, 0);
        if (got < 0) {
            err = (int)got;
        } else {
            p[got] = '\0';
            *out = p;
            *len = (size_t)got;
            p = NULL;
        }
    }
    free(p);
    file_unref(f);
    return err;
}

static int write_new(struct fs *fs, const char *path, const void *p, size_t n, bool sync)
{
    struct file *f;
    int err = fs_open(fs, path, O_RDWR | O_CREAT | O_TRUNC, &f);
    if (err)
        return err;
    err = file_pwrite_all(f, p, n, 0);
    if (!err && sync)
        err = file_sync(f);
    file_unref(f);
    return err;
}

static int replace(struct fs *fs, const char *path, const void *p, size_t n, bool sync)
{
    struct buf tmp = BUF_INIT;
    buf_printf(&tmp, "%s.tmp", path);
    if (tmp.failed)
        return -ENOMEM;
    const char *tmp_path = (const char *)tmp.p;
    int err = write_new(fs, tmp_path, p, n, sync);
    if (!err)
        err = fs_rename(fs, tmp_path, path);
    if (!err && sync)
        err = sync_parent(fs, path);
    /* after an error the rest is left where it is: harmless, and the next replace overwrites it */
    buf_free(&tmp);
    return err;
}

int fs_replace(struct fs *fs, const char *path, const void *p, size_t n)
{
    return replace(fs, path, p, n, true);
}

int fs_replace_unsynced(struct fs *fs, const char *path, const void *p, size_t n)
{
    return replace(fs, path, p, n, false);
}

int fs_overwrite(struct fs *fs, const char *path, const void *p, size_t n)
{
    struct file *f;
    struct file_stat st;
    int err = fs_open(fs, path, O_RDWR | O_CREAT, &f);
    if (err)
        return err;
    err = file_stat(f, &st);
    if (!err)
        err = file_pwrite_all(f, p, n, 0);
    if (!err && st.size > (int64_t)n)
        err = file_truncate(f, (int64_t)n);
    file_unref(f);
    return err;
}
