/* tool_lines.c - see tool_lines.h. */
#include "tools/tool_lines.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "tools/tool_io.h"

enum { STEP = 256 * 1024 };

void tool_lines_init(struct tool_lines *l, int fd)
{
    *l = (struct tool_lines){.fd = fd};
}

void tool_lines_fini(struct tool_lines *l)
{
    free(l->buf);
}

/* Room for another step behind what is there. */
static int make_room(struct tool_lines *l)
{
    if (l->at > 0) {
        memmove(l->buf, l->buf + l->at, l->len - l->at);
        l->len -= l->at;
        l->at = 0;
    }
    if (l->cap - l->len >= STEP)
        return 0;
    size_t cap = l->cap ? 2 * l->cap : 2 * STEP;
    if (cap > INT32_MAX)
        return -EFBIG;
    char *grown = realloc(l->buf, cap);
    if (!grown)
        return -ENOMEM;
    l->buf = grown;
    l->cap = cap;
    return 0;
}

/* Waits for input or an interrupt; false for the latter. */
static bool await_input(int fd)
{
    struct pollfd p[2] = {{fd, POLLIN, 0}, {tool_interrupt_fd(), POLLIN, 0}};
    while (poll(p, 2, -1) < 0 && errno == EINTR)
        ;
    return !tool_interrupted();
}

static int read_more(struct tool_lines *l)
{
    int rc = make_room(l);
    if (rc < 0)
        return rc;
    if (!await_input(l->fd)) {
        l->len = l->at; /* half a line is not sent */
        l->seen = 0;
        l->eof = true;
        return 0;
    }
    ssize_t n;
    do
        n = read(l->fd, l->buf + l->len, STEP);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    l->len += (size_t)n;
    l->eof = n == 0;
    return 0;
}

static char *find_end(struct tool_lines *l)
{
    size_t from = l->at + l->seen;
    if (from == l->len)
        return NULL;
    char *end = memchr(l->buf + from, '\n', l->len - from);
    l->seen = l->len - l->at;
    return end;
}

int tool_lines_next(struct tool_lines *l, char **line, size_t *n)
{
    char *end;
    while (!(end = find_end(l)) && !l->eof) {
        int rc = read_more(l);
        if (rc < 0)
            return rc;
    }
    l->seen = 0;
    if (!end && l->at == l->len)
        return 0;
    *line = l->buf + l->at;
    *n = end ? (size_t)(end - *line) : l->len - l->at;
    l->at += *n + (end != NULL);
    return 1;
}
