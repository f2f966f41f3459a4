/* codec_decode.c - bytes to structs.
 *
 * TEXT    that is not UTF-8 is taken as Java takes it, with U+FFFD for what is malformed: names of
 *         clients come back to others, and go to stores that hold text. What has become too long
 *         for a string by that is refused. Without an arena (headers) it is left as it is.
 * ERRORS  are sticky in the reader: what is wrong sets r->bad, after which reads give zeros and
 * nothing is allocated any more, so the walk ends by itself; msg_decode looks once at the end.
 * MEMORY  an array is allocated only when its elements' least sizes fit the bytes left; the depth
 * of the recursion is that of the schema, which is finite, not that of the input. */
#include <errno.h>

#include "base/utf8.h"
#include "protocol/codec_walk.h"

struct decoding {
    int version;
    bool flexible;
    bool no_memory;
    struct arena *arena;
};

static void decode_struct(struct decoding *d, struct reader *r, const struct struct_desc *s,
                          char *m);

/* Length of a string, bytes or array; -1 for null. */
static int32_t read_len(struct reader *r, bool compact, bool is_string)
{
    int64_t n;
    if (compact)
        n = (int64_t)reader_uvarint(r) - 1;
    else
        n = is_string ? reader_i16(r) : reader_i32(r);
    if (n < -1 || n > (is_string ? STRING_MAX : INT32_MAX))
        r->bad = true;
    return r->bad ? 0 : (int32_t)n;
}

static void decode_bytes(struct decoding *d, struct reader *r, const struct field_desc *f,
                         uint8_t type, const uint8_t **p, int32_t *len)
{
    bool compact = d->flexible && d->version <= f->flex_max;
    *len = read_len(r, compact, type == FIELD_STRING);
    if (*len >= 0)
        *p = reader_take(r, (size_t)*len);
    else if (f->type != FIELD_ARRAY && field_nullable(f, d->version))
        *p = NULL;
    else
        r->bad = true; /* null where there is none; an array's elements never are */
}

static void decode_string(struct decoding *d, struct reader *r, const struct field_desc *f,
                          uint8_t type, struct str *s)
{
    decode_bytes(d, r, f, type, (const uint8_t **)&s->p, &s->len);
    if (r->bad || !d->arena)
        return;
    if (utf8_mend(s, d->arena) != 0)
        d->no_memory = r->bad = true;
    else if (s->len > STRING_MAX)
        r->bad = true;
}

static void decode_pointer(struct decoding *d, struct reader *r, const struct field_desc *f,
                           char **p)
{
    const struct struct_desc *s = f->sub;
    *p = NULL;
    if (field_nullable(f, d->version)) {
        int8_t marker = reader_i8(r);
        if (marker < 0 || r->bad)
            return;
    }
    if (reader_left(r) < s->least[d->version - s->least_min]) {
        r->bad = true;
        return;
    }
    *p = arena_alloc(d->arena, s->size);
    if (*p)
        decode_struct(d, r, s, *p);
    else
        d->no_memory = r->bad = true;
}

/* Any type but arrays and structs behind pointers. */
static void decode_value(struct decoding *d, struct reader *r, const struct field_desc *f,
                         uint8_t type, void *p)
{
    switch (type) {
    case FIELD_BOOL:
        *(bool *)p = reader_i8(r) != 0;
        break;
    case FIELD_INT8:
        *(int8_t *)p = reader_i8(r);
        break;
    case FIELD_INT16:
    case FIELD_UINT16:
        *(int16_t *)p = reader_i16(r);
        break;
    case FIELD_INT32:
        *(int32_t *)p = reader_i32(r);
        break;
    case FIELD_INT64:
    case FIELD_FLOAT64:
        *(int64_t *)p = reader_i64(r);
        break;
    case FIELD_UUID: {
        const uint8_t *b = reader_take(r, sizeof(struct uuid));
        *(struct uuid *)p = UUID_ZERO;
        if (b)
            memcpy(p, b, sizeof(struct uuid));
        break;
    }
    case FIELD_STRING:
        decode_string(d, r, f, type, p);
        break;
    case FIELD_BYTES: {
        struct bytes *b = p;
        decode_bytes(d, r, f, type, &b->p, &b->len);
        break;
    }
    case FIELD_RECORDS: {
        struct records *b = p;
        *b = RECORDS_NULL;
        decode_bytes(d, r, f, type, &b->p, &b->len);
        break;
    }
    case FIELD_STRUCT:
        decode_struct(d, r, f->sub, p);
        break;
    }
}

/* Bytes that an element of the array takes at least. */
static size_t elem_least(const struct decoding *d, const struct field_desc *f)
{
    static const uint8_t fixed[] = {
        [FIELD_BOOL] = 1,   [FIELD_INT8] = 1,  [FIELD_INT16] = 2,   [FIELD_UINT16] = 2,
        [FIELD_INT32] = 4,  [FIELD_INT64] = 8, [FIELD_FLOAT64] = 8, [FIELD_UUID] = 16,
        [FIELD_STRING] = 1, [FIELD_BYTES] = 1, [FIELD_RECORDS] = 1,
    };
    if (f->elem != FIELD_STRUCT)
        return fixed[f->elem];
    size_t least = f->sub->least[d->version - f->sub->least_min];
    return least ? least : 1;
}

static void decode_elems(struct decoding *d, struct reader *r, const struct field_desc *f,
                         const struct any_array *a)
{
    if (f->elem == FIELD_INT32) {
        /* the most common array by far: replica lists, partition lists */
        const uint8_t *b = reader_take(r, (size_t)a->n * 4);
        for (int32_t i = 0; b && i < a->n; i++)
            ((int32_t *)a->v)[i] = (int32_t)get_be32(b + (size_t)i * 4);
        return;
    }
    size_t size = codec_elem_size(f);
    for (int32_t i = 0; i < a->n && !r->bad; i++)
        decode_value(d, r, f, f->elem, (char *)a->v + (size_t)i * size);
}

static void decode_array(struct decoding *d, struct reader *r, const struct field_desc *f,
                         struct any_array *a)
{
    *a = (struct any_array){NULL, read_len(r, d->flexible, false)};
    if (a->n < 0 && !field_nullable(f, d->version))
        r->bad = true;
    if (a->n > 0 && (size_t)a->n > reader_left(r) / elem_least(d, f))
        r->bad = true;
    if (r->bad || a->n <= 0)
        return;
    a->v = arena_alloc(d->arena, (size_t)a->n * codec_elem_size(f));
    if (a->v)
        decode_elems(d, r, f, a);
    else
        d->no_memory = r->bad = true;
}

static void decode_field(struct decoding *d, struct reader *r, const struct field_desc *f, char *p)
{
    if (f->type == FIELD_ARRAY)
        decode_array(d, r, f, (void *)p);
    else if (field_is_pointer(f))
        decode_pointer(d, r, f, (void *)p);
    else
        decode_value(d, r, f, f->type, p);
}

static const struct field_desc *find_tag(const struct struct_desc *s, int version, uint32_t tag)
{
    for (int i = 0; i < s->tagged_n; i++) {
        const struct field_desc *f = &s->fields[s->tagged[i]];
        if ((uint32_t)f->tag == tag && field_tagged(f, version))
            return f;
    }
    return NULL;
}

static void decode_tags(struct decoding *d, struct reader *r, const struct struct_desc *s, char *m)
{
    uint32_t n = reader_uvarint(r);
    while (n-- > 0 && !r->bad) {
        uint32_t tag = reader_uvarint(r);
        uint32_t size = reader_uvarint(r);
        const uint8_t *value = reader_take(r, size);
        const struct field_desc *f = value ? find_tag(s, d->version, tag) : NULL;
        if (!f)
            continue; /* unknown to us: skipped */
        struct reader inner = reader_of(value, size);
        decode_field(d, &inner, f, m + f->offset);
        if (inner.bad || inner.p != inner.end)
            r->bad = true;
    }
}

static void decode_struct(struct decoding *d, struct reader *r, const struct struct_desc *s,
                          char *m)
{
    for (int i = 0; i < s->fields_n; i++) {
        const struct field_desc *f = &s->fields[i];
        if (field_in(f, d->version) && !field_tagged(f, d->version))
            decode_field(d, r, f, m + f->offset);
        else
            codec_set_default(f, m + f->offset);
    }
    if (d->flexible)
        decode_tags(d, r, s, m);
}

int msg_decode(const struct msg_desc *desc, int version, struct reader *r, struct arena *a, void *m)
{
    struct decoding d = {.version = version, .flexible = version >= desc->flex_min, .arena = a};
    if (version >= desc->min && version <= desc->max)
        decode_struct(&d, r, desc->body, m);
    else
        r->bad = true;
    if (!r->bad)
        return 0;
    msg_init(desc, m); /* nothing half-read for the caller to trip over */
    return d.no_memory ? -ENOMEM : -EPROTO;
}
