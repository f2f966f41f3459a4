/* broker_tokens.h - delegation tokens between the store and this broker: loaded at the start,
 * followed by notices of whoever changes them, read again with each new session and each
 * delegation.token.expiry.check.interval.ms, when the controller's broker also removes those that
 * have expired.
 *
 * THREADS  as said. */
#ifndef SERVER_BROKER_TOKENS_H
#define SERVER_BROKER_TOKENS_H

#include "server/tokens.h"

struct broker;
struct store;

/* NULL: there is no delegation.token.secret.key. In broker_tokens.c, as the next two; a test's
 * broker has its own. */
struct tokens *broker_tokens(const struct broker *b);
struct store *broker_token_store(const struct broker *b);
/* delegation.token.max.lifetime.ms, delegation.token.expiry.time.ms */
int64_t broker_token_max_life_ms(const struct broker *b);
int64_t broker_token_renewal_ms(const struct broker *b);

/* The store first, then what this broker knows. 0; -EEXIST, -ENOENT, -E2BIG (of so many renewers
 * that no store would take it), or what the store says. A notice goes with each. @blocks */
int token_store_add(struct store *s, struct tokens *t, const struct token_info *one);
int token_store_set(struct store *s, struct tokens *t, const struct token_info *one);
int token_store_remove(struct store *s, struct tokens *t, struct str id);
/* 0, or why some are left. @blocks */
int token_store_remove_expired(struct store *s, struct tokens *t, int64_t now_ms);

#endif
