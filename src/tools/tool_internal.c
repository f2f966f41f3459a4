#include "tools/tool_internal.h"

#include "protocol/msg/consumer_group_records.h"
#include "protocol/msg/consumer_protocol.h"
#include "protocol/msg/group_metadata_record.h"
#include "protocol/msg/offset_commit_record.h"
#include "protocol/msg/transaction_log_record.h"

struct row {
    const struct msg_desc *key, *value;
};

/* By the key's type. */
static const struct row offsets_rows[] = {
    {&offset_commit_key_desc, &offset_commit_value_desc},
    {&offset_commit_key_desc, &offset_commit_value_desc},
    {&group_metadata_key_desc, &group_metadata_value_desc},
    {&consumer_group_metadata_key_desc, &consumer_group_metadata_value_desc},
    {&consumer_group_partition_metadata_key_desc, &consumer_group_partition_metadata_value_desc},
    {&consumer_group_member_metadata_key_desc, &consumer_group_member_metadata_value_desc},
    {&consumer_group_target_assignment_metadata_key_desc,
     &consumer_group_target_assignment_metadata_value_desc},
    {&consumer_group_target_assignment_member_key_desc,
     &consumer_group_target_assignment_member_value_desc},
    {&consumer_group_current_member_assignment_key_desc,
     &consumer_group_current_member_assignment_value_desc},
};
static const struct row transactions_rows[] = {
    {&transaction_log_key_desc, &transaction_log_value_desc},
};

static const struct row *find_row(enum internal_topic topic, int16_t type)
{
    const struct row *rows = topic == INTERNAL_OFFSETS ? offsets_rows : transactions_rows;
    size_t n = topic == INTERNAL_OFFSETS ? sizeof offsets_rows / sizeof *offsets_rows
                                         : sizeof transactions_rows / sizeof *transactions_rows;
    return type >= 0 && (size_t)type < n ? &rows[type] : NULL;
}

/* NULL when the bytes are not such a message. */
static const void *read_message(const struct msg_desc *d, int version, struct reader *r,
                                struct arena *a)
{
    void *m = arena_calloc(a, 1, d->body->size);
    return m && msg_decode(d, version, r, a, m) == 0 ? m : NULL;
}

static enum internal_read malformed(struct internal_record *out, const char *wrong)
{
    out->wrong = wrong;
    return INTERNAL_MALFORMED;
}

enum internal_read internal_read(enum internal_topic topic, struct bytes key, struct bytes value,
                                 struct arena *a, struct internal_record *out)
{
    *out = (struct internal_record){.type = -1};
    if (key.len < 0)
        return malformed(out, "the key is null");
    struct reader r = reader_of(key.p, (size_t)key.len);
    out->type = reader_i16(&r);
    if (r.bad)
        return malformed(out, "the key is too short");
    const struct row *row = find_row(topic, out->type);
    if (!row)
        return INTERNAL_UNKNOWN_TYPE;
    if (!(out->key = read_message(row->key, out->type, &r, a)))
        return malformed(out, "the key is malformed");
    out->key_desc = row->key;
    out->value_desc = row->value;
    if (value.len < 0)
        return INTERNAL_READ;
    r = reader_of(value.p, (size_t)value.len);
    out->value_version = reader_i16(&r);
    if (r.bad)
        return malformed(out, "the value is too short");
    if (out->value_version < row->value->min || out->value_version > row->value->max)
        return INTERNAL_UNKNOWN_VERSION;
    if (!(out->value = read_message(row->value, out->value_version, &r, a)))
        return malformed(out, "the value is malformed");
    return INTERNAL_READ;
}

void internal_key_json(const struct internal_record *r, struct buf *out)
{
    msg_print_json(r->key_desc, r->type, r->key, NULL, out);
}

/* A field that itself is a version and a message; what is none stays base64. */
static bool put_embedded(const char *field, struct bytes b, struct buf *out)
{
    const struct msg_desc *d =
        strcmp(field, "subscription") == 0 ? &consumer_protocol_subscription_desc
        : strcmp(field, "assignment") == 0 ? &consumer_protocol_assignment_desc
                                           : NULL;
    struct arena a;
    struct reader r = reader_of(b.p, b.len < 0 ? 0 : (size_t)b.len);
    int16_t version = reader_i16(&r);
    if (!d || r.bad || version < 0)
        return false;
    if (version > d->max) /* a newer client's: what we know of it stands in front */
        version = d->max;
    arena_init(&a, 0);
    const void *m = read_message(d, version, &r, &a);
    if (m)
        msg_print_json(d, version, m, NULL, out);
    arena_free(&a);
    return m != NULL;
}

void internal_value_json(const struct internal_record *r, bool embedded, struct buf *out)
{
    const struct group_metadata_value *group = r->value;
    bool consumers = embedded && r->value_desc == &group_metadata_value_desc &&
                     str_eqz(group->protocol_type, "consumer");
    msg_print_json(r->value_desc, r->value_version, r->value, consumers ? put_embedded : NULL, out);
}

const char *internal_txn_state(int8_t state)
{
    static const char *const names[] = {"Empty",        "Ongoing",          "PrepareCommit",
                                        "PrepareAbort", "CompleteCommit",   "CompleteAbort",
                                        "Dead",         "PrepareEpochFence"};
    return state >= 0 && (size_t)state < sizeof names / sizeof *names ? names[state] : NULL;
}
