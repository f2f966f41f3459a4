/* protocol_counts.c - see protocol_counts.h. */
#include "coordinator/protocol_counts.h"

#include <errno.h>
#include <stdlib.h>

struct member_protocol *member_protocols_copy(const struct member_protocol *v, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (size_t)v[i].name.len + (size_t)v[i].metadata.len;
    struct member_protocol *out = malloc((size_t)n * sizeof(*out) + bytes + 1);
    if (!out)
        return NULL;
    char *at = (char *)(out + n);
    for (int i = 0; i < n; i++) {
        out[i].name = (struct str){at, v[i].name.len};
        if (v[i].name.len > 0)
            at = mempcpy(at, v[i].name.p, (size_t)v[i].name.len);
        out[i].metadata = (struct bytes){(uint8_t *)at, v[i].metadata.len};
        if (v[i].metadata.len > 0)
            at = mempcpy(at, v[i].metadata.p, (size_t)v[i].metadata.len);
    }
    return out;
}

static bool is_protocol(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct protocol_count, node)->name, *(const struct str *)key);
}

struct protocol_count *protocol_counts_find(const struct hmap *counts, struct str name)
{
    struct hnode *n = counts->n ? hmap_find(counts, hash_str(name), is_protocol, &name) : NULL;
    return n ? hmap_entry(n, struct protocol_count, node) : NULL;
}

int32_t protocol_counts_of(const struct hmap *counts, struct str name)
{
    const struct protocol_count *p = protocol_counts_find(counts, name);
    return p ? p->members : 0;
}

static struct protocol_count *get(struct hmap *counts, struct str name)
{
    struct protocol_count *p = protocol_counts_find(counts, name);
    if (p)
        return p;
    p = calloc(1, sizeof(*p) + (size_t)name.len);
    if (!p)
        return NULL;
    memcpy(p + 1, name.p, (size_t)name.len);
    p->name = (struct str){(const char *)(p + 1), name.len};
    if (hmap_put(counts, &p->node, hash_str(name)) != 0) {
        free(p);
        return NULL;
    }
    return p;
}

void protocol_counts_remove(struct hmap *counts, const struct member_protocol *v, int n)
{
    for (int i = 0; i < n; i++) {
        struct protocol_count *p = protocol_counts_find(counts, v[i].name);
        if (p)
            p->by = v; /* the first of its duplicates takes it out */
    }
    for (int i = 0; i < n; i++) {
        struct protocol_count *p = protocol_counts_find(counts, v[i].name);
        if (!p || p->by != v)
            continue;
        p->by = NULL;
        if (--p->members == 0) {
            hmap_remove(counts, &p->node);
            free(p);
        }
    }
}

int protocol_counts_add(struct hmap *counts, const struct member_protocol *v, int n)
{
    int i = 0;
    for (; i < n; i++) {
        struct protocol_count *p = get(counts, v[i].name);
        if (!p)
            break;
        if (p->by == v)
            continue;
        p->by = v;
        p->members++;
    }
    for (int j = 0; j < i; j++) /* a later list may lie at the same address */
        protocol_counts_find(counts, v[j].name)->by = NULL;
    if (i == n)
        return 0;
    protocol_counts_remove(counts, v, i);
    return -ENOMEM;
}

void protocol_counts_free(struct hmap *counts)
{
    for (struct hnode *n = hmap_first(counts), *next; n; n = next) {
        next = hmap_next(counts, n);
        free(hmap_entry(n, struct protocol_count, node));
    }
    hmap_free(counts);
}
