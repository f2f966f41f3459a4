/* json.c - see json.h. */
#include "metadata/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

json_t *json_parse(struct bytes data)
{
    if (data.len <= 0)
        return NULL;
    json_t *o = json_loadb((const char *)data.p, (size_t)data.len, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(o)) {
        json_decref(o);
        return NULL;
    }
    return o;
}

struct bytes json_emit(json_t *o, struct arena *a)
{
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    if (!text)
        return BYTES_NULL;
    struct str copy = arena_str(a, str_of(text));
    free(text);
    return copy.p ? (struct bytes){(const uint8_t *)copy.p, copy.len} : BYTES_NULL;
}

int json_get_i32(const json_t *o, const char *key, int32_t *out)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v))
        return -EBADMSG;
    json_int_t i = json_integer_value(v);
    if (i < INT32_MIN || i > INT32_MAX)
        return -EBADMSG;
    *out = (int32_t)i;
    return 0;
}

int json_get_i32_or(const json_t *o, const char *key, int32_t otherwise, int32_t *out)
{
    const json_t *v = json_object_get(o, key);
    *out = otherwise;
    return !v || json_is_null(v) ? 0 : json_get_i32(o, key, out);
}

int json_get_i64(const json_t *o, const char *key, int64_t *out)
{
    const json_t *v = json_object_get(o, key);
    if (json_is_integer(v)) {
        *out = json_integer_value(v);
        return 0;
    }
    const char *text = json_string_value(v);
    if (!text || !*text || strspn(text, "-0123456789") != strlen(text))
        return -EBADMSG;
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno || *end ? -EBADMSG : 0;
}

int json_to_str(const json_t *text, struct arena *a, struct str *out)
{
    if (!json_is_string(text))
        return -EBADMSG;
    struct str s = {json_string_value(text), (int32_t)json_string_length(text)};
    *out = arena_str(a, s);
    return out->p ? 0 : -ENOMEM;
}

int json_get_str(const json_t *o, const char *key, struct arena *a, struct str *out)
{
    return json_to_str(json_object_get(o, key), a, out);
}

int json_to_ids(const json_t *array, struct arena *a, struct id_list *out)
{
    *out = (struct id_list){NULL, 0};
    if (!json_is_array(array))
        return -EBADMSG;
    size_t n = json_array_size(array);
    int32_t *v = arena_array(a, int32_t, n);
    if (!v)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(array, i);
        json_int_t number = json_integer_value(id);
        if (!json_is_integer(id) || number < INT32_MIN || number > INT32_MAX)
            return -EBADMSG;
        v[i] = (int32_t)number;
    }
    *out = (struct id_list){v, (int)n};
    return 0;
}

json_t *json_of_str(struct str s)
{
    return s.len < 0 ? json_null() : json_stringn(s.len ? s.p : "", (size_t)s.len);
}

json_t *json_of_ids(struct id_list l)
{
    json_t *array = json_array();
    for (int i = 0; array && i < l.n; i++)
        if (json_array_append_new(array, json_integer(l.v[i]))) {
            json_decref(array);
            return NULL;
        }
    return array;
}

json_t *json_of_i64_text(int64_t v)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, v);
    return json_string(text);
}

int json_put(json_t *o, const char *key, json_t *value)
{
    return json_object_set_new(o, key, value);
}
