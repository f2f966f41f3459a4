/* codec_walk.h - what the walkers of the field tables share. Private to codec*.c. */
#ifndef PROTOCOL_CODEC_WALK_H
#define PROTOCOL_CODEC_WALK_H

#include "protocol/codec.h"

/* Every ARRAY(T) has this layout. */
struct any_array {
    void *v;
    int32_t n;
};

enum { STRING_MAX = INT16_MAX }; /* bytes of a string, in all versions */

static inline bool field_in(const struct field_desc *f, int version)
{
    return f->min <= version && version <= f->max;
}

static inline bool field_tagged(const struct field_desc *f, int version)
{
    return f->tag_min <= version && version <= f->tag_max;
}

static inline bool field_nullable(const struct field_desc *f, int version)
{
    return f->null_min <= version && version <= f->null_max;
}

/* A nullable struct is behind a pointer, in every version. */
static inline bool field_is_pointer(const struct field_desc *f)
{
    return f->type == FIELD_STRUCT && f->null_min <= f->null_max;
}

/* Size in C of an array's element. */
size_t codec_elem_size(const struct field_desc *f);
/* A field of bool or integer type. */
int64_t codec_load_int(uint8_t type, const void *p);
void codec_set_default(const struct field_desc *f, void *p);
bool codec_is_default(const struct field_desc *f, const void *p);

#endif
