/* fuzz_sasl.c - what strangers say in SASL: login module lines, SCRAM's messages, tokens of PLAIN
 * and OAUTHBEARER, JSON Web Tokens and key sets. Refused, or read within their bytes; what is read
 * and can be said again reads back the same.
 *
 * INPUT  byte 0: which of them. Then the text.
 *
 * Rooms: sasl */
#include <stdlib.h>

#include "sasl/base64.h"
#include "sasl/jwt.h"
#include "sasl/oauth.h"
#include "sasl/plain.h"
#include "sasl/sasl_server.h"
#include "sasl/scram_messages.h"

#include "fuzz.h"

static struct str text_of(struct bytes b)
{
    return (struct str){(const char *)b.p, b.len};
}

static void jaas(struct bytes in, struct arena *a)
{
    struct jaas_config c;
    const char *problem;
    if (jaas_parse(text_of(in), a, &c, &problem)) {
        must(problem != NULL);
        return;
    }
    must(c.modules_n >= 1);
    for (int i = 0; i < c.modules[0].options_n; i++)
        must(c.modules[0].options[i].key.len >= 0 && c.modules[0].options[i].value.len >= 0);
}

static void scram(struct bytes in, struct arena *a)
{
    struct scram_client_first first;
    struct scram_server_first server;
    struct scram_client_final final;
    struct scram_server_final last;
    struct scram_credential c, again;
    if (scram_client_first_parse(text_of(in), a, &first)) {
        must(scram_nonce_valid(first.nonce) && first.gs2.len + first.bare.len == in.len);
        must(str_eq(scram_name_decode(scram_name_encode(first.user, a), a), first.user));
    }
    if (scram_server_first_parse(text_of(in), a, &server))
        must(server.iterations > 0 && server.salt.len > 0);
    if (scram_client_final_parse(text_of(in), a, &final))
        must(final.without_proof.len < in.len && final.proof.len > 0);
    (void)scram_server_final_parse(text_of(in), a, &last);
    for (int m = SASL_SCRAM_SHA_256; m <= SASL_SCRAM_SHA_512; m++) {
        if (!scram_credential_parse((enum sasl_mechanism)m, text_of(in), a, &c))
            continue;
        struct str out = scram_credential_format((enum sasl_mechanism)m, &c, a);
        must(scram_credential_parse((enum sasl_mechanism)m, out, a, &again));
        must(again.salt_len == c.salt_len && again.iterations == c.iterations);
    }
}

static void tokens(struct bytes in, struct arena *a)
{
    struct plain_message plain;
    struct oauth_message oauth;
    struct jwt_claims claims;
    static const struct jwt_rules rules = {.principal_claim = "sub", .scope_claim = "scope"};
    const char *problem;
    struct jwt_keys *keys;
    if (plain_parse(in, &plain, &problem))
        must(plain.authzid.len + plain.user.len + plain.password.len + 2 == in.len);
    if (oauth_parse(in, &oauth, &problem))
        must(oauth.token.len > 0 && oauth.token.len < in.len);
    if (!jwt_check(text_of(in), NULL, &rules, 0, a, &claims))
        must(claims.principal.len > 0);
    if (!jwt_keys_new(text_of(in), &keys, &problem))
        jwt_keys_free(keys);
    struct bytes b = base64_decode(text_of(in), a);
    if (b.len >= 0)
        must(str_eq(base64_encode(b.p, (size_t)b.len, a), text_of(in)));
}

static bool no_credential(void *arg, enum sasl_mechanism m, struct str user,
                          struct scram_credential *out)
{
    return false;
}

/* Two messages of a client, cut at the byte that the second one says. */
static void exchange(struct bytes in, struct arena *a)
{
    static const char oauth[] =
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;";
    char err[200];
    if (in.len < 2)
        return;
    bool scram_one = in.p[0] & 1;
    int32_t cut = in.p[1] < in.len - 2 ? in.p[1] : in.len - 2;
    struct sasl_server_settings settings = {
        .mechanism = scram_one ? SASL_SCRAM_SHA_256 : SASL_OAUTHBEARER,
        .jaas = scram_one ? NULL : oauth,
        .credential = no_credential,
    };
    struct sasl_server_config *c;
    struct bytes answer;
    must(sasl_server_config_new(&settings, &c, err, sizeof(err)) == 0);
    struct sasl_server *s = sasl_server_new(c);
    enum sasl_result r = sasl_server_step(s, (struct bytes){in.p + 2, cut}, 0, &answer);
    if (r == SASL_CONTINUE) {
        must(answer.len > 0);
        r = sasl_server_step(s, (struct bytes){in.p + 2 + cut, in.len - 2 - cut}, 0, &answer);
        must(r == SASL_FAILURE);
    }
    sasl_server_free(s);
    sasl_server_config_free(c);
}

static void (*const kinds[])(struct bytes in, struct arena *a) = {jaas, scram, tokens, exchange};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct arena a;
    if (n < 1)
        return 0;
    arena_init(&a, 0);
    uint8_t *data = malloc(n); /* exactly as long as it is, so that a byte too far is seen */
    if (n > 1)
        memcpy(data, p + 1, n - 1);
    kinds[p[0] % KINDS]((struct bytes){data, (int32_t)(n - 1)}, &a);
    free(data);
    arena_free(&a);
    return 0;
}
