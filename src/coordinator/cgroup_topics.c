/* cgroup_topics.c - the topics that a group reads as the cluster has them, and who shall read which
 * partitions of them. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/cgroup_private.h"
#include "protocol/msg/consumer_group_records.h"

typedef struct consumer_group_partition_metadata_value topics_value;
typedef struct consumer_group_partition_metadata_value_topic topic_value;
typedef struct consumer_group_partition_metadata_value_partition_metadata racks_value;

void ctopics_free(struct ctopics *t)
{
    free(t->v);
    free(t->ids);
    buf_free(&t->record);
    *t = (struct ctopics){0};
}

bool cgroup_is_stale(const struct cgroup *cg)
{
    return cg->refresh || cg->metadata_seen != atomic_load(cg->g->env->metadata_version);
}

/* ---- racks ---- */

/* The racks of a partition's replicas, each once. */
static int find_racks(const struct metadata_snapshot *md, const struct partition_info *p,
                      struct str *out)
{
    int n = 0;
    for (int i = 0; i < p->replicas_n; i++) {
        const struct broker_info *b = metadata_broker(md, p->replicas[i]);
        bool seen = !b || str_is_null(b->rack);
        for (int k = 0; k < n && !seen; k++)
            seen = str_eq(out[k], b->rack);
        if (!seen)
            out[n++] = b->rack;
    }
    return n;
}

/* Partitions without racks are left out, as Kafka does. */
static int fill_racks(const struct metadata_snapshot *md, const struct topic_info *t,
                      struct arena *a, topic_value *to)
{
    to->partition_metadata.v =
        consumer_group_partition_metadata_value_partition_metadata_new(a, t->partitions_n);
    for (int p = 0; to->partition_metadata.v && p < t->partitions_n; p++) {
        racks_value *r = &to->partition_metadata.v[to->partition_metadata.n];
        r->racks.v = arena_array(a, struct str, (size_t)t->partitions[p].replicas_n);
        if (!r->racks.v)
            return -ENOMEM;
        r->partition = p;
        r->racks.n = find_racks(md, &t->partitions[p], r->racks.v);
        to->partition_metadata.n += r->racks.n > 0;
    }
    return to->partition_metadata.v ? 0 : -ENOMEM;
}

static bool any_racks(const struct metadata_snapshot *md)
{
    const struct broker_info *v;
    int n = metadata_brokers(md, &v);
    for (int i = 0; i < n; i++)
        if (!str_is_null(v[i].rack))
            return true;
    return false;
}

/* ---- patterns ---- */

static int match_topics(struct cregex *r, const struct topic_info **topics, int n)
{
    struct str *v = malloc(((size_t)n + 1) * sizeof(*v));
    struct cnames matched;
    int k = 0;
    if (!v)
        return -ENOMEM;
    for (int i = 0; r->compiled && i < n; i++)
        if (!topics[i]->internal && topic_regex_matches(r->compiled, topics[i]->name))
            v[k++] = topics[i]->name;
    int rc = cnames_make(&matched, v, k);
    free(v);
    if (rc)
        return rc;
    r->changed = !cnames_equal(&matched, &r->matched);
    cnames_free(&r->matched);
    r->matched = matched;
    return 0;
}

/* What the patterns mean now, and who reads something else for it. 1 = somebody does, 0, -ENOMEM.
 */
static int match_all(struct cgroup *cg, const struct metadata_snapshot *md, struct arena *a)
{
    int rc = 0, changed = 0;
    if (cg->regexes.n == 0)
        return 0;
    const struct topic_info **topics = metadata_topics(md, a);
    if (!topics)
        return -ENOMEM;
    hmap_each (n, &cg->regexes)
        if (!rc)
            rc = match_topics(hmap_entry(n, struct cregex, node), topics, metadata_topics_n(md));
    list_each (l, &cg->member_list) {
        struct cmember *m = list_entry(l, struct cmember, link);
        int read = !rc && m->pattern && m->pattern->changed ? cmember_read(m) : 0;
        rc = read < 0 ? read : rc;
        changed |= read > 0;
    }
    return rc ? rc : changed;
}

/* ---- looking up ---- */

static int fill_topic(const struct metadata_snapshot *md, const struct topic_info *t, bool racks,
                      struct arena *a, topic_value *to)
{
    to->topic_id = t->id;
    to->topic_name = t->name;
    to->num_partitions = t->partitions_n;
    return racks ? fill_racks(md, t, a, to) : 0;
}

static int fill_all(const struct cgroup *cg, const struct metadata_snapshot *md, struct arena *a,
                    topics_value *v)
{
    bool racks = any_racks(md);
    int rc = 0;
    consumer_group_partition_metadata_value_init(v);
    v->topics.v = consumer_group_partition_metadata_value_topic_new(a, (int32_t)cg->names.n);
    if (!v->topics.v)
        return -ENOMEM;
    hmap_each (n, &cg->names) {
        const struct topic_info *t = metadata_topic(md, hmap_entry(n, struct cname, node)->name);
        if (!rc && t && t->partitions_n > 0 && !uuid_is_zero(t->id))
            rc = fill_topic(md, t, racks, a, &v->topics.v[v->topics.n++]);
    }
    return rc;
}

static int order_topics(const void *a, const void *b)
{
    return str_cmp(((const topic_value *)a)->topic_name, ((const topic_value *)b)->topic_name);
}

static int by_id(const void *key, const void *topic)
{
    return memcmp(((const struct uuid *)key)->b, (*(const struct assign_topic *const *)topic)->id.b,
                  sizeof(((const struct uuid *)key)->b));
}

static int order_id(const void *a, const void *b)
{
    return by_id(&(*(const struct assign_topic *const *)a)->id, b);
}

const struct assign_topic *ctopics_find(const struct ctopics *t, struct uuid id)
{
    const struct assign_topic **at =
        t->n > 0 ? bsearch(&id, t->ids, (size_t)t->n, sizeof(*t->ids), by_id) : NULL;
    return at ? *at : NULL;
}

/* Names and places of `v` in memory of its own. */
static int copy_topics(struct ctopics *t, const topics_value *v)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < v->topics.n; i++)
        bytes += (size_t)v->topics.v[i].topic_name.len;
    t->v = malloc((size_t)v->topics.n * sizeof(*t->v) + bytes + 1);
    t->ids = calloc((size_t)v->topics.n + 1, sizeof(*t->ids));
    if (!t->v || !t->ids)
        return -ENOMEM;
    char *at = (char *)(t->v + v->topics.n);
    for (int32_t i = 0; i < v->topics.n; i++) {
        const topic_value *from = &v->topics.v[i];
        t->ids[i] = &t->v[i];
        t->v[t->n++] =
            (struct assign_topic){{at, from->topic_name.len}, from->topic_id, from->num_partitions};
        at = mempcpy(at, from->topic_name.p, (size_t)from->topic_name.len);
    }
    if (t->n > 1)
        qsort(t->ids, (size_t)t->n, sizeof(*t->ids), order_id);
    return 0;
}

static void note_places(struct cgroup *cg)
{
    hmap_each (n, &cg->names)
        hmap_entry(n, struct cname, node)->place = -1;
    for (int i = 0; i < cg->topics.n; i++) {
        /* A loaded record may have topics that nobody reads any more. */
        struct cname *c = (struct cname *)cgroup_find_name(cg, cg->topics.v[i].name);
        if (c)
            c->place = i;
    }
}

int ctopics_take(struct cgroup *cg, topics_value *v)
{
    struct ctopics t = {0};
    if (v->topics.n > 1)
        qsort(v->topics.v, (size_t)v->topics.n, sizeof(*v->topics.v), order_topics);
    record_value_put(&consumer_group_partition_metadata_value_desc, 0, &t.record, v);
    if (t.record.failed || copy_topics(&t, v) != 0) {
        ctopics_free(&t);
        return -ENOMEM;
    }
    bool same = t.record.len == cg->topics.record.len &&
                memcmp(t.record.p, cg->topics.record.p, t.record.len) == 0;
    if (same) {
        ctopics_free(&t);
    } else {
        ctopics_free(&cg->topics);
        cg->topics = t;
    }
    note_places(cg);
    return !same;
}

int cgroup_look_up(struct cgroup *cg)
{
    const struct group_env *env = cg->g->env;
    /* The version first: what changes meanwhile is looked at once more. */
    unsigned long long version = atomic_load(env->metadata_version);
    const struct metadata_snapshot *md = metadata_acquire(env->metadata);
    topics_value v;
    struct arena a;
    arena_init(&a, 0);
    int matched = match_all(cg, md, &a);
    int rc = matched < 0 ? matched : fill_all(cg, md, &a, &v);
    /* A group that never read anything has no record of it. */
    bool nothing = !rc && v.topics.n == 0 && cg->topics.record.len == 0;
    if (!rc && !nothing)
        rc = ctopics_take(cg, &v);
    else if (!rc)
        note_places(cg);
    metadata_release(md);
    arena_free(&a);
    if (rc >= 0) {
        cg->metadata_seen = version;
        cg->refresh = false;
    }
    return rc == 0 ? matched : rc;
}

/* ---- the assignment ---- */

static int votes_for(const struct cgroup *cg, const struct assignor *a)
{
    int n = 0;
    list_each (l, &cg->member_list)
        n += str_eqz(list_entry(l, struct cmember, link)->assignor, a->name);
    return n;
}

/* The one that most members ask for; of equals, and of none, the first that is configured. */
const struct assignor *cgroup_assignor(const struct cgroup *cg)
{
    const struct cgroup_config *c = cgroup_config(cg);
    const struct assignor *best = c->assignors[0];
    int most = 0;
    for (int i = 0; i < c->assignors_n; i++) {
        int n = votes_for(cg, c->assignors[i]);
        if (n > most) {
            most = n;
            best = c->assignors[i];
        }
    }
    return best;
}

struct assigning {
    struct assign_spec spec;
    struct cmember **order; /* by id */
    int *all;               /* 0 .. topics - 1, for those that read them all */
    struct arena arena;
};

static int order_places(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int places_of(struct assigning *x, const struct cgroup *cg, const struct cmember *m,
                     struct assign_member *to)
{
    int *v = arena_array(&x->arena, int, (size_t)m->reads.n);
    if (!v)
        return -ENOMEM;
    for (int i = 0; i < m->reads.n; i++) {
        int place = cgroup_find_name(cg, m->reads.v[i])->place;
        if (place >= 0)
            v[to->topics_n++] = place;
    }
    if (to->topics_n > 1)
        qsort(v, (size_t)to->topics_n, sizeof(*v), order_places);
    to->topics = v;
    return 0;
}

/* Does everybody read every name? */
static bool read_the_same(const struct cgroup *cg)
{
    hmap_each (n, &cg->names)
        if ((size_t)hmap_entry(n, struct cname, node)->members != cg->members.n)
            return false;
    return true;
}

static int fill_spec(struct assigning *x, const struct cgroup *cg)
{
    size_t n = cg->members.n;
    int i = 0, rc = 0;
    x->spec = (struct assign_spec){.topics = cg->topics.v,
                                   .topics_n = cg->topics.n,
                                   .members = calloc(n, sizeof(struct assign_member)),
                                   .members_n = (int)n,
                                   .same_topics = read_the_same(cg)};
    x->order = calloc(n, sizeof(*x->order));
    x->all = arena_array(&x->arena, int, (size_t)cg->topics.n);
    if (!x->spec.members || !x->order || !x->all)
        return -ENOMEM;
    for (int t = 0; t < cg->topics.n; t++)
        x->all[t] = t;
    list_each (l, &cg->member_list)
        x->order[i++] = list_entry(l, struct cmember, link);
    for (i = 0; i < (int)n && !rc; i++) {
        struct assign_member *to = &x->spec.members[i];
        *to = (struct assign_member){.id = x->order[i]->id,
                                     .instance = x->order[i]->instance,
                                     .topics = x->all,
                                     .topics_n = cg->topics.n,
                                     .old = &x->order[i]->target};
        if (!x->spec.same_topics) {
            to->topics_n = 0;
            rc = places_of(x, cg, x->order[i], to);
        }
    }
    return rc;
}

static void take_targets(struct assigning *x, struct cstep *s)
{
    for (int i = 0; i < x->spec.members_n; i++) {
        if (part_set_equal(&x->order[i]->target, &x->spec.members[i].out))
            continue;
        part_set_move(&x->order[i]->target, &x->spec.members[i].out);
        cstep_put_target(s, x->order[i]);
    }
}

int cgroup_assign(struct cgroup *cg, struct cstep *s)
{
    struct assigning x = {0};
    const struct assignor *assignor = cgroup_assignor(cg);
    int rc = 0;
    arena_init(&x.arena, 0);
    if (cg->members.n > 0)
        rc = fill_spec(&x, cg);
    if (!rc && cg->members.n > 0)
        rc = assignor->assign(&x.spec);
    if (!rc) {
        take_targets(&x, s);
        cg->assignment_epoch = cg->epoch;
        cstep_put_target_epoch(s);
        logline(LOGLINE_DEBUG, GROUP_TAG, "consumer group %.*s: %s assignment of epoch %d",
                STR_ARG(cg->g->id), assignor->name, (int)cg->epoch);
    }
    for (int i = 0; x.spec.members && i < x.spec.members_n; i++)
        part_set_free(&x.spec.members[i].out);
    free(x.spec.members);
    free(x.order);
    arena_free(&x.arena);
    return rc;
}
