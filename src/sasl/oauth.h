/* oauth.h - the messages of OAUTHBEARER (RFC 7628), and a client's own unsecured tokens.
 *
 *   client   n,[a=<authzid>],^Aauth=Bearer <token>[^A<key>=<value>...]^A^A     (^A is byte 1)
 *   server   empty: it is over; else {"status":"invalid_token"}, which the client answers with ^A
 *
 * What is taken apart points into the message.
 *
 * THREADS  any: no state. */
#ifndef SASL_OAUTH_H
#define SASL_OAUTH_H

#include "sasl/jaas.h"

struct oauth_message {
    struct str authzid; /* empty: none */
    struct str token;
};

/* False: *problem (static) says why not. */
bool oauth_parse(struct bytes message, struct oauth_message *out, const char **problem);
/* Extensions: options of the module that begin with `prefix`; the rest of the name is the key. In
 * the arena; null without memory, or with an extension that cannot be said. */
struct bytes oauth_make(struct str token, const struct jaas_module *m, const char *prefix,
                        struct arena *a);
/* The token that the options unsecuredLogin... of the module describe. In the arena. NULL when it
 * could be made, else what is wrong. */
const char *oauth_unsecured_token(const struct jaas_module *m, int64_t now_ms, struct arena *a,
                                  struct str *out);
/* Does the module have such options? */
bool oauth_wants_unsecured(const struct jaas_module *m);

#endif
