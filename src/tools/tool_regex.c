/* tool_regex.c - see tool_regex.h. */
#include "tools/tool_regex.h"

#include <string.h>

#include "tools/tool_io.h"

void tool_regex_init(struct tool_regex *r, const char *pattern, bool commas)
{
    char why[256] = "out of memory";
    if (java_regex_init(&r->re, pattern, commas, why, sizeof why) < 0)
        tool_die("%s is an invalid regex: %s", pattern, why);
}

bool tool_regex_matches(const struct tool_regex *r, const char *name)
{
    return java_regex_matches(&r->re, name);
}

void tool_regex_fini(struct tool_regex *r)
{
    java_regex_fini(&r->re);
}

bool tool_topic_is_internal(const char *name)
{
    return strcmp(name, "__consumer_offsets") == 0 || strcmp(name, "__transaction_state") == 0;
}
