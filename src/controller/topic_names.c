/* topic_names.c - see topic_names.h. */
#include "controller/topic_names.h"

#include <stdlib.h>

#include "metadata/metadata_cache.h"

struct topic_name {
    struct hnode node;
    int making;  /* calls that are about to make it */
    bool listed; /* is in the store */
    int32_t len;
    char text[];
};

static struct topic_name *name_at(const struct hnode *h)
{
    return hmap_entry(h, struct topic_name, node);
}

static struct str text_of(const struct topic_name *t)
{
    return (struct str){t->text, t->len};
}

void topic_names_init(struct topic_names *n)
{
    *n = (struct topic_names){.listed_n = 0};
    hmap_init(&n->map);
}

void topic_names_free(struct topic_names *n)
{
    struct hnode *h;
    while ((h = hmap_first(&n->map))) {
        hmap_remove(&n->map, h);
        free(name_at(h));
    }
    hmap_free(&n->map);
}

bool topic_name_may_collide(struct str name)
{
    return memchr(name.p, '.', (size_t)name.len) || memchr(name.p, '_', (size_t)name.len);
}

/* Names that collide have one hash. */
static uint64_t hash_folded(struct str name)
{
    char folded[256];
    size_t n = name.len < (int32_t)sizeof(folded) ? (size_t)name.len : sizeof(folded);
    for (size_t i = 0; i < n; i++)
        folded[i] = name.p[i] == '.' ? '_' : name.p[i];
    return hash_bytes(folded, n);
}

static bool is_same(const struct hnode *h, const void *key)
{
    return str_eq(text_of(name_at(h)), *(const struct str *)key);
}

static bool is_colliding(const struct hnode *h, const void *key)
{
    struct str other = text_of(name_at(h)), name = *(const struct str *)key;
    return !str_eq(other, name) && topic_names_collide(other, name);
}

static struct topic_name *find(const struct topic_names *n, struct str name)
{
    struct hnode *h = hmap_find(&n->map, hash_folded(name), is_same, &name);
    return h ? name_at(h) : NULL;
}

static struct topic_name *find_or_make(struct topic_names *n, struct str name)
{
    struct topic_name *t = find(n, name);
    if (t)
        return t;
    t = calloc(1, sizeof(*t) + (size_t)name.len + 1);
    if (!t)
        return NULL;
    t->len = name.len;
    memcpy(t->text, name.p, (size_t)name.len);
    if (hmap_put(&n->map, &t->node, hash_folded(name))) {
        free(t);
        return NULL;
    }
    return t;
}

static void drop_if_unused(struct topic_names *n, struct topic_name *t)
{
    if (t->making || t->listed)
        return;
    hmap_remove(&n->map, &t->node);
    free(t);
}

struct store_op topic_names_listing(const struct topic_names *n)
{
    struct store_op op = store_op_children("/brokers/topics", false);
    op.newer_than = n->as_of;
    return op;
}

static void forget_listed(struct topic_names *n)
{
    for (struct hnode *h = hmap_first(&n->map), *next; h; h = next) {
        next = hmap_next(&n->map, h);
        name_at(h)->listed = false;
        drop_if_unused(n, name_at(h));
    }
    n->listed_n = 0;
}

int topic_names_update(struct topic_names *n, const struct store_op *answer)
{
    if (!answer->partial)
        forget_listed(n);
    for (int i = 0; i < answer->names_n; i++) {
        struct topic_name *t = find_or_make(n, str_of(answer->names[i]));
        if (!t) {
            n->as_of = 0;
            return -ENOMEM;
        }
        n->listed_n += !t->listed;
        t->listed = true;
    }
    n->as_of = answer->as_of;
    if (n->listed_n == answer->stat.children_n)
        return 0;
    n->as_of = 0; /* there are names that went */
    return -EAGAIN;
}

struct str topic_names_collision(const struct topic_names *n, struct str name)
{
    struct hnode *h = hmap_find(&n->map, hash_folded(name), is_colliding, &name);
    return h ? text_of(name_at(h)) : STR_NULL;
}

int topic_names_begin(struct topic_names *n, struct str name)
{
    struct topic_name *t = find_or_make(n, name);
    if (t)
        t->making++;
    return t ? 0 : -ENOMEM;
}

void topic_names_end(struct topic_names *n, struct str name)
{
    struct topic_name *t = find(n, name);
    if (!t || !t->making)
        return;
    t->making--;
    drop_if_unused(n, t);
}
