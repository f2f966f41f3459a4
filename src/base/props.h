/* props.h - Java .properties text: comments, key = value / key : value / key value, backslash
 * escapes (\t \n \r \f \uXXXX, line continuation), later lines win. As in Java a file's bytes are
 * Latin-1; keys and values are UTF-8 here.
 *
 * Some values are passwords: memory that held a value, or the text it came from, is overwritten
 * before it is freed.
 *
 * THREADS  one. */
#ifndef BASE_PROPS_H
#define BASE_PROPS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

struct props;

struct props *props_new(void);
/* Returns owned; NULL without memory. */
struct props *props_copy(const struct props *p);
void props_free(struct props *p);
/* Adds what the text says. 0; -EINVAL with the line number in *line (malformed \u escape, or a
 * NUL); -ENOMEM. The lines before it are in. `line` may be NULL. */
int props_parse(struct props *p, const char *text, size_t len, int *line);
/* Reads a file. -errno as of open/read, or as props_parse. */
int props_load(struct props *p, const char *path, int *line);
/* Copies both. 0 or -ENOMEM (then nothing has changed). */
int props_set(struct props *p, const char *key, const char *value);
void props_remove(struct props *p, const char *key);
/* Borrowed until the key is set or removed; NULL when absent. */
const char *props_get(const struct props *p, const char *key);
size_t props_count(const struct props *p);
/* i-th in order of first appearance. */
void props_at(const struct props *p, size_t i, const char **key, const char **value);
/* key=value lines with Java's escapes, readable by props_parse. */
void props_write(const struct props *p, struct buf *out);

#endif
