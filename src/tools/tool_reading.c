/* tool_reading.c - see tool_reading.h. */
#include "tools/tool_reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_regex.h"

void reading_open(struct reading *r, const kafka_conf_t *conf, const char *topic)
{
    *r = (struct reading){.topic = topic, .consumer = tool_consumer(conf)};
}

void reading_close(struct reading *r)
{
    kafka_consumer_close(r->consumer);
    free(r->parts);
}

/* Commas stand for `|`, as no topic has one in its name; but for those of {1,3}. */
static char *pattern_of_list(const char *list)
{
    char *out = strdup(list);
    bool count = false;
    if (!out)
        tool_die("out of memory");
    for (char *at = out; *at; at++) {
        count = count ? *at != '}' : *at == '{';
        if (*at == ',' && !count)
            *at = '|';
    }
    return out;
}

void reading_subscribe(struct reading *r, const char *pattern,
                       const kafka_rebalance_listener_t *listener)
{
    kafka_err_t err;
    if (r->topic) {
        err = kafka_consumer_subscribe(r->consumer, &r->topic, 1, listener);
    } else {
        char *text = pattern_of_list(pattern);
        err = kafka_consumer_subscribe_pattern(r->consumer, text, listener);
        free(text);
    }
    if (err != KAFKA_OK)
        tool_die("%s", tool_error(err));
}

void reading_random_group(kafka_conf_t *conf, const char *prefix)
{
    char group[64];
    struct uuid random = uuid_random();
    uint32_t number;
    memcpy(&number, random.b, sizeof number);
    snprintf(group, sizeof group, "%s-%u", prefix, number % 100000);
    tool_conf_set(conf, "group.id", group);
}

static kafka_err_t assign(struct reading *r, int32_t first, int32_t n)
{
    free(r->parts);
    r->parts = calloc((size_t)n + 1, sizeof *r->parts);
    if (!r->parts)
        tool_die("out of memory");
    r->parts_n = (size_t)n;
    for (int32_t i = 0; i < n; i++)
        r->parts[i] = (kafka_topic_partition_t){r->topic, first + i};
    return kafka_consumer_assign(r->consumer, r->parts, r->parts_n);
}

kafka_err_t reading_all(struct reading *r)
{
    int32_t count;
    kafka_err_t err = kafka_consumer_partition_count(r->consumer, r->topic, &count);
    return err == KAFKA_OK ? assign(r, 0, count) : err;
}

kafka_err_t reading_one(struct reading *r, int32_t partition, int64_t offset)
{
    int32_t count;
    kafka_err_t err = kafka_consumer_partition_count(r->consumer, r->topic, &count);
    if (err != KAFKA_OK)
        return err;
    if (partition >= count)
        tool_die("topic %s has partitions 0 to %d, not %d", r->topic, count - 1, partition);
    err = assign(r, partition, 1);
    return err == KAFKA_OK ? kafka_consumer_seek(r->consumer, r->topic, partition, offset) : err;
}

void reading_give_back(struct reading *r, const kafka_messages_t *m, size_t from)
{
    for (size_t i = kafka_messages_count(m); i > from; i--) { /* the first one of each has the last
                                                                 word */
        const kafka_message_t *one = kafka_messages_at(m, i - 1);
        (void)kafka_consumer_seek(r->consumer, one->topic, one->partition, one->offset);
    }
}
