/* A process started without standard descriptors: nothing it opens later gets their numbers. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/std_fds.h"
#include "unit.h"

/* Bit fd: that descriptor is closed. Exit status 0 when all is well. */
static void be_started_without(unsigned closed)
{
    char byte = 0;
    for (int fd = 0; fd <= 2; fd++)
        if (closed & (1u << fd))
            close(fd);
    std_fds_fill();
    int next = open("/dev/null", O_RDWR);
    int wrong = next <= 2;
    for (int fd = 0; fd <= 2; fd++)
        if (closed & (1u << fd)) {
            ssize_t n = fd == 0 ? read(fd, &byte, 1) : write(fd, &byte, 1);
            wrong |= n != -1 || errno != EBADF;
        }
    _exit(wrong);
}

static void closed_ones_are_taken(void **state)
{
    (void)state;
    for (unsigned closed = 0; closed < 8; closed++) {
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            be_started_without(closed);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

static void open_ones_stay(void **state)
{
    int ends[2];
    char byte = 0;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], 1);
        std_fds_fill();
        _exit(write(1, "x", 1) != 1);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(byte, 'x');
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
    close(ends[1]);
}

UNIT_MAIN(unit_test(closed_ones_are_taken), unit_test(open_ones_stay))
