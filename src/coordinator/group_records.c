/* group_records.c - see group_records.h. */
#include "coordinator/group_records.h"

#include <errno.h>

#include "protocol/msg/consumer_group_records.h"

enum { KEY_VERSION_OFFSET = 1, KEY_VERSION_GROUP = 2, VALUE_VERSION_EXPIRY = 1 };

/* ---- keys ---- */

static bool has_member(int kind)
{
    return kind == CGROUP_KEY_MEMBER || kind == CGROUP_KEY_TARGET || kind == CGROUP_KEY_CURRENT;
}

/* The two forms of these keys are those of any kind with and without a member. */
static int decode_consumers(struct reader *r, struct group_key *out)
{
    struct consumer_group_metadata_key group;
    struct consumer_group_member_metadata_key member;
    out->kind = GROUP_KEY_CONSUMERS;
    if (has_member(out->version)) {
        if (consumer_group_member_metadata_key_decode(&member, CGROUP_KEY_MEMBER, r, NULL) != 0)
            return -EBADMSG;
        out->group = member.group_id;
        out->member = member.member_id;
        return 0;
    }
    if (consumer_group_metadata_key_decode(&group, CGROUP_KEY_EPOCH, r, NULL) != 0)
        return -EBADMSG;
    out->group = group.group_id;
    return 0;
}

int group_key_decode(struct bytes key, struct group_key *out)
{
    struct reader r = reader_of(key.p, key.len < 0 ? 0 : (size_t)key.len);
    struct offset_commit_key offset;
    struct group_metadata_key group;
    int16_t version = reader_i16(&r);
    *out = (struct group_key){.kind = GROUP_KEY_OTHER, .version = version};
    if (r.bad || version < 0)
        return -EBADMSG;
    if (version <= KEY_VERSION_OFFSET) {
        out->kind = GROUP_KEY_OFFSET;
        if (offset_commit_key_decode(&offset, version, &r, NULL) != 0)
            return -EBADMSG;
        out->group = offset.group;
        out->topic = offset.topic;
        out->partition = offset.partition;
    } else if (version == KEY_VERSION_GROUP) {
        out->kind = GROUP_KEY_GROUP;
        if (group_metadata_key_decode(&group, version, &r, NULL) != 0)
            return -EBADMSG;
        out->group = group.group;
    } else if (version <= CGROUP_KEY_CURRENT) {
        return decode_consumers(&r, out);
    }
    return 0;
}

static void put_text(struct buf *out, struct str s)
{
    buf_put_i16(out, (int16_t)s.len);
    buf_put(out, s.p, (size_t)s.len);
}

void group_key_put_offset(struct buf *out, struct str group, struct str topic, int32_t partition)
{
    buf_put_i16(out, KEY_VERSION_OFFSET);
    put_text(out, group);
    put_text(out, topic);
    buf_put_i32(out, partition);
}

void group_key_put_group(struct buf *out, struct str group)
{
    buf_put_i16(out, KEY_VERSION_GROUP);
    put_text(out, group);
}

void group_key_put_consumers(struct buf *out, enum cgroup_key kind, struct str group,
                             struct str member)
{
    buf_put_i16(out, (int16_t)kind);
    put_text(out, group);
    if (has_member(kind))
        put_text(out, member);
}

/* ---- values ---- */

int record_value_decode(const struct msg_desc *d, struct bytes value, struct arena *a, void *out)
{
    struct reader r = reader_of(value.p, value.len < 0 ? 0 : (size_t)value.len);
    int16_t version = reader_i16(&r);
    if (r.bad)
        return -EBADMSG;
    if (version < d->min || version > d->max)
        return -ENOTSUP;
    int rc = msg_decode(d, version, &r, a, out);
    return rc == -EPROTO ? -EBADMSG : rc;
}

bool record_value_put(const struct msg_desc *d, int16_t version, struct buf *out, const void *v)
{
    struct writer w = {.buf = *out};
    buf_put_i16(&w.buf, version);
    msg_encode(d, version, &w, v);
    *out = w.buf;
    return !w.unsupported;
}

int offset_value_decode(struct bytes value, struct arena *a, struct offset_value *out)
{
    struct offset_commit_value v;
    int rc = record_value_decode(&offset_commit_value_desc, value, a, &v);
    if (rc)
        return rc;
    *out = (struct offset_value){.offset = v.offset,
                                 .leader_epoch = v.leader_epoch,
                                 .metadata = v.metadata,
                                 .commit_ms = v.commit_timestamp,
                                 .expire_ms = v.expire_timestamp};
    return 0;
}

void offset_value_put(struct buf *out, int16_t version, const struct offset_value *v)
{
    struct offset_commit_value m;
    offset_commit_value_init(&m);
    m.offset = v->offset;
    m.metadata = str_is_null(v->metadata) ? STR_LIT("") : v->metadata;
    m.commit_timestamp = v->commit_ms;
    m.leader_epoch = v->leader_epoch;
    m.expire_timestamp = v->expire_ms;
    record_value_put(&offset_commit_value_desc, v->expire_ms >= 0 ? VALUE_VERSION_EXPIRY : version,
                     out, &m);
}

int group_value_decode(struct bytes value, struct arena *a, struct group_metadata_value *out)
{
    int rc = record_value_decode(&group_metadata_value_desc, value, a, out);
    for (int32_t i = 0; !rc && i < out->members.n; i++)
        if (get_be16(value.p) == 0) /* version 0 had one timeout for both */
            out->members.v[i].rebalance_timeout = out->members.v[i].session_timeout;
    return rc;
}

bool group_value_put(struct buf *out, int16_t version, const struct group_metadata_value *v)
{
    return record_value_put(&group_metadata_value_desc, version, out, v);
}

struct group_record_versions group_record_versions_of(int ibp, int ibp_iv)
{
    bool from_2_1_iv0 = ibp >= 201, from_2_1_iv1 = ibp > 201 || (ibp == 201 && ibp_iv >= 1);
    struct group_record_versions v;
    v.offset = !from_2_1_iv0 ? 1 : from_2_1_iv1 ? 3 : 2;
    v.group = ibp < 11 ? 0 : !from_2_1_iv0 ? 1 : ibp < 203 ? 2 : 3;
    return v;
}
