/* group_answers.c - what JoinGroup and SyncGroup are answered: copies of the group's state in the
 * call's arena, since the group moves on before the answer is encoded. */
#include "coordinator/group_private.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/sync_group.h"

enum { FIRST_VERSION_NULL_PROTOCOL = 7 };

void group_call_end(struct group_call *c)
{
    if (c->arena->exhausted)
        c->no_memory = true;
    c->done(c);
}

static struct bytes copy_bytes(struct arena *a, struct bytes b)
{
    if (b.len <= 0)
        return (struct bytes){(const uint8_t *)"", 0};
    uint8_t *p = arena_alloc(a, (size_t)b.len);
    if (p)
        memcpy(p, b.p, (size_t)b.len);
    return (struct bytes){p, p ? b.len : 0};
}

/* ---- JoinGroup ---- */

void group_answer_join_error(struct group_call *c, enum kerr error, struct str id)
{
    struct join_group_response *out = c->out;
    out->error_code = (int16_t)error;
    out->generation_id = -1;
    out->member_id = arena_str(c->arena, id);
    out->protocol_name = c->version >= FIRST_VERSION_NULL_PROTOCOL ? STR_NULL : STR_LIT("");
    group_call_end(c);
}

static void list_members(struct group_call *c, const struct group *g)
{
    struct join_group_response *out = c->out;
    out->members.v = join_group_response_member_new(c->arena, (int32_t)g->members.n);
    if (!out->members.v)
        return;
    list_each (l, &g->member_list) {
        const struct member *m = list_entry(l, struct member, link);
        struct join_group_response_member *to = &out->members.v[out->members.n++];
        to->member_id = arena_str(c->arena, m->id);
        to->group_instance_id = arena_str(c->arena, m->instance);
        to->metadata = copy_bytes(c->arena, member_metadata(m, str_of(g->protocol_name)));
    }
}

void group_answer_join(struct group_call *c, const struct group *g, const struct member *m,
                       const struct join_view *v)
{
    struct join_group_response *out = c->out;
    out->generation_id = g->generation;
    out->protocol_type = arena_str(c->arena, str_of(g->protocol_type));
    out->protocol_name = arena_str(c->arena, str_of(g->protocol_name));
    out->leader = arena_str(c->arena, v->leader);
    out->skip_assignment = v->skip_assignment;
    out->member_id = arena_str(c->arena, m->id);
    if (v->with_members)
        list_members(c, g);
    group_call_end(c);
}

void group_answer_joined(struct group_call *c, const struct group *g, const struct member *m)
{
    struct join_view v = {.leader = g->leader->id, .with_members = g->leader == m};
    group_answer_join(c, g, m, &v);
}

/* ---- SyncGroup ---- */

void group_answer_sync(struct group_call *c, const struct group *g, const struct member *m,
                       enum kerr error)
{
    struct sync_group_response *out = c->out;
    out->error_code = (int16_t)error;
    out->assignment = (struct bytes){(const uint8_t *)"", 0};
    if (error == KERR_NONE) {
        out->protocol_type = arena_str(c->arena, str_of(g->protocol_type));
        out->protocol_name = arena_str(c->arena, str_of(g->protocol_name));
        out->assignment = copy_bytes(c->arena, m->assignment);
    }
    group_call_end(c);
}
