/* arena.h - memory with one lifetime (a request, a batch of work) and a cap.
 *
 * Grows in chunks; nothing is freed singly. An allocation that would pass the cap returns NULL and
 * marks the arena exhausted, so that a request from outside can never make memory grow past what
 * its owner allowed.
 *
 * THREADS  one at a time; no locks inside. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    char *at, *end;             /* free part of the newest chunk */
    size_t used;                /* bytes handed out, with padding */
    size_t cap;
    bool exhausted; /* some allocation was refused */
    bool secret;    /* set by who puts a secret into it: what it holds is overwritten before its
                       memory goes back; until arena_free or _reset */
};

/* `cap` bytes at most; 0 means no cap. Allocates nothing. */
void arena_init(struct arena *a, size_t cap);
/* Frees all; the arena is as after arena_init. */
void arena_free(struct arena *a);
/* Forgets all but keeps one chunk for reuse; it is as after arena_init. */
void arena_reset(struct arena *a);

/* Aligned for any type, not cleared. NULL over the cap or without memory. */
void *arena_alloc(struct arena *a, size_t size);
/* n * size, checked for overflow, zeroed. n == 0 returns a non-NULL pointer that must not be used.
 */
void *arena_calloc(struct arena *a, size_t n, size_t size);
struct str arena_str(struct arena *a, struct str s); /* copy with NUL behind; null stays null */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define arena_new(a, type) ((type *)arena_calloc((a), 1, sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_calloc((a), (n), sizeof(type)))

#endif
