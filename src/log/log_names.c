#include "log/log_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[LOG_FILE_KINDS] = {[LOG_FILE_DATA] = ".log",
                                                       [LOG_FILE_INDEX] = ".index",
                                                       [LOG_FILE_TIME] = ".timeindex",
                                                       [LOG_FILE_TXN] = ".txnindex",
                                                       [LOG_FILE_SNAPSHOT] = ".snapshot"};

static const char *const stage_names[LOG_STAGES] = {[LOG_STAGE_LIVE] = "",
                                                    [LOG_STAGE_DELETED] = ".deleted",
                                                    [LOG_STAGE_CLEANED] = ".cleaned",
                                                    [LOG_STAGE_SWAP] = ".swap"};

enum { DIGITS = 20 };

/* Exactly 20 digits, and an offset that a log can have. */
static bool parse_number(const char *p, int64_t *out)
{
    uint64_t v = 0;
    for (int i = 0; i < DIGITS; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        if (v > (INT64_MAX - (uint64_t)(p[i] - '0')) / 10)
            return false;
        v = v * 10 + (uint64_t)(p[i] - '0');
    }
    *out = (int64_t)v;
    return v < (uint64_t)LOG_OFFSET_LIMIT;
}

/* Index of the name that `p` begins with, the longest first match; -1 without one. */
static int match(const char *p, size_t n, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == n && memcmp(p, names[i], n) == 0)
            return i;
    return -1;
}

bool log_file_name_parse(const char *name, struct log_file_name *out)
{
    size_t n = strlen(name);
    if (n <= DIGITS || name[DIGITS] != '.' || !parse_number(name, &out->base))
        return false;
    const char *kind = name + DIGITS;
    const char *stage = strchr(kind + 1, '.');
    if (!stage)
        stage = name + n;
    int k = match(kind, (size_t)(stage - kind), kind_names, LOG_FILE_KINDS);
    int s = match(stage, strlen(stage), stage_names, LOG_STAGES);
    if (k < 0 || s < 0)
        return false;
    out->kind = (enum log_file_kind)k;
    out->stage = (enum log_file_stage)s;
    return true;
}

void log_file_path(char out[LOG_PATH_MAX], const char *dir, int64_t base, enum log_file_kind kind,
                   enum log_file_stage stage)
{
    snprintf(out, LOG_PATH_MAX, "%s/%020" PRId64 "%s%s", dir, base, kind_names[kind],
             stage_names[stage]);
}

void log_path_join(char out[LOG_PATH_MAX], const char *dir, const char *name)
{
    snprintf(out, LOG_PATH_MAX, "%s/%s", dir, name);
}

static bool ends_with(struct str s, const char *end)
{
    int32_t n = (int32_t)strlen(end);
    return s.len >= n && memcmp(s.p + s.len - n, end, (size_t)n) == 0;
}

/* The last place of `c`, -1 without one. */
static int32_t last_of(struct str s, char c)
{
    int32_t i = s.len - 1;
    while (i >= 0 && s.p[i] != c)
        i--;
    return i;
}

static bool parse_partition(struct str s, int32_t *out)
{
    int64_t v = 0;
    if (s.len < 1 || s.len > 10)
        return false;
    for (int32_t i = 0; i < s.len; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        v = v * 10 + (s.p[i] - '0');
    }
    *out = (int32_t)v;
    return v <= INT32_MAX;
}

static bool topic_chars_ok(struct str s)
{
    for (int32_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            return false;
    }
    return s.len >= 1 && !str_eqz(s, ".") && !str_eqz(s, "..");
}

enum folder_kind folder_name_parse(const char *name, struct str *topic, int32_t *partition)
{
    static const struct {
        const char *suffix;
        enum folder_kind kind;
    } forms[] = {{"-delete", FOLDER_DELETE}, {"-stray", FOLDER_STRAY}, {"-future", FOLDER_FUTURE}};
    struct str s = str_of(name);
    enum folder_kind kind = FOLDER_LOG;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (!ends_with(s, forms[i].suffix))
            continue;
        struct str head = {s.p, s.len - (int32_t)strlen(forms[i].suffix)};
        int32_t dot = last_of(head, '.');
        if (dot <= 0 || dot == head.len - 1)
            return FOLDER_BAD;
        s = (struct str){s.p, dot};
        kind = forms[i].kind;
        break;
    }
    int32_t dash = last_of(s, '-');
    if (dash <= 0)
        return FOLDER_BAD;
    *topic = (struct str){s.p, dash};
    if (!parse_partition((struct str){s.p + dash + 1, s.len - dash - 1}, partition) ||
        !topic_chars_ok(*topic))
        return FOLDER_BAD;
    return kind;
}

void folder_name(char out[FOLDER_NAME_MAX], struct str topic, int32_t partition)
{
    snprintf(out, FOLDER_NAME_MAX, "%.*s-%" PRId32, STR_ARG(topic), partition);
}

/* "-<partition>.<32 hex><suffix>" */
static int put_tail(char *tail, size_t size, int32_t partition, struct uuid id, const char *suffix)
{
    int n = snprintf(tail, size, "-%" PRId32 ".", partition);
    for (int i = 0; i < 16; i++)
        n += snprintf(tail + n, size - (size_t)n, "%02x", id.b[i]);
    return n + snprintf(tail + n, size - (size_t)n, "%s", suffix);
}

bool folder_name_future(char out[FOLDER_NAME_MAX], struct str topic, int32_t partition,
                        struct uuid id)
{
    char tail[64];
    int n = put_tail(tail, sizeof(tail), partition, id, "-future");
    snprintf(out, FOLDER_NAME_MAX, "%.*s%s", STR_ARG(topic), tail);
    return topic.len + n < FOLDER_NAME_MAX;
}

void folder_name_delete(char out[FOLDER_NAME_MAX], struct str topic, int32_t partition,
                        struct uuid id)
{
    char tail[64];
    int n = put_tail(tail, sizeof(tail), partition, id, "-delete");
    int room = FOLDER_NAME_MAX - 1 - n;
    snprintf(out, FOLDER_NAME_MAX, "%.*s%s", topic.len < room ? topic.len : room, topic.p, tail);
}
