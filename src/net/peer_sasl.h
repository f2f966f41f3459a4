/* peer_sasl.h - a peer's login by SASL: ApiVersions, SaslHandshake, tokens, in Kafka's frames
 * (peer_auth.h), with what sasl/sasl_client.h says in them.
 *
 * ORDER   ApiVersions v0 (which versions of the next two does the broker know?), SaslHandshake,
 * then tokens: in SaslAuthenticate, or bare where the broker does not know that. A renewal begins
 * with SaslHandshake.
 *
 * THREADS  as peer_auth.h has it. */
#ifndef NET_PEER_SASL_H
#define NET_PEER_SASL_H

#include "base/clock.h"
#include "net/peer_auth.h"
#include "sasl/sasl_client.h"

/* Takes the config; borrows the clock. Returns owned; NULL without memory (the config is freed). */
struct peer_auth *peer_sasl_new(struct sasl_client_config *config, const struct clock *clock);
/* When no peer uses it. NULL is fine. */
void peer_sasl_free(struct peer_auth *a);

#endif
