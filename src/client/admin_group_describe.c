/* admin_group_describe.c - what a group is and who is in it. Asked with ConsumerGroupDescribe
 * first; a classic group, or an older broker, with DescribeGroups. */
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "client/assignor.h"
#include "client/lists.h"
#include "protocol/errors.h"
#include "protocol/msg/consumer_group_describe.h"
#include "protocol/msg/describe_groups.h"

struct described_groups {
    kafka_group_infos_t infos;
    struct arena mem;
};

struct describe_call {
    struct arena *mem;
    kafka_group_info_t *to;
    struct coordinator *coordinator;
};

static const char *keep(struct arena *a, struct str s)
{
    const char *kept = admin_keep(a, s);
    return kept ? kept : "";
}

static void keep_coordinator(struct describe_call *c)
{
    struct node *n = coordinator_node(c->coordinator);
    if (n)
        c->to->coordinator = (kafka_node_t){
            .id = node_id(n), .host = keep(c->mem, str_of(node_host(n))), .port = node_port(n)};
}

/* Room for the members that the answer lists; what both protocols tell of a group. NULL without
 * memory. */
static kafka_member_info_t *keep_group(struct describe_call *c, const char *type, struct str state,
                                       struct str assignor, int32_t operations, int32_t members_n)
{
    kafka_member_info_t *members = arena_array(c->mem, kafka_member_info_t, (size_t)members_n);
    if (!members)
        return NULL;
    c->to->type = type;
    c->to->state = keep(c->mem, state);
    c->to->assignor = keep(c->mem, assignor);
    c->to->authorized_operations = operations;
    c->to->members = members;
    c->to->members_n = (size_t)members_n;
    keep_coordinator(c);
    return members;
}

static kafka_err_t ask(struct admin_group *g, struct describe_call *c, int16_t api_key,
                       const void *request, kafka_err_t (*handle)(struct op *, int, const void *),
                       int64_t timeout_ms)
{
    struct op op = {.api_key = api_key,
                    .min_version = -1,
                    .max_version = -1,
                    .request = request,
                    .handle = handle,
                    .arg = c};
    return admin_group_run(g, &op, timeout_ms);
}

/* ---- classic ---- */

static bool keep_assignment(struct arena *a, struct bytes bytes, kafka_member_info_t *to)
{
    kafka_topic_partition_t *tps;
    struct bytes user_data;
    if (!assignment_decode(bytes, a, &tps, &to->assigned_n, &user_data))
        return false;
    if (to->assigned_n)
        qsort(tps, to->assigned_n, sizeof *tps, topic_partition_cmp);
    to->assigned = tps;
    return true;
}

static void keep_classic_member(struct arena *a, const struct describe_groups_response_group *g,
                                const struct describe_groups_response_member *m,
                                kafka_member_info_t *to)
{
    kafka_group_member_t subscribed = {0};
    *to = (kafka_member_info_t){.member_id = keep(a, m->member_id),
                                .instance_id = admin_keep(a, m->group_instance_id),
                                .client_id = keep(a, m->client_id),
                                .host = keep(a, m->client_host),
                                .epoch = -1};
    if (!str_eqz(g->protocol_type, "consumer"))
        return; /* bytes of another protocol */
    keep_assignment(a, m->member_assignment, to);
    if (subscription_decode(m->member_metadata, a, &subscribed)) {
        to->topics = subscribed.topics;
        to->topics_n = subscribed.topics_n;
        to->rack = subscribed.rack;
    }
}

static kafka_err_t on_classic(struct op *op, int version, const void *response)
{
    const struct describe_groups_response *m = response;
    struct describe_call *c = op->arg;
    if (m->groups.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    const struct describe_groups_response_group *g = m->groups.v;
    if (g->error_code)
        return g->error_code;
    kafka_member_info_t *members = keep_group(c, "classic", g->group_state, g->protocol_data,
                                              g->authorized_operations, g->members.n);
    if (!members)
        return KAFKA_ERR_NO_MEMORY;
    for (int32_t i = 0; i < g->members.n; i++)
        keep_classic_member(c->mem, g, &g->members.v[i], &members[i]);
    c->to->protocol_type = keep(c->mem, g->protocol_type);
    /* Brokers tell of a group that is not there as one that is dead. */
    return str_eqz(g->group_state, "Dead") ? KERR_GROUP_ID_NOT_FOUND : KAFKA_OK;
}

static kafka_err_t ask_classic(struct admin_group *g, struct describe_call *c, const char *group,
                               int64_t timeout_ms)
{
    struct describe_groups_request req;
    struct str name = str_of(group);
    describe_groups_request_init(&req);
    req.groups.v = &name;
    req.groups.n = 1;
    return ask(g, c, API_DESCRIBE_GROUPS, &req, on_classic, timeout_ms);
}

/* ---- consumer protocol ---- */

static const kafka_topic_partition_t *
keep_partitions(struct arena *a, const struct consumer_group_describe_response_assignment *from,
                size_t *n)
{
    size_t count = 0;
    for (int32_t t = 0; t < from->topic_partitions.n; t++)
        count += (size_t)from->topic_partitions.v[t].partitions.n;
    kafka_topic_partition_t *to = arena_array(a, kafka_topic_partition_t, count);
    *n = 0;
    for (int32_t t = 0; to && t < from->topic_partitions.n; t++) {
        const char *topic = keep(a, from->topic_partitions.v[t].topic_name);
        for (int32_t i = 0; i < from->topic_partitions.v[t].partitions.n; i++)
            to[(*n)++] =
                (kafka_topic_partition_t){topic, from->topic_partitions.v[t].partitions.v[i]};
    }
    if (*n)
        qsort(to, *n, sizeof *to, topic_partition_cmp);
    return to;
}

static void keep_member(struct arena *a, const struct consumer_group_describe_response_member *m,
                        kafka_member_info_t *to)
{
    const char **topics = arena_array(a, const char *, (size_t)m->subscribed_topic_names.n);
    *to = (kafka_member_info_t){.member_id = keep(a, m->member_id),
                                .instance_id = admin_keep(a, m->instance_id),
                                .rack = admin_keep(a, m->rack_id),
                                .client_id = keep(a, m->client_id),
                                .host = keep(a, m->client_host),
                                .epoch = m->member_epoch,
                                .pattern = admin_keep(a, m->subscribed_topic_regex)};
    for (int32_t i = 0; topics && i < m->subscribed_topic_names.n; i++)
        topics[i] = keep(a, m->subscribed_topic_names.v[i]);
    to->topics = topics;
    to->topics_n = topics ? (size_t)m->subscribed_topic_names.n : 0;
    to->assigned = keep_partitions(a, &m->assignment, &to->assigned_n);
    to->target = keep_partitions(a, &m->target_assignment, &to->target_n);
}

static kafka_err_t on_consumer(struct op *op, int version, const void *response)
{
    const struct consumer_group_describe_response *m = response;
    struct describe_call *c = op->arg;
    if (m->groups.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    const struct consumer_group_describe_response_group *g = m->groups.v;
    c->to->error_message = admin_keep(c->mem, g->error_message);
    if (g->error_code)
        return g->error_code;
    kafka_member_info_t *members = keep_group(c, "consumer", g->group_state, g->assignor_name,
                                              g->authorized_operations, g->members.n);
    if (!members)
        return KAFKA_ERR_NO_MEMORY;
    for (int32_t i = 0; i < g->members.n; i++)
        keep_member(c->mem, &g->members.v[i], &members[i]);
    c->to->protocol_type = "consumer";
    c->to->epoch = g->group_epoch;
    c->to->target_epoch = g->assignment_epoch;
    return KAFKA_OK;
}

static kafka_err_t ask_consumer(struct admin_group *g, struct describe_call *c, const char *group,
                                int64_t timeout_ms)
{
    struct consumer_group_describe_request req;
    struct str name = str_of(group);
    consumer_group_describe_request_init(&req);
    req.group_ids.v = &name;
    req.group_ids.n = 1;
    return ask(g, c, API_CONSUMER_GROUP_DESCRIBE, &req, on_consumer, timeout_ms);
}

/* ---- both ---- */

static void describe_one(kafka_admin_t *a, struct arena *mem, const char *group, int64_t timeout_ms,
                         kafka_group_info_t *to)
{
    struct admin_group g;
    admin_group_begin(&g, a, group);
    struct describe_call c = {mem, to, &g.coordinator};
    *to = (kafka_group_info_t){.group_id = keep(mem, str_of(group)),
                               .protocol_type = "",
                               .type = "",
                               .state = "",
                               .assignor = "",
                               .coordinator = {.id = -1},
                               .epoch = -1,
                               .target_epoch = -1,
                               .authorized_operations = INT32_MIN};
    bool classic = atomic_load(&a->no_consumer_describe);
    if (!classic) {
        to->err = ask_consumer(&g, &c, group, timeout_ms);
        if (to->err == KAFKA_ERR_UNSUPPORTED || to->err == KERR_UNSUPPORTED_VERSION)
            atomic_store(&a->no_consumer_describe, true);
        classic = to->err == KAFKA_ERR_UNSUPPORTED || to->err == KERR_UNSUPPORTED_VERSION ||
                  to->err == KERR_GROUP_ID_NOT_FOUND;
    }
    if (classic) {
        to->error_message = NULL;
        to->err = ask_classic(&g, &c, group, timeout_ms);
    }
    admin_group_end(&g);
}

kafka_err_t kafka_admin_describe_groups(kafka_admin_t *a, const char *const *groups, size_t n,
                                        int64_t timeout_ms, kafka_group_infos_t **out)
{
    struct described_groups *d = calloc(1, sizeof *d);
    kafka_err_t first = KAFKA_OK;
    *out = NULL;
    if (!d)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&d->mem, 0);
    kafka_group_info_t *v = arena_array(&d->mem, kafka_group_info_t, n);
    for (size_t i = 0; v && i < n; i++) {
        describe_one(a, &d->mem, groups[i], timeout_ms, &v[i]);
        first = first == KAFKA_OK && v[i].err < 0 ? v[i].err : first;
    }
    d->infos.v = v;
    d->infos.n = n;
    if (v && first == KAFKA_OK) {
        *out = &d->infos;
        return KAFKA_OK;
    }
    kafka_group_infos_free(&d->infos);
    return v ? first : KAFKA_ERR_NO_MEMORY;
}

void kafka_group_infos_free(kafka_group_infos_t *infos)
{
    if (!infos)
        return;
    struct described_groups *d = container_of(infos, struct described_groups, infos);
    arena_free(&d->mem);
    free(d);
}
