/* utf8.h - text that may hold any bytes, shown as text: what is not UTF-8 becomes U+FFFD, in the
 * places where Java's decoder puts one. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Bytes of the character at p (n >= 1), or, with *ok false, of a malformed piece that stands for
 * one replacement character. 1 to 4. */
size_t utf8_next(const uint8_t *p, size_t n, bool *ok);
/* Is all of it well formed? */
bool utf8_valid(const void *p, size_t n);
/* Appends the text, malformed pieces replaced. */
void utf8_put(struct buf *out, const void *p, size_t n);
/* Malformed text is replaced by a copy in the arena without malformed pieces. 0 or -ENOMEM; null is
 * left alone. */
int utf8_mend(struct str *s, struct arena *a);

#endif
