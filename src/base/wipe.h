/* wipe.h - overwrites what was secret before its memory goes back, in a way that no compiler takes
 * for useless. Of memory that others hand back for us there is arena.h's `secret`. */
#ifndef BASE_WIPE_H
#define BASE_WIPE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* p may be NULL when n is 0. */
static inline void mem_wipe(void *p, size_t n)
{
    if (n)
        explicit_bzero(p, n);
}

/* Frees the text as well. NULL is fine. */
static inline void text_wipe_free(char *text)
{
    if (text)
        mem_wipe(text, strlen(text));
    free(text);
}

#endif
