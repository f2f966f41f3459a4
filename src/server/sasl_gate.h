/* sasl_gate.h - the gate of a SASL listener's connections: until a client has shown who it is, and
 * again when its session ends (KIP-368), frames are no ordinary requests.
 *
 * STATES  before the first request that counts:
 *   ASK        ApiVersions once, or SaslHandshake
 *   HANDSHAKE  SaslHandshake
 *   TOKENS     SaslAuthenticate; after SaslHandshake v0, bare tokens
 *   OPEN       all else; the gate is gone if the session has no end. With one: a SaslHandshake
 *              begins a new exchange (not more often than once a second), and what comes after the
 *              end closes the connection
 *   BAD        a renewal with another mechanism: the next frame closes
 *   FAILED     the answer and the close wait for connection.failed.authentication.delay.ms
 *
 * Whatever is not due closes the connection: without an answer while the handshake is due, with
 * ILLEGAL_SASL_STATE among tokens.
 *
 * THREADS  a connection's reactor. */
#ifndef SERVER_SASL_GATE_H
#define SERVER_SASL_GATE_H

#include "net/server_conn.h"

struct sasl_listener;

/* listen_security.secured, with a struct sasl_listener as arg. */
bool sasl_gate_secured(void *arg, struct conn *c);

#endif
