/* Moving a log to another dir: the copy, cuts, growth meanwhile, the swap, giving up, going on. */
#include "bench.h"

#include <math.h>

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

UNIT_MAIN(unit_test(a_log_moves_and_stays_the_same), unit_test(what_comes_meanwhile_comes_along),
          unit_test(a_log_that_was_cut_takes_the_copy_along),
          unit_test(a_start_that_moves_is_followed), unit_test(an_empty_log_moves),
          unit_test(epochs_without_records_are_kept),
          unit_test(deleting_the_partition_deletes_the_copy), unit_test(asked_to_move_it_moves),
          unit_test(moves_that_cannot_be_are_refused), unit_test(a_move_can_be_given_up),
          unit_test(the_last_wish_holds))
