/* assignor_sticky.c - sticky and cooperative-sticky: who claims what, and the result. The dealing
 * is in assignor_sticky_equal.c (all members want the same topics) and assignor_sticky_uneven.c. */
#include "client/assignor_sticky.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* ---- input ---- */

struct by_id {
    const char *id;
    int index;
};

static int id_cmp(const void *a, const void *b)
{
    return strcmp(((const struct by_id *)a)->id, ((const struct by_id *)b)->id);
}

static bool order_members(struct sticky *s)
{
    struct by_id *ids = arena_array(&s->mem, struct by_id, (size_t)s->members_n);
    s->order = arena_array(&s->mem, int, (size_t)s->members_n);
    if (!ids || !s->order)
        return false;
    for (int i = 0; i < s->members_n; i++)
        ids[i] = (struct by_id){s->given[i].member_id, i};
    qsort(ids, (size_t)s->members_n, sizeof *ids, id_cmp);
    for (int i = 0; i < s->members_n; i++)
        s->order[i] = ids[i].index;
    return true;
}

static bool number_partitions(struct sticky *s)
{
    s->first = arena_array(&s->mem, int, (size_t)s->topics_n + 1);
    for (int t = 0; s->first && t < s->topics_n; t++)
        s->first[t + 1] = s->first[t] + (s->subscribers[t] > 0 ? s->topics[t].partitions : 0);
    s->parts_n = s->first ? s->first[s->topics_n] : 0;
    size_t n = (size_t)s->parts_n;
    s->topic_of = arena_array(&s->mem, int, n);
    s->owner = arena_array(&s->mem, int, n);
    s->owner_generation = arena_array(&s->mem, int, n);
    s->result = arena_array(&s->mem, int, n);
    s->doubly = arena_array(&s->mem, bool, n);
    s->transferred = arena_array(&s->mem, bool, n);
    if (!s->first || !s->topic_of || !s->owner || !s->owner_generation || !s->result ||
        !s->doubly || !s->transferred)
        return false;
    for (int t = 0; t < s->topics_n; t++)
        for (int p = s->first[t]; p < s->first[t + 1]; p++) {
            s->topic_of[p] = t;
            s->owner[p] = s->result[p] = -1;
            s->owner_generation[p] = INT32_MIN;
        }
    return true;
}

static bool note_subscriptions(struct sticky *s)
{
    s->wants = arena_array(&s->mem, bool, (size_t)s->members_n *(size_t)s->topics_n);
    s->subscribers = arena_array(&s->mem, int, (size_t)s->topics_n);
    s->equal = true;
    if (!s->wants || !s->subscribers)
        return false;
    for (int m = 0; m < s->members_n; m++) {
        const kafka_group_member_t *g = &s->given[s->order[m]];
        const kafka_group_member_t *one = &s->given[s->order[0]];
        s->equal &= g->topics_n == one->topics_n;
        for (size_t i = 0; s->equal && i < g->topics_n; i++)
            s->equal &= strcmp(g->topics[i], one->topics[i]) == 0;
        for (int t = 0; t < s->topics_n; t++) {
            s->wants[m * s->topics_n + t] = assignor_is_subscribed(g, s->topics[t].name);
            s->subscribers[t] += s->wants[m * s->topics_n + t];
        }
    }
    return true;
}

static int topic_cmp(const void *key, const void *t)
{
    return strcmp(key, ((const kafka_topic_size_t *)t)->name);
}

/* -1: there is no such partition (any more). */
static int find_part(const struct sticky *s, const kafka_topic_partition_t *tp)
{
    const kafka_topic_size_t *t = s->topics_n ? bsearch(tp->topic, s->topics, (size_t)s->topics_n,
                                                        sizeof *s->topics, topic_cmp)
                                              : NULL;
    if (!t || tp->partition < 0)
        return -1;
    int at = (int)(t - s->topics);
    return tp->partition < s->first[at + 1] - s->first[at] ? s->first[at] + tp->partition : -1;
}

static bool add_claim(struct sticky *s, int part, int member, int32_t generation)
{
    if (s->claims_n == s->claims_cap) {
        int cap = s->claims_cap ? 2 * s->claims_cap : 64;
        struct sticky_claim *grown = realloc(s->claims, (size_t)cap * sizeof *grown);
        if (!grown)
            return false;
        s->claims = grown;
        s->claims_cap = cap;
    }
    s->claims[s->claims_n++] = (struct sticky_claim){part, member, generation};
    return true;
}

/* The higher generation wins; of two of one generation both lose. */
static void settle_claim(struct sticky *s, int part, int member, int32_t generation)
{
    if (generation > s->owner_generation[part]) {
        s->owner[part] = member;
        s->owner_generation[part] = generation;
    } else if (generation == s->owner_generation[part]) {
        s->doubly[part] = true;
        s->owner[part] = -1;
    }
}

/* What a member says it has: cooperative members in their owned list, the others in user data. */
static bool read_claims(struct sticky *s, int member, bool cooperative)
{
    const kafka_group_member_t *g = &s->given[s->order[member]];
    kafka_topic_partition_t *tps = (kafka_topic_partition_t *)g->owned;
    size_t n = g->owned_n;
    int32_t generation = g->generation;
    if (!cooperative && (!g->user_data || !sticky_data_decode(g->user_data, g->user_data_len,
                                                              &s->mem, &tps, &n, &generation)))
        n = 0; /* new, or bytes that make no sense: it has nothing */
    if (cooperative && generation < 0 && g->user_data && g->user_data_len >= 4)
        generation = (int32_t)get_be32(g->user_data);
    if (n && generation > s->newest)
        s->newest = generation;
    for (size_t i = 0; i < n; i++) {
        int part = find_part(s, &tps[i]);
        if (part < 0 || (s->owner[part] == member && s->owner_generation[part] == generation))
            continue; /* or named twice */
        if (!add_claim(s, part, member, generation))
            return false;
        settle_claim(s, part, member, generation);
    }
    return true;
}

static bool begin(struct sticky *s, bool cooperative)
{
    s->newest = -1;
    s->racks =
        assignor_racks_matter(s->given, (size_t)s->members_n, s->topics, (size_t)s->topics_n);
    if (!order_members(s) || !note_subscriptions(s) || !number_partitions(s))
        return false;
    for (int m = 0; m < s->members_n; m++)
        if (!read_claims(s, m, cooperative))
            return false;
    return true;
}

/* ---- racks ---- */

bool sticky_is_near(const struct sticky *s, int member, int part)
{
    const char *rack = s->given[s->order[member]].rack;
    return rack &&
           assignor_rack_has(&s->topics[s->topic_of[part]], sticky_partition(s, part), rack);
}

int sticky_count_near(const struct sticky *s, int part)
{
    int n = 0;
    for (int m = 0; m < s->members_n; m++)
        n += sticky_wants(s, m, s->topic_of[part]) && sticky_is_near(s, m, part);
    return n;
}

bool sticky_is_misplaced(const struct sticky *s, int member, int part)
{
    return s->racks && s->given[s->order[member]].rack && !sticky_is_near(s, member, part) &&
           sticky_count_near(s, part) > 0;
}

int *sticky_filled(struct sticky *s, int n, int value)
{
    int *v = arena_array(&s->mem, int, (size_t)n);
    for (int i = 0; v && i < n; i++)
        v[i] = value;
    return v;
}

/* ---- result ---- */

/* Different subscriptions: what another member still has, by a claim that is not outdated, and
 * would have to give up. */
static void find_transferred(struct sticky *s)
{
    for (int i = 0; i < s->claims_n; i++) {
        const struct sticky_claim *c = &s->claims[i];
        if (c->generation >= s->owner_generation[c->part] && s->result[c->part] != c->member)
            s->transferred[c->part] = true;
    }
    /* Its new member may hold it, too, by a claim of the same generation. */
    for (int i = 0; i < s->claims_n; i++)
        if (s->result[s->claims[i].part] == s->claims[i].member)
            s->transferred[s->claims[i].part] = false;
}

static kafka_err_t assign(const kafka_group_member_t *members, size_t members_n,
                          const kafka_topic_size_t *topics, size_t topics_n,
                          kafka_assignment_t *out, bool cooperative)
{
    struct sticky s = {
        .given = members, .members_n = (int)members_n, .topics = topics, .topics_n = (int)topics_n};
    arena_init(&s.mem, 0);
    bool ok = begin(&s, cooperative) && (s.equal ? sticky_equal(&s) : sticky_uneven(&s));
    if (ok && !s.equal)
        find_transferred(&s);
    for (int p = 0; ok && p < s.parts_n; p++)
        if (s.result[p] >= 0 && !(cooperative && s.transferred[p]))
            kafka_assignment_add(out, (size_t)s.order[s.result[p]], topics[s.topic_of[p]].name,
                                 sticky_partition(&s, p));
    free(s.claims);
    arena_free(&s.mem);
    return ok ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

kafka_err_t assign_sticky(const kafka_group_member_t *members, size_t members_n,
                          const kafka_topic_size_t *topics, size_t topics_n,
                          kafka_assignment_t *out, void *arg)
{
    return assign(members, members_n, topics, topics_n, out, false);
}

kafka_err_t assign_cooperative(const kafka_group_member_t *members, size_t members_n,
                               const kafka_topic_size_t *topics, size_t topics_n,
                               kafka_assignment_t *out, void *arg)
{
    return assign(members, members_n, topics, topics_n, out, true);
}
