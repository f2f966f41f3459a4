/* sasl_server_scram.c - the broker's side of SCRAM: client first, client final. */
#include "sasl/base64.h"
#include "sasl/sasl_server_private.h"

enum { UNKNOWN_SALT = 20 };

/* A credential that nothing fits, always the same for a name. */
static bool make_up(const struct sasl_server_config *c, struct str user,
                    struct scram_credential *out)
{
    struct scram_key salt;
    *out = (struct scram_credential){.salt_len = UNKNOWN_SALT, .iterations = SCRAM_MIN_ITERATIONS};
    if (!scram_hmac(c->mechanism, &c->secret, user, &salt))
        return false;
    memcpy(out->salt, salt.b, UNKNOWN_SALT);
    return true;
}

/* Delegation tokens are users of their own kind: a user of a token's name is nobody here. */
static bool find_token(struct sasl_server *s, struct str id)
{
    const struct sasl_server_config *c = s->config;
    bool found = c->token && c->token(c->token_arg, c->mechanism, id, &s->arena, &s->token);
    if (found)
        s->credential = s->token.credential;
    return found;
}

static bool find_credential(struct sasl_server *s, const struct scram_client_first *m)
{
    const struct sasl_server_config *c = s->config;
    s->by_token = m->token_auth;
    s->known = m->token_auth
                   ? find_token(s, m->user)
                   : c->credential(c->credential_arg, c->mechanism, m->user, &s->credential);
    s->known = s->known && s->credential.iterations >= SCRAM_MIN_ITERATIONS;
    return s->known || make_up(c, m->user, &s->credential);
}

static enum sasl_result first(struct sasl_server *s, struct str text, struct bytes *answer)
{
    struct arena *a = &s->arena;
    struct scram_client_first m;
    if (!scram_client_first_parse(text, a, &m))
        return sasl_server_fail(s, NULL, "malformed client-first message");
    if (!str_is_null(m.authzid) && !str_eq(m.authzid, m.user))
        return sasl_server_fail(s, SASL_OTHER_AUTHZID, SASL_OTHER_AUTHZID);
    struct str own = scram_nonce(a);
    if (!own.p || !find_credential(s, &m))
        return sasl_server_fail(s, NULL, NULL);
    struct str salt = base64_encode(s->credential.salt, (size_t)s->credential.salt_len, a);
    s->name = m.user;
    s->gs2 = arena_str(a, m.gs2);
    s->client_first_bare = arena_str(a, m.bare);
    s->nonce = str_of(arena_printf(a, "%.*s%s", STR_ARG(m.nonce), own.p));
    s->server_first = str_of(arena_printf(a, "r=%s,s=%s,i=%d", s->nonce.p, salt.p ? salt.p : "",
                                          s->credential.iterations));
    if (!s->gs2.p || !s->client_first_bare.p || !s->nonce.p || !salt.p || !s->server_first.p)
        return sasl_server_fail(s, NULL, NULL);
    s->client_nonce_len = m.nonce.len;
    s->began = true;
    *answer = (struct bytes){(const uint8_t *)s->server_first.p, s->server_first.len};
    return SASL_CONTINUE;
}

/* librdkafka before 2.6.1 writes its own nonce twice, in front of both nonces. What it signs holds
 * ours all the same, so nothing is lost by taking it, as Kafka before 3.9 did. */
static bool right_nonce(const struct sasl_server *s, struct str nonce)
{
    int32_t more = s->client_nonce_len;
    if (nonce.len == s->nonce.len + more && memcmp(nonce.p, s->nonce.p, (size_t)more) == 0)
        nonce = (struct str){nonce.p + more, nonce.len - more};
    return str_eq(nonce, s->nonce);
}

/* "biws" is what clients send who do not mind what stood before n=. */
static bool right_binding(const struct sasl_server *s, struct bytes binding)
{
    struct str text = {(const char *)binding.p, binding.len};
    return str_eq(text, s->gs2) || str_eqz(text, "n,,");
}

static bool right_proof(const struct sasl_server *s, struct str auth, struct bytes proof)
{
    enum sasl_mechanism m = s->config->mechanism;
    struct scram_key client_signature, client_key, stored;
    if (proof.len != scram_hash_len(m) ||
        !scram_hmac(m, &s->credential.stored_key, auth, &client_signature))
        return false;
    memcpy(client_key.b, proof.p, (size_t)proof.len);
    scram_xor(m, &client_key, &client_signature);
    bool fits = scram_stored_key(m, &client_key, &stored) &&
                scram_equal(m, &stored, &s->credential.stored_key);
    return fits && s->known;
}

static enum sasl_result final(struct sasl_server *s, struct str text, struct bytes *answer)
{
    struct arena *a = &s->arena;
    enum sasl_mechanism mechanism = s->config->mechanism;
    struct scram_client_final m;
    struct scram_key signature;
    if (!scram_client_final_parse(text, a, &m))
        return sasl_server_fail(s, NULL, "malformed client-final message");
    if (!right_nonce(s, m.nonce) || !right_binding(s, m.binding))
        return sasl_server_fail(s, NULL, "the client-final message is of another exchange");
    struct str auth = scram_auth_message(s->client_first_bare, s->server_first, m.without_proof, a);
    if (!auth.p)
        return sasl_server_fail(s, NULL, NULL);
    if (!right_proof(s, auth, m.proof))
        return sasl_server_fail(
            s, NULL,
            arena_printf(a, s->known ? "user %.*s: wrong password" : "user %.*s: no credential",
                         STR_ARG(s->name)));
    if (!scram_hmac(mechanism, &s->credential.server_key, auth, &signature))
        return sasl_server_fail(s, NULL, NULL);
    struct str b64 = base64_encode(signature.b, (size_t)scram_hash_len(mechanism), a);
    struct str out = b64.p ? str_of(arena_printf(a, "v=%s", b64.p)) : STR_NULL;
    if (!out.p)
        return sasl_server_fail(s, NULL, NULL);
    s->user = s->by_token ? s->token.user : s->name;
    s->expires_ms = s->by_token ? s->token.expires_ms : 0;
    *answer = (struct bytes){(const uint8_t *)out.p, out.len};
    return SASL_COMPLETE;
}

enum sasl_result sasl_server_step_scram(struct sasl_server *s, struct bytes token, int64_t now_ms,
                                        struct bytes *answer)
{
    struct str text = {(const char *)token.p, token.len < 0 ? 0 : token.len};
    (void)now_ms;
    return s->began ? final(s, text, answer) : first(s, text, answer);
}
