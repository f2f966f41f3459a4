/* fetcher_fetch.c - Fetch as a follower sends it: in a session, of which the leader is told what
 * changed; and what becomes of the answer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "protocol/errors.h"
#include "protocol/msg/fetch.h"
#include "replica/fetcher_private.h"

typedef struct fetch_request_topic topic_part;
typedef struct fetch_request_partition partition_part;
typedef struct fetch_request_forgotten_topic forgotten_part;
typedef struct fetch_response_partition answer_part;

enum { FIRST_VERSION_IDS = 13, FIRST_VERSION_REPLICA_STATE = 15, EPOCH_FULL = 0 };

/* ---- session ---- */

static void free_forgotten(struct fetcher *f)
{
    for (struct list *it; (it = list_pop(&f->forgotten)) != NULL;)
        free(list_entry(it, struct forgotten, link));
}

void session_restart(struct fetcher *f)
{
    f->session_epoch = EPOCH_FULL;
    free_forgotten(f);
    list_each (it, &f->parts)
        list_entry(it, struct followed, link)->session.in = false;
}

void session_forget_part(struct fetcher *f, struct followed *p)
{
    if (!p->session.in)
        return;
    p->session.in = false;
    struct forgotten *g = malloc(sizeof(*g) + (size_t)p->tp.topic.len);
    if (!g) { /* the session as a whole is given up instead */
        session_restart(f);
        return;
    }
    list_init(&g->link);
    g->id = p->id;
    g->partition = p->tp.partition;
    g->topic_len = p->tp.topic.len;
    memcpy(g->topic, p->tp.topic.p, (size_t)g->topic_len);
    list_push_back(&f->forgotten, &g->link);
}

static bool is_news(const struct followed *p)
{
    const struct session_part *s = &p->session;
    return !s->in || s->offset != p->offset || s->log_start != p->log_start ||
           s->leader_epoch != p->leader_epoch || s->last_epoch != p->last_epoch;
}

static void note_told(struct followed *p)
{
    p->session = (struct session_part){.in = true,
                                       .offset = p->offset,
                                       .log_start = p->log_start,
                                       .leader_epoch = p->leader_epoch,
                                       .last_epoch = p->last_epoch};
}

/* ---- the request ---- */

static bool may_fetch(struct fetcher *f, struct followed *p)
{
    return p->state == FOLLOW_FETCHING && followed_ready(f, p) &&
           (!f->s->may_fetch || f->s->may_fetch(f->s->arg, p->tp, p->behind));
}

/* Marks those that are to be fetched; those that are not leave the session. Returns how many. */
static int choose(struct fetcher *f)
{
    int n = 0;
    list_each (it, &f->parts) {
        struct followed *p = list_entry(it, struct followed, link);
        p->asked = may_fetch(f, p);
        n += p->asked;
    }
    return n;
}

/* Ids only if all have one, those that are forgotten included. */
static bool can_use_ids(const struct fetcher *f)
{
    if (ibp_fetch_version(f->s->ibp) < FIRST_VERSION_IDS)
        return false;
    list_each (it, &f->parts) {
        const struct followed *p = list_entry(it, struct followed, link);
        if ((p->asked || p->session.in) && uuid_is_zero(p->id))
            return false;
    }
    list_each (it, &f->forgotten)
        if (uuid_is_zero(list_entry(it, struct forgotten, link)->id))
            return false;
    return true;
}

struct request_builder {
    struct fetcher *f;
    struct fetch_request *r;
    topic_part *topics;
    partition_part *partitions;
    const struct followed *last;
};

static void add_part(struct request_builder *b, struct followed *p)
{
    if (!b->last || !str_eq(b->last->tp.topic, p->tp.topic) || !uuid_eq(b->last->id, p->id)) {
        topic_part *t = &b->topics[b->r->topics.n++];
        t->topic = p->tp.topic;
        t->topic_id = p->id;
        t->partitions.v = b->partitions;
    }
    b->last = p;
    partition_part *out = b->partitions++;
    b->topics[b->r->topics.n - 1].partitions.n++;
    out->partition = p->tp.partition;
    out->current_leader_epoch = p->leader_epoch;
    out->fetch_offset = p->offset;
    if (ibp_truncates_on_fetch(b->f->s->ibp))
        out->last_fetched_epoch = p->last_epoch;
    out->log_start_offset = p->log_start;
    out->partition_max_bytes = b->f->s->max_bytes;
}

/* All, or with a session what is news to it. false without memory. */
static bool add_parts(struct fetcher *f, struct fetch_request *r, int n)
{
    struct request_builder b = {.f = f,
                                .r = r,
                                .topics = fetch_request_topic_new(&f->arena, n),
                                .partitions = fetch_request_partition_new(&f->arena, n)};
    if (!b.topics || !b.partitions)
        return false;
    r->topics.v = b.topics;
    list_each (it, &f->parts) {
        struct followed *p = list_entry(it, struct followed, link);
        if (!p->asked || !is_news(p))
            continue;
        add_part(&b, p);
        note_told(p);
    }
    return true;
}

/* Did something leave the session that is asked for again? A leader takes the partitions of a
 * request in before it forgets any, so one that is named in both would be gone; and one that is
 * left in would not be told again what its life before this one was told (F4). */
static bool comes_back(struct fetcher *f)
{
    list_each (it, &f->forgotten) {
        const struct forgotten *g = list_entry(it, struct forgotten, link);
        struct str name = {g->topic, g->topic_len};
        if (fetcher_asked(f, f->session_ids ? STR_NULL : name, g->id, g->partition))
            return true;
    }
    return false;
}

static bool add_forgotten(struct fetcher *f, struct fetch_request *r)
{
    int n = 0;
    list_each (it, &f->forgotten)
        n++;
    forgotten_part *topics = fetch_request_forgotten_topic_new(&f->arena, n);
    int32_t *numbers = arena_array(&f->arena, int32_t, (size_t)n);
    if (!topics || !numbers)
        return false;
    r->forgotten_topics_data.v = topics;
    list_each (it, &f->forgotten) {
        const struct forgotten *g = list_entry(it, struct forgotten, link);
        forgotten_part *t = &topics[r->forgotten_topics_data.n++];
        t->topic = arena_str(&f->arena, (struct str){g->topic, g->topic_len});
        t->topic_id = g->id;
        t->partitions.v = numbers;
        t->partitions.n = 1;
        *numbers++ = g->partition;
    }
    free_forgotten(f);
    return !f->arena.exhausted;
}

static void fill_head(struct fetcher *f, struct fetch_request *r, int version)
{
    if (version >= FIRST_VERSION_REPLICA_STATE) {
        r->replica_state.replica_id = f->s->broker_id;
        r->replica_state.replica_epoch = f->s->broker_epoch ? f->s->broker_epoch(f->s->arg) : -1;
    } else {
        r->replica_id = f->s->broker_id;
    }
    /* Those that are not asked for now are not to wait for the others. */
    int64_t next = fetcher_next_ready_ms(f);
    r->max_wait_ms = next >= 0 && next < f->s->wait_max_ms ? (int32_t)next : f->s->wait_max_ms;
    r->min_bytes = f->s->min_bytes;
    r->max_bytes = f->s->response_max_bytes;
    r->session_id = f->session_id;
    r->session_epoch = f->session_epoch;
}

static void on_fetched(void *arg, int status, int version, const void *response);

bool fetcher_fetch(struct fetcher *f)
{
    int n = choose(f);
    if (n == 0)
        return false;
    list_each (it, &f->parts) { /* those that are not fetched now */
        struct followed *p = list_entry(it, struct followed, link);
        if (!p->asked && p->session.in)
            session_forget_part(f, p);
    }
    bool ids = can_use_ids(f);
    if (f->session_epoch != EPOCH_FULL && (ids != f->session_ids || comes_back(f)))
        session_restart(f);
    if (f->session_epoch == EPOCH_FULL) {
        free_forgotten(f);
        ids = can_use_ids(f);
        f->session_ids = ids;
    }
    int version = ibp_fetch_version(f->s->ibp);
    if (!ids && version > IBP_FETCH_BY_NAME)
        version = IBP_FETCH_BY_NAME;
    struct fetch_request *r = arena_new(&f->arena, struct fetch_request);
    if (r) {
        fetch_request_init(r);
        fill_head(f, r, version);
    }
    if (!r || !add_parts(f, r, n) || !add_forgotten(f, r))
        fetcher_request_failed(f, API_FETCH, -ENOMEM);
    else
        fetcher_send(f, API_FETCH, version, r, on_fetched);
    return true;
}

/* ---- the answer ---- */

/* Each of these: did it take over the leader's marks, or will it be told them again? (F4) */
static bool take_records(struct fetcher *f, struct followed *p, const answer_part *a)
{
    struct follow_view view;
    int32_t len = a->records.len > 0 ? a->records.len : 0;
    struct follow_append append = {.leader_epoch = p->leader_epoch,
                                   .seen = followed_seen(p),
                                   .records = a->records.p,
                                   .len = len,
                                   .leader_high_watermark = a->high_watermark,
                                   .leader_log_start = a->log_start_offset};
    enum kerr e = partition_follow_append(p->partition, &append, &view);
    if (!followed_went_well(f, p, "append", e))
        return false;
    followed_look(p, &view);
    p->behind = a->high_watermark > p->offset;
    p->delay_ms = 0;
    if (len == 0)
        return true;
    metric_add(&f->counts.bytes, (uint64_t)len);
    if (f->s->received)
        f->s->received(f->s->arg, p->tp, len);
    list_remove(&p->link); /* the others come first the next time */
    list_push_back(&f->parts, &p->link);
    return true;
}

/* The marks that come along are of a log that ours is not: they wait. */
static bool take_divergence(struct fetcher *f, struct followed *p, const answer_part *a)
{
    struct follow_view view;
    bool sure;
    enum kerr e = partition_follow_diverged(p->partition, p->leader_epoch, followed_seen(p),
                                            a->diverging_epoch.epoch, a->diverging_epoch.end_offset,
                                            &sure, &view);
    if (!followed_went_well(f, p, "cut", e))
        return false;
    /* Each round lowers the last epoch or the end; if one does not, something is wrong. */
    if (view.log_end == p->offset && view.latest_epoch == p->last_epoch)
        followed_delay(f, p);
    followed_look(p, &view);
    return false;
}

static void take_error(struct fetcher *f, struct followed *p, int16_t error)
{
    switch (error) {
    case KERR_OFFSET_OUT_OF_RANGE:
        p->state = FOLLOW_ASK_LATEST;
        return;
    case KERR_FENCED_LEADER_EPOCH: /* ours is old: the next LeaderAndIsr brings another */
        followed_fail(f, p, "fetch", error);
        return;
    case KERR_NOT_LEADER_OR_FOLLOWER:
    case KERR_UNKNOWN_LEADER_EPOCH:
    case KERR_UNKNOWN_TOPIC_OR_PARTITION:
    case KERR_UNKNOWN_TOPIC_ID:
        break; /* it has not heard yet */
    default:
        say_warn(f->component, "%.*s-%d: broker %d answers %s", STR_ARG(p->tp.topic),
                 (int)p->tp.partition, f->o.source, kerr_name(error));
    }
    followed_delay(f, p);
}

static bool take_part(struct fetcher *f, struct followed *p, const answer_part *a)
{
    if (!p) /* it left: so it does from the session */
        return true;
    if (!p->asked) /* for what it was, before a new order */
        return false;
    if (a->error_code) {
        take_error(f, p, a->error_code);
        return true; /* an error tells no marks: they come when it ends */
    }
    if (a->diverging_epoch.epoch >= 0 && a->diverging_epoch.end_offset >= 0)
        return take_divergence(f, p, a);
    return take_records(f, p, a);
}

static bool take_parts(struct fetcher *f, int version, const struct fetch_response *r)
{
    bool all = true;
    for (int32_t t = 0; t < r->responses.n; t++) {
        const struct fetch_response_response *topic = &r->responses.v[t];
        struct str name = version >= FIRST_VERSION_IDS ? STR_NULL : topic->topic;
        for (int32_t i = 0; i < topic->partitions.n; i++) {
            const answer_part *a = &topic->partitions.v[i];
            all &= take_part(f, fetcher_find(f, name, topic->topic_id, a->partition_index), a);
        }
    }
    return all;
}

static bool goes_on(struct fetcher *f, int16_t error)
{
    if (error == KERR_NONE)
        return true;
    if (error == KERR_FETCH_SESSION_ID_NOT_FOUND || error == KERR_INVALID_FETCH_SESSION_EPOCH) {
        if (error == KERR_FETCH_SESSION_ID_NOT_FOUND)
            f->session_id = 0;
        session_restart(f); /* in full, at once */
    } else {
        say_warn(f->component, "broker %d answers Fetch with %s", f->o.source, kerr_name(error));
        list_each (it, &f->parts) {
            struct followed *p = list_entry(it, struct followed, link);
            if (p->asked)
                followed_delay(f, p);
        }
        session_restart(f);
    }
    return false;
}

static void note_session(struct fetcher *f, int32_t id)
{
    if (id == 0) {
        f->session_id = 0;
        session_restart(f);
    } else if (f->session_epoch == EPOCH_FULL) {
        f->session_id = id;
        f->session_epoch = 1;
    } else {
        f->session_epoch = f->session_epoch == INT32_MAX ? 1 : f->session_epoch + 1;
    }
}

static void on_fetched(void *arg, int status, int version, const void *response)
{
    struct fetcher *f = arg;
    const struct fetch_response *r = response;
    if (status) {
        fetcher_request_failed(f, API_FETCH, status);
        return;
    }
    if (f->troubled)
        say_info(f->component, "broker %d answers again", f->o.source);
    f->troubled = false;
    metric_add(&f->counts.requests, 1);
    if (goes_on(f, r->error_code)) {
        note_session(f, r->session_id);
        if (!take_parts(f, version, r))
            session_restart(f);
    }
    fetcher_answered(f);
}
