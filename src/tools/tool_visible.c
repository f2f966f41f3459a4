/* tool_visible.c - see tool_visible.h. */
#include "tools/tool_visible.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_control(unsigned char c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
}

/* U+0080 to U+009F as UTF-8: 0xc2 and the character itself. */
static bool is_c1(const unsigned char *at)
{
    return at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f;
}

char *tool_visible(const char *text)
{
    static const char digits[] = "0123456789abcdef";
    char *shown = malloc(4 * strlen(text) + 1), *out = shown;
    if (!shown)
        return NULL;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        bool c1 = is_c1(at);
        at += c1;
        if (c1 || is_control(*at)) {
            *out++ = '\\';
            *out++ = 'x';
            *out++ = digits[*at >> 4];
            *out++ = digits[*at & 15];
        } else {
            *out++ = (char)*at;
        }
    }
    *out = 0;
    return shown;
}
