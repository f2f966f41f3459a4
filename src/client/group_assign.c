/* group_assign.c - the leader's work: the assignor's result as SyncGroup carries it, and a watch on
 * what it was made from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/consumer_private.h"
#include "client/group.h"
#include "protocol/errors.h"
#include "protocol/msg/sync_group.h"

bool group_topics_known(struct group *g)
{
    for (size_t i = 0; i < g->leading.topics_n; i++)
        if (cluster_topic_size(g->c->cluster, g->leading.topics[i]) == -2)
            return false;
    return true;
}

/* A leader without a rack does not stir the group because brokers change theirs. */
static uint64_t racks_now(struct group *g, const char *topic)
{
    const char *own = g->c->rack;
    return own && *own ? cluster_racks_hash(g->c->cluster, topic) : 0;
}

static void watch(struct group *g)
{
    for (size_t i = 0; i < g->watched_n; i++)
        free(g->watched[i].name);
    free(g->watched);
    g->watched_n = 0;
    g->watched = calloc(g->leading.topics_n + 1, sizeof *g->watched);
    for (size_t i = 0; g->watched && i < g->leading.topics_n; i++) {
        struct watched_topic *w = &g->watched[g->watched_n];
        if (!(w->name = str_dup(str_of(g->leading.topics[i]))))
            break;
        w->partitions = cluster_topic_size(g->c->cluster, w->name);
        w->racks = racks_now(g, w->name);
        g->watched_n++;
    }
}

bool group_watched_changed(struct group *g)
{
    for (size_t i = 0; i < g->watched_n; i++) {
        const struct watched_topic *w = &g->watched[i];
        if (cluster_topic_size(g->c->cluster, w->name) != w->partitions ||
            racks_now(g, w->name) != w->racks)
            return true;
    }
    return false;
}

/* Those of the group's topics that exist. */
static kafka_topic_size_t *existing_topics(struct group *g, struct arena *a, size_t *n)
{
    kafka_topic_size_t *v = arena_array(a, kafka_topic_size_t, g->leading.topics_n);
    *n = 0;
    for (size_t i = 0; v && i < g->watched_n; i++) {
        const struct watched_topic *w = &g->watched[i];
        if (w->partitions > 0)
            v[(*n)++] = (kafka_topic_size_t){
                w->name, w->partitions, cluster_racks(g->c->cluster, w->name, w->partitions, a)};
    }
    return v;
}

static bool is_owned_by_other(struct group *g, const struct given *one)
{
    for (size_t m = 0; m < g->leading.members_n; m++) {
        const kafka_group_member_t *member = &g->leading.members[m];
        for (size_t i = 0; m != one->member && i < member->owned_n; i++)
            if (member->owned[i].partition == one->partition &&
                strcmp(member->owned[i].topic, one->topic) == 0)
                return true;
    }
    return false;
}

/* A cooperative assignor of the application must not move a partition that its owner still has. */
static bool moves_owned(struct group *g, const kafka_assignment_t *made)
{
    if (!g->chosen->cooperative || g->chosen->assign == assign_cooperative)
        return false;
    for (size_t i = 0; i < made->n; i++)
        if (is_owned_by_other(g, &made->v[i]))
            return true;
    return false;
}

/* members[member]'s run of the sorted result, encoded. */
static bool fill_one(struct group *g, struct arena *a, const kafka_assignment_t *made,
                     size_t member, size_t *at, struct sync_group_request_assignment *out)
{
    size_t end = *at;
    while (end < made->n && made->v[end].member == member)
        end++;
    kafka_topic_partition_t *tps = arena_array(a, kafka_topic_partition_t, end - *at);
    for (size_t i = *at; tps && i < end; i++)
        tps[i - *at] = (kafka_topic_partition_t){made->v[i].topic, made->v[i].partition};
    const struct buf *user_data = made->user_data ? &made->user_data[member] : NULL;
    struct buf bytes = BUF_INIT;
    void *copy = NULL;
    if (tps) {
        assignment_encode(tps, end - *at, user_data ? user_data->p : NULL,
                          user_data ? user_data->len : 0, &bytes);
        copy = bytes.failed ? NULL : arena_alloc(a, bytes.len);
    }
    if (copy) {
        memcpy(copy, bytes.p, bytes.len);
        out->member_id = str_of(g->leading.members[member].member_id);
        out->assignment = (struct bytes){copy, (int32_t)bytes.len};
    }
    *at = end;
    buf_free(&bytes);
    return copy != NULL;
}

static kafka_err_t fill_all(struct group *g, struct arena *a, kafka_assignment_t *made,
                            struct sync_group_request *req)
{
    size_t at = 0;
    assignment_sort(made);
    req->assignments.v = sync_group_request_assignment_new(a, (int32_t)g->leading.members_n);
    if (!req->assignments.v)
        return KAFKA_ERR_NO_MEMORY;
    for (size_t m = 0; m < g->leading.members_n; m++)
        if (!fill_one(g, a, made, m, &at, &req->assignments.v[req->assignments.n++]))
            return KAFKA_ERR_NO_MEMORY;
    return KAFKA_OK;
}

kafka_err_t group_fill_assignments(struct group *g, struct arena *a, struct sync_group_request *req)
{
    kafka_assignment_t made;
    size_t topics_n;
    watch(g);
    if (g->leading.skip)
        return KAFKA_OK;
    kafka_topic_size_t *topics = existing_topics(g, a, &topics_n);
    if (!topics)
        return KAFKA_ERR_NO_MEMORY;
    assignment_init(&made, g->leading.members_n, topics, topics_n);
    kafka_err_t err = g->leading.members_n == 0
                          ? KAFKA_OK /* this member only watches the topics */
                          : g->chosen->assign(g->leading.members, g->leading.members_n, topics,
                                              topics_n, &made, g->chosen->arg);
    if (err == KAFKA_OK && made.failed)
        err = KAFKA_ERR_INVALID_ARG;
    if (err == KAFKA_OK && moves_owned(g, &made)) {
        client_log(3, "group %s: assignor %s moved partitions that their owners still have", g->id,
                   g->chosen->name);
        err = KAFKA_ERR_STATE;
    }
    if (err == KAFKA_OK)
        err = fill_all(g, a, &made, req);
    assignment_free(&made);
    return err;
}
