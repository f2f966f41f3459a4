/* peer_auth.h - how a peer shows a broker who it is (SASL), before its first ordinary request on
 * each connection, and again when its session is about to end (KIP-368).
 *
 * An exchange is a conversation in frames: one from us, one from the broker, until it is done or
 * has failed. It touches no socket and waits for nothing, so a test plays the broker's part with
 * bytes. Frames are whole: with a request header where there is one (own correlation ids), or a
 * bare token.
 *
 * OWNERSHIP  a struct peer_auth is borrowed by peers and outlives them; several peers, on several
 *            threads, may begin exchanges of one. The peer owns its exchange.
 *
 * THREADS    begin: any. An exchange: its peer's. */
#ifndef NET_PEER_AUTH_H
#define NET_PEER_AUTH_H

#include "protocol/codec.h"

struct peer_auth;
struct peer_exchange;

/* Whom the exchange is with. Borrowed until begin returns. */
struct peer_auth_with {
    const char *host;
    int port;
    const char *client_id; /* NULL = null */
    bool again;            /* on a connection that was authenticated before */
};

enum peer_auth_step { PEER_AUTH_MORE, PEER_AUTH_DONE, PEER_AUTH_WORK };

struct peer_exchange_ops {
    /* `in` is the frame that came (no length in front; n is 0 at the first call). MORE: the frame
     * to send is in `out`, and the next call follows when its answer is there. DONE: nothing is
     * sent. WORK: `work` is due, and when it has returned the next call, with n 0. Else -errno with
     * a line in `why`: -EACCES = the broker refused it, does not offer the mechanism, or is not who
     * it should be; -EPROTO = it speaks otherwise; -ENOMEM. */
    int (*step)(struct peer_exchange *x, const void *in, size_t n, struct writer *out, char *why,
                size_t why_n);
    /* What takes too long for a loop. On another thread, while nothing else is called. */
    void (*work)(struct peer_exchange *x);
    /* After DONE: begin again after so long at the latest; 0 = the session has no end. */
    int64_t (*again_after_ms)(const struct peer_exchange *x);
    void (*free)(struct peer_exchange *x);
};
struct peer_exchange {
    const struct peer_exchange_ops *ops;
};

struct peer_auth_ops {
    /* Returns owned; NULL without memory. */
    struct peer_exchange *(*begin)(const struct peer_auth *a, const struct peer_auth_with *with);
};
struct peer_auth {
    const struct peer_auth_ops *ops;
};

#endif
