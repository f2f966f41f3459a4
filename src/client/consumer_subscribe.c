/* consumer_subscribe.c - what a consumer is subscribed to: a list of topics, or a pattern that the
 * background thread holds against the topics there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cluster_private.h"
#include "client/consumer_private.h"
#include "client/group.h"
#include "client/group_metadata.h"
#include "client/lists.h"

static int cmp_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int cmp_name(const void *key, const void *name)
{
    return strcmp(key, *(char *const *)name);
}

bool consumer_wants_topic(const kafka_consumer_t *c, const char *topic)
{
    return c->topics_n && bsearch(topic, c->topics, c->topics_n, sizeof *c->topics, cmp_name);
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

void consumer_drop_subscription(kafka_consumer_t *c)
{
    free_names(c->topics, c->topics_n);
    c->topics = NULL;
    c->topics_n = 0;
    if (c->mode == CONSUMER_PATTERN)
        java_regex_fini(&c->pattern);
    c->mode = CONSUMER_NONE;
    c->pattern_ready = false;
}

/* Sorted, each once. */
static char **copy_names(const char *const *names, size_t *n)
{
    char **copy = calloc(*n + 1, sizeof *copy);
    size_t kept = 0;
    for (size_t i = 0; copy && i < *n; i++)
        if (!(copy[i] = str_dup(str_of(names[i])))) {
            free_names(copy, i);
            return NULL;
        }
    if (!copy)
        return NULL;
    qsort(copy, *n, sizeof *copy, cmp_names);
    for (size_t i = 0; i < *n; i++) {
        if (kept > 0 && strcmp(copy[kept - 1], copy[i]) == 0)
            free(copy[i]);
        else
            copy[kept++] = copy[i];
    }
    *n = kept;
    return copy;
}

/* May the subscription become one of this mode? Lock held. */
static kafka_err_t check_mode(kafka_consumer_t *c, enum consumer_mode mode)
{
    if (!c->group)
        return client_fail(KAFKA_ERR_INVALID_ARG,
                           "subscribing means joining a group: set group.id, or use assign");
    if (c->in_callback)
        return client_fail(KAFKA_ERR_STATE, "subscriptions cannot change in a callback");
    if (c->mode != CONSUMER_NONE && c->mode != mode)
        return client_fail(KAFKA_ERR_STATE,
                           "subscribing to topics, to a pattern and assign exclude each other: "
                           "unsubscribe first");
    return KAFKA_OK;
}

static void begin(kafka_consumer_t *c, enum consumer_mode mode,
                  const kafka_rebalance_listener_t *listener)
{
    c->mode = mode;
    c->listener = listener ? *listener : (kafka_rebalance_listener_t){0};
    c->group->last_poll_ms = client_now_ms();
    group_want_rejoin(c->group, "the subscription has changed");
}

kafka_err_t kafka_consumer_subscribe(kafka_consumer_t *c, const char *const *topics, size_t n,
                                     const kafka_rebalance_listener_t *listener)
{
    if (n == 0)
        return kafka_consumer_unsubscribe(c);
    for (size_t i = 0; i < n; i++)
        if (!topics[i] || !topics[i][0] || strlen(topics[i]) > 249)
            return client_fail(KAFKA_ERR_INVALID_ARG, "a topic's name has 1 to 249 characters");
    char **names = copy_names(topics, &n);
    if (!names)
        return KAFKA_ERR_NO_MEMORY;
    pthread_mutex_lock(&c->lock);
    kafka_err_t err = check_mode(c, CONSUMER_TOPICS);
    if (err == KAFKA_OK) {
        consumer_drop_subscription(c);
        c->topics = names;
        c->topics_n = n;
        begin(c, CONSUMER_TOPICS, listener);
        for (size_t i = 0; i < n; i++)
            cluster_follow_topic(c->cluster, names[i]);
    } else {
        free_names(names, n);
    }
    pthread_mutex_unlock(&c->lock);
    return err;
}

/* ---- patterns ---- */

struct matching {
    kafka_consumer_t *c;
    char **names;
    size_t n, cap;
    bool failed;
};

static void match_one(void *arg, const char *name, bool internal)
{
    struct matching *m = arg;
    if ((internal && !m->c->with_internal) || !java_regex_matches(&m->c->pattern, name))
        return;
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 16;
        char **grown = realloc(m->names, cap * sizeof *grown);
        m->failed |= !grown;
        if (!grown)
            return;
        m->names = grown;
        m->cap = cap;
    }
    if ((m->names[m->n] = str_dup(str_of(name))))
        m->n++;
    else
        m->failed = true;
}

static bool same_names(const kafka_consumer_t *c, const struct matching *m)
{
    if (c->topics_n != m->n)
        return false;
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(c->topics[i], m->names[i]) != 0)
            return false;
    return true;
}

void consumer_match_pattern(kafka_consumer_t *c)
{
    struct matching m = {.c = c};
    if (c->mode != CONSUMER_PATTERN)
        return;
    bool known = cluster_each_topic(c->cluster, match_one, &m);
    if (m.n)
        qsort(m.names, m.n, sizeof *m.names, cmp_names);
    if (known && !m.failed && (!c->pattern_ready || !same_names(c, &m))) {
        free_names(c->topics, c->topics_n);
        c->topics = m.names;
        c->topics_n = m.n;
        c->pattern_ready = true;
        group_want_rejoin(c->group, "the topics that match have changed");
    } else {
        free_names(m.names, m.n);
    }
}

kafka_err_t kafka_consumer_subscribe_pattern(kafka_consumer_t *c, const char *pattern,
                                             const kafka_rebalance_listener_t *listener)
{
    struct java_regex re;
    char why[128] = "out of memory";
    int rc = java_regex_init(&re, pattern, false, why, sizeof why);
    if (rc < 0)
        return client_fail(KAFKA_ERR_INVALID_ARG, "pattern %s: %s", pattern, why);
    pthread_mutex_lock(&c->lock);
    kafka_err_t err = check_mode(c, CONSUMER_PATTERN);
    if (err == KAFKA_OK) {
        consumer_drop_subscription(c);
        c->pattern = re;
        c->with_internal = !client_conf_bool(c->conf, SCOPE_CONSUMER, "exclude.internal.topics");
        begin(c, CONSUMER_PATTERN, listener);
        cluster_follow_all(c->cluster);
        consumer_match_pattern(c);
    } else {
        java_regex_fini(&re);
    }
    pthread_mutex_unlock(&c->lock);
    return err;
}

/* ---- the rest ---- */

kafka_err_t kafka_consumer_unsubscribe(kafka_consumer_t *c)
{
    kafka_err_t err = KAFKA_OK;
    pthread_mutex_lock(&c->lock);
    if (c->in_callback) {
        err = client_fail(KAFKA_ERR_STATE, "subscriptions cannot change in a callback");
    } else {
        if (consumer_is_subscribed(c))
            group_give_up(c, "the consumer has unsubscribed");
        consumer_set_parts(c, NULL, 0);
        consumer_drop_subscription(c);
    }
    pthread_mutex_unlock(&c->lock);
    return err;
}

kafka_err_t kafka_consumer_subscription(kafka_consumer_t *c, kafka_partition_list_t **out)
{
    pthread_mutex_lock(&c->lock);
    kafka_topic_partition_t *v = calloc(c->topics_n + 1, sizeof *v);
    for (size_t i = 0; v && i < c->topics_n; i++)
        v[i] = (kafka_topic_partition_t){c->topics[i], -1};
    *out = v ? partition_list_copy(v, c->topics_n) : NULL;
    pthread_mutex_unlock(&c->lock);
    free(v);
    return *out ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

int32_t kafka_consumer_generation(kafka_consumer_t *c)
{
    pthread_mutex_lock(&c->lock);
    int32_t generation = c->group ? c->group->generation : -1;
    pthread_mutex_unlock(&c->lock);
    return generation;
}

kafka_group_metadata_t *kafka_consumer_group_metadata(kafka_consumer_t *c)
{
    if (!c->group)
        return NULL;
    pthread_mutex_lock(&c->lock);
    const struct group *g = c->group;
    bool subscribed = consumer_is_subscribed(c);
    kafka_group_metadata_t *m =
        group_metadata_make(g->id, subscribed ? g->generation : -1, subscribed ? g->member_id : "",
                            subscribed ? g->instance_id : NULL);
    pthread_mutex_unlock(&c->lock);
    return m;
}

const char *kafka_consumer_member_id(kafka_consumer_t *c)
{
    pthread_mutex_lock(&c->lock);
    snprintf(c->told_member_id, sizeof c->told_member_id, "%s",
             c->group ? c->group->member_id : "");
    pthread_mutex_unlock(&c->lock);
    return c->told_member_id;
}

kafka_err_t kafka_consumer_enforce_rebalance(kafka_consumer_t *c)
{
    kafka_err_t err = KAFKA_OK;
    pthread_mutex_lock(&c->lock);
    if (consumer_is_subscribed(c))
        group_want_rejoin(c->group, "the application has asked for a rebalance");
    else
        err = client_fail(KAFKA_ERR_STATE, "not subscribed: there is no group to rebalance");
    pthread_mutex_unlock(&c->lock);
    return err;
}
