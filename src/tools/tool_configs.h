/* tool_configs.h - the parts of kafka-configs: its arguments, the entities they name, and what is
 * done with them. */
#ifndef TOOLS_TOOL_CONFIGS_H
#define TOOLS_TOOL_CONFIGS_H

#include <kafka/admin.h>

#include "tools/tool_options.h"

struct configs_args {
    bool alter, describe, all, force, entity_default;
    const char *bootstrap, *controller, *zookeeper, *zk_tls, *command_config;
    const char *add, *add_file, *delete;
    struct tool_texts types, names;
    const char *topic, *client, *user, *broker, *broker_logger, *ip;
    bool client_defaults, user_defaults, broker_defaults, ip_defaults;
};

enum configs_type { TYPE_TOPIC, TYPE_BROKER, TYPE_BROKER_LOGGER, TYPE_USER, TYPE_CLIENT, TYPE_IP };

/* What the flags name, in the order of the command line: one entity, or a user and a client id. */
struct configs_entities {
    enum configs_type types[2];
    int types_n;
    const char *names[2]; /* "" = the default */
    int names_n;          /* fewer than types: all of the type */
};
/* Ends the process with the usage when they name nothing that makes sense. */
void configs_entities_of(const struct tool *tool, const struct configs_args *a, int argc,
                         char **argv, struct configs_entities *out);
/* "topics", "topic"; and as the protocol calls the type of a quota ("user"). Static. */
const char *configs_type_plural(enum configs_type type);
const char *configs_type_single(enum configs_type type);
const char *configs_quota_type(enum configs_type type);
static inline bool configs_is_quota(enum configs_type type)
{
    return type == TYPE_USER || type == TYPE_CLIENT || type == TYPE_IP;
}

/* key=value settings; owned texts. */
struct configs_pairs {
    kafka_config_t *v;
    size_t n;
};
/* --add-config: k=v,k=[v1,v2]. --add-config-file: a properties file. Both end the process with a
 * line when that is not what they are; NULL: nothing. */
void configs_pairs_parse(const char *text, struct configs_pairs *out);
void configs_pairs_load(const char *path, struct configs_pairs *out);
const char *configs_pairs_get(const struct configs_pairs *p, const char *name);
void configs_pairs_put(struct configs_pairs *p, const char *name, const char *value);
void configs_pairs_drop(struct configs_pairs *p, const char *name);
void configs_pairs_free(struct configs_pairs *p);

struct configs {
    const struct tool *tool;
    const struct configs_args *args;
    struct configs_entities entities;
    kafka_admin_t *admin;
    int64_t timeout_ms;
    int argc; /* for the line about what failed */
    char **argv;
};

void configs_describe(struct configs *c);
void configs_alter(struct configs *c);

/* SCRAM credentials among what is added and deleted: all is done here, or refused; false: there are
 * none. */
bool configs_alter_scram(struct configs *c, const struct configs_pairs *added, char *const *deleted,
                         size_t deleted_n);
bool configs_is_scram(const char *key);
/* Of the user, or of all, when only users are meant. */
void configs_describe_scram(struct configs *c);
/* --zookeeper with users: their nodes as they are. false: it is about others. */
bool configs_describe_in_zookeeper(struct configs *c);

/* A mistake of the user's: its text, exit 1. */
void configs_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* A broker's error: the command line, the error, exit 1. message "" = the error's own text. */
void configs_fail(const struct configs *c, kafka_err_t err, const char *message)
    __attribute__((noreturn));

int configs_resource(enum configs_type type);
/* The settings of one resource that are dynamic and its own (all: every one), sorted by name. Calls
 * each(arg, entry). Fails as configs_fail. */
void configs_each(struct configs *c, enum configs_type type, const char *name, bool all,
                  void (*each)(void *arg, const kafka_config_entry_t *entry), void *arg);
/* Quotas of exactly the entities that are named. Owned (kafka_quotas_free). */
kafka_quotas_t *configs_quotas(struct configs *c);

#endif
