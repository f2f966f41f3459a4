/* consumer.c - the public face of a consumer: its life, assignment and positions. See
 * kafka/consumer.h; poll is in consumer_poll.c, the network's side in fetcher.c, groups in group.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cluster_private.h"
#include "client/consumer_private.h"
#include "client/fetch_session.h"
#include "client/group.h"
#include "client/lists.h"

static int64_t conf_int(const kafka_consumer_t *c, const char *key)
{
    return client_conf_int(c->conf, SCOPE_CONSUMER, key);
}

static const char *conf_string(const kafka_consumer_t *c, const char *key)
{
    return client_conf_string(c->conf, SCOPE_CONSUMER, key);
}

static void read_settings(kafka_consumer_t *c)
{
    const char *reset = conf_string(c, "auto.offset.reset");
    c->reset_to = strcmp(reset, "earliest") == 0 ? KAFKA_OFFSET_BEGINNING
                  : strcmp(reset, "latest") == 0 ? KAFKA_OFFSET_END
                                                 : 0;
    c->read_committed = strcmp(conf_string(c, "isolation.level"), "read_committed") == 0;
    c->check_crcs = client_conf_bool(c->conf, SCOPE_CONSUMER, "check.crcs");
    c->max_poll_records = (int)conf_int(c, "max.poll.records");
    c->fetch_min_bytes = (int32_t)conf_int(c, "fetch.min.bytes");
    c->fetch_max_bytes = (int32_t)conf_int(c, "fetch.max.bytes");
    c->fetch_max_wait_ms = (int32_t)conf_int(c, "fetch.max.wait.ms");
    c->partition_max_bytes = (int32_t)conf_int(c, "max.partition.fetch.bytes");
    c->api_timeout_ms = conf_int(c, "default.api.timeout.ms");
    c->rack = conf_string(c, "client.rack");
    c->stable_or_fail = client_conf_bool(c->conf, SCOPE_CONSUMER,
                                         "internal.throw.on.fetch.stable.offset.unsupported");
}

static void consumer_free(kafka_consumer_t *c)
{
    while (!list_empty(&c->parts))
        cpart_unref(list_entry(list_pop(&c->parts), struct cpart, link));
    hmap_free(&c->by_name);
    consumer_drop_subscription(c);
    while (!list_empty(&c->sessions))
        fetch_session_free(list_entry(c->sessions.next, struct fetch_session, link));
    group_free(c->group);
    spent_close(c->spent);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->lock);
    kafka_conf_free(c->conf);
    free(c);
}

/* With group.id: what a member needs. */
static bool begin_group(kafka_consumer_t *c, char *err, size_t err_n)
{
    const char *id = conf_string(c, "group.id");
    if (id && *id)
        return (c->group = group_new(c, err, err_n)) != NULL;
    if (!client_conf_is_set(c->conf, "enable.auto.commit") ||
        !client_conf_bool(c->conf, SCOPE_CONSUMER, "enable.auto.commit"))
        return true;
    snprintf(err, err_n,
             "enable.auto.commit=true: offsets are committed for a group: set group.id");
    return false;
}

static bool start_cluster(kafka_consumer_t *c, char *err, size_t err_n)
{
    static atomic_int numbers;
    char made_id[300];
    const char *id = conf_string(c, "client.id");
    if (c->group)
        snprintf(made_id, sizeof made_id, "consumer-%.250s-%d", c->group->id,
                 atomic_fetch_add(&numbers, 1) + 1);
    else
        snprintf(made_id, sizeof made_id, "consumer-%d", (int)getpid());
    c->cluster = cluster_start(c->conf, SCOPE_CONSUMER, id && *id ? id : made_id, err, err_n);
    return c->cluster != NULL;
}

kafka_consumer_t *kafka_consumer_new(const kafka_conf_t *conf, char *err, size_t err_n)
{
    kafka_consumer_t *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    pthread_mutex_init(&c->lock, NULL);
    client_cond_init(&c->news);
    list_init(&c->parts);
    list_init(&c->sessions);
    hmap_init(&c->by_name);
    c->stable_offsets = true;
    c->conf = client_conf_copy(conf);
    c->spent = spent_new();
    if (!c->conf || !c->spent ||
        client_conf_check(c->conf, SCOPE_CONSUMER, err, err_n) != KAFKA_OK) {
        consumer_free(c);
        return NULL;
    }
    read_settings(c);
    if (!begin_group(c, err, err_n) || !start_cluster(c, err, err_n)) {
        consumer_free(c);
        return NULL;
    }
    fetcher_init(c);
    if (c->group)
        group_init_background(c->group);
    return c;
}

static void stop_background(void *consumer)
{
    kafka_consumer_t *c = consumer;
    fetcher_stop(c);
    if (c->group)
        group_stop(c->group);
}

/* Leaves things as the group should find them. */
static void close_group(kafka_consumer_t *c, int64_t deadline_ms)
{
    struct group *g = c->group;
    pthread_mutex_lock(&c->lock);
    c->woken = false;
    if (g->auto_commit && (!consumer_is_subscribed(c) || group_is_member(g))) {
        struct commit *m = commit_positions(c, c->api_timeout_ms, false);
        kafka_err_t err = m ? commit_await(c, m, deadline_ms) : KAFKA_OK;
        if (err != KAFKA_OK)
            client_log(2, "group %s: commit while closing failed: %s (%s)", g->id,
                       kafka_err_text(err), kafka_err_name(err));
    }
    commits_await_all(c, deadline_ms);
    if (consumer_is_subscribed(c))
        group_give_up(c, "the consumer is being closed");
    while (g->leaving > 0 && client_cond_wait(&c->news, &c->lock, deadline_ms))
        ;
    pthread_mutex_unlock(&c->lock);
}

void kafka_consumer_close_timeout(kafka_consumer_t *c, int64_t timeout_ms)
{
    if (!c)
        return;
    if (c->group)
        close_group(c, client_deadline(timeout_ms));
    cluster_call(c->cluster, stop_background, c);
    cluster_stop(c->cluster);
    consumer_free(c);
}

void kafka_consumer_close(kafka_consumer_t *c)
{
    kafka_consumer_close_timeout(c, 30000);
}

bool consumer_take_wakeup(kafka_consumer_t *c)
{
    pthread_mutex_lock(&c->lock);
    bool woken = c->woken;
    c->woken = false;
    pthread_mutex_unlock(&c->lock);
    return woken;
}

kafka_err_t kafka_consumer_partition_count(kafka_consumer_t *c, const char *topic, int32_t *count)
{
    if (consumer_take_wakeup(c))
        return KAFKA_ERR_WAKEUP;
    kafka_err_t err = cluster_wait_topic(c->cluster, topic, -1, c->api_timeout_ms, count);
    if (err == KAFKA_ERR_WAKEUP)
        consumer_take_wakeup(c);
    return err;
}

/* ---- assignment and positions ---- */

static uint64_t part_hash(const kafka_topic_partition_t *tp)
{
    return hash_bytes(tp->topic, strlen(tp->topic)) + hash_int((uint64_t)tp->partition);
}

static bool part_is(const struct hnode *n, const void *key)
{
    const struct cpart *p = container_of(n, struct cpart, hnode);
    const kafka_topic_partition_t *tp = key;
    return p->partition == tp->partition && strcmp(p->topic, tp->topic) == 0;
}

struct cpart *consumer_find_part(kafka_consumer_t *c, const char *topic, int32_t partition)
{
    kafka_topic_partition_t tp = {topic, partition};
    struct hnode *n = hmap_find(&c->by_name, part_hash(&tp), part_is, &tp);
    return n ? container_of(n, struct cpart, hnode) : NULL;
}

static struct cpart *cpart_new(kafka_consumer_t *c, const kafka_topic_partition_t *tp)
{
    struct cpart *p = calloc(1, sizeof *p);
    if (!p || !(p->topic = str_dup(str_of(tp->topic))) ||
        hmap_put(&c->by_name, &p->hnode, part_hash(tp)) < 0) {
        if (p)
            free(p->topic);
        free(p);
        return NULL;
    }
    list_init(&p->link);
    list_init(&p->queue);
    p->refs = 1;
    p->partition = tp->partition;
    p->position = p->fetch_at = -1;
    p->epoch = p->leader = p->position_epoch = p->leader_epoch = p->preferred = -1;
    p->end = -1;
    return p;
}

static void revoke_parts(kafka_consumer_t *c, struct list *parts)
{
    while (!list_empty(parts)) {
        struct cpart *p = list_entry(list_pop(parts), struct cpart, link);
        p->revoked = true;
        hmap_remove(&c->by_name, &p->hnode);
        cpart_unref(p);
    }
}

/* The partition, kept or made, on `next`. Lock held. */
static kafka_err_t assign_one(kafka_consumer_t *c, const kafka_topic_partition_t *tp,
                              struct list *next)
{
    struct cpart *p = consumer_find_part(c, tp->topic, tp->partition);
    if (!p && !(p = cpart_new(c, tp)))
        return KAFKA_ERR_NO_MEMORY;
    if (p->assigned == c->assigns)
        return KAFKA_OK; /* named twice */
    p->assigned = c->assigns;
    list_remove(&p->link);
    list_push_back(next, &p->link);
    cpart_find_leader(c, p);
    return KAFKA_OK;
}

kafka_err_t consumer_set_parts(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n)
{
    struct list next = LIST_INIT(next);
    kafka_err_t err = KAFKA_OK;
    for (size_t i = 0; i < n; i++)
        cluster_follow_topic(c->cluster, tps[i].topic);
    c->assigns++;
    for (size_t i = 0; i < n && err == KAFKA_OK; i++)
        err = assign_one(c, &tps[i], &next);
    revoke_parts(c, &c->parts);
    list_splice(&c->parts, &next);
    c->error = KAFKA_OK;
    fetcher_wake(c);
    return err;
}

bool consumer_is_subscribed(const kafka_consumer_t *c)
{
    return c->mode == CONSUMER_TOPICS || c->mode == CONSUMER_PATTERN;
}

kafka_err_t kafka_consumer_assign(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tps[i].partition < 0)
            return client_fail(KAFKA_ERR_INVALID_ARG, "topic %s has no partition %d", tps[i].topic,
                               tps[i].partition);
    if (n == 0)
        return kafka_consumer_unsubscribe(c);
    pthread_mutex_lock(&c->lock);
    kafka_err_t err = KAFKA_OK;
    if (consumer_is_subscribed(c) || c->in_callback)
        err =
            client_fail(KAFKA_ERR_STATE, "this consumer is subscribed: unsubscribe before assign");
    else
        err = consumer_set_parts(c, tps, n);
    if (err == KAFKA_OK)
        c->mode = CONSUMER_ASSIGN;
    pthread_mutex_unlock(&c->lock);
    return err;
}

kafka_err_t kafka_consumer_assignment(kafka_consumer_t *c, kafka_partition_list_t **out)
{
    size_t n = 0, most = 1;
    pthread_mutex_lock(&c->lock);
    list_each (it, &c->parts)
        most++;
    kafka_topic_partition_t *v = malloc(most * sizeof *v);
    list_each (it, &c->parts) {
        struct cpart *p = list_entry(it, struct cpart, link);
        if (v)
            v[n++] = (kafka_topic_partition_t){p->topic, p->partition};
    }
    if (n)
        qsort(v, n, sizeof *v, topic_partition_cmp);
    *out = v ? partition_list_copy(v, n) : NULL;
    pthread_mutex_unlock(&c->lock);
    free(v);
    return *out ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

static kafka_err_t not_assigned(const char *topic, int32_t partition)
{
    return client_fail(KAFKA_ERR_STATE, "%s-%d is not assigned", topic, partition);
}

kafka_err_t kafka_consumer_seek(kafka_consumer_t *c, const char *topic, int32_t partition,
                                int64_t offset)
{
    if (offset < KAFKA_OFFSET_BEGINNING)
        return client_fail(KAFKA_ERR_INVALID_ARG, "%s-%d: %lld is no offset", topic, partition,
                           (long long)offset);
    pthread_mutex_lock(&c->lock);
    struct cpart *p = consumer_find_part(c, topic, partition);
    if (p) {
        p->generation++;
        p->attempts = 0;
        p->retry_at_ms = 0;
        cpart_drop_queue(p);
        p->state = offset >= 0 ? CPART_FETCH : CPART_RESET;
        p->position = p->fetch_at = offset >= 0 ? offset : -1;
        p->position_epoch = p->epoch = -1;
        p->preferred = -1;
        p->reset_to = offset;
        c->error = KAFKA_OK;
        fetcher_wake(c);
    }
    pthread_mutex_unlock(&c->lock);
    return p ? KAFKA_OK : not_assigned(topic, partition);
}

kafka_err_t kafka_consumer_lag(kafka_consumer_t *c, const char *topic, int32_t partition,
                               int64_t *lag)
{
    pthread_mutex_lock(&c->lock);
    struct cpart *p = consumer_find_part(c, topic, partition);
    if (p)
        *lag = p->position < 0 || p->end < 0 ? -1 : p->end > p->position ? p->end - p->position : 0;
    pthread_mutex_unlock(&c->lock);
    return p ? KAFKA_OK : not_assigned(topic, partition);
}

static kafka_err_t set_paused(kafka_consumer_t *c, const char *topic, int32_t partition,
                              bool paused)
{
    pthread_mutex_lock(&c->lock);
    struct cpart *p = consumer_find_part(c, topic, partition);
    if (p)
        p->paused = paused;
    fetcher_wake(c);
    pthread_mutex_unlock(&c->lock);
    return p ? KAFKA_OK : not_assigned(topic, partition);
}

kafka_err_t kafka_consumer_pause(kafka_consumer_t *c, const char *topic, int32_t partition)
{
    return set_paused(c, topic, partition, true);
}

kafka_err_t kafka_consumer_resume(kafka_consumer_t *c, const char *topic, int32_t partition)
{
    return set_paused(c, topic, partition, false);
}

kafka_err_t kafka_consumer_position(kafka_consumer_t *c, const char *topic, int32_t partition,
                                    int64_t timeout_ms, int64_t *offset)
{
    char why[500];
    int64_t deadline = client_deadline(timeout_ms);
    kafka_err_t err = KAFKA_OK;
    pthread_mutex_lock(&c->lock);
    struct cpart *p = consumer_find_part(c, topic, partition);
    while (p && p->state != CPART_FETCH && err == KAFKA_OK) {
        err = c->woken ? KAFKA_ERR_WAKEUP : c->error;
        c->woken = false;
        if (err == KAFKA_OK && !client_cond_wait(&c->news, &c->lock, deadline))
            err = KAFKA_ERR_TIMED_OUT;
    }
    if (!p)
        err = not_assigned(topic, partition);
    else if (err == KAFKA_OK)
        *offset = p->position;
    else if (err == KAFKA_ERR_TIMED_OUT)
        client_fail(err, "%s-%d: no position within %lld ms%s", topic, partition,
                    (long long)timeout_ms, cluster_why(c->cluster, why, sizeof why));
    else if (err != KAFKA_ERR_WAKEUP)
        client_fail(err, "%s", c->error_text);
    pthread_mutex_unlock(&c->lock);
    return err;
}

void kafka_consumer_wakeup(kafka_consumer_t *c)
{
    pthread_mutex_lock(&c->lock);
    c->woken = true;
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
    cluster_interrupt(c->cluster);
}
