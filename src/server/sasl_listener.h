/* sasl_listener.h - what a SASL listener asks of those who connect: mechanisms, users, limits; from
 * the settings "listener.name.<listener>.[<mechanism>.]<key>", else "<key>".
 *
 *   sasl.enabled.mechanisms, sasl.jaas.config (of a mechanism), connections.max.reauth.ms,
 *   sasl.server.max.receive.size, connection.failed.authentication.delay.ms, sasl.oauthbearer.*
 *
 * sasl.jaas.config without a mechanism holds for the mechanism that its login module is of.
 *
 * THREADS  immutable; used by all reactors. */
#ifndef SERVER_SASL_LISTENER_H
#define SERVER_SASL_LISTENER_H

#include "base/clock.h"
#include "net/peer_auth.h"
#include "sasl/sasl_server.h"
#include "server/config.h"

struct scram_users;
struct tokens;

struct sasl_listener {
    struct sasl_server_config *configs[SASL_MECHANISMS]; /* owned; NULL = not offered */
    int64_t max_reauth_ms[SASL_MECHANISMS];              /* <= 0: none */
    enum sasl_mechanism offered[SASL_MECHANISMS];        /* in the order of the setting */
    int offered_n;
    uint32_t max_receive, max_frame; /* before, after */
    int64_t failed_delay_ms;
};

/* Borrows users and tokens (NULL: there are none). 0; -ENOMEM; -EINVAL with a line in err, which
 * names the setting and tells no secret. @blocks on reading files */
int sasl_listener_new(const struct config *c, const char *listener, struct scram_users *users,
                      struct tokens *tokens, struct sasl_listener **out, char *err, size_t err_n);
void sasl_listener_free(struct sasl_listener *l); /* NULL is fine */

/* Other settings give another one: of a listener that was removed and comes back. */
uint64_t sasl_listener_fingerprint(const struct config *c, const char *listener);

/* How this broker logs in at others' listener of that name (sasl.mechanism.inter.broker.protocol).
 * Free with peer_sasl_free. As sasl_listener_new. */
int sasl_listener_peer(const struct config *c, const char *listener, const struct clock *clock,
                       struct peer_auth **out, char *err, size_t err_n);

/* Does it have what it needs, if it has SASL? As sasl_listener_new. */
int sasl_listener_check(const struct config *c, const struct listener_config *l, char *err,
                        size_t err_n);
/* Do brokers talk to each other by this listener? */
bool sasl_listener_for_brokers(const struct config *c, const struct listener_config *l);
static inline bool sasl_listener_has(const struct listener_config *l)
{
    return l->security_protocol == PROTOCOL_SASL_PLAINTEXT ||
           l->security_protocol == PROTOCOL_SASL_SSL;
}

#endif
