/* peer.h - an outbound connection to a broker: requests with correlation ids, answers matched in
 * order.
 *
 * Used by the client library, and by fetchers and the controller of a broker. Connects when the
 * first request is sent, negotiates versions by ApiVersions first (falling back to an older one as
 * KIP-511 has it), and then uses for each request the highest version that both sides know, within
 * what the caller allows.
 *
 * FAILURE    When the connection cannot be made, ends or is broken, every request that waits fails,
 *            and the next one sent connects again; pauses between attempts are the caller's. A
 *            request that times out closes the connection, for nobody knows what becomes of it: the
 *            others then fail with -ECONNRESET.
 *
 * OWNERSHIP  the caller owns the peer and must free it on its loop. Requests are encoded, or copied
 *            while there is no connection, during the call.
 *
 * THREADS    everything on the loop given. Its thread need not block SIGPIPE: requests hold no file
 *            ranges (those of a records field are read into memory). */
#ifndef NET_PEER_H
#define NET_PEER_H

#include <uv.h>

#include "base/executor.h"
#include "protocol/api.h"

struct peer;
struct peer_response; /* the memory of an answer */

struct tls;
struct peer_auth;
/* What a connection goes through before it is used. Borrowed by peers, and outlives them. */
struct peer_security {
    struct tls *tls;              /* NULL = none */
    const struct peer_auth *auth; /* NULL = the broker does not ask who it is */
};

struct peer_options {
    const char *client_id;                        /* NULL = null */
    const char *software_name, *software_version; /* for ApiVersions v3; NULL = this project's */
    int64_t connect_timeout_ms;                   /* for each address of the host; <= 0 = none */
    int64_t connect_timeout_max_ms;  /* twice as long after each failure in a row, up to this */
    int64_t request_timeout_ms;      /* default for calls, and for the negotiation; <= 0 = none */
    int send_buffer, receive_buffer; /* <= 0 = the system's */
    int receive_least;               /* see sock_receive_at_least; 0 = none */
    uint32_t max_response;           /* a longer answer closes the connection; 0 = 1 GiB */
    struct peer_security security;
    bool quiet; /* what peer_failure tells is no line of the log's */
    /* The connection has ended while no request waited, so that no callback tells of it. May be
     * NULL. Must not free the peer. */
    void (*lost)(void *arg);
    void *lost_arg;
};

/* status: 0, or -errno: -ECONNREFUSED..., -EHOSTUNREACH (also: the name is unknown), -ETIMEDOUT,
 * -ECONNRESET (closed before the answer), -EPROTO (the answer does not decode, is not the one that
 * is due, or the negotiation failed), -ENOTSUP (no version in common, or a value that it cannot
 * carry), -EACCES (the broker does not let us in, or is not the one that it should be: see
 * peer_failure), -ENOMEM, -ECANCELED (peer_free). On 0 `response` is the decoded struct of the
 * API's response at `version` (NULL without response); it and what it points to (records included:
 * straight into the receive buffer) are borrowed until the callback returns, or kept: see
 * peer_keep_response. The callback may send and may free the peer. */
typedef void (*peer_cb)(void *arg, int status, int version, const void *response);

/* Borrows loop and executor (same thread), copies the rest. NULL without memory. */
struct peer *peer_new(uv_loop_t *loop, struct executor *ex, const char *host, int port,
                      const struct peer_options *o);
/* Closes, fails what is pending with -ECANCELED (callbacks come before this returns), frees when
 * libuv lets go: the loop must turn once more. NULL is fine. */
void peer_free(struct peer *p);

/* Encodes `request` (the API's request struct) at the highest common version in [min_version,
 * max_version] (-1 = the table's) and sends it. timeout_ms < 0 = the default. `has_response` false
 * (Produce acks=0): cb comes when the bytes have left. The callback always comes, never before the
 * call returns; only on -ENOMEM returned here, instead of 0, it does not. */
int peer_send(struct peer *p, int16_t api_key, int min_version, int max_version,
              const void *request, int64_t timeout_ms, bool has_response, peer_cb cb, void *arg);
/* The version that peer_send would take, or -1 (not connected yet, or none). */
int peer_version(const struct peer *p, int16_t api_key, int min_version, int max_version);
bool peer_connected(const struct peer *p);
/* Why the last connection could not be secured or was not let in, in words; NULL when that was not
 * the reason. One line, whatever the other side said. Borrowed until the next attempt. */
const char *peer_failure(const struct peer *p);
/* Some connection, this one or an earlier one, got through the negotiation: Kafka's protocol is
 * spoken there. */
bool peer_answered(const struct peer *p);
/* Requests whose callback has not come. */
int peer_in_flight(const struct peer *p);
/* The broker's ranges (its ApiVersions answer), once connected: min/max of a key; false when not
 * offered. */
bool peer_api_range(const struct peer *p, int16_t api_key, int16_t *min, int16_t *max);

/* Within a callback with a response: it stays good until peer_response_free. Returns owned, NULL
 * without memory. */
struct peer_response *peer_keep_response(struct peer *p);
/* @thread any, one at a time */
void peer_response_free(struct peer_response *r);
/* The same, but its memory serves this peer's next answers: fresh memory costs a large one more
 * than its transfer. @thread the peer's */
void peer_recycle_response(struct peer *p, struct peer_response *r);

#endif
