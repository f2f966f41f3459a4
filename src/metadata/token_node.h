/* token_node.h - a delegation token as its node holds it, /delegation_token/tokens/<id>.
 *
 *   {"version":3,"owner":"User%3Aa","tokenRequester":"User%3Aa","renewers":["User%3Ab"],
 *    "issueTimestamp":1,"maxTimestamp":3,"expiryTimestamp":2,"tokenId":"x"}
 *
 * Principals are texts "Type:name", percent-encoded there. Versions 1 and 2 have no tokenRequester:
 * it is the owner. The secret (the HMAC) is not in it.
 *
 * OWNERSHIP  what is decoded lies in the arena. THREADS  any: no state. */
#ifndef METADATA_TOKEN_NODE_H
#define METADATA_TOKEN_NODE_H

#include "base/arena.h"

#define PATH_TOKENS "/delegation_token/tokens"
#define PATH_TOKEN_CHANGES "/delegation_token/token_changes"
#define TOKEN_CHANGE_PREFIX "token_change_"

struct token_info {
    struct str id;
    struct str owner, requester;
    struct str *renewers;
    int renewers_n;
    int64_t issue_ms, max_ms, expiry_ms; /* wall clock */
};

/* Null bytes without memory, or when a text is not UTF-8. */
struct bytes token_node_encode(const struct token_info *t, struct arena *a);
/* 0; -EBADMSG; -ENOMEM. */
int token_node_decode(struct bytes data, struct arena *a, struct token_info *out);
/* May it stand in a path, and is it of a length that ids have? */
bool token_id_ok(struct str id);

static inline char *token_node_path(struct str id, struct arena *a)
{
    return arena_printf(a, PATH_TOKENS "/%.*s", STR_ARG(id));
}
static inline bool token_owned_by(const struct token_info *t, struct str principal)
{
    return str_eq(t->owner, principal);
}
bool token_renewed_by(const struct token_info *t, struct str principal);

#endif
