/* group.c - a group's life and states, and what its members agree on. */
#include "coordinator/group.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/group_private.h"
#include "protocol/msg/join_group.h"

#define BIT(s) (1u << (s))

static const struct {
    const char *name; /* on the wire */
    unsigned next;    /* legal moves */
} states[GROUP_STATES] = {
    [GROUP_EMPTY] = {"Empty", BIT(GROUP_PREPARING_REBALANCE) | BIT(GROUP_STABLE) | BIT(GROUP_DEAD)},
    [GROUP_PREPARING_REBALANCE] = {"PreparingRebalance", BIT(GROUP_COMPLETING_REBALANCE) |
                                                             BIT(GROUP_EMPTY) | BIT(GROUP_DEAD)},
    [GROUP_COMPLETING_REBALANCE] = {"CompletingRebalance", BIT(GROUP_STABLE) |
                                                               BIT(GROUP_PREPARING_REBALANCE) |
                                                               BIT(GROUP_EMPTY) | BIT(GROUP_DEAD)},
    [GROUP_STABLE] = {"Stable",
                      BIT(GROUP_PREPARING_REBALANCE) | BIT(GROUP_EMPTY) | BIT(GROUP_DEAD)},
    [GROUP_DEAD] = {"Dead", 0}, /* no way back: a new group takes the name */
};

const char *group_state_name(enum group_state s)
{
    return states[s].name;
}

void group_set_state(struct group *g, enum group_state to, const char *why)
{
    bool legal = states[g->state].next & BIT(to);
    logline(legal ? LOGLINE_DEBUG : LOGLINE_ERROR, GROUP_TAG,
            "group %.*s: %s -> %s%s because %s (generation %d)", STR_ARG(g->id),
            states[g->state].name, states[to].name, legal ? "" : ", an illegal move,", why,
            (int)g->generation);
    assert(legal);
    g->state = to;
    g->state_ms = group_wall_ms(g);
}

/* ---- life ---- */

struct group *group_new(const struct group_env *env, struct str id, int32_t partition)
{
    struct group *g = calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    g->env = env;
    g->refs = 1;
    g->partition = partition;
    g->id = (struct str){str_dup(id), id.len};
    if (!g->id.p) {
        free(g);
        return NULL;
    }
    g->state = GROUP_EMPTY;
    g->state_ms = group_wall_ms(g);
    list_init(&g->link);
    list_init(&g->member_list);
    list_init(&g->pending_list);
    group_topics_init(&g->subscribed);
    group_offsets_init(&g->offsets);
    group_init_timers(g);
    return g;
}

struct group *group_ref(struct group *g)
{
    g->refs++;
    return g;
}

static void group_free(struct group *g)
{
    group_stop_timers(g);
    list_each_safe (l, &g->member_list)
        group_drop_member(g, list_entry(l, struct member, link), KERR_COORDINATOR_NOT_AVAILABLE);
    list_each_safe (l, &g->pending_list)
        group_drop_pending(g, list_entry(l, struct pending_member, link));
    cgroup_detach(g);
    protocol_counts_free(&g->protocols);
    hmap_free(&g->members);
    hmap_free(&g->static_members);
    hmap_free(&g->pending);
    group_topics_free(&g->subscribed);
    group_offsets_free(&g->offsets);
    free(g->protocol_type);
    free(g->protocol_name);
    free((void *)g->id.p);
    free(g);
}

void group_unref(struct group *g)
{
    if (g && --g->refs == 0)
        group_free(g);
}

void group_unload(struct group *g)
{
    if (group_is(g, GROUP_DEAD))
        return;
    group_stop_timers(g);
    cgroup_unload(g);
    group_set_state(g, GROUP_DEAD, "another broker coordinates it");
    list_each_safe (l, &g->member_list)
        group_drop_member(g, list_entry(l, struct member, link), KERR_NOT_COORDINATOR);
    list_each_safe (l, &g->pending_list)
        group_drop_pending(g, list_entry(l, struct pending_member, link));
}

void group_forget_classic(struct group *g)
{
    list_each_safe (l, &g->pending_list)
        group_drop_pending(g, list_entry(l, struct pending_member, link));
    group_set_text(&g->protocol_type, STR_NULL);
    group_set_text(&g->protocol_name, STR_NULL);
    g->generation = 0;
    group_find_subscribed(g);
}

void group_dissolve(struct group *g, enum kerr error)
{
    group_stop_timers(g);
    g->initial = g->storing = false;
    list_each_safe (l, &g->member_list)
        group_drop_member(g, list_entry(l, struct member, link), error);
    group_forget_classic(g);
    if (!group_is(g, GROUP_EMPTY))
        group_set_state(g, GROUP_EMPTY, "its members speak the new protocol");
}

/* ---- facts ---- */

struct cgroup *group_consumers(const struct group *g)
{
    return g->consumers;
}

bool group_has_members(const struct group *g)
{
    return g->members.n > 0 || (g->consumers && cgroup_members_n(g->consumers) > 0);
}

struct str group_id(const struct group *g)
{
    return g->id;
}

enum group_state group_state(const struct group *g)
{
    return g->state;
}

int32_t group_generation(const struct group *g)
{
    return g->generation;
}

int group_members_n(const struct group *g)
{
    return (int)g->members.n;
}

int group_pending_n(const struct group *g)
{
    return (int)g->pending.n;
}

struct str group_protocol_type(const struct group *g)
{
    return str_of(g->consumers ? "consumer" : g->protocol_type ? g->protocol_type : "");
}

struct group_offsets *group_offsets(struct group *g)
{
    return &g->offsets;
}

int group_set_text(char **at, struct str s)
{
    char *copy = str_dup(s);
    if (!copy && !str_is_null(s))
        return -ENOMEM;
    free(*at);
    *at = copy;
    return 0;
}

/* ---- protocols ---- */

int group_count_protocols(struct group *g, const struct member_profile *p)
{
    return protocol_counts_add(&g->protocols, p->protocols, p->protocols_n);
}

void group_uncount_protocols(struct group *g, const struct member_profile *p)
{
    protocol_counts_remove(&g->protocols, p->protocols, p->protocols_n);
}

static bool offered_by_all(const struct group *g, struct str name)
{
    return (size_t)protocol_counts_of(&g->protocols, name) == g->members.n;
}

bool group_supports(const struct group *g, struct str type,
                    const struct join_group_request_protocol *protocols, int32_t n)
{
    if (group_is(g, GROUP_EMPTY))
        return type.len > 0 && n > 0;
    if (!g->protocol_type || !str_eqz(type, g->protocol_type))
        return false;
    for (int32_t i = 0; i < n; i++)
        if (offered_by_all(g, protocols[i].name))
            return true;
    return false;
}

static struct protocol_count *first_choice(const struct group *g, const struct member *m)
{
    for (int i = 0; i < m->own.protocols_n; i++)
        if (offered_by_all(g, m->own.protocols[i].name))
            return protocol_counts_find(&g->protocols, m->own.protocols[i].name);
    return NULL;
}

/* Each member votes for the first in its list that all can use; of equals, the one that the leader
 * names first. */
struct str group_select_protocol(struct group *g)
{
    int32_t most = 0;
    list_each (l, &g->member_list) {
        struct protocol_count *p = first_choice(g, list_entry(l, struct member, link));
        if (p && ++p->votes > most)
            most = p->votes;
    }
    struct str chosen = STR_NULL;
    for (int i = 0; g->leader && i < g->leader->own.protocols_n && str_is_null(chosen); i++) {
        const struct protocol_count *p =
            protocol_counts_find(&g->protocols, g->leader->own.protocols[i].name);
        if (p && p->votes == most && most > 0)
            chosen = g->leader->own.protocols[i].name;
    }
    hmap_each (n, &g->protocols)
        hmap_entry(n, struct protocol_count, node)->votes = 0;
    return chosen;
}

struct bytes member_metadata(const struct member *m, struct str protocol)
{
    for (int i = 0; i < m->own.protocols_n; i++)
        if (str_eq(m->own.protocols[i].name, protocol))
            return m->own.protocols[i].metadata;
    return (struct bytes){(const uint8_t *)"", 0};
}

/* ---- topics that the members read ---- */

void group_find_subscribed(struct group *g)
{
    bool consumer = g->protocol_type && strcmp(g->protocol_type, "consumer") == 0;
    group_topics_free(&g->subscribed);
    group_topics_init(&g->subscribed);
    g->subscribed_known = consumer && (g->protocol_name || g->members.n == 0);
    if (!g->subscribed_known)
        return;
    list_each (l, &g->member_list) {
        const struct member *m = list_entry(l, struct member, link);
        struct bytes subscription = member_metadata(m, str_of(g->protocol_name));
        if (group_topics_add_subscription(&g->subscribed, subscription) != 0) {
            g->subscribed_known = false;
            return;
        }
    }
}

bool group_subscribed(const struct group *g, struct str topic)
{
    if (g->consumers)
        return cgroup_subscribed(g->consumers, topic);
    return !g->subscribed_known || group_topics_has(&g->subscribed, topic);
}
