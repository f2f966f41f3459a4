/* client_security.c - see client_security.h. */
#include "client/client_security.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

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

int client_security_open(struct client_security *s, const kafka_conf_t *conf,
                         enum client_scope scope, char *err, size_t err_n)
{
    struct lookup l = {conf, scope};
    const char *protocol = client_conf_string(conf, scope, "security.protocol");
    bool tls = strcasecmp(protocol, "SSL") == 0 || strcasecmp(protocol, "SASL_SSL") == 0;
    *s = (struct client_security){0};
    int rc = tls ? open_tls(s, &l, err, err_n) : 0;
    if (rc)
        client_security_close(s);
    return rc;
}

void client_security_close(struct client_security *s)
{
    tls_unref(s->peer.tls);
    *s = (struct client_security){0};
}
