/* fuzz_index_files.c - a folder of a log with any bytes in its files: it loads (or says why not),
 * reads and look-ups end, and after a clean stop and a second start all invariants hold.
 *
 * INPUT  byte 0: bit 0: clean start; bit 1: put the checksums of batches right first; bit 2: the
 *        policy is compact. byte 1: recovery point. Then for each file (.log, .index, .timeindex,
 *        .txnindex, .snapshot, leader-epoch-checkpoint) two bytes of length (65535: no such file)
 *        and its bytes, as many as there are.
 *
 * Rooms: log */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/logline.h"
#include "log/log_check.h"
#include "log/log_open.h"

#include "fuzz.h"

static void quiet(enum logline_level level, const char *line, void *arg)
{
}

static void mend_batches(uint8_t *p, size_t n)
{
    struct batch b;
    for (size_t at = 0; batch_decode(p + at, n - at, n - at, &b) == BATCH_OK; at += b.size)
        if (b.magic == 2)
            put_be32(p + at + BATCH_AT_CRC,
                     crc32c(p + at + BATCH_AT_ATTRIBUTES, b.size - BATCH_AT_ATTRIBUTES));
}

static const char *const files[] = {
    "00000000000000000000.log",       "00000000000000000000.index",
    "00000000000000000000.timeindex", "00000000000000000000.txnindex",
    "00000000000000000007.snapshot",  "leader-epoch-checkpoint"};
enum { FILES = 6, NONE = 65535 };

static void put_file(const char *folder, const char *name, const uint8_t *p, size_t n)
{
    char path[PATH_MAX + 64];
    struct file *f;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    must(fs_open(fs_posix(), path, O_RDWR | O_CREAT | O_TRUNC, &f) == 0);
    must(file_pwrite_all(f, p, n, 0) == 0);
    file_unref(f);
}

static void write_files(const char *folder, const uint8_t *p, size_t n, bool mend)
{
    for (int i = 0; i < FILES && n >= 2; i++) {
        size_t len = get_be16(p);
        p += 2;
        n -= 2;
        if (len == NONE)
            continue;
        len = len < n ? len : n;
        uint8_t *bytes = malloc(len + 1);
        must(bytes != NULL);
        memcpy(bytes, p, len);
        if (i == 0 && mend)
            mend_batches(bytes, len);
        put_file(folder, files[i], bytes, len);
        free(bytes);
        p += len;
        n -= len;
    }
}

/* Whatever the files say, these must end and keep to their ranges. */
static void ask(struct log *log)
{
    struct arena a;
    struct offset_lookup l;
    int64_t start = log_start_offset(log), end = log_end_offset(log), *v;
    int k;
    must(start <= end && log_high_watermark(log) <= end && log_recovery_point(log) <= end);
    arena_init(&a, 1 << 20);
    for (int i = 0; i < 16; i++) {
        struct log_slice s;
        struct aborted_txn *aborted;
        int64_t at = start + (end - start) / 16 * i;
        enum kerr code = log_read_committed(log, at, 500, end, i & 1, i & 2, &a, &s, &aborted, &k);
        must(code == KERR_NONE || code == KERR_KAFKA_STORAGE_ERROR);
        if (!code)
            file_unref(s.file);
    }
    (void)log_lookup(log, 0, end, &l);
    (void)log_lookup(log, INT64_C(1700000000000), end, &l);
    (void)log_lookup(log, LIST_MAX_TIMESTAMP, end, &l);
    (void)log_offsets_before(log, -1, end, 10, &a, &v, &k);
    (void)log_bytes_between(log, start, end);
    arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char top[PATH_MAX], folder[PATH_MAX + 16], why[512] = "";
    struct sim_clock clock;
    struct log *log;
    const char *tmp = getenv("TMPDIR");
    if (n < 2)
        return 0;
    logline_set_sink(quiet, NULL);
    sim_clock_init(&clock, INT64_C(1700000000000));
    snprintf(top, sizeof(top), "%s/fuzz-index-XXXXXX", tmp ? tmp : "/tmp");
    must(mkdtemp(top) != NULL);
    snprintf(folder, sizeof(folder), "%s/t-0", top);
    must(fs_mkdir(fs_posix(), folder) == 0);
    write_files(folder, p + 2, n - 2, p[0] & 2);
    struct log_config c = log_config_default();
    c.segment_index_bytes = 4096;
    if (p[0] & 4)
        c.cleanup_policy = CLEANUP_COMPACT;
    struct log_dir *dir = log_dir_new(fs_posix(), &clock.clock, top);
    must(dir != NULL);
    struct log_open_args a = {.dir = dir,
                              .tp = {STR_LIT("t"), 0},
                              .config = &c,
                              .clean = p[0] & 1,
                              .recovery_point = p[1]};
    int err = log_open(&a, &log);
    must(err != 0 || !log_dir_offline(dir));
    must(err == 0 || log_dir_offline(dir));
    if (!err) {
        ask(log);
        bool good = log_dir_offline(dir) || log_close(log) == 0;
        must(good || log_dir_offline(dir));
        log_unref(log);
    }
    /* An unclean start from 0 looks at everything. */
    if (!err && !log_dir_offline(dir)) {
        a.clean = false;
        a.recovery_point = 0;
        if (log_open(&a, &log) == 0) {
            /* the batches' own epochs and counts are the input's */
            if (!log_check(log, why, sizeof(why)) && strncmp(why, "E2", 2) != 0 &&
                strncmp(why, "B4", 2) != 0) {
                fprintf(stderr, "%s\n", why);
                abort();
            }
            ask(log);
            log_unref(log);
        }
    }
    log_dir_free(dir);
    must(fs_remove_tree(fs_posix(), top) == 0);
    return 0;
}
