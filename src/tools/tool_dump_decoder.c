#include "tools/tool_dump_decoder.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "protocol/msg/transaction_log_record.h"
#include "tools/tool_internal.h"
#include "tools/tool_io.h"

typedef bool (*plain_fn)(struct bytes b, struct buf *out);

struct dump_decoder {
    enum dump_topic topic;
    plain_fn key, value;
    struct arena arena; /* of the record being decoded */
};

/* ---- any topic ---- */

static bool put_text(struct bytes b, struct buf *out)
{
    utf8_put(out, b.p, (size_t)b.len);
    return true;
}

static bool put_int(struct bytes b, struct buf *out)
{
    if (b.len >= 4)
        buf_printf(out, "%" PRId32, (int32_t)get_be32(b.p));
    return b.len >= 4;
}

static bool put_long(struct bytes b, struct buf *out)
{
    if (b.len >= 8)
        buf_printf(out, "%" PRId64, (int64_t)get_be64(b.p));
    return b.len >= 8;
}

/* Kafka prints the address of a Java array here; the bytes are of more use. */
static bool put_hex(struct bytes b, struct buf *out)
{
    for (int32_t i = 0; i < b.len; i++)
        buf_printf(out, "%02x", b.p[i]);
    return true;
}

static plain_fn find_plain(const char *name)
{
    static const struct {
        const char *name;
        plain_fn put;
    } rows[] = {{"StringDecoder", put_text},
                {"IntegerDecoder", put_int},
                {"LongDecoder", put_long},
                {"DefaultDecoder", put_hex}};
    const char *dot = name ? strrchr(name, '.') : NULL;
    const char *plain = dot ? dot + 1 : name;
    if (!name)
        return put_text;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, plain) == 0)
            return rows[i].put;
    tool_die("%s: this tool has no such decoder", name);
}

static const char *decode_plain(const struct dump_decoder *d, const struct record *r,
                                struct dump_text *key, struct dump_text *value)
{
    key->shown = r->key.len >= 0;
    value->shown = r->value.len >= 0;
    if (key->shown && !d->key(r->key, &key->text))
        return "the key is too short for its decoder";
    if (value->shown && !d->value(r->value, &value->text))
        return "the value is too short for its decoder";
    return NULL;
}

/* ---- __consumer_offsets ---- */

static void put_offsets_record(const struct internal_record *in, struct dump_text *key,
                               struct dump_text *value)
{
    buf_printf(&key->text, "{\"type\":\"%d\",\"data\":", in->type);
    internal_key_json(in, &key->text);
    buf_put_i8(&key->text, '}');
    value->shown = true;
    if (!in->value) {
        buf_printf(&value->text, "<DELETE>");
        return;
    }
    buf_printf(&value->text, "{\"version\":\"%d\",\"data\":", in->value_version);
    internal_value_json(in, true, &value->text);
    buf_put_i8(&value->text, '}');
}

static const char *decode_offsets(struct dump_decoder *d, const struct record *r,
                                  struct dump_text *key, struct dump_text *value)
{
    struct internal_record in;
    if (r->key.len < 0)
        return "the key is null: no record of __consumer_offsets";
    enum internal_read got = internal_read(INTERNAL_OFFSETS, r->key, r->value, &d->arena, &in);
    key->shown = true;
    switch (got) {
    case INTERNAL_READ:
        put_offsets_record(&in, key, value);
        break;
    case INTERNAL_UNKNOWN_TYPE:
        buf_printf(&key->text, "Unknown record type %d at offset %" PRId64 ", skipping.", in.type,
                   r->offset);
        break;
    case INTERNAL_UNKNOWN_VERSION:
        buf_printf(&key->text, "Error at offset %" PRId64 ", skipping. Unknown value version %d",
                   r->offset, in.value_version);
        break;
    case INTERNAL_MALFORMED:
        buf_printf(&key->text, "Error at offset %" PRId64 ", skipping. %s", r->offset, in.wrong);
        break;
    }
    return NULL;
}

/* ---- __transaction_state ---- */

static void put_txn_value(const struct transaction_log_value *v, struct buf *out)
{
    const char *state = internal_txn_state(v->transaction_status), *before = "";
    buf_printf(out, "producerId:%" PRId64 ",producerEpoch:%d,state=", v->producer_id,
               v->producer_epoch);
    if (state)
        buf_printf(out, "%s", state);
    else
        buf_printf(out, "%d", v->transaction_status);
    buf_printf(out, ",partitions=[");
    for (int32_t i = 0; i < v->transaction_partitions.n; i++) {
        for (int32_t k = 0; k < v->transaction_partitions.v[i].partition_ids.n; k++) {
            buf_printf(out, "%s", before);
            utf8_put(out, v->transaction_partitions.v[i].topic.p,
                     (size_t)v->transaction_partitions.v[i].topic.len);
            buf_printf(out, "-%" PRId32, v->transaction_partitions.v[i].partition_ids.v[k]);
            before = ",";
        }
    }
    buf_printf(out, "],txnLastUpdateTimestamp=%" PRId64 ",txnTimeoutMs=%" PRId32,
               v->transaction_last_update_timestamp_ms, v->transaction_timeout_ms);
}

static const char *decode_transactions(struct dump_decoder *d, const struct record *r,
                                       struct dump_text *key, struct dump_text *value)
{
    struct internal_record in;
    enum internal_read got = internal_read(INTERNAL_TRANSACTIONS, r->key, r->value, &d->arena, &in);
    key->shown = true;
    if (got == INTERNAL_UNKNOWN_TYPE) {
        buf_printf(&key->text, "unknown::version=%d", in.type);
        return NULL;
    }
    if (got == INTERNAL_UNKNOWN_VERSION)
        return "a version of the value that is not known: no record of __transaction_state";
    if (got == INTERNAL_MALFORMED)
        return in.wrong;
    struct str id = ((const struct transaction_log_key *)in.key)->transactional_id;
    buf_printf(&key->text, "transaction_metadata::transactionalId=");
    utf8_put(&key->text, id.p, (size_t)id.len);
    value->shown = true;
    if (in.value)
        put_txn_value(in.value, &value->text);
    else
        buf_printf(&value->text, "<DELETE>");
    return NULL;
}

/* ---- metadata of KRaft, which this broker does not write ---- */

/* A value begins with the version of its frame, the type and the version of the message. */
static const char *decode_metadata(const struct record *r, struct dump_text *value)
{
    struct reader in = reader_of(r->value.p, r->value.len < 0 ? 0 : (size_t)r->value.len);
    uint32_t frame = reader_uvarint(&in), type = reader_uvarint(&in), version = reader_uvarint(&in);
    value->shown = true;
    if (in.bad || frame > 1) {
        buf_printf(&value->text, "Error at %" PRId64 ", skipping. no metadata record", r->offset);
        return NULL;
    }
    buf_printf(&value->text, "{\"type\":\"%u\",\"version\":%u,\"data\":\"", type, version);
    put_hex((struct bytes){in.p, (int32_t)reader_left(&in)}, &value->text);
    buf_printf(&value->text, "\"}");
    return NULL;
}

/* ---- all ---- */

struct dump_decoder *dump_decoder_new(enum dump_topic topic, const char *key, const char *value)
{
    struct dump_decoder *d = calloc(1, sizeof *d);
    if (!d)
        tool_die("out of memory");
    d->topic = topic;
    d->key = find_plain(key);
    d->value = find_plain(value);
    arena_init(&d->arena, 0); /* a record decodes to CODEC_EXPANSION times its size at most */
    return d;
}

void dump_decoder_free(struct dump_decoder *d)
{
    if (d)
        arena_free(&d->arena);
    free(d);
}

const char *dump_decode(struct dump_decoder *d, const struct record *r, struct dump_text *key,
                        struct dump_text *value)
{
    arena_reset(&d->arena);
    key->text.len = value->text.len = 0;
    key->shown = value->shown = false;
    switch (d->topic) {
    case DUMP_OFFSETS:
        return decode_offsets(d, r, key, value);
    case DUMP_TRANSACTIONS:
        return decode_transactions(d, r, key, value);
    case DUMP_METADATA:
        return decode_metadata(r, value);
    default:
        return decode_plain(d, r, key, value);
    }
}
