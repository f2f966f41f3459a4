/* config_change.c - see config_change.h. */
#include "server/config_change.h"

#include <stdlib.h>

#include "server/config_value.h"
#include "server/index_set.h"
#include "server/name_set.h"

static enum kerr refuse(struct config_change *c, enum kerr error, const char *message)
{
    c->message = message;
    return error;
}

/* Takes the malloc'ed text. */
static enum kerr refuse_with(struct config_change *c, enum kerr error, const char *before,
                             char *text)
{
    c->message = arena_printf(c->arena, "%s%s", before, text ? text : "out of memory");
    free(text);
    return error;
}

/* ---- before the store ---- */

static enum kerr names_without_value(struct config_change *c)
{
    const char *names = NULL;
    for (int i = 0; i < c->ops_n; i++)
        if (c->ops[i].type != CONFIG_DELETE && str_is_null(c->ops[i].value))
            names = arena_printf(c->arena, "%s%s%.*s", names ? names : "", names ? ", " : "",
                                 STR_ARG(c->ops[i].name));
    if (!names)
        return KERR_NONE;
    return refuse(c, KERR_INVALID_REQUEST,
                  arena_printf(c->arena, "Null value not supported for : %s", names));
}

enum kerr config_change_look(struct config_change *c)
{
    struct name_set names;
    if (name_set_init(&names, c->arena, c->ops_n) != 0)
        return KERR_UNKNOWN_SERVER_ERROR;
    for (int i = 0; i < c->ops_n; i++)
        if (!name_set_add(&names, c->ops[i].name))
            return refuse(c, KERR_INVALID_REQUEST, "Error due to duplicate config keys");
    for (int i = 0; i < c->ops_n; i++)
        if (c->ops[i].type < CONFIG_SET || c->ops[i].type > CONFIG_SUBTRACT)
            return refuse(c, KERR_INVALID_REQUEST,
                          arena_printf(c->arena, "Unknown operations type %d", c->ops[i].type));
    return names_without_value(c);
}

/* ---- the settings afterwards ---- */

/* A change names each key once, so only what was there before is looked for; by its hash, since
 * lists may be long on both sides. */
struct editing {
    struct config_list *list; /* with room for one more, which is what is looked for */
    struct index_set old;     /* indexes of what was there; what goes has a null name */
};

static bool same_name(const void *arg, int32_t a, int32_t b)
{
    const struct config_pair *v = arg;
    return str_eq(v[a].name, v[b].name);
}

static bool editing_begin(struct editing *e, struct config_list *list, struct arena *a)
{
    e->list = list;
    if (!index_set_init(&e->old, a, list->n))
        return false;
    for (int32_t i = 0; i < list->n; i++)
        index_set_put(&e->old, hash_str(list->v[i].name), i, same_name, list->v);
    return true;
}

static struct config_pair *find(struct editing *e, struct str name)
{
    struct config_list *l = e->list;
    l->v[l->n].name = name;
    int32_t at = index_set_find(&e->old, hash_str(name), l->n, same_name, l->v);
    return at < 0 ? NULL : &l->v[at];
}

static void drop(struct editing *e, struct str name)
{
    struct config_pair *p = find(e, name);
    if (p)
        p->name = STR_NULL;
}

static void put(struct editing *e, struct str name, struct str value)
{
    struct config_pair *p = find(e, name);
    if (!p)
        p = &e->list->v[e->list->n++];
    *p = (struct config_pair){name, value};
}

static void editing_end(struct editing *e)
{
    struct config_list *l = e->list;
    int n = 0;
    for (int i = 0; i < l->n; i++)
        if (!str_is_null(l->v[i].name))
            l->v[n++] = l->v[i];
    l->n = n;
}

/* Is the key one that holds a list, and what does it hold without an override? */
static enum kerr list_key(struct config_change *c, struct str name, const char *verb,
                          struct str *otherwise)
{
    enum config_type type;
    struct str key = arena_str(c->arena, name);
    if (!key.p)
        return KERR_UNKNOWN_SERVER_ERROR;
    if (c->resource == RESOURCE_TOPIC) {
        const struct topic_config_row *row = topic_config_find(name);
        if (!row)
            return refuse(c, KERR_INVALID_CONFIG,
                          arena_printf(c->arena, "Unknown topic config name: %s", key.p));
        type = row->type;
        *otherwise = str_of(row->default_text);
    } else {
        const struct config_row *row = config_row_of(key.p, NULL);
        type = row ? row->type : CONFIG_STRING;
        *otherwise = row ? str_of(row->default_text) : STR_NULL;
    }
    if (type == CONFIG_LIST)
        return KERR_NONE;
    return refuse(
        c, KERR_INVALID_REQUEST,
        arena_printf(c->arena, "Config value %s is not allowed for config key: %s", verb, key.p));
}

static bool in_list(const char *text, struct str element)
{
    struct str e;
    for (const char *at = text; config_list_next(&at, &e);)
        if (str_eq(e, element))
            return true;
    return false;
}

/* The elements of `text` that are in `other` or are not, joined behind `before`. */
static const char *join(struct arena *a, const char *before, const char *text, const char *other,
                        bool in)
{
    struct str e;
    const char *out = before;
    for (const char *at = text; out && config_list_next(&at, &e);)
        if (e.len > 0 && in_list(other, e) == in && !in_list(out, e))
            out = arena_printf(a, "%s%s%.*s", out, *out ? "," : "", STR_ARG(e));
    return out;
}

static enum kerr change_list(struct config_change *c, const struct config_op *op, struct editing *l)
{
    bool append = op->type == CONFIG_APPEND;
    struct str was;
    enum kerr error = list_key(c, op->name, append ? "append" : "subtract", &was);
    if (error != KERR_NONE)
        return error;
    struct config_pair *p = find(l, op->name);
    struct str old = arena_str(c->arena, p ? p->value : was);
    struct str value = arena_str(c->arena, op->value);
    const char *kept = old.p ? old.p : "", *out = NULL;
    if (value.p && append)
        out = join(c->arena, join(c->arena, "", kept, "", false), value.p, kept, false);
    else if (value.p)
        out = join(c->arena, "", kept, value.p, false);
    if (!out)
        return KERR_UNKNOWN_SERVER_ERROR;
    put(l, op->name, str_of(out));
    return KERR_NONE;
}

enum kerr config_change_make(struct config_change *c, struct config_list old,
                             struct config_list *out)
{
    int kept = c->whole ? 0 : old.n;
    enum kerr error = KERR_NONE;
    out->n = kept;
    out->v = arena_array(c->arena, struct config_pair, (size_t)kept + (size_t)c->ops_n + 1);
    if (!out->v)
        return KERR_UNKNOWN_SERVER_ERROR;
    if (kept)
        memcpy(out->v, old.v, (size_t)kept * sizeof(*out->v));
    struct editing e;
    if (!editing_begin(&e, out, c->arena))
        return KERR_UNKNOWN_SERVER_ERROR;
    for (int i = 0; i < c->ops_n && error == KERR_NONE; i++) {
        const struct config_op *op = &c->ops[i];
        if (op->type == CONFIG_SET)
            put(&e, op->name, op->value);
        else if (op->type == CONFIG_DELETE)
            drop(&e, op->name);
        else
            error = change_list(c, op, &e);
    }
    editing_end(&e);
    return error;
}

/* ---- may it be? ---- */

static int64_t number(struct config_list l, const char *name, int64_t otherwise)
{
    int64_t v = otherwise;
    for (int i = 0; i < l.n; i++) {
        char *text = str_eqz(l.v[i].name, name) ? str_dup(l.v[i].value) : NULL;
        if (text)
            v = strtoll(text, NULL, 10);
        free(text);
    }
    return v;
}

enum kerr config_change_check_topic(struct config_change *c, struct str topic,
                                    struct config_list list)
{
    const char *resource = arena_printf(
        c->arena, "Invalid config value for resource ConfigResource(type=TOPIC, name='%.*s'): ",
        STR_ARG(topic));
    for (int i = 0; i < list.n; i++)
        if (!topic_config_find(list.v[i].name))
            return refuse_with(c, KERR_INVALID_CONFIG, "",
                               topic_config_check(NULL, list.v[i].name, list.v[i].value));
    for (int i = 0; i < list.n; i++) {
        char *problem = topic_config_check(NULL, list.v[i].name, list.v[i].value);
        if (problem)
            return refuse_with(c, KERR_INVALID_REQUEST, resource, problem);
    }
    int64_t least = number(list, "min.compaction.lag.ms", 0);
    int64_t most = number(list, "max.compaction.lag.ms", INT64_MAX);
    if (least > most)
        return refuse(c, KERR_INVALID_CONFIG,
                      arena_printf(c->arena,
                                   "conflict topic config setting min.compaction.lag.ms (%lld) > "
                                   "max.compaction.lag.ms (%lld)",
                                   (long long)least, (long long)most));
    return KERR_NONE;
}

/* Java's properties would take any text; ours end at a NUL. */
static bool is_text(struct str s)
{
    return s.len >= 0 && !memchr(s.p, 0, (size_t)s.len);
}

static struct props *props_of(struct config_list list)
{
    struct props *p = props_new();
    for (int i = 0; p && i < list.n; i++) {
        char *name = str_dup(list.v[i].name), *value = str_dup(list.v[i].value);
        if (!name || !value || props_set(p, name, value) != 0) {
            props_free(p);
            p = NULL;
        }
        free(name);
        free(value);
    }
    return p;
}

enum kerr config_change_check_broker(struct config_change *c, struct dynamic_config *d,
                                     enum config_layer layer, struct config_list list)
{
    for (int i = 0; i < list.n; i++)
        if (!is_text(list.v[i].name) || !is_text(list.v[i].value))
            return refuse(c, KERR_INVALID_REQUEST, "A config has no value, or a NUL in it");
    struct props *p = props_of(list);
    bool ok = false;
    char *problem = p ? dynamic_config_check(d, layer, p, &ok) : NULL;
    props_free(p);
    if (ok)
        return KERR_NONE;
    return refuse_with(c, problem ? KERR_INVALID_REQUEST : KERR_UNKNOWN_SERVER_ERROR, "", problem);
}
