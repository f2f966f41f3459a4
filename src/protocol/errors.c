/* errors.c - look-ups in the list of error codes. */
#include "protocol/errors.h"

#include <stddef.h>

struct row {
    const char *name, *text;
    bool retriable;
};

/* by code + 1, since the lowest code is -1 */
static const struct row rows[] = {
#define KERR(name, code, retriable, text) [(code) + 1] = {#name, text, retriable},
#include "protocol/errors.def"
#undef KERR
};

static const struct row *find(int16_t code)
{
    int i = code + 1;
    if (i < 0 || i >= (int)(sizeof(rows) / sizeof(rows[0])) || !rows[i].name)
        i = KERR_UNKNOWN_SERVER_ERROR + 1;
    return &rows[i];
}

const char *kerr_name(int16_t code)
{
    return find(code)->name;
}

const char *kerr_text(int16_t code)
{
    return find(code)->text;
}

bool kerr_retriable(int16_t code)
{
    return find(code)->retriable;
}
