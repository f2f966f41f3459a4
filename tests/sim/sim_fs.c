/* sim_fs.c - see sim_fs.h. */
#include "sim_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct bytes_of {
    uint8_t *p;
    size_t len, cap;
};

struct inode;

struct name {
    char *name;
    struct inode *inode; /* one reference */
};

struct names {
    struct name *v; /* in order */
    size_t n;
};

struct inode {
    int refs; /* names (also durable ones) and open files */
    bool is_dir;
    bool dirty; /* differs from `durable`, or may */
    bool lost;  /* a sync failed: what came before it may never be durable */
    int maps;
    int64_t mtime_ms;
    struct bytes_of now, durable;
    struct names names, durable_names;
};

struct sim_fs {
    struct fs fs;
    struct sim_host *host;
    struct inode *root;
    uint64_t die_at; /* changes left; 0: never */
    void (*died)(struct sim_host *h);
    char *broken;
    int64_t sync_ns;
    uint64_t failed;
};

struct open_file {
    struct file f; /* first */
    struct inode *inode;
    bool under_broken; /* below the folder that fails: as of its opening */
    char *path;
};

static struct sim_fs *of(struct fs *fs)
{
    return container_of(fs, struct sim_fs, fs);
}

static struct open_file *file_of(struct file *f)
{
    return (struct open_file *)f;
}

/* ---- inodes ---- */

static void inode_unref(struct inode *n)
{
    if (!n || --n->refs > 0)
        return;
    for (size_t i = 0; i < n->names.n; i++) {
        free(n->names.v[i].name);
        inode_unref(n->names.v[i].inode);
    }
    for (size_t i = 0; i < n->durable_names.n; i++) {
        free(n->durable_names.v[i].name);
        inode_unref(n->durable_names.v[i].inode);
    }
    free(n->names.v);
    free(n->durable_names.v);
    free(n->now.p);
    free(n->durable.p);
    free(n);
}

static struct inode *inode_new(bool is_dir)
{
    struct inode *n = calloc(1, sizeof(*n));
    n->is_dir = is_dir;
    n->mtime_ms = sim_wall_ms();
    return n;
}

static void resize(struct bytes_of *b, size_t len)
{
    if (len > b->cap) {
        size_t cap = b->cap ? b->cap : 256;
        while (cap < len)
            cap *= 2;
        b->p = realloc(b->p, cap);
        b->cap = cap;
    }
    if (len > b->len)
        memset(b->p + b->len, 0, len - b->len);
    b->len = len;
}

static void grow(struct inode *n, size_t len)
{
    if (n->maps && len > n->now.cap)
        sim_violation("a mapped file grows (the simulated disk cannot)");
    resize(&n->now, len);
}

static size_t position(const struct names *d, const char *name, bool *found)
{
    size_t low = 0, high = d->n;
    *found = false;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int c = strcmp(d->v[mid].name, name);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void names_put(struct names *d, const char *name, struct inode *n)
{
    bool found;
    size_t i = position(d, name, &found);
    n->refs++;
    if (found) {
        inode_unref(d->v[i].inode);
        d->v[i].inode = n;
        return;
    }
    d->v = realloc(d->v, (d->n + 1) * sizeof(*d->v));
    memmove(d->v + i + 1, d->v + i, (d->n - i) * sizeof(*d->v));
    d->v[i] = (struct name){strdup(name), n};
    d->n++;
}

static void names_drop(struct names *d, const char *name)
{
    bool found;
    size_t i = position(d, name, &found);
    if (!found)
        return;
    inode_unref(d->v[i].inode);
    free(d->v[i].name);
    memmove(d->v + i, d->v + i + 1, (--d->n - i) * sizeof(*d->v));
}

static void names_copy(struct names *to, const struct names *from)
{
    struct names copy = {calloc(from->n + 1, sizeof(*copy.v)), from->n};
    for (size_t i = 0; i < from->n; i++) {
        copy.v[i] = (struct name){strdup(from->v[i].name), from->v[i].inode};
        copy.v[i].inode->refs++;
    }
    while (to->n)
        names_drop(to, to->v[to->n - 1].name);
    free(to->v);
    *to = copy;
}

static void bytes_copy(struct bytes_of *to, const struct bytes_of *from)
{
    resize(to, from->len);
    if (from->len)
        memcpy(to->p, from->p, from->len);
}

/* ---- paths ---- */

/* The folder that holds the path's last name, which goes to `last`; NULL: none. */
static struct inode *folder_of(struct sim_fs *fs, const char *path, char last[256])
{
    struct inode *at = fs->root;
    char name[256];
    *last = '\0';
    while (*path) {
        while (*path == '/')
            path++;
        size_t n = strcspn(path, "/");
        if (!n || n >= sizeof(name))
            break;
        if (*last) {
            bool found;
            size_t i = position(&at->names, last, &found);
            if (!found || !at->names.v[i].inode->is_dir)
                return NULL;
            at = at->names.v[i].inode;
        }
        memcpy(last, path, n);
        last[n] = '\0';
        path += n;
    }
    return at;
}

static struct inode *lookup(struct sim_fs *fs, const char *path)
{
    char last[256];
    struct inode *dir = folder_of(fs, path, last);
    bool found = false;
    if (dir && !*last)
        return dir;
    size_t i = dir ? position(&dir->names, last, &found) : 0;
    return found ? dir->names.v[i].inode : NULL;
}

/* ---- faults ---- */

static bool below(const char *folder, const char *path)
{
    size_t n = folder ? strlen(folder) : 0;
    return n && strncmp(path, folder, n) == 0 && (!path[n] || path[n] == '/');
}

/* Before a change: does it fail? `dying`: the host dies in the middle of it. */
static int gate(struct sim_fs *fs, const char *path, bool *dying)
{
    if (dying)
        *dying = false;
    if (!fiber_self())
        return 0; /* the simulator's own look */
    if (fs->die_at && --fs->die_at == 0 && dying)
        *dying = true;
    if (!below(fs->broken, path))
        return 0;
    fs->failed++;
    return -EIO;
}

static void die(struct sim_fs *fs)
{
    fs->died(fs->host); /* does not return */
}

static void take_time(struct sim_fs *fs)
{
    if (fs->sync_ns > 0 && fiber_self())
        fiber_sleep(sim_between(0, fs->sync_ns));
}

/* ---- open files ---- */

static int f_open(struct fs *base, const char *path, int flags, int mode, struct file **out)
{
    (void)mode;
    struct sim_fs *fs = of(base);
    char last[256];
    bool dying = false;
    *out = NULL;
    struct inode *dir = folder_of(fs, path, last), *n = lookup(fs, path);
    if (!dir)
        return -ENOENT;
    if (n && (flags & O_CREAT) && (flags & O_EXCL))
        return -EEXIST;
    if (n && n->is_dir && (flags & O_ACCMODE) != O_RDONLY)
        return -EISDIR;
    if (!n && !(flags & O_CREAT))
        return -ENOENT;
    if ((!n || (flags & O_TRUNC))) {
        int err = gate(fs, path, &dying);
        if (err)
            return err;
    }
    if (!n) {
        n = inode_new(false);
        names_put(&dir->names, last, n);
        dir->dirty = true;
    }
    if (flags & O_TRUNC) {
        n->now.len = 0;
        n->dirty = true;
    }
    if (dying)
        die(fs);
    struct open_file *f = calloc(1, sizeof(*f));
    f->f.fs = base;
    f->f.fd = -1;
    atomic_init(&f->f.refs, 1);
    f->inode = n;
    f->path = strdup(path);
    n->refs++;
    *out = &f->f;
    return 0;
}

static void f_close(struct file *file)
{
    struct open_file *f = file_of(file);
    inode_unref(f->inode);
    free(f->path);
    free(f);
}

static ssize_t f_pread(struct file *file, void *p, size_t n, int64_t off)
{
    const struct bytes_of *b = &file_of(file)->inode->now;
    if (off >= (int64_t)b->len)
        return 0;
    size_t left = b->len - (size_t)off, got = n < left ? n : left;
    memcpy(p, b->p + off, got);
    return (ssize_t)got;
}

static ssize_t f_pwritev(struct file *file, const struct iovec *iov, int n, int64_t off)
{
    struct open_file *f = file_of(file);
    struct sim_fs *fs = of(file->fs);
    size_t len = 0, done = 0;
    bool dying;
    for (int i = 0; i < n; i++)
        len += iov[i].iov_len;
    int err = gate(fs, f->path, &dying);
    size_t all = len;
    if (err || dying)
        len = (size_t)sim_below(len + 1); /* torn */
    if (len && (size_t)off + len > f->inode->now.len)
        grow(f->inode, (size_t)off + len);
    for (int i = 0; i < n && done < len; i++) {
        size_t part = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;
        memcpy(f->inode->now.p + off + done, iov[i].iov_base, part);
        done += part;
    }
    f->inode->dirty |= len > 0;
    if (len && all)
        f->inode->mtime_ms = sim_wall_ms();
    if (dying)
        die(fs);
    return err ? err : (ssize_t)done;
}

static int sync_inode(struct sim_fs *fs, const char *path, struct inode *n)
{
    bool dying;
    n->refs++;
    take_time(fs);
    int err = gate(fs, path, &dying);
    if (dying)
        die(fs);
    if (err) {
        n->lost = true;
    } else if (n->dirty && !n->lost) {
        bytes_copy(&n->durable, &n->now);
        n->dirty = n->maps > 0; /* nobody tells of what is stored into a mapping */
    }
    inode_unref(n);
    return err;
}

static int f_sync(struct file *f)
{
    return sync_inode(of(f->fs), file_of(f)->path, file_of(f)->inode);
}

static int f_msync(struct file *f, void *p, size_t len)
{
    (void)p, (void)len;
    return f_sync(f);
}

static int f_truncate(struct file *file, int64_t size)
{
    struct open_file *f = file_of(file);
    bool dying;
    int err = gate(of(file->fs), f->path, &dying);
    if (err)
        return err;
    if (!dying || sim_chance(0.5)) {
        grow(f->inode, (size_t)size);
        f->inode->dirty = true;
    }
    if (dying)
        die(of(file->fs));
    return 0;
}

static int f_allocate(struct file *file, int64_t off, int64_t len)
{
    return (size_t)(off + len) > file_of(file)->inode->now.len ? f_truncate(file, off + len) : 0;
}

static void fill(const struct inode *n, struct file_stat *st)
{
    *st = (struct file_stat){
        .size = (int64_t)n->now.len, .mtime_ms = n->mtime_ms, .is_dir = n->is_dir};
}

static int f_fstat(struct file *f, struct file_stat *st)
{
    fill(file_of(f)->inode, st);
    return 0;
}

static int f_set_mtime(struct file *f, int64_t mtime_ms)
{
    file_of(f)->inode->mtime_ms = mtime_ms;
    return 0;
}

static int f_map(struct file *file, size_t len, bool writable, void **out)
{
    struct inode *n = file_of(file)->inode;
    if (len > n->now.cap) { /* pages behind the end */
        size_t size = n->now.len;
        grow(n, len);
        n->now.len = size;
    }
    n->maps++;
    n->dirty |= writable;
    *out = n->now.p;
    return 0;
}

static int f_unmap(struct file *file, void *p, size_t len)
{
    (void)p, (void)len;
    file_of(file)->inode->maps--;
    return 0;
}

/* ---- names ---- */

static int f_rename(struct fs *base, const char *from, const char *to)
{
    struct sim_fs *fs = of(base);
    char old[256], new[256];
    bool dying;
    struct inode *a = folder_of(fs, from, old), *b = folder_of(fs, to, new);
    struct inode *n = lookup(fs, from), *target = lookup(fs, to);
    if (!a || !b || !n)
        return -ENOENT;
    if (n == target)
        return 0;
    if (target && target->is_dir && target->names.n)
        return -ENOTEMPTY;
    int err = gate(fs, from, &dying);
    if (!err)
        err = gate(fs, to, NULL);
    if (err)
        return err;
    if (!dying || sim_chance(0.5)) {
        n->refs++;
        names_drop(&a->names, old);
        names_put(&b->names, new, n);
        inode_unref(n);
        a->dirty = b->dirty = true;
    }
    if (dying)
        die(fs);
    return 0;
}

static int remove_name(struct fs *base, const char *path, bool is_dir)
{
    struct sim_fs *fs = of(base);
    char last[256];
    bool dying;
    struct inode *dir = folder_of(fs, path, last), *n = lookup(fs, path);
    if (!dir || !n)
        return -ENOENT;
    if (n->is_dir != is_dir)
        return is_dir ? -ENOTDIR : -EISDIR;
    if (n->names.n)
        return -ENOTEMPTY;
    int err = gate(fs, path, &dying);
    if (err)
        return err;
    if (!dying || sim_chance(0.5)) {
        names_drop(&dir->names, last);
        dir->dirty = true;
    }
    if (dying)
        die(fs);
    return 0;
}

static int f_unlink(struct fs *fs, const char *path)
{
    return remove_name(fs, path, false);
}

static int f_rmdir(struct fs *fs, const char *path)
{
    return remove_name(fs, path, true);
}

static int f_mkdir(struct fs *base, const char *path, int mode)
{
    (void)mode;
    struct sim_fs *fs = of(base);
    char last[256];
    bool dying;
    struct inode *dir = folder_of(fs, path, last);
    if (!dir)
        return -ENOENT;
    if (!*last || lookup(fs, path))
        return -EEXIST;
    int err = gate(fs, path, &dying);
    if (err)
        return err;
    if (!dying || sim_chance(0.5)) {
        names_put(&dir->names, last, inode_new(true));
        dir->dirty = true;
    }
    if (dying)
        die(fs);
    return 0;
}

static int f_sync_dir(struct fs *base, const char *path)
{
    struct sim_fs *fs = of(base);
    bool dying;
    take_time(fs);
    struct inode *n = lookup(fs, path);
    if (!n)
        return -ENOENT;
    int err = gate(fs, path, &dying);
    if (dying)
        die(fs);
    if (!err && n->dirty) {
        names_copy(&n->durable_names, &n->names);
        n->dirty = false;
    }
    return err;
}

static int f_stat(struct fs *fs, const char *path, struct file_stat *st)
{
    struct inode *n = lookup(of(fs), path);
    if (!n)
        return -ENOENT;
    fill(n, st);
    return 0;
}

static int f_list(struct fs *fs, const char *path, int (*each)(void *arg, const char *name),
                  void *arg)
{
    struct inode *n = lookup(of(fs), path);
    if (!n)
        return -ENOENT;
    struct names copy = {0};
    int rc = 0;
    names_copy(&copy, &n->names);
    for (size_t i = 0; i < copy.n && !rc; i++)
        rc = each(arg, copy.v[i].name);
    struct names none = {0};
    names_copy(&copy, &none);
    free(copy.v);
    return rc;
}

static const struct fs_ops ops = {
    .open = f_open,
    .close = f_close,
    .pread = f_pread,
    .pwritev = f_pwritev,
    .sync = f_sync,
    .truncate = f_truncate,
    .allocate = f_allocate,
    .fstat = f_fstat,
    .set_mtime = f_set_mtime,
    .map = f_map,
    .msync = f_msync,
    .unmap = f_unmap,
    .rename = f_rename,
    .unlink = f_unlink,
    .mkdir = f_mkdir,
    .rmdir = f_rmdir,
    .sync_dir = f_sync_dir,
    .stat = f_stat,
    .list = f_list,
};

/* ---- what stands for fs_posix.c ---- */

struct fs *fs_posix(void)
{
    if (!sim_here())
        sim_violation("files are opened outside of any host");
    return &sim_here()->fs->fs;
}

int fs_lock(const char *path, int *fd_out)
{
    (void)path;
    *fd_out = 1000;
    return 0;
}

int fs_lock_dir(const char *path, int *fd_out)
{
    (void)path;
    *fd_out = -1;
    return 0;
}

void fs_unlock(const char *path, int fd)
{
    (void)path, (void)fd;
}

/* ---- control ---- */

struct sim_fs *sim_fs_new(struct sim_host *h)
{
    struct sim_fs *fs = calloc(1, sizeof(*fs));
    fs->fs.ops = &ops;
    fs->host = h;
    fs->root = inode_new(true);
    fs->root->refs = 1;
    return fs;
}

/* Some of what was written since the last sync: a first part of what was appended, whole sectors of
 * what was written over. */
static void tear(struct inode *n)
{
    enum { SECTOR = 512 };
    size_t most = n->now.len > n->durable.len ? n->now.len : n->durable.len;
    size_t keep = (size_t)sim_below(most + 1);
    if (keep > n->now.len)
        keep = n->now.len;
    size_t common = keep < n->durable.len ? keep : n->durable.len;
    for (size_t at = 0; at < common; at += SECTOR) {
        size_t len = common - at < SECTOR ? common - at : SECTOR;
        if (sim_chance(0.5))
            memcpy(n->now.p + at, n->durable.p + at, len);
    }
    size_t end = n->now.len < n->durable.len && sim_chance(0.5) ? n->durable.len : keep;
    if (end < n->durable.len && n->now.len >= n->durable.len)
        end = n->durable.len; /* only a truncation makes a file shorter */
    size_t old = n->now.len;
    resize(&n->now, end);
    if (end > old && n->durable.len >= end)
        memcpy(n->now.p + old, n->durable.p + old, end - old);
    else if (end > keep && n->durable.len >= end)
        memcpy(n->now.p + keep, n->durable.p + keep, end - keep);
}

/* What a sync failed for is still to be written, and a later process's sync does it: where a kernel
 * takes it for written then, nobody could tell, and this program does not claim to. */
static void crash_inode(struct inode *n, enum sim_crash how)
{
    n->maps = 0;
    if (how == CRASH_PROCESS)
        n->lost = false;
    if (how != CRASH_PROCESS) {
        if (n->is_dir && n->dirty && (how == CRASH_DROP || sim_chance(0.5)))
            names_copy(&n->names, &n->durable_names);
        if (!n->is_dir && (n->dirty || n->lost)) {
            if (how == CRASH_TEAR)
                tear(n);
            else
                bytes_copy(&n->now, &n->durable);
            n->dirty = true;
        }
        n->lost = false;
        if (!n->is_dir)
            bytes_copy(&n->durable, &n->now), n->dirty = false;
    }
    for (size_t i = 0; i < n->names.n; i++)
        crash_inode(n->names.v[i].inode, how);
    if (how != CRASH_PROCESS && n->is_dir) {
        names_copy(&n->durable_names, &n->names);
        n->dirty = false;
    }
}

void sim_fs_crash(struct sim_fs *fs, enum sim_crash how)
{
    fs->die_at = 0;
    crash_inode(fs->root, how);
}

void sim_fs_die_at(struct sim_fs *fs, uint64_t n, void (*died)(struct sim_host *h))
{
    fs->die_at = n;
    fs->died = died;
}

void sim_fs_break(struct sim_fs *fs, const char *folder)
{
    free(fs->broken);
    fs->broken = folder ? strdup(folder) : NULL;
}

bool sim_fs_broken(const struct sim_fs *fs)
{
    return fs->broken != NULL;
}

void sim_fs_slow(struct sim_fs *fs, int64_t sync_ns)
{
    fs->sync_ns = sync_ns;
}

uint64_t sim_fs_failed(const struct sim_fs *fs)
{
    return fs->failed;
}
