/* znode_topic.c - nodes of topics and partitions: assignment, and leader and ISR. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "metadata/json.h"

static int put_ids(json_t *map, int32_t partition, struct id_list ids)
{
    char key[12];
    snprintf(key, sizeof(key), "%d", partition);
    return json_put(map, key, json_of_ids(ids));
}

struct bytes znode_topic_encode(const struct topic_node *t, struct arena *a)
{
    json_t *partitions = json_object(), *adding = json_object(), *removing = json_object();
    int err = 0;
    for (int i = 0; i < t->partitions_n && !err; i++) {
        const struct partition_assignment *p = &t->partitions[i];
        err |= put_ids(partitions, p->partition, p->replicas);
        if (p->adding.n)
            err |= put_ids(adding, p->partition, p->adding);
        if (p->removing.n)
            err |= put_ids(removing, p->partition, p->removing);
    }
    json_t *o = json_object();
    err |= json_put(o, "version", json_integer(3));
    if (!uuid_is_zero(t->id)) {
        char text[23];
        uuid_format(t->id, text);
        err |= json_put(o, "topic_id", json_string(text));
    }
    err |= json_put(o, "partitions", partitions);
    err |= json_put(o, "adding_replicas", adding);
    err |= json_put(o, "removing_replicas", removing);
    if (err) {
        json_decref(o);
        o = NULL;
    }
    return json_emit(o, a);
}

static int partition_number(const char *key, int32_t *out)
{
    size_t n = strlen(key);
    if (!n || n > 9 || strspn(key, "0123456789") != n)
        return -EBADMSG;
    *out = (int32_t)strtol(key, NULL, 10);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    int32_t x = ((const struct partition_assignment *)a)->partition;
    int32_t y = ((const struct partition_assignment *)b)->partition;
    return (x > y) - (x < y);
}

/* The lists of "adding_replicas" or "removing_replicas", which only partitions under reassignment
 * have. */
static int get_moving(const json_t *o, const char *key, struct topic_node *t, bool adding,
                      struct arena *a)
{
    json_t *map = json_object_get(o, key), *ids;
    const char *name;
    if (!map || json_is_null(map))
        return 0;
    if (!json_is_object(map))
        return -EBADMSG;
    json_object_foreach (map, name, ids) {
        struct partition_assignment want = {.partition = -1};
        int err = partition_number(name, &want.partition);
        if (err)
            return err;
        struct partition_assignment *p =
            bsearch(&want, t->partitions, (size_t)t->partitions_n, sizeof(*p), by_number);
        if (p && (err = json_to_ids(ids, a, adding ? &p->adding : &p->removing)))
            return err;
    }
    return 0;
}

static int get_partitions(const json_t *o, struct arena *a, struct topic_node *t)
{
    json_t *map = json_object_get(o, "partitions"), *ids;
    const char *name;
    if (!json_is_object(map))
        return -EBADMSG;
    t->partitions = arena_array(a, struct partition_assignment, json_object_size(map));
    if (!t->partitions)
        return -ENOMEM;
    json_object_foreach (map, name, ids) {
        struct partition_assignment *p = &t->partitions[t->partitions_n++];
        int err = partition_number(name, &p->partition);
        if (!err)
            err = json_to_ids(ids, a, &p->replicas);
        if (err)
            return err;
    }
    qsort(t->partitions, (size_t)t->partitions_n, sizeof(*t->partitions), by_number);
    for (int i = 1; i < t->partitions_n; i++)
        if (t->partitions[i].partition == t->partitions[i - 1].partition)
            return -EBADMSG; /* as "1" and "01" */
    return 0;
}

int znode_topic_decode(struct bytes data, struct arena *a, struct topic_node *t)
{
    *t = (struct topic_node){.partitions_n = 0};
    json_t *o = json_parse(data);
    if (!o)
        return -EBADMSG;
    int err = get_partitions(o, a, t);
    if (!err)
        err = get_moving(o, "adding_replicas", t, true, a);
    if (!err)
        err = get_moving(o, "removing_replicas", t, false, a);
    const json_t *id = json_object_get(o, "topic_id");
    if (!err && id && !json_is_null(id))
        err =
            json_is_string(id) && !uuid_parse(str_of(json_string_value(id)), &t->id) ? 0 : -EBADMSG;
    json_decref(o);
    return err;
}

struct bytes znode_partition_encode(const struct partition_node *p, struct arena *a)
{
    json_t *o = json_object();
    int err = json_put(o, "controller_epoch", json_integer(p->controller_epoch));
    err |= json_put(o, "leader", json_integer(p->leader));
    err |= json_put(o, "version", json_integer(1));
    err |= json_put(o, "leader_epoch", json_integer(p->leader_epoch));
    err |= json_put(o, "isr", json_of_ids(p->isr));
    if (p->recovering)
        err |= json_put(o, "leader_recovery_state", json_integer(1));
    if (err) {
        json_decref(o);
        o = NULL;
    }
    return json_emit(o, a);
}

int znode_partition_decode(struct bytes data, struct arena *a, struct partition_node *p)
{
    int32_t recovery;
    *p = (struct partition_node){.leader = -1};
    json_t *o = json_parse(data);
    if (!o)
        return -EBADMSG;
    int err = json_get_i32(o, "controller_epoch", &p->controller_epoch);
    if (!err)
        err = json_get_i32(o, "leader", &p->leader);
    if (!err)
        err = json_get_i32(o, "leader_epoch", &p->leader_epoch);
    if (!err)
        err = json_get_i32_or(o, "leader_recovery_state", 0, &recovery);
    if (!err)
        err = json_to_ids(json_object_get(o, "isr"), a, &p->isr);
    if (!err)
        p->recovering = recovery == 1;
    json_decref(o);
    return err;
}
