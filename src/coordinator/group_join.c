/* group_join.c - JoinGroup: who may come in, and what a member's coming sets off. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/group_private.h"
#include "protocol/msg/join_group.h"

enum {
    FIRST_VERSION_KNOWN_ID = 4, /* a dynamic member gets its id before it joins */
    FIRST_VERSION_SKIP_ASSIGNMENT = 9,
    REASON_MAX = 255,
};

/* The client's own words, cut. */
static struct str reason_of(const struct group_call *c)
{
    const struct join_group_request *in = c->in;
    struct str s = str_is_null(in->reason) ? STR_LIT("not provided") : in->reason;
    if (s.len > REASON_MAX)
        s.len = REASON_MAX;
    return s;
}

static void refuse(struct group_call *c, enum kerr error)
{
    const struct join_group_request *in = c->in;
    group_answer_join_error(c, error, in->member_id);
}

static void out_of_memory(struct group_call *c)
{
    group_answer_join_error(c, KERR_UNKNOWN_SERVER_ERROR, STR_LIT(""));
}

/* ---- new members ---- */

/* Takes id. NULL without memory. */
static struct member *add_member(struct group *g, const struct group_call *c, struct str id)
{
    const struct join_group_request *in = c->in;
    struct member_profile profile;
    if (member_profile_make(&profile, c) != 0) {
        member_profile_free(&profile);
        free((void *)id.p);
        return NULL;
    }
    struct member *m = member_new(id, in->group_instance_id, &profile);
    if (!m)
        return NULL;
    bool first = g->members.n == 0;
    if ((first && group_set_text(&g->protocol_type, in->protocol_type) != 0) ||
        group_put_member(g, m) != 0) {
        member_free(m);
        return NULL;
    }
    return m;
}

/* Takes id. */
static void join_as_new(struct group *g, struct group_call *c, struct str id, bool id_untold)
{
    struct member *m = add_member(g, c, id);
    if (!m) {
        out_of_memory(c);
        return;
    }
    struct pending_member *p = group_find_pending(g, m->id);
    if (p)
        group_drop_pending(g, p);
    if (group_is(g, GROUP_PREPARING_REBALANCE) && g->generation == 0)
        g->member_added = true;
    m->is_new = true;
    m->id_untold = id_untold;
    member_touch(m);
    group_park_join(m, c);
    group_rebalance(g, "member %.*s joins, its reason: %.*s", STR_ARG(m->id),
                    STR_ARG(reason_of(c)));
}

/* Takes id. */
static void hand_out_id(struct group *g, struct group_call *c, struct str id)
{
    const struct join_group_request *in = c->in;
    if (str_is_null(id) || group_add_pending(g, id, in->session_timeout_ms) != 0)
        out_of_memory(c);
    else
        group_answer_join_error(c, KERR_MEMBER_ID_REQUIRED, id);
    free((void *)id.p);
}

/* ---- a static member comes back as another process ---- */

struct replacement { /* while the change is being written down */
    struct group_store store;
    struct group_call *call;
    struct str old_id, new_id, old_leader; /* owned */
    struct member_profile before;          /* owned */
};

static void replacement_free(struct replacement *r)
{
    if (!r)
        return;
    free((void *)r->old_id.p);
    free((void *)r->new_id.p);
    free((void *)r->old_leader.p);
    member_profile_free(&r->before);
    free(r);
}

static struct str own(struct str s)
{
    return (struct str){str_dup(s), s.len};
}

/* m lives under `id` and as the request describes it, what the old instance waited for is over.
 * NULL without memory: then m is as before. Takes id. */
static struct replacement *replace(struct group *g, struct member *m, struct group_call *c,
                                   struct str id)
{
    struct replacement *r = calloc(1, sizeof(*r));
    if (!r) {
        free((void *)id.p);
        return NULL;
    }
    r->call = c;
    r->new_id = id;
    r->old_id = own(m->id);
    r->old_leader = own(g->leader->id);
    bool good = id.p && r->old_id.p && r->old_leader.p && member_profile_make(&r->before, c) == 0;
    if (!good || member_swap_profile(m, &r->before) != 0) {
        replacement_free(r);
        return NULL;
    }
    if (group_rename_member(g, m, id) != 0) {
        member_swap_profile(m, &r->before);
        replacement_free(r);
        return NULL;
    }
    struct group_call *join = group_unpark_join(m), *sync = group_unpark_sync(m);
    if (join)
        group_answer_join_error(join, KERR_FENCED_INSTANCE_ID, r->old_id);
    if (sync)
        group_answer_sync(sync, g, NULL, KERR_FENCED_INSTANCE_ID);
    member_touch(m);
    return r;
}

/* The new instance gets the group's generation without a rebalance. An older client that is the
 * leader must not think so: its assignment would go nowhere. */
static void answer_replaced(struct replacement *r, struct member *m)
{
    struct group *g = r->store.group;
    struct group_call *c = group_unpark_join(m);
    struct join_view v = {.leader = r->old_leader};
    if (c->version >= FIRST_VERSION_SKIP_ASSIGNMENT) {
        v.leader = g->leader->id;
        v.with_members = v.skip_assignment = g->leader == m;
    }
    member_touch(m);
    group_answer_join(c, g, m, &v);
}

static void undo_replacement(struct replacement *r, struct member *m, enum kerr error)
{
    struct group *g = r->store.group;
    struct group_call *c = group_unpark_join(m);
    struct join_group_response *out = c->out;
    out->error_code = (int16_t)error;
    group_rename_member(g, m, r->old_id); /* without memory it stays away until it joins again */
    member_swap_profile(m, &r->before);
    member_touch(m);
    struct join_view v = {.leader = r->old_leader};
    struct member nobody = {.id = STR_LIT("")};
    group_answer_join(c, g, &nobody, &v);
}

static void replacement_stored(struct group_store *s, enum kerr error)
{
    struct replacement *r = container_of(s, struct replacement, store);
    struct group *g = s->group;
    struct member *m = group_find_member(g, r->new_id);
    /* If a rebalance began meanwhile and was answered, or the connection went, all is said. */
    if (m && m->join == r->call) {
        if (error != KERR_NONE)
            undo_replacement(r, m, error);
        else if (group_is(g, GROUP_STABLE))
            answer_replaced(r, m);
    }
    group_store_end(s);
    replacement_free(r);
}

static void join_as_replacement(struct group *g, struct group_call *c, struct member *m,
                                struct str id)
{
    struct replacement *r = replace(g, m, c, id);
    if (!r) {
        out_of_memory(c);
        return;
    }
    say_info(GROUP_TAG, "group %.*s: static member %.*s, known as %.*s, is replaced by %.*s",
             STR_ARG(g->id), STR_ARG(m->instance), STR_ARG(r->old_id), STR_ARG(m->id));
    group_park_join(m, c);
    if (group_is(g, GROUP_STABLE) && str_eqz(group_select_protocol(g), g->protocol_name)) {
        r->store.stored = replacement_stored;
        group_store(g, &r->store);
        return;
    }
    replacement_free(r);
    group_rebalance(g, "static member %.*s is another process now", STR_ARG(m->instance));
}

/* ---- known members ---- */

static void rejoin(struct group *g, struct group_call *c, struct member *m, const char *what)
{
    struct member_profile profile;
    if (member_profile_make(&profile, c) != 0 || member_swap_profile(m, &profile) != 0) {
        member_profile_free(&profile);
        out_of_memory(c);
        return;
    }
    member_profile_free(&profile);
    group_park_join(m, c);
    group_rebalance(g, "%s %.*s, its reason: %.*s", what, STR_ARG(m->id), STR_ARG(reason_of(c)));
}

static void join_as_known(struct group *g, struct group_call *c, struct member *m)
{
    bool same = member_matches(m, c->in);
    if (group_is(g, GROUP_COMPLETING_REBALANCE) && same)
        group_answer_joined(c, g, m); /* the first answer did not reach it */
    else if (group_is(g, GROUP_STABLE) && same && m != g->leader)
        group_answer_joined(c, g, m);
    else
        rejoin(g, c, m, same ? "rejoin of the leader" : "other metadata of member");
}

/* ---- the request ---- */

static bool accepts(const struct group *g, const struct member *m)
{
    int max = g->env->config->max_size;
    switch (g->state) {
    case GROUP_PREPARING_REBALANCE:
        return (m && m->join) || g->awaiting_join < max;
    case GROUP_COMPLETING_REBALANCE:
    case GROUP_STABLE:
        return m || g->members.n < (size_t)max;
    default:
        return true;
    }
}

static void join_without_id(struct group *g, struct group_call *c)
{
    const struct join_group_request *in = c->in;
    bool is_static = !str_is_null(in->group_instance_id);
    struct member *holder = is_static ? group_find_instance(g, in->group_instance_id) : NULL;
    struct str id = group_make_member_id(c->client_id, in->group_instance_id);
    if (holder)
        join_as_replacement(g, c, holder, id);
    else if (is_static || c->version < FIRST_VERSION_KNOWN_ID)
        join_as_new(g, c, id, !is_static);
    else
        hand_out_id(g, c, id);
}

static void join_with_id(struct group *g, struct group_call *c)
{
    const struct join_group_request *in = c->in;
    struct member *m;
    if (group_find_pending(g, in->member_id)) {
        if (str_is_null(in->group_instance_id))
            join_as_new(g, c, own(in->member_id), false);
        else
            refuse(c, KERR_UNKNOWN_SERVER_ERROR); /* ids of static members are never pending */
        return;
    }
    enum kerr e = group_identify(g, in->member_id, in->group_instance_id, &m);
    if (e != KERR_NONE)
        refuse(c, e);
    else
        join_as_known(g, c, m);
}

/* No room: the id is not a member's any more. */
static void turn_away(struct group *g, struct group_call *c, struct member *m)
{
    const struct join_group_request *in = c->in;
    struct pending_member *p = group_find_pending(g, in->member_id);
    if (m)
        group_drop_member(g, m, KERR_GROUP_MAX_SIZE_REACHED);
    if (p)
        group_drop_pending(g, p);
    group_answer_join_error(c, KERR_GROUP_MAX_SIZE_REACHED, STR_LIT(""));
}

void group_join(struct group *g, struct group_call *c)
{
    const struct join_group_request *in = c->in;
    struct member *m = group_find_member(g, in->member_id);
    if (group_is(g, GROUP_DEAD))
        refuse(c, KERR_COORDINATOR_NOT_AVAILABLE);
    else if (!accepts(g, m))
        turn_away(g, c, m);
    else if (!group_supports(g, in->protocol_type, in->protocols.v, in->protocols.n))
        refuse(c, KERR_INCONSISTENT_GROUP_PROTOCOL);
    else if (in->member_id.len == 0)
        join_without_id(g, c);
    else
        join_with_id(g, c);
    group_try_complete_join(g);
}
