/* java_regex.h - patterns of names as Java users write them, read by regcomp: the whole name must
 * match; what Java has beyond POSIX is translated where there is a like (\d \w (?: and lazy
 * quantifiers). */
#ifndef BASE_JAVA_REGEX_H
#define BASE_JAVA_REGEX_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct java_regex {
    regex_t re;
};

/* commas: a comma means `|`; blanks and quotes are dropped, too. 0; -EINVAL with a line in err when
 * the pattern is not one; -ENOMEM. */
int java_regex_init(struct java_regex *r, const char *pattern, bool commas, char *err,
                    size_t err_n);
bool java_regex_matches(const struct java_regex *r, const char *name);
void java_regex_fini(struct java_regex *r);

#endif
