/* The faulty file layer: rules, counts, and what a crash leaves. */
#include "base/fs_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "temp_dir.h"

struct fixture {
    struct temp_dir d;
    struct fs_fault *fault;
    struct fs *fs;
};

static void set_up(struct fixture *x)
{
    temp_dir_make(&x->d);
    x->fault = fs_fault_new(fs_posix());
    x->fs = fs_fault_fs(x->fault);
}

static void tear_down(struct fixture *x)
{
    fs_fault_free(x->fault);
    temp_dir_remove(&x->d);
}

static struct file *open_file(struct fixture *x, const char *name, int flags)
{
    struct file *f;
    assert_int_equal(fs_open(x->fs, temp_dir_path(&x->d, name), O_RDWR | flags, &f), 0);
    return f;
}

static void put(struct file *f, const char *text, int64_t off)
{
    assert_int_equal(file_pwrite_all(f, text, strlen(text), off), 0);
}

static void sync_top(struct fixture *x)
{
    assert_int_equal(fs_sync_dir(x->fs, x->d.path), 0);
}

/* A file that was on the disk before the test began. */
static void on_disk(struct fixture *x, const char *name, const char *text)
{
    struct file *f;
    assert_int_equal(
        fs_open(fs_posix(), temp_dir_path(&x->d, name), O_RDWR | O_CREAT | O_TRUNC, &f), 0);
    put(f, text, 0);
    file_unref(f);
}

/* What is really there; NULL text: no such name. */
static void expect(struct fixture *x, const char *name, const char *text)
{
    char *got;
    size_t len;
    int err = fs_read_all(fs_posix(), temp_dir_path(&x->d, name), 1 << 20, &got, &len);
    assert_int_equal(err, text ? 0 : -ENOENT);
    if (text) {
        assert_int_equal(len, strlen(text));
        assert_string_equal(got, text);
    }
    free(got);
}

static void crash(struct fixture *x)
{
    assert_int_equal(fs_fault_crash(x->fault, x->d.path, FS_CRASH_DROP, 0), 0);
}

/* Rules */

static void without_rules_all_goes_through(void **state)
{
    struct fixture x;
    char got[8];
    struct file_stat st;
    set_up(&x);
    struct file *f = open_file(&x, "a", O_CREAT);
    put(f, "text", 0);
    assert_int_equal(f->fd, -1);
    assert_int_equal(file_pread(f, got, 8, 0), 4);
    assert_memory_equal(got, "text", 4);
    assert_int_equal(file_stat(f, &st), 0);
    assert_int_equal(st.size, 4);
    assert_int_equal(file_truncate(f, 2), 0);
    assert_int_equal(file_sync(f), 0);
    file_unref(f);
    expect(&x, "a", "te");
    assert_int_equal(fs_replace(x.fs, temp_dir_path(&x.d, "a"), "new", 3), 0);
    expect(&x, "a", "new");
    assert_int_equal(fs_mkdir_p(x.fs, temp_dir_path(&x.d, "b/c")), 0);
    assert_int_equal(fs_remove_tree(x.fs, temp_dir_path(&x.d, "b")), 0);
    assert_int_equal(fs_rename(x.fs, temp_dir_path(&x.d, "no"), temp_dir_path(&x.d, "x")), -ENOENT);
    assert_int_equal(fs_unlink(x.fs, temp_dir_path(&x.d, "no")), -ENOENT);
    tear_down(&x);
}

static void rules_choose_by_call_path_and_number(void **state)
{
    struct fixture x;
    struct file *f;
    set_up(&x);
    fs_fault_add(x.fault, (struct fs_fault_rule){.call = FS_OPEN,
                                                 .path = "*/b",
                                                 .skip = 1,
                                                 .times = 2,
                                                 .error = EACCES,
                                                 .write_bytes = -1});
    fs_fault_add(x.fault,
                 (struct fs_fault_rule){.call = FS_OPEN, .path = "*/b", .times = 1, .error = EIO});
    const char *b = temp_dir_path(&x.d, "b");
    f = open_file(&x, "a", O_CREAT);
    file_unref(f);
    /* the first rule skips one, which the second then gets */
    assert_int_equal(fs_open(x.fs, b, O_RDWR | O_CREAT, &f), -EIO);
    assert_int_equal(fs_open(x.fs, b, O_RDWR | O_CREAT, &f), -EACCES);
    assert_int_equal(fs_open(x.fs, b, O_RDWR | O_CREAT, &f), -EACCES);
    assert_int_equal(fs_open(x.fs, b, O_RDWR | O_CREAT, &f), 0);
    file_unref(f);
    assert_int_equal(fs_fault_count(x.fault, FS_OPEN), 5);
    fs_fault_add(x.fault, (struct fs_fault_rule){.call = FS_SYNC_DIR, .times = -1, .error = EIO});
    for (int i = 0; i < 5; i++)
        assert_int_equal(fs_sync_dir(x.fs, x.d.path), -EIO);
    fs_fault_clear(x.fault);
    assert_int_equal(fs_sync_dir(x.fs, x.d.path), 0);
    tear_down(&x);
}

/* Each call fails when told so, and says so. */
static void every_call_can_fail(void **state)
{
    struct fixture x;
    struct file *f, *g;
    struct file_stat st;
    char c;
    void *p, *q;
    set_up(&x);
    const char *a = temp_dir_path(&x.d, "a"), *b = temp_dir_path(&x.d, "b");
    f = open_file(&x, "a", O_CREAT);
    put(f, "abcd", 0);
    assert_int_equal(file_map(f, 4, true, &p), 0);
    for (int call = 0; call < FS_CALLS; call++)
        fs_fault_add(x.fault, (struct fs_fault_rule){.call = call, .times = -1, .error = ENOSPC});
    assert_int_equal(fs_open(x.fs, a, O_RDONLY, &g), -ENOSPC);
    assert_int_equal(file_pread(f, &c, 1, 0), -ENOSPC);
    assert_int_equal(file_pread_now(f, &c, 1, 0), -ENOSPC);
    assert_false(file_in_memory(f, p, 4));
    assert_int_equal(file_pwrite_all(f, "x", 1, 0), -ENOSPC);
    assert_int_equal(file_sync(f), -ENOSPC);
    assert_int_equal(file_truncate(f, 0), -ENOSPC);
    assert_int_equal(file_allocate(f, 0, 10), -ENOSPC);
    assert_int_equal(file_map(f, 4, true, &q), -ENOSPC);
    assert_int_equal(file_msync(f, p, 4), -ENOSPC);
    assert_int_equal(file_stat(f, &st), -ENOSPC);
    assert_int_equal(file_set_mtime(f, 0), -ENOSPC);
    assert_int_equal(fs_rename(x.fs, a, b), -ENOSPC);
    assert_int_equal(fs_unlink(x.fs, a), -ENOSPC);
    assert_int_equal(fs_mkdir(x.fs, b), -ENOSPC);
    assert_int_equal(fs_rmdir(x.fs, b), -ENOSPC);
    assert_int_equal(fs_sync_dir(x.fs, x.d.path), -ENOSPC);
    assert_int_equal(fs_stat(x.fs, a, &st), -ENOSPC);
    assert_int_equal(fs_list(x.fs, x.d.path, NULL, NULL), -ENOSPC);
    for (int call = 0; call < FS_CALLS; call++)
        assert_in_range(fs_fault_count(x.fault, call), 1, 4);
    assert_int_equal(file_unmap(f, p, 4), 0);
    file_unref(f);
    expect(&x, "a", "abcd");
    tear_down(&x);
}

static void writes_can_be_short_or_stop_in_the_middle(void **state)
{
    struct fixture x;
    set_up(&x);
    struct file *f = open_file(&x, "a", O_CREAT);
    fs_fault_add(x.fault, (struct fs_fault_rule){.call = FS_PWRITEV, .times = 1, .write_bytes = 3});
    struct iovec iov[] = {{(char[]){"ab"}, 2}, {(char[]){"cdef"}, 4}};
    assert_int_equal(file_pwritev_all(f, iov, 2, 0), 0);
    assert_int_equal(fs_fault_count(x.fault, FS_PWRITEV), 2);
    expect(&x, "a", "abcdef");
    fs_fault_add(x.fault, (struct fs_fault_rule){
                              .call = FS_PWRITEV, .times = 1, .write_bytes = 2, .error = ENOSPC});
    assert_int_equal(file_pwrite_all(f, "XYZ", 3, 0), -ENOSPC);
    expect(&x, "a", "XYcdef");
    /* a rule that only waits changes nothing */
    fs_fault_add(x.fault, (struct fs_fault_rule){.call = FS_PWRITEV, .times = 1});
    put(f, "abc", 0);
    expect(&x, "a", "abcdef");
    file_unref(f);
    crash(&x);
    expect(&x, "a", NULL);
    tear_down(&x);
}

struct stall {
    sem_t reached, go;
};

static void stall(void *arg)
{
    struct stall *s = arg;
    sem_post(&s->reached);
    while (sem_wait(&s->go) < 0)
        assert_int_equal(errno, EINTR);
}

static void *sync_file(void *f)
{
    return (void *)(intptr_t)file_sync(f);
}

/* While one thread hangs in fsync, another goes on; what it writes is not saved by that fsync when
 * it came after, only when it was there. */
static void a_call_can_be_held_up(void **state)
{
    struct fixture x;
    struct stall s;
    pthread_t t;
    void *rc;
    set_up(&x);
    sem_init(&s.reached, 0, 0);
    sem_init(&s.go, 0, 0);
    struct file *f = open_file(&x, "a", O_CREAT);
    sync_top(&x);
    fs_fault_add(x.fault,
                 (struct fs_fault_rule){
                     .call = FS_SYNC, .path = "*/a", .times = 1, .before = stall, .arg = &s});
    pthread_create(&t, NULL, sync_file, f);
    while (sem_wait(&s.reached) < 0)
        assert_int_equal(errno, EINTR);
    put(f, "abc", 0);
    sem_post(&s.go);
    pthread_join(t, &rc);
    assert_int_equal((intptr_t)rc, 0);
    put(f, "def", 3);
    file_unref(f);
    crash(&x);
    expect(&x, "a", "abc");
    sem_destroy(&s.reached);
    sem_destroy(&s.go);
    tear_down(&x);
}

static void fail_at_visits_each_call_once(void **state)
{
    struct fixture x;
    set_up(&x);
    on_disk(&x, "a", "old");
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        uint64_t before = fs_fault_total(x.fault);
        fs_fault_fail_at(x.fault, n, EIO);
        int err = fs_replace(x.fs, temp_dir_path(&x.d, "a"), "new", 3);
        bool reached = fs_fault_total(x.fault) - before >= n;
        fs_fault_fail_at(x.fault, 0, 0);
        if (!reached) {
            assert_int_equal(err, 0);
            break;
        }
        assert_int_equal(err, -EIO);
        failures++;
    }
    assert_int_equal(failures, 5); /* open, write, sync, rename, sync of the folder */
    tear_down(&x);
}

/* Crashes that drop */

/* The end of a process alone: what was done before the power cut stays, synced or not. */
static void a_kept_crash_forgets_nothing(void **state)
{
    struct fixture x;
    set_up(&x);
    on_disk(&x, "a", "0123");
    struct file *f = open_file(&x, "a", 0);
    struct file *g = open_file(&x, "new", O_CREAT);
    put(f, "ab", 0);
    put(g, "c", 0);
    file_unref(g);
    assert_int_equal(fs_rename(x.fs, temp_dir_path(&x.d, "new"), temp_dir_path(&x.d, "renamed")),
                     0);
    fs_fault_power_off_at(x.fault, 1);
    assert_int_equal(file_pwrite_all(f, "z", 1, 3), -EIO);
    file_unref(f);
    assert_int_equal(fs_fault_crash(x.fault, x.d.path, FS_CRASH_KEEP, 0), 0);
    expect(&x, "a", "ab23");
    expect(&x, "renamed", "c");
    f = open_file(&x, "a", 0);
    put(f, "z", 3); /* the power is on again */
    file_unref(f);
    expect(&x, "a", "ab2z");
    tear_down(&x);
}

static void unsynced_writes_vanish(void **state)
{
    struct fixture x;
    set_up(&x);
    on_disk(&x, "a", "0123456789");
    struct file *f = open_file(&x, "a", 0);
    put(f, "ab", 2);
    assert_int_equal(file_sync(f), 0);
    put(f, "XXXX", 4);
    put(f, "YYYYYY", 8);
    assert_int_equal(file_truncate(f, 5), 0);
    put(f, "Z", 20);
    assert_int_equal(file_allocate(f, 0, 4096), 0);
    assert_int_equal(fs_fault_crash(x.fault, x.d.path, FS_CRASH_DROP, 0), -EBUSY);
    file_unref(f);
    crash(&x);
    expect(&x, "a", "01ab456789");
    crash(&x); /* nothing more to lose */
    expect(&x, "a", "01ab456789");
    f = open_file(&x, "a", O_TRUNC);
    put(f, "new", 0);
    file_unref(f);
    expect(&x, "a", "new");
    crash(&x);
    expect(&x, "a", "01ab456789");
    tear_down(&x);
}

static void unsynced_names_vanish(void **state)
{
    struct fixture x;
    struct file_stat st;
    set_up(&x);
    on_disk(&x, "old", "old");
    on_disk(&x, "gone", "gone");
    on_disk(&x, "moved", "moved");
    struct file *f = open_file(&x, "new", O_CREAT);
    put(f, "new", 0);
    assert_int_equal(file_sync(f), 0); /* saves the bytes, not the name */
    file_unref(f);
    assert_int_equal(fs_unlink(x.fs, temp_dir_path(&x.d, "gone")), 0);
    assert_int_equal(fs_rename(x.fs, temp_dir_path(&x.d, "moved"), temp_dir_path(&x.d, "old")), 0);
    assert_int_equal(fs_mkdir(x.fs, temp_dir_path(&x.d, "dir")), 0);
    f = open_file(&x, "dir/in", O_CREAT);
    file_unref(f);
    assert_int_equal(fs_sync_dir(x.fs, temp_dir_path(&x.d, "dir")), 0);
    crash(&x);
    expect(&x, "new", NULL);
    expect(&x, "gone", "gone");
    expect(&x, "moved", "moved");
    expect(&x, "old", "old");
    assert_int_equal(fs_stat(fs_posix(), temp_dir_path(&x.d, "dir"), &st), -ENOENT);
    tear_down(&x);
}

static void names_of_a_synced_folder_stay(void **state)
{
    struct fixture x;
    set_up(&x);
    on_disk(&x, "gone", "gone");
    on_disk(&x, "moved", "moved");
    struct file *f = open_file(&x, "new", O_CREAT);
    put(f, "unsynced", 0);
    file_unref(f);
    assert_int_equal(fs_unlink(x.fs, temp_dir_path(&x.d, "gone")), 0);
    assert_int_equal(fs_rename(x.fs, temp_dir_path(&x.d, "moved"), temp_dir_path(&x.d, "there")),
                     0);
    sync_top(&x);
    assert_int_equal(fs_unlink(x.fs, temp_dir_path(&x.d, "there")), 0);
    crash(&x);
    expect(&x, "new", ""); /* the name is saved, the bytes were not */
    expect(&x, "gone", NULL);
    expect(&x, "moved", NULL);
    expect(&x, "there", "moved");
    tear_down(&x);
}

/* A partition's folder is renamed while files in it are new, as when a topic is deleted. */
static void files_follow_their_renamed_folder(void **state)
{
    struct fixture x;
    set_up(&x);
    assert_int_equal(fs_mkdir_p(x.fs, temp_dir_path(&x.d, "t-0")), 0);
    struct file *f = open_file(&x, "t-0/kept", O_CREAT);
    assert_int_equal(fs_sync_dir(x.fs, temp_dir_path(&x.d, "t-0")), 0);
    put(f, "kept", 0);
    assert_int_equal(file_sync(f), 0);
    file_unref(open_file(&x, "t-0/new", O_CREAT));
    assert_int_equal(fs_rename(x.fs, temp_dir_path(&x.d, "t-0"), temp_dir_path(&x.d, "t-0-delete")),
                     0);
    put(f, "more", 4);
    file_unref(f);
    sync_top(&x);
    crash(&x);
    expect(&x, "t-0-delete/kept", "kept");
    expect(&x, "t-0-delete/new", NULL);
    expect(&x, "t-0/kept", NULL);
    /* and back when the rename itself was not saved */
    assert_int_equal(fs_rename(x.fs, temp_dir_path(&x.d, "t-0-delete"), temp_dir_path(&x.d, "t-1")),
                     0);
    assert_int_equal(fs_remove_tree(x.fs, temp_dir_path(&x.d, "t-1")), 0);
    crash(&x);
    expect(&x, "t-0-delete/kept", "kept");
    tear_down(&x);
}

static void a_rename_across_folders_is_saved_by_the_new_one(void **state)
{
    struct fixture x;
    set_up(&x);
    assert_int_equal(fs_mkdir_p(x.fs, temp_dir_path(&x.d, "a")), 0);
    assert_int_equal(fs_mkdir_p(x.fs, temp_dir_path(&x.d, "b")), 0);
    file_unref(open_file(&x, "a/f", O_CREAT));
    file_unref(open_file(&x, "a/g", O_CREAT));
    assert_int_equal(fs_rename(x.fs, temp_dir_path(&x.d, "a/f"), temp_dir_path(&x.d, "b/f")), 0);
    assert_int_equal(fs_sync_dir(x.fs, temp_dir_path(&x.d, "b")), 0);
    crash(&x);
    expect(&x, "b/f", "");
    expect(&x, "a/f", NULL);
    expect(&x, "a/g", NULL);
    tear_down(&x);
}

static void a_crash_touches_its_folder_only(void **state)
{
    struct fixture x;
    set_up(&x);
    assert_int_equal(fs_mkdir(x.fs, temp_dir_path(&x.d, "one")), 0);
    assert_int_equal(fs_mkdir(x.fs, temp_dir_path(&x.d, "two")), 0);
    struct file *f = open_file(&x, "two/f", O_CREAT);
    put(f, "two", 0);
    file_unref(open_file(&x, "one/f", O_CREAT));
    assert_int_equal(fs_fault_crash(x.fault, temp_dir_path(&x.d, "one"), FS_CRASH_DROP, 0), 0);
    expect(&x, "one/f", NULL);
    expect(&x, "two/f", "two");
    file_unref(f);
    tear_down(&x);
}

static void after_a_failed_sync_a_later_one_saves_nothing(void **state)
{
    struct fixture x;
    set_up(&x);
    on_disk(&x, "a", "old");
    struct file *f = open_file(&x, "a", 0);
    put(f, "new", 0);
    fs_fault_add(x.fault, (struct fs_fault_rule){.call = FS_SYNC, .times = 1, .error = EIO});
    assert_int_equal(file_sync(f), -EIO);
    assert_int_equal(file_sync(f), 0); /* who tries again is told a lie */
    file_unref(f);
    crash(&x);
    expect(&x, "a", "old");
    f = open_file(&x, "a", 0); /* the machine has started anew */
    put(f, "NEW", 0);
    assert_int_equal(file_sync(f), 0);
    file_unref(f);
    crash(&x);
    expect(&x, "a", "NEW");
    tear_down(&x);
}

/* Mapped files */

static void unsynced_parts_of_mappings_vanish(void **state)
{
    enum { LEN = 3 * 4096 };
    struct fixture x;
    void *p;
    char got[5];
    set_up(&x);
    struct file *f = open_file(&x, "a", O_CREAT);
    sync_top(&x);
    assert_int_equal(file_allocate(f, 0, LEN), 0);
    assert_int_equal(file_map(f, LEN, true, &p), 0);
    char *m = p;
    m[0] = 'a';
    assert_int_equal(file_msync(f, m, LEN), 0);
    m[0] = 'b';
    m[4096] = 'c';
    assert_int_equal(file_sync(f), 0); /* writes mapped pages back too */
    m[4096] = 'd';
    m[LEN - 1] = 'e';
    m[1] = 'f';
    assert_int_equal(file_msync(f, m, 4096), 0); /* a part only: promises nothing about the rest */
    m[2] = 'g';
    assert_int_equal(file_unmap(f, p, LEN), 0);
    file_unref(f);
    crash(&x);
    f = open_file(&x, "a", 0);
    assert_int_equal(file_pread(f, &got[0], 3, 0), 3);
    assert_int_equal(file_pread(f, &got[3], 1, 4096), 1);
    assert_int_equal(file_pread(f, &got[4], 1, LEN - 1), 1);
    assert_memory_equal(got, "bf\0c\0", 5);
    file_unref(f);
    tear_down(&x);
}

/* An index is cut to its size while it is mapped; pages behind the end must not be touched. */
static void a_mapped_file_may_be_cut(void **state)
{
    enum { LEN = 4 * 4096 };
    struct fixture x;
    struct file_stat st;
    void *p;
    char c;
    set_up(&x);
    struct file *f = open_file(&x, "a", O_CREAT);
    sync_top(&x);
    assert_int_equal(file_truncate(f, LEN), 0);
    assert_int_equal(file_sync(f), 0);
    assert_int_equal(file_map(f, LEN, true, &p), 0);
    ((char *)p)[0] = 'a';
    ((char *)p)[LEN - 1] = 'z';
    assert_int_equal(file_truncate(f, 100), 0);
    ((char *)p)[1] = 'b';
    assert_int_equal(file_unmap(f, p, LEN), 0);
    file_unref(f);
    crash(&x);
    f = open_file(&x, "a", 0);
    assert_int_equal(file_stat(f, &st), 0);
    assert_int_equal(st.size, LEN);
    assert_int_equal(file_pread(f, &c, 1, 0), 1);
    assert_int_equal(c, 0);
    assert_int_equal(file_pread(f, &c, 1, LEN - 1), 1);
    assert_int_equal(c, 0);
    file_unref(f);
    tear_down(&x);
}

/* Power cuts and torn crashes */

static void after_a_power_cut_nothing_changes(void **state)
{
    struct fixture x;
    void *p;
    set_up(&x);
    on_disk(&x, "a", "0123");
    struct file *f = open_file(&x, "a", 0);
    assert_int_equal(file_map(f, 4, true, &p), 0);
    ((char *)p)[0] = 'x';
    fs_fault_power_off_at(x.fault, 1);
    assert_int_equal(file_pwrite_all(f, "abcd", 4, 0), -EIO);
    ((char *)p)[1] = 'y';
    assert_int_equal(file_sync(f), -EIO);
    assert_int_equal(fs_unlink(x.fs, temp_dir_path(&x.d, "a")), -EIO);
    assert_int_equal(file_unmap(f, p, 4), 0);
    file_unref(f);
    expect(&x, "a", "x123"); /* what could have reached the disk before */
    crash(&x);
    expect(&x, "a", "0123");
    f = open_file(&x, "a", 0); /* power is on again */
    file_unref(f);
    tear_down(&x);
}

/* The promise of fs_replace, at every point and for many torn crashes. */
static void replace_leaves_the_old_or_the_new(void **state)
{
    struct fixture x;
    int old = 0, new = 0;
    set_up(&x);
    for (uint64_t seed = 0; seed < 40; seed++)
        for (uint64_t n = 1; n < 7; n++) {
            assert_int_equal(fs_replace(x.fs, temp_dir_path(&x.d, "a"), "old", 3), 0);
            fs_fault_power_off_at(x.fault, n);
            int err = fs_replace(x.fs, temp_dir_path(&x.d, "a"), "new text", 8);
            assert_int_equal(
                fs_fault_crash(x.fault, x.d.path, seed ? FS_CRASH_TEAR : FS_CRASH_DROP, seed), 0);
            fs_fault_clear(x.fault);
            char *got;
            size_t len;
            assert_int_equal(fs_read_all(fs_posix(), temp_dir_path(&x.d, "a"), 100, &got, &len), 0);
            bool is_new = strcmp(got, "new text") == 0;
            assert_true(is_new || strcmp(got, "old") == 0);
            assert_true(is_new || err); /* success is for good */
            free(got);
            is_new ? new ++ : old++;
        }
    assert_true(old > 40 && new > 40); /* both were seen */
    tear_down(&x);
}

static void a_torn_file_is_a_first_part_of_what_was_written(void **state)
{
    struct fixture x;
    const char *all = "syncedAAAABBBBCCCC";
    bool seen[32] = {0};
    set_up(&x);
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct file *f = open_file(&x, "a", O_CREAT | O_TRUNC);
        sync_top(&x);
        put(f, "synced", 0);
        assert_int_equal(file_sync(f), 0);
        put(f, "AAAA", 6);
        put(f, "BBBB", 10);
        put(f, "CCCC", 14);
        file_unref(f);
        assert_int_equal(fs_fault_crash(x.fault, x.d.path, FS_CRASH_TEAR, seed), 0);
        char *got;
        size_t len;
        assert_int_equal(fs_read_all(fs_posix(), temp_dir_path(&x.d, "a"), 100, &got, &len), 0);
        assert_in_range(len, 6, 18);
        assert_memory_equal(got, all, len);
        seen[len] = true;
        free(got);
    }
    for (int len = 6; len <= 18; len++)
        assert_true(seen[len]);
    tear_down(&x);
}

static void one_seed_gives_one_crash(void **state)
{
    char *first = NULL;
    for (int round = 0; round < 2; round++) {
        struct fixture x;
        set_up(&x);
        struct file *f = open_file(&x, "a", O_CREAT);
        sync_top(&x);
        for (int i = 0; i < 50; i++)
            put(f, "0123456789", 10 * i);
        file_unref(f);
        assert_int_equal(fs_fault_crash(x.fault, x.d.path, FS_CRASH_TEAR, 12), 0);
        char *got;
        size_t len;
        assert_int_equal(fs_read_all(fs_posix(), temp_dir_path(&x.d, "a"), 1000, &got, &len), 0);
        if (first)
            assert_string_equal(got, first);
        free(first);
        first = got;
        tear_down(&x);
    }
    free(first);
}

static void new_folders_survive_mkdir_p(void **state)
{
    struct fixture x;
    struct file_stat st;
    set_up(&x);
    assert_int_equal(fs_mkdir_p(x.fs, temp_dir_path(&x.d, "a/b/c")), 0);
    assert_int_equal(fs_fault_count(x.fault, FS_SYNC_DIR), 3);
    crash(&x);
    assert_int_equal(fs_stat(fs_posix(), temp_dir_path(&x.d, "a/b/c"), &st), 0);
    tear_down(&x);
}

/* Threads */

static void *write_and_sync(void *arg)
{
    struct file *f = arg;
    for (int i = 0; i < 200; i++) {
        char c = (char)('a' + i % 26);
        if (file_pwrite_all(f, &c, 1, i))
            return f;
        if (i % 20 == 0 && file_sync(f))
            return f;
    }
    return NULL;
}

static void threads_may_use_one_file(void **state)
{
    struct fixture x;
    pthread_t t[4];
    void *bad;
    set_up(&x);
    struct file *f = open_file(&x, "a", O_CREAT);
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, write_and_sync, f);
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    file_unref(f);
    assert_int_equal(fs_fault_count(x.fault, FS_PWRITEV), 800);
    tear_down(&x);
}

UNIT_MAIN(unit_test(without_rules_all_goes_through),
          unit_test(rules_choose_by_call_path_and_number), unit_test(every_call_can_fail),
          unit_test(a_kept_crash_forgets_nothing),
          unit_test(writes_can_be_short_or_stop_in_the_middle), unit_test(a_call_can_be_held_up),
          unit_test(fail_at_visits_each_call_once), unit_test(unsynced_writes_vanish),
          unit_test(unsynced_names_vanish), unit_test(names_of_a_synced_folder_stay),
          unit_test(files_follow_their_renamed_folder),
          unit_test(a_rename_across_folders_is_saved_by_the_new_one),
          unit_test(a_crash_touches_its_folder_only),
          unit_test(after_a_failed_sync_a_later_one_saves_nothing),
          unit_test(unsynced_parts_of_mappings_vanish), unit_test(a_mapped_file_may_be_cut),
          unit_test(after_a_power_cut_nothing_changes),
          unit_test(replace_leaves_the_old_or_the_new),
          unit_test(a_torn_file_is_a_first_part_of_what_was_written),
          unit_test(one_seed_gives_one_crash), unit_test(new_folders_survive_mkdir_p),
          unit_test(threads_may_use_one_file))
