/* tool_usage.c - see tool_usage.h. */
#include "tools/tool_usage.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80, LEFT_MAX = 38, GAP = 2, TEXT_MAX = 1024 };

struct row {
    char left[128];
    char right[TEXT_MAX];
};

static int by_left(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->left, ((const struct row *)b)->left);
}

static void make_row(struct row *row, const struct tool_option *o)
{
    char letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, ", -%c", o->letter);
    if (o->value && o->kind == TOOL_MAYBE)
        snprintf(row->left, sizeof row->left, "--%s%s [%s]", o->name, letter, o->value);
    else if (o->value)
        snprintf(row->left, sizeof row->left, "--%s%s <%s>", o->name, letter, o->value);
    else
        snprintf(row->left, sizeof row->left, "--%s%s", o->name, letter);
    if (o->fallback)
        snprintf(row->right, sizeof row->right, "%s (default: %s)", o->text, o->fallback);
    else
        snprintf(row->right, sizeof row->right, "%s%s", o->required ? "REQUIRED: " : "", o->text);
}

/* The next line of at most `width` columns, broken at a blank where there is one; *at moves past
 * it. */
static int next_line(const char **at, int width, const char **line)
{
    *line = *at;
    int n = (int)strlen(*at);
    if (n <= width) {
        *at += n;
        return n;
    }
    n = width;
    while (n > 0 && (*at)[n] != ' ')
        n--;
    if (n == 0)
        n = width;
    *at += n;
    while (**at == ' ')
        (*at)++;
    return n;
}

static void print_row(FILE *out, const char *left, const char *right, int left_width)
{
    while (*left || *right) {
        const char *l, *r;
        int ln = next_line(&left, left_width, &l);
        int rn = next_line(&right, COLUMNS - left_width - GAP, &r);
        fprintf(out, "%.*s%*s%.*s\n", ln, l, rn ? left_width - ln + GAP : 0, "", rn, r);
    }
}

void tool_usage_print(const struct tool *tool, FILE *out)
{
    size_t n = tool->options_n + 2;
    struct row *rows = calloc(n, sizeof *rows);
    if (!rows)
        return;
    for (size_t i = 0; i < tool->options_n; i++)
        make_row(&rows[i], &tool->options[i]);
    rows[n - 2] = (struct row){"--help", "Print usage information."};
    rows[n - 1] = (struct row){"--version", "Display Kafka version."};
    qsort(rows, n, sizeof *rows, by_left);
    int width = 0;
    for (size_t i = 0; i < n; i++)
        if ((int)strlen(rows[i].left) > width)
            width = (int)strlen(rows[i].left);
    if (width > LEFT_MAX)
        width = LEFT_MAX;
    if (tool->words)
        fprintf(out, "USAGE: %s %s\n", tool->name, tool->words);
    print_row(out, "Option", "Description", width);
    print_row(out, "------", "-----------", width);
    for (size_t i = 0; i < n; i++)
        print_row(out, rows[i].left, rows[i].right, width);
    free(rows);
}

static const char *kind_name(enum tool_kind kind)
{
    switch (kind) {
    case TOOL_FLAG:
        return "flag";
    case TOOL_MAYBE:
        return "maybe";
    case TOOL_TEXTS:
        return "repeated";
    case TOOL_WORDS:
        return "words";
    default:
        return "value";
    }
}

void tool_usage_rows(const struct tool *tool, FILE *out)
{
    struct row row;
    fprintf(out, "about\t%s\n", tool->about);
    if (tool->words)
        fprintf(out, "words\t%s\n", tool->words);
    for (size_t i = 0; i < tool->options_n; i++) {
        const struct tool_option *o = &tool->options[i];
        make_row(&row, o);
        fprintf(out, "option\t%s\t%.1s\t%s\t%s\t%s\n", o->name, o->letter ? &o->letter : "",
                kind_name(o->kind), o->value ? o->value : "", row.right);
    }
}
