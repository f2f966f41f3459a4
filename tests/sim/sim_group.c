/* sim_group.c - a group's offsets: commits that rise, each tried until it is answered, and reads in
 * between. What was acknowledged is never lost and never goes back: a read finds at least the last
 * that was acknowledged, and nothing that was never sent.
 *
 * DOUBT  these commits have no member, so none fences them: a try that got no answer may lie before
 *        a broker that sleeps or is cut off, and take effect behind a later one that was
 *        acknowledged. While it may (DOUBT_S), a read may find its offset, too. */
#include <stdio.h>

#include "coordinator/key_partition.h"
#include "protocol/msg/find_coordinator.h"
#include "protocol/msg/offset_commit.h"
#include "protocol/msg/offset_fetch.h"
#include "sim_broker.h"
#include "sim_model.h"
#include "sim_work_private.h"

enum { OFFSETS_PARTITIONS = 2, DOUBT_S = 60 /* longer than any fault holds a frame back */ };

struct committer {
    struct client *c;
    char group[16];
    int coordinator; /* -1 unknown */
    int64_t sent, acked;
    int64_t doubt, doubt_ends; /* the least that may still take effect, and until when */
};

int work_coordinator(struct client *c, const char *group)
{
    return work_coordinator_of(c, group, 0);
}

int work_coordinator_of(struct client *c, const char *key, int8_t key_type)
{
    struct find_coordinator_request req;
    const void *answer;
    struct arena a;
    int found = -1;
    find_coordinator_request_init(&req);
    req.key = str_of(key);
    req.key_type = key_type;
    arena_init(&a, 0);
    if (client_call(c, client_any_broker(), API_FIND_COORDINATOR, 3, &req, &a, &answer) == 0) {
        const struct find_coordinator_response *r = answer;
        if (r->error_code == 0 && r->node_id > 0 && r->node_id <= sim_cluster.brokers)
            found = r->node_id;
    }
    arena_free(&a);
    return found;
}

static int commit(struct committer *g, int64_t offset)
{
    struct offset_commit_request req;
    struct offset_commit_request_topic t;
    struct offset_commit_request_partition p;
    const void *answer;
    struct arena a;
    offset_commit_request_init(&req);
    offset_commit_request_topic_init(&t);
    offset_commit_request_partition_init(&p);
    req.group_id = str_of(g->group);
    t.name = str_of(work.topics[0].name);
    p.committed_offset = offset;
    t.partitions.v = &p;
    t.partitions.n = 1;
    req.topics.v = &t;
    req.topics.n = 1;
    arena_init(&a, 0);
    int rc = client_call(g->c, g->coordinator, API_OFFSET_COMMIT, 8, &req, &a, &answer);
    const struct offset_commit_response *r = answer;
    int code = rc == 0 ? r->topics.v[0].partitions.v[0].error_code : -1;
    arena_free(&a);
    return code;
}

int work_committed(struct client *c, int coordinator, const char *group, const char *topic,
                   const int32_t *partitions, int n, bool stable, int64_t *out)
{
    struct offset_fetch_request req;
    struct offset_fetch_request_topic t;
    const void *answer;
    struct arena a;
    offset_fetch_request_init(&req);
    offset_fetch_request_topic_init(&t);
    req.group_id = str_of(group);
    t.name = str_of(topic);
    t.partition_indexes.v = (int32_t *)partitions;
    t.partition_indexes.n = n;
    req.topics.v = &t;
    req.topics.n = 1;
    req.require_stable = stable;
    arena_init(&a, 0);
    int rc = client_call(c, coordinator, API_OFFSET_FETCH, 7, &req, &a, &answer);
    const struct offset_fetch_response *r = answer;
    int code = rc == 0 ? r->error_code : -1;
    if (code == 0 && (r->topics.n != 1 || r->topics.v[0].partitions.n != n))
        sim_violation("G1: group %s: %d partitions were asked for, not so many answered", group, n);
    for (int i = 0; code == 0 && i < n; i++) {
        code = r->topics.v[0].partitions.v[i].error_code;
        out[i] = r->topics.v[0].partitions.v[i].committed_offset;
    }
    arena_free(&a);
    return code;
}

int32_t work_coordinates(const char *group, int broker)
{
    int32_t partition = key_partition(str_of(group), OFFSETS_PARTITIONS);
    return broker > 0 ? sim_model_leads("__consumer_offsets", partition, broker) : -1;
}

static void note_doubt(struct committer *g, int64_t offset)
{
    if (sim_now() >= g->doubt_ends || offset < g->doubt)
        g->doubt = offset;
    g->doubt_ends = sim_now() + DOUBT_S * SIM_S;
}

static int64_t least(const struct committer *g)
{
    return sim_now() < g->doubt_ends && g->doubt < g->acked ? g->doubt : g->acked;
}

static void check(struct committer *g)
{
    int32_t epoch = work_coordinates(g->group, g->coordinator);
    int32_t zero = 0;
    int64_t found;
    if (work_committed(g->c, g->coordinator, g->group, work.topics[0].name, &zero, 1, false,
                       &found)) {
        g->coordinator = -1;
        return;
    }
    if (epoch >= 0 && work_coordinates(g->group, g->coordinator) == epoch &&
        (found < least(g) || found > g->sent))
        sim_violation("G1: group %s has offset %lld, acknowledged was %lld (sent up to %lld)",
                      g->group, (long long)found, (long long)g->acked, (long long)g->sent);
}

static void commit_next(struct committer *g)
{
    g->sent++;
    while (g->acked != g->sent) {
        if (g->coordinator < 0)
            g->coordinator = work_coordinator(g->c, g->group);
        int code = g->coordinator > 0 ? commit(g, g->sent) : -1;
        if (code == KERR_NONE) {
            g->acked = g->sent;
            work.counts.commits++;
            return;
        }
        if (code < 0 && g->coordinator > 0)
            note_doubt(g, g->sent);
        if (code >= 0 && !work_is_retriable(code))
            sim_violation("G1: a commit of group %s gets %s", g->group, kerr_name((enum kerr)code));
        g->coordinator = -1;
        work_pause();
    }
}

void *work_commit(void *arg)
{
    struct committer g = {.acked = -1, .sent = -1, .coordinator = -1};
    snprintf(g.group, sizeof(g.group), "g%d", (int)(intptr_t)arg);
    g.c = client_new(g.group);
    while (!work.ending) {
        fiber_sleep(sim_between(10, 800) * SIM_MS);
        if (!work.topics[0].there)
            continue;
        if (g.acked >= 0 && sim_chance(0.4) && g.coordinator > 0)
            check(&g);
        else
            commit_next(&g);
    }
    work.running--;
    return NULL;
}
