/* sim_tenure.c - see sim_tenure.h. */
#include "sim_tenure.h"

#include <stdio.h>
#include <stdlib.h>

enum { PARTITIONS = 8, MEMBERS = 4 };

struct held {
    bool is;
    int64_t sure_until;
};

struct track { /* of one partition */
    struct held held[MEMBERS];
    uint64_t tenure;  /* the latest; they rise */
    int64_t floor;    /* committed for sure; -1 nothing */
    bool doubt;       /* a commit may still take effect: */
    int64_t doubtful; /* the least such */
    int32_t doubt_epoch;
    uint64_t doubt_tenure;
};

struct tenures {
    char group[32];
    struct track v[PARTITIONS];
};

struct tenures *tenures_new(const char *group)
{
    struct tenures *t = calloc(1, sizeof(*t));
    snprintf(t->group, sizeof(t->group), "%s", group);
    for (int i = 0; i < PARTITIONS; i++)
        t->v[i].floor = -1;
    return t;
}

/* G5 */
static void is_the_only_one(const struct tenures *t, int member, int32_t partition, const char *how)
{
    const struct track *k = &t->v[partition];
    for (int i = 0; i < MEMBERS; i++)
        if (i != member && k->held[i].is && k->held[i].sure_until > sim_now())
            sim_violation("G5: group %s: partition %d %s member %d while it is surely member %d's",
                          t->group, partition, how, member, i);
}

uint64_t tenure_begin(struct tenures *t, int member, int32_t partition, int64_t sure_until)
{
    is_the_only_one(t, member, partition, "is given to");
    t->v[partition].held[member] = (struct held){true, sure_until};
    return ++t->v[partition].tenure;
}

void tenure_goes_on(struct tenures *t, int member, int32_t partition, int64_t sure_until)
{
    struct held *h = &t->v[partition].held[member];
    if (!h->is || sure_until <= sim_now())
        return;
    is_the_only_one(t, member, partition, "stays with");
    if (sure_until > h->sure_until)
        h->sure_until = sure_until;
}

void tenure_end(struct tenures *t, int member, int32_t partition)
{
    t->v[partition].held[member].is = false;
}

/* What is committed for sure. */
static int64_t least(const struct track *k)
{
    return k->doubt && k->doubtful < k->floor ? k->doubtful : k->floor;
}

void tenure_found(struct tenures *t, int32_t partition, int64_t offset)
{
    struct track *k = &t->v[partition];
    if (offset < least(k))
        sim_violation("G7: group %s: %lld of partition %d is found, committed was %lld", t->group,
                      (long long)offset, partition, (long long)least(k));
    k->floor = offset;
    k->doubt = false;
}

uint64_t tenure_latest(const struct tenures *t, int32_t partition)
{
    return t->v[partition].tenure;
}

void tenure_committed(struct tenures *t, const struct tenure_commit *c)
{
    struct track *k = &t->v[c->partition];
    if (c->tenure != c->latest_when_sent || c->over)
        sim_violation("G6: group %s: member %d's commit of %lld for partition %d in epoch %d is "
                      "taken, %s",
                      t->group, c->member, (long long)c->offset, c->partition, c->epoch,
                      c->over ? "which was over for it" : "when it had been given to another");
    if (c->tenure == k->doubt_tenure && c->epoch > k->doubt_epoch)
        k->doubt = false;
    if (c->offset < least(k) && c->tenure == k->tenure)
        sim_violation("G7: group %s: member %d's commit of %lld for partition %d in epoch %d is "
                      "taken, committed was %lld",
                      t->group, c->member, (long long)c->offset, c->partition, c->epoch,
                      (long long)least(k));
    /* one that was answered late: in between another may have found more, and gone on */
    if (c->tenure == k->tenure && c->offset > k->floor)
        k->floor = c->offset;
}

void tenure_doubtful(struct tenures *t, const struct tenure_commit *c)
{
    struct track *k = &t->v[c->partition];
    if (c->tenure != k->tenure)
        return; /* who has it now has found, or will, what came of it */
    if (!k->doubt || c->offset < k->doubtful)
        k->doubtful = c->offset;
    k->doubt = true;
    k->doubt_epoch = c->epoch;
    k->doubt_tenure = c->tenure;
}

void tenure_judge(const struct tenures *t, int32_t partition, int64_t committed)
{
    const struct track *k = &t->v[partition];
    int owners = 0;
    for (int i = 0; i < MEMBERS; i++)
        owners += k->held[i].is;
    if (owners != 1)
        sim_violation("G5: group %s: partition %d has %d owners in the end", t->group, partition,
                      owners);
    if (committed < least(k))
        sim_violation("G7: group %s: partition %d: %lld is committed in the end, %lld was",
                      t->group, partition, (long long)committed, (long long)least(k));
}
