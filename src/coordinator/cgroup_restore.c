/* cgroup_restore.c - a group of the new protocol as its records in the log describe it: of each
 * kind and member the last one, kept as bytes until all is read. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/cgroup_private.h"
#include "protocol/msg/consumer_group_records.h"

enum { KINDS = CGROUP_KEY_CURRENT + 1 };

struct saved_member {
    struct hnode node;
    struct list link; /* in order of first mention */
    struct buf member, target, current;
    int32_t id_len;
    char id[];
};

struct cgroup_saved {
    struct hmap members;
    struct list member_list;
    struct buf epoch, topics, target_epoch;
};

static const struct msg_desc *desc_of(int kind)
{
    switch (kind) {
    case CGROUP_KEY_EPOCH:
        return &consumer_group_metadata_value_desc;
    case CGROUP_KEY_TOPICS:
        return &consumer_group_partition_metadata_value_desc;
    case CGROUP_KEY_MEMBER:
        return &consumer_group_member_metadata_value_desc;
    case CGROUP_KEY_TARGET_EPOCH:
        return &consumer_group_target_assignment_metadata_value_desc;
    case CGROUP_KEY_TARGET:
        return &consumer_group_target_assignment_member_value_desc;
    default:
        return &consumer_group_current_member_assignment_value_desc;
    }
}

/* ---- gathering ---- */

struct cgroup_saved *cgroup_saved_new(void)
{
    struct cgroup_saved *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    hmap_init(&s->members);
    list_init(&s->member_list);
    return s;
}

static void drop(struct cgroup_saved *s, struct saved_member *m)
{
    hmap_remove(&s->members, &m->node);
    list_remove(&m->link);
    buf_free(&m->member);
    buf_free(&m->target);
    buf_free(&m->current);
    free(m);
}

void cgroup_saved_free(struct cgroup_saved *s)
{
    if (!s)
        return;
    list_each_safe (l, &s->member_list)
        drop(s, list_entry(l, struct saved_member, link));
    hmap_free(&s->members);
    buf_free(&s->epoch);
    buf_free(&s->topics);
    buf_free(&s->target_epoch);
    free(s);
}

static struct str id_of(const struct saved_member *m)
{
    return (struct str){m->id, m->id_len};
}

static bool is_member(const struct hnode *n, const void *key)
{
    return str_eq(id_of(hmap_entry(n, struct saved_member, node)), *(const struct str *)key);
}

static struct saved_member *find(const struct cgroup_saved *s, struct str id)
{
    struct hnode *n = s->members.n ? hmap_find(&s->members, hash_str(id), is_member, &id) : NULL;
    return n ? hmap_entry(n, struct saved_member, node) : NULL;
}

static struct saved_member *find_or_make(struct cgroup_saved *s, struct str id)
{
    struct saved_member *m = find(s, id);
    if (m)
        return m;
    m = calloc(1, sizeof(*m) + (size_t)id.len + 1);
    if (!m)
        return NULL;
    m->id_len = id.len;
    memcpy(m->id, id.p, (size_t)id.len);
    if (hmap_put(&s->members, &m->node, hash_str(id)) != 0) {
        free(m);
        return NULL;
    }
    list_push_back(&s->member_list, &m->link);
    return m;
}

static struct buf *place_in(struct saved_member *m, int kind)
{
    return kind == CGROUP_KEY_MEMBER   ? &m->member
           : kind == CGROUP_KEY_TARGET ? &m->target
                                       : &m->current;
}

static struct buf *place_of(struct cgroup_saved *s, int kind)
{
    return kind == CGROUP_KEY_EPOCH    ? &s->epoch
           : kind == CGROUP_KEY_TOPICS ? &s->topics
                                       : &s->target_epoch;
}

static bool of_member(int kind)
{
    return kind == CGROUP_KEY_MEMBER || kind == CGROUP_KEY_TARGET || kind == CGROUP_KEY_CURRENT;
}

static void bury(struct cgroup_saved *s, const struct group_key *k)
{
    if (!of_member(k->version)) {
        buf_free(place_of(s, k->version));
        return;
    }
    struct saved_member *m = find(s, k->member);
    if (!m)
        return;
    buf_free(place_in(m, k->version));
    if (m->member.len + m->target.len + m->current.len == 0)
        drop(s, m);
}

int cgroup_saved_add(struct cgroup_saved *s, const struct group_key *k, struct bytes value,
                     struct arena *scratch)
{
    const struct msg_desc *d = desc_of(k->version);
    if (value.len < 0) {
        bury(s, k);
        return 0;
    }
    void *decoded = arena_calloc(scratch, 1, d->body->size);
    int rc = decoded ? record_value_decode(d, value, scratch, decoded) : -ENOMEM;
    if (rc)
        return rc;
    struct saved_member *m = of_member(k->version) ? find_or_make(s, k->member) : NULL;
    if (of_member(k->version) && !m)
        return -ENOMEM;
    struct buf *to = m ? place_in(m, k->version) : place_of(s, k->version);
    to->len = 0;
    buf_put(to, value.p, (size_t)value.len);
    return to->failed ? -ENOMEM : 0;
}

bool cgroup_saved_exists(const struct cgroup_saved *s)
{
    return s->epoch.len > 0;
}

bool cgroup_saved_empty(const struct cgroup_saved *s)
{
    return s->members.n == 0 && s->epoch.len == 0 && s->topics.len == 0 && s->target_epoch.len == 0;
}

/* ---- making the group ---- */

/* They could be read when they came. 0, or -ENOENT when there is none, or -ENOMEM. */
static int value_of(int kind, const struct buf *b, struct arena *a, void *out)
{
    struct bytes bytes = {b->p, (int32_t)b->len};
    msg_init(desc_of(kind), out);
    return b->len == 0 ? -ENOENT : record_value_decode(desc_of(kind), bytes, a, out);
}

/* The record's entries are of the same make. */
typedef struct consumer_group_member_metadata_value_classic_member_metadata classic_metadata;
typedef struct consumer_group_member_metadata_value_supported_protocol supported_protocol;
_Static_assert(sizeof(supported_protocol) == sizeof(struct member_protocol) &&
                   offsetof(supported_protocol, name) == offsetof(struct member_protocol, name) &&
                   offsetof(supported_protocol, metadata) ==
                       offsetof(struct member_protocol, metadata),
               "same fields");

static int restore_classic(struct cmember *m, const classic_metadata *from)
{
    int n = from->supported_protocols.n;
    struct member_protocol *v =
        member_protocols_copy((const struct member_protocol *)from->supported_protocols.v, n);
    return v ? cmember_set_classic(m, v, n, from->session_timeout_ms) : -ENOMEM;
}

static int restore_metadata(struct cmember *m, const struct consumer_group_member_metadata_value *v)
{
    struct cnames names;
    if (cgroup_set_str(&m->rack, v->rack_id) != 0 ||
        cgroup_set_str(&m->client_id, v->client_id) != 0 ||
        cgroup_set_str(&m->client_host, v->client_host) != 0 ||
        cgroup_set_str(&m->assignor, v->server_assignor) != 0 ||
        cnames_make(&names, v->subscribed_topic_names.v, v->subscribed_topic_names.n) != 0 ||
        cmember_set_names(m, &names) != 0 || cmember_set_regex(m, v->subscribed_topic_regex) != 0)
        return -ENOMEM;
    m->rebalance_ms = v->rebalance_timeout_ms;
    /* A classic member without protocols could not be answered: it joins anew. */
    if (v->classic_member_metadata && v->classic_member_metadata->supported_protocols.n > 0)
        return restore_classic(m, v->classic_member_metadata);
    return 0;
}

enum { PARTITION_MAX = 1 << 20 /* no topic has more: a damaged record */ };

static int restore_target(struct cmember *m,
                          const struct consumer_group_target_assignment_member_value *v)
{
    for (int32_t t = 0; t < v->topic_partitions.n; t++)
        for (int32_t i = 0; i < v->topic_partitions.v[t].partitions.n; i++) {
            int32_t partition = v->topic_partitions.v[t].partitions.v[i];
            if (partition >= 0 && partition <= PARTITION_MAX &&
                part_set_add(&m->target, v->topic_partitions.v[t].topic_id, partition) != 0)
                return -ENOMEM;
        }
    part_set_sort(&m->target);
    return 0;
}

/* One that a group can have come to. */
static int32_t sound_epoch(int32_t epoch)
{
    enum { EPOCH_MAX = 1 << 30 };
    return epoch < 0 ? 0 : epoch > EPOCH_MAX ? EPOCH_MAX : epoch;
}

typedef struct consumer_group_current_member_assignment_value_assigned_partition current_part;

/* What another member has by its record already is that one's. */
static int restore_parts(const struct cmember *m, const current_part *v, int32_t n,
                         struct part_set *out)
{
    int rc = 0, claimed = 0;
    for (int32_t t = 0; t < n && !rc; t++)
        for (int32_t i = 0; i < v[t].partitions.n && !rc; i++) {
            struct part p = {v[t].topic_id, v[t].partitions.v[i]};
            if (p.partition < 0 || p.partition > PARTITION_MAX || cgroup_owner(m->cg, &p) != -1)
                claimed++;
            else
                rc = part_set_add(out, p.topic, p.partition);
        }
    part_set_sort(out);
    if (claimed)
        say_error(GROUP_TAG,
                  "consumer group %.*s: member %.*s cannot own %d of the partitions in its record",
                  STR_ARG(m->cg->g->id), STR_ARG(m->id), claimed);
    return rc;
}

static int restore_current(struct cmember *m,
                           const struct consumer_group_current_member_assignment_value *v)
{
    struct part_set assigned = PART_SET_EMPTY, both = PART_SET_EMPTY, revoking = PART_SET_EMPTY;
    m->epoch =
        v->member_epoch == CGROUP_EPOCH_AWAY ? v->member_epoch : sound_epoch(v->member_epoch);
    m->previous_epoch = v->previous_member_epoch;
    m->state = v->state >= CMEMBER_STABLE && v->state <= CMEMBER_UNRELEASED
                   ? (enum cmember_state)v->state
                   : CMEMBER_UNKNOWN;
    int rc = restore_parts(m, v->assigned_partitions.v, v->assigned_partitions.n, &assigned);
    if (!rc)
        rc = restore_parts(m, v->partitions_pending_revocation.v,
                           v->partitions_pending_revocation.n, &both);
    if (!rc)
        rc = part_set_minus(&both, &assigned, &revoking);
    part_set_free(&both);
    if (!rc)
        return cmember_own(m, &assigned, &revoking);
    part_set_free(&assigned);
    part_set_free(&revoking);
    return rc;
}

/* One value that may be missing. */
#define RESTORE(kind, type, b, call)                       \
    do {                                                   \
        struct type v;                                     \
        int got = value_of((kind), (b), scratch, &v);      \
        rc = got == 0 ? (call) : got == -ENOENT ? 0 : got; \
        if (rc)                                            \
            return rc;                                     \
    } while (0)

static int restore_member(struct cgroup *cg, const struct saved_member *saved,
                          struct arena *scratch)
{
    struct consumer_group_member_metadata_value meta;
    int rc = value_of(CGROUP_KEY_MEMBER, &saved->member, scratch, &meta);
    if (rc == -ENOENT) {
        say_error(GROUP_TAG,
                  "consumer group %.*s: member %.*s has no record of itself, passed over",
                  STR_ARG(cg->g->id), STR_ARG(id_of(saved)));
        return 0;
    }
    if (!rc && cgroup_find_instance(cg, meta.instance_id)) {
        say_error(GROUP_TAG,
                  "consumer group %.*s: static member %.*s is there twice, the second is "
                  "passed over",
                  STR_ARG(cg->g->id), STR_ARG(meta.instance_id));
        return 0;
    }
    struct cmember *m = rc ? NULL : cgroup_add(cg, id_of(saved), meta.instance_id);
    if (!m)
        return rc ? rc : -ENOMEM;
    rc = restore_metadata(m, &meta);
    if (rc)
        return rc;
    RESTORE(CGROUP_KEY_TARGET, consumer_group_target_assignment_member_value, &saved->target,
            restore_target(m, &v));
    RESTORE(CGROUP_KEY_CURRENT, consumer_group_current_member_assignment_value, &saved->current,
            restore_current(m, &v));
    return 0;
}

static int set_epoch(int32_t *at, int32_t epoch)
{
    *at = sound_epoch(epoch);
    return 0;
}

static int restore_topics(struct cgroup *cg, struct consumer_group_partition_metadata_value *v)
{
    int rc = ctopics_take(cg, v);
    return rc < 0 ? rc : 0;
}

/* Whatever damage was done to the log: no epoch is beyond the one it follows. */
static void bound_epochs(struct cgroup *cg)
{
    if (cg->assignment_epoch > cg->epoch)
        cg->epoch = cg->assignment_epoch;
    list_each (l, &cg->member_list) {
        const struct cmember *m = list_entry(l, struct cmember, link);
        if (m->epoch > cg->epoch)
            cg->epoch = m->epoch;
    }
    list_each (l, &cg->member_list)
        if (list_entry(l, struct cmember, link)->epoch > cg->assignment_epoch)
            cg->assignment_epoch = list_entry(l, struct cmember, link)->epoch;
}

/* Nor is a member settled that has something else than it shall have. */
static void unsettle(struct cgroup *cg)
{
    list_each (l, &cg->member_list) {
        struct cmember *m = list_entry(l, struct cmember, link);
        if (m->state == CMEMBER_STABLE && m->epoch == cg->assignment_epoch &&
            !part_set_equal(&m->assigned, &m->target))
            m->state = CMEMBER_UNRELEASED;
        if (m->revoking.n > 0 && m->state != CMEMBER_UNKNOWN)
            m->state = CMEMBER_UNREVOKED;
    }
}

int cgroup_restore(struct group *g, const struct cgroup_saved *s, struct arena *scratch)
{
    int rc = cgroup_attach(g);
    if (rc)
        return rc;
    struct cgroup *cg = g->consumers;
    RESTORE(CGROUP_KEY_EPOCH, consumer_group_metadata_value, &s->epoch,
            set_epoch(&cg->epoch, v.epoch));
    RESTORE(CGROUP_KEY_TARGET_EPOCH, consumer_group_target_assignment_metadata_value,
            &s->target_epoch, set_epoch(&cg->assignment_epoch, v.assignment_epoch));
    list_each (l, &s->member_list) {
        rc = restore_member(cg, list_entry(l, struct saved_member, link), scratch);
        arena_reset(scratch);
        if (rc)
            return rc;
    }
    RESTORE(CGROUP_KEY_TOPICS, consumer_group_partition_metadata_value, &s->topics,
            restore_topics(cg, &v));
    bound_epochs(cg);
    unsettle(cg);
    cgroup_settle(cg, "it was loaded");
    return 0;
}

void cgroup_resume(struct group *g)
{
    list_each (l, &g->consumers->member_list) {
        struct cmember *m = list_entry(l, struct cmember, link);
        cmember_touch(m);
        if (m->epoch != CGROUP_EPOCH_AWAY)
            cmember_watch(m);
    }
}
