/* topic_name.c - which topic names are legal, which collide, which are internal. */
#include "metadata/metadata_cache.h"

enum { NAME_MAX_BYTES = 249 };

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

const char *topic_name_problem(struct str name)
{
    if (name.len <= 0)
        return "the empty string is not allowed";
    if (str_eqz(name, ".") || str_eqz(name, ".."))
        return "'.' or '..' is not allowed";
    if (name.len > NAME_MAX_BYTES)
        return "its length is longer than the max allowed length 249";
    for (int32_t i = 0; i < name.len; i++)
        if (!name_char(name.p[i]))
            return "it contains one or more characters other than ASCII alphanumerics, '.', '_' "
                   "and '-'";
    return NULL;
}

bool topic_names_collide(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (int32_t i = 0; i < a.len; i++) {
        char x = a.p[i] == '.' ? '_' : a.p[i], y = b.p[i] == '.' ? '_' : b.p[i];
        if (x != y)
            return false;
    }
    return true;
}

bool topic_is_internal(struct str name)
{
    return str_eqz(name, "__consumer_offsets") || str_eqz(name, "__transaction_state");
}
