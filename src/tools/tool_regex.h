/* tool_regex.h - patterns of topic names as Kafka's tools take them: Java's regular expressions,
 * the whole name must match; in lists a comma stands for `|`. Read by regcomp: what Java has beyond
 * POSIX is translated where there is a like (\d \w (?: and lazy quantifiers), else refused. */
#ifndef TOOLS_TOOL_REGEX_H
#define TOOLS_TOOL_REGEX_H

#include <regex.h>
#include <stdbool.h>

struct tool_regex {
    regex_t re;
};

/* Ends the process with a line when the pattern is not one. commas: a comma means `|`; blanks and
 * quotes around are dropped, too. */
void tool_regex_init(struct tool_regex *r, const char *pattern, bool commas);
bool tool_regex_matches(const struct tool_regex *r, const char *name);
void tool_regex_fini(struct tool_regex *r);

/* __consumer_offsets and __transaction_state. */
bool tool_topic_is_internal(const char *name);

#endif
