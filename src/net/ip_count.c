/* ip_count.c - a locked map from address to count; an entry lives while its count is not zero. */
#include "net/ip_count.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct ip_entry {
    struct hnode node;
    struct in6_addr ip;
    int n;
};

void ip_count_init(struct ip_count *ips)
{
    pthread_mutex_init(&ips->lock, NULL);
    hmap_init(&ips->by_ip);
}

void ip_count_free(struct ip_count *ips)
{
    assert(ips->by_ip.n == 0);
    hmap_free(&ips->by_ip);
    pthread_mutex_destroy(&ips->lock);
}

static bool same_ip(const struct hnode *node, const void *key)
{
    return memcmp(&hmap_entry(node, struct ip_entry, node)->ip, key, sizeof(struct in6_addr)) == 0;
}

static struct ip_entry *find(struct ip_count *ips, const struct in6_addr *ip, uint64_t hash)
{
    struct hnode *n = hmap_find(&ips->by_ip, hash, same_ip, ip);
    return n ? hmap_entry(n, struct ip_entry, node) : NULL;
}

static struct ip_entry *find_or_add(struct ip_count *ips, const struct in6_addr *ip)
{
    uint64_t hash = hash_bytes(ip, sizeof(*ip));
    struct ip_entry *e = find(ips, ip, hash);
    if (e || !(e = calloc(1, sizeof(*e))))
        return e;
    e->ip = *ip;
    if (hmap_put(&ips->by_ip, &e->node, hash) < 0) {
        free(e);
        return NULL;
    }
    return e;
}

static void remove_if_none(struct ip_count *ips, struct ip_entry *e)
{
    if (e->n > 0)
        return;
    hmap_remove(&ips->by_ip, &e->node);
    free(e);
}

bool ip_count_add(struct ip_count *ips, const struct in6_addr *ip, int max)
{
    bool added = false;
    pthread_mutex_lock(&ips->lock);
    struct ip_entry *e = find_or_add(ips, ip);
    if (e) {
        added = e->n < max;
        e->n += added;
        remove_if_none(ips, e);
    }
    pthread_mutex_unlock(&ips->lock);
    return added;
}

void ip_count_drop(struct ip_count *ips, const struct in6_addr *ip)
{
    pthread_mutex_lock(&ips->lock);
    struct ip_entry *e = find(ips, ip, hash_bytes(ip, sizeof(*ip)));
    assert(e && e->n > 0);
    e->n--;
    remove_if_none(ips, e);
    pthread_mutex_unlock(&ips->lock);
}
