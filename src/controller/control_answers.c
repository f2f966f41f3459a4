/* control_answers.c - see control_answers.h. Answers are only looked at in the reign that asked;
 * those to deletions become events, the others are logged where they are errors. */
#include "controller/control_answers.h"

#include <stdlib.h>

#include "protocol/api.h"
#include "protocol/errors.h"
#include "protocol/msg/leader_and_isr.h"
#include "protocol/msg/stop_replica.h"
#include "protocol/msg/update_metadata.h"

struct control_round {
    struct arena arena;
    struct controller *c; /* a reference */
    struct list requests; /* not sent yet */
    int refs;             /* requests, and who is building it */
    bool failed;
};

struct control_request {
    struct list link;
    struct control_round *round;
    struct broker_channel *channel;
    int32_t broker;
    int64_t broker_epoch;
    int16_t api_key;
    int version;
    const void *body;
    uint64_t reign;
    bool asks_dirs; /* a LeaderAndIsr of all that the broker hosts */
};

struct control_round *control_round_new(struct controller *c)
{
    struct control_round *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    arena_init(&r->arena, 0);
    list_init(&r->requests);
    r->c = c;
    r->refs = 1;
    c->refs++;
    return r;
}

struct arena *control_round_arena(struct control_round *r)
{
    return &r->arena;
}

static void round_unref(struct control_round *r)
{
    if (--r->refs)
        return;
    struct controller *c = r->c;
    arena_free(&r->arena);
    free(r);
    controller_unref(c);
}

void control_send(struct control_round *r, struct ctl_broker *to, int16_t api_key, int version,
                  const void *request)
{
    struct control_request *q = request ? arena_new(&r->arena, struct control_request) : NULL;
    if (!q)
        r->failed = true;
    if (!q || !to->channel) /* a broker that cannot be reached is as one that is gone */
        return;
    *q = (struct control_request){.round = r,
                                  .channel = to->channel,
                                  .broker = to->id,
                                  .broker_epoch = to->epoch,
                                  .api_key = api_key,
                                  .version = version,
                                  .body = request,
                                  .reign = r->c->reign,
                                  .asks_dirs = r->c->asks_dirs && api_key == API_LEADER_AND_ISR};
    list_push_back(&r->requests, &q->link);
}

static void log_error(const struct control_request *q, int16_t error)
{
    const struct api_desc *api = api_find(q->api_key);
    say_warn(q->round->c->component, "broker %d answers %s with %s", q->broker, api->name,
             kerr_name(error));
}

/* Topics that went without an id are answered without: the name is clear if there was one of them.
 */
static struct str topic_by_id(const struct controller *c, const struct leader_and_isr_request *q,
                              struct uuid id)
{
    const struct ctl_topic *t = uuid_is_zero(id) ? NULL : context_topic_by_id(&c->ctx, id);
    if (t || !uuid_is_zero(id))
        return t ? t->name : STR_NULL;
    struct str found = STR_NULL;
    for (int i = 0; i < q->topic_states.n; i++) {
        if (!uuid_eq(q->topic_states.v[i].topic_id, id))
            continue;
        if (!str_is_null(found))
            return STR_NULL;
        found = q->topic_states.v[i].topic_name;
    }
    return found;
}

/* What the answer says of log dirs, gathered for one event. */
struct dir_answers {
    struct control_request *q;
    struct job *j;
    int room;
};

static void add_dir_answer(struct dir_answers *d, struct str topic, int32_t partition,
                           int16_t error)
{
    struct controller *c = d->q->round->c;
    struct ctl_topic *t = context_topic(&c->ctx, topic);
    struct ctl_partition *p = t ? context_partition(t, partition) : NULL;
    struct ctl_replica *r = p ? context_replica(p, d->q->broker) : NULL;
    if (error && error != KERR_STALE_CONTROLLER_EPOCH) /* 11: it knew that state already */
        log_error(d->q, error);
    bool dead = error == KERR_KAFKA_STORAGE_ERROR;
    if (!r || (error && !dead) || dead == r->dead_dir)
        return;
    if (!d->j) {
        d->j = controller_event(c, &event_dirs_answered);
        if (!d->j)
            return;
        d->j->broker = d->q->broker;
        d->j->broker_epoch = d->q->broker_epoch;
        d->j->answer.parts = arena_array(&d->j->inputs, struct stop_answer_part, (size_t)d->room);
    }
    struct str name = arena_str(&d->j->inputs, topic);
    if (d->j->answer.parts && name.p)
        d->j->answer.parts[d->j->answer.parts_n++] =
            (struct stop_answer_part){name, partition, error};
}

static void look_at_leader_and_isr(struct control_request *q, const void *response)
{
    const struct leader_and_isr_response *r = response;
    struct dir_answers d = {.q = q, .room = r->partition_errors.n};
    if (r->error_code)
        log_error(q, r->error_code);
    for (int i = 0; i < r->topics.n; i++)
        d.room += r->topics.v[i].partition_errors.n;
    for (int i = 0; i < r->topics.n; i++) {
        struct str topic = topic_by_id(q->round->c, q->body, r->topics.v[i].topic_id);
        for (int k = 0; k < r->topics.v[i].partition_errors.n; k++)
            add_dir_answer(&d, topic, r->topics.v[i].partition_errors.v[k].partition_index,
                           r->topics.v[i].partition_errors.v[k].error_code);
    }
    for (int i = 0; i < r->partition_errors.n; i++)
        add_dir_answer(&d, r->partition_errors.v[i].topic_name,
                       r->partition_errors.v[i].partition_index,
                       r->partition_errors.v[i].error_code);
}

static void look_at_update_metadata(struct control_request *q, const void *response)
{
    const struct update_metadata_response *r = response;
    if (r->error_code)
        log_error(q, r->error_code);
}

/* Error codes by topic and partition. */
struct error_at {
    struct hnode node;
    struct str topic;
    int32_t partition;
    int16_t error;
};

static bool same_place(const struct hnode *h, const void *key)
{
    const struct error_at *a = hmap_entry(h, struct error_at, node), *b = key;
    return a->partition == b->partition && str_eq(a->topic, b->topic);
}

static uint64_t hash_place(struct str topic, int32_t partition)
{
    return hash_str(topic) + hash_int((uint64_t)partition);
}

/* false without memory. */
static bool index_errors(const struct stop_replica_response *r, struct arena *a, struct hmap *map)
{
    struct error_at *e = arena_array(a, struct error_at, (size_t)r->partition_errors.n);
    hmap_init(map);
    for (int i = 0; e && i < r->partition_errors.n; i++) {
        struct str topic = r->partition_errors.v[i].topic_name;
        e[i].topic = topic;
        e[i].partition = r->partition_errors.v[i].partition_index;
        e[i].error = r->partition_errors.v[i].error_code;
        uint64_t hash = hash_place(topic, e[i].partition);
        if (!hmap_find(map, hash, same_place, &e[i]) && hmap_put(map, &e[i].node, hash))
            return false;
    }
    return e != NULL;
}

/* What the request wants deleted, whichever form it has. */
static int count_deletions(const struct stop_replica_request *q)
{
    int n = 0;
    for (int i = 0; i < q->topics.n && q->delete_partitions; i++)
        n += q->topics.v[i].partition_indexes.n;
    for (int i = 0; i < q->topic_states.n; i++)
        for (int k = 0; k < q->topic_states.v[i].partition_states.n; k++)
            n += q->topic_states.v[i].partition_states.v[k].delete_partition;
    return n;
}

/* A partition that the answer does not name has the error of the whole. `named` lies in the job's
 * memory. */
static void add_deletion(struct job *j, struct str topic, struct str named, int32_t partition,
                         const struct stop_replica_response *r, const struct hmap *errors)
{
    struct error_at key = {.topic = topic, .partition = partition};
    struct hnode *h = hmap_find(errors, hash_place(topic, partition), same_place, &key);
    int16_t error = h ? hmap_entry(h, struct error_at, node)->error : r->error_code;
    if (named.p)
        j->answer.parts[j->answer.parts_n++] = (struct stop_answer_part){named, partition, error};
}

/* What the request wanted deleted, with what became of it. */
static void list_deletions(struct job *j, const struct stop_replica_request *q,
                           const struct stop_replica_response *r, const struct hmap *errors)
{
    for (int i = 0; i < q->topic_states.n; i++) {
        struct str topic = q->topic_states.v[i].topic_name;
        struct str name = arena_str(&j->inputs, topic);
        for (int k = 0; k < q->topic_states.v[i].partition_states.n; k++) {
            const struct stop_replica_request_partition_state *p =
                &q->topic_states.v[i].partition_states.v[k];
            if (p->delete_partition)
                add_deletion(j, topic, name, p->partition_index, r, errors);
        }
    }
    for (int i = 0; i < q->topics.n && q->delete_partitions; i++) {
        struct str topic = q->topics.v[i].name, name = arena_str(&j->inputs, topic);
        for (int k = 0; k < q->topics.v[i].partition_indexes.n; k++)
            add_deletion(j, topic, name, q->topics.v[i].partition_indexes.v[k], r, errors);
    }
}

static void look_at_stop_replica(struct control_request *q, const void *response)
{
    const struct stop_replica_response *r = response;
    const struct stop_replica_request *request = q->body;
    struct hmap errors;
    int n = count_deletions(request);
    if (r->error_code)
        log_error(q, r->error_code);
    struct job *j = n ? controller_event(q->round->c, &event_replica_deleted) : NULL;
    if (!j)
        return;
    j->broker = q->broker;
    j->broker_epoch = q->broker_epoch;
    j->answer.parts = arena_array(&j->inputs, struct stop_answer_part, (size_t)n);
    if (index_errors(r, &j->inputs, &errors) && j->answer.parts)
        list_deletions(j, request, r, &errors);
    hmap_free(&errors);
}

static void answered(void *arg, int status, const void *response)
{
    struct control_request *q = arg;
    struct control_round *round = q->round;
    struct controller *c = round->c;
    if (q->broker == c->o.broker_id && q->reign == c->reign)
        controller_own_answered(c);
    if (status == 0 && q->reign == c->reign && !c->stopping) {
        if (q->api_key == API_LEADER_AND_ISR)
            look_at_leader_and_isr(q, response);
        else if (q->api_key == API_UPDATE_METADATA)
            look_at_update_metadata(q, response);
        else
            look_at_stop_replica(q, response);
        if (q->asks_dirs)
            bounced_look(c, q->broker, q->broker_epoch);
    }
    round_unref(round);
}

bool control_answer_counts(const struct controller *c, const struct job *j)
{
    const struct ctl_broker *b = context_broker(&c->ctx, j->broker);
    return b && b->epoch == j->broker_epoch;
}

bool control_round_go(struct control_round *r)
{
    bool good = !r->failed && !r->arena.exhausted;
    for (struct list *at; (at = list_pop(&r->requests));) {
        struct control_request *q = list_entry(at, struct control_request, link);
        if (!good)
            continue;
        r->refs++;
        if (q->broker == r->c->o.broker_id)
            r->c->own_sent++;
        q->channel->send(q->channel, q->api_key, q->version, q->body, answered, q);
    }
    round_unref(r);
    return good;
}
