/* token_follow.h - keeps the tokens that a broker knows as the store has them: by the notices of
 * whoever changes one; all are read again with each new session (notices may have come and gone
 * meanwhile), and on demand.
 *
 * ORDER    nodes are read and told on the executor, in the order of the store's answers: what is
 *          told last of a token is the latest.
 * THREADS  as said. */
#ifndef SERVER_TOKEN_FOLLOW_H
#define SERVER_TOKEN_FOLLOW_H

#include "metadata/store.h"
#include "server/tokens.h"

struct token_follow;

/* Makes the folders, and reads all. 0 or -errno. @blocks */
int token_follow_load(struct store *s, struct tokens *t);
/* Borrows all. 0 or -ENOMEM. */
int token_follow_new(struct store *s, struct executor *ex, const struct clock *clock,
                     struct tokens *t, struct token_follow **out);
void token_follow_start(struct token_follow *f); /* @thread any */
/* Reads all again, some time soon. @thread any, before _close */
void token_follow_again(struct token_follow *f);
/* Frees, now or when what is under way is answered. NULL is fine. @thread ex */
void token_follow_close(struct token_follow *f);

#endif
