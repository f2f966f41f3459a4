/* topic_configs.c - the map of overrides; who keeps it fresh is config_changes.c. */
#include "metadata/topic_configs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/logline.h"
#include "metadata/config_changes.h"
#include "metadata/paths.h"
#include "metadata/store_batch.h"

static const char component[] = "TopicConfigs";

struct entry {
    struct topic_overrides pub; /* first */
    atomic_int refs;            /* the map's and each reader's */
    struct arena arena;
    struct hnode node;
    struct str topic;
};

struct topic_configs {
    struct topic_configs_options o;
    pthread_mutex_t lock; /* the map */
    struct hmap map;
    struct config_changes *changes;
};

static struct entry *entry_of(const struct topic_overrides *o)
{
    return container_of((struct topic_overrides *)o, struct entry, pub);
}

void topic_overrides_unref(const struct topic_overrides *o)
{
    if (!o || atomic_fetch_sub(&entry_of(o)->refs, 1) != 1)
        return;
    struct entry *e = entry_of(o);
    arena_free(&e->arena);
    free(e);
}

struct str topic_overrides_value(const struct topic_overrides *o, struct str name)
{
    for (int i = 0; o && i < o->list.n; i++)
        if (str_eq(o->list.v[i].name, name))
            return o->list.v[i].value;
    return STR_NULL;
}

static bool topic_equals(const struct hnode *h, const void *key)
{
    return str_eq(hmap_entry(h, struct entry, node)->topic, *(const struct str *)key);
}

/* The lock is held. Takes the entry (NULL: none) into the map in the place of what was there. */
static void replace(struct topic_configs *t, struct str topic, struct entry *e)
{
    uint64_t hash = hash_str(topic);
    struct hnode *h = hmap_find(&t->map, hash, topic_equals, &topic);
    if (h) {
        hmap_remove(&t->map, h);
        topic_overrides_unref(&hmap_entry(h, struct entry, node)->pub);
    }
    if (e && hmap_put(&t->map, &e->node, hash)) {
        say_error(component, "no memory for the settings of topic %.*s", STR_ARG(topic));
        topic_overrides_unref(&e->pub);
    }
}

/* From the node's data; no overrides make no entry. 0, -EBADMSG, -ENOMEM. */
static int make_entry(struct str topic, struct bytes data, struct entry **out)
{
    *out = NULL;
    struct entry *e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    atomic_init(&e->refs, 1);
    arena_init(&e->arena, 0);
    int err = znode_config_decode(data, &e->arena, &e->pub.list);
    e->topic = arena_str(&e->arena, topic);
    if (!err && !e->topic.p)
        err = -ENOMEM;
    if (err || !e->pub.list.n)
        topic_overrides_unref(&e->pub);
    else
        *out = e;
    return err;
}

/* What the store answered to a GET of the topic's config node. */
static int take_answer(struct topic_configs *t, struct str topic, int status, struct bytes data)
{
    struct entry *e = NULL;
    if (status && status != -ENOENT)
        return status;
    int err = status ? 0 : make_entry(topic, data, &e);
    if (err == -EBADMSG)
        say_error(component, PATH_CONFIG_TOPICS "/%.*s is malformed and ignored", STR_ARG(topic));
    if (err)
        return err;
    pthread_mutex_lock(&t->lock);
    replace(t, topic, e);
    pthread_mutex_unlock(&t->lock);
    return 0;
}

static int read_all(struct topic_configs *t)
{
    struct arena a;
    arena_init(&a, 0);
    struct store_op list = store_op_children(PATH_CONFIG_TOPICS, false);
    struct store_request r = {.ops = &list, .ops_n = 1};
    struct store_batch b;
    store_batch_init(&b, &a);
    int err = store_run(t->o.store, &r);
    if (err == -ENOENT)
        err = 0;
    for (int i = 0; i < list.names_n && !err; i++) {
        char *path = path_topic_config(&a, str_of(list.names[i]));
        struct store_request *get = path ? store_batch_add(&b, store_op_get(path, false)) : NULL;
        if (get)
            get->user = list.names[i];
        else
            err = -ENOMEM;
    }
    if (!err)
        err = store_batch_run(&b, t->o.store);
    store_batch_each (get, &b) {
        if (err)
            break;
        err = take_answer(t, str_of(get->user), get->status, get->ops[0].result);
        if (err == -EBADMSG)
            err = 0;
    }
    store_batch_clear(&b);
    store_request_clear(&r);
    arena_free(&a);
    return err;
}

static void free_all(struct topic_configs *t)
{
    struct hnode *h;
    while ((h = hmap_first(&t->map))) {
        hmap_remove(&t->map, h);
        topic_overrides_unref(&hmap_entry(h, struct entry, node)->pub);
    }
    hmap_free(&t->map);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* Hooks of the reader of notices. */

static bool wants_data(void *arg, struct str entity_path)
{
    return entity_path.len > 7 && memcmp(entity_path.p, "topics/", 7) == 0;
}

static void on_data(void *arg, struct str entity_path, int status, struct bytes data)
{
    struct str topic = {entity_path.p + 7, entity_path.len - 7};
    take_answer(arg, topic, status, data);
}

static void on_changed(void *arg, struct str entity_path)
{
    struct topic_configs *t = arg;
    if (t->o.changed)
        t->o.changed(t->o.arg, entity_path);
}

static void on_closed(void *arg)
{
    free_all(arg);
}

int topic_configs_open(const struct topic_configs_options *o, struct topic_configs **out)
{
    *out = NULL;
    struct topic_configs *t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->o = *o;
    pthread_mutex_init(&t->lock, NULL);
    hmap_init(&t->map);
    struct config_changes_options co = {.store = o->store,
                                        .ex = o->ex,
                                        .clock = o->clock,
                                        .wants_data = wants_data,
                                        .data = on_data,
                                        .changed = on_changed,
                                        .closed = on_closed,
                                        .arg = t};
    int err = read_all(t);
    if (!err)
        err = config_changes_new(&co, &t->changes);
    if (err) {
        free_all(t);
        return err;
    }
    *out = t;
    return 0;
}

void topic_configs_follow(struct topic_configs *t)
{
    config_changes_start(t->changes);
}

void topic_configs_close(struct topic_configs *t)
{
    if (t)
        config_changes_close(t->changes);
}

const struct topic_overrides *topic_configs_get(struct topic_configs *t, struct str topic)
{
    pthread_mutex_lock(&t->lock);
    struct hnode *h = hmap_find(&t->map, hash_str(topic), topic_equals, &topic);
    struct entry *e = h ? hmap_entry(h, struct entry, node) : NULL;
    if (e)
        atomic_fetch_add(&e->refs, 1);
    pthread_mutex_unlock(&t->lock);
    return e ? &e->pub : NULL;
}

int topic_configs_refresh(struct topic_configs *t, struct str topic)
{
    struct arena a;
    struct bytes data = BYTES_NULL;
    arena_init(&a, 0);
    char *path = path_topic_config(&a, topic);
    int status = path ? store_get(t->o.store, path, &data, NULL) : -ENOMEM;
    int err = take_answer(t, topic, status, data);
    free((void *)data.p);
    arena_free(&a);
    return err;
}

void topic_configs_forget(struct topic_configs *t, struct str topic)
{
    pthread_mutex_lock(&t->lock);
    replace(t, topic, NULL);
    pthread_mutex_unlock(&t->lock);
}
