/* hmap.c - chained hash map of intrusive nodes; at most one node a bucket on average.
 *
 * The hash is SipHash-1-3 with a key of the process, so that a client which may choose names
 * (topics, groups, client ids) cannot choose ones that meet in a bucket. */
#include "base/hmap.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/siphash.h"

enum { FIRST_BUCKETS = 8 };

void hmap_init(struct hmap *m)
{
    *m = (struct hmap){0};
}

void hmap_free(struct hmap *m)
{
    free(m->buckets);
    hmap_init(m);
}

struct hnode *hmap_find(const struct hmap *m, uint64_t hash, hmap_eq_fn eq, const void *key)
{
    if (!m->n)
        return NULL;
    for (struct hnode *n = m->buckets[hash & m->mask]; n; n = n->next)
        if (n->hash == hash && eq(n, key))
            return n;
    return NULL;
}

static void link_node(struct hmap *m, struct hnode *n)
{
    struct hnode **bucket = &m->buckets[n->hash & m->mask];
    n->next = *bucket;
    *bucket = n;
}

static int resize(struct hmap *m, size_t count)
{
    struct hnode **old = m->buckets;
    size_t old_count = old ? m->mask + 1 : 0;
    struct hnode **buckets = calloc(count, sizeof(*buckets));
    if (!buckets)
        return -ENOMEM;
    m->buckets = buckets;
    m->mask = count - 1;
    for (size_t i = 0; i < old_count; i++)
        for (struct hnode *n = old[i], *next; n; n = next) {
            next = n->next;
            link_node(m, n);
        }
    free(old);
    return 0;
}

int hmap_put(struct hmap *m, struct hnode *node, uint64_t hash)
{
    if (!m->buckets) {
        int err = resize(m, FIRST_BUCKETS);
        if (err)
            return err;
    } else if (m->n > m->mask) {
        resize(m, (m->mask + 1) * 2); /* without memory: longer chains, still right */
    }
    node->hash = hash;
    link_node(m, node);
    m->n++;
    return 0;
}

void hmap_remove(struct hmap *m, struct hnode *node)
{
    struct hnode **at = &m->buckets[node->hash & m->mask];
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    node->next = NULL;
    m->n--;
}

static struct hnode *first_from(const struct hmap *m, size_t bucket)
{
    for (; bucket <= m->mask; bucket++)
        if (m->buckets[bucket])
            return m->buckets[bucket];
    return NULL;
}

struct hnode *hmap_first(const struct hmap *m)
{
    return m->n ? first_from(m, 0) : NULL;
}

struct hnode *hmap_next(const struct hmap *m, const struct hnode *node)
{
    return node->next ? node->next : first_from(m, (node->hash & m->mask) + 1);
}

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static struct siphash_key key; /* fixed once set */

static void key_from_kernel(void)
{
    while (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
        if (errno != EINTR)
            abort();
}

static void key_known(void)
{
}

void hash_fix_seed(uint64_t seed)
{
    pthread_once(&key_once, key_known);
    key = (struct siphash_key){{seed, ~seed}};
}

uint64_t hash_bytes(const void *p, size_t n)
{
    pthread_once(&key_once, key_from_kernel);
    return siphash13(&key, p, n);
}

uint64_t hash_int(uint64_t v)
{
    return hash_bytes(&v, sizeof(v));
}
