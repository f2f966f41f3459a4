/* tool_configs_describe.c - kafka-configs --describe, and what --alter has to know first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/errors.h"
#include "tools/tool_configs.h"
#include "tools/tool_io.h"
#include "tools/tool_java.h"
#include "tools/tool_visible.h"

int configs_resource(enum configs_type type)
{
    if (type == TYPE_TOPIC)
        return KAFKA_RESOURCE_TOPIC;
    return type == TYPE_BROKER ? KAFKA_RESOURCE_BROKER : KAFKA_RESOURCE_BROKER_LOGGER;
}

/* ---- topics and brokers ---- */

static int own_source(enum configs_type type, const char *name)
{
    if (type == TYPE_TOPIC)
        return KAFKA_SOURCE_TOPIC;
    if (type == TYPE_BROKER_LOGGER)
        return KAFKA_SOURCE_BROKER_LOGGER;
    return *name ? KAFKA_SOURCE_BROKER : KAFKA_SOURCE_DEFAULT_BROKER;
}

static int by_name(const void *a, const void *b)
{
    const kafka_config_entry_t *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* A broker that is not there cannot be asked, and waiting for it takes long. */
static void check_broker(struct configs *c, enum configs_type type, const char *name)
{
    kafka_cluster_info_t *info;
    bool found = false;
    if (!*name || (type != TYPE_BROKER && type != TYPE_BROKER_LOGGER))
        return;
    kafka_err_t err = kafka_admin_describe(c->admin, NULL, 0, c->timeout_ms, &info);
    if (err != KAFKA_OK)
        configs_fail(c, err, "");
    for (size_t i = 0; i < info->nodes_n; i++)
        found |= info->nodes[i].id == atoi(name);
    kafka_cluster_info_free(info);
    if (!found)
        configs_refuse(
            "The broker '%s' doesn't exist or is away: a broker's dynamic config can only "
            "be asked of itself.",
            name);
}

void configs_each(struct configs *c, enum configs_type type, const char *name, bool all,
                  void (*each)(void *arg, const kafka_config_entry_t *entry), void *arg)
{
    kafka_config_entries_t *found;
    check_broker(c, type, name);
    kafka_err_t err =
        kafka_admin_describe_configs(c->admin, configs_resource(type), name, c->timeout_ms, &found);
    if (err == KERR_UNKNOWN_TOPIC_OR_PARTITION) {
        char text[400];
        snprintf(text, sizeof text, "The topic '%s' does not exist.", name);
        configs_fail(c, err, text);
    }
    if (err != KAFKA_OK)
        configs_fail(c, err, "");
    const kafka_config_entry_t **sorted = calloc(found->entries_n + 1, sizeof *sorted);
    if (!sorted)
        tool_die("out of memory");
    for (size_t i = 0; i < found->entries_n; i++)
        sorted[i] = &found->entries[i];
    qsort(sorted, found->entries_n, sizeof *sorted, by_name);
    for (size_t i = 0; i < found->entries_n; i++)
        if (all || sorted[i]->source == own_source(type, name))
            each(arg, sorted[i]);
    free(sorted);
    kafka_config_entries_free(found);
}

static const char *source_name(int source)
{
    static const char *const names[] = {
        [KAFKA_SOURCE_TOPIC] = "DYNAMIC_TOPIC_CONFIG",
        [KAFKA_SOURCE_BROKER] = "DYNAMIC_BROKER_CONFIG",
        [KAFKA_SOURCE_DEFAULT_BROKER] = "DYNAMIC_DEFAULT_BROKER_CONFIG",
        [KAFKA_SOURCE_STATIC] = "STATIC_BROKER_CONFIG",
        [KAFKA_SOURCE_DEFAULT] = "DEFAULT_CONFIG",
        [KAFKA_SOURCE_BROKER_LOGGER] = "DYNAMIC_BROKER_LOGGER_CONFIG",
    };
    bool known = source > 0 && source < (int)(sizeof names / sizeof *names) && names[source];
    return known ? names[source] : "UNKNOWN";
}

static void print_entry(void *arg, const kafka_config_entry_t *e)
{
    printf("  %s=%s sensitive=%s synonyms={", tool_shown(e->name),
           e->value ? tool_shown(e->value) : "null", e->sensitive ? "true" : "false");
    for (size_t i = 0; i < e->synonyms_n; i++)
        printf("%s%s:%s=%s", i ? ", " : "", source_name(e->synonyms[i].source),
               tool_shown(e->synonyms[i].name),
               e->synonyms[i].value ? tool_shown(e->synonyms[i].value) : "null");
    printf("}\n");
}

static void describe_one(struct configs *c, enum configs_type type, const char *name)
{
    if (*name)
        printf("%s configs for %s %s are:\n", c->args->all ? "All" : "Dynamic",
               configs_type_single(type), name);
    else
        printf("Default configs for %s in the cluster are:\n", configs_type_plural(type));
    configs_each(c, type, name, c->args->all, print_entry, NULL);
}

static void describe_all(struct configs *c, enum configs_type type)
{
    kafka_cluster_info_t *info;
    char id[16];
    kafka_err_t err = kafka_admin_describe(c->admin, NULL, 0, c->timeout_ms, &info);
    if (err != KAFKA_OK)
        configs_fail(c, err, "");
    for (size_t i = 0; type == TYPE_TOPIC && i < info->topics_n; i++)
        describe_one(c, type, info->topics[i].name);
    for (size_t i = 0; type == TYPE_BROKER && i < info->nodes_n; i++) {
        snprintf(id, sizeof id, "%d", info->nodes[i].id);
        describe_one(c, type, id);
    }
    if (type == TYPE_BROKER)
        describe_one(c, type, "");
    kafka_cluster_info_free(info);
}

/* ---- quotas ---- */

kafka_quotas_t *configs_quotas(struct configs *c)
{
    kafka_quota_filter_t filter[2];
    const struct configs_entities *e = &c->entities;
    char message[512] = "";
    kafka_quotas_t *found;
    for (int i = 0; i < e->types_n; i++) {
        const char *name = i < e->names_n ? e->names[i] : NULL;
        int match = !name ? KAFKA_MATCH_ANY : *name ? KAFKA_MATCH_EXACT : KAFKA_MATCH_DEFAULT;
        filter[i] = (kafka_quota_filter_t){configs_quota_type(e->types[i]), match,
                                           match == KAFKA_MATCH_EXACT ? name : NULL};
    }
    kafka_err_t err = kafka_admin_describe_quotas(c->admin, filter, (size_t)e->types_n, 1,
                                                  c->timeout_ms, message, sizeof message, &found);
    if (err != KAFKA_OK)
        configs_fail(c, err, message);
    return found;
}

static void print_quota_entity(const kafka_quota_entry_t *e)
{
    static const char *const words[][2] = {
        {"user", "user-principal"}, {"client-id", "client-id"}, {"ip", "ip"}};
    bool first = true;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        for (size_t i = 0; i < e->entity_n; i++) {
            if (strcmp(e->entity[i].type, words[w][0]) != 0)
                continue;
            printf("%s", first ? "" : ", ");
            if (e->entity[i].name)
                printf("%s '%s'", words[w][1], tool_shown(e->entity[i].name));
            else
                printf("the default %s", words[w][1]);
            first = false;
        }
    }
}

static void describe_quotas(struct configs *c)
{
    kafka_quotas_t *found = configs_quotas(c);
    for (size_t i = 0; i < found->entries_n; i++) {
        const kafka_quota_entry_t *e = &found->entries[i];
        char number[48];
        printf("Quota configs for ");
        print_quota_entity(e);
        printf(" are ");
        for (size_t k = 0; k < e->values_n; k++)
            printf("%s%s=%s", k ? ", " : "", tool_shown(e->values[k].key),
                   tool_java_double(e->values[k].value, number));
        putchar('\n');
    }
    kafka_quotas_free(found);
}

void configs_describe(struct configs *c)
{
    const struct configs_entities *e = &c->entities;
    if (configs_is_quota(e->types[0])) {
        describe_quotas(c);
        configs_describe_scram(c);
    } else if (e->names_n)
        describe_one(c, e->types[0], e->names[0]);
    else
        describe_all(c, e->types[0]);
}
