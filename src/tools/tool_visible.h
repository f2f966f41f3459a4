/* tool_visible.h - text that others wrote (a broker's message, names of topics, groups, clients),
 * shown so that it cannot steer the terminal it is read on. */
#ifndef TOOLS_TOOL_VISIBLE_H
#define TOOLS_TOOL_VISIBLE_H

#include <stdarg.h>
#include <stdio.h>

/* `text` with each control character as \xNN, also those of C1 (U+0080 to U+009F) and DEL; newlines
 * and tabs are left, as our own messages have them. Everything else is as it came. Returns owned
 * (free); NULL without memory. @thread any */
char *tool_visible(const char *text);
/* One value, as it stands in a line or a table: newlines and tabs are shown, too, so that a name
 * cannot pass for a further line. NULL stays NULL. Borrowed until the process ends: `text` itself
 * when there is nothing to show, else a copy that nobody frees. Ends the process without memory.
 * @thread any */
const char *tool_shown(const char *text);
/* fprintf of a text that may quote a broker: what it makes is told as by tool_visible. */
void tool_print_visible(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tool_vprint_visible(FILE *out, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

#endif
