/* broker_tokens.c - see broker_tokens.h. */
#include "server/broker_tokens.h"

#include <errno.h>

#include "base/logline.h"
#include "server/broker_private.h"
#include "server/token_follow.h"

static const char component[] = "DelegationTokens";

/* NULL: none, and there are no tokens. An empty one is no secret. */
static const char *secret_of(const struct config *c)
{
    const char *key = config_string(c, "delegation.token.secret.key");
    if (!key)
        key = config_string(c, "delegation.token.master.key");
    return key && *key ? key : NULL;
}

struct tokens *broker_tokens(const struct broker *b)
{
    return b->tokens;
}

struct store *broker_token_store(const struct broker *b)
{
    return b->store;
}

int64_t broker_token_max_life_ms(const struct broker *b)
{
    return config_int(b->config, "delegation.token.max.lifetime.ms");
}

int64_t broker_token_renewal_ms(const struct broker *b)
{
    return config_int(b->config, "delegation.token.expiry.time.ms");
}

int broker_tokens_start(struct broker *b, char *err, size_t err_n)
{
    const char *key = secret_of(b->config);
    if (!key)
        return 0;
    b->tokens = tokens_new(key, b->clock);
    int rc = b->tokens ? token_follow_load(b->store, b->tokens) : -ENOMEM;
    if (!rc)
        rc = token_follow_new(b->store, uv_executor_ex(b->background), b->clock, b->tokens,
                              &b->token_follow);
    if (rc)
        return broker_start_failed(err, err_n, rc, "cannot read the delegation tokens");
    token_follow_start(b->token_follow);
    return 0;
}

void broker_tokens_upkeep(void *arg)
{
    struct broker *b = arg;
    token_follow_again(b->token_follow);
    if (!broker_is_controller(b))
        return;
    int rc = token_store_remove_expired(b->store, b->tokens, clock_wall_ms(b->clock));
    if (rc)
        say_warn(component, "expired tokens were not all removed: %s", strerror(-rc));
}

void broker_tokens_end(struct broker *b)
{
    token_follow_close(b->token_follow);
}

void broker_tokens_free(struct broker *b)
{
    tokens_free(b->tokens);
}
