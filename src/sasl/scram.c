/* scram.c - see scram.h. */
#include "sasl/scram.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "sasl/base64.h"

enum { NONCE_BYTES = 18, NEW_SALT_BYTES = 20 };

static const EVP_MD *hash_of(enum sasl_mechanism m)
{
    return m == SASL_SCRAM_SHA_512 ? EVP_sha512() : EVP_sha256();
}

int scram_hash_len(enum sasl_mechanism m)
{
    return m == SASL_SCRAM_SHA_512 ? 64 : 32;
}

int8_t scram_code(enum sasl_mechanism m)
{
    return m == SASL_SCRAM_SHA_512 ? 2 : 1;
}

bool scram_of_code(int8_t code, enum sasl_mechanism *out)
{
    *out = code == 2 ? SASL_SCRAM_SHA_512 : SASL_SCRAM_SHA_256;
    return code == 1 || code == 2;
}

/* ---- computing ---- */

bool scram_salted_password(enum sasl_mechanism m, struct str password, struct bytes salt,
                           int iterations, struct scram_key *out)
{
    return iterations > 0 &&
           PKCS5_PBKDF2_HMAC(password.p ? password.p : "", password.len > 0 ? password.len : 0,
                             salt.p, salt.len > 0 ? salt.len : 0, iterations, hash_of(m),
                             scram_hash_len(m), out->b) == 1;
}

bool scram_hmac(enum sasl_mechanism m, const struct scram_key *key, struct str text,
                struct scram_key *out)
{
    return HMAC(hash_of(m), key->b, scram_hash_len(m), (const uint8_t *)text.p, (size_t)text.len,
                out->b, NULL) != NULL;
}

bool scram_client_key(enum sasl_mechanism m, const struct scram_key *salted, struct scram_key *out)
{
    return scram_hmac(m, salted, STR_LIT("Client Key"), out);
}

bool scram_server_key(enum sasl_mechanism m, const struct scram_key *salted, struct scram_key *out)
{
    return scram_hmac(m, salted, STR_LIT("Server Key"), out);
}

bool scram_stored_key(enum sasl_mechanism m, const struct scram_key *client_key,
                      struct scram_key *out)
{
    return EVP_Digest(client_key->b, (size_t)scram_hash_len(m), out->b, NULL, hash_of(m), NULL) ==
           1;
}

void scram_xor(enum sasl_mechanism m, struct scram_key *a, const struct scram_key *b)
{
    for (int i = 0; i < scram_hash_len(m); i++)
        a->b[i] ^= b->b[i];
}

bool scram_equal(enum sasl_mechanism m, const struct scram_key *a, const struct scram_key *b)
{
    return CRYPTO_memcmp(a->b, b->b, (size_t)scram_hash_len(m)) == 0;
}

/* ---- credentials ---- */

bool scram_credential_of_salted(enum sasl_mechanism m, const struct scram_key *salted,
                                struct bytes salt, int iterations, struct scram_credential *out)
{
    struct scram_key client_key;
    if (salt.len < 0 || salt.len > SCRAM_SALT_MAX)
        return false;
    *out = (struct scram_credential){.salt_len = salt.len, .iterations = iterations};
    if (salt.len > 0)
        memcpy(out->salt, salt.p, (size_t)salt.len);
    bool made = scram_client_key(m, salted, &client_key) &&
                scram_stored_key(m, &client_key, &out->stored_key) &&
                scram_server_key(m, salted, &out->server_key);
    OPENSSL_cleanse(&client_key, sizeof(client_key));
    return made;
}

bool scram_credential_make(enum sasl_mechanism m, struct str password, int iterations,
                           struct scram_credential *out)
{
    uint8_t salt[NEW_SALT_BYTES];
    struct bytes in = {salt, sizeof(salt)};
    struct scram_key salted;
    bool made = RAND_bytes(salt, sizeof(salt)) == 1 &&
                scram_salted_password(m, password, in, iterations, &salted) &&
                scram_credential_of_salted(m, &salted, in, iterations, out);
    OPENSSL_cleanse(&salted, sizeof(salted));
    return made;
}

struct str scram_credential_format(enum sasl_mechanism m, const struct scram_credential *c,
                                   struct arena *a)
{
    size_t n = (size_t)scram_hash_len(m);
    struct str salt = base64_encode(c->salt, (size_t)c->salt_len, a);
    struct str stored = base64_encode(c->stored_key.b, n, a);
    struct str server = base64_encode(c->server_key.b, n, a);
    if (!salt.p || !stored.p || !server.p)
        return STR_NULL;
    return str_of(arena_printf(a, "salt=%s,stored_key=%s,server_key=%s,iterations=%d", salt.p,
                               stored.p, server.p, c->iterations));
}

static bool take_key(enum sasl_mechanism m, struct str text, struct arena *a, struct scram_key *out)
{
    struct bytes b = base64_decode(text, a);
    if (b.len != scram_hash_len(m))
        return false;
    memcpy(out->b, b.p, (size_t)b.len);
    return true;
}

static bool take_salt(struct str text, struct arena *a, struct scram_credential *out)
{
    struct bytes b = base64_decode(text, a);
    if (b.len < 0 || b.len > SCRAM_SALT_MAX)
        return false;
    out->salt_len = b.len;
    memcpy(out->salt, b.p, (size_t)b.len);
    return true;
}

static bool take_number(struct str text, int32_t *out)
{
    int64_t v = 0;
    for (int32_t i = 0; i < text.len; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || v > INT32_MAX)
            return false;
        v = v * 10 + (text.p[i] - '0');
    }
    *out = (int32_t)v;
    return text.len > 0 && v > 0 && v <= INT32_MAX;
}

/* Which of the four it is, as a bit; 0: none, or its value is not what it should be. */
static unsigned take_part(enum sasl_mechanism m, struct str key, struct str value, struct arena *a,
                          struct scram_credential *out)
{
    if (str_eqz(key, "salt"))
        return take_salt(value, a, out) ? 1 : 0;
    if (str_eqz(key, "stored_key"))
        return take_key(m, value, a, &out->stored_key) ? 2 : 0;
    if (str_eqz(key, "server_key"))
        return take_key(m, value, a, &out->server_key) ? 4 : 0;
    if (str_eqz(key, "iterations"))
        return take_number(value, &out->iterations) ? 8 : 0;
    return 0;
}

bool scram_credential_parse(enum sasl_mechanism m, struct str text, struct arena *a,
                            struct scram_credential *out)
{
    unsigned found = 0;
    *out = (struct scram_credential){0};
    for (int32_t at = 0, end; at < text.len; at = end + 1) {
        const char *comma = memchr(text.p + at, ',', (size_t)(text.len - at));
        end = comma ? (int32_t)(comma - text.p) : text.len;
        const char *eq = memchr(text.p + at, '=', (size_t)(end - at));
        if (!eq)
            return false;
        int32_t key_end = (int32_t)(eq - text.p);
        unsigned part = take_part(m, (struct str){text.p + at, key_end - at},
                                  (struct str){eq + 1, end - key_end - 1}, a, out);
        if (!part || (found & part))
            return false;
        found |= part;
    }
    return found == 15;
}

struct str scram_nonce(struct arena *a)
{
    uint8_t random[NONCE_BYTES];
    if (RAND_bytes(random, sizeof(random)) != 1)
        return STR_NULL;
    return base64_url_encode(random, sizeof(random), a);
}
