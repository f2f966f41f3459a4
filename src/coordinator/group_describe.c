/* group_describe.c - a group as DescribeGroups shows it. Copies: the group moves on before the
 * answer is encoded. */
#include <errno.h>

#include "coordinator/group_private.h"
#include "protocol/msg/describe_groups.h"

typedef struct describe_groups_response_member described_member;

static struct bytes copy_bytes(struct arena *a, struct bytes b)
{
    struct str s = arena_str(a, (struct str){(const char *)b.p, b.len > 0 ? b.len : 0});
    return (struct bytes){(const uint8_t *)s.p, s.p ? s.len : 0};
}

/* What members said and got has a meaning only in a stable group. */
static void describe_member(const struct group *g, const struct member *m, struct arena *a,
                            described_member *to)
{
    to->member_id = arena_str(a, m->id);
    to->group_instance_id = arena_str(a, m->instance);
    to->client_id = arena_str(a, m->own.client_id);
    to->client_host = arena_str(a, m->own.client_host);
    if (!group_is(g, GROUP_STABLE))
        return;
    to->member_metadata = copy_bytes(a, member_metadata(m, str_of(g->protocol_name)));
    to->member_assignment = copy_bytes(a, m->assignment);
}

int group_describe(const struct group *g, struct arena *a,
                   struct describe_groups_response_group *out)
{
    out->group_state = str_of(group_state_name(g->state));
    out->protocol_type = arena_str(a, group_protocol_type(g));
    if (group_is(g, GROUP_STABLE))
        out->protocol_data = arena_str(a, str_of(g->protocol_name));
    out->members.v = describe_groups_response_member_new(a, (int32_t)g->members.n);
    if (!out->members.v)
        return -ENOMEM;
    list_each (l, &g->member_list)
        describe_member(g, list_entry(l, struct member, link), a,
                        &out->members.v[out->members.n++]);
    return a->exhausted ? -ENOMEM : 0;
}
