/* tool_table.c - tables of kafka-transactions: see tool_transactions.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_io.h"
#include "tools/tool_transactions.h"
#include "tools/tool_visible.h"

struct tool_table {
    size_t columns, n, cap;
    char **v; /* values, the header's first */
};

static void add(struct tool_table *t, char *value)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->v = realloc(t->v, t->cap * sizeof *t->v);
    }
    if (!value || !t->v)
        tool_die("out of memory");
    t->v[t->n++] = value;
}

struct tool_table *tool_table_new(const char *const *header, size_t columns)
{
    struct tool_table *t = calloc(1, sizeof *t);
    if (!t)
        tool_die("out of memory");
    t->columns = columns;
    for (size_t i = 0; i < columns; i++)
        add(t, strdup(header[i]));
    return t;
}

void tool_table_put(struct tool_table *t, const char *fmt, ...)
{
    va_list args;
    char *value = NULL;
    va_start(args, fmt);
    if (vasprintf(&value, fmt, args) < 0)
        value = NULL;
    va_end(args);
    const char *shown = tool_shown(value);
    if (shown != value)
        free(value);
    add(t, (char *)shown); /* what it owns, one way or the other */
}

void tool_table_print(struct tool_table *t)
{
    int *widths = calloc(t->columns, sizeof *widths);
    if (!widths)
        tool_die("out of memory");
    for (size_t i = 0; i < t->n; i++) {
        int len = (int)strlen(t->v[i]);
        if (len > widths[i % t->columns])
            widths[i % t->columns] = len;
    }
    for (size_t i = 0; i < t->n; i++) {
        size_t column = i % t->columns;
        printf("%-*s\t%s", widths[column], t->v[i], column + 1 == t->columns ? "\n" : "");
        free(t->v[i]);
    }
    free(widths);
    free(t->v);
    free(t);
}
