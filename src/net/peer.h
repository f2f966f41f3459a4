/* peer.h - an outbound connection to a broker: requests with correlation ids, answers matched in
 * order.
 *
 * Used by the client library, and by fetchers and the controller of a broker. Connects when the
 * first request is sent, negotiates versions by ApiVersions first (falling back to v0 as KIP-511
 * has it), and then uses for each request the highest version that both sides know, within what the
 * caller allows.
 *
 * OWNERSHIP  the caller owns the peer and must free it on its loop. Request structs are encoded
 * during the call. THREADS    everything on the loop given. */
#ifndef NET_PEER_H
#define NET_PEER_H

#include <uv.h>

#include "base/executor.h"
#include "protocol/api.h"

struct peer;

struct peer_options {
    const char *client_id;
    const char *software_name, *software_version; /* for ApiVersions v3 */
    int64_t connect_timeout_ms;
    int64_t request_timeout_ms; /* default for calls */
    int send_buffer, receive_buffer;
    uint32_t max_response; /* a longer answer closes the connection; 0 = 1 GiB */
};

/* status: 0, or -errno: -ECONNREFUSED..., -ETIMEDOUT, -ECONNRESET (closed before the answer),
 * -EPROTO (answer does not decode), -ENOTSUP (no version in common). On 0 `response` is the decoded
 * struct of the API's response at `version`; it and what it points to (records included: straight
 * into the receive buffer) are borrowed until the callback returns. */
typedef void (*peer_cb)(void *arg, int status, int version, const void *response);

/* Borrows loop and executor (same thread), copies the rest. */
struct peer *peer_new(uv_loop_t *loop, struct executor *ex, const char *host, int port,
                      const struct peer_options *o);
/* Closes, fails what is pending with -ECANCELED, frees when libuv lets go. */
void peer_free(struct peer *p);

/* Encodes `request` (the API's request struct) at the highest common version in [min_version,
 * max_version] (-1 = the table's) and sends it. timeout_ms < 0 = the default. `has_response` false
 * (Produce acks=0): cb comes when the bytes have left. The callback always comes, never before the
 * call returns. */
void peer_send(struct peer *p, int16_t api_key, int min_version, int max_version,
               const void *request, int64_t timeout_ms, bool has_response, peer_cb cb, void *arg);
/* The version that peer_send would take, or -1 (not connected yet, or none). */
int peer_version(const struct peer *p, int16_t api_key, int min_version, int max_version);
bool peer_connected(const struct peer *p);
int peer_in_flight(const struct peer *p);
/* The broker's ranges (its ApiVersions answer), once connected: min/max of a key; false when not
 * offered. */
bool peer_api_range(const struct peer *p, int16_t api_key, int16_t *min, int16_t *max);

#endif
