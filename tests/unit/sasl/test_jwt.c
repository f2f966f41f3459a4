/* Tokens: their claims, their signatures (keys are made here, and by the RFC), OAUTHBEARER's
 * message. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "sasl/base64.h"
#include "sasl/jwt.h"
#include "sasl/key_store.h"
#include "sasl/oauth.h"
#include "unit.h"

static struct arena mem;

static int setup(void **state)
{
    arena_init(&mem, 0);
    return 0;
}

static int teardown(void **state)
{
    arena_free(&mem);
    return 0;
}

enum { NOW = 1700000000 };
#define EXP "\"exp\":1700000100"

static struct str unsecured(const char *claims)
{
    return jwt_make_unsecured(str_of(claims), &mem);
}

static const char *check(struct str token, const struct jwt_keys *k, const struct jwt_rules *rules)
{
    struct jwt_claims c;
    struct jwt_rules usual = {.principal_claim = "sub", .scope_claim = "scope"};
    return jwt_check(token, k, rules ? rules : &usual, (int64_t)NOW * 1000, &mem, &c);
}

static void claims_are_checked(void **state)
{
    static const char *const scopes[] = {"read"}, *const audience[] = {"x", "kafka"};
    static const struct jwt_rules strict = {.principal_claim = "sub",
                                            .scope_claim = "scope",
                                            .required_scope = scopes,
                                            .scope_n = 1,
                                            .issuer = "me",
                                            .audience = audience,
                                            .audience_n = 2,
                                            .skew_ms = 30000};
    static const struct {
        const char *claims, *problem; /* NULL: it holds */
        bool strict;
    } v[] = {
        {"{\"sub\":\"a\"," EXP "}", NULL, false},
        {"{\"sub\":\"a\",\"exp\":1700000000.5}", NULL, false},
        {"{\"sub\":\"a\",\"exp\":1700000000}", "expired", false},
        {"{\"sub\":\"a\"}", "exp is missing", false},
        {"{\"sub\":\"a\",\"exp\":\"1700000100\"}", "exp is missing", false},
        {"{\"sub\":\"a\",\"exp\":1e300}", "exp is missing", false},
        {"{\"sub\":\" \"," EXP "}", "principal", false},
        {"{\"sub\":1," EXP "}", "principal", false},
        {"{" EXP "}", "principal", false},
        {"{\"sub\":\"a\",\"iat\":1700000001," EXP "}", "future", false},
        {"{\"sub\":\"a\",\"nbf\":1700000001," EXP "}", "future", false},
        {"{\"sub\":\"a\",\"iat\":\"x\"," EXP "}", "iat is no time", false},
        {"{\"sub\":\"a\"," EXP ",\"sub\":\"b\"}", "no JSON Web Token", false},
        {"[1]", "no JSON Web Token", false},
        {"", "no JSON Web Token", false},
        {"{\"sub\":\"a\",\"scope\":\"write read\",\"iss\":\"me\",\"aud\":\"kafka\"," EXP "}", NULL,
         true},
        {"{\"sub\":\"a\",\"scope\":[\"read\"],\"iss\":\"me\",\"aud\":[\"y\",\"x\"]," EXP "}", NULL,
         true},
        {"{\"sub\":\"a\",\"scope\":[\"read\"],\"iss\":\"me\",\"aud\":\"x\",\"exp\":1699999980}",
         NULL, true},
        {"{\"sub\":\"a\",\"scope\":\"reads\",\"iss\":\"me\",\"aud\":\"x\"," EXP "}", "scope", true},
        {"{\"sub\":\"a\",\"scope\":\"read\",\"iss\":\"you\",\"aud\":\"x\"," EXP "}", "issuer",
         true},
        {"{\"sub\":\"a\",\"scope\":\"read\",\"iss\":\"me\",\"aud\":\"z\"," EXP "}", "audience",
         true},
        {"{\"sub\":\"a\",\"scope\":\"read\",\"iss\":\"me\"," EXP "}", "audience", true},
    };
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        const char *got = check(unsecured(v[i].claims), NULL, v[i].strict ? &strict : NULL);
        bool as_meant = v[i].problem ? got != NULL && strstr(got, v[i].problem) : got == NULL;
        if (!as_meant)
            fail_msg("%s: %s", v[i].claims, got ? got : "holds");
    }
}

static void any_skew_is_a_skew(void **state)
{
    struct jwt_rules r = {.principal_claim = "sub", .scope_claim = "scope", .skew_ms = INT64_MAX};
    static const char old[] = "{\"sub\":\"a\",\"exp\":1700000000}";
    static const char future[] = "{\"sub\":\"a\",\"iat\":1700000001," EXP "}";
    assert_null(check(unsecured(old), NULL, &r));
    assert_null(check(unsecured(future), NULL, &r));
    r.skew_ms = INT64_MIN;
    assert_non_null(strstr(check(unsecured("{\"sub\":\"a\"," EXP "}"), NULL, &r), "expired"));
}

static struct str token(const char *header, const char *claims, const char *signature)
{
    struct str h = base64_url_encode(header, strlen(header), &mem);
    struct str c = base64_url_encode(claims, strlen(claims), &mem);
    return str_of(arena_printf(&mem, "%s.%s.%s", h.p, c.p, signature));
}

#define GOOD "{\"sub\":\"a\"," EXP "}"

static void forms_are_checked(void **state)
{
    assert_null(check(token("{\"alg\":\"none\"}", GOOD, ""), NULL, NULL));
    assert_non_null(check(token("{\"alg\":\"none\"}", GOOD, "AAAA"), NULL, NULL));
    assert_non_null(check(token("{\"alg\":\"RS256\"}", GOOD, ""), NULL, NULL));
    assert_non_null(check(token("{}", GOOD, ""), NULL, NULL));
    assert_non_null(check(token("{\"alg\":\"none\",\"crit\":[\"x\"]}", GOOD, ""), NULL, NULL));
    assert_non_null(check(token("{\"alg\":\"none\"}", GOOD, "."), NULL, NULL));
    assert_non_null(check(STR_LIT(""), NULL, NULL));
    assert_non_null(check(STR_LIT(".."), NULL, NULL));
    assert_non_null(check(STR_LIT("a.b"), NULL, NULL));
}

/* ---- signed ones ---- */

static struct str number64(EVP_PKEY *k, const char *name, int pad)
{
    BIGNUM *n = NULL;
    uint8_t b[600];
    assert_int_equal(EVP_PKEY_get_bn_param(k, name, &n), 1);
    int len = pad ? BN_bn2binpad(n, b, pad) : BN_bn2bin(n, b);
    BN_free(n);
    return base64_url_encode(b, (size_t)len, &mem);
}

static struct str rsa_jwk(EVP_PKEY *k, const char *more)
{
    return str_of(arena_printf(&mem, "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"%s}",
                               number64(k, OSSL_PKEY_PARAM_RSA_N, 0).p,
                               number64(k, OSSL_PKEY_PARAM_RSA_E, 0).p, more));
}

static struct str ec_jwk(EVP_PKEY *k, const char *crv, int bytes, const char *more)
{
    return str_of(arena_printf(&mem, "{\"kty\":\"EC\",\"crv\":\"%s\",\"x\":\"%s\",\"y\":\"%s\"%s}",
                               crv, number64(k, OSSL_PKEY_PARAM_EC_PUB_X, bytes).p,
                               number64(k, OSSL_PKEY_PARAM_EC_PUB_Y, bytes).p, more));
}

static struct bytes sign(EVP_PKEY *k, const char *hash, bool pss, struct str text)
{
    EVP_PKEY_CTX *p;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t n = 1024;
    uint8_t *out = arena_alloc(&mem, n);
    assert_int_equal(EVP_DigestSignInit_ex(ctx, &p, hash, NULL, NULL, k, NULL), 1);
    if (pss) {
        EVP_PKEY_CTX_set_rsa_padding(p, RSA_PKCS1_PSS_PADDING);
        EVP_PKEY_CTX_set_rsa_pss_saltlen(p, RSA_PSS_SALTLEN_DIGEST);
    }
    assert_int_equal(EVP_DigestSign(ctx, out, &n, (const uint8_t *)text.p, (size_t)text.len), 1);
    EVP_MD_CTX_free(ctx);
    return (struct bytes){out, (int32_t)n};
}

/* DER to the two numbers side by side. */
static struct bytes side_by_side(struct bytes der, int bytes)
{
    const uint8_t *at = der.p;
    ECDSA_SIG *s = d2i_ECDSA_SIG(NULL, &at, der.len);
    uint8_t *out = arena_alloc(&mem, 2 * (size_t)bytes);
    BN_bn2binpad(ECDSA_SIG_get0_r(s), out, bytes);
    BN_bn2binpad(ECDSA_SIG_get0_s(s), out + bytes, bytes);
    ECDSA_SIG_free(s);
    return (struct bytes){out, 2 * bytes};
}

struct signer {
    EVP_PKEY *key;
    const char *alg, *hash;
    int ec_bytes;
};

static struct str signed_token(const struct signer *s, const char *kid)
{
    const char *header = kid ? arena_printf(&mem, "{\"alg\":\"%s\",\"kid\":\"%s\"}", s->alg, kid)
                             : arena_printf(&mem, "{\"alg\":\"%s\"}", s->alg);
    struct str t = token(header, GOOD, "");
    struct bytes sig = sign(s->key, s->hash, s->alg[0] == 'P', (struct str){t.p, t.len - 1});
    if (s->ec_bytes)
        sig = side_by_side(sig, s->ec_bytes);
    return str_of(
        arena_printf(&mem, "%s%s", t.p, base64_url_encode(sig.p, (size_t)sig.len, &mem).p));
}

static struct jwt_keys *keys_of(const char *list)
{
    struct jwt_keys *k;
    const char *problem;
    struct str text = str_of(arena_printf(&mem, "{\"keys\":[%s]}", list));
    assert_int_equal(jwt_keys_new(text, &k, &problem), 0);
    return k;
}

static void check_signer(const struct signer *s, struct str jwk, struct str other)
{
    struct jwt_keys *both = keys_of(arena_printf(&mem, "%s,%s", other.p, jwk.p));
    struct jwt_keys *wrong = keys_of(other.p);
    struct str t = signed_token(s, NULL);
    assert_null(check(t, both, NULL));
    assert_non_null(check(t, wrong, NULL));
    assert_non_null(check(t, NULL, NULL)); /* where unsecured ones are due */
    assert_non_null(strstr(check(signed_token(s, "k2"), both, NULL), "does not have its key"));
    char *bent = arena_printf(&mem, "%s", t.p);
    char *payload = strchr(bent, '.') + 3;
    *payload = *payload == 'A' ? 'B' : 'A';
    assert_non_null(check(str_of(bent), both, NULL));
    jwt_keys_free(both);
    jwt_keys_free(wrong);
}

static void signatures_are_checked(void **state)
{
    EVP_PKEY *rsa = EVP_RSA_gen(2048), *rsa2 = EVP_RSA_gen(2048);
    EVP_PKEY *p256 = EVP_EC_gen("P-256"), *p256b = EVP_EC_gen("P-256");
    EVP_PKEY *p384 = EVP_EC_gen("P-384"), *p521 = EVP_EC_gen("P-521");
    static const char *const rs[][2] = {{"RS256", "SHA256"},
                                        {"RS384", "SHA384"},
                                        {"RS512", "SHA512"},
                                        {"PS256", "SHA256"},
                                        {"PS512", "SHA512"}};
    for (size_t i = 0; i < sizeof(rs) / sizeof(*rs); i++) {
        struct signer s = {rsa, rs[i][0], rs[i][1], 0};
        check_signer(&s, rsa_jwk(rsa, ""), rsa_jwk(rsa2, ""));
    }
    check_signer(&(struct signer){p256, "ES256", "SHA256", 32}, ec_jwk(p256, "P-256", 32, ""),
                 ec_jwk(p256b, "P-256", 32, ""));
    check_signer(&(struct signer){p384, "ES384", "SHA384", 48}, ec_jwk(p384, "P-384", 48, ""),
                 ec_jwk(p256b, "P-256", 32, ""));
    check_signer(&(struct signer){p521, "ES512", "SHA512", 66}, ec_jwk(p521, "P-521", 66, ""),
                 rsa_jwk(rsa2, ""));

    struct signer s = {rsa, "RS256", "SHA256", 0};
    struct jwt_keys *k = keys_of(rsa_jwk(rsa, ",\"kid\":\"k1\",\"alg\":\"RS256\"").p);
    assert_null(check(signed_token(&s, "k1"), k, NULL));
    assert_null(check(signed_token(&s, NULL), k, NULL));
    s.alg = "PS256"; /* not what the key is for */
    assert_non_null(check(signed_token(&s, "k1"), k, NULL));
    assert_non_null(check(token("{\"alg\":\"HS256\"}", GOOD, "AAAA"), k, NULL));
    assert_non_null(check(unsecured(GOOD), k, NULL)); /* alg none with keys */
    jwt_keys_free(k);
    EVP_PKEY *all[] = {rsa, rsa2, p256, p256b, p384, p521};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        EVP_PKEY_free(all[i]);
}

static void write_keys(const char *path, const char *list)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "{\"keys\":[%s]}", list);
    fclose(f);
}

static const char *check_at(struct key_store *s, struct str t, int64_t now_ms)
{
    struct jwt_claims c;
    struct jwt_rules rules = {.principal_claim = "sub", .scope_claim = "scope"};
    return key_store_check(s, t, &rules, now_ms, &mem, &c);
}

/* A provider's new key is taken up; what is no key set changes nothing. */
static void keys_are_read_again(void **state)
{
    char path[] = "/tmp/keys-XXXXXX", url[64], err[200];
    struct key_store *k;
    EVP_PKEY *one = EVP_EC_gen("P-256"), *two = EVP_EC_gen("P-256");
    struct signer by_one = {one, "ES256", "SHA256", 32}, by_two = {two, "ES256", "SHA256", 32};
    const int64_t t = (int64_t)NOW * 1000;
    close(mkstemp(path));
    snprintf(url, sizeof(url), "file://%s", path);
    assert_int_equal(key_store_new(url, 60000, t, &k, err, sizeof(err)), -EINVAL);
    write_keys(path, ec_jwk(one, "P-256", 32, ",\"kid\":\"1\"").p);
    assert_int_equal(key_store_new(url, 60000, t, &k, err, sizeof(err)), 0);
    struct str t1 = signed_token(&by_one, "1"), t2 = signed_token(&by_two, "2");
    assert_null(check_at(k, t1, t));
    assert_non_null(check_at(k, t2, t));
    write_keys(path, ec_jwk(two, "P-256", 32, ",\"kid\":\"2\"").p);
    assert_non_null(check_at(k, t2, t + 9999)); /* not so soon */
    assert_null(check_at(k, t1, t + 9999));
    assert_null(check_at(k, t2, t + 10000));
    assert_non_null(check_at(k, t1, t + 10000)); /* the old one is gone */
    write_keys(path, "nonsense");
    assert_null(check_at(k, t2, t + 70000)); /* they are old, and stay */
    write_keys(path, ec_jwk(one, "P-256", 32, ",\"kid\":\"1\"").p);
    assert_null(check_at(k, t1, t + 80000));
    unlink(path);
    assert_non_null(check_at(k, t2, t + 95000));
    assert_null(check_at(k, t1, t + 95000));
    key_store_free(k);
    EVP_PKEY_free(one);
    EVP_PKEY_free(two);
}

static void key_sets(void **state)
{
    struct jwt_keys *k;
    const char *problem;
    static const char *const bad[] = {"", "{}", "[]", "{\"keys\":1}", "nonsense"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(jwt_keys_new(str_of(bad[i]), &k, &problem), -EINVAL);
    /* others' keys are passed over: of other kinds, weak, off the curve, for encryption */
    k = keys_of("{\"kty\":\"oct\",\"k\":\"AAAA\"},{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"},"
                "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AQ\"},"
                "{\"kty\":\"EC\",\"crv\":\"P-1\",\"x\":\"AA\",\"y\":\"AQ\"},1,\"x\",{}");
    assert_int_equal(jwt_keys_count(k), 0);
    assert_non_null(check(token("{\"alg\":\"ES256\"}", GOOD, "AAAA"), k, NULL));
    jwt_keys_free(k);
}

static void oauth_messages(void **state)
{
    static const struct {
        const char *p;
        bool good;
    } v[] = {
        {"n,,\1auth=Bearer abc.d_-~+/=\1\1", true},
        {"n,a=u,\1auth=bearer abc\1x=y z\1\1", true},
        {"n,,\1x=y\1auth=Bearer abc\1\1", true},
        {"n,,\1auth=Bearer abc\1", false},
        {"n,,\1auth=Bearer abc", false},
        {"n,,\1auth=Bearer abc\1\1x", false},
        {"n,,\1auth=Bearer \1\1", false},
        {"n,,\1auth=Basic abc\1\1", false},
        {"n,,\1auth=Bearer a b\1\1", false},
        {"n,,\1auth=Bearer a\1auth=Bearer b\1\1", false},
        {"n,,\1x=y\1\1", false},
        {"n,,\1=y\1auth=Bearer a\1\1", false},
        {"n,,\1x1=y\1auth=Bearer a\1\1", false},
        {"n,a=,\1auth=Bearer a\1\1", false},
        {"n,,auth=Bearer a\1\1", false},
        {"y,,\1auth=Bearer a\1\1", false},
        {"n,,\1\1", false},
        {"\1", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        struct oauth_message m;
        const char *problem;
        struct bytes b = {(const uint8_t *)v[i].p, (int32_t)strlen(v[i].p)};
        if (oauth_parse(b, &m, &problem) != v[i].good)
            fail_msg("%zu", i);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
UNIT_MAIN(T(claims_are_checked), T(any_skew_is_a_skew), T(forms_are_checked),
          T(signatures_are_checked), T(key_sets), T(keys_are_read_again), T(oauth_messages))
