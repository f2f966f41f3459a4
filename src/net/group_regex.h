/* group_regex.h - patterns with groups, as Java reads them: greedy and lazy quantifiers, the first
 * way to match counts (POSIX would take the longest, and give groups other text).
 *
 * Has: literals, . ^ $ | ( ) (?: ) [ ] with ranges and ^, \d \D \w \W \s \S \t, * + ? {m} {m,}
 * {m,n}, each also lazy. Has not, and says so: possessive quantifiers, look-around, back
 * references, flags, \b, \p. Bytes, not characters.
 *
 * Time and memory are bounded by length of pattern times length of text.
 *
 * THREADS  immutable: any. */
#ifndef NET_GROUP_REGEX_H
#define NET_GROUP_REGEX_H

#include <stdbool.h>
#include <stddef.h>

struct group_regex;

enum { GROUP_REGEX_MAX = 10 }; /* groups, the whole match being 0 */

struct group_span {
    int at, end; /* -1: the group took no part */
};

/* 0; -EINVAL with a line in err; -ENOMEM. */
int group_regex_new(const char *pattern, size_t n, struct group_regex **out, char *err,
                    size_t err_n);
void group_regex_free(struct group_regex *r); /* NULL is fine */
int group_regex_groups(const struct group_regex *r);
/* Does all of the text match? 1, 0, or -ENOMEM (also: the text is too long). */
int group_regex_match(const struct group_regex *r, const char *text, size_t n,
                      struct group_span spans[GROUP_REGEX_MAX]);

#endif
