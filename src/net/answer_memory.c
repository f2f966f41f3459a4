/* answer_memory.c - memory of answers that their clients have not taken, over all connections.
 *
 * SHARES   every connection may hold a quarter of what is still free of max_answer_bytes, and is
 * not read while it holds more. So the shares shrink while more clients do not read, nobody takes
 * all, and one that reads its answers always goes on: who holds nothing is read. Whoever is held
 * back holds something and moves on with his own sending; so nobody waits for others, and there is
 * no line.
 *
 * LIMITS   one answer can be larger than any share; when twice max_answer_bytes are in use, one of
 *          LARGE bytes or more is not sent, and its connection closes. While three quarters are in
 *          use, connections that take little of what they hold are closed (net_shard.c).
 *
 * COUNTING each shard gathers up to a SLACK of changes before it adds them to what all share: most
 *          answers leave at once and never get there. */
#include "net/server_private.h"

enum { SLACK_MAX = 64 * 1024, SLACK_PART = 64, LARGE = 1 << 20 };

static int64_t limit_of(const struct net_server *s)
{
    return (int64_t)s->limits.max_answer_bytes;
}

static int64_t slack_of(const struct net_server *s)
{
    int64_t part = limit_of(s) / SLACK_PART;
    return part < SLACK_MAX ? part : SLACK_MAX;
}

void conn_count_memory(struct conn *c, int64_t bytes)
{
    struct net_shard *sh = c->shard;
    struct net_server *s = sh->server;
    c->memory += (uint64_t)bytes;
    sh->answers += bytes;
    if (sh->answers < slack_of(s) && sh->answers > -slack_of(s))
        return;
    atomic_fetch_add_explicit(&s->answers, sh->answers, memory_order_relaxed);
    sh->answers = 0;
    if (bytes > 0 && answers_short(s))
        shard_look_later(sh);
}

static int64_t in_use(const struct net_server *s)
{
    return atomic_load_explicit(&s->answers, memory_order_relaxed);
}

uint64_t answers_share(const struct net_server *s)
{
    int64_t left = limit_of(s) - in_use(s);
    if (s->limits.max_answer_bytes == 0)
        return UINT64_MAX;
    return left > 0 ? (uint64_t)left / 4 : 0;
}

bool answers_short(const struct net_server *s)
{
    return s->limits.max_answer_bytes > 0 && in_use(s) >= limit_of(s) / 4 * 3;
}

bool answers_refuse(const struct net_server *s, uint64_t bytes)
{
    return s->limits.max_answer_bytes > 0 && bytes >= LARGE && in_use(s) >= limit_of(s) * 2;
}
