/* tokens.h - the delegation tokens (KIP-48) that this broker knows, with their secrets, for logins
 * and for the four APIs. The metadata store has them (token_node.h); broker_tokens.c keeps these
 * the same.
 *
 * A token that has expired is still known until somebody removes it, but nobody can log in with it.
 *
 * OWNERSHIP  what is handed out is a copy in the caller's arena. Secrets are wiped before their
 *            memory is freed.
 * THREADS    any: has its lock. */
#ifndef SERVER_TOKENS_H
#define SERVER_TOKENS_H

#include "base/clock.h"
#include "metadata/token_node.h"
#include "sasl/sasl_server.h"
#include "sasl/token_secret.h"

struct tokens;

/* With delegation.token.secret.key, copied. NULL without memory. */
struct tokens *tokens_new(const char *secret_key, const struct clock *clock);
void tokens_free(struct tokens *t); /* NULL is fine */

/* The token is so now. Quick: a broker may start with many thousands. 0; -ENOMEM, or -EIO when
 * libcrypto could not: as before. */
int tokens_put(struct tokens *t, const struct token_info *now);
void tokens_remove(struct tokens *t, struct str id);

/* 0; -ENOENT; -ENOMEM. */
int tokens_find(struct tokens *t, struct str id, struct arena *a, struct token_info *out);
int tokens_find_hmac(struct tokens *t, struct bytes hmac, struct arena *a, struct token_info *out);
/* All, in no order. 0 or -ENOMEM. */
int tokens_list(struct tokens *t, struct arena *a, struct token_info **out, int *n);
bool tokens_hmac(const struct tokens *t, struct str id, uint8_t out[TOKEN_HMAC_LEN]);

/* sasl_server_settings.token; arg: the struct tokens. Slow (scram.h) for a token's first login with
 * a mechanism. */
bool tokens_login(void *arg, enum sasl_mechanism m, struct str id, struct arena *a,
                  struct sasl_token *out);

/* How many have been made, ever: at most one for a token and a mechanism. */
uint64_t tokens_credentials(struct tokens *t);

static inline bool token_expired(const struct token_info *t, int64_t now_ms)
{
    return t->max_ms < now_ms || t->expiry_ms < now_ms;
}

#endif
