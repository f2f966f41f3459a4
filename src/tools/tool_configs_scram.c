/* tool_configs_scram.c - kafka-configs and SCRAM credentials: through a broker, or, before any
 * broker can be asked, straight into ZooKeeper, as Kafka's tool still does for these alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/errors.h"
#include "sasl/scram.h"
#include "tools/tool_conf.h"
#include "tools/tool_configs.h"
#include "tools/tool_io.h"
#include "tools/tool_visible.h"
#include "tools/tool_zk_brokers.h"
#include "tools/tool_zk_configs.h"

enum { CHANGES_MAX = 4 };

bool configs_is_scram(const char *key)
{
    enum sasl_mechanism m;
    return sasl_mechanism_find(str_of(key), &m) && sasl_mechanism_is_scram(m);
}

/* ---- what is to be done ---- */

struct scram_value {
    enum sasl_mechanism mechanism;
    const char *password; /* NULL: it is to be removed */
    int iterations;
};
struct scram_values {
    struct scram_value v[CHANGES_MAX];
    size_t n;
};

/* "[iterations=8192,]password=pw" */
static void parse(const kafka_config_t *pair, struct scram_value *out)
{
    const char *at = pair->value;
    out->iterations = SCRAM_MIN_ITERATIONS;
    if (strncmp(at, "iterations=", 11) == 0) {
        char *end;
        long n = strtol(at + 11, &end, 10);
        if (*end != ',' || n > INT32_MAX || n < -1)
            configs_refuse("Invalid credential property %s: iterations must be a number, and "
                           "password=... must follow",
                           pair->name);
        if (n != -1)
            out->iterations = (int)n;
        at = end + 1;
    }
    if (strncmp(at, "password=", 9) != 0 || !at[9])
        configs_refuse("Invalid credential property %s: it must be "
                       "[iterations=<number>,password=<password>]",
                       pair->name);
    out->password = at + 9;
    if (out->iterations < SCRAM_MIN_ITERATIONS)
        configs_refuse("Given value is lower than the minimum value of %d for %s: iterations=%d",
                       SCRAM_MIN_ITERATIONS, pair->name, out->iterations);
    if (out->iterations > SCRAM_MAX_ITERATIONS)
        configs_refuse("Given value is higher than the maximum value of %d for %s: iterations=%d",
                       SCRAM_MAX_ITERATIONS, pair->name, out->iterations);
}

static void collect(const struct configs_pairs *added, char *const *deleted, size_t deleted_n,
                    struct scram_values *out)
{
    out->n = 0;
    for (size_t i = 0; i < added->n && out->n < CHANGES_MAX; i++) {
        struct scram_value *v = &out->v[out->n++];
        (void)sasl_mechanism_find(str_of(added->v[i].name), &v->mechanism);
        parse(&added->v[i], v);
    }
    for (size_t i = 0; i < deleted_n && out->n < CHANGES_MAX; i++) {
        struct scram_value *v = &out->v[out->n++];
        (void)sasl_mechanism_find(str_of(deleted[i]), &v->mechanism);
        v->password = NULL;
    }
}

/* One user by name, and nothing but SCRAM. */
static void check(const struct configs *c, const struct configs_pairs *added, char *const *deleted,
                  size_t deleted_n)
{
    const struct configs_entities *e = &c->entities;
    bool mixed = false;
    for (size_t i = 0; i < added->n; i++)
        mixed |= !configs_is_scram(added->v[i].name);
    for (size_t i = 0; i < deleted_n; i++)
        mixed |= !configs_is_scram(deleted[i]);
    if (e->types_n != 1 || e->types[0] != TYPE_USER)
        configs_refuse("Only quota configs can be added for 'clients' using --bootstrap-server. "
                       "Unexpected config names: SCRAM credentials");
    if (!*e->names[0])
        configs_refuse("The use of --entity-default or --user-defaults is not allowed with User "
                       "SCRAM Credentials using --bootstrap-server.");
    if (mixed)
        configs_refuse("Cannot alter both quota and SCRAM credential configs simultaneously for "
                       "'users' using --bootstrap-server.");
}

/* ---- through a broker ---- */

static void alter_by_broker(struct configs *c, const struct scram_values *values)
{
    kafka_scram_change_t changes[CHANGES_MAX];
    kafka_err_t errs[CHANGES_MAX];
    char message[512] = "";
    for (size_t i = 0; i < values->n; i++)
        changes[i] = (kafka_scram_change_t){.user = c->entities.names[0],
                                            .mechanism = scram_code(values->v[i].mechanism),
                                            .remove = !values->v[i].password,
                                            .iterations = values->v[i].iterations,
                                            .password = values->v[i].password};
    kafka_err_t err = kafka_admin_alter_scram(c->admin, changes, values->n, c->timeout_ms, errs,
                                              message, sizeof message);
    for (size_t i = 0; i < values->n && err == KAFKA_OK; i++)
        err = errs[i];
    if (err != KAFKA_OK)
        configs_fail(c, err, message);
}

/* ---- into ZooKeeper ---- */

static struct str credential_text(const struct scram_value *v, struct arena *mem)
{
    struct scram_credential made;
    if (!scram_credential_make(v->mechanism, str_of(v->password), v->iterations, &made))
        return STR_NULL;
    return scram_credential_format(v->mechanism, &made, mem);
}

static void alter_in_zookeeper(struct configs *c, const struct scram_values *values)
{
    struct arena mem;
    kafka_config_t configs[CHANGES_MAX];
    bool changed, adds = false;
    arena_init(&mem, 0);
    for (size_t i = 0; i < values->n; i++) {
        const struct scram_value *v = &values->v[i];
        adds |= v->password != NULL;
        struct str text = v->password ? credential_text(v, &mem) : STR_NULL;
        if (v->password && !text.p)
            tool_die("out of memory");
        configs[i] = (kafka_config_t){sasl_mechanism_name(v->mechanism), text.p};
    }
    struct store *s = (adds ? tool_zk_open_or_make : tool_zk_open_as)(c->args->zookeeper,
                                                                      c->args->command_config);
    int rc = tool_zk_configure(s, &mem, tool_zk_user_entity(c->entities.names[0], &mem), configs,
                               values->n, &changed);
    tool_zk_close(s);
    if (rc)
        tool_zk_die(strerror(-rc));
    arena_free(&mem);
}

bool configs_alter_scram(struct configs *c, const struct configs_pairs *added, char *const *deleted,
                         size_t deleted_n)
{
    struct scram_values values;
    bool any = false;
    for (size_t i = 0; i < added->n; i++)
        any |= configs_is_scram(added->v[i].name);
    for (size_t i = 0; i < deleted_n; i++)
        any |= configs_is_scram(deleted[i]);
    if (!any)
        return false;
    check(c, added, deleted, deleted_n);
    collect(added, deleted, deleted_n, &values);
    if (c->args->zookeeper) {
        alter_in_zookeeper(c, &values);
        printf("Completed updating config for entity: user-principal '%s'.\n",
               c->entities.names[0]);
    } else {
        alter_by_broker(c, &values);
        printf("Completed updating config for user %s.\n", c->entities.names[0]);
    }
    return true;
}

/* ---- description ---- */

static void print_user(const kafka_scram_user_t *u)
{
    enum sasl_mechanism m;
    printf("SCRAM credential configs for user-principal '%s' are ", tool_shown(u->user));
    for (size_t i = 0; i < u->infos_n; i++)
        printf("%s%s=iterations=%d", i ? ", " : "",
               scram_of_code((int8_t)u->infos[i].mechanism, &m) ? sasl_mechanism_name(m)
                                                                : "UNKNOWN",
               u->infos[i].iterations);
    putchar('\n');
}

void configs_describe_scram(struct configs *c)
{
    const struct configs_entities *e = &c->entities;
    char message[512] = "";
    kafka_scram_users_t *found;
    bool named = e->names_n > 0;
    if (e->types_n != 1 || e->types[0] != TYPE_USER || (named && !*e->names[0]))
        return;
    kafka_err_t err = kafka_admin_describe_scram(c->admin, named ? e->names : NULL, named ? 1 : 0,
                                                 c->timeout_ms, message, sizeof message, &found);
    if (err == KERR_UNSUPPORTED_VERSION) /* a broker before 2.7 has none to tell */
        return;
    if (err != KAFKA_OK)
        configs_fail(c, err, message);
    for (size_t i = 0; i < found->users_n; i++) {
        const kafka_scram_user_t *u = &found->users[i];
        if (u->err == KAFKA_OK)
            print_user(u);
        else if (u->err != KERR_RESOURCE_NOT_FOUND)
            tool_print_visible(
                stdout, "Error retrieving SCRAM credential configs for user-principal '%s': %s\n",
                u->user, u->message ? u->message : tool_error(u->err));
    }
    kafka_scram_users_free(found);
}

static void print_pairs(void *arg, const char *user, const kafka_config_t *pairs, size_t n)
{
    printf("Configs for user-principal '%s' are ", tool_shown(user));
    for (size_t i = 0; i < n; i++)
        printf("%s%s=%s", i ? ", " : "", tool_shown(pairs[i].name), tool_shown(pairs[i].value));
    putchar('\n');
}

bool configs_describe_in_zookeeper(struct configs *c)
{
    const struct configs_entities *e = &c->entities;
    if (!c->args->zookeeper || e->types_n != 1 || e->types[0] != TYPE_USER ||
        (e->names_n && !*e->names[0]))
        return false;
    struct store *s = tool_zk_open_as(c->args->zookeeper, c->args->command_config);
    int rc = tool_zk_users(s, e->names_n ? e->names[0] : NULL, print_pairs, NULL);
    tool_zk_close(s);
    if (rc)
        tool_zk_die(strerror(-rc));
    return true;
}
