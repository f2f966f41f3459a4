/* tool_format.c - see tool_format.h. Columns: timestamp, partition, offset, headers, key, value;
 * the key separator between them, the line separator behind the last. Bytes go out as they are,
 * unless a deserializer makes a number of them. */
#include "tools/tool_format.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/props.h"
#include "tools/tool_conf.h"
#include "tools/tool_format_internal.h"
#include "tools/tool_io.h"

/* Prints `n` bytes at p; false when they are not a value of its type. */
typedef bool (*print_fn)(const uint8_t *p, size_t n, FILE *out);

struct format {
    struct props *props;
    bool silent;
    bool internal, internal_old; /* one of tool_format_internal.h */
    enum internal_format internal_kind;
    struct arena arena; /* its memory for a record */
    bool timestamp, partition, offset, headers, key, value;
    const char *key_separator, *line_separator, *headers_separator, *null_literal;
    print_fn print_key, print_value, print_header;
};

/* ---- deserializers ---- */

static void put(const void *p, size_t n, FILE *out)
{
    if (n)
        fwrite_unlocked(p, 1, n, out);
}

static void put_text(const char *text, FILE *out)
{
    fputs_unlocked(text, out);
}

static bool print_bytes(const uint8_t *p, size_t n, FILE *out)
{
    put(p, n, out);
    return true;
}

static bool print_short(const uint8_t *p, size_t n, FILE *out)
{
    return n == 2 && fprintf(out, "%d", (int16_t)get_be16(p)) > 0;
}

static bool print_int(const uint8_t *p, size_t n, FILE *out)
{
    return n == 4 && fprintf(out, "%d", (int32_t)get_be32(p)) > 0;
}

static bool print_long(const uint8_t *p, size_t n, FILE *out)
{
    return n == 8 && fprintf(out, "%lld", (long long)get_be64(p)) > 0;
}

/* The shortest digits that read back as the same number, with a point as Java prints them. */
static void put_real(double v, bool single, FILE *out)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        double back = strtod(text, NULL);
        if (single ? (float)back == (float)v : back == v)
            break;
    }
    put_text(text, out);
    if (!strpbrk(text, ".en"))
        put_text(".0", out);
}

static bool print_double(const uint8_t *p, size_t n, FILE *out)
{
    double v;
    uint64_t bits = n == 8 ? get_be64(p) : 0;
    memcpy(&v, &bits, sizeof v);
    if (n == 8)
        put_real(v, false, out);
    return n == 8;
}

static bool print_float(const uint8_t *p, size_t n, FILE *out)
{
    float v;
    uint32_t bits = n == 4 ? get_be32(p) : 0;
    memcpy(&v, &bits, sizeof v);
    if (n == 4)
        put_real((double)v, true, out);
    return n == 4;
}

static bool print_boolean(const uint8_t *p, size_t n, FILE *out)
{
    if (n == 1 && *p <= 1)
        put_text(*p ? "true" : "false", out);
    return n == 1 && *p <= 1;
}

static const struct {
    const char *name; /* without "org.apache.kafka.common.serialization." */
    print_fn print;
} deserializers[] = {
    {"ByteArrayDeserializer", print_bytes}, {"StringDeserializer", print_bytes},
    {"BytesDeserializer", print_bytes},     {"ByteBufferDeserializer", print_bytes},
    {"UUIDDeserializer", print_bytes},      {"ShortDeserializer", print_short},
    {"IntegerDeserializer", print_int},     {"LongDeserializer", print_long},
    {"DoubleDeserializer", print_double},   {"FloatDeserializer", print_float},
    {"BooleanDeserializer", print_boolean},
};

static print_fn find_deserializer(const char *name)
{
    const char *last = name ? strrchr(name, '.') : NULL;
    const char *plain = last ? last + 1 : name;
    if (!name)
        return print_bytes;
    for (size_t i = 0; i < sizeof deserializers / sizeof *deserializers; i++)
        if (strcmp(deserializers[i].name, plain) == 0)
            return deserializers[i].print;
    tool_die("%s: this tool has no such deserializer", name);
}

/* ---- settings ---- */

static const char *get(const struct format *f, const char *key, const char *fallback)
{
    const char *value = props_get(f->props, key);
    return value ? value : fallback;
}

static bool get_bool(const struct format *f, const char *key, const char *fallback)
{
    return strcasecmp(get(f, key, fallback), "true") == 0;
}

static void choose(struct format *f, const char *name)
{
    static const char *const known[] = {"DefaultMessageFormatter", "LoggingMessageFormatter",
                                        "NoOpMessageFormatter"};
    const char *last = name ? name + strlen(name) : NULL;
    while (last && last > name && last[-1] != '.' && last[-1] != '$')
        last--;
    f->silent = last && strcmp(last, "NoOpMessageFormatter") == 0;
    f->internal = name && internal_format_find(name, &f->internal_kind, &f->internal_old);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (f->internal || !last || strcmp(last, known[i]) == 0)
            return;
    tool_die("%s: this tool has no such formatter", name);
}

struct format *format_new(const char *name, const char *file, const struct tool_texts *pairs,
                          const char *key_deserializer, const char *value_deserializer)
{
    struct format *f = calloc(1, sizeof *f);
    if (!f || !(f->props = props_new()))
        tool_die("out of memory");
    arena_init(&f->arena, 0);
    choose(f, name);
    tool_props(f->props, file, pairs);
    f->timestamp = get_bool(f, "print.timestamp", "false");
    f->partition = get_bool(f, "print.partition", "false");
    f->offset = get_bool(f, "print.offset", "false");
    f->headers = get_bool(f, "print.headers", "false");
    f->key = get_bool(f, "print.key", "false");
    f->value = get_bool(f, "print.value", "true");
    f->key_separator = get(f, "key.separator", "\t");
    f->line_separator = get(f, "line.separator", "\n");
    f->headers_separator = get(f, "headers.separator", ",");
    f->null_literal = get(f, "null.literal", "null");
    f->print_key = find_deserializer(get(f, "key.deserializer", key_deserializer));
    f->print_value = find_deserializer(get(f, "value.deserializer", value_deserializer));
    f->print_header = find_deserializer(get(f, "headers.deserializer", NULL));
    return f;
}

void format_free(struct format *f)
{
    props_free(f->props);
    arena_free(&f->arena);
    free(f);
}

/* ---- printing ---- */

static bool print_field(const struct format *f, print_fn print, const void *p, size_t n, FILE *out)
{
    if (p)
        return print(p, n, out);
    put_text(f->null_literal, out);
    return true;
}

static void print_timestamp(const kafka_message_t *m, FILE *out)
{
    if (m->timestamp_type < 0)
        put_text("NO_TIMESTAMP", out);
    else
        fprintf(out, "%s:%lld", m->timestamp_type == 1 ? "LogAppendTime" : "CreateTime",
                (long long)m->timestamp);
}

static bool print_headers(const struct format *f, const kafka_message_t *m, FILE *out)
{
    bool ok = true;
    if (m->headers_n == 0)
        put_text("NO_HEADERS", out);
    for (size_t i = 0; i < m->headers_n; i++) {
        if (i)
            put_text(f->headers_separator, out);
        put_text(m->headers[i].key, out);
        put_text(":", out);
        ok &= print_field(f, f->print_header, m->headers[i].value, m->headers[i].value_len, out);
    }
    return ok;
}

const char *format_print(struct format *f, const kafka_message_t *m, FILE *out)
{
    if (f->silent)
        return NULL;
    if (f->internal)
        return internal_format_print(f->internal_kind, f->internal_old, m, &f->arena, out);
    const bool columns[] = {f->timestamp, f->partition, f->offset, f->headers, f->key, f->value};
    enum { COLUMNS = sizeof columns };
    int left = 0;
    bool ok = true;
    for (int i = 0; i < COLUMNS; i++)
        left += columns[i];
    for (int i = 0; i < COLUMNS; i++) {
        if (!columns[i])
            continue;
        switch (i) {
        case 0:
            print_timestamp(m, out);
            break;
        case 1:
            fprintf(out, "Partition:%d", m->partition);
            break;
        case 2:
            fprintf(out, "Offset:%lld", (long long)m->offset);
            break;
        case 3:
            ok &= print_headers(f, m, out);
            break;
        case 4:
            ok &= print_field(f, f->print_key, m->key, m->key_len, out);
            break;
        default:
            ok &= print_field(f, f->print_value, m->value, m->value_len, out);
        }
        put_text(--left ? f->key_separator : f->line_separator, out);
    }
    return ok ? NULL : "Size of the data received is not what its deserializer takes";
}
