/* jwt_keys.c - sets of public keys (RFC 7517), and signatures checked with them (RFC 7518).
 *
 * RSA keys for RS and PS, keys on P-256, P-384, P-521 for ES, whose signatures are the two numbers
 * side by side, which libcrypto wants as DER. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include "sasl/base64.h"
#include "sasl/jwt_private.h"

enum kind { KIND_RS, KIND_PS, KIND_ES };
enum { EC_BYTES_MAX = 66, RSA_BITS_MIN = 2048, KEYS_MAX = 1000 };

struct algorithm {
    const char *name;
    enum kind kind;
    const char *hash;
    int ec_bytes; /* of each number */
};

static const struct algorithm algorithms[] = {
    {"RS256", KIND_RS, "SHA256", 0},  {"RS384", KIND_RS, "SHA384", 0},
    {"RS512", KIND_RS, "SHA512", 0},  {"PS256", KIND_PS, "SHA256", 0},
    {"PS384", KIND_PS, "SHA384", 0},  {"PS512", KIND_PS, "SHA512", 0},
    {"ES256", KIND_ES, "SHA256", 32}, {"ES384", KIND_ES, "SHA384", 48},
    {"ES512", KIND_ES, "SHA512", 66},
};

static const struct {
    const char *name, *group;
    int bytes;
} curves[] = {{"P-256", "P-256", 32}, {"P-384", "P-384", 48}, {"P-521", "P-521", 66}};

const char jwt_no_key[] = "the key set does not have its key";

struct jwt_key {
    EVP_PKEY *pkey;
    char *kid;    /* NULL = none */
    char *alg;    /* NULL = any of its kind */
    int ec_bytes; /* 0: RSA */
};

struct jwt_keys {
    struct jwt_key *v;
    int n;
};

/* ---- reading ---- */

static BIGNUM *number_of(const json_t *o, const char *name, struct arena *a)
{
    struct bytes b = base64_url_decode(str_of(json_string_value(json_object_get(o, name))), a);
    return b.len > 0 ? BN_bin2bn(b.p, b.len, NULL) : NULL;
}

static EVP_PKEY *build(const char *type, OSSL_PARAM_BLD *b)
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *params = b ? OSSL_PARAM_BLD_to_param(b) : NULL;
    EVP_PKEY_CTX *ctx = params ? EVP_PKEY_CTX_new_from_name(NULL, type, NULL) : NULL;
    if (ctx && EVP_PKEY_fromdata_init(ctx) == 1)
        EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params);
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    return key;
}

static EVP_PKEY *rsa_of(const json_t *o, struct arena *a)
{
    BIGNUM *n = number_of(o, "n", a), *e = number_of(o, "e", a);
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    if (n && e && b && BN_num_bits(n) >= RSA_BITS_MIN &&
        BN_num_bits(n) <= OPENSSL_RSA_MAX_MODULUS_BITS &&
        OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_N, n) &&
        OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_E, e))
        key = build("RSA", b);
    OSSL_PARAM_BLD_free(b);
    BN_free(n);
    BN_free(e);
    return key;
}

/* One of the two numbers of a point, in its full length. */
static bool put_number(const json_t *o, const char *name, int bytes, struct arena *a, uint8_t *to)
{
    struct bytes b = base64_url_decode(str_of(json_string_value(json_object_get(o, name))), a);
    if (b.len <= 0 || b.len > bytes)
        return false;
    memcpy(to + (bytes - b.len), b.p, (size_t)b.len);
    return true;
}

static EVP_PKEY *ec_of(const json_t *o, struct arena *a, int *bytes)
{
    const char *name = json_string_value(json_object_get(o, "crv"));
    uint8_t point[1 + 2 * EC_BYTES_MAX] = {POINT_CONVERSION_UNCOMPRESSED};
    const char *group = NULL;
    EVP_PKEY *key = NULL;
    for (size_t i = 0; name && i < sizeof(curves) / sizeof(*curves); i++)
        if (strcmp(curves[i].name, name) == 0) {
            group = curves[i].group;
            *bytes = curves[i].bytes;
        }
    if (!group || !put_number(o, "x", *bytes, a, point + 1) ||
        !put_number(o, "y", *bytes, a, point + 1 + *bytes))
        return NULL;
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    if (b && OSSL_PARAM_BLD_push_utf8_string(b, OSSL_PKEY_PARAM_GROUP_NAME, group, 0) &&
        OSSL_PARAM_BLD_push_octet_string(b, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * (size_t)*bytes))
        key = build("EC", b);
    OSSL_PARAM_BLD_free(b);
    return key;
}

static char *text_of(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));
    return text ? strdup(text) : NULL;
}

static void add(struct jwt_keys *k, const json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "kty"));
    const char *use = json_string_value(json_object_get(o, "use"));
    struct jwt_key key = {0};
    struct arena a;
    if (!type || (use && strcmp(use, "sig") != 0))
        return;
    arena_init(&a, 1 << 20);
    if (strcmp(type, "RSA") == 0)
        key.pkey = rsa_of(o, &a);
    else if (strcmp(type, "EC") == 0)
        key.pkey = ec_of(o, &a, &key.ec_bytes);
    arena_free(&a);
    if (!key.pkey)
        return;
    key.kid = text_of(o, "kid");
    key.alg = text_of(o, "alg");
    k->v[k->n++] = key;
}

int jwt_keys_new(struct str json, struct jwt_keys **out, const char **problem)
{
    json_t *o = json.len > 0 ? json_loadb(json.p, (size_t)json.len, 0, NULL) : NULL;
    const json_t *list = json_object_get(o, "keys");
    size_t n = json_array_size(list);
    struct jwt_keys *k = calloc(1, sizeof(*k));
    *out = NULL;
    *problem = NULL;
    if (k)
        k->v = calloc(n + 1, sizeof(*k->v));
    if (!json_is_array(list) || n > KEYS_MAX)
        *problem = "it is no JSON Web Key Set";
    for (size_t i = 0; k && k->v && !*problem && i < n; i++)
        add(k, json_array_get(list, i));
    json_decref(o);
    if (k && k->v && !*problem) {
        *out = k;
        return 0;
    }
    int rc = k && k->v ? -EINVAL : -ENOMEM;
    jwt_keys_free(k);
    return rc;
}

void jwt_keys_free(struct jwt_keys *k)
{
    for (int i = 0; k && i < k->n; i++) {
        EVP_PKEY_free(k->v[i].pkey);
        free(k->v[i].kid);
        free(k->v[i].alg);
    }
    if (k)
        free(k->v);
    free(k);
}

int jwt_keys_count(const struct jwt_keys *k)
{
    return k->n;
}

/* ---- checking ---- */

static const struct algorithm *algorithm_of(const char *name)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++)
        if (strcmp(algorithms[i].name, name) == 0)
            return &algorithms[i];
    return NULL;
}

static bool fits(const struct jwt_key *key, const struct algorithm *alg, const char *kid)
{
    return key->ec_bytes == alg->ec_bytes && (!key->alg || strcmp(key->alg, alg->name) == 0) &&
           (!kid || (key->kid && strcmp(kid, key->kid) == 0));
}

/* The two numbers as DER. Owned by OpenSSL; NULL: it is no such signature. */
static uint8_t *der_of(const struct algorithm *alg, struct bytes signature, int *n)
{
    uint8_t *der = NULL;
    if (signature.len != 2 * alg->ec_bytes)
        return NULL;
    BIGNUM *r = BN_bin2bn(signature.p, alg->ec_bytes, NULL);
    BIGNUM *s = BN_bin2bn(signature.p + alg->ec_bytes, alg->ec_bytes, NULL);
    ECDSA_SIG *sig = ECDSA_SIG_new();
    if (r && s && sig && ECDSA_SIG_set0(sig, r, s)) {
        r = s = NULL;
        *n = i2d_ECDSA_SIG(sig, &der);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return der;
}

static bool verify(const struct jwt_key *key, const struct algorithm *alg, struct str text,
                   struct bytes signature)
{
    EVP_PKEY_CTX *pctx;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    uint8_t *der = NULL;
    bool good =
        ctx && EVP_DigestVerifyInit_ex(ctx, &pctx, alg->hash, NULL, NULL, key->pkey, NULL) == 1;
    if (good && alg->kind == KIND_PS)
        good = EVP_PKEY_CTX_set_rsa_padding(pctx, RSA_PKCS1_PSS_PADDING) == 1 &&
               EVP_PKEY_CTX_set_rsa_pss_saltlen(pctx, RSA_PSS_SALTLEN_DIGEST) == 1;
    if (good && alg->kind == KIND_ES) {
        int n = 0;
        der = der_of(alg, signature, &n);
        signature = (struct bytes){der, n};
        good = der && n > 0;
    }
    good = good && EVP_DigestVerify(ctx, signature.p, (size_t)signature.len,
                                    (const uint8_t *)text.p, (size_t)text.len) == 1;
    OPENSSL_free(der);
    EVP_MD_CTX_free(ctx);
    return good;
}

const char *jwt_keys_verify(const struct jwt_keys *k, const char *alg_name, const char *kid,
                            struct str signed_part, struct bytes signature)
{
    const struct algorithm *alg = algorithm_of(alg_name);
    bool any = false;
    if (!alg)
        return "its algorithm is not one of RS, PS, ES with 256, 384, 512";
    for (int i = 0; i < k->n; i++) {
        if (!fits(&k->v[i], alg, kid))
            continue;
        any = true;
        if (verify(&k->v[i], alg, signed_part, signature))
            return NULL;
    }
    return any ? "its signature is wrong" : jwt_no_key;
}
