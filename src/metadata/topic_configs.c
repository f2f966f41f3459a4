/* topic_configs.c - the map of overrides; who keeps it fresh is change_notices.c. */
#include "metadata/topic_configs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/logline.h"
#include "metadata/change_notices.h"
#include "metadata/paths.h"
#include "metadata/store_batch.h"
#include "metadata/znode.h"

static const char component[] = "TopicConfigs";

enum { SWEEP_MS = 60000 };

/* One block of memory: pairs and texts lie behind it. */
struct entry {
    struct topic_overrides pub; /* first */
    atomic_int refs;            /* the map's and each reader's */
    struct hnode node;
    struct str topic;
    bool missed; /* the last sweep did not find the topic; under the map's lock */
};

struct topic_configs {
    struct topic_configs_options o;
    pthread_mutex_t lock; /* the map */
    struct hmap map;
    struct change_notices *changes;
    /* The executor's. */
    struct metadata_cache *metadata;
    struct task follow_task;
    struct timer sweep_timer;
    bool closing;
    int refs; /* the reader of notices; the task while it is posted */
};

static struct entry *entry_of(const struct topic_overrides *o)
{
    return container_of((struct topic_overrides *)o, struct entry, pub);
}

void topic_overrides_unref(const struct topic_overrides *o)
{
    if (!o || atomic_fetch_sub(&entry_of(o)->refs, 1) != 1)
        return;
    free(entry_of(o));
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

static struct str pack_text(char **at, struct str s)
{
    struct str copy = {memcpy(*at, s.p, (size_t)s.len), s.len};
    *at += s.len;
    return copy;
}

static struct entry *pack_entry(struct str topic, struct config_list list)
{
    size_t texts = (size_t)topic.len;
    for (int i = 0; i < list.n; i++)
        texts += (size_t)list.v[i].name.len + (size_t)list.v[i].value.len;
    struct entry *e = calloc(1, sizeof(*e) + (size_t)list.n * sizeof(struct config_pair) + texts);
    if (!e)
        return NULL;
    struct config_pair *pairs = (struct config_pair *)(e + 1);
    char *at = (char *)(pairs + list.n);
    atomic_init(&e->refs, 1);
    e->topic = pack_text(&at, topic);
    e->pub.list = (struct config_list){pairs, list.n};
    for (int i = 0; i < list.n; i++)
        pairs[i] =
            (struct config_pair){pack_text(&at, list.v[i].name), pack_text(&at, list.v[i].value)};
    return e;
}

/* From the node's data; no overrides make no entry. 0, -EBADMSG, -ENOMEM. */
static int make_entry(struct str topic, struct bytes data, struct entry **out)
{
    struct arena a;
    struct config_list list;
    *out = NULL;
    arena_init(&a, 0);
    int err = znode_config_decode(data, &a, &list);
    if (!err && list.n && !(*out = pack_entry(topic, list)))
        err = -ENOMEM;
    arena_free(&a);
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

static void unref(struct topic_configs *t)
{
    if (--t->refs == 0)
        free_all(t);
}

static void on_closed(void *arg)
{
    unref(arg);
}

/* Topics that two sweeps in a row do not find are gone; one may be new, and told to others first.
 */
static void sweep(struct timer *timer)
{
    struct topic_configs *t = container_of(timer, struct topic_configs, sweep_timer);
    const struct metadata_snapshot *s = metadata_acquire(t->metadata);
    pthread_mutex_lock(&t->lock);
    for (struct hnode *h = hmap_first(&t->map), *next; h; h = next) {
        struct entry *e = hmap_entry(h, struct entry, node);
        next = hmap_next(&t->map, h);
        bool here = metadata_topic(s, e->topic) != NULL;
        if (!here && e->missed) {
            hmap_remove(&t->map, h);
            topic_overrides_unref(&e->pub);
        } else {
            e->missed = !here;
        }
    }
    pthread_mutex_unlock(&t->lock);
    metadata_release(s);
    executor_timer_start(t->o.ex, timer, SWEEP_MS);
}

static void begin_sweeps(struct task *task)
{
    struct topic_configs *t = container_of(task, struct topic_configs, follow_task);
    if (!t->closing)
        executor_timer_start(t->o.ex, &t->sweep_timer, SWEEP_MS);
    unref(t);
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
    t->refs = 1;
    task_init(&t->follow_task, begin_sweeps);
    timer_init(&t->sweep_timer, sweep);
    struct change_notices_options co = {.store = o->store,
                                        .ex = o->ex,
                                        .clock = o->clock,
                                        .component = "ConfigChanges",
                                        .dir = PATH_CONFIG_CHANGES,
                                        .name_prefix = "config_change_",
                                        .node_prefix = PATH_CONFIG "/",
                                        .decode = znode_config_change_decode,
                                        .wants_data = wants_data,
                                        .data = on_data,
                                        .changed = on_changed,
                                        .closed = on_closed,
                                        .arg = t};
    int err = read_all(t);
    if (!err)
        err = change_notices_new(&co, &t->changes);
    if (err) {
        free_all(t);
        return err;
    }
    *out = t;
    return 0;
}

void topic_configs_follow(struct topic_configs *t, struct metadata_cache *metadata)
{
    change_notices_start(t->changes);
    t->metadata = metadata;
    t->refs++;
    executor_post(t->o.ex, &t->follow_task);
}

void topic_configs_close(struct topic_configs *t)
{
    if (!t)
        return;
    t->closing = true;
    executor_timer_stop(t->o.ex, &t->sweep_timer);
    change_notices_close(t->changes);
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
