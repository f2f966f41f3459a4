/* kafka-reassign-partitions - moves partitions to other brokers, and replicas to other log dirs. */
#include <stdio.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_reassign.h"

enum { WAIT_MS = 10000 };

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct reassign_args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: Server(s) to use for bootstrapping",
        "REQUIRED: The brokers to connect to, host:port[,host:port...]. With --zookeeper only "
        "needed for log dirs."),
    ROW(zookeeper, "zookeeper", TOOL_TEXT, "String: urls",
        "Of 2.x: the ZooKeeper of the cluster; with --generate, --execute and --verify."),
    ROW(config, "command-config", TOOL_TEXT, "String: Admin client property file",
        "Property file with settings for the admin client."),
    ROW(generate, "generate", TOOL_FLAG, NULL,
        "Proposes new places for all partitions of the topics in --topics-to-move-json-file, on "
        "the brokers of --broker-list. Nothing is moved."),
    ROW(execute, "execute", TOOL_FLAG, NULL,
        "Begins the moves of --reassignment-json-file. Does not wait for their end."),
    ROW(verify, "verify", TOOL_FLAG, NULL,
        "Tells how far the moves of --reassignment-json-file are. When none is under way any more, "
        "throttles are removed."),
    ROW(cancel, "cancel", TOOL_FLAG, NULL,
        "Gives up the moves of --reassignment-json-file that are under way, and removes "
        "throttles."),
    ROW(list, "list", TOOL_FLAG, NULL, "Lists all moves between brokers that are under way."),
    ROW(plan_file, "reassignment-json-file", TOOL_TEXT, "String: manual assignment json file path",
        "The moves: {\"version\":1, \"partitions\": [{\"topic\": \"foo\", \"partition\": 1, "
        "\"replicas\": [1,2,3], \"log_dirs\": [\"dir1\",\"dir2\",\"any\"]}]}. log_dirs may be left "
        "out; else each replica has an absolute path or \"any\"."),
    ROW(topics_file, "topics-to-move-json-file", TOOL_TEXT,
        "String: topics to reassign json file path",
        "The topics of --generate: {\"version\":1, \"topics\": [{\"topic\": \"foo\"}]}."),
    ROW(brokers, "broker-list", TOOL_TEXT, "String: brokerlist",
        "The brokers of --generate, by their ids: \"0,1,2\"."),
    ROW(no_racks, "disable-rack-aware", TOOL_FLAG, NULL,
        "--generate is not to look at racks; needed when only some of the brokers have one."),
    ROW(throttle, "throttle", TOOL_INT, "Long: throttle",
        "Moves between brokers are held below this many bytes a second, on each broker. May be "
        "changed by --execute with --additional and the same file. Default: -1, without limit.",
        .min = -1, .max = INT64_MAX),
    ROW(dir_throttle, "replica-alter-log-dirs-throttle", TOOL_INT,
        "Long: replicaAlterLogDirsThrottle",
        "The same for moves between log dirs of one broker. Default: -1, without limit.", .min = -1,
        .max = INT64_MAX),
    ROW(wait_ms, "timeout", TOOL_INT, "Long: timeout",
        "How long to wait, in ms, until all moves between log dirs have begun. Default: 10000.",
        .min = 0, .max = INT32_MAX),
    ROW(additional, "additional", TOOL_FLAG, NULL,
        "--execute may begin moves while others are under way."),
    ROW(preserve_throttles, "preserve-throttles", TOOL_FLAG, NULL,
        "--verify and --cancel leave throttles in place."),
};

static const struct tool tool = {
    .name = "kafka-reassign-partitions",
    .about = "This tool helps to move topic partitions between replicas.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

/* ---- which flags go together ---- */

struct action {
    const char *name;
    void (*run)(struct reassign *r);
    const char *needs[3], *takes[5]; /* ended by NULL */
};
static const struct action actions[] = {
    {"generate",
     reassign_generate,
     {"topics-to-move-json-file", "broker-list"},
     {"disable-rack-aware"}},
    {"execute",
     reassign_execute,
     {"reassignment-json-file"},
     {"additional", "throttle", "replica-alter-log-dirs-throttle", "timeout"}},
    {"verify", reassign_verify, {"reassignment-json-file"}, {"preserve-throttles"}},
    {"cancel", reassign_cancel, {"reassignment-json-file"}, {"preserve-throttles", "timeout"}},
    {"list", reassign_list, {NULL}, {NULL}},
};
enum { ACTIONS = sizeof actions / sizeof *actions };
/* With every action. */
static const char *const common[] = {"bootstrap-server", "zookeeper", "command-config", NULL};

static bool is_in(const char *flag, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(flag, *list) == 0)
            return true;
    return false;
}

static const struct action *find_action(const struct reassign_args *a)
{
    const struct action *found = NULL;
    int n = 0;
    for (int i = 0; i < ACTIONS; i++)
        if (tool_given(&tool, a, actions[i].name)) {
            found = &actions[i];
            n++;
        }
    if (n != 1)
        tool_usage_error(&tool, "Command must include exactly one action: --cancel, --execute, "
                                "--generate, --list, --verify");
    return found;
}

static void check_args(const struct reassign_args *a, const struct action *action)
{
    static const char *const modern[] = {"additional", "preserve-throttles", "cancel", "list",
                                         NULL};
    if (!a->bootstrap && !a->zookeeper)
        tool_usage_error(&tool, "Missing required argument \"[bootstrap-server]\"");
    for (const char *const *flag = action->needs; *flag; flag++)
        if (!tool_given(&tool, a, *flag))
            tool_usage_error(&tool, "Missing required argument \"[%s]\"", *flag);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *flag = options[i].name;
        if (strcmp(flag, action->name) == 0 || is_in(flag, common) || is_in(flag, action->needs) ||
            is_in(flag, action->takes) || !tool_given(&tool, a, flag))
            continue;
        tool_usage_error(&tool, "Option \"[%s]\" can't be used with action \"[%s]\"", flag,
                         action->name);
    }
    tool_excludes(&tool, a, "zookeeper", modern);
}

static kafka_conf_t *make_conf(const struct reassign_args *a)
{
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a->config);
    if (a->bootstrap)
        tool_conf_servers(&tool, conf, a->bootstrap, NULL);
    tool_conf_default(conf, "client.id", "reassign-partitions-tool");
    return conf;
}

int main(int argc, char **argv)
{
    static struct reassign_args a;
    static struct reassign r = {.args = &a, .failed = "Error: "};
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    const struct action *action = find_action(&a);
    check_args(&a, action);
    if (a.throttle == TOOL_NOT_GIVEN)
        a.throttle = -1;
    if (a.dir_throttle == TOOL_NOT_GIVEN)
        a.dir_throttle = -1;
    if (a.wait_ms == TOOL_NOT_GIVEN)
        a.wait_ms = WAIT_MS;
    arena_init(&r.mem, 0);
    kafka_conf_t *conf = make_conf(&a);
    r.timeout_ms = tool_api_timeout(conf);
    if (a.bootstrap)
        r.admin = tool_admin(conf);
    if (a.zookeeper)
        reassign_by_zookeeper(&r);
    else
        action->run(&r);
    kafka_admin_close(r.admin);
    kafka_conf_free(conf);
    arena_free(&r.mem);
    return tool_finish(0);
}
