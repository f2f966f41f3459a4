/* remote.c - remotes that are peers. */
#include "net/remote.h"

#include <stdlib.h>

struct remote_peer {
    struct remote base;
    struct peer *peer;
};

static int send_to_peer(struct remote *base, int16_t api_key, int min_version, int max_version,
                        const void *request, int64_t timeout_ms, peer_cb cb, void *arg)
{
    struct remote_peer *r = container_of(base, struct remote_peer, base);
    return peer_send(r->peer, api_key, min_version, max_version, request, timeout_ms, true, cb,
                     arg);
}

static void close_peer(struct remote *base)
{
    struct remote_peer *r = container_of(base, struct remote_peer, base);
    peer_free(r->peer);
    free(r);
}

static const struct remote_ops peer_ops = {send_to_peer, close_peer};

static struct remote *open_peer(void *arg, struct str host, int port, const char *client_id,
                                int64_t timeout_ms)
{
    const struct remote_peers *p = arg;
    struct remote_peer *r = calloc(1, sizeof(*r));
    char *name = str_dup(host);
    if (r && name) {
        struct peer_options o = {.client_id = client_id,
                                 .connect_timeout_ms =
                                     p->connect_timeout_ms ? p->connect_timeout_ms : timeout_ms,
                                 .connect_timeout_max_ms = p->connect_timeout_max_ms,
                                 .request_timeout_ms = timeout_ms,
                                 .send_buffer = p->send_buffer,
                                 .receive_buffer = p->receive_buffer,
                                 .security = p->security};
        r->base.ops = &peer_ops;
        r->peer = peer_new(p->loop, p->ex, name, port, &o);
    }
    free(name);
    if (r && !r->peer) {
        free(r);
        return NULL;
    }
    return r ? &r->base : NULL;
}

struct remote_opener remote_peers_opener(struct remote_peers *p)
{
    return (struct remote_opener){open_peer, p};
}
