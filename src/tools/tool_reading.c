/* tool_reading.c - see tool_reading.h. */
#include "tools/tool_reading.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "protocol/errors.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"

enum { REFRESH_MS = 300000, RETRY_MS = 1000 };

static int64_t now_ms(void)
{
    return clock_mono_ms(clock_real());
}

void reading_open(struct reading *r, const kafka_conf_t *conf, const char *topic,
                  const char *pattern)
{
    const char *age = kafka_conf_get(conf, "metadata.max.age.ms");
    *r = (struct reading){.topic = topic, .refresh_ms = age ? atoll(age) : REFRESH_MS};
    if (r->refresh_ms < RETRY_MS)
        r->refresh_ms = RETRY_MS;
    r->consumer = tool_consumer(conf);
    if (!topic) {
        tool_regex_init(&r->pattern, pattern, true);
        r->admin = tool_admin(conf);
    }
}

void reading_close(struct reading *r)
{
    kafka_consumer_close(r->consumer);
    kafka_admin_close(r->admin);
    if (!r->topic)
        tool_regex_fini(&r->pattern);
    for (size_t i = 0; i < r->parts_n; i++)
        free((char *)r->parts[i].topic);
    free(r->parts);
}

static bool is_known(const struct reading *r, const char *topic, int32_t partition)
{
    for (size_t i = 0; i < r->parts_n; i++)
        if (r->parts[i].partition == partition && strcmp(r->parts[i].topic, topic) == 0)
            return true;
    return false;
}

static void add(struct reading *r, const char *topic, int32_t partition)
{
    kafka_topic_partition_t *grown = realloc(r->parts, (r->parts_n + 1) * sizeof *grown);
    char *name = strdup(topic);
    if (!grown || !name)
        tool_die("out of memory");
    r->parts = grown;
    r->parts[r->parts_n++] = (kafka_topic_partition_t){name, partition};
}

static void add_new(struct reading *r, const char *topic, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (!is_known(r, topic, i))
            add(r, topic, i);
}

static bool is_missing(kafka_err_t err)
{
    return err == KERR_UNKNOWN_TOPIC_OR_PARTITION || err == KERR_LEADER_NOT_AVAILABLE;
}

static kafka_err_t look_at_topic(struct reading *r)
{
    int32_t count;
    kafka_err_t err = kafka_consumer_partition_count(r->consumer, r->topic, &count);
    if (err == KAFKA_OK)
        add_new(r, r->topic, count);
    if (is_missing(err) && !r->told) {
        tool_log_warning("topic %s: %s Waiting for it.", r->topic, kafka_err_text(err));
        r->told = true;
    }
    return is_missing(err) ? KAFKA_OK : err;
}

static kafka_err_t look_at_all(struct reading *r)
{
    kafka_cluster_info_t *info;
    kafka_err_t err = kafka_admin_describe(r->admin, NULL, 0, REFRESH_MS, &info);
    for (size_t i = 0; err == KAFKA_OK && i < info->topics_n; i++)
        if (!tool_topic_is_internal(info->topics[i].name) &&
            tool_regex_matches(&r->pattern, info->topics[i].name))
            add_new(r, info->topics[i].name, (int32_t)info->topics[i].partitions_n);
    if (err == KAFKA_OK)
        kafka_cluster_info_free(info);
    return err;
}

kafka_err_t reading_refresh(struct reading *r)
{
    size_t before = r->parts_n;
    if (now_ms() < r->next_refresh_ms)
        return KAFKA_OK;
    kafka_err_t err = r->topic ? look_at_topic(r) : look_at_all(r);
    r->next_refresh_ms = now_ms() + (r->parts_n ? r->refresh_ms : RETRY_MS);
    if (err != KAFKA_OK || r->parts_n == before)
        return err;
    err = kafka_consumer_assign(r->consumer, r->parts, r->parts_n);
    /* What appears later is read from its beginning: nothing of it was there when we began. */
    for (size_t i = before; before && err == KAFKA_OK && i < r->parts_n; i++)
        err = kafka_consumer_seek(r->consumer, r->parts[i].topic, r->parts[i].partition,
                                  KAFKA_OFFSET_BEGINNING);
    return err;
}

kafka_err_t reading_one(struct reading *r, int32_t partition, int64_t offset)
{
    int32_t count;
    kafka_err_t err = kafka_consumer_partition_count(r->consumer, r->topic, &count);
    if (err != KAFKA_OK)
        return err;
    if (partition >= count)
        tool_die("topic %s has partitions 0 to %d, not %d", r->topic, count - 1, partition);
    add(r, r->topic, partition);
    r->next_refresh_ms = INT64_MAX;
    err = kafka_consumer_assign(r->consumer, r->parts, 1);
    return err == KAFKA_OK ? kafka_consumer_seek(r->consumer, r->topic, partition, offset) : err;
}

kafka_err_t reading_poll(struct reading *r, int64_t timeout_ms, kafka_messages_t **out)
{
    int64_t deadline = timeout_ms < 0 ? INT64_MAX : now_ms() + timeout_ms;
    for (;;) {
        *out = NULL;
        kafka_err_t err = reading_refresh(r);
        if (err != KAFKA_OK)
            return err;
        int64_t now = now_ms(),
                until = deadline < r->next_refresh_ms ? deadline : r->next_refresh_ms;
        err = kafka_consumer_poll(r->consumer,
                                  until == INT64_MAX ? -1
                                  : until > now      ? until - now
                                                     : 0,
                                  out);
        if (err != KAFKA_OK || *out || now_ms() >= deadline)
            return err;
    }
}
