/* tool_groups.c - see tool_groups.h: failures, names of groups, partitions of --topic. */
#include "tools/tool_groups.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/errors.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_java.h"
#include "tools/tool_visible.h"

void groups_error(struct groups *g, const char *fmt, ...)
{
    va_list ap;
    fputs("\nError: ", stdout);
    va_start(ap, fmt);
    tool_vprint_visible(stdout, fmt, ap);
    va_end(ap);
    putchar('\n');
    g->failed = true;
    g->open_line = false;
}

void groups_check(kafka_err_t err)
{
    char class[128];
    if (err == KAFKA_OK)
        return;
    tool_print_visible(stdout, "\nError: Executing consumer group command failed due to %s: %s\n",
                       tool_java_exception(err, class), tool_error(err));
    _exit(tool_finish(1));
}

void groups_check_of(const char *kind, const char *name, kafka_err_t err)
{
    char class[128];
    if (err == KAFKA_OK)
        return;
    tool_print_visible(stdout,
                       "\nError: Executing consumer group command failed due to %s: %s '%s': %s\n",
                       tool_java_exception(err, class), kind, name, kafka_err_text(err));
    _exit(tool_finish(1));
}

const char *groups_exception(kafka_err_t err, char out[512])
{
    char class[128];
    snprintf(out, 512, "%s: %s", tool_java_exception(err, class), kafka_err_text(err));
    return out;
}

void *groups_array(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (!p)
        tool_die("out of memory");
    return p;
}

/* ---- groups ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool groups_is_of_consumers(const kafka_group_listing_t *l)
{
    return !*l->protocol_type || strcmp(l->protocol_type, "consumer") == 0;
}

void groups_check_list(const kafka_group_list_t *list)
{
    char id[24];
    if (list->errors_n == 0)
        return;
    snprintf(id, sizeof id, "%d", (int)list->errors[0].broker);
    groups_check_of("broker", id, list->errors[0].err);
}

struct groups_names groups_choose(struct groups *g)
{
    struct groups_names names = {0};
    if (g->args->all_groups) {
        groups_check(
            kafka_admin_list_groups(g->admin, NULL, 0, NULL, 0, g->timeout_ms, &names.list));
        groups_check_list(names.list);
    }
    size_t n = names.list ? names.list->n : g->args->group.n;
    names.v = groups_array(n, sizeof *names.v);
    for (size_t i = 0; i < n; i++)
        if (!names.list || groups_is_of_consumers(&names.list->v[i]))
            names.v[names.n++] = names.list ? names.list->v[i].group_id : g->args->group.v[i];
    qsort(names.v, names.n, sizeof *names.v, by_name);
    size_t kept = 0;
    for (size_t i = 0; i < names.n; i++)
        if (kept == 0 || strcmp(names.v[kept - 1], names.v[i]) != 0)
            names.v[kept++] = names.v[i];
    names.n = kept;
    return names;
}

void groups_names_free(struct groups_names *names)
{
    free(names->v);
    kafka_group_list_free(names->list);
}

/* ---- partitions ---- */

int groups_by_partition(const void *a, const void *b)
{
    const kafka_topic_partition_t *x = a, *y = b;
    int order = strcmp(x->topic, y->topic);
    return order ? order : (x->partition > y->partition) - (x->partition < y->partition);
}

void groups_parts_add(struct groups_parts *p, const char *topic, size_t topic_n, int32_t partition)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 16;
        kafka_topic_partition_t *grown = realloc(p->v, cap * sizeof *grown);
        if (!grown)
            tool_die("out of memory");
        p->v = grown;
        p->cap = cap;
    }
    char *name = strndup(topic, topic_n);
    if (!name)
        tool_die("out of memory");
    p->v[p->n++] = (kafka_topic_partition_t){name, partition};
}

void groups_parts_sort(struct groups_parts *p)
{
    size_t kept = 0;
    if (p->n)
        qsort(p->v, p->n, sizeof *p->v, groups_by_partition);
    for (size_t i = 0; i < p->n; i++) {
        if (kept && groups_by_partition(&p->v[kept - 1], &p->v[i]) == 0)
            free((char *)p->v[i].topic);
        else
            p->v[kept++] = p->v[i];
    }
    p->n = kept;
}

void groups_parts_free(struct groups_parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        free((char *)p->v[i].topic);
    free(p->v);
}

static void add_whole_topic(struct groups *g, struct groups_parts *p, const char *topic,
                            struct groups_parts *unknown)
{
    kafka_cluster_info_t *info;
    groups_check(kafka_admin_describe(g->admin, &topic, 1, g->timeout_ms, &info));
    kafka_err_t err = info->topics_n ? info->topics[0].err : KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (err == KERR_UNKNOWN_TOPIC_OR_PARTITION && unknown)
        groups_parts_add(unknown, topic, strlen(topic), -1);
    else
        groups_check_of("topic", topic, err);
    for (size_t i = 0; err == KAFKA_OK && i < info->topics[0].partitions_n; i++)
        groups_parts_add(p, topic, strlen(topic), info->topics[0].partitions[i].partition);
    kafka_cluster_info_free(info);
}

/* The numbers behind the colon. */
static void add_numbers(struct groups *g, struct groups_parts *p, const char *topic, size_t topic_n,
                        const char *list)
{
    do {
        char text[32];
        int64_t partition;
        size_t n = strcspn(list, ",");
        snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), list);
        if (!tool_int_of(text, &partition) || partition < 0 || partition > INT32_MAX)
            tool_usage_error(g->tool,
                             "--topic %.*s:...: partitions are numbers, as in topic1:0,1,2; '%.*s' "
                             "is not one",
                             (int)topic_n, topic, (int)n, list);
        groups_parts_add(p, topic, topic_n, (int32_t)partition);
        list += n;
    } while (*list++ == ',');
}

struct groups_parts groups_parts_of_topics(struct groups *g, struct groups_parts *unknown)
{
    struct groups_parts p = {0};
    for (size_t i = 0; i < g->args->topic.n; i++) {
        const char *topic = g->args->topic.v[i], *colon = strchr(topic, ':');
        if (colon)
            add_numbers(g, &p, topic, (size_t)(colon - topic), colon + 1);
        else
            add_whole_topic(g, &p, topic, unknown);
    }
    groups_parts_sort(&p);
    return p;
}

void groups_log_offsets(struct groups *g, const kafka_topic_partition_t *v, size_t n,
                        int64_t timestamp, int64_t *offsets, kafka_err_t *errs)
{
    int64_t *times = groups_array(n, sizeof *times);
    for (size_t i = 0; i < n; i++)
        times[i] = timestamp;
    if (n)
        groups_check(kafka_consumer_list_offsets(g->consumer, v, times, n, g->timeout_ms, offsets,
                                                 NULL, errs));
    free(times);
}
