/* group_loading.c - see group_loading.h. */
#include "coordinator/group_loading.h"

#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"

#define LOADING_TAG "GroupMetadataManager"

enum { COMPLAINTS_MAX = 20 /* lines about damage in one partition */ };

struct loading_group {
    struct hnode node;
    struct list in_txns; /* while it has open transactions */
    struct group_offsets offsets;
    struct buf record;              /* the newest group value; empty = none */
    struct cgroup_saved *consumers; /* NULL = no record of the new protocol */
    int32_t id_len;
    char id[];
};

struct group_loading {
    int32_t partition;
    struct hmap groups;
    struct list txn_groups;
    int64_t records;
    int complaints;
    struct arena scratch; /* for one record */
};

struct group_loading *group_loading_new(int32_t partition)
{
    struct group_loading *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->partition = partition;
    hmap_init(&l->groups);
    list_init(&l->txn_groups);
    arena_init(&l->scratch, 0);
    return l;
}

static void loading_group_free(struct loading_group *g)
{
    group_offsets_free(&g->offsets);
    buf_free(&g->record);
    cgroup_saved_free(g->consumers);
    free(g);
}

void group_loading_free(struct group_loading *l)
{
    if (!l)
        return;
    for (struct hnode *n = hmap_first(&l->groups), *next; n; n = next) {
        next = hmap_next(&l->groups, n);
        loading_group_free(hmap_entry(n, struct loading_group, node));
    }
    hmap_free(&l->groups);
    arena_free(&l->scratch);
    free(l);
}

int64_t group_loading_records(const struct group_loading *l)
{
    return l->records;
}

int group_loading_groups(const struct group_loading *l)
{
    return (int)l->groups.n;
}

static void complain(struct group_loading *l, int64_t offset, const char *what)
{
    if (++l->complaints > COMPLAINTS_MAX)
        return;
    say_warn(LOADING_TAG, "__consumer_offsets-%d, offset %lld: %s, passed over%s",
             (int)l->partition, (long long)offset, what,
             l->complaints == COMPLAINTS_MAX ? " (there will be no more such lines)" : "");
}

/* ---- groups ---- */

static struct str loading_id(const struct loading_group *g)
{
    return (struct str){g->id, g->id_len};
}

static bool is_group(const struct hnode *n, const void *key)
{
    return str_eq(loading_id(hmap_entry(n, struct loading_group, node)), *(const struct str *)key);
}

static struct loading_group *find(const struct group_loading *l, struct str id)
{
    struct hnode *n = hmap_find(&l->groups, hash_str(id), is_group, &id);
    return n ? hmap_entry(n, struct loading_group, node) : NULL;
}

static struct loading_group *find_or_make(struct group_loading *l, struct str id)
{
    struct loading_group *g = find(l, id);
    if (g)
        return g;
    g = calloc(1, sizeof(*g) + (size_t)id.len);
    if (!g)
        return NULL;
    memcpy(g->id, id.p, (size_t)id.len);
    g->id_len = id.len;
    list_init(&g->in_txns);
    group_offsets_init(&g->offsets);
    if (hmap_put(&l->groups, &g->node, hash_str(id)) == 0)
        return g;
    free(g);
    return NULL;
}

static void drop_if_empty(struct group_loading *l, struct loading_group *g)
{
    if (!g || g->record.len > 0 || g->consumers || !group_offsets_empty(&g->offsets))
        return;
    hmap_remove(&l->groups, &g->node);
    list_remove(&g->in_txns);
    loading_group_free(g);
}

/* ---- records ---- */

static int set_offset(struct group_loading *l, const struct group_key *k,
                      const struct offset_value *v, const struct batch *b, int64_t position)
{
    struct loading_group *g = find_or_make(l, k->group);
    if (!g)
        return -ENOMEM;
    if (batch_is_transactional(b)) {
        if (!list_linked(&g->in_txns))
            list_push_back(&l->txn_groups, &g->in_txns);
        return group_offsets_txn_put(&g->offsets, b->producer_id, k->topic, k->partition, v,
                                     position, NULL);
    }
    return group_offsets_set(&g->offsets, k->topic, k->partition, v, position);
}

static void remove_offset(struct group_loading *l, const struct group_key *k, const struct batch *b)
{
    struct loading_group *g = find(l, k->group);
    if (!g)
        return;
    if (batch_is_transactional(b))
        group_offsets_txn_drop(&g->offsets, b->producer_id, k->topic, k->partition);
    else
        group_offsets_remove(&g->offsets, k->topic, k->partition);
    drop_if_empty(l, g);
}

static int add_offset(struct group_loading *l, const struct group_key *k, const struct record *r,
                      const struct batch *b, int64_t position)
{
    struct offset_value v;
    if (r->value.len < 0) {
        remove_offset(l, k, b);
        return 0;
    }
    int rc = offset_value_decode(r->value, &l->scratch, &v);
    if (rc == -ENOMEM)
        return rc;
    if (rc == 0)
        return set_offset(l, k, &v, b, position);
    complain(l, r->offset,
             rc == -ENOTSUP ? "an offset in a version that is not known"
                            : "an offset that cannot be read");
    return 0;
}

/* NULL, or what is wrong with the value. */
static const char *problem_of(struct group_loading *l, struct bytes value, int *rc)
{
    struct group_metadata_value v;
    *rc = group_value_decode(value, &l->scratch, &v);
    if (*rc == -ENOTSUP)
        return "a group in a version that is not known";
    if (*rc)
        return "a group that cannot be read";
    return v.members.n > 0 && str_is_null(v.protocol) ? "a group with members and no protocol"
                                                      : NULL;
}

static int add_group(struct group_loading *l, const struct group_key *k, const struct record *r)
{
    int rc;
    if (r->value.len < 0) {
        struct loading_group *g = find(l, k->group);
        if (g)
            buf_free(&g->record);
        drop_if_empty(l, g);
        return 0;
    }
    const char *problem = problem_of(l, r->value, &rc);
    if (rc == -ENOMEM)
        return rc;
    if (problem) {
        complain(l, r->offset, problem);
        return 0;
    }
    struct loading_group *g = find_or_make(l, k->group);
    if (!g)
        return -ENOMEM;
    g->record.len = 0;
    buf_put(&g->record, r->value.p, (size_t)r->value.len);
    return g->record.failed ? -ENOMEM : 0;
}

static int add_consumers(struct group_loading *l, const struct group_key *k, const struct record *r)
{
    struct loading_group *g = find(l, k->group);
    if (!g && r->value.len < 0)
        return 0;
    if (!g)
        g = find_or_make(l, k->group);
    if (g && !g->consumers)
        g->consumers = cgroup_saved_new();
    if (!g || !g->consumers)
        return -ENOMEM;
    int rc = cgroup_saved_add(g->consumers, k, r->value, &l->scratch);
    if (cgroup_saved_empty(g->consumers)) {
        cgroup_saved_free(g->consumers);
        g->consumers = NULL;
        drop_if_empty(l, g);
    }
    if (rc == -ENOMEM)
        return rc;
    if (rc)
        complain(l, r->offset,
                 rc == -ENOTSUP
                     ? "a record of the new group protocol in a version that is not known"
                     : "a record of the new group protocol that cannot be read");
    return 0;
}

static int add_record(struct group_loading *l, const struct record *r, const struct batch *b,
                      int64_t position)
{
    struct group_key k;
    l->records++;
    if (r->key.len < 0 || group_key_decode(r->key, &k) != 0) {
        complain(l, r->offset, "a record without a key that can be read");
        return 0;
    }
    if (k.kind == GROUP_KEY_OFFSET)
        return add_offset(l, &k, r, b, position);
    if (k.kind == GROUP_KEY_GROUP)
        return add_group(l, &k, r);
    if (k.kind == GROUP_KEY_CONSUMERS)
        return add_consumers(l, &k, r);
    complain(l, r->offset, "a kind of record that is not known");
    return 0;
}

/* ---- batches ---- */

static int add_data(struct group_loading *l, const struct batch *b)
{
    struct record_iter *it;
    struct record r;
    int64_t position = -1;
    int rc = record_iter_open(b, &it);
    if (rc == -ENOMEM)
        return rc;
    if (rc) {
        complain(l, b->base_offset, "a batch that cannot be read");
        return 0;
    }
    while ((rc = record_iter_next(it, &r)) == 1) {
        if (r.offset < 0) {
            complain(l, r.offset, "a record at an offset that cannot be");
            continue;
        }
        /* Compaction leaves gaps: what counts is the first record that is still there. */
        if (position < 0)
            position = r.offset;
        rc = add_record(l, &r, b, position);
        arena_reset(&l->scratch);
        if (rc)
            break;
    }
    record_iter_close(it);
    if (rc == -EBADMSG) {
        complain(l, b->base_offset, "the rest of a batch that cannot be read");
        rc = 0;
    }
    return rc;
}

static void end_txns(struct group_loading *l, int64_t producer_id, bool commit)
{
    list_each_safe (link, &l->txn_groups) {
        struct loading_group *g = list_entry(link, struct loading_group, in_txns);
        group_offsets_txn_end(&g->offsets, producer_id, commit);
        if (!group_offsets_has_txns(&g->offsets))
            list_remove(&g->in_txns);
        drop_if_empty(l, g);
    }
}

/* A marker: int16 version, int16 type, 0 = abort, 1 = commit. */
static int add_marker(struct group_loading *l, const struct batch *b)
{
    struct record_iter *it;
    struct record r;
    int rc = record_iter_open(b, &it);
    if (rc == -ENOMEM)
        return rc;
    if (rc == 0) {
        rc = record_iter_next(it, &r);
        if (rc == 1 && r.key.len >= 4 && get_be16(r.key.p + 2) <= 1)
            end_txns(l, b->producer_id, get_be16(r.key.p + 2) == 1);
        else
            rc = rc == 0 ? 0 : -EBADMSG; /* compaction may have left the batch without its record */
        record_iter_close(it);
    }
    if (rc == -EBADMSG)
        complain(l, b->base_offset, "a control batch that is no transaction marker");
    return 0;
}

int group_loading_add(struct group_loading *l, const struct batch *b)
{
    if (!batch_crc_ok(b)) {
        complain(l, b->base_offset, "a batch with a wrong checksum");
        return 0;
    }
    return batch_is_control(b) ? add_marker(l, b) : add_data(l, b);
}

/* ---- what came of it ---- */

static struct group *make_group(struct group_loading *l, struct loading_group *from,
                                const struct group_env *env)
{
    struct group_metadata_value v;
    struct bytes record = {from->record.p, (int32_t)from->record.len};
    struct group *g = group_new(env, loading_id(from), l->partition);
    bool consumers = from->consumers && cgroup_saved_exists(from->consumers);
    int rc = g ? 0 : -ENOMEM;
    if (consumers && record.len > 0)
        complain(l, -1, "a group of both protocols: the record of the classic one");
    if (!rc && consumers)
        rc = cgroup_restore(g, from->consumers, &l->scratch);
    else if (!rc && record.len > 0)
        rc = group_value_decode(record, &l->scratch, &v); /* it could be read before */
    if (!rc && !consumers && record.len > 0)
        rc = group_restore(g, &v);
    arena_reset(&l->scratch);
    if (rc) {
        group_unref(g);
        return NULL;
    }
    group_offsets_take(group_offsets(g), &from->offsets);
    return g;
}

int group_loading_finish(struct group_loading *l, const struct group_env *env, struct group **out)
{
    int n = 0, rc = 0;
    hmap_each (node, &l->groups) {
        out[n] = make_group(l, hmap_entry(node, struct loading_group, node), env);
        if (!out[n]) {
            rc = -ENOMEM;
            break;
        }
        n++;
    }
    while (rc && n > 0)
        group_unref(out[--n]);
    return rc;
}
