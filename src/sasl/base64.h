/* base64.h - base64 of RFC 4648: the standard alphabet with padding, and the URL-safe one without.
 *
 * Decoding takes only what encoding would have made: no spaces, no bits behind the end.
 *
 * THREADS  any: no state. */
#ifndef SASL_BASE64_H
#define SASL_BASE64_H

#include <stddef.h>

#include "base/arena.h"

/* In the arena with NUL behind; null without memory. */
struct str base64_encode(const void *p, size_t n, struct arena *a);
struct str base64_url_encode(const void *p, size_t n, struct arena *a);
/* In the arena; null when the text is none, or without memory. Empty text is empty bytes. */
struct bytes base64_decode(struct str text, struct arena *a);
/* Padding may be there or not. */
struct bytes base64_url_decode(struct str text, struct arena *a);

#endif
