/* Growing, mapped index files: sizes, look-ups against a plain search, opening lazily, full disks.
 */
#include "log/index_file.h"

#include "base/buf.h"
#include "log_util.h"

enum { ENTRY = 8 };

static const char *path_of(struct log_test *t)
{
    return temp_dir_path(&t->tmp, "data/x");
}

static int64_t bytes_of(struct log_test *t)
{
    struct file_stat st;
    assert_int_equal(fs_stat(t->fs, path_of(t), &st), 0);
    return st.size;
}

static void add(struct log_test *t, struct index_file *x, int32_t key, int32_t value)
{
    uint8_t e[ENTRY];
    put_be32(e, (uint32_t)key);
    put_be32(e + 4, (uint32_t)value);
    bool opened, was_open = atomic_load(&x->map) != NULL;
    assert_int_equal(index_file_append(x, t->fs, path_of(t), e, &opened), 0);
    assert_int_equal(opened, !was_open); /* who counts maps relies on it */
}

static void size_is_full_while_growing_and_exact_after(void **state)
{
    struct log_test t;
    struct index_file x;
    setup(&t);
    index_file_init(&x, ENTRY, 4099, -1, true); /* rounded down to entries */
    assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
    assert_int_equal(bytes_of(&t), 4096);
    for (int i = 0; i < 10; i++)
        add(&t, &x, i, i);
    assert_int_equal(bytes_of(&t), 4096);
    assert_int_equal(index_file_seal(&x, t.fs, path_of(&t), NULL), 0);
    assert_int_equal(bytes_of(&t), 80);
    /* it grows again when it is appended to again: a trim that was followed by no roll */
    add(&t, &x, 10, 10);
    assert_int_equal(bytes_of(&t), 4096);
    assert_int_equal(index_file_seal(&x, t.fs, path_of(&t), NULL), 0);
    assert_int_equal(bytes_of(&t), 88);
    index_file_close(&x);
    teardown(&t);
}

/* The last entry of a file that is not open, and of one that is. */
static void sealing_can_add_one_more(void **state)
{
    for (int mapped = 0; mapped < 2; mapped++) {
        struct log_test t;
        struct index_file x;
        struct index_view v;
        uint8_t e[ENTRY] = {0, 0, 0, 77, 0, 0, 0, 88};
        setup(&t);
        index_file_init(&x, ENTRY, 4096, -1, true);
        assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
        for (int i = 0; mapped && i < 3; i++)
            add(&t, &x, i, i);
        uint64_t maps = fs_fault_count(t.fault, FS_MAP);
        assert_int_equal(index_file_seal(&x, t.fs, path_of(&t), e), 0);
        assert_int_equal(fs_fault_count(t.fault, FS_MAP), maps);
        assert_int_equal(bytes_of(&t), (mapped ? 4 : 1) * ENTRY);
        assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &v), 0);
        assert_int_equal(v.n, mapped ? 4 : 1);
        assert_int_equal(index_view_key(&v, v.n - 1, 4, 4), 88);
        index_view_close(&v);
        index_file_close(&x);
        teardown(&t);
    }
}

static void nothing_is_opened_before_it_is_needed(void **state)
{
    struct log_test t;
    struct index_file x;
    struct index_view v;
    setup(&t);
    index_file_init(&x, ENTRY, 4096, -1, true);
    assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
    uint64_t opens = fs_fault_count(t.fault, FS_OPEN), maps = fs_fault_count(t.fault, FS_MAP);
    assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &v), 0); /* empty: known without */
    assert_int_equal(v.n, 0);
    assert_int_equal(index_view_floor(&v, 0, 4, 100), -1);
    assert_int_equal(fs_fault_count(t.fault, FS_OPEN), opens);
    add(&t, &x, 1, 1);
    assert_int_equal(fs_fault_count(t.fault, FS_OPEN), opens + 2); /* to map, and for blocks */
    assert_int_equal(fs_fault_count(t.fault, FS_MAP), maps + 1);
    for (int i = 2; i < 100; i++)
        add(&t, &x, i, i);
    assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &v), 0);
    assert_int_equal(v.n, 99);
    assert_int_equal(fs_fault_count(t.fault, FS_OPEN), opens + 2);
    index_view_close(&v);
    index_file_close(&x);
    teardown(&t);
}

/* Every size around the warm part, every key: the same as a plain search. */
static void floor_agrees_with_a_plain_search(void **state)
{
    static const int sizes[] = {0, 1, 2, 3, 1022, 1023, 1024, 1025, 1026, 1027, 3000};
    struct log_test t;
    setup(&t);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct index_file x;
        struct index_view v;
        int n = sizes[s];
        index_file_init(&x, ENTRY, 32 << 10, -1, true);
        assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
        for (int i = 0; i < n; i++)
            add(&t, &x, 10 * i + 5, i);
        assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &v), 0);
        for (int key = -1; key < 10 * n + 10; key++) {
            int want = key < 5 ? -1 : (key - 5) / 10;
            if (want >= n)
                want = n - 1;
            assert_int_equal(index_view_floor(&v, 0, 4, key), want);
        }
        assert_int_equal(index_view_floor(&v, 0, 4, INT64_MAX), n - 1);
        assert_int_equal(index_view_floor(&v, 0, 4, INT64_MIN), -1);
        index_view_close(&v);
        index_file_close(&x);
    }
    teardown(&t);
}

static void an_existing_file_is_as_long_as_its_bytes(void **state)
{
    struct log_test t;
    struct index_file x;
    struct index_view v;
    setup(&t);
    index_file_init(&x, ENTRY, 4096, -1, true);
    assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
    for (int i = 0; i < 7; i++)
        add(&t, &x, i, 100 + i);
    assert_int_equal(index_file_seal(&x, t.fs, path_of(&t), NULL), 0);
    index_file_close(&x);
    for (int growable = 0; growable < 2; growable++) {
        index_file_init(&x, ENTRY, 4096, -1, growable);
        assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &v), 0);
        assert_int_equal(v.n, 7);
        assert_int_equal(index_view_key(&v, 6, 4, 4), 106);
        if (growable) { /* a reader came first: the writer goes on in the same map */
            add(&t, &x, 7, 107);
            struct index_view again;
            assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &again), 0);
            assert_int_equal(again.n, 8);
            assert_ptr_equal(again.p, v.p);
            assert_int_equal(v.n, 7); /* what a reader saw does not change */
            index_view_close(&again);
        }
        index_view_close(&v);
        index_file_close(&x);
    }
    teardown(&t);
}

/* No address space: calls instead of a map. */
static void without_a_map_calls_do(void **state)
{
    struct log_test t;
    struct index_file x;
    struct index_view v;
    setup(&t);
    fs_fault_add(t.fault, (struct fs_fault_rule){.call = FS_MAP, .times = -1, .error = ENOMEM});
    index_file_init(&x, ENTRY, 4096, -1, true);
    assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
    for (int i = 0; i < 50; i++)
        add(&t, &x, 2 * i, i);
    assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &v), 0);
    assert_null(v.p);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(index_view_floor(&v, 0, 4, 2 * i + 1), i);
        assert_int_equal(index_view_key(&v, i, 4, 4), i);
    }
    assert_int_equal(v.error, 0);
    fs_fault_add(t.fault, (struct fs_fault_rule){.call = FS_PREAD, .times = -1, .error = EIO});
    (void)index_view_floor(&v, 0, 4, 3);
    assert_int_equal(v.error, -EIO);
    fs_fault_clear(t.fault);
    index_view_close(&v);
    index_file_close(&x);
    teardown(&t);
}

/* A full disk is an error code, not a SIGBUS: blocks come before the store. */
static void a_full_disk_is_an_error_before_the_store(void **state)
{
    struct log_test t;
    struct index_file x;
    uint8_t e[ENTRY] = {0};
    bool opened;
    setup(&t);
    index_file_init(&x, ENTRY, 1 << 20, -1, true);
    assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
    fs_fault_add(t.fault,
                 (struct fs_fault_rule){.call = FS_ALLOCATE, .times = -1, .error = ENOSPC});
    assert_int_equal(index_file_append(&x, t.fs, path_of(&t), e, &opened), -ENOSPC);
    assert_true(opened); /* told after an error, too: the map is there */
    assert_int_equal(atomic_load(&x.n), 0);
    fs_fault_clear(t.fault);
    /* and it is asked once for many entries */
    uint64_t before = fs_fault_count(t.fault, FS_ALLOCATE);
    for (int i = 0; i < 1000; i++)
        add(&t, &x, i, i);
    assert_true(fs_fault_count(t.fault, FS_ALLOCATE) - before <= 2);
    index_file_close(&x);
    teardown(&t);
}

static void it_is_full_at_its_size(void **state)
{
    struct log_test t;
    struct index_file x;
    uint8_t e[ENTRY] = {0};
    bool opened;
    setup(&t);
    index_file_init(&x, ENTRY, 31, -1, true);
    assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
    for (int i = 0; i < 3; i++) {
        assert_false(index_file_full(&x, 0));
        assert_int_equal(index_file_full(&x, 1), i == 2);
        add(&t, &x, i, i);
    }
    assert_true(index_file_full(&x, 0));
    assert_int_equal(index_file_append(&x, t.fs, path_of(&t), e, &opened), -ENOSPC);
    index_file_close(&x); /* by others, between two entries */
    assert_int_equal(index_file_append(&x, t.fs, path_of(&t), e, &opened), -ENOSPC);
    assert_true(opened);
    assert_int_equal(index_file_append(&x, t.fs, path_of(&t), e, &opened), -ENOSPC);
    assert_false(opened);
    index_file_close(&x);
    /* room for none: full from the start */
    index_file_init(&x, ENTRY, 4, -1, true);
    assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
    assert_true(index_file_full(&x, 0));
    index_file_close(&x);
    teardown(&t);
}

/* A file left by a crash is replaced, not reused: another process of ours may have it mapped. */
static void creating_replaces_what_lies_there(void **state)
{
    struct log_test t;
    struct index_file x, y;
    struct index_view v;
    setup(&t);
    index_file_init(&x, ENTRY, 4096, -1, true);
    assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
    add(&t, &x, 7, 8);
    index_file_init(&y, ENTRY, 4096, -1, true);
    assert_int_equal(index_file_create(&y, t.fs, path_of(&t)), 0);
    assert_int_equal(index_file_view(&y, t.fs, path_of(&t), &v), 0);
    assert_int_equal(v.n, 0);
    assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &v), 0);
    assert_int_equal(v.n, 1);
    assert_int_equal(index_view_key(&v, 0, 4, 4), 8);
    index_view_close(&v);
    index_file_close(&x);
    index_file_close(&y);
    teardown(&t);
}

static void sync_covers_bytes_and_size(void **state)
{
    struct log_test t;
    struct index_file x;
    struct index_view v;
    setup(&t);
    index_file_init(&x, ENTRY, 4096, -1, true);
    assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
    add(&t, &x, 7, 8);
    add(&t, &x, 9, 10);
    assert_int_equal(index_file_seal(&x, t.fs, path_of(&t), NULL), 0);
    assert_int_equal(index_file_sync(&x, t.fs, path_of(&t)), 0);
    uint64_t syncs = fs_fault_count(t.fault, FS_SYNC);
    assert_int_equal(index_file_sync(&x, t.fs, path_of(&t)), 0); /* nothing new */
    assert_int_equal(fs_fault_count(t.fault, FS_SYNC), syncs);
    index_file_close(&x);
    assert_int_equal(fs_sync_dir(t.fs, t.data), 0);
    assert_int_equal(fs_fault_crash(t.fault, t.data, FS_CRASH_DROP, 1), 0);
    assert_int_equal(bytes_of(&t), 16);
    index_file_init(&x, ENTRY, 4096, -1, false);
    assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &v), 0);
    assert_int_equal(v.n, 2);
    assert_int_equal(index_view_key(&v, 1, 4, 4), 10);
    index_view_close(&v);
    index_file_close(&x);
    teardown(&t);
}

/* Closed while it is looked at and while it grows: views go on, entries are where they were. */
static void closing_leaves_views_and_entries(void **state)
{
    struct log_test t;
    struct index_file x;
    struct index_view v, w;
    setup(&t);
    index_file_init(&x, ENTRY, 4096, -1, true);
    assert_int_equal(index_file_create(&x, t.fs, path_of(&t)), 0);
    for (int i = 0; i < 20; i++) {
        add(&t, &x, i, 100 + i);
        assert_true(index_file_mapped(&x));
        assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &v), 0);
        index_file_close(&x);
        assert_false(index_file_mapped(&x));
        assert_false(index_file_view_open(&x, &w));
        assert_int_equal(v.n, i + 1);
        assert_int_equal(index_view_key(&v, i, 4, 4), 100 + i);
        assert_int_equal(index_file_view(&x, t.fs, path_of(&t), &w), 0); /* beside the old one */
        for (int k = 0; k <= i; k++)
            assert_int_equal(index_view_key(&w, k, 4, 4), 100 + k);
        index_view_close(&w);
        index_view_close(&w);
        index_view_close(&v);
    }
    index_file_close(&x);
    assert_int_equal(index_file_sync(&x, t.fs, path_of(&t)), 0); /* closed, and yet synced */
    assert_int_equal(index_file_seal(&x, t.fs, path_of(&t), NULL), 0);
    assert_int_equal(bytes_of(&t), 20 * ENTRY);
    index_file_close(&x);
    teardown(&t);
}

UNIT_MAIN(unit_test(closing_leaves_views_and_entries),
          unit_test(size_is_full_while_growing_and_exact_after),
          unit_test(sealing_can_add_one_more), unit_test(nothing_is_opened_before_it_is_needed),
          unit_test(floor_agrees_with_a_plain_search),
          unit_test(an_existing_file_is_as_long_as_its_bytes), unit_test(without_a_map_calls_do),
          unit_test(a_full_disk_is_an_error_before_the_store), unit_test(it_is_full_at_its_size),
          unit_test(creating_replaces_what_lies_there), unit_test(sync_covers_bytes_and_size))
