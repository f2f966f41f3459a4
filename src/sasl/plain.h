/* plain.h - the one message of PLAIN (RFC 4616): [authzid] NUL user NUL password.
 *
 * What is taken apart points into the message.
 *
 * THREADS  any: no state. */
#ifndef SASL_PLAIN_H
#define SASL_PLAIN_H

#include "base/arena.h"

struct plain_message {
    struct str authzid, user, password; /* authzid may be empty, the others are not */
};

/* False: `*problem` (static) says why not. */
bool plain_parse(struct bytes token, struct plain_message *out, const char **problem);
/* In the arena; null without memory. */
struct bytes plain_make(struct str user, struct str password, struct arena *a);
/* In a time that does not tell where they differ. */
bool plain_same_password(struct str a, struct str b);

#endif
