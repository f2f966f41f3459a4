/* quota_entity.h - whom a quota is for: a user, a client id, both, or an address; each by name or
 * as the default for all that have none of their own.
 *
 * PATHS  below /config: users/<u>, clients/<c>, users/<u>/clients/<c>, ips/<address>. Names are
 * percent-encoded but for letters, digits, '.', '-' and '_'; the default is <default> as it is. */
#ifndef SERVER_QUOTA_ENTITY_H
#define SERVER_QUOTA_ENTITY_H

#include "base/arena.h"

enum quota_part { QUOTA_USER, QUOTA_CLIENT, QUOTA_IP, QUOTA_PARTS };

struct quota_entity {
    struct {
        bool given;
        struct str name; /* null = the default */
    } part[QUOTA_PARTS];
};

/* "user", "client-id", "ip", as the protocol calls them. Static. */
const char *quota_part_name(enum quota_part part);
bool quota_part_find(struct str name, enum quota_part *out);

/* Is this one of the four forms, with no empty name? */
bool quota_entity_valid(const struct quota_entity *e);
/* The path of a valid one, in the arena; NULL without memory. */
char *quota_entity_path(const struct quota_entity *e, struct arena *a);
/* The names are in the arena. False: no such path, or no memory. */
bool quota_entity_parse(struct str path, struct arena *a, struct quota_entity *out);

#endif
