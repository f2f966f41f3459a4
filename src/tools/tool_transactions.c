/* tool_transactions.c - kafka-transactions: ending a transaction by hand, and finding those that
 * nobody ends any more. */
#include "tools/tool_transactions.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/tool_conf.h"
#include "tools/tool_io.h"

enum { MS_PER_MINUTE = 60000 };

void transactions_check(kafka_err_t err, const char *fmt, ...)
{
    char what[512];
    va_list args;
    if (err == KAFKA_OK)
        return;
    const char *why = tool_error(err);
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    tool_die("%s: %s", what, why);
}

/* ---- abort ---- */

static kafka_producers_t *describe(struct transactions *t, const kafka_topic_partition_t *tp)
{
    kafka_producers_t *found;
    kafka_err_t err = kafka_admin_describe_producers(t->admin, -1, tp, 1, t->timeout_ms, &found);
    if (err == KAFKA_OK)
        err = found->v->err;
    transactions_check(err, "Failed to validate producer state for partition %s-%d", tp->topic,
                       (int)tp->partition);
    return found;
}

/* Whose transaction begins there. */
static kafka_producer_state_t find_by_offset(struct transactions *t,
                                             const kafka_topic_partition_t *tp)
{
    kafka_producers_t *found = describe(t, tp);
    for (size_t i = 0; i < found->v->n; i++)
        if (found->v->v[i].txn_start_offset == t->args->start_offset) {
            kafka_producer_state_t state = found->v->v[i];
            kafka_producers_free(found);
            return state;
        }
    tool_die("Could not find any open transactions starting at offset %lld on partition %s-%d",
             (long long)t->args->start_offset, tp->topic, (int)tp->partition);
}

void transactions_abort(struct transactions *t)
{
    const struct transactions_args *a = t->args;
    kafka_topic_partition_t tp = {a->topic, (int32_t)a->partition};
    kafka_producer_state_t s = {.producer_id = a->producer_id,
                                .producer_epoch = (int32_t)a->producer_epoch,
                                .coordinator_epoch = (int32_t)a->coordinator_epoch};
    if (a->start_offset != TOOL_NOT_GIVEN)
        s = find_by_offset(t, &tp);
    transactions_check(kafka_admin_abort_transaction(t->admin, tp.topic, tp.partition,
                                                     s.producer_id, s.producer_epoch,
                                                     s.coordinator_epoch, t->timeout_ms),
                       "Failed to abort transaction of producer %lld on partition %s-%d",
                       (long long)s.producer_id, tp.topic, (int)tp.partition);
}

/* ---- find-hanging ---- */

struct candidate { /* an open transaction that has been quiet for long */
    kafka_topic_partition_t tp;
    kafka_producer_state_t state;
    bool known; /* it is in a transaction that its coordinator knows of */
};

struct search {
    struct transactions *t;
    int64_t now_ms;
    kafka_topic_partition_t *tps;
    size_t tps_n;
    struct candidate *v;
    size_t n;
};

static void *must(void *p)
{
    if (!p)
        tool_die("out of memory");
    return p;
}

static bool has_replica(const kafka_partition_info_t *p, int64_t broker)
{
    for (size_t i = 0; i < p->replicas_n; i++)
        if (p->replicas[i] == broker)
            return true;
    return broker == TOOL_NOT_GIVEN;
}

static void gather_partitions(struct search *s, const kafka_cluster_info_t *info)
{
    const struct transactions_args *a = s->t->args;
    for (size_t i = 0; i < info->topics_n; i++) {
        const kafka_topic_info_t *topic = &info->topics[i];
        if (a->topic)
            transactions_check(topic->err, "Failed to describe topic %s", topic->name);
        s->tps = must(realloc(s->tps, (s->tps_n + topic->partitions_n + 1) * sizeof *s->tps));
        for (size_t p = 0; p < topic->partitions_n; p++) {
            const kafka_partition_info_t *at = &topic->partitions[p];
            bool wanted = a->partition == TOOL_NOT_GIVEN || a->partition == at->partition;
            if (wanted && has_replica(at, a->broker))
                s->tps[s->tps_n++] = (kafka_topic_partition_t){topic->name, at->partition};
        }
    }
}

static void gather_candidates(struct search *s, const kafka_producers_t *found)
{
    const struct transactions_args *a = s->t->args;
    int64_t longest = a->max_timeout * MS_PER_MINUTE;
    for (size_t i = 0; i < found->n; i++) {
        const kafka_partition_producers_t *p = &found->v[i];
        transactions_check(p->err, "Failed to describe producers for partition %s-%d", p->topic,
                           (int)p->partition);
        s->v = must(realloc(s->v, (s->n + p->n + 1) * sizeof *s->v));
        for (size_t k = 0; k < p->n; k++)
            if (p->v[k].txn_start_offset >= 0 && s->now_ms - p->v[k].last_timestamp_ms > longest)
                s->v[s->n++] = (struct candidate){{p->topic, p->partition}, p->v[k], false};
    }
}

static bool is_in(const kafka_transaction_info_t *t, const kafka_topic_partition_t *tp)
{
    for (size_t i = 0; i < t->partitions_n; i++)
        if (t->partitions[i].partition == tp->partition &&
            strcmp(t->partitions[i].topic, tp->topic) == 0)
            return true;
    return false;
}

/* Those whose coordinator has them in a transaction will be ended by it. */
static void ask_coordinators(struct search *s)
{
    kafka_transaction_list_t *list;
    kafka_transaction_infos_t *infos;
    int64_t *producers = must(calloc(s->n, sizeof *producers));
    for (size_t i = 0; i < s->n; i++)
        producers[i] = s->v[i].state.producer_id;
    kafka_err_t err = kafka_admin_list_transactions(s->t->admin, NULL, 0, producers, s->n, -1,
                                                    s->t->timeout_ms, &list);
    transactions_check(err, "Failed to list transactions for %zu producers", s->n);
    for (size_t i = 0; i < list->errors_n; i++)
        transactions_check(list->errors[i].err, "Failed to list transactions of broker %d",
                           (int)list->errors[i].broker);
    const char **ids = must(calloc(list->n + 1, sizeof *ids));
    for (size_t i = 0; i < list->n; i++)
        ids[i] = list->v[i].transactional_id;
    err = kafka_admin_describe_transactions(s->t->admin, ids, list->n, s->t->timeout_ms, &infos);
    transactions_check(err, "Failed to describe %zu transactions", list->n);
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < infos->n; k++)
            if (infos->v[k].err == KAFKA_OK &&
                infos->v[k].producer_id == s->v[i].state.producer_id &&
                is_in(&infos->v[k], &s->v[i].tp))
                s->v[i].known = true;
    kafka_transaction_infos_free(infos);
    kafka_transaction_list_free(list);
    free(ids);
    free(producers);
}

static void print_hanging(const struct search *s)
{
    static const char *const header[] = {"Topic",         "Partition",        "ProducerId",
                                         "ProducerEpoch", "CoordinatorEpoch", "StartOffset",
                                         "LastTimestamp", "Duration(min)"};
    struct tool_table *table = tool_table_new(header, sizeof header / sizeof *header);
    for (size_t i = 0; i < s->n; i++) {
        const kafka_producer_state_t *p = &s->v[i].state;
        if (s->v[i].known)
            continue;
        tool_table_put(table, "%s", s->v[i].tp.topic);
        tool_table_put(table, "%d", (int)s->v[i].tp.partition);
        tool_table_put(table, "%lld", (long long)p->producer_id);
        tool_table_put(table, "%d", (int)p->producer_epoch);
        tool_table_put(table, "%d", (int)p->coordinator_epoch);
        tool_table_put(table, "%lld", (long long)p->txn_start_offset);
        tool_table_put(table, "%lld", (long long)p->last_timestamp_ms);
        tool_table_put(table, "%lld",
                       (long long)((s->now_ms - p->last_timestamp_ms) / MS_PER_MINUTE));
    }
    tool_table_print(table);
}

void transactions_find_hanging(struct transactions *t)
{
    const struct transactions_args *a = t->args;
    struct search s = {.t = t, .now_ms = (int64_t)time(NULL) * 1000};
    kafka_cluster_info_t *info;
    kafka_producers_t *found = NULL;
    transactions_check(kafka_admin_describe(t->admin, a->topic ? &a->topic : NULL, a->topic ? 1 : 0,
                                            t->timeout_ms, &info),
                       "Failed to list topics");
    gather_partitions(&s, info);
    int32_t broker = a->broker == TOOL_NOT_GIVEN ? -1 : (int32_t)a->broker;
    if (s.tps_n > 0) {
        transactions_check(
            kafka_admin_describe_producers(t->admin, broker, s.tps, s.tps_n, t->timeout_ms, &found),
            "Failed to describe producers");
        gather_candidates(&s, found);
    }
    if (s.n > 0)
        ask_coordinators(&s);
    print_hanging(&s);
    kafka_producers_free(found);
    kafka_cluster_info_free(info);
    free(s.tps);
    free(s.v);
}
