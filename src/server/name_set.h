/* name_set.h - the names of one request, to find those that stand in it twice. Memory: an arena.
 *
 * THREADS    one.
 *
 * OWNERSHIP  names are borrowed. */
#ifndef SERVER_NAME_SET_H
#define SERVER_NAME_SET_H

#include "base/arena.h"

struct name_slot {
    struct str name;
    bool twice;
};
struct name_set {
    struct name_slot *slots; /* p NULL in the name = free */
    uint32_t mask;
};

/* Room for n names. 0 or -ENOMEM. */
int name_set_init(struct name_set *s, struct arena *a, int32_t n);
/* True when the name was not there; else marks it as standing there twice. Borrows the name. At
 * most n calls. */
bool name_set_add(struct name_set *s, struct str name);
bool name_set_has(const struct name_set *s, struct str name);
/* Was it added more than once? */
bool name_set_twice(const struct name_set *s, struct str name);

#endif
