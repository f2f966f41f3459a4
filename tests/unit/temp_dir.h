/* temp_dir.h - a folder for one test.
 *
 *   struct temp_dir dir;
 *   temp_dir_make(&dir);
 *   ... temp_dir_path(&dir, "a/b") ...   good until the 8th call after it
 *   temp_dir_remove(&dir);
 */
#ifndef TESTS_TEMP_DIR_H
#define TESTS_TEMP_DIR_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "unit.h"

struct temp_dir {
    char path[256];
    char made[8][PATH_MAX];
    int next;
};

static inline void temp_dir_make(struct temp_dir *d)
{
    const char *top = getenv("TMPDIR");
    d->next = 0;
    snprintf(d->path, sizeof(d->path), "%s/kafkad-test-XXXXXX", top ? top : "/tmp");
    assert_non_null(mkdtemp(d->path));
}

static inline const char *temp_dir_path(struct temp_dir *d, const char *name)
{
    char *out = d->made[d->next++ % 8];
    size_t dir_n = strlen(d->path), name_n = strlen(name);
    assert_true(dir_n + name_n + 2 <= PATH_MAX);
    memcpy(out, d->path, dir_n);
    out[dir_n] = '/';
    memcpy(out + dir_n + 1, name, name_n + 1);
    return out;
}

static inline void temp_dir_remove(struct temp_dir *d)
{
    assert_int_equal(fs_remove_tree(fs_posix(), d->path), 0);
}

#endif
