/* group_restore.c - a group as its record in the log describes it. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/group_private.h"
#include "protocol/msg/join_group.h"

static struct bytes own_bytes(struct bytes b)
{
    struct str s = {(const char *)b.p, b.len};
    return (struct bytes){(const uint8_t *)(b.len > 0 ? str_dup(s) : NULL), b.len};
}

int group_restore_member(struct group *g, const struct group_call *c, struct str id,
                         struct str instance, struct bytes assignment)
{
    struct member_profile profile;
    if (group_find_member(g, id) || (!str_is_null(instance) && group_find_instance(g, instance)))
        return 0; /* a record that names a member twice: the first stands */
    if (member_profile_make(&profile, c) != 0) {
        member_profile_free(&profile);
        return -ENOMEM;
    }
    struct str copy = {str_dup(id), id.len};
    struct member *m = member_new(copy.p ? copy : STR_NULL, instance, &profile);
    if (m)
        m->assignment = own_bytes(assignment);
    if (!m || (m->assignment.len > 0 && !m->assignment.p)) {
        if (m)
            m->assignment.len = 0;
        member_free(m);
        return -ENOMEM;
    }
    if (group_put_member(g, m) != 0) {
        member_free(m);
        return -ENOMEM;
    }
    return 0;
}

/* A record names one protocol for each member, the one in use. */
static int restore_member(struct group *g, const struct group_metadata_value_member *r,
                          struct str protocol)
{
    struct join_group_request_protocol one = {.name = protocol, .metadata = r->subscription};
    struct join_group_request in;
    join_group_request_init(&in);
    in.protocols.v = &one;
    in.protocols.n = 1;
    in.session_timeout_ms = r->session_timeout;
    in.rebalance_timeout_ms = r->rebalance_timeout;
    struct group_call c = {
        .version = 1, .in = &in, .client_id = r->client_id, .client_host = r->client_host};
    return group_restore_member(g, &c, r->member_id, r->group_instance_id, r->assignment);
}

/* A loaded group is in its state without a move. */
static void restore_state(struct group *g, const struct group_metadata_value *v)
{
    struct member *leader = str_is_null(v->leader) ? NULL : group_find_member(g, v->leader);
    if (leader)
        group_set_leader(g, leader);
    g->unshared = str_is_null(v->leader) && g->members.n > 0;
    g->state = g->members.n > 0 ? GROUP_STABLE : GROUP_EMPTY;
    g->state_ms = v->current_state_timestamp;
    g->generation = v->generation;
    group_find_subscribed(g);
}

int group_restore(struct group *g, const struct group_metadata_value *v)
{
    struct str type = v->protocol_type.len > 0 ? v->protocol_type : STR_NULL;
    int rc = group_set_text(&g->protocol_type, type);
    if (!rc && v->members.n > 0)
        rc = group_set_text(&g->protocol_name, v->protocol);
    for (int32_t i = 0; !rc && i < v->members.n; i++)
        rc = restore_member(g, &v->members.v[i], v->protocol);
    if (!rc)
        restore_state(g, v);
    return rc;
}

int group_restore_stable(struct group *g, int32_t generation)
{
    if (group_set_text(&g->protocol_type, STR_LIT("consumer")) != 0 ||
        group_set_text(&g->protocol_name, group_select_protocol(g)) != 0)
        return -ENOMEM;
    g->generation = generation;
    group_find_subscribed(g);
    group_set_state(g, GROUP_STABLE, "its members speak the classic protocol");
    return 0;
}

/* A group that is larger than what is allowed now goes through one rebalance, which lets in no more
 * than that; so does one that came back from the new protocol and was not shared out since. */
void group_resume(struct group *g)
{
    if (g->consumers)
        cgroup_resume(g);
    list_each (l, &g->member_list)
        member_touch(list_entry(l, struct member, link));
    if (g->members.n > (size_t)g->env->config->max_size)
        group_rebalance(g, "it has %zu members, %d are allowed", g->members.n,
                        (int)g->env->config->max_size);
    else if (g->unshared)
        group_rebalance(g, "it came back from the new protocol, and nobody has shared it out");
    g->unshared = false;
}
