/* group_sync.c - SyncGroup, and the group's record in the log: nobody learns of an assignment that
 * a new coordinator would not know. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/group_private.h"
#include "protocol/msg/sync_group.h"

/* ---- the record ---- */

static const struct { /* what the log says of a group's record -> what clients are told */
    enum kerr log, client;
} store_errors[] = {
    {KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_ENOUGH_REPLICAS, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_LEADER_OR_FOLLOWER, KERR_NOT_COORDINATOR},
    {KERR_KAFKA_STORAGE_ERROR, KERR_NOT_COORDINATOR},
    {KERR_REQUEST_TIMED_OUT, KERR_REBALANCE_IN_PROGRESS},
    {KERR_MESSAGE_TOO_LARGE, KERR_UNKNOWN_SERVER_ERROR},
    {KERR_RECORD_LIST_TOO_LARGE, KERR_UNKNOWN_SERVER_ERROR},
    {KERR_INVALID_FETCH_SIZE, KERR_UNKNOWN_SERVER_ERROR},
};

static enum kerr client_error(enum kerr e)
{
    for (size_t i = 0; i < sizeof(store_errors) / sizeof(*store_errors); i++)
        if (store_errors[i].log == e)
            return store_errors[i].client;
    return e;
}

static struct str text_or_empty(struct str s)
{
    return str_is_null(s) ? STR_LIT("") : s;
}

static int fill_record(const struct group *g, struct arena *a, struct group_metadata_value *v)
{
    group_metadata_value_init(v);
    v->protocol_type = group_protocol_type(g);
    v->generation = g->generation;
    v->protocol = str_of(g->protocol_name);
    v->leader = g->leader ? g->leader->id : STR_NULL;
    v->current_state_timestamp = g->state_ms;
    v->members.v = group_metadata_value_member_new(a, (int32_t)g->members.n);
    if (!v->members.v)
        return -ENOMEM;
    list_each (l, &g->member_list) {
        const struct member *m = list_entry(l, struct member, link);
        struct group_metadata_value_member *to = &v->members.v[v->members.n++];
        to->member_id = m->id;
        to->group_instance_id = m->instance;
        to->client_id = text_or_empty(m->own.client_id);
        to->client_host = text_or_empty(m->own.client_host);
        to->rebalance_timeout = m->own.rebalance_ms;
        to->session_timeout = m->own.session_ms;
        to->subscription = member_metadata(m, str_of(g->protocol_name));
        to->assignment = m->assignment.len > 0 ? m->assignment : to->assignment;
    }
    return 0;
}

int group_encode_record(const struct group *g, struct buf *key, struct buf *value)
{
    struct arena a;
    struct group_metadata_value v;
    arena_init(&a, 0);
    int rc = fill_record(g, &a, &v);
    if (!rc && !group_value_put(value, g->env->config->versions.group, &v))
        rc = -EINVAL;
    group_key_put_group(key, g->id);
    arena_free(&a);
    return rc ? rc : key->failed || value->failed ? -ENOMEM : 0;
}

static void store_done(struct group_append *a)
{
    struct group_store *s = container_of(a, struct group_store, append);
    if (a->error != KERR_NONE)
        say_warn(GROUP_TAG, "group %.*s: its record was not written: %s", STR_ARG(s->group->id),
                 kerr_name((int16_t)a->error));
    s->stored(s, client_error(a->error));
}

static void store_failed(struct task *t)
{
    store_done(container_of(t, struct group_append, task));
}

void group_store(struct group *g, struct group_store *s)
{
    struct buf key = BUF_INIT, value = BUF_INIT;
    s->group = group_ref(g);
    s->generation = g->generation;
    s->append = (struct group_append){.partition = g->partition,
                                      .producer_id = -1,
                                      .producer_epoch = -1,
                                      .base_offset = -1,
                                      .done = store_done};
    if (group_encode_record(g, &key, &value) == 0) {
        struct group_record r = {{key.p, (int32_t)key.len}, {value.p, (int32_t)value.len}};
        g->env->log->ops->append(g->env->log, &s->append, &r, 1);
    } else {
        s->append.error = KERR_UNKNOWN_SERVER_ERROR;
        task_init(&s->append.task, store_failed);
        executor_post(g->env->ex, &s->append.task);
    }
    buf_free(&key);
    buf_free(&value);
}

void group_store_end(struct group_store *s)
{
    group_unref(s->group);
}

/* ---- assignments ---- */

static void clear_assignment(struct member *m)
{
    if (m->assignment.len > 0)
        free((void *)m->assignment.p);
    m->assignment = (struct bytes){NULL, 0};
}

static int set_assignment(struct member *m, struct bytes b)
{
    clear_assignment(m);
    if (b.len <= 0)
        return 0;
    uint8_t *p = malloc((size_t)b.len);
    if (!p)
        return -ENOMEM;
    memcpy(p, b.p, (size_t)b.len);
    m->assignment = (struct bytes){p, b.len};
    return 0;
}

static void answer_all(struct group *g, enum kerr error)
{
    list_each (l, &g->member_list) {
        struct member *m = list_entry(l, struct member, link);
        struct group_call *c = group_unpark_sync(m);
        if (!c)
            continue;
        member_touch(m); /* its session may have passed unseen while it was parked */
        group_answer_sync(c, g, m, error);
    }
}

void group_fail_syncs(struct group *g, enum kerr error)
{
    list_each (l, &g->member_list)
        clear_assignment(list_entry(l, struct member, link));
    answer_all(g, error);
}

/* Who is not named gets nothing; names of strangers are passed over. */
static int take_assignments(struct group *g, const struct sync_group_request *in)
{
    list_each (l, &g->member_list)
        clear_assignment(list_entry(l, struct member, link));
    for (int32_t i = 0; i < in->assignments.n; i++) {
        struct member *m = group_find_member(g, in->assignments.v[i].member_id);
        if (m && set_assignment(m, in->assignments.v[i].assignment) != 0)
            return -ENOMEM;
    }
    return 0;
}

static void give_up(struct group *g, enum kerr error)
{
    group_fail_syncs(g, error);
    group_rebalance(g, "its assignment could not be stored: %s", kerr_name((int16_t)error));
}

static void assignment_stored(struct group_store *s, enum kerr error)
{
    struct group *g = s->group;
    /* If the group has moved on meanwhile, whoever moved it has answered. */
    if (group_is(g, GROUP_COMPLETING_REBALANCE) && g->generation == s->generation) {
        g->storing = false;
        if (error != KERR_NONE) {
            give_up(g, error);
        } else {
            say_info(GROUP_TAG, "group %.*s: generation %d is stable", STR_ARG(g->id),
                     (int)g->generation);
            group_set_state(g, GROUP_STABLE, "the assignment is in the log");
            if (g->env->events)
                g->env->events->rebalances++;
            answer_all(g, KERR_NONE);
        }
    }
    group_store_end(s);
    free(s);
}

static void store_assignment(struct group *g, const struct sync_group_request *in)
{
    struct group_store *s = calloc(1, sizeof(*s));
    if (!s || take_assignments(g, in) != 0) {
        free(s);
        give_up(g, KERR_UNKNOWN_SERVER_ERROR);
        return;
    }
    g->storing = true;
    s->stored = assignment_stored;
    group_store(g, s);
}

/* ---- the request ---- */

static bool differs(struct str said, const char *own)
{
    return !str_is_null(said) && !str_eqz(said, own);
}

static enum kerr check(const struct group *g, const struct sync_group_request *in,
                       struct member **m)
{
    if (group_is(g, GROUP_DEAD))
        return KERR_COORDINATOR_NOT_AVAILABLE;
    enum kerr e = group_identify(g, in->member_id, in->group_instance_id, m);
    if (e != KERR_NONE)
        return e;
    if (in->generation_id != g->generation)
        return KERR_ILLEGAL_GENERATION;
    if (differs(in->protocol_type, g->protocol_type) ||
        differs(in->protocol_name, g->protocol_name))
        return KERR_INCONSISTENT_GROUP_PROTOCOL;
    return group_is(g, GROUP_PREPARING_REBALANCE) ? KERR_REBALANCE_IN_PROGRESS : KERR_NONE;
}

void group_sync(struct group *g, struct group_call *c)
{
    const struct sync_group_request *in = c->in;
    struct member *m;
    enum kerr e = check(g, in, &m);
    if (e != KERR_NONE) {
        group_answer_sync(c, g, NULL, e);
        return;
    }
    if (group_is(g, GROUP_STABLE)) {
        group_synced(g, m);
        member_touch(m);
        group_answer_sync(c, g, m, KERR_NONE);
        return;
    }
    group_park_sync(m, c);
    group_synced(g, m);
    if (m == g->leader && !g->storing)
        store_assignment(g, in);
}
