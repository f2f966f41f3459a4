/* log_util.h - what the tests of this room share: a log in a temporary folder on a file layer that
 * can fail, records to append, a simple model of what must come back.
 *
 * The clock stands still at T0 unless a test moves it. */
#ifndef TESTS_LOG_UTIL_H
#define TESTS_LOG_UTIL_H

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs_fault.h"
#include "base/logline.h"
#include "log/log_check.h"
#include "log/log_load.h"
#include "log/log_private.h"
#include "protocol/batch_builder.h"
#include "temp_dir.h"

#define T0 INT64_C(1700000000000)
#define UNUSED_FN __attribute__((unused))
#define TOPIC STR_LIT("orders")

struct log_test {
    struct temp_dir tmp;
    char data[300]; /* the log dir */
    struct fs_fault *fault;
    struct fs *fs;
    struct sim_clock clock;
    struct log_config config;
    struct log_dir *dir;
    struct log *log;
    struct arena arena;
    char said[8192]; /* lines of the log since the last quiet_log */
    bool loud;       /* lines go to standard error */
    /* what a checkpoint would say at the next open */
    int64_t recovery_point, start_offset, high_watermark;
    uint64_t txn_guard; /* of appends */
};

static void keep_line(enum logline_level level, const char *line, void *arg) UNUSED_FN;
static void keep_line(enum logline_level level, const char *line, void *arg)
{
    struct log_test *t = arg;
    size_t n = strlen(t->said), m = strlen(line);
    if (t->loud)
        fprintf(stderr, "%s\n", line);
    if (n + m + 2 < sizeof(t->said)) {
        memcpy(t->said + n, line, m);
        strcpy(t->said + n + m, "\n");
    }
}

UNUSED_FN static uint64_t test_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* ---- dir and log ---- */

UNUSED_FN static void make_dir(struct log_test *t)
{
    t->dir = log_dir_new(t->fs, &t->clock.clock, t->data);
    assert_non_null(t->dir);
}

/* A dir without logs. Small indexes: the layer that plays crashes copies what is mapped. */
UNUSED_FN static void setup(struct log_test *t)
{
    memset(t, 0, sizeof(*t));
    /* thousands of small files and syncs: in memory where that can be */
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    temp_dir_make(&t->tmp);
    snprintf(t->data, sizeof(t->data), "%s/data", t->tmp.path);
    t->fault = fs_fault_new(fs_posix());
    t->fs = fs_fault_fs(t->fault);
    sim_clock_init(&t->clock, T0);
    t->config = log_config_default();
    t->config.segment_index_bytes = 4096;
    logline_set_sink(keep_line, t);
    arena_init(&t->arena, 0);
    assert_int_equal(fs_mkdir_p(t->fs, t->data), 0);
    assert_int_equal(fs_sync_dir(t->fs, t->tmp.path), 0);
    make_dir(t);
}

UNUSED_FN static int try_create(struct log_test *t)
{
    struct topic_partition tp = {TOPIC, 0};
    return log_create(t->dir, tp, &t->config, UUID_ZERO, &t->log);
}

UNUSED_FN static int try_open(struct log_test *t, bool clean)
{
    struct log_open_args a = {.dir = t->dir,
                              .tp = {TOPIC, 0},
                              .config = &t->config,
                              .clean = clean,
                              .recovery_point = t->recovery_point,
                              .start_offset = t->start_offset,
                              .high_watermark = t->high_watermark};
    return log_open(&a, &t->log);
}

/* A fresh log. */
UNUSED_FN static void setup_log(struct log_test *t)
{
    setup(t);
    assert_int_equal(try_create(t), 0);
}

/* What the checkpoints would hold. */
UNUSED_FN static void note_checkpoints(struct log_test *t)
{
    t->recovery_point = log_recovery_point(t->log);
    t->start_offset = log_start_offset(t->log);
    t->high_watermark = log_high_watermark(t->log);
}

UNUSED_FN static void drop_log(struct log_test *t)
{
    log_unref(t->log);
    t->log = NULL;
}

/* Stops cleanly and loads again. */
UNUSED_FN static void reopen_clean(struct log_test *t)
{
    assert_int_equal(log_close(t->log), 0);
    note_checkpoints(t);
    drop_log(t);
    assert_int_equal(try_open(t, true), 0);
}

/* As after kill -9: no seal, no sync, and checkpoints as of the last note_checkpoints. */
UNUSED_FN static void reopen_unclean(struct log_test *t)
{
    drop_log(t);
    assert_int_equal(try_open(t, false), 0);
}

/* Leaves the offline dir behind, as a restart does. */
UNUSED_FN static void fresh_dir(struct log_test *t)
{
    drop_log(t);
    log_dir_free(t->dir);
    make_dir(t);
}

UNUSED_FN static void teardown(struct log_test *t)
{
    drop_log(t);
    log_dir_free(t->dir);
    arena_free(&t->arena);
    fs_fault_free(t->fault);
    logline_set_sink(NULL, NULL);
    temp_dir_remove(&t->tmp);
}

/* "<partition's folder>/<name>", good until the 8th call after it. */
UNUSED_FN static const char *log_file(struct log_test *t, const char *name)
{
    char sub[300];
    snprintf(sub, sizeof(sub), "data/orders-0/%s", name);
    return temp_dir_path(&t->tmp, sub);
}

UNUSED_FN static int64_t size_of(struct log_test *t, const char *name)
{
    struct file_stat st;
    int err = fs_stat(t->fs, log_file(t, name), &st);
    return err ? err : st.size;
}

UNUSED_FN static void write_file(struct log_test *t, const char *name, const void *p, size_t n)
{
    struct file *f;
    assert_int_equal(fs_open(t->fs, log_file(t, name), O_RDWR | O_CREAT | O_TRUNC, &f), 0);
    assert_int_equal(file_pwrite_all(f, p, n, 0), 0);
    file_unref(f);
}

UNUSED_FN static void flip_byte(struct log_test *t, const char *name, int64_t at)
{
    struct file *f;
    uint8_t b;
    assert_int_equal(fs_open(t->fs, log_file(t, name), O_RDWR, &f), 0);
    assert_int_equal(file_pread(f, &b, 1, at), 1);
    b ^= 0x40;
    assert_int_equal(file_pwrite_all(f, &b, 1, at), 0);
    file_unref(f);
}

/* ---- records ---- */

struct records {
    struct batch_options o;
    int n;                   /* records of the batch */
    size_t value_n;          /* bytes of each value */
    int64_t timestamp, step; /* of the first, and between them */
    int64_t first_offset;    /* replication: as the leader gave them */
};

UNUSED_FN static struct records records_of(int n)
{
    return (struct records){
        .o = BATCH_OPTIONS_DEFAULT, .n = n, .value_n = 10, .timestamp = T0, .step = 1};
}

UNUSED_FN static struct buf build(const struct records *r)
{
    struct buf out = BUF_INIT;
    struct batch_builder *b = batch_builder_new(&r->o);
    char *value = malloc(r->value_n + 1);
    memset(value, 'v', r->value_n + 1);
    for (int i = 0; i < r->n; i++) {
        char key[32];
        struct bytes k = {(const uint8_t *)key, snprintf(key, sizeof(key), "k%d", i)};
        struct bytes v = {(const uint8_t *)value, (int32_t)r->value_n};
        assert_int_equal(
            batch_builder_add(b, r->first_offset + i, r->timestamp + i * r->step, k, v, NULL, 0),
            0);
    }
    assert_int_equal(batch_builder_finish(b, &out), 0);
    batch_builder_free(b);
    free(value);
    return out;
}

UNUSED_FN static struct append_policy policy_of(struct log_test *t, enum append_origin origin)
{
    return (struct append_policy){.origin = origin,
                                  .produce_version = origin == APPEND_CLIENT ? 9 : -1,
                                  .max_message_bytes = 64 << 20,
                                  .compression = COMPRESSION_PRODUCER,
                                  .level = CODEC_LEVEL_DEFAULT,
                                  .log_append_time = t->config.log_append_time,
                                  .before_max_ms = INT64_MAX,
                                  .after_max_ms = INT64_MAX,
                                  .now_ms = clock_wall_ms(&t->clock.clock)};
}

/* Prepares and appends bytes; the leader's way unless the origin is replication. */
UNUSED_FN static enum kerr append_bytes(struct log_test *t, struct buf *b, int32_t epoch,
                                        enum append_origin origin, struct append_info *out)
{
    struct append_policy policy = policy_of(t, origin);
    struct prepared pr;
    arena_reset(&t->arena);
    enum kerr code = records_prepare(&policy, b->p, b->len, &t->arena, &pr);
    assert_int_equal(code, KERR_NONE);
    pr.txn_guard = t->txn_guard;
    code = origin == APPEND_REPLICATION ? log_append_as_follower(t->log, &pr, out)
                                        : log_append(t->log, &pr, epoch, origin, out);
    prepared_free(&pr);
    return code;
}

UNUSED_FN static enum kerr append_info(struct log_test *t, const struct records *r,
                                       struct append_info *out)
{
    struct buf b = build(r);
    enum kerr code = append_bytes(t, &b, 0, APPEND_CLIENT, out);
    buf_free(&b);
    return code;
}

UNUSED_FN static enum kerr append(struct log_test *t, const struct records *r)
{
    struct append_info info;
    return append_info(t, r, &info);
}

/* n appends of one batch with `per` records each. */
UNUSED_FN static void append_many(struct log_test *t, int n, int per)
{
    struct records r = records_of(per);
    for (int i = 0; i < n; i++)
        assert_int_equal(append(t, &r), KERR_NONE);
}

/* One batch as a leader would have it at `first`, in epoch `epoch`. */
UNUSED_FN static enum kerr replicate(struct log_test *t, int64_t first, int n, int32_t epoch)
{
    struct records r = records_of(n);
    struct append_info info;
    r.first_offset = first;
    r.o.leader_epoch = epoch;
    struct buf b = build(&r);
    enum kerr code = append_bytes(t, &b, epoch, APPEND_REPLICATION, &info);
    buf_free(&b);
    return code;
}

/* ---- producers ---- */

UNUSED_FN static struct records produced(int64_t id, int16_t epoch, int32_t sequence, int n,
                                         bool transactional)
{
    struct records r = records_of(n);
    r.o.producer_id = id;
    r.o.producer_epoch = epoch;
    r.o.base_sequence = sequence;
    r.o.transactional = transactional;
    return r;
}

UNUSED_FN static enum kerr append_marker(struct log_test *t, int64_t id, int16_t epoch, bool commit,
                                         int32_t coordinator_epoch)
{
    struct append_info info;
    struct buf b = BUF_INIT;
    assert_int_equal(batch_build_marker(commit, 0, clock_wall_ms(&t->clock.clock), 0, id, epoch,
                                        coordinator_epoch, &b),
                     0);
    enum kerr code = append_bytes(t, &b, 0, APPEND_COORDINATOR, &info);
    buf_free(&b);
    return code;
}

/* ---- reading ---- */

/* Reads at offset with the log end as limit; the slice must hold whole batches or be empty. Returns
 * the offset behind what was read, -1 when nothing was. */
UNUSED_FN static int64_t read_at(struct log_test *t, int64_t offset, uint32_t max)
{
    struct log_slice s;
    assert_int_equal(log_read(t->log, offset, max, log_end_offset(t->log), true, false, &s),
                     KERR_NONE);
    if (!s.len)
        return -1;
    uint8_t *p = malloc(s.len);
    assert_int_equal(file_pread(s.file, p, s.len, s.pos), s.len);
    file_unref(s.file);
    struct batch b;
    int64_t next = -1;
    for (uint32_t at = 0; batch_decode(p + at, s.len - at, s.len - at, &b) == BATCH_OK;
         at += b.size) {
        assert_true(batch_crc_ok(&b));
        if (at == 0) {
            assert_int_equal(b.base_offset, s.first_offset);
            assert_true(b.last_offset >= offset);
        }
        next = b.last_offset + 1;
    }
    free(p);
    return next;
}

/* Reads from the start to the end; returns the number of reads. */
UNUSED_FN static int read_all(struct log_test *t, uint32_t max)
{
    int n = 0;
    int64_t at = log_start_offset(t->log), next;
    while ((next = read_at(t, at, max)) > 0) {
        assert_true(next > at);
        at = next;
        n++;
    }
    assert_int_equal(at, log_end_offset(t->log));
    return n;
}

/* The log's invariants. */
UNUSED_FN static void check(struct log_test *t)
{
    char why[512] = "";
    if (!log_check(t->log, why, sizeof(why)))
        fail_msg("%s", why);
}

/* The same on the files of a log that was closed cleanly. */
UNUSED_FN static void check_closed(struct log_test *t)
{
    char why[512] = "", path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/orders-0", t->data);
    if (!log_check_folder(t->fs, path, why, sizeof(why)))
        fail_msg("%s", why);
}

#endif
