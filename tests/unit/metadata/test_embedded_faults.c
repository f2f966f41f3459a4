/* The embedded store on a disk that fails, or loses power, at every single call: what was answered
 * is there afterwards, what is there is a state that was, and the start is never refused.
 *
 * Each change is a multi that counts one up and keeps the last three numbers as nodes, so a state
 * that never was shows at once. */
#include <sys/stat.h>

#include "base/fs_fault.h"
#include "base/logline.h"
#include "base/sim_executor.h"
#include "metadata/store_batch.h"

#include "metadata/store_test.h"

enum { CHANGES = 12, KEPT = 3, SNAPSHOT_BYTES = 400 };

struct disk {
    char dir[64];
    struct fs_fault *fault;
    struct sim_clock clock;
    struct sim_executor *e;
    int failed; /* how often the store said so */
    int acked;  /* changes answered with success */
    int tried;
};

static char why[256];

static int disk_make(void **state)
{
    static struct disk d;
    memset(&d, 0, sizeof(d));
    logline_set_level(LOGLINE_FATAL + 1);
    sim_clock_init(&d.clock, 1700000000000);
    d.e = sim_executor_new(&d.clock);
    d.fault = fs_fault_new(fs_posix());
    *state = &d;
    return 0;
}

static int disk_remove(void **state)
{
    struct disk *d = *state;
    sim_executor_free(d->e);
    fs_fault_free(d->fault);
    return 0;
}

static void new_dir(struct disk *d)
{
    new_test_dir(d->dir);
    d->acked = d->tried = d->failed = 0;
}

static void drop_dir(struct disk *d)
{
    assert_int_equal(fs_remove_tree(fs_posix(), d->dir), 0);
}

static void on_failed(void *arg, int error)
{
    struct disk *d = arg;
    d->failed++;
    assert_true(error < 0);
}

static int open_at(struct disk *d, struct store **s)
{
    struct embedded_options o = {.fs = fs_fault_fs(d->fault),
                                 .clock = &d->clock.clock,
                                 .dir = d->dir,
                                 .snapshot_bytes = SNAPSHOT_BYTES,
                                 .run_on = sim_executor_ex(d->e),
                                 .failed = on_failed,
                                 .arg = d};
    return embedded_store_open(&o, s, why, sizeof(why));
}

static void close_it(struct disk *d, struct store *s)
{
    store_close(s);
    sim_executor_drain(d->e);
}

struct change {
    char counter[16], made[24], gone[24];
};

/* The i-th change, counted from 1, added to a batch. */
static struct store_request *add_change(struct store_batch *b, struct change *c, int i)
{
    snprintf(c->counter, sizeof(c->counter), "%d", i);
    snprintf(c->made, sizeof(c->made), "/k/%d", i);
    snprintf(c->gone, sizeof(c->gone), "/k/%d", i - KEPT);
    struct store_op ops[] = {store_op_set("/k", text(c->counter), STORE_ANY_VERSION),
                             store_op_create(c->made, text(c->counter), 0),
                             store_op_delete(c->gone, STORE_ANY_VERSION)};
    return store_batch_add_multi(b, ops, i > KEPT ? 3 : 2);
}

/* Changes first..first+n-1 in one batch, i.e. one group of the journal. */
static void make_changes(struct disk *d, struct store *s, int first, int n)
{
    struct arena a;
    struct store_batch b;
    struct change c[8];
    bool failed = false;
    arena_init(&a, 0);
    store_batch_init(&b, &a);
    for (int i = 0; i < n; i++)
        add_change(&b, &c[i], first + i);
    d->tried += n;
    assert_int_equal(store_batch_run(&b, s), 0);
    store_batch_each (r, &b) {
        assert_true(r->status == 0 || r->status == -EIO);
        assert_true(!failed || r->status == -EIO); /* for ever */
        failed |= r->status != 0;
        d->acked += r->status == 0;
    }
    store_batch_clear(&b);
    arena_free(&a);
}

/* Groups of 1, 2, 3, 1, 2, 3 changes. */
static void work(struct disk *d, struct store *s)
{
    int size = 1;
    if (create(s, "/k", "0", 0) && d->failed == 0)
        fail_msg("neither made nor failed");
    for (int i = 1; i <= CHANGES; i += size, size = size % 3 + 1) {
        make_changes(d, s, i, size);
        if (d->tried > d->acked) {
            struct store_stat st;
            assert_int_equal(d->failed, 1);
            assert_int_equal(stat_of(s, "/", &st), -EIO); /* nobody sees what may be lost */
            return;
        }
    }
}

/* The store as it is now: after how many changes? */
static int count_changes(struct store *s)
{
    struct bytes data;
    struct store_op list = store_op_children("/k", false);
    char path[24];
    if (store_get(s, "/k", &data, NULL) == -ENOENT)
        return 0;
    int n = atoi((const char *)data.p);
    free((void *)data.p);
    assert_int_equal(run_op(s, &list), 0);
    assert_int_equal(list.names_n, n < KEPT ? n : KEPT);
    free(list.names);
    for (int i = n; i > 0 && i > n - KEPT; i--) {
        snprintf(path, sizeof(path), "/k/%d", i);
        struct store_stat st;
        assert_int_equal(stat_of(s, path, &st), 0);
    }
    return n;
}

/* Opens on a good disk: never refused, all that was answered is there, and it can go on. */
static void check_after(struct disk *d)
{
    struct store *s;
    fs_fault_clear(d->fault);
    if (open_at(d, &s))
        fail_msg("refused: %s", why);
    int n = count_changes(s);
    assert_in_range(n, d->acked, d->tried);
    assert_int_equal(create(s, "/after", "x", 0), 0);
    close_it(d, s);
    assert_int_equal(open_at(d, &s), 0);
    assert_true(holds(s, "/after", "x"));
    assert_int_equal(count_changes(s), n);
    close_it(d, s);
}

/* Opens and works with `fault` armed for the n-th call. false: it was never reached. */
static bool run_with(struct disk *d, uint64_t n, int error)
{
    struct store *s;
    uint64_t before = fs_fault_total(d->fault);
    if (error)
        fs_fault_fail_at(d->fault, n, error);
    else
        fs_fault_power_off_at(d->fault, n);
    int err = open_at(d, &s);
    if (err) {
        assert_int_not_equal(err, -EBADMSG);
        assert_null(s);
    } else {
        work(d, s);
        close_it(d, s);
    }
    return fs_fault_total(d->fault) - before >= n;
}

static void every_call_that_fails_ends_the_store_and_loses_nothing(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EMFILE};
    struct disk *d = *state;
    for (int e = 0; e < 3; e++)
        for (uint64_t n = 1, more = 1; more; n++) {
            new_dir(d);
            more = run_with(d, n, errors[e]);
            check_after(d);
            drop_dir(d);
            assert_true(n < 1000);
        }
}

/* The same on a store that has a history: journal and snapshot are there. */
static void every_call_that_fails_with_a_history(void **state)
{
    struct disk *d = *state;
    for (uint64_t n = 1, more = 1; more; n++) {
        struct store *s;
        new_dir(d);
        assert_int_equal(open_at(d, &s), 0);
        for (int i = 0; i < 20; i++)
            assert_int_equal(set(s, "/", "some history", -1), 0);
        close_it(d, s);
        more = run_with(d, n, EIO);
        check_after(d);
        drop_dir(d);
    }
}

static void power_is_cut(struct disk *d, enum fs_crash how, int seeds)
{
    for (int seed = 0; seed < seeds; seed++)
        for (uint64_t n = 1, more = 1; more; n++) {
            new_dir(d);
            more = run_with(d, n, 0);
            assert_int_equal(fs_fault_crash(d->fault, d->dir, how, (uint64_t)seed), 0);
            check_after(d);
            drop_dir(d);
            assert_true(n < 1000);
        }
}

static void power_cut_at_every_call_drops_what_is_not_synced(void **state)
{
    power_is_cut(*state, FS_CRASH_DROP, 1);
}

static void power_cut_at_every_call_tears_what_is_not_synced(void **state)
{
    power_is_cut(*state, FS_CRASH_TEAR, 6);
}

/* Cut twice: the second time while the first is being recovered from. */
static void power_cut_during_recovery(void **state)
{
    struct disk *d = *state;
    for (uint64_t first = 20; first < 60; first += 7)
        for (uint64_t n = 1, more = 1; more && n < 200; n++) {
            struct store *s;
            new_dir(d);
            run_with(d, first, 0);
            assert_int_equal(fs_fault_crash(d->fault, d->dir, FS_CRASH_TEAR, first), 0);
            uint64_t before = fs_fault_total(d->fault);
            fs_fault_power_off_at(d->fault, n);
            int err = open_at(d, &s);
            assert_int_not_equal(err, -EBADMSG);
            if (!err)
                close_it(d, s);
            more = fs_fault_total(d->fault) - before >= n;
            assert_int_equal(fs_fault_crash(d->fault, d->dir, FS_CRASH_TEAR, n), 0);
            check_after(d);
            drop_dir(d);
        }
}

/* Clients may take all descriptors; that must not be the end of the broker. The snapshot is made
 * when there are some again. */
static void a_snapshot_without_descriptors_is_made_later(void **state)
{
    static const struct fs_fault_rule lacks[] = {
        {.call = FS_OPEN, .path = "*kafkad-metadata.snapshot*", .times = -1, .error = EMFILE},
        {.call = FS_SYNC_DIR, .times = -1, .error = ENFILE}};
    struct disk *d = *state;
    for (int i = 0; i < 2; i++) {
        struct store *s;
        char path[128];
        struct file_stat st;
        new_dir(d);
        snprintf(path, sizeof(path), "%s/kafkad-metadata.journal", d->dir);
        assert_int_equal(open_at(d, &s), 0);
        fs_fault_add(d->fault, lacks[i]);
        work(d, s);
        assert_int_equal(d->failed, 0);
        assert_int_equal(d->acked, CHANGES);
        fs_fault_clear(d->fault);
        assert_int_equal(fs_stat(fs_posix(), path, &st), 0);
        assert_true(st.size > SNAPSHOT_BYTES);
        for (int k = 0; k < 40; k++)
            assert_int_equal(set(s, "/", "some history", -1), 0);
        assert_int_equal(fs_stat(fs_posix(), path, &st), 0);
        assert_true(st.size < 4 * SNAPSHOT_BYTES); /* begun anew */
        close_it(d, s);
        check_after(d);
        drop_dir(d);
    }
}

static void a_short_write_is_completed(void **state)
{
    struct disk *d = *state;
    struct store *s;
    new_dir(d);
    fs_fault_add(d->fault, (struct fs_fault_rule){.call = FS_PWRITEV,
                                                  .path = "*kafkad-metadata.journal",
                                                  .times = -1,
                                                  .write_bytes = 5});
    assert_int_equal(open_at(d, &s), 0);
    work(d, s);
    assert_int_equal(d->failed, 0);
    assert_int_equal(d->acked, CHANGES);
    close_it(d, s);
    check_after(d);
    drop_dir(d);
}

/* With the thread: a failed fsync while many wait. */
static void a_failed_sync_is_told_to_all_that_wait_for_it(void **state)
{
    struct disk *d = *state;
    struct store *s;
    struct arena a;
    struct store_batch b;
    struct change c[8];
    new_dir(d);
    struct embedded_options o = {.fs = fs_fault_fs(d->fault),
                                 .clock = &d->clock.clock,
                                 .dir = d->dir,
                                 .failed = on_failed,
                                 .arg = d};
    assert_int_equal(embedded_store_open(&o, &s, why, sizeof(why)), 0);
    assert_int_equal(create(s, "/k", "0", 0), 0);
    fs_fault_add(d->fault, (struct fs_fault_rule){
                               .call = FS_SYNC, .times = 1, .error = EIO}); /* once is for ever */
    arena_init(&a, 0);
    store_batch_init(&b, &a);
    for (int i = 1; i <= 8; i++)
        add_change(&b, &c[i - 1], i);
    assert_int_equal(store_batch_run(&b, s), 0);
    store_batch_each (r, &b)
        assert_int_equal(r->status, -EIO);
    store_batch_clear(&b);
    arena_free(&a);
    assert_int_equal(set(s, "/k", "x", -1), -EIO);
    store_close(s);
    assert_int_equal(d->failed, 1);
    d->tried = 8;
    check_after(d);
    drop_dir(d);
}

#define disk_test(f) cmocka_unit_test_setup_teardown(f, disk_make, disk_remove)

UNIT_MAIN(disk_test(every_call_that_fails_ends_the_store_and_loses_nothing),
          disk_test(every_call_that_fails_with_a_history),
          disk_test(power_cut_at_every_call_drops_what_is_not_synced),
          disk_test(power_cut_at_every_call_tears_what_is_not_synced),
          disk_test(power_cut_during_recovery),
          disk_test(a_snapshot_without_descriptors_is_made_later),
          disk_test(a_short_write_is_completed),
          disk_test(a_failed_sync_is_told_to_all_that_wait_for_it))
