/* group_cleanup.c - how offsets and groups end: expired, deleted by request, or with their topic.
 * What leaves memory is followed by tombstones; one that gets lost is written again after the next
 * load, when the offset expires once more. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/group_private.h"

/* ---- tombstones ---- */

struct tombstones {
    struct group *group;
    struct buf keys, ends; /* ends: size_t each */
    int n;
};

static void add_end(struct tombstones *t)
{
    size_t end = t->keys.len;
    buf_put(&t->ends, &end, sizeof(end));
    t->n++;
}

static void bury_offset(struct tombstones *t, struct str topic, int32_t partition)
{
    group_key_put_offset(&t->keys, t->group->id, topic, partition);
    add_end(t);
}

/* The records, in memory of their own. */
static struct group_record *records_of(const struct tombstones *t)
{
    struct group_record *v = calloc((size_t)t->n, sizeof(*v));
    const uint8_t *at = t->keys.p;
    for (int i = 0; v && i < t->n; i++) {
        size_t end;
        memcpy(&end, t->ends.p + (size_t)i * sizeof(end), sizeof(end));
        v[i].key = (struct bytes){at, (int32_t)(t->keys.p + end - at)};
        v[i].value = BYTES_NULL;
        at = t->keys.p + end;
    }
    return v;
}

static void write_tombstones(struct tombstones *t)
{
    const struct group_env *env = t->group->env;
    bool complete = !t->keys.failed && !t->ends.failed;
    struct group_record *v = t->n > 0 && complete ? records_of(t) : NULL;
    enum kerr e = KERR_NONE;
    if (v)
        e = env->log->ops->append_now(env->log, t->group->partition, v, t->n);
    else if (t->n > 0)
        e = KERR_UNKNOWN_SERVER_ERROR;
    if (e != KERR_NONE)
        say_warn(GROUP_TAG, "group %.*s: tombstones of %d records were not written: %s",
                 STR_ARG(t->group->id), t->n, kerr_name((int16_t)e));
    free(v);
    buf_free(&t->keys);
    buf_free(&t->ends);
}

static void bury_consumers(void *arg, enum cgroup_key kind, struct str member)
{
    struct tombstones *t = arg;
    group_key_put_consumers(&t->keys, kind, t->group->id, member);
    add_end(t);
}

/* A group without members and offsets is over. Its record is buried only when it has one: groups
 * that just keep offsets are of generation 0 for ever. */
static void end_if_unused(struct group *g, struct tombstones *t)
{
    if (group_is(g, GROUP_EMPTY) && !group_has_members(g) && group_offsets_empty(&g->offsets) &&
        g->pending.n == 0)
        group_set_state(g, GROUP_DEAD, "nothing of it is left");
    if (group_is(g, GROUP_DEAD) && g->consumers) {
        cgroup_each_key(g->consumers, bury_consumers, t);
        cgroup_detach(g);
    }
    if (group_is(g, GROUP_DEAD) && g->generation > 0) {
        group_key_put_group(&t->keys, g->id);
        add_end(t);
    }
}

/* ---- expiry (KIP-211) ---- */

enum base_time { BASE_NEVER, BASE_EMPTY_SINCE, BASE_COMMIT, BASE_COMMIT_UNLESS_READ };

/* From when on the retention runs, and of which offsets. */
static enum base_time base_time_of(const struct group *g)
{
    if (g->consumers)
        return BASE_COMMIT_UNLESS_READ;
    if (!g->protocol_type)
        return BASE_COMMIT;
    if (group_is(g, GROUP_EMPTY))
        return BASE_EMPTY_SINCE;
    bool consumer = strcmp(g->protocol_type, "consumer") == 0;
    return consumer && group_is(g, GROUP_STABLE) && g->subscribed_known ? BASE_COMMIT_UNLESS_READ
                                                                        : BASE_NEVER;
}

struct expiry {
    struct tombstones graves;
    enum base_time base;
    int64_t now_ms;
};

/* Clients may give any time, also one before the world began. */
static bool older_than(int64_t base, int64_t now, int64_t retention)
{
    int64_t age;
    return __builtin_sub_overflow(now, base, &age) ? base < 0 : age >= retention;
}

static bool is_expired(const struct expiry *x, const struct offset_topic *t,
                       const struct offset_entry *e)
{
    const struct group *g = x->graves.group;
    if (e->position < 0 || e->pending)
        return false;
    if (x->base == BASE_COMMIT_UNLESS_READ && group_subscribed(g, t->name))
        return false;
    if (e->value.expire_ms >= 0)
        return x->now_ms >= e->value.expire_ms;
    bool since_empty = x->base == BASE_EMPTY_SINCE && g->state_ms >= 0;
    return older_than(since_empty ? g->state_ms : e->value.commit_ms, x->now_ms,
                      g->env->config->retention_ms);
}

static bool expire_one(void *arg, const struct offset_topic *t, const struct offset_entry *e)
{
    struct expiry *x = arg;
    if (!is_expired(x, t, e))
        return false;
    bury_offset(&x->graves, t->name, e->partition);
    return true;
}

void group_expire_offsets(struct group *g, int64_t now_ms)
{
    struct expiry x = {.graves = {.group = g}, .base = base_time_of(g), .now_ms = now_ms};
    if (group_is(g, GROUP_DEAD))
        return;
    if (x.base != BASE_NEVER)
        group_offsets_each(&g->offsets, expire_one, &x);
    int expired = x.graves.n;
    if (g->env->events)
        g->env->events->expired += (uint64_t)expired;
    end_if_unused(g, &x.graves);
    if (expired)
        say_info(GROUP_TAG, "group %.*s: %d offsets expired", STR_ARG(g->id), expired);
    write_tombstones(&x.graves);
}

/* ---- deletion ---- */

/* Before the group's own record is buried. */
static void count_deleted(const struct tombstones *t)
{
    if (t->group->env->events)
        t->group->env->events->deleted += (uint64_t)t->n;
}

void group_forget_partitions(struct group *g, struct str topic, const int32_t *partitions, int n)
{
    struct tombstones t = {.group = g};
    if (group_is(g, GROUP_DEAD) || !group_offsets_has_topic(&g->offsets, topic))
        return;
    for (int i = 0; i < n; i++)
        if (group_offsets_remove(&g->offsets, topic, partitions[i]))
            bury_offset(&t, topic, partitions[i]);
    count_deleted(&t);
    if (t.n > 0)
        end_if_unused(g, &t);
    write_tombstones(&t);
}

static bool bury_one(void *arg, const struct offset_topic *t, const struct offset_entry *e)
{
    bury_offset(arg, t->name, e->partition); /* pending ones too: they are in the log already */
    return e->position >= 0;
}

enum kerr group_delete(struct group *g)
{
    struct tombstones t = {.group = g};
    if (group_is(g, GROUP_DEAD))
        return KERR_GROUP_ID_NOT_FOUND;
    if (group_has_members(g) || !group_is(g, GROUP_EMPTY))
        return KERR_NON_EMPTY_GROUP;
    group_set_state(g, GROUP_DEAD, "it was deleted");
    list_each_safe (l, &g->pending_list)
        group_drop_pending(g, list_entry(l, struct pending_member, link));
    group_offsets_each(&g->offsets, bury_one, &t);
    count_deleted(&t);
    end_if_unused(g, &t);
    write_tombstones(&t);
    return KERR_NONE;
}

enum kerr group_delete_offsets(struct group *g, struct offset_delete_item *items, int n)
{
    struct tombstones t = {.group = g};
    bool consumer = str_eqz(group_protocol_type(g), "consumer");
    bool empty = group_is(g, GROUP_EMPTY) && !group_has_members(g);
    if (group_is(g, GROUP_DEAD))
        return KERR_GROUP_ID_NOT_FOUND;
    if (!empty && !consumer)
        return KERR_NON_EMPTY_GROUP;
    for (int i = 0; i < n; i++) {
        if (*items[i].error != KERR_NONE)
            continue;
        if (!empty && group_subscribed(g, items[i].topic))
            *items[i].error = KERR_GROUP_SUBSCRIBED_TO_TOPIC;
        else if (group_offsets_remove(&g->offsets, items[i].topic, items[i].partition))
            bury_offset(&t, items[i].topic, items[i].partition);
    }
    count_deleted(&t);
    if (t.n > 0)
        end_if_unused(g, &t);
    write_tombstones(&t);
    return KERR_NONE;
}
