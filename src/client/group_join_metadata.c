/* group_join_metadata.c - what a member tells in JoinGroup, and what the leader is told. */
#include <stdlib.h>
#include <string.h>

#include "client/consumer_private.h"
#include "client/group.h"
#include "client/lists.h"
#include "protocol/msg/join_group.h"

enum { USER_DATA_MAX = 1 << 20 };

/* ---- this member ---- */

static kafka_topic_partition_t *owned_partitions(struct group *g, struct arena *a, size_t *n)
{
    size_t most = 0;
    list_each (it, &g->c->parts)
        most++;
    kafka_topic_partition_t *tps = arena_array(a, kafka_topic_partition_t, most);
    *n = 0;
    list_each (it, &g->c->parts) {
        struct cpart *p = list_entry(it, struct cpart, link);
        if (tps)
            tps[(*n)++] = (kafka_topic_partition_t){p->topic, p->partition};
    }
    if (*n)
        qsort(tps, *n, sizeof *tps, topic_partition_cmp);
    return tps;
}

/* The built-in sticky ones tell what they had; custom ones what they like. */
static void put_user_data(struct group *g, const kafka_assignor_t *a, struct buf *out)
{
    if (a->user_data) {
        if (buf_reserve(out, USER_DATA_MAX))
            out->len = a->user_data(out->p, USER_DATA_MAX, a->arg);
    } else if (a->assign == assign_sticky && g->had) {
        sticky_data_encode(g->had->v, g->had->n, g->had_generation, out);
    } else if (a->assign == assign_cooperative) {
        buf_put_i32(out, g->had_generation);
    }
}

static bool fill_protocol(struct group *g, struct arena *a, const kafka_assignor_t *assignor,
                          struct subscription *s, struct join_group_request_protocol *out)
{
    struct buf user_data = BUF_INIT, bytes = BUF_INIT;
    put_user_data(g, assignor, &user_data);
    s->user_data = user_data.p;
    s->user_data_len = user_data.len;
    subscription_encode(s, &bytes);
    void *copy = arena_alloc(a, bytes.len);
    bool ok = copy && !user_data.failed && !bytes.failed;
    if (ok) {
        memcpy(copy, bytes.p, bytes.len);
        out->name = str_of(assignor->name);
        out->metadata = (struct bytes){copy, (int32_t)bytes.len};
    }
    buf_free(&user_data);
    buf_free(&bytes);
    return ok;
}

bool group_fill_join(struct group *g, struct arena *a, struct join_group_request *req)
{
    const char *rack = g->c->rack;
    struct subscription s = {
        .topics = (const char *const *)g->c->topics,
        .topics_n = g->c->topics_n,
        .generation = g->generation,
        .rack = rack && *rack ? rack : NULL,
    };
    s.owned = owned_partitions(g, a, &s.owned_n);
    join_group_request_init(req);
    req->group_id = str_of(g->id);
    req->session_timeout_ms = g->session_timeout_ms;
    req->rebalance_timeout_ms = (int32_t)g->max_poll_ms;
    req->member_id = str_of(g->member_id);
    req->group_instance_id = str_of(g->instance_id);
    req->protocol_type = STR_LIT("consumer");
    req->reason = str_of(g->reason);
    req->protocols.v = join_group_request_protocol_new(a, (int32_t)g->assignors_n);
    if (!s.owned || !req->protocols.v)
        return false;
    for (size_t i = 0; i < g->assignors_n; i++)
        if (!fill_protocol(g, a, &g->assignors[i], &s, &req->protocols.v[req->protocols.n++]))
            return false;
    return true;
}

/* ---- the leader ---- */

static struct bytes keep_bytes(struct arena *a, struct bytes b)
{
    void *copy = b.len > 0 ? arena_alloc(a, (size_t)b.len) : NULL;
    if (!copy)
        return BYTES_NULL;
    memcpy(copy, b.p, (size_t)b.len);
    return (struct bytes){copy, b.len};
}

static int cmp_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All topics that some member wants, sorted, each once. */
static bool unite_topics(struct group_round *r)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < r->members_n; i++)
        n += r->members[i].topics_n;
    const char **all = arena_array(&r->mem, const char *, n);
    if (!all)
        return false;
    n = 0;
    for (size_t i = 0; i < r->members_n; i++)
        for (size_t k = 0; k < r->members[i].topics_n; k++)
            all[n++] = r->members[i].topics[k];
    if (n)
        qsort(all, n, sizeof *all, cmp_strings);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(all[i], all[kept - 1]) != 0)
            all[kept++] = all[i];
    r->topics = all;
    r->topics_n = kept;
    return true;
}

bool group_begin_leading(struct group *g, const struct join_group_response *m)
{
    struct group_round *r = &g->leading;
    r->members = arena_array(&r->mem, kafka_group_member_t, (size_t)m->members.n + 1);
    r->members_n = 0;
    r->skip = m->skip_assignment;
    for (int32_t i = 0; r->members && i < m->members.n; i++) {
        kafka_group_member_t *to = &r->members[r->members_n++];
        struct str instance = m->members.v[i].group_instance_id;
        struct bytes metadata = keep_bytes(&r->mem, m->members.v[i].metadata);
        to->generation = -1;
        to->member_id = arena_str(&r->mem, m->members.v[i].member_id).p;
        to->instance_id = instance.len < 0 ? NULL : arena_str(&r->mem, instance).p;
        if (!to->member_id || !subscription_decode(metadata, &r->mem, to))
            return false;
    }
    if (!r->members || !unite_topics(r))
        return false;
    assignor_sort_members(r->members, r->members_n);
    for (size_t i = 0; i < r->topics_n; i++)
        cluster_follow_topic(g->c->cluster, r->topics[i]);
    return true;
}
