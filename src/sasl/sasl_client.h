/* sasl_client.h - the client's side of a SASL exchange: tokens in, tokens out. No socket.
 *
 * A config is who one is: mechanism, and what sasl.jaas.config says. It keeps the salted password
 * of the last exchange, so that SCRAM's slow part is done once for a server's salt and not for each
 * connection.
 *
 * THREADS  a config may serve many threads (its cache has a lock); an exchange belongs to one, but
 *          for sasl_client_work, which may run on another one meanwhile. */
#ifndef SASL_SASL_CLIENT_H
#define SASL_SASL_CLIENT_H

#include "sasl/mechanism.h"

struct sasl_client_config;
struct sasl_client;

struct sasl_client_settings {
    const char *mechanism; /* by name */
    const char *jaas;      /* sasl.jaas.config; NULL = not set */
    const char *token_url; /* OAUTHBEARER: file://..., read for each exchange; NULL = the module's
                              options make an unsecured token */
};

/* All is copied. 0; -ENOMEM; -EINVAL with a line in err that names the setting and tells no secret.
 */
int sasl_client_config_new(const struct sasl_client_settings *s, struct sasl_client_config **out,
                           char *err, size_t err_n);
void sasl_client_config_free(struct sasl_client_config *c); /* NULL is fine */
enum sasl_mechanism sasl_client_config_mechanism(const struct sasl_client_config *c);
/* For messages; "" when the token tells. Borrowed. */
const char *sasl_client_config_user(const struct sasl_client_config *c);

/* Borrows the config. NULL without memory. */
struct sasl_client *sasl_client_new(struct sasl_client_config *c);
void sasl_client_free(struct sasl_client *s); /* NULL is fine */
/* What the server said (null: the beginning); *out gets the token to send on CONTINUE (borrowed
 * until the exchange is freed). COMPLETE: the server has proved what it has to, nothing is sent.
 * WORK: run sasl_client_work, then call this again with the same answer. now_ms: wall clock.
 * @blocks on reading token_url, a file */
enum sasl_result sasl_client_step(struct sasl_client *s, struct bytes answer, int64_t now_ms,
                                  struct bytes *out);
void sasl_client_work(struct sasl_client *s); /* takes milliseconds. @thread any, one at a time */
/* After FAILURE. Borrowed. */
const char *sasl_client_problem(const struct sasl_client *s);

#endif
