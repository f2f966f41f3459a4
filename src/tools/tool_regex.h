/* tool_regex.h - patterns of topic names as Kafka's tools take them (base/java_regex.h); a bad one
 * ends the process. */
#ifndef TOOLS_TOOL_REGEX_H
#define TOOLS_TOOL_REGEX_H

#include <stdbool.h>

#include "base/java_regex.h"

struct tool_regex {
    struct java_regex re;
};

/* Ends the process with a line when the pattern is not one. commas: a comma means `|`; blanks and
 * quotes around are dropped, too. */
void tool_regex_init(struct tool_regex *r, const char *pattern, bool commas);
bool tool_regex_matches(const struct tool_regex *r, const char *name);
void tool_regex_fini(struct tool_regex *r);

/* __consumer_offsets and __transaction_state. */
bool tool_topic_is_internal(const char *name);

#endif
