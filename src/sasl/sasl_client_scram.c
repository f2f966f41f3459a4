/* sasl_client_scram.c - the client's side of SCRAM: it proves that it knows the password, and has
 * the server prove that it knows the user.
 *
 * The server's nonce must begin with ours and go on, and it may not ask for too little work (a
 * password would be cheap to guess from the proof) nor for too much. */
#include "sasl/base64.h"
#include "sasl/sasl_client_private.h"

static enum sasl_result first(struct sasl_client *s, struct bytes *out)
{
    struct arena *a = &s->arena;
    struct str name = scram_name_encode(s->config->user, a);
    s->nonce = scram_nonce(a);
    const char *kind = s->config->by_token ? ",tokenauth=true" : "";
    char *text =
        name.p && s->nonce.p ? arena_printf(a, "n,,n=%s,r=%s%s", name.p, s->nonce.p, kind) : NULL;
    if (!text)
        return sasl_client_fail(s, NULL);
    s->client_first_bare = str_of(text + 3);
    *out = (struct bytes){(const uint8_t *)text, (int32_t)strlen(text)};
    s->step = 1;
    return SASL_CONTINUE;
}

static bool begins_longer(struct str whole, struct str with)
{
    return whole.len > with.len && memcmp(whole.p, with.p, (size_t)with.len) == 0;
}

/* ---- the salted password ---- */

static bool is_cached(const struct salted_cache *k, const struct sasl_client *s)
{
    return k->filled && k->iterations == s->iterations && k->salt_len == s->salt.len &&
           memcmp(k->salt, s->salt.p, (size_t)s->salt.len) == 0;
}

static bool from_cache(struct sasl_client *s)
{
    struct sasl_client_config *c = s->config;
    pthread_mutex_lock(&c->lock);
    if (is_cached(&c->cache, s)) {
        s->salted = c->cache.salted;
        s->has_salted = true;
    }
    pthread_mutex_unlock(&c->lock);
    return s->has_salted;
}

void sasl_client_work(struct sasl_client *s)
{
    struct sasl_client_config *c = s->config;
    s->has_salted =
        scram_salted_password(c->mechanism, c->password, s->salt, s->iterations, &s->salted);
    s->work_failed = !s->has_salted;
    if (!s->has_salted)
        return;
    pthread_mutex_lock(&c->lock);
    c->cache.filled = true;
    c->cache.iterations = s->iterations;
    c->cache.salt_len = s->salt.len;
    memcpy(c->cache.salt, s->salt.p, (size_t)s->salt.len);
    c->cache.salted = s->salted;
    pthread_mutex_unlock(&c->lock);
}

/* ---- answering ---- */

static enum sasl_result take_server_first(struct sasl_client *s, struct str text)
{
    struct scram_server_first m;
    s->server_first = arena_str(&s->arena, text);
    if (!s->server_first.p)
        return sasl_client_fail(s, NULL);
    if (!scram_server_first_parse(s->server_first, &s->arena, &m))
        return sasl_client_fail(s, "the broker's first SCRAM message is malformed");
    if (!begins_longer(m.nonce, s->nonce))
        return sasl_client_fail(s, "the broker's nonce does not continue ours");
    if (m.iterations < SCRAM_MIN_ITERATIONS || m.iterations > SCRAM_MOST_ITERATIONS)
        return sasl_client_fail(s, "the broker asks for fewer than 4096 iterations, or for more "
                                   "than a million");
    if (m.salt.len > SCRAM_SALT_MAX)
        return sasl_client_fail(s, "the broker's salt is too long");
    s->nonce = m.nonce;
    s->salt = m.salt;
    s->iterations = m.iterations;
    s->step = 2;
    return from_cache(s) ? SASL_CONTINUE : SASL_WORK;
}

/* ClientKey XOR HMAC(StoredKey, auth); and what the server will have to show. */
static bool make_proof(struct sasl_client *s, struct str auth, struct scram_key *proof)
{
    enum sasl_mechanism m = s->config->mechanism;
    struct scram_key stored, signature, server_key;
    bool made = scram_client_key(m, &s->salted, proof) && scram_stored_key(m, proof, &stored) &&
                scram_hmac(m, &stored, auth, &signature) &&
                scram_server_key(m, &s->salted, &server_key) &&
                scram_hmac(m, &server_key, auth, &s->server_signature);
    if (made)
        scram_xor(m, proof, &signature);
    return made;
}

static enum sasl_result send_final(struct sasl_client *s, struct bytes *out)
{
    struct arena *a = &s->arena;
    struct scram_key proof;
    if (s->work_failed)
        return sasl_client_fail(s, NULL);
    struct str without = str_of(arena_printf(a, "c=biws,r=%.*s", STR_ARG(s->nonce)));
    struct str auth = without.p
                          ? scram_auth_message(s->client_first_bare, s->server_first, without, a)
                          : STR_NULL;
    if (!auth.p || !make_proof(s, auth, &proof))
        return sasl_client_fail(s, NULL);
    struct str b64 = base64_encode(proof.b, (size_t)scram_hash_len(s->config->mechanism), a);
    char *text = b64.p ? arena_printf(a, "%s,p=%s", without.p, b64.p) : NULL;
    if (!text)
        return sasl_client_fail(s, NULL);
    *out = (struct bytes){(const uint8_t *)text, (int32_t)strlen(text)};
    s->step = 3;
    return SASL_CONTINUE;
}

static enum sasl_result take_server_final(struct sasl_client *s, struct str text)
{
    enum sasl_mechanism m = s->config->mechanism;
    struct scram_server_final f;
    struct scram_key signature;
    if (!scram_server_final_parse(text, &s->arena, &f))
        return sasl_client_fail(s, "the broker's last SCRAM message is malformed");
    if (!str_is_null(f.error))
        return sasl_client_fail(s,
                                arena_printf(&s->arena, "the broker says: %.*s", STR_ARG(f.error)));
    if (f.signature.len != scram_hash_len(m))
        return sasl_client_fail(s, "the broker's signature is wrong: it does not know the user");
    memcpy(signature.b, f.signature.p, (size_t)f.signature.len);
    if (!scram_equal(m, &signature, &s->server_signature))
        return sasl_client_fail(s, "the broker's signature is wrong: it does not know the user");
    return SASL_COMPLETE;
}

enum sasl_result sasl_client_step_scram(struct sasl_client *s, struct bytes answer, int64_t now_ms,
                                        struct bytes *out)
{
    struct str text = {(const char *)answer.p, answer.len < 0 ? 0 : answer.len};
    enum sasl_result r;
    (void)now_ms;
    switch (s->step) {
    case 0:
        return first(s, out);
    case 1:
        r = take_server_first(s, text);
        return r == SASL_CONTINUE ? send_final(s, out) : r;
    case 2:
        return send_final(s, out);
    default:
        return take_server_final(s, text);
    }
}
