/* group_requests_offsets.c - OffsetCommit, TxnOffsetCommit, OffsetDelete and OffsetFetch, from the
 * wire's structs to the group and back. */
#include <errno.h>
#include <stdlib.h>

#include "coordinator/group_requests.h"
#include "protocol/msg/offset_commit.h"
#include "protocol/msg/offset_delete.h"
#include "protocol/msg/offset_fetch.h"
#include "protocol/msg/txn_offset_commit.h"

enum {
    FIRST_VERSION_FETCH_ERROR = 2,
    FIRST_VERSION_FETCH_GROUPS = 8,
    FIRST_VERSION_RETENTION = 2,
    FIRST_VERSION_NO_RETENTION = 5,
    FIRST_VERSION_MEMBER_EPOCHS = 9,
};

/* ---- OffsetCommit ---- */

struct str group_commit_id(const struct group_call *c)
{
    return ((const struct offset_commit_request *)c->in)->group_id;
}

void group_commit_refuse(struct group_call *c, enum kerr e)
{
    struct offset_commit_response *out = c->out;
    for (int32_t t = 0; t < out->topics.n; t++)
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++)
            if (out->topics.v[t].partitions.v[i].error_code == KERR_NONE)
                out->topics.v[t].partitions.v[i].error_code = (int16_t)e;
    group_call_end(c);
}

static int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static struct str text(struct str s)
{
    return str_is_null(s) ? STR_LIT("") : s;
}

static int32_t commit_count(const struct offset_commit_request *in)
{
    int32_t n = 0;
    for (int32_t t = 0; t < in->topics.n; t++)
        n += in->topics.v[t].partitions.n;
    return n;
}

/* When the offset is gone whatever the group does; -1: by the group's retention. */
static int64_t expiry_of(const struct group_call *c, int64_t now)
{
    const struct offset_commit_request *in = c->in;
    bool given = c->version >= FIRST_VERSION_RETENTION && c->version < FIRST_VERSION_NO_RETENTION &&
                 in->retention_time_ms != -1;
    int64_t expiry = given ? saturating_add(now, in->retention_time_ms) : -1;
    return given && expiry < 0 ? 0 : expiry;
}

static struct commit_item *commit_items(const struct group_call *c, int64_t now, int32_t *n)
{
    const struct offset_commit_request *in = c->in;
    struct offset_commit_response *out = c->out;
    int64_t expiry = expiry_of(c, now);
    struct commit_item *v = arena_array(c->arena, struct commit_item, (size_t)commit_count(in));
    *n = 0;
    for (int32_t t = 0; v && t < in->topics.n; t++)
        for (int32_t i = 0; i < in->topics.v[t].partitions.n; i++) {
            const struct offset_commit_request_partition *p = &in->topics.v[t].partitions.v[i];
            bool timed = c->version == 1 && p->commit_timestamp != -1;
            v[(*n)++] =
                (struct commit_item){.topic = in->topics.v[t].name,
                                     .partition = p->partition_index,
                                     .value = {.offset = p->committed_offset,
                                               .leader_epoch = p->committed_leader_epoch,
                                               .metadata = text(p->committed_metadata),
                                               .commit_ms = timed ? p->commit_timestamp : now,
                                               .expire_ms = expiry},
                                     .error = &out->topics.v[t].partitions.v[i].error_code};
        }
    return v;
}

void group_commit_run(struct group_shard *s, struct group_call *c, int32_t partition)
{
    const struct offset_commit_request *in = c->in;
    int32_t generation = c->version >= 1 ? in->generation_id_or_member_epoch : -1;
    struct group *g = generation < 0 ? group_shard_get(s, in->group_id, partition)
                                     : group_shard_find(s, in->group_id);
    if (!g) {
        group_commit_refuse(c, generation < 0 ? KERR_UNKNOWN_SERVER_ERROR
                               : c->version >= FIRST_VERSION_MEMBER_EPOCHS
                                   ? KERR_GROUP_ID_NOT_FOUND
                                   : KERR_ILLEGAL_GENERATION);
        return;
    }
    struct group_commit_request r = {.producer_id = -1,
                                     .producer_epoch = -1,
                                     .version = c->version,
                                     .generation = generation,
                                     .member = in->member_id,
                                     .instance = in->group_instance_id};
    r.items = commit_items(c, clock_wall_ms(s->o.env.ex->clock), &r.n);
    if (r.items)
        group_commit(g, c, &r);
    else
        group_call_no_memory(c);
    group_shard_drop_unused(s, g);
}

/* ---- TxnOffsetCommit ---- */

struct str group_txn_commit_id(const struct group_call *c)
{
    return ((const struct txn_offset_commit_request *)c->in)->group_id;
}

void group_txn_commit_refuse(struct group_call *c, enum kerr e)
{
    enum { FIRST_VERSION_LOADING = 2 };
    struct txn_offset_commit_response *out = c->out;
    if (e == KERR_COORDINATOR_LOAD_IN_PROGRESS && c->version < FIRST_VERSION_LOADING)
        e = KERR_COORDINATOR_NOT_AVAILABLE;
    for (int32_t t = 0; t < out->topics.n; t++)
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++)
            if (out->topics.v[t].partitions.v[i].error_code == KERR_NONE)
                out->topics.v[t].partitions.v[i].error_code = (int16_t)e;
    group_call_end(c);
}

static struct commit_item *txn_commit_items(const struct group_call *c, int64_t now, int32_t *n)
{
    const struct txn_offset_commit_request *in = c->in;
    struct txn_offset_commit_response *out = c->out;
    int32_t all = 0;
    for (int32_t t = 0; t < in->topics.n; t++)
        all += in->topics.v[t].partitions.n;
    struct commit_item *v = arena_array(c->arena, struct commit_item, (size_t)all);
    *n = 0;
    for (int32_t t = 0; v && t < in->topics.n; t++)
        for (int32_t i = 0; i < in->topics.v[t].partitions.n; i++) {
            const struct txn_offset_commit_request_partition *p = &in->topics.v[t].partitions.v[i];
            v[(*n)++] = (struct commit_item){.topic = in->topics.v[t].name,
                                             .partition = p->partition_index,
                                             .value = {.offset = p->committed_offset,
                                                       .leader_epoch = p->committed_leader_epoch,
                                                       .metadata = text(p->committed_metadata),
                                                       .commit_ms = now,
                                                       .expire_ms = -1},
                                             .error = &out->topics.v[t].partitions.v[i].error_code};
        }
    return v;
}

void group_txn_commit_run(struct group_shard *s, struct group_call *c, int32_t partition)
{
    const struct txn_offset_commit_request *in = c->in;
    struct group *g = group_shard_get(s, in->group_id, partition);
    if (!g) {
        group_txn_commit_refuse(c, KERR_UNKNOWN_SERVER_ERROR);
        return;
    }
    struct group_commit_request r = {.producer_id = in->producer_id,
                                     .producer_epoch = in->producer_epoch,
                                     .txn_guard = c->txn_guard,
                                     .version = -1,
                                     .generation = in->generation_id,
                                     .member = in->member_id,
                                     .instance = in->group_instance_id};
    r.items = txn_commit_items(c, clock_wall_ms(s->o.env.ex->clock), &r.n);
    if (r.items)
        group_commit(g, c, &r);
    else
        group_call_no_memory(c);
    group_shard_drop_unused(s, g);
}

/* ---- OffsetDelete ---- */

struct str group_offset_delete_id(const struct group_call *c)
{
    return ((const struct offset_delete_request *)c->in)->group_id;
}

/* An error of the whole has no partitions beside it. */
void group_offset_delete_refuse(struct group_call *c, enum kerr e)
{
    struct offset_delete_response *out = c->out;
    out->error_code = (int16_t)e;
    if (e != KERR_NONE)
        out->topics.n = 0;
    group_call_end(c);
}

void group_offset_delete_run(struct group_shard *s, struct group_call *c, int32_t partition)
{
    const struct offset_delete_request *in = c->in;
    struct offset_delete_response *out = c->out;
    int32_t all = 0, n = 0;
    (void)partition;
    for (int32_t t = 0; t < in->topics.n; t++)
        all += in->topics.v[t].partitions.n;
    struct offset_delete_item *items =
        arena_array(c->arena, struct offset_delete_item, (size_t)all);
    if (!items) {
        group_call_no_memory(c);
        return;
    }
    for (int32_t t = 0; t < in->topics.n; t++)
        for (int32_t i = 0; i < in->topics.v[t].partitions.n; i++)
            items[n++] = (struct offset_delete_item){
                .topic = in->topics.v[t].name,
                .partition = in->topics.v[t].partitions.v[i].partition_index,
                .error = &out->topics.v[t].partitions.v[i].error_code};
    struct group *g = group_shard_find(s, in->group_id);
    enum kerr e = g ? group_delete_offsets(g, items, n) : KERR_GROUP_ID_NOT_FOUND;
    if (g)
        group_shard_reap(s, g);
    group_offset_delete_refuse(c, e);
}

/* ---- OffsetFetch ---- */

/* v0-7 and v8+ have structs of their own with the same fields; what is between them is here. */
struct fetched {
    int32_t partition;
    struct offset_value value;
    enum kerr error;
};

static struct fetched fetch_one(const struct group *g, struct str topic, int32_t partition,
                                bool stable, struct arena *a)
{
    struct fetched f = {.partition = partition,
                        .value = {.offset = -1, .leader_epoch = -1, .metadata = STR_LIT("")}};
    if (g)
        f.error = group_fetch(g, topic, partition, stable, &f.value);
    f.value.metadata = arena_str(a, f.value.metadata);
    return f;
}

struct all_fetch { /* walking everything that is committed */
    const struct group *group;
    struct group_call *call;
    bool stable;
    struct offset_fetch_response_group *out;
};

static bool count_committed(void *arg, const struct offset_topic *t, const struct offset_entry *e)
{
    (void)t;
    *(int32_t *)arg += e->position >= 0;
    return false;
}

/* Topics come in the walk's order, each in one piece. */
static bool add_committed(void *arg, const struct offset_topic *t, const struct offset_entry *e)
{
    struct all_fetch *f = arg;
    struct arena *a = f->call->arena;
    if (e->position < 0)
        return false;
    struct offset_fetch_response_group_topic *to =
        f->out->topics.n ? &f->out->topics.v[f->out->topics.n - 1] : NULL;
    if (!to || !str_eq(to->name, t->name)) {
        to = &f->out->topics.v[f->out->topics.n++];
        to->name = arena_str(a, t->name);
        to->partitions.v = offset_fetch_response_group_partition_new(a, t->n);
        if (!to->partitions.v)
            return false;
    }
    if (!to->partitions.v)
        return false;
    struct fetched one = fetch_one(f->group, t->name, e->partition, f->stable, a);
    to->partitions.v[to->partitions.n++] = (struct offset_fetch_response_group_partition){
        .partition_index = one.partition,
        .committed_offset = one.value.offset,
        .committed_leader_epoch = one.value.leader_epoch,
        .metadata = one.value.metadata,
        .error_code = (int16_t)one.error};
    return false;
}

static void fetch_all(struct group *g, struct group_call *c, bool stable,
                      struct offset_fetch_response_group *out)
{
    int32_t n = 0;
    if (!g || group_is(g, GROUP_DEAD))
        return;
    group_offsets_each(&g->offsets, count_committed, &n);
    out->topics.v = offset_fetch_response_group_topic_new(c->arena, n);
    struct all_fetch f = {.group = g, .call = c, .stable = stable, .out = out};
    if (out->topics.v)
        group_offsets_each(&g->offsets, add_committed, &f);
}

typedef struct offset_fetch_request_group_topic asked_topic;

static void fetch_named(const struct group *g, struct group_call *c, bool stable,
                        const asked_topic *topics, int32_t n,
                        struct offset_fetch_response_group *out)
{
    out->topics.v = offset_fetch_response_group_topic_new(c->arena, n);
    for (int32_t t = 0; out->topics.v && t < n; t++) {
        struct offset_fetch_response_group_topic *to = &out->topics.v[t];
        int32_t partitions = topics[t].partition_indexes.n;
        to->name = topics[t].name;
        to->partitions.v = offset_fetch_response_group_partition_new(c->arena, partitions);
        if (!to->partitions.v)
            return;
        to->partitions.n = partitions;
        for (int32_t i = 0; i < partitions; i++) {
            struct fetched one =
                fetch_one(g, to->name, topics[t].partition_indexes.v[i], stable, c->arena);
            to->partitions.v[i] = (struct offset_fetch_response_group_partition){
                .partition_index = one.partition,
                .committed_offset = one.value.offset,
                .committed_leader_epoch = one.value.leader_epoch,
                .metadata = one.value.metadata,
                .error_code = (int16_t)one.error};
        }
        out->topics.n++;
    }
}

/* Who asks as a member must be one, as of now; a tool is none. */
static enum kerr check_member(const struct group *g, const struct offset_fetch_request_group *asked)
{
    bool named = asked && (!str_is_null(asked->member_id) || asked->member_epoch >= 0);
    if (!g || !g->consumers || !named)
        return KERR_NONE;
    return cgroup_check_epoch(g, asked->member_id, asked->member_epoch, -1);
}

/* `asked`: as of the versions that name several groups; else NULL. */
static void fetch_group(struct group_shard *s, struct group_call *c, struct str id,
                        const asked_topic *topics, int32_t n,
                        const struct offset_fetch_request_group *asked,
                        struct offset_fetch_response_group *out)
{
    const struct offset_fetch_request *in = c->in;
    int32_t partition;
    enum kerr e = group_admit(s, id, true, &partition);
    struct group *g = e == KERR_NONE ? group_shard_find(s, id) : NULL;
    if (e == KERR_NONE)
        e = check_member(g, asked);
    out->error_code = (int16_t)e;
    if (e == KERR_NONE && n < 0)
        fetch_all(g, c, in->require_stable, out);
    else if (e == KERR_NONE)
        fetch_named(g, c, in->require_stable, topics, n, out);
}

/* An error that old versions can only tell beside each partition. */
static void fetch_spread_error(struct group_call *c, const asked_topic *topics, int32_t n,
                               struct offset_fetch_response_group *out)
{
    int16_t error = out->error_code;
    fetch_named(NULL, c, false, topics, n < 0 ? 0 : n, out);
    for (int32_t t = 0; t < out->topics.n; t++)
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++)
            out->topics.v[t].partitions.v[i].error_code = error;
}

/* v0-7 ask and answer with structs of other names and the same fields. */
static asked_topic *asked_topics(const struct offset_fetch_request *in, struct arena *a)
{
    int32_t n = in->topics.n > 0 ? in->topics.n : 0;
    asked_topic *v = arena_array(a, asked_topic, (size_t)n);
    for (int32_t t = 0; v && t < n; t++) {
        v[t].name = in->topics.v[t].name;
        v[t].partition_indexes.v = in->topics.v[t].partition_indexes.v;
        v[t].partition_indexes.n = in->topics.v[t].partition_indexes.n;
    }
    return v;
}

static void flatten_topic(const struct offset_fetch_response_group_topic *from, struct arena *a,
                          struct offset_fetch_response_topic *to)
{
    to->name = from->name;
    to->partitions.v = offset_fetch_response_partition_new(a, from->partitions.n);
    for (int32_t i = 0; to->partitions.v && i < from->partitions.n; i++) {
        const struct offset_fetch_response_group_partition *p = &from->partitions.v[i];
        to->partitions.v[to->partitions.n++] = (struct offset_fetch_response_partition){
            .partition_index = p->partition_index,
            .committed_offset = p->committed_offset,
            .committed_leader_epoch = p->committed_leader_epoch,
            .metadata = p->metadata,
            .error_code = p->error_code};
    }
}

static void fetch_flat(struct group_shard *s, struct group_call *c)
{
    const struct offset_fetch_request *in = c->in;
    struct offset_fetch_response *out = c->out;
    struct offset_fetch_response_group one;
    const asked_topic *topics = asked_topics(in, c->arena);
    offset_fetch_response_group_init(&one);
    if (!topics)
        return; /* the arena knows */
    fetch_group(s, c, in->group_id, topics, in->topics.n, NULL, &one);
    if (one.error_code != KERR_NONE && c->version < FIRST_VERSION_FETCH_ERROR)
        fetch_spread_error(c, topics, in->topics.n, &one);
    out->error_code = one.error_code;
    out->topics.v = offset_fetch_response_topic_new(c->arena, one.topics.n);
    for (int32_t t = 0; out->topics.v && t < one.topics.n; t++)
        flatten_topic(&one.topics.v[t], c->arena, &out->topics.v[out->topics.n++]);
}

void group_fetch_run(struct group_shard *s, struct group_call *c)
{
    const struct offset_fetch_request *in = c->in;
    struct offset_fetch_response *out = c->out;
    if (c->version < FIRST_VERSION_FETCH_GROUPS) {
        if (group_is_mine(s, in->group_id))
            fetch_flat(s, c);
        return;
    }
    /* What no answer can hold is not gathered: a long list may name one large group again and
     * again. */
    for (int32_t i = 0; i < in->groups.n && !c->arena->exhausted; i++)
        if (out->groups.v[i].error_code == KERR_NONE && group_is_mine(s, in->groups.v[i].group_id))
            fetch_group(s, c, in->groups.v[i].group_id, in->groups.v[i].topics.v,
                        in->groups.v[i].topics.n, &in->groups.v[i], &out->groups.v[i]);
}
