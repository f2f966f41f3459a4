/* node_name.c - see node_name.h. */
#include "metadata/node_name.h"

#include <ctype.h>

static bool is_plain(char c)
{
    return isascii((unsigned char)c) &&
           (isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_');
}

struct str node_name_encode(struct str name, struct arena *a)
{
    static const char hex[] = "0123456789ABCDEF";
    if (str_is_null(name))
        return STR_NULL;
    char *out = arena_alloc(a, (size_t)name.len * 3 + 1), *p = out;
    if (!out)
        return STR_NULL;
    for (int32_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (is_plain((char)c)) {
            *p++ = (char)c;
        } else {
            *p++ = '%';
            *p++ = hex[c >> 4];
            *p++ = hex[c & 15];
        }
    }
    *p = 0;
    return (struct str){out, (int32_t)(p - out)};
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct str node_name_decode(struct str text, struct arena *a, bool *whole)
{
    bool ignored;
    if (!whole)
        whole = &ignored;
    *whole = true;
    if (str_is_null(text))
        return STR_NULL;
    char *out = arena_alloc(a, (size_t)text.len + 1), *p = out;
    if (!out)
        return STR_NULL;
    for (int32_t i = 0; i < text.len; i++) {
        bool begins = text.p[i] == '%';
        bool escape =
            begins && i + 2 < text.len && digit(text.p[i + 1]) >= 0 && digit(text.p[i + 2]) >= 0;
        if (escape) {
            *p++ = (char)(digit(text.p[i + 1]) << 4 | digit(text.p[i + 2]));
            i += 2;
            continue;
        }
        *whole = *whole && !begins;
        *p++ = text.p[i] == '+' ? ' ' : text.p[i];
    }
    *p = 0;
    return (struct str){out, (int32_t)(p - out)};
}
