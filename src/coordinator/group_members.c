/* group_members.c - members and pending ids of a group: how they come in, how long they are waited
 * for, what they are told when they go. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/group_private.h"
#include "protocol/msg/join_group.h"

/* ---- identity ---- */

static bool is_member(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct member, by_id)->id, *(const struct str *)key);
}

static bool is_instance(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct member, by_instance)->instance, *(const struct str *)key);
}

struct member *group_find_member(const struct group *g, struct str id)
{
    struct hnode *n = g->members.n ? hmap_find(&g->members, hash_str(id), is_member, &id) : NULL;
    return n ? hmap_entry(n, struct member, by_id) : NULL;
}

struct member *group_find_instance(const struct group *g, struct str instance)
{
    struct hnode *n = hmap_find(&g->static_members, hash_str(instance), is_instance, &instance);
    return n ? hmap_entry(n, struct member, by_instance) : NULL;
}

/* A static member with an old id must learn that it is fenced, so the instance is looked at first.
 */
enum kerr group_identify(const struct group *g, struct str id, struct str instance,
                         struct member **out)
{
    *out = str_is_null(instance) ? group_find_member(g, id) : group_find_instance(g, instance);
    if (!*out)
        return KERR_UNKNOWN_MEMBER_ID;
    return str_eq((*out)->id, id) ? KERR_NONE : KERR_FENCED_INSTANCE_ID;
}

struct str group_make_member_id(struct str client_id, struct str instance)
{
    enum { UUID_TEXT = 36 };
    struct str lead = str_is_null(instance) ? client_id : instance;
    int32_t n = lead.len < 0 ? 0 : lead.len;
    if (n > GROUP_ID_MAX - 1 - UUID_TEXT)
        n = GROUP_ID_MAX - 1 - UUID_TEXT; /* the whole must fit into a record */
    char *p = malloc((size_t)n + 1 + UUID_TEXT + 1);
    if (!p)
        return STR_NULL;
    struct uuid u = uuid_random();
    u.b[6] = (uint8_t)((u.b[6] & 0x0F) | 0x40);
    u.b[8] = (uint8_t)((u.b[8] & 0x3F) | 0x80);
    if (n > 0)
        memcpy(p, lead.p, (size_t)n);
    char *at = p + n;
    *at++ = '-';
    for (int i = 0; i < 16; i++) {
        static const char digits[] = "0123456789abcdef";
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[u.b[i] >> 4];
        *at++ = digits[u.b[i] & 15];
    }
    *at = '\0';
    return (struct str){p, (int32_t)(at - p)};
}

/* ---- what a member says of itself ---- */

/* The request's entries are of the same make. */
typedef struct join_group_request_protocol offered_protocol;
_Static_assert(sizeof(offered_protocol) == sizeof(struct member_protocol) &&
                   offsetof(offered_protocol, name) == offsetof(struct member_protocol, name) &&
                   offsetof(offered_protocol, metadata) ==
                       offsetof(struct member_protocol, metadata),
               "same fields");

static bool own_str(struct str *to, struct str s)
{
    *to = (struct str){str_dup(s), s.len};
    return to->p || str_is_null(s);
}

int member_profile_make(struct member_profile *p, const struct group_call *c)
{
    const struct join_group_request *in = c->in;
    *p = (struct member_profile){.session_ms = in->session_timeout_ms,
                                 .rebalance_ms = c->version >= 1 ? in->rebalance_timeout_ms
                                                                 : in->session_timeout_ms};
    p->protocols =
        member_protocols_copy((const struct member_protocol *)in->protocols.v, in->protocols.n);
    p->protocols_n = p->protocols ? in->protocols.n : 0;
    bool good = own_str(&p->client_id, str_is_null(c->client_id) ? STR_LIT("") : c->client_id);
    return own_str(&p->client_host, c->client_host) && good && p->protocols ? 0 : -ENOMEM;
}

void member_profile_free(struct member_profile *p)
{
    free(p->protocols);
    free((void *)p->client_id.p);
    free((void *)p->client_host.p);
    *p = (struct member_profile){0};
}

int member_swap_profile(struct member *m, struct member_profile *p)
{
    struct member_profile old = m->own;
    if (group_count_protocols(m->group, p) != 0)
        return -ENOMEM;
    group_uncount_protocols(m->group, &old);
    m->own = *p;
    *p = old;
    return 0;
}

bool member_matches(const struct member *m, const struct join_group_request *in)
{
    if (m->own.protocols_n != in->protocols.n)
        return false;
    for (int i = 0; i < m->own.protocols_n; i++) {
        const struct join_group_request_protocol *p = &in->protocols.v[i];
        const struct bytes *own = &m->own.protocols[i].metadata;
        if (!str_eq(m->own.protocols[i].name, p->name) || own->len != p->metadata.len ||
            (own->len > 0 && memcmp(own->p, p->metadata.p, (size_t)own->len) != 0))
            return false;
    }
    return true;
}

void member_free(struct member *m)
{
    if (!m)
        return;
    free((void *)m->id.p);
    free((void *)m->instance.p);
    member_profile_free(&m->own);
    if (m->assignment.len > 0)
        free((void *)m->assignment.p);
    free(m);
}

struct member *member_new(struct str id, struct str instance, struct member_profile *p)
{
    struct member *m = str_is_null(id) ? NULL : calloc(1, sizeof(*m));
    if (!m) {
        free((void *)id.p);
        member_profile_free(p);
        return NULL;
    }
    m->id = id;
    m->own = *p;
    list_init(&m->link);
    if (own_str(&m->instance, instance))
        return m;
    member_free(m);
    return NULL;
}

/* ---- timers ---- */

static void session_over(struct timer *t)
{
    struct member *m = container_of(t, struct member, timer);
    /* Who is parked is alive; its session begins again with the answer. */
    if (!m->is_new && (m->join || m->sync))
        return;
    say_info(GROUP_TAG, "group %.*s: member %.*s %s", STR_ARG(m->group->id), STR_ARG(m->id),
             m->is_new ? "waited too long for its first join" : "has not been heard of in time");
    group_remove_member(m->group, m, "a member's session expired");
}

void member_touch(struct member *m)
{
    int64_t ms = m->is_new ? GROUP_NEW_MEMBER_JOIN_MS : m->own.session_ms;
    executor_timer_start(m->group->env->ex, &m->timer, ms > 0 ? ms : 0);
}

/* ---- in and out ---- */

void group_set_leader(struct group *g, struct member *m)
{
    g->leader = m;
}

struct member *group_first_joined(const struct group *g)
{
    for (struct list *l = g->member_list.next; g->awaiting_join && l != &g->member_list;
         l = l->next) {
        struct member *m = list_entry(l, struct member, link);
        if (m->join)
            return m;
    }
    return NULL;
}

static int link_member(struct group *g, struct member *m)
{
    if (hmap_put(&g->members, &m->by_id, hash_str(m->id)) != 0)
        return -ENOMEM;
    if (!str_is_null(m->instance) &&
        hmap_put(&g->static_members, &m->by_instance, hash_str(m->instance)) != 0) {
        hmap_remove(&g->members, &m->by_id);
        return -ENOMEM;
    }
    return 0;
}

int group_put_member(struct group *g, struct member *m)
{
    if (group_count_protocols(g, &m->own) != 0)
        return -ENOMEM;
    if (link_member(g, m) != 0) {
        group_uncount_protocols(g, &m->own);
        return -ENOMEM;
    }
    m->group = g;
    timer_init(&m->timer, session_over);
    list_push_back(&g->member_list, &m->link);
    if (!g->leader)
        group_set_leader(g, m);
    return 0;
}

static void choose_leader(struct group *g)
{
    struct member *m = group_first_joined(g);
    if (!m && !list_empty(&g->member_list))
        m = list_entry(g->member_list.next, struct member, link);
    group_set_leader(g, m);
}

void group_drop_member(struct group *g, struct member *m, enum kerr error)
{
    struct group_call *join = group_unpark_join(m), *sync = group_unpark_sync(m);
    executor_timer_stop(g->env->ex, &m->timer);
    group_synced(g, m);
    group_uncount_protocols(g, &m->own);
    hmap_remove(&g->members, &m->by_id);
    if (!str_is_null(m->instance))
        hmap_remove(&g->static_members, &m->by_instance);
    list_remove(&m->link);
    if (g->leader == m)
        choose_leader(g);
    member_free(m);
    if (join)
        group_answer_join_error(join, error, STR_LIT(""));
    if (sync)
        group_answer_sync(sync, g, NULL, error);
}

void group_remove_member(struct group *g, struct member *m, const char *why)
{
    group_drop_member(g, m, KERR_UNKNOWN_MEMBER_ID);
    group_rebalance(g, "%s", why);
    group_try_complete_join(g);
}

int group_rename_member(struct group *g, struct member *m, struct str id)
{
    struct str copy = {str_dup(id), id.len};
    if (!copy.p)
        return -ENOMEM;
    hmap_remove(&g->members, &m->by_id);
    free((void *)m->id.p);
    m->id = copy;
    hmap_put(&g->members, &m->by_id, hash_str(id)); /* the map has room: one was just taken off */
    return 0;
}

/* ---- parked calls ---- */

/* An older call of the same member gives way: its sender asks again, or has gone. */
static void supersede(struct group_call *join, struct group_call *sync, struct member *m)
{
    if (join)
        group_answer_join_error(join, KERR_REBALANCE_IN_PROGRESS, m->id);
    if (sync)
        group_answer_sync(sync, m->group, NULL, KERR_REBALANCE_IN_PROGRESS);
}

void group_park_join(struct member *m, struct group_call *c)
{
    struct group_call *join = group_unpark_join(m), *sync = group_unpark_sync(m);
    m->join = c;
    c->parked = m;
    m->group->awaiting_join++;
    supersede(join, sync, m);
}

void group_park_sync(struct member *m, struct group_call *c)
{
    struct group_call *sync = group_unpark_sync(m);
    m->sync = c;
    c->parked = m;
    m->group->awaiting_sync++;
    supersede(NULL, sync, m);
}

struct group_call *group_unpark_join(struct member *m)
{
    struct group_call *c = m->join;
    if (!c)
        return NULL;
    m->join = NULL;
    c->parked = NULL;
    m->group->awaiting_join--;
    return c;
}

struct group_call *group_unpark_sync(struct member *m)
{
    struct group_call *c = m->sync;
    if (!c)
        return NULL;
    m->sync = NULL;
    c->parked = NULL;
    m->group->awaiting_sync--;
    return c;
}

void group_synced(struct group *g, struct member *m)
{
    if (!m->pending_sync)
        return;
    m->pending_sync = false;
    if (--g->pending_sync == 0)
        executor_timer_stop(g->env->ex, &g->sync_timer);
}

/* A connection that is gone is no sign of life: the member is waited for as if it had not asked.
 * Who had only that connection to learn its id from can never come back. */
void group_call_abandon(struct group_call *c)
{
    struct member *m = c->parked;
    if (!m)
        return;
    struct group *g = m->group;
    if (m->id_untold && m->join == c) {
        group_remove_member(g, m, "a new member's connection closed");
        return;
    }
    bool join = m->join == c;
    if (join)
        group_unpark_join(m);
    else
        group_unpark_sync(m);
    m->is_new = false;
    member_touch(m);
    if (join)
        group_answer_join_error(c, KERR_REBALANCE_IN_PROGRESS, m->id);
    else
        group_answer_sync(c, g, NULL, KERR_REBALANCE_IN_PROGRESS);
}

/* ---- ids that were handed out ---- */

static bool is_pending(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct pending_member, node)->id, *(const struct str *)key);
}

struct pending_member *group_find_pending(const struct group *g, struct str id)
{
    struct hnode *n = hmap_find(&g->pending, hash_str(id), is_pending, &id);
    return n ? hmap_entry(n, struct pending_member, node) : NULL;
}

void group_drop_pending(struct group *g, struct pending_member *p)
{
    executor_timer_stop(g->env->ex, &p->timer);
    hmap_remove(&g->pending, &p->node);
    list_remove(&p->link);
    free(p);
}

static void pending_over(struct timer *t)
{
    struct pending_member *p = container_of(t, struct pending_member, timer);
    struct group *g = p->group;
    group_drop_pending(g, p);
    group_try_complete_join(g);
}

int group_add_pending(struct group *g, struct str id, int32_t session_ms)
{
    struct pending_member *p = calloc(1, sizeof(*p) + (size_t)id.len);
    if (!p)
        return -ENOMEM;
    memcpy(p + 1, id.p, (size_t)id.len);
    p->id = (struct str){(const char *)(p + 1), id.len};
    p->group = g;
    timer_init(&p->timer, pending_over);
    if (hmap_put(&g->pending, &p->node, hash_str(id)) != 0) {
        free(p);
        return -ENOMEM;
    }
    list_push_back(&g->pending_list, &p->link);
    if (g->pending.n > GROUP_PENDING_MAX)
        group_drop_pending(g, list_entry(g->pending_list.next, struct pending_member, link));
    executor_timer_start(g->env->ex, &p->timer, session_ms);
    return 0;
}
