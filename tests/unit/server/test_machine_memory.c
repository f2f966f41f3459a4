/* The files that tell how much memory there is, in a folder that stands for the machine. */
#include "server/machine_memory.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/conn_limits.h"
#include "unit.h"

static char root[64];

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof(root), "%.40s/memory-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(root) ? 0 : -1;
}

static int forget(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    return remove(path);
}

static int teardown(void **state)
{
    return nftw(root, forget, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void of_the_machine(void **state)
{
    assert_true(machine_memory(root) == 0);
    put("proc/meminfo", "MemTotal:        1024 kB\nMemFree: 5 kB\n");
    assert_true(machine_memory(root) == 1 << 20);
    put("proc/self/cgroup", "nonsense\n:\n0::/\n");
    assert_true(machine_memory(root) == 1 << 20);
    put("proc/meminfo", "MemTotal: 99999999999999999999999 kB\n");
    assert_true(machine_memory(root) == 0);
}

static void of_the_group_and_those_above(void **state)
{
    put("proc/meminfo", "MemTotal: 1024 kB\n");
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_true(machine_memory(root) == 1 << 20);
    put("sys/fs/cgroup/a/b/memory.max", "524288\n");
    assert_true(machine_memory(root) == 524288);
    put("sys/fs/cgroup/a/memory.max", "262144\n");
    assert_true(machine_memory(root) == 262144);
    put("sys/fs/cgroup/memory.max", "131072\n"); /* as a container sees its own */
    assert_true(machine_memory(root) == 131072);
    put("sys/fs/cgroup/memory.max", "9223372036854771712\n");
    assert_true(machine_memory(root) == 262144);
}

static void of_the_first_version(void **state)
{
    put("proc/meminfo", "MemTotal: 1024 kB\n");
    put("proc/self/cgroup", "4:cpu,memory:/x\n3:cpuset:/\n0::/\n");
    put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "65536\n");
    assert_true(machine_memory(root) == 65536);
}

static void of_this_machine(void **state)
{
    assert_true(machine_memory("") > 0);
}

static void answers_hold_no_more_than_a_quarter(void **state)
{
    const uint64_t mib = 1 << 20;
    assert_int_equal(conn_limits_answers(256 * mib, 0), 256 * mib);
    assert_int_equal(conn_limits_answers(256 * mib, 4096 * mib), 256 * mib);
    assert_int_equal(conn_limits_answers(256 * mib, 512 * mib), 128 * mib);
    assert_int_equal(conn_limits_answers(256 * mib, 1), 8 * mib);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
UNIT_MAIN(T(of_the_machine), T(of_the_group_and_those_above), T(of_the_first_version),
          T(of_this_machine), T(answers_hold_no_more_than_a_quarter))
