/* tokens.c - see tokens.h. */
#include "server/tokens.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <openssl/crypto.h>

#include "acl/acl.h"
#include "base/hmap.h"

enum { KINDS = 2 };
static const enum sasl_mechanism kinds[KINDS] = {SASL_SCRAM_SHA_256, SASL_SCRAM_SHA_512};

/* What a token's id gives, once and for all. Credentials are slow to make, and most tokens never
 * log in here: each is made for the first login that needs it. */
struct secret {
    uint8_t hmac[TOKEN_HMAC_LEN];
    bool made[KINDS];
    struct scram_credential credentials[KINDS];
};

struct token {
    struct hnode node;
    struct arena arena; /* of info */
    struct token_info info;
    struct secret secret;
};

struct tokens {
    const struct clock *clock;
    pthread_rwlock_t lock;
    struct hmap all;      /* of token, by id; owned */
    struct str key;       /* owned */
    uint64_t credentials; /* made so far */
};

static bool has_id(const struct hnode *node, const void *id)
{
    return str_eq(hmap_entry(node, struct token, node)->info.id, *(const struct str *)id);
}

/* Under the lock. NULL: not known. */
static struct token *find(const struct tokens *t, struct str id)
{
    struct hnode *n = hmap_find(&t->all, hash_str(id), has_id, &id);
    return n ? hmap_entry(n, struct token, node) : NULL;
}

static void token_free(struct token *one)
{
    if (!one)
        return;
    arena_free(&one->arena);
    OPENSSL_cleanse(&one->secret, sizeof(one->secret));
    free(one);
}

/* ---- life ---- */

struct tokens *tokens_new(const char *secret_key, const struct clock *clock)
{
    struct tokens *t = calloc(1, sizeof(*t));
    char *key = t ? strdup(secret_key) : NULL;
    if (!key) {
        free(t);
        return NULL;
    }
    t->clock = clock;
    t->key = str_of(key);
    pthread_rwlock_init(&t->lock, NULL);
    hmap_init(&t->all);
    return t;
}

void tokens_free(struct tokens *t)
{
    if (!t)
        return;
    for (struct hnode *n = hmap_first(&t->all), *next; n; n = next) {
        next = hmap_next(&t->all, n);
        token_free(hmap_entry(n, struct token, node));
    }
    hmap_free(&t->all);
    pthread_rwlock_destroy(&t->lock);
    OPENSSL_cleanse((char *)t->key.p, (size_t)t->key.len);
    free((char *)t->key.p);
    free(t);
}

/* ---- changes ---- */

static int copy_info(const struct token_info *from, struct arena *a, struct token_info *out)
{
    *out = *from;
    out->id = arena_str(a, from->id);
    out->owner = arena_str(a, from->owner);
    out->requester = arena_str(a, from->requester);
    out->renewers = arena_array(a, struct str, (size_t)from->renewers_n);
    bool copied = out->id.p && out->owner.p && out->requester.p && out->renewers;
    for (int i = 0; copied && i < from->renewers_n; i++) {
        out->renewers[i] = arena_str(a, from->renewers[i]);
        copied = out->renewers[i].p != NULL;
    }
    return copied ? 0 : -ENOMEM;
}

static bool known_secret(struct tokens *t, struct str id, struct secret *out)
{
    pthread_rwlock_rdlock(&t->lock);
    const struct token *old = find(t, id);
    if (old)
        *out = old->secret;
    pthread_rwlock_unlock(&t->lock);
    return old != NULL;
}

static int fill(struct tokens *t, const struct token_info *now, struct token *one)
{
    if (copy_info(now, &one->arena, &one->info) != 0)
        return -ENOMEM;
    return known_secret(t, now->id, &one->secret) || token_hmac(t->key, now->id, one->secret.hmac)
               ? 0
               : -EIO;
}

int tokens_put(struct tokens *t, const struct token_info *now)
{
    struct token *one = calloc(1, sizeof(*one));
    if (!one)
        return -ENOMEM;
    arena_init(&one->arena, 0);
    int rc = fill(t, now, one);
    struct token *gone = one;
    if (!rc) {
        pthread_rwlock_wrlock(&t->lock);
        struct token *old = find(t, now->id);
        uint64_t hash = hash_str(now->id);
        if (old)
            hmap_remove(&t->all, &old->node);
        rc = hmap_put(&t->all, &one->node, hash);
        if (rc && old)
            (void)hmap_put(&t->all, &old->node, hash); /* where it was: needs no memory */
        gone = rc ? one : old;
        pthread_rwlock_unlock(&t->lock);
    }
    token_free(gone);
    return rc;
}

void tokens_remove(struct tokens *t, struct str id)
{
    pthread_rwlock_wrlock(&t->lock);
    struct token *old = find(t, id);
    if (old)
        hmap_remove(&t->all, &old->node);
    pthread_rwlock_unlock(&t->lock);
    token_free(old);
}

/* ---- look-ups ---- */

int tokens_find(struct tokens *t, struct str id, struct arena *a, struct token_info *out)
{
    pthread_rwlock_rdlock(&t->lock);
    const struct token *one = find(t, id);
    int rc = one ? copy_info(&one->info, a, out) : -ENOENT;
    pthread_rwlock_unlock(&t->lock);
    return rc;
}

static const struct token *of_hmac(const struct tokens *t, struct bytes hmac)
{
    if (hmac.len != TOKEN_HMAC_LEN)
        return NULL;
    for (struct hnode *n = hmap_first(&t->all); n; n = hmap_next(&t->all, n)) {
        const struct token *one = hmap_entry(n, struct token, node);
        if (CRYPTO_memcmp(one->secret.hmac, hmac.p, TOKEN_HMAC_LEN) == 0)
            return one;
    }
    return NULL;
}

int tokens_find_hmac(struct tokens *t, struct bytes hmac, struct arena *a, struct token_info *out)
{
    pthread_rwlock_rdlock(&t->lock);
    const struct token *one = of_hmac(t, hmac);
    int rc = one ? copy_info(&one->info, a, out) : -ENOENT;
    pthread_rwlock_unlock(&t->lock);
    return rc;
}

int tokens_list(struct tokens *t, struct arena *a, struct token_info **out, int *n)
{
    int rc = 0;
    *n = 0;
    pthread_rwlock_rdlock(&t->lock);
    *out = arena_array(a, struct token_info, t->all.n);
    if (!*out)
        rc = -ENOMEM;
    for (struct hnode *h = hmap_first(&t->all); h && !rc; h = hmap_next(&t->all, h))
        rc = copy_info(&hmap_entry(h, struct token, node)->info, a, &(*out)[(*n)++]);
    pthread_rwlock_unlock(&t->lock);
    return rc;
}

bool tokens_hmac(const struct tokens *t, struct str id, uint8_t out[TOKEN_HMAC_LEN])
{
    return token_hmac(t->key, id, out);
}

/* ---- logins ---- */

struct login {
    uint8_t hmac[TOKEN_HMAC_LEN];
    bool made; /* the credential is there, too */
};

/* False: nobody may come in by it. */
static bool look_up(struct tokens *t, int kind, struct str id, struct arena *a, struct login *login,
                    struct sasl_token *out)
{
    int64_t now = clock_wall_ms(t->clock);
    pthread_rwlock_rdlock(&t->lock);
    const struct token *one = find(t, id);
    struct str user =
        one && !token_expired(&one->info, now) ? acl_user_of(one->info.owner) : STR_NULL;
    bool found = user.len > 0; /* owners of another type than User would pass for users */
    if (found) {
        memcpy(login->hmac, one->secret.hmac, TOKEN_HMAC_LEN);
        login->made = one->secret.made[kind];
        if (login->made)
            out->credential = one->secret.credentials[kind];
        out->user = arena_str(a, user);
        out->expires_ms = one->info.expiry_ms;
    }
    pthread_rwlock_unlock(&t->lock);
    return found && out->user.p;
}

/* For later logins; the first of several that were made at once stays. */
static void keep(struct tokens *t, int kind, struct str id, const struct scram_credential *c)
{
    pthread_rwlock_wrlock(&t->lock);
    struct token *one = find(t, id);
    if (one && !one->secret.made[kind]) {
        one->secret.credentials[kind] = *c;
        one->secret.made[kind] = true;
        t->credentials++;
    }
    pthread_rwlock_unlock(&t->lock);
}

bool tokens_login(void *arg, enum sasl_mechanism m, struct str id, struct arena *a,
                  struct sasl_token *out)
{
    struct tokens *t = arg;
    struct login login;
    int kind = m == SASL_SCRAM_SHA_512;
    bool good = look_up(t, kind, id, a, &login, out);
    if (good && !login.made) {
        good = token_credential(kinds[kind], login.hmac, &out->credential);
        if (good)
            keep(t, kind, id, &out->credential);
    }
    OPENSSL_cleanse(&login, sizeof(login));
    return good;
}

uint64_t tokens_credentials(struct tokens *t)
{
    pthread_rwlock_rdlock(&t->lock);
    uint64_t n = t->credentials;
    pthread_rwlock_unlock(&t->lock);
    return n;
}
