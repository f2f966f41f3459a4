/* client_security.c - see client_security.h. */
#include "client/client_security.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/peer_sasl.h"
#include "net/tls.h"

struct lookup {
    const kafka_conf_t *conf;
    enum client_scope scope;
};

/* A client has none of a server's settings. */
static const char *look_up(void *arg, const char *key)
{
    const struct lookup *l = arg;
    if (strcmp(key, "ssl.client.auth") == 0 || strcmp(key, "ssl.principal.mapping.rules") == 0)
        return NULL;
    return client_conf_string(l->conf, l->scope, key);
}

static int open_tls(struct client_security *s, struct lookup *l, char *err, size_t err_n)
{
    struct tls_settings settings;
    tls_settings_read(&settings, look_up, l);
    s->peer.tls = tls_new(false);
    if (!s->peer.tls) {
        snprintf(err, err_n, "out of memory");
        return -ENOMEM;
    }
    return tls_load(s->peer.tls, &settings, err, err_n);
}

static int open_sasl(struct client_security *s, struct lookup *l, char *err, size_t err_n)
{
    struct sasl_client_settings settings = {
        .mechanism = look_up(l, "sasl.mechanism"),
        .jaas = look_up(l, "sasl.jaas.config"),
        .token_url = look_up(l, "sasl.oauthbearer.token.endpoint.url"),
    };
    struct sasl_client_config *config;
    int rc = sasl_client_config_new(&settings, &config, err, err_n);
    if (!rc && !(s->sasl = peer_sasl_new(config, clock_real())))
        rc = -ENOMEM;
    if (rc == -ENOMEM)
        snprintf(err, err_n, "out of memory");
    s->peer.auth = s->sasl;
    return rc;
}

int client_security_open(struct client_security *s, const kafka_conf_t *conf,
                         enum client_scope scope, char *err, size_t err_n)
{
    struct lookup l = {conf, scope};
    const char *protocol = client_conf_string(conf, scope, "security.protocol");
    *s = (struct client_security){0};
    int rc = client_protocol_has_tls(protocol) ? open_tls(s, &l, err, err_n) : 0;
    if (!rc && client_protocol_has_sasl(protocol))
        rc = open_sasl(s, &l, err, err_n);
    if (rc)
        client_security_close(s);
    return rc;
}

void client_security_close(struct client_security *s)
{
    tls_unref(s->peer.tls);
    peer_sasl_free(s->sasl);
    *s = (struct client_security){0};
}
