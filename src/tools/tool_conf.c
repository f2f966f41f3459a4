/* tool_conf.c - see tool_conf.h. */
#include "tools/tool_conf.h"

#include "base/props.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_io.h"

enum { LINE = 512, API_TIMEOUT_MS = 60000 };

kafka_conf_t *tool_conf_new(void)
{
    kafka_conf_t *conf = kafka_conf_new();
    if (!conf)
        tool_die("out of memory");
    return conf;
}

void tool_conf_set(kafka_conf_t *conf, const char *key, const char *value)
{
    char err[LINE];
    if (kafka_conf_set(conf, key, value, err, sizeof err) != KAFKA_OK)
        tool_die("%s", err);
}

void tool_conf_set_int(kafka_conf_t *conf, const char *key, int64_t value)
{
    char text[32];
    if (value == TOOL_NOT_GIVEN)
        return;
    snprintf(text, sizeof text, "%lld", (long long)value);
    tool_conf_set(conf, key, text);
}

void tool_conf_default(kafka_conf_t *conf, const char *key, const char *value)
{
    if (!kafka_conf_get(conf, key))
        tool_conf_set(conf, key, value);
}

void tool_conf_load(kafka_conf_t *conf, const char *path)
{
    char err[LINE];
    if (path && kafka_conf_load(conf, path, err, sizeof err) != KAFKA_OK)
        tool_die("%s", err);
}

size_t tool_pair(const char *pair, const char **value)
{
    size_t n = strcspn(pair, "=");
    *value = pair + n + (pair[n] == '=');
    return n;
}

void tool_props(struct props *props, const char *file, const struct tool_texts *pairs)
{
    int line = 0, rc = file ? props_load(props, file, &line) : 0;
    if (rc < 0)
        tool_die("%s: %s", file, strerror(-rc));
    for (size_t i = 0; i < pairs->n; i++) {
        const char *value;
        size_t n = tool_pair(pairs->v[i], &value);
        char *key = strndup(pairs->v[i], n);
        if (n == 0 || !key || props_set(props, key, value) < 0)
            tool_die("%s is not a property: give name=value", pairs->v[i]);
        free(key);
    }
}

void tool_conf_pairs(kafka_conf_t *conf, const struct tool_texts *pairs)
{
    for (size_t i = 0; i < pairs->n; i++) {
        const char *value;
        char key[256];
        size_t n = tool_pair(pairs->v[i], &value);
        if (n == 0 || n >= sizeof key || !strchr(pairs->v[i], '='))
            tool_die("%s is not a setting: give name=value", pairs->v[i]);
        memcpy(key, pairs->v[i], n);
        key[n] = 0;
        tool_conf_set(conf, key, value);
    }
}

/* host:port, with the host in brackets when it has colons itself. */
static bool has_port(const char *entry, size_t n)
{
    while (n > 0 && (entry[n - 1] == ' ' || entry[n - 1] == '\t'))
        n--;
    size_t digits = 0;
    while (digits < n && entry[n - digits - 1] >= '0' && entry[n - digits - 1] <= '9')
        digits++;
    return digits > 0 && digits < n - 1 && entry[n - digits - 1] == ':';
}

void tool_conf_servers(const struct tool *tool, kafka_conf_t *conf, const char *bootstrap_server,
                       const char *broker_list)
{
    const char *servers = bootstrap_server ? bootstrap_server : broker_list;
    if (!servers)
        tool_usage_error(tool, "Missing required argument \"[bootstrap-server]\"");
    for (const char *at = servers;; at++) {
        size_t n = strcspn(at, ",");
        if (!has_port(at, n))
            tool_usage_error(tool,
                             "Please provide valid host:port like host1:9091,host2:9092: `%.*s` is "
                             "not one",
                             (int)n, at);
        at += n;
        if (!*at)
            break;
    }
    tool_conf_set(conf, "bootstrap.servers", servers);
}

kafka_admin_t *tool_admin(const kafka_conf_t *conf)
{
    char err[LINE] = "out of memory";
    kafka_admin_t *a = kafka_admin_new(conf, err, sizeof err);
    if (!a)
        tool_die("%s", err);
    return a;
}

kafka_consumer_t *tool_consumer(const kafka_conf_t *conf)
{
    char err[LINE] = "out of memory";
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    if (!c)
        tool_die("%s", err);
    return c;
}

kafka_producer_t *tool_producer(const kafka_conf_t *conf)
{
    char err[LINE] = "out of memory";
    kafka_producer_t *p = kafka_producer_new(conf, err, sizeof err);
    if (!p)
        tool_die("%s", err);
    return p;
}

const char *tool_error(kafka_err_t err)
{
    const char *line = kafka_last_error();
    return *line ? line : kafka_err_text(err);
}

int64_t tool_api_timeout(const kafka_conf_t *conf)
{
    const char *text = kafka_conf_get(conf, "default.api.timeout.ms");
    return text ? atoll(text) : API_TIMEOUT_MS;
}
