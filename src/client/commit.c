/* commit.c - offsets to the group's coordinator: waiting, not waiting, automatic.
 *
 * A commit is an operation of its own memory (struct commit) on the group's list, in the order of
 * the calls. The background thread fills in its outcome; the user's thread takes it from the list.
 * Callbacks come in the list's order. */
#include <stdlib.h>
#include <string.h>

#include "client/cluster_private.h"
#include "client/consumer_private.h"
#include "client/group.h"
#include "client/lists.h"
#include "protocol/errors.h"
#include "protocol/msg/offset_commit.h"

struct commit {
    struct list link; /* group.commits */
    struct op op;
    struct group *g;
    struct arena mem; /* the request's */
    struct offset_commit_request req;
    kafka_offset_list_t *offsets; /* with their errors, once done */
    uint64_t round;
    int32_t generation;
    bool done, dropped, automatic;
    bool waited_for; /* its caller takes the outcome */
    kafka_err_t result;
    kafka_commit_cb cb;
    void *arg;
};

static void commit_free(struct commit *m)
{
    list_remove(&m->link);
    arena_free(&m->mem);
    kafka_offset_list_free(m->offsets);
    free(m);
}

void commits_free(struct group *g)
{
    while (!list_empty(&g->commits))
        commit_free(list_entry(g->commits.next, struct commit, link));
}

/* ---- the request ---- */

static bool fill_topics(struct commit *m)
{
    struct offset_commit_request_topic *topics =
        offset_commit_request_topic_new(&m->mem, (int32_t)m->offsets->n);
    struct offset_commit_request_partition *parts =
        offset_commit_request_partition_new(&m->mem, (int32_t)m->offsets->n);
    if (!topics || !parts)
        return false;
    m->req.topics.v = topics;
    for (size_t i = 0; i < m->offsets->n; i++) {
        const kafka_offset_t *o = &m->offsets->v[i];
        struct offset_commit_request_topic *t =
            m->req.topics.n ? &topics[m->req.topics.n - 1] : NULL;
        if (!t || !str_eqz(t->name, o->topic)) {
            t = &topics[m->req.topics.n++];
            t->name = str_of(o->topic);
            t->partitions.v = &parts[i];
        }
        parts[i].partition_index = o->partition;
        parts[i].committed_offset = o->offset;
        parts[i].committed_leader_epoch = o->leader_epoch;
        parts[i].committed_metadata = str_of(o->metadata ? o->metadata : "");
        t->partitions.n++;
    }
    return true;
}

static bool fill_request(struct commit *m)
{
    struct group *g = m->g;
    bool subscribed = consumer_is_subscribed(g->c);
    offset_commit_request_init(&m->req);
    m->req.group_id = str_of(g->id);
    m->req.generation_id_or_member_epoch = subscribed ? g->generation : -1;
    m->req.member_id = subscribed ? arena_str(&m->mem, str_of(g->member_id)) : STR_LIT("");
    m->req.group_instance_id = subscribed && !g->modern ? str_of(g->instance_id) : STR_NULL;
    m->round = g->round;
    m->generation = g->generation;
    return m->req.member_id.p && fill_topics(m);
}

/* ---- the answer, background thread ---- */

static kafka_offset_t *find_offset(struct commit *m, size_t *next, struct str topic,
                                   int32_t partition)
{
    kafka_offset_t *v = (kafka_offset_t *)m->offsets->v; /* ours until it is done */
    for (size_t tried = 0; tried < m->offsets->n; tried++) {
        size_t i = (*next + tried) % m->offsets->n;
        if (v[i].partition == partition && str_eqz(topic, v[i].topic)) {
            *next = i + 1;
            return &v[i];
        }
    }
    return NULL;
}

/* Consumer protocol: the member's epoch has moved on since the request was made. */
static bool renew_epoch(struct commit *m)
{
    struct group *g = m->g;
    pthread_mutex_lock(&g->c->lock);
    bool moved = g->modern && g->generation >= 0 && g->generation != m->generation;
    if (moved)
        m->req.generation_id_or_member_epoch = m->generation = g->generation;
    pthread_mutex_unlock(&g->c->lock);
    return moved;
}

/* The first error that is final, else the first, else none. */
static kafka_err_t on_commit_answer(struct op *op, int version, const void *response)
{
    struct commit *m = container_of(op, struct commit, op);
    const struct offset_commit_response *r = response;
    kafka_err_t result = KAFKA_OK;
    size_t next = 0;
    for (size_t i = 0; i < m->offsets->n; i++)
        ((kafka_offset_t *)m->offsets->v)[i].err = KAFKA_ERR_BAD_RESPONSE;
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t k = 0; k < r->topics.v[t].partitions.n; k++) {
            const struct offset_commit_response_partition *p = &r->topics.v[t].partitions.v[k];
            kafka_offset_t *o = find_offset(m, &next, r->topics.v[t].name, p->partition_index);
            if (o)
                o->err = p->error_code;
        }
    for (size_t i = 0; i < m->offsets->n; i++) {
        kafka_err_t err = m->offsets->v[i].err;
        if (err != KAFKA_OK && (result == KAFKA_OK ||
                                (kafka_err_is_retriable(result) && !kafka_err_is_retriable(err))))
            result = err;
    }
    return result == KERR_STALE_MEMBER_EPOCH && renew_epoch(m) ? KERR_COORDINATOR_LOAD_IN_PROGRESS
                                                               : result;
}

/* What it means for the membership, and what the caller is told. Lock held. */
static kafka_err_t settle(struct commit *m, kafka_err_t err)
{
    struct group *g = m->g;
    bool subscribed = consumer_is_subscribed(g->c);
    bool current = m->generation == g->generation && g->generation >= 0;
    switch (err) {
    case KERR_REBALANCE_IN_PROGRESS:
        if (subscribed && current && group_is_member(g))
            group_want_rejoin(g, "a commit found the group rebalancing");
        return err;
    case KERR_STALE_MEMBER_EPOCH:
        return KAFKA_ERR_COMMIT_FAILED;
    case KERR_ILLEGAL_GENERATION:
    case KERR_UNKNOWN_MEMBER_ID:
        if (!subscribed)
            return KAFKA_ERR_COMMIT_FAILED;
        if (!current)
            return g->state == GROUP_OUT ? KAFKA_ERR_COMMIT_FAILED : KERR_REBALANCE_IN_PROGRESS;
        group_reset(g, err == KERR_ILLEGAL_GENERATION);
        return KAFKA_ERR_COMMIT_FAILED;
    case KERR_FENCED_INSTANCE_ID:
        if (!subscribed || !current)
            return KAFKA_ERR_COMMIT_FAILED;
        group_reset(g, false);
        group_fail(g, err, "commit");
        return err;
    default:
        return err;
    }
}

static void on_finished(struct op *op, kafka_err_t result)
{
    struct commit *m = container_of(op, struct commit, op);
    struct kafka_consumer *c = m->g->c;
    pthread_mutex_lock(&c->lock);
    m->result = settle(m, result);
    for (size_t i = 0; result != KAFKA_OK && i < m->offsets->n; i++) {
        kafka_offset_t *o = (kafka_offset_t *)&m->offsets->v[i];
        if (o->err == KAFKA_OK && result < 0) /* the whole request failed */
            o->err = result;
    }
    m->done = true;
    if (m->dropped)
        commit_free(m);
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
}

/* ---- starting ---- */

static struct commit *commit_start(struct group *g, const kafka_offset_t *offsets, size_t n,
                                   int64_t timeout_ms, bool once)
{
    struct commit *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->g = g;
    list_init(&m->link);
    arena_init(&m->mem, 0);
    m->offsets = offset_list_copy(offsets, n);
    if (!m->offsets || !fill_request(m)) {
        commit_free(m);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        ((kafka_offset_t *)m->offsets->v)[i].err = KAFKA_OK;
    m->op = (struct op){.coordinator = &g->coordinator,
                        .once = once,
                        .api_key = API_OFFSET_COMMIT,
                        .min_version = g->modern && consumer_is_subscribed(g->c) ? 9
                                       : m->req.group_instance_id.len >= 0       ? 7
                                                                                 : 1,
                        .max_version = -1,
                        .request = &m->req,
                        .handle = on_commit_answer,
                        .finished = on_finished};
    list_push_back(&g->commits, &m->link);
    op_start(g->c->cluster, &m->op, timeout_ms);
    return m;
}

/* Positions as offsets, in an arena. */
static kafka_offset_t *positions(struct kafka_consumer *c, struct arena *a, size_t *n)
{
    size_t most = 0;
    list_each (it, &c->parts)
        most++;
    kafka_offset_t *v = arena_array(a, kafka_offset_t, most);
    *n = 0;
    list_each (it, &c->parts) {
        struct cpart *p = list_entry(it, struct cpart, link);
        if (v && (p->state == CPART_FETCH || p->state == CPART_VALIDATE))
            v[(*n)++] = (kafka_offset_t){.topic = p->topic,
                                         .partition = p->partition,
                                         .offset = p->position,
                                         .leader_epoch = p->position_epoch};
    }
    return v;
}

struct commit *commit_positions(struct kafka_consumer *c, int64_t timeout_ms, bool once)
{
    struct arena a;
    size_t n;
    arena_init(&a, 0);
    kafka_offset_t *v = positions(c, &a, &n);
    struct commit *m = v && n ? commit_start(c->group, v, n, timeout_ms, once) : NULL;
    arena_free(&a);
    return m;
}

/* May it commit? Lock held. */
static kafka_err_t check_may_commit(struct kafka_consumer *c)
{
    struct group *g = c->group;
    if (!g)
        return client_fail(KAFKA_ERR_INVALID_ARG,
                           "offsets are committed for a group: set group.id");
    if (!consumer_is_subscribed(c) || group_is_member(g))
        return KAFKA_OK;
    return g->state == GROUP_OUT
               ? client_fail(KAFKA_ERR_COMMIT_FAILED,
                             "group %s: this consumer is no member now: its partitions may be with "
                             "others; poll joins again",
                             g->id)
               : client_fail(KERR_REBALANCE_IN_PROGRESS,
                             "group %s is rebalancing: call poll, then commit what is assigned",
                             g->id);
}

static kafka_err_t commit_begin(struct kafka_consumer *c, const kafka_offset_t *offsets, size_t n,
                                int64_t timeout_ms, bool once, struct commit **out)
{
    kafka_err_t err = check_may_commit(c);
    *out = NULL;
    for (size_t i = 0; offsets && i < n && err == KAFKA_OK; i++)
        if (offsets[i].offset < 0 || offsets[i].partition < 0 || !offsets[i].topic)
            err = client_fail(KAFKA_ERR_INVALID_ARG, "offset %lld cannot be committed",
                              (long long)offsets[i].offset);
    if (err != KAFKA_OK)
        return err;
    *out = offsets ? commit_start(c->group, offsets, n, timeout_ms, once)
                   : commit_positions(c, timeout_ms, once);
    return KAFKA_OK;
}

/* ---- outcomes, user's thread ---- */

bool commit_is_done(const struct commit *m, kafka_err_t *err)
{
    *err = m->result;
    return m->done;
}

void commit_hold(struct commit *m)
{
    m->waited_for = true;
}

void commit_drop(struct kafka_consumer *c, struct commit *m)
{
    m->waited_for = false;
    if (m->done)
        commit_free(m);
    else
        m->dropped = true;
}

static void tell_interceptors(struct kafka_consumer *c, const struct commit *m)
{
    const struct client_hooks *h = client_conf_hooks(c->conf);
    bool inside = c->in_callback;
    if (m->result != KAFKA_OK || h->consumer_n == 0)
        return;
    c->in_callback = true;
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < h->consumer_n; i++)
        if (h->consumer[i].on_commit)
            h->consumer[i].on_commit(m->offsets->v, m->offsets->n, h->consumer[i].arg);
    pthread_mutex_lock(&c->lock);
    c->in_callback = inside;
}

kafka_err_t commit_await(struct kafka_consumer *c, struct commit *m, int64_t deadline_ms)
{
    kafka_err_t err = KAFKA_OK;
    m->waited_for = true;
    while (!m->done && err == KAFKA_OK) {
        if (c->woken) {
            c->woken = false;
            err = KAFKA_ERR_WAKEUP;
        } else if (!client_cond_wait(&c->news, &c->lock, deadline_ms) && !m->done) {
            err = KAFKA_ERR_TIMED_OUT;
        }
    }
    if (m->done) {
        err = m->result;
        tell_interceptors(c, m);
    }
    commit_drop(c, m);
    return err;
}

static void run_callback(struct kafka_consumer *c, struct commit *m)
{
    list_remove(&m->link);
    tell_interceptors(c, m);
    if (m->cb) {
        c->in_callback = true;
        pthread_mutex_unlock(&c->lock);
        m->cb(c, m->result, m->offsets->v, m->offsets->n, m->arg);
        pthread_mutex_lock(&c->lock);
        c->in_callback = false;
    } else if (m->result != KAFKA_OK) {
        client_log(2, "group %s: %s commit failed: %s (%s)", m->g->id,
                   m->automatic ? "automatic" : "asynchronous", kafka_err_text(m->result),
                   kafka_err_name(m->result));
    }
    if (m->automatic && m->result != KAFKA_OK && kafka_err_is_retriable(m->result))
        m->g->auto_commit_due_ms = client_now_ms() + cluster_backoff_ms(c->cluster, 0);
    commit_free(m);
}

void commits_run_callbacks(struct kafka_consumer *c)
{
    while (c->group && !c->in_callback && !list_empty(&c->group->commits)) {
        struct commit *m = list_entry(c->group->commits.next, struct commit, link);
        if (!m->done || m->waited_for)
            return;
        run_callback(c, m);
    }
}

void commit_auto(struct kafka_consumer *c)
{
    struct group *g = c->group;
    g->auto_commit_due_ms = client_now_ms() + g->auto_commit_ms;
    if (consumer_is_subscribed(c) && !group_is_member(g))
        return;
    struct commit *m = commit_positions(c, cluster_request_timeout(c->cluster), true);
    if (m)
        m->automatic = true;
}

void commits_await_all(struct kafka_consumer *c, int64_t deadline_ms)
{
    for (;;) {
        commits_run_callbacks(c);
        if (list_empty(&c->group->commits) || !client_cond_wait(&c->news, &c->lock, deadline_ms))
            return;
    }
}

kafka_err_t kafka_consumer_commit(kafka_consumer_t *c, const kafka_offset_t *offsets, size_t n,
                                  int64_t timeout_ms)
{
    int64_t limit = timeout_ms < 0 ? c->api_timeout_ms : timeout_ms;
    int64_t deadline = client_deadline(limit);
    char why[500], words[CLIENT_WORDS];
    struct commit *m;
    pthread_mutex_lock(&c->lock);
    kafka_err_t err = commit_begin(c, offsets, n, limit, false, &m);
    if (m)
        err = commit_await(c, m, deadline);
    commits_run_callbacks(c);
    pthread_mutex_unlock(&c->lock);
    if (err != KAFKA_OK && m)
        client_fail(err, "group %s: commit: %s (%s) within %lld ms%s", c->group->id,
                    client_words(err, NULL, c->group->id, words), kafka_err_name(err),
                    (long long)limit, cluster_why(c->cluster, why, sizeof why));
    return err;
}

kafka_err_t kafka_consumer_commit_async(kafka_consumer_t *c, const kafka_offset_t *offsets,
                                        size_t n, kafka_commit_cb cb, void *arg)
{
    struct commit *m;
    pthread_mutex_lock(&c->lock);
    kafka_err_t err = commit_begin(c, offsets, n, cluster_request_timeout(c->cluster), true, &m);
    if (m) {
        m->cb = cb;
        m->arg = arg;
    } else if (err == KAFKA_OK && cb) { /* no positions: nothing to do, and that is done */
        bool inside = c->in_callback;
        c->in_callback = true;
        pthread_mutex_unlock(&c->lock);
        cb(c, KAFKA_OK, NULL, 0, arg);
        pthread_mutex_lock(&c->lock);
        c->in_callback = inside;
    }
    pthread_mutex_unlock(&c->lock);
    return err;
}
