/* codec_encode.c - structs to bytes, and how many bytes that will be.
 *
 * One walk does both: `out` either appends to a writer or only counts, so a size can never differ
 * from what is written. */
#include <assert.h>
#include <stdlib.h>

#include "protocol/codec_walk.h"

struct out {
    struct writer *w; /* NULL: only count */
    size_t n;         /* bytes so far, splices included */
    int version;
    bool flexible;
};

static void encode_struct(struct out *o, const struct struct_desc *s, const char *m);

/* Room for n bytes, which count as written; NULL when there is nothing to write into. */
static inline uint8_t *out_room(struct out *o, size_t n)
{
    o->n += n;
    if (!o->w)
        return NULL;
    struct buf *b = &o->w->buf;
    if (b->cap - b->len < n && !buf_reserve(b, n))
        return NULL;
    b->len += n;
    return b->p + b->len - n;
}

static void out_i8(struct out *o, int8_t v)
{
    uint8_t *p = out_room(o, 1);
    if (p)
        *p = (uint8_t)v;
}

static void out_i16(struct out *o, int16_t v)
{
    uint8_t *p = out_room(o, 2);
    if (p)
        put_be16(p, (uint16_t)v);
}

static void out_i32(struct out *o, int32_t v)
{
    uint8_t *p = out_room(o, 4);
    if (p)
        put_be32(p, (uint32_t)v);
}

static void out_i64(struct out *o, int64_t v)
{
    uint8_t *p = out_room(o, 8);
    if (p)
        put_be64(p, (uint64_t)v);
}

static void out_uvarint(struct out *o, uint32_t v)
{
    size_t n = 1;
    for (uint32_t rest = v >> 7; rest; rest >>= 7)
        n++;
    uint8_t *p = out_room(o, n);
    for (; p && v > 0x7f; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    if (p)
        *p = (uint8_t)v;
}

static void out_raw(struct out *o, const void *src, int32_t n)
{
    uint8_t *p = n > 0 ? out_room(o, (size_t)n) : NULL;
    if (p)
        memcpy(p, src, (size_t)n);
}

static void out_unsupported(struct out *o)
{
    if (o->w)
        o->w->unsupported = true;
}

/* The length before a string, bytes or array. Returns how many bytes or elements follow. */
static int32_t out_len(struct out *o, const struct field_desc *f, bool is_string, bool nullable,
                       int32_t n)
{
    if (n < 0 && !nullable) {
        out_unsupported(o);
        n = 0;
    } else if (is_string && n > STRING_MAX) {
        out_unsupported(o);
        n = STRING_MAX;
    } else if (n < 0) {
        n = -1;
    }
    if (o->flexible && o->version <= f->flex_max)
        out_uvarint(o, (uint32_t)n + 1);
    else if (is_string)
        out_i16(o, (int16_t)n);
    else
        out_i32(o, n);
    return n;
}

static void out_file(struct out *o, const struct records *rec)
{
    struct writer *w = o->w;
    if (rec->len <= 0)
        return;
    o->n += (size_t)rec->len;
    if (!w)
        return;
    if (w->splices_n == w->splices_cap) {
        int cap = w->splices_cap ? w->splices_cap * 2 : 8;
        struct splice *v = realloc(w->splices, (size_t)cap * sizeof(*v));
        if (!v) {
            w->buf.failed = true;
            return;
        }
        w->splices = v;
        w->splices_cap = cap;
    }
    w->splices[w->splices_n++] =
        (struct splice){w->buf.len, file_ref(rec->file), rec->pos, rec->len};
}

/* Any type but arrays and structs behind pointers. */
static void encode_value(struct out *o, const struct field_desc *f, uint8_t type, bool nullable,
                         const void *p)
{
    switch (type) {
    case FIELD_BOOL:
        out_i8(o, *(const bool *)p);
        break;
    case FIELD_INT8:
        out_i8(o, *(const int8_t *)p);
        break;
    case FIELD_INT16:
    case FIELD_UINT16:
        out_i16(o, *(const int16_t *)p);
        break;
    case FIELD_INT32:
        out_i32(o, *(const int32_t *)p);
        break;
    case FIELD_INT64:
    case FIELD_FLOAT64:
        out_i64(o, *(const int64_t *)p);
        break;
    case FIELD_UUID:
        out_raw(o, p, sizeof(struct uuid));
        break;
    case FIELD_STRING: {
        const struct str *s = p;
        out_raw(o, s->p, out_len(o, f, true, nullable, s->len));
        break;
    }
    case FIELD_BYTES: {
        const struct bytes *b = p;
        out_raw(o, b->p, out_len(o, f, false, nullable, b->len));
        break;
    }
    case FIELD_RECORDS: {
        const struct records *rec = p;
        out_len(o, f, false, nullable, rec->len);
        if (rec->file)
            out_file(o, rec);
        else
            out_raw(o, rec->p, rec->len);
        break;
    }
    case FIELD_STRUCT:
        encode_struct(o, f->sub, p);
        break;
    }
}

static void encode_array(struct out *o, const struct field_desc *f, const struct any_array *a)
{
    int32_t n = out_len(o, f, false, field_nullable(f, o->version), a->n);
    size_t size = codec_elem_size(f);
    for (int32_t i = 0; i < n; i++)
        encode_value(o, f, f->elem, false, (const char *)a->v + (size_t)i * size);
}

static void encode_pointer(struct out *o, const struct field_desc *f, const char *m)
{
    if (field_nullable(f, o->version)) {
        out_i8(o, m ? 1 : -1);
        if (m)
            encode_struct(o, f->sub, m);
    } else if (m) {
        encode_struct(o, f->sub, m);
    } else {
        out_unsupported(o);
    }
}

static void encode_field(struct out *o, const struct field_desc *f, const char *p)
{
    if (f->type == FIELD_ARRAY)
        encode_array(o, f, (const void *)p);
    else if (field_is_pointer(f))
        encode_pointer(o, f, *(char *const *)p);
    else
        encode_value(o, f, f->type, field_nullable(f, o->version), p);
}

/* Tagged fields that are not at their defaults, in order of tag: tag, size, value. */
static void encode_tags(struct out *o, const struct struct_desc *s, const char *m)
{
    uint32_t n = 0;
    for (int i = 0; i < s->tagged_n; i++) {
        const struct field_desc *f = &s->fields[s->tagged[i]];
        n += field_tagged(f, o->version) && !codec_is_default(f, m + f->offset);
    }
    out_uvarint(o, n);
    for (int i = 0; n > 0 && i < s->tagged_n; i++) {
        const struct field_desc *f = &s->fields[s->tagged[i]];
        if (!field_tagged(f, o->version) || codec_is_default(f, m + f->offset))
            continue;
        struct out count = {.version = o->version, .flexible = o->flexible};
        encode_field(&count, f, m + f->offset);
        out_uvarint(o, (uint32_t)f->tag);
        out_uvarint(o, (uint32_t)count.n);
        encode_field(o, f, m + f->offset);
    }
}

static void encode_struct(struct out *o, const struct struct_desc *s, const char *m)
{
    for (int i = 0; i < s->fields_n; i++) {
        const struct field_desc *f = &s->fields[i];
        if (!field_in(f, o->version)) {
            if (!f->ignorable && o->w && !codec_is_default(f, m + f->offset))
                o->w->unsupported = true;
        } else if (!field_tagged(f, o->version)) {
            encode_field(o, f, m + f->offset);
        }
    }
    if (o->flexible)
        encode_tags(o, s, m);
}

void msg_encode(const struct msg_desc *d, int version, struct writer *w, const void *m)
{
    assert(version >= d->min && version <= d->max);
    struct out o = {.w = w, .version = version, .flexible = version >= d->flex_min};
    encode_struct(&o, d->body, m);
}

size_t msg_size(const struct msg_desc *d, int version, const void *m)
{
    struct out o = {.version = version, .flexible = version >= d->flex_min};
    encode_struct(&o, d->body, m);
    return o.n;
}

void writer_free(struct writer *w)
{
    for (int i = 0; i < w->splices_n; i++)
        file_unref(w->splices[i].file);
    free(w->splices);
    buf_free(&w->buf);
    *w = WRITER_INIT;
}

size_t writer_size(const struct writer *w)
{
    size_t n = w->buf.len;
    for (int i = 0; i < w->splices_n; i++)
        n += (size_t)w->splices[i].len;
    return n;
}
