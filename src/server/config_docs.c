/* config_docs.c - the page docs/configuration.md, printed from the tables (kafkad
 * --print-config-docs). A unit test keeps page and tables equal. */
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
    buf_printf(out, ".%s\n\n", row->has_effect ? "" : " *No effect yet.*");
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
    buf_printf(out, ".%s\n\n", row->has_effect ? "" : " *No effect yet.*");
}

void config_docs_print(struct buf *out)
{
    int n;
    buf_printf(out, "<!-- Printed by `kafkad --print-config-docs` from src/server/*config_table.def"
                    " - do not edit. -->\n"
                    "# Settings\n\n"
                    "kafkad reads Apache Kafka's `server.properties`. Every key of Kafka 2.3 to 3.9"
                    " in ZooKeeper mode is accepted and its value is checked; those marked *No"
                    " effect yet* do nothing in this version. A key that is not known is warned of;"
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
}
