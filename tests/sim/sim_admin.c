/* sim_admin.c - the administrator: topics grow, go, and come again under another name (a broker
 * that has not heard of a deletion answers for the old name), replicas move, preferred leaders are
 * asked for. What he asks is asked again until it is answered; what comes of it the model sees. */
#include <stdio.h>

#include "protocol/msg/alter_partition_reassignments.h"
#include "protocol/msg/create_partitions.h"
#include "protocol/msg/delete_topics.h"
#include "protocol/msg/elect_leaders.h"
#include "sim_broker.h"
#include "sim_work_private.h"

enum { REPLICAS = 3, TRIES = 40 };

static struct client *admin;

/* A request to the controller. The answer, in the arena; NULL when there is none. */
static const void *ask(int16_t api_key, const void *request, struct arena *a)
{
    const void *answer = NULL;
    int to = client_controller(admin);
    if (to < 0 || client_call(admin, to, api_key, -1, request, a, &answer) != 0)
        return NULL;
    return answer;
}

static int grow(struct topic *t)
{
    struct create_partitions_request req;
    struct create_partitions_request_topic x;
    struct arena a;
    create_partitions_request_init(&req);
    create_partitions_request_topic_init(&x);
    x.name = str_of(t->name);
    x.count = t->partitions + 1;
    x.assignments.n = -1;
    req.topics.v = &x;
    req.topics.n = 1;
    req.timeout_ms = 5000;
    arena_init(&a, 0);
    const struct create_partitions_response *r = ask(API_CREATE_PARTITIONS, &req, &a);
    int code = r && r->results.n == 1 ? r->results.v[0].error_code : -1;
    arena_free(&a);
    return code;
}

static void grow_topic(struct topic *t)
{
    if (t->partitions == PARTITIONS_MAX)
        return;
    for (int i = 0; i < TRIES; i++) {
        int code = grow(t);
        if (code == KERR_NONE || code == KERR_INVALID_PARTITIONS) { /* has so many already */
            t->partitions++;
            return;
        }
        if (work.ending)
            return;
        work_pause();
    }
}

static int drop(struct topic *t)
{
    struct delete_topics_request req;
    struct delete_topics_request_topic x;
    struct str name = str_of(t->name);
    struct arena a;
    delete_topics_request_init(&req);
    delete_topics_request_topic_init(&x);
    x.name = name;
    req.topics.v = &x;
    req.topics.n = 1;
    req.topic_names.v = &name;
    req.topic_names.n = 1;
    req.timeout_ms = 5000;
    arena_init(&a, 0);
    const struct delete_topics_response *r = ask(API_DELETE_TOPICS, &req, &a);
    int code = r && r->responses.n == 1 ? r->responses.v[0].error_code : -1;
    arena_free(&a);
    return code;
}

static void replace_topic(struct topic *t)
{
    t->deleting = true;
    t->generation++;
    for (int code = -1; code != KERR_NONE && code != KERR_UNKNOWN_TOPIC_OR_PARTITION;) {
        code = drop(t);
        work_pause();
    }
    snprintf(t->name, sizeof(t->name), "t%d.%d", (int)(t - work.topics), t->generation);
    t->partitions = 1 + (int)sim_below(3);
    for (int code = -1; code != KERR_NONE && code != KERR_TOPIC_ALREADY_EXISTS;) {
        int to = client_controller(admin);
        code = to < 0 ? -1 : work_create_topic(admin, t, to);
        work_pause();
    }
    t->deleting = false;
}

static void move(struct topic *t)
{
    struct alter_partition_reassignments_request req;
    struct alter_partition_reassignments_request_topic x;
    struct alter_partition_reassignments_request_partition p;
    int32_t brokers[SIM_BROKERS_MAX];
    struct arena a;
    for (int i = 0; i < sim_cluster.brokers; i++)
        brokers[i] = i + 1;
    for (int i = sim_cluster.brokers - 1; i > 0; i--) {
        int k = (int)sim_below((uint64_t)i + 1);
        int32_t other = brokers[i];
        brokers[i] = brokers[k];
        brokers[k] = other;
    }
    alter_partition_reassignments_request_init(&req);
    alter_partition_reassignments_request_topic_init(&x);
    alter_partition_reassignments_request_partition_init(&p);
    p.partition_index = (int32_t)sim_below((uint64_t)t->partitions);
    p.replicas.v = brokers;
    p.replicas.n = sim_chance(0.1) ? -1 : REPLICAS; /* or: cancel */
    x.name = str_of(t->name);
    x.partitions.v = &p;
    x.partitions.n = 1;
    req.topics.v = &x;
    req.topics.n = 1;
    req.timeout_ms = 5000;
    arena_init(&a, 0);
    ask(API_ALTER_PARTITION_REASSIGNMENTS, &req, &a);
    arena_free(&a);
}

static void elect_preferred(void)
{
    struct elect_leaders_request req;
    struct arena a;
    elect_leaders_request_init(&req);
    req.election_type = 0;
    req.topic_partitions.n = -1;
    req.timeout_ms = 5000;
    arena_init(&a, 0);
    ask(API_ELECT_LEADERS, &req, &a);
    arena_free(&a);
}

void *work_administer(void *arg)
{
    (void)arg;
    admin = client_new("admin");
    while (!work.ending) {
        fiber_sleep(sim_between(200, 6000) * SIM_MS);
        struct topic *t = work_topic();
        if (!t->there || work.ending)
            continue;
        uint64_t what = sim_below(10);
        if (what < 4)
            move(t);
        else if (what < 6)
            elect_preferred();
        else if (what < 8)
            grow_topic(t);
        else if (t != &work.topics[0] && !t->unclean && !t->transactional && work.may_delete)
            replace_topic(t);
        work.counts.changes++;
    }
    work.running--;
    return NULL;
}
