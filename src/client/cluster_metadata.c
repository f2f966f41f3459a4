/* cluster_metadata.c - what a client knows of topics and leaders, and how it keeps that fresh.
 *
 * A refresh asks for all followed topics at once. One is in flight at a time; on failure it is
 * repeated after the retry backoff; without need it is repeated after metadata.max.age.ms. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cluster_private.h"
#include "protocol/errors.h"
#include "protocol/msg/metadata.h"

static void refresh_now(struct cluster *c);

static bool topic_meta_is(const struct hnode *n, const void *key)
{
    return strcmp(container_of(n, struct topic_meta, hnode)->name, key) == 0;
}

static struct topic_meta *find_topic(struct cluster *c, const char *name)
{
    struct hnode *n = hmap_find(&c->topics, hash_bytes(name, strlen(name)), topic_meta_is, name);
    return n ? container_of(n, struct topic_meta, hnode) : NULL;
}

static void on_refresh_task(struct task *t)
{
    struct cluster *c = container_of(t, struct cluster, refresh_task);
    pthread_mutex_lock(&c->lock);
    c->refresh_wanted = false;
    bool unasked = c->unasked > 0;
    pthread_mutex_unlock(&c->lock);
    if (c->closing || c->refresh_in_flight || (c->refresh_failures > 0 && !unasked))
        return; /* the answer, or the timer, sees to it */
    /* Not more often than the backoff allows, however many found something stale; but a new topic
     * is asked for at once. */
    int64_t wait = c->refreshed_ms + c->backoff_ms - executor_now_ms(c->ex);
    if (wait <= 0 || c->refreshed_ms == 0 || unasked)
        refresh_now(c);
    else
        executor_timer_start(c->ex, &c->refresh_timer, wait);
}

static void on_refresh_timer(struct timer *t)
{
    refresh_now(container_of(t, struct cluster, refresh_timer));
}

static void free_topic(struct topic_meta *t)
{
    topic_racks_free(t->racks);
    free(t->name);
    free(t->partitions);
    free(t);
}

void cluster_metadata_init(struct cluster *c)
{
    pthread_mutex_init(&c->lock, NULL);
    client_cond_init(&c->changed);
    hmap_init(&c->topics);
    c->controller = -1;
    task_init(&c->refresh_task, on_refresh_task);
    timer_init(&c->refresh_timer, on_refresh_timer);
}

void cluster_metadata_free(struct cluster *c)
{
    for (struct hnode *n = hmap_first(&c->topics), *next; n; n = next) {
        next = hmap_next(&c->topics, n);
        free_topic(container_of(n, struct topic_meta, hnode));
    }
    hmap_free(&c->topics);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
}

static void want_refresh_locked(struct cluster *c)
{
    if (c->refresh_wanted)
        return;
    c->refresh_wanted = true;
    executor_post(c->ex, &c->refresh_task);
}

void cluster_refresh(struct cluster *c)
{
    pthread_mutex_lock(&c->lock);
    want_refresh_locked(c);
    pthread_mutex_unlock(&c->lock);
}

/* May asking for a topic make the broker create it? */
static bool may_create(const struct cluster *c)
{
    return c->scope == SCOPE_PRODUCER ||
           (c->scope == SCOPE_CONSUMER &&
            client_conf_bool(c->conf, c->scope, "allow.auto.create.topics"));
}

static struct topic_meta *add_topic_locked(struct cluster *c, const char *topic)
{
    struct topic_meta *t = calloc(1, sizeof *t);
    if (!t || !(t->name = str_dup(str_of(topic))) ||
        hmap_put(&c->topics, &t->hnode, hash_bytes(topic, strlen(topic))) < 0) {
        if (t)
            free(t->name);
        free(t);
        return NULL;
    }
    t->err = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    return t;
}

static struct topic_meta *follow_locked(struct cluster *c, const char *topic)
{
    struct topic_meta *t = find_topic(c, topic);
    if (t || !(t = add_topic_locked(c, topic)))
        return t;
    c->unasked++;
    t->create = may_create(c);
    want_refresh_locked(c);
    return t;
}

void cluster_follow_topic(struct cluster *c, const char *topic)
{
    pthread_mutex_lock(&c->lock);
    follow_locked(c, topic);
    pthread_mutex_unlock(&c->lock);
}

void cluster_unfollow_topic(struct cluster *c, const char *topic)
{
    pthread_mutex_lock(&c->lock);
    struct topic_meta *t = find_topic(c, topic);
    if (t && t->waiters == 0) {
        hmap_remove(&c->topics, &t->hnode);
        free_topic(t);
    }
    pthread_mutex_unlock(&c->lock);
}

/* What was said of it is old news. */
static void ask_again_locked(struct cluster *c, struct topic_meta *t)
{
    t->answered = false;
    t->asked = false;
    c->unasked++;
    want_refresh_locked(c);
}

void cluster_interrupt(struct cluster *c)
{
    pthread_mutex_lock(&c->lock);
    c->interrupts++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

bool cluster_topic_error_is_final(kafka_err_t err)
{
    return err == KERR_INVALID_TOPIC_EXCEPTION || err == KERR_TOPIC_AUTHORIZATION_FAILED ||
           err == KERR_INVALID_REPLICATION_FACTOR || err == KERR_UNKNOWN_TOPIC_ID;
}

/* wait_ms: what was waited for it, -1 when the answer was clear before. */
static void tell_failure(struct cluster *c, const char *topic, int32_t partition, int32_t known,
                         kafka_err_t err, int64_t wait_ms)
{
    char why[500], words[CLIENT_WORDS];
    if (known >= 0)
        client_fail(err, "topic %s has %d partitions, but not partition %d, within %lld ms", topic,
                    known, partition, (long long)wait_ms);
    else if (wait_ms < 0)
        client_fail(err, "topic %s: %s (%s)%s", topic, client_words(err, topic, NULL, words),
                    kafka_err_name(err),
                    err == KAFKA_ERR_AUTHENTICATION ? cluster_why(c, why, sizeof why) : "");
    else
        client_fail(err, "topic %s: %s (%s) within %lld ms%s", topic, kafka_err_text(err),
                    kafka_err_name(err), (long long)wait_ms, cluster_why(c, why, sizeof why));
}

kafka_err_t cluster_wait_topic(struct cluster *c, const char *topic, int32_t partition,
                               int64_t wait_ms, int32_t *count)
{
    int64_t deadline = client_deadline(wait_ms);
    kafka_err_t err;
    bool in_vain = false;
    pthread_mutex_lock(&c->lock);
    struct topic_meta *t = follow_locked(c, topic);
    unsigned interrupts = c->interrupts, refusals = c->refusals;
    if (t)
        t->waiters++;
    if (t && t->err != KAFKA_OK && t->answered)
        ask_again_locked(c, t);
    for (;;) {
        err = t ? t->err : KAFKA_ERR_NO_MEMORY;
        if (err == KAFKA_OK && partition < t->partitions_n)
            break;
        if (!t || cluster_topic_error_is_final(err) ||
            (err == KERR_UNKNOWN_TOPIC_OR_PARTITION && t->answered && c->scope != SCOPE_PRODUCER))
            break;
        if (c->interrupts != interrupts) {
            err = KAFKA_ERR_WAKEUP;
            break;
        }
        if (c->refusals != refusals) {
            err = KAFKA_ERR_AUTHENTICATION;
            break;
        }
        if (!client_cond_wait(&c->changed, &c->lock, deadline)) {
            in_vain = true;
            err = err == KAFKA_OK || !t->answered ? KAFKA_ERR_TIMED_OUT : err;
            break;
        }
    }
    if (err == KAFKA_OK && count)
        *count = t->partitions_n;
    if (t)
        t->waiters--;
    int32_t known = t ? t->partitions_n : 0;
    bool some = t && t->err == KAFKA_OK;
    pthread_mutex_unlock(&c->lock);
    if (err != KAFKA_OK && err != KAFKA_ERR_WAKEUP)
        tell_failure(c, topic, partition, some ? known : -1, err, in_vain ? wait_ms : -1);
    return err;
}

kafka_err_t cluster_topic_refusal(struct cluster *c, const char *topic)
{
    pthread_mutex_lock(&c->lock);
    const struct topic_meta *t = find_topic(c, topic);
    kafka_err_t err = t && t->answered ? t->err : KAFKA_OK;
    pthread_mutex_unlock(&c->lock);
    return err == KERR_TOPIC_AUTHORIZATION_FAILED || err == KERR_INVALID_TOPIC_EXCEPTION ? err
                                                                                         : KAFKA_OK;
}

bool cluster_leader(struct cluster *c, const char *topic, int32_t partition,
                    struct leader_info *out)
{
    pthread_mutex_lock(&c->lock);
    struct topic_meta *t = find_topic(c, topic);
    bool known = t && t->err == KAFKA_OK && partition >= 0 && partition < t->partitions_n;
    if (known)
        *out = t->partitions[partition];
    pthread_mutex_unlock(&c->lock);
    return known;
}

int32_t cluster_partition_count(struct cluster *c, const char *topic, int32_t *available)
{
    pthread_mutex_lock(&c->lock);
    struct topic_meta *t = find_topic(c, topic);
    int32_t n = t && t->err == KAFKA_OK ? t->partitions_n : -1;
    if (available) {
        *available = 0;
        for (int32_t i = 0; i < n; i++)
            *available += t->partitions[i].leader >= 0;
    }
    pthread_mutex_unlock(&c->lock);
    return n;
}

int32_t cluster_topic_size(struct cluster *c, const char *topic)
{
    pthread_mutex_lock(&c->lock);
    struct topic_meta *t = find_topic(c, topic);
    int32_t n = !t || !t->answered ? -2 : t->err == KAFKA_OK ? t->partitions_n : -1;
    pthread_mutex_unlock(&c->lock);
    return n;
}

uint64_t cluster_racks_hash(struct cluster *c, const char *topic)
{
    pthread_mutex_lock(&c->lock);
    struct topic_meta *t = find_topic(c, topic);
    uint64_t hash = t && t->err == KAFKA_OK && t->racks ? t->racks->hash : 0;
    pthread_mutex_unlock(&c->lock);
    return hash;
}

const char *const *const *cluster_racks(struct cluster *c, const char *topic, int32_t partitions,
                                        struct arena *a)
{
    pthread_mutex_lock(&c->lock);
    struct topic_meta *t = find_topic(c, topic);
    bool known = t && t->err == KAFKA_OK && t->racks && t->racks->partitions == partitions;
    const char *const *const *racks = known ? topic_racks_copy(t->racks, a) : NULL;
    pthread_mutex_unlock(&c->lock);
    return racks;
}

bool cluster_topic_id(struct cluster *c, const char *topic, struct uuid *id)
{
    pthread_mutex_lock(&c->lock);
    struct topic_meta *t = find_topic(c, topic);
    bool known = t && t->err == KAFKA_OK && !uuid_is_zero(t->id);
    if (known)
        *id = t->id;
    pthread_mutex_unlock(&c->lock);
    return known;
}

bool cluster_topic_name(struct cluster *c, struct uuid id, char *name)
{
    bool known = false;
    pthread_mutex_lock(&c->lock);
    for (struct hnode *n = hmap_first(&c->topics); n && !known; n = hmap_next(&c->topics, n)) {
        struct topic_meta *t = container_of(n, struct topic_meta, hnode);
        known = t->err == KAFKA_OK && uuid_eq(t->id, id);
        if (known)
            snprintf(name, 256, "%s", t->name);
    }
    pthread_mutex_unlock(&c->lock);
    return known;
}

void cluster_follow_all(struct cluster *c)
{
    pthread_mutex_lock(&c->lock);
    if (!c->follow_all) {
        c->follow_all = true;
        c->unasked++;
    }
    want_refresh_locked(c);
    pthread_mutex_unlock(&c->lock);
}

bool cluster_each_topic(struct cluster *c, void (*each)(void *arg, const char *name, bool internal),
                        void *arg)
{
    pthread_mutex_lock(&c->lock);
    bool known = c->all_listed;
    for (struct hnode *n = hmap_first(&c->topics); known && n; n = hmap_next(&c->topics, n)) {
        struct topic_meta *t = container_of(n, struct topic_meta, hnode);
        if (t->listed)
            each(arg, t->name, t->internal);
    }
    pthread_mutex_unlock(&c->lock);
    return known;
}

int32_t cluster_controller(struct cluster *c)
{
    pthread_mutex_lock(&c->lock);
    int32_t id = c->controller;
    pthread_mutex_unlock(&c->lock);
    return id;
}

void cluster_on_metadata(struct cluster *c, void (*cb)(void *arg), void *arg)
{
    c->on_metadata = cb;
    c->on_metadata_arg = arg;
}

void cluster_on_refused(struct cluster *c, void (*cb)(void *arg), void *arg)
{
    c->on_refused = cb;
    c->on_refused_arg = arg;
}

static bool is_broker(const struct metadata_response *m, int32_t id)
{
    for (int32_t i = 0; i < m->brokers.n; i++)
        if (m->brokers.v[i].node_id == id)
            return true;
    return false;
}

static bool take_partitions(struct cluster *c, struct topic_meta *t,
                            const struct metadata_response *m,
                            const struct metadata_response_topic *from)
{
    struct leader_info *made = calloc((size_t)from->partitions.n + 1, sizeof *made);
    if (!made)
        return false;
    for (int32_t i = 0; i < from->partitions.n; i++)
        made[i] = (struct leader_info){-1, -1};
    bool leaderless = false;
    for (int32_t i = 0; i < from->partitions.n; i++) {
        const struct metadata_response_partition *p = &from->partitions.v[i];
        if (p->partition_index < 0 || p->partition_index >= from->partitions.n)
            continue;
        struct leader_info *to = &made[p->partition_index];
        *to = (struct leader_info){p->leader_id, p->leader_epoch};
        /* An answer with an older epoch comes from a broker that lags: what we know stands, unless
         * that is a leader that nobody knows. */
        if (p->partition_index < t->partitions_n && to->leader_epoch >= 0 &&
            to->leader_epoch < t->partitions[p->partition_index].leader_epoch &&
            is_broker(m, t->partitions[p->partition_index].leader) &&
            uuid_eq(t->id, from->topic_id))
            *to = t->partitions[p->partition_index];
        leaderless |= to->leader < 0;
    }
    free(t->partitions);
    t->partitions = made;
    t->partitions_n = from->partitions.n;
    t->id = from->topic_id;
    if (c->scope == SCOPE_CONSUMER) {
        topic_racks_free(t->racks);
        t->racks = topic_racks_new(m, from);
    }
    return !leaderless;
}

/* The first request about a topic only looks: who did not mean to make one is told before it is
 * made. The second one, which follows at once, may make it. */
static bool is_found_missing(struct cluster *c, struct topic_meta *t)
{
    if (!t->create || t->may_create || t->err != KERR_UNKNOWN_TOPIC_OR_PARTITION)
        return false;
    t->may_create = true;
    t->answered = t->asked = false;
    c->unasked++;
    client_log(2,
               "topic %s does not exist: it is made now, if the brokers do so "
               "(auto.create.topics.enable)",
               t->name);
    return true;
}

/* A topic that is being created has errors at first; one that lasts is told, once. */
static void tell_topic_error(struct topic_meta *t)
{
    enum { PATIENCE = 5 };
    t->errors = t->err == KAFKA_OK ? 0 : t->errors + 1;
    if (t->errors == 1 && t->err == KERR_LEADER_NOT_AVAILABLE && !t->may_create)
        client_log(2, "topic %s: %s (%s): it is being made, or its brokers are away", t->name,
                   kafka_err_text(t->err), kafka_err_name(t->err));
    else if (t->errors == (t->create ? PATIENCE : 1))
        client_log(2, "topic %s: %s (%s)", t->name, kafka_err_text(t->err), kafka_err_name(t->err));
}

/* true when all topics asked for are known and have their leaders. *more: others wait to be. */
static bool take_topics(struct cluster *c, const struct metadata_response *m, bool *more)
{
    bool complete = true;
    pthread_mutex_lock(&c->lock);
    c->controller = m->controller_id;
    c->failure[0] = 0;
    for (struct hnode *n = hmap_first(&c->topics); n; n = hmap_next(&c->topics, n))
        container_of(n, struct topic_meta, hnode)->listed = false;
    for (int32_t i = 0; i < m->topics.n; i++) {
        const struct metadata_response_topic *from = &m->topics.v[i];
        char name[256];
        if (from->name.len < 0 || from->name.len > 255)
            continue;
        memcpy(name, from->name.p, (size_t)from->name.len);
        name[from->name.len] = 0;
        struct topic_meta *t = find_topic(c, name);
        if (!t && (!c->all_asked || !(t = add_topic_locked(c, name))))
            continue;
        t->answered = t->looked_for = t->listed = true;
        t->internal = from->is_internal;
        t->err = from->error_code;
        if (is_found_missing(c, t))
            continue;
        tell_topic_error(t);
        if (t->err == KAFKA_OK)
            complete &= take_partitions(c, t, m, from);
        else
            complete &= cluster_topic_error_is_final(t->err) ||
                        (t->err == KERR_UNKNOWN_TOPIC_OR_PARTITION && !t->create);
    }
    for (struct hnode *n = hmap_first(&c->topics); n; n = hmap_next(&c->topics, n)) {
        struct topic_meta *t = container_of(n, struct topic_meta, hnode);
        if (c->all_asked && !t->listed) { /* a list of all does not name what is not there */
            t->answered = true;
            t->err = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        }
        complete &= t->answered || !t->asked;
    }
    c->all_listed |= c->all_asked;
    *more = c->unasked > 0;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return complete;
}

/* A broker before 0.11 cannot be asked without making what is missing: then that is done at once.
 * false: no topic may be made, so that it is not asked at all. */
static bool make_unseen(struct cluster *c)
{
    bool any = false;
    pthread_mutex_lock(&c->lock);
    for (struct hnode *n = hmap_first(&c->topics); n; n = hmap_next(&c->topics, n)) {
        struct topic_meta *t = container_of(n, struct topic_meta, hnode);
        any |= t->create && !t->may_create;
        t->may_create |= t->create;
    }
    pthread_mutex_unlock(&c->lock);
    return any;
}

static void on_metadata(void *arg, int status, int version, const void *response)
{
    struct cluster *c = arg;
    c->refresh_in_flight = false;
    c->refreshed_ms = executor_now_ms(c->ex);
    if (c->closing)
        return;
    bool complete = false, more = false;
    if (status == 0) {
        cluster_set_nodes(c, response);
        complete = take_topics(c, response, &more);
    }
    int64_t next = c->metadata_max_age_ms;
    if (complete)
        c->refresh_failures = 0;
    else
        next = cluster_backoff_ms(c, c->refresh_failures++);
    executor_timer_start(c->ex, &c->refresh_timer, next);
    if (status == 0 && c->on_metadata)
        c->on_metadata(c->on_metadata_arg);
    more |= status == -ENOTSUP && make_unseen(c);
    if (more && !c->closing)
        refresh_now(c);
}

/* The followed topics as a request; topics that may be created and others go together only if all
 * agree, and a topic that must not be created wins, or one that was not looked for yet. One that is
 * answered with an error holds nothing back. The array is malloc'ed. */
static bool make_request(struct cluster *c, struct metadata_request *req)
{
    metadata_request_init(req);
    req->allow_auto_topic_creation = true;
    pthread_mutex_lock(&c->lock);
    req->topics.v = calloc(c->topics.n + 1, sizeof *req->topics.v);
    c->all_asked = c->follow_all;
    for (struct hnode *n = hmap_first(&c->topics); req->topics.v && n;
         n = hmap_next(&c->topics, n)) {
        struct topic_meta *t = container_of(n, struct topic_meta, hnode);
        t->asked = true;
        req->topics.v[req->topics.n++].name =
            str_of(t->name); /* topics are dropped on this thread only: the name stays */
        req->allow_auto_topic_creation &= t->create && (t->may_create || t->looked_for);
    }
    if (req->topics.v)
        c->unasked = 0;
    if (c->all_asked) {
        req->topics.n = -1;
        req->allow_auto_topic_creation = true; /* no topic is named; older versions cannot say no */
    }
    pthread_mutex_unlock(&c->lock);
    return req->topics.v != NULL;
}

static void refresh_now(struct cluster *c)
{
    struct metadata_request req;
    if (c->closing || c->refresh_in_flight)
        return;
    struct node *n = cluster_node(c, NODE_ANY);
    if (!n || !make_request(c, &req)) {
        executor_timer_start(c->ex, &c->refresh_timer, cluster_backoff_ms(c, 0));
        return;
    }
    /* v1 and up: there an empty list means no topics; v0 would send all of them. */
    c->refresh_in_flight =
        node_send(n, API_METADATA, 1, -1, &req, c->request_timeout_ms, true, on_metadata, c) == 0;
    if (!c->refresh_in_flight)
        executor_timer_start(c->ex, &c->refresh_timer, cluster_backoff_ms(c, 0));
    free(req.topics.v);
}
