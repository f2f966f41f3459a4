/* tool_regex.c - see tool_regex.h. */
#include "tools/tool_regex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_io.h"

static const struct translation {
    const char *java, *posix;
} outside[] =
    {
        {"\\d", "[0-9]"}, {"\\D", "[^0-9]"}, {"(?:", "("},   {"*?", "*"},
        {"+?", "+"},      {"??", "?"},       {"}?", "}"},    {"\\\\", "\\\\"},
        {"\\.", "\\."},   {"\\*", "\\*"},    {"\\+", "\\+"}, {"\\?", "\\?"},
},
  inside[] = {
      /* between brackets POSIX takes a backslash as itself; no topic's name has one */
      {"\\d", "0-9"},
      {"\\w", "A-Za-z0-9_"},
      {"\\s", " "},
      {"\\", ""},
};
enum { OUTSIDE = sizeof outside / sizeof *outside, INSIDE = sizeof inside / sizeof *inside };
enum { LONGEST = 10 }; /* bytes that one step of the translation writes */

static const struct translation *find_translation(const char *at, const struct translation *rows,
                                                  size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(at, rows[i].java, strlen(rows[i].java)) == 0)
            return &rows[i];
    return NULL;
}

static char *translate(const char *pattern, bool commas)
{
    char *out = malloc(LONGEST * strlen(pattern) + 16), *to = out;
    bool bracket = false;
    if (!out)
        tool_die("out of memory");
    to = stpcpy(to, "^(");
    while (*pattern) {
        const struct translation *t = bracket ? find_translation(pattern, inside, INSIDE)
                                              : find_translation(pattern, outside, OUTSIDE);
        if (t) {
            to = stpcpy(to, t->posix);
            pattern += strlen(t->java);
            continue;
        }
        char c = *pattern++;
        bracket = bracket ? c != ']' : c == '[';
        if (commas && c == ',')
            *to++ = '|';
        else if (!commas || !strchr(" \t\"'", c))
            *to++ = c;
    }
    stpcpy(to, ")$");
    return out;
}

void tool_regex_init(struct tool_regex *r, const char *pattern, bool commas)
{
    char *text = translate(pattern, commas);
    int rc = regcomp(&r->re, text, REG_EXTENDED | REG_NOSUB);
    if (rc) {
        char why[256];
        regerror(rc, &r->re, why, sizeof why);
        tool_die("%s is an invalid regex: %s", pattern, why);
    }
    free(text);
}

bool tool_regex_matches(const struct tool_regex *r, const char *name)
{
    return regexec(&r->re, name, 0, NULL, 0) == 0;
}

void tool_regex_fini(struct tool_regex *r)
{
    regfree(&r->re);
}

bool tool_topic_is_internal(const char *name)
{
    return strcmp(name, "__consumer_offsets") == 0 || strcmp(name, "__transaction_state") == 0;
}
