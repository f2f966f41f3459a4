/* sasl_client_private.h - between the files of the client's side.
 *
 *   sasl_client.c         configs; PLAIN, OAUTHBEARER
 *   sasl_client_scram.c   SCRAM */
#ifndef SASL_SASL_CLIENT_PRIVATE_H
#define SASL_SASL_CLIENT_PRIVATE_H

#include <pthread.h>

#include "sasl/jaas.h"
#include "sasl/sasl_client.h"
#include "sasl/scram_messages.h"

struct salted_cache {
    bool filled;
    int salt_len;
    uint8_t salt[SCRAM_SALT_MAX];
    int32_t iterations;
    struct scram_key salted;
};

struct sasl_client_config {
    enum sasl_mechanism mechanism;
    struct arena arena;
    struct jaas_module module;
    struct str user, password; /* PLAIN, SCRAM */
    const char *token_url;     /* NULL = none */
    bool by_token;             /* SCRAM: the user is a delegation token's id */
    pthread_mutex_t lock;
    struct salted_cache cache; /* under the lock */
};

struct sasl_client {
    struct sasl_client_config *config;
    struct arena arena; /* all below */
    int step;
    const char *problem;
    /* SCRAM */
    struct str nonce, client_first_bare, server_first;
    struct bytes salt;
    int32_t iterations;
    bool worked, work_failed, has_salted;
    struct scram_key salted, server_signature;
};

/* problem NULL: no memory. */
enum sasl_result sasl_client_fail(struct sasl_client *s, const char *problem);
enum sasl_result sasl_client_step_scram(struct sasl_client *s, struct bytes answer, int64_t now_ms,
                                        struct bytes *out);

#endif
