/* java_regex.c - see java_regex.h. */
#include "base/java_regex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        return NULL;
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

int java_regex_init(struct java_regex *r, const char *pattern, bool commas, char *err, size_t err_n)
{
    char *text = translate(pattern, commas);
    if (!text)
        return -ENOMEM;
    int rc = regcomp(&r->re, text, REG_EXTENDED | REG_NOSUB);
    free(text);
    if (rc && err_n)
        regerror(rc, &r->re, err, err_n);
    return rc == REG_ESPACE ? -ENOMEM : rc ? -EINVAL : 0;
}

bool java_regex_matches(const struct java_regex *r, const char *name)
{
    return regexec(&r->re, name, 0, NULL, 0) == 0;
}

void java_regex_fini(struct java_regex *r)
{
    regfree(&r->re);
}
