/* tool_visible.c - see tool_visible.h. */
#include "tools/tool_visible.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_io.h"

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

/* U+0080 to U+009F as UTF-8: 0xc2 and the character itself. */
static bool is_c1(const unsigned char *at)
{
    return at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f;
}

/* `left`: characters that are left as they are. Their number that are not; `out` may be NULL. */
static size_t show(const char *text, const char *left, char *out)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        bool c1 = is_c1(at), is_shown = c1 || (is_control(*at) && !strchr(left, *at));
        at += c1;
        n += is_shown;
        if (out && is_shown)
            out = mempcpy(out, (char[]){'\\', 'x', digits[*at >> 4], digits[*at & 15]}, 4);
        else if (out)
            *out++ = (char)*at;
    }
    if (out)
        *out = 0;
    return n;
}

static char *shown(const char *text, const char *left)
{
    char *out = malloc(strlen(text) + 3 * show(text, left, NULL) + 1);
    if (out)
        show(text, left, out);
    return out;
}

char *tool_visible(const char *text)
{
    return shown(text, "\n\t");
}

const char *tool_shown(const char *text)
{
    if (!text || show(text, "", NULL) == 0)
        return text;
    char *copy = shown(text, "");
    if (!copy)
        tool_die("out of memory");
    return copy;
}

void tool_vprint_visible(FILE *out, const char *fmt, va_list ap)
{
    char *text = NULL, *visible = vasprintf(&text, fmt, ap) < 0 ? NULL : tool_visible(text);
    if (!visible)
        tool_die("out of memory");
    fputs(visible, out);
    free(visible);
    free(text);
}

void tool_print_visible(FILE *out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tool_vprint_visible(out, fmt, ap);
    va_end(ap);
}
