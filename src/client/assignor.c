/* assignor.c - what all assignors share: the table of names, the result being made, members. */
#include "client/assignor.h"

#include <stdlib.h>
#include <string.h>

#define JAVA "org.apache.kafka.clients.consumer."
static const struct {
    const char *java;
    kafka_assignor_t assignor;
} built_in[] = {
    {JAVA "RangeAssignor", {"range", 0, assign_range, NULL, NULL, NULL}},
    {JAVA "RoundRobinAssignor", {"roundrobin", 0, assign_roundrobin, NULL, NULL, NULL}},
    {JAVA "StickyAssignor", {"sticky", 0, assign_sticky, NULL, NULL, NULL}},
    {JAVA "CooperativeStickyAssignor",
     {"cooperative-sticky", 1, assign_cooperative, NULL, NULL, NULL}},
};

const kafka_assignor_t *assignor_built_in(const char *name)
{
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (strcmp(name, built_in[i].java) == 0 || strcmp(name, built_in[i].assignor.name) == 0)
            return &built_in[i].assignor;
    return NULL;
}

void assignment_init(kafka_assignment_t *a, size_t members_n, const kafka_topic_size_t *topics,
                     size_t topics_n)
{
    *a = (kafka_assignment_t){.members_n = members_n, .topics = topics, .topics_n = topics_n};
}

void assignment_free(kafka_assignment_t *a)
{
    for (size_t i = 0; a->user_data && i < a->members_n; i++)
        buf_free(&a->user_data[i]);
    free(a->user_data);
    free(a->v);
    *a = (kafka_assignment_t){0};
}

static int topic_cmp(const void *key, const void *t)
{
    return strcmp(key, ((const kafka_topic_size_t *)t)->name);
}

static kafka_err_t failed(kafka_assignment_t *a, kafka_err_t err)
{
    a->failed = true;
    return err;
}

kafka_err_t kafka_assignment_add(kafka_assignment_t *a, size_t member, const char *topic,
                                 int32_t partition)
{
    const kafka_topic_size_t *t =
        a->topics_n ? bsearch(topic, a->topics, a->topics_n, sizeof *a->topics, topic_cmp) : NULL;
    if (!t || partition < 0 || partition >= t->partitions || member >= a->members_n)
        return failed(a, KAFKA_ERR_INVALID_ARG);
    if (a->n == a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 64;
        struct given *grown = realloc(a->v, cap * sizeof *grown);
        if (!grown)
            return failed(a, KAFKA_ERR_NO_MEMORY);
        a->v = grown;
        a->cap = cap;
    }
    a->v[a->n++] = (struct given){member, t->name, partition};
    return KAFKA_OK;
}

kafka_err_t kafka_assignment_set_user_data(kafka_assignment_t *a, size_t member, const void *data,
                                           size_t len)
{
    if (member >= a->members_n)
        return failed(a, KAFKA_ERR_INVALID_ARG);
    if (!a->user_data && !(a->user_data = calloc(a->members_n, sizeof *a->user_data)))
        return failed(a, KAFKA_ERR_NO_MEMORY);
    a->user_data[member].len = 0;
    buf_put(&a->user_data[member], data, len);
    return a->user_data[member].failed ? failed(a, KAFKA_ERR_NO_MEMORY) : KAFKA_OK;
}

static int given_cmp(const void *a, const void *b)
{
    const struct given *x = a, *y = b;
    if (x->member != y->member)
        return x->member < y->member ? -1 : 1;
    int c = x->topic == y->topic ? 0 : strcmp(x->topic, y->topic);
    return c ? c : (x->partition > y->partition) - (x->partition < y->partition);
}

void assignment_sort(kafka_assignment_t *a)
{
    if (a->n)
        qsort(a->v, a->n, sizeof *a->v, given_cmp);
}

static int member_cmp(const void *a, const void *b)
{
    const kafka_group_member_t *x = a, *y = b;
    if (x->instance_id && y->instance_id)
        return strcmp(x->instance_id, y->instance_id);
    if (!x->instance_id != !y->instance_id)
        return x->instance_id ? -1 : 1;
    return strcmp(x->member_id, y->member_id);
}

void assignor_sort_members(kafka_group_member_t *members, size_t n)
{
    if (n)
        qsort(members, n, sizeof *members, member_cmp);
}

static int name_cmp(const void *key, const void *name)
{
    return strcmp(key, *(const char *const *)name);
}

bool assignor_is_subscribed(const kafka_group_member_t *m, const char *topic)
{
    return m->topics_n && bsearch(topic, m->topics, m->topics_n, sizeof *m->topics, name_cmp);
}
