/* znode.c - the small nodes: controller and its epoch, configs and their notices, cluster id,
 * producer ids, features. Topics are in znode_topic.c, brokers in znode_broker.c. */
#include "metadata/znode.h"

#include <errno.h>
#include <stdlib.h>

#include "metadata/json.h"

/* Emits o unless something failed. */
static struct bytes finish(json_t *o, int err, struct arena *a)
{
    if (err) {
        json_decref(o);
        return BYTES_NULL;
    }
    return json_emit(o, a);
}

struct bytes znode_controller_encode(const struct controller_node *c, struct arena *a)
{
    json_t *o = json_object();
    int err = json_put(o, "version", json_integer(2));
    err |= json_put(o, "brokerid", json_integer(c->broker));
    err |= json_put(o, "timestamp", json_of_i64_text(c->timestamp_ms));
    err |= json_put(o, "kraftControllerEpoch", json_integer(c->kraft_epoch));
    return finish(o, err, a);
}

int znode_controller_decode(struct bytes data, struct controller_node *c)
{
    *c = (struct controller_node){.broker = -1, .kraft_epoch = -1};
    json_t *o = json_parse(data);
    if (!o)
        return -EBADMSG;
    int err = json_get_i32(o, "brokerid", &c->broker);
    if (!err)
        err = json_get_i32_or(o, "kraftControllerEpoch", -1, &c->kraft_epoch);
    if (json_get_i64(o, "timestamp", &c->timestamp_ms))
        c->timestamp_ms = 0; /* nobody needs it */
    json_decref(o);
    return err;
}

struct bytes znode_epoch_encode(int32_t epoch, struct arena *a)
{
    char *text = arena_printf(a, "%d", epoch);
    return text ? (struct bytes){(uint8_t *)text, (int32_t)strlen(text)} : BYTES_NULL;
}

int znode_epoch_decode(struct bytes data, int32_t *epoch)
{
    char text[12];
    if (data.len < 1 || data.len >= (int32_t)sizeof(text))
        return -EBADMSG;
    memcpy(text, data.p, (size_t)data.len);
    text[data.len] = 0;
    char *end;
    long v = strtol(text, &end, 10);
    if (*end || end == text || v < 0 || v > INT32_MAX)
        return -EBADMSG;
    *epoch = (int32_t)v;
    return 0;
}

struct bytes znode_config_encode(struct config_list l, struct arena *a)
{
    json_t *o = json_object(), *config = json_object();
    int err = 0;
    for (int i = 0; i < l.n && !err; i++) {
        struct str name = arena_str(a, l.v[i].name);
        if (!name.p || (int32_t)strlen(name.p) != name.len)
            err = -1;
        else if (!str_is_null(l.v[i].value))
            err = json_put(config, name.p, json_of_str(l.v[i].value));
    }
    err |= json_put(o, "version", json_integer(1));
    err |= json_put(o, "config", config);
    return finish(o, err, a);
}

static int get_config(json_t *config, struct arena *a, struct config_list *l)
{
    const char *name;
    json_t *value;
    l->v = arena_array(a, struct config_pair, json_object_size(config));
    if (!l->v)
        return -ENOMEM;
    json_object_foreach (config, name, value) {
        struct config_pair *p = &l->v[l->n++];
        p->name = arena_str(a, str_of(name));
        if (!p->name.p)
            return -ENOMEM;
        int err = json_to_str(value, a, &p->value);
        if (err)
            return err;
    }
    return 0;
}

int znode_config_decode(struct bytes data, struct arena *a, struct config_list *l)
{
    *l = (struct config_list){NULL, 0};
    if (data.len <= 0)
        return 0;
    json_t *o = json_parse(data);
    if (!o)
        return -EBADMSG;
    int32_t version;
    json_t *config = json_object_get(o, "config");
    int err = json_get_i32(o, "version", &version);
    if (!err && config && !json_is_null(config))
        err = json_is_object(config) ? get_config(config, a, l) : -EBADMSG;
    json_decref(o);
    if (err)
        l->n = 0;
    return err;
}

struct bytes znode_config_change_encode(struct str entity_path, struct arena *a)
{
    json_t *o = json_object();
    int err = json_put(o, "version", json_integer(2));
    err |= json_put(o, "entity_path", json_of_str(entity_path));
    return finish(o, err, a);
}

/* Version 1 has type and name apart, and only topics and clients. */
static int get_change_v1(const json_t *o, struct arena *a, struct str *path)
{
    struct str type, name;
    int err = json_get_str(o, "entity_type", a, &type);
    if (!err)
        err = json_get_str(o, "entity_name", a, &name);
    if (!err && !str_eqz(type, "topics") && !str_eqz(type, "clients"))
        err = -EBADMSG;
    if (err)
        return err;
    char *joined = arena_printf(a, "%.*s/%.*s", STR_ARG(type), STR_ARG(name));
    *path = str_of(joined);
    return joined ? 0 : -ENOMEM;
}

int znode_config_change_decode(struct bytes data, struct arena *a, struct str *entity_path)
{
    *entity_path = STR_NULL;
    json_t *o = json_parse(data);
    if (!o)
        return -EBADMSG;
    int32_t version;
    int err = json_get_i32(o, "version", &version);
    if (!err && version == 1)
        err = get_change_v1(o, a, entity_path);
    else if (!err && version == 2)
        err = json_get_str(o, "entity_path", a, entity_path);
    else if (!err)
        err = -EBADMSG;
    json_decref(o);
    return err;
}

struct bytes znode_cluster_id_encode(const char *id, struct arena *a)
{
    json_t *o = json_object();
    int err = json_put(o, "version", json_string("1")); /* a text, unlike everywhere else */
    err |= json_put(o, "id", json_string(id));
    return finish(o, err, a);
}

int znode_cluster_id_decode(struct bytes data, struct arena *a, struct str *id)
{
    *id = STR_NULL;
    json_t *o = json_parse(data);
    if (!o)
        return -EBADMSG;
    int err = json_get_str(o, "id", a, id);
    json_decref(o);
    return err;
}

struct bytes znode_producer_ids_encode(const struct producer_id_block *b, struct arena *a)
{
    json_t *o = json_object();
    int err = json_put(o, "version", json_integer(1));
    err |= json_put(o, "broker", json_integer(b->broker));
    err |= json_put(o, "block_start", json_of_i64_text(b->start));
    err |= json_put(o, "block_end", json_of_i64_text(b->end));
    return finish(o, err, a);
}

int znode_producer_ids_decode(struct bytes data, struct producer_id_block *b)
{
    *b = (struct producer_id_block){.broker = -1};
    json_t *o = json_parse(data);
    if (!o)
        return -EBADMSG;
    int err = json_get_i32(o, "broker", &b->broker);
    if (!err)
        err = json_get_i64(o, "block_start", &b->start);
    if (!err)
        err = json_get_i64(o, "block_end", &b->end);
    if (!err && (b->start < 0 || b->end < b->start))
        err = -EBADMSG;
    json_decref(o);
    return err;
}

struct bytes znode_feature_encode(struct arena *a)
{
    json_t *o = json_object();
    int err = json_put(o, "version", json_integer(2));
    err |= json_put(o, "status", json_integer(1));
    err |= json_put(o, "features", json_object());
    return finish(o, err, a);
}

int znode_feature_decode(struct bytes data, int32_t *version, int32_t *status)
{
    json_t *o = json_parse(data);
    if (!o)
        return -EBADMSG;
    int err = json_get_i32(o, "version", version);
    if (!err)
        err = json_get_i32(o, "status", status);
    if (!err && (*version < 1 || *version > 2 || !json_is_object(json_object_get(o, "features"))))
        err = -EBADMSG;
    json_decref(o);
    return err;
}

/* ---- lists of ids ---- */

int id_compare(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

bool id_list_has_twice(struct id_list l, struct arena *a)
{
    size_t n = l.n > 0 ? (size_t)l.n : 0;
    int32_t *sorted = arena_array(a, int32_t, n);
    if (!sorted)
        return true;
    if (n) {
        memcpy(sorted, l.v, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), id_compare);
    }
    for (size_t i = 1; i < n; i++)
        if (sorted[i] == sorted[i - 1])
            return true;
    return false;
}
