/* sasl_listener.c - see sasl_listener.h. */
#include "server/sasl_listener.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/hmap.h"
#include "net/peer_sasl.h"
#include "sasl/jaas.h"
#include "server/config_value.h"
#include "server/scram_users.h"
#include "server/tokens.h"

enum { NAME_MAX_ = 64 };

static int refuse(char *err, size_t err_n, const char *listener, const char *key, const char *why)
{
    snprintf(err, err_n, "listener %.100s: %s: %.600s", listener, key, why);
    return -EINVAL;
}

/* As it stands in keys. */
static const char *lower(enum sasl_mechanism m, char out[NAME_MAX_])
{
    size_t i = 0;
    for (const char *p = sasl_mechanism_name(m); *p; p++)
        out[i++] = (char)tolower((unsigned char)*p);
    out[i] = 0;
    return out;
}

static bool module_fits(const char *jaas, enum sasl_mechanism m)
{
    struct jaas_module module;
    const char *problem;
    struct arena a;
    arena_init(&a, 0);
    a.secret = true;
    bool fits = jaas_parse_for(str_of(jaas), m, &a, &module, &problem) == 0;
    arena_free(&a);
    return fits;
}

/* That of the mechanism; else the one without, if it is of this mechanism (or is the only one that
 * could be meant). NULL = none. */
static const char *jaas_of(const struct config *c, const char *listener, enum sasl_mechanism m,
                           bool only)
{
    char name[NAME_MAX_];
    const char *own = config_listener_string(c, listener, lower(m, name), "sasl.jaas.config");
    const char *general = config_listener_string(c, listener, NULL, "sasl.jaas.config");
    if (own != general || !own)
        return own;
    return only || module_fits(own, m) ? own : NULL;
}

static int64_t number_of(const char *text, int64_t otherwise)
{
    char *end;
    int64_t v = text ? strtoll(text, &end, 10) : 0;
    return text && *text && !*end ? v : otherwise;
}

static int64_t max_reauth(const struct config *c, const char *listener, enum sasl_mechanism m)
{
    char name[NAME_MAX_];
    return number_of(
        config_listener_string(c, listener, lower(m, name), "connections.max.reauth.ms"), 0);
}

uint64_t sasl_listener_fingerprint(const struct config *c, const char *listener)
{
    static const char *const keys[] = {"sasl.jaas.config", "connections.max.reauth.ms"};
    static const char *const others[] = {"sasl.enabled.mechanisms",
                                         "sasl.mechanism.inter.broker.protocol",
                                         "sasl.server.max.receive.size",
                                         "connection.failed.authentication.delay.ms",
                                         "sasl.oauthbearer.jwks.endpoint.url",
                                         "sasl.oauthbearer.token.endpoint.url",
                                         "sasl.oauthbearer.sub.claim.name",
                                         "sasl.oauthbearer.scope.claim.name",
                                         "sasl.oauthbearer.expected.issuer",
                                         "sasl.oauthbearer.expected.audience",
                                         "sasl.oauthbearer.clock.skew.seconds"};
    uint64_t h = 0;
    char name[NAME_MAX_];
    for (int m = 0; m < SASL_MECHANISMS; m++)
        for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
            h = hash_int(h + hash_str(str_of(config_listener_string(
                                 c, listener, lower((enum sasl_mechanism)m, name), keys[i]))));
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        h = hash_int(h + hash_str(str_of(config_listener_string(c, listener, NULL, others[i]))));
    return h;
}

static int offer(struct sasl_listener *l, const struct config *c, const char *listener,
                 enum sasl_mechanism m, bool only, struct scram_users *users, struct tokens *tokens,
                 char *err, size_t err_n)
{
    char why[700] = "";
    struct sasl_server_settings s = {
        .mechanism = m,
        .jaas = jaas_of(c, listener, m, only && m == SASL_PLAIN),
        .credential = scram_users_find,
        .credential_arg = users,
        .token = tokens ? tokens_login : NULL,
        .token_arg = tokens,
        .keys_url = config_listener_string(c, listener, NULL, "sasl.oauthbearer.jwks.endpoint.url"),
        .keys_refresh_ms = config_int(c, "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        .now_ms = clock_wall_ms(clock_real()),
        .principal_claim =
            config_listener_string(c, listener, NULL, "sasl.oauthbearer.sub.claim.name"),
        .scope_claim =
            config_listener_string(c, listener, NULL, "sasl.oauthbearer.scope.claim.name"),
        .issuer = config_listener_string(c, listener, NULL, "sasl.oauthbearer.expected.issuer"),
        .audience = config_listener_string(c, listener, NULL, "sasl.oauthbearer.expected.audience"),
        .skew_ms = 1000 * config_listener_int(c, listener, "sasl.oauthbearer.clock.skew.seconds",
                                              config_int(c, "sasl.oauthbearer.clock.skew.seconds")),
    };
    int rc = sasl_server_config_new(&s, &l->configs[m], why, sizeof(why));
    if (rc == -EINVAL) {
        char key[128], name[NAME_MAX_];
        snprintf(key, sizeof(key), "%s.sasl.jaas.config", lower(m, name));
        return refuse(err, err_n, listener, strncmp(why, "sasl.", 5) == 0 ? "" : key, why);
    }
    l->max_reauth_ms[m] = max_reauth(c, listener, m);
    l->offered[l->offered_n++] = m;
    return rc;
}

static int refuse_mechanism(char *err, size_t err_n, const char *listener, const char *key,
                            struct str name)
{
    char why[256];
    if (str_eqz(name, "GSSAPI"))
        snprintf(why, sizeof(why),
                 "it is not set, or GSSAPI, the default: Kerberos is not served here; set it to "
                 "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER");
    else
        snprintf(why, sizeof(why),
                 "%.*s is not served here, but PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
                 name.len < 64 ? name.len : 64, name.p);
    return refuse(err, err_n, listener, key, why);
}

static int offer_all(struct sasl_listener *l, const struct config *c, const char *listener,
                     struct scram_users *users, struct tokens *tokens, char *err, size_t err_n)
{
    const char *list = config_listener_string(c, listener, NULL, "sasl.enabled.mechanisms");
    bool only = list && !strchr(list, ',');
    struct str name;
    int rc = 0;
    for (const char *at = list ? list : ""; !rc && config_list_next(&at, &name);) {
        enum sasl_mechanism m;
        if (!sasl_mechanism_find(name, &m) || !sasl_mechanism_served(m))
            return refuse_mechanism(err, err_n, listener, "sasl.enabled.mechanisms", name);
        if (!l->configs[m])
            rc = offer(l, c, listener, m, only, users, tokens, err, err_n);
    }
    if (!rc && l->offered_n == 0)
        rc = refuse(err, err_n, listener, "sasl.enabled.mechanisms", "it names no mechanism");
    return rc;
}

int sasl_listener_new(const struct config *c, const char *listener, struct scram_users *users,
                      struct tokens *tokens, struct sasl_listener **out, char *err, size_t err_n)
{
    struct sasl_listener *l = calloc(1, sizeof(*l));
    *out = NULL;
    if (!l)
        return -ENOMEM;
    int64_t receive = config_listener_int(c, listener, "sasl.server.max.receive.size",
                                          config_int(c, "sasl.server.max.receive.size"));
    l->max_receive = receive > 0 ? (uint32_t)receive : 1;
    l->max_frame = (uint32_t)config_int(c, "socket.request.max.bytes");
    l->failed_delay_ms =
        config_listener_int(c, listener, "connection.failed.authentication.delay.ms",
                            config_int(c, "connection.failed.authentication.delay.ms"));
    int rc = offer_all(l, c, listener, users, tokens, err, err_n);
    if (rc)
        sasl_listener_free(l);
    else
        *out = l;
    return rc;
}

void sasl_listener_free(struct sasl_listener *l)
{
    if (!l)
        return;
    for (int m = 0; m < SASL_MECHANISMS; m++)
        sasl_server_config_free(l->configs[m]);
    free(l);
}

int sasl_listener_peer(const struct config *c, const char *listener, const struct clock *clock,
                       struct peer_auth **out, char *err, size_t err_n)
{
    static const char key[] = "sasl.mechanism.inter.broker.protocol";
    const char *mechanism = config_listener_string(c, listener, NULL, key);
    char why[512] = "";
    enum sasl_mechanism m;
    struct sasl_client_config *config;
    *out = NULL;
    if (!mechanism || !sasl_mechanism_find(str_of(mechanism), &m) || !sasl_mechanism_served(m))
        return refuse_mechanism(err, err_n, listener, key, str_of(mechanism ? mechanism : "null"));
    struct sasl_client_settings s = {
        .mechanism = mechanism,
        .jaas = jaas_of(c, listener, m, true),
        .token_url =
            config_listener_string(c, listener, NULL, "sasl.oauthbearer.token.endpoint.url"),
    };
    int rc = sasl_client_config_new(&s, &config, why, sizeof(why));
    if (rc)
        return rc == -EINVAL ? refuse(err, err_n, listener, key, why) : rc;
    *out = peer_sasl_new(config, clock);
    return *out ? 0 : -ENOMEM;
}

bool sasl_listener_for_brokers(const struct config *c, const struct listener_config *l)
{
    const char *control = config_string(c, "control.plane.listener.name");
    return strcmp(l->name, c->inter_broker_listener) == 0 ||
           (control && strcasecmp(control, l->name) == 0);
}

int sasl_listener_check(const struct config *c, const struct listener_config *l, char *err,
                        size_t err_n)
{
    struct sasl_listener *sasl;
    struct peer_auth *auth = NULL;
    if (!sasl_listener_has(l))
        return 0;
    int rc = sasl_listener_new(c, l->name, NULL, NULL, &sasl, err, err_n);
    if (!rc && sasl_listener_for_brokers(c, l))
        rc = sasl_listener_peer(c, l->name, clock_real(), &auth, err, err_n);
    peer_sasl_free(auth);
    sasl_listener_free(sasl);
    return rc;
}
