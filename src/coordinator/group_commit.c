/* group_commit.c - OffsetCommit and TxnOffsetCommit: who may, and what happens between the write
 * and its acknowledgement; and what OffsetFetch sees of it. */
#include "base/logline.h"
#include "coordinator/group_private.h"
#include "coordinator/utf16.h"

static const struct { /* what the log says of a commit -> what clients are told */
    enum kerr log, client;
} commit_errors[] = {
    {KERR_NETWORK_EXCEPTION, KERR_COORDINATOR_LOAD_IN_PROGRESS},
    {KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_ENOUGH_REPLICAS, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_LEADER_OR_FOLLOWER, KERR_NOT_COORDINATOR},
    {KERR_KAFKA_STORAGE_ERROR, KERR_NOT_COORDINATOR},
    {KERR_MESSAGE_TOO_LARGE, KERR_INVALID_COMMIT_OFFSET_SIZE},
    {KERR_RECORD_LIST_TOO_LARGE, KERR_INVALID_COMMIT_OFFSET_SIZE},
    {KERR_INVALID_FETCH_SIZE, KERR_INVALID_COMMIT_OFFSET_SIZE},
};

static enum kerr client_error(enum kerr e)
{
    for (size_t i = 0; i < sizeof(commit_errors) / sizeof(*commit_errors); i++)
        if (commit_errors[i].log == e)
            return commit_errors[i].client;
    return e;
}

/* In the call's arena. */
struct commit {
    struct group_append append;
    struct group *group; /* one reference */
    struct group_call *call;
    int64_t producer_id;
    struct commit_item *items;
    int n;
};

/* ---- who may ---- */

/* In a transaction a stale member is told what clients of such old requests know. */
static enum kerr identify_consumer(const struct group *g, const struct group_commit_request *r,
                                   bool anonymous)
{
    if (anonymous)
        return KERR_NONE;
    enum kerr e = cgroup_check_epoch(g, r->member, r->generation, r->version);
    return e == KERR_STALE_MEMBER_EPOCH && r->producer_id >= 0 ? KERR_ILLEGAL_GENERATION : e;
}

static enum kerr identify(const struct group *g, const struct group_commit_request *r,
                          struct member **m)
{
    bool in_txn = r->producer_id >= 0,
         named = r->generation >= 0 || r->member.len > 0 || !str_is_null(r->instance);
    *m = NULL;
    if (group_is(g, GROUP_DEAD))
        return KERR_COORDINATOR_NOT_AVAILABLE;
    if (g->consumers)
        return identify_consumer(g, r, in_txn && !named);
    if (r->generation < 0 && group_is(g, GROUP_EMPTY))
        return KERR_NONE; /* a consumer without a group, or a tool */
    if (!named)
        return in_txn ? KERR_NONE : KERR_UNKNOWN_MEMBER_ID;
    enum kerr e = group_identify(g, r->member, r->instance, m);
    if (e == KERR_NONE && r->generation != g->generation)
        e = KERR_ILLEGAL_GENERATION;
    return e;
}

/* A commit is a sign of life; between the join and the assignment it comes from a consumer that has
 * not understood yet. Transactions are not bound to either. */
static enum kerr admit(const struct group *g, const struct group_commit_request *r)
{
    struct member *m;
    enum kerr e = identify(g, r, &m);
    if (e != KERR_NONE || r->producer_id >= 0)
        return e;
    if (group_is(g, GROUP_COMPLETING_REBALANCE))
        return KERR_REBALANCE_IN_PROGRESS;
    if (m)
        member_touch(m);
    return KERR_NONE;
}

/* ---- the write ---- */

static void fail_all(struct commit_item *items, int n, enum kerr e)
{
    for (int i = 0; i < n; i++)
        if (*items[i].error == KERR_NONE)
            *items[i].error = (int16_t)e;
}

static int note_pending(struct commit *c, const struct commit_item *it)
{
    struct group_offsets *o = &c->group->offsets;
    return c->producer_id < 0 ? group_offsets_pend(o, it->topic, it->partition, c)
                              : group_offsets_txn_put(o, c->producer_id, it->topic, it->partition,
                                                      &it->value, -1, c);
}

static void settle(struct commit *c, const struct commit_item *it, bool good)
{
    struct group_offsets *o = &c->group->offsets;
    int64_t position = good ? c->append.base_offset : -1;
    if (c->producer_id >= 0) {
        group_offsets_txn_written(o, c->producer_id, it->topic, it->partition, c, position);
        return;
    }
    if (good && group_offsets_set(o, it->topic, it->partition, &it->value, position) != 0)
        say_error(GROUP_TAG, "group %.*s: no memory for a committed offset of %.*s-%d",
                  STR_ARG(c->group->id), STR_ARG(it->topic), (int)it->partition);
    group_offsets_unpend(o, it->topic, it->partition, c);
}

static void committed(struct group_append *a)
{
    struct commit *c = container_of(a, struct commit, append);
    struct group *g = c->group;
    if (!group_is(g, GROUP_DEAD))
        for (int i = 0; i < c->n; i++)
            settle(c, &c->items[i], a->error == KERR_NONE);
    if (a->error == KERR_NONE && g->env->events)
        g->env->events->committed += (uint64_t)c->n;
    fail_all(c->items, c->n, client_error(a->error));
    group_call_end(c->call);
    group_unref(g);
}

/* Keys and values of all items, one behind the other in `bytes`. */
static struct group_record *encode(const struct commit *c, struct buf *bytes)
{
    struct arena *a = c->call->arena;
    struct group_record *v = arena_array(a, struct group_record, (size_t)c->n);
    size_t *ends = arena_array(a, size_t, 2 * (size_t)c->n);
    if (!v || !ends)
        return NULL;
    for (int i = 0; i < c->n; i++) {
        const struct commit_item *it = &c->items[i];
        group_key_put_offset(bytes, c->group->id, it->topic, it->partition);
        ends[2 * i] = bytes->len;
        offset_value_put(bytes, c->group->env->config->versions.offset, &it->value);
        ends[2 * i + 1] = bytes->len;
    }
    if (bytes->failed || bytes->len > INT32_MAX)
        return NULL;
    for (size_t i = 0, at = 0; i < (size_t)c->n; i++) {
        v[i].key = (struct bytes){bytes->p + at, (int32_t)(ends[2 * i] - at)};
        at = ends[2 * i];
        v[i].value = (struct bytes){bytes->p + at, (int32_t)(ends[2 * i + 1] - at)};
        at = ends[2 * i + 1];
    }
    return v;
}

/* The items that go into the log: those without an error, gathered at the front. */
static int select_items(const struct group *g, struct commit_item *items, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (*items[i].error != KERR_NONE)
            continue;
        if (utf16_length(items[i].value.metadata) > g->env->config->metadata_max)
            *items[i].error = KERR_OFFSET_METADATA_TOO_LARGE;
        else
            items[kept++] = items[i];
    }
    return kept;
}

/* Notes all as pending and writes them; false without memory: then nothing has happened. */
static bool write_commit(struct commit *c)
{
    struct group *g = c->group;
    struct buf bytes = BUF_INIT;
    struct group_record *records = encode(c, &bytes);
    int noted = 0;
    while (records && noted < c->n && note_pending(c, &c->items[noted]) == 0)
        noted++;
    bool good = records && noted == c->n;
    for (int i = 0; !good && i < noted; i++)
        settle(c, &c->items[i], false);
    if (good)
        g->env->log->ops->append(g->env->log, &c->append, records, c->n);
    buf_free(&bytes);
    return good;
}

void group_commit(struct group *g, struct group_call *call, const struct group_commit_request *r)
{
    enum kerr e = admit(g, r);
    int n = e == KERR_NONE ? select_items(g, r->items, r->n) : 0;
    if (n == 0) {
        fail_all(r->items, r->n, e);
        group_call_end(call);
        return;
    }
    struct commit *c = arena_new(call->arena, struct commit);
    if (c) {
        *c = (struct commit){.group = group_ref(g),
                             .call = call,
                             .producer_id = r->producer_id,
                             .items = r->items,
                             .n = n};
        c->append = (struct group_append){.partition = g->partition,
                                          .producer_id = r->producer_id,
                                          .producer_epoch = r->producer_epoch,
                                          .txn_guard = r->txn_guard,
                                          .base_offset = -1,
                                          .done = committed};
        if (write_commit(c))
            return;
        group_unref(g);
    }
    fail_all(r->items, n, KERR_UNKNOWN_SERVER_ERROR);
    group_call_end(call);
}

void group_txn_end(struct group *g, int64_t producer_id, bool commit)
{
    int lost = group_offsets_txn_end(&g->offsets, producer_id, commit);
    if (lost)
        say_error(GROUP_TAG,
                  "group %.*s: %d offsets of producer %lld's transaction could not be put in place",
                  STR_ARG(g->id), lost, (long long)producer_id);
}

/* ---- what readers see ---- */

enum kerr group_fetch(const struct group *g, struct str topic, int32_t partition,
                      bool require_stable, struct offset_value *value)
{
    const struct offset_entry *e =
        group_is(g, GROUP_DEAD) ? NULL : group_offsets_find(&g->offsets, topic, partition);
    *value = (struct offset_value){.offset = -1, .leader_epoch = -1, .metadata = STR_LIT("")};
    if (!e)
        return KERR_NONE;
    if (require_stable && (e->pending || e->txns > 0))
        return KERR_UNSTABLE_OFFSET_COMMIT;
    if (e->position >= 0)
        *value = e->value;
    return KERR_NONE;
}
