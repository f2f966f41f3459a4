/* tool_configs_pairs.c - settings given on the command line or in a file. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/props.h"
#include "tools/tool_configs.h"
#include "tools/tool_io.h"

static kafka_config_t *find(const struct configs_pairs *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i].name, name) == 0)
            return &p->v[i];
    return NULL;
}

const char *configs_pairs_get(const struct configs_pairs *p, const char *name)
{
    const kafka_config_t *c = find(p, name);
    return c ? c->value : NULL;
}

void configs_pairs_put(struct configs_pairs *p, const char *name, const char *value)
{
    kafka_config_t *c = find(p, name);
    if (c) {
        free((char *)c->value);
    } else {
        kafka_config_t *grown = realloc(p->v, (p->n + 1) * sizeof *grown);
        if (!grown)
            tool_die("out of memory");
        p->v = grown;
        c = &p->v[p->n++];
        c->name = strdup(name);
    }
    c->value = strdup(value);
    if (!c->name || !c->value)
        tool_die("out of memory");
}

void configs_pairs_drop(struct configs_pairs *p, const char *name)
{
    kafka_config_t *c = find(p, name);
    if (!c)
        return;
    free((char *)c->name);
    free((char *)c->value);
    *c = p->v[--p->n];
}

void configs_pairs_free(struct configs_pairs *p)
{
    while (p->n)
        configs_pairs_drop(p, p->v[0].name);
    free(p->v);
    p->v = NULL;
}

/* ---- the command line ---- */

static char *trimmed(const char *from, size_t n)
{
    while (n && isspace((unsigned char)*from))
        from++, n--;
    while (n && isspace((unsigned char)from[n - 1]))
        n--;
    char *copy = strndup(from, n);
    if (!copy)
        tool_die("out of memory");
    return copy;
}

static void check_key(const char *key)
{
    for (const char *p = key; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            configs_refuse("Invalid character found for config key: %s", key);
}

/* One k=v or k=[v1,v2]. */
static void add_one(struct configs_pairs *out, const char *from, size_t n)
{
    char *text = trimmed(from, n), *eq = strchr(text, '=');
    if (!*text) {
        free(text);
        return;
    }
    if (!eq)
        configs_refuse("Invalid entity config: all configs to be added must be in the format "
                       "\"key=val\".");
    char *key = trimmed(text, (size_t)(eq - text)), *value = trimmed(eq + 1, strlen(eq + 1));
    size_t len = strlen(value);
    bool bracketed = len >= 2 && value[0] == '[' && value[len - 1] == ']';
    check_key(key);
    if (bracketed)
        value[len - 1] = 0;
    configs_pairs_put(out, key, value + bracketed);
    free(key);
    free(value);
    free(text);
}

void configs_pairs_parse(const char *text, struct configs_pairs *out)
{
    int depth = 0;
    const char *from = text;
    for (const char *p = text; p; p++) {
        if (*p == '[')
            depth++;
        else if (*p == ']' && depth > 0)
            depth--;
        if (*p && (*p != ',' || depth > 0))
            continue;
        add_one(out, from, (size_t)(p - from));
        if (!*p)
            break;
        from = p + 1;
    }
}

void configs_pairs_load(const char *path, struct configs_pairs *out)
{
    struct props *p = path ? props_new() : NULL;
    int line = 0;
    if (!path)
        return;
    int rc = p ? props_load(p, path, &line) : -1;
    if (rc)
        configs_refuse("%s: %s", path, line ? "not a properties file" : strerror(-rc));
    for (size_t i = 0; i < props_count(p); i++) {
        const char *key, *value;
        props_at(p, i, &key, &value);
        configs_pairs_put(out, key, value);
    }
    props_free(p);
}
