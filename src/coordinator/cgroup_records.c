/* cgroup_records.c - the records of one step, byte by byte as Kafka has them: a key and a value
 * each, or a tombstone. */
#include "coordinator/cgroup_private.h"
#include "protocol/msg/consumer_group_records.h"

enum { VALUE_VERSION = 0 };

static void end_record(struct cstep *s, size_t key)
{
    struct cstep_end e = {.key = key, .value = s->bytes.len};
    buf_put(&s->ends, &e, sizeof(e));
    s->n++;
}

static size_t put_key(struct cstep *s, enum cgroup_key kind, struct str member)
{
    group_key_put_consumers(&s->bytes, kind, s->cg->g->id, member);
    return s->bytes.len;
}

static void put(struct cstep *s, enum cgroup_key kind, struct str member, const struct msg_desc *d,
                const void *value)
{
    size_t key = put_key(s, kind, member);
    s->failed |= !record_value_put(d, VALUE_VERSION, &s->bytes, value);
    end_record(s, key);
}

void cstep_bury(struct cstep *s, enum cgroup_key kind, struct str member)
{
    end_record(s, put_key(s, kind, member));
}

void cstep_bury_member(struct cstep *s, struct str id)
{
    cstep_bury(s, CGROUP_KEY_CURRENT, id);
    cstep_bury(s, CGROUP_KEY_TARGET, id);
    cstep_bury(s, CGROUP_KEY_MEMBER, id);
}

void cstep_put_epoch(struct cstep *s)
{
    struct consumer_group_metadata_value v = {.epoch = s->cg->epoch};
    put(s, CGROUP_KEY_EPOCH, STR_NULL, &consumer_group_metadata_value_desc, &v);
}

void cstep_put_target_epoch(struct cstep *s)
{
    struct consumer_group_target_assignment_metadata_value v = {.assignment_epoch =
                                                                    s->cg->assignment_epoch};
    put(s, CGROUP_KEY_TARGET_EPOCH, STR_NULL, &consumer_group_target_assignment_metadata_value_desc,
        &v);
}

/* ctopics keeps the value as it is written. */
void cstep_put_topics(struct cstep *s)
{
    struct consumer_group_partition_metadata_value none;
    const struct buf *record = &s->cg->topics.record;
    if (record->len > CTOPICS_RECORD_MAX) {
        consumer_group_partition_metadata_value_init(&none);
        put(s, CGROUP_KEY_TOPICS, STR_NULL, &consumer_group_partition_metadata_value_desc, &none);
        return;
    }
    size_t key = put_key(s, CGROUP_KEY_TOPICS, STR_NULL);
    buf_put(&s->bytes, record->p, record->len);
    end_record(s, key);
}

static struct str text(struct str s)
{
    return str_is_null(s) ? STR_LIT("") : s;
}

static void fill_classic(const struct cmember *m, struct arena *a,
                         struct consumer_group_member_metadata_value_classic_member_metadata *out)
{
    out->session_timeout_ms = m->session_ms;
    out->supported_protocols.v =
        consumer_group_member_metadata_value_supported_protocol_new(a, m->protocols_n);
    for (int i = 0; out->supported_protocols.v && i < m->protocols_n; i++) {
        struct consumer_group_member_metadata_value_supported_protocol *to =
            &out->supported_protocols.v[out->supported_protocols.n++];
        to->name = m->protocols[i].name;
        to->metadata = m->protocols[i].metadata;
    }
}

void cstep_put_member(struct cstep *s, const struct cmember *m)
{
    struct consumer_group_member_metadata_value v;
    struct consumer_group_member_metadata_value_classic_member_metadata classic;
    struct arena a;
    arena_init(&a, 0);
    consumer_group_member_metadata_value_init(&v);
    v.instance_id = m->instance;
    v.rack_id = m->rack;
    v.client_id = text(m->client_id);
    v.client_host = text(m->client_host);
    v.subscribed_topic_names.v = m->names.v;
    v.subscribed_topic_names.n = m->names.n;
    v.subscribed_topic_regex = m->regex;
    v.rebalance_timeout_ms = m->rebalance_ms;
    v.server_assignor = m->assignor;
    if (m->classic) {
        consumer_group_member_metadata_value_classic_member_metadata_init(&classic);
        fill_classic(m, &a, &classic);
        v.classic_member_metadata = &classic;
    }
    put(s, CGROUP_KEY_MEMBER, m->id, &consumer_group_member_metadata_value_desc, &v);
    s->failed |= a.exhausted;
    arena_free(&a);
}

/* Targets and assignments list partitions by topic in structs of other names and the same fields.
 */
struct listed {
    struct uuid topic_id;
    ARRAY(int32_t) partitions;
};
typedef struct consumer_group_target_assignment_member_value_topic_partition target_part;
typedef struct consumer_group_current_member_assignment_value_assigned_partition current_part;
_Static_assert(sizeof(struct listed) == sizeof(target_part), "same fields");
_Static_assert(sizeof(struct listed) == sizeof(current_part), "same fields");

static struct listed *list_parts(const struct part_set *s, struct arena *a, int32_t *n)
{
    struct listed *v = arena_array(a, struct listed, (size_t)part_set_topics(s));
    int32_t *numbers = arena_array(a, int32_t, (size_t)s->n);
    *n = 0;
    for (int i = 0, end; v && numbers && i < s->n; i = end) {
        end = part_set_run(s, i);
        v[*n].topic_id = s->v[i].topic;
        v[*n].partitions.v = numbers + i;
        v[*n].partitions.n = end - i;
        ++*n;
        for (int j = i; j < end; j++)
            numbers[j] = s->v[j].partition;
    }
    return v;
}

void cstep_put_target(struct cstep *s, const struct cmember *m)
{
    struct consumer_group_target_assignment_member_value v;
    struct arena a;
    arena_init(&a, 0);
    consumer_group_target_assignment_member_value_init(&v);
    v.topic_partitions.v = (target_part *)list_parts(&m->target, &a, &v.topic_partitions.n);
    put(s, CGROUP_KEY_TARGET, m->id, &consumer_group_target_assignment_member_value_desc, &v);
    s->failed |= a.exhausted;
    arena_free(&a);
}

void cstep_put_current(struct cstep *s, const struct cmember *m)
{
    struct consumer_group_current_member_assignment_value v;
    struct arena a;
    arena_init(&a, 0);
    consumer_group_current_member_assignment_value_init(&v);
    v.member_epoch = m->epoch;
    v.previous_member_epoch = m->previous_epoch;
    v.state = (int8_t)m->state;
    v.assigned_partitions.v =
        (current_part *)list_parts(&m->assigned, &a, &v.assigned_partitions.n);
    v.partitions_pending_revocation.v =
        (current_part *)list_parts(&m->revoking, &a, &v.partitions_pending_revocation.n);
    put(s, CGROUP_KEY_CURRENT, m->id, &consumer_group_current_member_assignment_value_desc, &v);
    s->failed |= a.exhausted;
    arena_free(&a);
}

/* ---- the classic protocol's record, when a group changes sides ---- */

void cstep_bury_classic(struct cstep *s)
{
    group_key_put_group(&s->bytes, s->cg->g->id);
    end_record(s, s->bytes.len);
}

void cstep_put_classic(struct cstep *s, const struct group *g)
{
    struct buf key = BUF_INIT, value = BUF_INIT;
    s->failed |= group_encode_record(g, &key, &value) != 0;
    buf_put(&s->bytes, key.p, key.len);
    size_t end = s->bytes.len;
    buf_put(&s->bytes, value.p, value.len);
    end_record(s, end);
    buf_free(&key);
    buf_free(&value);
}
