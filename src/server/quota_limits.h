/* quota_limits.h - which quota holds for a request: the configured ones, by whom they are for, and
 * Kafka's order among them.
 *
 * Of those that fit a request's user and client id, the first of this list that sets the kind asked
 * for holds: user and client id; user and any client id; user; any user and client id; any user and
 * any client id; any user; client id; any client id.
 *
 * THREADS  the caller's lock. */
#ifndef SERVER_QUOTA_LIMITS_H
#define SERVER_QUOTA_LIMITS_H

#include "base/hmap.h"
#include "metadata/znode.h"
#include "server/quota_entity.h"

enum quota_kind { QUOTA_PRODUCE, QUOTA_FETCH, QUOTA_REQUEST, QUOTA_MUTATION, QUOTA_KINDS };

/* In order of precedence. */
enum quota_level {
    QUOTA_USER_AND_CLIENT,
    QUOTA_USER_ANY_CLIENT,
    QUOTA_USER_ALONE,
    QUOTA_ANY_USER_AND_CLIENT,
    QUOTA_ANY_USER_ANY_CLIENT,
    QUOTA_ANY_USER,
    QUOTA_CLIENT_ALONE,
    QUOTA_ANY_CLIENT,
    QUOTA_FILE, /* of each client id, from the settings of Kafka 2.3 */
    QUOTA_LEVELS
};

/* NULL: there is no such key of users and clients. Else is its value a whole number? */
const bool *quota_key_whole(struct str key);

struct quota_limits {
    struct hmap entries; /* of struct limit_entry, by level and names; owned */
    int counts[QUOTA_KINDS][QUOTA_LEVELS];
};

void quota_limits_init(struct quota_limits *l);
void quota_limits_free(struct quota_limits *l);
/* Takes the place of what was set for this user, client id or both; an empty list removes it. Keys
 * that are no quotas (SCRAM) are passed over, values that are no numbers too, with a line. 0 or
 * -ENOMEM. */
int quota_limits_set(struct quota_limits *l, const struct quota_entity *e, struct config_list list);
/* What holds for each client id for which nothing else does. 0 or -ENOMEM. Once a kind. */
int quota_limits_set_default(struct quota_limits *l, enum quota_kind kind, double rate);
/* False: none holds. */
bool quota_limits_find(const struct quota_limits *l, enum quota_kind kind, struct str user,
                       struct str client, double *limit, enum quota_level *level);
static inline bool quota_limits_any(const struct quota_limits *l, enum quota_kind kind)
{
    for (int i = 0; i < QUOTA_LEVELS; i++)
        if (l->counts[kind][i] > 0)
            return true;
    return false;
}

#endif
