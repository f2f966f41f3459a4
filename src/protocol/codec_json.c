/* codec_json.c - messages as JSON, as Kafka's converters of its schemas write them: the schema's
 * names in camelCase and order, whole numbers as they are, bytes in base64, uuids in their text
 * form. What a version does not have is left out, and so is a tagged field at its default. */
#include <inttypes.h>

#include "base/utf8.h"
#include "protocol/codec_walk.h"

struct json {
    struct buf *out;
    msg_json_bytes bytes; /* may be NULL */
};

static void put_struct(const struct json *j, const struct struct_desc *s, int version,
                       const char *m);

static void put_char(struct buf *out, uint8_t c)
{
    static const char shorts[] = "\bb\tt\nn\ff\rr\"\"\\\\";
    for (const char *s = shorts; *s; s += 2) {
        if ((uint8_t)*s == c) {
            buf_printf(out, "\\%c", s[1]);
            return;
        }
    }
    if (c < ' ')
        buf_printf(out, "\\u%04X", c);
    else
        buf_put_i8(out, (int8_t)c);
}

void json_put_str(struct buf *out, struct str s)
{
    if (s.len < 0) {
        buf_put(out, "null", 4);
        return;
    }
    const uint8_t *at = (const uint8_t *)s.p, *end = at + s.len;
    buf_put_i8(out, '"');
    while (at < end) {
        bool ok;
        size_t n = utf8_next(at, (size_t)(end - at), &ok);
        if (!ok)
            buf_put(out, UTF8_REPLACEMENT, 3);
        else if (n == 1)
            put_char(out, *at);
        else
            buf_put(out, at, n);
        at += n;
    }
    buf_put_i8(out, '"');
}

static void put_base64(struct buf *out, struct bytes b)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (b.len < 0) {
        buf_put(out, "null", 4);
        return;
    }
    buf_put_i8(out, '"');
    for (int32_t i = 0; i < b.len; i += 3) {
        int32_t left = b.len - i;
        uint32_t v = (uint32_t)b.p[i] << 16;
        v |= left > 1 ? (uint32_t)b.p[i + 1] << 8 : 0;
        v |= left > 2 ? (uint32_t)b.p[i + 2] : 0;
        char four[] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=',
                       left > 2 ? digits[v & 63] : '='};
        buf_put(out, four, sizeof four);
    }
    buf_put_i8(out, '"');
}

static void put_name(struct buf *out, const char *name)
{
    buf_put_i8(out, '"');
    for (bool upper = false; *name; name++) {
        if (*name == '_') {
            upper = true;
            continue;
        }
        buf_put_i8(out,
                   (int8_t)(upper && *name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name));
        upper = false;
    }
    buf_put(out, "\":", 2);
}

static void put_value(const struct json *j, uint8_t type, const struct struct_desc *sub,
                      int version, const void *p)
{
    char text[23];
    switch (type) {
    case FIELD_BOOL:
        buf_printf(j->out, "%s", *(const bool *)p ? "true" : "false");
        break;
    case FIELD_FLOAT64:
        buf_printf(j->out, "%.17g", *(const double *)p);
        break;
    case FIELD_UUID:
        uuid_format(*(const struct uuid *)p, text);
        buf_printf(j->out, "\"%s\"", text);
        break;
    case FIELD_STRING:
        json_put_str(j->out, *(const struct str *)p);
        break;
    case FIELD_BYTES:
        put_base64(j->out, *(const struct bytes *)p);
        break;
    case FIELD_RECORDS: /* their size only, as Kafka does: they may be long */
        buf_printf(j->out, "%" PRId32, ((const struct records *)p)->len);
        break;
    case FIELD_STRUCT:
        put_struct(j, sub, version, p);
        break;
    default:
        buf_printf(j->out, "%" PRId64, codec_load_int(type, p));
        break;
    }
}

static void put_array(const struct json *j, const struct field_desc *f, int version, const void *p)
{
    const struct any_array *a = p;
    size_t size = codec_elem_size(f);
    if (a->n < 0) {
        buf_put(j->out, "null", 4);
        return;
    }
    buf_put_i8(j->out, '[');
    for (int32_t i = 0; i < a->n; i++) {
        if (i)
            buf_put_i8(j->out, ',');
        put_value(j, f->elem, f->sub, version, (const char *)a->v + (size_t)i * size);
    }
    buf_put_i8(j->out, ']');
}

static void put_field(const struct json *j, const struct field_desc *f, int version, const char *p)
{
    if (f->type == FIELD_ARRAY) {
        put_array(j, f, version, p);
        return;
    }
    if (field_is_pointer(f) && !(p = *(char *const *)p)) {
        buf_put(j->out, "null", 4);
        return;
    }
    if (f->type == FIELD_BYTES && j->bytes &&
        j->bytes(f->name, *(const struct bytes *)(const void *)p, j->out))
        return;
    put_value(j, f->type, f->sub, version, p);
}

static void put_struct(const struct json *j, const struct struct_desc *s, int version,
                       const char *m)
{
    char before = '{';
    for (int i = 0; i < s->fields_n; i++) {
        const struct field_desc *f = &s->fields[i];
        if (!field_in(f, version) ||
            (field_tagged(f, version) && codec_is_default(f, m + f->offset)))
            continue;
        buf_put_i8(j->out, before);
        put_name(j->out, f->name);
        put_field(j, f, version, m + f->offset);
        before = ',';
    }
    if (before == '{')
        buf_put_i8(j->out, '{');
    buf_put_i8(j->out, '}');
}

void msg_print_json(const struct msg_desc *d, int version, const void *m, msg_json_bytes bytes,
                    struct buf *out)
{
    struct json j = {out, bytes};
    put_struct(&j, d->body, version, m);
}
