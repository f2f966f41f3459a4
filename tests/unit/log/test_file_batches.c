/* Walking the entries of a file through a small window. */
#include "log/file_batches.h"

#include "base/checksum.h"
#include "log_util.h"

/* A file of batches with values of these sizes; returns its handle and ends. */
static struct file *make(struct log_test *t, const int *sizes, int n, int64_t *ends)
{
    struct file *f;
    struct buf all = BUF_INIT;
    for (int i = 0; i < n; i++) {
        struct records r = records_of(1);
        r.value_n = (size_t)sizes[i];
        r.first_offset = i;
        struct buf b = build(&r);
        buf_put(&all, b.p, b.len);
        buf_free(&b);
        ends[i] = (int64_t)all.len;
    }
    assert_int_equal(
        fs_open(t->fs, temp_dir_path(&t->tmp, "data/f"), O_RDWR | O_CREAT | O_TRUNC, &f), 0);
    assert_int_equal(file_pwrite_all(f, all.p, all.len, 0), 0);
    buf_free(&all);
    return f;
}

static void any_window_sees_the_same(void **state)
{
    static const int sizes[] = {0, 10, 5000, 1, 300, 70000, 2, 2, 2, 4095, 0};
    enum { N = sizeof(sizes) / sizeof(sizes[0]) };
    int64_t ends[N];
    struct log_test t;
    setup(&t);
    struct file *f = make(&t, sizes, N, ends);
    for (size_t window_n = FILE_BATCHES_WINDOW_MIN; window_n < 100000;
         window_n = window_n * 3 + 1) {
        uint8_t *window = malloc(window_n);
        for (int crc = 0; crc < 2; crc++) {
            struct file_batches w;
            struct batch b;
            int64_t pos;
            int i = 0;
            file_batches_init(&w, f, 0, ends[N - 1], window, window_n);
            while (file_batches_next(&w, &b, &pos) == BATCH_OK) {
                assert_int_equal(b.base_offset, i);
                assert_int_equal(pos, i ? ends[i - 1] : 0);
                assert_int_equal(pos + b.size, ends[i]);
                if (crc)
                    assert_int_equal(file_batches_crc_ok(&w, &b, pos), 1);
                i++;
            }
            assert_int_equal(i, N);
            assert_int_equal(w.error, 0);
        }
        free(window);
    }
    file_unref(f);
    teardown(&t);
}

static void small_entries_cost_few_reads(void **state)
{
    int sizes[500] = {0};
    int64_t ends[500];
    uint8_t window[4096];
    struct log_test t;
    struct file_batches w;
    struct batch b;
    int64_t pos;
    setup(&t);
    struct file *f = make(&t, sizes, 500, ends);
    uint64_t before = fs_fault_count(t.fault, FS_PREAD);
    file_batches_init(&w, f, 0, ends[499], window, sizeof(window));
    while (file_batches_next(&w, &b, &pos) == BATCH_OK)
        assert_int_equal(file_batches_crc_ok(&w, &b, pos), 1);
    uint64_t reads = fs_fault_count(t.fault, FS_PREAD) - before;
    assert_true(reads <= (uint64_t)ends[499] / 2000);
    file_unref(f);
    teardown(&t);
}

static void a_wrong_checksum_is_seen_in_pieces(void **state)
{
    static const int sizes[] = {10, 9000, 10};
    int64_t ends[3];
    uint8_t window[FILE_BATCHES_WINDOW_MIN];
    struct log_test t;
    setup(&t);
    struct file *f = make(&t, sizes, 3, ends);
    for (int64_t at = ends[0] + 21; at < ends[1]; at += 97) {
        struct file_batches w;
        struct batch b;
        int64_t pos;
        uint8_t byte;
        assert_int_equal(file_pread(f, &byte, 1, at), 1);
        byte ^= 1;
        assert_int_equal(file_pwrite_all(f, &byte, 1, at), 0);
        file_batches_init(&w, f, 0, ends[2], window, sizeof(window));
        for (int i = 0; i < 3; i++) {
            assert_int_equal(file_batches_next(&w, &b, &pos), BATCH_OK);
            assert_int_equal(file_batches_crc_ok(&w, &b, pos), i != 1);
        }
        byte ^= 1;
        assert_int_equal(file_pwrite_all(f, &byte, 1, at), 0);
    }
    file_unref(f);
    teardown(&t);
}

static void a_partial_end_ends_the_walk(void **state)
{
    static const int sizes[] = {10, 500};
    int64_t ends[2];
    uint8_t window[FILE_BATCHES_WINDOW_MIN];
    struct log_test t;
    setup(&t);
    struct file *f = make(&t, sizes, 2, ends);
    for (int64_t end = 0; end <= ends[1]; end++) {
        struct file_batches w;
        struct batch b;
        int64_t pos;
        int n = 0;
        file_batches_init(&w, f, 0, end, window, sizeof(window));
        enum batch_walk last;
        while ((last = file_batches_next(&w, &b, &pos)) == BATCH_OK)
            n++;
        assert_int_equal(last, BATCH_END);
        assert_int_equal(n, (end >= ends[0]) + (end >= ends[1]));
    }
    file_unref(f);
    teardown(&t);
}

static void a_read_error_is_kept(void **state)
{
    static const int sizes[] = {10, 5000, 10};
    int64_t ends[3];
    uint8_t window[FILE_BATCHES_WINDOW_MIN];
    struct log_test t;
    struct file_batches w;
    struct batch b;
    int64_t pos;
    setup(&t);
    struct file *f = make(&t, sizes, 3, ends);
    file_batches_init(&w, f, 0, ends[2], window, sizeof(window));
    assert_int_equal(file_batches_next(&w, &b, &pos), BATCH_OK);
    assert_int_equal(file_batches_next(&w, &b, &pos), BATCH_OK);
    fs_fault_add(t.fault, (struct fs_fault_rule){.call = FS_PREAD, .times = 1, .error = EIO});
    assert_int_equal(file_batches_crc_ok(&w, &b, pos), -EIO);
    assert_int_equal(file_batches_next(&w, &b, &pos), BATCH_END);
    assert_int_equal(w.error, -EIO);
    file_unref(f);
    teardown(&t);
}

static void a_whole_entry_loads(void **state)
{
    static const int sizes[] = {10, 5000, 10};
    int64_t ends[3];
    uint8_t window[FILE_BATCHES_WINDOW_MIN];
    struct log_test t;
    struct file_batches w;
    struct batch b;
    struct buf bytes = BUF_INIT;
    int64_t pos;
    setup(&t);
    struct file *f = make(&t, sizes, 3, ends);
    file_batches_init(&w, f, 0, ends[2], window, sizeof(window));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(file_batches_next(&w, &b, &pos), BATCH_OK);
        assert_int_equal(file_batch_load(f, pos, &b, &bytes), 0);
        assert_true(batch_crc_ok(&b));
    }
    assert_int_equal(file_truncate(f, ends[2] - 1), 0);
    assert_int_equal(file_batch_load(f, pos, &b, &bytes), -EBADMSG);
    buf_free(&bytes);
    file_unref(f);
    teardown(&t);
}

/* Old message sets: each message is an entry, and has the other checksum. */
static void old_messages_are_walked(void **state)
{
    static const uint8_t v1[] = {0,    0,    0,    0,    0,    0,    0,    0x2a, 0,    0,    0,
                                 0x1e, 0x6a, 0xd0, 0x5d, 0xb8, 1,    0,    0,    0,    1,    0x8b,
                                 0xcf, 0xe5, 0x68, 0,    0,    0,    0,    3,    0x6b, 0x65, 0x79,
                                 0,    0,    0,    5,    0x76, 0x61, 0x6c, 0x75, 0x65};
    static const uint8_t v0[] = {0,    0,    0,    0,    0,    0,    0,    0x2b, 0,    0,
                                 0,    0x11, 0x43, 0xdc, 0x3f, 0xaf, 0,    0,    0xff, 0xff,
                                 0xff, 0xff, 0,    0,    0,    3,    0x61, 0x62, 0x63};
    uint8_t window[FILE_BATCHES_WINDOW_MIN];
    struct log_test t;
    struct file_batches w;
    struct batch b;
    struct file *f;
    int64_t pos;
    setup(&t);
    assert_int_equal(fs_open(t.fs, temp_dir_path(&t.tmp, "data/f"), O_RDWR | O_CREAT, &f), 0);
    assert_int_equal(file_pwrite_all(f, v1, sizeof(v1), 0), 0);
    assert_int_equal(file_pwrite_all(f, v0, sizeof(v0), sizeof(v1)), 0);
    file_batches_init(&w, f, 0, sizeof(v1) + sizeof(v0), window, sizeof(window));
    assert_int_equal(file_batches_next(&w, &b, &pos), BATCH_OK);
    assert_int_equal(b.last_offset, 42);
    assert_int_equal(b.max_timestamp, T0);
    assert_int_equal(file_batches_crc_ok(&w, &b, pos), 1);
    assert_int_equal(file_batches_next(&w, &b, &pos), BATCH_OK);
    assert_int_equal(b.last_offset, 43);
    assert_int_equal(b.max_timestamp, -1);
    assert_int_equal(file_batches_crc_ok(&w, &b, pos), 1);
    assert_int_equal(file_batches_next(&w, &b, &pos), BATCH_END);
    file_unref(f);
    teardown(&t);
}

UNIT_MAIN(unit_test(any_window_sees_the_same), unit_test(small_entries_cost_few_reads),
          unit_test(a_wrong_checksum_is_seen_in_pieces), unit_test(a_partial_end_ends_the_walk),
          unit_test(a_read_error_is_kept), unit_test(a_whole_entry_loads),
          unit_test(old_messages_are_walked))
