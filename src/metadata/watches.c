/* watches.c - see watches.h.
 *
 * SLOT   one per registered handler: on its path's list, perhaps on `noted`, perhaps posted. Taken
 *        off all lists when the handler goes (`watch` NULL); freed then, or by its posted task. */
#include "metadata/watches.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hmap.h"

struct watched_path {
    struct hnode node;
    struct list slots;
    int32_t len;
    char path[];
};

struct store_watch_slot {
    struct task task;
    struct watches *registry; /* a reference */
    struct store_watch *watch;
    const void *session;
    struct watched_path *path;
    struct list path_link, noted_link;
    bool armed, posted;
};

struct watches {
    pthread_mutex_t lock; /* all below, and all slots */
    struct hmap paths;
    struct list noted;
    int refs; /* the owner and each slot */
};

struct watches *watches_new(void)
{
    struct watches *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    pthread_mutex_init(&r->lock, NULL);
    hmap_init(&r->paths);
    list_init(&r->noted);
    r->refs = 1;
    return r;
}

/* Lets go of the lock and of one reference. */
static void unlock_unref(struct watches *r)
{
    bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->lock);
    if (!last)
        return;
    hmap_free(&r->paths);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static bool path_equals(const struct hnode *h, const void *key)
{
    const struct watched_path *p = hmap_entry(h, struct watched_path, node);
    const struct str *path = key;
    return str_eq((struct str){p->path, p->len}, *path);
}

static struct watched_path *find(struct watches *r, const char *path)
{
    struct str key = str_of(path);
    struct hnode *h = r->paths.n ? hmap_find(&r->paths, hash_str(key), path_equals, &key) : NULL;
    return h ? hmap_entry(h, struct watched_path, node) : NULL;
}

static struct watched_path *find_or_make(struct watches *r, const char *path)
{
    struct watched_path *p = find(r, path);
    if (p)
        return p;
    size_t n = strlen(path);
    if (!(p = calloc(1, sizeof(*p) + n + 1)))
        return NULL;
    memcpy(p->path, path, n);
    p->len = (int32_t)n;
    list_init(&p->slots);
    if (hmap_put(&r->paths, &p->node, hash_str(str_of(path)))) {
        free(p);
        return NULL;
    }
    return p;
}

/* On the handler's executor. */
static void slot_run(struct task *t)
{
    struct store_watch_slot *slot = container_of(t, struct store_watch_slot, task);
    struct watches *r = slot->registry;
    pthread_mutex_lock(&r->lock);
    slot->posted = false;
    struct store_watch *w = slot->watch;
    if (!w) {
        free(slot);
        unlock_unref(r);
        return;
    }
    pthread_mutex_unlock(&r->lock);
    w->fired(w); /* cannot be taken off meanwhile: that happens on this executor */
}

int watches_add(struct watches *r, const void *session, struct store_watch *w)
{
    struct store_watch_slot *slot = calloc(1, sizeof(*slot));
    if (!slot)
        return -ENOMEM;
    task_init(&slot->task, slot_run);
    list_init(&slot->path_link);
    list_init(&slot->noted_link);
    slot->registry = r;
    slot->watch = w;
    slot->session = session;
    pthread_mutex_lock(&r->lock);
    slot->path = find_or_make(r, w->path);
    if (slot->path) {
        list_push_back(&slot->path->slots, &slot->path_link);
        r->refs++;
        w->slot = slot;
    }
    pthread_mutex_unlock(&r->lock);
    if (slot->path)
        return 0;
    free(slot);
    return -ENOMEM;
}

/* The lock is held; the caller has a reference of its own. */
static void slot_drop(struct watches *r, struct store_watch_slot *slot)
{
    slot->watch->slot = NULL;
    slot->watch = NULL;
    slot->armed = false;
    list_remove(&slot->noted_link);
    list_remove(&slot->path_link);
    if (list_empty(&slot->path->slots)) {
        hmap_remove(&r->paths, &slot->path->node);
        free(slot->path);
    }
    slot->path = NULL;
    if (slot->posted) /* its task frees it */
        return;
    free(slot);
    r->refs--;
}

void watches_remove(struct watches *r, struct store_watch *w)
{
    pthread_mutex_lock(&r->lock);
    if (w->slot)
        slot_drop(r, w->slot);
    pthread_mutex_unlock(&r->lock);
}

static void drop_some(struct watches *r, const void *session, bool all)
{
    for (struct hnode *h = hmap_first(&r->paths), *next; h; h = next) {
        next = hmap_next(&r->paths, h);
        struct list *slots = &hmap_entry(h, struct watched_path, node)->slots;
        bool last = false; /* with the last slot the path goes, and the list's head with it */
        for (struct list *at = slots->next, *after; !last; at = after) {
            after = at->next;
            last = after == slots;
            struct store_watch_slot *slot = list_entry(at, struct store_watch_slot, path_link);
            if (all || slot->session == session)
                slot_drop(r, slot);
        }
    }
}

void watches_drop(struct watches *r, const void *session)
{
    pthread_mutex_lock(&r->lock);
    drop_some(r, session, false);
    pthread_mutex_unlock(&r->lock);
}

void watches_free(struct watches *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    drop_some(r, NULL, true);
    unlock_unref(r);
}

void watches_arm(struct watches *r, const void *session, const char *path, bool children)
{
    pthread_mutex_lock(&r->lock);
    struct watched_path *p = find(r, path);
    if (p)
        list_each (at, &p->slots) {
            struct store_watch_slot *slot = list_entry(at, struct store_watch_slot, path_link);
            if (slot->session == session && slot->watch->children == children)
                slot->armed = true;
        }
    pthread_mutex_unlock(&r->lock);
}

void watches_note(struct watches *r, const char *path, bool children)
{
    pthread_mutex_lock(&r->lock);
    struct watched_path *p = find(r, path);
    if (p)
        list_each (at, &p->slots) {
            struct store_watch_slot *slot = list_entry(at, struct store_watch_slot, path_link);
            if (!slot->armed || slot->watch->children != children)
                continue;
            slot->armed = false;
            if (!list_linked(&slot->noted_link))
                list_push_back(&r->noted, &slot->noted_link);
        }
    pthread_mutex_unlock(&r->lock);
}

void watches_take(struct watches *r, struct list *to)
{
    pthread_mutex_lock(&r->lock);
    list_splice(to, &r->noted);
    pthread_mutex_unlock(&r->lock);
}

void watches_tell(struct watches *r, struct list *from)
{
    pthread_mutex_lock(&r->lock);
    for (struct list *at; (at = list_pop(from));) {
        struct store_watch_slot *slot = list_entry(at, struct store_watch_slot, noted_link);
        if (slot->posted) /* told but not run yet: it will read what is new now as well */
            continue;
        slot->posted = true;
        executor_post(slot->watch->on, &slot->task);
    }
    pthread_mutex_unlock(&r->lock);
}

void watches_disarm(struct watches *r, const void *session)
{
    pthread_mutex_lock(&r->lock);
    hmap_each (h, &r->paths) {
        list_each (at, &hmap_entry(h, struct watched_path, node)->slots) {
            struct store_watch_slot *slot = list_entry(at, struct store_watch_slot, path_link);
            if (slot->session != session)
                continue;
            slot->armed = false;
            list_remove(&slot->noted_link);
        }
    }
    pthread_mutex_unlock(&r->lock);
}
