/* group_shard.c - see group_shard.h. */
#include "coordinator/group_shard.h"

#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/cgroup.h"
#include "coordinator/group_shard_private.h"

#define SHARD_TAG "GroupMetadataManager"

enum { LOAD_AGAIN_MS = 10000 };

/* ---- groups ---- */

static bool is_group(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct group, node)->id, *(const struct str *)key);
}

struct group *group_shard_find(const struct group_shard *s, struct str id)
{
    struct hnode *n = s->groups.n ? hmap_find(&s->groups, hash_str(id), is_group, &id) : NULL;
    return n ? hmap_entry(n, struct group, node) : NULL;
}

int group_shard_groups(const struct group_shard *s)
{
    return (int)s->groups.n;
}

static enum group_state counted_state(const struct group *g)
{
    static const enum group_state nearest[CGROUP_STATES] = {
        [CGROUP_EMPTY] = GROUP_EMPTY,
        [CGROUP_ASSIGNING] = GROUP_PREPARING_REBALANCE,
        [CGROUP_RECONCILING] = GROUP_COMPLETING_REBALANCE,
        [CGROUP_STABLE] = GROUP_STABLE,
        [CGROUP_DEAD] = GROUP_DEAD};
    return g->consumers ? nearest[cgroup_state(g->consumers)] : g->state;
}

static void add_events(struct group_events *to, const struct group_events *e)
{
    to->committed += e->committed;
    to->expired += e->expired;
    to->deleted += e->deleted;
    to->rebalances += e->rebalances;
    coordinator_loads_join(&to->loads, &e->loads);
}

void group_shard_count(const struct group_shard *s, struct group_counts *c)
{
    hmap_each (n, &s->groups) {
        const struct group *g = hmap_entry(n, struct group, node);
        c->groups++;
        c->offsets += g->offsets.committed_n;
        c->by_state[counted_state(g)]++;
    }
    add_events(&c->events, &s->events);
}

/* Takes the reference; -ENOMEM leaves it with the caller. */
static int add_group(struct group_shard *s, struct group *g)
{
    if (hmap_put(&s->groups, &g->node, hash_str(g->id)) != 0)
        return -ENOMEM;
    list_push_back(&s->partitions[g->partition].groups, &g->link);
    return 0;
}

static void remove_group(struct group_shard *s, struct group *g)
{
    hmap_remove(&s->groups, &g->node);
    list_remove(&g->link);
    group_unref(g);
}

struct group *group_shard_get(struct group_shard *s, struct str id, int32_t partition)
{
    struct group *g = group_shard_find(s, id);
    if (g)
        return g;
    g = group_new(&s->o.env, id, partition);
    if (g && add_group(s, g) != 0) {
        group_unref(g);
        g = NULL;
    }
    return g;
}

void group_shard_reap(struct group_shard *s, struct group *g)
{
    if (group_is(g, GROUP_DEAD) && list_linked(&g->link))
        remove_group(s, g);
}

void group_shard_drop_unused(struct group_shard *s, struct group *g)
{
    if (group_is(g, GROUP_EMPTY) && g->generation == 0 && g->pending.n == 0 && !g->consumers &&
        group_offsets_empty(&g->offsets) && list_linked(&g->link))
        remove_group(s, g);
}

/* ---- expiry ---- */

static void expire_partition(struct group_shard *s, struct shard_partition *p)
{
    int64_t now = clock_wall_ms(s->o.env.ex->clock);
    list_each_safe (l, &p->groups) {
        struct group *g = list_entry(l, struct group, link);
        group_expire_offsets(g, now);
        group_shard_reap(s, g);
    }
}

/* One partition a turn, so that requests are served in between. */
static void expire_next(struct task *t)
{
    struct group_shard *s = container_of(t, struct group_shard, expiry_task);
    s->expiry_posted = false;
    while (s->expiry_at < s->o.partitions_n && list_empty(&s->partitions[s->expiry_at].groups))
        s->expiry_at++;
    if (!s->active)
        return;
    if (s->expiry_at >= s->o.partitions_n) {
        executor_timer_start(s->o.env.ex, &s->expiry_timer, s->o.check_interval_ms);
        return;
    }
    expire_partition(s, &s->partitions[s->expiry_at++]);
    s->expiry_posted = true;
    executor_post(s->o.env.ex, &s->expiry_task);
}

static void expiry_due(struct timer *t)
{
    struct group_shard *s = container_of(t, struct group_shard, expiry_timer);
    s->expiry_at = 0;
    s->expiry_posted = true;
    executor_post(s->o.env.ex, &s->expiry_task);
}

/* ---- life ---- */

static void load_again(struct timer *t);

int group_shard_new(const struct group_shard_options *o, struct group_shard **out)
{
    struct group_shard *s = *out = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->o = *o;
    s->o.env.shard = s;
    s->o.env.events = &s->events;
    s->partitions = calloc((size_t)o->partitions_n, sizeof(*s->partitions));
    if (!s->partitions) {
        free(s);
        *out = NULL;
        return -ENOMEM;
    }
    for (int32_t i = 0; i < o->partitions_n; i++) {
        s->partitions[i].epoch = -1;
        list_init(&s->partitions[i].groups);
        list_init(&s->partitions[i].ended);
    }
    hmap_init(&s->groups);
    timer_init(&s->expiry_timer, expiry_due);
    timer_init(&s->again_timer, load_again);
    task_init(&s->expiry_task, expire_next);
    s->active = true;
    return 0;
}

const struct group_env *group_shard_env(const struct group_shard *s)
{
    return &s->o.env;
}

void group_shard_start(struct group_shard *s)
{
    executor_timer_start(s->o.env.ex, &s->expiry_timer, 0);
}

static void take_ended(struct shard_partition *p, bool apply);

static void unload(struct group_shard *s, struct shard_partition *p)
{
    take_ended(p, false);
    list_each_safe (l, &p->groups) {
        struct group *g = list_entry(l, struct group, link);
        group_unload(g);
        remove_group(s, g);
    }
}

void group_shard_shut_down(struct group_shard *s)
{
    s->active = false;
    executor_timer_stop(s->o.env.ex, &s->expiry_timer);
    executor_timer_stop(s->o.env.ex, &s->again_timer);
    for (int32_t i = 0; i < s->o.partitions_n; i++)
        unload(s, &s->partitions[i]);
}

void group_shard_free(struct group_shard *s)
{
    if (!s)
        return;
    if (s->active)
        group_shard_shut_down(s);
    hmap_free(&s->groups);
    free(s->partitions);
    free(s);
}

/* ---- ends of transactions ---- */

struct ended_txn {
    struct list link;
    int64_t producer_id;
    bool commit;
};

static void end_txn(struct shard_partition *p, int64_t producer_id, bool commit)
{
    list_each (l, &p->groups) {
        struct group *g = list_entry(l, struct group, link);
        if (group_offsets_has_txns(&g->offsets))
            group_txn_end(g, producer_id, commit);
    }
}

/* The load may have read the log's end before the marker came. */
static void end_txn_after_load(struct shard_partition *p, int64_t producer_id, bool commit)
{
    struct ended_txn *e = calloc(1, sizeof(*e));
    if (!e) {
        say_error(SHARD_TAG, "no memory to note the end of producer %lld's transaction",
                  (long long)producer_id);
        return;
    }
    e->producer_id = producer_id;
    e->commit = commit;
    list_push_back(&p->ended, &e->link);
}

/* `apply`: to the groups that were loaded. */
static void take_ended(struct shard_partition *p, bool apply)
{
    struct list *l;
    while ((l = list_pop(&p->ended)) != NULL) {
        struct ended_txn *e = list_entry(l, struct ended_txn, link);
        if (apply)
            end_txn(p, e->producer_id, e->commit);
        free(e);
    }
}

/* ---- partitions ---- */

static bool is_ours(const struct group_shard *s, int32_t partition)
{
    return partition >= 0 && partition < s->o.partitions_n && partition % s->o.shards == s->o.index;
}

static void set_partition(struct group_shard *s, struct shard_partition *p,
                          enum shard_partition_state to)
{
    s->loading_n += (to == PARTITION_LOADING) - (p->state == PARTITION_LOADING);
    p->state = to;
}

static void begin_load(struct group_shard *s, int32_t partition)
{
    struct shard_partition *p = &s->partitions[partition];
    p->again = false;
    p->load = ++s->loads;
    p->load_ms = executor_now_ms(s->o.env.ex);
    set_partition(s, p, PARTITION_LOADING);
    s->o.load(s->o.arg, partition, p->epoch, p->load);
}

/* Nobody else would ask: this broker leads, as far as the others know. */
static void load_again(struct timer *t)
{
    struct group_shard *s = container_of(t, struct group_shard, again_timer);
    for (int32_t i = 0; i < s->o.partitions_n; i++)
        if (s->partitions[i].again)
            begin_load(s, i);
}

/* A want of memory or descriptors passes, a damaged log stays as it is. */
static void note_failure(struct group_shard *s, struct shard_partition *p, int error)
{
    p->again = error != -EBADMSG && error != -ECANCELED;
    if (p->again && !timer_armed(&s->again_timer))
        executor_timer_start(s->o.env.ex, &s->again_timer, LOAD_AGAIN_MS);
}

void group_shard_elected(struct group_shard *s, int32_t partition, int32_t leader_epoch)
{
    if (!s->active || !is_ours(s, partition))
        return;
    struct shard_partition *p = &s->partitions[partition];
    if (leader_epoch < p->epoch) {
        say_info(SHARD_TAG, "__consumer_offsets-%d: election of epoch %d is old news, epoch is %d",
                 (int)partition, (int)leader_epoch, (int)p->epoch);
        return;
    }
    p->epoch = leader_epoch;
    if (p->state != PARTITION_ELSEWHERE)
        return; /* its log has not been anybody else's meanwhile */
    begin_load(s, partition);
}

void group_shard_resigned(struct group_shard *s, int32_t partition, int32_t leader_epoch)
{
    if (!is_ours(s, partition))
        return;
    struct shard_partition *p = &s->partitions[partition];
    if (leader_epoch >= 0 && leader_epoch < p->epoch)
        return;
    p->epoch = leader_epoch >= 0 ? leader_epoch : -1; /* a topic made anew counts from 0 again */
    p->again = false;
    if (p->state == PARTITION_ELSEWHERE)
        return;
    say_info(SHARD_TAG, "__consumer_offsets-%d: resigned, epoch %d", (int)partition,
             (int)leader_epoch);
    set_partition(s, p, PARTITION_ELSEWHERE);
    unload(s, p);
}

void group_shard_reload(struct group_shard *s, int32_t partition)
{
    struct shard_partition *p = &s->partitions[partition];
    if (!s->active || p->state != PARTITION_OWNED)
        return;
    say_warn(SHARD_TAG, "__consumer_offsets-%d: loaded anew", (int)partition);
    p->load = ++s->loads;
    p->load_ms = executor_now_ms(s->o.env.ex);
    set_partition(s, p, PARTITION_LOADING);
    unload(s, p);
    s->o.load(s->o.arg, partition, p->epoch, p->load);
}

/* Groups that came into being before the load was over do not exist: requests wait for it. */
static int adopt(struct group_shard *s, struct group *g)
{
    if (group_shard_find(s, g->id))
        return -EEXIST;
    int rc = add_group(s, g);
    if (rc == 0)
        group_resume(g);
    return rc;
}

void group_shard_loaded(struct group_shard *s, int32_t partition, uint64_t load,
                        struct group **groups, int n, int error)
{
    struct shard_partition *p = &s->partitions[partition];
    bool wanted = p->state == PARTITION_LOADING && p->load == load && s->active;
    for (int i = 0; i < n; i++) {
        int rc = wanted ? adopt(s, groups[i]) : -ECANCELED;
        if (rc)
            group_unref(groups[i]);
        if (rc == -ENOMEM)
            error = rc;
    }
    if (!wanted)
        return;
    if (error) {
        /* Half a partition would make consumers start over; none makes them ask again. */
        say_error(SHARD_TAG,
                  "__consumer_offsets-%d: could not be loaded; its groups are not served",
                  (int)partition);
        note_failure(s, p, error);
        set_partition(s, p, PARTITION_ELSEWHERE);
        unload(s, p);
        return;
    }
    coordinator_loads_add(&s->events.loads, executor_now_ms(s->o.env.ex) - p->load_ms);
    set_partition(s, p, PARTITION_OWNED);
    take_ended(p, true);
}

/* ---- events of other partitions ---- */

void group_shard_txn_ended(struct group_shard *s, int32_t partition, int64_t producer_id,
                           bool commit)
{
    if (!is_ours(s, partition))
        return;
    struct shard_partition *p = &s->partitions[partition];
    if (p->state == PARTITION_LOADING)
        end_txn_after_load(p, producer_id, commit);
    else
        end_txn(p, producer_id, commit);
}

void group_shard_forget(struct group_shard *s, struct str topic, const int32_t *partitions, int n)
{
    for (int32_t i = 0; i < s->o.partitions_n; i++)
        list_each_safe (l, &s->partitions[i].groups) {
            struct group *g = list_entry(l, struct group, link);
            group_forget_partitions(g, topic, partitions, n);
            group_shard_reap(s, g);
        }
}

const char *group_shard_check(const struct group_shard *s)
{
    size_t n = 0;
    int loading = 0;
    for (int32_t i = 0; i < s->o.partitions_n; i++) {
        const struct shard_partition *p = &s->partitions[i];
        loading += p->state == PARTITION_LOADING;
        if (p->state != PARTITION_OWNED && !list_empty(&p->groups))
            return "groups of a partition that is not owned";
        list_each (l, &p->groups) {
            const struct group *g = list_entry(l, struct group, link);
            const char *wrong = group_check(g);
            n++;
            if (wrong)
                return wrong;
            if (g->partition != i || group_shard_find(s, g->id) != g || group_is(g, GROUP_DEAD))
                return "a group in the wrong place";
        }
    }
    if (loading != s->loading_n)
        return "count of partitions that are loading";
    return n == s->groups.n ? NULL : "lists and map of groups differ";
}
