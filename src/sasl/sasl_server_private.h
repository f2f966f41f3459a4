/* sasl_server_private.h - between the files of the broker's side.
 *
 *   sasl_server.c         configs; PLAIN, OAUTHBEARER
 *   sasl_server_scram.c   SCRAM
 *
 * THREADS  a config is immutable but for its key store, which has a lock: any. A server: one at a
 * time. */
#ifndef SASL_SASL_SERVER_PRIVATE_H
#define SASL_SASL_SERVER_PRIVATE_H

#include "sasl/jaas.h"
#include "sasl/key_store.h"
#include "sasl/sasl_server.h"
#include "sasl/scram_messages.h"

#define SASL_OTHER_AUTHZID                                                           \
    "Authentication failed: Client requested an authorization id that is different " \
    "from username"

struct sasl_server_config {
    enum sasl_mechanism mechanism;
    struct arena arena;        /* all texts */
    struct jaas_module module; /* without options when there is none */
    bool (*credential)(void *arg, enum sasl_mechanism m, struct str user,
                       struct scram_credential *out);
    void *credential_arg;
    bool (*token)(void *arg, enum sasl_mechanism m, struct str id, struct arena *a,
                  struct sasl_token *out);
    void *token_arg;
    struct scram_key secret; /* salts of users that there are not */
    struct key_store *keys;  /* owned; NULL: unsecured tokens */
    struct jwt_rules rules;
};

struct sasl_server {
    const struct sasl_server_config *config;
    struct arena arena; /* all below */
    struct str user;
    int64_t expires_ms;
    const char *told, *problem;
    bool refused; /* OAUTHBEARER */
    /* SCRAM, after the first message */
    bool began, known;
    bool by_token;
    struct sasl_token token; /* by_token and known */
    struct scram_credential credential;
    struct str gs2, client_first_bare, server_first, name;
    struct str nonce;         /* of both */
    int32_t client_nonce_len; /* how much of it the client made */
};

/* problem NULL: no memory. */
enum sasl_result sasl_server_fail(struct sasl_server *s, const char *told, const char *problem);
enum sasl_result sasl_server_step_scram(struct sasl_server *s, struct bytes token, int64_t now_ms,
                                        struct bytes *answer);

#endif
