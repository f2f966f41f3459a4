/* kafka-preferred-replica-election - the tool of 2.x for kafka-leader-election --election-type
 * preferred: it asks the brokers, or, with --zookeeper, leaves the controller a node that names the
 * partitions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metadata/paths.h"
#include "metadata/store.h"
#include "metadata/znode.h"
#include "tools/tool_conf.h"
#include "tools/tool_elections.h"
#include "tools/tool_io.h"
#include "tools/tool_partition_file.h"
#include "tools/tool_zk_brokers.h"

struct args {
    const char *bootstrap, *zookeeper, *file, *config;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: host:port",
        "The brokers to connect to, host:port[,host:port...]."),
    ROW(zookeeper, "zookeeper", TOOL_TEXT, "String: urls",
        "DEPRECATED, use --bootstrap-server. The ZooKeeper of the cluster, "
        "host:port[,host:port...][/chroot]: the controller finds the partitions there."),
    ROW(file, "path-to-json-file", TOOL_TEXT,
        "String: list of partitions for which preferred replica leader election needs to be "
        "triggered",
        "A file with the partitions: {\"partitions\": [{\"topic\": \"foo\", \"partition\": 1}]}. "
        "Without it: all partitions there are."),
    ROW(config, "admin.config", TOOL_TEXT, "String: config file",
        "Property file with settings for the admin client."),
};

static const struct tool tool = {
    .name = "kafka-preferred-replica-election",
    .about = "This tool makes the first replica of partitions their leader again. "
             "Deprecated: kafka-leader-election --election-type preferred does the same.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

/* ---- by the brokers ---- */

static int ask_brokers(const struct args *a, const struct partition_file *file)
{
    kafka_elections_t *elections;
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a->config);
    tool_conf_servers(&tool, conf, a->bootstrap, NULL);
    kafka_admin_t *admin = tool_admin(conf);
    kafka_err_t err = kafka_admin_elect_leaders(admin, 0, file ? file->v : NULL, file ? file->n : 0,
                                                tool_api_timeout(conf), &elections);
    if (err != KAFKA_OK)
        tool_die("Error while making request: %s", tool_error(err));
    int status =
        tool_elections_print(elections, "preferred replica election", "preferred replica(s)");
    kafka_elections_free(elections);
    kafka_admin_close(admin);
    kafka_conf_free(conf);
    return status;
}

/* ---- by ZooKeeper ---- */

struct named {
    struct store *store;
    struct arena mem;
    struct named_partitions list;
    int cap;
};

static void add(struct named *n, const char *topic, int32_t partition)
{
    if (n->list.n == n->cap) {
        int cap = n->cap ? 2 * n->cap : 64;
        struct named_partition *grown = realloc(n->list.v, (size_t)cap * sizeof *grown);
        if (!grown)
            tool_die("out of memory");
        n->list.v = grown;
        n->cap = cap;
    }
    n->list.v[n->list.n++] =
        (struct named_partition){arena_str(&n->mem, str_of(topic)), partition, {0}};
}

/* 0 with the topic's node, -ENOENT without. */
static int get_topic(struct named *n, const char *topic, struct topic_node *node)
{
    struct bytes data;
    char *path = path_topic(&n->mem, str_of(topic));
    int rc = path ? store_get(n->store, path, &data, NULL) : -ENOMEM;
    if (!rc) {
        rc = znode_topic_decode(data, &n->mem, node);
        free((void *)data.p);
    }
    if (rc && rc != -ENOENT)
        tool_zk_die(strerror(-rc));
    return rc;
}

static void add_all(struct named *n)
{
    struct store_op op = store_op_children(PATH_TOPICS, false);
    struct store_request r = {.ops = &op, .ops_n = 1};
    int rc = store_run(n->store, &r);
    if (rc && rc != -ENOENT)
        tool_zk_die(strerror(-rc));
    for (int i = 0; !rc && i < op.names_n; i++) {
        struct topic_node t;
        if (get_topic(n, op.names[i], &t) == 0)
            for (int p = 0; p < t.partitions_n; p++)
                add(n, op.names[i], t.partitions[p].partition);
    }
    store_request_clear(&r);
}

static bool has_partition(const struct topic_node *t, int32_t partition)
{
    for (int i = 0; i < t->partitions_n; i++)
        if (t->partitions[i].partition == partition)
            return true;
    return false;
}

static void add_those_of(struct named *n, const struct partition_file *file)
{
    for (size_t i = 0; i < file->n; i++) {
        struct topic_node t;
        if (get_topic(n, file->v[i].topic, &t) == 0 && has_partition(&t, file->v[i].partition))
            add(n, file->v[i].topic, file->v[i].partition);
        else
            printf("Skipping preferred replica leader election for partition %s-%d since it "
                   "doesn't exist\n",
                   file->v[i].topic, file->v[i].partition);
    }
}

static void print_names(const char *before, const struct named *n, const char *comma,
                        const char *after)
{
    printf("%s", before);
    for (int i = 0; i < n->list.n; i++)
        printf("%s%.*s-%d", i ? comma : "", STR_ARG(n->list.v[i].topic), n->list.v[i].partition);
    puts(after);
}

static void write_node(struct named *n)
{
    struct store_op op =
        store_op_create(PATH_PREFERRED, znode_partitions_encode(n->list, &n->mem), 0);
    struct store_request r = {.ops = &op, .ops_n = 1};
    int rc = store_run(n->store, &r);
    store_request_clear(&r);
    if (rc == -EEXIST)
        tool_die("Preferred replica leader election currently in progress: %s is there. Aborting "
                 "operation",
                 PATH_PREFERRED);
    if (rc)
        tool_zk_die(strerror(-rc));
    print_names("Created preferred replica election path with ", n, ",", "");
    print_names("Successfully started preferred replica election for partitions Set(", n, ", ",
                ")");
}

static int ask_zookeeper(const struct args *a, const struct partition_file *file)
{
    struct named n = {0};
    arena_init(&n.mem, 0);
    fprintf(stderr, "Warning: --zookeeper is deprecated and will be removed in a future version of "
                    "Kafka.\nUse --bootstrap-server instead to specify a broker to connect to.\n");
    n.store = tool_zk_open_as(a->zookeeper, a->config);
    if (file)
        add_those_of(&n, file);
    else
        add_all(&n);
    write_node(&n);
    tool_zk_close(n.store);
    free(n.list.v);
    arena_free(&n.mem);
    return 0;
}

int main(int argc, char **argv)
{
    static struct args a;
    struct partition_file file = {0};
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    if (!a.bootstrap == !a.zookeeper)
        tool_usage_error(&tool, "Exactly one of --bootstrap-server or --zookeeper must be given");
    if (a.file)
        file = partition_file_read(a.file, false);
    int status = (a.zookeeper ? ask_zookeeper : ask_brokers)(&a, a.file ? &file : NULL);
    if (a.file)
        partition_file_free(&file);
    return tool_finish(status);
}
