/* tool_visible.h - text that others wrote (a broker's message, names of topics, groups, clients),
 * shown so that it cannot steer the terminal it is read on. */
#ifndef TOOLS_TOOL_VISIBLE_H
#define TOOLS_TOOL_VISIBLE_H

/* `text` with each control character as \xNN, also those of C1 (U+0080 to U+009F) and DEL; newlines
 * and tabs are left, as our own messages have them. Everything else is as it came. Returns owned
 * (free); NULL without memory. @thread any */
char *tool_visible(const char *text);

#endif
