/* admin_elect.c - the admin client: elections of leaders. */
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "protocol/errors.h"
#include "protocol/msg/elect_leaders.h"

struct elections { /* list first: what the user gets */
    kafka_elections_t list;
    struct arena mem;
};

static int by_partition(const void *a, const void *b)
{
    const kafka_election_t *x = a, *y = b;
    int order = strcmp(x->topic, y->topic);
    return order ? order : (x->partition > y->partition) - (x->partition < y->partition);
}

static kafka_err_t on_elected(struct op *op, int version, const void *response)
{
    const struct elect_leaders_response *m = response;
    struct elections *e = op->arg;
    size_t n = 0;
    if (m->error_code)
        return m->error_code;
    for (int32_t t = 0; t < m->replica_election_results.n; t++)
        n += (size_t)m->replica_election_results.v[t].partition_result.n;
    kafka_election_t *v = arena_array(&e->mem, kafka_election_t, n + 1);
    if (!v)
        return KAFKA_ERR_NO_MEMORY;
    n = 0;
    for (int32_t t = 0; t < m->replica_election_results.n; t++) {
        const struct elect_leaders_response_replica_election_result *topic =
            &m->replica_election_results.v[t];
        const char *name = admin_keep(&e->mem, topic->topic);
        for (int32_t i = 0; i < topic->partition_result.n; i++) {
            const struct elect_leaders_response_partition_result *p = &topic->partition_result.v[i];
            if (!name)
                return KAFKA_ERR_NO_MEMORY;
            if (p->error_code ==
                KERR_NOT_CONTROLLER) /* of version 0: it has no error of the whole */
                return p->error_code;
            v[n++] = (kafka_election_t){name, p->partition_id, p->error_code,
                                        admin_keep(&e->mem, p->error_message)};
        }
    }
    if (n)
        qsort(v, n, sizeof *v, by_partition);
    e->list = (kafka_elections_t){v, n};
    return KAFKA_OK;
}

/* One topic a partition: brokers take them so. */
static bool fill(struct elect_leaders_request *req, struct arena *mem,
                 const kafka_topic_partition_t *tps, size_t n)
{
    req->topic_partitions.v = elect_leaders_request_topic_partition_new(mem, (int32_t)n);
    req->topic_partitions.n = (int32_t)n;
    int32_t *partitions = arena_array(mem, int32_t, n + 1);
    if (!req->topic_partitions.v || !partitions)
        return false;
    for (size_t i = 0; i < n; i++) {
        partitions[i] = tps[i].partition;
        req->topic_partitions.v[i].topic = str_of(tps[i].topic);
        req->topic_partitions.v[i].partitions.v = &partitions[i];
        req->topic_partitions.v[i].partitions.n = 1;
    }
    return true;
}

kafka_err_t kafka_admin_elect_leaders(kafka_admin_t *a, int election_type,
                                      const kafka_topic_partition_t *tps, size_t n,
                                      int64_t timeout_ms, kafka_elections_t **out)
{
    struct arena mem;
    struct elect_leaders_request req;
    struct elections *e = calloc(1, sizeof *e);
    *out = NULL;
    if (!e)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    arena_init(&e->mem, 0);
    elect_leaders_request_init(&req);
    req.election_type = (int8_t)election_type;
    req.timeout_ms = admin_request_timeout(timeout_ms);
    req.topic_partitions.n = -1; /* all */
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    struct op op = {.node = NODE_CONTROLLER,
                    .api_key = API_ELECT_LEADERS,
                    .min_version = election_type == KAFKA_ELECTION_PREFERRED ? 0 : 1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_elected,
                    .arg = e};
    if (!tps || fill(&req, &mem, tps, n))
        err = op_run(a->cluster, &op, timeout_ms);
    arena_free(&mem);
    if (err == KAFKA_OK)
        *out = &e->list;
    else
        kafka_elections_free(&e->list);
    return err;
}

void kafka_elections_free(kafka_elections_t *list)
{
    struct elections *e = (struct elections *)list;
    if (!e)
        return;
    arena_free(&e->mem);
    free(e);
}
