/* std_fds.c - see std_fds.h. */
#include "base/std_fds.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void std_fds_fill(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* The lowest free number is fd: those below are taken by now. */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            abort();
    }
}
