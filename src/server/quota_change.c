/* quota_change.c - see quota_change.h. */
#include "server/quota_change.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/quota_limits.h"

#define CONNECTION_RATE "connection_creation_rate"

static enum kerr refuse(const char **message, const char *text)
{
    *message = text;
    return KERR_INVALID_REQUEST;
}

/* ---- whom it is about ---- */

enum kerr quota_change_entity(const struct alter_client_quotas_request_entry *entry,
                              struct arena *a, struct quota_entity *out, const char **message)
{
    *out = (struct quota_entity){0};
    if (entry->entity.n <= 0)
        return refuse(message, "Invalid empty client quota entity");
    for (int32_t i = 0; i < entry->entity.n; i++) {
        const struct alter_client_quotas_request_entity *e = &entry->entity.v[i];
        enum quota_part part;
        if (!quota_part_find(e->entity_type, &part))
            return refuse(message, arena_printf(a, "Unhandled client quota entity type: %.*s",
                                                STR_ARG(e->entity_type)));
        if (out->part[part].given)
            return refuse(message, arena_printf(a, "Duplicate client quota entity type: %s",
                                                quota_part_name(part)));
        if (e->entity_name.len == 0)
            return refuse(message,
                          arena_printf(a, "Empty %s not supported", quota_part_name(part)));
        out->part[part].given = true;
        out->part[part].name = e->entity_name;
    }
    if (!quota_entity_valid(out))
        return refuse(message, "Invalid quota entity combination, IP entity should not be used "
                               "with user/client ID entity.");
    return KERR_NONE;
}

/* ---- values ---- */

/* NULL: not a quota of such an entity. */
static const bool *key_whole(const struct quota_entity *e, struct str key)
{
    static const bool whole = true;
    if (!e->part[QUOTA_IP].given)
        return quota_key_whole(key);
    return str_eqz(key, CONNECTION_RATE) ? &whole : NULL;
}

bool quota_value(const struct quota_entity *e, const struct config_pair *pair, double *value)
{
    char *text = key_whole(e, pair->name) ? str_dup(pair->value) : NULL, *end;
    bool is_number = text && *text;
    if (is_number) {
        *value = strtod(text, &end);
        is_number = !*end;
    }
    free(text);
    return is_number;
}

/* The shortest text that reads as the same number, with a fraction, as Java writes it. */
static const char *double_text(struct arena *a, double v)
{
    char text[40];
    if (v < 1e15 && v == (double)(int64_t)v)
        return arena_printf(a, "%.1f", v);
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    return arena_printf(a, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

/* Numbers come as doubles: a whole one may be a little beside. */
static bool is_whole(double v)
{
    return v >= (double)INT64_MAX || v - (double)(int64_t)(v + 1e-6) <= 1e-6;
}

static const char *whole_text(struct arena *a, double v)
{
    long long n = v >= (double)INT64_MAX ? INT64_MAX : (long long)(v + 1e-6);
    return arena_printf(a, "%lld", n);
}

static enum kerr value_text(const struct quota_entity *e, struct str key, double v, struct arena *a,
                            const char **text, const char **message)
{
    const bool *whole = key_whole(e, key);
    bool of_ip = e->part[QUOTA_IP].given;
    if (!whole)
        return refuse(message, arena_printf(a, "Invalid configuration key %.*s", STR_ARG(key)));
    if (!(v >= 0) || isinf(v) || (v == 0 && !of_ip) || (of_ip && v > INT32_MAX))
        return refuse(message, arena_printf(a, "Quota %.*s must be %s", STR_ARG(key),
                                            of_ip ? "from 0 to 2147483647" : "greater than 0"));
    if (*whole && !is_whole(v))
        return refuse(message, arena_printf(a, "Configuration %.*s must be a %s value",
                                            STR_ARG(key), of_ip ? "INT" : "LONG"));
    *text = *whole ? whole_text(a, v) : double_text(a, v);
    return *text ? KERR_NONE : KERR_UNKNOWN_SERVER_ERROR;
}

/* ---- the settings afterwards ---- */

static void drop(struct config_list *l, struct str name)
{
    for (int i = 0; i < l->n; i++) {
        if (!str_eq(l->v[i].name, name))
            continue;
        l->v[i] = l->v[--l->n];
        return;
    }
}

enum kerr quota_change_make(const struct alter_client_quotas_request_entry *entry,
                            const struct quota_entity *e, struct config_list old, struct arena *a,
                            struct config_list *out, const char **message)
{
    out->n = old.n;
    out->v = arena_array(a, struct config_pair, (size_t)(old.n + entry->ops.n));
    if (!out->v)
        return KERR_UNKNOWN_SERVER_ERROR;
    if (old.n)
        memcpy(out->v, old.v, (size_t)old.n * sizeof(*out->v));
    for (int32_t i = 0; i < entry->ops.n; i++) {
        const struct alter_client_quotas_request_op *op = &entry->ops.v[i];
        const char *text = NULL;
        enum kerr error =
            op->remove ? KERR_NONE : value_text(e, op->key, op->value, a, &text, message);
        if (error != KERR_NONE)
            return error;
        /* Of what is no quota nothing is taken away: users have other settings, too. */
        if (!op->remove || key_whole(e, op->key))
            drop(out, op->key);
        if (text)
            out->v[out->n++] = (struct config_pair){op->key, str_of(text)};
    }
    return KERR_NONE;
}

/* ---- descriptions ---- */

enum { MATCH_EXACT = 0, MATCH_DEFAULT = 1, MATCH_ANY = 2 };

static enum kerr add_component(const struct describe_client_quotas_request_component *c,
                               struct arena *a, struct quota_filter *f, const char **message)
{
    enum quota_part part;
    if (c->entity_type.len <= 0)
        return refuse(message, "Unexpected empty filter component entity type");
    if (!quota_part_find(c->entity_type, &part)) {
        *message =
            arena_printf(a, "Custom entity type '%.*s' not supported", STR_ARG(c->entity_type));
        return KERR_UNSUPPORTED_VERSION;
    }
    if (f->part[part].given)
        return refuse(message, arena_printf(a, "Duplicate %s filter component entity type",
                                            quota_part_name(part)));
    if (c->match_type < MATCH_EXACT || c->match_type > MATCH_ANY)
        return refuse(message, arena_printf(a, "Unexpected match type: %d", c->match_type));
    if (c->match_type == MATCH_EXACT && str_is_null(c->match))
        return refuse(message, "A filter component that matches a name needs one");
    f->part[part].given = true;
    f->part[part].exact = c->match_type == MATCH_EXACT;
    f->part[part].is_default = c->match_type == MATCH_DEFAULT;
    f->part[part].name = c->match;
    return KERR_NONE;
}

enum kerr quota_filter_of(const struct describe_client_quotas_request *req, struct arena *a,
                          struct quota_filter *out, const char **message)
{
    *out = (struct quota_filter){.strict = req->strict};
    for (int32_t i = 0; i < req->components.n; i++) {
        enum kerr error = add_component(&req->components.v[i], a, out, message);
        if (error != KERR_NONE)
            return error;
    }
    if (out->part[QUOTA_IP].given && (out->part[QUOTA_USER].given || out->part[QUOTA_CLIENT].given))
        return refuse(message, "Invalid entity filter component combination, IP filter component "
                               "should not be used with user or clientId filter component.");
    return KERR_NONE;
}

/* An entity is an address or it is not; a filter for the one kind does not mean the other. */
static bool same_kind(const struct quota_filter *f, const struct quota_entity *e)
{
    bool ip = e->part[QUOTA_IP].given;
    bool others = f->part[QUOTA_USER].given || f->part[QUOTA_CLIENT].given;
    return ip ? !others : !f->part[QUOTA_IP].given;
}

bool quota_filter_fits(const struct quota_filter *f, const struct quota_entity *e)
{
    if (!same_kind(f, e))
        return false;
    for (int i = 0; i < QUOTA_PARTS; i++) {
        bool given = e->part[i].given;
        if (!f->part[i].given) {
            if (given && f->strict)
                return false;
            continue;
        }
        if (!given || (f->part[i].exact && !str_eq(f->part[i].name, e->part[i].name)) ||
            (f->part[i].is_default && !str_is_null(e->part[i].name)))
            return false;
    }
    return true;
}
