/* codec_print.c - messages as one line of text. Bytes are shown by their size only: they may be
 * long, and they may be secret. */
#include <inttypes.h>

#include "protocol/codec_walk.h"

static void print_struct(const struct struct_desc *s, int version, const char *m, struct buf *out);

/* Quoted, plain ASCII: safe in a log whatever the client sent. */
static void print_str(struct str s, struct buf *out)
{
    if (s.len < 0) {
        buf_put(out, "null", 4);
        return;
    }
    buf_put_i8(out, '\'');
    for (int32_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < ' ' || c > '~' || c == '\'' || c == '\\')
            buf_printf(out, "\\x%02x", c);
        else
            buf_put_i8(out, (int8_t)c);
    }
    buf_put_i8(out, '\'');
}

static void print_size(int32_t len, const char *unit, struct buf *out)
{
    if (len < 0)
        buf_put(out, "null", 4);
    else
        buf_printf(out, "<%" PRId32 " %s>", len, unit);
}

static void print_value(uint8_t type, const struct struct_desc *sub, int version, const void *p,
                        struct buf *out)
{
    switch (type) {
    case FIELD_BOOL:
        buf_printf(out, "%s", *(const bool *)p ? "true" : "false");
        break;
    case FIELD_FLOAT64:
        buf_printf(out, "%.17g", *(const double *)p);
        break;
    case FIELD_UUID: {
        char text[23];
        uuid_format(*(const struct uuid *)p, text);
        buf_printf(out, "%s", text);
        break;
    }
    case FIELD_STRING:
        print_str(*(const struct str *)p, out);
        break;
    case FIELD_BYTES:
        print_size(((const struct bytes *)p)->len, "bytes", out);
        break;
    case FIELD_RECORDS: {
        const struct records *rec = p;
        print_size(rec->len, rec->file ? "bytes of a file" : "bytes", out);
        break;
    }
    case FIELD_STRUCT:
        print_struct(sub, version, p, out);
        break;
    default:
        buf_printf(out, "%" PRId64, codec_load_int(type, p));
        break;
    }
}

static void print_field(const struct field_desc *f, int version, const char *p, struct buf *out)
{
    if (f->type == FIELD_ARRAY) {
        const struct any_array *a = (const void *)p;
        size_t size = codec_elem_size(f);
        if (a->n < 0) {
            buf_put(out, "null", 4);
            return;
        }
        buf_put_i8(out, '[');
        for (int32_t i = 0; i < a->n; i++) {
            if (i)
                buf_put(out, ", ", 2);
            print_value(f->elem, f->sub, version, (const char *)a->v + (size_t)i * size, out);
        }
        buf_put_i8(out, ']');
        return;
    }
    if (field_is_pointer(f)) {
        p = *(char *const *)p;
        if (!p) {
            buf_put(out, "null", 4);
            return;
        }
    }
    print_value(f->type, f->sub, version, p, out);
}

static void print_struct(const struct struct_desc *s, int version, const char *m, struct buf *out)
{
    const char *before = "{";
    for (int i = 0; i < s->fields_n; i++) {
        const struct field_desc *f = &s->fields[i];
        if (!field_in(f, version))
            continue;
        buf_printf(out, "%s%s=", before, f->name);
        print_field(f, version, m + f->offset, out);
        before = ", ";
    }
    buf_printf(out, "%s", *before == '{' ? "{}" : "}");
}

void msg_print(const struct msg_desc *d, int version, const void *m, struct buf *out)
{
    print_struct(d->body, version, m, out);
}
