/* config_docs.c - the page docs/configuration.md, printed from the tables (kafkad
 * --print-config-docs). A unit test keeps page and tables equal. */
#include <string.h>

#include "server/config_value.h"

static const char *update_text(const struct config_row *row)
{
    switch (row->update) {
    case UPDATE_READ_ONLY:
        return "read-only";
    case UPDATE_PER_BROKER:
        return "per-broker";
    case UPDATE_CLUSTER_WIDE:
        return "cluster-wide";
    }
    return "";
}

/* A default as the page shows it. */
static void put_default(struct buf *out, const char *text)
{
    if (!text)
        buf_printf(out, "null");
    else if (!*text)
        buf_printf(out, "empty");
    else
        buf_printf(out, "`%s`", text);
}

static void put_valid(struct buf *out, enum config_type type, const struct config_valid *valid)
{
    const char *allowed = valid->problem ? valid->problem("?") : NULL;
    if (allowed)
        buf_printf(out, "%s", allowed);
    else
        config_valid_describe(type, valid, out);
}

/* Why settings do nothing: by the beginning of their names, the first that fits. NULL ends. */
static const struct {
    const char *prefix;
    const char *why;
} idle_reasons[] = {
    {"zookeeper.clientCnxnSocket", "of ZooKeeper's client for Java"},
    {"zookeeper.sync.time.ms", "nothing in Kafka reads it any more"},
    {"zookeeper.", "there is no TLS towards ZooKeeper"},
    {"ssl.engine.factory.class", "Java classes cannot be loaded here"},
    {"ssl.", "of Java's TLS: OpenSSL has no such choice"},
    {"sasl.kerberos.", "there is no GSSAPI (Kerberos)"},
    {"sasl.client.callback.handler.class", "Java classes cannot be loaded here"},
    {"sasl.login.callback.handler.class", "Java classes cannot be loaded here"},
    {"sasl.login.class", "Java classes cannot be loaded here"},
    {"sasl.server.callback.handler.class", "Java classes cannot be loaded here"},
    {"sasl.login.refresh.", "each login takes a token of its own"},
    {"sasl.login.", "an OAuth provider is asked through files, and not by HTTP"},
    {"sasl.oauthbearer.jwks.endpoint.", "the provider's keys are read from a file"},
    {"password.encoder.", "passwords cannot be changed while running: give them in the file"},
    {"alter.config.policy.class.name", "Java classes cannot be loaded here"},
    {"auto.include.jmx.reporter", "there is no JVM here"},
    {"client.quota.callback.class", "Java classes cannot be loaded here"},
    {"create.topic.policy.class.name", "Java classes cannot be loaded here"},
    {"principal.builder.class", "Java classes cannot be loaded here"},
    {"security.providers", "Java classes cannot be loaded here"},
    {"kafka.metrics.", "there are no reporters here: metrics.http.listener serves the metrics"},
    {"metric", "there are no reporters here: metrics.http.listener serves the metrics"},
    {"delete.records.purgatory.", "what has waited leaves its lists at once: nothing to purge"},
    {"fetch.purgatory.", "what has waited leaves its lists at once: nothing to purge"},
    {"producer.purgatory.", "what has waited leaves its lists at once: nothing to purge"},
    {"group.coordinator.append.linger.ms", "each step of a group is written at once"},
    {"group.coordinator.new.enable", "group.coordinator.rebalance.protocols decides alone"},
    {"log.dir.failure.timeout.ms", "of KRaft: ZooKeeper is told of a failed folder at once"},
    {"log.message.format.version", "only format 2 is written"},
    {"message.format.version", "only format 2 is written"},
    {"local.", "there is no tiered storage"},
    {"remote.", "there is no tiered storage"},
    {"unstable.api.versions.enable", "no version is kept back"},
    {NULL, NULL},
};

const char *config_idle_reason(const char *name)
{
    int i = 0;
    while (idle_reasons[i].prefix &&
           strncmp(name, idle_reasons[i].prefix, strlen(idle_reasons[i].prefix)) != 0)
        i++;
    return idle_reasons[i].why;
}

static void put_effect(struct buf *out, const char *name, bool has_effect)
{
    const char *why = has_effect ? NULL : config_idle_reason(name);
    if (has_effect)
        buf_printf(out, ".\n\n");
    else
        buf_printf(out, ". *No effect: %s.*\n\n", why ? why : "");
}

/* All that do nothing, once more, reason by reason. */
static void put_idle(struct buf *out)
{
    int n, topics_n;
    const struct config_row *rows = config_rows(&n);
    const struct topic_config_row *topics = topic_config_rows(&topics_n);
    buf_printf(out, "## Without effect\n\nAccepted and checked, and why they do nothing:\n\n");
    for (int r = 0; idle_reasons[r].prefix; r++) {
        const char *why = idle_reasons[r].why;
        bool told = false, any = false;
        for (int k = 0; k < r; k++)
            told |= strcmp(idle_reasons[k].why, why) == 0;
        for (int i = 0; !told && i < n + topics_n; i++) {
            bool of_topic = i >= n;
            const char *name = of_topic ? topics[i - n].name : rows[i].name;
            bool idle = of_topic ? !topics[i - n].has_effect
                                 : !rows[i].has_effect && !(rows[i].flags & CONFIG_HIDDEN);
            const char *own = idle ? config_idle_reason(name) : NULL;
            if (!own || strcmp(own, why) != 0)
                continue;
            if (!any)
                buf_printf(out, "- %s: ", why);
            buf_printf(out, "%s`%s`", any ? ", " : "", name);
            any = true;
        }
        if (any)
            buf_printf(out, "\n");
    }
}

static void put_broker_row(struct buf *out, const struct config_row *row)
{
    buf_printf(out, "### %s\n\n%s\n\n", row->name, row->doc);
    buf_printf(out, "Default ");
    put_default(out, row->default_text);
    if (row->alone_text)
        buf_printf(out, " (without `zookeeper.connect`: `%s`)", row->alone_text);
    buf_printf(out, "; ");
    put_valid(out, row->type, &row->valid);
    buf_printf(out, "; %s", update_text(row));
    if (row->topic_name)
        buf_printf(out, "; of a topic: `%s`", row->topic_name);
    put_effect(out, row->name, row->has_effect);
}

static void put_topic_row(struct buf *out, const struct topic_config_row *row)
{
    buf_printf(out, "### %s\n\n%s\n\nDefault ", row->name, row->doc);
    if (row->synonyms[0]) {
        buf_printf(out, "the broker's ");
        for (int i = 0; row->synonyms[i]; i++)
            buf_printf(out, "%s`%s`", i ? ", else " : "", row->synonyms[i]);
        buf_printf(out, ", else ");
    }
    put_default(out, row->default_text);
    buf_printf(out, "; ");
    put_valid(out, row->type, &row->valid);
    put_effect(out, row->name, row->has_effect);
}

void config_docs_print(struct buf *out)
{
    int n;
    buf_printf(out, "<!-- Printed by `kafkad --print-config-docs` from src/server/*config_table.def"
                    " - do not edit. -->\n"
                    "# Settings\n\n"
                    "kafkad reads Apache Kafka's `server.properties`. Every key of Kafka 2.3 to 3.9"
                    " in ZooKeeper mode is accepted and its value is checked; those marked *No"
                    " effect* do nothing in this version, and the last section lists them. A key "
                    "that is not known is warned of;"
                    " a value that is not legal stops the start. `--override key=value` wins over"
                    " the file. `listener.name.<listener>.<key>` sets a key for one listener.\n\n"
                    "## Broker\n\n");
    const struct config_row *rows = config_rows(&n);
    for (int i = 0; i < n; i++)
        if (!(rows[i].flags & CONFIG_HIDDEN))
            put_broker_row(out, &rows[i]);
    buf_printf(out, "## Topics\n\n"
                    "Given when a topic is created, or changed later; otherwise the broker's value"
                    " holds.\n\n");
    const struct topic_config_row *topic_rows = topic_config_rows(&n);
    for (int i = 0; i < n; i++)
        put_topic_row(out, &topic_rows[i]);
    put_idle(out);
}
