/* Files: whole reads and writes over partial ones, replacing, trees, locks. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temp_dir.h"

static void put(const char *path, const char *text)
{
    struct file *f;
    assert_int_equal(fs_open(fs_posix(), path, O_RDWR | O_CREAT | O_TRUNC, &f), 0);
    assert_int_equal(file_pwrite_all(f, text, strlen(text), 0), 0);
    file_unref(f);
}

static void expect(const char *path, const char *text)
{
    char *got;
    size_t len;
    assert_int_equal(fs_read_all(fs_posix(), path, 1 << 20, &got, &len), 0);
    assert_int_equal(len, strlen(text));
    assert_string_equal(got, text);
    free(got);
}

static void reads_and_writes_at_positions(void **state)
{
    struct temp_dir d;
    struct file *f;
    struct file_stat st;
    char got[16];
    temp_dir_make(&d);
    const char *path = temp_dir_path(&d, "a");
    assert_int_equal(fs_open(fs_posix(), path, O_RDWR, &f), -ENOENT);
    assert_null(f);
    assert_int_equal(fs_open(fs_posix(), path, O_RDWR | O_CREAT | O_EXCL, &f), 0);
    assert_int_equal(fcntl(f->fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    struct iovec iov[] = {{(char[]){"abc"}, 3}, {NULL, 0}, {(char[]){"defg"}, 4}};
    assert_int_equal(file_pwritev_all(f, iov, 3, 2), 0);
    assert_int_equal(file_pread(f, got, sizeof(got), 0), 9);
    assert_memory_equal(got, "\0\0abcdefg", 9);
    assert_int_equal(file_pread(f, got, 2, 8), 1);
    assert_int_equal(file_pread(f, got, 2, 9), 0);
    assert_int_equal(file_truncate(f, 4), 0);
    assert_int_equal(file_allocate(f, 0, 100), 0);
    assert_int_equal(file_sync(f), 0);
    assert_int_equal(file_stat(f, &st), 0);
    assert_int_equal(st.size, 100);
    assert_false(st.is_dir);
    assert_true(st.mtime_ms > 1600000000000);
    static const int64_t times[] = {1700000000123, 0, -1, -1999, 5000};
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        assert_int_equal(file_set_mtime(f, times[i]), 0);
        assert_int_equal(file_stat(f, &st), 0);
        assert_int_equal(st.mtime_ms, times[i]);
    }
    assert_int_equal(file_pwritev_all(f, NULL, 0, 0), 0);
    assert_true(file_pread(f, got, 1, -1) == -EINVAL);
    file_unref(f);
    file_unref(NULL);
    assert_int_equal(fs_open(fs_posix(), path, O_RDWR | O_CREAT | O_EXCL, &f), -EEXIST);
    temp_dir_remove(&d);
}

static void the_last_reference_closes(void **state)
{
    struct temp_dir d;
    struct file *f;
    char got[4];
    temp_dir_make(&d);
    put(temp_dir_path(&d, "a"), "text");
    assert_int_equal(fs_open(fs_posix(), temp_dir_path(&d, "a"), O_RDONLY, &f), 0);
    int fd = f->fd;
    assert_ptr_equal(file_ref(f), f);
    file_unref(f);
    assert_int_equal(fs_unlink(fs_posix(), temp_dir_path(&d, "a")), 0);
    assert_int_equal(file_pread(f, got, 4, 0), 4);
    assert_memory_equal(got, "text", 4);
    file_unref(f);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    temp_dir_remove(&d);
}

static void mappings(void **state)
{
    struct temp_dir d;
    struct file *f;
    void *p;
    char got[4];
    temp_dir_make(&d);
    put(temp_dir_path(&d, "a"), "text");
    assert_int_equal(fs_open(fs_posix(), temp_dir_path(&d, "a"), O_RDWR, &f), 0);
    assert_int_equal(file_map(f, 4, true, &p), 0);
    memcpy(p, "TEXT", 4);
    assert_int_equal(file_msync(f, p, 4), 0);
    assert_int_equal(file_unmap(f, p, 4), 0);
    assert_int_equal(file_pread(f, got, 4, 0), 4);
    assert_memory_equal(got, "TEXT", 4);
    assert_int_equal(file_map(f, 0, true, &p), -EINVAL);
    assert_null(p);
    file_unref(f);
    temp_dir_remove(&d);
}

/* A layer that moves at most `step` bytes a call; 0: none at all. */
static size_t step;

static ssize_t slow_pread(struct file *f, void *p, size_t n, int64_t off)
{
    return fs_posix()->ops->pread(f, p, n < step ? n : step, off);
}

static ssize_t slow_pwritev(struct file *f, const struct iovec *iov, int n, int64_t off)
{
    assert_in_range(n, 1, IOV_MAX);
    assert_true(iov->iov_len > 0);
    if (!step)
        return 0;
    struct iovec one = {iov->iov_base, iov->iov_len < step ? iov->iov_len : step};
    return fs_posix()->ops->pwritev(f, &one, 1, off);
}

static void short_reads_and_writes_are_gone_on_with(void **state)
{
    enum { PIECES = 2500 };
    struct temp_dir d;
    struct file *f;
    struct fs_ops ops = *fs_posix()->ops;
    ops.pread = slow_pread;
    ops.pwritev = slow_pwritev;
    struct fs slow = {&ops};
    static char piece[PIECES][8], got[PIECES * 8];
    struct iovec iov[PIECES];
    temp_dir_make(&d);
    assert_int_equal(fs_open(&slow, temp_dir_path(&d, "a"), O_RDWR | O_CREAT, &f), 0);
    size_t total = 0;
    for (int i = 0; i < PIECES; i++) {
        memset(piece[i], 'a' + i % 26, sizeof(piece[i]));
        iov[i] = (struct iovec){piece[i], (size_t)i % 8};
        total += (size_t)i % 8;
    }
    step = 3;
    assert_int_equal(file_pwritev_all(f, iov, PIECES, 0), 0);
    assert_int_equal(file_pread(f, got, sizeof(got), 0), total);
    char *at = got;
    for (int i = 0; i < PIECES; at += i++ % 8)
        assert_memory_equal(at, piece[i], (size_t)i % 8);
    step = 0;
    assert_int_equal(file_pwrite_all(f, "x", 1, 0), -EIO);
    file_unref(f);
    temp_dir_remove(&d);
}

static void reads_all_up_to_a_limit(void **state)
{
    struct temp_dir d;
    char *got;
    size_t len;
    temp_dir_make(&d);
    put(temp_dir_path(&d, "a"), "12345");
    assert_int_equal(fs_read_all(fs_posix(), temp_dir_path(&d, "a"), 5, &got, &len), 0);
    assert_string_equal(got, "12345");
    free(got);
    assert_int_equal(fs_read_all(fs_posix(), temp_dir_path(&d, "a"), 4, &got, &len), -EFBIG);
    assert_null(got);
    assert_int_equal(fs_read_all(fs_posix(), temp_dir_path(&d, "b"), 4, &got, &len), -ENOENT);
    assert_int_equal(fs_read_all(fs_posix(), d.path, 4, &got, &len), -EISDIR);
    put(temp_dir_path(&d, "a"), "");
    assert_int_equal(fs_read_all(fs_posix(), temp_dir_path(&d, "a"), 0, &got, &len), 0);
    assert_string_equal(got, "");
    free(got);
    temp_dir_remove(&d);
}

/* Nobody has the other end open, or somebody has: the same. */
static void a_pipe_is_no_file_and_is_not_waited_for(void **state)
{
    static const int flags[] = {O_RDONLY, O_RDWR, O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_TRUNC};
    struct temp_dir d;
    struct file *f;
    char *got;
    size_t len;
    temp_dir_make(&d);
    const char *path = temp_dir_path(&d, "a");
    assert_int_equal(mkfifo(path, 0600), 0);
    for (int held = 0; held < 2; held++) {
        int other = held ? open(path, O_RDWR | O_CLOEXEC) : -1;
        for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
            assert_int_equal(fs_open(fs_posix(), path, flags[i], &f), -ESPIPE);
            assert_null(f);
        }
        assert_int_equal(fs_read_all(fs_posix(), path, 100, &got, &len), -ESPIPE);
        if (held)
            close(other);
    }
    temp_dir_remove(&d);
}

static void replaces_whole_files(void **state)
{
    struct temp_dir d;
    struct file_stat st;
    temp_dir_make(&d);
    put(temp_dir_path(&d, "a.tmp"), "left over from before, and longer");
    assert_int_equal(fs_replace(fs_posix(), temp_dir_path(&d, "a"), "one", 3), 0);
    expect(temp_dir_path(&d, "a"), "one");
    assert_int_equal(fs_replace(fs_posix(), temp_dir_path(&d, "a"), "", 0), 0);
    expect(temp_dir_path(&d, "a"), "");
    assert_int_equal(fs_stat(fs_posix(), temp_dir_path(&d, "a.tmp"), &st), -ENOENT);
    assert_int_equal(fs_replace(fs_posix(), temp_dir_path(&d, "no/a"), "x", 1), -ENOENT);
    temp_dir_remove(&d);
}

static int count_names(void *arg, const char *name)
{
    int *n = arg;
    return ++*n == 3 ? 77 : 0;
}

static void overwrites_in_place(void **state)
{
    struct temp_dir d;
    temp_dir_make(&d);
    const char *path = temp_dir_path(&d, "x");
    static const char *const texts[] = {"first", "longer than that", "short", "", "again"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(fs_overwrite(fs_posix(), path, texts[i], strlen(texts[i])), 0);
        expect(path, texts[i]);
    }
    assert_int_equal(fs_overwrite(fs_posix(), temp_dir_path(&d, "no/x"), "", 0), -ENOENT);
    assert_int_equal(fs_replace_unsynced(fs_posix(), path, "new", 3), 0);
    expect(path, "new");
    temp_dir_remove(&d);
}

static void lists_names_until_told_to_stop(void **state)
{
    struct temp_dir d;
    int n = 0;
    temp_dir_make(&d);
    put(temp_dir_path(&d, "a"), "");
    put(temp_dir_path(&d, ".b"), "");
    assert_int_equal(fs_list(fs_posix(), d.path, count_names, &n), 0);
    assert_int_equal(n, 2);
    put(temp_dir_path(&d, "c"), "");
    put(temp_dir_path(&d, "d"), "");
    n = 0;
    assert_int_equal(fs_list(fs_posix(), d.path, count_names, &n), 77);
    assert_int_equal(n, 3);
    assert_int_equal(fs_list(fs_posix(), temp_dir_path(&d, "x"), count_names, &n), -ENOENT);
    temp_dir_remove(&d);
}

static void makes_and_removes_trees(void **state)
{
    struct temp_dir d;
    struct file_stat st;
    temp_dir_make(&d);
    assert_int_equal(fs_mkdir_p(fs_posix(), temp_dir_path(&d, "a//b/c/")), 0);
    assert_int_equal(fs_mkdir_p(fs_posix(), temp_dir_path(&d, "a/b/c")), 0);
    assert_int_equal(fs_stat(fs_posix(), temp_dir_path(&d, "a/b/c"), &st), 0);
    assert_true(st.is_dir);
    put(temp_dir_path(&d, "a/f"), "x");
    assert_int_equal(fs_mkdir_p(fs_posix(), temp_dir_path(&d, "a/f")), -ENOTDIR);
    assert_int_equal(fs_mkdir_p(fs_posix(), temp_dir_path(&d, "a/f/g")), -ENOTDIR);
    assert_int_equal(fs_mkdir_p(fs_posix(), ""), -ENOENT);
    /* a link in the tree goes, what it leads to stays */
    put(temp_dir_path(&d, "kept"), "kept");
    assert_int_equal(symlink(d.path, temp_dir_path(&d, "a/b/link")), 0);
    assert_int_equal(symlink("nowhere", temp_dir_path(&d, "a/b/c/broken")), 0);
    assert_int_equal(fs_remove_tree(fs_posix(), temp_dir_path(&d, "a")), 0);
    assert_int_equal(fs_stat(fs_posix(), temp_dir_path(&d, "a"), &st), -ENOENT);
    expect(temp_dir_path(&d, "kept"), "kept");
    assert_int_equal(fs_remove_tree(fs_posix(), temp_dir_path(&d, "a")), 0);
    assert_int_equal(fs_remove_tree(fs_posix(), temp_dir_path(&d, "kept")), 0);
    temp_dir_remove(&d);
}

static void makes_relative_trees(void **state)
{
    struct temp_dir d;
    char before[PATH_MAX];
    struct file_stat st;
    temp_dir_make(&d);
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(d.path), 0);
    assert_int_equal(fs_mkdir_p(fs_posix(), "x/y"), 0);
    assert_int_equal(fs_replace(fs_posix(), "z", "1", 1), 0);
    assert_int_equal(fs_stat(fs_posix(), "x/y", &st), 0);
    assert_int_equal(chdir(before), 0);
    temp_dir_remove(&d);
}

/* The answer to fs_lock in another process. */
static int lock_elsewhere(const char *path)
{
    int fd, status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(-fs_lock(path, &fd));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void a_lock_keeps_other_processes_out(void **state)
{
    struct temp_dir d;
    struct file_stat st;
    int fd;
    temp_dir_make(&d);
    const char *path = temp_dir_path(&d, ".lock");
    assert_int_equal(fs_lock(path, &fd), 0);
    assert_int_equal(lock_elsewhere(path), -EAGAIN);
    fs_unlock(path, fd);
    assert_int_equal(fs_stat(fs_posix(), path, &st), -ENOENT);
    assert_int_equal(lock_elsewhere(path), 0); /* held until that process ended */
    assert_int_equal(fs_lock(path, &fd), 0);   /* the file that it left is harmless */
    fs_unlock(path, fd);
    assert_int_equal(fs_lock(temp_dir_path(&d, "no/.lock"), &fd), -ENOENT);
    assert_int_equal(fd, -1);
    temp_dir_remove(&d);
}

/* Another process ends between our open and our lock: what we hold then must be what others find.
 */
static void a_lock_is_of_the_file_that_the_name_leads_to(void **state)
{
    struct temp_dir d;
    int fd, ready[2];
    temp_dir_make(&d);
    const char *path = temp_dir_path(&d, ".lock");
    for (int round = 0; round < 3; round++) {
        assert_int_equal(pipe(ready), 0);
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) { /* takes and drops the lock, all the time */
            for (;;) {
                int mine;
                if (fs_lock(path, &mine) == 0)
                    fs_unlock(path, mine);
                ssize_t put = write(ready[1], "x", 1);
                (void)put;
            }
        }
        char c;
        close(ready[1]);
        for (int i = 0; i < 300; i++) {
            assert_int_equal(read(ready[0], &c, 1), 1);
            while (fs_lock(path, &fd) == -EAGAIN)
                ;
            assert_true(fd >= 0);
            assert_int_equal(lock_elsewhere(path), -EAGAIN);
            fs_unlock(path, fd);
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(ready[0]);
    }
    temp_dir_remove(&d);
}

/* Somebody removed the file by hand and another one was locked: ours must not take that away. */
static void an_unlock_leaves_the_file_of_another_one(void **state)
{
    struct temp_dir d;
    struct file_stat st;
    int fd;
    temp_dir_make(&d);
    const char *path = temp_dir_path(&d, ".lock");
    assert_int_equal(fs_lock(path, &fd), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(fs_replace(fs_posix(), path, "", 0), 0);
    fs_unlock(path, fd);
    assert_int_equal(fs_stat(fs_posix(), path, &st), 0);
    temp_dir_remove(&d);
}

static void a_folder_that_does_not_open_was_not_synced(void **state)
{
    struct temp_dir d;
    struct rlimit before, none;
    temp_dir_make(&d);
    assert_int_equal(fs_sync_dir(fs_posix(), d.path), 0);
    assert_int_equal(fs_sync_dir(fs_posix(), temp_dir_path(&d, "no")), -ENOENT);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int err = fs_sync_dir(fs_posix(), d.path);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(err, -EMFILE); /* a shortage: may be tried again */
    temp_dir_remove(&d);
}

/* On a disk (the folder that tests run in), which can drop what it keeps in memory. */
static void what_is_not_in_memory_is_not_waited_for(void **state)
{
    enum { PAGES = 64, PAGE = 4096 };
    static char page[PAGE], got[PAGES * PAGE];
    char path[] = "cold-XXXXXX";
    int fd = mkstemp(path);
    struct file *f;
    void *map;
    assert_true(fd >= 0);
    for (int i = 0; i < PAGES; i++) {
        memset(page, 'a' + i % 26, PAGE);
        assert_int_equal(write(fd, page, PAGE), PAGE);
    }
    assert_int_equal(fs_open(fs_posix(), path, O_RDONLY, &f), 0);
    assert_int_equal(file_pread_now(f, got, sizeof(got), 0), sizeof(got));
    assert_int_equal(file_map(f, sizeof(got), false, &map), 0);
    assert_true(file_in_memory(f, map, sizeof(got)));
    assert_int_equal(file_unmap(f, map, sizeof(got)), 0);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ssize_t n = file_pread_now(f, got, PAGE, 20 * PAGE);
    if (n == -EAGAIN) { /* else this file system cannot tell, or did not drop it */
        assert_int_equal(file_map(f, sizeof(got), false, &map), 0);
        assert_false(file_in_memory(f, map, sizeof(got)));
        assert_int_equal(file_unmap(f, map, sizeof(got)), 0);
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        assert_int_equal(file_pread(f, got, 1, 0), 1);
        n = file_pread_now(f, got, sizeof(got), 0);
        assert_true(n >= PAGE && n <= (ssize_t)sizeof(got)); /* what there is */
        assert_int_equal(file_pread_now(f, got, PAGE, PAGES * PAGE), 0);
    }
    assert_int_equal(file_pread(f, got, sizeof(got), 0), sizeof(got));
    assert_int_equal(file_pread_now(f, got, sizeof(got), 0), sizeof(got));
    for (int i = 0; i < PAGES; i++)
        assert_int_equal(got[i * PAGE], 'a' + i % 26);
    file_unref(f);
    close(fd);
    unlink(path);
}

/* On a disk; in memory there is nothing to read ahead. Thousands of indexes are touched once each.
 */
static void a_touch_of_a_map_costs_one_page(void **state)
{
    enum { SIZE = 8 << 20 };
    static unsigned char in_memory[SIZE / 4096];
    char path[] = "./kafkad-map-XXXXXX"; /* the build's folder: TMPDIR may be memory */
    int fd = mkstemp(path);
    if (fd < 0)
        skip();
    close(fd);
    struct file *f;
    void *p;
    assert_int_equal(fs_open(fs_posix(), path, O_RDWR, &f), 0);
    unlink(path);
    assert_int_equal(file_truncate(f, SIZE), 0);
    assert_int_equal(file_map(f, SIZE, true, &p), 0);
    ((volatile char *)p)[SIZE / 2] = 1;
    assert_int_equal(mincore(p, SIZE, in_memory), 0);
    int pages = 0;
    for (size_t i = 0; i < sizeof(in_memory); i++)
        pages += in_memory[i] & 1;
    assert_in_range(pages, 1, 4); /* the system may take larger pages than 4 KiB */
    file_unmap(f, p, SIZE);
    file_unref(f);
}

UNIT_MAIN(unit_test(reads_and_writes_at_positions), unit_test(the_last_reference_closes),
          unit_test(mappings), unit_test(a_touch_of_a_map_costs_one_page),
          unit_test(short_reads_and_writes_are_gone_on_with), unit_test(reads_all_up_to_a_limit),
          unit_test(a_pipe_is_no_file_and_is_not_waited_for), unit_test(replaces_whole_files),
          unit_test(overwrites_in_place), unit_test(lists_names_until_told_to_stop),
          unit_test(makes_and_removes_trees), unit_test(makes_relative_trees),
          unit_test(a_lock_keeps_other_processes_out),
          unit_test(a_lock_is_of_the_file_that_the_name_leads_to),
          unit_test(an_unlock_leaves_the_file_of_another_one),
          unit_test(a_folder_that_does_not_open_was_not_synced),
          unit_test(what_is_not_in_memory_is_not_waited_for))
