/* assignor_bytes.c - subscriptions, assignments and the sticky assignor's data as bytes. Written in
 * version 3; a higher one is read as 3. */
#include <stdlib.h>
#include <string.h>

#include "client/assignor.h"
#include "protocol/codec.h"
#include "protocol/msg/consumer_protocol.h"

enum { VERSION = 3 };

/* The version in front, as far as it is known here; -1 when there is none. */
static int read_version(struct reader *r)
{
    int version = reader_i16(r);
    return r->bad || version < 0 ? -1 : version > VERSION ? VERSION : version;
}

static const char *keep(struct arena *a, struct str s)
{
    return s.len < 0 ? NULL : arena_str(a, s).p;
}

/* Topics, each with its run of partitions, in the layout that all three kinds of bytes share:
 * `count` entries of {topic, n partitions}. */
static void put_partitions(const kafka_topic_partition_t *tps, size_t n, struct buf *out)
{
    size_t count_at = out->len;
    int32_t topics = 0;
    buf_put_i32(out, 0);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && strcmp(tps[end].topic, tps[i].topic) == 0)
            end++;
        size_t len = strlen(tps[i].topic);
        buf_put_i16(out, (int16_t)len);
        buf_put(out, tps[i].topic, len);
        buf_put_i32(out, (int32_t)(end - i));
        for (; i < end; i++)
            buf_put_i32(out, tps[i].partition);
        topics++;
    }
    if (!out->failed)
        put_be32(out->p + count_at, (uint32_t)topics);
}

static void put_bytes(const void *p, size_t n, struct buf *out)
{
    buf_put_i32(out, p ? (int32_t)n : -1);
    if (p)
        buf_put(out, p, n);
}

void subscription_encode(const struct subscription *s, struct buf *out)
{
    buf_put_i16(out, VERSION);
    buf_put_i32(out, (int32_t)s->topics_n);
    for (size_t i = 0; i < s->topics_n; i++) {
        buf_put_i16(out, (int16_t)strlen(s->topics[i]));
        buf_put(out, s->topics[i], strlen(s->topics[i]));
    }
    put_bytes(s->user_data_len ? s->user_data : NULL, s->user_data_len, out);
    put_partitions(s->owned, s->owned_n, out);
    buf_put_i32(out, s->generation);
    buf_put_i16(out, s->rack ? (int16_t)strlen(s->rack) : -1);
    if (s->rack)
        buf_put(out, s->rack, strlen(s->rack));
}

static int cmp_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool keep_topics(const struct consumer_protocol_subscription *d, struct arena *a,
                        kafka_group_member_t *m)
{
    const char **topics = arena_array(a, const char *, (size_t)d->topics.n);
    if (!topics)
        return false;
    for (int32_t i = 0; i < d->topics.n; i++)
        if (!(topics[i] = keep(a, d->topics.v[i])))
            return false;
    qsort(topics, (size_t)d->topics.n, sizeof *topics, cmp_strings);
    m->topics = topics;
    m->topics_n = (size_t)d->topics.n;
    return true;
}

bool subscription_decode(struct bytes bytes, struct arena *a, kafka_group_member_t *m)
{
    struct reader r = reader_of(bytes.p, bytes.len < 0 ? 0 : (size_t)bytes.len);
    struct consumer_protocol_subscription d;
    int version = read_version(&r);
    if (version < 0 || consumer_protocol_subscription_decode(&d, version, &r, a) < 0)
        return false;
    m->generation = d.generation_id;
    m->rack = keep(a, d.rack_id);
    m->user_data = d.user_data.len < 0 ? NULL : d.user_data.p;
    m->user_data_len = d.user_data.len < 0 ? 0 : (size_t)d.user_data.len;
    size_t n = 0;
    for (int32_t i = 0; i < d.owned_partitions.n; i++)
        n += (size_t)d.owned_partitions.v[i].partitions.n;
    kafka_topic_partition_t *owned = arena_array(a, kafka_topic_partition_t, n);
    m->owned = owned;
    for (int32_t i = 0; owned && i < d.owned_partitions.n; i++) {
        const char *topic = keep(a, d.owned_partitions.v[i].topic);
        for (int32_t k = 0; topic && k < d.owned_partitions.v[i].partitions.n; k++)
            owned[m->owned_n++] =
                (kafka_topic_partition_t){topic, d.owned_partitions.v[i].partitions.v[k]};
    }
    return owned && m->owned_n == n && keep_topics(&d, a, m);
}

void assignment_encode(const kafka_topic_partition_t *tps, size_t n, const void *user_data,
                       size_t user_data_len, struct buf *out)
{
    buf_put_i16(out, VERSION);
    put_partitions(tps, n, out);
    put_bytes(user_data_len ? user_data : NULL, user_data_len, out);
}

bool assignment_decode(struct bytes bytes, struct arena *a, kafka_topic_partition_t **tps,
                       size_t *n, struct bytes *user_data)
{
    struct reader r = reader_of(bytes.p, bytes.len < 0 ? 0 : (size_t)bytes.len);
    struct consumer_protocol_assignment d;
    *n = 0;
    *user_data = BYTES_NULL;
    if (bytes.len <= 0) { /* a member that got nothing may get no bytes at all */
        *tps = arena_array(a, kafka_topic_partition_t, 0);
        return *tps != NULL;
    }
    int version = read_version(&r);
    if (version < 0 || consumer_protocol_assignment_decode(&d, version, &r, a) < 0)
        return false;
    size_t count = 0;
    for (int32_t i = 0; i < d.assigned_partitions.n; i++)
        count += (size_t)d.assigned_partitions.v[i].partitions.n;
    if (!(*tps = arena_array(a, kafka_topic_partition_t, count)))
        return false;
    for (int32_t i = 0; i < d.assigned_partitions.n; i++) {
        const char *topic = keep(a, d.assigned_partitions.v[i].topic);
        for (int32_t k = 0; topic && k < d.assigned_partitions.v[i].partitions.n; k++)
            (*tps)[(*n)++] =
                (kafka_topic_partition_t){topic, d.assigned_partitions.v[i].partitions.v[k]};
    }
    *user_data = d.user_data;
    return *n == count;
}

void sticky_data_encode(const kafka_topic_partition_t *tps, size_t n, int32_t generation,
                        struct buf *out)
{
    put_partitions(tps, n, out);
    buf_put_i32(out, generation);
}

/* The generation is missing in the first version of these bytes. */
bool sticky_data_decode(const void *data, size_t len, struct arena *a,
                        kafka_topic_partition_t **tps, size_t *n, int32_t *generation)
{
    struct reader r = reader_of(data, len);
    size_t cap = len / 4 + 1;
    *n = 0;
    *generation = -1;
    if (!(*tps = arena_array(a, kafka_topic_partition_t, cap)))
        return false;
    int32_t topics = reader_i32(&r);
    for (int32_t t = 0; t < topics && !r.bad; t++) {
        int16_t name_n = reader_i16(&r);
        const uint8_t *name = name_n < 0 ? NULL : reader_take(&r, (size_t)name_n);
        int32_t count = reader_i32(&r);
        if (!name || count < 0)
            return false;
        const char *topic = keep(a, (struct str){(const char *)name, name_n});
        for (int32_t i = 0; topic && i < count && !r.bad; i++) {
            int32_t partition = reader_i32(&r);
            if (!r.bad && *n < cap)
                (*tps)[(*n)++] = (kafka_topic_partition_t){topic, partition};
        }
    }
    if (!r.bad && reader_left(&r) >= 4)
        *generation = reader_i32(&r);
    return !r.bad;
}
