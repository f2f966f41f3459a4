/* The hash map, and a hash that nobody outside can aim at. */
#include "base/hmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

struct entry {
    struct hnode node;
    int key;
    bool in;
};

static bool key_equals(const struct hnode *node, const void *key)
{
    return hmap_entry(node, struct entry, node)->key == *(const int *)key;
}

static struct entry *find(struct hmap *m, int key)
{
    struct hnode *n = hmap_find(m, hash_int((uint64_t)key), key_equals, &key);
    return n ? hmap_entry(n, struct entry, node) : NULL;
}

static void puts_finds_and_removes_like_an_array(void **state)
{
    enum { N = 1000 };
    struct hmap m;
    struct entry *e = calloc(N, sizeof(*e));
    size_t n = 0;
    hmap_init(&m);
    assert_null(find(&m, 1));
    assert_null(hmap_first(&m));
    srandom(4);
    for (int step = 0; step < 20000; step++) {
        int k = (int)(random() % N);
        assert_ptr_equal(find(&m, k), e[k].in ? &e[k] : NULL);
        if (e[k].in) {
            hmap_remove(&m, &e[k].node);
            n--;
        } else {
            e[k].key = k;
            assert_int_equal(hmap_put(&m, &e[k].node, hash_int((uint64_t)k)), 0);
            n++;
        }
        e[k].in = !e[k].in;
        assert_int_equal(m.n, n);
    }
    size_t walked = 0;
    hmap_each (it, &m) {
        assert_true(hmap_entry(it, struct entry, node)->in);
        walked++;
    }
    assert_int_equal(walked, n);
    for (struct hnode *it = hmap_first(&m), *next; it; it = next) {
        next = hmap_next(&m, it);
        hmap_remove(&m, it);
    }
    assert_int_equal(m.n, 0);
    assert_null(hmap_first(&m));
    hmap_free(&m);
    free(e);
}

static void equal_hashes_are_told_apart_by_key(void **state)
{
    struct hmap m;
    struct entry e[20];
    hmap_init(&m);
    for (int i = 0; i < 20; i++) {
        e[i].key = i;
        hmap_put(&m, &e[i].node, 42);
    }
    for (int i = 0; i < 20; i++)
        assert_ptr_equal(hmap_find(&m, 42, key_equals, &i), &e[i].node);
    hmap_remove(&m, &e[7].node);
    assert_null(hmap_find(&m, 42, key_equals, &(int){7}));
    assert_ptr_equal(hmap_find(&m, 42, key_equals, &(int){6}), &e[6].node);
    hmap_free(&m);
}

/* How full the fullest bucket is when `n` names made by `fmt` are put into about n buckets. */
static int longest_chain(const char *fmt, int n)
{
    int *load = calloc(65536, sizeof(int)), most = 0;
    for (int i = 0; i < n; i++) {
        char name[64];
        int len = snprintf(name, sizeof(name), fmt, i, i);
        int at = ++load[hash_bytes(name, (size_t)len) & 65535];
        if (at > most)
            most = at;
    }
    free(load);
    return most;
}

static void names_of_any_pattern_spread_evenly(void **state)
{
    /* 65536 balls in as many bins: the fullest holds 8 or 9, 16 is beyond all chance */
    static const char *const patterns[] = {"topic-%d", "%d", "%08x", "a%016d-%016d"};
    for (size_t i = 0; i < 4; i++)
        assert_in_range(longest_chain(patterns[i], 65536), 1, 16);
    int load[1024] = {0};
    for (uint64_t i = 0; i < 1024; i++) /* integers that differ in high bits only */
        load[hash_int(i << 48) & 1023]++;
    for (int i = 0; i < 1024; i++)
        assert_in_range(load[i], 0, 16);
}

static void every_length_and_bit_counts(void **state)
{
    uint8_t zeros[64] = {0};
    for (size_t n = 0; n < 64; n++) {
        uint64_t h = hash_bytes(zeros, n);
        assert_true(h != hash_bytes(zeros, n + 1));
        for (size_t bit = 0; bit < 8 * n; bit++) {
            zeros[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_true(hash_bytes(zeros, n) != h);
            zeros[bit / 8] = 0;
        }
        assert_true(hash_bytes(zeros, n) == h);
    }
    assert_true(hash_str(STR_NULL) == hash_str(STR_LIT("")));
}

/* The hash of a fixed name in a process of its own. */
static uint64_t hash_elsewhere(const char *seed)
{
    int fds[2];
    uint64_t h = 0;
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (seed)
            hash_fix_seed(strtoull(seed, NULL, 10));
        h = hash_bytes("topic", 5);
        _exit(write(fds[1], &h, sizeof(h)) == sizeof(h) ? 0 : 1);
    }
    int status;
    assert_int_equal(read(fds[0], &h, sizeof(h)), sizeof(h));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(fds[0]);
    close(fds[1]);
    return h;
}

/* Must run first: children fork before this process has drawn its key. */
static void each_process_hashes_in_its_own_way(void **state)
{
    assert_true(hash_elsewhere(NULL) != hash_elsewhere(NULL));
    assert_true(hash_elsewhere("7") == hash_elsewhere("7"));
    assert_true(hash_elsewhere("7") != hash_elsewhere("8"));
}

UNIT_MAIN(unit_test(each_process_hashes_in_its_own_way),
          unit_test(puts_finds_and_removes_like_an_array),
          unit_test(equal_hashes_are_told_apart_by_key),
          unit_test(names_of_any_pattern_spread_evenly), unit_test(every_length_and_bit_counts))
