/* Transaction index: entry bytes, torn ends, cuts, sanity. */
#include "log/txn_index.h"

#include "log_util.h"
#include "vectors.h"

static const char *path_of(struct log_test *t)
{
    return temp_dir_path(&t->tmp, "data/x");
}

static int64_t bytes_of(struct log_test *t)
{
    struct file_stat st;
    int err = fs_stat(t->fs, path_of(t), &st);
    return err ? err : st.size;
}

static void append_raw(struct log_test *t, const void *p, size_t n)
{
    struct file *f;
    int64_t at = bytes_of(t);
    assert_int_equal(fs_open(t->fs, path_of(t), O_RDWR | O_CREAT, &f), 0);
    assert_int_equal(file_pwrite_all(f, p, n, at < 0 ? 0 : at), 0);
    file_unref(f);
}

static struct txn_entry entry(int i)
{
    return (struct txn_entry){4000 + i, 100 * i, 100 * i + 20, 100 * i + 21};
}

static void fill(struct log_test *t, struct txn_index *x, int from, int to)
{
    for (int i = from; i < to; i++)
        assert_int_equal(txn_index_append(x, t->fs, path_of(t), entry(i)), 0);
}

static void assert_holds(struct log_test *t, struct txn_index *x, int n)
{
    struct txn_entry e[8];
    int at = 0, got;
    while ((got = txn_index_read(x, t->fs, path_of(t), at, e, 8)) > 0) {
        for (int i = 0; i < got; i++) {
            struct txn_entry want = entry(at + i);
            assert_memory_equal(&e[i], &want, sizeof(want));
        }
        at += got;
    }
    assert_int_equal(got, 0);
    assert_int_equal(at, n);
}

static void entry_bytes_are_kafkas(void **state)
{
    uint8_t raw[TXN_ENTRY_BYTES];
    struct txn_entry e = {4000, 100, 120, 121}, back;
    txn_entry_encode(raw, e);
    assert_vector("txn_index_entry", raw, sizeof(raw));
    assert_true(txn_entry_decode(raw, &back));
    assert_memory_equal(&back, &e, sizeof(e));
    raw[1] = 1;
    assert_false(txn_entry_decode(raw, &back));
}

static void the_file_comes_with_the_first_entry(void **state)
{
    struct log_test t;
    struct txn_index x;
    setup(&t);
    txn_index_init(&x, false);
    assert_holds(&t, &x, 0);
    assert_int_equal(bytes_of(&t), -ENOENT);
    fill(&t, &x, 0, 200);
    assert_holds(&t, &x, 200);
    assert_int_equal(bytes_of(&t), 200 * TXN_ENTRY_BYTES);
    txn_index_close(&x);
    txn_index_init(&x, true);
    assert_holds(&t, &x, 200);
    txn_index_close(&x);
    teardown(&t);
}

static void a_torn_end_is_not_read_and_cut_before_writing(void **state)
{
    struct log_test t;
    struct txn_index x;
    uint8_t half[17] = {0};
    setup(&t);
    txn_index_init(&x, false);
    fill(&t, &x, 0, 3);
    txn_index_close(&x);
    append_raw(&t, half, sizeof(half));
    txn_index_init(&x, true);
    assert_holds(&t, &x, 3);
    fill(&t, &x, 3, 5);
    assert_holds(&t, &x, 5);
    assert_int_equal(bytes_of(&t), 5 * TXN_ENTRY_BYTES);
    txn_index_close(&x);
    teardown(&t);
}

/* Cuts x, which then is what is left. */
static void cut(struct log_test *t, struct txn_index *x, int64_t offset)
{
    struct txn_index to;
    struct file *f;
    txn_index_init(&to, false);
    assert_int_equal(txn_index_file(x, t->fs, path_of(t), &f), 0);
    assert_int_equal(txn_index_cut(x, f, &to, t->fs, path_of(t), offset), 0);
    file_unref(f);
    txn_index_close(x);
    *x = to;
}

static void cuts_by_the_markers_offset(void **state)
{
    struct log_test t;
    struct txn_index x;
    setup(&t);
    txn_index_init(&x, false);
    cut(&t, &x, 0);
    fill(&t, &x, 0, 150);
    cut(&t, &x, 14921); /* behind the last */
    assert_holds(&t, &x, 150);
    cut(&t, &x, 14920);
    assert_holds(&t, &x, 149);
    assert_int_equal(bytes_of(&t), 149 * TXN_ENTRY_BYTES);
    cut(&t, &x, 1021);
    assert_holds(&t, &x, 11);
    fill(&t, &x, 11, 13);
    assert_holds(&t, &x, 13);
    cut(&t, &x, 0);
    assert_holds(&t, &x, 0);
    assert_int_equal(bytes_of(&t), -ENOENT);
    fill(&t, &x, 0, 1);
    assert_holds(&t, &x, 1);
    txn_index_close(&x);
    teardown(&t);
}

/* Whoever has the index from before a cut reads what it was, whatever is written after it. */
static void a_cut_changes_nothing_for_who_reads_already(void **state)
{
    for (int64_t offset = 0; offset <= 10020; offset += 1002) {
        struct log_test t;
        struct txn_index old, x;
        struct file *f;
        atomic_bool gone = false;
        setup(&t);
        txn_index_init(&old, false);
        old.gone = &gone;
        fill(&t, &old, 0, 100);
        assert_int_equal(txn_index_file(&old, t.fs, path_of(&t), &f), 0);
        atomic_store(&gone, true);
        txn_index_init(&x, false);
        assert_int_equal(txn_index_cut(&old, f, &x, t.fs, path_of(&t), offset), 0);
        file_unref(f);
        for (int i = 500; i < 700; i++)
            assert_int_equal(txn_index_append(&x, t.fs, path_of(&t), entry(i)), 0);
        assert_holds(&t, &old, 100);
        /* its file closed, it must not take the new one for its own */
        txn_index_close(&old);
        struct txn_entry e;
        assert_int_equal(txn_index_read(&old, t.fs, path_of(&t), 0, &e, 1), -ESTALE);
        txn_index_close(&x);
        teardown(&t);
    }
}

/* What the old one had to sync still, the new one has, though it is the same file. */
static void what_was_not_synced_is_synced_after_a_cut(void **state)
{
    for (int64_t offset = 100; offset <= 400; offset += 100) {
        struct log_test t;
        struct txn_index x;
        setup(&t);
        txn_index_init(&x, false);
        fill(&t, &x, 0, 3);
        cut(&t, &x, offset);
        uint64_t before = fs_fault_count(t.fault, FS_SYNC);
        assert_int_equal(txn_index_sync(&x, t.fs, path_of(&t)), 0);
        assert_int_equal(fs_fault_count(t.fault, FS_SYNC), before + 1);
        txn_index_close(&x);
        teardown(&t);
    }
}

static void sanity(void **state)
{
    struct log_test t;
    struct txn_index x;
    uint8_t raw[TXN_ENTRY_BYTES];
    setup(&t);
    txn_index_init(&x, false);
    fill(&t, &x, 1, 100);
    assert_int_equal(txn_index_sane(&x, t.fs, path_of(&t), 0), 1);
    assert_int_equal(txn_index_sane(&x, t.fs, path_of(&t), 120), 1);
    assert_int_equal(txn_index_sane(&x, t.fs, path_of(&t), 121), 0); /* a marker below the base */
    txn_index_close(&x);
    txn_entry_encode(raw, entry(5)); /* does not rise */
    append_raw(&t, raw, sizeof(raw));
    txn_index_init(&x, true);
    assert_int_equal(txn_index_sane(&x, t.fs, path_of(&t), 0), 0);
    cut(&t, &x, 5000);
    txn_index_close(&x);
    txn_entry_encode(raw, entry(200));
    raw[0] = 1; /* a version that is not ours */
    append_raw(&t, raw, sizeof(raw));
    txn_index_init(&x, true);
    assert_int_equal(txn_index_sane(&x, t.fs, path_of(&t), 0), 0);
    struct txn_entry e[64];
    assert_int_equal(txn_index_read(&x, t.fs, path_of(&t), 40, e, 64), -EBADMSG);
    txn_index_close(&x);
    teardown(&t);
}

UNIT_MAIN(unit_test(entry_bytes_are_kafkas), unit_test(the_file_comes_with_the_first_entry),
          unit_test(a_torn_end_is_not_read_and_cut_before_writing),
          unit_test(cuts_by_the_markers_offset),
          unit_test(a_cut_changes_nothing_for_who_reads_already),
          unit_test(what_was_not_synced_is_synced_after_a_cut), unit_test(sanity))
