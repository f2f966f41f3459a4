/* tool_configs_entity.c - which entities the command line of kafka-configs names. */
#include <string.h>

#include "tools/tool_configs.h"
#include "tools/tool_io.h"

static const struct {
    const char *plural, *single, *quota;
} types[] = {
    [TYPE_TOPIC] = {"topics", "topic", NULL},
    [TYPE_BROKER] = {"brokers", "broker", NULL},
    [TYPE_BROKER_LOGGER] = {"broker-loggers", "broker-logger", NULL},
    [TYPE_USER] = {"users", "user", "user"},
    [TYPE_CLIENT] = {"clients", "client", "client-id"},
    [TYPE_IP] = {"ips", "ip", "ip"},
};
enum { TYPES_N = sizeof types / sizeof *types };

const char *configs_type_plural(enum configs_type type)
{
    return types[type].plural;
}

const char *configs_type_single(enum configs_type type)
{
    return types[type].single;
}

const char *configs_quota_type(enum configs_type type)
{
    return types[type].quota;
}

/* ---- --entity-type and friends ---- */

static void add_type(const struct tool *tool, struct configs_entities *e, const char *text)
{
    int i = 0;
    while (i < TYPES_N && strcmp(types[i].plural, text) != 0)
        i++;
    if (i == TYPES_N)
        tool_usage_error(tool,
                         "Invalid entity type %s, the entity type must be one of topics, clients, "
                         "users, brokers, ips, broker-loggers with a --bootstrap-server argument",
                         text);
    if (e->types_n == 2)
        tool_usage_error(tool, "At most two entity types may be given: users and clients");
    e->types[e->types_n++] = (enum configs_type)i;
}

static void add_name(const struct tool *tool, struct configs_entities *e, const char *name)
{
    if (e->names_n == e->types_n)
        tool_usage_error(tool, "More entity names specified than entity types");
    e->names[e->names_n++] = name;
}

/* Names and defaults belong to the types in the order in which they stand there. */
static void add_names_in_order(const struct tool *tool, const struct configs_args *a, int argc,
                               char **argv, struct configs_entities *e)
{
    static const char name_flag[] = "--entity-name", default_flag[] = "--entity-default";
    size_t next = 0;
    for (int i = 1; i < argc; i++) {
        size_t n = strcspn(argv[i], "=");
        if (strcmp(argv[i], default_flag) == 0)
            add_name(tool, e, "");
        else if (n == strlen(name_flag) && strncmp(argv[i], name_flag, n) == 0 && next < a->names.n)
            add_name(tool, e, a->names.v[next++]);
    }
}

/* ---- the short forms ---- */

static void add_short(const struct tool *tool, struct configs_entities *e, enum configs_type type,
                      const char *name)
{
    if (!name)
        return;
    if (e->types_n == 2)
        tool_usage_error(tool, "At most two entities may be given: a user and a client");
    e->types[e->types_n++] = type;
    e->names[e->names_n++] = name;
}

static bool any_short(const struct configs_args *a)
{
    return a->topic || a->client || a->user || a->broker || a->broker_logger || a->ip ||
           a->client_defaults || a->user_defaults || a->broker_defaults || a->ip_defaults;
}

static void add_shorts(const struct tool *tool, const struct configs_args *a,
                       struct configs_entities *e)
{
    add_short(tool, e, TYPE_TOPIC, a->topic);
    add_short(tool, e, TYPE_USER, a->user ? a->user : a->user_defaults ? "" : NULL);
    add_short(tool, e, TYPE_CLIENT, a->client ? a->client : a->client_defaults ? "" : NULL);
    add_short(tool, e, TYPE_BROKER, a->broker ? a->broker : a->broker_defaults ? "" : NULL);
    add_short(tool, e, TYPE_BROKER_LOGGER, a->broker_logger);
    add_short(tool, e, TYPE_IP, a->ip ? a->ip : a->ip_defaults ? "" : NULL);
}

/* ---- checks ---- */

static bool is_pair(const struct configs_entities *e)
{
    return (e->types[0] == TYPE_USER && e->types[1] == TYPE_CLIENT) ||
           (e->types[0] == TYPE_CLIENT && e->types[1] == TYPE_USER);
}

static void check_names(const struct tool *tool, const struct configs_args *a,
                        const struct configs_entities *e)
{
    for (int i = 0; i < e->names_n; i++) {
        int64_t id;
        bool topic_like = e->types[i] == TYPE_TOPIC || e->types[i] == TYPE_BROKER_LOGGER;
        bool broker_like = e->types[i] == TYPE_BROKER || e->types[i] == TYPE_BROKER_LOGGER;
        if (!*e->names[i] && topic_like)
            tool_usage_error(tool, "There is no default entity of %s",
                             configs_type_plural(e->types[i]));
        if (*e->names[i] && broker_like && !tool_int_of(e->names[i], &id))
            tool_usage_error(tool,
                             "The entity name for %s must be a valid integer broker id, but it is: "
                             "%s",
                             configs_type_plural(e->types[i]), e->names[i]);
    }
    bool logger = e->types[0] == TYPE_BROKER_LOGGER;
    if (e->names_n < e->types_n && (a->alter || logger))
        tool_usage_error(tool, "An entity name%s must be specified with %s of %s",
                         logger || e->types[0] == TYPE_TOPIC ? "" : " or default entity",
                         a->alter ? "--alter" : "--describe", configs_type_plural(e->types[0]));
}

void configs_entities_of(const struct tool *tool, const struct configs_args *a, int argc,
                         char **argv, struct configs_entities *out)
{
    *out = (struct configs_entities){0};
    bool longs = a->types.n || a->names.n || a->entity_default;
    if (any_short(a) && longs)
        tool_usage_error(tool, "--entity-{type,name,default} should not be used in conjunction "
                               "with specific entity flags");
    for (size_t i = 0; i < a->types.n; i++)
        add_type(tool, out, a->types.v[i]);
    if (longs)
        add_names_in_order(tool, a, argc, argv, out);
    add_shorts(tool, a, out);
    if (out->types_n == 0)
        tool_usage_error(tool, "At least one entity type must be specified");
    if (out->types_n == 2 && !is_pair(out))
        tool_usage_error(tool, "Only '%s' entity types may be specified together",
                         "users, clients");
    check_names(tool, a, out);
}
