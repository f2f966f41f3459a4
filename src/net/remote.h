/* remote.h - another broker, as those that send requests to it see it: a peer, or in tests and the
 * simulator whatever plays that part.
 *
 * Same promises as peer.h: requests go out in order and are answered in order; a broken connection
 * fails all that wait, and the next request connects again. */
#ifndef NET_REMOTE_H
#define NET_REMOTE_H

#include "net/peer.h"

struct remote;
struct remote_ops {
    int (*send)(struct remote *r, int16_t api_key, int min_version, int max_version,
                const void *request, int64_t timeout_ms, peer_cb cb, void *arg);
    void (*close)(struct remote *r);
};
struct remote {
    const struct remote_ops *ops;
};

/* As peer_send with a response. 0 or -ENOMEM. @thread the remote's */
static inline int remote_send(struct remote *r, int16_t api_key, int min_version, int max_version,
                              const void *request, int64_t timeout_ms, peer_cb cb, void *arg)
{
    return r->ops->send(r, api_key, min_version, max_version, request, timeout_ms, cb, arg);
}
/* Fails what is pending with -ECANCELED before it returns, and frees. NULL is fine.
 * @thread the remote's */
static inline void remote_close(struct remote *r)
{
    if (r)
        r->ops->close(r);
}

/* Where remotes come from: those made by one opener live on one executor. */
struct remote_opener {
    /* Returns owned; NULL without memory. Connects with the first request. */
    struct remote *(*open)(void *arg, struct str host, int port, const char *client_id,
                           int64_t timeout_ms);
    void *arg;
};
static inline struct remote *remote_open(const struct remote_opener *o, struct str host, int port,
                                         const char *client_id, int64_t timeout_ms)
{
    return o->open(o->arg, host, port, client_id, timeout_ms);
}

/* Peers on a loop; the executor is that loop's. */
struct remote_peers {
    uv_loop_t *loop;
    struct executor *ex;
    int send_buffer, receive_buffer;                    /* <= 0: the system's */
    int64_t connect_timeout_ms, connect_timeout_max_ms; /* as peer_options; 0: the requests' */
    struct peer_security security;
};
/* `p` must live as long as the opener is used. */
struct remote_opener remote_peers_opener(struct remote_peers *p);

#endif
