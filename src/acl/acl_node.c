/* acl_node.c - see acl_node.h. */
#include "acl/acl_node.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "metadata/json.h"

enum { VERSION = 1 };

/* ---- sets of entries ---- */

static int entry_of_json(const json_t *o, struct arena *a, struct acl_entry *e)
{
    struct str permission, operation;
    int err = json_get_str(o, "principal", a, &e->principal);
    if (!err)
        err = json_get_str(o, "permissionType", a, &permission);
    if (!err)
        err = json_get_str(o, "operation", a, &operation);
    if (!err)
        err = json_get_str(o, "host", a, &e->host);
    if (err)
        return err;
    e->permission = acl_permission_of_text(permission);
    e->operation = acl_operation_of_text(operation);
    bool known = e->permission > ACL_PERMISSION_ANY && e->operation > ACL_OPERATION_ANY &&
                 acl_principal_ok(e->principal);
    return known ? 0 : -EBADMSG;
}

/* Entries of a node that are there already, by their bytes. */
struct known_entry {
    struct hnode node;
    const struct acl_entry *e;
};

static bool same_entry(const struct hnode *h, const void *key)
{
    return acl_entry_eq(hmap_entry(h, struct known_entry, node)->e, key);
}

static uint64_t entry_hash(const struct acl_entry *e)
{
    return hash_str(e->principal) ^ hash_str(e->host) * 3 ^
           hash_int((uint64_t)e->operation << 8 | (uint64_t)e->permission);
}

int acl_entry_note(struct hmap *known, const struct acl_entry *e, struct arena *a)
{
    uint64_t hash = entry_hash(e);
    if (hmap_find(known, hash, same_entry, e))
        return 0;
    struct known_entry *k = arena_new(a, struct known_entry);
    if (!k || hmap_put(known, &k->node, hash) != 0)
        return -ENOMEM;
    k->e = e;
    return 1;
}

static int keep_strange(const json_t *o, struct arena *a, struct acl_node *out)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);
    struct str copy = text ? arena_str(a, str_of(text)) : STR_NULL;
    free(text);
    if (!copy.p)
        return -ENOMEM;
    out->strange[out->strange_n++] = copy;
    return 0;
}

static int entries_of_json(const json_t *array, struct hmap *known, struct arena *a,
                           struct acl_node *out)
{
    size_t n = json_array_size(array);
    out->entries = arena_array(a, struct acl_entry, n);
    out->strange = arena_array(a, struct str, n);
    if (!out->entries || !out->strange)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct acl_entry *e = &out->entries[out->n];
        int rc = entry_of_json(json_array_get(array, i), a, e);
        if (rc == 0)
            rc = acl_entry_note(known, e, a);
        else if (rc == -EBADMSG)
            rc = keep_strange(json_array_get(array, i), a, out);
        if (rc < 0)
            return rc;
        out->n += rc;
    }
    return 0;
}

int acl_node_decode(struct bytes data, struct arena *a, struct acl_node *out)
{
    int32_t version;
    *out = (struct acl_node){0};
    if (data.len <= 0)
        return 0;
    struct hmap known;
    json_t *o = json_parse(data);
    const json_t *acls = json_object_get(o, "acls");
    hmap_init(&known);
    int err =
        o && json_get_i32(o, "version", &version) == 0 && version == VERSION && json_is_array(acls)
            ? entries_of_json(acls, &known, a, out)
            : -EBADMSG;
    hmap_free(&known);
    json_decref(o);
    return err;
}

/* In the order in which Apache's brokers write the keys: so the bytes are the same. */
static json_t *json_of_entry(const struct acl_entry *e)
{
    json_t *o = json_object();
    if (o && json_put(o, "principal", json_of_str(e->principal)) == 0 &&
        json_put(o, "permissionType", json_string(acl_permission_name(e->permission))) == 0 &&
        json_put(o, "host", json_of_str(e->host)) == 0 &&
        json_put(o, "operation", json_string(acl_operation_name(e->operation))) == 0)
        return o;
    json_decref(o);
    return NULL;
}

struct bytes acl_node_encode(const struct acl_node *node, struct arena *a)
{
    json_t *o = json_object(), *array = json_array();
    bool ok = o && array;
    for (int i = 0; ok && i < node->n; i++)
        ok = json_array_append_new(array, json_of_entry(&node->entries[i])) == 0;
    for (int i = 0; ok && i < node->strange_n; i++)
        ok = json_array_append_new(array,
                                   json_loadb(node->strange[i].p, (size_t)node->strange[i].len,
                                              JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)) == 0;
    ok = ok && json_put(o, "acls", json_incref(array)) == 0 &&
         json_put(o, "version", json_integer(VERSION)) == 0;
    json_decref(array);
    if (ok)
        return json_emit(o, a);
    json_decref(o);
    return BYTES_NULL;
}

/* ---- paths ---- */

char *acl_node_path(const struct acl_pattern *p, struct arena *a)
{
    return arena_printf(a, "%s/%s/%.*s", p->kind == ACL_PREFIXED ? PATH_ACL_PREFIXED : PATH_ACL,
                        acl_resource_name(p->type), STR_ARG(p->name));
}

/* What is behind the tree's path and a slash; null when it is elsewhere. */
static struct str below(struct str path, struct str tree)
{
    if (path.len <= tree.len || memcmp(path.p, tree.p, (size_t)tree.len) != 0 ||
        path.p[tree.len] != '/')
        return STR_NULL;
    return (struct str){path.p + tree.len + 1, path.len - tree.len - 1};
}

bool acl_node_path_parse(struct str path, struct acl_pattern *out)
{
    struct str rest = below(path, STR_LIT(PATH_ACL_PREFIXED));
    out->kind = ACL_PREFIXED;
    if (str_is_null(rest)) {
        rest = below(path, STR_LIT(PATH_ACL));
        out->kind = ACL_LITERAL;
    }
    const char *slash = rest.len > 0 ? memchr(rest.p, '/', (size_t)rest.len) : NULL;
    if (!slash)
        return false;
    int32_t type_len = (int32_t)(slash - rest.p);
    out->type = acl_resource_of_name((struct str){rest.p, type_len});
    out->name = (struct str){slash + 1, rest.len - type_len - 1};
    return out->type != ACL_RESOURCE_UNKNOWN && out->name.len > 0 &&
           !memchr(out->name.p, '/', (size_t)out->name.len);
}

/* ---- notices ---- */

struct bytes acl_notice_encode(const struct acl_pattern *p, struct arena *a)
{
    if (p->kind != ACL_PREFIXED) {
        char *text = arena_printf(a, "%s:%.*s", acl_resource_upper(p->type), STR_ARG(p->name));
        return text ? (struct bytes){(const uint8_t *)text, (int32_t)strlen(text)} : BYTES_NULL;
    }
    json_t *o = json_object();
    if (o && json_put(o, "version", json_integer(VERSION)) == 0 &&
        json_put(o, "resourceType", json_string(acl_resource_upper(p->type))) == 0 &&
        json_put(o, "name", json_of_str(p->name)) == 0 &&
        json_put(o, "patternType", json_string(acl_pattern_upper(p->kind))) == 0)
        return json_emit(o, a);
    json_decref(o);
    return BYTES_NULL;
}

static int literal_notice(struct str text, struct arena *a, struct acl_pattern *out)
{
    const char *colon = text.len > 0 ? memchr(text.p, ':', (size_t)text.len) : NULL;
    if (!colon)
        return -EBADMSG;
    int32_t type_len = (int32_t)(colon - text.p);
    out->kind = ACL_LITERAL;
    out->type = acl_resource_of_text((struct str){text.p, type_len});
    out->name = arena_str(a, (struct str){colon + 1, text.len - type_len - 1});
    return out->name.p ? 0 : -ENOMEM;
}

static int extended_notice(struct bytes data, struct arena *a, struct acl_pattern *out)
{
    int32_t version;
    struct str type, kind;
    json_t *o = json_parse(data);
    int err = o ? json_get_i32(o, "version", &version) : -EBADMSG;
    if (!err && version > VERSION)
        err = -EBADMSG;
    if (!err)
        err = json_get_str(o, "resourceType", a, &type);
    if (!err)
        err = json_get_str(o, "name", a, &out->name);
    if (!err)
        err = json_get_str(o, "patternType", a, &kind);
    json_decref(o);
    if (err)
        return err;
    out->type = acl_resource_of_text(type);
    out->kind = acl_pattern_of_text(kind);
    return out->kind >= ACL_LITERAL ? 0 : -EBADMSG;
}

int acl_notice_decode(struct bytes data, enum acl_pattern_type kind, struct arena *a,
                      struct acl_pattern *out)
{
    int err = kind == ACL_PREFIXED
                  ? extended_notice(data, a, out)
                  : literal_notice((struct str){(const char *)data.p, data.len}, a, out);
    if (err)
        return err;
    bool known = out->type > ACL_RESOURCE_ANY && out->name.len > 0 &&
                 !memchr(out->name.p, '/', (size_t)out->name.len) &&
                 !memchr(out->name.p, 0, (size_t)out->name.len);
    return known ? 0 : -EBADMSG;
}

const char *acl_notice_path(enum acl_pattern_type kind)
{
    return kind == ACL_PREFIXED ? PATH_ACL_PREFIXED_CHANGES "/" ACL_CHANGE_PREFIX
                                : PATH_ACL_CHANGES "/" ACL_CHANGE_PREFIX;
}
