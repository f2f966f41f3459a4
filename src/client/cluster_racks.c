/* cluster_racks.c - see cluster_racks.h. */
#include "client/cluster_racks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"

/* The broker's rack, borrowed from the answer; null when it has none, or is not there. */
static struct str rack_of(const struct metadata_response *m, int32_t id)
{
    for (int32_t i = 0; i < m->brokers.n; i++)
        if (m->brokers.v[i].node_id == id)
            return m->brokers.v[i].rack;
    return STR_NULL;
}

static bool any_rack(const struct metadata_response *m)
{
    for (int32_t i = 0; i < m->brokers.n; i++)
        if (m->brokers.v[i].rack.len > 0)
            return true;
    return false;
}

/* Into a sorted list of n; returns the new n. */
static int add_sorted(const char **racks, int n, const char *rack)
{
    int at = 0;
    while (at < n && strcmp(racks[at], rack) < 0)
        at++;
    if (at < n && strcmp(racks[at], rack) == 0)
        return n;
    memmove(racks + at + 1, racks + at, (size_t)(n - at) * sizeof *racks);
    racks[at] = rack;
    return n + 1;
}

static const char **racks_of(struct arena *a, const struct metadata_response *m,
                             const struct metadata_response_partition *p)
{
    const char **racks = arena_array(a, const char *, (size_t)p->replica_nodes.n + 1);
    int n = 0;
    for (int32_t i = 0; racks && i < p->replica_nodes.n; i++) {
        struct str rack = rack_of(m, p->replica_nodes.v[i]);
        const char *kept = rack.len > 0 ? arena_str(a, rack).p : NULL;
        if (rack.len > 0 && !kept)
            return NULL;
        if (kept)
            n = add_sorted(racks, n, kept);
    }
    return racks;
}

static uint64_t hash_of(const struct topic_racks *r)
{
    uint64_t hash = hash_int((uint64_t)r->partitions);
    for (int32_t p = 0; p < r->partitions; p++) {
        for (const char *const *rack = r->v[p]; *rack; rack++)
            hash = hash_int(hash ^ hash_bytes(*rack, strlen(*rack)));
        hash = hash_int(hash + 1);
    }
    return hash;
}

static bool fill(struct topic_racks *r, const struct metadata_response *m,
                 const struct metadata_response_topic *topic)
{
    static const char *const none[] = {NULL};
    r->partitions = topic->partitions.n;
    r->v = arena_array(&r->mem, const char *const *, (size_t)r->partitions);
    if (!r->v)
        return false;
    for (int32_t i = 0; i < r->partitions; i++)
        r->v[i] = none;
    for (int32_t i = 0; i < r->partitions; i++) {
        const struct metadata_response_partition *p = &topic->partitions.v[i];
        if (p->partition_index < 0 || p->partition_index >= r->partitions)
            continue;
        const char **racks = racks_of(&r->mem, m, p);
        if (!racks)
            return false;
        r->v[p->partition_index] = racks;
    }
    r->hash = hash_of(r);
    return true;
}

struct topic_racks *topic_racks_new(const struct metadata_response *m,
                                    const struct metadata_response_topic *topic)
{
    struct topic_racks *r = any_rack(m) ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return NULL;
    arena_init(&r->mem, 0);
    if (fill(r, m, topic))
        return r;
    topic_racks_free(r);
    return NULL;
}

void topic_racks_free(struct topic_racks *r)
{
    if (!r)
        return;
    arena_free(&r->mem);
    free(r);
}

static const char *const *copy_one(const char *const *racks, struct arena *a)
{
    size_t n = 0;
    while (racks[n])
        n++;
    const char **copy = arena_array(a, const char *, n + 1);
    for (size_t i = 0; copy && i < n; i++)
        if (!(copy[i] = arena_str(a, str_of(racks[i])).p))
            return NULL;
    return copy;
}

const char *const *const *topic_racks_copy(const struct topic_racks *r, struct arena *a)
{
    const char *const **v = arena_array(a, const char *const *, (size_t)r->partitions);
    for (int32_t i = 0; v && i < r->partitions; i++)
        if (!(v[i] = copy_one(r->v[i], a)))
            return NULL;
    return v;
}
