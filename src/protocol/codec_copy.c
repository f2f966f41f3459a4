/* codec_copy.c - deep copies of messages: for those who must keep one longer than what it points
 * into. */
#include "protocol/codec_walk.h"

static bool copy_struct(const struct struct_desc *s, struct arena *a, char *m);

/* Replaces *p by a copy of what it points to. */
static bool copy_memory(struct arena *a, const void **p, size_t n)
{
    void *to = *p && n > 0 ? arena_alloc(a, n) : NULL;
    if (!to)
        return !*p || n == 0;
    memcpy(to, *p, n);
    *p = to;
    return true;
}

static bool copy_records(struct arena *a, struct records *r)
{
    if (!r->file)
        return r->len <= 0 || copy_memory(a, (const void **)&r->p, (size_t)r->len);
    uint8_t *to = r->len > 0 ? arena_alloc(a, (size_t)r->len) : NULL;
    if (r->len > 0 && (!to || file_pread(r->file, to, (size_t)r->len, r->pos) != r->len))
        return false;
    *r = (struct records){to, r->len, NULL, 0};
    return true;
}

/* A value that has been copied as a C struct: what it points to follows. */
static bool copy_value(uint8_t type, const struct struct_desc *sub, struct arena *a, void *p)
{
    switch (type) {
    case FIELD_STRING:
    case FIELD_BYTES: {
        struct bytes *b = p; /* a str has the same layout */
        return b->len <= 0 || copy_memory(a, (const void **)&b->p, (size_t)b->len);
    }
    case FIELD_RECORDS:
        return copy_records(a, p);
    case FIELD_STRUCT:
        return copy_struct(sub, a, p);
    default:
        return true;
    }
}

static bool copy_array(const struct field_desc *f, struct arena *a, struct any_array *v)
{
    size_t size = codec_elem_size(f);
    if (v->n <= 0)
        return true;
    if (!copy_memory(a, (const void **)&v->v, (size_t)v->n * size))
        return false;
    for (int32_t i = 0; i < v->n; i++)
        if (!copy_value(f->elem, f->sub, a, (char *)v->v + (size_t)i * size))
            return false;
    return true;
}

static bool copy_struct(const struct struct_desc *s, struct arena *a, char *m)
{
    for (int i = 0; i < s->fields_n; i++) {
        const struct field_desc *f = &s->fields[i];
        void *p = m + f->offset;
        bool ok;
        if (f->type == FIELD_ARRAY) {
            ok = copy_array(f, a, p);
        } else if (field_is_pointer(f)) {
            void **inner = p;
            ok = !*inner || (copy_memory(a, (const void **)inner, f->sub->size) &&
                             copy_struct(f->sub, a, *inner));
        } else {
            ok = copy_value(f->type, f->sub, a, p);
        }
        if (!ok)
            return false;
    }
    return true;
}

void *msg_copy(const struct msg_desc *d, struct arena *a, const void *m)
{
    void *to = arena_alloc(a, d->body->size);
    if (!to)
        return NULL;
    memcpy(to, m, d->body->size);
    return copy_struct(d->body, a, to) ? to : NULL;
}
