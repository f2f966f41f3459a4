/* tool_line_reader.c - see tool_line_reader.h. Shapes of a line: value; key SEP value; headers
 * DELIM value; headers DELIM key SEP value. Separators are strings, that between headers is a
 * regular expression. */
#include "tools/tool_line_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/props.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"

struct line_reader {
    struct props *props;
    bool parse_key, parse_headers, ignore_error;
    const char *key_separator, *headers_delimiter, *headers_key_separator;
    const char *null_marker; /* NULL: none */
    regex_t headers_separator;
    uint64_t line_number;
    kafka_header_t *headers;
    size_t headers_n, headers_cap;
    char error[512];
};

struct part {
    char *p; /* NULL: null */
    size_t n;
};

static const char *get(const struct line_reader *r, const char *key, const char *fallback)
{
    const char *value = props_get(r->props, key);
    return value ? value : fallback;
}

static bool get_bool(const struct line_reader *r, const char *key)
{
    return strcasecmp(get(r, key, "false"), "true") == 0;
}

static void check_separators(const struct line_reader *r, const char *between)
{
    struct {
        const char *name, *value;
    } all[] = {{"key.separator", r->parse_key ? r->key_separator : NULL},
               {"headers.delimiter", r->parse_headers ? r->headers_delimiter : NULL},
               {"headers.separator", r->parse_headers ? between : NULL},
               {"headers.key.separator", r->parse_headers ? r->headers_key_separator : NULL},
               {"null.marker", r->null_marker}};
    enum { ALL = sizeof all / sizeof *all };
    /* The key separator is looked for behind the headers: it may be like one of theirs. */
    for (int i = 0; i < ALL; i++) {
        if (all[i].value && !*all[i].value)
            tool_die("%s must not be empty", all[i].name);
        for (int k = i + 1; k < ALL; k++)
            if ((i > 0 || k == ALL - 1) && all[i].value && all[k].value &&
                strcmp(all[i].value, all[k].value) == 0)
                tool_die("%s and %s may not be equal", all[i].name, all[k].name);
    }
}

struct line_reader *line_reader_new(const char *file, const struct tool_texts *pairs)
{
    struct line_reader *r = calloc(1, sizeof *r);
    if (!r || !(r->props = props_new()))
        tool_die("out of memory");
    tool_props(r->props, file, pairs);
    r->parse_key = get_bool(r, "parse.key");
    r->parse_headers = get_bool(r, "parse.headers");
    r->ignore_error = get_bool(r, "ignore.error");
    r->key_separator = get(r, "key.separator", "\t");
    r->headers_delimiter = get(r, "headers.delimiter", "\t");
    r->headers_key_separator = get(r, "headers.key.separator", ":");
    r->null_marker = get(r, "null.marker", NULL);
    const char *between = get(r, "headers.separator", ",");
    check_separators(r, between);
    if (regcomp(&r->headers_separator, between, REG_EXTENDED) != 0)
        tool_die("headers.separator=%s: not a regular expression", between);
    return r;
}

void line_reader_free(struct line_reader *r)
{
    regfree(&r->headers_separator);
    props_free(r->props);
    free(r->headers);
    free(r);
}

static bool is_marker(const struct line_reader *r, struct part s)
{
    return r->null_marker && s.n == strlen(r->null_marker) && memcmp(s.p, r->null_marker, s.n) == 0;
}

/* Takes what stands in front of the separator off `rest`. false: there is none. */
static bool cut(struct part *rest, const char *separator, struct part *out)
{
    size_t n = strlen(separator);
    char *at = memmem(rest->p, rest->n, separator, n);
    if (!at)
        return false;
    *out = (struct part){rest->p, (size_t)(at - rest->p)};
    rest->p = at + n;
    rest->n -= out->n + n;
    return true;
}

static const char *complain(struct line_reader *r, const char *what, struct part line)
{
    snprintf(r->error, sizeof r->error, "No %s found on line number %llu: '%.*s'", what,
             (unsigned long long)r->line_number, line.n > 200 ? 200 : (int)line.n, line.p);
    return r->error;
}

static bool grow_headers(struct line_reader *r)
{
    if (r->headers_n < r->headers_cap)
        return true;
    size_t cap = r->headers_cap ? 2 * r->headers_cap : 16;
    kafka_header_t *grown = realloc(r->headers, cap * sizeof *grown);
    if (!grown)
        return false;
    r->headers = grown;
    r->headers_cap = cap;
    return true;
}

/* One `key:value`. A byte behind the key becomes its NUL: that of the separator. */
static const char *add_header(struct line_reader *r, struct part pair)
{
    struct part key, value = pair;
    if (!grow_headers(r))
        return "out of memory";
    bool found = cut(&value, r->headers_key_separator, &key);
    if (!found && !r->ignore_error)
        return complain(r, "header key separator", pair);
    if (!found)
        key = pair;
    if (is_marker(r, key))
        return "Header keys should not be equal to the null marker, as they can't be null";
    bool null = !found || is_marker(r, value);
    key.p[key.n] = 0;
    r->headers[r->headers_n++] = (kafka_header_t){key.p, null ? NULL : value.p, null ? 0 : value.n};
    return NULL;
}

static const char *split_headers(struct line_reader *r, struct part all)
{
    while (all.n > 0) {
        regmatch_t m = {0, (regoff_t)all.n};
        struct part pair = all;
        if (regexec(&r->headers_separator, all.p, 1, &m, REG_STARTEND) == 0 && m.rm_eo > m.rm_so) {
            pair.n = (size_t)m.rm_so;
            all.p += m.rm_eo;
            all.n -= (size_t)m.rm_eo;
        } else {
            all.n = 0;
        }
        const char *wrong = add_header(r, pair);
        if (wrong)
            return wrong;
    }
    return NULL;
}

const char *line_reader_parse(struct line_reader *r, char *line, size_t n, kafka_record_t *out)
{
    struct part whole = {line, n}, rest = whole, headers = {NULL, 0}, key = {NULL, 0};
    r->line_number++;
    r->headers_n = 0;
    if (r->parse_headers && !cut(&rest, r->headers_delimiter, &headers) && !r->ignore_error)
        return complain(r, "headers delimiter", whole);
    if (r->parse_key && !cut(&rest, r->key_separator, &key) && !r->ignore_error)
        return complain(r, "key separator", whole);
    if (headers.p && !is_marker(r, headers)) {
        const char *wrong = split_headers(r, headers);
        if (wrong)
            return wrong;
    }
    bool no_key = !key.p || is_marker(r, key), no_value = is_marker(r, rest);
    out->key = no_key ? NULL : key.p;
    out->key_len = no_key ? 0 : key.n;
    out->value = no_value ? NULL : rest.p;
    out->value_len = no_value ? 0 : rest.n;
    out->headers = r->headers;
    out->headers_n = r->headers_n;
    return NULL;
}
