/* json.h - jansson as the node codecs use it: typed look-ups that answer -EBADMSG, text into an
 * arena. For metadata/ and acl/ only. */
#ifndef METADATA_JSON_H
#define METADATA_JSON_H

#include <jansson.h>

#include "metadata/znode.h"

/* The object that the bytes hold; NULL when they do not. The caller's (json_decref). */
json_t *json_parse(struct bytes data);
/* Gives up the object and returns its compact text in the arena; null bytes for NULL. */
struct bytes json_emit(json_t *o, struct arena *a);

/* 0; -EBADMSG missing, of another type or out of range. */
int json_get_i32(const json_t *o, const char *key, int32_t *out);
/* Missing or null gives `otherwise`. */
int json_get_i32_or(const json_t *o, const char *key, int32_t otherwise, int32_t *out);
/* A number, or a decimal text. */
int json_get_i64(const json_t *o, const char *key, int64_t *out);
/* Copied into the arena. */
int json_get_str(const json_t *o, const char *key, struct arena *a, struct str *out);
int json_to_str(const json_t *text, struct arena *a, struct str *out);
int json_to_ids(const json_t *array, struct arena *a, struct id_list *out);

/* New values, NULL without memory or when the text is not UTF-8. */
json_t *json_of_str(struct str s);
json_t *json_of_ids(struct id_list l);
/* A decimal text. */
json_t *json_of_i64_text(int64_t v);
/* Puts the value in and takes it, also on failure. key: NUL-terminated. 0 or -1. */
int json_put(json_t *o, const char *key, json_t *value);

#endif
