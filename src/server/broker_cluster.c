/* broker_cluster.c - see broker_cluster.h. */
#include "server/broker_cluster.h"

#include <stdio.h>

#include "base/logline.h"
#include "controller/peer_channel.h"
#include "server/broker_private.h"
#include "server/local_channel.h"

int broker_ibp(const struct broker *b)
{
    const struct config *c = b->config;
    return IBP(c->ibp / 100, c->ibp % 100, c->ibp_iv);
}

/* Where controllers reach brokers, and brokers the controller. */
static struct str control_listener(const struct broker *b)
{
    const char *control = config_string(b->config, "control.plane.listener.name");
    return str_of(control && *control ? control : b->config->inter_broker_listener);
}

struct broker_channel *broker_open_channel(void *arg, const struct broker_info *to)
{
    struct broker *b = arg;
    struct executor *ex = uv_executor_ex(b->controller_ex);
    if (to->id == b->id)
        return local_channel_new(b->control_queue, atomic_load(&b->replicas), to->id, ex);
    const struct endpoint *e = broker_endpoint(to, control_listener(b));
    if (!e) {
        say_error("Controller", "broker %d has no listener %.*s", to->id,
                  STR_ARG(control_listener(b)));
        return NULL;
    }
    char client_id[16];
    snprintf(client_id, sizeof(client_id), "%d", b->id);
    b->controller_peers =
        (struct remote_peers){.loop = uv_executor_loop(b->controller_ex), .ex = ex};
    struct remote_opener opener = remote_peers_opener(&b->controller_peers);
    struct peer_channel_options o = {.broker_id = to->id,
                                     .host = e->host,
                                     .port = e->port,
                                     .client_id = client_id,
                                     .timeout_ms =
                                         config_int(b->config, "controller.socket.timeout.ms"),
                                     .own_id = b->id};
    return peer_channel_new(&o, &opener, ex);
}
