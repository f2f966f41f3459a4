/* str.h - borrowed byte ranges: text (struct str) and bytes (struct bytes), and the 16-byte uuid.
 *
 * A range never owns what it points at; whoever hands it out says how long it stays good. len -1
 * with p NULL is the protocol's null; len 0 is empty. Text need not end in NUL. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *p;
    int32_t len;
};

struct bytes {
    const uint8_t *p;
    int32_t len;
};

struct uuid {
    uint8_t b[16];
};

#define STR_NULL ((struct str){NULL, -1})
#define STR_LIT(s) ((struct str){(s), (int32_t)sizeof(s) - 1})
#define BYTES_NULL ((struct bytes){NULL, -1})
#define UUID_ZERO ((struct uuid){{0}})
/* printf("%.*s", STR_ARG(s)) */
#define STR_ARG(s) ((s).len < 0 ? 4 : (int)(s).len), ((s).len < 0 ? "null" : (s).p)

static inline struct str str_of(const char *z)
{
    return z ? (struct str){z, (int32_t)strlen(z)} : STR_NULL;
}

static inline bool str_is_null(struct str s)
{
    return s.len < 0;
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len <= 0 || memcmp(a.p, b.p, (size_t)a.len) == 0);
}

static inline bool str_eqz(struct str a, const char *z)
{
    return str_eq(a, str_of(z));
}

/* memcmp order, shorter first on a common prefix; null sorts before empty. */
int str_cmp(struct str a, struct str b);

/* malloc'ed NUL-terminated copy; null becomes NULL. Returns owned. */
char *str_dup(struct str s);

static inline bool uuid_eq(struct uuid a, struct uuid b)
{
    return memcmp(a.b, b.b, 16) == 0;
}

static inline bool uuid_is_zero(struct uuid u)
{
    return uuid_eq(u, UUID_ZERO);
}

/* 16 random bytes from the kernel: never zero, never 0..01, text form never begins with '-'. */
struct uuid uuid_random(void);

/* URL-safe base64 without padding: 22 characters. `out` takes 23 bytes. */
void uuid_format(struct uuid u, char out[23]);
/* 0, or -EINVAL when the text is not 22 characters of URL-safe base64. */
int uuid_parse(struct str text, struct uuid *out);

#endif
