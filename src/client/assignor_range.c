/* assignor_range.c - range: of each topic consecutive partitions, the first members one more where
 * it does not divide.
 *
 * Where racks decide, members first take, within the same shares, what has a replica in their rack;
 * what is left is dealt as without racks. Topics with the same members and size are then shared out
 * together, so that a member has the same partitions of all of them (joins rely on that). */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "client/assignor.h"

struct range_topic {
    const kafka_topic_size_t *topic;
    size_t *members; /* subscribed, in order */
    int members_n;
    int32_t *given; /* by place in `members` */
    bool *taken;    /* by partition */
    int32_t quota;
    int32_t extra; /* members that may still have one more */
    bool racks;    /* they decide here */
    bool matched;  /* done as one of several */
};

struct range {
    const kafka_group_member_t *members;
    size_t members_n;
    struct range_topic *topics;
    size_t topics_n;
    kafka_assignment_t *out;
    struct arena mem;
};

static bool begin_topic(struct range *r, struct range_topic *t, const kafka_topic_size_t *topic)
{
    t->topic = topic;
    t->members = arena_array(&r->mem, size_t, r->members_n);
    t->given = arena_array(&r->mem, int32_t, r->members_n);
    t->taken = arena_array(&r->mem, bool, (size_t)topic->partitions);
    if (!t->members || !t->given || !t->taken)
        return false;
    for (size_t m = 0; m < r->members_n; m++)
        if (assignor_is_subscribed(&r->members[m], topic->name))
            t->members[t->members_n++] = m;
    if (t->members_n > 0) {
        t->quota = topic->partitions / t->members_n;
        t->extra = topic->partitions % t->members_n;
    }
    t->racks = assignor_racks_matter(r->members, r->members_n, topic, 1);
    return true;
}

static bool has_room(const struct range_topic *t, int i)
{
    return t->given[i] < t->quota + (t->extra > 0);
}

/* A member without rack is near to all. */
static bool is_near(const struct range *r, const struct range_topic *t, int i, int32_t partition)
{
    const char *rack = r->members[t->members[i]].rack;
    return !rack || assignor_rack_has(t->topic, partition, rack);
}

static void give(struct range *r, struct range_topic *t, int i, int32_t partition)
{
    kafka_assignment_add(r->out, t->members[i], t->topic->name, partition);
    t->taken[partition] = true;
    if (++t->given[i] > t->quota)
        t->extra--;
}

static void deal(struct range *r, struct range_topic *t, bool near_only)
{
    for (int i = 0; i < t->members_n; i++)
        for (int32_t p = 0; p < t->topic->partitions && has_room(t, i); p++)
            if (!t->taken[p] && (!near_only || is_near(r, t, i, p)))
                give(r, t, i, p);
}

/* ---- racks ---- */

static bool go_together(const struct range_topic *a, const struct range_topic *b)
{
    return a->topic->partitions == b->topic->partitions && a->members_n == b->members_n &&
           memcmp(a->members, b->members, (size_t)a->members_n * sizeof *a->members) == 0;
}

/* May member i have this partition of the topic and of those that go with it? */
static bool may_have_all(const struct range *r, const struct range_topic *first, int i, int32_t p)
{
    for (const struct range_topic *t = first; t < r->topics + r->topics_n; t++)
        if (go_together(first, t) && !(has_room(t, i) && is_near(r, t, i, p)))
            return false;
    return true;
}

static void deal_together(struct range *r, struct range_topic *first)
{
    struct range_topic *end = r->topics + r->topics_n;
    for (int32_t p = 0; p < first->topic->partitions; p++) {
        int i = 0;
        while (i < first->members_n && !may_have_all(r, first, i, p))
            i++;
        for (struct range_topic *t = first; i < first->members_n && t < end; t++)
            if (go_together(first, t))
                give(r, t, i, p);
    }
}

static void match_racks(struct range *r)
{
    for (size_t a = 0; a < r->topics_n; a++) {
        struct range_topic *t = &r->topics[a];
        bool several = false;
        if (t->matched)
            continue;
        for (size_t b = a + 1; b < r->topics_n; b++)
            if (go_together(t, &r->topics[b]))
                several = r->topics[b].matched = true;
        if (several)
            deal_together(r, t);
        else if (t->racks)
            deal(r, t, true);
    }
}

kafka_err_t assign_range(const kafka_group_member_t *members, size_t members_n,
                         const kafka_topic_size_t *topics, size_t topics_n, kafka_assignment_t *out,
                         void *arg)
{
    struct range r = {.members = members, .members_n = members_n, .topics_n = topics_n, .out = out};
    bool racks = false;
    arena_init(&r.mem, 0);
    r.topics = arena_array(&r.mem, struct range_topic, topics_n);
    bool ok = r.topics != NULL;
    for (size_t t = 0; ok && t < topics_n; t++) {
        ok = begin_topic(&r, &r.topics[t], &topics[t]);
        racks |= r.topics[t].racks;
    }
    if (ok && racks)
        match_racks(&r);
    for (size_t t = 0; ok && t < topics_n; t++)
        deal(&r, &r.topics[t], false);
    arena_free(&r.mem);
    return ok ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}
