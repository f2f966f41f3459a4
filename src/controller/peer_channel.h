/* peer_channel.h - the controller's channel to a broker elsewhere: control requests over a
 * connection.
 *
 * ORDER    a queue; one request is out at a time, so the broker sees them in the order decided.
 * RETRIES  what got no answer is sent again, after a short pause, until it is answered or the
 *          channel closed: a broker may see a request twice, never out of order. Epochs tell it.
 * CLOSE    the callbacks of all that is left come before it returns, with -ECANCELED.
 * THREADS  the controller's. */
#ifndef CONTROLLER_PEER_CHANNEL_H
#define CONTROLLER_PEER_CHANNEL_H

#include "controller/broker_channel.h"
#include "net/remote.h"

struct peer_channel_options {
    int32_t broker_id; /* whom it leads to */
    struct str host;   /* copied */
    int port;
    const char *client_id; /* copied */
    int64_t timeout_ms;    /* for the connection, and for each answer */
    int32_t own_id;        /* for log lines */
};
/* Callbacks come on `ex`, the opener's. Returns owned (->close); NULL without memory. */
struct broker_channel *peer_channel_new(const struct peer_channel_options *o,
                                        const struct remote_opener *opener, struct executor *ex);

#endif
