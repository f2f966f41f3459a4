/* tool_lines.h - lines of a file or terminal, of any bytes and any length, read in large steps.
 * Only
 * '\n' ends a line: a '\r' in front of it is part of the line, so that what goes in comes out. */
#ifndef TOOLS_TOOL_LINES_H
#define TOOLS_TOOL_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct tool_lines {
    int fd; /* borrowed */
    char *buf;
    size_t at, len, cap;
    size_t seen; /* bytes behind `at` that hold no line end */
    bool eof;
};

void tool_lines_init(struct tool_lines *l, int fd);
void tool_lines_fini(struct tool_lines *l);
/* 1: the next line without its end, borrowed until the next call; a last line needs none. 0: no
 * more, or interrupted (tool_on_interrupt). -errno. */
int tool_lines_next(struct tool_lines *l, char **line, size_t *n);

#endif
