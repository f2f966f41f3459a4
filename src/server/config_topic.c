/* config_topic.c - the settings of logs: the broker's defaults with Kafka's priorities (ms over
 * minutes over hours), and a topic's overrides on top.
 *
 * One table says which field of struct log_config a topic setting is; the broker's defaults and the
 * overrides both go through it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/compression.h"
#include "protocol/records_append.h"
#include "server/config_private.h"

enum field_kind { F_BOOL, F_I32, F_I64, F_DOUBLE, F_CLEANUP, F_COMPRESSION, F_APPEND_TIME };

static const struct field {
    const char *name; /* the topic setting */
    uint16_t kind;
    uint16_t offset; /* in struct log_config */
} fields[] = {
#define FIELD(name, kind, member)                       \
    {                                                   \
        name, kind, offsetof(struct log_config, member) \
    }
    FIELD("cleanup.policy", F_CLEANUP, cleanup_policy),
    FIELD("compression.gzip.level", F_I32, gzip_level),
    FIELD("compression.lz4.level", F_I32, lz4_level),
    FIELD("compression.type", F_COMPRESSION, compression),
    FIELD("compression.zstd.level", F_I32, zstd_level),
    FIELD("delete.retention.ms", F_I64, delete_retention_ms),
    FIELD("file.delete.delay.ms", F_I64, file_delete_delay_ms),
    FIELD("flush.messages", F_I64, flush_messages),
    FIELD("flush.ms", F_I64, flush_ms),
    FIELD("index.interval.bytes", F_I32, index_interval_bytes),
    FIELD("max.compaction.lag.ms", F_I64, max_compaction_lag_ms),
    FIELD("max.message.bytes", F_I32, max_message_bytes),
    FIELD("message.downconversion.enable", F_BOOL, down_conversion),
    FIELD("message.timestamp.after.max.ms", F_I64, timestamp_after_max_ms),
    FIELD("message.timestamp.before.max.ms", F_I64, timestamp_before_max_ms),
    FIELD("message.timestamp.type", F_APPEND_TIME, log_append_time),
    FIELD("min.cleanable.dirty.ratio", F_DOUBLE, min_cleanable_ratio),
    FIELD("min.compaction.lag.ms", F_I64, min_compaction_lag_ms),
    FIELD("min.insync.replicas", F_I32, min_insync_replicas),
    FIELD("preallocate", F_BOOL, preallocate),
    FIELD("retention.bytes", F_I64, retention_bytes),
    FIELD("retention.ms", F_I64, retention_ms),
    FIELD("segment.bytes", F_I32, segment_bytes),
    FIELD("segment.index.bytes", F_I32, segment_index_bytes),
    FIELD("segment.jitter.ms", F_I64, segment_jitter_ms),
    FIELD("segment.ms", F_I64, segment_ms),
    FIELD("unclean.leader.election.enable", F_BOOL, unclean_leader_election),
#undef FIELD
};

static int cleanup_bits(const char *text)
{
    int bits = 0;
    struct str e;
    for (const char *at = text; config_list_next(&at, &e);)
        bits |= str_eqz(e, "compact") ? CLEANUP_COMPACT : CLEANUP_DELETE;
    return bits;
}

static int compression_of(const char *text)
{
    enum codec codec;
    if (codec_parse(str_of(text), &codec) == 0)
        return (int)codec;
    return COMPRESSION_PRODUCER;
}

static void field_set(struct log_config *c, const struct field *f, const struct config_value *v)
{
    void *at = (char *)c + f->offset;
    switch ((enum field_kind)f->kind) {
    case F_BOOL:
        *(bool *)at = v->b;
        break;
    case F_I32:
        *(int32_t *)at = (int32_t)v->i;
        break;
    case F_I64:
        *(int64_t *)at = v->i;
        break;
    case F_DOUBLE:
        *(double *)at = v->d;
        break;
    case F_CLEANUP:
        *(int *)at = cleanup_bits(v->text);
        break;
    case F_COMPRESSION:
        *(int *)at = compression_of(v->text);
        break;
    case F_APPEND_TIME:
        *(bool *)at = strcmp(v->text, "LogAppendTime") == 0;
        break;
    }
}

/* ---- the broker's values ---- */

/* -> milliseconds; a product beyond int64 is "never". */
static int64_t times(int64_t n, int64_t ms)
{
    int64_t product;
    return __builtin_mul_overflow(n, ms, &product) ? INT64_MAX : product;
}

static int64_t first_given(const struct config *c, const char *ms_key, const char *hours_key)
{
    int64_t ms = config_int(c, ms_key);
    return ms != INT64_MIN ? ms : times(config_int(c, hours_key), 3600000);
}

static int64_t retention_ms(const struct config *c)
{
    int64_t v = config_int(c, "log.retention.ms");
    if (v == INT64_MIN && (v = config_int(c, "log.retention.minutes")) != INT64_MIN)
        v = times(v, 60000);
    if (v == INT64_MIN)
        v = times(config_int(c, "log.retention.hours"), 3600000);
    return v < 0 ? -1 : v;
}

static int64_t flush_ms(const struct config *c)
{
    int64_t v = config_int(c, "log.flush.interval.ms");
    return v != INT64_MIN ? v : config_int(c, "log.flush.scheduler.interval.ms");
}

static int64_t timestamp_limit(const struct config *c, const char *key)
{
    return config_int(c, config_is_given(c, key) ? key : "log.message.timestamp.difference.max.ms");
}

/* The topic setting's value from the one broker key that it has. */
static void default_from_synonym(const struct config *c, const struct field *f,
                                 struct log_config *out)
{
    const struct topic_config_row *row = topic_config_find(str_of(f->name));
    const struct config_row *broker_row = config_find(str_of(row->synonyms[0]));
    const char *text = config_text(c, broker_row);
    struct config_value v;
    if (!text)
        return; /* one of those with several keys, set below */
    char *problem = config_value_parse(f->name, row->type, &broker_row->valid, text, &v);
    if (!problem && v.text)
        field_set(out, f, &v);
    free(problem);
    free(v.text);
}

static int refuse(char *err, size_t err_n, const char *key, int64_t value, const char *allowed)
{
    snprintf(err, err_n, "Invalid value %lld for configuration %s: must be %s", (long long)value,
             key, allowed);
    return -EINVAL;
}

int config_log_defaults_load(struct config *c, char *err, size_t err_n)
{
    struct log_config *d = &c->log_defaults;
    *d = (struct log_config){0}; /* every field comes from a setting */
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        default_from_synonym(c, &fields[i], d);
    d->segment_ms = first_given(c, "log.roll.ms", "log.roll.hours");
    d->segment_jitter_ms = first_given(c, "log.roll.jitter.ms", "log.roll.jitter.hours");
    d->retention_ms = retention_ms(c);
    d->flush_ms = flush_ms(c);
    d->timestamp_before_max_ms = timestamp_limit(c, "log.message.timestamp.before.max.ms");
    d->timestamp_after_max_ms = timestamp_limit(c, "log.message.timestamp.after.max.ms");
    d->producer_id_expiration_ms = config_int(c, "producer.id.expiration.ms");
    if (d->retention_ms == 0)
        return refuse(err, err_n, "log.retention.ms", 0, "at least 1, or -1 for no limit");
    if (d->segment_ms < 1)
        return refuse(err, err_n, "log.roll.ms", d->segment_ms, "at least 1");
    if (d->segment_jitter_ms < 0)
        return refuse(err, err_n, "log.roll.jitter.ms", d->segment_jitter_ms, "at least 0");
    return 0;
}

/* ---- a topic's overrides ---- */

char *topic_config_check(void *arg, struct str name, struct str value)
{
    const struct topic_config_row *row = topic_config_find(name);
    char *problem = NULL;
    if (!row) {
        if (asprintf(&problem, "Unknown topic config name: %.*s", STR_ARG(name)) < 0)
            return NULL;
        return problem;
    }
    char *text =
        str_is_null(value) || memchr(value.p, 0, (size_t)value.len) ? NULL : str_dup(value);
    if (!text) {
        if (asprintf(&problem, "Null value not supported for topic configs: %s", row->name) < 0)
            return NULL;
        return problem;
    }
    struct config_value v;
    problem = config_value_parse(row->name, row->type, &row->valid, text, &v);
    free(v.text);
    free(text);
    return problem;
}

/* The parsed override; false when it is absent or not legal. */
static bool override_of(const struct props *overrides, const char *name, struct config_value *v)
{
    const char *text = props_get(overrides, name);
    if (!text)
        return false;
    const struct topic_config_row *row = topic_config_find(str_of(name));
    char *problem = config_value_parse(name, row->type, &row->valid, text, v);
    free(problem);
    return v->text != NULL;
}

/* The old setting gives both limits where they are not set themselves. */
static void apply_timestamp_difference(const struct props *overrides, struct log_config *out)
{
    struct config_value v;
    if (!override_of(overrides, "message.timestamp.difference.max.ms", &v))
        return;
    if (!props_get(overrides, "message.timestamp.before.max.ms"))
        out->timestamp_before_max_ms = v.i;
    if (!props_get(overrides, "message.timestamp.after.max.ms"))
        out->timestamp_after_max_ms = v.i;
    free(v.text);
}

void config_topic(const struct config *c, const struct props *overrides, struct log_config *out)
{
    *out = c->log_defaults;
    if (!overrides || props_count(overrides) == 0)
        return;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        struct config_value v;
        if (override_of(overrides, fields[i].name, &v)) {
            field_set(out, &fields[i], &v);
            free(v.text);
        }
    }
    apply_timestamp_difference(overrides, out);
}
