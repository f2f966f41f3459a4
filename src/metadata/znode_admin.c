/* znode_admin.c - nodes by which tools and brokers ask the controller for something, or tell it. */
#include <errno.h>

#include "metadata/json.h"

static struct bytes finish(json_t *o, int err, struct arena *a)
{
    if (err) {
        json_decref(o);
        o = NULL;
    }
    return json_emit(o, a);
}

/* ---- lists of partitions, maybe with replicas ---- */

static int get_entry(const json_t *e, struct arena *a, bool replicas, struct named_partition *out)
{
    int err = json_get_str(e, "topic", a, &out->topic);
    if (!err)
        err = json_get_i32(e, "partition", &out->partition);
    if (!err && replicas)
        err = json_to_ids(json_object_get(e, "replicas"), a, &out->replicas);
    return err;
}

static int decode_list(struct bytes data, struct arena *a, bool replicas,
                       struct named_partitions *out)
{
    *out = (struct named_partitions){NULL, 0};
    json_t *o = json_parse(data);
    json_t *list = json_object_get(o, "partitions");
    int err = json_is_array(list) ? 0 : -EBADMSG;
    if (!err) {
        out->v = arena_array(a, struct named_partition, json_array_size(list));
        err = out->v ? 0 : -ENOMEM;
    }
    for (size_t i = 0; !err && i < json_array_size(list); i++)
        err = get_entry(json_array_get(list, i), a, replicas, &out->v[out->n++]);
    json_decref(o);
    if (err)
        out->n = 0;
    return err;
}

static struct bytes encode_list(struct named_partitions l, bool replicas, struct arena *a)
{
    json_t *o = json_object(), *list = json_array();
    int err = json_put(o, "version", json_integer(1));
    for (int i = 0; i < l.n && !err; i++) {
        json_t *e = json_object();
        err |= json_put(e, "topic", json_of_str(l.v[i].topic));
        err |= json_put(e, "partition", json_integer(l.v[i].partition));
        if (replicas)
            err |= json_put(e, "replicas", json_of_ids(l.v[i].replicas));
        err |= json_array_append_new(list, e);
    }
    err |= json_put(o, "partitions", list);
    return finish(o, err, a);
}

struct bytes znode_partitions_encode(struct named_partitions l, struct arena *a)
{
    return encode_list(l, false, a);
}

int znode_partitions_decode(struct bytes data, struct arena *a, struct named_partitions *out)
{
    return decode_list(data, a, false, out);
}

struct bytes znode_reassign_encode(struct named_partitions l, struct arena *a)
{
    return encode_list(l, true, a);
}

int znode_reassign_decode(struct bytes data, struct arena *a, struct named_partitions *out)
{
    return decode_list(data, a, true, out);
}

/* ---- failed log dirs ---- */

enum { EVENT_LOG_DIR_FAILED = 1 };

struct bytes znode_log_dir_event_encode(int32_t broker, struct arena *a)
{
    json_t *o = json_object();
    int err = json_put(o, "version", json_integer(1));
    err |= json_put(o, "broker", json_integer(broker));
    err |= json_put(o, "event", json_integer(EVENT_LOG_DIR_FAILED));
    return finish(o, err, a);
}

int znode_log_dir_event_decode(struct bytes data, int32_t *broker)
{
    int32_t event;
    json_t *o = json_parse(data);
    if (!o)
        return -EBADMSG;
    int err = json_get_i32(o, "broker", broker);
    if (!err)
        err = json_get_i32(o, "event", &event);
    if (!err && event != EVENT_LOG_DIR_FAILED)
        err = -EBADMSG;
    json_decref(o);
    return err;
}
