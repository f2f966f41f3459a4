/* The embedded store on disk: what is answered is there after a restart; torn ends go, damage in
 * the middle is refused, snapshots and journals fit together. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/logline.h"
#include "metadata/journal_format.h"

#include "metadata/store_test.h"

struct disk {
    char dir[64], journal[128], snapshot[128], copy[128];
};

static int disk_make(void **state)
{
    static struct disk d;
    logline_set_level(LOGLINE_ERROR);
    new_test_dir(d.dir);
    snprintf(d.journal, sizeof(d.journal), "%s/kafkad-metadata.journal", d.dir);
    snprintf(d.snapshot, sizeof(d.snapshot), "%s/kafkad-metadata.snapshot", d.dir);
    snprintf(d.copy, sizeof(d.copy), "%s/copy", d.dir);
    *state = &d;
    return 0;
}

static int disk_remove(void **state)
{
    struct disk *d = *state;
    return fs_remove_tree(fs_posix(), d->dir);
}

static char why[256];

/* Each look finds it later: what memory and disk must agree on is looked up once. */
static int64_t later_wall_ms(const struct clock *c)
{
    static atomic_int_fast64_t looks;
    return clock_wall_ms(clock_real()) + 10 * atomic_fetch_add(&looks, 1);
}

static int64_t real_mono_ns(const struct clock *c)
{
    return clock_mono_ns(clock_real());
}

static const struct clock ticking = {later_wall_ms, real_mono_ns};

static int open_at(struct disk *d, int64_t snapshot_bytes, struct store **s)
{
    struct embedded_options o = {
        .clock = &ticking, .dir = d->dir, .snapshot_bytes = snapshot_bytes};
    why[0] = 0;
    return embedded_store_open(&o, s, why, sizeof(why));
}

static struct store *open_ok(struct disk *d)
{
    struct store *s;
    if (open_at(d, 0, &s))
        fail_msg("%s", why);
    return s;
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? -1 : st.st_size;
}

static void copy_file(const char *from, const char *to)
{
    char *p;
    size_t n;
    assert_int_equal(fs_read_all(fs_posix(), from, 1 << 30, &p, &n), 0);
    assert_int_equal(fs_replace(fs_posix(), to, p, n), 0);
    free(p);
}

static void flip_byte(const char *path, int64_t at)
{
    int fd = open(path, O_RDWR);
    uint8_t b;
    assert_int_equal(pread(fd, &b, 1, at), 1);
    b ^= 0x40;
    assert_int_equal(pwrite(fd, &b, 1, at), 1);
    close(fd);
}

static void nodes_survive_a_restart_but_for_ephemeral_ones(void **state)
{
    struct store *s = open_ok(*state);
    struct store_stat before, after, st;
    create(s, "/a", "1", 0);
    create(s, "/a/seq_", "s", STORE_SEQUENTIAL);
    create(s, "/a/e", "e", STORE_EPHEMERAL);
    set(s, "/a", "2", 0);
    set(s, "/a", NULL, 1);
    create(s, "/gone", "x", 0);
    del(s, "/gone", -1);
    stat_of(s, "/a", &before);
    int64_t last = 0;
    assert_int_equal(create(s, "/last", NULL, STORE_EPHEMERAL), 0);
    stat_of(s, "/last", &st);
    last = st.czxid;
    int64_t session = store_session_id(s);
    store_close(s);

    s = open_ok(*state);
    assert_int_equal(stat_of(s, "/a", &after), 0);
    before.children_n--; /* the ephemeral one */
    assert_memory_equal(&before, &after, sizeof(before));
    assert_true(holds(s, "/a", NULL));
    assert_true(holds(s, "/a/seq_0000000000", "s"));
    assert_int_equal(stat_of(s, "/gone", &st), -ENOENT);
    assert_int_equal(stat_of(s, "/a/e", &st), -ENOENT);
    create(s, "/again", NULL, STORE_EPHEMERAL);
    stat_of(s, "/again", &st);
    assert_true(st.czxid > last); /* a broker epoch is never seen twice */
    assert_int_not_equal(store_session_id(s), session);
    store_close(s);
}

static void a_multi_of_ephemeral_and_lasting_nodes_keeps_the_latter(void **state)
{
    struct store *s = open_ok(*state);
    struct store_stat st;
    create(s, "/epoch", "0", 0);
    struct store_op ops[] = {store_op_create("/controller", text("c"), STORE_EPHEMERAL),
                             store_op_set("/epoch", text("1"), 0)};
    struct store_request r = {.ops = ops, .ops_n = 2, .multi = true};
    assert_int_equal(store_run(s, &r), 0);
    store_close(s);
    s = open_ok(*state);
    assert_true(holds(s, "/epoch", "1"));
    assert_int_equal(stat_of(s, "/epoch", &st), 0);
    assert_int_equal(st.version, 1);
    assert_int_equal(stat_of(s, "/controller", &st), -ENOENT);
    store_close(s);
}

/* Cut at every length: each state is one that was, and all whole records are in it. */
static void a_torn_end_is_dropped_wherever_it_is_torn(void **state)
{
    struct disk *d = *state;
    struct store *s = open_ok(d);
    enum { NODES = 5 };
    int64_t ends[NODES];
    char path[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(path, sizeof(path), "/n%d", i);
        create(s, path, "data", 0);
        ends[i] = size_of(d->journal);
    }
    store_close(s);
    copy_file(d->journal, d->copy);
    for (int64_t cut = ends[0]; cut <= ends[NODES - 1]; cut++) {
        copy_file(d->copy, d->journal);
        assert_int_equal(truncate(d->journal, cut), 0);
        s = open_ok(d);
        for (int i = 0; i < NODES; i++) {
            struct store_stat st;
            snprintf(path, sizeof(path), "/n%d", i);
            assert_int_equal(stat_of(s, path, &st), ends[i] <= cut ? 0 : -ENOENT);
        }
        assert_int_equal(create(s, "/after", "x", 0), 0); /* and it can go on */
        store_close(s);
        s = open_ok(d);
        assert_true(holds(s, "/after", "x"));
        store_close(s);
    }
}

static void garbage_behind_the_end_is_dropped(void **state)
{
    struct disk *d = *state;
    struct store *s = open_ok(d);
    create(s, "/a", "1", 0);
    store_close(s);
    int fd = open(d->journal, O_WRONLY | O_APPEND);
    static const char zeros[5000], junk[] = "\0\0\0\x20garbage";
    assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
    assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
    close(fd);
    s = open_ok(d);
    assert_true(holds(s, "/a", "1"));
    assert_true(size_of(d->journal) < 5000); /* cut off, lest a later record ends in front of it */
    store_close(s);
}

static void damage_in_front_of_good_records_is_refused(void **state)
{
    struct disk *d = *state;
    struct store *s = open_ok(d);
    create(s, "/a", "1", 0);
    int64_t end = size_of(d->journal);
    create(s, "/b", "2", 0);
    store_close(s);
    copy_file(d->journal, d->copy);
    for (int64_t at = 0; at < end; at++) {
        copy_file(d->copy, d->journal);
        flip_byte(d->journal, at);
        assert_int_equal(open_at(d, 0, &s), -EBADMSG);
        assert_null(s);
        assert_non_null(strstr(why, d->journal));
        assert_non_null(strstr(why, "position"));
    }
    copy_file(d->copy, d->journal);
    store_close(open_ok(d));
}

static void fill(struct store *s, int from, int to)
{
    char path[24];
    for (int i = from; i < to; i++) {
        snprintf(path, sizeof(path), "/p/n%05d", i);
        assert_int_equal(create(s, path, "some data", 0), 0);
    }
}

static void check_filled(struct disk *d, int n)
{
    struct store *s = open_ok(d);
    struct store_stat st;
    char path[24];
    assert_int_equal(stat_of(s, "/p", &st), 0);
    assert_int_equal(st.children_n, n);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "/p/n%05d", i);
        assert_true(holds(s, path, "some data"));
    }
    store_close(s);
}

static void snapshots_bound_the_journal_and_keep_everything(void **state)
{
    struct disk *d = *state;
    struct store *s;
    enum { N = 600 };
    assert_int_equal(open_at(d, 1000, &s), 0);
    create(s, "/p", NULL, 0);
    create(s, "/p/gone_", "x", STORE_SEQUENTIAL);
    del(s, "/p/gone_0000000000", -1);
    set(s, "/", "root", -1);
    fill(s, 0, N);
    store_close(s);
    int64_t snapshot = size_of(d->snapshot);
    assert_true(snapshot > 1000);
    assert_true(size_of(d->journal) < 2 * snapshot);
    check_filled(d, N);
    s = open_ok(d);
    struct store_op op = store_op_create("/p/q_", BYTES_NULL, STORE_SEQUENTIAL);
    assert_int_equal(run_op(s, &op), 0);
    assert_string_equal((const char *)op.result.p, "/p/q_0000000601"); /* numbers go on */
    free((void *)op.result.p);
    assert_true(holds(s, "/", "root"));
    store_close(s);
}

/* Died between the new snapshot and the new journal. */
static void a_journal_older_than_the_snapshot_is_read_over(void **state)
{
    struct disk *d = *state;
    struct store *s = open_ok(d);
    create(s, "/p", NULL, 0);
    fill(s, 0, 20);
    store_close(s);
    copy_file(d->journal, d->copy);
    assert_int_equal(open_at(d, 1, &s), 0); /* the next write makes a snapshot */
    fill(s, 20, 21);
    store_close(s);
    assert_true(size_of(d->snapshot) > 0);
    copy_file(d->copy, d->journal);
    check_filled(d, 21);
}

static void a_snapshot_and_a_journal_that_do_not_fit_are_refused(void **state)
{
    struct disk *d = *state;
    struct store *s;
    assert_int_equal(open_at(d, 1, &s), 0);
    create(s, "/p", NULL, 0);
    fill(s, 0, 3);
    store_close(s);
    copy_file(d->snapshot, d->copy);
    for (int64_t at = 0; at < size_of(d->snapshot); at += 7) {
        copy_file(d->copy, d->snapshot);
        flip_byte(d->snapshot, at);
        assert_int_equal(open_at(d, 0, &s), -EBADMSG);
        assert_non_null(strstr(why, d->snapshot));
    }
    assert_int_equal(unlink(d->snapshot), 0);
    assert_int_equal(open_at(d, 0, &s), -EBADMSG);
    assert_non_null(strstr(why, "snapshot is missing"));
    copy_file(d->copy, d->snapshot);
    assert_int_equal(unlink(d->journal), 0);
    assert_int_equal(open_at(d, 0, &s), -EBADMSG);
    assert_non_null(strstr(why, d->journal));
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
    struct disk *d = *state;
    struct store *s;
    struct embedded_options o = {.clock = clock_real(), .dir = d->copy};
    assert_int_equal(embedded_store_open(&o, &s, why, sizeof(why)), -ENOENT);
    assert_null(s);
    assert_non_null(strstr(why, d->copy));
}

/* A record with a good checksum that cannot be applied is no torn end. */
static void a_record_that_does_not_fit_is_refused(void **state)
{
    static const struct {
        int type;
        const char *path;
    } bad[] = {{STORE_SET, "/nil"},    {STORE_DELETE, "/nil"}, {STORE_CREATE, "/a"},
               {STORE_CREATE, "/x/y"}, {STORE_CREATE, "x"},    {STORE_GET, "/a"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct buf file = BUF_INIT, txns = BUF_INIT;
        uint8_t head[JOURNAL_FRAME_BYTES];
        struct tree t;
        int64_t zxid = 0;
        size_t good;
        journal_put_header(&file, 0);
        size_t at = journal_put_txn(&txns, 5, 1000);
        journal_put_op(&txns, at, STORE_CREATE, "/a", text("x"));
        at = journal_put_txn(&txns, 6, 1000);
        journal_put_op(&txns, at, (enum store_op_type)bad[i].type, bad[i].path, BYTES_NULL);
        journal_frame_head(&txns, head);
        buf_put(&file, head, sizeof(head));
        buf_put(&file, txns.p, txns.len);
        assert_int_equal(tree_init(&t), 0);
        assert_int_equal(journal_decode(file.p, file.len, &t, &zxid, &good, why, sizeof(why)),
                         -EBADMSG);
        assert_non_null(strstr(why, "position 20"));
        tree_free(&t);
        buf_free(&file);
        buf_free(&txns);
    }
}

#define disk_test(f) cmocka_unit_test_setup_teardown(f, disk_make, disk_remove)

UNIT_MAIN(disk_test(nodes_survive_a_restart_but_for_ephemeral_ones),
          disk_test(a_multi_of_ephemeral_and_lasting_nodes_keeps_the_latter),
          disk_test(a_torn_end_is_dropped_wherever_it_is_torn),
          disk_test(garbage_behind_the_end_is_dropped),
          disk_test(damage_in_front_of_good_records_is_refused),
          disk_test(snapshots_bound_the_journal_and_keep_everything),
          disk_test(a_journal_older_than_the_snapshot_is_read_over),
          disk_test(a_snapshot_and_a_journal_that_do_not_fit_are_refused),
          disk_test(a_folder_that_is_not_there_is_an_error),
          unit_test(a_record_that_does_not_fit_is_refused))
