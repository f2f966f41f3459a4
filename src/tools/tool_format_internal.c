#include "tools/tool_format_internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "protocol/msg/group_metadata_record.h"
#include "protocol/msg/offset_commit_record.h"
#include "protocol/msg/transaction_log_record.h"

static const struct {
    const char *name, *outer; /* outer: the class that the old one was part of */
} classes[] = {
    [FORMAT_OFFSETS] = {"OffsetsMessageFormatter", "GroupMetadataManager$"},
    [FORMAT_GROUPS] = {"GroupMetadataMessageFormatter", "GroupMetadataManager$"},
    [FORMAT_TRANSACTIONS] = {"TransactionLogMessageFormatter", "TransactionLog$"},
};

bool internal_format_find(const char *name, enum internal_format *kind, bool *old)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        size_t own = strlen(classes[i].name), outer = strlen(classes[i].outer);
        if (n < own || strcmp(name + n - own, classes[i].name) != 0)
            continue;
        const char *before = name + n - own;
        *kind = (enum internal_format)i;
        *old = n - own >= outer && memcmp(before - outer, classes[i].outer, outer) == 0;
        return before == name || before[-1] == '.' || *old;
    }
    return false;
}

static void put_str(struct buf *out, struct str s)
{
    if (s.len > 0)
        utf8_put(out, s.p, (size_t)s.len);
}

/* As Scala prints an option of it. */
static void put_option(struct buf *out, struct str s, bool none)
{
    if (none) {
        buf_printf(out, "None");
        return;
    }
    buf_printf(out, "Some(");
    put_str(out, s);
    buf_put_i8(out, ')');
}

/* ---- the old texts: key, "::", value ---- */

static void put_offset(struct buf *out, const struct internal_record *r)
{
    const struct offset_commit_key *k = r->key;
    const struct offset_commit_value *v = r->value;
    buf_put_i8(out, '[');
    put_str(out, k->group);
    buf_put_i8(out, ',');
    put_str(out, k->topic);
    buf_printf(out, ",%" PRId32 "]::", k->partition);
    if (!v) {
        buf_printf(out, "NULL");
        return;
    }
    buf_printf(out, "OffsetAndMetadata(offset=%" PRId64 ", leaderEpoch=Optional", v->offset);
    if (v->leader_epoch < 0)
        buf_printf(out, ".empty");
    else
        buf_printf(out, "[%" PRId32 "]", v->leader_epoch);
    buf_printf(out, ", metadata=");
    put_str(out, v->metadata);
    buf_printf(out, ", commitTimestamp=%" PRId64 ", expireTimestamp=", v->commit_timestamp);
    if (v->expire_timestamp < 0)
        buf_printf(out, "None)");
    else
        buf_printf(out, "Some(%" PRId64 "))", v->expire_timestamp);
}

static void put_member(struct buf *out, const struct group_metadata_value *g, int version,
                       const struct group_metadata_value_member *m)
{
    put_str(out, m->member_id);
    buf_printf(out, " -> MemberMetadata(memberId=");
    put_str(out, m->member_id);
    buf_printf(out, ", groupInstanceId=");
    put_option(out, m->group_instance_id, str_is_null(m->group_instance_id));
    buf_printf(out, ", clientId=");
    put_str(out, m->client_id);
    buf_printf(out, ", clientHost=");
    put_str(out, m->client_host);
    buf_printf(out,
               ", sessionTimeoutMs=%" PRId32 ", rebalanceTimeoutMs=%" PRId32
               ", supportedProtocols=List(",
               m->session_timeout, version == 0 ? m->session_timeout : m->rebalance_timeout);
    put_str(out, g->protocol);
    buf_printf(out, "))");
}

static void put_group(struct buf *out, const struct internal_record *r)
{
    const struct group_metadata_value *v = r->value;
    struct str group = ((const struct group_metadata_key *)r->key)->group;
    put_str(out, group);
    buf_printf(out, "::");
    if (!v) {
        buf_printf(out, "NULL");
        return;
    }
    buf_printf(out, "GroupMetadata(groupId=");
    put_str(out, group);
    buf_printf(out, ", generation=%" PRId32 ", protocolType=", v->generation);
    put_option(out, v->protocol_type, v->protocol_type.len <= 0);
    buf_printf(out, ", currentState=%s, members=HashMap(", v->members.n > 0 ? "Stable" : "Empty");
    for (int32_t i = 0; i < v->members.n; i++) {
        if (i)
            buf_printf(out, ", ");
        put_member(out, v, r->value_version, &v->members.v[i]);
    }
    buf_printf(out, "))");
}

static void put_transaction(struct buf *out, const struct internal_record *r)
{
    const struct transaction_log_value *v = r->value;
    struct str id = ((const struct transaction_log_key *)r->key)->transactional_id;
    const char *before = "";
    put_str(out, id);
    buf_printf(out, "::");
    if (!v) {
        buf_printf(out, "NULL");
        return;
    }
    const char *state = internal_txn_state(v->transaction_status);
    buf_printf(out, "TransactionMetadata(transactionalId=");
    put_str(out, id);
    buf_printf(out,
               ", producerId=%" PRId64 ", lastProducerId=-1"
               ", producerEpoch=%d, lastProducerEpoch=-1, txnTimeoutMs=%" PRId32
               ", state=%s, pendingState=None, topicPartitions=HashSet(",
               v->producer_id, v->producer_epoch, v->transaction_timeout_ms,
               state ? state : "unknown");
    for (int32_t i = 0; i < v->transaction_partitions.n; i++) {
        for (int32_t k = 0; k < v->transaction_partitions.v[i].partition_ids.n; k++) {
            buf_printf(out, "%s", before);
            put_str(out, v->transaction_partitions.v[i].topic);
            buf_printf(out, "-%" PRId32, v->transaction_partitions.v[i].partition_ids.v[k]);
            before = ", ";
        }
    }
    buf_printf(out, "), txnStartTimestamp=%" PRId64 ", txnLastUpdateTimestamp=%" PRId64 ")",
               v->transaction_start_timestamp_ms, v->transaction_last_update_timestamp_ms);
}

/* ---- JSON ---- */

static void put_json(struct buf *out, const struct internal_record *r, bool value_known)
{
    buf_printf(out, "{\"key\":{\"version\":%d,\"data\":", r->type);
    internal_key_json(r, out);
    buf_printf(out, "},\"value\":");
    if (!value_known) {
        buf_printf(out, "{\"version\":%d,\"data\":\"unknown\"}", r->value_version);
    } else if (!r->value) {
        buf_printf(out, "null");
    } else {
        buf_printf(out, "{\"version\":%d,\"data\":", r->value_version);
        internal_value_json(r, false, out);
        buf_put_i8(out, '}');
    }
    buf_put_i8(out, '}');
}

/* ---- both ---- */

static bool is_of(enum internal_format kind, int16_t type)
{
    switch (kind) {
    case FORMAT_OFFSETS:
        return type == OFFSETS_KEY_OFFSET || type == OFFSETS_KEY_OFFSET_OLD;
    case FORMAT_GROUPS:
        return type == OFFSETS_KEY_GROUP;
    default:
        return true;
    }
}

static void put_old(enum internal_format kind, struct buf *out, const struct internal_record *r)
{
    switch (kind) {
    case FORMAT_OFFSETS:
        put_offset(out, r);
        break;
    case FORMAT_GROUPS:
        put_group(out, r);
        break;
    case FORMAT_TRANSACTIONS:
        put_transaction(out, r);
        break;
    }
}

static struct bytes bytes_of(const void *p, size_t n)
{
    return p ? (struct bytes){p, (int32_t)n} : BYTES_NULL;
}

const char *internal_format_print(enum internal_format kind, bool old, const kafka_message_t *m,
                                  struct arena *a, FILE *out)
{
    struct internal_record r;
    struct buf line = BUF_INIT;
    if (!m->key)
        return NULL; /* no record of such a topic */
    arena_reset(a);
    enum internal_read got =
        internal_read(kind == FORMAT_TRANSACTIONS ? INTERNAL_TRANSACTIONS : INTERNAL_OFFSETS,
                      bytes_of(m->key, m->key_len), bytes_of(m->value, m->value_len), a, &r);
    if (got == INTERNAL_UNKNOWN_TYPE || !is_of(kind, r.type))
        return NULL;
    if (got == INTERNAL_MALFORMED)
        return r.wrong;
    if (old && got == INTERNAL_UNKNOWN_VERSION)
        return "the value has a version that is not known";
    if (old)
        put_old(kind, &line, &r);
    else
        put_json(&line, &r, got == INTERNAL_READ);
    buf_put_i8(&line, '\n');
    if (!line.failed)
        fwrite(line.p, 1, line.len, out);
    bool failed = line.failed;
    buf_free(&line);
    return failed ? "out of memory" : NULL;
}
