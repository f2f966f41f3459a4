/* topic_regex.h - which topics a pattern means: RE2's syntax as far as it says something about
 * names of topics, run by POSIX regex(3). A name must match as a whole.
 *
 * Names hold only A-Z a-z 0-9 . _ -, so every class is written anew as a set of these, and what can
 * not match any is a class that matches nothing. Look-around, back references and the like, which
 * RE2 has not either, are refused; so is what would make the compiled pattern large. */
#ifndef COORDINATOR_TOPIC_REGEX_H
#define COORDINATOR_TOPIC_REGEX_H

#include "base/str.h"

struct topic_regex;

/* 0; -EINVAL: not a pattern, or too large; -ENOMEM. */
int topic_regex_new(struct str pattern, struct topic_regex **out);
void topic_regex_free(struct topic_regex *r); /* NULL is fine */
bool topic_regex_matches(const struct topic_regex *r, struct str name);

#endif
