/* group_rebalance.c - the join phase: from the wish for a new generation to its start, and the wait
 * for the SyncGroups after it.
 *
 * TIME     An empty group's first phase only ends by time: it waits
 * group.initial.rebalance.delay.ms for company, and again for as much while members come, up to the
 * longest rebalance timeout in all. Any other ends when every member is here and no handed-out id
 * is out, at the latest after the longest rebalance timeout. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/group_private.h"

/* Of all members, the longest time that one may take to come back. */
static int64_t rebalance_ms(const struct group *g)
{
    int64_t most = 0;
    list_each (l, &g->member_list) {
        const struct member *m = list_entry(l, struct member, link);
        if (m->own.rebalance_ms > most)
            most = m->own.rebalance_ms;
    }
    return most;
}

/* Once more, in a while: members that allow no time at all would make it be tried without end. */
static void try_again(struct group *g)
{
    enum { AGAIN_MS_MIN = 100 };
    int64_t ms = rebalance_ms(g);
    executor_timer_start(g->env->ex, &g->join_timer, ms > AGAIN_MS_MIN ? ms : AGAIN_MS_MIN);
}

/* ---- the end of a join phase ---- */

/* Static members may stay away until their session ends. */
static void drop_absent(struct group *g)
{
    if ((size_t)g->awaiting_join == g->members.n)
        return;
    list_each_safe (l, &g->member_list) {
        struct member *m = list_entry(l, struct member, link);
        if (m->join || !str_is_null(m->instance))
            continue;
        say_info(GROUP_TAG, "group %.*s: member %.*s did not rejoin in time", STR_ARG(g->id),
                 STR_ARG(m->id));
        group_drop_member(g, m, KERR_UNKNOWN_MEMBER_ID);
    }
}

/* Is there a leader who is here, or can one be found? */
static bool elect_leader(struct group *g)
{
    if (g->leader && g->leader->join)
        return true;
    struct member *m = group_first_joined(g);
    if (m)
        group_set_leader(g, m);
    return m != NULL;
}

static void empty_stored(struct group_store *s, enum kerr error)
{
    if (error != KERR_NONE)
        say_warn(GROUP_TAG, "group %.*s: cannot write that it is empty: %s", STR_ARG(s->group->id),
                 kerr_name((int16_t)error));
    group_store_end(s);
    free(s);
}

static void become_empty(struct group *g)
{
    group_set_text(&g->protocol_name, STR_NULL);
    group_find_subscribed(g);
    group_set_state(g, GROUP_EMPTY, "nobody joined");
    struct group_store *s = calloc(1, sizeof(*s));
    if (!s)
        return; /* as a failed write: the next load sees the members once more */
    s->stored = empty_stored;
    group_store(g, s);
}

/* All JoinGroups are answered; now all members must sync. */
static void answer_members(struct group *g)
{
    struct list *l, *next;
    for (l = g->member_list.next; l != &g->member_list; l = l->next) {
        struct member *m = list_entry(l, struct member, link);
        m->is_new = m->id_untold = false;
        if (!m->pending_sync)
            g->pending_sync++;
        m->pending_sync = true;
        member_touch(m);
    }
    executor_timer_start(g->env->ex, &g->sync_timer, rebalance_ms(g));
    for (l = g->member_list.next; l != &g->member_list; l = next) {
        next = l->next;
        struct member *m = list_entry(l, struct member, link);
        struct group_call *c = group_unpark_join(m);
        if (c)
            group_answer_joined(c, g, m);
    }
}

static void become_completing(struct group *g)
{
    struct str chosen = group_select_protocol(g);
    if (group_set_text(&g->protocol_name, chosen) != 0) {
        /* No memory for a name: wait once more rather than go on without a protocol. */
        try_again(g);
        return;
    }
    g->generation++;
    g->storing = false;
    group_find_subscribed(g);
    say_info(GROUP_TAG, "group %.*s: generation %d with %zu members, protocol %s", STR_ARG(g->id),
             (int)g->generation, g->members.n, g->protocol_name);
    group_set_state(g, GROUP_COMPLETING_REBALANCE, "the join phase is over");
    answer_members(g);
}

static void complete_join(struct group *g)
{
    executor_timer_stop(g->env->ex, &g->join_timer);
    g->initial = false;
    drop_absent(g);
    if (g->members.n > 0 && !elect_leader(g)) {
        /* Only static members that are away: until their sessions end, or one comes. */
        try_again(g);
        return;
    }
    if (g->members.n > 0) {
        become_completing(g);
    } else {
        g->generation++;
        become_empty(g);
    }
}

void group_try_complete_join(struct group *g)
{
    if (group_is(g, GROUP_PREPARING_REBALANCE) && !g->initial && g->pending.n == 0 &&
        (size_t)g->awaiting_join == g->members.n)
        complete_join(g);
}

/* ---- its start ---- */

static void start_initial(struct group *g)
{
    int64_t delay = g->env->config->initial_delay_ms, most = rebalance_ms(g);
    g->initial = true;
    g->member_added = false;
    g->initial_ms = delay;
    g->initial_left_ms = most > delay ? most - delay : 0;
    executor_timer_start(g->env->ex, &g->join_timer, delay);
}

static void join_over(struct timer *t)
{
    struct group *g = container_of(t, struct group, join_timer);
    if (!g->initial || !g->member_added || g->initial_left_ms == 0) {
        complete_join(g);
        return;
    }
    int64_t before = g->initial_ms, left = g->initial_left_ms;
    int64_t delay = g->env->config->initial_delay_ms;
    g->member_added = false;
    g->initial_ms = delay < left ? delay : left;
    g->initial_left_ms = left > before ? left - before : 0;
    executor_timer_start(g->env->ex, &g->join_timer, g->initial_ms);
}

void group_rebalance(struct group *g, const char *fmt, ...)
{
    char why[512];
    bool empty = group_is(g, GROUP_EMPTY);
    if (group_is(g, GROUP_PREPARING_REBALANCE) || group_is(g, GROUP_DEAD))
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    say_info(GROUP_TAG, "group %.*s: rebalance of generation %d (%s): %s", STR_ARG(g->id),
             (int)g->generation, group_state_name(g->state), why);
    executor_timer_stop(g->env->ex, &g->sync_timer);
    if (empty)
        start_initial(g);
    else
        executor_timer_start(g->env->ex, &g->join_timer, rebalance_ms(g));
    bool syncing = group_is(g, GROUP_COMPLETING_REBALANCE);
    group_set_state(g, GROUP_PREPARING_REBALANCE, why);
    if (syncing)
        group_fail_syncs(g, KERR_REBALANCE_IN_PROGRESS);
}

/* ---- members that never sync ---- */

static void sync_over(struct timer *t)
{
    struct group *g = container_of(t, struct group, sync_timer);
    say_info(GROUP_TAG, "group %.*s: %d members did not sync in time", STR_ARG(g->id),
             g->pending_sync);
    list_each_safe (l, &g->member_list) {
        struct member *m = list_entry(l, struct member, link);
        if (m->pending_sync)
            group_drop_member(g, m, KERR_UNKNOWN_MEMBER_ID);
    }
    group_rebalance(g, "members did not send SyncGroup");
    group_try_complete_join(g);
}

/* ---- timers ---- */

void group_init_timers(struct group *g)
{
    timer_init(&g->join_timer, join_over);
    timer_init(&g->sync_timer, sync_over);
}

void group_stop_timers(struct group *g)
{
    executor_timer_stop(g->env->ex, &g->join_timer);
    executor_timer_stop(g->env->ex, &g->sync_timer);
}
