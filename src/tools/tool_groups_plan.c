#include "tools/tool_groups_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_io.h"

enum { FIELDS = 4 };

/* Cuts the next field off *at, in place. false: a quote without its end, or text behind one. */
static bool next_field(char **at, char **field)
{
    char *p = *at, *to;
    if (*p != '"') {
        *field = p;
        p += strcspn(p, ",");
    } else {
        *field = to = ++p;
        while (*p && !(*p == '"' && p[1] != '"')) {
            p += *p == '"'; /* two of them stand for one */
            *to++ = *p++;
        }
        if (*p++ != '"' || (*p && *p != ','))
            return false;
        *to = 0;
    }
    *at = *p ? p + 1 : NULL;
    *p = 0;
    return true;
}

/* NULL, or what is wrong with the line. */
static const char *parse_row(char *line, bool one_group, struct plan_row *row)
{
    char *fields[FIELDS], *at = line;
    int64_t partition;
    int n = 0;
    for (; at; n++)
        if (n == FIELDS || !next_field(&at, &fields[n]))
            return "not a row of fields by commas";
    if (n != FIELDS && !(n == FIELDS - 1 && one_group))
        return one_group ? "topic,partition,offset is wanted"
                         : "group,topic,partition,offset is wanted";
    char **rest = fields + n - 3;
    if (!tool_int_of(rest[1], &partition) || partition < 0 || partition > INT32_MAX)
        return "the partition is not a number";
    if (!tool_int_of(rest[2], &row->offset))
        return "the offset is not a number";
    row->partition = (int32_t)partition;
    row->group = n == FIELDS ? strdup(fields[0]) : NULL;
    row->topic = strdup(rest[0]);
    return NULL;
}

static void add(struct plan_file *f, struct plan_row row)
{
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 64;
        f->v = realloc(f->v, f->cap * sizeof *f->v);
    }
    if (!f->v || !row.topic)
        tool_die("out of memory");
    f->v[f->n++] = row;
}

struct plan_file plan_file_read(const char *path, bool one_group)
{
    struct plan_file f = {0};
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    FILE *in = fopen(path, "r");
    if (!in)
        tool_die("%s: %s", path, strerror(errno));
    for (int number = 1; (n = getline(&line, &cap, in)) >= 0; number++) {
        struct plan_row row;
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            line[--n] = 0;
        if (n == 0)
            continue;
        const char *wrong =
            strlen(line) != (size_t)n ? "it holds a NUL" : parse_row(line, one_group, &row);
        if (wrong)
            tool_die("%s, line %d: %s", path, number, wrong);
        add(&f, row);
    }
    if (ferror(in))
        tool_die("%s: %s", path, strerror(errno));
    free(line);
    fclose(in);
    return f;
}

void plan_file_free(struct plan_file *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->v[i].group);
        free(f->v[i].topic);
    }
    free(f->v);
}

void plan_put_field(FILE *out, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n ")]) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++)
        fputs((char[]){*text, *text == '"' ? '"' : 0, 0}, out);
    fputc('"', out);
}
