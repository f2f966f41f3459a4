/* tool_date.c - see tool_date.h. */
#include "tools/tool_date.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int value_of(char letter, const struct tm *tm, int ms)
{
    switch (letter) {
    case 'y':
        return tm->tm_year + 1900;
    case 'M':
        return tm->tm_mon + 1;
    case 'd':
        return tm->tm_mday;
    case 'H':
        return tm->tm_hour;
    case 'm':
        return tm->tm_min;
    case 's':
        return tm->tm_sec;
    default:
        return ms;
    }
}

void tool_date(char *out, size_t n, const char *pattern, int64_t wall_ms)
{
    struct tm tm;
    time_t seconds = (time_t)(wall_ms / 1000);
    size_t at = 0;
    localtime_r(&seconds, &tm);
    while (*pattern && at + 24 < n) {
        if (*pattern == '\'') {
            size_t quoted = strcspn(pattern + 1, "'");
            for (size_t i = 0; i < quoted && at + 24 < n; i++)
                out[at++] = pattern[1 + i];
            pattern += 1 + quoted + (pattern[1 + quoted] == '\'');
        } else if (strchr("yMdHmsS", *pattern)) {
            char letter = *pattern;
            int width = (int)strspn(pattern, (char[]){letter, 0});
            int value = value_of(letter, &tm, (int)(wall_ms % 1000));
            pattern += width;
            if (letter == 'y' && width == 2)
                value %= 100;
            at += (size_t)snprintf(out + at, n - at, "%0*d", width > 16 ? 16 : width, value);
        } else {
            out[at++] = *pattern++;
        }
    }
    out[at] = 0;
}
