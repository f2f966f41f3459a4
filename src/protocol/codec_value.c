/* codec_value.c - values in their C form: defaults and equality. */
#include "protocol/api_table.h"
#include "protocol/codec_walk.h"

static const uint8_t c_size[] = {
    [FIELD_BOOL] = sizeof(bool),
    [FIELD_INT8] = sizeof(int8_t),
    [FIELD_INT16] = sizeof(int16_t),
    [FIELD_UINT16] = sizeof(uint16_t),
    [FIELD_INT32] = sizeof(int32_t),
    [FIELD_INT64] = sizeof(int64_t),
    [FIELD_FLOAT64] = sizeof(double),
    [FIELD_UUID] = sizeof(struct uuid),
    [FIELD_STRING] = sizeof(struct str),
    [FIELD_BYTES] = sizeof(struct bytes),
    [FIELD_RECORDS] = sizeof(struct records),
};

size_t codec_elem_size(const struct field_desc *f)
{
    return f->elem == FIELD_STRUCT ? f->sub->size : c_size[f->elem];
}

int64_t codec_load_int(uint8_t type, const void *p)
{
    switch (type) {
    case FIELD_BOOL:
        return *(const bool *)p;
    case FIELD_INT8:
        return *(const int8_t *)p;
    case FIELD_INT16:
        return *(const int16_t *)p;
    case FIELD_UINT16:
        return *(const uint16_t *)p;
    case FIELD_INT32:
        return *(const int32_t *)p;
    default:
        return *(const int64_t *)p;
    }
}

void codec_set_default(const struct field_desc *f, void *p)
{
    int32_t len = f->null_default ? -1 : 0;
    switch (f->type) {
    case FIELD_BOOL:
        *(bool *)p = f->int_default != 0;
        break;
    case FIELD_INT8:
        *(int8_t *)p = (int8_t)f->int_default;
        break;
    case FIELD_INT16:
    case FIELD_UINT16:
        *(int16_t *)p = (int16_t)f->int_default;
        break;
    case FIELD_INT32:
        *(int32_t *)p = (int32_t)f->int_default;
        break;
    case FIELD_INT64:
        *(int64_t *)p = f->int_default;
        break;
    case FIELD_FLOAT64:
        *(double *)p = 0;
        break;
    case FIELD_UUID:
        *(struct uuid *)p = UUID_ZERO;
        break;
    case FIELD_STRING:
        *(struct str *)p = (struct str){len < 0 ? NULL : "", len};
        break;
    case FIELD_BYTES:
        *(struct bytes *)p = (struct bytes){NULL, len};
        break;
    case FIELD_RECORDS:
        *(struct records *)p = (struct records){NULL, len, NULL, 0};
        break;
    case FIELD_ARRAY:
        *(struct any_array *)p = (struct any_array){NULL, len};
        break;
    case FIELD_STRUCT:
        if (field_is_pointer(f))
            *(void **)p = NULL;
        else
            msg_struct_init(f->sub, p);
        break;
    }
}

void msg_struct_init(const struct struct_desc *s, void *m)
{
    for (int i = 0; i < s->fields_n; i++)
        codec_set_default(&s->fields[i], (char *)m + s->fields[i].offset);
}

void msg_init(const struct msg_desc *d, void *m)
{
    msg_struct_init(d->body, m);
}

void *msg_struct_new(const struct struct_desc *s, struct arena *a, int32_t n)
{
    char *v = arena_calloc(a, (size_t)n, s->size);
    for (int32_t i = 0; v && i < n; i++)
        msg_struct_init(s, v + (size_t)i * s->size);
    return v;
}

/* All fields count, whatever version they belong to: a struct that is left out of a version must
 * not lose a value silently. */
static bool struct_is_default(const struct struct_desc *s, const void *m)
{
    for (int i = 0; i < s->fields_n; i++)
        if (!codec_is_default(&s->fields[i], (const char *)m + s->fields[i].offset))
            return false;
    return true;
}

bool codec_is_default(const struct field_desc *f, const void *p)
{
    int32_t len;
    switch (f->type) {
    case FIELD_FLOAT64:
        return *(const double *)p == 0;
    case FIELD_UUID:
        return uuid_is_zero(*(const struct uuid *)p);
    case FIELD_STRING:
        len = ((const struct str *)p)->len;
        break;
    case FIELD_BYTES:
        len = ((const struct bytes *)p)->len;
        break;
    case FIELD_RECORDS:
        len = ((const struct records *)p)->len;
        break;
    case FIELD_ARRAY:
        len = ((const struct any_array *)p)->n;
        break;
    case FIELD_STRUCT:
        if (field_is_pointer(f))
            return *(void *const *)p == NULL;
        return struct_is_default(f->sub, p);
    default:
        return codec_load_int(f->type, p) == f->int_default;
    }
    return f->null_default ? len < 0 : len == 0;
}

/* --- equality */

static bool struct_equal(const struct struct_desc *s, int version, const char *a, const char *b);

static bool bytes_equal(const void *a, int32_t an, const void *b, int32_t bn)
{
    return (an < 0 && bn < 0) || (an == bn && (an == 0 || memcmp(a, b, (size_t)an) == 0));
}

static bool records_equal(const struct records *a, const struct records *b)
{
    if (a->file || b->file)
        return a->file == b->file && a->len == b->len && a->pos == b->pos;
    return bytes_equal(a->p, a->len, b->p, b->len);
}

static bool value_equal(uint8_t type, const struct struct_desc *sub, int version, const void *a,
                        const void *b)
{
    switch (type) {
    case FIELD_FLOAT64:
        return memcmp(a, b, sizeof(double)) == 0;
    case FIELD_UUID:
        return memcmp(a, b, sizeof(struct uuid)) == 0;
    case FIELD_STRING:
    case FIELD_BYTES: {
        const struct bytes *x = a, *y = b; /* a str has the same layout */
        return bytes_equal(x->p, x->len, y->p, y->len);
    }
    case FIELD_RECORDS:
        return records_equal(a, b);
    case FIELD_STRUCT:
        return struct_equal(sub, version, a, b);
    default:
        return codec_load_int(type, a) == codec_load_int(type, b);
    }
}

static bool array_equal(const struct field_desc *f, int version, const struct any_array *a,
                        const struct any_array *b)
{
    if ((a->n < 0 ? -1 : a->n) != (b->n < 0 ? -1 : b->n))
        return false;
    size_t size = codec_elem_size(f);
    for (int32_t i = 0; i < a->n; i++)
        if (!value_equal(f->elem, f->sub, version, (char *)a->v + (size_t)i * size,
                         (char *)b->v + (size_t)i * size))
            return false;
    return true;
}

static bool field_equal(const struct field_desc *f, int version, const char *a, const char *b)
{
    if (f->type == FIELD_ARRAY)
        return array_equal(f, version, (const void *)a, (const void *)b);
    if (field_is_pointer(f)) {
        a = *(char *const *)a;
        b = *(char *const *)b;
        if (!a || !b)
            return a == b;
    }
    return value_equal(f->type, f->sub, version, a, b);
}

static bool struct_equal(const struct struct_desc *s, int version, const char *a, const char *b)
{
    for (int i = 0; i < s->fields_n; i++) {
        const struct field_desc *f = &s->fields[i];
        if (field_in(f, version) && !field_equal(f, version, a + f->offset, b + f->offset))
            return false;
    }
    return true;
}

bool msg_equal(const struct msg_desc *d, int version, const void *a, const void *b)
{
    return struct_equal(d->body, version, a, b);
}

const struct msg_desc *const *msg_all(int *n)
{
    *n = msg_rows_n;
    return msg_rows;
}
