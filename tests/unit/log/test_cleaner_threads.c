/* Compaction beside everything else: a leader that appends, readers, look-ups, flushes, retention,
 * and a follower that is cut back again and again. */
#include "cleaner_util.h"

#include <math.h>
#include <sched.h>

#include "log/cleaner.h"

enum { BATCHES = 1500, KEYS = 40 };

struct scene {
    struct clean_test c; /* records, policy; c.t.log is the leader's */
    char path[300];
    const char *dirs[1];
    struct log_manager *m;
    struct cleaner *cleaner;
    struct log *leader, *follower;
    atomic_bool over;
};

static struct log *make_log(struct scene *s, const char *topic)
{
    struct log *log;
    struct topic_partition tp = {str_of(topic), 0};
    assert_int_equal(log_manager_get_or_create(s->m, tp, true, UUID_ZERO, &s->c.t.config, &log),
                     KERR_NONE);
    return log;
}

static void set_up(struct scene *s)
{
    char err[1024] = "";
    memset(s, 0, sizeof(*s));
    setup(&s->c.t);
    log_dir_free(s->c.t.dir);
    s->c.t.dir = NULL;
    snprintf(s->path, sizeof(s->path), "%s/d", s->c.t.tmp.path);
    s->dirs[0] = s->path;
    s->c.t.config = log_config_default();
    s->c.t.config.cleanup_policy = CLEANUP_COMPACT | CLEANUP_DELETE;
    s->c.t.config.retention_ms = -1;
    s->c.t.config.min_cleanable_ratio = 0;
    s->c.t.config.delete_retention_ms = 0;
    s->c.t.config.file_delete_delay_ms = 0;
    s->c.t.config.segment_bytes = 8192;
    s->c.t.config.segment_index_bytes = 4096;
    s->c.t.config.index_interval_bytes = 200;
    /* the real files: the layer for faults has a lock that would hide races */
    struct log_manager_options mo = {.fs = fs_posix(),
                                     .clock = clock_real(),
                                     .dirs = s->dirs,
                                     .dirs_n = 1,
                                     .defaults = s->c.t.config,
                                     .recovery_threads = 1,
                                     .broker_id = 1,
                                     .cluster_id = "cluster-a"};
    if (log_manager_open(&mo, &s->m, err, sizeof(err)))
        fail_msg("%s", err);
    struct cleaner_options co = {.logs = s->m,
                                 .clock = clock_real(),
                                 .threads = 2,
                                 .dedupe_bytes = 1 << 20,
                                 .load_factor = 0.9,
                                 .io_buffer_bytes = 1 << 15,
                                 .max_bytes_per_second = INFINITY,
                                 .backoff_ms = 1};
    assert_int_equal(cleaner_new(&co, &s->cleaner), 0);
    s->leader = make_log(s, "leader");
    s->follower = make_log(s, "follower");
    s->c.t.log = s->leader;
    assert_int_equal(cleaner_start(s->cleaner), 0);
}

/* Values of aborted transactions say so; no read_committed reader may be shown one. */
static void *read_committed(void *arg)
{
    struct scene *s = arg;
    struct arena arena;
    uint64_t random = (uint64_t)(uintptr_t)&arena;
    arena_init(&arena, 0);
    while (!atomic_load(&s->over)) {
        struct log_slice slice;
        struct aborted_txn *aborted;
        int n;
        int64_t lso = log_last_stable_offset(s->leader), start = log_start_offset(s->leader);
        int64_t at = start + (int64_t)(test_random(&random) % (uint64_t)(lso - start + 1));
        arena_reset(&arena);
        enum kerr code =
            log_read_committed(s->leader, at, 4096, lso, true, false, &arena, &slice, &aborted, &n);
        assert_true(code == KERR_NONE || log_start_offset(s->leader) > at);
        if (code || !slice.len)
            continue;
        uint8_t *p = malloc(slice.len);
        struct batch b;
        assert_int_equal(file_pread(slice.file, p, slice.len, slice.pos), slice.len);
        int64_t next = -1;
        for (uint32_t pos = 0;
             batch_decode(p + pos, slice.len - pos, slice.len - pos, &b) == BATCH_OK;
             pos += b.size) {
            struct record_iter *it;
            struct record r;
            bool skip = batch_is_control(&b);
            assert_true(batch_crc_ok(&b));
            assert_true(b.base_offset > next && (pos || b.last_offset >= at));
            next = b.last_offset;
            for (int i = 0; i < n && batch_is_transactional(&b); i++)
                skip |= aborted[i].producer_id == b.producer_id &&
                        aborted[i].first_offset <= b.base_offset;
            assert_int_equal(record_iter_open(&b, &it), 0);
            while (!skip && record_iter_next(it, &r) == 1)
                assert_true(r.value.len < 0 || r.value.p[0] != 'x');
            record_iter_close(it);
        }
        file_unref(slice.file);
        free(p);
    }
    arena_free(&arena);
    return NULL;
}

static void *look_up(void *arg)
{
    struct scene *s = arg;
    uint64_t random = 7;
    while (!atomic_load(&s->over)) {
        struct offset_lookup found;
        struct arena arena;
        int64_t *offsets, end = log_end_offset(s->leader);
        int n;
        arena_init(&arena, 0);
        int64_t t = test_random(&random) % 2 ? T0 + (int64_t)(test_random(&random) % BATCHES)
                                             : LIST_MAX_TIMESTAMP;
        enum kerr code = log_lookup(s->leader, t, end, &found);
        assert_int_equal(code, KERR_NONE);
        assert_true(found.offset < end);
        assert_int_equal(log_offsets_before(s->leader, LIST_LATEST, end, 5, &arena, &offsets, &n),
                         KERR_NONE);
        arena_free(&arena);
    }
    return NULL;
}

static void *keep_up(void *arg)
{
    struct scene *s = arg;
    while (!atomic_load(&s->over)) {
        assert_int_equal(log_flush(s->leader), KERR_NONE);
        log_manager_retention(s->m);
        log_manager_delete_due(s->m);
        log_manager_checkpoint_recovery_points(s->m);
        sched_yield();
    }
    return NULL;
}

/* Another clean_test, for its own arena. */
static void *follow(void *arg)
{
    struct scene *s = arg;
    struct log_test t = {.log = s->follower, .config = s->c.t.config, .clock = s->c.t.clock};
    uint64_t random = 99;
    arena_init(&t.arena, 0);
    for (int i = 0; i < BATCHES && !atomic_load(&s->over); i++) {
        int64_t end = log_end_offset(s->follower);
        if (test_random(&random) % 50 == 0) {
            int64_t to = end - (int64_t)(test_random(&random) % 300);
            assert_int_equal(log_truncate_to(s->follower, to > 0 ? to : 0), KERR_NONE);
        } else {
            assert_int_equal(replicate(&t, end, 5, 0), KERR_NONE);
            log_set_high_watermark(s->follower, log_end_offset(s->follower));
        }
    }
    arena_free(&t.arena);
    return NULL;
}

/* So that there are many compactions, however busy the machine is. */
static void await_cleaner(struct scene *s)
{
    struct segment_list *l = log_pin(s->leader);
    int64_t base = segment_list_active(l)->base;
    segment_list_unpin(l);
    while (log_cleaned_to(s->leader) < base)
        sched_yield();
}

/* The leader: keyed records, some in transactions, of which each third is aborted. */
static void lead(struct scene *s, int64_t newest[KEYS])
{
    int32_t sequence = 0;
    uint64_t random = 3;
    for (int i = 0; i < BATCHES; i++) {
        char key[16], value[64];
        int k = (int)(test_random(&random) % KEYS);
        bool txn = i % 4 == 0, abort_it = txn && i % 3 == 0;
        snprintf(key, sizeof(key), "k%d", k);
        snprintf(value, sizeof(value), "%c%050d", abort_it ? 'x' : 'v', i);
        struct kv v = {key, value, T0 + i};
        if (txn) {
            put_produced(&s->c, 5, sequence++, true, &v, 1);
            put_marker(&s->c, 5, !abort_it);
        } else {
            put_at(&s->c, key, value, T0 + i);
        }
        if (!abort_it)
            newest[k] = i;
        if (i % 250 == 249)
            await_cleaner(s);
    }
}

static void everything_at_once(void **state)
{
    static struct scene s;
    int64_t newest[KEYS], seen[KEYS];
    pthread_t threads[6];
    void *(*const work[])(void *) = {read_committed, read_committed, look_up, keep_up, follow};
    enum { N = sizeof(work) / sizeof(*work) };
    struct cleaner_stats stats;
    set_up(&s);
    put(&s.c, "k0", "v"); /* so that there is something to read */
    for (int i = 0; i < KEYS; i++)
        newest[i] = seen[i] = -1;
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work[i], &s), 0);
    lead(&s, newest);
    roll(&s.c);
    int64_t end = log_end_offset(s.leader);
    while (log_cleaned_to(s.leader) < end)
        sched_yield();
    atomic_store(&s.over, true);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    cleaner_stop(s.cleaner);
    cleaner_stats(s.cleaner, &stats);
    assert_true(stats.logs_cleaned > 4);
    struct got g = read_back(&s.c.t);
    for (int i = 0; i < g.records_n; i++) {
        int k;
        if (sscanf(g.records[i].key, "k%d", &k) == 1 && g.records[i].value[0] == 'v') {
            assert_int_equal(seen[k], -1); /* once each */
            seen[k] = g.records[i].timestamp - T0;
        }
    }
    got_free(&g);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(seen[i], newest[i]);
    check(&s.c.t);
    s.c.t.log = s.follower;
    check(&s.c.t);
    struct log_dir *dir;
    log_manager_dirs(s.m, &dir, 1);
    assert_false(log_dir_offline(dir));
    log_unref(s.leader);
    log_unref(s.follower);
    s.c.t.log = NULL;
    cleaner_free(s.cleaner);
    log_manager_close(s.m);
    teardown(&s.c.t);
}

UNIT_MAIN(unit_test(everything_at_once))
