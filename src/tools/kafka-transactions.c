/* kafka-transactions - lists and describes transactions, and ends those that nobody ends any more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_transactions.h"

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct transactions_args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "host:port",
        "The brokers to connect to, host:port[,host:port...].", .required = true),
    ROW(config, "command-config", TOOL_TEXT, "FILE",
        "A property file with settings for the admin client."),
    ROW(duration, "duration-filter", TOOL_INT, "DURATION_FILTER",
        "list: only transactions that have gone on for longer than this (ms); negative: all."),
    ROW(id, "transactional-id", TOOL_TEXT, "TRANSACTIONAL_ID", "describe: the transactional id."),
    ROW(topic, "topic", TOOL_TEXT, "TOPIC", "describe-producers, abort, find-hanging: the topic."),
    ROW(partition, "partition", TOOL_INT, "PARTITION",
        "describe-producers, abort, find-hanging: the partition.", .min = 0, .max = INT32_MAX),
    ROW(broker, "broker-id", TOOL_INT, "BROKER_ID",
        "describe-producers: the replica to ask (default: the leader). find-hanging: the broker "
        "whose replicas are looked at.",
        .min = 0, .max = INT32_MAX),
    ROW(start_offset, "start-offset", TOOL_INT, "START_OFFSET",
        "abort: the offset at which the transaction begins.", .min = 0, .max = INT64_MAX),
    ROW(producer_id, "producer-id", TOOL_INT, "PRODUCER_ID", "abort: the producer's id."),
    ROW(producer_epoch, "producer-epoch", TOOL_INT, "PRODUCER_EPOCH",
        "abort: the producer's epoch.", .min = 0, .max = INT16_MAX),
    ROW(coordinator_epoch, "coordinator-epoch", TOOL_INT, "COORDINATOR_EPOCH",
        "abort: the epoch of the coordinator that sent the last marker; negative: none did.",
        .min = INT32_MIN, .max = INT32_MAX),
    ROW(max_timeout, "max-transaction-timeout", TOOL_INT, "MAX_TRANSACTION_TIMEOUT",
        "find-hanging: a transaction that was quiet for longer than this many minutes may hang.",
        .fallback = "15", .min = 0, .max = INT32_MAX),
};

static const struct tool tool = {
    .name = "kafka-transactions",
    .about = "This tool is used to analyze the transactional state of producers in the cluster. It "
             "can be used to detect and recover from hanging transactions.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
    .terse = true,
    .words = "{list | describe | describe-producers | abort | find-hanging}",
    .words_at = offsetof(struct transactions_args, words),
};

/* ---- list ---- */

static void list(struct transactions *t)
{
    static const char *const header[] = {"TransactionalId", "Coordinator", "ProducerId",
                                         "TransactionState"};
    int64_t longer = t->args->duration == TOOL_NOT_GIVEN ? -1 : t->args->duration;
    kafka_transaction_list_t *all;
    transactions_check(
        kafka_admin_list_transactions(t->admin, NULL, 0, NULL, 0, longer, t->timeout_ms, &all),
        "Failed to list transactions");
    for (size_t i = 0; i < all->errors_n; i++)
        transactions_check(all->errors[i].err, "Failed to list transactions of broker %d",
                           (int)all->errors[i].broker);
    struct tool_table *table = tool_table_new(header, sizeof header / sizeof *header);
    for (size_t i = 0; i < all->n; i++) {
        tool_table_put(table, "%s", all->v[i].transactional_id);
        tool_table_put(table, "%" PRId32, all->v[i].coordinator);
        tool_table_put(table, "%" PRId64, all->v[i].producer_id);
        tool_table_put(table, "%s", all->v[i].state);
    }
    tool_table_print(table);
    kafka_transaction_list_free(all);
}

/* ---- describe ---- */

static void put_times(struct tool_table *table, const kafka_transaction_info_t *i)
{
    int64_t now = (int64_t)time(NULL) * 1000;
    if (i->start_ms < 0) {
        tool_table_put(table, "None");
        tool_table_put(table, "None");
        return;
    }
    tool_table_put(table, "%" PRId64, i->start_ms);
    tool_table_put(table, "%" PRId64, now > i->start_ms ? now - i->start_ms : 0);
}

static void put_partitions(struct tool_table *table, const kafka_transaction_info_t *i)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        tool_die("out of memory");
    for (size_t k = 0; k < i->partitions_n; k++)
        fprintf(f, "%s%s-%" PRId32, k ? "," : "", i->partitions[k].topic,
                i->partitions[k].partition);
    fclose(f);
    tool_table_put(table, "%s", text ? text : "");
    free(text);
}

static void describe(struct transactions *t)
{
    static const char *const header[] = {"CoordinatorId",
                                         "TransactionalId",
                                         "ProducerId",
                                         "ProducerEpoch",
                                         "TransactionState",
                                         "TransactionTimeoutMs",
                                         "CurrentTransactionStartTimeMs",
                                         "TransactionDurationMs",
                                         "TopicPartitions"};
    kafka_transaction_infos_t *infos;
    kafka_err_t err =
        kafka_admin_describe_transactions(t->admin, &t->args->id, 1, t->timeout_ms, &infos);
    if (err == KAFKA_OK)
        err = infos->v->err;
    transactions_check(err, "Failed to describe transaction state of transactional-id `%s`",
                       t->args->id);
    const kafka_transaction_info_t *i = infos->v;
    struct tool_table *table = tool_table_new(header, sizeof header / sizeof *header);
    tool_table_put(table, "%" PRId32, i->coordinator);
    tool_table_put(table, "%s", i->transactional_id);
    tool_table_put(table, "%" PRId64, i->producer_id);
    tool_table_put(table, "%" PRId32, i->producer_epoch);
    tool_table_put(table, "%s", i->state);
    tool_table_put(table, "%" PRId32, i->timeout_ms);
    put_times(table, i);
    put_partitions(table, i);
    tool_table_print(table);
    kafka_transaction_infos_free(infos);
}

/* ---- describe-producers ---- */

static void describe_producers(struct transactions *t)
{
    static const char *const header[] = {
        "ProducerId",   "ProducerEpoch", "LatestCoordinatorEpoch",
        "LastSequence", "LastTimestamp", "CurrentTransactionStartOffset"};
    kafka_topic_partition_t tp = {t->args->topic, (int32_t)t->args->partition};
    int32_t broker = t->args->broker == TOOL_NOT_GIVEN ? -1 : (int32_t)t->args->broker;
    kafka_producers_t *found;
    kafka_err_t err =
        kafka_admin_describe_producers(t->admin, broker, &tp, 1, t->timeout_ms, &found);
    if (err == KAFKA_OK)
        err = found->v->err;
    if (broker < 0)
        transactions_check(err,
                           "Failed to describe producers for partition %s-%" PRId32 " on leader",
                           tp.topic, tp.partition);
    else
        transactions_check(
            err, "Failed to describe producers for partition %s-%" PRId32 " on broker %" PRId32,
            tp.topic, tp.partition, broker);
    struct tool_table *table = tool_table_new(header, sizeof header / sizeof *header);
    for (size_t i = 0; i < found->v->n; i++) {
        const kafka_producer_state_t *p = &found->v->v[i];
        tool_table_put(table, "%" PRId64, p->producer_id);
        tool_table_put(table, "%" PRId32, p->producer_epoch);
        tool_table_put(table, "%" PRId32, p->coordinator_epoch);
        tool_table_put(table, "%" PRId32, p->last_sequence);
        tool_table_put(table, "%" PRId64, p->last_timestamp_ms);
        if (p->txn_start_offset >= 0)
            tool_table_put(table, "%" PRId64, p->txn_start_offset);
        else
            tool_table_put(table, "None");
    }
    tool_table_print(table);
    kafka_producers_free(found);
}

/* ---- commands ---- */

static const struct command {
    const char *name;
    void (*run)(struct transactions *t);
    const char *needs[3]; /* flags */
} commands[] = {
    {"list", list, {NULL}},
    {"describe", describe, {"transactional-id"}},
    {"describe-producers", describe_producers, {"topic", "partition"}},
    {"abort", transactions_abort, {"topic", "partition"}},
    {"find-hanging", transactions_find_hanging, {NULL}},
};

static const struct command *read_command(const struct transactions_args *a)
{
    if (a->words.n == 0)
        tool_usage_error(&tool, "too few arguments");
    if (a->words.n > 1)
        tool_usage_error(&tool, "unrecognized arguments: '%s'", a->words.v[1]);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, a->words.v[0]) == 0)
            return &commands[i];
    tool_usage_error(&tool,
                     "invalid choice: '%s' (choose from 'list', 'describe', 'describe-producers', "
                     "'abort', 'find-hanging')",
                     a->words.v[0]);
}

/* By its first offset, or by all of the other three. */
static void check_abort(const struct transactions_args *a)
{
    if (a->start_offset != TOOL_NOT_GIVEN)
        return;
    if (a->producer_id == TOOL_NOT_GIVEN)
        tool_usage_error(&tool, "The transaction to abort must be identified either with "
                                "--start-offset (for brokers on 3.0 or above) or with "
                                "--producer-id, --producer-epoch, and --coordinator-epoch (for "
                                "older brokers)");
    if (a->producer_epoch == TOOL_NOT_GIVEN)
        tool_usage_error(&tool, "Missing required argument --producer-epoch");
    if (a->coordinator_epoch == TOOL_NOT_GIVEN)
        tool_usage_error(&tool, "Missing required argument --coordinator-epoch");
}

static void check_flags(const struct command *c, const struct transactions_args *a)
{
    for (size_t i = 0; i < sizeof c->needs / sizeof *c->needs && c->needs[i]; i++)
        if (!tool_given(&tool, a, c->needs[i]))
            tool_usage_error(&tool, "argument --%s is required", c->needs[i]);
    if (c->run == transactions_abort)
        check_abort(a);
    if (c->run != transactions_find_hanging)
        return;
    if (!a->topic && a->partition != TOOL_NOT_GIVEN)
        tool_usage_error(&tool, "The --partition argument requires --topic to be provided");
    if (!a->topic && a->broker == TOOL_NOT_GIVEN)
        tool_usage_error(&tool, "The `find-hanging` command requires either --topic or "
                                "--broker-id to limit the scope of the search");
}

int main(int argc, char **argv)
{
    static struct transactions_args a;
    tool_start();
    if (argc == 1)
        tool_usage_error(&tool, "too few arguments");
    tool_parse(&tool, argc, argv, &a);
    const struct command *command = read_command(&a);
    check_flags(command, &a);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.config);
    tool_conf_servers(&tool, conf, a.bootstrap, NULL);
    struct transactions t = {
        .args = &a, .admin = tool_admin(conf), .timeout_ms = tool_api_timeout(conf)};
    command->run(&t);
    kafka_admin_close(t.admin);
    kafka_conf_free(conf);
    return tool_finish(0);
}
