/* sasl_server.h - the broker's side of a SASL exchange: tokens in, tokens out. No socket, no clock.
 *
 * A config is what one mechanism of one listener checks against: the users of PLAIN, where SCRAM's
 * credentials are, the rules for OAUTHBEARER's tokens. Exchanges borrow it.
 *
 * A user that SCRAM does not know gets the same answers as one with a wrong password, to the last
 * message; the salt he is shown is made up, and the same each time.
 *
 * THREADS  a config does not change, but for its keys, and may serve many threads; an exchange
 * belongs to one. */
#ifndef SASL_SASL_SERVER_H
#define SASL_SASL_SERVER_H

#include "sasl/jwt.h"
#include "sasl/mechanism.h"
#include "sasl/scram.h"

struct sasl_server_config;
struct sasl_server;

/* What a broker knows of a delegation token that can be logged in with. */
struct sasl_token {
    struct scram_credential credential;
    struct str user; /* the owner's name */
    int64_t expires_ms;
};

struct sasl_server_settings {
    enum sasl_mechanism mechanism;
    const char *jaas; /* sasl.jaas.config; NULL = none: PLAIN and OAUTHBEARER want it */
    /* SCRAM: copies the credential of a user; false: there is none. @thread any */
    bool (*credential)(void *arg, enum sasl_mechanism m, struct str user,
                       struct scram_credential *out);
    void *credential_arg;
    /* SCRAM, where the client says that its user is the id of a token; the owner's name is put into
     * the arena. false: there is no such. NULL: there are none. @thread any */
    bool (*token)(void *arg, enum sasl_mechanism m, struct str id, struct arena *a,
                  struct sasl_token *out);
    void *token_arg;
    /* OAUTHBEARER */
    const char *keys_url;    /* file://..., of a JSON Web Key Set; NULL = unsecured tokens */
    int64_t keys_refresh_ms; /* they are read again when they are so old */
    int64_t now_ms;          /* wall clock */
    const char *principal_claim, *scope_claim; /* NULL = "sub", "scope" */
    const char *issuer;                        /* NULL = any */
    const char *audience;                      /* a,b,c; NULL = any */
    int64_t skew_ms;                           /* for signed tokens */
};

/* All is copied. 0; -ENOMEM; -EINVAL with a line in err, which tells no secret. @blocks on reading
 * a file */
int sasl_server_config_new(const struct sasl_server_settings *s, struct sasl_server_config **out,
                           char *err, size_t err_n);
void sasl_server_config_free(struct sasl_server_config *c); /* NULL is fine */
enum sasl_mechanism sasl_server_config_mechanism(const struct sasl_server_config *c);

/* NULL without memory. */
struct sasl_server *sasl_server_new(const struct sasl_server_config *c);
void sasl_server_free(struct sasl_server *s); /* NULL is fine */
/* The next token of the client. *answer: what it gets (borrowed until the exchange is freed; null =
 * nothing, which is the same as empty where something must be sent). After COMPLETE or FAILURE
 * there is no further call. now_ms: wall clock. */
enum sasl_result sasl_server_step(struct sasl_server *s, struct bytes token, int64_t now_ms,
                                  struct bytes *answer);
/* After COMPLETE. */
struct str sasl_server_user(const struct sasl_server *s);
bool sasl_server_by_token(const struct sasl_server *s);      /* a delegation token */
int64_t sasl_server_expires_ms(const struct sasl_server *s); /* wall clock; 0 = never */
/* After FAILURE: what the client may be told, NULL = only that; and a line for the log. Borrowed.
 */
const char *sasl_server_told(const struct sasl_server *s);
const char *sasl_server_problem(const struct sasl_server *s);

#endif
