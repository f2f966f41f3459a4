/* msg_random.h - fills any message with random values that its version can carry. Seeded, so that a
 * failure repeats. Strings, bytes and arrays are in an arena. */
#ifndef TESTS_MSG_RANDOM_H
#define TESTS_MSG_RANDOM_H

#include <stdlib.h>

#include "protocol/codec_walk.h"

struct msg_random {
    uint64_t state;
    int version;
    struct arena *arena;
    int budget; /* structs that may still be made, so that deep arrays stay small */
};

static inline uint64_t random_next(struct msg_random *r)
{
    /* splitmix64 */
    uint64_t z = (r->state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static inline int random_below(struct msg_random *r, int n)
{
    return (int)(random_next(r) % (uint64_t)n);
}

/* Extremes as often as anything else. */
static inline int64_t random_int(struct msg_random *r)
{
    static const int64_t edges[] = {0, 1, -1, INT64_MIN, INT64_MAX, 127, 128, 255, 1 << 14};
    int i = random_below(r, 18);
    return i < 9 ? edges[i] : (int64_t)random_next(r);
}

static inline int32_t random_len(struct msg_random *r)
{
    static const int32_t lens[] = {0, 1, 2, 3, 7, 126, 127, 128, 300};
    return lens[random_below(r, random_below(r, 8) ? 5 : 9)];
}

static inline void random_bytes(struct msg_random *r, const uint8_t **p, int32_t *len)
{
    *len = random_len(r);
    uint8_t *b = arena_alloc(r->arena, (size_t)*len + 1);
    for (int32_t i = 0; i < *len; i++)
        b[i] = (uint8_t)random_next(r);
    *p = b;
}

static inline void random_struct(struct msg_random *r, const struct struct_desc *s, char *m);

static inline void random_value(struct msg_random *r, uint8_t type, const struct struct_desc *sub,
                                void *p)
{
    int64_t v = random_int(r);
    switch (type) {
    case FIELD_BOOL:
        *(bool *)p = v & 1;
        break;
    case FIELD_INT8:
        *(int8_t *)p = (int8_t)v;
        break;
    case FIELD_INT16:
    case FIELD_UINT16:
        *(int16_t *)p = (int16_t)v;
        break;
    case FIELD_INT32:
        *(int32_t *)p = (int32_t)v;
        break;
    case FIELD_INT64:
    case FIELD_FLOAT64: /* any bits, NaNs too: they must come back as they were */
        *(int64_t *)p = v;
        break;
    case FIELD_UUID:
        for (int i = 0; i < 16; i++)
            ((uint8_t *)p)[i] = (uint8_t)random_next(r);
        break;
    case FIELD_STRING: {
        struct bytes *b = p; /* the same layout */
        random_bytes(r, &b->p, &b->len);
        for (int32_t i = 0; i < b->len;
             i++) /* text: what is not UTF-8 does not come back as sent */
            ((uint8_t *)(uintptr_t)b->p)[i] &= 0x7f;
        break;
    }
    case FIELD_BYTES: {
        struct bytes *b = p;
        random_bytes(r, &b->p, &b->len);
        break;
    }
    case FIELD_RECORDS: {
        struct records *b = p;
        *b = RECORDS_NULL;
        random_bytes(r, &b->p, &b->len);
        break;
    }
    case FIELD_STRUCT:
        random_struct(r, sub, p);
        break;
    }
}

static inline void random_field(struct msg_random *r, const struct field_desc *f, char *p)
{
    bool null = field_nullable(f, r->version) && random_below(r, 4) == 0;
    if (field_is_pointer(f)) {
        *(void **)p = null ? NULL : arena_alloc(r->arena, f->sub->size);
        if (!null)
            random_struct(r, f->sub, *(char **)p);
    } else if (f->type == FIELD_ARRAY) {
        struct any_array *a = (void *)p;
        int32_t n = r->budget > 0 ? random_len(r) % (f->elem == FIELD_STRUCT ? 4 : 20) : 0;
        r->budget -= n;
        *a = (struct any_array){NULL, null ? -1 : n};
        if (a->n > 0)
            a->v = arena_alloc(r->arena, (size_t)n * codec_elem_size(f));
        for (int32_t i = 0; i < a->n; i++)
            random_value(r, f->elem, f->sub, (char *)a->v + (size_t)i * codec_elem_size(f));
    } else if (null) {
        /* bytes, strings and records begin alike: pointer, length */
        ((struct bytes *)p)->p = NULL;
        ((struct bytes *)p)->len = -1;
    } else {
        random_value(r, f->type, f->sub, p);
    }
}

static inline void random_struct(struct msg_random *r, const struct struct_desc *s, char *m)
{
    msg_struct_init(s, m);
    for (int i = 0; i < s->fields_n; i++) {
        const struct field_desc *f = &s->fields[i];
        /* absent fields keep their defaults; some tagged ones too */
        if (field_in(f, r->version) && !(field_tagged(f, r->version) && random_below(r, 3) == 0))
            random_field(r, f, m + f->offset);
    }
}

/* A new message in the arena. */
static inline void *msg_random(const struct msg_desc *d, int version, uint64_t seed,
                               struct arena *arena)
{
    struct msg_random r = {.state = seed, .version = version, .arena = arena, .budget = 200};
    void *m = arena_alloc(arena, d->body->size);
    random_struct(&r, d->body, m);
    return m;
}

#endif
