#include "log/txn_index.h"

#include <errno.h>
#include <fcntl.h>

#include "base/buf.h"
#include "log/log_dir_private.h"

enum { READ_ENTRIES = 64 };

void txn_entry_encode(uint8_t out[TXN_ENTRY_BYTES], struct txn_entry e)
{
    put_be16(out, 0);
    put_be64(out + 2, (uint64_t)e.producer_id);
    put_be64(out + 10, (uint64_t)e.first_offset);
    put_be64(out + 18, (uint64_t)e.last_offset);
    put_be64(out + 26, (uint64_t)e.last_stable_offset);
}

bool txn_entry_decode(const uint8_t p[TXN_ENTRY_BYTES], struct txn_entry *out)
{
    *out = (struct txn_entry){(int64_t)get_be64(p + 2), (int64_t)get_be64(p + 10),
                              (int64_t)get_be64(p + 18), (int64_t)get_be64(p + 26)};
    return get_be16(p) == 0;
}

void txn_index_init(struct txn_index *x, bool exists)
{
    x->lock = SPIN_INIT;
    x->file = NULL;
    atomic_init(&x->n, exists ? -1 : 0);
    atomic_init(&x->dirty, false);
    x->gone = NULL;
}

/* Exchanges the open file. What comes out is the caller's. */
static struct file *swap(struct txn_index *x, struct file *f)
{
    spin_lock(&x->lock);
    struct file *old = x->file;
    x->file = f;
    spin_unlock(&x->lock);
    return old;
}

void txn_index_close(struct txn_index *x)
{
    file_unref(swap(x, NULL));
}

/* The open file with a reference, or NULL. */
static struct file *open_one(struct txn_index *x)
{
    spin_lock(&x->lock);
    struct file *f = x->file ? file_ref(x->file) : NULL;
    spin_unlock(&x->lock);
    return f;
}

/* *out is a reference of the caller's. */
static int open_file(struct txn_index *x, struct fs *fs, const char *path, int flags,
                     struct file **out)
{
    struct file_stat st;
    *out = open_one(x);
    if (*out)
        return 0;
    int err = fs_open(fs, path, flags, out);
    if (err)
        return err;
    err = x->gone && atomic_load(x->gone) ? -ESTALE : file_stat(*out, &st);
    if (err) {
        file_unref(*out);
        return err;
    }
    int unknown = -1; /* a file just made has none */
    atomic_compare_exchange_strong(&x->n, &unknown, (int)(st.size / TXN_ENTRY_BYTES));
    file_unref(swap(x, file_ref(*out))); /* somebody may have been faster: both are as good */
    return 0;
}

int txn_index_append(struct txn_index *x, struct fs *fs, const char *path, struct txn_entry e)
{
    struct file *f;
    uint8_t raw[TXN_ENTRY_BYTES];
    /* With no entries there is no file we rely on: what lies there is a crash's. */
    bool first = atomic_load(&x->n) == 0;
    int err = open_file(x, fs, path, O_RDWR | (first ? O_CREAT : 0), &f);
    if (err)
        return err;
    int n = atomic_load(&x->n);
    int64_t at = (int64_t)n * TXN_ENTRY_BYTES;
    struct file_stat st;
    err = file_stat(f, &st);
    if (!err && st.size != at)
        err = file_truncate(f, at); /* a torn entry, or worse */
    txn_entry_encode(raw, e);
    if (!err)
        err = file_pwrite_all(f, raw, sizeof(raw), at);
    file_unref(f);
    if (err)
        return err;
    atomic_store_explicit(&x->dirty, true, memory_order_relaxed);
    atomic_store_explicit(&x->n, n + 1, memory_order_release);
    return 0;
}

/* Entries of the open file. */
static int read_entries(struct txn_index *x, struct file *f, int from, bool now,
                        struct txn_entry *out, int max)
{
    uint8_t raw[READ_ENTRIES * TXN_ENTRY_BYTES];
    int left = atomic_load_explicit(&x->n, memory_order_acquire) - from;
    int want = left < max ? left : max;
    if (want > READ_ENTRIES)
        want = READ_ENTRIES;
    if (want <= 0)
        return 0;
    size_t bytes = (size_t)want * TXN_ENTRY_BYTES;
    int64_t at = (int64_t)from * TXN_ENTRY_BYTES;
    ssize_t got = now ? file_pread_now(f, raw, bytes, at) : file_pread(f, raw, bytes, at);
    if (got < 0)
        return (int)got;
    if (now && (size_t)got < bytes)
        return -EAGAIN;
    int n = (int)got / TXN_ENTRY_BYTES; /* fewer: cut meanwhile */
    for (int i = 0; i < n; i++)
        if (!txn_entry_decode(raw + (size_t)i * TXN_ENTRY_BYTES, &out[i]))
            return -EBADMSG;
    return n;
}

int txn_index_read(struct txn_index *x, struct fs *fs, const char *path, int from,
                   struct txn_entry *out, int max)
{
    struct file *f;
    if (atomic_load_explicit(&x->n, memory_order_acquire) == 0)
        return 0;
    int err = open_file(x, fs, path, O_RDWR, &f);
    if (err)
        return err;
    int n = read_entries(x, f, from, false, out, max);
    file_unref(f);
    return n;
}

int txn_index_read_now(struct txn_index *x, int from, struct txn_entry *out, int max)
{
    if (atomic_load_explicit(&x->n, memory_order_acquire) == 0)
        return 0;
    struct file *f = open_one(x);
    int n = f ? read_entries(x, f, from, true, out, max) : -EAGAIN;
    file_unref(f);
    return n;
}

int txn_index_file(struct txn_index *x, struct fs *fs, const char *path, struct file **out)
{
    *out = NULL;
    if (atomic_load(&x->n) == 0)
        return 0;
    int err = open_file(x, fs, path, O_RDWR, out);
    if (err)
        *out = NULL;
    return err;
}

/* How many entries from the start have their marker below `offset`; or -errno. */
static int count_below(struct txn_index *x, struct file *f, int64_t offset)
{
    struct txn_entry e[READ_ENTRIES];
    int n = 0, got;
    while ((got = read_entries(x, f, n, false, e, READ_ENTRIES)) > 0) {
        int i = 0;
        while (i < got && e[i].last_offset < offset)
            i++;
        n += i;
        if (i < got)
            break;
    }
    return got < 0 ? got : n;
}

static int copy_entries(struct file *from, struct file *to, int n)
{
    uint8_t raw[READ_ENTRIES * TXN_ENTRY_BYTES];
    int64_t end = (int64_t)n * TXN_ENTRY_BYTES;
    for (int64_t at = 0; at < end;) {
        int64_t left = end - at;
        size_t want = left < (int64_t)sizeof(raw) ? (size_t)left : sizeof(raw);
        ssize_t got = file_pread(from, raw, want, at);
        if (got != (ssize_t)want)
            return got < 0 ? (int)got : -EIO;
        int err = file_pwrite_all(to, raw, want, at);
        if (err)
            return err;
        at += (int64_t)want;
    }
    return 0;
}

/* A new file with the first n entries in the place of the old one. */
static int cut_to(struct txn_index *to, struct fs *fs, const char *path, struct file *from, int n)
{
    struct file *f;
    int err = fs_unlink(fs, path);
    if (err || n == 0)
        return err;
    err = fs_open(fs, path, O_RDWR | O_CREAT | O_EXCL, &f);
    if (err)
        return err;
    err = copy_entries(from, f, n);
    if (err)
        file_unref(f);
    else
        file_unref(swap(to, f));
    return err;
}

int txn_index_cut(struct txn_index *from, struct file *f, struct txn_index *to, struct fs *fs,
                  const char *path, int64_t offset)
{
    if (!f)
        return 0;
    int keep = count_below(from, f, offset);
    int err = keep < 0 ? keep : 0;
    if (!err && keep < atomic_load(&from->n)) {
        err = cut_to(to, fs, path, f, keep);
    } else if (!err) { /* the same file; what is added to it is behind what `from` knows of */
        file_unref(swap(to, file_ref(f)));
    }
    if (err)
        return err;
    atomic_store(&to->dirty, keep > 0); /* `from` may have had something to sync still */
    atomic_store(&to->n, keep);
    return 0;
}

int txn_index_sane(struct txn_index *x, struct fs *fs, const char *path, int64_t base)
{
    struct txn_entry e[READ_ENTRIES];
    int64_t last = base - 1;
    int at = 0, got;
    while ((got = txn_index_read(x, fs, path, at, e, READ_ENTRIES)) > 0) {
        for (int i = 0; i < got; i++) {
            if (e[i].last_offset <= last)
                return 0;
            last = e[i].last_offset;
        }
        at += got;
    }
    if (got == -EBADMSG)
        return 0;
    return got < 0 ? got : 1;
}

int txn_index_sync(struct txn_index *x, struct fs *fs, const char *path)
{
    struct file *f;
    if (!atomic_exchange_explicit(&x->dirty, false, memory_order_acq_rel))
        return 0;
    int err = open_file(x, fs, path, O_RDWR, &f);
    if (err) { /* nothing was lost: the next sync has to do it */
        atomic_store_explicit(&x->dirty, true, memory_order_release);
        return err;
    }
    err = log_sync_failed(file_sync(f));
    file_unref(f);
    return err;
}
