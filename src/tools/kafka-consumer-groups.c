/* kafka-consumer-groups - lists groups, shows where they are, moves and deletes their offsets. */
#include <stdio.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_groups.h"
#include "tools/tool_io.h"

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct groups_args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: server to connect to",
        "The brokers to connect to, host:port[,host:port...].", .required = true),
    ROW(command_config, "command-config", TOOL_TEXT, "String: command config property file",
        "Property file with settings for the admin client and the consumer."),
    ROW(timeout, "timeout", TOOL_INT, "Long: timeout (ms)",
        "How long to wait for the brokers, in each call.", .fallback = "5000", .min = 0,
        .max = INT32_MAX),
    ROW(list, "list", TOOL_FLAG, NULL, "List all consumer groups."),
    ROW(describe, "describe", TOOL_FLAG, NULL,
        "Show the groups' partitions with their offsets and lags, or members, or state."),
    ROW(delete_groups, "delete", TOOL_FLAG, NULL,
        "Delete groups, with all their offsets; they must have no members."),
    ROW(reset, "reset-offsets", TOOL_FLAG, NULL,
        "Move the groups' offsets; they must have no members. Needs a scope (--topic, "
        "--all-topics, or that of --from-file) and where to: --to-earliest, --to-latest, "
        "--to-current, --to-offset, --shift-by, --to-datetime, --by-duration or --from-file. "
        "Without --execute it only shows what would be done."),
    ROW(delete_offsets, "delete-offsets", TOOL_FLAG, NULL,
        "Delete a group's offsets of --topic; no member may be subscribed to it."),
    ROW(group, "group", TOOL_TEXTS, "String: consumer group",
        "The group to act on. May be repeated."),
    ROW(all_groups, "all-groups", TOOL_FLAG, NULL, "Act on all consumer groups."),
    ROW(topic, "topic", TOOL_TEXTS, "String: topic",
        "A topic, or some of its partitions: topic1:0,1,2. May be repeated."),
    ROW(all_topics, "all-topics", TOOL_FLAG, NULL,
        "With --reset-offsets: all topics that the group has offsets of."),
    ROW(members, "members", TOOL_FLAG, NULL, "With --describe: show the members."),
    ROW(offsets, "offsets", TOOL_FLAG, NULL, "With --describe: show the offsets (the default)."),
    ROW(state, "state", TOOL_MAYBE, "String",
        "With --describe: show the state. With --list: show the states too, or only the groups in "
        "one of those given, as in --state stable,empty."),
    ROW(type, "type", TOOL_MAYBE, "String",
        "With --list: show the types too, or only the groups of those given: classic, consumer."),
    ROW(verbose, "verbose", TOOL_FLAG, NULL,
        "With --describe --members: show each member's partitions."),
    ROW(dry_run, "dry-run", TOOL_FLAG, NULL, "With --reset-offsets: change nothing."),
    ROW(execute, "execute", TOOL_FLAG, NULL, "With --reset-offsets: do it."),
    ROW(export_csv, "export", TOOL_FLAG, NULL,
        "With --reset-offsets: print lines of CSV, which --from-file reads."),
    ROW(to_offset, "to-offset", TOOL_INT, "Long: offset", "Reset to this offset."),
    ROW(from_file, "from-file", TOOL_TEXT, "String: path to CSV file",
        "Reset to what the file says: topic,partition,offset in each line, for several groups "
        "group,topic,partition,offset."),
    ROW(to_datetime, "to-datetime", TOOL_TEXT, "String: datetime",
        "Reset to the first record at or after YYYY-MM-DDTHH:mm:SS.sss (UTC, or with a zone)."),
    ROW(by_duration, "by-duration", TOOL_TEXT, "String: duration",
        "Reset to the first record of this time until now, as in P1DT2H30M."),
    ROW(to_earliest, "to-earliest", TOOL_FLAG, NULL, "Reset to the earliest offset."),
    ROW(to_latest, "to-latest", TOOL_FLAG, NULL, "Reset to the latest offset."),
    ROW(to_current, "to-current", TOOL_FLAG, NULL,
        "Reset to the committed offset, or to the latest where there is none."),
    ROW(shift_by, "shift-by", TOOL_INT, "Long: number-of-offsets",
        "Reset to the committed offset plus this number, which may be negative."),
};

static const struct tool tool = {
    .name = "kafka-consumer-groups",
    .about = "This tool helps to list all consumer groups, describe a consumer group, delete "
             "consumer group info, or reset consumer group offsets.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

/* ---- which flags go together ---- */

static void check_action(const struct groups_args *a)
{
    if (a->list + a->describe + a->delete_groups + a->reset + a->delete_offsets != 1)
        tool_usage_error(&tool, "Command must include exactly one action: --list, --describe, "
                                "--delete, --reset-offsets, --delete-offsets");
    const struct {
        bool given, fits;
        const char *name;
    } parts[] = {{a->members, a->describe, "members"},
                 {a->offsets, a->describe, "offsets"},
                 {a->verbose, a->describe, "verbose"},
                 {a->state != NULL, a->describe || a->list, "state"},
                 {a->type != NULL, a->list, "type"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].given && !parts[i].fits)
            tool_usage_error(&tool,
                             "Option(s) [%s] are unavailable given other options on the command "
                             "line",
                             parts[i].name);
}

static void check_groups(const struct groups_args *a)
{
    static const char *const apart[] = {"all-groups", "list", NULL};
    static const char *const no_topic[] = {"list", "describe", NULL};
    const char *needs = a->describe        ? "describe"
                        : a->delete_groups ? "delete"
                        : a->reset         ? "reset-offsets"
                                           : NULL;
    if (needs && a->group.n == 0 && !a->all_groups)
        tool_usage_error(&tool, "Option [%s] takes one of these options: [group], [all-groups]",
                         needs);
    if (a->delete_offsets && (a->group.n == 0 || a->topic.n == 0))
        tool_usage_error(&tool,
                         "Option [delete-offsets] takes the following options: [group], [topic]");
    if (a->delete_groups && a->topic.n)
        tool_usage_error(&tool, "The consumer does not support topic-specific offset deletion "
                                "from a consumer group.");
    tool_excludes(&tool, a, "group", apart);
    tool_excludes(&tool, a, "topic", no_topic);
}

static void check_describe(const struct groups_args *a)
{
    if (!a->describe)
        return;
    if (a->members + a->offsets + (a->state != NULL) > 1)
        tool_usage_error(&tool, "Option [describe] takes at most one of these options: [members], "
                                "[offsets], [state]");
    if (a->state && *a->state)
        tool_usage_error(&tool, "Option [describe] does not take a value for [state]");
}

static void check_reset(const struct groups_args *a)
{
    static const char *const scenarios[] = {"to-offset",   "shift-by",    "to-datetime",
                                            "by-duration", "to-earliest", "to-latest",
                                            "to-current",  "from-file",   NULL};
    static const char *const no_all_topics[] = {"topic", NULL};
    size_t given = 0;
    if (!a->reset)
        return;
    if (a->dry_run && a->execute)
        tool_usage_error(&tool,
                         "Option [reset-offsets] only accepts one of [execute] and [dry-run]");
    for (size_t i = 0; scenarios[i]; i++) {
        given += tool_given(&tool, a, scenarios[i]);
        tool_excludes(&tool, a, scenarios[i], scenarios + i + 1);
    }
    if (given == 0)
        tool_usage_error(&tool,
                         "Option [reset-offsets] requires one of the following scenarios: "
                         "[to-offset], [shift-by], [to-datetime], [by-duration], [to-earliest], "
                         "[to-latest], [to-current], [from-file]");
    tool_excludes(&tool, a, "all-topics", no_all_topics);
    if (a->topic.n == 0 && !a->all_topics && !a->from_file)
        tool_usage_error(&tool,
                         "One of the reset scopes should be defined: --all-topics, --topic.");
    if (!a->dry_run && !a->execute)
        fputs("WARN: No action will be performed as the --execute option is missing. Add --dry-run "
              "if that is what you want.\n",
              stderr);
}

int main(int argc, char **argv)
{
    static struct groups_args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    check_action(&a);
    check_groups(&a);
    check_describe(&a);
    check_reset(&a);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.command_config);
    tool_conf_servers(&tool, conf, a.bootstrap, NULL);
    tool_conf_set(conf, "allow.auto.create.topics", "false");
    struct groups g = {.tool = &tool,
                       .args = &a,
                       .admin = tool_admin(conf),
                       .consumer = tool_consumer(conf),
                       .timeout_ms = a.timeout};
    if (a.list)
        groups_list(&g);
    else if (a.describe)
        groups_describe(&g);
    else if (a.delete_groups)
        groups_delete(&g);
    else if (a.reset)
        groups_reset(&g);
    else
        groups_delete_offsets(&g);
    kafka_consumer_close(g.consumer);
    kafka_admin_close(g.admin);
    kafka_conf_free(conf);
    return tool_finish(g.failed ? 1 : 0);
}
