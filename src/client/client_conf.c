/* client_conf.c - see client_conf.h and kafka/common.h. */
#include "client/client_conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/props.h"
#include "base/str.h"

enum conf_type { BOOL, INT, LONG, DOUBLE, STRING, LIST, CLASS, PASSWORD };
#define CONF_NO_MIN (-1e300)
#define CONF_NO_MAX (1e300)

/* What a setting does here. */
enum conf_use {
    EFFECT, /* what it does in Apache Kafka */
    JAVA,   /* nothing: it is about Java's classes or JMX */
    NONE,   /* nothing, for a reason that its text has */
    HOOK,   /* nothing: Java classes that have an equal in C, which is named */
    TLS,    /* with a security.protocol that has TLS */
    SASL,   /* with one that has SASL */
};

struct conf_row {
    int scopes;
    const char *name;
    enum conf_type type;
    const char *default_text;
    double min, max;
    const char *one_of;
    enum conf_use use;
};

static const struct conf_row conf_rows[] = {
#define SCOPE_EVERY (SCOPE_PRODUCER | SCOPE_CONSUMER | SCOPE_ADMIN)
#define CLIENT_CONF(scopes, name, type, def, min, max, one_of, use, text) \
    {scopes, name, type, def, min, max, one_of, use},
#include "client/client_config.def"
#undef CLIENT_CONF
};
#define CONF_ROWS (sizeof conf_rows / sizeof *conf_rows)

struct kafka_conf {
    struct props *props;
    kafka_assignor_t *assignors; /* the application's; names owned */
    size_t assignors_n;
    struct client_hooks hooks;
};

static const struct conf_row *find_row(const char *key, int scopes)
{
    for (size_t i = 0; i < CONF_ROWS; i++)
        if (strcmp(conf_rows[i].name, key) == 0 && (conf_rows[i].scopes & scopes))
            return &conf_rows[i];
    return NULL;
}

kafka_conf_t *kafka_conf_new(void)
{
    kafka_conf_t *conf = calloc(1, sizeof *conf);
    if (conf && !(conf->props = props_new())) {
        free(conf);
        return NULL;
    }
    return conf;
}

void kafka_conf_free(kafka_conf_t *conf)
{
    if (!conf)
        return;
    props_free(conf->props);
    for (size_t i = 0; i < conf->assignors_n; i++)
        free((char *)conf->assignors[i].name);
    free(conf->assignors);
    free(conf->hooks.producer);
    free(conf->hooks.consumer);
    free(conf);
}

/* One more element at the end of an array. */
static kafka_err_t add_one(void **array, size_t *n, const void *one, size_t size)
{
    char *grown = realloc(*array, (*n + 1) * size);
    if (!grown)
        return KAFKA_ERR_NO_MEMORY;
    memcpy(grown + *n * size, one, size);
    *array = grown;
    ++*n;
    return KAFKA_OK;
}

kafka_err_t kafka_conf_set_partitioner(kafka_conf_t *conf, kafka_partitioner_fn fn, void *arg)
{
    conf->hooks.partitioner = fn;
    conf->hooks.partitioner_arg = arg;
    return KAFKA_OK;
}

kafka_err_t kafka_conf_add_producer_interceptor(kafka_conf_t *conf,
                                                const kafka_producer_interceptor_t *i)
{
    return add_one((void **)&conf->hooks.producer, &conf->hooks.producer_n, i, sizeof *i);
}

kafka_err_t kafka_conf_add_consumer_interceptor(kafka_conf_t *conf,
                                                const kafka_consumer_interceptor_t *i)
{
    return add_one((void **)&conf->hooks.consumer, &conf->hooks.consumer_n, i, sizeof *i);
}

const struct client_hooks *client_conf_hooks(const kafka_conf_t *conf)
{
    return &conf->hooks;
}

static kafka_err_t copy_hooks(kafka_conf_t *to, const struct client_hooks *from)
{
    kafka_err_t err = kafka_conf_set_partitioner(to, from->partitioner, from->partitioner_arg);
    for (size_t i = 0; i < from->producer_n && err == KAFKA_OK; i++)
        err = kafka_conf_add_producer_interceptor(to, &from->producer[i]);
    for (size_t i = 0; i < from->consumer_n && err == KAFKA_OK; i++)
        err = kafka_conf_add_consumer_interceptor(to, &from->consumer[i]);
    return err;
}

kafka_err_t kafka_conf_add_assignor(kafka_conf_t *conf, const kafka_assignor_t *assignor)
{
    if (!assignor->name || !assignor->name[0] || strchr(assignor->name, ',') || !assignor->assign)
        return client_fail(KAFKA_ERR_INVALID_ARG,
                           "an assignor needs a name without commas and assign");
    kafka_assignor_t *grown =
        realloc(conf->assignors, (conf->assignors_n + 1) * sizeof *conf->assignors);
    char *name = str_dup(str_of(assignor->name));
    if (grown)
        conf->assignors = grown;
    if (!grown || !name) {
        free(name);
        return KAFKA_ERR_NO_MEMORY;
    }
    grown[conf->assignors_n] = *assignor;
    grown[conf->assignors_n++].name = name;
    return KAFKA_OK;
}

const kafka_assignor_t *client_conf_assignor(const kafka_conf_t *conf, const char *name)
{
    for (size_t i = 0; i < conf->assignors_n; i++)
        if (strcmp(conf->assignors[i].name, name) == 0)
            return &conf->assignors[i];
    return NULL;
}

kafka_conf_t *client_conf_copy(const kafka_conf_t *conf)
{
    kafka_conf_t *copy = kafka_conf_new();
    if (!copy || !conf)
        return copy;
    for (size_t i = 0; i < props_count(conf->props); i++) {
        const char *key, *value;
        props_at(conf->props, i, &key, &value);
        props_set(copy->props, key, value);
    }
    kafka_err_t err = copy_hooks(copy, &conf->hooks);
    for (size_t i = 0; i < conf->assignors_n && err == KAFKA_OK; i++)
        err = kafka_conf_add_assignor(copy, &conf->assignors[i]);
    if (err == KAFKA_OK)
        return copy;
    kafka_conf_free(copy);
    return NULL;
}

/* ~ in front of the list: in any case. */
static bool in_list(const char *list, const char *value)
{
    size_t n = strlen(value);
    bool any_case = *list == '~';
    for (const char *at = list + any_case; *at;) {
        size_t len = strcspn(at, ",");
        if (len == n && (any_case ? strncasecmp : strncmp)(at, value, n) == 0)
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

static bool check_number(const struct conf_row *row, const char *value, char *err, size_t err_n)
{
    char *end;
    errno = 0;
    double number = row->type == DOUBLE ? strtod(value, &end) : (double)strtoll(value, &end, 10);
    bool fits = row->type != INT || (number >= INT32_MIN && number <= INT32_MAX);
    if (*value == 0 || *end != 0 || errno || !fits) {
        snprintf(err, err_n, "%s=%s: not %s", row->name, value,
                 row->type == DOUBLE ? "a number" : "a whole number that fits");
        return false;
    }
    if (number >= row->min && number <= row->max)
        return true;
    if (row->max == CONF_NO_MAX)
        snprintf(err, err_n, "%s=%s: must be at least %.15g", row->name, value, row->min);
    else
        snprintf(err, err_n, "%s=%s: must be %.15g to %.15g", row->name, value, row->min, row->max);
    return false;
}

static bool check_one_of(const struct conf_row *row, const char *value, char *err, size_t err_n)
{
    if (!row->one_of || in_list(row->one_of, value))
        return true;
    snprintf(err, err_n, "%s=%s: must be one of %s", row->name, value,
             row->one_of + (*row->one_of == '~'));
    return false;
}

static bool check_value(const struct conf_row *row, const char *value, char *err, size_t err_n)
{
    switch (row->type) {
    case BOOL:
        if (strcasecmp(value, "true") == 0 || strcasecmp(value, "false") == 0)
            return true;
        snprintf(err, err_n, "%s=%s: must be true or false", row->name, value);
        return false;
    case INT:
    case LONG:
    case DOUBLE:
        return check_number(row, value, err, err_n) && check_one_of(row, value, err, err_n);
    default:
        if (row->min >= 1 && !*value) {
            snprintf(err, err_n, "%s: must not be empty", row->name);
            return false;
        }
        return check_one_of(row, value, err, err_n);
    }
}

kafka_err_t kafka_conf_set(kafka_conf_t *conf, const char *key, const char *value, char *err,
                           size_t err_n)
{
    const struct conf_row *row = find_row(key, ~0);
    if (row && !check_value(row, value, err, err_n))
        return KAFKA_ERR_INVALID_ARG;
    props_set(conf->props, key, value);
    return KAFKA_OK;
}

kafka_err_t kafka_conf_load(kafka_conf_t *conf, const char *path, char *err, size_t err_n)
{
    struct props *file = props_new();
    if (!file)
        return KAFKA_ERR_NO_MEMORY;
    int line = 0;
    int rc = props_load(file, path, &line);
    kafka_err_t result = KAFKA_OK;
    if (rc == -EINVAL && line > 0) {
        snprintf(err, err_n, "%s, line %d: not a properties line", path, line);
        result = KAFKA_ERR_INVALID_ARG;
    } else if (rc < 0) {
        snprintf(err, err_n, "%s: %s", path, strerror(-rc));
        result = KAFKA_ERR_INVALID_ARG;
    }
    for (size_t i = 0; result == KAFKA_OK && i < props_count(file); i++) {
        const char *key, *value;
        props_at(file, i, &key, &value);
        result = kafka_conf_set(conf, key, value, err, err_n);
    }
    props_free(file);
    return result;
}

const char *kafka_conf_get(const kafka_conf_t *conf, const char *key)
{
    return props_get(conf->props, key);
}

bool client_protocol_has_tls(const char *protocol)
{
    return strcasecmp(protocol, "SSL") == 0 || strcasecmp(protocol, "SASL_SSL") == 0;
}

bool client_protocol_has_sasl(const char *protocol)
{
    return strncasecmp(protocol, "SASL_", 5) == 0;
}

/* Settings that do nothing in this client are reported: as a warning when somebody may rely on
 * them. */
static void report_idle(const char *key, enum client_scope scope, const char *protocol)
{
    const struct conf_row *row = find_row(key, scope);
    if (!row &&
        find_row(key, ~0)) /* of another kind of client, in a file for several: no mistake */
        client_log(1, "the setting %s has no effect on this client", key);
    else if (!row)
        client_log(2, "the setting %s is not known: it has no effect", key);
    else if ((row->use == SASL && !client_protocol_has_sasl(protocol)) ||
             (row->use == TLS && !client_protocol_has_tls(protocol)))
        client_log(2, "the setting %s has no effect with security.protocol=%s", key, protocol);
    else if (row->use == HOOK)
        client_log(2,
                   "the setting %s names Java classes and has no effect here: see "
                   "kafka_conf_add_producer_interceptor, kafka_conf_add_consumer_interceptor",
                   key);
    else if (row->use != EFFECT && row->use != TLS && row->use != SASL)
        client_log(1, "the setting %s has no effect in this library", key);
}

static bool check_servers(const char *servers, char *err, size_t err_n)
{
    char host[256];
    int port, n = 0;
    for (const char *at = servers; at && client_next_address(&at, host, &port); n++) {
        if (port >= 1 && port <= 65535 && host[0])
            continue;
        snprintf(err, err_n, "bootstrap.servers=%s: each entry must be host:port", servers);
        return false;
    }
    if (n > 0)
        return true;
    snprintf(err, err_n, "bootstrap.servers is not set: give host:port[,host:port...]");
    return false;
}

kafka_err_t client_conf_check(const kafka_conf_t *conf, enum client_scope scope, char *err,
                              size_t err_n)
{
    const char *protocol = client_conf_string(conf, scope, "security.protocol");
    const char *controllers =
        scope == SCOPE_ADMIN ? client_conf_string(conf, scope, "bootstrap.controllers") : NULL;
    if (controllers && *controllers) {
        snprintf(err, err_n,
                 "bootstrap.controllers=%s: this client asks brokers only: set bootstrap.servers",
                 controllers);
        return KAFKA_ERR_INVALID_ARG;
    }
    if (!check_servers(client_conf_string(conf, scope, "bootstrap.servers"), err, err_n))
        return KAFKA_ERR_INVALID_ARG;
    for (size_t i = 0; i < props_count(conf->props); i++) {
        const char *key, *value;
        props_at(conf->props, i, &key, &value);
        report_idle(key, scope, protocol);
    }
    return KAFKA_OK;
}

const char *client_conf_string(const kafka_conf_t *conf, enum client_scope scope, const char *key)
{
    const char *given = props_get(conf->props, key);
    if (given)
        return given;
    const struct conf_row *row = find_row(key, scope);
    return row ? row->default_text : NULL;
}

int64_t client_conf_int(const kafka_conf_t *conf, enum client_scope scope, const char *key)
{
    const char *text = client_conf_string(conf, scope, key);
    return text ? strtoll(text, NULL, 10) : 0;
}

bool client_conf_bool(const kafka_conf_t *conf, enum client_scope scope, const char *key)
{
    const char *text = client_conf_string(conf, scope, key);
    return text && strcasecmp(text, "true") == 0;
}

bool client_conf_is_set(const kafka_conf_t *conf, const char *key)
{
    return props_get(conf->props, key) != NULL;
}

bool client_next_address(const char **at, char host[256], int *port)
{
    const char *p = *at + strspn(*at, ", \t");
    if (*p == 0)
        return false;
    size_t n = strcspn(p, ",");
    *at = p + n;
    while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        n--;
    const char *colon = p + n;
    while (colon > p && *colon != ':' && *colon != ']')
        colon--;
    *port = -1;
    size_t host_n = n;
    if (colon > p && *colon == ':' && colon < p + n) {
        char digits[8] = "";
        size_t digits_n = (size_t)(p + n - colon) - 1;
        if (digits_n > 0 && digits_n < sizeof digits) {
            memcpy(digits, colon + 1, digits_n);
            if (strspn(digits, "0123456789") == digits_n)
                *port = atoi(digits);
        }
        host_n = (size_t)(colon - p);
    }
    if (host_n >= 2 && p[0] == '[' && p[host_n - 1] == ']')
        p++, host_n -= 2;
    if (host_n > 255)
        host_n = 255;
    memcpy(host, p, host_n);
    host[host_n] = 0;
    return true;
}
