/* tool_topics.c - kafka-topics: choosing topics, reading --replica-assignment, telling failures. */
#include "tools/tool_topics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_regex.h"
#include "tools/tool_visible.h"

bool topics_failed(kafka_err_t err, const char *message)
{
    const char *text = message && *message ? message : tool_error(err);
    tool_print_visible(stdout, "Error while executing topic command : %s\n", text);
    fflush(stdout);
    tool_log_error("%s: %s (kafka-topics)", kafka_err_name(err), text);
    return false;
}

static bool missing(const struct topics_args *a)
{
    char text[512];
    if (a->topic_id)
        snprintf(text, sizeof text, "TopicId '%s' does not exist as expected", a->topic_id);
    else
        snprintf(text, sizeof text, "Topic '%s' does not exist as expected", a->topic);
    return topics_failed(KAFKA_ERR_INVALID_ARG, text);
}

static bool has_id(const kafka_topic_info_t *topic, const struct uuid *id)
{
    return memcmp(topic->id, id->b, sizeof id->b) == 0;
}

bool topics_choose(struct topics *t, const struct topics_args *a)
{
    struct uuid id = UUID_ZERO;
    struct tool_regex re;
    if (a->topic_id && uuid_parse(str_of(a->topic_id), &id) < 0)
        return topics_failed(KAFKA_ERR_INVALID_ARG,
                             "--topic-id: 22 characters of URL-safe base64 are wanted");
    kafka_err_t err = kafka_admin_describe(t->admin, NULL, 0, t->timeout_ms, &t->info);
    if (err != KAFKA_OK)
        return topics_failed(err, NULL);
    t->chosen = calloc(t->info->topics_n + 1, sizeof *t->chosen);
    if (!t->chosen)
        return topics_failed(KAFKA_ERR_NO_MEMORY, NULL);
    if (a->topic && !a->topic_id)
        tool_regex_init(&re, a->topic, true);
    for (size_t i = 0; i < t->info->topics_n; i++) {
        const kafka_topic_info_t *topic = &t->info->topics[i];
        if (a->exclude_internal && (topic->internal || tool_topic_is_internal(topic->name)))
            continue;
        if (a->topic_id ? has_id(topic, &id) : !a->topic || tool_regex_matches(&re, topic->name))
            t->chosen[t->chosen_n++] = topic;
    }
    if (a->topic && !a->topic_id)
        tool_regex_fini(&re);
    bool named = a->topic || a->topic_id;
    return t->chosen_n || !named || a->if_exists || a->list || missing(a);
}

/* ---- --replica-assignment ---- */

void topics_assignment_free(struct topics_assignment *a)
{
    free(a->rows);
    free(a->brokers);
}

static int32_t read_broker(const struct tool *tool, const char *text, const char **at)
{
    char *end;
    errno = 0;
    long id = strtol(*at, &end, 10);
    if (end == *at || errno || id < 0 || id > INT32_MAX || (*end && *end != ':' && *end != ','))
        tool_usage_error(tool, "--replica-assignment %s: broker ids like 1:2,2:3 are wanted", text);
    *at = end;
    return (int32_t)id;
}

static void check_row(const struct tool *tool, const struct topics_assignment *a, size_t i)
{
    const kafka_replica_assignment_t *row = &a->rows[i];
    if (row->brokers_n != a->rows[0].brokers_n)
        tool_usage_error(tool,
                         "Partition %zu has different replication factor: %zu brokers, not %zu", i,
                         row->brokers_n, a->rows[0].brokers_n);
    for (size_t k = 0; k < row->brokers_n; k++)
        for (size_t j = 0; j < k; j++)
            if (row->brokers[j] == row->brokers[k])
                tool_usage_error(tool,
                                 "Partition replica lists may not contain duplicate entries: "
                                 "broker %d twice in partition %zu",
                                 row->brokers[k], i);
}

void topics_assignment_parse(const struct tool *tool, const char *text,
                             struct topics_assignment *out)
{
    *out = (struct topics_assignment){0};
    if (!text)
        return;
    size_t most = strlen(text) + 1, used = 0;
    out->rows = calloc(most, sizeof *out->rows);
    out->brokers = calloc(most, sizeof *out->brokers);
    if (!out->rows || !out->brokers)
        tool_die("out of memory");
    for (const char *at = text;; at++) {
        kafka_replica_assignment_t *row = &out->rows[out->n];
        *row = (kafka_replica_assignment_t){(int32_t)out->n, out->brokers + used, 0};
        for (;; at++) {
            out->brokers[used++] = read_broker(tool, text, &at);
            row->brokers_n++;
            if (*at != ':')
                break;
        }
        check_row(tool, out, out->n++);
        if (!*at)
            return;
    }
}
