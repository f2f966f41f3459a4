/* token_secret.c - see token_secret.h. */
#include "sasl/token_secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

bool token_hmac(struct str secret_key, struct str id, uint8_t out[TOKEN_HMAC_LEN])
{
    unsigned len = 0;
    return HMAC(EVP_sha512(), secret_key.p, secret_key.len, (const unsigned char *)id.p,
                (size_t)id.len, out, &len) &&
           len == TOKEN_HMAC_LEN;
}

bool token_credential(enum sasl_mechanism m, const uint8_t hmac[TOKEN_HMAC_LEN],
                      struct scram_credential *out)
{
    char password[(TOKEN_HMAC_LEN + 2) / 3 * 4 + 1];
    int len = EVP_EncodeBlock((unsigned char *)password, hmac, TOKEN_HMAC_LEN);
    bool made = scram_credential_make(m, (struct str){password, len}, SCRAM_MIN_ITERATIONS, out);
    OPENSSL_cleanse(password, sizeof(password));
    return made;
}
