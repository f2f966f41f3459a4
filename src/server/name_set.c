/* name_set.c - open addressing, at most half full. Hashes are keyed per process, so that names from
 * outside cannot be made to collide. */
#include "server/name_set.h"

#include <errno.h>

#include "base/hmap.h"

int name_set_init(struct name_set *s, struct arena *a, int32_t n)
{
    uint32_t size = 4;
    while (size < (uint32_t)n * 2)
        size *= 2;
    s->mask = size - 1;
    s->slots = arena_array(a, struct name_slot, size);
    return s->slots ? 0 : -ENOMEM;
}

/* The name's slot, or the free one where it belongs. */
static struct name_slot *find(const struct name_set *s, struct str name)
{
    uint32_t at = (uint32_t)hash_str(name) & s->mask;
    while (s->slots[at].name.p && !str_eq(s->slots[at].name, name))
        at = (at + 1) & s->mask;
    return &s->slots[at];
}

bool name_set_add(struct name_set *s, struct str name)
{
    struct name_slot *slot = find(s, name);
    if (slot->name.p) {
        slot->twice = true;
        return false;
    }
    *slot = (struct name_slot){.name = name.p ? name : STR_LIT("")};
    return true;
}

bool name_set_has(const struct name_set *s, struct str name)
{
    return find(s, name)->name.p != NULL;
}

bool name_set_twice(const struct name_set *s, struct str name)
{
    return find(s, name)->twice;
}
