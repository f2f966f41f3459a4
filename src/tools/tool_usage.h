/* tool_usage.h - the table of options that --help and usage errors print: two columns within 80,
 * options in alphabetical order. */
#ifndef TOOLS_TOOL_USAGE_H
#define TOOLS_TOOL_USAGE_H

#include <stdio.h>

#include "tools/tool_options.h"

void tool_usage_print(const struct tool *tool, FILE *out);

/* The same for programs, by tabs: manual.py makes manual pages and shell completion of it. */
void tool_usage_rows(const struct tool *tool, FILE *out);

#endif
