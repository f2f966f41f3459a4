/* tool_elections.h - what became of elections, as the tools print it. */
#ifndef TOOLS_TOOL_ELECTIONS_H
#define TOOLS_TOOL_ELECTIONS_H

#include <kafka/admin.h>

/* Three kinds of lines: elected, not needed, failed. what: "leader election (PREFERRED)"; replicas:
 * "replica(s)", for the last line on standard error. Returns the exit status. */
int tool_elections_print(const kafka_elections_t *e, const char *what, const char *replicas);

#endif
