/* config_value.c - see config_value.h. Numbers and booleans are read as Java's parsers do: blanks
 * around them do not count, a sign is fine, hexadecimal is not. */
#include "server/config_value.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/wipe.h"

enum { SHOWN_MAX = 200 }; /* characters of a value that a message repeats */

static const struct {
    const char *name;
    int64_t min, max; /* of whole numbers */
} types[] = {
    [CONFIG_BOOL] = {"boolean", 0, 0},
    [CONFIG_INT] = {"int", INT32_MIN, INT32_MAX},
    [CONFIG_LONG] = {"long", INT64_MIN, INT64_MAX},
    [CONFIG_DOUBLE] = {"double", 0, 0},
    [CONFIG_STRING] = {"string", 0, 0},
    [CONFIG_LIST] = {"list", 0, 0},
    [CONFIG_PASSWORD] = {"password", 0, 0},
    [CONFIG_CLASS] = {"class", 0, 0},
    [CONFIG_SHORT] = {"short", INT16_MIN, INT16_MAX},
};

static struct str trim(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    return (struct str){p, (int32_t)(end - p)};
}

bool config_list_next(const char **at, struct str *element)
{
    if (!*at || !**at)
        return false;
    const char *comma = strchr(*at, ',');
    const char *end = comma ? comma : *at + strlen(*at);
    *element = trim(*at, end);
    *at = comma ? comma + 1 : end;
    return true;
}

static bool whole_number(const char *text, int64_t min, int64_t max, int64_t *out)
{
    const char *digits = text + (*text == '+' || *text == '-');
    if (!isdigit((unsigned char)*digits))
        return false;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *out = v;
    return !errno && !*end && v >= min && v <= max;
}

/* strtod knows hexadecimal and "inf", which Java's parser does not. */
static bool real_number(const char *text, double *out)
{
    if (!*text || strspn(text, "+-0123456789.eE") != strlen(text))
        return false;
    char *end;
    *out = strtod(text, &end);
    return !*end && end != text && isfinite(*out);
}

static bool in_list(struct str s, const struct config_valid *valid)
{
    struct str allowed;
    for (const char *at = valid->one_of; config_list_next(&at, &allowed);) {
        if (allowed.len == s.len && (valid->any_case ? strncasecmp(allowed.p, s.p, (size_t)s.len)
                                                     : strncmp(allowed.p, s.p, (size_t)s.len)) == 0)
            return true;
    }
    return false;
}

static bool in_range(double v, const struct config_valid *valid)
{
    return v >= valid->min && v <= valid->max;
}

/* "a , b" -> "a,b", in place. */
static void join_list(char *text)
{
    char *to = text;
    struct str e;
    for (const char *at = text; config_list_next(&at, &e);) {
        if (to != text)
            *to++ = ',';
        memmove(to, e.p, (size_t)e.len);
        to += e.len;
    }
    *to = 0;
}

static bool list_valid(const char *text, const struct config_valid *valid)
{
    struct str e;
    for (const char *at = text; valid->one_of && config_list_next(&at, &e);)
        if (!in_list(e, valid))
            return false;
    return true;
}

/* Reads v->text, which is trimmed. */
static bool parse_typed(enum config_type type, const struct config_valid *valid,
                        struct config_value *v)
{
    switch (type) {
    case CONFIG_BOOL:
        v->b = strcasecmp(v->text, "true") == 0;
        if (!v->b && strcasecmp(v->text, "false") != 0)
            return false;
        memcpy(v->text, v->b ? "true" : "false", strlen(v->text));
        return true;
    case CONFIG_INT:
    case CONFIG_LONG:
    case CONFIG_SHORT:
        return whole_number(v->text, types[type].min, types[type].max, &v->i) &&
               in_range((double)v->i, valid);
    case CONFIG_DOUBLE:
        return real_number(v->text, &v->d) && in_range(v->d, valid);
    case CONFIG_LIST:
        join_list(v->text);
        return list_valid(v->text, valid);
    case CONFIG_STRING:
    case CONFIG_PASSWORD:
    case CONFIG_CLASS:
        return !valid->one_of || in_list(str_of(v->text), valid);
    }
    return false;
}

static void describe_number(enum config_type type, const struct config_valid *valid,
                            struct buf *out)
{
    buf_printf(out, "%s (%s)", type == CONFIG_DOUBLE ? "a number" : "a whole number",
               types[type].name);
    if (isfinite(valid->min) && isfinite(valid->max))
        buf_printf(out, " from %g to %g", valid->min, valid->max);
    else if (isfinite(valid->min))
        buf_printf(out, " of at least %g", valid->min);
}

void config_valid_describe(enum config_type type, const struct config_valid *valid, struct buf *out)
{
    struct str e;
    bool first = true;
    switch (type) {
    case CONFIG_BOOL:
        buf_printf(out, "true or false");
        return;
    case CONFIG_INT:
    case CONFIG_LONG:
    case CONFIG_SHORT:
    case CONFIG_DOUBLE:
        describe_number(type, valid, out);
        return;
    default:
        break;
    }
    if (!valid->one_of) {
        buf_printf(out, "a %s", types[type].name);
        return;
    }
    buf_printf(out, type == CONFIG_LIST ? "a list of: " : "one of: ");
    for (const char *at = valid->one_of; config_list_next(&at, &e); first = false)
        buf_printf(out, "%s%.*s", first ? "" : ", ", STR_ARG(e));
}

static char *problem_text(const char *name, enum config_type type, const struct config_valid *valid,
                          const char *text, const char *allowed)
{
    struct buf b = BUF_INIT;
    const char *shown = type == CONFIG_PASSWORD ? "[hidden]" : text;
    buf_printf(&b, "Invalid value %.*s%s for configuration %s: must be ", SHOWN_MAX, shown,
               strlen(shown) > SHOWN_MAX ? "..." : "", name);
    if (allowed)
        buf_printf(&b, "%s", allowed);
    else
        config_valid_describe(type, valid, &b);
    buf_put(&b, "", 1);
    if (b.failed) {
        buf_free(&b);
        return NULL;
    }
    size_t len;
    return (char *)buf_take(&b, &len);
}

char *config_value_parse(const char *name, enum config_type type, const struct config_valid *valid,
                         const char *text, struct config_value *out)
{
    *out = (struct config_value){0};
    out->text = str_dup(trim(text, text + strlen(text)));
    if (!out->text)
        return NULL;
    const char *allowed = NULL;
    if (parse_typed(type, valid, out) &&
        (!valid->problem || !(allowed = valid->problem(out->text))))
        return NULL;
    text_wipe_free(out->text);
    *out = (struct config_value){0};
    return problem_text(name, type, valid, text, allowed);
}

/* ---- checks of single values ---- */

const char *config_gzip_level_problem(const char *value)
{
    long v = strtol(value, NULL, 10);
    return v == -1 || (v >= 1 && v <= 9) ? NULL : "a whole number (int) from 1 to 9, or -1";
}

/* 12:3 */
static bool number_pair(struct str s)
{
    int colons = 0, digits = 0;
    for (int32_t i = 0; i < s.len; i++) {
        if (isdigit((unsigned char)s.p[i])) {
            digits++;
        } else if (s.p[i] == ':' && digits > 0) {
            colons++;
            digits = 0;
        } else {
            return false;
        }
    }
    return colons == 1 && digits > 0;
}

const char *config_throttled_replicas_problem(const char *value)
{
    struct str e;
    if (strcmp(value, "*") == 0)
        return NULL;
    for (const char *at = value; config_list_next(&at, &e);)
        if (!number_pair(e))
            return "a list of partition:broker pairs, or *";
    return NULL;
}

static bool is_host_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("-%._:", c));
}

static bool is_host_count(struct str e)
{
    int32_t colon = e.len - 1;
    int64_t count = 0, digit = 1;
    for (; colon >= 0 && isdigit((unsigned char)e.p[colon]) && count <= INT32_MAX; colon--) {
        count += (e.p[colon] - '0') * digit;
        digit *= 10;
    }
    if (colon <= 0 || colon == e.len - 1 || e.p[colon] != ':' || count > INT32_MAX)
        return false;
    for (int32_t i = 0; i < colon; i++)
        if (!is_host_char(e.p[i]))
            return false;
    return true;
}

const char *config_host_counts_problem(const char *value)
{
    struct str e;
    for (const char *at = value; config_list_next(&at, &e);)
        if (!is_host_count(e))
            return "a list of host:count pairs";
    return NULL;
}

/* ---- an address ---- */

bool config_address_parse(const char *text, struct config_address *out)
{
    const char *colon = strrchr(text, ':'), *from = text, *to = colon;
    char *end;
    if (!colon || !isdigit((unsigned char)colon[1]))
        return false;
    errno = 0;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (*end || errno || port > 65535)
        return false;
    bool bracketed = *text == '[';
    if (bracketed && (to - from < 3 || to[-1] != ']'))
        return false;
    from += bracketed;
    to -= bracketed;
    if ((size_t)(to - from) >= sizeof(out->host))
        return false;
    for (const char *p = from; p < to; p++)
        if (!is_host_char(*p) || (*p == ':' && !bracketed))
            return false;
    memcpy(out->host, from, (size_t)(to - from));
    out->host[to - from] = 0;
    out->port = (int)port;
    return true;
}

const char *config_address_problem(const char *value)
{
    struct config_address a;
    return !*value || config_address_parse(value, &a) ? NULL : "host:port, or empty";
}
