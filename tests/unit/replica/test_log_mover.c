/* Moving a log to another dir: the copy, cuts, growth meanwhile, the swap, giving up, going on. */
#include "bench.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>

#include "replica/log_copy.h"
#include "replica/log_mover.h"

static struct partition *leader_of_two_dirs(struct bench *b)
{
    memset(b, 0, sizeof *b);
    bench_open_dirs(b, 2);
    return bench_leader(b, NUMBERS(1));
}

/* The dir where the log is not. */
static struct log_dir *other_dir(struct bench *b, struct partition *p)
{
    struct log_dir *dirs[2];
    struct log *log = partition_log(p);
    assert_int_equal(log_manager_dirs(b->logs, dirs, 2), 2);
    struct log_dir *other = log_dir_of(log) == dirs[0] ? dirs[1] : dirs[0];
    log_unref(log);
    return other;
}

static enum copy_result piece(struct bench *b, struct partition *p, uint32_t bytes)
{
    int64_t copied;
    struct log *from = partition_log(p), *to = log_manager_future(b->logs, bench_tp("t", 0));
    assert_non_null(to);
    enum copy_result r = log_copy_piece(p, from, to, b->logs, bytes, &copied);
    log_unref(from);
    log_unref(to);
    return r;
}

static void move_on(struct bench *b, struct partition *p, uint32_t bytes)
{
    enum copy_result r;
    int n = 0;
    while ((r = piece(b, p, bytes)) == COPY_MORE)
        assert_true(n++ < 10000);
    assert_int_equal(r, COPY_DONE);
}

static void make_future(struct bench *b, struct partition *p)
{
    struct log *log = partition_log(p);
    assert_int_equal(log_manager_make_future(b->logs, log, other_dir(b, p)), KERR_NONE);
    log_unref(log);
}

/* All of the log's bytes. Owned. */
static uint8_t *bytes_of(struct log *log, size_t *n)
{
    struct buf all = BUF_INIT;
    int64_t at = log_start_offset(log);
    while (at < log_end_offset(log)) {
        struct log_slice s;
        assert_int_equal(log_read(log, at, 1 << 20, log_end_offset(log), true, false, &s),
                         KERR_NONE);
        if (s.len == 0)
            break;
        uint8_t *p = malloc(s.len);
        assert_int_equal(file_pread(s.file, p, s.len, s.pos), s.len);
        buf_put(&all, p, s.len);
        struct batch last = {.last_offset = at};
        size_t used = 0;
        while (used < s.len) {
            assert_int_equal(batch_decode(p + used, s.len - used, s.len - used, &last), BATCH_OK);
            used += last.size;
        }
        at = last.last_offset + 1;
        free(p);
        file_unref(s.file);
    }
    return buf_take(&all, n);
}

static void same_bytes(struct log *a, struct log *b)
{
    size_t n, m;
    uint8_t *x = bytes_of(a, &n), *y = bytes_of(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

static void a_log_moves_and_stays_the_same(void **state)
{
    struct bench b;
    struct partition_append done;
    struct partition *p = leader_of_two_dirs(&b);
    for (int i = 0; i < 50; i++)
        assert_int_equal(bench_append(&b, p, 5, 1, &done), KERR_NONE);
    struct log_dir *to = other_dir(&b, p);
    struct log *old = partition_log(p);
    size_t n, m;
    uint8_t *before = bytes_of(old, &n);
    make_future(&b, p);
    move_on(&b, p, 3000); /* pieces of a few batches */
    struct log *now = partition_log(p);
    assert_ptr_equal(log_dir_of(now), to);
    assert_false(log_is_future(now));
    uint8_t *after = bytes_of(now, &m);
    assert_int_equal(n, m);
    assert_memory_equal(before, after, n);
    assert_int_equal(log_high_watermark(now), 250);
    assert_null(log_manager_future(b.logs, bench_tp("t", 0)));
    struct log *found = log_manager_find(b.logs, bench_tp("t", 0));
    assert_ptr_equal(found, now);
    assert_int_equal(bench_append(&b, p, 1, 1, &done), KERR_NONE);
    assert_int_equal(done.info.first_offset, 250);
    assert_int_not_equal(log_begin_epoch(old, 99), KERR_NONE); /* it is gone */
    log_unref(found);
    log_unref(now);
    log_unref(old);
    free(before);
    free(after);
    partition_unref(p);
    bench_close(&b);
}

static void what_comes_meanwhile_comes_along(void **state)
{
    struct bench b;
    struct partition *p = leader_of_two_dirs(&b);
    bench_append(&b, p, 10, 1, NULL);
    make_future(&b, p);
    for (int i = 0; i < 20; i++) {
        bench_append(&b, p, 3, 1, NULL);
        bench_append(&b, p, 3, 1, NULL);
        if (i < 10)
            assert_int_equal(piece(&b, p, 1), COPY_MORE); /* one batch: it falls behind */
    }
    move_on(&b, p, 1 << 20);
    struct log *now = partition_log(p);
    assert_int_equal(log_end_offset(now), 130);
    log_unref(now);
    partition_unref(p);
    bench_close(&b);
}

/* The log was cut and goes on in a later epoch: what the copy has beyond is cut, too. */
static void a_log_that_was_cut_takes_the_copy_along(void **state)
{
    struct bench b;
    struct partition *p = leader_of_two_dirs(&b);
    for (int i = 0; i < 10; i++)
        bench_append(&b, p, 1, 1, NULL);
    make_future(&b, p);
    for (int i = 0; i < 8; i++)
        assert_int_equal(piece(&b, p, 1), COPY_MORE);
    struct log *from = partition_log(p), *to = log_manager_future(b.logs, bench_tp("t", 0));
    assert_int_equal(log_end_offset(to), 8);
    assert_int_equal(log_truncate_to(from, 4), KERR_NONE);
    assert_int_equal(bench_lead(&b, "t", 0,
                                (struct lead){.leader = 1,
                                              .leader_epoch = 7,
                                              .isr = (int32_t[]){1},
                                              .isr_n = 1,
                                              .replicas = (int32_t[]){1},
                                              .replicas_n = 1}),
                     KERR_NONE);
    for (int i = 0; i < 10; i++)
        bench_append(&b, p, 1, 1, NULL);
    assert_int_equal(piece(&b, p, 1), COPY_MORE);
    assert_int_equal(log_end_offset(to), 5);
    assert_int_equal(piece(&b, p, 1), COPY_MORE);
    same_bytes(to, to);
    move_on(&b, p, 1 << 20);
    struct log *now = partition_log(p);
    assert_ptr_equal(now, to);
    assert_int_equal(log_end_offset(now), 14);
    assert_int_equal(log_latest_epoch(now), 7);
    log_unref(now);
    log_unref(from);
    log_unref(to);
    partition_unref(p);
    bench_close(&b);
}

static void a_start_that_moves_is_followed(void **state)
{
    struct bench b;
    int64_t raised;
    struct partition *p = leader_of_two_dirs(&b);
    for (int i = 0; i < 10; i++)
        bench_append(&b, p, 1, 1, NULL);
    make_future(&b, p);
    assert_int_equal(piece(&b, p, 1), COPY_MORE);
    assert_int_equal(partition_delete_records(p, 6, &raised), KERR_NONE);
    assert_int_equal(piece(&b, p, 1), COPY_MORE);
    struct log *to = log_manager_future(b.logs, bench_tp("t", 0));
    assert_int_equal(log_start_offset(to), 6);
    assert_int_equal(log_end_offset(to), 7);
    log_unref(to);
    move_on(&b, p, 1 << 20);
    struct log *now = partition_log(p);
    assert_int_equal(log_start_offset(now), 6);
    assert_int_equal(log_end_offset(now), 10);
    log_unref(now);
    partition_unref(p);
    bench_close(&b);
}

struct retention {
    struct partition *p;
    struct log *log;
};

/* Within the swap alone the partition is locked against all others. */
static void retention_takes_all_in_the_swap(void *arg)
{
    struct retention *r = arg;
    if (pthread_rwlock_tryrdlock(&r->p->lock) == 0)
        pthread_rwlock_unlock(&r->p->lock);
    else if (log_start_offset(r->log) < 30)
        assert_int_equal(log_raise_start_offset(r->log, 30), KERR_NONE);
}

/* The copy is not lost when the start moves while the rest is copied: it goes on. */
static void a_start_that_moves_in_the_swap_is_waited_for(void **state)
{
    struct bench b;
    bench_open_dirs(&b, 2);
    b.config.segment_bytes = 2000; /* one read gives one segment */
    struct partition *p = bench_leader(&b, NUMBERS(1));
    for (int i = 0; i < 30; i++)
        bench_append(&b, p, 1, 1, NULL);
    make_future(&b, p);
    struct retention r = {p, partition_log(p)};
    fs_fault_add(b.fault, (struct fs_fault_rule){.call = FS_PREAD,
                                                 .path = "*.log",
                                                 .times = -1,
                                                 .before = retention_takes_all_in_the_swap,
                                                 .arg = &r});
    assert_int_equal(piece(&b, p, 1 << 20), COPY_WAIT);
    assert_int_equal(log_start_offset(r.log), 30);
    fs_fault_clear(b.fault);
    move_on(&b, p, 1 << 20);
    struct log *now = partition_log(p);
    assert_ptr_not_equal(now, r.log);
    assert_int_equal(log_start_offset(now), 30);
    assert_int_equal(log_end_offset(now), 30);
    log_unref(now);
    log_unref(r.log);
    partition_unref(p);
    bench_close(&b);
}

/* Records were deleted up to the middle of a batch, which is the first that is copied. */
static void a_start_within_a_batch_is_followed(void **state)
{
    struct bench b;
    int64_t raised;
    struct partition *p = leader_of_two_dirs(&b);
    for (int i = 0; i < 4; i++)
        bench_append(&b, p, 5, 1, NULL);
    assert_int_equal(partition_delete_records(p, 7, &raised), KERR_NONE);
    make_future(&b, p);
    assert_int_equal(piece(&b, p, 1), COPY_MORE);
    struct log *to = log_manager_future(b.logs, bench_tp("t", 0));
    assert_int_equal(log_start_offset(to), 7);
    assert_int_equal(log_end_offset(to), 10);
    assert_int_equal(partition_delete_records(p, 13, &raised), KERR_NONE);
    move_on(&b, p, 1);
    assert_int_equal(log_start_offset(to), 13);
    assert_int_equal(log_end_offset(to), 20);
    log_unref(to);
    partition_unref(p);
    bench_close(&b);
}

/* What was acknowledged as synced is synced in the new place before the old one goes. */
static void a_log_that_moved_is_synced(void **state)
{
    struct bench b;
    struct partition *p = leader_of_two_dirs(&b);
    bench_append(&b, p, 5, 1, NULL);
    make_future(&b, p);
    move_on(&b, p, 1 << 20);
    struct log *now = partition_log(p);
    assert_int_equal(log_recovery_point(now), 5);
    log_unref(now);
    partition_unref(p);
    bench_close(&b);
}

static void an_empty_log_moves(void **state)
{
    struct bench b;
    struct partition_append done;
    struct partition *p = leader_of_two_dirs(&b);
    make_future(&b, p);
    move_on(&b, p, 1 << 20);
    assert_int_equal(bench_append(&b, p, 1, 1, &done), KERR_NONE);
    assert_int_equal(done.info.first_offset, 0);
    partition_unref(p);
    bench_close(&b);
}

/* An epoch that has no record yet is not in the copy's bytes. */
static void epochs_without_records_are_kept(void **state)
{
    struct bench b;
    int32_t epoch;
    int64_t end;
    struct partition *p = leader_of_two_dirs(&b);
    bench_append(&b, p, 3, 1, NULL);
    assert_int_equal(bench_lead(&b, "t", 0,
                                (struct lead){.leader = 1,
                                              .leader_epoch = 4,
                                              .isr = (int32_t[]){1},
                                              .isr_n = 1,
                                              .replicas = (int32_t[]){1},
                                              .replicas_n = 1}),
                     KERR_NONE);
    make_future(&b, p);
    move_on(&b, p, 1 << 20);
    assert_int_equal(partition_epoch_end(p, -1, 4, &epoch, &end), KERR_NONE);
    assert_int_equal(epoch, 4);
    assert_int_equal(end, 3);
    partition_unref(p);
    bench_close(&b);
}

static void deleting_the_partition_deletes_the_copy(void **state)
{
    struct bench b;
    struct partition *p = leader_of_two_dirs(&b);
    bench_append(&b, p, 3, 1, NULL);
    make_future(&b, p);
    assert_int_equal(bench_stop(&b, "t", 0, -2, true), KERR_NONE);
    assert_null(log_manager_future(b.logs, bench_tp("t", 0)));
    assert_null(log_manager_find(b.logs, bench_tp("t", 0)));
    partition_unref(p);
    bench_close(&b);
}

/* ---- the threads ---- */

static struct log_mover *mover(struct bench *b)
{
    struct log_mover *m;
    struct log_mover_options o = {.replicas = b->m,
                                  .logs = b->logs,
                                  .clock = clock_real(),
                                  .threads = 2,
                                  .window = {11, 1000},
                                  .piece_bytes = 500};
    assert_int_equal(log_mover_new(&o, &m), 0);
    assert_int_equal(log_mover_start(m), 0);
    return m;
}

static void wait_until_moved(struct log_mover *m)
{
    struct timespec t = {0, 1000000};
    for (int i = 0; log_mover_count(m) > 0; i++) {
        assert_true(i < 30000);
        nanosleep(&t, NULL);
    }
}

static void asked_to_move_it_moves(void **state)
{
    struct bench b;
    struct partition *p = leader_of_two_dirs(&b);
    struct log_mover *m = mover(&b);
    for (int i = 0; i < 100; i++)
        bench_append(&b, p, 1, 1, NULL);
    struct log_dir *to = other_dir(&b, p), *back;
    char slashed[512];
    snprintf(slashed, sizeof slashed, "%s/", log_dir_path(to));
    assert_int_equal(log_mover_move(m, bench_tp("t", 0), slashed), KERR_NONE);
    wait_until_moved(m);
    struct log *now = partition_log(p);
    assert_ptr_equal(log_dir_of(now), to);
    assert_int_equal(log_end_offset(now), 100);
    log_unref(now);
    assert_int_equal(log_mover_move(m, bench_tp("t", 0), log_dir_path(to)), KERR_NONE);
    assert_int_equal(log_mover_count(m), 0); /* it is there */
    back = other_dir(&b, p);
    assert_int_equal(log_mover_move(m, bench_tp("t", 0), log_dir_path(back)), KERR_NONE);
    wait_until_moved(m);
    now = partition_log(p);
    assert_ptr_equal(log_dir_of(now), back);
    log_unref(now);
    log_mover_free(m);
    partition_unref(p);
    bench_close(&b);
}

static void moves_that_cannot_be_are_refused(void **state)
{
    struct bench b;
    char name[250];
    memset(name, 'x', 249);
    name[249] = 0;
    struct partition *p = leader_of_two_dirs(&b);
    struct log_mover *m = mover(&b);
    const char *to = log_dir_path(other_dir(&b, p));
    assert_int_equal(log_mover_move(m, bench_tp("t", 0), "/no/such"), KERR_LOG_DIR_NOT_FOUND);
    assert_int_equal(log_mover_move(m, bench_tp(name, 0), to), KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(log_mover_move(m, bench_tp("t", 1), to), KERR_REPLICA_NOT_AVAILABLE);
    /* but there it is made when it comes */
    assert_int_equal(bench_lead(&b, "t", 1,
                                (struct lead){.leader = 1,
                                              .isr = (int32_t[]){1},
                                              .isr_n = 1,
                                              .replicas = (int32_t[]){1},
                                              .replicas_n = 1,
                                              .is_new = true}),
                     KERR_NONE);
    struct log *log = log_manager_find(b.logs, bench_tp("t", 1));
    assert_string_equal(log_dir_path(log_dir_of(log)), to);
    log_unref(log);
    log_mover_free(m);
    partition_unref(p);
    bench_close(&b);
}

static double hardly_anything(void *arg)
{
    return 0.001;
}

static void a_move_can_be_given_up(void **state)
{
    struct bench b;
    struct log_mover *m;
    struct partition *p = leader_of_two_dirs(&b);
    struct log *before = partition_log(p);
    for (int i = 0; i < 20; i++)
        bench_append(&b, p, 1, 1, NULL);
    struct log_mover_options o = {.replicas = b.m,
                                  .logs = b.logs,
                                  .clock = clock_real(),
                                  .threads = 1,
                                  .window = {11, 1000},
                                  .max_rate = hardly_anything,
                                  .piece_bytes = 1};
    assert_int_equal(log_mover_new(&o, &m), 0);
    assert_int_equal(log_mover_start(m), 0);
    assert_int_equal(log_mover_move(m, bench_tp("t", 0), log_dir_path(other_dir(&b, p))),
                     KERR_NONE);
    assert_int_equal(log_mover_move(m, bench_tp("t", 0), log_dir_path(log_dir_of(before))),
                     KERR_NONE);
    assert_int_equal(log_mover_count(m), 0);
    assert_null(log_manager_future(b.logs, bench_tp("t", 0)));
    struct log *now = partition_log(p);
    assert_ptr_equal(now, before);
    log_unref(now);
    log_unref(before);
    log_mover_free(m);
    partition_unref(p);
    bench_close(&b);
}

/* Asked for another dir again and again while the threads work: the last wish holds. */
static void the_last_wish_holds(void **state)
{
    struct bench b;
    struct log_dir *dirs[2];
    struct partition *p = leader_of_two_dirs(&b);
    struct log_mover *m = mover(&b);
    assert_int_equal(log_manager_dirs(b.logs, dirs, 2), 2);
    for (int i = 0; i < 20; i++)
        bench_append(&b, p, 1, 1, NULL);
    for (int i = 0; i < 200; i++)
        assert_int_equal(log_mover_move(m, bench_tp("t", 0), log_dir_path(dirs[i % 2])), KERR_NONE);
    wait_until_moved(m);
    struct log *now = partition_log(p);
    assert_ptr_equal(log_dir_of(now), dirs[1]);
    assert_int_equal(log_end_offset(now), 20);
    assert_null(log_manager_future(b.logs, bench_tp("t", 0)));
    log_unref(now);
    log_mover_free(m);
    partition_unref(p);
    bench_close(&b);
}

struct wishes {
    struct bench *b;
    struct log_mover *m;
    int n;
    atomic_bool stop;
};

static void *wish(void *arg)
{
    struct wishes *w = arg;
    struct log_dir *dirs[2];
    log_manager_dirs(w->b->logs, dirs, 2);
    for (int i = 0; i < w->n && !atomic_load(&w->stop); i++)
        log_mover_move(w->m, bench_tp("t", 0), log_dir_path(dirs[i % 2]));
    return NULL;
}

/* Several clients ask at once, for this and that: whatever comes of it, the log is whole. */
static void wishes_may_come_at_once(void **state)
{
    struct bench b;
    pthread_t t[4];
    struct partition *p = leader_of_two_dirs(&b);
    struct log_mover *m = mover(&b);
    struct wishes w = {.b = &b, .m = m, .n = 100};
    for (int i = 0; i < 20; i++)
        bench_append(&b, p, 1, 1, NULL);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, wish, &w), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    wait_until_moved(m);
    assert_false(log_dir_offline(other_dir(&b, p)));
    struct log *now = partition_log(p);
    assert_false(log_offline(now));
    assert_int_equal(log_end_offset(now), 20);
    assert_null(log_manager_future(b.logs, bench_tp("t", 0)));
    log_unref(now);
    log_mover_free(m);
    partition_unref(p);
    bench_close(&b);
}

static void flush_told(struct partition_flush *f)
{
}

/* A flush that finds the log gone to the other dir flushes there: no producer is told an error. */
static void flushes_follow_a_log_that_moves(void **state)
{
    struct bench b;
    pthread_t t;
    struct partition *p = leader_of_two_dirs(&b);
    struct log_mover *m = mover(&b);
    struct wishes w = {.b = &b, .m = m, .n = INT_MAX};
    assert_int_equal(pthread_create(&t, NULL, wish, &w), 0);
    for (int i = 1; i <= 300; i++) {
        struct partition_flush f = {
            .done = flush_told, .done_on = sim_executor_ex(b.sim), .up_to = i};
        assert_int_equal(bench_append(&b, p, 1, 1, NULL), KERR_NONE);
        partition_flush(p, b.workers, &f);
        sim_executor_drain(b.sim);
        assert_int_equal(f.error, KERR_NONE);
    }
    atomic_store(&w.stop, true);
    pthread_join(t, NULL);
    wait_until_moved(m);
    struct log *now = partition_log(p);
    assert_int_equal(log_end_offset(now), 300);
    log_unref(now);
    log_mover_free(m);
    partition_unref(p);
    bench_close(&b);
}

static int count_logs(void *arg, const char *name)
{
    *(int *)arg += strncmp(name, "t-0", 3) == 0 && !strstr(name, "-delete");
    return 0;
}

/* The log's dir fails in the middle of a move: the copy may be all that is left. The other way
 * round the log stays. */
static void the_side_that_does_not_fail_is_kept(void **state)
{
    for (int source = 0; source < 2; source++) {
        struct bench b;
        struct partition *p = leader_of_two_dirs(&b);
        for (int i = 0; i < 20; i++)
            bench_append(&b, p, 1, 1, NULL);
        make_future(&b, p);
        assert_int_equal(piece(&b, p, 1), COPY_MORE);
        struct log *from = partition_log(p), *to = log_manager_future(b.logs, bench_tp("t", 0));
        log_dir_fail(log_dir_of(source ? from : to), -EIO, "test");
        sim_executor_drain(b.sim);
        struct log_mover *m = mover(&b);
        wait_until_moved(m);
        struct log *left = log_manager_future(b.logs, bench_tp("t", 0));
        assert_int_equal(left != NULL, source);
        log_unref(left);
        int n = 0;
        const char *kept = log_dir_path(log_dir_of(source ? to : from));
        assert_int_equal(fs_list(fs_posix(), kept, count_logs, &n), 0);
        assert_int_equal(n, 1);
        log_unref(from);
        log_unref(to);
        log_mover_free(m);
        partition_unref(p);
        bench_close(&b);
    }
}

static double rate_of(void *arg)
{
    return atomic_load((atomic_bool *)arg) ? INFINITY : 0.001;
}

/* A limit that is lifted holds nobody any more. */
static void a_limit_may_be_lifted(void **state)
{
    struct bench b;
    struct log_mover *m;
    atomic_bool lifted = false;
    struct partition *p = leader_of_two_dirs(&b);
    for (int i = 0; i < 20; i++)
        bench_append(&b, p, 1, 1, NULL);
    struct log_mover_options o = {.replicas = b.m,
                                  .logs = b.logs,
                                  .clock = clock_real(),
                                  .threads = 1,
                                  .window = {11, 100000},
                                  .max_rate = rate_of,
                                  .arg = &lifted,
                                  .piece_bytes = 1};
    assert_int_equal(log_mover_new(&o, &m), 0);
    assert_int_equal(log_mover_start(m), 0);
    assert_int_equal(log_mover_move(m, bench_tp("t", 0), log_dir_path(other_dir(&b, p))),
                     KERR_NONE);
    struct log *to = log_manager_future(b.logs, bench_tp("t", 0));
    struct timespec t = {0, 1000000};
    for (int i = 0; log_end_offset(to) == 0; i++) {
        assert_true(i < 30000);
        nanosleep(&t, NULL);
    }
    assert_int_equal(log_mover_count(m), 1);
    atomic_store(&lifted, true);
    wait_until_moved(m);
    assert_false(log_is_future(to));
    log_unref(to);
    log_mover_free(m);
    partition_unref(p);
    bench_close(&b);
}

UNIT_MAIN(unit_test(a_log_moves_and_stays_the_same), unit_test(what_comes_meanwhile_comes_along),
          unit_test(a_log_that_was_cut_takes_the_copy_along),
          unit_test(a_start_that_moves_is_followed),
          unit_test(a_start_that_moves_in_the_swap_is_waited_for), unit_test(an_empty_log_moves),
          unit_test(epochs_without_records_are_kept),
          unit_test(deleting_the_partition_deletes_the_copy), unit_test(asked_to_move_it_moves),
          unit_test(moves_that_cannot_be_are_refused), unit_test(a_move_can_be_given_up),
          unit_test(the_last_wish_holds), unit_test(a_start_within_a_batch_is_followed),
          unit_test(a_log_that_moved_is_synced), unit_test(wishes_may_come_at_once),
          unit_test(flushes_follow_a_log_that_moves),
          unit_test(the_side_that_does_not_fail_is_kept), unit_test(a_limit_may_be_lifted))
