/* token_secret.h - what a delegation token (KIP-48) has for a secret: the HMAC of its id, made with
 * the key that all brokers share (delegation.token.secret.key). Whoever logs in with the token
 * gives the base64 of it as SCRAM's password.
 *
 * THREADS  any: no state. */
#ifndef SASL_TOKEN_SECRET_H
#define SASL_TOKEN_SECRET_H

#include "sasl/scram.h"

enum { TOKEN_HMAC_LEN = 64 };

/* HMAC-SHA512. False: libcrypto could not. */
bool token_hmac(struct str secret_key, struct str id, uint8_t out[TOKEN_HMAC_LEN]);
/* What a broker checks a login with the token against. Slow (scram.h). */
bool token_credential(enum sasl_mechanism m, const uint8_t hmac[TOKEN_HMAC_LEN],
                      struct scram_credential *out);

#endif
