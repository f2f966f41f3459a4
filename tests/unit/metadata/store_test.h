/* store_test.h - what tests on the store share: open one, and operations that wait. */
#ifndef TESTS_METADATA_STORE_TEST_H
#define TESTS_METADATA_STORE_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metadata/embedded_store.h"

#include "unit.h"

static inline struct bytes text(const char *z)
{
    return (struct bytes){(const uint8_t *)z, z ? (int32_t)strlen(z) : -1};
}

/* A new folder; in memory where the machine has such a place, since fsync is dear. */
static inline void new_test_dir(char dir[64])
{
    snprintf(dir, 64, "/dev/shm/kafkad-store-XXXXXX");
    if (mkdtemp(dir))
        return;
    snprintf(dir, 64, "%.40s/kafkad-store-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(dir));
}

static inline struct store *open_in_memory(struct executor *run_on)
{
    struct embedded_options o = {.clock = clock_real(), .run_on = run_on};
    struct store *s;
    char err[256] = "";
    assert_int_equal(embedded_store_open(&o, &s, err, sizeof(err)), 0);
    return s;
}

static inline int run_op(struct store *s, struct store_op *op)
{
    struct store_request r = {.ops = op, .ops_n = 1};
    return store_run(s, &r);
}

static inline int create(struct store *s, const char *path, const char *data, int flags)
{
    struct store_op op = store_op_create(path, text(data), flags);
    int err = run_op(s, &op);
    if (flags & STORE_SEQUENTIAL)
        free((void *)op.result.p);
    return err;
}

static inline int set(struct store *s, const char *path, const char *data, int32_t version)
{
    struct store_op op = store_op_set(path, text(data), version);
    return run_op(s, &op);
}

static inline int del(struct store *s, const char *path, int32_t version)
{
    struct store_op op = store_op_delete(path, version);
    return run_op(s, &op);
}

/* -ENOENT, or 0 with the stat. */
static inline int stat_of(struct store *s, const char *path, struct store_stat *st)
{
    struct store_op op = store_op_exists(path, false);
    int err = run_op(s, &op);
    *st = op.stat;
    return err;
}

/* Is the node's data this text? NULL asks for null data. */
static inline bool holds(struct store *s, const char *path, const char *data)
{
    struct bytes b;
    if (store_get(s, path, &b, NULL))
        return false;
    bool same =
        data ? b.len == (int32_t)strlen(data) && memcmp(b.p, data, (size_t)b.len) == 0 : b.len < 0;
    free((void *)b.p);
    return same;
}

#endif
