/* token_store.c - changes of delegation tokens: node and notice in one transaction, then what this
 * broker knows; other brokers (and this one, again) read the node when they hear of it. */
#include <errno.h>

#include "base/logline.h"
#include "metadata/store.h"
#include "server/broker_tokens.h"

static const char component[] = "DelegationTokens";

/* A ZooKeeper with its default jute.maxbuffer ends the connection of whoever sends more than 1 MiB,
 * and who makes a token needs no rights: he could end this broker's again and again. */
enum { NODE_MAX = 1000 * 1000 };

/* `op` has its path. */
static int change(struct store *s, struct str id, struct store_op op)
{
    struct bytes notice = {(const uint8_t *)id.p, id.len};
    struct store_op ops[] = {
        op, store_op_create(PATH_TOKEN_CHANGES "/" TOKEN_CHANGE_PREFIX, notice, STORE_SEQUENTIAL)};
    struct store_request r = {.ops = ops, .ops_n = 2, .multi = true};
    int rc = store_run(s, &r);
    store_request_clear(&r);
    return rc;
}

static int write_node(struct store *s, struct tokens *t, const struct token_info *one, bool is_new)
{
    struct arena a;
    arena_init(&a, 0);
    char *path = token_node_path(one->id, &a);
    struct bytes data = token_node_encode(one, &a);
    int rc = -ENOMEM;
    if (path && data.p && data.len > NODE_MAX)
        rc = -E2BIG;
    else if (path && data.p)
        rc = change(s, one->id,
                    is_new ? store_op_create(path, data, 0)
                           : store_op_set(path, data, STORE_ANY_VERSION));
    arena_free(&a);
    return rc ? rc : tokens_put(t, one);
}

int token_store_add(struct store *s, struct tokens *t, const struct token_info *one)
{
    int rc = write_node(s, t, one, true);
    if (!rc)
        say_info(component, "token %.*s of %.*s made by %.*s", STR_ARG(one->id),
                 STR_ARG(one->owner), STR_ARG(one->requester));
    return rc;
}

int token_store_set(struct store *s, struct tokens *t, const struct token_info *one)
{
    int rc = write_node(s, t, one, false);
    if (!rc)
        say_info(component, "token %.*s expires at %lld now", STR_ARG(one->id),
                 (long long)one->expiry_ms);
    return rc;
}

int token_store_remove(struct store *s, struct tokens *t, struct str id)
{
    struct arena a;
    arena_init(&a, 0);
    char *path = token_node_path(id, &a);
    int rc = path ? change(s, id, store_op_delete(path, STORE_ANY_VERSION)) : -ENOMEM;
    if (!rc || rc == -ENOENT)
        tokens_remove(t, id);
    if (!rc)
        say_info(component, "token %.*s removed", STR_ARG(id));
    arena_free(&a);
    return rc;
}

/* Somebody else may have been quicker. */
static int gone(int rc)
{
    return rc == -ENOENT ? 0 : rc;
}

int token_store_remove_expired(struct store *s, struct tokens *t, int64_t now_ms)
{
    struct arena a;
    struct token_info *all;
    int n;
    arena_init(&a, 0);
    int rc = tokens_list(t, &a, &all, &n);
    for (int i = 0; i < n && !rc; i++)
        if (token_expired(&all[i], now_ms))
            rc = gone(token_store_remove(s, t, all[i].id));
    arena_free(&a);
    return rc;
}
