/* txn_records.c - see txn_records.h. */
#include "coordinator/txn_records.h"

#include <errno.h>

#include "coordinator/group_records.h"
#include "protocol/msg/transaction_log_record.h"

enum { KEY_VERSION = 0, VALUE_VERSION = 0 };

int txn_key_decode(struct bytes key, struct str *id)
{
    struct reader r = reader_of(key.p, key.len < 0 ? 0 : (size_t)key.len);
    struct transaction_log_key k;
    int16_t version = reader_i16(&r);
    if (r.bad || version < 0)
        return -EBADMSG;
    if (version != KEY_VERSION)
        return -ENOTSUP;
    if (transaction_log_key_decode(&k, version, &r, NULL) != 0 || k.transactional_id.len <= 0)
        return -EBADMSG;
    *id = k.transactional_id;
    return 0;
}

void txn_key_put(struct buf *out, struct str id)
{
    struct transaction_log_key k = {.transactional_id = id};
    record_value_put(&transaction_log_key_desc, KEY_VERSION, out, &k);
}

/* States that are never written would be waited for, for ever. */
static bool is_written(int8_t state)
{
    return state >= TXN_EMPTY && state <= TXN_COMPLETE_ABORT;
}

static int take_partitions(const struct transaction_log_value *v, struct txn_partitions *out)
{
    int rc = 0;
    for (int32_t t = 0; t < v->transaction_partitions.n; t++) {
        const struct transaction_log_value_transaction_partition *p =
            &v->transaction_partitions.v[t];
        for (int32_t i = 0; !rc && i < p->partition_ids.n; i++)
            rc = txn_partitions_add(out, p->topic, p->partition_ids.v[i]);
    }
    return rc;
}

int txn_value_decode(struct bytes value, struct arena *a, struct txn_image *out)
{
    struct transaction_log_value v;
    int rc = record_value_decode(&transaction_log_value_desc, value, a, &v);
    if (rc)
        return rc;
    if (!is_written(v.transaction_status))
        return -EBADMSG;
    *out = (struct txn_image){.producer_id = v.producer_id,
                              .last_producer_id = TXN_NO_PRODUCER,
                              .epoch = v.producer_epoch,
                              .last_epoch = TXN_NO_EPOCH,
                              .timeout_ms = v.transaction_timeout_ms,
                              .state = (enum txn_state)v.transaction_status,
                              .start_ms = v.transaction_start_timestamp_ms,
                              .updated_ms = v.transaction_last_update_timestamp_ms};
    rc = take_partitions(&v, &out->partitions);
    if (rc)
        txn_image_free(out);
    return rc;
}

static bool put_partitions(const struct txn_partitions *s, struct arena *a,
                           struct transaction_log_value *v)
{
    int n = s->n;
    v->transaction_partitions.v = transaction_log_value_transaction_partition_new(a, n);
    if (!v->transaction_partitions.v)
        return false;
    v->transaction_partitions.n = n;
    for (int i = 0; i < n; i++) {
        v->transaction_partitions.v[i].topic = s->topics[i].name;
        v->transaction_partitions.v[i].partition_ids.v = s->topics[i].v;
        v->transaction_partitions.v[i].partition_ids.n = s->topics[i].n;
    }
    return true;
}

bool txn_value_put(struct buf *out, const struct txn_image *i, struct arena *a)
{
    struct transaction_log_value v = {.producer_id = i->producer_id,
                                      .producer_epoch = i->epoch,
                                      .transaction_timeout_ms = i->timeout_ms,
                                      .transaction_status = (int8_t)i->state,
                                      .transaction_last_update_timestamp_ms = i->updated_ms,
                                      .transaction_start_timestamp_ms = i->start_ms};
    v.transaction_partitions.n = -1;
    if (i->state != TXN_EMPTY && !put_partitions(&i->partitions, a, &v))
        return false;
    return record_value_put(&transaction_log_value_desc, VALUE_VERSION, out, &v) && !out->failed;
}
