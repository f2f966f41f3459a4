/* kafka-broker-api-versions - prints which APIs each broker speaks, and which versions of them this
 * project's clients would use. */
#include <stdio.h>
#include <string.h>

#include "protocol/api.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"

struct args {
    const char *bootstrap, *config;
};

static const struct tool_option options[] = {
    TOOL_ROW(struct args, bootstrap, "bootstrap-server", TOOL_TEXT,
             "String: server(s) to use for bootstrapping",
             "The brokers to connect to, host:port[,host:port...].", .required = true),
    TOOL_ROW(struct args, config, "command-config", TOOL_TEXT,
             "String: command config property file",
             "Property file with settings for the admin client."),
};

static const struct tool tool = {
    .name = "kafka-broker-api-versions",
    .about = "This tool helps to retrieve broker version information.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

/* What clients may ask for; the others are between brokers. */
static bool is_client_api(int16_t key)
{
    static const int16_t between_brokers[] = {
        API_LEADER_AND_ISR,  API_STOP_REPLICA, API_UPDATE_METADATA,       API_CONTROLLED_SHUTDOWN,
        API_ALTER_PARTITION, API_ENVELOPE,     API_ALLOCATE_PRODUCER_IDS,
    };
    for (size_t i = 0; i < sizeof between_brokers / sizeof *between_brokers; i++)
        if (between_brokers[i] == key)
            return false;
    return true;
}

static const kafka_api_version_t *find(const kafka_broker_versions_t *b, int16_t key)
{
    for (size_t i = 0; i < b->apis_n; i++)
        if (b->apis[i].key == key)
            return &b->apis[i];
    return NULL;
}

static void print_api(const kafka_api_version_t *v, int16_t key)
{
    const struct api_desc *own = api_find(key);
    if (own)
        printf("\n\t%s(%d): ", own->name, key);
    else
        printf("\n\tUNKNOWN(%d): ", key);
    if (!v) {
        printf("UNSUPPORTED");
        return;
    }
    printf(v->min == v->max ? "%d" : "%d to %d", v->min, v->max);
    if (!own)
        return;
    if (v->max < own->request->min)
        printf(" [unusable: node too old]");
    else if (v->min > own->request->max)
        printf(" [unusable: node too new]");
    else
        printf(" [usable: %d]", v->max < own->request->max ? v->max : own->request->max);
}

static void print_broker(const kafka_broker_versions_t *b)
{
    bool first = true;
    printf("%s:%d (id: %d rack: %s) -> ", b->node.host, b->node.port, b->node.id,
           b->node.rack ? b->node.rack : "null");
    if (b->err != KAFKA_OK) {
        printf("ERROR: %s: %s\n", kafka_err_name(b->err), kafka_err_text(b->err));
        return;
    }
    putchar('(');
    for (int16_t key = 0; key < INT16_MAX; key++) {
        const kafka_api_version_t *v = find(b, key);
        if (!v && !(api_find(key) && is_client_api(key)))
            continue;
        if (!first)
            putchar(',');
        first = false;
        print_api(v, key);
    }
    printf("\n)\n");
}

int main(int argc, char **argv)
{
    static struct args a;
    kafka_broker_versions_t *brokers;
    size_t n;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.config);
    tool_conf_servers(&tool, conf, a.bootstrap, NULL);
    kafka_admin_t *admin = tool_admin(conf);
    kafka_err_t err = kafka_admin_broker_versions(admin, tool_api_timeout(conf), &brokers, &n);
    if (err != KAFKA_OK)
        tool_die("%s", tool_error(err));
    for (size_t i = 0; i < n; i++)
        print_broker(&brokers[i]);
    kafka_broker_versions_free(brokers, n);
    kafka_admin_close(admin);
    kafka_conf_free(conf);
    return tool_finish(0);
}
