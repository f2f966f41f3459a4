/* fetch_session.c - what a Fetch request is to serve, and what of it goes into the answer. */
#include "server/fetch_session.h"

#include <errno.h>
#include <string.h>

#include "server/fetch_session_cache.h"
#include "server/index_set.h"

#define FIRST_VERSION_SESSIONS 7
#define FIRST_VERSION_IDS 13
#define EPOCH_FULL 0
#define EPOCH_FINAL (-1)

static int32_t next_epoch(int32_t epoch)
{
    return epoch == INT32_MAX ? 1 : epoch + 1;
}

/* ---- what the request names, each partition once ---- */

static uint64_t want_hash(const struct fetch_want *w, bool by_id)
{
    uint64_t topic = by_id ? hash_bytes(w->topic_id.b, 16) : hash_str(w->topic);
    return topic ^ hash_int((uint32_t)w->partition);
}

static bool same_want(const void *arg, int32_t a, int32_t b)
{
    const struct fetch_context *c = arg;
    const struct fetch_want *x = &c->wants[a], *y = &c->wants[b];
    return x->partition == y->partition &&
           (c->uses_ids ? uuid_eq(x->topic_id, y->topic_id) : str_eq(x->topic, y->topic));
}

static struct str topic_name(const struct fetch_request_topic *t, int version,
                             const struct metadata_snapshot *snapshot, struct arena *a)
{
    if (version < FIRST_VERSION_IDS)
        return t->topic;
    const struct topic_info *info = metadata_topic_by_id(snapshot, t->topic_id);
    return info ? arena_str(a, info->name) : STR_NULL;
}

static struct fetch_want want_of(const struct fetch_request_topic *t,
                                 const struct fetch_request_partition *p, struct str name)
{
    return (struct fetch_want){.topic = name,
                               .topic_id = t->topic_id,
                               .partition = p->partition,
                               .max_bytes = p->partition_max_bytes,
                               .offset = p->fetch_offset,
                               .fetcher_log_start = p->log_start_offset,
                               .current_leader_epoch = p->current_leader_epoch,
                               .last_fetched_epoch = p->last_fetched_epoch};
}

/* A partition named twice stands where it was first named, as it was last named. */
static int wants_of_request(const struct fetch_request *req, int version,
                            const struct metadata_snapshot *snapshot, struct arena *a,
                            struct fetch_context *out)
{
    int n = 0;
    for (int32_t t = 0; t < req->topics.n; t++)
        n += req->topics.v[t].partitions.n;
    struct index_set set;
    out->wants_n = 0;
    out->wants = arena_array(a, struct fetch_want, (size_t)n);
    if (!out->wants || !index_set_init(&set, a, n))
        return -ENOMEM;
    for (int32_t t = 0; t < req->topics.n; t++) {
        const struct fetch_request_topic *topic = &req->topics.v[t];
        struct str name = topic_name(topic, version, snapshot, a);
        for (int32_t i = 0; i < topic->partitions.n; i++) {
            struct fetch_want *w = &out->wants[out->wants_n];
            *w = want_of(topic, &topic->partitions.v[i], name);
            int32_t first =
                index_set_put(&set, want_hash(w, out->uses_ids), out->wants_n, same_want, out);
            if (first < 0)
                out->wants_n++;
            else
                out->wants[first] = *w;
        }
    }
    return a->exhausted ? -ENOMEM : 0;
}

/* ---- incremental requests ---- */

static bool update_session(struct fetch_sessions *s, struct fetch_session *session,
                           const struct fetch_request *req)
{
    for (int32_t t = 0; t < req->topics.n; t++) {
        const struct fetch_request_topic *topic = &req->topics.v[t];
        for (int32_t i = 0; i < topic->partitions.n; i++) {
            struct fetch_want w = want_of(topic, &topic->partitions.v[i], topic->topic);
            if (!session_put(s, session, &w))
                return false;
        }
    }
    for (int32_t t = 0; t < req->forgotten_topics_data.n; t++) {
        const struct fetch_request_forgotten_topic *topic = &req->forgotten_topics_data.v[t];
        for (int32_t i = 0; i < topic->partitions.n; i++)
            session_forget(s, session, topic->topic, topic->topic_id, topic->partitions.v[i]);
    }
    return true;
}

/* The topic's name for one partition; neighbours of one topic share it. */
static struct str session_name(const struct cached_partition *c, bool uses_ids,
                               const struct fetch_want *before,
                               const struct metadata_snapshot *snapshot, struct arena *a)
{
    struct str own = {c->topic, c->topic_len};
    if (!uses_ids)
        return before && str_eq(before->topic, own) ? before->topic : arena_str(a, own);
    if (before && uuid_eq(before->topic_id, c->topic_id))
        return before->topic;
    const struct topic_info *info = metadata_topic_by_id(snapshot, c->topic_id);
    return info ? arena_str(a, info->name) : STR_NULL;
}

static int wants_of_session(const struct fetch_session *session,
                            const struct metadata_snapshot *snapshot, struct arena *a,
                            struct fetch_context *out)
{
    out->wants_n = 0;
    out->wants = arena_array(a, struct fetch_want, (size_t)session->partitions_n);
    if (!out->wants)
        return -ENOMEM;
    list_each (it, &session->order) {
        const struct cached_partition *c = list_entry(it, struct cached_partition, link);
        struct fetch_want *w = &out->wants[out->wants_n];
        *w = (struct fetch_want){
            .topic = session_name(c, session->uses_ids, out->wants_n ? w - 1 : NULL, snapshot, a),
            .topic_id = c->topic_id,
            .partition = c->partition,
            .max_bytes = c->max_bytes,
            .offset = c->offset,
            .fetcher_log_start = c->fetcher_log_start,
            .current_leader_epoch = c->current_leader_epoch,
            .last_fetched_epoch = c->last_fetched_epoch};
        out->wants_n++;
    }
    return a->exhausted ? -ENOMEM : 0;
}

static void refuse(struct fetch_context *out, enum kerr error)
{
    out->kind = FETCH_REFUSED;
    out->error = error;
    out->session_id = 0;
}

static int begin_incremental(struct fetch_sessions *s, const struct fetch_request *req, int version,
                             const struct metadata_snapshot *snapshot, struct arena *a,
                             struct fetch_context *out)
{
    struct fetch_session *session = session_find(s, req->session_id);
    if (!session) {
        refuse(out, KERR_FETCH_SESSION_ID_NOT_FOUND);
        return 0;
    }
    if (session->epoch != req->session_epoch) {
        refuse(out, KERR_INVALID_FETCH_SESSION_EPOCH);
        return 0;
    }
    if (session->uses_ids != out->uses_ids) {
        refuse(out, KERR_FETCH_SESSION_TOPIC_ID_ERROR);
        return 0;
    }
    if (!update_session(s, session, req)) { /* too large: it starts again, in full */
        session_drop(s, session);
        refuse(out, KERR_FETCH_SESSION_ID_NOT_FOUND);
        return 0;
    }
    if (session->partitions_n == 0) {
        session_drop(s, session);
        out->kind = FETCH_SESSIONLESS;
        return wants_of_request(req, version, snapshot, a, out);
    }
    session_touch(s, session);
    session->epoch = next_epoch(session->epoch);
    out->kind = FETCH_INCREMENTAL;
    out->session_id = session->id;
    return wants_of_session(session, snapshot, a, out);
}

static void drop_if_named(struct fetch_sessions *s, int32_t id)
{
    struct fetch_session *session = id ? session_find(s, id) : NULL;
    if (session)
        session_drop(s, session);
}

int fetch_context_begin(struct fetch_sessions *s, const struct fetch_request *req, int version,
                        const struct metadata_snapshot *snapshot, struct arena *a,
                        struct fetch_context *out)
{
    int32_t replica_id = version >= 15 ? req->replica_state.replica_id : req->replica_id;
    *out = (struct fetch_context){.kind = FETCH_SESSIONLESS,
                                  .epoch = req->session_epoch,
                                  .uses_ids = version >= FIRST_VERSION_IDS,
                                  .follower = replica_id >= 0};
    if (version < FIRST_VERSION_SESSIONS)
        return wants_of_request(req, version, snapshot, a, out);
    if (req->session_epoch == EPOCH_FULL || req->session_epoch == EPOCH_FINAL) {
        if (req->session_epoch == EPOCH_FULL)
            out->kind = FETCH_FULL;
        pthread_mutex_lock(&s->lock);
        drop_if_named(s, req->session_id);
        pthread_mutex_unlock(&s->lock);
        return wants_of_request(req, version, snapshot, a, out);
    }
    pthread_mutex_lock(&s->lock);
    int r = begin_incremental(s, req, version, snapshot, a, out);
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* ---- the answer ---- */

/* Who is told of an error, or to cut his log or ask elsewhere, takes no watermark from it. */
static void note_sent(struct cached_partition *c, const struct fetch_found *f)
{
    c->sent_high_watermark = f->error == KERR_NONE && !f->special ? f->high_watermark : -1;
    c->sent_log_start = f->log_start;
    c->sent_records = f->has_records;
}

static void make_session(struct fetch_sessions *s, struct fetch_context *c,
                         const struct fetch_found *found)
{
    struct fetch_session *session = session_make(s, c->follower, c->uses_ids, c->wants_n);
    if (!session)
        return;
    for (int i = 0; i < c->wants_n; i++) {
        struct cached_partition *cached = session_put(s, session, &c->wants[i]);
        if (!cached) {
            session_drop(s, session);
            return;
        }
        note_sent(cached, &found[i]);
    }
    c->session_id = session->id;
}

/* Says whether it has news, and remembers them as sent. */
static bool has_news(struct cached_partition *c, const struct fetch_found *f)
{
    bool news = f->has_records || f->special || f->error != KERR_NONE ||
                f->high_watermark != c->sent_high_watermark || f->log_start != c->sent_log_start;
    note_sent(c, f);
    return news;
}

static enum kerr end_incremental(struct fetch_sessions *s, struct fetch_context *c,
                                 struct fetch_found *found)
{
    struct fetch_session *session = session_find(s, c->session_id);
    if (!session) /* evicted meanwhile: this answer is still good */
        return KERR_NONE;
    if (session->epoch != next_epoch(c->epoch))
        return KERR_INVALID_FETCH_SESSION_EPOCH;
    /* Only a request that passed the epoch changes the list: it is the one we began with. */
    struct list *it = session->order.next;
    for (int i = 0; i < c->wants_n; i++) {
        struct cached_partition *cached = list_entry(it, struct cached_partition, link);
        it = it->next;
        found[i].send = has_news(cached, &found[i]);
        if (found[i].has_records) {
            list_remove(&cached->link);
            list_push_back(&session->order, &cached->link);
        }
    }
    return KERR_NONE;
}

enum kerr fetch_context_end(struct fetch_sessions *s, struct fetch_context *c,
                            struct fetch_found *found)
{
    enum kerr e = KERR_NONE;
    for (int i = 0; i < c->wants_n; i++)
        found[i].send = true;
    if (c->kind == FETCH_SESSIONLESS)
        return e;
    pthread_mutex_lock(&s->lock);
    if (c->kind == FETCH_FULL)
        make_session(s, c, found);
    else
        e = end_incremental(s, c, found);
    pthread_mutex_unlock(&s->lock);
    return e;
}

enum kerr fetch_context_end_empty(struct fetch_sessions *s, struct fetch_context *c)
{
    enum kerr e = KERR_NONE;
    if (c->kind != FETCH_INCREMENTAL)
        return e;
    pthread_mutex_lock(&s->lock);
    const struct fetch_session *session = session_find(s, c->session_id);
    if (session && session->epoch != next_epoch(c->epoch))
        e = KERR_INVALID_FETCH_SESSION_EPOCH;
    pthread_mutex_unlock(&s->lock);
    return e;
}
