/* tool_configs_alter.c - kafka-configs --alter.
 *
 * Topics and loggers change incrementally. For brokers Kafka's tool sends the whole of the entity's
 * dynamic settings, as brokers before 2.3 want it; so does this one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_configs.h"
#include "tools/tool_io.h"

struct names {
    char **v;
    size_t n;
};

/* --delete-config: k1,k2 */
static struct names names_of(const char *text)
{
    struct names out = {NULL, 0};
    for (const char *at = text; at && *at;) {
        size_t n = strcspn(at, ",");
        size_t from = strspn(at, " \t"), len = n;
        while (len > from && (at[len - 1] == ' ' || at[len - 1] == '\t'))
            len--;
        char **grown = realloc(out.v, (out.n + 1) * sizeof *grown);
        if (!grown || !(grown[out.n] = strndup(at + from, len > from ? len - from : 0)))
            tool_die("out of memory");
        out.v = grown;
        if (*out.v[out.n])
            out.n++;
        else
            free(out.v[out.n]);
        at += n + (at[n] == ',');
    }
    return out;
}

static void names_free(struct names *n)
{
    for (size_t i = 0; i < n->n; i++)
        free(n->v[i]);
    free(n->v);
}

/* What is to be deleted must be there. */
static void check_deleted(const struct names *deleted, bool (*there)(void *arg, const char *name),
                          void *arg)
{
    char list[512] = "";
    for (size_t i = 0; i < deleted->n; i++) {
        if (there(arg, deleted->v[i]))
            continue;
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%s", at ? "," : "", deleted->v[i]);
    }
    if (*list)
        configs_refuse("Invalid config(s): %s", list);
}

static bool is_pair_there(void *arg, const char *name)
{
    return configs_pairs_get(arg, name) != NULL;
}

/* A value that is not shown is told from one that is missing by this. */
static const char hidden[] = "\1";

static void add_entry(void *arg, const kafka_config_entry_t *e)
{
    configs_pairs_put(arg, e->name, e->value ? e->value : hidden);
}

/* ---- topics and loggers ---- */

static void alter_some(struct configs *c, enum configs_type type, const char *name,
                       const struct configs_pairs *added, const struct names *deleted)
{
    char message[512] = "";
    kafka_config_op_t *ops = calloc(added->n + deleted->n + 1, sizeof *ops);
    size_t n = 0;
    if (!ops)
        tool_die("out of memory");
    for (size_t i = 0; i < added->n; i++)
        ops[n++] = (kafka_config_op_t){KAFKA_CONFIG_SET, added->v[i].name, added->v[i].value};
    for (size_t i = 0; i < deleted->n; i++)
        ops[n++] = (kafka_config_op_t){KAFKA_CONFIG_DELETE, deleted->v[i], NULL};
    kafka_err_t err = kafka_admin_alter_configs(c->admin, configs_resource(type), name, ops, n,
                                                c->timeout_ms, message, sizeof message);
    if (err != KAFKA_OK)
        configs_fail(c, err, message);
    free(ops);
}

/* ---- brokers ---- */

static void alter_whole(struct configs *c, const char *name, struct configs_pairs *old,
                        const struct configs_pairs *added, const struct names *deleted)
{
    char message[512] = "", missing[512] = "";
    for (size_t i = 0; i < added->n; i++)
        configs_pairs_put(old, added->v[i].name, added->v[i].value);
    for (size_t i = 0; i < deleted->n; i++)
        configs_pairs_drop(old, deleted->v[i]);
    for (size_t i = 0; i < old->n; i++) {
        size_t at = strlen(missing);
        if (strcmp(old->v[i].value, hidden) == 0)
            snprintf(missing + at, sizeof missing - at, "%s%s", at ? ", " : "", old->v[i].name);
    }
    if (*missing)
        configs_refuse("All sensitive broker config entries must be specified for --alter, missing "
                       "entries: %s",
                       missing);
    kafka_err_t err = kafka_admin_replace_configs(c->admin, KAFKA_RESOURCE_BROKER, name, old->v,
                                                  old->n, c->timeout_ms, message, sizeof message);
    if (err != KAFKA_OK)
        configs_fail(c, err, message);
}

static void alter_resource(struct configs *c, const struct configs_pairs *added,
                           const struct names *deleted)
{
    enum configs_type type = c->entities.types[0];
    const char *name = c->entities.names[0];
    struct configs_pairs old = {NULL, 0};
    configs_each(c, type, name, false, add_entry, &old);
    check_deleted(deleted, is_pair_there, &old);
    if (type == TYPE_BROKER)
        alter_whole(c, name, &old, added, deleted);
    else
        alter_some(c, type, name, added, deleted);
    configs_pairs_free(&old);
}

/* ---- quotas ---- */

static bool is_quota_there(void *arg, const char *name)
{
    const kafka_quotas_t *q = arg;
    for (size_t i = 0; i < q->entries_n; i++)
        for (size_t k = 0; k < q->entries[i].values_n; k++)
            if (strcmp(q->entries[i].values[k].key, name) == 0)
                return true;
    return false;
}

static void check_quota_names(const struct configs *c, const struct configs_pairs *added)
{
    static const char *const client_keys[] = {"producer_byte_rate", "consumer_byte_rate",
                                              "request_percentage", "controller_mutation_rate",
                                              NULL};
    static const char *const ip_keys[] = {"connection_creation_rate", NULL};
    bool ip = c->entities.types[0] == TYPE_IP;
    for (size_t i = 0; i < added->n; i++) {
        const char *const *keys = ip ? ip_keys : client_keys;
        while (*keys && strcmp(*keys, added->v[i].name) != 0)
            keys++;
        if (!*keys)
            configs_refuse("Only %s configs can be added for '%s' using --bootstrap-server. "
                           "Unexpected config names: %s",
                           ip ? "connection quota"
                           : c->entities.types[0] == TYPE_USER && c->entities.types_n == 1
                               ? "quota and SCRAM credential"
                               : "quota",
                           configs_type_plural(c->entities.types[0]), added->v[i].name);
    }
}

static double number_of(const kafka_config_t *pair)
{
    char *end;
    double v = strtod(pair->value, &end);
    if (!*pair->value || *end)
        configs_refuse("Cannot parse quota configuration value for %s: %s", pair->name,
                       pair->value);
    return v;
}

static void alter_quotas(struct configs *c, const struct configs_pairs *added,
                         const struct names *deleted)
{
    const struct configs_entities *e = &c->entities;
    kafka_quota_entity_t entity[2];
    char message[512] = "";
    check_quota_names(c, added);
    kafka_quotas_t *old = configs_quotas(c);
    check_deleted(deleted, is_quota_there, old);
    kafka_quotas_free(old);
    for (int i = 0; i < e->types_n; i++)
        entity[i] = (kafka_quota_entity_t){configs_quota_type(e->types[i]),
                                           *e->names[i] ? e->names[i] : NULL};
    kafka_quota_op_t *ops = calloc(added->n + deleted->n + 1, sizeof *ops);
    size_t n = 0;
    if (!ops)
        tool_die("out of memory");
    for (size_t i = 0; i < deleted->n; i++)
        ops[n++] = (kafka_quota_op_t){deleted->v[i], 0, 1};
    for (size_t i = 0; i < added->n; i++)
        ops[n++] = (kafka_quota_op_t){added->v[i].name, number_of(&added->v[i]), 0};
    kafka_err_t err = kafka_admin_alter_quotas(c->admin, entity, (size_t)e->types_n, ops, n,
                                               c->timeout_ms, message, sizeof message);
    if (err != KAFKA_OK)
        configs_fail(c, err, message);
    free(ops);
}

void configs_alter(struct configs *c)
{
    struct configs_pairs added = {NULL, 0};
    struct names deleted = names_of(c->args->delete);
    const char *name = c->entities.names[0];
    configs_pairs_parse(c->args->add, &added);
    configs_pairs_load(c->args->add_file, &added);
    if (configs_alter_scram(c, &added, deleted.v, deleted.n)) {
        names_free(&deleted);
        configs_pairs_free(&added);
        return;
    }
    if (configs_is_quota(c->entities.types[0]))
        alter_quotas(c, &added, &deleted);
    else
        alter_resource(c, &added, &deleted);
    if (*name)
        printf("Completed updating config for %s %s.\n", configs_type_single(c->entities.types[0]),
               name);
    else
        printf("Completed updating default config for %s in the cluster.\n",
               configs_type_plural(c->entities.types[0]));
    names_free(&deleted);
    configs_pairs_free(&added);
}
