#include "tools/tool_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void dump_failed(struct dump *d, const char *path, const char *fmt, ...)
{
    va_list ap;
    fflush(stdout); /* what was right comes first */
    fprintf(d->complaints, "%s: ", path);
    va_start(ap, fmt);
    vfprintf(d->complaints, fmt, ap);
    va_end(ap);
    fputc('\n', d->complaints);
    d->failed = true;
}

struct file *dump_open(struct dump *d, const char *path, int64_t *size)
{
    struct file *f;
    struct file_stat st = {0};
    int err = fs_open(fs_posix(), path, O_RDONLY, &f);
    if (!err && (err = file_stat(f, &st)) == 0 && st.is_dir)
        err = -EISDIR;
    if (!err) {
        *size = st.size;
        return f;
    }
    if (err == -EISDIR)
        file_unref(f);
    dump_failed(d, path, "%s", strerror(-err));
    return NULL;
}

const char *dump_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int64_t dump_base_offset(const char *path)
{
    const char *name = dump_base_name(path);
    int64_t v = 0;
    for (int i = 0; i < 19 + 1 && name[i] >= '0' && name[i] <= '9'; i++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, name[i] - '0', &v))
            return INT64_MAX;
    return v;
}

const char *dump_absolute(const char *path, char out[8192])
{
    char here[4096];
    if (*path == '/' || !getcwd(here, sizeof here))
        return path;
    snprintf(out, 8192, "%s/%s", here, path);
    return out;
}

void dump_sibling(const char *path, const char *suffix, char out[8192])
{
    const char *name = dump_base_name(path);
    int folder = (int)(name - path), stem = (int)strcspn(name, ".");
    snprintf(out, 8192, "%.*s%.*s%s", folder, path, stem, name, suffix);
}
