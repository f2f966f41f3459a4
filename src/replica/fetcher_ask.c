/* fetcher_ask.c - what a follower has to ask of its leader other than records: where the leader's
 * log ends for an epoch, and where it begins and ends. */
#include <errno.h>

#include "base/logline.h"
#include "protocol/msg/list_offsets.h"
#include "protocol/msg/offset_for_leader_epoch.h"
#include "replica/fetcher_private.h"

/* Marks those in the state that are ready. Returns how many. */
static int choose(struct fetcher *f, enum follow_state state)
{
    int n = 0;
    list_each (it, &f->parts) {
        struct followed *p = list_entry(it, struct followed, link);
        p->asked = p->state == state && followed_ready(f, p);
        n += p->asked;
    }
    return n;
}

static void take_error(struct fetcher *f, struct followed *p, int16_t error)
{
    if (error == KERR_FENCED_LEADER_EPOCH)
        followed_fail(f, p, "ask its leader", error);
    else
        followed_delay(f, p);
}

/* ---- epochs ---- */

static void take_epoch(struct fetcher *f, struct followed *p,
                       const struct offset_for_leader_epoch_response_partition *a)
{
    struct follow_view view;
    bool sure = true;
    enum kerr e;
    if (a->error_code) {
        take_error(f, p, a->error_code);
        return;
    }
    if (a->end_offset < 0) { /* it knows nothing of that epoch: what is committed stays */
        e = partition_follow_view(p->partition, p->leader_epoch, &view);
        if (e == KERR_NONE)
            e = partition_follow_truncate(p->partition, p->leader_epoch, followed_seen(p),
                                          view.high_watermark, &view);
    } else {
        e = partition_follow_diverged(p->partition, p->leader_epoch, followed_seen(p),
                                      a->leader_epoch, a->end_offset, &sure, &view);
    }
    if (!followed_went_well(f, p, "cut", e))
        return;
    followed_look(p, &view);
    p->delay_ms = 0;
    if (sure || view.latest_epoch < 0)
        p->state = FOLLOW_FETCHING;
}

static void on_epochs(void *arg, int status, int version, const void *response)
{
    struct fetcher *f = arg;
    const struct offset_for_leader_epoch_response *r = response;
    (void)version;
    if (status) {
        fetcher_request_failed(f, API_OFFSET_FOR_LEADER_EPOCH, status);
        return;
    }
    for (int32_t t = 0; t < r->topics.n; t++) {
        const struct offset_for_leader_epoch_response_topic *topic = &r->topics.v[t];
        for (int32_t i = 0; i < topic->partitions.n; i++) {
            struct followed *p =
                fetcher_asked(f, topic->topic, UUID_ZERO, topic->partitions.v[i].partition);
            if (p)
                take_epoch(f, p, &topic->partitions.v[i]);
        }
    }
    fetcher_answered(f);
}

bool fetcher_ask_epochs(struct fetcher *f)
{
    int n = choose(f, FOLLOW_ASK_EPOCH), version = ibp_epoch_version(f->s->ibp);
    if (n == 0)
        return false;
    struct offset_for_leader_epoch_request *r =
        arena_new(&f->arena, struct offset_for_leader_epoch_request);
    struct offset_for_leader_epoch_request_topic *topics =
        offset_for_leader_epoch_request_topic_new(&f->arena, n);
    struct offset_for_leader_epoch_request_partition *parts =
        offset_for_leader_epoch_request_partition_new(&f->arena, n);
    if (!r || !topics || !parts) {
        fetcher_request_failed(f, API_OFFSET_FOR_LEADER_EPOCH, -ENOMEM);
        return true;
    }
    offset_for_leader_epoch_request_init(r);
    r->replica_id = f->s->broker_id;
    r->topics.v = topics;
    list_each (it, &f->parts) {
        struct followed *p = list_entry(it, struct followed, link);
        if (!p->asked)
            continue;
        struct offset_for_leader_epoch_request_topic *t =
            r->topics.n ? &topics[r->topics.n - 1] : NULL;
        if (!t || !str_eq(t->topic, p->tp.topic)) {
            t = &topics[r->topics.n++];
            t->topic = p->tp.topic;
            t->partitions.v = parts;
        }
        parts->partition = p->tp.partition;
        parts->current_leader_epoch = p->leader_epoch;
        parts->leader_epoch = p->last_epoch;
        parts++;
        t->partitions.n++;
    }
    fetcher_send(f, API_OFFSET_FOR_LEADER_EPOCH, version, r, on_epochs);
    return true;
}

/* ---- offsets ---- */

/* Ahead of the leader: cut. Else the leader may begin behind our end. */
static void take_latest(struct fetcher *f, struct followed *p, int64_t latest)
{
    struct follow_view view;
    if (latest >= p->offset) {
        p->state = FOLLOW_ASK_EARLIEST;
        return;
    }
    enum kerr e =
        partition_follow_truncate(p->partition, p->leader_epoch, followed_seen(p), latest, &view);
    if (!followed_went_well(f, p, "cut", e))
        return;
    followed_look(p, &view);
    p->state = FOLLOW_FETCHING;
}

static void take_earliest(struct fetcher *f, struct followed *p, int64_t earliest)
{
    struct follow_view view;
    p->state = FOLLOW_FETCHING;
    if (earliest <= p->offset) { /* it is in range by now */
        followed_delay(f, p);
        return;
    }
    enum kerr e =
        partition_follow_restart(p->partition, p->leader_epoch, followed_seen(p), earliest, &view);
    if (followed_went_well(f, p, "begin anew", e))
        followed_look(p, &view);
}

static void on_offsets(void *arg, int status, int version, const void *response)
{
    struct fetcher *f = arg;
    const struct list_offsets_response *r = response;
    (void)version;
    if (status) {
        fetcher_request_failed(f, API_LIST_OFFSETS, status);
        return;
    }
    for (int32_t t = 0; t < r->topics.n; t++) {
        const struct list_offsets_response_topic *topic = &r->topics.v[t];
        for (int32_t i = 0; i < topic->partitions.n; i++) {
            const struct list_offsets_response_partition *a = &topic->partitions.v[i];
            struct followed *p =
                fetcher_asked(f, topic->name, UUID_ZERO, topic->partitions.v[i].partition_index);
            if (!p)
                continue;
            if (a->error_code || a->offset < 0)
                take_error(f, p, a->error_code);
            else if (p->state == FOLLOW_ASK_LATEST)
                take_latest(f, p, a->offset);
            else
                take_earliest(f, p, a->offset);
        }
    }
    fetcher_answered(f);
}

bool fetcher_ask_offsets(struct fetcher *f, enum follow_state state)
{
    int n = choose(f, state), version = ibp_list_offsets_version(f->s->ibp);
    if (n == 0)
        return false;
    struct list_offsets_request *r = arena_new(&f->arena, struct list_offsets_request);
    struct list_offsets_request_topic *topics = list_offsets_request_topic_new(&f->arena, n);
    struct list_offsets_request_partition *parts = list_offsets_request_partition_new(&f->arena, n);
    if (!r || !topics || !parts) {
        fetcher_request_failed(f, API_LIST_OFFSETS, -ENOMEM);
        return true;
    }
    list_offsets_request_init(r);
    r->replica_id = f->s->broker_id;
    r->topics.v = topics;
    list_each (it, &f->parts) {
        struct followed *p = list_entry(it, struct followed, link);
        if (!p->asked)
            continue;
        struct list_offsets_request_topic *t = r->topics.n ? &topics[r->topics.n - 1] : NULL;
        if (!t || !str_eq(t->name, p->tp.topic)) {
            t = &topics[r->topics.n++];
            t->name = p->tp.topic;
            t->partitions.v = parts;
        }
        parts->partition_index = p->tp.partition;
        parts->current_leader_epoch = p->leader_epoch;
        parts->timestamp = state == FOLLOW_ASK_LATEST ? LIST_LATEST : LIST_EARLIEST;
        parts++;
        t->partitions.n++;
    }
    fetcher_send(f, API_LIST_OFFSETS, version, r, on_offsets);
    return true;
}
