/* tool_reassign.c - see tool_reassign.h: what the actions share. */
#include "tools/tool_reassign.h"

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

enum { LINE = 4096 };
#define OPERATION_FAILED "org.apache.kafka.server.common.AdminOperationException"

static void end(void)
{
    fflush(stdout);
    _exit(1); /* what is still held goes with the process */
}

void reassign_refuse(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tool_vprint_visible(stdout, fmt, ap);
    va_end(ap);
    putchar('\n');
    end();
    abort();
}

void reassign_fail(struct reassign *r, const char *fmt, ...)
{
    char text[LINE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tool_print_visible(stdout, "%s%s\n%s: %s\n", r->failed, text, OPERATION_FAILED, text);
    end();
    abort();
}

void reassign_fail_of(struct reassign *r, kafka_err_t err, const char *message)
{
    char class[128];
    tool_java_exception(err, class);
    if (!message || !*message)
        message = tool_error(err);
    tool_print_visible(stdout, "%s%s: %s\njava.util.concurrent.ExecutionException: %s: %s\n",
                       r->failed, class, message, class, message);
    end();
    abort();
}

void *reassign_need(void *p)
{
    if (!p)
        tool_die("out of memory");
    return p;
}

/* ---- files ---- */

static json_t *load(struct reassign *r, const char *path)
{
    json_error_t error;
    json_t *document = json_load_file(path, 0, &error);
    if (!document && error.line <= 0)
        reassign_fail(r, "%s", error.text);
    if (!document)
        reassign_fail(r, "%s: %s (line %d)", path, error.text, error.line);
    return document;
}

struct reassign_plan reassign_read_plan(struct reassign *r)
{
    struct reassign_plan plan;
    json_t *document = load(r, r->args->plan_file);
    const char *wrong = reassign_plan_parse(document, &r->mem, &plan);
    json_decref(document);
    if (wrong)
        reassign_fail(r, "%s", wrong);
    return plan;
}

const char **reassign_read_topics(struct reassign *r, size_t *n)
{
    const char **topics = NULL;
    json_t *document = load(r, r->args->topics_file);
    const char *wrong = reassign_topics_parse(document, &r->mem, &topics, n);
    json_decref(document);
    if (wrong)
        reassign_fail(r, "%s", wrong);
    return topics;
}

/* ---- the cluster as it is ---- */

kafka_cluster_info_t *reassign_describe(struct reassign *r, const char **topics, size_t n)
{
    kafka_cluster_info_t *info;
    const char *none = NULL;
    kafka_err_t err = kafka_admin_describe(r->admin, topics ? topics : &none, topics ? n : 0,
                                           r->timeout_ms, &info);
    if (err != KAFKA_OK)
        reassign_fail_of(r, err, NULL);
    return info;
}

bool reassign_is_there(const kafka_cluster_info_t *info, int32_t broker)
{
    for (size_t i = 0; i < info->nodes_n; i++)
        if (info->nodes[i].id == broker)
            return true;
    return false;
}

kafka_moving_partitions_t *reassign_moving(struct reassign *r, const struct reassign_plan *plan)
{
    kafka_moving_partitions_t *moving;
    kafka_topic_partition_t *tps = NULL;
    if (plan) {
        tps = reassign_need(arena_array(&r->mem, kafka_topic_partition_t, (size_t)plan->n));
        for (int i = 0; i < plan->n; i++)
            tps[i] = (kafka_topic_partition_t){plan->v[i].topic, plan->v[i].partition};
    }
    kafka_err_t err = kafka_admin_list_reassignments(r->admin, tps, plan ? (size_t)plan->n : 0,
                                                     r->timeout_ms, &moving);
    if (err != KAFKA_OK)
        reassign_fail_of(r, err, NULL);
    return moving;
}

static void add_current(struct reassign *r, const kafka_topic_info_t *t,
                        const struct reassign_plan *plan, struct reassign_plan *out)
{
    if (t->err != KAFKA_OK)
        reassign_fail_of(r, t->err, kafka_err_text(t->err));
    for (size_t i = 0; i < t->partitions_n; i++) {
        const kafka_partition_info_t *p = &t->partitions[i];
        if (!reassign_plan_find(plan, t->name, p->partition))
            continue;
        struct reassign_part *to = &out->v[out->n++];
        to->topic = reassign_need((char *)arena_str(&r->mem, str_of(t->name)).p);
        to->partition = p->partition;
        to->replicas.v = reassign_need(arena_array(&r->mem, int32_t, p->replicas_n));
        for (size_t k = 0; k < p->replicas_n; k++)
            to->replicas.v[to->replicas.n++] = p->replicas[k];
    }
}

struct reassign_plan reassign_current(struct reassign *r, const struct reassign_plan *plan)
{
    size_t n;
    const char **topics = reassign_need(reassign_plan_topics(plan, &r->mem, &n));
    kafka_cluster_info_t *info = reassign_describe(r, topics, n);
    struct reassign_plan now = {
        reassign_need(arena_array(&r->mem, struct reassign_part, (size_t)plan->n)), 0};
    for (size_t i = 0; i < info->topics_n; i++)
        add_current(r, &info->topics[i], plan, &now);
    kafka_cluster_info_free(info);
    reassign_plan_sort(&now);
    char *missing = NULL;
    for (int i = 0; i < plan->n; i++)
        if (!reassign_plan_find(&now, plan->v[i].topic, plan->v[i].partition))
            missing = reassign_need(arena_printf(&r->mem, "%s%s%s-%d", missing ? missing : "",
                                                 missing ? ", " : "", plan->v[i].topic,
                                                 plan->v[i].partition));
    if (missing)
        reassign_fail_of(r, KERR_UNKNOWN_TOPIC_OR_PARTITION,
                         arena_printf(&r->mem, "Unable to find partition: %s", missing));
    return now;
}

void reassign_print_current(struct reassign *r, const struct reassign_plan *current)
{
    printf("Current partition replica assignment\n\n%s\n\nSave this to use as the "
           "--reassignment-json-file option during rollback\n",
           (char *)reassign_need(reassign_plan_format(current, &r->mem)));
}
