/* bench_compaction.c - what compaction costs beside its floor, reading the log once and writing
 * what is left of it; and what it does to those who append to other logs meanwhile.
 *
 *   bench_compaction DIR [MB]
 *
 * One JSON line for each kind of log: MB/s of the log's bytes, CPU seconds per GB of them, and the
 * same of the floor. Then one of appends: latencies alone and beside a compaction that goes round.
 * Asserts nothing. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/logline.h"
#include "log/cleaner_facts.h"
#include "log/cleaner_work.h"
#include "log/log_open.h"
#include "log/log_private.h"
#include "protocol/batch_builder.h"

enum { BUFFER = 256 << 10, BATCH_BYTES = 64 << 10 };

struct kind {
    const char *name;
    enum codec codec;
    size_t value;
    double keys_per_record; /* 1: every record stays */
};

struct bench {
    char path[3000];
    struct log_dir *dir;
    struct log_config config;
    struct log *log;
    int64_t records;
};

static void die(const char *what, int err)
{
    fprintf(stderr, "bench_compaction: %s: %s\n", what, strerror(err < 0 ? -err : err));
    exit(1);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of this thread. */
static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- logs ---- */

static struct buf make_batch(struct batch_builder *b, const struct kind *k, int64_t first,
                             int64_t keys, const uint8_t *noise)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct buf out = BUF_INIT;
    o.codec = k->codec;
    batch_builder_reset(b, &o);
    for (int64_t i = 0; batch_builder_size(b) < BATCH_BYTES; i++) {
        char key[32];
        uint64_t n = (uint64_t)(first + i) * 0x9e3779b97f4a7c15 >> 16;
        int len = snprintf(key, sizeof(key), "customer-%012" PRIu64, n % (uint64_t)keys);
        if (batch_builder_add(b, i, INT64_C(1700000000000) + first + i,
                              (struct bytes){(const uint8_t *)key, len},
                              (struct bytes){noise + n % 4096, (int32_t)k->value}, NULL, 0))
            die("build", ENOMEM);
    }
    if (batch_builder_finish(b, &out))
        die("build", ENOMEM);
    return out;
}

static int64_t append(struct log *log, struct buf *bytes, struct arena *a)
{
    struct append_policy policy = {.origin = APPEND_CLIENT,
                                   .produce_version = 9,
                                   .max_message_bytes = 64 << 20,
                                   .compression = COMPRESSION_PRODUCER,
                                   .level = CODEC_LEVEL_DEFAULT,
                                   .before_max_ms = INT64_MAX,
                                   .after_max_ms = INT64_MAX};
    struct append_info info;
    struct prepared pr;
    if (records_prepare(&policy, bytes->p, bytes->len, a, &pr))
        die("prepare", EINVAL);
    if (log_append(log, &pr, 0, APPEND_CLIENT, &info))
        die("append", EIO);
    prepared_free(&pr);
    arena_reset(a);
    return info.last_offset + 1;
}

static void open_log(struct bench *b, const char *name)
{
    struct topic_partition tp = {str_of(name), 0};
    int err = log_create(b->dir, tp, &b->config, UUID_ZERO, &b->log);
    if (err)
        die("create the log", err);
}

static void fill(struct bench *b, const struct kind *k, int64_t mb)
{
    static uint8_t noise[1 << 16];
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *builder = batch_builder_new(&o);
    struct arena a;
    int64_t end = 0,
            keys = (int64_t)((double)(mb << 20) / (double)(k->value + 30) * k->keys_per_record);
    /* text that compresses to about a half */
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (uint8_t)("etaoinshrdlucmfwypvbgkjqxz0123456789"[rand() % 36]);
    arena_init(&a, 0);
    while (log_size(b->log) < mb << 20) {
        struct buf bytes = make_batch(builder, k, end, keys ? keys : 1, noise);
        end = append(b->log, &bytes, &a);
        buf_free(&bytes);
    }
    b->records = end;
    batch_builder_free(builder);
    arena_free(&a);
    pthread_mutex_lock(&b->log->lock);
    if (log_roll(b->log, end))
        die("roll", EIO);
    pthread_mutex_unlock(&b->log->lock);
    log_set_high_watermark(b->log, end);
    if (log_flush(b->log))
        die("flush", EIO);
}

static void drop_log(struct bench *b)
{
    log_delete(b->log, 0);
    log_unref(b->log);
    log_dir_remove_due(b->dir);
}

/* ---- the floor ---- */

/* Reads n bytes of the files that the log had and writes m of them to a new one. */
static void floor_of(const struct bench *b, const struct segment_list *l, int64_t n, int64_t m,
                     double *seconds, double *cpu)
{
    static uint8_t buffer[BUFFER];
    char path[3100];
    struct file *out;
    snprintf(path, sizeof(path), "%s/floor", b->path);
    if (fs_open(fs_posix(), path, O_RDWR | O_CREAT | O_TRUNC, &out))
        die("floor", errno);
    double start = now_s(), used = cpu_s();
    int64_t read = 0, written = 0;
    for (int i = 0; i < l->n && read < n; i++) {
        struct file *f;
        if (segment_file(l->v[i], &f))
            die("floor", EIO);
        ssize_t got = 0;
        for (int64_t at = 0; (got = file_pread(f, buffer, BUFFER, at)) > 0; at += got) {
            read += got;
            int64_t want = (int64_t)((double)read * (double)m / (double)n) - written;
            if (want > 0 &&
                file_pwrite_all(out, buffer, (size_t)(want < got ? want : got), written))
                die("floor", EIO);
            written += want < got ? want : got;
            if (written % (16 << 20) < BUFFER && file_sync(out))
                die("floor", EIO);
        }
        file_unref(f);
    }
    if (file_sync(out))
        die("floor", EIO);
    *seconds = now_s() - start;
    *cpu = cpu_s() - used;
    file_unref(out);
    fs_unlink(fs_posix(), path);
}

/* ---- compaction ---- */

static bool go_on(void *arg, size_t n)
{
    return true;
}

static struct cleaner_result compact(struct cleaner_work *w, struct log *log)
{
    struct cleaner_choice ch;
    struct cleaner_result r;
    int cuts = log_cuts(log);
    w->moved = go_on;
    atomic_store(&log->cleaned_to, 0);
    int err = cleaner_choose_log(log, INT64_C(1800000000000), &ch);
    if (!err)
        err = cleaner_work_run(w, log, &ch, cuts, &r);
    if (err)
        die("compact", err);
    return r;
}

static void measure(struct bench *b, struct cleaner_work *w, const struct kind *k, int64_t mb)
{
    double floor_s, floor_cpu;
    const double gb = 1 << 30;
    open_log(b, k->name);
    fill(b, k, mb);
    struct segment_list *l = log_pin(b->log); /* of before */
    double start = now_s(), used = cpu_s();
    struct cleaner_result r = compact(w, b->log);
    double seconds = now_s() - start, cpu = cpu_s() - used;
    floor_of(b, l, r.bytes_before, r.bytes_after, &floor_s, &floor_cpu);
    segment_list_unpin(l);
    double read = (double)r.bytes_before;
    printf(
        "{\"workload\": \"%s\", \"mb\": %.0f, \"kept\": %.3f, \"mb_s\": %.1f, \"records_s\": %.0f, "
        "\"cpu_s_per_gb\": %.3f, \"floor_mb_s\": %.1f, \"floor_cpu_s_per_gb\": %.3f, "
        "\"cpu_ratio_floor\": %.2f}\n",
        k->name, read / (1 << 20), (double)r.bytes_after / read, read / seconds / (1 << 20),
        (double)b->records / seconds, cpu / (read / gb), read / floor_s / (1 << 20),
        floor_cpu / (read / gb), cpu / floor_cpu);
    fflush(stdout);
    drop_log(b);
}

/* ---- appends beside it ---- */

enum { APPENDS = 4000 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 16 KiB each 2 ms, as a producer does; sorted latencies in ms. */
static void time_appends(struct log *log, double *ms)
{
    static const struct kind k = {"", CODEC_NONE, 1000, 1};
    static uint8_t noise[1 << 16];
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *builder = batch_builder_new(&o);
    struct arena a;
    arena_init(&a, 0);
    for (int i = 0; i < APPENDS; i++) {
        struct buf bytes = make_batch(builder, &k, i * 16, 1000, noise);
        double start = now_s();
        append(log, &bytes, &a);
        ms[i] = (now_s() - start) * 1000;
        buf_free(&bytes);
        usleep(2000);
    }
    arena_free(&a);
    batch_builder_free(builder);
    qsort(ms, APPENDS, sizeof(*ms), by_value);
}

struct rounds {
    struct cleaner_work *w;
    struct log *log;
    atomic_bool over;
    int64_t bytes;
};

static void *go_round(void *arg)
{
    struct rounds *r = arg;
    while (!atomic_load(&r->over)) {
        r->bytes += compact(r->w, r->log).bytes_after;
        log_dir_remove_due(r->log->folder.dir);
    }
    return NULL;
}

static void beside(struct bench *b, struct cleaner_work *w, int64_t mb)
{
    static double alone[APPENDS], with[APPENDS];
    static const struct kind k = {"beside", CODEC_NONE, 1000, 1};
    struct bench other = *b;
    struct rounds r = {.w = w};
    pthread_t t;
    open_log(b, "beside");
    fill(b, &k, mb);
    open_log(&other, "appended");
    time_appends(other.log, alone);
    r.log = b->log;
    double start = now_s();
    if (pthread_create(&t, NULL, go_round, &r))
        die("thread", EAGAIN);
    time_appends(other.log, with);
    atomic_store(&r.over, true);
    pthread_join(t, NULL);
    printf("{\"workload\": \"appends-beside-compaction\", \"compacted_mb_s\": %.1f, "
           "\"alone_p50_ms\": %.3f, \"p50_ms\": %.3f, \"alone_p99_ms\": %.3f, \"p99_ms\": %.3f, "
           "\"alone_p999_ms\": %.3f, \"p999_ms\": %.3f}\n",
           (double)r.bytes / (now_s() - start) / (1 << 20), alone[APPENDS / 2], with[APPENDS / 2],
           alone[APPENDS * 99 / 100], with[APPENDS * 99 / 100], alone[APPENDS * 999 / 1000],
           with[APPENDS * 999 / 1000]);
    drop_log(b);
    drop_log(&other);
}

int main(int argc, char **argv)
{
    static const struct kind kinds[] = {
        {"compaction-1k", CODEC_NONE, 1000, 0.25},
        {"compaction-1k-clean", CODEC_NONE, 1000, 1000},
        {"compaction-100b", CODEC_NONE, 70, 0.25},
        {"compaction-1k-lz4", CODEC_LZ4, 1000, 0.25},
        {"compaction-1k-zstd", CODEC_ZSTD, 1000, 0.25},
    };
    struct cleaner_work w;
    static struct bench b;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_compaction DIR [MB]\n");
        return 2;
    }
    int64_t mb = argc > 2 ? atoi(argv[2]) : 512;
    snprintf(b.path, sizeof(b.path), "%s/bench-compaction-%d", argv[1], (int)getpid());
    b.config = log_config_default();
    b.config.cleanup_policy = CLEANUP_COMPACT;
    b.config.segment_bytes = 128 << 20;
    b.config.min_cleanable_ratio = 0;
    b.config.file_delete_delay_ms = 0;
    logline_set_level(LOGLINE_WARN);
    int err = fs_mkdir_p(fs_posix(), b.path);
    b.dir = log_dir_new(fs_posix(), clock_real(), b.path);
    if (!err && b.dir)
        err = cleaner_work_init(&w, 128 << 20, 0.9, BUFFER);
    if (err || !b.dir)
        die(b.path, err ? err : ENOMEM);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        measure(&b, &w, &kinds[i], mb);
    beside(&b, &w, mb);
    cleaner_work_free(&w);
    log_dir_free(b.dir);
    return fs_remove_tree(fs_posix(), b.path) ? 1 : 0;
}
