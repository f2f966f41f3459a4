/* replica_manager_become.c - LeaderAndIsr applied to this broker.
 *
 * Requests may come twice (a channel resends after a lost connection) and late; epochs tell. One
 * partition's failure leaves the others alone. */
#include "base/logline.h"
#include "protocol/msg/leader_and_isr.h"
#include "replica/fan_out.h"
#include "replica/fetchers.h"
#include "replica/replica_manager_private.h"

typedef struct leader_and_isr_request_partition_state isr_state;

/* A follower's records come from its leader from now on. By the id of the request: a controller
 * that sends none tells leaders of none either, whatever the log here may know. */
static void fetch_from(struct replica_manager *m, struct partition *p, const struct leadership *l,
                       struct uuid id)
{
    if (!m->o.fetchers || atomic_load(&p->role) != PARTITION_FOLLOWER ||
        atomic_load(&p->leader_epoch) != l->leader_epoch)
        return;
    const struct metadata_snapshot *s = metadata_acquire(m->o.metadata);
    const struct endpoint *e = replica_manager_endpoint(m, metadata_broker(s, l->leader));
    if (e) {
        fetchers_follow(m->o.fetchers, p, l->leader, e->host, e->port, l->leader_epoch, id);
    } else {
        fetchers_unfollow(m->o.fetchers, p);
        say_error("ReplicaManager", "%s-%d: its leader, broker %d, has no listener %.*s", p->topic,
                  (int)p->number, (int)l->leader, STR_ARG(m->o.inter_broker_listener));
    }
    metadata_release(s);
}

/* The topic id known here: in memory, or that of a log of this name on disk. */
static struct uuid known_topic_id(struct replica_manager *m, struct partition *p)
{
    struct uuid id = partition_topic_id(p);
    struct log *log = uuid_is_zero(id) ? log_manager_find(m->o.logs, partition_tp(p)) : NULL;
    if (log) {
        id = log_topic_id(log);
        log_unref(log);
    }
    return id;
}

/* The settings of one topic of a request, asked for when the first of its partitions needs them:
 * that may take a question to the store, which ten thousand partitions must not ask each. */
struct topic_settings {
    struct str topic;
    pthread_mutex_t lock;
    bool known; /* under lock, like the next */
    struct log_config config;
};

static struct log_config settings_get(struct replica_manager *m, struct topic_settings *t)
{
    pthread_mutex_lock(&t->lock);
    if (!t->known) {
        t->config = log_config_default();
        m->o.topic_config(m->o.arg, t->topic, &t->config);
        t->known = true;
    }
    pthread_mutex_unlock(&t->lock);
    return t->config;
}

/* One partition of a request and where its code goes. */
struct become_item {
    struct topic_settings *settings;
    struct uuid id;
    const isr_state *state;
    int16_t *error;
};

/* Finds or makes the log and gives it the topic id. *out shared. A log that is there has its
 * settings: changes are told by notices. (Who has a log from an earlier life is asked all the same
 * when the partition is new here: others than the log want to hear of the topic.) */
static enum kerr open_log(struct replica_manager *m, struct partition *p,
                          const struct become_item *it, struct log **out)
{
    struct topic_partition tp = partition_tp(p);
    struct log_config config = log_config_default();
    struct uuid id = it->id;
    *out = log_manager_find(m->o.logs, tp);
    if (!*out || partition_leader_epoch(p) < 0)
        config = settings_get(m, it->settings);
    if (*out)
        log_unref(*out);
    enum kerr e = log_manager_get_or_create(m->o.logs, tp, it->state->is_new, id, &config, out);
    if (e == KERR_NONE && !uuid_is_zero(id) && uuid_is_zero(log_topic_id(*out))) {
        e = log_set_topic_id(*out, id);
        if (e != KERR_NONE)
            log_unref(*out);
    }
    return e;
}

/* The controller heard of the leader before it told us of it: what tells us who lives comes after
 * this, and nobody says again who leads. */
static void await_leader(struct replica_manager *m, struct partition *p, const struct leadership *l,
                         struct uuid id)
{
    say_warn("ReplicaManager",
             "%s-%d: its leader of epoch %d, broker %d, is not known to live; it is followed once "
             "it is",
             p->topic, (int)p->number, (int)l->leader_epoch, (int)l->leader);
    p->awaited = (struct awaited_leader){.leader = l->leader,
                                         .controller_epoch = l->controller_epoch,
                                         .leader_epoch = l->leader_epoch,
                                         .partition_epoch = l->partition_epoch,
                                         .replicas_n = l->replicas_n,
                                         .topic_id = l->topic_id,
                                         .fetched_id = id};
    atomic_store(&m->some_await, true);
}

/* Has the partition moved on, so that another LeaderAndIsr must be under way? */
static bool is_outdated(struct replica_manager *m, struct partition *p)
{
    struct topic_partition tp = partition_tp(p);
    const struct metadata_snapshot *s = metadata_acquire(m->o.metadata);
    const struct partition_info *now = metadata_partition(s, tp.topic, tp.partition);
    bool outdated = atomic_load(&p->role) == PARTITION_OFFLINE ||
                    atomic_load(&p->leader_epoch) >= p->awaited.leader_epoch ||
                    (now && now->leader_epoch > p->awaited.leader_epoch);
    metadata_release(s);
    return outdated;
}

static void follow_if_it_lives(void *arg, struct partition *p)
{
    struct replica_manager *m = arg;
    const struct awaited_leader *w = &p->awaited;
    if (w->leader < 0)
        return;
    if (!partition_broker_alive(p, w->leader)) {
        atomic_store(&m->some_await, true);
        return;
    }
    struct log *log = is_outdated(m, p) ? NULL : log_manager_find(m->o.logs, partition_tp(p));
    if (log) {
        struct leadership l = {.controller_epoch = w->controller_epoch,
                               .leader = w->leader,
                               .leader_epoch = w->leader_epoch,
                               .partition_epoch = w->partition_epoch,
                               .replicas_n = w->replicas_n,
                               .topic_id = w->topic_id};
        say_info("ReplicaManager", "%s-%d: its leader of epoch %d, broker %d, is there now",
                 p->topic, (int)p->number, (int)w->leader_epoch, (int)w->leader);
        partition_make_follower(p, &l, log);
        fetch_from(m, p, &l, w->fetched_id);
        log_unref(log);
    }
    p->awaited.leader = -1;
}

void replica_manager_follow_awaited(struct replica_manager *m)
{
    if (atomic_exchange(&m->some_await, false))
        replica_manager_each(m, follow_if_it_lives, m);
}

static enum kerr take_role(struct replica_manager *m, struct partition *p,
                           const struct become_item *it)
{
    const isr_state *s = it->state;
    struct uuid id = it->id;
    struct log *log;
    enum kerr e = open_log(m, p, it, &log);
    p->awaited.leader = -1;
    if (e == KERR_NONE) {
        struct leadership l = {.controller_epoch = s->controller_epoch,
                               .leader = s->leader,
                               .leader_epoch = s->leader_epoch,
                               .partition_epoch = s->partition_epoch,
                               .isr = s->isr.v,
                               .isr_n = s->isr.n,
                               .adding = s->adding_replicas.v,
                               .adding_n = s->adding_replicas.n,
                               .moving = s->adding_replicas.n > 0 || s->removing_replicas.n > 0,
                               .replicas = s->replicas.v,
                               .replicas_n = s->replicas.n,
                               .topic_id = uuid_is_zero(id) ? log_topic_id(log) : id};
        if (s->leader == m->o.broker_id) {
            replica_manager_unfollow(m, p);
            e = partition_make_leader(p, &l, log);
        } else if (partition_broker_alive(p, s->leader)) {
            e = partition_make_follower(p, &l, log);
            fetch_from(m, p, &l, id);
        } else if (s->leader >= 0) {
            await_leader(m, p, &l, id);
        }
        /* Without a leader the log is there all the same: its high watermark stays in the
         * checkpoint. */
        log_unref(log);
    }
    if (e == KERR_KAFKA_STORAGE_ERROR) {
        replica_manager_unfollow(m, p);
        partition_make_offline(p);
    }
    return e;
}

/* The same leadership again: nothing changes but a topic id that was not known. */
static enum kerr same_epoch(struct replica_manager *m, struct partition *p, struct uuid id)
{
    int32_t epoch = atomic_load(&p->leader_epoch);
    struct uuid own = partition_topic_id(p);
    if (!uuid_is_zero(id) && uuid_is_zero(own)) {
        struct log *log = partition_log(p);
        enum kerr e = log ? log_set_topic_id(log, id) : KERR_NONE;
        if (log)
            log_unref(log);
        if (e == KERR_NONE) {
            partition_take_topic_id(p, id);
            if (m->o.fetchers)
                fetchers_set_id(m->o.fetchers, p, epoch, id);
        }
        return e;
    }
    if (uuid_is_zero(id) && !uuid_is_zero(own) && atomic_load(&p->role) == PARTITION_FOLLOWER) {
        if (m->o.fetchers) /* by name again */
            fetchers_set_id(m->o.fetchers, p, epoch, id);
        return KERR_NONE;
    }
    return KERR_STALE_CONTROLLER_EPOCH;
}

static enum kerr become_one(struct replica_manager *m, struct partition *p,
                            const struct become_item *it)
{
    const isr_state *s = it->state;
    struct uuid id = it->id;
    if (atomic_load(&p->role) == PARTITION_OFFLINE)
        return KERR_KAFKA_STORAGE_ERROR;
    struct uuid known = known_topic_id(m, p);
    if (!uuid_is_zero(id) && !uuid_is_zero(known) && !uuid_eq(id, known))
        return KERR_INCONSISTENT_TOPIC_ID;
    int32_t own = atomic_load(&p->leader_epoch);
    if (s->leader_epoch < own)
        return KERR_STALE_CONTROLLER_EPOCH;
    if (s->leader_epoch == own)
        return same_epoch(m, p, id);
    if (!is_among(s->replicas.v, s->replicas.n, m->o.broker_id))
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    return take_role(m, p, it);
}

static enum kerr become(struct replica_manager *m, const struct become_item *it)
{
    const isr_state *s = it->state;
    struct str topic = it->settings->topic;
    struct topic_partition tp = {topic, s->partition_index};
    if (topic_name_problem(topic) || tp.partition < 0)
        return KERR_INVALID_TOPIC_EXCEPTION;
    struct partition *p = replica_manager_lookup_or_make(m, tp);
    if (!p)
        return KERR_UNKNOWN_SERVER_ERROR;
    enum kerr e = become_one(m, p, it);
    if (e != KERR_NONE)
        logline(e == KERR_STALE_CONTROLLER_EPOCH ? LOGLINE_DEBUG : LOGLINE_INFO, "ReplicaManager",
                "LeaderAndIsr for %.*s-%d, leader %d epoch %d: %s (here epoch %d)", STR_ARG(topic),
                (int)tp.partition, (int)s->leader, (int)s->leader_epoch, kerr_name((int16_t)e),
                (int)partition_leader_epoch(p));
    partition_unref(p);
    return e;
}

struct become_all {
    struct replica_manager *m;
    struct topic_settings *topics;
    struct become_item *items;
    int32_t topics_n, n;
    int lanes;
};

/* Partitions of one lane are done one after the other; one that is named twice stays in its lane.
 */
static void become_lane(void *arg, int lane)
{
    struct become_all *all = arg;
    for (int32_t i = 0; i < all->n; i++) {
        struct become_item *it = &all->items[i];
        struct topic_partition tp = {it->settings->topic, it->state->partition_index};
        if (control_lane(tp, all->lanes) == lane)
            *it->error = (int16_t)become(all->m, it);
    }
}

/* Partitions of one topic come in a row. */
static struct topic_settings *settings_of(struct become_all *all, struct str topic)
{
    struct topic_settings *t = all->topics_n ? &all->topics[all->topics_n - 1] : NULL;
    if (t && str_eq(t->topic, topic))
        return t;
    t = &all->topics[all->topics_n++];
    *t = (struct topic_settings){.topic = topic};
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

static void add_items(struct become_all *all, struct str topic, struct uuid id,
                      const isr_state *states, int32_t n, bool by_name,
                      struct leader_and_isr_response_partition_error *out)
{
    for (int32_t i = 0; i < n; i++) {
        struct str name = str_is_null(topic) ? states[i].topic_name : topic;
        if (by_name)
            out[i].topic_name = name;
        out[i].partition_index = states[i].partition_index;
        all->items[all->n++] =
            (struct become_item){settings_of(all, name), id, &states[i], &out[i].error_code};
    }
}

/* Versions below 5 answer with one flat list of names. */
static bool lay_out_flat(struct become_all *all, const struct leader_and_isr_request *req,
                         int32_t n, struct arena *a, struct leader_and_isr_response *out)
{
    struct leader_and_isr_response_partition_error *v =
        leader_and_isr_response_partition_error_new(a, n);
    if (!v)
        return false;
    out->partition_errors.v = v;
    out->partition_errors.n = n;
    add_items(all, STR_NULL, UUID_ZERO, req->ungrouped_partition_states.v,
              req->ungrouped_partition_states.n, true, v);
    for (int32_t t = 0; t < req->topic_states.n; t++) {
        const struct leader_and_isr_request_topic_state *ts = &req->topic_states.v[t];
        add_items(all, ts->topic_name, UUID_ZERO, ts->partition_states.v, ts->partition_states.n,
                  true, v + all->n);
    }
    return true;
}

static bool lay_out_by_topic(struct become_all *all, const struct leader_and_isr_request *req,
                             struct arena *a, struct leader_and_isr_response *out)
{
    out->topics.v = leader_and_isr_response_topic_new(a, req->topic_states.n);
    if (!out->topics.v)
        return false;
    out->topics.n = req->topic_states.n;
    for (int32_t t = 0; t < req->topic_states.n; t++) {
        const struct leader_and_isr_request_topic_state *ts = &req->topic_states.v[t];
        struct leader_and_isr_response_topic *to = &out->topics.v[t];
        to->topic_id = ts->topic_id;
        to->partition_errors.v =
            leader_and_isr_response_partition_error_new(a, ts->partition_states.n);
        if (!to->partition_errors.v)
            return false;
        to->partition_errors.n = ts->partition_states.n;
        add_items(all, ts->topic_name, ts->topic_id, ts->partition_states.v, ts->partition_states.n,
                  false, to->partition_errors.v);
    }
    return true;
}

/* All memory of the answer, before anything is done. */
static bool lay_out(struct become_all *all, int version, const struct leader_and_isr_request *req,
                    struct arena *a, struct leader_and_isr_response *out)
{
    int32_t n = req->ungrouped_partition_states.n, topics = req->topic_states.n;
    const isr_state *flat = req->ungrouped_partition_states.v;
    for (int32_t i = 0; i < n; i++)
        topics += i == 0 || !str_eq(flat[i].topic_name, flat[i - 1].topic_name);
    for (int32_t t = 0; t < req->topic_states.n; t++)
        n += req->topic_states.v[t].partition_states.n;
    all->topics = arena_array(a, struct topic_settings, (size_t)topics);
    all->items = arena_array(a, struct become_item, (size_t)n);
    all->lanes = control_lanes(n);
    return all->topics && all->items &&
           (version >= 5 ? lay_out_by_topic(all, req, a, out) : lay_out_flat(all, req, n, a, out));
}

void replica_manager_become(struct replica_manager *m, int version,
                            const struct leader_and_isr_request *req, struct arena *a,
                            struct leader_and_isr_response *out)
{
    struct become_all all = {.m = m};
    bool fits = lay_out(&all, version, req, a, out);
    pthread_mutex_lock(&m->control);
    enum kerr e = fits ? replica_manager_check_epochs(m, req->broker_epoch, req->controller_epoch)
                       : KERR_UNKNOWN_SERVER_ERROR;
    if (e == KERR_NONE) {
        fan_out(m->o.workers, all.lanes, become_lane, &all);
        log_manager_sync_created(m->o.logs); /* before the controller is told that they are there */
        if (m->o.fetchers)
            fetchers_close_idle(m->o.fetchers);
    }
    pthread_mutex_unlock(&m->control);
    for (int32_t t = 0; t < all.topics_n; t++)
        pthread_mutex_destroy(&all.topics[t].lock);
    if (e != KERR_NONE) /* nothing was done, nothing is told of partitions */
        out->partition_errors.n = out->topics.n = 0;
    out->error_code = (int16_t)e;
}

/* ---- another number of fetchers ---- */

static void fetch_anew(void *arg, struct partition *p)
{
    struct leadership l = {.leader = atomic_load(&p->leader_id),
                           .leader_epoch = atomic_load(&p->leader_epoch)};
    if (atomic_load(&p->role) == PARTITION_FOLLOWER && p->fetched_by)
        fetch_from(arg, p, &l, p->fetched_id);
}

void replica_manager_set_fetchers(struct replica_manager *m, int per_source)
{
    if (!m->o.fetchers)
        return;
    pthread_mutex_lock(&m->control);
    fetchers_set_per_source(m->o.fetchers, per_source);
    replica_manager_each(m, fetch_anew, m);
    fetchers_close_idle(m->o.fetchers);
    pthread_mutex_unlock(&m->control);
}
