/* fetcher.c - the consumer's background work: finding positions, one Fetch per broker under way,
 * queueing what comes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/fetch_session.h"
#include "client/fetcher_private.h"
#include "client/group.h"
#include "protocol/errors.h"

enum { LOOK_AGAIN_MS = 100 };

static void fetcher_run(kafka_consumer_t *c);

void cpart_drop_queue(struct cpart *p)
{
    while (!list_empty(&p->queue))
        fetched_unref(list_entry(list_pop(&p->queue), struct fetched, link));
    p->queue_n = 0;
}

void cpart_unref(struct cpart *p)
{
    if (--p->refs > 0)
        return;
    cpart_drop_queue(p);
    free(p->topic);
    free(p);
}

static void send_free(struct fetch_send *s)
{
    free(s->parts);
    free(s->generations);
    free(s);
}

/* ---- choosing ---- */

static bool send_add(struct fetch_send *s, struct cpart *p)
{
    if (s->n == s->cap) {
        int cap = s->cap ? 2 * s->cap : 8;
        struct cpart **parts = realloc(s->parts, (size_t)cap * sizeof *parts);
        if (parts)
            s->parts = parts;
        uint64_t *generations = realloc(s->generations, (size_t)cap * sizeof *generations);
        if (generations)
            s->generations = generations;
        if (!parts || !generations)
            return false;
        s->cap = cap;
    }
    s->parts[s->n] = p;
    s->generations[s->n++] = p->generation;
    p->refs++;
    p->busy = true;
    return true;
}

static struct fetch_send *send_for(kafka_consumer_t *c, struct list *sends, struct node *n,
                                   enum send_kind kind)
{
    list_each (it, sends) {
        struct fetch_send *s = list_entry(it, struct fetch_send, link);
        if (s->node == n && s->kind == kind)
            return s;
    }
    struct fetch_send *s = calloc(1, sizeof *s);
    if (s) {
        s->c = c;
        s->node = n;
        s->node_id = node_id(n);
        s->kind = kind;
        list_push_back(sends, &s->link);
    }
    return s;
}

static bool fetching_from(kafka_consumer_t *c, struct node *n)
{
    list_each (it, &c->fetches) {
        struct fetch_send *s = list_entry(it, struct fetch_send, link);
        if (s->node_id == node_id(n) && s->kind == SEND_FETCH)
            return true;
    }
    return false;
}

/* Does the partition want a request now? Lock held. */
static bool wants(struct cpart *p, int64_t now, int64_t *wait_ms)
{
    if (p->busy)
        return false;
    if (p->state == CPART_FETCH && (p->paused || p->queue_n >= CPART_QUEUE_MAX))
        return false;
    if (p->retry_at_ms > now) {
        *wait_ms = p->retry_at_ms - now < *wait_ms ? p->retry_at_ms - now : *wait_ms;
        return false;
    }
    return true;
}

/* The group may not be used: told once. */
static void on_coordinator_error(kafka_consumer_t *c)
{
    char words[CLIENT_WORDS];
    c->error = c->group->coordinator.err;
    snprintf(c->error_text, sizeof c->error_text, "group %s: finding its coordinator: %s (%s)",
             c->group->id, client_words(c->error, NULL, c->group->id, words),
             kafka_err_name(c->error));
    c->group->coordinator.err = KAFKA_OK;
    pthread_cond_broadcast(&c->news);
}

/* No position, and nothing says where to begin but auto.offset.reset. */
void fetch_begin_reset(kafka_consumer_t *c, struct cpart *p)
{
    if (c->reset_to == 0) {
        p->state = CPART_NOWHERE;
        if (c->error == KAFKA_OK)
            snprintf(c->error_text, sizeof c->error_text,
                     "%s-%d has no position: nothing is committed, or it is out of range, and "
                     "auto.offset.reset=none",
                     p->topic, p->partition);
        c->error = KAFKA_ERR_NO_OFFSET;
        pthread_cond_broadcast(&c->news);
        return;
    }
    p->state = CPART_RESET;
    p->reset_to = c->reset_to;
}

/* Whom to ask about a partition. NULL: not known, or not to be asked now. */
static struct node *find_target(kafka_consumer_t *c, struct cpart *p, int64_t now, bool *unknown)
{
    int64_t wait;
    if (p->state == CPART_START) {
        struct node *n = coordinator_node(&c->group->coordinator);
        if (c->group->coordinator.err != KAFKA_OK)
            on_coordinator_error(c);
        return n && node_ready(n, &wait) ? n : NULL;
    }
    struct node *n = NULL;
    if (p->state == CPART_FETCH && p->preferred >= 0 && now < p->preferred_until_ms)
        n = cluster_find_node(c->cluster, p->preferred);
    if (!n)
        n = p->leader >= 0 ? cluster_node(c->cluster, p->leader) : NULL;
    *unknown |= !n;
    return n && node_ready(n, &wait) ? n : NULL;
}

static void collect_one(kafka_consumer_t *c, struct cpart *p, int64_t now, struct list *sends,
                        int64_t *wait_ms, bool *unknown)
{
    if (p->state == CPART_START && !c->group)
        fetch_begin_reset(c, p);
    if (p->state == CPART_NOWHERE || !wants(p, now, wait_ms))
        return;
    struct node *n = find_target(c, p, now, unknown);
    if (!n) {
        *wait_ms = *wait_ms < LOOK_AGAIN_MS ? *wait_ms : LOOK_AGAIN_MS;
        return;
    }
    static const enum send_kind kinds[] = {
        [CPART_START] = SEND_COMMITTED,
        [CPART_RESET] = SEND_LOOKUP,
        [CPART_FETCH] = SEND_FETCH,
        [CPART_VALIDATE] = SEND_VALIDATE,
    };
    enum send_kind kind = kinds[p->state];
    if (kind == SEND_FETCH && fetching_from(c, n))
        return; /* its answer runs us again */
    struct fetch_send *s = send_for(c, sends, n, kind);
    if (s)
        send_add(s, p);
}

static void collect(kafka_consumer_t *c, int64_t now, struct list *sends, int64_t *wait_ms)
{
    bool unknown = false;
    c->wants_more = false;
    list_each (it, &c->parts)
        collect_one(c, list_entry(it, struct cpart, link), now, sends, wait_ms, &unknown);
    if (unknown)
        cluster_refresh(c->cluster);
}

/* ---- answers ---- */

/* Hands each partition's part of an answer to `take` if it is still wanted; ends the request. */
bool fetch_still_wanted(const struct fetch_send *s, int i)
{
    return !s->parts[i]->revoked && s->parts[i]->generation == s->generations[i];
}

void fetch_try_later(kafka_consumer_t *c, struct cpart *p)
{
    p->retry_at_ms = executor_now_ms(cluster_executor(c->cluster)) +
                     cluster_backoff_ms(c->cluster, p->attempts++);
}

void fetch_tell_error(kafka_consumer_t *c, const struct cpart *p, kafka_err_t err)
{
    char words[CLIENT_WORDS];
    c->error = err;
    snprintf(c->error_text, sizeof c->error_text, "%s-%d at offset %lld: %s (%s)", p->topic,
             p->partition, (long long)p->fetch_at, client_words(err, p->topic, NULL, words),
             kafka_err_name(err));
    pthread_cond_broadcast(&c->news);
}

/* A partition's error: what heals by itself is tried again, the rest is told. Lock held. */
void fetch_on_error(kafka_consumer_t *c, struct cpart *p, kafka_err_t err, bool *refresh)
{
    if (err == KERR_OFFSET_OUT_OF_RANGE) {
        if (p->queue_n == 0 && p->fetch_at == p->position)
            fetch_begin_reset(c, p);
        else
            fetch_try_later(c, p); /* records in the queue come first */
        return;
    }
    fetch_try_later(c, p);
    if (kafka_err_is_retriable(err) && err != KERR_CORRUPT_MESSAGE)
        *refresh = true;
    else
        fetch_tell_error(c, p, err);
}

static void end_send(struct fetch_send *s)
{
    kafka_consumer_t *c = s->c;
    pthread_mutex_lock(&c->lock);
    list_remove(&s->link);
    for (int i = 0; i < s->n; i++) {
        s->parts[i]->busy = false;
        cpart_unref(s->parts[i]);
    }
    pthread_mutex_unlock(&c->lock);
    send_free(s);
}

void fetch_finish(struct fetch_send *s, bool refresh)
{
    kafka_consumer_t *c = s->c;
    end_send(s);
    if (refresh)
        cluster_refresh(c->cluster);
    if (!c->closing)
        fetcher_run(c);
}

/* ---- requests ---- */

/* No memory for the request: its partitions try again later. */
static void fail_send(struct fetch_send *s)
{
    kafka_consumer_t *c = s->c;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < s->n; i++)
        fetch_try_later(c, s->parts[i]);
    pthread_mutex_unlock(&c->lock);
    end_send(s);
}

static void send_off(struct fetch_send *s)
{
    kafka_consumer_t *c = s->c;
    struct arena a;
    arena_init(&a, 0);
    list_push_back(&c->fetches, &s->link);
    for (struct peer_response *r; (r = spent_take(c->spent));)
        node_recycle_response(s->node, r);
    static int (*const senders[SEND_KINDS])(struct fetch_send *, struct arena *) = {
        [SEND_FETCH] = send_fetch,
        [SEND_LOOKUP] = send_lookup,
        [SEND_COMMITTED] = send_committed,
        [SEND_VALIDATE] = send_validate,
    };
    bool ok = senders[s->kind](s, &a) == 0;
    arena_free(&a);
    if (!ok)
        fail_send(s);
}

static void fetcher_run(kafka_consumer_t *c)
{
    int64_t wait = INT64_MAX;
    struct list sends = LIST_INIT(sends);
    if (c->closing)
        return;
    pthread_mutex_lock(&c->lock);
    collect(c, executor_now_ms(cluster_executor(c->cluster)), &sends, &wait);
    pthread_mutex_unlock(&c->lock);
    while (!list_empty(&sends)) {
        struct fetch_send *s = list_entry(list_pop(&sends), struct fetch_send, link);
        if (s->n > 0)
            send_off(s);
        else
            send_free(s);
    }
    if (wait != INT64_MAX && !c->closing)
        executor_timer_start(cluster_executor(c->cluster), &c->timer, wait);
}

static void on_wake(struct task *t)
{
    kafka_consumer_t *c = container_of(t, kafka_consumer_t, wake_task);
    pthread_mutex_lock(&c->lock);
    c->wake_posted = false;
    pthread_mutex_unlock(&c->lock);
    fetcher_run(c);
}

static void on_timer(struct timer *t)
{
    fetcher_run(container_of(t, kafka_consumer_t, timer));
}

void cpart_find_leader(kafka_consumer_t *c, struct cpart *p)
{
    struct leader_info leader = {-1, -1};
    cluster_leader(c->cluster, p->topic, p->partition, &leader);
    bool other = leader.leader_epoch > p->leader_epoch && p->leader_epoch >= 0;
    p->leader = leader.leader;
    if (leader.leader_epoch >= 0)
        p->leader_epoch = leader.leader_epoch;
    /* What was read under an older leader may not be in the log of this one. */
    if (other && p->state == CPART_FETCH && p->epoch >= 0)
        p->state = CPART_VALIDATE;
}

/* Topics that may not be read have no partitions that could tell: the next poll does. */
static void tell_if_refused(kafka_consumer_t *c, const char *topic)
{
    char words[CLIENT_WORDS];
    kafka_err_t err = cluster_topic_refusal(c->cluster, topic);
    if (err == KAFKA_OK)
        return;
    c->error = err;
    snprintf(c->error_text, sizeof c->error_text, "topic %s: %s (%s)", topic,
             client_words(err, topic, NULL, words), kafka_err_name(err));
    pthread_cond_broadcast(&c->news);
}

static void on_metadata(void *arg)
{
    kafka_consumer_t *c = arg;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->topics_n; i++)
        tell_if_refused(c, c->topics[i]);
    list_each (it, &c->parts) {
        struct cpart *p = list_entry(it, struct cpart, link);
        cpart_find_leader(c, p);
        if (p->leader < 0)
            tell_if_refused(c, p->topic);
    }
    consumer_match_pattern(c);
    if (c->group)
        group_on_metadata(c->group);
    pthread_mutex_unlock(&c->lock);
    fetcher_run(c);
}

static void on_refused(void *arg)
{
    kafka_consumer_t *c = arg;
    char why[400];
    cluster_why(c->cluster, why, sizeof why);
    pthread_mutex_lock(&c->lock);
    c->error = KAFKA_ERR_AUTHENTICATION;
    snprintf(c->error_text, sizeof c->error_text, "%s (%s)%s", kafka_err_text(c->error),
             kafka_err_name(c->error), why);
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
}

void fetcher_init(kafka_consumer_t *c)
{
    list_init(&c->fetches);
    c->metadata_max_age_ms = client_conf_int(c->conf, SCOPE_CONSUMER, "metadata.max.age.ms");
    task_init(&c->wake_task, on_wake);
    timer_init(&c->timer, on_timer);
    cluster_on_metadata(c->cluster, on_metadata, c);
    cluster_on_refused(c->cluster, on_refused, c);
}

void fetcher_wake(kafka_consumer_t *c)
{
    if (c->wake_posted)
        return;
    c->wake_posted = true;
    executor_post(cluster_executor(c->cluster), &c->wake_task);
}

void fetcher_stop(void *consumer)
{
    kafka_consumer_t *c = consumer;
    c->closing = true;
    fetch_close_sessions(c);
    executor_timer_stop(cluster_executor(c->cluster), &c->timer);
    cluster_on_metadata(c->cluster, NULL, NULL);
    cluster_on_refused(c->cluster, NULL, NULL);
}
